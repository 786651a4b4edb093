//! The expected results of transforms, by the sum of the definition.

use kernel_primitives::element::FftFloat;
use kernel_primitives::{Complex, ConvertTo};

use crate::support::Random;

/// Returns complex numbers of a type, whose parts are from −1 to 1.
pub fn numbers<T: FftFloat>(len: usize, seed: u64) -> Vec<Complex<T>> {
    let mut random = Random::new(seed);
    let mut unit = || T::from_f64(2.0 * random.unit() - 1.0);
    (0..len).map(|_| Complex { re: unit(), im: unit() }).collect()
}

/// Converts numbers to double precision.
pub fn wide<T: ConvertTo<f64> + Copy>(x: &[Complex<T>]) -> Vec<Complex<f64>> {
    x.iter().map(|x| Complex::new(x.re.convert(), x.im.convert())).collect()
}

/// Returns `exp(-2πi * index / n)`, by the standard library's functions.
fn root(index: usize, n: usize) -> Complex<f64> {
    // The angle is measured from the nearest quarter of a turn, so that it is small.
    let quarter = (4 * index + n / 2) / n;
    let angle = (4 * index as i64 - (quarter * n) as i64) as f64 / n as f64 * std::f64::consts::FRAC_PI_2;
    let (sin, cos) = angle.sin_cos();
    match quarter % 4 {
        0 => Complex::new(cos, -sin),
        1 => Complex::new(-sin, -cos),
        2 => Complex::new(-cos, sin),
        _ => Complex::new(sin, cos),
    }
}

/// Returns one result of the transform of a line. `roots` are the roots of unity of its length.
fn result(x: &[Complex<f64>], roots: &[Complex<f64>], k: usize) -> Complex<f64> {
    // The sum and the rounding errors that it lost (Knuth), part by part. Most of the time of these tests goes here, and they are not
    // optimised: so it calls nothing.
    let ([mut re, mut im], [mut lost_re, mut lost_im]) = ([0.0f64; 2], [0.0f64; 2]);
    let mut at = 0;
    for x in x {
        let root = &roots[at];
        let term = x.re * root.re - x.im * root.im;
        let next = re + term;
        let added = next - re;
        lost_re += (re - (next - added)) + (term - added);
        re = next;
        let term = x.re * root.im + x.im * root.re;
        let next = im + term;
        let added = next - im;
        lost_im += (im - (next - added)) + (term - added);
        im = next;
        at += k;
        if at >= roots.len() {
            at -= roots.len();
        }
    }
    Complex::new(re + lost_re, im + lost_im)
}

/// Returns some results of the transform of a line.
pub fn results(x: &[Complex<f64>], places: &[usize]) -> Vec<Complex<f64>> {
    let roots: Vec<_> = (0..x.len()).map(|i| root(i, x.len())).collect();
    places.iter().map(|&k| result(x, &roots, k)).collect()
}

/// Returns the places of some results of a line, anywhere in it.
pub fn some_places(n: usize) -> Vec<usize> {
    (0..100).map(|i| i * 2_654_435_761 % n).collect()
}

/// Returns the transforms of an array along axes.
pub fn transform(x: &[Complex<f64>], shape: &[usize], axes: &[usize]) -> Vec<Complex<f64>> {
    let mut x = x.to_vec();
    for &axis in axes {
        let (n, inner): (usize, usize) = (shape[axis], shape[axis + 1..].iter().product());
        let places: Vec<usize> = (0..n).collect();
        for first in (0..x.len()).filter(|i| i / inner % n == 0) {
            let own: Vec<_> = (0..n).map(|e| x[first + e * inner]).collect();
            results(&own, &places).into_iter().enumerate().for_each(|(e, value)| x[first + e * inner] = value);
        }
    }
    x
}

pub fn conjugates(x: &[Complex<f64>]) -> Vec<Complex<f64>> {
    x.iter().map(Complex::conj).collect()
}

/// Returns the inverse transforms, without a factor.
pub fn inverse(x: &[Complex<f64>], shape: &[usize], axes: &[usize]) -> Vec<Complex<f64>> {
    conjugates(&transform(&conjugates(x), shape, axes))
}

/// Returns the half of an array along an axis.
pub fn half<T: Copy>(x: &[T], shape: &[usize], axis: usize) -> Vec<T> {
    let (n, inner): (usize, usize) = (shape[axis], shape[axis + 1..].iter().product());
    x.iter().enumerate().filter(|(i, _)| i / inner % n <= n / 2).map(|(_, &x)| x).collect()
}

/// Returns the root mean square of the errors, divided by that of the results.
pub fn error(found: &[Complex<f64>], expected: &[Complex<f64>]) -> f64 {
    let errors: f64 = found.iter().zip(expected).map(|(found, expected)| (found - expected).norm_sqr()).sum();
    let all: f64 = expected.iter().map(Complex::norm_sqr).sum();
    (errors / all.max(f64::MIN_POSITIVE)).sqrt()
}

/// Checks that results are as near as the docs say. The root mean square error is a few machine epsilons, and grows with the length.
#[track_caller]
pub fn assert_near(found: &[Complex<f64>], expected: &[Complex<f64>], epsilon: f64, what: &dyn std::fmt::Debug) {
    assert_eq!(found.len(), expected.len(), "{what:?}");
    let error = error(found, expected) / epsilon;
    let bound = 1.5 * (1.0 + (found.len() as f64).log2()).sqrt();
    assert!(error <= bound, "{what:?}: an error of {error} epsilons, and not {bound}");
}
