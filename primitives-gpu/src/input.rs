//! Inputs by index, in memory or computed: buffers, consecutive numbers, and other inputs that are mapped, zipped, permuted, strided or
//! reversed.
//!
//! A kernel with a parameter `x: Input<S>` takes any of them. `S`, a [`Source`], says which one. So a kernel is instantiated for each type
//! of input that it is launched with, and computed values take no memory. The types are the same where the host builds an input and where
//! the kernel reads it, except the buffers: `&Buffer<T>` or a slice of one on the host, and [`Span<T>`] in the kernel.
//!
//! | built by | items | source |
//! |---|---|---|
//! | `&buffer`, `buffer.slice(..)` | the elements | [`Span<T>`] |
//! | [`constant`]`(value, len)` | `value` | [`Constant<T>`] |
//! | [`counting`]`(first, len)` | `first`, `first + 1`, … | [`Counting<T>`] |
//! | [`map`]`(x, f)` | `f(x[i])` | [`Map<S, F>`] |
//! | [`zip`]`(x, y)` | `(x[i], y[i])`, as many as both have | [`Zip<S, R>`] |
//! | [`permutation`]`(x, at)` | `x[at[i]]` | [`Permutation<S, I>`] |
//! | [`strided`]`(x, step)` | `x[i * step]` | [`Strided<S>`] |
//! | [`reversed`]`(x)` | `x[len - 1 - i]` | [`Reversed<S>`] |
//! | [`segments`]`(offsets, len)` | how many offsets are `i` at most | [`Segments<S>`] |
//!
//! ```
//! use kernel_primitives::functor::{Mul, of_pair};
//! use kernel_primitives::input::{Counting, Input, Map, Source, Span, Zip, counting, map, zip};
//! use kernel_primitives::prelude::*;
//!
//! type Weighted = Map<Zip<Span<f32>, Span<f32>>, kernel_primitives::functor::OfPair<Mul>>;
//!
//! /// The sums of each block's share.
//! #[kernel(instantiate(<Span<f32>>, <Weighted>))]
//! fn block_sums<S: Source<Item = f32>>(
//!     cx: Block,
//!     x: Input<S>,
//!     mut sums: GlobalMut<f32, PerBlock>,
//!     mut shared: Shared<ReduceStorage<f32>>,
//! ) {
//!     let mut sum = 0.0;
//!     for i in cx.items(x.len()) {
//!         sum += x.at(i.index());
//!     }
//!     sums.store(block_reduce(cx, &mut shared, sum, Add));
//! }
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = kernel_primitives::Device::emulator().stream()?;
//! let x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
//! let weights = stream.buffer_from(&[10.0f32, 100.0, 1000.0])?;
//! let mut sum = stream.buffer_zeroed::<f32>(1)?;
//! block_sums::launch(&stream, (1, 32), map(zip(&x, &weights), of_pair(Mul)), &mut sum)?;
//! assert_eq!(sum.to_vec()?, [3210.0]);
//! # Ok(())
//! # }
//! ```

use core::mem::{MaybeUninit, size_of};
use core::panic::Location;

use crate::element::Element;
use crate::simt::{Block, FaultKind};
use crate::view::{Layout, SharedArray, group_copies, wait_for_copies, wait_for_copies_but_last};

mod combined;
mod computed;
mod places;
mod segments;
mod span;

pub use combined::{Map, Zip, map, zip};
pub use computed::{Constant, Counting, constant, counting};
pub use places::{Permutation, Reversed, Strided, permutation, reversed, strided};
pub use segments::{Segments, segments};
pub use span::Span;

/// An array of what an expression is for each index; no closure, which would hide the caller's place.
macro_rules! each {
    ($i:ident < $n:expr, $item:expr) => {{
        let mut items = [const { ::core::mem::MaybeUninit::uninit() }; $n];
        for ($i, item) in items.iter_mut().enumerate() {
            item.write($item);
        }
        // SAFETY: all of them were written.
        unsafe { $crate::input::all_of(&items) }
    }};
}
use each;

