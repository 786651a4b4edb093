//! Tests kernels that the library ships, without an `instantiate!`, against plain Rust: a type that a kernel was compiled for, and types whose
//! items it also serves.
//!
//! Lengths are small, and values are whole numbers that each type has. Many values are for the net.
//!
//! Calls with all numbers and pairs of them compile: their types have what the bounds of the calls ask for, and the compiler finds the kernels
//! without a hint. Only some of them run, because the emulated kernels of each type take the compiler minutes. The macro of the table in
//! `src/kernels/device/shipped.rs` checks that all types of the table have their kernels, also those of algorithms that are not called here.

use kernel_primitives::algorithms::*;
use kernel_primitives::functor::{
    Add, ArgMax, ArgMin, Greater, GreaterThan, Identity, Less, LessThan, Max, MaxOf, Mean, Min, MinOf, Mul, NotEqual,
    Prod, Sub, Sum, bind_second, of_pair,
};
use kernel_primitives::input::{counting, zip};
use kernel_primitives::{Buffer, Device, Element, Result, Stream, bf16, f16};

/// Calls a macro with what is given, and all numbers.
macro_rules! with_numbers {
    ($then:ident $($given:tt)*) => {
        $then! { $($given)* [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64] }
    };
}

mod arrays;
mod numbers;
mod pairs;

/// A type that has small whole numbers.
trait Whole {
    fn of(n: i64) -> Self;
}

impl Whole for i128 {
    fn of(n: i64) -> Self {
        n.into()
    }
}

/// A number that converts from and to `i64`, which all types have in common.
trait Small: Element + Whole {
    fn get(self) -> f64;
}

macro_rules! small {
    ($($t:ty: |$n:ident| $of:expr, |$x:ident| $get:expr;)*) => {$(
        impl Whole for $t {
            fn of($n: i64) -> Self {
                $of
            }
        }

        impl Small for $t {
            fn get(self) -> f64 {
                let $x = self;
                $get
            }
        }
    )*};
}
small! {
    i8: |n| n as i8, |x| x as f64;
    i16: |n| n as i16, |x| x as f64;
    i32: |n| n as i32, |x| x as f64;
    i64: |n| n, |x| x as f64;
    u8: |n| n as u8, |x| x as f64;
    u16: |n| n as u16, |x| x as f64;
    u32: |n| n as u32, |x| x as f64;
    u64: |n| n as u64, |x| x as f64;
    f16: |n| f16::from_f64(n as f64), |x| x.to_f64();
    bf16: |n| bf16::from_f64(n as f64), |x| x.to_f64();
    f32: |n| n as f32, |x| x as f64;
    f64: |n| n as f64, |x| x;
}

const LEN: usize = 20;

/// Twenty numbers whose mean is 3.
const X: [i64; LEN] = [3, 1, 4, 1, 5, 5, 2, 6, 5, 3, 0, 5, 0, 2, 4, 4, 0, 7, 1, 2];

/// Runs of equal keys.
const KEYS: [i64; LEN] = [7, 7, 7, 2, 2, 9, 9, 9, 9, 9, 1, 2, 2, 3, 3, 3, 3, 3, 3, 0];

/// The offsets of segments. One segment is empty.
const OFFSETS: [u32; 5] = [0, 4, 4, 9, 20];

fn segments() -> impl Iterator<Item = std::ops::Range<usize>> {
    OFFSETS.windows(2).map(|ends| ends[0] as usize..ends[1] as usize)
}

/// Returns the ranges of equal keys.
fn runs() -> Vec<std::ops::Range<usize>> {
    let mut begin = 0;
    let range = |run: &[i64]| {
        begin += run.len();
        begin - run.len()..begin
    };
    KEYS.chunk_by(|a, b| a == b).map(range).collect()
}

fn stream() -> Result<Stream> {
    Device::auto()?.stream()
}

fn buffer<T: Small>(stream: &Stream, x: &[i64]) -> Result<Buffer<T>> {
    stream.buffer_from(&x.iter().map(|&n| T::of(n)).collect::<Vec<_>>())
}

/// Checks that the first elements of a buffer are these numbers.
#[track_caller]
fn check<T: Small>(found: &Buffer<T>, expected: impl IntoIterator<Item = i64>) {
    let expected: Vec<f64> = expected.into_iter().map(|n| T::of(n).get()).collect();
    let found: Vec<f64> = found.to_vec().expect("the launch is right").into_iter().map(T::get).collect();
    assert_eq!(found[..expected.len()], expected, "{}", std::any::type_name::<T>());
}

/// Returns the scan of numbers: the inclusive one, or the exclusive one from `first`.
fn scanned(x: &[i64], first: Option<i64>, op: fn(i64, i64) -> i64) -> Vec<i64> {
    let mut total = first;
    let step = |&n: &i64| {
        let before = total;
        total = Some(total.map_or(n, |total| op(total, n)));
        if first.is_some() { before } else { total }.expect("one of the two")
    };
    x.iter().map(step).collect()
}

/// Returns the places of numbers in a stable order.
fn sorted(x: &[i64], descending: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..x.len()).collect();
    places.sort_by_key(|&i| if descending { -x[i] } else { x[i] });
    places
}

fn at(x: &[i64], places: &[usize]) -> Vec<i64> {
    places.iter().map(|&i| x[i]).collect()
}

fn min(a: i64, b: i64) -> i64 {
    a.min(b)
}

fn max(a: i64, b: i64) -> i64 {
    a.max(b)
}

fn add(a: i64, b: i64) -> i64 {
    a + b
}
