//! Products with several vectors, beside cuSPARSE's.

use kernel_primitives::Result;
use kernel_primitives::algorithms::{Csr, Run, spmm};

use super::matrices::{Matrix, hash};
use super::{Bench, Value, beside_cusparse};

/// cuSPARSE's algorithms, in the order of their numbers in `benches/peers/sparse.cu`: three for compressed rows, and four for triplets.
const ALGORITHMS: [&str; 7] = ["CSR 1", "CSR 2", "CSR 3", "COO 1", "COO 2", "COO 3", "COO 4"];

impl Bench<'_> {
    /// Checks and measures a product with so many vectors. `tolerance` is relative to the sum of the magnitudes.
    pub(super) fn several<T: Value>(
        &mut self,
        name: &str,
        matrix: impl FnOnce() -> Matrix,
        vectors: usize,
        tolerance: f64,
    ) -> Result<()> {
        let name = format!("spmm {name}, {vectors} vectors");
        let matrix = matrix();
        let values = matrix.values(T::of);
        let Matrix { columns, offsets, indices, .. } = matrix;
        let (rows, entries) = (offsets.len() - 1, indices.len());
        let items: Vec<T> = (0..columns * vectors).map(|item| T::of((hash(item) % 17) as f64 - 8.0)).collect();
        let stream = self.stream.clone();
        let a = Csr::new(&stream, (rows, columns), &offsets, &indices, &values)?;
        let x = stream.buffer_from(&items)?;
        let mut y = stream.buffer_from(&vec![T::of(f64::NAN); rows * vectors])?;

        // The first rows, the last ones, some between, and the longest.
        let longest = (0..rows).max_by_key(|&row| offsets[row + 1] - offsets[row]);
        let between = (0..rows).step_by(rows.div_ceil(300).max(1));
        let ends = (0..rows.min(300)).chain(rows.saturating_sub(300)..rows);
        let checked: Vec<usize> = ends.chain(between).chain(longest).collect();
        let differs = |found: &[T]| {
            let places = checked.iter().flat_map(|&row| (0..vectors).map(move |vector| (row, vector)));
            let mut wrong = places.filter_map(|(row, vector)| {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                let item = |entry: usize| items[indices[entry] as usize * vectors + vector].to_f64();
                let terms = entries.map(|entry| values[entry].to_f64() * item(entry));
                let (sum, size) = terms.fold((0.0, 1.0), |(sum, size), term: f64| (sum + term, size + term.abs()));
                let found = found[row * vectors + vector].to_f64();
                let near = (found - sum).abs() <= tolerance * size;
                (!near).then(|| format!("row {row} of vector {vector} is {found} and not {sum}"))
            });
            wrong.next()
        };
        spmm(Run::on(&stream), &a, &x, vectors, &mut y)?;
        if let Some(wrong) = differs(&y.to_vec()?) {
            self.report.failure(format!("{name}, ours: {wrong}"));
            return Ok(());
        }
        let row_indices = a.row_indices(&stream)?;
        let mut theirs = Vec::new();
        for (number, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let Some(peers) = &self.peers else { break };
            let rows_of_entries = if algorithm.starts_with("CSR") { a.offsets() } else { &row_indices };
            let arrays = [rows_of_entries, a.indices()].map(|buffer| buffer.address());
            let numbers = [columns, entries, number, vectors].map(|number| number as u64);
            let buffers = [&arrays[..], &[a.values().address(), x.address(), y.address()], &numbers].concat();
            let function = format!("spmm_{}", T::NAME);
            let Some(peer) = peers.algorithm("cusparse", &function, &stream, rows, &buffers)? else { continue };
            y.copy_from(&vec![T::of(f64::NAN); rows * vectors])?;
            let code = peer();
            let wrong = match code {
                0 => differs(&y.to_vec()?),
                _ => Some(format!("error {code}")),
            };
            match wrong {
                None => theirs.push((algorithm, peer)),
                Some(wrong) => self.report.failure(format!("{name}, cuSPARSE's {algorithm}: {wrong}")),
            }
        }
        let number = size_of::<T>();
        let bytes = (entries * (number + 4) + rows * 4 + (rows + columns) * vectors * number) as f64;
        let ours = || spmm(Run::on(&stream), &a, &x, vectors, &mut y);
        let (figures, fastest) = beside_cusparse(&stream, ours, &theirs, bytes)?;
        let method = format!("{:?}", a.method());
        self.report.row_of(&name, &[("method", method.as_str()), ("cuSPARSE's", fastest)], &figures);
        Ok(())
    }
}
