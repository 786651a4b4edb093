//! Stencils beside a kernel of a thread an element, one of tiles in shared memory, and PyTorch, whose times come from
//! `benches/peers/torch_peers.py`; and the copy of as many bytes, which is what they can reach.

use kernel_primitives::expr::{
    Boundary, Functions, PairFunctions, Reductions, Tensor, convolve, element_index, scalar, stencil,
};
use kernel_primitives::{Device, Result, Stream};

use crate::harness::{Options, Report, compare, compare_with_peers};
use crate::peers::Peers;

struct Bench<'a> {
    stream: Stream,
    peers: Option<Peers>,
    report: &'a mut Report,
}

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let peers = options.peers.as_deref().map(Peers::open);
    let mut bench = Bench { stream: device.stream()?, peers, report };
    let log2 = options.log2.min(28);
    bench.square(1 << (log2 / 2))?;
    bench.steps(1 << (log2 / 2), 8)?;
    bench.cube(if log2 < 28 { 1 << (log2 / 3) } else { 768 })?;
    for width in [9, 33] {
        bench.row_of(1 << log2, width)?;
    }
    bench.row_of(1 << log2.min(24), 2048)
}

/// Element `i` of what is read: small whole numbers, whose sums are exact.
fn value(i: usize) -> f32 {
    (i * 7 % 31) as f32
}

/// The place that is read for one that may lie outside.
fn clamped(i: usize, by: isize, extent: usize) -> usize {
    i.saturating_add_signed(by).min(extent - 1)
}

