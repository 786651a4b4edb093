//! Kernels of algorithms for types that the library does not ship.

use kernel_primitives::functor::{BindSecond, Identity, Less, LessThan, OfPair, Sub};
use kernel_primitives::input::{Constant, Span, Zip};
use kernel_primitives::kernels::device;
use kernel_primitives::output::SpanMut;
use kernel_primitives::prelude::*;

type Pairs<T> = Zip<Span<T>, Span<T>>;

instantiate!(
    device::transform_tiles<Pairs<f32>, OfPair<Add>, SpanMut<f32>>,
    device::transform_tiles<Pairs<f64>, OfPair<Add>, SpanMut<f64>>,
    device::transform_tiles<Pairs<f16>, OfPair<Add>, SpanMut<f16>>,
    device::transform_tiles<Pairs<i32>, OfPair<Add>, SpanMut<i32>>,
    device::transform_tiles<Pairs<i64>, OfPair<Add>, SpanMut<i64>>,
    device::transform_tiles<Constant<f16>, Identity, SpanMut<f16>>,
    device::transform_tiles<Constant<i32>, Identity, SpanMut<i32>>,
    device::transform_tiles<Constant<i64>, Identity, SpanMut<i64>>,
    device::scan_tiles<Span<f16>, Add, false>,
    device::scan_tiles<Span<f16>, Add, true>,
    device::scan_pipeline<Span<f16>, Add, false>,
    device::scan_pipeline<Span<f16>, Add, true>,
    device::difference_tiles<Span<i64>, Sub>,
    device::difference_tiles<Span<f16>, Sub>,
    device::select_tiles<Span<i64>, Constant<()>, BindSecond<LessThan, i64>, false>,
    device::select_tiles<Span<f64>, Constant<()>, BindSecond<LessThan, f64>, false>,
    device::select_tiles<Span<f16>, Constant<()>, BindSecond<LessThan, f16>, false>,
    device::merge_sort_tiles<Span<i64>, Less>,
    device::merge_splits<Span<i64>, Span<i64>, Less>,
    device::merge_tiles<Span<i64>, Span<i64>, Less>,
    device::unique_tiles<Span<i64>, Constant<u8>, false>,
    device::unique_tiles<Span<f64>, Constant<u8>, false>,
    device::unique_tiles<Span<f16>, Constant<u8>, false>
);
