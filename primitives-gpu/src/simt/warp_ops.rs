//! Exchange within a warp: shuffles of any element, votes, matches and integer reductions.

use core::mem::size_of;
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

#[cfg(not(target_arch = "nvptx64"))]
use super::emulated::WarpOp;
#[cfg(target_arch = "nvptx64")]
use super::nvptx;
use super::{Block, FULL_MASK, WARP};
use crate::element::Element;

/// A shuffle's addressing mode, with the meaning of PTX's `shfl.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// The lane given, inside the segment.
    Index,
    /// The lane `delta` below.
    Up,
    /// The lane `delta` above.
    Down,
    /// The lane whose number differs in the bits given.
    Xor,
}

/// A warp-wide reduction of 32-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduxOp {
    /// Wrapping sum.
    Add,
    /// Smallest, unsigned.
    MinUnsigned,
    /// Largest, unsigned.
    MaxUnsigned,
    /// Smallest, signed.
    MinSigned,
    /// Largest, signed.
    MaxSigned,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl ReduxOp {
    /// Applies the operation to two values.
    pub fn combine(self, a: u32, b: u32) -> u32 {
        match self {
            Self::Add => a.wrapping_add(b),
            Self::MinUnsigned => a.min(b),
            Self::MaxUnsigned => a.max(b),
            Self::MinSigned => (a as i32).min(b as i32) as u32,
            Self::MaxSigned => (a as i32).max(b as i32) as u32,
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// Exchanges an element word by word, with integers of one type: a register's, or the largest that the emulator supports. The last word may
/// have fewer bytes; its other bytes are zero.
fn by_words<T: Element, Word: Copy + Default>(value: T, mut exchange: impl FnMut(Word) -> Word) -> T {
    // Evaluates what a generic element asserts about its padding.
    const { _ = T::ANY_BITS };
    let mut out = value;
    let (from, to) = ((&raw const value).cast::<u8>(), (&raw mut out).cast::<u8>());
    let mut at = 0;
    // SAFETY: the bytes are inside both values, and an element has no padding, so all of them are initialised. They become
    // an element again if the words are one's; `T::ANY_BITS` says whether that must be looked at.
    unsafe {
        while at + size_of::<Word>() <= size_of::<T>() {
            let word = exchange(from.add(at).cast::<Word>().read_unaligned());
            to.add(at).cast::<Word>().write_unaligned(word);
            at += size_of::<Word>();
        }
        let rest = const { size_of::<T>() % size_of::<Word>() };
        if rest > 0 {
            let mut word = Word::default();
            core::ptr::copy_nonoverlapping(from.add(at), (&raw mut word).cast(), rest);
            word = exchange(word);
            core::ptr::copy_nonoverlapping((&raw const word).cast(), to.add(at), rest);
        }
        // Lanes that differ in the type they exchange could make a `bool` of anything.
        if !T::ANY_BITS && !T::valid_bits(core::slice::from_raw_parts(to, size_of::<T>())) {
            return value;
        }
    }
    out
}

/// The bits of an element of up to 8 bytes. The unused bits are zero.
fn bits<T: Element>(value: T) -> u64 {
    const { assert!(size_of::<T>() <= 8, "match compares elements of at most 8 bytes") };
    const { _ = T::ANY_BITS };
    let mut bits = 0u64;
    // SAFETY: both are at least size_of::<T>() bytes; an element has no padding, so all its bytes are initialised.
    unsafe {
        core::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), (&raw mut bits).cast(), size_of::<T>());
    }
    bits
}

/// Shuffles. `mask` names the lanes that take part; all of them call with the same mask. `width`, a power of two up to 32, divides the warp
/// into segments. As in PTX's `shfl.sync`, only the low five bits of source, delta or bits count. A lane whose source is outside the limit
/// of its segment keeps its own value. Elements may have any type; the cost is one instruction for each 32 bits. A source lane outside the
/// mask is a fault in the emulator and unspecified on the GPU.
impl<'k> Block<'k> {
    #[track_caller]
    fn shuffle_by<T: Element>(self, mode: ShuffleMode, mask: u32, value: T, operand: u32, width: u32) -> T {
        #[cfg(target_arch = "nvptx64")]
        return by_words(value, |word| nvptx::shuffle(mode, mask, word, operand, width));
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let (lane, place) = (self.lane_state(), Location::caller());
            let op = WarpOp::Shuffle { mode, operand, width };
            let exchange = |word| lane.machine.warp_op(lane, mask, op, word, place);
            // As GPUs do, in the place of one; the others save operations.
            if self.arch() < 800 {
                by_words(value, |word: u32| exchange(word as u128) as u32)
            } else {
                by_words(value, exchange)
            }
        }
    }

    /// Returns the value of lane `source` of this lane's segment (`shfl.sync.idx`).
    #[inline(always)]
    #[track_caller]
    pub fn shuffle<T: Element>(self, mask: u32, value: T, source: u32, width: u32) -> T {
        self.shuffle_by(ShuffleMode::Index, mask, value, source, width)
    }

    /// Returns the value of the lane `delta` below, or this lane's own value at the start of the segment (`shfl.sync.up`).
    #[inline(always)]
    #[track_caller]
    pub fn shuffle_up<T: Element>(self, mask: u32, value: T, delta: u32, width: u32) -> T {
        self.shuffle_by(ShuffleMode::Up, mask, value, delta, width)
    }

    /// Returns the value of the lane `delta` below, or `None` at the start of the segment. The instruction distinguishes the two, so no
    /// lane number is compared.
    #[inline(always)]
    #[track_caller]
    pub fn try_shuffle_up<T: Element>(self, mask: u32, value: T, delta: u32, width: u32) -> Option<T> {
        let (value, inside) = self.shuffle_up_within(mask, value, delta, width);
        if inside { Some(value) } else { None }
    }

    /// Works as [`shuffle_up`](Self::shuffle_up), and also returns whether the segment has a lane `delta` below.
    #[track_caller]
    fn shuffle_up_within<T: Element>(self, mask: u32, value: T, delta: u32, width: u32) -> (T, bool) {
        #[cfg(target_arch = "nvptx64")]
        {
            // An element of no bytes has no word that the instruction could answer for.
            let mut inside = const { size_of::<T>() == 0 } && (self.lane() & width.wrapping_sub(1)) >= delta % 32;
            let value = by_words(value, |word| {
                let (word, found) = nvptx::shuffle_up_within(mask, word, delta, width);
                inside = found;
                word
            });
            (value, inside)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        (self.shuffle_up(mask, value, delta, width), (self.lane() & width.wrapping_sub(1)) >= delta % 32)
    }

    /// Returns `apply` of the value of the lane `delta` below and this lane's own, or this lane's own value at the start of the segment.
    #[track_caller]
    pub(crate) fn combine_up<T: Element>(
        self,
        mask: u32,
        value: T,
        delta: u32,
        width: u32,
        apply: impl FnOnce(T, T) -> T,
    ) -> T {
        // At the start of the segment, the value that arrives is this lane's own, which has a register already.
        let (came, inside) = self.shuffle_up_within(mask, value, delta, width);
        // If the compiler knew that both are the same value, an integer sum would become `came + (if inside { value } else { 0 })`. That is
        // one selection more than an addition under a predicate.
        #[cfg(target_arch = "nvptx64")]
        let below = by_words(came, nvptx::opaque);
        #[cfg(not(target_arch = "nvptx64"))]
        let below = came;
        if inside { apply(below, value) } else { came }
    }

    /// Returns the value of the lane `delta` above, or this lane's own value at the end of the segment (`shfl.sync.down`).
    #[inline(always)]
    #[track_caller]
    pub fn shuffle_down<T: Element>(self, mask: u32, value: T, delta: u32, width: u32) -> T {
        self.shuffle_by(ShuffleMode::Down, mask, value, delta, width)
    }

    /// Returns the value of the lane whose number differs in `bits` (`shfl.sync.bfly`).
    #[inline(always)]
    #[track_caller]
    pub fn shuffle_xor<T: Element>(self, mask: u32, value: T, bits: u32, width: u32) -> T {
        self.shuffle_by(ShuffleMode::Xor, mask, value, bits, width)
    }
}

/// Votes and matches among the lanes of `mask`.
impl<'k> Block<'k> {
    /// Returns the mask of the lanes whose `predicate` is true.
    #[track_caller]
    pub fn ballot(self, mask: u32, predicate: bool) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::ballot(mask, predicate);
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let lane = self.lane_state();
            lane.machine.warp_op(lane, mask, WarpOp::Ballot, predicate as u128, Location::caller()) as u32
        }
    }

    /// Returns whether `predicate` is true in any lane.
    #[inline(always)]
    #[track_caller]
    pub fn any(self, mask: u32, predicate: bool) -> bool {
        self.ballot(mask, predicate) != 0
    }

    /// Returns whether `predicate` is true in all lanes.
    #[inline(always)]
    #[track_caller]
    pub fn all(self, mask: u32, predicate: bool) -> bool {
        self.ballot(mask, predicate) == mask
    }

    /// Returns the mask of the lanes whose value has the same bits as this lane's. Elements have up to 8 bytes.
    #[track_caller]
    pub fn match_any<T: Element>(self, mask: u32, value: T) -> u32 {
        let bits = bits(value);
        #[cfg(target_arch = "nvptx64")]
        return nvptx::match_any(mask, bits, size_of::<T>() > 4);
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let lane = self.lane_state();
            lane.machine.warp_op(lane, mask, WarpOp::MatchAny, bits as u128, Location::caller()) as u32
        }
    }

    /// Returns the lanes of a whole warp whose low byte is the same as this lane's, by eight votes. This is faster than
    /// [`match_any`](Self::match_any), whose time grows with the number of different values.
    #[track_caller]
    pub(crate) fn match_byte(self, byte: u32) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::match_byte(byte);
        #[cfg(not(target_arch = "nvptx64"))]
        self.match_any(FULL_MASK, byte as u8)
    }

    /// Returns whether all lanes' values have the same bits. Elements have up to 8 bytes.
    #[track_caller]
    pub fn match_all<T: Element>(self, mask: u32, value: T) -> bool {
        let bits = bits(value);
        #[cfg(target_arch = "nvptx64")]
        return nvptx::match_all(mask, bits, size_of::<T>() > 4);
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let lane = self.lane_state();
            lane.machine.warp_op(lane, mask, WarpOp::MatchAll, bits as u128, Location::caller()) != 0
        }
    }

    /// Returns the lanes of this warp that execute this together at the moment. It is a hint: do not use it as a mask.
    pub fn active_mask(self) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::active_mask();
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let lane = self.lane_state();
            lane.machine.active_mask(lane)
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
}

