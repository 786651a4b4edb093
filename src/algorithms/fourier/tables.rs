//! The tables of a plan: roots of unity and chirps.

use std::collections::HashMap;

use super::passes::Part;
use crate::Complex;
use crate::element::{FftFloat, root_of_unity};

/// The numbers of a table, and the beginnings of its parts.
pub(super) struct Table<T> {
    numbers: Vec<Complex<T>>,
    places: HashMap<Part, u64>,
}

impl<T: FftFloat> Table<T> {
    pub(super) fn new() -> Self {
        Self { numbers: Vec::new(), places: HashMap::new() }
    }

    /// Adds a part if the table does not have it.
    pub(super) fn add(&mut self, part: Part) {
        let begin = self.numbers.len() as u64;
        if self.places.contains_key(&part) {
            return;
        }
        self.places.insert(part, begin);
        let numbers = numbers(part).into_iter();
        self.numbers.extend(numbers.map(|x| Complex { re: T::from_f64(x.re), im: T::from_f64(x.im) }));
    }

    /// Returns the numbers, and the beginnings of the parts.
    pub(super) fn into_parts(self) -> (Vec<Complex<T>>, HashMap<Part, u64>) {
        (self.numbers, self.places)
    }
}

/// The numbers of a part.
fn numbers(part: Part) -> Vec<Complex<f64>> {
    match part {
        Part::Roots(n, steps) => {
            let mut roots = vec![Complex::ONE; n];
            let mut done = 1;
            for radix in steps.radices(n) {
                let all = done * radix;
                for (i, root) in roots[..all].iter_mut().enumerate().skip(done) {
                    *root = root_of_unity((i / done) * (i % done), all);
                }
                done = all;
            }
            roots
        }
        Part::Twiddles(n, bits) => {
            let far = (0..n).step_by(1 << bits);
            (0..1 << bits).chain(far).map(|i| root_of_unity(i, n)).collect()
        }
        Part::Half(n) => (0..=n / 4).map(|k| root_of_unity(k, n)).collect(),
        Part::Chirp(n) => chirp(n),
        Part::Filter(n, m) => {
            let mut filter = vec![Complex::ZERO; m];
            for (k, x) in chirp(n).into_iter().enumerate() {
                let x = x.conj() / m as f64;
                (filter[k], filter[(m - k) % m]) = (x, x);
            }
            transform(&mut filter);
            filter
        }
    }
}

/// Returns `exp(-πi k² / n)` for all `k` less than `n`.
fn chirp(n: usize) -> Vec<Complex<f64>> {
    let square = |k: usize| (k as u128 * k as u128 % (2 * n as u128)) as usize;
    (0..n).map(|k| root_of_unity(square(k), 2 * n)).collect()
}

/// Computes the discrete Fourier transform of a length that is a power of two.
fn transform(x: &mut Vec<Complex<f64>>) {
    let n = x.len();
    let roots: Vec<_> = (0..n / 2).map(|i| root_of_unity(i, n)).collect();
    // This is Stockham's algorithm, which goes from one memory to the other.
    let mut other = vec![Complex::ZERO; n];
    let mut done = 1;
    while done < n {
        for run in 0..n / (2 * done) {
            for at in 0..done {
                let (a, b) = (x[run * done + at], x[run * done + at + n / 2] * roots[at * (n / (2 * done))]);
                let to = 2 * run * done + at;
                (other[to], other[to + done]) = (a + b, a - b);
            }
        }
        std::mem::swap(x, &mut other);
        done *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::radices::{Limits, Line};
    use super::*;

    #[test]
    fn a_transform_is_the_sum_of_its_definition() {
        let x: Vec<_> = (0..16).map(|i| Complex::new((i * i % 7) as f64, (i * 5 % 11) as f64)).collect();
        let mut found = x.clone();
        transform(&mut found);
        for (k, found) in found.into_iter().enumerate() {
            let sum: Complex<f64> = x.iter().enumerate().map(|(j, x)| x * root_of_unity(j * k % 16, 16)).sum();
            assert!((found - sum).l1_norm() < 1e-12, "{k}: {found} for {sum}");
        }
    }

    #[test]
    fn parts_are_added_once() {
        let mut table = Table::<f32>::new();
        let line = Line::new(32, Limits { shared_bytes: 48 << 10, number: 8 }).expect("it fits");
        let roots = Part::Roots(32, line.steps);
        for part in [roots, Part::Twiddles(10, 2), roots] {
            table.add(part);
        }
        let (numbers, places) = table.into_parts();
        assert_eq!((numbers.len(), places[&roots], places[&Part::Twiddles(10, 2)]), (32 + 4 + 3, 0, 32));
        assert_eq!(numbers[33], Complex { re: root_of_unity(1, 10).re as f32, im: root_of_unity(1, 10).im as f32 });
    }
}
