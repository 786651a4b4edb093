//! The heat equation on a plate whose rows are split over GPUs.

use std::f64::consts::PI;

use kernel_primitives::expr::{Boundary, Functions, SplitTensor, axis_index, scalar, sin, stencil};
use kernel_primitives::{Result, Split};

use super::Job;

/// A plate whose rows are split, at each step of which a device gets a row of each neighbour. Two tensors take turns.
pub(super) struct Heat {
    now: SplitTensor<f32>,
    next: SplitTensor<f32>,
    steps: i32,
}

/// The time step in units of the squared grid distance over the diffusivity.
const HEAT_RATE: f64 = 0.2;

impl Heat {
    /// Radians between neighbours along an axis of so many points: beyond both edges the mode is 0, and a half wave is about 32 points long,
    /// so that a step takes away 0.4 %.
    fn wave(extent: usize) -> f64 {
        let beyond = (extent + 1) as f64;
        (beyond / 32.0).round().max(1.0) * PI / beyond
    }

    /// The mode after the steps so far.
    fn expected(&self, row: usize, column: usize) -> f64 {
        let waves = [0, 1].map(|axis| Self::wave(self.now.shape()[axis]));
        let squares = waves.map(|wave| (wave / 2.0).sin().powi(2));
        let decay = (1.0 - 4.0 * HEAT_RATE * (squares[0] + squares[1])).powi(self.steps);
        decay * (waves[0] * (row + 1) as f64).sin() * (waves[1] * (column + 1) as f64).sin()
    }
}

impl Job for Heat {
    fn new(split: &Split, n: usize) -> Result<Self> {
        let columns = 1usize << n.ilog2().div_ceil(2);
        let shape = [n / columns, columns];
        let plate = || SplitTensor::uninit_with_halo(split, shape, 1);
        let along = |axis| sin((axis_index::<f64>(axis) + scalar(1.0)) * Self::wave(shape[axis]));
        let now = plate()?;
        now.assign((along(0) * along(1)).cast::<f32>())?;
        Ok(Self { now, next: plate()?, steps: 0 })
    }

    fn run(&mut self) -> Result<()> {
        let step = stencil(&self.now, Boundary::Constant(0.0), |n| {
            let around = n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]);
            n.at([0, 0]) + (around - n.at([0, 0]) * 4.0) * HEAT_RATE as f32
        });
        self.next.assign(step)?;
        std::mem::swap(&mut self.now, &mut self.next);
        self.steps += 1;
        Ok(())
    }

    fn is_right(&self) -> Result<bool> {
        for (device, shard) in self.now.shards().enumerate() {
            let rows = self.now.range(device);
            if rows.is_empty() {
                continue;
            }
            // Where the rows of two devices meet.
            for (row, of_shard) in [(rows.start, shard.slice(..1)?), (rows.end - 1, shard.slice(-1..)?)] {
                let is_near =
                    |(column, &found): (usize, &f32)| (f64::from(found) - self.expected(row, column)).abs() < 1e-4;
                if !of_shard.to_vec()?.iter().enumerate().all(is_near) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
