//! Shared memory: one arena for each block, which is divided into typed storages at compile time.
//!
//! A collective declares its storage as a type with a size, a [`SharedStorage`], and takes it as `&mut Shared<S>`. It divides the storage
//! into [`SharedArray`]s. These are the `unsafe` level: element and vector access without checks on the GPU, and with all checks in the
//! emulator. [`Shared::enter`] and [`Shared::enter_double_buffered`] make the barrier that a reuse by another collective needs. Phases that
//! do not overlap in time can share memory through [`Shared::phase`]; [`Phases`] is large enough for any one of several storages.
//!
//! Threads can access a storage such as an array by themselves, without a collective. Such a storage has no such protocol:
//! [`StorageAccess`] says so, and [`Shared::phase`] keeps it apart from collectives.

use core::marker::PhantomData;
use core::mem::{align_of, size_of};
use core::panic::Location;

#[cfg(not(target_arch = "nvptx64"))]
use super::raw;
use super::raw::Borrowed;
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::Space;
use crate::simt::{Block, FaultKind};

mod array;
mod elements;

pub use array::SharedArray;
pub(crate) use array::{group_copies, wait_for_copies, wait_for_copies_but_last};
pub use elements::SharedSlice;

/// A type that is stored in shared memory: arrays of elements, and the storages that collectives declare.
///
/// If the size of a storage is computed, for example from const parameters, the storage is a type without fields that names its `BYTES` and
/// `ALIGN`. Only addresses are ever made from it.
///
/// ```
/// use core::marker::PhantomData;
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::view::SharedStorage;
///
/// /// Two elements a thread.
/// struct TwoEach<T, const THREADS: usize>(PhantomData<T>);
///
/// // SAFETY: uninitialised elements.
/// unsafe impl<T: Element, const THREADS: usize> SharedStorage for TwoEach<T, THREADS> {
///     const BYTES: usize = 2 * THREADS * size_of::<T>();
///     const ALIGN: usize = align_of::<T>();
/// }
/// assert_eq!(TwoEach::<f64, 32>::BYTES, 512);
/// ```
///
/// # Safety
/// No value of the type is read before it was written, since shared memory starts undefined; and the type needs no drop.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no storage of shared memory",
    label = "not an array, nor the storage of a collective",
    note = "for elements write an array, `Shared<[u32; 256]>`, of one element `Shared<[u32; 1]>`; for elements whose number the launch \
            says `SharedSlice<u32>`; for a collective its storage, such as `Shared<ReduceStorage<u32>>`"
)]
pub unsafe trait SharedStorage: Sized + 'static {
    /// The number of bytes to reserve.
    const BYTES: usize = size_of::<Self>();
    /// Alignment, a power of two up to 16.
    const ALIGN: usize = align_of::<Self>();
    /// What accesses the storage.
    #[doc(hidden)]
    const ACCESS: StorageAccess = StorageAccess::Collectives;
    /// The number of bytes of an element, by which reports count; 0 if kernels do not index the storage.
    #[doc(hidden)]
    const ELEMENT_BYTES: usize = 0;
}

/// What accesses a storage. This decides whether several phases can share its memory.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageAccess {
    /// Collectives, which begin with [`Shared::enter`] or a similar function.
    Collectives,
    /// Each thread by itself, between the barrier of [`Shared::phase`] and the next barrier.
    Threads,
    /// Each thread by itself, and the hardware. Nothing else may ever be in this memory.
    Alone,
}

// SAFETY: the storage is memory only; what reads elements from it sees to it that they are values.
unsafe impl<T: Element, const N: usize> SharedStorage for [T; N] {
    const ACCESS: StorageAccess = StorageAccess::Threads;
    const ELEMENT_BYTES: usize = size_of::<T>();
}

/// Memory for any one of several storages at a time: `Phases<(ScanStorage<f32>, ReduceStorage<f32>)>` has the size of the largest.
/// [`Shared::phase`] gives the memory to one storage after the other.
pub struct Phases<S>(PhantomData<S>);

macro_rules! phases {
    ($($($s:ident)*;)*) => {$(
        // SAFETY: uninitialised bytes.
        unsafe impl<$($s: SharedStorage),*> SharedStorage for Phases<($($s,)*)> {
            const BYTES: usize = largest(&[$($s::BYTES),*]);
            const ALIGN: usize = largest(&[$($s::ALIGN),*]);
        }
    )*};
}
phases! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

