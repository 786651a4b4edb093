//! Tests sums and products of floats that round in every step. Their bits show the order in which they were combined.
//! This order is the same on all machines, and for every order in which the emulator may run blocks and lanes.

use kernel_primitives::functor::{Add, L2, Mean, Mul, Sum};
use kernel_primitives::kernels::{block_reduce, cumsum_rows, reduce_higher_dim, reduce_rows};
use kernel_primitives::{ConvertTo, Device, EmulatorOptions, Result, Stream, bf16, f16};

use crate::support::{Random, stream};

/// Returns numbers of both signs and several magnitudes.
fn inexact<T>(len: usize, seed: u64) -> Vec<T>
where
    f64: ConvertTo<T>,
{
    let mut random = Random::new(seed);
    (0..len).map(|_| ((random.unit() - 0.4) * [0.01, 1.0, 30.0][random.below(3) as usize]).convert()).collect()
}

/// Returns numbers near 1.
fn near_one(len: usize) -> Vec<f64> {
    let mut random = Random::new(3);
    (0..len).map(|_| 0.9 + 0.2 * random.unit()).collect()
}

/// Returns a stream on the device that the environment names, on the emulator, and on an emulator with another order
/// and without checks.
fn machines() -> Result<[Stream; 3]> {
    let mut options = EmulatorOptions::default();
    options.checked = false;
    options.seed = Some(5);
    Ok([stream()?, Device::emulator().stream()?, Device::emulator_with(options).stream()?])
}

/// Checks that the bits of the results are equal on all machines.
macro_rules! agree {
    ($len:expr, |$stream:ident, $out:ident: $t:ty| $launch:expr) => {{
        let mut found = Vec::new();
        for $stream in &machines()? {
            let mut $out = $stream.buffer_zeroed::<$t>($len)?;
            $launch?;
            found.push($out.to_vec()?.into_iter().map(|value| value.to_bits()).collect::<Vec<_>>());
        }
        let [here, emulated, shuffled] = &found[..] else { unreachable!("three machines") };
        assert!(here.iter().any(|&bits| bits != 0), "something was computed");
        assert_eq!(here, emulated, "{}", stringify!($launch));
        assert_eq!(here, shuffled, "{}", stringify!($launch));
    }};
}

#[test]
fn sanitize_reductions_of_floats_have_the_same_bits_everywhere() -> Result<()> {
    for (grid, block) in [(7, (96, 1, 1)), (3, (33, 2, 1)), (1, (256, 1, 1))] {
        let dims = (grid, block);
        let (x, y, z) = (inexact::<f32>(5000, 1), inexact::<f16>(5001, 2), near_one(3000));
        let brains = inexact::<bf16>(4999, 4);
        agree!(grid as usize, |s, out: f32| block_reduce::<f32, Add, 4>::launch(
            s,
            dims,
            &s.buffer_from(&x)?,
            &mut out,
            Add
        ));
        agree!(grid as usize, |s, out: f32| block_reduce::<f16, Add, 8>::launch(
            s,
            dims,
            &s.buffer_from(&y)?,
            &mut out,
            Add
        ));
        agree!(grid as usize, |s, out: f32| {
            block_reduce::<bf16, Add, 8>::launch(s, dims, &s.buffer_from(&brains)?, &mut out, Add)
        });
        agree!(grid as usize, |s, out: f64| block_reduce::<f64, Mul, 2>::launch(
            s,
            dims,
            &s.buffer_from(&z)?,
            &mut out,
            Mul
        ));
    }
    Ok(())
}

#[test]
fn reductions_and_scans_of_rows_and_columns_have_the_same_bits_everywhere() -> Result<()> {
    for (rows, columns, block) in [(3usize, 1000usize, (128, 1, 1)), (7, 333, (32, 4, 1)), (2, 5000, (65, 1, 1))] {
        let (x, y) = (inexact::<f32>(rows * columns, 1), inexact::<f64>(rows * columns, 2));
        let halves = inexact::<f16>(rows * columns, 3);
        let by_rows = (rows as u32, block);
        agree!(rows, |s, out: f32| {
            reduce_rows::<f32, Sum, 4>::launch(s, by_rows, rows, columns, &s.buffer_from(&x)?, &mut out, Sum)
        });
        agree!(rows, |s, out: f64| {
            reduce_rows::<f64, Sum, 2>::launch(s, by_rows, rows, columns, &s.buffer_from(&y)?, &mut out, Sum)
        });
        agree!(rows, |s, out: f32| {
            reduce_rows::<f32, L2, 4>::launch(s, by_rows, rows, columns, &s.buffer_from(&x)?, &mut out, L2)
        });
        agree!(rows, |s, out: f32| {
            reduce_rows::<f16, Mean, 8>::launch(s, by_rows, rows, columns, &s.buffer_from(&halves)?, &mut out, Mean)
        });
        let by_columns = (columns.div_ceil(4 * 32) as u32, (32, 7, 1));
        agree!(columns, |s, out: f32| {
            reduce_higher_dim::<f32, Sum, 4>::launch(
                s,
                by_columns,
                1,
                rows,
                columns,
                &s.buffer_from(&x)?,
                &mut out,
                Sum,
            )
        });
        agree!(rows * columns, |s, out: f32| {
            cumsum_rows::<f32, 4, 8, false>::launch(s, by_rows, rows, columns, &s.buffer_from(&x)?, &mut out)
        });
        agree!(rows * columns, |s, out: f64| {
            cumsum_rows::<f64, 2, 4, true>::launch(s, by_rows, rows, columns, &s.buffer_from(&y)?, &mut out)
        });
        agree!(rows * columns, |s, out: f16| {
            cumsum_rows::<f16, 8, 4, false>::launch(s, by_rows, rows, columns, &s.buffer_from(&halves)?, &mut out)
        });
    }
    Ok(())
}
