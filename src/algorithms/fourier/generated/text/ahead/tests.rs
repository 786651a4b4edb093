//! A machine for PTX runs both passes on small matrices. The results are compared with transforms by another algorithm.

use ptx_machine::TestMap;

use super::*;
use crate::algorithms::fourier::generated::plan::Work;
use crate::algorithms::fourier::generated::tests::{
    Launch, Memory, NOTHING, Numbers, assert_near, bound, launch_with, some,
};

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
    run_changed(pass, blocks, scale, input, 1, str::to_owned)
}

/// Works as [`run`], with a change of the kernel's text. The seed gives the order in which blocks continue.
fn run_changed(
    pass: &AheadPass,
    blocks: u64,
    scale: f64,
    input: &[Complex<f64>],
    seed: u64,
    change: impl Fn(&str) -> String,
) -> (Numbers, usize) {
    let PassKernel { text, threads, shared, .. } = ahead(pass, 90);
    let tables = pass.tables();
    let text = change(&text);
    let nothing = vec![NOTHING; input.len()];
    let numbers: [&[Complex<f64>]; 4] = [input, &nothing, &tables[0], &tables[1]];
    let mut memories: Vec<Memory> = numbers.into_iter().map(|x| Memory::new(pass.real, x)).collect();
    let (mut parameters, mut writes) = (vec![0, 1, 2, 3], vec![1]);
    let has_counters = pass.counters() > 0;
    if has_counters {
        memories.push(Memory::counters(pass.counters()));
        parameters.push(4);
        writes.push(4);
    }
    let words = Work::Ahead(pass.clone()).words(pass.real.bits(scale));
    let mut map = TestMap { address: memories[0].address(), axes: pass.axes() };
    let of_map = (pass.side == Side::Columns).then(|| (&raw mut map).expose_provenance() as u64);
    let kernel = Launch { text, blocks, threads, shared, words, seed };
    let conflicts = launch_with(kernel, &mut memories, &parameters, &writes, of_map);
    if has_counters {
        // A block, or a cluster, draws a ticket for each of its tiles. The second counter is that of rows.
        let tickets = if pass.side == Side::Columns { [pass.tiles(), 0] } else { [0, pass.tiles()] };
        assert_eq!([0, 1].map(|which| memories[4].counter(which)), tickets, "{pass:?}");
    }
    (memories[1].numbers(), conflicts)
}

fn pass(real: Real, side: Side, lines: u32, count: u32) -> AheadPass {
    AheadPass { real, side, cluster: 1, lines, count, inverse: false, scaled: false }
}

/// Returns a pass whose lines are shared by two blocks.
fn shared(side: Side, lines: u32, count: u32) -> AheadPass {
    AheadPass { cluster: 2, ..pass(Real::F32, side, lines, count) }
}

/// Returns where the tiles of the second pass have a number of a line, whose length is `n`. If two blocks share the line, the even numbers
/// come before the odd ones.
fn place(pass: &AheadPass, line: usize, e: usize, n: usize) -> usize {
    let cluster = pass.cluster as usize;
    let (rank, e, part) = (e % cluster, e / cluster, n / cluster);
    match pass.real {
        Real::F32 => line / 4 * 4 * n + 4 * part * rank + 4 * e + line % 4,
        Real::F64 => line / 2 * 2 * n + 2 * part * rank + ((2 * e + line % 2) ^ (e / 16 % 4 * 2)),
    }
}

/// Returns the results of a pass that writes tiles.
fn tiles_of(pass: &AheadPass, x: &[Complex<f64>]) -> Numbers {
    let (lines, n) = (pass.lines as usize, pass.length() as usize);
    let mut expected = vec![NOTHING; x.len()];
    for (matrix, x) in x.chunks(n * lines).enumerate() {
        for column in 0..lines {
            let line: Numbers = (0..n).map(|row| x[row * lines + column]).collect();
            for (k, y) in transformed(&line, pass.inverse).into_iter().enumerate() {
                expected[matrix * n * lines + place(pass, k, column, lines)] = y;
            }
        }
    }
    expected
}

/// Checks a pass that writes tiles.
#[track_caller]
fn check_columns(pass: &AheadPass, blocks: u64) {
    let x = some((pass.length() * pass.lines * pass.count) as usize);
    let (found, conflicts) = run(pass, blocks, 1.0, &x);
    assert_near(&found, &tiles_of(pass, &x), pass.real, pass);
    assert_eq!(conflicts, 0, "{pass:?}");
}