const fn largest(numbers: &[usize]) -> usize {
    let (mut largest, mut i) = (0, 0);
    while i < numbers.len() {
        if numbers[i] > largest {
            largest = numbers[i];
        }
        i += 1;
    }
    largest
}

/// A storage of type `S` in the block's shared memory.
///
/// A kernel parameter `mut shared: Shared<ReduceStorage<f32>>` is not passed at the launch: the launcher adds up the sizes. All threads of
/// the block see the same memory. A collective borrows it mutably, and remembers the use. The next collective on it starts with a barrier;
/// [`Shared::sync`] can make that barrier earlier.
// All `S` have one layout, which `phase` needs.
#[repr(C)]
pub struct Shared<'k, S> {
    cx: Block<'k>,
    address: *mut u8,
    /// The bytes of the memory, and its alignment. Both are at least what `S` needs, unless the memory was exchanged through a
    /// [phase](Shared::phase) (`mem::swap`) for that of another storage. An array has no phases, so its memory is always enough.
    bytes: u32,
    align: u32,
    /// The last use: [`UNUSED`], [`USED`], or, with the length of the halves times four, [`DOUBLE_BUFFERED`], or, with the size of a
    /// slot times four, [`BY_OWNERS`].
    last: usize,
    /// The beginning of the half that is in use.
    half: u32,
    _borrowed: Borrowed<'k, S>,
}

/// No thread accesses the storage any more.
const UNUSED: usize = 0;
/// Other threads may still access any part of the storage.
const USED: usize = 1;
/// Other threads may still read the half that is in use. Two bits, so that the compiler keeps the comparisons with this and
/// `UNUSED` apart, and finds in a loop of such uses that one of them always holds.
const DOUBLE_BUFFERED: usize = 3;
/// Other threads may still read the slots that they own, and data that is written only after a barrier.
const BY_OWNERS: usize = 2;

impl<'k, S: SharedStorage> Shared<'k, S> {
    /// The storage `offset` bytes into the block's arena.
    ///
    /// # Safety
    /// The launch reserves `offset + S::BYTES` bytes, `offset` is aligned for `S`, and no other view overlaps.
    #[inline(always)]
    pub unsafe fn from_arena(cx: Block<'k>, offset: usize) -> Self {
        const { assert!(S::ALIGN <= 16, "shared memory is aligned to 16 bytes at most") };
        // SAFETY: the caller's contract.
        let address = unsafe { arena(cx).add(offset) };
        // SAFETY: the caller's contract.
        unsafe { Self::at_address(cx, address) }
    }

    /// The storage at an address.
    ///
    /// # Safety
    /// `S::BYTES` bytes of the block's arena, aligned for `S`, which no other view overlaps.
    #[inline(always)]
    unsafe fn at_address(cx: Block<'k>, address: *mut u8) -> Self {
        let (bytes, align) = const { (S::BYTES as u32, S::ALIGN as u32) };
        Self { cx, address, bytes, align, last: Self::used_as(UNUSED), half: 0, _borrowed: PhantomData }
    }

    /// What to remember of a use. Threads access an array at any time, also after a barrier.
    #[inline(always)]
    fn used_as(last: usize) -> usize {
        if matches!(S::ACCESS, StorageAccess::Threads) { USED } else { last }
    }

    /// The bytes that are both of `S` and of the memory. This is a constant in a kernel that does not exchange storages.
    #[inline(always)]
    fn limit(&self) -> usize {
        S::BYTES.min(self.bytes as usize)
    }

    /// The alignment that both `S` and the memory have.
    #[inline(always)]
    fn alignment(&self) -> usize {
        S::ALIGN.min(self.align as usize)
    }

