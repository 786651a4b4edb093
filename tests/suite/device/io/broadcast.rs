//! Tests broadcasts, and the division that finds their indices.

use kernel_primitives::io::{BroadcastConfig, BroadcastError, FastDivMod};
use kernel_primitives::{Result, f16};
use proptest::collection;
use proptest::prelude::any;

use crate::kernels::{Twelve, io as kernels};
use crate::support::{Case, Random, SHAPES, any_shape, holds, stream, values};

/// Shapes of outputs and inputs, as NumPy broadcasts them.
const BROADCASTS: [(&[usize], &[usize]); 22] = [
    (&[], &[]),
    (&[5], &[1]),
    (&[13, 17], &[13, 17]),
    (&[13, 17], &[]),
    (&[10, 3, 4], &[1]),
    (&[100], &[100]),
    (&[13, 17, 17], &[17, 17]),
    (&[13, 17, 17], &[13, 17, 1]),
    (&[2, 3, 100], &[100]),
    (&[10, 2, 11], &[10, 1, 11]),
    (&[10, 4, 2, 3], &[10, 4, 1, 3]),
    (&[2, 3, 100], &[1, 1, 100]),
    (&[30, 3, 4, 5], &[30, 3, 1, 5]),
    (&[30, 3, 4, 5], &[30, 1, 4, 1]),
    (&[64, 33], &[64, 1]),
    (&[64, 33], &[33]),
    (&[3, 1, 5, 1, 7], &[3, 1, 1, 1, 7]),
    (&[2, 2, 2, 2, 2, 2, 2, 2, 2], &[2, 1, 2, 1, 2, 1, 2, 1, 2]),
    (&[2, 2, 2, 2, 2, 2, 2, 2, 2], &[1, 2, 1, 2, 1, 2, 1, 2, 1]),
    (&[1, 2, 1, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2], &[2, 2, 2, 1, 2, 1, 2, 2, 1, 2]),
    (&[4, 16], &[16]),
    (&[5, 8, 16], &[5, 1, 16]),
];

/// Returns the input's index for each element of the output. It counts dimension by dimension.
fn broadcast_indices(output: &[usize], input: &[usize]) -> Vec<usize> {
    let missing = output.len() - input.len();
    let mut indices = vec![0];
    for (axis, &extent) in output.iter().enumerate() {
        let own = if axis < missing { 1 } else { input[axis - missing] };
        let along = |i: usize| if own == 1 { 0 } else { i };
        indices = indices.iter().flat_map(|&index| (0..extent).map(move |i| index * own + along(i))).collect();
    }
    indices
}

macro_rules! broadcasts {
    ($($name:ident: $t:ty, $i:ty, $nx:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            let check = |output: &[usize], input: &[usize], shape, seed| -> Result<()> {
                let data = values::<$t>(input.iter().product(), seed);
                let x = stream.buffer_from(&data)?;
                let expected: Vec<$t> = broadcast_indices(output, input).into_iter().map(|i| data[i]).collect();
                let config = BroadcastConfig::<$i>::new(output, input).unwrap();
                let mut out = stream.buffer_zeroed::<$t>(expected.len())?;
                let case = Case { shape, len: expected.len(), offset: 0 };
                kernels::broadcast::<$t, $i, $nx>::launch(&stream, case.dims($nx, 3), &x, config, &mut out)?;
                assert_eq!(out.to_vec()?, expected, "{output:?} from {input:?} by {shape:?}");
                Ok(())
            };
            for (k, (output, input)) in BROADCASTS.into_iter().enumerate() {
                for shape in [SHAPES[k % 12], SHAPES[(k + 5) % 12]] {
                    check(output, input, shape, k as u64)?;
                }
            }
            // Each case has an output, the dimensions that the input repeats, and the number of first dimensions that
            // the input does not have.
            let shapes = (collection::vec((1..6usize, any::<bool>()), 0..7), 0..3usize);
            holds(12, (shapes, any_shape(200), any::<u64>()), |((output, unnamed), shape, seed)| {
                let (output, repeated): (Vec<usize>, Vec<bool>) = output.into_iter().unzip();
                let input = output.iter().zip(repeated).map(|(&extent, repeated)| if repeated { 1 } else { extent });
                let input: Vec<usize> = input.skip(unnamed).collect();
                check(&output, &input, shape, seed)
            });
            Ok(())
        }
    )*};
}
broadcasts! {
    sanitize_inputs_are_broadcast: f32, u32, 1;
    inputs_are_broadcast_by_vectors: f32, u64, 4;
    bytes_are_broadcast: u8, u32, 16;
    halves_are_broadcast: f16, u32, 8;
    structs_are_broadcast: Twelve, u64, 2;
}

