//! Tests computation on a thread's own registers.

use kernel_primitives::functor::{Add, Max};
use kernel_primitives::simt::FaultKind;
use kernel_primitives::thread::{
    NormalF32, NormalF64, Philox, UniformF32, compare_exchange, elementwise_binary, elementwise_random,
    elementwise_unary, last_pow2, philox4x32_10,
};
use kernel_primitives::{Device, Diagnosis, Error, Result, UnaryFn, f16};

use crate::kernels::functor as kernels;
use crate::kernels::thread::{Below, floor_divided, of_rows, random, random_below, rows};
use crate::support::{cases, stream, values};

#[test]
fn functions_are_applied_item_by_item() {
    assert_eq!(elementwise_unary(&[1, 2, 3], |v: i32| v * v), [1, 4, 9]);
    assert_eq!(elementwise_unary(&[1.5f32, -2.5], |v: f32| v as i32), [1, -2]);
    assert_eq!(elementwise_unary(&[] as &[f32; 0], |v: f32| v), [0f32; 0]);
    assert_eq!(elementwise_binary(&[1, 5], &[4, 2], Max), [4, 5]);
    assert_eq!(elementwise_binary(&[f16::ONE], &[f16::ONE], Add), [f16::from_f32(2.0)]);
    assert_eq!(elementwise_binary(&[3u64, 4], &[1u8, 2], |a: u64, b: u8| a << b), [6, 16]);
}