/// The integers that `redux.sync` reduces: `u32` and `i32`.
pub trait ReduxInt: Element + sealed::Sealed {
    #[doc(hidden)]
    const MIN: ReduxOp;
    #[doc(hidden)]
    const MAX: ReduxOp;
    #[doc(hidden)]
    fn to_u32(self) -> u32;
    #[doc(hidden)]
    fn from_u32(bits: u32) -> Self;
}

impl ReduxInt for u32 {
    const MIN: ReduxOp = ReduxOp::MinUnsigned;
    const MAX: ReduxOp = ReduxOp::MaxUnsigned;
    #[inline(always)]
    fn to_u32(self) -> u32 {
        self
    }
    #[inline(always)]
    fn from_u32(bits: u32) -> Self {
        bits
    }
}

impl ReduxInt for i32 {
    const MIN: ReduxOp = ReduxOp::MinSigned;
    const MAX: ReduxOp = ReduxOp::MaxSigned;
    #[inline(always)]
    fn to_u32(self) -> u32 {
        self as u32
    }
    #[inline(always)]
    fn from_u32(bits: u32) -> Self {
        bits as i32
    }
}

/// Integer reductions over the lanes of `mask`. All of these lanes get the result. It is one `redux.sync` on sm_80 and later, and shuffles
/// on earlier architectures.
impl<'k> Block<'k> {
    #[track_caller]
    fn redux<T: ReduxInt>(self, op: ReduxOp, mask: u32, value: T) -> T {
        let value = value.to_u32();
        if self.arch() >= 800 {
            #[cfg(target_arch = "nvptx64")]
            return T::from_u32(nvptx::redux(op, mask, value));
            #[cfg(not(target_arch = "nvptx64"))]
            {
                let (lane, place) = (self.lane_state(), Location::caller());
                return T::from_u32(lane.machine.warp_op(lane, mask, WarpOp::Redux(op), value as u128, place) as u32);
            }
        }
        if mask == FULL_MASK {
            // There is no iteration over an array, which a kernel would keep in local memory.
            let (mut total, mut bit) = (value, 1);
            while bit < WARP {
                total = op.combine(total, self.shuffle_xor(mask, total, bit, WARP));
                bit *= 2;
            }
            return T::from_u32(total);
        }
        // Lanes outside the mask must not contribute, so each lane of the mask is the source in turn.
        // A mask without lanes is for the first shuffle to report.
        let mut rest = mask & mask.wrapping_sub(1);
        let mut total = self.shuffle(mask, value, mask.trailing_zeros(), WARP);
        while rest != 0 {
            total = op.combine(total, self.shuffle(mask, value, rest.trailing_zeros(), WARP));
            rest &= rest - 1;
        }
        T::from_u32(total)
    }