/// # Safety
/// All items have been written.
#[inline(always)]
unsafe fn all_of<T: Copy, const N: usize>(items: &[MaybeUninit<T>; N]) -> [T; N] {
    // SAFETY: the caller's contract; an array of `MaybeUninit` is laid out as one of its items.
    unsafe { (&raw const *items).cast::<[T; N]>().read() }
}

/// The number of `T` in 16 bytes, or one.
const fn vector<T>() -> usize {
    match size_of::<T>() {
        1 => 16,
        2 => 8,
        4 => 4,
        8 => 2,
        _ => 1,
    }
}

/// Returns a number of items that have at most 128 bytes together, or one: `most` items, or fewer.
const fn at_most(most: usize, bytes: usize) -> usize {
    let mut vector = most;
    while vector > 1 && vector * bytes > 128 {
        vector /= 2;
    }
    vector
}

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// Items by index; see the [module](self).
///
/// # Safety
/// The layout of the type is the same for every compiler.
pub unsafe trait Source: Copy + Send + Sync + Sealed + 'static {
    /// The type of an item.
    type Item: Copy;

    /// The type's name in an algorithm: `T` for a [`Span<T>`], and otherwise the type itself.
    type Short: AsSource<Source = Self>;

    /// The layout that host and device compare.
    #[doc(hidden)]
    const LAYOUT: Layout;

    /// The number of items in one access to memory of 16 bytes, if the memory is aligned for that.
    #[doc(hidden)]
    const VECTOR: usize;

    /// Whether items are read from memory one after the other, without computation, so that many reads can be in flight.
    #[doc(hidden)]
    const IN_MEMORY: bool = false;

    /// The number of vectors that a thread should have in flight at a time, or 0 if nothing waits for memory. It is one if whole vectors
    /// are contiguous and other threads have the next ones, and more if each item is an access.
    #[doc(hidden)]
    const IN_FLIGHT: usize;

    /// The number of items.
    fn len(&self) -> usize;

    /// True if the length is 0.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address by which reports name the memory, or null if the items are computed.
    #[doc(hidden)]
    #[inline(always)]
    fn address(&self) -> *const () {
        core::ptr::null()
    }

    /// The item at `index`.
    ///
    /// # Safety
    /// `index` is below the length. The memory is valid during `'k`, and nobody writes it meanwhile.
    #[doc(hidden)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> Self::Item;

    /// The `N` items from `first`.
    ///
    /// # Safety
    /// As for [`item`](Self::item), for each.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    unsafe fn items<const N: usize>(&self, cx: Block<'_>, first: usize) -> [Self::Item; N] {
        // SAFETY: the caller's contract.
        each!(i < N, unsafe { self.item(cx, first + i) })
    }

    /// The `N` items from `first`, those from `first + stride` and so on, `M` times.
    ///
    /// # Safety
    /// As for [`item`](Self::item), for each.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    unsafe fn vectors<const N: usize, const M: usize>(
        &self,
        cx: Block<'_>,
        first: usize,
        stride: usize,
    ) -> [[Self::Item; N]; M] {
        // SAFETY: the caller's contract.
        each!(m < M, unsafe { self.items(cx, first + m * stride) })
    }

    /// Returns whether vectors of `N` items, from `first` or any multiple of `N` after it, are aligned for their accesses, if they are in
    /// memory.
    #[doc(hidden)]
    #[inline(always)]
    fn is_aligned<const N: usize>(&self, cx: Block<'_>, first: usize) -> bool {
        let _ = (cx, first);
        true
    }

    /// As [`items`](Self::items), by vector accesses.
    ///
    /// # Safety
    /// As there; and they [are aligned](Self::is_aligned).
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    unsafe fn vector<const N: usize>(&self, cx: Block<'_>, first: usize) -> [Self::Item; N] {
        // SAFETY: the caller's contract.
        unsafe { self.items(cx, first) }
    }

    /// Copies the `N` items from `first` to shared memory, from `at`. If they are in memory, it only begins to copy them.
    ///
    /// # Safety
    /// As for [`item`](Self::item), for each, and as for [`SharedArray::store_items`].
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    unsafe fn copy<const N: usize>(&self, cx: Block<'_>, first: usize, to: SharedArray<'_, Self::Item>, at: usize)
    where
        Self::Item: Element,
    {
        // SAFETY: the caller's contract.
        unsafe { to.store_items(at, &self.items::<N>(cx, first)) };
    }

    /// As [`copy`](Self::copy), by vectors.
    ///
    /// # Safety
    /// As there; and they [are aligned](Self::is_aligned).
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    unsafe fn copy_vector<const N: usize>(
        &self,
        cx: Block<'_>,
        first: usize,
        to: SharedArray<'_, Self::Item>,
        at: usize,
    ) where
        Self::Item: Element,
    {
        // SAFETY: the caller's contract.
        unsafe { to.store_items(at, &self.vector::<N>(cx, first)) };
    }

    /// As [`copy`](Self::copy), of items that need not be elements.
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    unsafe fn copy_any<const N: usize>(&self, cx: Block<'_>, first: usize, to: SharedArray<'_, Self::Item>, at: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            let items = self.items::<N>(cx, first);
            for (i, &item) in items.iter().enumerate() {
                to.store_any(at + i, item);
            }
        }
    }
}