    #[inline(always)]
    pub(super) fn cx(&self) -> Block<'k> {
        self.cx
    }

    /// Begins a collective's use of the storage. There is a barrier if the storage was used before.
    #[track_caller]
    pub fn enter(&mut self) {
        if self.last != UNUSED {
            self.cx.barrier();
        }
        self.last = USED;
    }

    /// Begins a collective's use of one half of the storage. Each half has `half` bytes. Returns where the half starts, 0 or `half`.
    ///
    /// This is for a collective that writes, has one barrier, and then only reads. Uses with halves of one length need no barrier between
    /// them: when a thread comes to the same half again, the barrier of the use in between has shown that all threads have read. There is a
    /// barrier first only after another kind of use.
    #[track_caller]
    pub fn enter_double_buffered(&mut self, half: usize) -> usize {
        let last = half * 4 + DOUBLE_BUFFERED;
        if self.last != UNUSED && self.last != last {
            self.cx.barrier();
        }
        self.last = Self::used_as(last);
        self.half = if self.half == half as u32 { 0 } else { half as u32 };
        self.half as usize
    }

    /// Begins a collective's use of the storage by slots that threads own, with `slot` bytes each. A thread has the same place in all such
    /// uses with that size.
    ///
    /// This is for a collective with these steps. Each thread writes its own slot; barrier; other writes and reads; barrier; from there on,
    /// each thread only reads: its own slot, and parts that are written only between barriers. Uses with slots of one size need no barrier
    /// between them. There is a barrier first only after another kind of use.
    #[track_caller]
    pub(crate) fn enter_by_owners(&mut self, slot: usize) {
        let by_owners = slot * 4 + BY_OWNERS;
        if self.last != UNUSED && self.last != by_owners {
            self.cx.barrier();
        }
        self.last = Self::used_as(by_owners);
    }

    /// Makes a barrier, after which a collective need not begin with one. A collective in the memory of an array still does, because
    /// threads can access elements after this barrier.
    #[inline(always)]
    #[track_caller]
    pub fn sync(&mut self) {
        self.cx.barrier();
        self.last = Self::used_as(UNUSED);
    }

    /// Returns the same memory as the storage of another phase. Its previous contents are lost. The memory remembers its use through either
    /// storage, so a collective on it starts with the barrier that it needs.
    ///
    /// For an array, whose elements each thread accesses by itself, this call makes that barrier, so all threads of the block must call it,
    /// as they call a collective. The memory of an array itself has no other phases, because nothing would separate them from the accesses:
    /// name both in [`Phases`].
    ///
    /// Two storages can exchange their memory (`mem::swap`), also through phases. Memory that is then too small for a phase or a collective
    /// is a fault.
    ///
    /// ```
    /// use kernel_primitives::prelude::*;
    /// use kernel_primitives::view::Phases;
    ///
    /// #[kernel]
    /// fn spread(
    ///     cx: Block,
    ///     x: Global<f32>,
    ///     mut out: GlobalMut<f32>,
    ///     mut shared: Shared<Phases<(ReduceStorage<f32>, ReduceStorage<[f32; 2]>)>>,
    /// ) {
    ///     for tile in cx.tiles::<1>(out.len()) {
    ///         // A partial tile has the identities in the threads without an element.
    ///         let (mut high, mut low) = (init::<f32, 1>(f32::NEG_INFINITY), init::<f32, 1>(f32::INFINITY));
    ///         read_data(cx, &mut high, x.tile(tile));
    ///         read_data(cx, &mut low, x.tile(tile));
    ///         let largest = block_reduce(cx, shared.phase::<ReduceStorage<f32>>(), high[0], Max);
    ///         let smallest = block_reduce(cx, shared.phase::<ReduceStorage<f32>>(), low[0], Min);
    ///         write_data(cx, out.tile(tile), &[largest - smallest]);
    ///     }
    /// }
    /// ```
    /// ```
    /// use kernel_primitives::prelude::*;
    /// use kernel_primitives::view::Phases;
    ///
    /// /// The largest difference of two neighbours in a tile, the last of whom is beside the first.
    /// #[kernel(max_threads(256))]
    /// fn peak(
    ///     cx: Block,
    ///     x: Global<u32>,
    ///     mut out: GlobalMut<u32>,
    ///     mut shared: Shared<Phases<([u32; 256], ReduceStorage<u32>)>>,
    /// ) {
    ///     let rank = cx.thread_rank() as usize;
    ///     for tile in cx.tiles::<1>(out.len()) {
    ///         let mut item = init::<u32, 1>(0);
    ///         read_data(cx, &mut item, x.tile(tile));
    ///         let all = shared.phase::<[u32; 256]>();
    ///         all.set(rank, item[0]);
    ///         cx.barrier();
    ///         // The tile may have fewer elements than the block has threads.
    ///         let next = all.get((rank + 1) % tile.len());
    ///         let step = if rank < tile.len() { item[0].abs_diff(next) } else { 0 };
    ///         let peak = block_reduce(cx, shared.phase::<ReduceStorage<u32>>(), step, Max);
    ///         write_data(cx, out.tile(tile), &[peak]);
    ///     }
    /// }
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = kernel_primitives::Device::emulator().stream()?;
    /// let mut out = stream.buffer_zeroed::<u32>(4)?;
    /// peak::launch(&stream, (1, 4), &stream.buffer_from(&[3u32, 5, 11, 10])?, &mut out)?;
    /// assert_eq!(out.to_vec()?, [7; 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn phase<U: SharedStorage>(&mut self) -> &mut Shared<'k, U> {
        const { assert!(U::BYTES <= S::BYTES, "the storage of the phase is larger than the memory it is to have") };
        const { assert!(U::ALIGN <= S::ALIGN, "the storage of the phase is aligned more than the memory it is to have") };
        self.phase_checked()
    }

    /// Works as [`phase`](Self::phase), but memory that is too small is a fault, and not a compile error. This is for generic code with
    /// branches that run only if the storage fits. The comparison is one of constants, unless the kernel exchanges storages.
    #[track_caller]
    pub fn phase_checked<U: SharedStorage>(&mut self) -> &mut Shared<'k, U> {
        const {
            assert!(
                matches!(S::ACCESS, StorageAccess::Collectives),
                "threads access this storage by themselves, so that its memory has no other phases: name them in `Phases`"
            )
        };
        const { assert!(!matches!(U::ACCESS, StorageAccess::Alone), "this storage shares its memory with no other phase") };
        if U::BYTES > self.limit() {
            self.cx.raise(FaultKind::BadShape, [U::BYTES as u64, self.limit() as u64], Location::caller());
        }
        if U::ALIGN > self.alignment() {
            self.cx.raise(FaultKind::BadShape, [U::ALIGN as u64, self.alignment() as u64], Location::caller());
        }
        if matches!(U::ACCESS, StorageAccess::Threads) {
            self.enter();
        }
        // SAFETY: the type has one layout for all storages; the memory is large enough and aligned, and starts undefined
        // for either. What it is exchanged for through this reference has enough for `U`, or is checked before it is used.
        unsafe { &mut *core::ptr::from_mut(self).cast() }
    }

    /// Returns `len` elements from byte `offset`, for collectives. A part outside the storage, or one that is not aligned, is a fault. If
    /// the numbers are constants, the check is made at compile time.
    #[track_caller]
    pub fn array<T: Copy>(&self, offset: usize, len: usize) -> SharedArray<'k, T> {
        const { assert!(align_of::<T>() <= 16, "shared memory is aligned to 16 bytes at most") };
        let end = len.saturating_mul(size_of::<T>()).saturating_add(offset);
        let limit = self.limit();
        let (align, alignment) = (align_of::<T>(), self.alignment());
        if end > limit || !offset.is_multiple_of(align) || align > alignment {
            let [size, limit] = if end > limit {
                [end, limit]
            } else if align > alignment {
                [align, alignment]
            } else {
                // The next offset that is aligned.
                [offset, offset.next_multiple_of(align)]
            };
            self.cx.raise(FaultKind::BadShape, [size as u64, limit as u64], Location::caller());
        }
        // SAFETY: inside the storage and its memory.
        let address = unsafe { self.address.add(offset).cast() };
        SharedArray { cx: self.cx, address, len, _borrowed: PhantomData }
    }

    /// The address of the storage. It is the unsafe level below the view. The emulator does not see accesses through it: from now on it
    /// treats the storage as written. Memory that was exchanged for less (see [`phase`](Self::phase)) is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn as_mut_ptr(&mut self) -> *mut S {
        if S::BYTES > self.bytes as usize {
            self.cx.raise(FaultKind::BadShape, [S::BYTES as u64, self.bytes as u64], Location::caller());
        }
        if S::ALIGN > self.align as usize {
            self.cx.raise(FaultKind::BadShape, [S::ALIGN as u64, self.align as u64], Location::caller());
        }
        #[cfg(not(target_arch = "nvptx64"))]
        raw::expose(self.cx, Space::Shared, self.address, S::BYTES);
        self.address.cast()
    }
}

fn arena(cx: Block<'_>) -> *mut u8 {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = cx;
        crate::simt::nvptx::dynamic_shared()
    }
    #[cfg(not(target_arch = "nvptx64"))]
    cx.lane_state().shared
}
