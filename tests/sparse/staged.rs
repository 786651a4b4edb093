//! Tests products that blocks stage in shared memory: the most that there is room for, and wide products.

use kernel_primitives::algorithms::{Csr, CsrIndex, Sell, spmv, spmv_by};
use kernel_primitives::functor::{Add, LogicalAnd, LogicalOr, Min, Overwrite, Semiring};
use kernel_primitives::input::counting;
use kernel_primitives::kernels::device::{CSR_CHUNK, CSR_THREADS, csr_tile_steps};
use kernel_primitives::{Buffer, Complex, Device, Element, EmulatorOptions, Result, Stream, f16};

use crate::kernels::Powers;
use crate::products::{dense, whole};
use crate::support::{Random, stream};
use crate::{Host, METHODS, lengths};

/// A block has exactly the entries that it stages at a time, or one fewer or more. Rows begin and end there.
#[test]
fn rows_that_end_where_a_block_stages_anew_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(18);
    let alike = |length: usize| vec![length; CSR_THREADS];
    let even = CSR_CHUNK / CSR_THREADS;
    // With this, the next block's first entry is `lead` entries after the beginning of a vector.
    let after = |lead: usize| [vec![1; CSR_THREADS - 1], vec![1 + lead]].concat();
    let all = [
        vec![CSR_CHUNK],
        vec![CSR_CHUNK - 1, 1, 1],
        vec![CSR_CHUNK + 1, 0, 2],
        vec![0, CSR_CHUNK, 0, CSR_CHUNK, 3],
        vec![CSR_CHUNK / 2; 5],
        alike(even),
        [alike(even), alike(0), alike(even + 1), vec![CSR_CHUNK - 1, 0]].concat(),
        [after(1), vec![CSR_CHUNK, 1]].concat(),
        [after(2), vec![CSR_CHUNK - 3, 2], alike(0)].concat(),
        [after(3), vec![CSR_CHUNK - 3], alike(0), vec![2]].concat(),
        [after(0), vec![1]].concat(),
    ];
    for lengths in all {
        let matrix = Host::of_lengths(30, lengths, &mut random, whole);
        let x: Vec<f32> = (0..30).map(|_| whole(random.bits())).collect();
        let expected: Vec<f32> = dense(&matrix, &x).into_iter().map(|product| product as f32).collect();
        // Of another row's entry, not even a zero may take part.
        let least = |row| matrix.row(row).map(|(column, value)| value + x[column]).fold(f32::INFINITY, f32::min);
        let shortest: Vec<f32> = (0..matrix.rows()).map(least).collect();
        let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
        for method in METHODS {
            a.set_method(method)?;
            let mut y = stream.buffer_from(&vec![77.0f32; matrix.rows()])?;
            spmv(&stream, &a, &x, &mut y)?;
            assert_eq!(y.to_vec()?, expected, "{} rows, {method:?}", matrix.rows());
            spmv_by(&stream, &a, &x, Semiring { plus: Min, times: Add }, Overwrite, &mut y)?;
            assert_eq!(y.to_vec()?, shortest, "shortest paths, {} rows, {method:?}", matrix.rows());
        }
    }
    Ok(())
}

