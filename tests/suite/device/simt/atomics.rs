//! Tests atomics and the order of memory.

use kernel_primitives::Result;

use crate::kernels::simt::atomics as kernels;
use crate::support::{stream, streams, values};

#[test]
fn sanitize_atomics_in_shared_memory_count() -> Result<()> {
    for stream in streams()? {
        for (grid, block, len) in [(1, 32, 100), (3, 65, 5000), (2, 7, 0), (4, 256, 4097)] {
            let x = values::<u32>(len, 9);
            let mut counts = stream.buffer_zeroed::<u32>(16)?;
            kernels::histogram::launch(&stream, (grid, block), &stream.buffer_from(&x)?, &mut counts)?;
            let mut expected = vec![0; 16];
            x.iter().for_each(|v| expected[*v as usize % 16] += 1);
            assert_eq!(counts.to_vec()?, expected);
        }
    }
    Ok(())
}

macro_rules! integer_updates {
    ($($name:ident: $t:ty;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (order, scope) in (0..4).flat_map(|order| (0..3).map(move |scope| (order, scope))) {
                    let (grid, block, len) = (5usize, 33usize, 400);
                    let x = values::<$t>(len, (order * 3 + scope) as u64);
                    let start: [$t; 16] = [3, <$t>::MAX, <$t>::MIN, !0, 0, 0, 9, 0, 1, 0, 0, 5, 0, 0, 0, 0];
                    let groups = if scope == 0 { grid } else { 1 };
                    let mut cells = stream.buffer_from(&start.repeat(groups))?;
                    let input = stream.buffer_from(&x)?;
                    let dims = (grid as u32, block as u32);
                    kernels::update_integers::<$t>::launch(&stream, dims, order, scope, &input, &mut cells)?;
                    let found = cells.to_vec()?;
                    for (group, found) in found.chunks(16).enumerate() {
                        let mine: Vec<$t> = (0..len)
                            .filter(|i| scope != 0 || i % (grid * block) / block == group)
                            .map(|i| x[i])
                            .collect();
                        let fold = |start: $t, f: fn($t, $t) -> $t| mine.iter().fold(start, |a, &b| f(a, b));
                        let sum = fold(0, <$t>::wrapping_add);
                        let mut expected = start;
                        expected[0] = sum.wrapping_add(3);
                        expected[1] = fold(<$t>::MAX, |a, b| a.min(b));
                        expected[2] = fold(<$t>::MIN, |a, b| a.max(b));
                        expected[3] = fold(!0, |a, b| a & b);
                        expected[4] = fold(0, |a, b| a | b);
                        expected[5] = fold(0, |a, b| a ^ b);
                        // The exchanges return the first value and all values of `mine`, without the value that is
                        // left.
                        expected[6] = found[6];
                        expected[7] = sum.wrapping_add(9).wrapping_sub(found[6]);
                        expected[8] = sum.wrapping_add(1);
                        expected[9] = (5 as $t).wrapping_mul(mine.len() as $t);
                        expected[10] = 1;
                        assert_eq!(found, expected, "order {order}, scope {scope}, group {group}");
                        assert!(mine.contains(&found[6]));
                    }
                }
            }
            Ok(())
        }
    )*};
}
integer_updates! {
    sanitize_atomics_of_u32_in_every_order_and_scope: u32;
    atomics_of_i32_in_every_order_and_scope: i32;
    atomics_of_u64_in_every_order_and_scope: u64;
    atomics_of_i64_in_every_order_and_scope: i64;
}

macro_rules! float_updates {
    ($($name:ident: $t:ty;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (order, scope) in (0..4).flat_map(|order| (0..3).map(move |scope| (order, scope))) {
                    let (grid, block, len) = (4usize, 40usize, 300);
                    let x: Vec<$t> = (0..len).map(|i| (i % 50) as $t + 1.0).collect();
                    let mut start = [0.0; 16];
                    start[6] = 9.0;
                    let groups = if scope == 0 { grid } else { 1 };
                    let mut cells = stream.buffer_from(&start.repeat(groups))?;
                    let input = stream.buffer_from(&x)?;
                    let dims = (grid as u32, block as u32);
                    kernels::update_floats::<$t>::launch(&stream, dims, order, scope, &input, &mut cells)?;
                    for (group, found) in cells.to_vec()?.chunks(16).enumerate() {
                        let mine = (0..len).filter(|i| scope != 0 || i % (grid * block) / block == group);
                        let sum: $t = mine.map(|i| x[i]).sum();
                        assert_eq!(found[0], sum);
                        assert_eq!(found[7] + found[6], sum + 9.0);
                        assert_eq!(found[8], sum);
                        assert_eq!(found[10], 1.0);
                    }
                }
            }
            Ok(())
        }
    )*};
}
float_updates! {
    sanitize_atomics_of_f32_in_every_order_and_scope: f32;
    atomics_of_f64_in_every_order_and_scope: f64;
}

const SMALLEST: f32 = f32::MIN_POSITIVE;
const TINY: f32 = SMALLEST / 4.0;