#[test]
fn inputs_are_broadcast_in_two_dimensions() -> Result<()> {
    let stream = stream()?;
    for (output, input) in BROADCASTS {
        let data = values::<u32>(input.iter().product(), 5);
        let all: Vec<u32> = broadcast_indices(output, input).into_iter().map(|i| data[i]).collect();
        let config = BroadcastConfig::<u32>::new(output, input).unwrap();
        for (first, strides, threads) in [(0, [32, 96], 32), (5, [7, 1], 7), (100, [1, 50], 65)] {
            let mut out = stream.buffer_zeroed::<[[u32; 3]; 2]>(threads)?;
            let (total, x) = (all.len() as u32, stream.buffer_from(&data)?);
            kernels::broadcast_2d::launch(&stream, (1, threads as u32), &x, config, first, total, strides, &mut out)?;
            for (thread, found) in out.to_vec()?.into_iter().enumerate() {
                let expected = [0, 1].map(|y| {
                    [0, 1, 2].map(|x| {
                        let index = first + thread as u32 + x * strides[0] + y * strides[1];
                        all.get(index as usize).copied().unwrap_or(u32::MAX)
                    })
                });
                assert_eq!(found, expected, "{output:?} from {input:?}, thread {thread}");
            }
        }
    }
    Ok(())
}

#[test]
fn neighbouring_dimensions_that_are_broadcast_alike_are_one() {
    let rank = |output: &[usize], input: &[usize]| BroadcastConfig::<u32>::new(output, input).unwrap().rank();
    assert_eq!(rank(&[], &[]), 0);
    assert_eq!(rank(&[1, 1], &[1]), 0);
    assert_eq!(rank(&[2, 3, 4], &[2, 3, 4]), 1);
    assert_eq!(rank(&[2, 3, 4], &[]), 1);
    assert_eq!(rank(&[2, 3, 4], &[4]), 2);
    assert_eq!(rank(&[2, 3, 4], &[2, 3, 1]), 2);
    assert_eq!(rank(&[2, 3, 4], &[2, 1, 4]), 3);
    assert_eq!(rank(&[2, 1, 3, 1, 4], &[2, 1, 3, 1, 4]), 1);
}

#[test]
fn shapes_that_do_not_broadcast_are_errors() {
    let error = |output: &[usize], input: &[usize]| BroadcastConfig::<u32>::new(output, input).unwrap_err();
    assert_eq!(error(&[2, 3, 4], &[3, 3, 4]), BroadcastError::Extent { axis: 0, input: 3, output: 2 });
    assert_eq!(error(&[2, 1, 4], &[2, 3, 4]), BroadcastError::Extent { axis: 1, input: 3, output: 1 });
    assert_eq!(error(&[4], &[1, 4]), BroadcastError::InputRank { input: 2, output: 1 });
    let alternating: Vec<usize> = (0..10).map(|i| 1 + i % 2).collect();
    assert_eq!(error(&[2; 10], &alternating), BroadcastError::Rank { rank: 10 });
    assert_eq!(error(&[1 << 16, 1 << 16], &[1]), BroadcastError::Elements { bits: 32 });
    assert!(BroadcastConfig::<u64>::new(&[1 << 16, 1 << 16], &[1]).is_ok());
    assert_eq!(
        BroadcastConfig::<u64>::new(&[1 << 32, 1 << 32], &[1]).unwrap_err(),
        BroadcastError::Elements { bits: 64 }
    );
    assert!(error(&[2; 10], &alternating).to_string().contains("at most 9"));
}