/// Makes a buffer of items. Its memory begins `skip` times the items' alignment after a multiple of the vector's size.
fn shifted<T: Element>(stream: &Stream, items: &[T], skip: usize) -> Result<Buffer<T>> {
    let bytes = skip * align_of::<T>();
    let mut all = vec![T::ZERO; items.len() + bytes.div_ceil(size_of::<T>())];
    // SAFETY: the range is inside the vector, and aligned for items.
    unsafe { all.as_mut_ptr().byte_add(bytes).copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    let bytes = bytes as u64;
    if stream.device().is_gpu() {
        let whole = stream.buffer_from(&all)?;
        stream.synchronize()?;
        // SAFETY: the range is inside the other buffer, which keeps the memory and has no other use.
        return unsafe { Buffer::from_raw_owned(stream, whole.address() + bytes, items.len(), whole) };
    }
    let address = all.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: the range is inside the vector, which nobody else has.
    unsafe { Buffer::from_raw_owned(stream, address + bytes, items.len(), all) }
}

/// If entries are aligned, they are read in vectors, and otherwise one by one. The sums have the same bits.
#[test]
fn columns_and_values_begin_anywhere_in_memory() -> Result<()> {
    fn check<V: Element, I: CsrIndex + From<u32>>(
        unit: impl Fn(u64) -> V,
        product: impl Fn(&Stream, &Csr<V, I>) -> Result<Vec<u64>>,
    ) -> Result<()> {
        let stream = stream()?;
        let mut random = Random::new(20);
        // The last vector has one entry.
        let lengths: Vec<usize> = (0..700).map(|row| if row == 300 { 5002 } else { row % 11 }).collect();
        let matrix = Host::of_lengths(90, lengths, &mut random, unit);
        assert_eq!(matrix.values.len() % 4, 1);
        let indices = |numbers: &[u32]| numbers.iter().map(|&number| number.into()).collect::<Vec<I>>();
        for method in METHODS {
            let mut bits = None;
            for (columns, values) in [(0, 0), (1, 1), (0, 2), (3, 0), (1, 2), (2, 3), (4, 4)] {
                let offsets = shifted(&stream, &indices(&matrix.offsets), columns)?;
                let columns = shifted(&stream, &indices(&matrix.indices), columns)?;
                let values = shifted(&stream, &matrix.values, values)?;
                let mut a = Csr::from_buffers(&stream, (matrix.rows(), 90), offsets, columns, values)?;
                a.set_method(method)?;
                let found = product(&stream, &a)?;
                assert!(found == *bits.get_or_insert_with(|| found.clone()), "{method:?}");
            }
        }
        Ok(())
    }
    let unit = |bits: u64| bits as f64 / u64::MAX as f64 - 0.5;
    let mut random = Random::new(21);
    let x: Vec<f64> = (0..90).map(|_| unit(random.bits())).collect();
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    check(
        |bits| unit(bits) as f32,
        |stream, a: &Csr<f32>| {
            let (x, mut y) = (stream.buffer_from(&narrow)?, stream.buffer_zeroed::<f32>(a.rows())?);
            spmv(stream, a, &x, &mut y)?;
            Ok(y.to_vec()?.into_iter().map(|sum| sum.to_bits().into()).collect())
        },
    )?;
    check(unit, |stream, a: &Csr<f64>| {
        let (x, mut y) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<f64>(a.rows())?);
        spmv(stream, a, &x, &mut y)?;
        Ok(y.to_vec()?.into_iter().map(f64::to_bits).collect())
    })?;
    // Vectors have two entries: 4 bytes of values and 16 bytes of columns.
    check(
        |bits| f16::from_f32(unit(bits) as f32),
        |stream, a: &Csr<f16, u64>| {
            let mut y = stream.buffer_zeroed::<f32>(a.rows())?;
            spmv(stream, a, counting(0.0f32, 90), &mut y)?;
            Ok(y.to_vec()?.into_iter().map(|sum| sum.to_bits().into()).collect())
        },
    )?;
    // Vectors have one value, which may cross the boundary of an access.
    let complex = |bits: u64| Complex::new(unit(bits), unit(bits.rotate_left(32)));
    let wide: Vec<Complex<f64>> = (0..90).map(|_| complex(random.bits())).collect();
    check(complex, |stream, a: &Csr<Complex<f64>>| {
        let (x, mut y) = (stream.buffer_from(&wide)?, stream.buffer_zeroed::<Complex<f64>>(a.rows())?);
        spmv(stream, a, &x, &mut y)?;
        Ok(y.to_vec()?.into_iter().flat_map(|sum| [sum.re.to_bits(), sum.im.to_bits()]).collect())
    })?;
    // Vectors have 4 bytes of values and 16 bytes of columns.
    let marked: Vec<bool> = (0..90).map(|_| random.below(8) == 0).collect();
    check(
        |bits| bits.is_multiple_of(2),
        |stream, a: &Csr<bool>| {
            let (x, mut y) = (stream.buffer_from(&marked)?, stream.buffer_zeroed::<bool>(a.rows())?);
            spmv_by(stream, a, &x, Semiring { plus: LogicalOr, times: LogicalAnd }, Overwrite, &mut y)?;
            Ok(y.to_vec()?.into_iter().map(u64::from).collect())
        },
    )
}

