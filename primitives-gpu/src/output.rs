//! Outputs by index: buffers, several buffers as one output, and places in another order.
//!
//! A kernel with a parameter `out: Output<O>` takes any of them, in the same way as a kernel with `x: Input<S>` takes any
//! [input](crate::input). `O`, a [`Sink`], says which one. The same functions order or pair places; they take buffers that are written:
//!
//! | built by | writes an item | sink |
//! |---|---|---|
//! | `&mut buffer`, `buffer.slice_mut(..)` | to its place | [`SpanMut<T>`] |
//! | [`zip`]`(a, b)` | that is a pair, its first to `a` and its second to `b`; as many as both have | [`Zip<O, P>`] |
//! | [`permutation`]`(out, at)` | to `out[at[i]]`; two for one place race, and the emulator says so | [`Permutation<O, I>`] |
//! | [`strided`]`(out, step)` | to `out[i * step]` | [`Strided<O>`] |
//! | [`reversed`]`(out)` | to `out[len - 1 - i]` | [`Reversed<O>`] |
//! | [`discard`]`(len)` | nowhere | [`Discard<T>`] |
//!
//! ```
//! use kernel_primitives::Device;
//! use kernel_primitives::algorithms::transform;
//! use kernel_primitives::output::{SpanMut, Zip, reversed, zip};
//! use kernel_primitives::prelude::*;
//!
//! /// A number's digits.
//! #[derive(Clone, Copy, KernelParam)]
//! #[repr(C)]
//! struct ByTen;
//!
//! impl UnaryFn<u32> for ByTen {
//!     type Output = (u32, u32);
//!     #[inline(always)]
//!     fn apply(&self, x: u32) -> (u32, u32) {
//!         (x / 10, x % 10)
//!     }
//! }
//!
//! instantiate!(kernel_primitives::algorithms::transform<u32, ByTen, Zip<SpanMut<u32>, SpanMut<u32>>>);
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::emulator().stream()?;
//! let x = stream.buffer_from(&[42u32, 7, 360])?;
//! let (mut tens, mut ones) = (stream.buffer_zeroed::<u32>(3)?, stream.buffer_zeroed::<u32>(3)?);
//! transform(&stream, &x, ByTen, zip(&mut tens, &mut ones))?;
//! assert_eq!((tens.to_vec()?, ones.to_vec()?), (vec![4, 0, 36], vec![2, 7, 0]));
//! # Ok(())
//! # }
//! ```

use core::marker::PhantomData;
use core::mem::offset_of;
use core::panic::Location;

use crate::element::{ConvertTo, Element, Integer};
pub use crate::input::{Permutation, Reversed, Strided, Zip, permutation, reversed, strided, zip};
use crate::input::{Sealed, Source};
use crate::simt::{Block, FaultKind};
#[cfg(not(target_arch = "nvptx64"))]
use crate::view::RawView;
use crate::view::{Elements, Layout};

/// Places by index; see the [module](self).
///
/// # Safety
/// The layout of the type is the same for every compiler.
pub unsafe trait Sink: Copy + Send + Sync + Sealed + 'static {
    /// The type of an item that a place takes.
    type Item: Copy;

    /// The type's name in an algorithm: `T` for a [`SpanMut<T>`], and otherwise the type itself.
    type Short: AsSink<Sink = Self>;

    /// The layout that host and device compare.
    #[doc(hidden)]
    const LAYOUT: Layout;

    /// The number of places.
    fn len(&self) -> usize;

    /// True if the length is 0.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address by which reports name the memory, or null if the places are computed.
    #[doc(hidden)]
    #[inline(always)]
    fn address(&self) -> *const () {
        core::ptr::null()
    }

    /// Writes an item to the place of `index`.
    ///
    /// # Safety
    /// `index` is below the length. The memory is valid, and nobody else accesses what is written meanwhile.
    #[doc(hidden)]
    #[track_caller]
    unsafe fn put(&self, cx: Block<'_>, index: usize, item: Self::Item);

    /// Writes `N` items to the places from `first`, by accesses of up to 16 bytes if the places are contiguous and aligned.
    ///
    /// # Safety
    /// As for [`put`](Self::put), of each.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    unsafe fn put_items<const N: usize>(&self, cx: Block<'_>, first: usize, items: &[Self::Item; N]) {
        for (i, &item) in items.iter().enumerate() {
            // SAFETY: the caller's contract.
            unsafe { self.put(cx, first + i, item) };
        }
    }
}

