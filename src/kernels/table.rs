//! The kernels of each algorithm. `instantiate!` makes them for an algorithm's name, and the algorithm's trait has their descriptions.

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
            merge_sort_tiles<Of<Self>, O>,
            merge_splits<Spans<Self>, Spans<Self>, O>,
            merge_tiles<Spans<Self>, Spans<Self>, O>,
        ] }
    };
    (top_k_pairs $then:ident $given:tt) => {
        $crate::$then! { $given TopKPairs [X, O] [Self: AsSource, X: AsSource] [
            top_k_tiles<Of<Self>>,
            top_k_last_pairs<Item<Self>, Of<X>>,
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
    pub use super::super::device::*;
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
