//! Fourier transforms of a thread's own items.

use crate::element::{Complex, FftFloat};

/// Computes the discrete Fourier transform of the thread's items: `X[k] = Σ x[j] * exp(-2πi * j * k / N)`.
///
/// `N` is a product of 2, 3, 5, 7, 11 and 13. Everything stays in registers if there are enough: an item takes two for `f32`, and four for
/// `f64`. The factors are constants, which are rounded once.
///
/// There are at most five passes, with the factors 13, 11, 7, 5, 3, 4 and 2. So 1024 is the longest power of 2, and 243 is the longest
/// power of 3. A longer length does not compile. The error is that of [`block_fft`](crate::block::block_fft). NaN and infinity in an item
/// spread to all results.
///
/// ```
/// use kernel_primitives::Complex;
/// use kernel_primitives::thread::thread_fft;
///
/// let one = Complex::new(1.0f32, 0.0);
/// assert_eq!(thread_fft(&[one; 4]), [one * 4.0, one * 0.0, one * 0.0, one * 0.0]);
/// ```
pub fn thread_fft<T: FftFloat, const N: usize>(items: &[Complex<T>; N]) -> [Complex<T>; N] {
    const { assert!(is_smooth(N), "the length of a Fourier transform is a product of 2, 3, 5, 7, 11 and 13") };
    const { assert!(factor(N, 5).0 == 1, "a thread's items have five factors of 13, 11, 7, 5, 3, 4 and 2 at most") };
    let mut items = *items;
    // A pass a factor, each a constant.
    macro_rules! passes {
        ($($pass:literal)*) => {$(
            let done = const { factor(N, $pass).1 };
            match const { factor(N, $pass).0 } {
                2 => pass::<T, N, 2>(&mut items, done),
                3 => pass::<T, N, 3>(&mut items, done),
                4 => pass::<T, N, 4>(&mut items, done),
                5 => pass::<T, N, 5>(&mut items, done),
                7 => pass::<T, N, 7>(&mut items, done),
                11 => pass::<T, N, 11>(&mut items, done),
                13 => pass::<T, N, 13>(&mut items, done),
                _ => {}
            }
        )*};
    }
    passes!(0 1 2 3 4);
    items
}

/// Computes the inverse of [`thread_fft`] times `N`: `x[j] = Σ X[k] * exp(2πi * j * k / N)`.
///
/// The cost is that of [`thread_fft`].
///
/// ```
/// use kernel_primitives::Complex;
/// use kernel_primitives::thread::{thread_fft, thread_ifft};
///
/// let x = [1.0f64, 2.0, 4.0].map(Complex::from);
/// let same = thread_ifft(&thread_fft(&x)).map(|x| x / 3.0);
/// assert!((same[2] - x[2]).l1_norm() < 1e-14);
/// ```
#[inline(always)]
pub fn thread_ifft<T: FftFloat, const N: usize>(items: &[Complex<T>; N]) -> [Complex<T>; N] {
    thread_fft(&items.map(swapped)).map(swapped)
}

/// Real and imaginary part in each other's place. The inverse transform is the transform between two of these.
#[inline(always)]
pub(crate) fn swapped<T>(x: Complex<T>) -> Complex<T> {
    Complex { re: x.im, im: x.re }
}

/// Whether `n` is a product of 2, 3, 5, 7, 11 and 13.
pub(crate) const fn is_smooth(n: usize) -> bool {
    let (mut rest, mut i) = (n, 0);
    while i < PRIMES.len() && rest > 0 {
        while rest.is_multiple_of(PRIMES[i]) {
            rest /= PRIMES[i];
        }
        i += 1;
    }
    rest == 1
}

const PRIMES: [usize; 6] = [2, 3, 5, 7, 11, 13];

/// The factor of a pass over a thread's items, 1 if there are fewer passes, and the product of those before.
const fn factor(n: usize, pass: usize) -> (usize, usize) {
    const FACTORS: [usize; 7] = [13, 11, 7, 5, 3, 4, 2];
    let (mut done, mut i, mut passes) = (1, 0, 0);
    while i < FACTORS.len() {
        while (n / done).is_multiple_of(FACTORS[i]) {
            if passes == pass {
                return (FACTORS[i], done);
            }
            done *= FACTORS[i];
            passes += 1;
        }
        i += 1;
    }
    (1, done)
}

