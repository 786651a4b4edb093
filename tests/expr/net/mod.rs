//! Tests random expressions, reductions, overlaps and plans against an interpreter.
//!
//! The interpreter is plain Rust. It computes integers as `i128` that wrap to their type, and floats as `f64` that round to their type.
//! Results that IEEE 754 or the docs define are compared bit by bit, and NaN equals NaN. Elementary functions may differ by a few units in
//! the last place.
//!
//! `KERNEL_PRIMITIVES_NET_CASES` is the number of cases of each property. `KERNEL_PRIMITIVES_NET_SEED` draws other cases. A failure is
//! shrunk, and its message has the seed.
//!
//! ```text
//! KERNEL_PRIMITIVES_NET_CASES=20000 cargo test --release --test expr net::
//! ```

mod assignments;
mod layout;
mod overlaps;
mod plans;
mod reductions;
mod reference;
mod stencils;
mod tree;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

/// The number of cases of a property, unless the environment has another number.
const CASES: u32 = 150;

fn number<T: std::str::FromStr>(variable: &str, otherwise: T) -> T {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{variable} is a number, and not `{text}`"));
    std::env::var(variable).map_or(otherwise, parse)
}

/// Checks a property of random cases.
fn check<S: Strategy>(strategy: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    check_cases(CASES, strategy, property);
}

/// Checks a property of this number of cases, unless the environment has another number. Every run draws the same cases.
pub(crate) fn check_cases<S: Strategy>(
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let (cases, seed) = (number("KERNEL_PRIMITIVES_NET_CASES", cases), number("KERNEL_PRIMITIVES_NET_SEED", 1));
    assert!(cases > 0, "KERNEL_PRIMITIVES_NET_CASES is 0, so nothing is tested");
    let config = Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: 4000,
        ..Config::default()
    };
    if let Err(error) = TestRunner::new(config).run(&strategy, property) {
        panic!("KERNEL_PRIMITIVES_NET_SEED={seed}, of {cases} cases: {error}");
    }
}

/// Calls the body with `$T` as the Rust type of a `DType`.
macro_rules! with {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::net::with!(@ $dtype, $T => $body;
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $t:ty),*) => {
        match $dtype {
            $(kernel_primitives::expr::DType::$variant => {
                type $T = $t;
                $body
            })*
            other => unreachable!("{other}"),
        }
    };
}
use with;

/// Returns the type with a number.
fn dtype(number: u8) -> kernel_primitives::expr::DType {
    let all = kernel_primitives::expr::DType::ALL;
    all[usize::from(number) % all.len()]
}

/// Draws extents near those that code depends on: none, one, vectors, warps, chunks.
fn extent() -> impl Strategy<Value = usize> {
    let special =
        vec![2usize, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 64, 100, 127, 128, 129, 255, 256, 257, 1000, 1024, 1025];
    prop_oneof![1 => Just(0usize), 6 => Just(1usize), 20 => prop::sample::select(special), 8 => 2..12usize]
}

/// Draws shapes of any rank. Few have many elements.
fn shape() -> impl Strategy<Value = Vec<usize>> {
    let extents = prop_oneof![
        8 => prop::collection::vec(extent(), 0..5),
        1 => prop::collection::vec(extent(), 5..=kernel_primitives::expr::MAX_RANK),
    ];
    let most = prop_oneof![16 => Just(1500usize), 1 => Just(70_000usize)];
    (extents, most).prop_map(|(mut extents, most)| {
        // Memories without elements are not larger, so an extent of 0 counts as 1.
        while extents.iter().map(|&extent| extent.max(1)).product::<usize>() > most {
            let longest = extents.iter_mut().max().expect("some extents");
            *longest = longest.div_ceil(2);
        }
        extents
    })
}

/// Returns the indices of all elements of a shape, outermost axis first.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..shape.iter().product()).map(move |mut rest| {
        let mut index = vec![0; shape.len()];
        for (index, &extent) in index.iter_mut().zip(shape).rev() {
            *index = rest % extent;
            rest /= extent;
        }
        index
    })
}

/// Returns bits that look random, made from numbers.
fn hash(seed: u64, at: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    for shift in [30, 27, 31] {
        x = (x ^ x >> shift).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    x ^ x >> 29
}
