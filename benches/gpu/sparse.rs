//! Sparse matrices times vectors, beside cuSPARSE: each of its algorithms for compressed rows, of which the faster one counts. And conjugate
//! gradients, beside those of CuPy.

use kernel_primitives::algorithms::{Csr, Gather, Run, Sell, Spmv, Workspace, spmv, spmv_with};
use kernel_primitives::expr::{Tensor, assign_all, dot};
use kernel_primitives::functor::{Axpby, PlusTimes};
use kernel_primitives::{Accumulate, Arithmetic, Device, Result, Stream};

use crate::harness::{Options, Report, compare};
use crate::peers::Peers;

/// cuSPARSE's `CUSPARSE_SPMV_CSR_ALG1` and `CUSPARSE_SPMV_CSR_ALG2`.
const ALGORITHMS: [u64; 2] = [2, 3];

/// Rows of a window in which the rows of slices are sorted.
const WINDOW: usize = 4096;

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let peers = options.peers.as_deref().map(Peers::open);
    let mut bench = Bench { stream: device.stream()?, peers, report, workspace: Workspace::new() };
    bench.rows::<f32>("f32 Poisson 256^3", || Matrix::poisson(256), 1e-5)?;
    bench.rows::<f64>("f64 Poisson 256^3", || Matrix::poisson(256), 1e-13)?;
    bench.rows::<f64>("f64 Poisson 128^3", || Matrix::poisson(128), 1e-13)?;
    bench.rows::<f32>("f32 random 2^22", || Matrix::random(1 << 22, |_| 16), 1e-4)?;
    bench.rows::<f32>("f32 Zipf 2^20", Matrix::zipf, 1e-3)?;
    bench.gradients(128)
}

struct Bench<'a> {
    stream: Stream,
    peers: Option<Peers>,
    report: &'a mut Report,
    workspace: Workspace,
}

