//! Two tables of the algorithms: the kernels of each algorithm, and the types and operators for which the library ships them.
//!
//! `instantiate!` makes the kernels that the first table has for an algorithm's name, and the algorithm's trait has their descriptions.

use kernel_primitives::functor::{
    ArgMax, ArgMin, Axpby, BindSecond, Flagged, Greater, GreaterThan, Identity, Less, LessThan, MaxOf, Mean, MinOf,
    NotEqual, OfPair, PlusTimes, Prod, RealPart, Sub, Sum,
};
use kernel_primitives::input::{Constant, Counting, Permutation, Span, Zip};
use kernel_primitives::output::SpanMut;
use kernel_primitives::prelude::*;

use super::*;

/// The rows: an algorithm, its trait, the parameters of the trait after `Self`, their bounds, and the kernels.
///
/// `Of` and `To` are the source and the sink that a parameter names, `Item` is the source's item, and `Spans` such items in memory.
#[doc(hidden)]
#[macro_export]
macro_rules! __algorithm {
    (transform $then:ident $given:tt) => {
        $crate::$then! { $given Transform [F, O] [Self: AsSource, O: AsSink] [
            transform_tiles<Of<Self>, F, To<O>>,
        ] }
    };
    (generate $then:ident $given:tt) => {
        $crate::$then! { $given Generate [O] [O: AsSink] [
            transform_tiles<Counting<u64>, Self, To<O>>,
        ] }
    };
    (gather $then:ident $given:tt) => {
        $crate::$then! { $given Gather [P, O] [Self: AsSource, P: AsSource, O: AsSink] [
            transform_tiles<Permutation<Of<Self>, Of<P>>, Identity, To<O>>,
        ] }
    };
    (scatter $then:ident $given:tt) => {
        $crate::$then! { $given Scatter [P] [Self: AsSource, P: AsSource] [
            scatter_tiles<Of<Self>, Of<P>>,
        ] }
    };
    (fill $then:ident $given:tt) => {
        $crate::$then! { $given Fill [] [] [
            transform_tiles<Constant<Self>, Identity, SpanMut<Self>>,
        ] }
    };
    (adjacent_difference $then:ident $given:tt) => {
        $crate::$then! { $given AdjacentDifference [F] [Self: AsSource] [
            difference_tiles<Of<Self>, F>,
        ] }
    };
    (reduce $then:ident $given:tt) => {
        $crate::$then! { $given Reduce [R] [Self: AsSource] [
            reduce_tiles<Of<Self>, R>,
        ] }
    };
    (spmv $then:ident $given:tt) => {
        $crate::$then! { $given Spmv [X, I, R, E] [X: AsSource] [
            csr_staged_rows<Self, Of<X>, I, R, E>,
            csr_rows<Self, Of<X>, I, R, E>,
            csr_tiles<Self, Of<X>, I, R, E>,
            csr_ends<Self, Item<X>, I, R, E>,
            csr_rows_by_length<Self, Of<X>, I, R, E>,
            csr_giant_rows<Self, Item<X>, I, R, E>,
            csr_window_rows<Self, Of<X>, I, R, E>,
            sell_rows<Self, Of<X>, I, R, E>,
        ] }
    };
    (spmm $then:ident $given:tt) => {
        $crate::$then! { $given Spmm [X, I, R, E] [X: AsSource] [
            csr_row_vectors<Self, Of<X>, I, R, E>,
        ] }
    };
    (fft $then:ident $given:tt) => {
        $crate::$then! { $given Fft [S, F, O] [S: AsSource, O: AsSink] [
            fft_lines<Self, Of<S>, F, To<O>, false>,
            fft_lines<Self, Of<S>, F, To<O>, true>,
            fft_lines<Self, Of<S>, Identity, SpanMut<Complex<Self>>, false>,
            fft_lines<Self, Of<S>, Identity, SpanMut<Complex<Self>>, true>,
            fft_lines<Self, Span<Complex<Self>>, F, To<O>, false>,
            fft_lines<Self, Span<Complex<Self>>, F, To<O>, true>,
            fft_lines<Self, Span<Complex<Self>>, Identity, SpanMut<Complex<Self>>, false>,
            fft_lines<Self, Span<Complex<Self>>, Identity, SpanMut<Complex<Self>>, true>,
        ] }
    };
    (segmented_reduce $then:ident $given:tt) => {
        $crate::$then! { $given SegmentedReduce [O, R] [Self: AsSource, O: AsSource] [
            segment_warps<Of<Self>, Of<O>, R>,
            segment_tiles<Of<Self>, Of<O>, R>,
            segment_ends<Item<Self>, Of<O>, R>,
        ] }
    };
    (inclusive_scan $then:ident $given:tt) => {
        $crate::$then! { $given InclusiveScan [R] [Self: AsSource] [
            scan_tiles<Of<Self>, R, false>,
            scan_pipeline<Of<Self>, R, false>,
        ] }
    };
    (exclusive_scan $then:ident $given:tt) => {
        $crate::$then! { $given ExclusiveScan [R] [Self: AsSource] [
            scan_tiles<Of<Self>, R, true>,
            scan_pipeline<Of<Self>, R, true>,
        ] }
    };
    (segmented_inclusive_scan $then:ident $given:tt) => {
        $crate::$then! { $given SegmentedInclusiveScan [O, R] [Self: AsSource, O: AsSource] [
            segment_scan_warps<Of<Self>, Of<O>, R>,
            segment_scan_tiles<Of<Self>, Of<O>, R>,
        ] }
    };
    (segmented_exclusive_scan $then:ident $given:tt) => {
        $crate::$then! { $given SegmentedExclusiveScan [O, R] [Self: AsSource, O: AsSource] [
            segment_scan_warps<Of<Self>, Of<O>, R>,
            segment_scan_tiles<Of<Self>, Of<O>, R>,
        ] }
    };
    (reduce_by_key $then:ident $given:tt) => {
        $crate::$then! { $given ReduceByKey [V, R] [Self: AsSource, V: AsSource] [
            reduce_by_key_tiles<Of<Self>, Of<V>, R>,
        ] }
    };
    (run_length_encode $then:ident $given:tt) => {
        $crate::$then! { $given RunLengthEncode [L] [Self: AsSource] [
            run_length_tiles<Of<Self>, L>,
        ] }
    };
    (inclusive_scan_by_key $then:ident $given:tt) => {
        $crate::$then! { $given InclusiveScanByKey [V, R] [Self: AsSource, V: AsSource] [
            scan_by_key_tiles<Of<Self>, Of<V>, R>,
        ] }
    };
    (exclusive_scan_by_key $then:ident $given:tt) => {
        $crate::$then! { $given ExclusiveScanByKey [V, R] [Self: AsSource, V: AsSource] [
            scan_by_key_tiles<Of<Self>, Of<V>, R>,
        ] }
    };
    (histogram_even $then:ident $given:tt) => {
        $crate::$then! { $given HistogramEven [C] [Self: AsSource, Item<Self>: Binnable] [
            histogram_tiles<Of<Self>, EvenBins<Item<Self>>, C>,
        ] }
    };
    (histogram_ranges $then:ident $given:tt) => {
        $crate::$then! { $given HistogramRanges [C] [Self: AsSource] [
            histogram_tiles<Of<Self>, LevelBins, C>,
        ] }
    };
    (lower_bound $then:ident $given:tt) => {
        $crate::$then! { $given LowerBound [Q] [Self: AsSource, Q: AsSource] [
            search_tiles<Of<Self>, Of<Q>, false>,
        ] }
    };
    (upper_bound $then:ident $given:tt) => {
        $crate::$then! { $given UpperBound [Q] [Self: AsSource, Q: AsSource] [
            search_tiles<Of<Self>, Of<Q>, true>,
        ] }
    };
    (sort_keys $then:ident $given:tt) => {
        $crate::$then! { $given SortKeys [] [] [
            sort_tile<Self>,
            count_digits<Self>,
            sort_sweep<Self>,
        ] }
    };
    (sort_pairs $then:ident $given:tt) => {
        $crate::$then! { $given SortPairs [V] [] [
            sort_tile_pairs<Self, V>,
            count_digits<Self>,
            sort_sweep_pairs<Self, V>,
        ] }
    };
    (sort_by $then:ident $given:tt) => {
        $crate::$then! { $given SortBy [C] [Self: AsSource] [
            merge_sort_tiles<Of<Self>, C>,
            merge_splits<Spans<Self>, Spans<Self>, C>,
            merge_tiles<Spans<Self>, Spans<Self>, C>,
        ] }
    };
    (sort_pairs_by $then:ident $given:tt) => {
        $crate::$then! { $given SortPairsBy [X, C] [Self: AsSource, X: AsSource] [
            merge_sort_tiles_pairs<Of<Self>, Of<X>, C>,
            merge_splits<Spans<Self>, Spans<Self>, C>,
            merge_tiles_pairs<Spans<Self>, Spans<Self>, Spans<X>, Spans<X>, C>,
        ] }
    };
    (segmented_sort $then:ident $given:tt) => {
        $crate::$then! { $given SegmentedSort [O, C] [Self: AsSource, O: AsSource] [
            segment_sort_tiles<Of<Self>, Of<O>, C>,
            segment_merge_ranks<Item<Self>, C>,
            segment_merge_tiles<Item<Self>, C>,
            segment_sort_last<Item<Self>>,
        ] }
    };
    (segmented_sort_pairs $then:ident $given:tt) => {
        $crate::$then! { $given SegmentedSortPairs [X, O, C] [Self: AsSource, X: AsSource, O: AsSource] [
            segment_sort_tiles_pairs<Of<Self>, Of<X>, Of<O>, C>,
            segment_merge_ranks_pairs<Item<Self>, Item<X>, C>,
            segment_merge_tiles_pairs<Item<Self>, Item<X>, C>,
            segment_sort_last<Item<Self>>,
            segment_sort_last<Item<X>>,
        ] }
    };
    (merge $then:ident $given:tt) => {
        $crate::$then! { $given Merge [T, C] [Self: AsSource, T: AsSource] [
            merge_splits<Of<Self>, Of<T>, C>,
            merge_tiles<Of<Self>, Of<T>, C>,
        ] }
    };
    (merge_pairs $then:ident $given:tt) => {
        $crate::$then! { $given MergePairs [T, X, Y, C] [Self: AsSource, T: AsSource, X: AsSource, Y: AsSource] [
            merge_splits<Of<Self>, Of<T>, C>,
            merge_tiles_pairs<Of<Self>, Of<T>, Of<X>, Of<Y>, C>,
        ] }
    };
    (top_k $then:ident $given:tt) => {
        $crate::$then! { $given TopK [O] [Self: AsSource] [
            top_k_tiles<Of<Self>>,
            top_k_last<Item<Self>>,
            top_k_bests<Of<Self>>,
            top_k_before<Of<Self>>,
            top_k_found<Item<Self>>,
            merge_sort_tiles<Of<Self>, O>,
            merge_splits<Spans<Self>, Spans<Self>, O>,
            merge_tiles<Spans<Self>, Spans<Self>, O>,
        ] }
    };
    (top_k_pairs $then:ident $given:tt) => {
        $crate::$then! { $given TopKPairs [X, O] [Self: AsSource, X: AsSource] [
            top_k_tiles<Of<Self>>,
            top_k_last_pairs<Item<Self>, Of<X>>,
            top_k_bests<Of<Self>>,
            top_k_before<Of<Self>>,
            top_k_found_pairs<Item<Self>, Of<X>>,
            merge_sort_tiles_pairs<Of<Self>, Of<X>, O>,
            merge_splits<Spans<Self>, Spans<Self>, O>,
            merge_tiles_pairs<Spans<Self>, Spans<Self>, Spans<X>, Spans<X>, O>,
        ] }
    };
    (select_if $then:ident $given:tt) => {
        $crate::$then! { $given SelectIf [P] [Self: AsSource] [
            select_tiles<Of<Self>, Constant<()>, P, false>,
        ] }
    };
    (select_flagged $then:ident $given:tt) => {
        $crate::$then! { $given SelectFlagged [F] [Self: AsSource, F: AsSource] [
            select_tiles<Of<Self>, Of<F>, Flagged, false>,
        ] }
    };
    (partition $then:ident $given:tt) => {
        $crate::$then! { $given Partition [P] [Self: AsSource] [
            select_tiles<Of<Self>, Constant<()>, P, true>,
        ] }
    };
    (unique $then:ident $given:tt) => {
        $crate::$then! { $given Unique [] [Self: AsSource] [
            unique_tiles<Of<Self>, Constant<u8>, false>,
        ] }
    };
    (unique_by_key $then:ident $given:tt) => {
        $crate::$then! { $given UniqueByKey [V] [Self: AsSource, V: AsSource] [
            unique_tiles<Of<Self>, Of<V>, true>,
        ] }
    };
    ($other:ident $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "there is no algorithm `",
            ::core::stringify!($other),
            "`, or it needs no kernels: see `kernel_primitives::algorithms`"
        ));
    };
}

