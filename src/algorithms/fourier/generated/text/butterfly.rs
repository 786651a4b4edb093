//! Discrete Fourier transforms of the numbers of one thread.

use std::f64::consts::FRAC_1_SQRT_2;

use super::code::{Code, Number, Value};
use crate::element::root_of_unity;

/// The largest prime that a butterfly may have. The number of its fused multiplications and additions is about half the square of the
/// prime.
pub(in super::super::super) const MOST_PRIME: u32 = 31;

/// The largest radix of ordinary passes. With more numbers, registers would be spilled.
pub(in super::super::super) const MOST_RADIX: u32 = 32;

/// Returns the least prime factor of a number above 1.
pub(in super::super) fn least_factor(n: u32) -> u32 {
    (2..).find(|&p| n.is_multiple_of(p) || p * p > n).map_or(n, |p| if n.is_multiple_of(p) { p } else { n })
}

/// Computes the transform. Result `k` is the sum of `x[j] * exp(-2πi j k / n)`.
pub(in super::super) fn transform(code: &mut Code, x: &[Number]) -> Vec<Number> {
    match *x {
        [] | [_] => x.to_vec(),
        [a, b] => vec![code.add_number(a, b), code.sub_number(a, b)],
        [x0, x1, x2, x3] => {
            let (a, b) = (code.add_number(x0, x2), code.sub_number(x0, x2));
            let (c, d) = (code.add_number(x1, x3), code.sub_number(x1, x3).turned());
            vec![code.add_number(a, c), code.add_number(b, d), code.sub_number(a, c), code.sub_number(b, d)]
        }
        _ => {
            let n = x.len();
            let p = least_factor(n as u32) as usize;
            if p == n {
                return of_prime(code, x);
            }
            let power = std::iter::successors(Some(p), |power| Some(power * p));
            let a = power.take_while(|power| n.is_multiple_of(*power)).last().unwrap_or(p);
            if a < n { of_coprime(code, x, a) } else { of_power(code, x, p) }
        }
    }
}

/// Computes the transform of an odd prime length, from the sums and differences of mirrored numbers.
fn of_prime(code: &mut Code, x: &[Number]) -> Vec<Number> {
    let (n, half) = (x.len(), x.len() / 2);
    let mut sums = Vec::with_capacity(half);
    let mut differences = Vec::with_capacity(half);
    for j in 1..=half {
        sums.push(code.add_number(x[j], x[n - j]));
        differences.push(code.sub_number(x[j], x[n - j]));
    }
    let mut y = vec![x[0]; n];
    for &sum in &sums {
        y[0] = code.add_number(y[0], sum);
    }
    for k in 1..=half {
        let mut even = x[0];
        let mut odd: Option<Number> = None;
        for j in 1..=half {
            let (sum, difference) = (sums[j - 1], differences[j - 1]);
            let root = root_of_unity(j * k % n, n);
            let (cos, sin) = (root.re, -root.im);
            even = Number { re: code.add_product(even.re, sum.re, cos), im: code.add_product(even.im, sum.im, cos) };
            odd = Some(match odd {
                None => Number { re: code.scale(difference.re, sin), im: code.scale(difference.im, sin) },
                Some(odd) => Number {
                    re: code.add_product(odd.re, difference.re, sin),
                    im: code.add_product(odd.im, difference.im, sin),
                },
            });
        }
        // This multiplies by -i.
        let odd = odd.expect("a prime above 2").turned();
        (y[k], y[n - k]) = (code.add_number(even, odd), code.sub_number(even, odd));
    }
    y
}

/// Computes the transform for two coprime factors, `a` and the rest. There are no multiplications between them (Good, 1958; Thomas, 1963).
fn of_coprime(code: &mut Code, x: &[Number], a: usize) -> Vec<Number> {
    let (n, b) = (x.len(), x.len() / a);
    let rows: Vec<Vec<Number>> = (0..b)
        .map(|j| {
            let row: Vec<_> = (0..a).map(|i| x[(i * b + j * a) % n]).collect();
            transform(code, &row)
        })
        .collect();
    let columns: Vec<Vec<Number>> = (0..a)
        .map(|i| {
            let column: Vec<_> = rows.iter().map(|row| row[i]).collect();
            transform(code, &column)
        })
        .collect();
    (0..n).map(|k| columns[k % a][k % b]).collect()
}

/// Computes the transform for a power of a prime (Cooley and Tukey, 1965).
fn of_power(code: &mut Code, x: &[Number], p: usize) -> Vec<Number> {
    let n = x.len();
    // The two factors are as similar as possible, and the smaller one comes first.
    let a = std::iter::successors(Some(p), |a| Some(a * p)).take_while(|a| a * a <= n).last().unwrap_or(p);
    let b = n / a;
    let rows: Vec<Vec<Number>> = (0..b)
        .map(|j| {
            let row: Vec<_> = (0..a).map(|i| x[b * i + j]).collect();
            let row = transform(code, &row);
            row.into_iter().enumerate().map(|(k, value)| times_root(code, value, j * k, n)).collect()
        })
        .collect();
    let mut y = vec![x[0]; n];
    for k in 0..a {
        let column: Vec<_> = rows.iter().map(|row| row[k]).collect();
        for (l, value) in transform(code, &column).into_iter().enumerate() {
            y[k + a * l] = value;
        }
    }
    y
}

/// Multiplies by `exp(-2πi index / n)`.
pub(in super::super) fn times_root(code: &mut Code, a: Number, index: usize, n: usize) -> Number {
    let index = index % n;
    match 8 * index / n {
        0 if index == 0 => a,
        2 if 4 * index == n => a.turned(),
        4 if 2 * index == n => a.negated(),
        6 if 4 * index == 3 * n => a.turned().negated(),
        _ => {
            let root = root_of_unity(index, n);
            if (8 * index).is_multiple_of(n) {
                // Both parts of the root are ±√½. This factor waits for the next addition.
                let (sum, difference) = (code.add(a.re, a.im), code.sub(a.im, a.re));
                let sign = root.re.signum() * FRAC_1_SQRT_2;
                return if root.re.signum() == root.im.signum() {
                    Number { re: difference.negated().times(sign), im: sum.times(sign) }
                } else {
                    Number { re: sum.times(sign), im: difference.times(sign) }
                };
            }
            let (re, im): (Value, Value) = (code.scale(a.re, root.re), code.scale(a.im, root.re));
            Number { re: code.add_product(re, a.im, -root.im), im: code.add_product(im, a.re, root.im) }
        }
    }
}
