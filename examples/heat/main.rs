//! The heat equation on a square plate, by finite differences. Each step is one kernel, a stencil.
//!
//! ```text
//! cargo run --release --example heat [picture.png]
//! ```
//!
//! A step moves each inner point towards the mean of its neighbours. A product of sines is an eigenfunction of the step: each step
//! multiplies it by the same factor. The program checks that.
//!
//! Then the rows of a plate are split over all devices. At each step, each device gets one row from each neighbouring device. The results
//! have the same bits as on one device.
//!
//! ```text
//! KERNEL_PRIMITIVES_DEVICES=emulator:4 cargo run --release --example heat
//! ```
//!
//! The PNG shows hot discs on a cold plate, at the start and after 60, 250 and 1000 steps.

#![allow(clippy::reversed_empty_ranges, reason = "negative bounds of slices count from the end")]

#[path = "../common/picture.rs"]
mod picture;

use std::error::Error;
use std::f64::consts::PI;

use kernel_primitives::expr::{
    Boundary, Expr, Functions, Reductions, SplitTensor, Tensor, abs, axis_index, lt, scalar, select, sin, square,
    stencil,
};
use kernel_primitives::{Device, Devices, Result, Split, Stream};

use picture::{Picture, heat_colour};

/// Points along an edge.
const N: usize = 402;
/// The time step, in units of the squared grid distance divided by the diffusivity. At most 1/4 is stable.
const RATE: f64 = 0.2;
const STEPS: i32 = 200;

/// Points along an edge of the plates in the picture.
const SMALL: usize = 200;
/// The discs: row, column and radius.
const DISCS: [(f64, f64, f64); 5] =
    [(55.0, 60.0, 30.0), (45.0, 145.0, 17.5), (115.0, 110.0, 12.5), (150.0, 55.0, 22.5), (145.0, 155.0, 27.5)];
/// The numbers of steps after which the picture shows the plate.
const SHOWN: [usize; 4] = [0, 60, 250, 1000];

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;

    let wave = PI / (N - 1) as f64;
    let mode = |axis| sin(axis_index::<f64>(axis) * wave);
    let start = Tensor::uninit(&stream, [N, N])?;
    start.assign(mode(0) * mode(1))?;
    let mut plate = Plate::new(&start)?;
    let before = device.counters();
    plate.advance(STEPS as usize)?;
    let cost = device.counters().since(before);
    println!("{STEPS} steps of {N} × {N} points: {} launches", cost.launches);

    let factor = (1.0 - 8.0 * RATE * (wave / 2.0).sin().powi(2)).powi(STEPS);
    let error = abs(inner(plate.now())? - inner(&start)? * factor).max().item()?;
    println!("the mode has decayed by {factor:.6}; largest error {error:.1e}");
    assert!(error < 1e-12, "{error}");

    over_all_devices()?;
    picture(&stream)?.write(std::env::args_os().nth(1), "heat.png")?;
    Ok(())
}

/// The points inside the edge.
fn inner(plate: &Tensor<f64>) -> Result<Tensor<f64>> {
    plate.slice((1..-1, 1..-1))
}

/// A plate whose edge stays at 0. Steps write two tensors in turn, and do not write their edges.
struct Plate {
    tensors: [Tensor<f64>; 2],
    steps: usize,
}

impl Plate {
    fn new(start: &Tensor<f64>) -> Result<Self> {
        let cold = || Tensor::zeros(start.stream(), start.shape());
        let tensors = [cold()?, cold()?];
        inner(&tensors[0])?.assign(inner(start)?)?;
        Ok(Self { tensors, steps: 0 })
    }

    fn now(&self) -> &Tensor<f64> {
        &self.tensors[self.steps % 2]
    }

    /// Runs one kernel for each step.
    fn advance(&mut self, steps: usize) -> Result<()> {
        for _ in 0..steps {
            let (now, next) = (self.now(), &self.tensors[(self.steps + 1) % 2]);
            let step = stencil(now, Boundary::Interior, |n| {
                let around = n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]);
                n.at([0, 0]) + (around - n.at([0, 0]) * 4.0) * RATE
            });
            inner(next)?.assign(step)?;
            self.steps += 1;
        }
        Ok(())
    }
}

/// A step of the points inside an edge that stays at 0.
fn step(plate: &Expr<f64>) -> Expr<f64> {
    stencil(plate, Boundary::Constant(0.0), |n| {
        let around = n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]);
        n.at([0, 0]) + (around - n.at([0, 0]) * 4.0) * RATE
    })
}

/// Computes the points inside the edge, split over all devices, and compares them with those of the first device alone.
fn over_all_devices() -> Result<()> {
    let split = Split::even(&Devices::all()?)?;
    let shape = [N - 2, N - 2];
    let disc = || {
        let distance = square(axis_index::<f64>(0) - 130.0) + square(axis_index::<f64>(1) - 220.0);
        select(lt(distance, scalar(8100.0)), scalar(1.0), scalar(0.0))
    };
    // There is room for one row on each side of a device's rows. A stencil that reads one row up and down copies only these.
    let plate = || SplitTensor::<f64>::uninit_with_halo(&split, shape, 1);
    let (mut now, mut next) = (plate()?, plate()?);
    now.assign(disc())?;
    let copied = || split.streams().iter().map(|stream| stream.device().counters().peer_bytes).sum::<u64>();
    let before = copied();
    for _ in 0..STEPS {
        next.assign(step(&now.to_expr()))?;
        std::mem::swap(&mut now, &mut next);
    }
    let bytes = copied() - before;

    let first = &split.streams()[0];
    let (mut alone, mut after) = (Tensor::<f64>::uninit(first, shape)?, Tensor::uninit(first, shape)?);
    alone.assign(disc())?;
    for _ in 0..STEPS {
        after.assign(step(&alone.to_expr()))?;
        std::mem::swap(&mut alone, &mut after);
    }
    assert!(now.to_vec()? == alone.to_vec()?, "several devices give another result than one");
    let devices = split.streams().len();
    println!(
        "{STEPS} steps over {devices} devices: as on one; {} bytes a step went between them",
        bytes / STEPS as u64
    );
    Ok(())
}

/// The discs at four times as they cool, side by side.
fn picture(stream: &Stream) -> Result<Picture> {
    let start = Tensor::zeros(stream, [SMALL, SMALL])?;
    for (row, column, radius) in DISCS {
        let distance = square(axis_index::<f64>(0) - row) + square(axis_index::<f64>(1) - column);
        start.assign(select(lt(distance, scalar(radius * radius)), scalar(1.0), &start))?;
    }
    let mut plate = Plate::new(&start)?;
    let mut panels = Vec::new();
    for steps in SHOWN {
        plate.advance(steps - plate.steps)?;
        let panel = plate.now().to_vec()?;
        // Each value is a mean of earlier values.
        assert!(panel.iter().all(|value| (0.0..=1.0 + 1e-12).contains(value)));
        panels.push(panel);
    }
    Ok(Picture::from_fn(SHOWN.len() * SMALL, SMALL, |column, row| {
        heat_colour(panels[column / SMALL][row * SMALL + column % SMALL])
    }))
}
