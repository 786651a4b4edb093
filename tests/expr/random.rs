//! Random numbers.

use kernel_primitives::Result;
use kernel_primitives::expr::*;
use kernel_primitives::functor::UnaryFn;
use kernel_primitives::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64};

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
        // π by the share of points in the quarter of a circle.
        x.assign(
            le(square(uniform::<f64>(seed)) + square(uniform::<f64>(seed ^ 77)), scalar(1.0)).cast::<f64>() * 4.0,
        )?;
        assert!((mean(&x)? / std::f64::consts::PI - 1.0).abs() < 5e-3);
    }
    Ok(())
}

#[test]
fn numbers_are_those_of_philox() -> Result<()> {
    let stream = stream()?;
    let seed = 0x0123_4567_89ab_cdef;
    let draw = |i: usize, each: usize| Philox::new(seed, 0).skip((i / each) as u64).draw();
    // Where a transformation has a sine and a logarithm, a GPU's may round otherwise.
    let ulps = if stream.device().is_gpu() { 64 } else { 0 };
    for n in [1, 7, 3001] {
        let (x, y) = (Tensor::<f32>::uninit(&stream, n)?, Tensor::<f64>::uninit(&stream, n)?);
        x.assign(uniform(seed))?;
        let expected: Vec<f32> = (0..n).map(|i| UniformF32.apply(draw(i, 4))[i % 4]).collect();
        assert_near(&x.to_vec()?, &expected, 0, "uniform f32");
        y.assign(uniform(seed))?;
        let expected: Vec<f64> = (0..n).map(|i| UniformF64.apply(draw(i, 2))[i % 2]).collect();
        assert_near(&y.to_vec()?, &expected, 0, "uniform f64");
        x.assign(normal(seed))?;
        let expected: Vec<f32> = (0..n).map(|i| NormalF32.apply(draw(i, 4))[i % 4]).collect();
        assert_near(&x.to_vec()?, &expected, ulps, "normal f32");
        y.assign(normal(seed))?;
        let expected: Vec<f64> = (0..n).map(|i| NormalF64.apply(draw(i, 2))[i % 2]).collect();
        assert_near(&y.to_vec()?, &expected, ulps, "normal f64");
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
    // By an index, and by a seed, of the element's own.
    let index = Tensor::from_slice(&stream, [7, 5], &(0..35).rev().collect::<Vec<u64>>())?;
    let seeds = Tensor::from_slice(&stream, [7, 1], &[3u64, 4, 5, 6, 7, 8, 9])?;
    let z = Tensor::<f32>::zeros(&stream, [7, 5])?;
    z.assign(uniform_at(&seeds, &index))?;
    let at = |seed: u64, i: u64| UniformF32.apply(Philox::new(seed, 0).skip(i / 4).draw())[i as usize % 4];
    let expected: Vec<f32> = (0..35).map(|i| at(3 + i / 5, 34 - i)).collect();
    assert_near(&z.to_vec()?, &expected, 0, "by index and seed");
    Ok(())
}
