//! The types and operators for which the algorithms are ready without an `instantiate!`.
//!
//! Each line multiplies types and operators. [`docs::ready`](kernel_primitives::docs::ready) is made from this table. The kernels are
//! compiled for each architecture, so the lists should not be longer than necessary.
//!
//! A type stands for another type if the kernels cannot distinguish them. An algorithm that only moves items uses only their size. An
//! algorithm that adds integers, or compares them for equality, does not use their sign. A sort by bits does not use it, either, because
//! its launch turns the sign. Then one kernel serves all these types.
//!
//! The macro also checks that the algorithm's trait holds for all types of each line, whatever stands for them.

use kernel_primitives::functor::{
    ArgMax, ArgMin, Axpby, BindSecond, Flagged, Greater, GreaterThan, Identity, Less, LessThan, MaxOf, Mean, MinOf,
    NotEqual, OfPair, PlusTimes, Prod, RealPart, Sub, Sum,
};
use kernel_primitives::input::{Constant, Counting, Permutation, Span, Zip};
use kernel_primitives::output::SpanMut;

use super::*;

kernel_primitives::__shipped! {
    numbers = [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64];
    keys = [i32, i64, u32, u64];
    moved = { i8: u8, i16: u16, f16: u16, bf16: u16, i32: u32, f32: u32, i64: u64, f64: u64 };
    unsigned = { i8: u8, i16: u16, i32: u32, i64: u64 };

    // Transforms.
    for T in numbers as moved { transform<T, Identity, T>, fill<T>, gather<T, u32, T>, scatter<T, u32> }
    for T in numbers as unsigned, F in [Add, Sub, Mul] { transform<Zip<Span<T>, Span<T>>, OfPair<F>, T> }
    for T in numbers as unsigned { adjacent_difference<T, Sub> }
    for T in [u32, u64] { transform<Counting<T>, Identity, T> }
    for F in [Identity] { generate<F, u64> }

    // Reductions.
    for T in numbers as unsigned, R in [Sum, Prod] { reduce<T, R> }
    for T in numbers, R in [Mean, MinOf, MaxOf, ArgMin, ArgMax] { reduce<T, R> }
    for T in numbers as unsigned { segmented_reduce<T, u32, Sum> }
    for T in numbers, R in [MinOf, MaxOf] { segmented_reduce<T, u32, R> }
    for T in [f32] { segmented_reduce<T, u64, Sum> }

    // Scans.
    for T in numbers as unsigned { inclusive_scan<T, Add>, exclusive_scan<T, Add> }
    for T in numbers, R in [Min, Max] { inclusive_scan<T, R> }
    for T in numbers as unsigned { segmented_inclusive_scan<T, u32, Add>, segmented_exclusive_scan<T, u32, Add> }

    // By key.
    for K in keys as unsigned, T in numbers as unsigned {
        inclusive_scan_by_key<K, T, Add>,
        exclusive_scan_by_key<K, T, Add>,
        reduce_by_key<K, T, Add>,
    }
    for K in [i32, u32] as unsigned, T in numbers, R in [Min, Max] { reduce_by_key<K, T, R> }
    for T in numbers as unsigned { run_length_encode<T, u32> }

    // Sparse matrices.
    for T in [f32, f64] { spmv<T, T, u32, PlusTimes, Axpby<T>>, spmm<T, T, u32, PlusTimes, Axpby<T>> }
    for I in [u32, u64] share { csr_check<I>, csr_row_indices<I>, csr_keys<I>, csr_rows_of_keys<I>, csr_splits<I> }
    for I in [u32, u64] share { csr_giants<I>, csr_windows<I> }
    for I in [u32, u64] share { sell_keys<I>, sell_slots<I>, sell_fill<I> }

    // Fourier transforms.
    for T in [f32, f64] {
        fft<T, Span<Complex<T>>, Identity, SpanMut<Complex<T>>>,
        fft<T, Span<T>, Identity, SpanMut<Complex<T>>>,
        fft<T, Span<Complex<T>>, RealPart, SpanMut<T>>,
    }
    for T in [f32, f64] share { fft_lines_in_place<T, false>, fft_lines_in_place<T, true> }

    // Histograms and searches.
    for T in numbers { histogram_even<T, u32>, histogram_ranges<T, u32>, lower_bound<T, T>, upper_bound<T, T> }

    // Sorts.
    for K in numbers as unsigned { sort_keys<K> }
    for K in numbers as unsigned, V in numbers as moved { sort_pairs<K, V> }
    for T in numbers, C in [Less, Greater] { sort_by<T, C>, merge<T, T, C>, segmented_sort<T, u32, C> }
    for K in numbers, V in [i32, u32, f32] as moved, C in [Less, Greater] {
        sort_pairs_by<K, V, C>,
        merge_pairs<K, K, V, V, C>,
    }
    for K in [i32, i64, u32, u64, f32, f64], V in [i32, u32, f32] as moved, C in [Less, Greater] {
        segmented_sort_pairs<K, V, u32, C>,
    }
    for T in numbers as moved share { segment_sort_last<T> }

    // The first few.
    for T in numbers, O in [Less, Greater] { top_k<T, O>, top_k_pairs<T, Counting<u32>, O> }
    for T in [f32] { top_k_pairs<T, Counting<u64>, Greater> }
    for T in numbers as unsigned share { top_k_tiles<Span<T>>, top_k_last<T>, top_k_last_pairs<T, Counting<u32>> }

    // Selections.
    for T in numbers as unsigned { select_if<T, BindSecond<NotEqual, T>>, unique<T> }
    for T in numbers, P in [LessThan, GreaterThan] { select_if<T, BindSecond<P, T>> }
    for T in numbers { partition<T, BindSecond<LessThan, T>> }
    for T in numbers as moved { select_flagged<T, bool> }
    for K in keys as unsigned, V in numbers as moved { unique_by_key<K, V> }
}
