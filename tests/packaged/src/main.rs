//! Runs algorithms, expressions and a Fourier transform on any device, and checks them. On a GPU, it fails if the first launch takes too
//! long.

use std::time::Instant;

use kernel_primitives::algorithms::{FftKind, FftPlan, inclusive_scan, irfft, reduce, rfft, top_k};
use kernel_primitives::expr::{Reductions, Tensor, sin};
use kernel_primitives::functor::{Add, Greater, Sum};
use kernel_primitives::{Complex, Device};

/// The most milliseconds of the first launch on a GPU. The driver compiles the kernel's PTX in this time.
const FIRST_LAUNCH: f64 = 150.0;

fn milliseconds_since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

fn main() -> kernel_primitives::Result<()> {
    let device = Device::auto()?;
    println!("on {device}");
    let stream = device.stream()?;
    let x: Vec<f32> = (0..100_000).map(|i| (i * 7919 % 1000) as f32).collect();
    let row_sums: Vec<f32> = x.chunks(1000).map(|row| row.iter().sum()).collect();
    let buffer = stream.buffer_from(&x)?;

    let began = Instant::now();
    let mut sum = stream.buffer_zeroed::<f32>(1)?;
    reduce(&stream, &buffer, Sum, &mut sum)?;
    let sum = sum.to_vec()?[0];
    let first = milliseconds_since(began);
    let limit =
        if device.is_gpu() { format!("at most {FIRST_LAUNCH} ms") } else { "not checked without a GPU".to_owned() };
    println!("first launch: {first:.1} ms, {limit}");
    let expected: f64 = x.iter().map(|&x| f64::from(x)).sum();
    assert!((f64::from(sum) / expected - 1.0).abs() < 1e-6);

    let mut largest = stream.buffer_zeroed::<f32>(3)?;
    top_k(&stream, &buffer, 3, Greater, &mut largest)?;
    assert_eq!(largest.to_vec()?, [999.0; 3]);

    let mut sums = stream.buffer_zeroed::<f32>(1000)?;
    inclusive_scan(&stream, &buffer.slice(..1000)?, Add, &mut sums)?;
    assert_eq!(sums.to_vec()?[999], row_sums[0]);

    let began = Instant::now();
    let a = Tensor::from_slice(&stream, [100, 1000], &x)?;
    let b = Tensor::uninit(&stream, [100, 1000])?;
    b.assign(&a * 2.0 + sin(&a) * 0.0)?;
    let rows = b.sum().axes(&[1]).tensor()?.to_vec()?;
    println!("first expression: {:.1} ms", milliseconds_since(began));
    let expected: Vec<f32> = row_sums.iter().map(|&sum| 2.0 * sum).collect();
    assert_eq!(rows, expected);

    let began = Instant::now();
    let plan = FftPlan::<f32>::new(&stream, &[100, 1000], &[1])?.scaled(1.0, 1.0 / 1000.0);
    let mut half = stream.buffer_zeroed::<Complex<f32>>(plan.half_items())?;
    rfft(&stream, &plan, &buffer, &mut half)?;
    let mut same = stream.buffer_zeroed::<f32>(x.len())?;
    irfft(&stream, &plan, &half, &mut same)?;
    let (half, same) = (half.to_vec()?, same.to_vec()?);
    println!("first transforms: {:.1} ms, {:?}", milliseconds_since(began), plan.path(FftKind::RealForward));
    // The first number of each row's spectrum is the row's sum.
    let spectra = half.chunks(plan.half_shape()[1]);
    assert!(spectra.zip(&row_sums).all(|(row, sum)| (row[0].re / sum - 1.0).abs() < 1e-4));
    assert!(same.iter().zip(&x).all(|(same, x)| (same - x).abs() < 0.01));

    match primitives_nccl::load() {
        Ok(nccl) => println!("NCCL {}", nccl.version()),
        Err(error) => println!("{error}"),
    }
    assert!(!device.is_gpu() || first <= FIRST_LAUNCH, "the first launch took longer than {FIRST_LAUNCH} ms");
    println!("all as expected");
    Ok(())
}