/// The name of a sink where kernels are instantiated, and in errors. An element stands for a [`SpanMut`] of it, and a sink for itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no output",
    label = "neither an element nor a sink",
    note = "an algorithm's outputs are named by their elements, such as `f32`, or by a sink of `output`, such as `Discard<f32>`"
)]
pub trait AsSink {
    /// The sink.
    type Sink: Sink;
}

impl<T: Element> AsSink for T {
    type Sink = SpanMut<T>;
}

/// A parameter of a kernel: places that the launch gives as a buffer, or as an output that [`output`](self) builds.
#[derive(Clone, Copy)]
pub struct Output<'k, O> {
    cx: Block<'k>,
    sink: O,
}

impl<'k, O: Sink> Output<'k, O> {
    /// The output of a kernel.
    ///
    /// # Safety
    /// The memory behind `sink` is valid for `'k`, and only the threads of this launch access it meanwhile.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw(cx: Block<'k>, sink: O) -> Self {
        Self { cx, sink }
    }

    /// The number of places.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.sink.len()
    }

    /// True if the length is 0.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes an item to the place of `index`. An index outside is a fault.
    ///
    /// # Safety
    /// No other thread accesses the place, which a permutation names, or a barrier or a release and an acquire lie between its access and
    /// this write.
    #[track_caller]
    pub unsafe fn write(&mut self, index: usize, item: O::Item) {
        let len = self.len();
        if index >= len {
            let args = [index as u64, len as u64];
            self.cx.raise_outside(FaultKind::OutOfBounds, args, self.sink.address(), Location::caller());
        }
        // SAFETY: inside, and the caller's contract.
        unsafe { self.sink.put(self.cx, index, item) }
    }

    /// Works as [`write_items`](Self::write_items), without a comparison. The emulator still makes the comparison for memory.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each; and all lie inside.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_items_inside<const N: usize>(&mut self, first: usize, items: &[O::Item; N]) {
        // SAFETY: the caller's contract.
        unsafe { self.sink.put_items(self.cx, first, items) };
    }

    /// Writes `N` items to the places from `first`, as far as there are places. It writes memory by vector accesses of up to 16 bytes if
    /// the address is aligned for these.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each.
    #[track_caller]
    pub unsafe fn write_items<const N: usize>(&mut self, first: usize, items: &[O::Item; N]) {
        let len = self.len();
        if len >= N && first <= len - N {
            // SAFETY: inside, and the caller's contract.
            return unsafe { self.sink.put_items(self.cx, first, items) };
        }
        let inside = len.saturating_sub(first);
        for (i, &item) in items.iter().enumerate() {
            if i < inside {
                // SAFETY: as above.
                unsafe { self.sink.put(self.cx, first + i, item) };
            }
        }
    }
}

/// Elements of a buffer that is written.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SpanMut<T> {
    // As in `Span`: a pointer in a parameter by value would lose the information that it points to global memory.
    address: u64,
    len: usize,
    _elements: PhantomData<fn(T)>,
}

impl<T: Element> SpanMut<T> {
    /// The elements of a view.
    #[doc(hidden)]
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn new(view: RawView<T>) -> Self {
        Self { address: view.address().expose_provenance() as u64, len: view.len(), _elements: PhantomData }
    }

    /// # Safety
    /// The memory is valid for `'k`.
    #[inline(always)]
    unsafe fn elements<'k>(&self, cx: Block<'k>) -> Elements<'k, T> {
        // SAFETY: the caller's contract.
        unsafe { Elements::at_address(cx, self.address, self.len) }
    }
}

impl<T> Sealed for SpanMut<T> {}
impl<T: Element> AsSink for SpanMut<T> {
    type Sink = Self;
}

// SAFETY: an address and a length.
unsafe impl<T: Element> Sink for SpanMut<T> {
    type Item = T;
    type Short = T;
    const LAYOUT: Layout = crate::view::view_layout::<T>();

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn address(&self) -> *const () {
        core::ptr::without_provenance(self.address as usize)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn put(&self, cx: Block<'_>, index: usize, item: T) {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).write_inside(index, item) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn put_items<const N: usize>(&self, cx: Block<'_>, first: usize, items: &[T; N]) {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).write_items_inside(first, items) }
    }
}

impl<O: Sink, P: Sink> AsSink for Zip<O, P> {
    type Sink = Self;
}