/// Returns the results of a pass that reads tiles.
fn columns_of(pass: &AheadPass, scale: f64, x: &[Complex<f64>]) -> Numbers {
    let (lines, n) = (pass.lines as usize, pass.length() as usize);
    let mut expected = vec![NOTHING; x.len()];
    for (matrix, x) in x.chunks(n * lines).enumerate() {
        for row in 0..lines {
            let factor = |e: usize| {
                let root = root_of_unity(row * e % (n * lines), n * lines);
                if pass.inverse { root.conj() } else { root }
            };
            let line: Numbers = (0..n).map(|e| x[place(pass, row, e, n)] * factor(e) * scale).collect();
            for (k, y) in transformed(&line, pass.inverse).into_iter().enumerate() {
                expected[matrix * n * lines + k * lines + row] = y;
            }
        }
    }
    expected
}

/// Checks a pass that reads tiles. The results are halved.
#[track_caller]
fn check_rows(pass: &AheadPass, blocks: u64) {
    let pass = &AheadPass { scaled: true, ..pass.clone() };
    let x = some((pass.length() * pass.lines * pass.count) as usize);
    let (found, conflicts) = run(pass, blocks, 0.5, &x);
    assert_near(&found, &columns_of(pass, 0.5, &x), pass.real, pass);
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

#[test]
fn two_blocks_share_columns() {
    check_columns(&shared(Side::Columns, 8, 1), 2);
    check_columns(&AheadPass { inverse: true, ..shared(Side::Columns, 8, 3) }, 4);
}

#[test]
fn two_blocks_share_tiles() {
    check_rows(&shared(Side::Rows, 8, 1), 2);
    check_rows(&AheadPass { inverse: true, ..shared(Side::Rows, 8, 3) }, 4);
}

/// Returns whether a pass has right results in some orders of its blocks, if lines of its text are left out.
fn is_right_without(pass: &AheadPass, mut is_left_out: impl FnMut(&str) -> bool) -> bool {
    let x = some((pass.length() * pass.lines) as usize);
    let expected = match pass.side {
        Side::Columns => tiles_of(pass, &x),
        Side::Rows => columns_of(pass, 1.0, &x),
    };
    let bound = bound(&expected, pass.real);
    let kept: Vec<bool> = ahead(pass, 90).text.lines().map(|line| !is_left_out(line)).collect();
    let change = |text: &str| {
        let lines = text.lines().zip(&kept).filter(|(_, is_kept)| **is_kept);
        lines.flat_map(|(line, _)| [line, "\n"]).collect::<String>()
    };
    let is_right = |seed: u64| {
        // The machine panics at some faults.
        let run = || run_changed(pass, 2, 1.0, &x, seed, change).0;
        let Ok(found) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) else { return false };
        std::iter::zip(&found, &expected).all(|(found, expected)| (found - expected).l1_norm() <= bound)
    };
    // With the later seeds, the first block is far ahead of the second one at first.
    (0..4).chain([20, 85, 263, 448, 506]).all(is_right)
}

#[test]
fn without_a_meeting_results_are_wrong() {
    for (side, meetings) in [(Side::Columns, 2), (Side::Rows, 2)] {
        let pass = shared(side, 16, 1);
        assert!(is_right_without(&pass, |_| false));
        let mut all = 0;
        for meeting in 1..=meetings {
            let mut arrivals = 0;
            let is_right = is_right_without(&pass, |line| {
                arrivals += usize::from(line.contains("barrier.cluster.arrive"));
                line.contains("barrier.cluster") && arrivals == meeting
            });
            assert!(!is_right, "{side:?}, meeting {meeting}");
            all = arrivals;
        }
        assert_eq!(all, meetings, "{side:?}");
    }
}

#[test]
fn without_a_wait_for_received_numbers_results_are_wrong() {
    let pass = shared(Side::Rows, 16, 1);
    let mut is_after_look = false;
    let is_right = is_right_without(&pass, |line| {
        let is_back = is_after_look;
        is_after_look = line.contains("try_wait.parity.acquire.cluster");
        is_back
    });
    assert!(!is_right);
}