    /// The wrapping sum.
    #[inline(always)]
    #[track_caller]
    pub fn redux_add<T: ReduxInt>(self, mask: u32, value: T) -> T {
        self.redux(ReduxOp::Add, mask, value)
    }

    /// The smallest value.
    #[inline(always)]
    #[track_caller]
    pub fn redux_min<T: ReduxInt>(self, mask: u32, value: T) -> T {
        self.redux(T::MIN, mask, value)
    }

    /// The largest value.
    #[inline(always)]
    #[track_caller]
    pub fn redux_max<T: ReduxInt>(self, mask: u32, value: T) -> T {
        self.redux(T::MAX, mask, value)
    }

    /// The bitwise and.
    #[inline(always)]
    #[track_caller]
    pub fn redux_and<T: ReduxInt>(self, mask: u32, value: T) -> T {
        self.redux(ReduxOp::And, mask, value)
    }

    /// The bitwise or.
    #[inline(always)]
    #[track_caller]
    pub fn redux_or<T: ReduxInt>(self, mask: u32, value: T) -> T {
        self.redux(ReduxOp::Or, mask, value)
    }

    /// The bitwise exclusive or.
    #[inline(always)]
    #[track_caller]
    pub fn redux_xor<T: ReduxInt>(self, mask: u32, value: T) -> T {
        self.redux(ReduxOp::Xor, mask, value)
    }
}
