//! Sparse matrices times vectors, beside cuSPARSE: each of its algorithms for compressed rows, triplets and slices, of which the fastest counts. Its
//! formats of blocks are not among them. And conjugate gradients, beside those of CuPy.

mod matrices;
mod slices;
mod vectors;

use std::ffi::c_int;
use std::time::Instant;

use kernel_primitives::algorithms::{
    Csr, Gather, Planned, Run, Sell, Spmm, Spmv, SpmvMethod, Workspace, spmv, spmv_with,
};
use kernel_primitives::expr::{Tensor, assign_all, dot};
use kernel_primitives::functor::{Axpby, PlusTimes};
use kernel_primitives::{Accumulate, Arithmetic, Device, Result, Stream};

use crate::harness::{Options, Report, compare, compare_with_peers, median};
use crate::peers::Peers;
use matrices::{Matrix, hash};
use slices::Slices;

/// cuSPARSE's algorithms, in the order of their numbers in `benches/peers/sparse.cu`: two for compressed rows, two for triplets, and one for
/// slices.
const ALGORITHMS: [&str; 5] = ["CSR 1", "CSR 2", "COO 1", "COO 2", "SELL"];

/// The ways of a product.
const WAYS: [(&str, SpmvMethod); 9] = [
    ("1 lane ms", SpmvMethod::Rows { lanes: 1 }),
    ("2 lanes ms", SpmvMethod::Rows { lanes: 2 }),
    ("4 lanes ms", SpmvMethod::Rows { lanes: 4 }),
    ("8 lanes ms", SpmvMethod::Rows { lanes: 8 }),
    ("16 lanes ms", SpmvMethod::Rows { lanes: 16 }),
    ("32 lanes ms", SpmvMethod::Rows { lanes: 32 }),
    ("merge path ms", SpmvMethod::MergePath),
    ("by length ms", SpmvMethod::ByLength),
    ("window ms", SpmvMethod::Window),
];

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
    bench.rows::<f64>("f64 mesh 2^22", || Matrix::mesh(11), 1e-13)?;
    bench.rows::<f64>("f64 band 2^21", || Matrix::band(1 << 21), 1e-12)?;
    bench.rows::<f64>("f64 circuit 2^20", || Matrix::circuit(1 << 20), 1e-12)?;
    bench.rows::<f32>("f32 web 2^20", || Matrix::web(20, 1 << 24), 1e-3)?;
    bench.rows::<f64>("f64 blocks of 3 64^3", || Matrix::blocks(64), 1e-12)?;
    for vectors in [4, 32] {
        bench.several::<f32>("f32 Poisson 128^3", || Matrix::poisson(128), vectors, 1e-5)?;
        bench.several::<f64>("f64 blocks of 3 64^3", || Matrix::blocks(64), vectors, 1e-12)?;
    }
    bench.gradients(128)
}

struct Bench<'a> {
    stream: Stream,
    peers: Option<Peers>,
    report: &'a mut Report,
    workspace: Workspace,
}