impl Bench<'_> {
    /// What is read, and where the results go, with their addresses.
    fn tensors(&self, shape: &[usize]) -> Result<([Tensor<f32>; 2], [u64; 2])> {
        let buffer = || self.stream.buffer_zeroed::<f32>(shape.iter().product());
        let buffers = [buffer()?, buffer()?];
        let addresses = [buffers[0].address(), buffers[1].address()];
        let [x, y] = buffers.map(|buffer| Tensor::from_buffer(&self.stream, shape, buffer));
        let (x, y) = (x?, y?);
        x.assign((element_index::<u64>() * 7).floor_rem(scalar(31u64)).cast::<f32>())?;
        Ok(([x, y], addresses))
    }

    /// A row: ours, the peers of that name on these addresses, and the copy. `expected` gives an element of the result; some hundred
    /// of them are looked at, the first and last among them.
    fn row(
        &mut self,
        name: &str,
        [x, y]: [&Tensor<f32>; 2],
        mut ours: impl FnMut() -> Result<()>,
        (peer, buffers): (&str, &[u64]),
        expected: impl Fn(usize) -> f32,
    ) -> Result<()> {
        let stream = self.stream.clone();
        let n = x.len();
        let agree = || -> Result<bool> {
            let (flat, part) = (y.reshape(n)?, 4096.min(n));
            let near = |begin: usize| -> Result<bool> {
                let found = flat.slice(begin as isize..(begin + part) as isize)?.to_vec()?;
                Ok(found.iter().enumerate().all(|(i, found)| *found == expected(begin + i)))
            };
            Ok(near(0)? && near((n - part) / 2)? && near(n - part)?)
        };
        // A row before may have left the right result.
        y.fill(f32::NAN)?;
        ours()?;
        if !agree()? {
            self.report.failure(format!("{name}, ours"));
            return Ok(());
        }
        let mut values = vec![];
        let mut theirs = Vec::new();
        if let Some(library) = &self.peers {
            for (prefix, ms, ratio) in [("cuda", "CUDA ms", "ratio to CUDA"), ("tiled", "tiled ms", "ratio to tiled")] {
                let Some(call) = library.algorithm(prefix, peer, &stream, n, buffers)? else { continue };
                y.fill(f32::NAN)?;
                if call() != 0 || !agree()? {
                    self.report.failure(format!("{name}, the peer of {ms}"));
                }
                theirs.push((ms, ratio, call));
            }
        }
        let mut copy = || y.assign(x);
        let named = theirs.iter().map(|(ms, _, call)| (*ms, call));
        let times = compare_with_peers(&stream, &mut [&mut ours, &mut copy], named)?;
        values.extend([("ms", times[0]), ("GB/s", 8.0 * n as f64 / times[0] / 1e6), ("of copy", times[1] / times[0])]);
        for ((ms, ratio, _), time) in theirs.iter().zip(&times[2..]) {
            values.extend([(*ms, *time), (*ratio, time / times[0])]);
        }
        self.report.row(name, &values);
        Ok(())
    }

    fn square(&mut self, side: usize) -> Result<()> {
        let ([x, y], addresses) = &self.tensors(&[side, side])?;
        let at = |i: usize, j: usize, di: isize, dj: isize| value(clamped(i, di, side) * side + clamped(j, dj, side));
        let points =
            || stencil(x, Boundary::Clamp, |n| 0.25 * (n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1])));
        self.row(
            &format!("stencil, 5 points, f32 {side}x{side}"),
            [x, y],
            || y.assign(points()),
            ("five_points", addresses),
            |k| {
                let (i, j) = (k / side, k % side);
                0.25 * (at(i, j, -1, 0) + at(i, j, 1, 0) + at(i, j, 0, -1) + at(i, j, 0, 1))
            },
        )?;
        // The norm of a residual: of no more traffic than the two tensors, which are read once.
        let ([f, _], _) = &self.tensors(&[side, side])?;
        let total = Tensor::<f32>::zeros(&self.stream, [])?;
        let norm = {
            let residual = f - points();
            (&residual * &residual).sum()
        };
        let name = format!("stencil, norm of a residual of 5 points, f32 {side}x{side}");
        // By an array of the residual, whose squares are summed in `f64`.
        let expected = Tensor::<f64>::zeros(&self.stream, [])?;
        y.assign(f - points())?;
        (y.cast::<f64>() * y.cast::<f64>()).sum().assign_to(&expected)?;
        norm.assign_to(&total)?;
        let (found, expected) = (f64::from(total.item()?), expected.item()?);
        if (found - expected).abs() > 1e-4 * expected {
            self.report.failure(format!("{name}, ours: {found} instead of {expected}"));
            return Ok(());
        }
        let times = compare(&self.stream.clone(), &mut [&mut || norm.assign_to(&total), &mut || y.assign(x)])?;
        self.report.row(
            &name,
            &[("ms", times[0]), ("GB/s", 8.0 * x.len() as f64 / times[0] / 1e6), ("of copy", times[1] / times[0])],
        );
        Ok(())
    }

    /// So many steps in one assignment, beside as many assignments, and a copy.
    fn steps(&mut self, side: usize, count: usize) -> Result<()> {
        let ([x, y], _) = &self.tensors(&[side, side])?;
        let ([z, _], _) = &self.tensors(&[side, side])?;
        let points = |of: &Tensor<f32>| {
            stencil(of, Boundary::Clamp, |n| 0.25 * (n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1])))
        };
        let name = format!("stencil, {count} steps of 5 points, f32 {side}x{side}");
        let mut together = || y.assign(points(x).steps(count));
        // The first reads what the steps read, and the others take turns.
        let mut apart = || {
            let turns = [z, y];
            z.assign(points(x))?;
            (1..count).try_for_each(|step| turns[step % 2].assign(points(turns[(step + 1) % 2])))
        };
        let difference = {
            apart()?;
            let expected = Tensor::<f32>::uninit(&self.stream, [side, side])?;
            expected.assign(if count % 2 == 1 { z } else { y })?;
            y.fill(f32::NAN)?;
            together()?;
            // A sum has what is NaN, too.
            (y - &expected).abs().sum().item()?
        };
        if difference != 0.0 {
            self.report.failure(format!("{name}, ours"));
            return Ok(());
        }
        let times = compare(&self.stream.clone(), &mut [&mut together, &mut apart, &mut || y.assign(x)])?;
        let moved = 8.0 * x.len() as f64;
        self.report.row(
            &name,
            &[
                ("ms", times[0]),
                ("GB/s", moved / times[0] / 1e6),
                ("of copy", times[2] / times[0]),
                ("single ms", times[1]),
                ("ratio to single", times[1] / times[0]),
            ],
        );
        Ok(())
    }

    fn cube(&mut self, side: usize) -> Result<()> {
        let ([x, y], addresses) = &self.tensors(&[side, side, side])?;
        let around = || {
            stencil(x, Boundary::Clamp, |n| {
                n.at([-1, 0, 0])
                    + n.at([1, 0, 0])
                    + n.at([0, -1, 0])
                    + n.at([0, 1, 0])
                    + n.at([0, 0, -1])
                    + n.at([0, 0, 1])
                    - 6.0 * n.at([0, 0, 0])
            })
        };
        self.row(
            &format!("stencil, 7 points, f32 {side}x{side}x{side}"),
            [x, y],
            || y.assign(around()),
            ("seven_points", addresses),
            |m| {
                let (i, j, k) = (m / side / side, m / side % side, m % side);
                let at = |di: isize, dj: isize, dk: isize| {
                    value((clamped(i, di, side) * side + clamped(j, dj, side)) * side + clamped(k, dk, side))
                };
                at(-1, 0, 0) + at(1, 0, 0) + at(0, -1, 0) + at(0, 1, 0) + at(0, 0, -1) + at(0, 0, 1) - 6.0 * at(0, 0, 0)
            },
        )
    }

    fn row_of(&mut self, n: usize, width: usize) -> Result<()> {
        let ([x, y], addresses) = &self.tensors(&[n])?;
        let weights: Vec<f32> = (0..width).map(|k| (k % 5) as f32 / 8.0).collect();
        let table = self.stream.buffer_from(&weights)?;
        let origin = width as isize / 2;
        let expected = |i: usize| {
            let terms = weights.iter().enumerate();
            terms.map(|(k, weight)| weight * value(clamped(i, k as isize - origin, n))).sum()
        };
        // The peers' compilers fuse products and sums.
        for (how, contracted) in [("", false), (", contracted", true)] {
            self.row(
                &format!("stencil, width {width}, f32 {n}{how}"),
                [x, y],
                || {
                    let sum = convolve(x, &weights, origin, Boundary::Clamp);
                    y.assign(if contracted { sum.contract() } else { sum })
                },
                (&format!("row_{width}"), &[addresses[0], addresses[1], table.address()]),
                expected,
            )?;
        }
        Ok(())
    }
}