/// There are few or many entries, so that the last vector ends with them or would end after them. Nothing after them is read.
#[test]
fn entries_end_anywhere_in_a_vector() -> Result<()> {
    fn check<V: Element, I: CsrIndex + From<u32>>(
        value: impl Fn(f32) -> V,
        product: impl Fn(&Stream, &Csr<V, I>) -> Result<Vec<f64>>,
    ) -> Result<()> {
        let stream = stream()?;
        let mut random = Random::new(28);
        let indices = |numbers: &[u32]| numbers.iter().map(|&number| number.into()).collect::<Vec<I>>();
        // The tiles of all these results have the same number of steps.
        for entries in (1..10).chain(csr_tile_steps::<f32>() - 1..CSR_CHUNK + 2) {
            let half = entries / 2;
            for lengths in
                [vec![entries], vec![1; entries], [vec![0, half], vec![0; 300], vec![entries - half]].concat()]
            {
                let matrix = Host::of_lengths(20, lengths, &mut random, whole);
                let sum = |row| matrix.row(row).map(|(column, value)| f64::from(value) * column as f64).sum();
                let expected: Vec<f64> = (0..matrix.rows()).map(sum).collect();
                let (offsets, columns) = (indices(&matrix.offsets), indices(&matrix.indices));
                let values: Vec<V> = matrix.values.iter().map(|&number| value(number)).collect();
                let mut a = Csr::new(&stream, (matrix.rows(), 20), &offsets, &columns, &values)?;
                for method in METHODS {
                    a.set_method(method)?;
                    assert_eq!(product(&stream, &a)?, expected, "{entries} in {} rows, {method:?}", matrix.rows());
                }
            }
        }
        Ok(())
    }
    let x: Vec<f64> = (0..20).map(f64::from).collect();
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    check(
        |value| value,
        |stream, a: &Csr<f32>| {
            let (x, mut y) = (stream.buffer_from(&narrow)?, stream.buffer_zeroed::<f32>(a.rows())?);
            spmv(stream, a, &x, &mut y)?;
            Ok(y.to_vec()?.into_iter().map(f64::from).collect())
        },
    )?;
    check(f64::from, |stream, a: &Csr<f64>| {
        let (x, mut y) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<f64>(a.rows())?);
        spmv(stream, a, &x, &mut y)?;
        y.to_vec()
    })?;
    check(f16::from_f32, |stream, a: &Csr<f16, u64>| {
        let mut y = stream.buffer_zeroed::<f32>(a.rows())?;
        spmv(stream, a, counting(0.0f32, 20), &mut y)?;
        Ok(y.to_vec()?.into_iter().map(f64::from).collect())
    })
}

/// A row's first and last vectors may have NaN beside the row's own entries.
#[test]
fn rows_beside_such_of_no_numbers_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(29);
    let lengths = (0..2000).map(|row| row * 5 % 7);
    let mut matrix = Host::of_lengths(30, lengths, &mut random, |bits| f64::from(whole(bits)));
    for row in (1..matrix.rows()).step_by(2) {
        matrix.values[matrix.offsets[row] as usize..matrix.offsets[row + 1] as usize].fill(f64::NAN);
    }
    let x: Vec<f64> = (0..30).map(|_| f64::from(whole(random.bits()))).collect();
    let sum = |row| matrix.row(row).map(|(column, value)| value * x[column]).sum();
    let expected: Vec<f64> = (0..matrix.rows()).map(sum).collect();
    let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_from(&vec![77.0f64; matrix.rows()])?;
        spmv(&stream, &a, &x, &mut y)?;
        for (row, (found, expected)) in y.to_vec()?.into_iter().zip(&expected).enumerate() {
            assert!(
                found == *expected || found.is_nan() && expected.is_nan(),
                "{row}, {method:?}: {found}, {expected}"
            );
        }
    }
    Ok(())
}

/// Returns a stream on a GPU, or on an emulator whose blocks have the shared memory that any GPU has.
fn with_little_shared_memory() -> Result<Stream> {
    let stream = stream()?;
    if stream.device().is_gpu() {
        return Ok(stream);
    }
    let mut options = EmulatorOptions::default();
    options.max_shared_bytes = 64 << 10;
    Device::emulator_with(options).stream()
}

macro_rules! powers {
    ($($name:ident: $count:literal, $most:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = with_little_shared_memory()?;
            let mut random = Random::new(19);
            for kind in 0..6 {
                // Sums of powers of such values are exact.
                let value = |bits| f64::from(whole(bits)).clamp(-$most, $most);
                let matrix = Host::of_lengths(50, lengths(kind, &mut random), &mut random, value);
                let x: Vec<f64> = (0..50).map(|_| value(random.bits())).collect();
                let mut expected = vec![[0.0; $count]; matrix.rows()];
                for (row, sums) in expected.iter_mut().enumerate() {
                    for (column, value) in matrix.row(row) {
                        let mut power = 1.0;
                        for sum in &mut *sums {
                            power *= value * x[column];
                            *sum += power;
                        }
                    }
                }
                let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
                let mut y = stream.buffer_from(&vec![[77.0; $count]; matrix.rows()])?;
                for method in METHODS {
                    a.set_method(method)?;
                    y.copy_from(&vec![[77.0; $count]; matrix.rows()])?;
                    spmv_by(&stream, &a, &x, Powers::<$count>, Overwrite, &mut y)?;
                    assert_eq!(y.to_vec()?, expected, "{kind}, {method:?}");
                }
                y.copy_from(&vec![[77.0; $count]; matrix.rows()])?;
                spmv_by(&stream, &Sell::from_csr(&stream, &a, 64)?, &x, Powers::<$count>, Overwrite, &mut y)?;
                assert_eq!(y.to_vec()?, expected, "{kind}, in slices");
            }
            Ok(())
        }
    )*};
}
// A thread has few wide results in flight.
powers! {
    results_of_24_bytes_are_combined: 3, 8.0;
    results_of_40_bytes_are_combined: 5, 8.0;
    results_of_264_bytes_are_combined_where_a_block_has_room: 33, 1.0;
}