/// The types that the rows name.
#[doc(hidden)]
pub mod names {
    pub use crate::kernels::device::*;
    pub use kernel_primitives::Complex;
    pub use kernel_primitives::functor::{Flagged, Identity};
    pub use kernel_primitives::input::{AsSource, Constant, Counting, Permutation, Source, Span};
    pub use kernel_primitives::output::{AsSink, Sink, SpanMut};

    /// The source that a type names.
    pub type Of<S> = <S as AsSource>::Source;
    /// The sink that a type names.
    pub type To<O> = <O as AsSink>::Sink;
    /// The items of a source.
    pub type Item<S> = <Of<S> as Source>::Item;
    /// The items of a source, in memory.
    pub type Spans<S> = Span<Item<S>>;
    /// The name of a source that calls infer.
    pub type ShortSource<S> = <Of<S> as Source>::Short;
    /// The name of a sink that calls infer.
    pub type ShortSink<O> = <To<O> as Sink>::Short;
}

// The types and operators for which the algorithms are ready without an `instantiate!`.
//
// Each line multiplies types and operators. `docs::ready` is made from this table. The kernels are compiled for each architecture, so the
// lists should not be longer than necessary.
//
// A type stands for another type if the kernels cannot distinguish them. An algorithm that only moves items uses only their size. An
// algorithm that adds integers, or compares them for equality, does not use their sign. A sort by bits does not use it, either, because
// its launch turns the sign. Then one kernel serves all these types.
//
// The macro also checks that the algorithm's trait holds for all types of each line, whatever stands for them.
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
    for T in numbers as unsigned share {
        top_k_tiles<Span<T>>,
        top_k_last<T>,
        top_k_last_pairs<T, Counting<u32>>,
        top_k_bests<Span<T>>,
        top_k_before<Span<T>>,
        top_k_found<T>,
        top_k_found_pairs<T, Counting<u32>>,
    }

    // Selections.
    for T in numbers as unsigned { select_if<T, BindSecond<NotEqual, T>>, unique<T> }
    for T in numbers, P in [LessThan, GreaterThan] { select_if<T, BindSecond<P, T>> }
    for T in numbers { partition<T, BindSecond<LessThan, T>> }
    for T in numbers as moved { select_flagged<T, bool> }
    for K in keys as unsigned, V in numbers as moved { unique_by_key<K, V> }
}