impl Bench<'_> {
    /// Checks and measures a product, and a residual `z - A x`. `tolerance` is relative to the sum of the magnitudes.
    fn rows<T: Value>(&mut self, name: &str, matrix: impl FnOnce() -> Matrix, tolerance: f64) -> Result<()> {
        let (product, residual) = (format!("spmv {name}"), format!("spmv residual {name}"));
        let Matrix { columns, offsets, indices, value } = matrix();
        let (rows, entries) = (offsets.len() - 1, indices.len());
        let of_row = |row: usize| (offsets[row]..offsets[row + 1]).map(move |entry| (row, entry as usize));
        let values = (0..rows).flat_map(of_row).map(|(row, entry)| T::of(value(row, indices[entry] as usize, entry)));
        let values: Vec<T> = values.collect();
        let items: Vec<T> = (0..columns).map(|column| T::of((hash(column) % 17) as f64 - 8.0)).collect();
        let stream = self.stream.clone();
        let a = Csr::new(&stream, (rows, columns), &offsets, &indices, &values)?;
        let (x, z) = (stream.buffer_from(&items)?, stream.buffer_from(&vec![T::of(1.0); rows])?);
        let mut y = stream.buffer_from(&vec![T::of(f64::NAN); rows])?;

        // The first rows, the last ones, and the longest.
        let longest = (0..rows).max_by_key(|&row| offsets[row + 1] - offsets[row]);
        let checked: Vec<usize> = (0..rows.min(1000)).chain(rows.saturating_sub(1000)..rows).chain(longest).collect();
        let differs = |found: &[T], sign: f64, start: f64| {
            checked.iter().find_map(|&row| {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                let terms = entries.map(|entry| values[entry].to_f64() * items[indices[entry] as usize].to_f64());
                let (sum, size) = terms.fold((0.0, 1.0), |(sum, size), term: f64| (sum + term, size + term.abs()));
                let (found, expected) = (found[row].to_f64(), start + sign * sum);
                // A NaN is no result either.
                let near = (found - expected).abs() <= tolerance * size;
                (!near).then(|| format!("row {row} is {found} and not {expected}"))
            })
        };
        let bytes = (entries * (size_of::<T>() + 4) + rows * (size_of::<T>() + 4) + columns * size_of::<T>()) as f64;

        spmv(Run::on(&stream).with(&mut self.workspace), &a, &x, &mut y)?;
        if let Some(wrong) = differs(&y.to_vec()?, 1.0, 0.0) {
            self.report.failure(format!("{product}, ours: {wrong}"));
            return Ok(());
        }
        let mut theirs = Vec::new();
        for algorithm in ALGORITHMS {
            let Some(peers) = &self.peers else { break };
            let buffers =
                [a.offsets().address(), a.indices().address(), a.values().address(), x.address(), y.address()];
            let numbers = [columns as u64, entries as u64, algorithm];
            let buffers = [&buffers[..], &numbers].concat();
            let function = format!("spmv_{}", T::NAME);
            let Some(peer) = peers.algorithm("cusparse", &function, &stream, rows, &buffers)? else { break };
            y.copy_from(&vec![T::of(f64::NAN); rows])?;
            let code = peer();
            let wrong = match code {
                0 => differs(&y.to_vec()?, 1.0, 0.0),
                _ => Some(format!("error {code}")),
            };
            match wrong {
                None => theirs.push(peer),
                Some(wrong) => self.report.failure(format!("{product}, cuSPARSE's algorithm {algorithm}: {wrong}")),
            }
        }
        let workspace = &mut self.workspace;
        let mut ours = || spmv(Run::on(&stream).with(workspace), &a, &x, &mut y);
        let mut run_theirs: Vec<_> = theirs
            .iter()
            .map(|peer| {
                move || {
                    assert_eq!(peer(), 0, "cuSPARSE failed");
                    Ok(())
                }
            })
            .collect();
        let mut contenders: Vec<&mut dyn FnMut() -> Result<()>> = vec![&mut ours];
        contenders.extend(run_theirs.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>));
        let times = compare(&stream, &mut contenders)?;
        let ms = times[0];
        let mut figures = vec![("ms", ms), ("bytes", bytes), ("GB/s", bytes / ms / 1e6)];
        if let Some(best) = times[1..].iter().copied().reduce(f64::min) {
            figures.extend([("cuSPARSE ms", best), ("ratio to cuSPARSE", best / ms)]);
        }
        // The same matrix in slices, where that wastes little.
        let slices = Sell::from_csr(&stream, &a, WINDOW)?;
        if slices.slots() < 2 * entries {
            let workspace = &mut self.workspace;
            let mut ours = || spmv(Run::on(&stream).with(workspace), &slices, &x, &mut y);
            let in_slices = compare(&stream, &mut [&mut ours])?[0];
            match differs(&y.to_vec()?, 1.0, 0.0) {
                None => figures.extend([
                    ("in slices ms", in_slices),
                    ("slots by entries", slices.slots() as f64 / entries as f64),
                ]),
                Some(wrong) => self.report.failure(format!("{product}, in slices: {wrong}")),
            }
        }
        drop(slices);
        let method = format!("{:?}", a.method());
        self.report.row_of(&product, &[("method", method.as_str())], &figures);

        let axpby = Axpby { alpha: T::of(-1.0), beta: T::of(1.0) };
        let workspace = &mut self.workspace;
        let mut ours = || spmv_with(Run::on(&stream).with(workspace), &a, &x, PlusTimes, axpby, &z, &mut y);
        let residual_ms = compare(&stream, &mut [&mut ours])?[0];
        if let Some(wrong) = differs(&y.to_vec()?, -1.0, 1.0) {
            self.report.failure(format!("{residual}, ours: {wrong}"));
            return Ok(());
        }
        self.report.row_of(
            &residual,
            &[("method", method.as_str())],
            &[("ms", residual_ms), ("of the product", residual_ms / ms)],
        );
        Ok(())
    }

    /// An iteration of conjugate gradients for Poisson's equation on a cube: a product, two scalar products, and two kernels that update the
    /// vectors; two iterations are a graph.
    fn gradients(&mut self, n: usize) -> Result<()> {
        let name = format!("conjugate gradients, an iteration, f64 Poisson {n}^3");
        let Matrix { columns, offsets, indices, value } = Matrix::poisson(n);
        let of_row = |row: usize| (offsets[row]..offsets[row + 1]).map(move |entry| (row, entry as usize));
        let entries: Vec<_> = (0..columns).flat_map(of_row).collect();
        let values: Vec<f64> = entries.iter().map(|&(row, entry)| value(row, indices[entry] as usize, entry)).collect();
        let stream = self.stream.clone();
        let a = Csr::new(&stream, (columns, columns), &offsets, &indices, &values)?;
        let sources: Vec<f64> = (0..columns).map(|row| (hash(row) % 17) as f64).collect();
        let vector = |values: &[f64]| Tensor::from_slice(&stream, columns, values);
        let (x, r, p) = (vector(&vec![0.0; columns])?, vector(&sources)?, vector(&sources)?);
        let mut q = vector(&sources)?;
        let squares = [Tensor::<f64>::zeros(&stream, [])?, Tensor::zeros(&stream, [])?];
        let energy = Tensor::<f64>::zeros(&stream, [])?;
        dot(&r, &r).assign_to(&squares[0])?;
        let workspace = &mut self.workspace;
        let mut two = |stream: &Stream| -> Result<()> {
            for turn in 0..2 {
                let of = p.as_slice().expect("its elements lie in a row");
                let product = q.as_slice_mut().expect("it has no other view between steps");
                spmv(Run::on(stream).with(&mut *workspace), &a, of, product)?;
                let [x, r, p, q] = [&x, &r, &p, &q].map(|tensor| tensor.on(stream));
                let [square, next, energy] =
                    [&squares[turn], &squares[1 - turn], &energy].map(|tensor| tensor.on(stream));
                dot(&p, &q).assign_to(&energy)?;
                let length = || &square / &energy;
                assign_all([x.to(&x + length() * &p), r.to(&r - length() * &q)])?;
                dot(&r, &r).assign_to(&next)?;
                p.assign(&r + &next / &square * &p)?;
            }
            Ok(())
        };
        two(&stream)?;
        let graph = stream.capture(two)?;
        for _ in 0..20 {
            graph.launch(&stream)?;
        }
        // What the iterations say of the residual is what the solution says.
        let (solution, norm) = (x.to_vec()?, squares[0].item()?.sqrt());
        let mut residual = sources;
        for (&(row, entry), value) in entries.iter().zip(&values) {
            residual[row] -= value * solution[indices[entry] as usize];
        }
        let expected = residual.iter().map(|x| x * x).sum::<f64>().sqrt();
        let near = (norm - expected).abs() <= 1e-9 * expected;
        if !near {
            self.report.failure(format!("{name}, ours: the residual is {norm} and not {expected}"));
            return Ok(());
        }
        let ms = compare(&stream, &mut [&mut || graph.launch(&stream)])?[0] / 2.0;
        self.report.row(&name, &[("ms", ms)]);
        Ok(())
    }
}