#[test]
fn fast_division_divides_every_number_by_every_number() {
    let mut random = Random::new(1);
    let around = |n: u64| [n.wrapping_sub(1), n, n.wrapping_add(1)];
    let mut numbers: Vec<u64> = (0..64).flat_map(|bit| around(1 << bit)).chain([3, 7, 10, 641, 6_700_417]).collect();
    numbers.extend((0..200).map(|_| random.bits() >> (random.bits() % 64)));
    for &divisor in numbers.iter().filter(|&&divisor| divisor > 0) {
        let wide = FastDivMod::new(divisor);
        assert_eq!(wide.divisor(), divisor);
        let multiples = (0..4).map(|k| (u64::MAX / divisor).saturating_sub(k).saturating_mul(divisor));
        for dividend in numbers.iter().copied().chain(multiples).flat_map(around) {
            assert_eq!(wide.div_mod(dividend), (dividend / divisor, dividend % divisor), "{dividend} / {divisor}");
            let (dividend, divisor) = (dividend as u32, (divisor as u32).max(1));
            let narrow = FastDivMod::new(divisor);
            assert_eq!(narrow.div_mod(dividend), (dividend / divisor, dividend % divisor), "{dividend} / {divisor}");
        }
    }
}

macro_rules! divisions {
    ($($name:ident: $t:ident;)*) => {$(
        #[test]
        fn $name() {
            holds(48, (any::<$t>(), 0..$t::BITS, any::<u64>()), |(bits, shift, seed)| {
                let divisor = (bits >> shift).max(1);
                let mut random = Random::new(seed);
                let mut numbers = vec![0, $t::MAX];
                numbers.extend((0..100).map(|_| random.bits() as $t >> random.below($t::BITS as u64)));
                // A quotient that is only nearly right shows near a multiple.
                let multiples = numbers.iter().map(|number| number / divisor * divisor);
                let x: Vec<$t> = multiples.flat_map(|m| [m.wrapping_sub(1), m, m.wrapping_add(1)]).collect();
                let x = [numbers, x].concat();
                let stream = stream()?;
                let mut out = stream.buffer_zeroed(x.len())?;
                let by = FastDivMod::new(divisor);
                kernels::divided::<$t>::launch(&stream, (2, 128), &stream.buffer_from(&x)?, by, &mut out)?;
                let expected: Vec<[$t; 2]> = x.iter().map(|x| [x / divisor, x % divisor]).collect();
                assert_eq!(out.to_vec()?, expected, "by {divisor}");
                Ok(())
            });
        }
    )*};
}
divisions! {
    sanitize_kernels_divide_any_u32_by_any_other: u32;
    kernels_divide_any_u64_by_any_other: u64;
}

#[test]
#[should_panic(expected = "division by zero")]
fn a_divisor_of_zero_is_refused() {
    let _ = FastDivMod::new(0u32);
}

#[test]
fn shapes_without_elements_may_have_any_extents() {
    for shape in [[0usize, 1 << 33], [1 << 33, 0]] {
        assert!(BroadcastConfig::<u32>::new(&shape, &shape).is_ok(), "{shape:?}");
        assert!(BroadcastConfig::<u32>::new(&shape, &[1]).is_ok(), "{shape:?}");
    }
    assert!(BroadcastConfig::<u64>::new(&[0, 1 << 40, 1 << 40], &[1, 1 << 40, 1]).is_ok());
    // They must broadcast all the same.
    let error = BroadcastConfig::<u32>::new(&[0, 1 << 33], &[2, 1]).unwrap_err();
    assert_eq!(error, BroadcastError::Extent { axis: 0, input: 2, output: 0 });
}
