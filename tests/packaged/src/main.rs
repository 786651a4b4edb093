//! Algorithms and expressions on whatever device there is, checked.

use kernel_primitives::Device;
use kernel_primitives::algorithms::{inclusive_scan, reduce, top_k};
use kernel_primitives::expr::{Reductions, Tensor, sin};
use kernel_primitives::functor::{Add, Greater, Sum};

fn main() -> kernel_primitives::Result<()> {
    let device = Device::auto()?;
    println!("on {device}");
    let stream = device.stream()?;
    let x: Vec<f32> = (0..100_000).map(|i| (i * 7919 % 1000) as f32).collect();
    let buffer = stream.buffer_from(&x)?;

    let began = std::time::Instant::now();
    let mut sum = stream.buffer_zeroed::<f32>(1)?;
    reduce(&stream, &buffer, Sum, &mut sum)?;
    let expected: f64 = x.iter().map(|&x| f64::from(x)).sum();
    assert!((f64::from(sum.to_vec()?[0]) / expected - 1.0).abs() < 1e-6);
    println!("first launch: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);

    let mut largest = stream.buffer_zeroed::<f32>(3)?;
    top_k(&stream, &buffer, 3, Greater, &mut largest)?;
    assert_eq!(largest.to_vec()?, [999.0; 3]);

    let mut sums = stream.buffer_zeroed::<f32>(1000)?;
    inclusive_scan(&stream, &buffer.slice(..1000)?, Add, &mut sums)?;
    assert_eq!(sums.to_vec()?[999], x[..1000].iter().sum::<f32>());

    let a = Tensor::from_slice(&stream, [100, 1000], &x)?;
    let b = Tensor::uninit(&stream, [100, 1000])?;
    b.assign(&a * 2.0 + sin(&a) * 0.0)?;
    let rows = b.sum().axes(&[1]).tensor()?.to_vec()?;
    let expected: Vec<f32> = x.chunks(1000).map(|row| 2.0 * row.iter().sum::<f32>()).collect();
    assert_eq!(rows, expected);
    println!("all as expected");
    Ok(())
}
