//! Roots of unity, the factors of Fourier transforms.

use core::f64::consts::FRAC_PI_4;

use super::{Complex, ConvertTo, Real};

/// A float type that Fourier transforms are ready for: `f32` and `f64`.
pub trait FftFloat: Real + ConvertTo<Self> {
    /// `exp(-2πi * index / N)`, from a table in the program.
    ///
    /// # Safety
    /// `index` is less than `N`.
    #[doc(hidden)]
    unsafe fn root<const N: usize>(index: usize) -> Complex<Self>;
}

macro_rules! floats {
    ($($t:ident)*) => {$(
        impl FftFloat for $t {
            unsafe fn root<const N: usize>(index: usize) -> Complex<Self> {
                struct Table<const N: usize>;
                impl<const N: usize> Table<N> {
                    const ROOTS: &'static [[$t; 2]; N] = &{
                        let mut roots = [[0.0; 2]; N];
                        let mut index = 0;
                        while index < N {
                            let root = root_of_unity(index, N);
                            roots[index] = [root.re as $t, root.im as $t];
                            index += 1;
                        }
                        roots
                    };
                }
                // SAFETY: the caller's contract.
                let [re, im] = unsafe { *Table::<N>::ROOTS.get_unchecked(index) };
                Complex { re, im }
            }
        }
    )*};
}
floats!(f32 f64);

/// Returns `exp(-2πi * index / n)`. Each part is the nearest number, or in rare cases one of its neighbours.
///
/// `n` is 1 to 2^52, and `index` is less than `n`. This is for tables: it is too slow to compute each element where it is used.
///
/// ```
/// use kernel_primitives::element::root_of_unity;
///
/// assert_eq!(root_of_unity(1, 4).im, -1.0);
/// assert_eq!(root_of_unity(1, 8).re, 0.5f64.sqrt());
/// ```
pub const fn root_of_unity(index: usize, n: usize) -> Complex<f64> {
    // The angle is so many eighths of a turn and a rest, which is counted back from the next eighth if that is odd.
    let eighths = 8 * index as u64;
    let (octant, rest) = (eighths / n as u64, eighths % n as u64);
    let rest = if octant % 2 == 0 { rest } else { n as u64 - rest };
    let (sin, cos) = sin_cos_of_eighth(rest as f64, n as f64);
    let (re, im) = match octant {
        0 => (cos, sin),
        1 => (sin, cos),
        2 => (-sin, cos),
        3 => (-cos, sin),
        4 => (-cos, -sin),
        5 => (-sin, -cos),
        6 => (sin, -cos),
        _ => (cos, -sin),
    };
    Complex { re, im: 0.0 - im }
}

/// Sine and cosine of `part / whole` eighths of a turn, of 0 to 1.
const fn sin_cos_of_eighth(part: f64, whole: f64) -> (f64, f64) {
    /// What π / 4 is more than the nearest number.
    const REST_OF_FRAC_PI_4: f64 = 3.061616997868383e-17;
    // The angle as a sum of two numbers, the second of which is less than a unit in the last place of the first.
    let quotient = part / whole;
    let (product, product_rest) = exact_product(quotient, whole);
    let quotient_rest = (part - product - product_rest) / whole;
    let (angle, angle_rest) = exact_product(quotient, FRAC_PI_4);
    let angle_rest = angle_rest + (quotient * REST_OF_FRAC_PI_4 + quotient_rest * FRAC_PI_4);
    let x = angle + angle_rest;
    let y = angle - x + angle_rest;

    // The series of Taylor, whose next terms are too small to count for angles up to π / 4.
    let (z, z_rest) = exact_product(x, x);
    let sin = series(z, &SIN);
    let cos = series(z, &COS);
    let half = 0.5 * z;
    let sin = x + (x * z * sin + y * (1.0 - half));
    let near = 1.0 - half;
    let cos = near + (1.0 - near - half + (z * z * cos - x * y - 0.5 * z_rest));
    (sin, cos)
}

/// `-1/3!`, `1/5!`, `-1/7!` and so on.
const SIN: [f64; 8] = inverse_factorials(3, -1.0);
/// `1/4!`, `-1/6!`, `1/8!` and so on.
const COS: [f64; 8] = inverse_factorials(4, 1.0);

/// `sign / first!`, and each next one the inverse factorial of a number greater by 2, with the other sign.
const fn inverse_factorials(first: u64, sign: f64) -> [f64; 8] {
    let mut all = [0.0; 8];
    let (mut term, mut n, mut i) = (sign, 1, 0);
    while i < all.len() {
        while n < first + 2 * i as u64 {
            n += 1;
            term /= n as f64;
        }
        all[i] = term;
        term = -term;
        i += 1;
    }
    all
}

/// `terms[0] + z * (terms[1] + z * (terms[2] + …))`.
const fn series(z: f64, terms: &[f64; 8]) -> f64 {
    let [a, b, c, d, e, f, g, h] = *terms;
    a + z * (b + z * (c + z * (d + z * (e + z * (f + z * (g + z * h))))))
}

/// The product of two numbers as a sum: the nearest number, and what that lacks (Dekker, 1971).
const fn exact_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((a, a_rest), (b, b_rest)) = (halves(a), halves(b));
    (product, a_rest * b_rest - (product - a * b - a_rest * b - a * b_rest))
}

/// A number as a sum of two that have 26 bits each (Veltkamp).
const fn halves(x: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}
