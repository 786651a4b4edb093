//! Tests sparse products over split buffers against those of one device.

mod errors;
mod exchange;
mod parts;
mod products;

use kernel_primitives::algorithms::Csr;
use kernel_primitives::split::SplitCsr;
use kernel_primitives::{Element, Result, Split, Stream};

use crate::values;

/// A matrix on the host.
#[derive(Debug)]
struct Host {
    name: &'static str,
    columns: usize,
    offsets: Vec<u32>,
    indices: Vec<u32>,
}

impl Host {
    /// Makes a matrix. `of_row` returns the columns of a row's entries.
    fn new(name: &'static str, (rows, columns): (usize, usize), of_row: impl Fn(usize) -> Vec<usize>) -> Self {
        let mut host = Self { name, columns, offsets: vec![0], indices: Vec::new() };
        for row in 0..rows {
            host.indices.extend(of_row(row).into_iter().map(|column| column as u32));
            host.offsets.push(host.indices.len() as u32);
        }
        host
    }

    fn shape(&self) -> (usize, usize) {
        (self.offsets.len() - 1, self.columns)
    }

    /// Returns small whole values.
    fn values<V>(&self, of: impl Fn(i32) -> V) -> Vec<V> {
        values(self.indices.len()).into_iter().map(|value| of(value % 9)).collect()
    }

    /// Returns the product with `x`, computed by plain Rust.
    fn product(&self, of_entries: &[f64], x: &[f64]) -> Vec<f64> {
        let sum = |row: &[u32]| {
            let entries = row[0] as usize..row[1] as usize;
            entries.map(|entry| of_entries[entry] * x[self.indices[entry] as usize]).sum()
        };
        self.offsets.windows(2).map(sum).collect()
    }

    fn split<V: Element>(&self, devices: &Split, values: &[V]) -> Result<SplitCsr<V>> {
        SplitCsr::new(devices, self.shape(), &self.offsets, &self.indices, values)
    }

    fn one<V: Element>(&self, stream: &Stream, values: &[V]) -> Result<Csr<V>> {
        Csr::new(stream, self.shape(), &self.offsets, &self.indices, values)
    }
}

/// Returns a number without order.
fn hash(at: usize) -> usize {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// Returns columns without order. A column may occur twice.
fn any(row: usize, count: usize, columns: usize) -> Vec<usize> {
    (0..count).map(|entry| hash(row * 1000 + entry + 1) % columns).collect()
}

fn band(row: usize, columns: usize) -> Vec<usize> {
    (row.saturating_sub(2)..(row + 3).min(columns)).collect()
}

fn matrices() -> Vec<Host> {
    vec![
        Host::new("random", (211, 211), |row| any(row, hash(row) % 12, 211)),
        Host::new("banded", (300, 300), |row| band(row, 300)),
        Host::new("empty rows", (150, 150), |row| any(row, if row % 17 == 3 { 30 } else { 0 }, 150)),
        Host::new("giant row", (40, 60), |row| any(row, if row == 25 { 20_000 } else { row % 3 }, 60)),
        Host::new("wide", (5, 1000), |row| any(row, 70, 1000)),
        Host::new("tall", (500, 3), |row| any(row, row % 4, 3)),
        Host::new("fewer rows than devices", (3, 3), |row| band(row, 3)),
        Host::new("one column of others", (64, 64), |_| vec![63]),
        Host::new("no entries", (20, 20), |_| Vec::new()),
        Host::new("no columns", (9, 0), |_| Vec::new()),
        Host::new("no rows", (0, 9), |_| Vec::new()),
        Host::new("nothing", (0, 0), |_| Vec::new()),
    ]
}
