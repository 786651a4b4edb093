//! Tests of fused passes. The blocks run at once, in many orders.

use super::{FusedKernel, FusedPair, fused};
use crate::Complex;
use crate::algorithms::fourier::generated::pass::{Lanes, LineAxis, LinePass, OuterFactors};
use crate::algorithms::fourier::generated::plan::Work;
use crate::algorithms::fourier::generated::tests::{
    Launch, Memory, NOTHING, Numbers, assert_near, axis, bound, in_a_row, launch, some, sums,
};
use crate::algorithms::fourier::generated::text::code::Real;

/// Transforms of 8 * 12 numbers, the number of transforms, and the number of them in a chunk.
const N1: u32 = 8;
const N2: u32 = 12;
const COUNT: u32 = 6;
const EACH: u32 = 2;

/// The seeds of the orders of blocks.
const SEEDS: std::ops::Range<u64> = 0..8;

/// Returns the passes of these transforms, with `ring` chunks in the ring.
fn long_transforms(ring: u32) -> FusedPair {
    let (n, chunks) = (N1 * N2, COUNT / EACH);
    let of_chunks = |input: u32, output: u32| LineAxis { rings: [input, output], ..axis(chunks, EACH * n, EACH * n) };
    let first = LinePass {
        axes: vec![axis(N2, 1, 1), axis(EACH, n, n), of_chunks(0, ring)],
        elements: [N2; 2],
        lanes: [Lanes::Across; 2],
        ..in_a_row(Real::F64, &[4, 2], 4, 4, 1)
    };
    let second = LinePass {
        axes: vec![axis(N1, N2, 1), axis(EACH, n, n), of_chunks(ring, 0)],
        elements: [1, N1],
        lanes: [Lanes::Along, Lanes::Across],
        factors: Some(OuterFactors { axis: 0, length: n, of_input: true }),
        fresh: true,
        ..in_a_row(Real::F64, &[4, 3], 4, 4, 1)
    };
    FusedPair { passes: [first, second], chunks, ahead: 1, ring, blocks: 1 }
}

fn input() -> Numbers {
    some((COUNT * N1 * N2) as usize)
}

fn expected() -> Numbers {
    input().chunks((N1 * N2) as usize).flat_map(|x| sums(x, false)).collect()
}

/// Returns the output of a pair whose blocks continue in some order, and whose text is changed.
fn run(pair: &FusedPair, seed: u64, change: impl Fn(&str) -> String) -> Numbers {
    let FusedKernel { text, blocks, threads, shared, roots: [roots_1, roots_2], outer_roots } = fused(pair, 90);
    let ([outer_1, outer_2], x, real) = (outer_roots, input(), pair.passes[0].real);
    let nothing = [pair.ring_numbers(), x.len()].map(|len| vec![NOTHING; len]);
    let numbers: [&[Complex<f64>]; 7] = [&x, &nothing[0], &nothing[1], &roots_1, &outer_1, &roots_2, &outer_2];
    let mut memories: Vec<Memory> = numbers.iter().map(|x| Memory::new(real, x)).collect();
    memories.push(Memory::counters(pair.counters()));
    let (text, words) = (change(&text), Work::Pair(pair.clone()).words(0));
    let kernel = Launch { text, blocks, threads, shared, words, seed };
    launch(kernel, &mut memories, &[0, 1, 2, 3, 4, 5, 6, 7], &[1, 2, 7]);
    assert_eq!(memories[7].counter(0), blocks as u32, "tickets");
    memories[2].numbers()
}

#[test]
fn fused_passes_make_long_transforms() {
    for ring in 2..=3 {
        let pair = long_transforms(ring);
        for seed in SEEDS {
            assert_near(&run(&pair, seed, str::to_owned), &expected(), Real::F64, &(seed, &pair));
        }
    }
}

/// Returns the text without some of its lines. The function gets the number of a line, and the line.
fn without(text: &str, is_left_out: impl Fn(usize, &str) -> bool) -> String {
    let lines = text.lines().enumerate().filter(|(i, line)| !is_left_out(*i, line));
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

#[test]
fn without_a_wait_results_are_wrong() {
    let (pair, expected) = (long_transforms(2), expected());
    let bound = bound(&expected, Real::F64);
    // The first pass waits for the ring, and the second pass waits for the first one.
    for wait in 0..2 {
        // This asks, compares, and goes on.
        let once = |text: &str| {
            let mut asks = text.lines().enumerate().filter(|(_, line)| line.contains("ld.acquire"));
            let back = asks.nth(wait).expect("a wait").0 + 2;
            without(text, |i, line| {
                assert!(i != back || line.contains(" bra "), "{line}");
                i == back
            })
        };
        let is_right = |seed| {
            let found = run(&pair, seed, once);
            std::iter::zip(&found, &expected).all(|(found, expected)| (found - expected).l1_norm() <= bound)
        };
        let mut seeds = SEEDS;
        assert!(!seeds.all(is_right), "wait {wait}");
    }
}

#[test]
#[should_panic(expected = "blocks wait for good")]
fn tiles_that_are_not_counted_are_waited_for_for_good() {
    run(&long_transforms(2), 0, |text| without(text, |_, line| line.contains("red.release")));
}
