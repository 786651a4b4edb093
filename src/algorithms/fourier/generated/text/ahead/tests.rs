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

/// Runs a pass in some blocks.
fn run(pass: &AheadPass, blocks: u64, scale: f64, input: &[Complex<f64>]) -> Numbers {
    let PassKernel { text, threads, shared, roots, outer_roots, .. } = ahead(pass, 90);
    let nothing = vec![NOTHING; input.len()];
    let numbers: [&[Complex<f64>]; 4] = [input, &nothing, &roots, &outer_roots];
    let mut memories = numbers.map(|x| Memory::new(Real::F32, x));
    let words = Work::Ahead(pass.clone()).words(Real::F32.bits(scale));
    let (lines, row) = (u64::from(pass.lines), u64::from(pass.lines * NUMBER));
    let mut map = TestMap {
        address: memories[0].address(),
        extents: [lines, LINE.into(), pass.count.into()],
        strides: [row, row * u64::from(LINE)],
        tile: [LINES.into(), COPIED_ROWS.into(), 1],
    };
    let of_map = (pass.side == Side::Columns).then(|| (&raw mut map).expose_provenance() as u64);
    let kernel = Launch { text, blocks, threads, shared, words, seed: 1 };
    launch_with(kernel, &mut memories, &[0, 1, 2, 3], &[1], of_map);
    memories[1].numbers()
}

fn pass(side: Side, lines: u32, count: u32) -> AheadPass {
    AheadPass { side, lines, count, inverse: false, scaled: false }
}

#[test]
fn columns_become_tiles() {
    for (lines, count, blocks, inverse) in [(4, 1, 1, false), (8, 2, 3, true), (8, 2, 1, false)] {
        let pass = AheadPass { inverse, ..pass(Side::Columns, lines, count) };
        let (lines, count, n) = (lines as usize, count as usize, LINE as usize);
        let x = some(n * lines * count);
        let found = run(&pass, blocks, 1.0, &x);
        let mut expected = vec![NOTHING; x.len()];
        for (matrix, x) in x.chunks(n * lines).enumerate() {
            for column in 0..lines {
                let line: Numbers = (0..n).map(|row| x[row * lines + column]).collect();
                for (k, y) in transformed(&line, inverse).into_iter().enumerate() {
                    expected[matrix * n * lines + (k / 4 * lines + column) * 4 + k % 4] = y;
                }
            }
        }
        assert_near(&found, &expected, Real::F32, &pass);
    }
}

#[test]
fn tiles_become_columns() {
    for (lines, count, blocks, inverse) in [(4, 1, 1, false), (8, 2, 3, true), (8, 2, 1, false)] {
        let pass = AheadPass { inverse, scaled: true, ..pass(Side::Rows, lines, count) };
        let (lines, count, n) = (lines as usize, count as usize, LINE as usize);
        let x = some(n * lines * count);
        let found = run(&pass, blocks, 0.5, &x);
        let mut expected = vec![NOTHING; x.len()];
        for (matrix, x) in x.chunks(n * lines).enumerate() {
            for row in 0..lines {
                let factor = |e: usize| {
                    let root = root_of_unity(row * e % (n * lines), n * lines);
                    if inverse { root.conj() } else { root }
                };
                let line: Numbers = (0..n).map(|e| x[(row / 4 * n + e) * 4 + row % 4] * factor(e) * 0.5).collect();
                for (k, y) in transformed(&line, inverse).into_iter().enumerate() {
                    expected[matrix * n * lines + k * lines + row] = y;
                }
            }
        }
        assert_near(&found, &expected, Real::F32, &pass);
    }
}
