//! Products that blocks put in shared memory: as many as there is room for, and wide ones.

use kernel_primitives::algorithms::{Sell, spmv, spmv_by};
use kernel_primitives::functor::Overwrite;
use kernel_primitives::kernels::device::{CSR_CHUNK, CSR_THREADS};
use kernel_primitives::{Device, EmulatorOptions, Result, Stream};

use crate::kernels::Powers;
use crate::products::{dense, whole};
use crate::support::{Random, stream};
use crate::{Host, METHODS, lengths};

/// A block with as many entries as it stages at a time, or one fewer or more, and rows that begin and end there.
#[test]
fn rows_that_end_where_a_block_stages_anew_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(18);
    let alike = |length: usize| vec![length; CSR_THREADS];
    let even = CSR_CHUNK / CSR_THREADS;
    let all = [
        vec![CSR_CHUNK],
        vec![CSR_CHUNK - 1, 1, 1],
        vec![CSR_CHUNK + 1, 0, 2],
        vec![0, CSR_CHUNK, 0, CSR_CHUNK, 3],
        vec![CSR_CHUNK / 2; 5],
        alike(even),
        [alike(even), alike(0), alike(even + 1), vec![CSR_CHUNK - 1, 0]].concat(),
    ];
    for lengths in all {
        let matrix = Host::of_lengths(30, lengths, &mut random, whole);
        let x: Vec<f32> = (0..30).map(|_| whole(random.bits())).collect();
        let expected: Vec<f32> = dense(&matrix, &x).into_iter().map(|product| product as f32).collect();
        let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
        for method in METHODS {
            a.set_method(method)?;
            let mut y = stream.buffer_from(&vec![77.0f32; matrix.rows()])?;
            spmv(&stream, &a, &x, &mut y)?;
            assert_eq!(y.to_vec()?, expected, "{} rows, {method:?}", matrix.rows());
        }
    }
    Ok(())
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