/// A number type that products are measured with.
trait Value:
    Arithmetic + Accumulate<Accum = Self> + Gather<u32, Self, ()> + Spmv<Self, u32, PlusTimes, Axpby<Self>, ()>
{
    /// Its name among the peers' functions.
    const NAME: &'static str;
    fn of(number: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Value for f32 {
    const NAME: &'static str = "f32";
    fn of(number: f64) -> Self {
        number as f32
    }
    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Value for f64 {
    const NAME: &'static str = "f64";
    fn of(number: f64) -> Self {
        number
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// Where a matrix has entries, and their values.
struct Matrix {
    columns: usize,
    offsets: Vec<u32>,
    indices: Vec<u32>,
    /// The value of an entry by its row, its column and its number.
    value: fn(usize, usize, usize) -> f64,
}

impl Matrix {
    /// Poisson's equation on a cube of `n` points along an edge, by seven-point differences: row by row, six times a point less its
    /// neighbours.
    fn poisson(n: usize) -> Self {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..n * n * n {
            let (i, j, k) = (row / (n * n), row / n % n, row % n);
            let neighbours = [
                (i > 0, row.wrapping_sub(n * n)),
                (j > 0, row.wrapping_sub(n)),
                (k > 0, row.wrapping_sub(1)),
                (true, row),
                (k + 1 < n, row + 1),
                (j + 1 < n, row + n),
                (i + 1 < n, row + n * n),
            ];
            indices.extend(neighbours.iter().filter(|(inside, _)| *inside).map(|&(_, column)| column as u32));
            offsets.push(indices.len() as u32);
        }
        Self { columns: n * n * n, offsets, indices, value: |row, column, _| if row == column { 6.0 } else { -1.0 } }
    }

    /// A square matrix with rows of these lengths and columns at random.
    fn random(rows: usize, length: impl Fn(usize) -> usize) -> Self {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            let begin = indices.len();
            indices.extend((0..length(row)).map(|entry| (hash(begin + entry) % rows as u64) as u32));
            offsets.push(indices.len() as u32);
        }
        Self { columns: rows, offsets, indices, value: |_, _, entry| (hash(!entry) % 17) as f64 - 8.0 }
    }

    /// 2^20 rows, of which the one of rank `r` has 7.7 million by `r` entries, or as many as there are columns: some 98 million in all. The
    /// ranks lie scattered.
    fn zipf() -> Self {
        const ROWS: usize = 1 << 20;
        Self::random(ROWS, |row| {
            let rank = row * 0x9_e377 % ROWS + 1;
            (7_700_000 / rank).min(ROWS)
        })
    }
}

/// Random bits by a number (splitmix64).
fn hash(number: usize) -> u64 {
    let z = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