/// Each row has an element, a value, and their sum in global and in shared memory.
const SUMS: [[f32; 4]; 8] = [
    // The result is subnormal, but the numbers are not.
    [1.5 * SMALLEST, -SMALLEST, 0.0, 0.5 * SMALLEST],
    [-1.5 * SMALLEST, SMALLEST, -0.0, -0.5 * SMALLEST],
    // Some of the numbers are subnormal. An addition in global memory takes them as zeros.
    [3.0 * TINY, 3.0 * TINY, 0.0, 1.5 * SMALLEST],
    [-TINY, -TINY, -0.0, -2.0 * TINY],
    [SMALLEST, TINY, SMALLEST, 1.25 * SMALLEST],
    [TINY, SMALLEST, SMALLEST, 1.25 * SMALLEST],
    [1.0, 2.0, 3.0, 3.0],
    [f32::INFINITY, TINY, f32::INFINITY, f32::INFINITY],
];

#[test]
fn subnormal_floats_are_zeros_for_additions_in_global_memory_alone() -> Result<()> {
    for stream in streams()? {
        let column = |k: usize| SUMS.map(|row| row[k]);
        let values = stream.buffer_from(&column(1))?;
        let mut cells = stream.buffer_from(&column(0).repeat(2))?;
        let mut out = stream.buffer_zeroed(SUMS.len())?;
        kernels::add_once::<f32>::launch(&stream, (1, 32), &values, &mut cells, &mut out)?;
        let (cells, out) = (cells.to_vec()?, out.to_vec()?);
        for (i, [element, value, global, shared]) in SUMS.into_iter().enumerate() {
            let [before, in_shared] = out[i];
            let found = [cells[i], cells[i + SUMS.len()], before, in_shared];
            let expected = [global, global, element, shared];
            assert_eq!(found.map(f32::to_bits), expected.map(f32::to_bits), "{element:e} + {value:e}: {found:?}");
        }
    }
    Ok(())
}

#[test]
fn subnormal_doubles_are_added_as_they_are() -> Result<()> {
    const SMALLEST: f64 = f64::MIN_POSITIVE;
    const TINY: f64 = SMALLEST / 4.0;
    let elements = [1.5 * SMALLEST, 3.0 * TINY, -TINY, SMALLEST];
    let values = [-SMALLEST, 3.0 * TINY, -TINY, TINY];
    for stream in streams()? {
        let mut cells = stream.buffer_from(&elements.repeat(2))?;
        let mut out = stream.buffer_zeroed(elements.len())?;
        kernels::add_once::<f64>::launch(&stream, (1, 32), &stream.buffer_from(&values)?, &mut cells, &mut out)?;
        let (cells, out) = (cells.to_vec()?, out.to_vec()?);
        for (i, (element, value)) in elements.into_iter().zip(values).enumerate() {
            let sum = element + value;
            let found = [cells[i], cells[i + elements.len()], out[i][0], out[i][1]];
            assert_eq!(found.map(f64::to_bits), [sum, sum, element, sum].map(f64::to_bits), "{element:e} + {value:e}");
        }
    }
    Ok(())
}

#[test]
fn compare_and_exchange_compares_bits() -> Result<()> {
    let stream = stream()?;
    let once = |expected: f32, new: f32, start: f32| -> Result<(u32, u32)> {
        let mut cell = stream.buffer_from(&[start])?;
        let mut before = stream.buffer_zeroed(1)?;
        kernels::compare_exchange_once::<f32>::launch(&stream, (1, 32), expected, new, &mut cell, &mut before)?;
        Ok((before.to_vec()?[0].to_bits(), cell.to_vec()?[0].to_bits()))
    };
    assert_eq!(once(1.0, 2.0, 1.0)?, (1f32.to_bits(), 2f32.to_bits()));
    assert_eq!(once(-0.0, 2.0, 0.0)?, (0, 0), "the zeros differ in their bits");
    let nan = f32::from_bits(0x7fc0_1234);
    assert_eq!(once(nan, 2.0, nan)?, (nan.to_bits(), 2f32.to_bits()), "a NaN has its own bits");
    let mut cell = stream.buffer_from(&[i64::MIN])?;
    let mut before = stream.buffer_zeroed(1)?;
    kernels::compare_exchange_once::<i64>::launch(&stream, (1, 1), i64::MIN, -1, &mut cell, &mut before)?;
    assert_eq!((before.to_vec()?, cell.to_vec()?), (vec![i64::MIN], vec![-1]));
    Ok(())
}

#[test]
fn sanitize_each_ticket_is_taken_once() -> Result<()> {
    for stream in streams()? {
        let (mut counter, mut taken) = (stream.buffer_zeroed(1)?, stream.buffer_zeroed(20 * 65)?);
        kernels::take_tickets::launch(&stream, (20, 65), &mut counter, &mut taken)?;
        assert_eq!(counter.to_vec()?, [20 * 65]);
        assert!(taken.to_vec()?.iter().all(|&times| times == 1));
    }
    Ok(())
}

#[test]
fn sanitize_blocks_hand_values_on_by_release_and_acquire_and_by_fences() -> Result<()> {
    for stream in streams()? {
        for by_fence in [false, true] {
            let (mut flags, mut sums) = (stream.buffer_zeroed(64)?, stream.buffer_zeroed(64)?);
            kernels::relay::launch(&stream, (64, 33), by_fence, &mut flags, &mut sums)?;
            let expected: Vec<u64> = (1..=64).map(|n| n * (n + 1) / 2).collect();
            assert_eq!(sums.to_vec()?, expected);
        }
    }
    Ok(())
}