impl Bench<'_> {
    /// Checks and measures a product, and a residual `z - A x`, in the format that is planned. `tolerance` is relative to the sum of the
    /// magnitudes.
    fn rows<T: Value>(&mut self, name: &str, matrix: impl FnOnce() -> Matrix, tolerance: f64) -> Result<()> {
        let (product, residual) = (format!("spmv {name}"), format!("spmv residual {name}"));
        let matrix = matrix();
        let values = matrix.values(T::of);
        let Matrix { columns, offsets, indices, .. } = matrix;
        let (rows, entries) = (offsets.len() - 1, indices.len());
        let items: Vec<T> = (0..columns).map(|column| T::of((hash(column) % 17) as f64 - 8.0)).collect();
        let stream = self.stream.clone();
        let csr = || Csr::new(&stream, (rows, columns), &offsets, &indices, &values);
        let (a, planned) = (csr()?, Planned::new(&stream, csr()?)?);
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

        spmv(Run::on(&stream).with(&mut self.workspace), &planned, &x, &mut y)?;
        if let Some(wrong) = differs(&y.to_vec()?, 1.0, 0.0) {
            self.report.failure(format!("{product}, ours: {wrong}"));
            return Ok(());
        }
        // The formats of the peers, of which slices are left out where they waste much.
        let row_indices = a.row_indices(&stream)?;
        let neighbours = Slices::of(&stream, &offsets, &indices, &values, 2 * entries)?;
        let in_rows = [a.offsets().address(), a.indices().address(), a.values().address()];
        let triplets = [row_indices.address(), a.indices().address(), a.values().address()];
        let mut theirs = Vec::new();
        for (number, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let Some(peers) = &self.peers else { break };
            let (arrays, slots) = match (number, &neighbours) {
                (0 | 1, _) => (in_rows, entries),
                (2 | 3, _) => (triplets, entries),
                (_, Some(slices)) => (slices.addresses(), slices.slots()),
                _ => continue,
            };
            let numbers = [columns, entries, number, slots].map(|number| number as u64);
            let buffers = [&arrays[..], &[x.address(), y.address()], &numbers].concat();
            let function = format!("spmv_{}{}", if number == 4 { "slices_" } else { "" }, T::NAME);
            let Some(peer) = peers.algorithm("cusparse", &function, &stream, rows, &buffers)? else { continue };
            y.copy_from(&vec![T::of(f64::NAN); rows])?;
            let code = peer();
            let wrong = match code {
                0 => differs(&y.to_vec()?, 1.0, 0.0),
                _ => Some(format!("error {code}")),
            };
            match wrong {
                None => theirs.push((algorithm, peer)),
                Some(wrong) => self.report.failure(format!("{product}, cuSPARSE's {algorithm}: {wrong}")),
            }
        }
        let workspace = &mut self.workspace;
        let ours = || spmv(Run::on(&stream).with(workspace), &planned, &x, &mut y);
        let (mut figures, fastest) = beside_cusparse(&stream, ours, &theirs, bytes)?;
        let (_, ms) = figures[0];
        drop(neighbours);
        // The same matrix in slices, where that wastes little.
        // The first time loads kernels.
        drop(Sell::from_csr(&stream, &a, WINDOW)?);
        stream.synchronize()?;
        let began = Instant::now();
        let slices = Sell::from_csr(&stream, &a, WINDOW)?;
        stream.synchronize()?;
        let sliced = began.elapsed().as_secs_f64() * 1e3;
        if slices.slots() < 2 * entries {
            y.copy_from(&vec![T::of(f64::NAN); rows])?;
            let workspace = &mut self.workspace;
            let mut ours = || spmv(Run::on(&stream).with(workspace), &slices, &x, &mut y);
            let in_slices = compare(&stream, &mut [&mut ours])?[0];
            match differs(&y.to_vec()?, 1.0, 0.0) {
                None => figures.extend([
                    ("in slices ms", in_slices),
                    ("slots by entries", slices.slots() as f64 / entries as f64),
                    ("sliced by products", sliced / in_slices),
                ]),
                Some(wrong) => self.report.failure(format!("{product}, in slices: {wrong}")),
            }
        }
        drop(slices);
        let chosen = a.method();
        let csr_method = format!("{chosen:?}");
        let (mut a, made) = made_again(&stream, a)?;
        let (method, planned_in) = match planned {
            Planned::Slices(_) => ("Slices", made + sliced),
            _ => (csr_method.as_str(), made),
        };
        figures.push(("made by products", planned_in / ms));
        self.report.row_of(&product, &[("method", method), ("cuSPARSE's", fastest)], &figures);

        // Each way that there is, by which the costs of the plan can be judged.
        let mut ways = Vec::new();
        for (way, method) in WAYS {
            a.set_method(method)?;
            y.copy_from(&vec![T::of(f64::NAN); rows])?;
            let workspace = &mut self.workspace;
            let mut ours = || spmv(Run::on(&stream).with(workspace), &a, &x, &mut y);
            ways.push((way, compare(&stream, &mut [&mut ours])?[0]));
            if let Some(wrong) = differs(&y.to_vec()?, 1.0, 0.0) {
                self.report.failure(format!("{product}, by {way}: {wrong}"));
            }
        }
        a.set_method(chosen)?;
        self.report.row_of(&format!("spmv by each way {name}"), &[("chosen", csr_method.as_str())], &ways);

        let axpby = Axpby { alpha: T::of(-1.0), beta: T::of(1.0) };
        let workspace = &mut self.workspace;
        let mut ours = || spmv_with(Run::on(&stream).with(workspace), &planned, &x, PlusTimes, axpby, &z, &mut y);
        let residual_ms = compare(&stream, &mut [&mut ours])?[0];
        if let Some(wrong) = differs(&y.to_vec()?, -1.0, 1.0) {
            self.report.failure(format!("{residual}, ours: {wrong}"));
            return Ok(());
        }
        self.report.row_of(
            &residual,
            &[("method", method)],
            &[("ms", residual_ms), ("of the product", residual_ms / ms)],
        );
        Ok(())
    }

    /// An iteration of conjugate gradients for Poisson's equation on a cube: a product, two scalar products, and two kernels that update the
    /// vectors; two iterations are a graph.
    fn gradients(&mut self, n: usize) -> Result<()> {
        let name = format!("conjugate gradients, an iteration, f64 Poisson {n}^3");
        let matrix = Matrix::poisson(n);
        let values = matrix.values(|value| value);
        let Matrix { columns, offsets, indices, .. } = matrix;
        let of_row = |row: usize| (offsets[row]..offsets[row + 1]).map(move |entry| (row, entry as usize));
        let entries: Vec<_> = (0..columns).flat_map(of_row).collect();
        let stream = self.stream.clone();
        let a = Planned::new(&stream, Csr::new(&stream, (columns, columns), &offsets, &indices, &values)?)?;
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

/// What a row of the report has, by name.
type Figures = Vec<(&'static str, f64)>;

/// The figures of a product of so many bytes, the milliseconds first, beside those of the fastest of cuSPARSE's algorithms; and its name.
fn beside_cusparse(
    stream: &Stream,
    mut ours: impl FnMut() -> Result<()>,
    theirs: &[(&'static str, impl Fn() -> c_int)],
    bytes: f64,
) -> Result<(Figures, &'static str)> {
    let times = compare_with_peers(stream, &mut [&mut ours], theirs.iter().map(|(name, peer)| (*name, peer)))?;
    let ms = times[0];
    let mut figures = vec![("ms", ms), ("bytes", bytes), ("GB/s", bytes / ms / 1e6)];
    let mut fastest = "none";
    if let Some((&best, (algorithm, _))) = times[1..].iter().zip(theirs).min_by(|(a, _), (b, _)| a.total_cmp(b)) {
        figures.extend([("cuSPARSE ms", best), ("ratio to cuSPARSE", best / ms)]);
        fastest = *algorithm;
    }
    Ok((figures, fastest))
}

/// The matrix checked and measured anew, as when it was made, and the milliseconds that it took: of the host, since it waits for the result.
fn made_again<T: Value>(stream: &Stream, mut a: Csr<T>) -> Result<(Csr<T>, f64)> {
    let shape = (a.rows(), a.columns());
    let mut times = Vec::new();
    for _ in 0..9 {
        let (offsets, indices, values) = a.into_buffers();
        stream.synchronize()?;
        let began = Instant::now();
        a = Csr::from_buffers(stream, shape, offsets, indices, values)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok((a, median(times)))
}

/// A number type that products are measured with.
trait Value:
    Arithmetic
    + Accumulate<Accum = Self>
    + Gather<u32, Self, ()>
    + Spmv<Self, u32, PlusTimes, Axpby<Self>, ()>
    + Spmm<Self, u32, PlusTimes, Axpby<Self>, ()>
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
