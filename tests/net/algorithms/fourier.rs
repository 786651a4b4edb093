//! Fourier transforms of arrays.

use kernel_primitives::algorithms::{
    FftKind, FftPlan, Run, fft, fft_by, fft_in_place, ifft, ifft_in_place, irfft, rfft,
};
use kernel_primitives::functor::Conjugate;
use kernel_primitives::{Complex, Result, Stream};

use crate::case::{Case, Lengths};
use crate::data::{floats, reals};
use crate::items::Item;
use crate::subject::{Column, Inputs, Place, Short, Subject, near, near_complex, subject};

/// A type of numbers of an array.
trait Number: Item {
    /// Makes a number from its parts. A real number has only the first one.
    fn of_parts(re: f64, im: f64) -> Self;

    fn wide(self) -> Complex<f64>;
}

impl Number for f32 {
    fn of_parts(re: f64, _: f64) -> Self {
        re as f32
    }
    fn wide(self) -> Complex<f64> {
        Complex::from(f64::from(self))
    }
}

impl Number for Complex<f32> {
    fn of_parts(re: f64, im: f64) -> Self {
        Self::new(re as f32, im as f32)
    }
    fn wide(self) -> Complex<f64> {
        Complex::new(self.re.into(), self.im.into())
    }
}

/// An array on the host. It is transformed along one axis, or along both. The shape depends only on the parameters. In the first
/// usual shape, all items are one line.
struct Array<T> {
    shape: [usize; 2],
    axes: Vec<usize>,
    x: Vec<T>,
}

impl<T: Number> Array<T> {
    fn of(case: &Case) -> Self {
        let mut param = case.param(31);
        let drawn = match param.below(4) {
            0 => param.one_of(&[64, 101, 128, 210, 1000]),
            _ => 1 + param.below(40),
        };
        let is_line = case.usual([true, false]).unwrap_or(false);
        let n = if is_line { case.len.max(1) } else { drawn };
        let rows = case.len / n;
        let (shape, axes) = match param.below(if rows == 0 { 2 } else { 3 }) {
            _ if is_line => ([rows, n], vec![1]),
            0 => ([rows, n], vec![1]),
            1 => ([n, rows], vec![0]),
            _ => ([rows, n], if param.below(2) == 0 { vec![0, 1] } else { vec![1, 0] }),
        };
        let parts = reals(case, 0, rows * n).into_iter().zip(reals(case, 1, rows * n));
        Self { shape, axes, x: parts.map(|(re, im)| T::of_parts(re, im)).collect() }
    }
}

impl<T: Number> Inputs for Array<T> {
    type Device = (FftPlan<f32>, Column<T>);

    fn upload(&self, stream: &Stream, start: usize) -> Result<Self::Device> {
        Ok((FftPlan::new(stream, &self.shape, &self.axes)?, Column::upload(stream, &self.x, start)?))
    }

    fn refill(&self, (_, x): &mut Self::Device) -> Result<()> {
        x.refill(&self.x)
    }
}

impl<T: Number> Array<T> {
    /// Returns the largest error of results.
    fn bound(&self) -> f64 {
        let norm = self.x.iter().map(|x| x.wide().norm_sqr()).sum::<f64>().sqrt();
        8.0 * f64::from(f32::EPSILON) * norm * (2.0 + (self.x.len() as f64 + 1.0).log2())
    }

    fn wide(&self) -> Vec<Complex<f64>> {
        self.x.iter().map(|x| x.wide()).collect()
    }

    /// Returns the transform.
    fn transform(&self) -> Vec<Complex<f64>> {
        self.transform_of(self.wide())
    }

    /// Returns the transform of an array of the same shape.
    fn transform_of(&self, mut x: Vec<Complex<f64>>) -> Vec<Complex<f64>> {
        for &axis in &self.axes {
            let (n, step) = (self.shape[axis], if axis == 0 { self.shape[1] } else { 1 });
            let root = |i: usize| {
                let (sin, cos) = (-std::f64::consts::TAU * i as f64 / n as f64).sin_cos();
                Complex::new(cos, sin)
            };
            let roots: Vec<_> = (0..n).map(root).collect();
            for first in (0..x.len()).filter(|i| i / step % n == 0) {
                let own: Vec<_> = (0..n).map(|e| x[first + e * step]).collect();
                for k in 0..n {
                    x[first + k * step] = own.iter().enumerate().map(|(j, x)| x * roots[j * k % n]).sum();
                }
            }
        }
        x
    }

    fn forward(&self) -> Vec<(Complex<f64>, f64)> {
        let bound = self.bound();
        self.transform().into_iter().map(|x| (x, bound)).collect()
    }

    /// Returns the inverse. For a real array, it is the conjugate of the transform.
    fn inverse(&self) -> Vec<(Complex<f64>, f64)> {
        let conjugates = self.wide().iter().map(Complex::conj).collect();
        let bound = self.bound();
        self.transform_of(conjugates).into_iter().map(|x| (x.conj(), bound)).collect()
    }

    fn half(&self) -> Vec<(Complex<f64>, f64)> {
        let axis = self.axes[self.axes.len() - 1];
        let (n, step) = (self.shape[axis], if axis == 0 { self.shape[1] } else { 1 });
        self.forward().into_iter().enumerate().filter(|(i, _)| i / step % n <= n / 2).map(|(_, x)| x).collect()
    }

