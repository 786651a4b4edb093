//! Fourier transforms of arrays beside cuFFT; and the copy of as many bytes, which is what one pass can reach.

use kernel_primitives::algorithms::{FftChain, FftPlan, Run, Workspace, fft, ifft, rfft};
use kernel_primitives::expr::{ComplexOperand, ComplexTensor, Tensor};
use kernel_primitives::{Buffer, Complex, Device, Element, Result, Stream};

use crate::harness::{Options, Report, compare, compare_with_peers};
use crate::kernels::fourier::{ROW, convolved_rows, weighted_rows};
use crate::peers::Peers;

/// Shapes, and how many of their last axes are transformed.
const COMPLEX: [(&[usize], usize); 11] = [
    (&[1 << 18, 256], 1),
    (&[1 << 16, 1024], 1),
    (&[1 << 14, 4096], 1),
    (&[64, 1 << 20], 1),
    (&[1 << 24], 1),
    (&[1 << 26], 1),
    (&[1 << 16, 1000], 1),
    (&[1 << 14, 1009], 1),
    (&[4096, 4096], 2),
    (&[256, 256, 256], 3),
    (&[512, 512, 512], 3),
];
const REAL: [(&[usize], usize); 2] = [(&[1 << 16, 1024], 1), (&[512, 512, 512], 3)];

struct Bench<'a> {
    stream: Stream,
    peers: Option<Peers>,
    report: &'a mut Report,
}

/// Two impulses in each transform: where they are, counted over the transformed axes, and their sizes.
const IMPULSES: [(usize, f64); 2] = [(1, 1.0), (77, -0.5)];

/// The transform of the impulses at a place among the bins: its parts.
fn expected(axes: &[usize], bins: &[usize], place: usize) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (at, size) in IMPULSES {
        let (mut at, mut place, mut turns) = (at, place, 0.0);
        for (&n, &bins) in axes.iter().zip(bins).rev() {
            turns += (at % n * (place % bins) % n) as f64 / n as f64;
            (at, place) = (at / n, place / bins);
        }
        let (sin, cos) = (std::f64::consts::TAU * turns).sin_cos();
        sum = (sum.0 + size * cos, sum.1 - size * sin);
    }
    sum
}

/// The shape of a half spectrum.
fn halved(axes: &[usize]) -> Vec<usize> {
    let mut half = axes.to_vec();
    let last = half.len() - 1;
    half[last] = half[last] / 2 + 1;
    half
}

/// Some places of so many: the first ones, some in the middle and the last ones.
fn parts(n: usize) -> impl Iterator<Item = usize> {
    let part = 1000.min(n);
    (0..part).chain((n - part) / 2..(n + part) / 2).chain(n - part..n)
}

/// A number without a pattern, between -1 and 1.
fn noise(i: usize) -> f64 {
    let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / f64::from(1 << 23) - 1.0
}

fn text(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

/// A row: of the element type and the call, with the name of cuFFT's.
macro_rules! row {
    ($bench:expr, $call:ident, $t:ty, $item:ty, $peer:literal, $shape:expr, $axes:expr, $of:expr) => {{
        let (bench, shape, axes): (&mut Bench, &[usize], usize) = ($bench, $shape, $axes);
        let (stream, workspace) = (bench.stream.clone(), &mut Workspace::new());
        let transformed: Vec<usize> = (shape.len() - axes..shape.len()).collect();
        let plan = FftPlan::<$t>::new(&stream, shape, &transformed)?;
        let name = format!("{} {} {}, axes {axes}", stringify!($call), stringify!($t), text(shape));
        let run =
            |x: &Buffer<$item>, y: &mut Buffer<Complex<$t>>| $call(Run::on(&stream).with(&mut *workspace), &plan, x, y);
        bench.measure(&name, $peer, shape, axes, $of, run)
    }};
}

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let peers = options.peers.as_deref().map(Peers::open);
    let mut bench = Bench { stream: device.stream()?, peers, report };
    let fits = |shape: &[usize]| shape.iter().product::<usize>() <= 1 << options.log2;
    for (shape, axes) in COMPLEX.into_iter().filter(|(shape, _)| fits(shape)) {
        row!(&mut bench, fft, f32, Complex<f32>, "c2c_f32", shape, axes, |re: f64, im| Complex::new(
            re as f32, im as f32
        ))?;
        row!(&mut bench, fft, f64, Complex<f64>, "c2c_f64", shape, axes, Complex::new)?;
    }
    for (shape, axes) in REAL.into_iter().filter(|(shape, _)| fits(shape)) {
        row!(&mut bench, rfft, f32, f32, "r2c_f32", shape, axes, |re, _| re as f32)?;
    }
    if options.log2 >= 20 {
        bench.fused(1 << (options.log2 - 10).min(16))?;
    }
    Ok(())
}