// SAFETY: `repr(C)`, of sinks.
unsafe impl<O: Sink, P: Sink> Sink for Zip<O, P> {
    type Item = (O::Item, P::Item);
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("zip").with("first", offset_of!(Self, first), O::LAYOUT).with(
        "second",
        offset_of!(Self, second),
        P::LAYOUT,
    );

    #[inline(always)]
    fn len(&self) -> usize {
        self.first.len().min(self.second.len())
    }

    #[track_caller]
    unsafe fn put(&self, cx: Block<'_>, index: usize, (a, b): Self::Item) {
        // SAFETY: the caller's contract.
        unsafe {
            self.first.put(cx, index, a);
            self.second.put(cx, index, b);
        }
    }

    #[track_caller]
    unsafe fn put_items<const N: usize>(&self, cx: Block<'_>, first: usize, items: &[Self::Item; N]) {
        // SAFETY: the caller's contract.
        unsafe {
            self.first.put_items(cx, first, &items.map(|(a, _)| a));
            self.second.put_items(cx, first, &items.map(|(_, b)| b));
        }
    }
}

impl<O: Sink, I: Source<Item: Integer + ConvertTo<usize>>> AsSink for Permutation<O, I> {
    type Sink = Self;
}

// SAFETY: `repr(C)`, of a sink and a source.
unsafe impl<O: Sink, I: Source<Item: Integer + ConvertTo<usize>>> Sink for Permutation<O, I> {
    type Item = O::Item;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("permutation").with("source", offset_of!(Self, source), O::LAYOUT).with(
        "at",
        offset_of!(Self, at),
        I::LAYOUT,
    );

    #[inline(always)]
    fn len(&self) -> usize {
        self.at.len()
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn put(&self, cx: Block<'_>, index: usize, item: O::Item) {
        // SAFETY: the caller's contract, for the memory.
        unsafe { Output::from_raw(cx, self.source).write(self.at.item(cx, index).convert(), item) }
    }

    #[track_caller]
    unsafe fn put_items<const N: usize>(&self, cx: Block<'_>, first: usize, items: &[O::Item; N]) {
        // SAFETY: the caller's contract.
        let at: [I::Item; N] = unsafe { self.at.items(cx, first) };
        for (&item, &at) in items.iter().zip(&at) {
            // SAFETY: the caller's contract, for the memory.
            unsafe { Output::from_raw(cx, self.source).write(at.convert(), item) };
        }
    }
}

impl<O: Sink> AsSink for Strided<O> {
    type Sink = Self;
}

// SAFETY: `repr(C)`, of a sink and numbers.
unsafe impl<O: Sink> Sink for Strided<O> {
    type Item = O::Item;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("strided").with("source", offset_of!(Self, source), O::LAYOUT);

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn put(&self, cx: Block<'_>, index: usize, item: O::Item) {
        // SAFETY: the caller's contract.
        unsafe { self.source.put(cx, index * self.step, item) }
    }
}

impl<O: Sink> AsSink for Reversed<O> {
    type Sink = Self;
}

// SAFETY: `repr(C)`, of a sink.
unsafe impl<O: Sink> Sink for Reversed<O> {
    type Item = O::Item;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("reversed").with("source", offset_of!(Self, source), O::LAYOUT);

    #[inline(always)]
    fn len(&self) -> usize {
        self.source.len()
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn put(&self, cx: Block<'_>, index: usize, item: O::Item) {
        // SAFETY: the caller's contract.
        unsafe { self.source.put(cx, self.source.len() - 1 - index, item) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn put_items<const N: usize>(&self, cx: Block<'_>, first: usize, items: &[O::Item; N]) {
        let mut backwards = *items;
        backwards.reverse();
        // SAFETY: the caller's contract: the last of them goes to the lowest place.
        unsafe { self.source.put_items(cx, self.source.len() - N - first, &backwards) };
    }
}

/// Places that keep nothing; from [`discard`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Discard<T> {
    len: usize,
    _items: PhantomData<fn(T)>,
}

/// Returns `len` places that keep nothing, for results that are not needed.
pub fn discard<T: Copy>(len: usize) -> Discard<T> {
    Discard { len, _items: PhantomData }
}

impl<T> Sealed for Discard<T> {}
impl<T: Copy + 'static> AsSink for Discard<T> {
    type Sink = Self;
}

// SAFETY: a number.
unsafe impl<T: Copy + 'static> Sink for Discard<T> {
    type Item = T;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("discard");

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    unsafe fn put(&self, _: Block<'_>, _: usize, _: T) {}
}