    /// Returns the inverse of the transform, or the transform of the inverse.
    fn there_and_back(&self) -> Vec<(Complex<f64>, f64)> {
        let factor = self.axes.iter().map(|&axis| self.shape[axis]).product::<usize>() as f64;
        let bound = 2.0 * self.bound() * factor.sqrt();
        self.wide().into_iter().map(|x| (x * factor, bound)).collect()
    }
}

/// Returns whether transforms of this length have one pass along one axis. Its factors are small primes.
fn is_one_pass(mut n: usize) -> bool {
    for prime in [2, 3, 5, 7, 11, 13] {
        while n.is_multiple_of(prime) {
            n /= prime;
        }
    }
    n == 1
}

/// Half spectra without imaginary parts. Each row has one.
struct Halves {
    n: usize,
    x: Vec<f32>,
}

impl Halves {
    fn of(case: &Case) -> Self {
        let mut param = case.param(31);
        let drawn = if param.below(4) == 0 { param.one_of(&[64, 101, 1000]) } else { 1 + param.below(40) };
        let n = case.usual([case.len.max(1), drawn]).unwrap_or(drawn);
        Self { n, x: floats(case, 0, case.len / n * (n / 2 + 1)) }
    }

    /// Returns the whole spectra.
    fn whole(&self) -> Array<f32> {
        let rows = self.x.chunks(self.n / 2 + 1);
        let shape = [rows.len(), self.n];
        let x = rows.flat_map(|half| (0..self.n).map(|k| half[k.min(self.n - k)])).collect();
        Array { shape, axes: vec![1], x }
    }
}

impl Inputs for Halves {
    type Device = (FftPlan<f32>, Column<f32>);

    fn upload(&self, stream: &Stream, start: usize) -> Result<Self::Device> {
        Ok((FftPlan::new(stream, &self.whole().shape, &[1])?, Column::upload(stream, &self.x, start)?))
    }

    fn refill(&self, (_, x): &mut Self::Device) -> Result<()> {
        x.refill(&self.x)
    }
}

/// Returns the run of the first of two calls. The second call runs after it.
fn first<'a>(place: &'a mut Place<'_>) -> Run<'a> {
    Place { stream: place.stream, workspace: place.workspace.as_deref_mut(), tuning: place.tuning }.run()
}

pub fn subjects() -> Vec<Subject> {
    let lengths = || Lengths::near(&[64, 1000]).most(3000);
    let mut all = vec![
        subject(
            &["irfft"],
            "f32, f32, RealPart, f32",
            lengths(),
            Halves::of,
            |_, halves| {
                let whole = halves.whole();
                let bound = whole.bound();
                (near::<f32>(whole.transform().into_iter().map(|x| (x.re, bound)).collect()),)
            },
            |_, place, (plan, x), (out,)| irfft(place.run(), plan, x.get(), out.room()),
        )
        .takes_memory(|case| !is_one_pass(Halves::of(case).n)),
    ];
    macro_rules! transforms {
        ($($name:literal, $types:literal, $t:ty: $expected:ident, |$place:ident, $plan:ident, $x:ident, $out:ident| $call:expr;)*) => {$(
            let transform = subject(
                &[$name],
                $types,
                lengths(),
                Array::<$t>::of,
                |_, array| (near_complex::<f32>(array.$expected()),),
                |_, $place, ($plan, $x), ($out,)| $call,
            );
            all.push(transform.takes_memory(|case| {
                let Array { shape, axes, .. } = Array::<$t>::of(case);
                axes.len() > 1 || !is_one_pass(shape[axes[0]])
            }));
        )*};
    }
    transforms! {
        "fft", "f32", f32: forward, |place, plan, x, out| fft(place.run(), plan, x.get(), out.room());
        "ifft", "f32", f32: inverse, |place, plan, x, out| ifft(place.run(), plan, x.get(), out.room());
        "fft", "Complex<f32>", Complex<f32>: forward, |place, plan, x, out| fft(place.run(), plan, x.get(), out.room());
        "ifft", "Complex<f32>", Complex<f32>: inverse, |place, plan, x, out| {
            ifft(place.run(), plan, x.get(), out.room())
        };
        "rfft", "f32", f32: half, |place, plan, x, out| rfft(place.run(), plan, x.get(), out.room());
        "fft_by", "f32", f32: inverse, |place, plan, x, out| {
            fft_by(place.run(), plan, FftKind::Forward, x.get(), Conjugate, out.room())
        };
        "fft_in_place", "f32", f32: there_and_back, |place, plan, x, out| {
            let mut place = place;
            ifft(first(&mut place), plan, x.get(), out.exact())?;
            fft_in_place(place.run(), plan, out.exact())
        };
        "ifft_in_place", "f32", f32: there_and_back, |place, plan, x, out| {
            let mut place = place;
            fft(first(&mut place), plan, x.get(), out.exact())?;
            ifft_in_place(place.run(), plan, out.exact())
        };
    }
    // Another call comes before these, so it returns the error, under its own name. `fourier::calls` tests theirs.
    let shorts = |subject: Subject| match subject.covers[0] {
        "fft_in_place" | "ifft_in_place" => subject.shorts(&[Short::Any]),
        _ => subject,
    };
    all.into_iter().map(shorts).collect()
}