impl Bench<'_> {
    /// A window, a transform, a product and the inverse: in one compiled kernel, in one that is generated of expressions, and in four calls.
    fn fused(&mut self, rows: usize) -> Result<()> {
        let stream = self.stream.clone();
        let plan = FftPlan::<f32>::new(&stream, &[rows, ROW], &[1])?;
        let complex = |x: (f64, f64)| Complex::new(x.0 as f32, x.1 as f32);
        // An impulse at 1, which the filter puts 3 places further.
        let x: Vec<_> = (0..rows * ROW).map(|i| complex(((i % ROW == 1) as u32 as f64, 0.0))).collect();
        let response = |k: usize| (std::f64::consts::TAU * (3 * k % ROW) as f64 / ROW as f64).sin_cos();
        let response: Vec<_> =
            (0..ROW).map(response).map(|(sin, cos)| complex((cos / ROW as f64, -sin / ROW as f64))).collect();
        let window: Vec<f32> = (0..ROW).map(|i| 1.0 / (1 + i) as f32).collect();
        let (x, response, window) =
            (stream.buffer_from(&x)?, stream.buffer_from(&response)?, stream.buffer_from(&window)?);
        let mut out = [stream.buffer_zeroed::<Complex<f32>>(x.len())?, stream.buffer_zeroed(x.len())?];
        let mut parts = [stream.buffer_zeroed::<Complex<f32>>(x.len())?, stream.buffer_zeroed(x.len())?];
        let chained = ComplexTensor::zeros(&stream, [rows, ROW])?;
        let numbers = ComplexTensor::from_slice(&stream, [rows, ROW], &x.to_vec()?)?;
        let spectrum = ComplexTensor::from_slice(&stream, ROW, &response.to_vec()?)?;
        let weights = Tensor::from_slice(&stream, ROW, &window.to_vec()?)?;
        let [one, four] = &mut out;
        let blocks = (rows as u32, 64);
        let mut fused = || convolved_rows::launch(&stream, blocks, &x, &window, &response, &mut *one);
        let mut calls = || {
            let [from, to] = &mut parts;
            weighted_rows::<f32>::launch(&stream, blocks, &x, &window, &mut *from)?;
            fft(&stream, &plan, &*from, &mut *to)?;
            weighted_rows::<Complex<f32>>::launch(&stream, blocks, &*to, &response, &mut *from)?;
            ifft(&stream, &plan, &*from, &mut *four)
        };
        let mut chain = || {
            let windowed = numbers.complex().times(&weights);
            FftChain::new(&plan, windowed).forward().map(|y| y * &spectrum).inverse().assign(&chained)
        };
        let [from, to] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, [2 * x.len()]));
        let (from, to) = (from?, to?);
        let mut copy = || to.assign(&from);
        let times = compare(&stream, &mut [&mut fused, &mut calls, &mut copy, &mut chain])?;
        for found in [out[0].to_vec()?, out[1].to_vec()?, chained.to_vec()?] {
            let wrong = found.iter().enumerate().find(|(i, found)| {
                let expected = if i % ROW == 4 { 0.5 } else { 0.0 };
                (found.re - expected).abs() + found.im.abs() > 1e-6
            });
            if let Some(wrong) = wrong {
                self.report.failure(format!("convolved rows: {wrong:?}"));
                return Ok(());
            }
        }
        let figures =
            [("ms", times[0]), ("of copy", times[2] / times[0]), ("ratio to four calls", times[1] / times[0])];
        self.report.row(&format!("window, fft, product, ifft f32 {rows}x{ROW}"), &figures);
        let figures =
            [("ms", times[3]), ("of copy", times[2] / times[3]), ("ratio to four calls", times[1] / times[3])];
        self.report.row(&format!("window, fft, product, ifft as expressions f32 {rows}x{ROW}"), &figures);
        Ok(())
    }

    /// Checks and measures a transform of the last `axes` of a shape. `item` makes an item of the input.
    fn measure<X: Element, C: Element + Bin>(
        &mut self,
        name: &str,
        peer: &str,
        shape: &[usize],
        axes: usize,
        item: impl Fn(f64, f64) -> X,
        mut run: impl FnMut(&Buffer<X>, &mut Buffer<C>) -> Result<()>,
    ) -> Result<()> {
        let stream = self.stream.clone();
        let axes = &shape[shape.len() - axes..];
        let bins = if size_of::<X>() < size_of::<C>() { halved(axes) } else { axes.to_vec() };
        let (all, n, m) =
            (shape.iter().product::<usize>(), axes.iter().product::<usize>(), bins.iter().product::<usize>());
        let results = all / n * m;
        let impulses: Vec<X> = (0..all)
            .map(|i| item(IMPULSES.iter().filter(|(at, _)| i % n == *at).map(|(_, size)| size).sum(), 0.0))
            .collect();
        let (mut x, mut y) = (stream.buffer_from(&impulses)?, stream.buffer_zeroed::<C>(results)?);
        let wrong = |y: &Buffer<C>| -> Result<Option<String>> {
            let found = y.to_vec()?;
            Ok(parts(results).find_map(|i| {
                let (found, expected) = (found[i].wide(), expected(axes, &bins, i % m));
                let near = (found.0 - expected.0).abs() + (found.1 - expected.1).abs() < C::TOLERANCE;
                (!near).then(|| format!("{i} is {found:?} and not {expected:?}"))
            }))
        };
        run(&x, &mut y)?;
        if let Some(wrong) = wrong(&y)? {
            self.report.failure(format!("{name}, ours: {wrong}"));
            return Ok(());
        }
        let numbers: Vec<u64> = [all / n, axes.len()].iter().chain(axes).map(|&n| n as u64).collect();
        let buffers = [&[x.address(), y.address()][..], &numbers].concat();
        let theirs = match &self.peers {
            Some(peers) => peers.algorithm("cufft", peer, &stream, all, &buffers)?,
            None => None,
        };
        if let Some(theirs) = &theirs {
            y.copy_from(&vec![C::default(); results])?;
            let code = theirs();
            let wrong = if code == 0 { wrong(&y)? } else { Some(format!("error {code}")) };
            if let Some(wrong) = wrong {
                self.report.failure(format!("{name}, cuFFT: {wrong}"));
            }
        }
        // Times are of numbers without a pattern.
        x.copy_from(&(0..all).map(|i| item(noise(2 * i), noise(2 * i + 1))).collect::<Vec<_>>())?;
        let bytes = all * size_of::<X>() + results * size_of::<C>();
        let [from, to] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, [bytes / 8]));
        let (from, to) = (from?, to?);
        let mut ours = || run(&x, &mut y);
        let mut copy = || to.assign(&from);
        let named = theirs.as_ref().map(|theirs| ("cuFFT", theirs));
        let times = compare_with_peers(&stream, &mut [&mut ours, &mut copy], named)?;
        let mut figures =
            vec![("ms", times[0]), ("GB/s", bytes as f64 / times[0] / 1e6), ("of copy", times[1] / times[0])];
        if let Some(ms) = times.get(2) {
            figures.extend([("cuFFT ms", *ms), ("ratio to cuFFT", ms / times[0])]);
        }
        self.report.row(name, &figures);
        Ok(())
    }
}

/// A result.
trait Bin: Default {
    const TOLERANCE: f64;
    fn wide(self) -> (f64, f64);
}

impl Bin for Complex<f32> {
    const TOLERANCE: f64 = 1e-5;
    fn wide(self) -> (f64, f64) {
        (self.re.into(), self.im.into())
    }
}

impl Bin for Complex<f64> {
    const TOLERANCE: f64 = 1e-13;
    fn wide(self) -> (f64, f64) {
        (self.re, self.im)
    }
}
