//! Tests sparse matrices and their products. Each test runs on the device that `KERNEL_PRIMITIVES_DEVICE` names. It compares with a
//! reference that is computed here in another way.
//!
//! Tests with `sanitize` in their names are small, and cover each facility once, for tools that slow the device down.
//! The name of this binary, `sparse`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod by_length;
mod changed;
mod expressions;
mod kernels;

mod matrices;
mod matrix_market;
mod peers;
mod products;
mod slices;
mod staged;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/support.rs"]
mod support;
mod tiles;
mod vectors;
mod window;

use kernel_primitives::algorithms::{Csr, SpmvMethod};
use kernel_primitives::{Element, Result, Stream};

use support::Random;

/// All methods of products.
pub const METHODS: [SpmvMethod; 9] = [
    SpmvMethod::Rows { lanes: 1 },
    SpmvMethod::Rows { lanes: 2 },
    SpmvMethod::Rows { lanes: 4 },
    SpmvMethod::Rows { lanes: 8 },
    SpmvMethod::Rows { lanes: 16 },
    SpmvMethod::Rows { lanes: 32 },
    SpmvMethod::MergePath,
    SpmvMethod::ByLength,
    SpmvMethod::Window,
];

/// A matrix on the host.
#[derive(Clone, Debug)]
pub(crate) struct Host<V> {
    pub columns: usize,
    pub offsets: Vec<u32>,
    pub indices: Vec<u32>,
    pub values: Vec<V>,
}

impl<V: Element> Host<V> {
    /// Makes rows of these lengths, with random columns and values.
    pub fn of_lengths(
        columns: usize,
        lengths: impl IntoIterator<Item = usize>,
        random: &mut Random,
        value: impl Fn(u64) -> V,
    ) -> Self {
        let mut matrix = Self { columns, offsets: vec![0], indices: Vec::new(), values: Vec::new() };
        for length in lengths {
            for _ in 0..if columns == 0 { 0 } else { length } {
                matrix.indices.push(random.below(columns as u64) as u32);
                matrix.values.push(value(random.bits()));
            }
            matrix.offsets.push(matrix.values.len() as u32);
        }
        matrix
    }

    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the entries of a row: column and value.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, V)> + '_ {
        let entries = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        entries.map(|entry| (self.indices[entry] as usize, self.values[entry]))
    }

    pub fn on(&self, stream: &Stream) -> Result<Csr<V>> {
        Csr::new(stream, (self.rows(), self.columns), &self.offsets, &self.indices, &self.values)
    }
}

/// Returns lengths of rows of several kinds: no rows, one row, equal lengths, random lengths, mostly empty rows, one row with most entries.
pub fn lengths(kind: usize, random: &mut Random) -> Vec<usize> {
    let rows = 1 + random.below(300) as usize;
    let mut lengths: Vec<usize> = match kind % 6 {
        0 => return Vec::new(),
        1 => return vec![random.below(3000) as usize],
        2 => vec![random.below(40) as usize; rows],
        3 => (0..rows).map(|_| random.below(90) as usize).collect(),
        _ => (0..rows).map(|_| random.below(5).saturating_sub(3) as usize * 7).collect(),
    };
    if kind % 6 == 5 {
        let place = random.below(rows as u64) as usize;
        lengths[place] = 5000;
    }
    lengths
}
