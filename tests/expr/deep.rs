//! Tests expressions of very many operations.

use kernel_primitives::Result;
use kernel_primitives::expr::*;

use crate::stream;

/// Returns the number of operations in a chain. A GPU's driver would compile more operations for a long time.
fn depth(gpu: bool) -> usize {
    if gpu { 1_000 } else { 100_000 }
}

#[test]
fn a_deep_expression_is_computed_and_dropped() -> Result<()> {
    let stream = stream()?;
    let depth = depth(stream.device().is_gpu());
    let x = Tensor::from_slice(&stream, 3, &[1u32, 2, 3])?;
    let mut value = x.clone().expr();
    for i in 0..depth as u32 {
        // Each operation has another scalar.
        value = if i % 2 == 0 { value * 3 } else { value + i };
    }
    let y = Tensor::zeros(&stream, 3)?;
    y.assign(&value)?;
    let expected = [1u32, 2, 3]
        .map(|x| (0..depth as u32).fold(x, |x, i| if i % 2 == 0 { x.wrapping_mul(3) } else { x.wrapping_add(i) }));
    assert_eq!(y.to_vec()?, expected);
    let wrong = Tensor::zeros(&stream, 4)?;
    let text = wrong.assign(value).unwrap_err().to_string();
    assert!(text.contains('…') && text.len() < 10_000, "{} characters", text.len());
    Ok(())
}

#[test]
fn stencils_of_stencils_are_computed_and_dropped() -> Result<()> {
    const STENCILS: usize = 100_000;
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, STENCILS + 1, &Vec::from_iter(0..=STENCILS as u32))?;
    // Each stencil reads one element, so the kernel is a copy.
    let (mut same, mut last) = (x.clone().expr(), x.clone().expr());
    for _ in 0..STENCILS {
        same = stencil(same, Boundary::Clamp, |n| n.at(0));
        last = stencil(last, Boundary::Interior, |n| n.at(1));
    }
    let (y, z) = (Tensor::zeros(&stream, STENCILS + 1)?, Tensor::zeros(&stream, 1)?);
    y.assign(same)?;
    z.assign(last)?;
    assert_eq!(y.to_vec()?, x.to_vec()?);
    assert_eq!(z.to_vec()?, [STENCILS as u32]);
    Ok(())
}

#[test]
fn what_is_shared_is_computed_once() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 2, &[1u64, 3])?;
    // As a tree, this would have 2⁶⁰ operations.
    let mut value = x.clone().expr();
    for _ in 0..60 {
        value = &value + &value;
    }
    x.assign(value)?;
    assert_eq!(x.to_vec()?, [1 << 60, 3 << 60]);
    Ok(())
}

#[test]
fn an_expression_of_many_tensors() -> Result<()> {
    let stream = stream()?;
    let tensors: Vec<Tensor<i32>> = (0..100).map(|i| Tensor::from_slice(&stream, 5, &[i; 5])).collect::<Result<_>>()?;
    let sum = tensors.iter().fold(scalar(0), |sum, x| sum + x);
    let y = Tensor::zeros(&stream, 5)?;
    y.assign(sum)?;
    assert_eq!(y.to_vec()?, [4950; 5]);
    Ok(())
}

#[test]
fn expressions_cross_threads() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 1000, &[1.0f64; 1000])?;
    let mut value = x.clone().expr();
    for _ in 0..50 {
        value = value + 1.0;
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|i| {
                let (value, stream) = (value.clone(), &stream);
                scope.spawn(move || {
                    let y = Tensor::zeros(stream, 1000)?;
                    for _ in 0..10 {
                        y.assign(&value * f64::from(i))?;
                    }
                    y.to_vec()
                })
            })
            .collect();
        for (i, worker) in workers.into_iter().enumerate() {
            assert_eq!(worker.join().unwrap()?, [51.0 * i as f64; 1000]);
        }
        Ok(())
    })
}
