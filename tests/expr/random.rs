//! Tests random numbers.

use kernel_primitives::Result;
use kernel_primitives::expr::*;
use kernel_primitives::functor::UnaryFn;
use kernel_primitives::thread::{NormalF32, NormalF64};

use crate::{assert_near, stream};

const LEN: usize = 100_003;

#[test]
fn means() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<f64>::uninit(&stream, LEN)?;
    let mean = |x: &Tensor<f64>| -> Result<f64> { Ok(x.to_vec()?.iter().sum::<f64>() / LEN as f64) };
    for seed in [0, 1, u64::MAX] {
        x.assign(uniform::<f64>(seed))?;
        assert!((mean(&x)? - 0.5).abs() < 1e-2);
        assert!(x.to_vec()?.iter().all(|x| (0.0..1.0).contains(x)));
        x.assign(abs(normal::<f64>(seed)))?;
        assert!((mean(&x)? - std::f64::consts::FRAC_2_PI.sqrt()).abs() < 1e-2);
        x.assign(abs(normal::<f32>(seed)).cast::<f64>())?;
        assert!((mean(&x)? - std::f64::consts::FRAC_2_PI.sqrt()).abs() < 1e-2);
        // The share of points in the quarter of a circle gives π.
        x.assign(
            le(square(uniform::<f64>(seed)) + square(uniform::<f64>(seed ^ 77)), scalar(1.0)).cast::<f64>() * 4.0,
        )?;
        assert!((mean(&x)? / std::f64::consts::PI - 1.0).abs() < 5e-3);
    }
    Ok(())
}

/// Returns the draw `number` of a seed, as the paper defines it: ten rounds of two products, each with the next key. `suite::thread` tests
/// the library's draws with the published vectors.
fn philox(seed: u64, number: u64) -> [u32; 4] {
    let mut x = [number as u32, (number >> 32) as u32, 0, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let products = [u64::from(x[0]) * 0xd251_1f53, u64::from(x[2]) * 0xcd9e_8d57];
        let [high, low] = [products.map(|product| (product >> 32) as u32), products.map(|product| product as u32)];
        x = [high[1] ^ x[1] ^ key[0], low[1], high[0] ^ x[3] ^ key[1], low[0]];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    x
}

/// Returns uniform number `i`: 24 bits of a word.
fn uniform_f32(seed: u64, i: u64) -> f32 {
    (philox(seed, i / 4)[i as usize % 4] / 256) as f32 / 16_777_216.0
}

/// Returns uniform number `i`: 53 bits of two words.
fn uniform_f64(seed: u64, i: u64) -> f64 {
    let words = philox(seed, i / 2);
    let [high, low] = [0, 1].map(|word| u64::from(words[2 * (i as usize % 2) + word]));
    ((high << 32 | low) >> 11) as f64 / 2f64.powi(53)
}

/// Returns number `i` of the normal distribution. Each two come from two of the uniform numbers `u`.
fn box_muller(u: impl Fn(u64) -> f64, i: u64) -> f64 {
    let (radius, turns) = ((-2.0 * (1.0 - u(i / 2 * 2)).ln()).sqrt(), std::f64::consts::TAU * u(i / 2 * 2 + 1));
    radius * if i.is_multiple_of(2) { turns.cos() } else { turns.sin() }
}

#[test]
fn the_reference_gives_a_published_vector() {
    assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
}

#[test]
fn numbers_are_those_of_philox() -> Result<()> {
    let stream = stream()?;
    let seed = 0x0123_4567_89ab_cdef;
    // The transformation of `f64` has a sine and a logarithm, and a GPU may round them in another way.
    let ulps = if stream.device().is_gpu() { 64 } else { 0 };
    for n in [1, 7, 3001] {
        let (x, y) = (Tensor::<f32>::uninit(&stream, n)?, Tensor::<f64>::uninit(&stream, n)?);
        x.assign(uniform(seed))?;
        let expected: Vec<f32> = (0..n as u64).map(|i| uniform_f32(seed, i)).collect();
        assert_near(&x.to_vec()?, &expected, 0, "uniform f32");
        y.assign(uniform(seed))?;
        let expected: Vec<f64> = (0..n as u64).map(|i| uniform_f64(seed, i)).collect();
        assert_near(&y.to_vec()?, &expected, 0, "uniform f64");
        // The numbers are those of the library on the host, to the last bit. They are also compared with double precision.
        x.assign(normal(seed))?;
        let expected: Vec<f32> = (0..n).map(|i| NormalF32.apply(philox(seed, i as u64 / 4))[i % 4]).collect();
        let found = x.to_vec()?;
        assert_near(&found, &expected, 0, "normal f32");
        for (i, found) in (0..).zip(found) {
            let expected = box_muller(|i| uniform_f32(seed, i).into(), i);
            assert!((f64::from(found) - expected).abs() < 1.5e-6, "normal f32, element {i}: {found}, not {expected}");
        }
        y.assign(normal(seed))?;
        let expected: Vec<f64> = (0..n).map(|i| NormalF64.apply(philox(seed, i as u64 / 2))[i % 2]).collect();
        let found = y.to_vec()?;
        assert_near(&found, &expected, ulps, "normal f64");
        for (i, found) in (0..).zip(found) {
            let expected = box_muller(|i| uniform_f64(seed, i), i);
            assert!((found - expected).abs() < 1e-14, "normal f64, element {i}: {found}, not {expected}");
        }
    }
    Ok(())
}

#[test]
fn numbers_do_not_depend_on_how_the_target_lies() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (Tensor::<f32>::zeros(&stream, [7, 5])?, Tensor::<f32>::zeros(&stream, [5, 7])?);
    x.assign(uniform(3))?;
    y.t().assign(uniform(3))?;
    assert_eq!(x.to_vec()?, y.t().to_vec()?);
    // The index and the seed may be the element's own.
    let index = Tensor::from_slice(&stream, [7, 5], &(0..35).rev().collect::<Vec<u64>>())?;
    let seeds = Tensor::from_slice(&stream, [7, 1], &[3u64, 4, 5, 6, 7, 8, 9])?;
    let z = Tensor::<f32>::zeros(&stream, [7, 5])?;
    z.assign(uniform_at(&seeds, &index))?;
    let expected: Vec<f32> = (0..35).map(|i| uniform_f32(3 + i / 5, 34 - i)).collect();
    assert_near(&z.to_vec()?, &expected, 0, "by index and seed");
    let (z, w) = (Tensor::<f32>::zeros(&stream, [7, 5])?, Tensor::<f64>::zeros(&stream, [7, 5])?);
    z.assign(normal_at(&seeds, &index))?;
    w.assign(normal_at(&seeds, &index))?;
    for (i, (narrow, wide)) in (0..).zip(z.to_vec()?.into_iter().zip(w.to_vec()?)) {
        let expected = box_muller(|at| uniform_f32(3 + i / 5, at).into(), 34 - i);
        assert!((f64::from(narrow) - expected).abs() < 1.5e-6, "normal f32, element {i}: {narrow}, not {expected}");
        let expected = box_muller(|at| uniform_f64(3 + i / 5, at), 34 - i);
        assert!((wide - expected).abs() < 1e-14, "normal f64, element {i}: {wide}, not {expected}");
    }
    Ok(())
}
