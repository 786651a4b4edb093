//! A machine for PTX runs both passes on small matrices. The results are compared with transforms by another algorithm.

use super::*;
use crate::algorithms::fourier::generated::plan::Work;
use crate::algorithms::fourier::generated::tests::{Launch, Memory, NOTHING, Numbers, assert_near, launch_with, some};
use crate::expr::tests::machine::TestMap;

/// Returns the transform, by halves.
fn transformed(x: &[Complex<f64>], inverse: bool) -> Numbers {
    let n = x.len();
    if n == 1 {
        return x.to_vec();
    }
    let half = |odd: usize| transformed(&x.iter().skip(odd).step_by(2).copied().collect::<Numbers>(), inverse);
    let (even, odd) = (half(0), half(1));
    let result = |k: usize| {
        let root = root_of_unity(k, n);
        let root = if inverse { root.conj() } else { root };
        even[k % (n / 2)] + root * odd[k % (n / 2)]
    };
    (0..n).map(result).collect()
}

/// Runs a pass in some blocks. Returns its output, and how often lanes waited for a bank.
fn run(pass: &AheadPass, blocks: u64, scale: f64, input: &[Complex<f64>]) -> (Numbers, usize) {
    let PassKernel { text, threads, shared, roots, outer_roots, .. } = ahead(pass, 90);
    let nothing = vec![NOTHING; input.len()];
    let numbers: [&[Complex<f64>]; 4] = [input, &nothing, &roots, &outer_roots];
    let mut memories: Vec<Memory> = numbers.into_iter().map(|x| Memory::new(pass.real, x)).collect();
    let (mut parameters, mut writes) = (vec![0, 1, 2, 3], vec![1]);
    let has_counters = pass.counters() > 0;
    if has_counters {
        memories.push(Memory::counters(pass.counters()));
        parameters.push(4);
        writes.push(4);
    }
    let words = Work::Ahead(pass.clone()).words(pass.real.bits(scale));
    let mut map = TestMap { address: memories[0].address(), axes: pass.axes().to_vec() };
    let of_map = (pass.side == Side::Columns).then(|| (&raw mut map).expose_provenance() as u64);
    let kernel = Launch { text, blocks, threads, shared, words, seed: 1 };
    let conflicts = launch_with(kernel, &mut memories, &parameters, &writes, of_map);
    if has_counters {
        // A block draws a ticket for each of its tiles. The second counter is that of rows.
        let tickets = if pass.side == Side::Columns { [pass.tiles(), 0] } else { [0, pass.tiles()] };
        assert_eq!([0, 1].map(|which| memories[4].counter(which)), tickets, "{pass:?}");
    }
    (memories[1].numbers(), conflicts)
}

fn pass(real: Real, side: Side, lines: u32, count: u32) -> AheadPass {
    AheadPass { real, side, lines, count, inverse: false, scaled: false }
}

/// Returns where the tiles of the second pass have a number of a line, whose length is `n`.
fn place(real: Real, line: usize, e: usize, n: usize) -> usize {
    match real {
        Real::F32 => line / 4 * 4 * n + 4 * e + line % 4,
        Real::F64 => line / 2 * 2 * n + ((2 * e + line % 2) ^ (e / 16 % 4 * 2)),
    }
}

/// Checks a pass that writes tiles.
#[track_caller]
fn check_columns(pass: &AheadPass, blocks: u64) {
    let (real, lines, n) = (pass.real, pass.lines as usize, LINE as usize);
    let x = some(n * lines * pass.count as usize);
    let (found, conflicts) = run(pass, blocks, 1.0, &x);
    let mut expected = vec![NOTHING; x.len()];
    for (matrix, x) in x.chunks(n * lines).enumerate() {
        for column in 0..lines {
            let line: Numbers = (0..n).map(|row| x[row * lines + column]).collect();
            for (k, y) in transformed(&line, pass.inverse).into_iter().enumerate() {
                expected[matrix * n * lines + place(real, k, column, lines)] = y;
            }
        }
    }
    assert_near(&found, &expected, real, pass);
    assert_eq!(conflicts, 0, "{pass:?}");
}

/// Checks a pass that reads tiles. The results are halved.
#[track_caller]
fn check_rows(pass: &AheadPass, blocks: u64) {
    let pass = &AheadPass { scaled: true, ..pass.clone() };
    let (real, lines, n) = (pass.real, pass.lines as usize, LINE as usize);
    let x = some(n * lines * pass.count as usize);
    let (found, conflicts) = run(pass, blocks, 0.5, &x);
    let mut expected = vec![NOTHING; x.len()];
    for (matrix, x) in x.chunks(n * lines).enumerate() {
        for row in 0..lines {
            let factor = |e: usize| {
                let root = root_of_unity(row * e % (n * lines), n * lines);
                if pass.inverse { root.conj() } else { root }
            };
            let line: Numbers = (0..n).map(|e| x[place(real, row, e, n)] * factor(e) * 0.5).collect();
            for (k, y) in transformed(&line, pass.inverse).into_iter().enumerate() {
                expected[matrix * n * lines + k * lines + row] = y;
            }
        }
    }
    assert_near(&found, &expected, real, pass);
    assert_eq!(conflicts, 0, "{pass:?}");
}

#[test]
fn columns_become_tiles() {
    for real in [Real::F32, Real::F64] {
        check_columns(&pass(real, Side::Columns, 4, 1), 1);
        check_columns(&AheadPass { inverse: true, ..pass(real, Side::Columns, 8, 2) }, 3);
        check_columns(&pass(real, Side::Columns, 8, 2), 1);
    }
    // The numbers of these columns change places in four ways.
    check_columns(&pass(Real::F64, Side::Columns, 52, 1), 5);
}

#[test]
fn tiles_become_columns() {
    for real in [Real::F32, Real::F64] {
        check_rows(&pass(real, Side::Rows, 4, 1), 1);
        check_rows(&AheadPass { inverse: true, ..pass(real, Side::Rows, 8, 2) }, 3);
        check_rows(&pass(real, Side::Rows, 8, 2), 1);
    }
}
