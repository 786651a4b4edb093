//! Products that blocks put in shared memory: as many as there is room for, and wide ones.

use kernel_primitives::algorithms::{Csr, Sell, spmv, spmv_by};
use kernel_primitives::functor::{Add, Min, Overwrite, Semiring};
use kernel_primitives::kernels::device::{CSR_CHUNK, CSR_STAGED_THREADS};
use kernel_primitives::{Buffer, Device, Element, EmulatorOptions, Result, Stream};

use crate::kernels::Powers;
use crate::products::{dense, whole};
use crate::support::{Random, stream};
use crate::{Host, METHODS, lengths};

/// A block with as many entries as it stages at a time, or one fewer or more, and rows that begin and end there.
#[test]
fn rows_that_end_where_a_block_stages_anew_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(18);
    let alike = |length: usize| vec![length; CSR_STAGED_THREADS];
    let even = CSR_CHUNK / CSR_STAGED_THREADS;
    // So that the next block's first entry is so many after the beginning of a vector.
    let after = |lead: usize| [vec![1; CSR_STAGED_THREADS - 1], vec![1 + lead]].concat();
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
        // Of another row's entry not even a zero may take part.
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

/// Items in memory that begins `skip` of them after a boundary of vectors.
fn shifted<T: Element>(stream: &Stream, items: &[T], skip: usize) -> Result<Buffer<T>> {
    let mut all = [vec![T::ZERO; skip], items.to_vec()].concat();
    let bytes = (skip * size_of::<T>()) as u64;
    if stream.device().is_gpu() {
        let whole = stream.buffer_from(&all)?;
        stream.synchronize()?;
        // SAFETY: inside the other buffer, which keeps the memory and has no other use.
        return unsafe { Buffer::from_raw_owned(stream, whole.address() + bytes, items.len(), whole) };
    }
    let address = all.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: inside the vector, which nobody else has.
    unsafe { Buffer::from_raw_owned(stream, address + bytes, items.len(), all) }
}

/// Entries are read in vectors where these are aligned, and one by one elsewhere: the sums have the same bits.
#[test]
fn columns_and_values_begin_anywhere_in_memory() -> Result<()> {
    fn check<T: Element>(
        unit: impl Fn(u64) -> T,
        product: impl Fn(&Stream, &Csr<T>) -> Result<Vec<u64>>,
    ) -> Result<()> {
        let stream = stream()?;
        let mut random = Random::new(20);
        // The last vector has one entry.
        let lengths: Vec<usize> = (0..700).map(|row| if row == 300 { 5002 } else { row % 11 }).collect();
        let matrix = Host::of_lengths(90, lengths, &mut random, unit);
        assert_eq!(matrix.values.len() % 4, 1);
        for method in METHODS {
            let mut bits = None;
            for (columns, values) in [(0, 0), (1, 1), (0, 2), (3, 0), (1, 2), (2, 3), (4, 4)] {
                let offsets = shifted(&stream, &matrix.offsets, columns)?;
                let (columns, values) =
                    (shifted(&stream, &matrix.indices, columns)?, shifted(&stream, &matrix.values, values)?);
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
        |stream, a| {
            let (x, mut y) = (stream.buffer_from(&narrow)?, stream.buffer_zeroed::<f32>(a.rows())?);
            spmv(stream, a, &x, &mut y)?;
            Ok(y.to_vec()?.into_iter().map(|sum| sum.to_bits().into()).collect())
        },
    )?;
    check(unit, |stream, a| {
        let (x, mut y) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<f64>(a.rows())?);
        spmv(stream, a, &x, &mut y)?;
        Ok(y.to_vec()?.into_iter().map(f64::to_bits).collect())
    })
}

/// On a GPU, or on an emulator whose blocks have as much shared memory as on any GPU.
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
                // Sums of such powers are exact.
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
// Of wide results a thread has few under way.
powers! {
    results_of_24_bytes_are_combined: 3, 8.0;
    results_of_40_bytes_are_combined: 5, 8.0;
    results_of_264_bytes_are_combined_where_a_block_has_room: 33, 1.0;
}