/// A parameter of a kernel: items that the launch gives as a buffer, or as an input that [`input`](self) builds.
#[derive(Clone, Copy)]
pub struct Input<'k, S> {
    cx: Block<'k>,
    source: S,
}

impl<'k, S: Source> Input<'k, S> {
    /// The input of a kernel.
    ///
    /// # Safety
    /// The memory that `source` reads is valid for `'k`, and nobody writes it meanwhile.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw(cx: Block<'k>, source: S) -> Self {
        Self { cx, source }
    }

    /// The number of items.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.source.len()
    }

    /// True if the length is 0.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The item at `index`. An index outside is a fault.
    #[track_caller]
    pub fn at(self, index: usize) -> S::Item {
        let len = self.len();
        if index >= len {
            let args = [index as u64, len as u64];
            self.cx.raise_outside(FaultKind::OutOfBounds, args, self.source.address(), Location::caller());
        }
        // SAFETY: inside; the memory is the view's.
        unsafe { self.source.item(self.cx, index) }
    }

    /// The item at `index`, or `None` outside.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, index: usize) -> Option<S::Item> {
        // SAFETY: inside; the memory is the view's.
        if index < self.len() { Some(unsafe { self.source.item(self.cx, index) }) } else { None }
    }

    /// The `N` items from `first`, or `None` unless all of them are inside. It reads memory by vector accesses of up to 16 bytes if the
    /// address is aligned for these.
    #[track_caller]
    pub fn items<const N: usize>(self, first: usize) -> Option<[S::Item; N]> {
        let len = self.len();
        if len < N || first > len - N {
            return None;
        }
        // SAFETY: inside; the memory is the view's.
        Some(unsafe { self.source.items(self.cx, first) })
    }

    /// Works as [`items`](Self::items), for items that are known to be inside. Use it to read several vectors after one comparison, without
    /// a branch between their loads.
    ///
    /// # Safety
    /// All `N` items from `first` lie inside.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn items_inside<const N: usize>(self, first: usize) -> [S::Item; N] {
        // SAFETY: the caller's contract; the memory is the view's.
        unsafe { self.source.items(self.cx, first) }
    }

    /// Returns `M` times `N` items, from `first`, `first + stride` and so on, or `None` unless all of them are inside. The accesses do not
    /// wait for each other. Otherwise they are those of [`items`](Self::items).
    #[track_caller]
    pub fn vectors<const N: usize, const M: usize>(self, first: usize, stride: usize) -> Option<[[S::Item; N]; M]> {
        const { assert!(M > 0, "one vector at least") };
        // Larger strides lead outside any memory, and the span of smaller ones does not overflow.
        if stride > const { (usize::MAX - N) / M } {
            return None;
        }
        let (len, span) = (self.len(), (M - 1) * stride + N);
        if len < span || first > len - span {
            return None;
        }
        // SAFETY: inside; the memory is the view's.
        Some(unsafe { self.source.vectors(self.cx, first, stride) })
    }

    /// Copies the `N` items from `first` to shared memory, from `at`. If not all of them are inside, it returns false and does nothing.
    /// Items in memory that are aligned to 16 bytes go there without passing through the thread. The thread must
    /// [wait](Self::wait_for_copies) before it or other threads read them.
    ///
    /// # Safety
    /// As for [`SharedArray::store_items`].
    #[track_caller]
    pub unsafe fn copy<const N: usize>(self, first: usize, to: SharedArray<'_, S::Item>, at: usize) -> bool
    where
        S::Item: Element,
    {
        let len = self.len();
        let inside = len >= N && first <= len - N;
        if inside {
            // SAFETY: inside; the memory is the view's, the caller's contract for shared memory.
            unsafe { self.source.copy::<N>(self.cx, first, to, at) };
        }
        inside
    }

    /// Returns whether [`vector_inside`](Self::vector_inside) can read `N` items from `first`, and from each multiple of `N` after it. It
    /// looks at the addresses, if the items are in memory.
    #[inline(always)]
    pub fn is_aligned<const N: usize>(self, first: usize) -> bool {
        self.source.is_aligned::<N>(self.cx, first)
    }

    /// Reads the `N` items from `first`, by accesses of up to 16 bytes, without any check. Use it to read many vectors after one
    /// comparison, without a branch between their loads.
    ///
    /// # Safety
    /// All `N` items from `first` lie inside, and [are aligned](Self::is_aligned).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn vector_inside<const N: usize>(self, first: usize) -> [S::Item; N] {
        // SAFETY: the caller's contract; the memory is the view's.
        unsafe { self.source.vector(self.cx, first) }
    }

    /// Works as [`copy`](Self::copy), for items that are known to be inside and to be aligned.
    ///
    /// # Safety
    /// As for [`vector_inside`](Self::vector_inside) and [`SharedArray::store_items`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn copy_vector_inside<const N: usize>(self, first: usize, to: SharedArray<'_, S::Item>, at: usize)
    where
        S::Item: Element,
    {
        // SAFETY: the caller's contract; the memory is the view's.
        unsafe { self.source.copy_vector::<N>(self.cx, first, to, at) };
    }

    /// Works as [`copy`](Self::copy), for items that are known to be inside and need not be elements.
    ///
    /// # Safety
    /// All `N` items from `first` lie inside; and as for [`SharedArray::store_items`].
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub unsafe fn copy_any_inside<const N: usize>(self, first: usize, to: SharedArray<'_, S::Item>, at: usize) {
        // SAFETY: the caller's contract; the memory is the view's.
        unsafe { self.source.copy_any::<N>(self.cx, first, to, at) };
    }

    /// Waits for all copies that this thread has begun by [`copy`](Self::copy).
    #[inline(always)]
    #[track_caller]
    pub fn wait_for_copies(self) {
        wait_for_copies(self.cx);
    }

    /// Makes a group of the [copies](Self::copy) that this thread has begun and that are in no group yet, for
    /// [`wait_for_copies_but_last`](Self::wait_for_copies_but_last).
    #[inline(always)]
    pub fn group_copies(self) {
        group_copies(self.cx);
    }

    /// Waits for this thread's [groups](Self::group_copies) of copies except the last one, which stays in flight while the thread works on
    /// the earlier ones. It does not wait for copies that are in no group.
    #[inline(always)]
    #[track_caller]
    pub fn wait_for_copies_but_last(self) {
        wait_for_copies_but_last(self.cx);
    }
}

/// The name of a source where kernels are instantiated, and in errors. An element stands for a [`Span`] of it, and a source for itself.
///
/// ```
/// use kernel_primitives::input::{AsSource, Counting, Span};
///
/// fn same<S: AsSource<Source = T>, T>() {}
/// same::<f32, Span<f32>>();
/// same::<Counting<u32>, Counting<u32>>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no input",
    label = "neither an element nor a source",
    note = "an algorithm's inputs are named by their elements, such as `f32`, or by a source of `input`, such as `Counting<u32>`"
)]
pub trait AsSource {
    /// The source.
    type Source: Source;
}

impl<T: Element> AsSource for T {
    type Source = Span<T>;
}