#[test]
fn sanitize_closures_of_a_kernel_capture_its_parameters() -> Result<()> {
    let stream = stream()?;
    for case in cases(3).filter(|case| case.len < 5000) {
        let (x, y) = (values::<f32>(case.len, 1), values::<f32>(case.len, 2));
        let mut out = stream.buffer_zeroed(case.len)?;
        let (u, v) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
        kernels::axpy_by_closures::launch(&stream, case.dims(4, 3), 3.0, &u, &v, &mut out)?;
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}

#[test]
fn sanitize_the_two_arguments_may_have_two_types() -> Result<()> {
    let stream = stream()?;
    for case in cases(4).filter(|case| case.len < 5000) {
        let (x, by) = (values::<u64>(case.len, 1), values::<u8>(case.len, 2));
        let mut out = stream.buffer_zeroed(case.len)?;
        let (u, v) = (stream.buffer_from(&x)?, stream.buffer_from(&by)?);
        kernels::shift_left::launch(&stream, case.dims(2, 3), &u, &v, &mut out)?;
        let expected: Vec<u64> = x.iter().zip(&by).map(|(x, by)| x.wrapping_shl(*by as u32)).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}

/// These are the vectors that Random123 publishes (`kat_vectors`, philox 4 32 10).
#[test]
fn philox_gives_its_published_vectors() {
    for (counter, key, bits) in [
        ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
        ([u32::MAX; 4], [u32::MAX; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
        (
            [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
            [0xa4093822, 0x299f31d0],
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
        ),
    ] {
        assert_eq!(philox4x32_10(counter, key), bits);
    }
    // The seed is the key; the stream and the offset are the counter.
    let mut random = Philox::new(0x299f31d0_a4093822, 0x03707344_13198a2e).skip(0x85a308d3_243f6a88);
    assert_eq!(random.draw(), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
}

#[test]
fn draws_follow_each_other_and_the_last_may_be_cut() {
    let mut random = Philox::new(7, 9);
    let six: [f32; 6] = elementwise_random(&mut random, UniformF32);
    let next: [f32; 4] = elementwise_random(&mut random, UniformF32);
    let all: [f32; 12] = elementwise_random(&mut Philox::new(7, 9), UniformF32);
    assert_eq!((&six[..], &next[..]), (&all[..6], &all[8..]));
    let doubles: [f64; 3] = elementwise_random(&mut Philox::new(7, 9), NormalF64);
    assert!(doubles.iter().all(|v| v.is_finite()) && doubles[0] != doubles[2]);
}

#[test]
fn sanitize_a_random_functor_draws_as_often_as_it_needs() -> Result<()> {
    let stream = stream()?;
    // Nearly half of all numbers are drawn again.
    let end = (1 << 31) + 1;
    let mut out = stream.buffer_zeroed(300)?;
    random_below::launch(&stream, (2, 100), 5, Below { end }, &mut out)?;
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        let mut random = Philox::new(5, i as u64);
        let pairs = std::iter::repeat_with(|| random.draw()).filter(|bits| bits[0] < end && bits[1] < end);
        let expected: Vec<u32> = pairs.flat_map(|bits| [bits[0], bits[1]]).take(3).collect();
        assert_eq!(found[..], expected, "stream {i}");
    }
    let mut calls = Philox::new(1, 1);
    let [first, second]: [u32; 2] = elementwise_random(&mut calls, |random: &mut Philox| {
        random.draw();
        [random.draw()[3]]
    });
    let draw = |i| Philox::new(1, 1).skip(i).draw()[3];
    assert_eq!([first, second], [draw(1), draw(3)]);
    Ok(())
}

#[test]
fn no_random_numbers_take_no_draw() {
    let start = Philox::new(1, 2);
    let mut random = start;
    assert_eq!(elementwise_random::<_, _, 0, 4>(&mut random, UniformF32), [0f32; 0]);
    assert_eq!(random, start);
}

/// Normal numbers are as near to the transform in `f64` as their docs say. The first bits are among the worst.
#[test]
fn normal_numbers_are_within_the_promised_units_in_the_last_place() {
    const UNITS: f64 = 5.0;
    let worst =
        [[0xa46d_fc00, 0x1f6d_7600, 0xab20_c304, 0xa231_f4e7], [0x6801_7b12, 0x0a12_b378, 0xa2a6_5100, 0x1efa_5f00]];
    let drawn = (0..100_000).map(|i| philox4x32_10([i, 0, 0, 0], [5, 0]));
    for bits in worst.into_iter().chain(drawn) {
        let found = NormalF32.apply(bits);
        let [a, b, c, d] = UniformF32.apply(bits).map(f64::from);
        for (k, (u, v)) in [(a, b), (c, d)].into_iter().enumerate() {
            // The angle in quarter turns is reduced exactly.
            let (radius, quarters) = ((-2.0 * (-u).ln_1p()).sqrt(), 4.0 * v);
            let (sin, cos) = ((quarters - quarters.round()) * std::f64::consts::FRAC_PI_2).sin_cos();
            let exact = match quarters.round() as u32 % 4 {
                0 => [cos, sin],
                1 => [-sin, cos],
                2 => [-cos, -sin],
                _ => [sin, -cos],
            };
            for (found, exact) in found[2 * k..].iter().zip(exact.map(|part| radius * part)) {
                let power = f32::from_bits((exact as f32).to_bits() & f32::INFINITY.to_bits());
                let (unit, error) = (f64::from(power * f32::EPSILON), (f64::from(*found) - exact).abs());
                assert!(error <= UNITS * unit, "{bits:x?}: {found}, not {exact}");
            }
        }
    }
}

/// Returns the mean and the variance of a sample, and the share of values whose magnitude is larger than a bound.
fn moments(values: impl Iterator<Item = f64>, bound: f64) -> [f64; 3] {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    [mean, variance, values.iter().filter(|v| v.abs() > bound).count() as f64 / n]
}

#[test]
fn sanitize_random_numbers_are_the_same_on_all_machines_and_distributed_as_named() -> Result<()> {
    let n = 20_000;
    let mut first = None;
    for stream in [stream()?, Device::emulator().stream()?] {
        let (mut bits, mut uniform) = (stream.buffer_zeroed(n)?, stream.buffer_zeroed(n)?);
        let (mut uniform_double, mut normal) = (stream.buffer_zeroed(n)?, stream.buffer_zeroed(n)?);
        let mut normal_double = stream.buffer_zeroed(n)?;
        random::launch(
            &stream,
            (20, 128),
            3,
            4,
            &mut bits,
            &mut uniform,
            &mut uniform_double,
            &mut normal,
            &mut normal_double,
        )?;
        let normal_double = normal_double.to_vec()?;
        let exact = (bits.to_vec()?, uniform.to_vec()?, uniform_double.to_vec()?, normal.to_vec()?);
        let normal = &exact.3;
        for (i, &bits) in exact.0.iter().enumerate() {
            assert_eq!(bits, philox4x32_10([i as u32, 0, 4, 0], [3, 0]));
            assert_eq!(exact.1[i], bits.map(|b| (b >> 8) as f32 / 16_777_216.0));
            let double = |high: u32, low: u32| (((high as u64) << 32 | low as u64) >> 11) as f64 / 2f64.powi(53);
            assert_eq!(exact.2[i], [double(bits[0], bits[1]), double(bits[2], bits[3])]);
            // The reference is Box and Muller's method in f64.
            let [a, b, c, d] = exact.1[i].map(f64::from);
            for (k, (u, v)) in [(a, b), (c, d)].into_iter().enumerate() {
                let (radius, angle) = ((-2.0 * (1.0 - u).ln()).sqrt(), std::f64::consts::TAU * v);
                assert!((normal[i][2 * k] as f64 - radius * angle.cos()).abs() < 1.5e-6);
                assert!((normal[i][2 * k + 1] as f64 - radius * angle.sin()).abs() < 1.5e-6);
            }
        }
        let [mean, variance, above] = moments(exact.1.iter().flatten().map(|&v| v as f64), 0.75);
        assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.002 && (above - 0.25).abs() < 0.01);
        for values in [
            normal.iter().flatten().map(|&v| v as f64).collect::<Vec<_>>(),
            normal_double.iter().flatten().copied().collect(),
        ] {
            let [mean, variance, beyond] = moments(values.into_iter(), 2.0);
            assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04 && (beyond - 0.0455).abs() < 0.005);
        }
        assert_eq!(*first.get_or_insert_with(|| exact.clone()), exact);
    }
    for bits in [[0; 4], [u32::MAX; 4]] {
        assert!(NormalF32.apply(bits).iter().all(|v| v.abs() < 6.0), "the ends of the range are finite");
    }
    Ok(())
}

#[test]
fn sanitize_rows_reduce_along_both_axes() -> Result<()> {
    let stream = stream()?;
    let x: Vec<[[i32; 4]; 3]> = (0..50).map(|i| [[i, 2, 3, 4], [5, 6 - i, 7, 8], [9, 10, 11, i * i]]).collect();
    let mut out = stream.buffer_zeroed(x.len())?;
    rows::launch(&stream, (2, 33), &stream.buffer_from(&x)?, &mut out)?;
    for (x, found) in x.iter().zip(out.to_vec()?) {
        let sums: Vec<i32> = x.iter().map(|row| row.iter().sum()).collect();
        let mut expected = sums.clone();
        expected.extend((0..4).map(|k| 100 + x[0][k] + x[1][k] + x[2][k]));
        expected.extend(x.iter().flatten().map(|v| 100 * v));
        let exchange = x[0][1] > x[0][0];
        let exchanged = |row: [i32; 4]| if exchange { [row[1], row[0], row[2], row[3]] } else { row };
        expected.extend(exchanged(x[0]));
        expected.extend(exchanged(x[1]));
        assert_eq!(found[..27], expected);
        assert_eq!(found[31], *sums.iter().max().unwrap().max(&1));
    }
    Ok(())
}

#[test]
fn sanitize_elementwise_primitives_take_rows() -> Result<()> {
    let stream = stream()?;
    let (x, y): (Vec<f32>, Vec<f32>) = (values(300, 1), values(300, 2));
    let rows =
        |v: &[f32]| -> Vec<[[f32; 3]; 2]> { v.chunks(6).map(|v| [[v[0], v[1], v[2]], [v[3], v[4], v[5]]]).collect() };
    let mut out = stream.buffer_zeroed(50)?;
    of_rows::launch(&stream, (1, 64), &stream.buffer_from(&rows(&x))?, &stream.buffer_from(&rows(&y))?, &mut out)?;
    let least = |i: usize| if x[i] < y[i] { x[i] } else { y[i] };
    let of: [&dyn Fn(usize) -> f32; 5] =
        [&|i| x[i].max(y[i]), &|i| x[i] * 0.5, &least, &|i| x[i] + y[i] + x[i], &|_| 4.0];
    let expected = of.map(|f| rows(&(0..300).map(f).collect::<Vec<_>>()));
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        assert_eq!(found, [0, 1, 2, 3, 4].map(|k: usize| expected[k][i]), "thread {i}");
    }
    Ok(())
}

#[test]
fn a_functors_division_by_zero_is_a_fault_where_it_is_applied() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[7, -7])?;
    let mut out = stream.buffer_zeroed(2)?;
    floor_divided::launch(&stream, (1, 2), &x, &stream.buffer_from(&[2, 2])?, &mut out)?;
    assert_eq!(out.to_vec()?, [3, -4]);
    let y = stream.buffer_from(&[1, 0])?;
    match floor_divided::launch(&stream, (1, 2), &x, &y, &mut out).and_then(|()| stream.synchronize()) {
        Err(Error::Fault(fault)) => {
            assert!(matches!(&fault.diagnosis, Diagnosis::Raised(f) if f.kind == FaultKind::DivisionByZero), "{fault}");
            assert_eq!((fault.thread.x, fault.kernel.as_str()), (1, "suite::kernels::thread::floor_divided"));
            assert!(fault.file.replace('\\', "/").ends_with("tests/suite/kernels/thread.rs"), "{fault}");
            let line =
                include_str!("../kernels/thread.rs").lines().position(|line| line.contains("functor::FloorDiv)"));
            assert_eq!(fault.line as usize, line.unwrap() + 1);
        }
        other => panic!("expected a fault, got {other:?}"),
    }
    Ok(())
}

#[test]
fn two_items_are_put_in_order_and_equal_ones_stay() {
    for (a, b) in [((1, 'a'), (2, 'b')), ((2, 'a'), (1, 'b')), ((1, 'a'), (1, 'b'))] {
        let (mut first, mut second) = (a, b);
        compare_exchange(&mut first, &mut second, &|x: (i32, char), y: (i32, char)| x.0 < y.0);
        assert_eq!((first, second), if b.0 < a.0 { (b, a) } else { (a, b) });
    }
}

#[test]
fn the_last_power_of_two_is_the_largest_that_is_not_greater() {
    let powers: Vec<u32> = (0..32).map(|bit| 1u32 << bit).collect();
    let near = powers.iter().flat_map(|&power| [power - 1, power, power + 1]);
    for n in near.chain([100, 1000, 3 << 30, u32::MAX - 1, u32::MAX]) {
        let expected = powers.iter().copied().rfind(|&power| power <= n);
        assert_eq!(last_pow2(n), expected.unwrap_or(1), "{n}");
    }
}