/// A pass of Stockham's algorithm over a thread's items: transforms of length `R`, of which those of length `done` are made to such of length
/// `done * R`.
fn pass<T: FftFloat, const N: usize, const R: usize>(items: &mut [Complex<T>; N], done: usize) {
    let before = *items;
    for j in 0..N / R {
        let (run, at) = (j / done, j % done);
        let mut x = [zero(); R];
        for k in 0..R {
            x[k] = times_root::<T, N>(before[j + k * (N / R)], at * k * (N / (done * R)));
        }
        let x = dft(&x);
        for k in 0..R {
            items[run * done * R + at + k * done] = x[k];
        }
    }
}

/// The transform of a length that is in the list of factors.
fn dft<T: FftFloat, const R: usize>(x: &[Complex<T>; R]) -> [Complex<T>; R] {
    let mut out = [zero(); R];
    match R {
        2 => {
            out[0] = plus(x[0], x[1]);
            out[1] = minus(x[0], x[1]);
        }
        4 => {
            let (a, b) = (plus(x[0], x[2]), minus(x[0], x[2]));
            let (c, d) = (plus(x[1], x[3]), minus(x[1], x[3]));
            // d * -i
            let d = Complex { re: d.im, im: d.re.neg() };
            out[0] = plus(a, c);
            out[1] = plus(b, d);
            out[2] = minus(a, c);
            out[3] = minus(b, d);
        }
        // An odd prime: what is symmetric in a pair of items has a real factor, and so has the rest.
        _ => {
            out[0] = x[0];
            for m in 1..R / 2 + 1 {
                let (mut even, mut odd) = (x[0], zero::<T>());
                for k in 1..R / 2 + 1 {
                    // SAFETY: a remainder of `R`.
                    let root = unsafe { T::root::<R>(m * k % R) };
                    let (sum, difference) = (plus(x[k], x[R - k]), minus(x[k], x[R - k]));
                    even = Complex { re: sum.re.mul_add(root.re, even.re), im: sum.im.mul_add(root.re, even.im) };
                    // The difference times `i` times the sine.
                    odd = Complex {
                        re: difference.im.neg().mul_add(root.im, odd.re),
                        im: difference.re.mul_add(root.im, odd.im),
                    };
                }
                out[0] = plus(out[0], plus(x[m], x[R - m]));
                out[m] = plus(even, odd);
                out[R - m] = minus(even, odd);
            }
        }
    }
    out
}

/// `x * exp(-2πi * index / N)`, without a product where there need be none: for an index that is a constant.
fn times_root<T: FftFloat, const N: usize>(x: Complex<T>, index: usize) -> Complex<T> {
    let index = index % N;
    let eighths = 8 * index / N;
    if eighths * N != 8 * index {
        // SAFETY: a remainder of `N`.
        return times(x, unsafe { T::root::<N>(index) });
    }
    let x = match eighths / 2 {
        0 => x,
        1 => Complex { re: x.im, im: x.re.neg() },
        2 => Complex { re: x.re.neg(), im: x.im.neg() },
        _ => Complex { re: x.im.neg(), im: x.re },
    };
    if eighths.is_multiple_of(2) {
        return x;
    }
    // x * (1 - i) / √2
    let root = T::from_f64(core::f64::consts::FRAC_1_SQRT_2);
    Complex { re: x.re.add(x.im).mul(root), im: x.im.sub(x.re).mul(root) }
}

/// The product, with fused operations.
#[inline(always)]
pub fn times<T: FftFloat>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
    Complex { re: a.re.mul_add(b.re, a.im.mul(b.im).neg()), im: a.re.mul_add(b.im, a.im.mul(b.re)) }
}

#[inline(always)]
pub(crate) fn plus<T: FftFloat>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
    Complex { re: a.re.add(b.re), im: a.im.add(b.im) }
}

#[inline(always)]
pub(crate) fn minus<T: FftFloat>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
    Complex { re: a.re.sub(b.re), im: a.im.sub(b.im) }
}

/// The number 0.
#[inline(always)]
pub fn zero<T: FftFloat>() -> Complex<T> {
    Complex { re: T::ZERO, im: T::ZERO }
}
