//! What comes after the ranks of a tile's keys, and the look at the tiles before: its keys and values are written.

use kernel_primitives::prelude::*;

use super::{Digit, OF_ITEMS, SORT_THREADS, SortTileStorage, is_large, list_of};

/// A tile whose keys are in shared memory, ordered by their digits.
pub(super) struct Placed<'a, 'k, K: SortKey, V: Element, const N: usize> {
    pub(super) cx: Block<'k>,
    /// The tile's first key among the launch's keys.
    pub(super) first: usize,
    pub(super) digit: Digit,
    /// For each digit, where its keys go, less the place of its first key in the tile.
    pub(super) starts: SharedArray<'k, u64>,
    /// The number of the tile, and that of its keys.
    pub(super) ticket: SharedArray<'k, u32>,
    pub(super) by_key: SharedArray<'k, K>,
    /// The memory of the tile, where values come to the place of the keys.
    pub(super) shared: &'a Shared<'k, SortTileStorage<K, V>>,
    /// The places in the tile of this thread's own keys.
    pub(super) places: Packed<16, N>,
}

impl<K: SortKey, V: Element, const N: usize> Placed<'_, '_, K, V, N> {
    /// Writes the keys, and then the values. What has the same digit, in this tile and all others, goes to its own part of `out`.
    ///
    /// # Safety
    /// All of the tile is in shared memory, and a barrier came after that. Each of its keys has a value, if there are values, and goes to a
    /// place inside of the outputs. With `WHOLE`, the tile is a whole one.
    #[inline(always)]
    pub(super) unsafe fn write<const WHOLE: bool>(
        self,
        out: &mut GlobalMut<'_, K>,
        values: Option<(Global<'_, V>, &mut GlobalMut<'_, V>)>,
    ) {
        let Self { cx, first, digit, by_key, shared, .. } = self;
        let len = if WHOLE { SORT_THREADS * N } else { self.len() };
        let thread = cx.thread_rank() as usize;
        let place = |i: usize| i * SORT_THREADS + thread;
        // All of a thread's values are on their way at once.
        let mut value = [V::ZERO; N];
        let load_values = |value: &mut [V; N]| {
            if let Some((values, _)) = &values
                && const { !is_large(size_of::<V>()) }
            {
                for (i, value) in value.iter_mut().enumerate() {
                    let own = (thread / 32 * N + i) * 32 + thread % 32;
                    if WHOLE || own < len {
                        // SAFETY: there is a value for each of the tile's keys.
                        *value = unsafe { values.read_inside(first + own) };
                    }
                }
            }
        };
        // They arrive while the keys are written. For a partial tile, there are no registers for that.
        if WHOLE {
            load_values(&mut value);
        }
        let mut digits = Packed::<8, N>::default();
        for i in 0..N {
            // SAFETY: the caller's contract.
            unsafe {
                let key = by_key.load(place(i));
                digits.set(i, digit.of(key));
                self.write_item::<_, WHOLE>(out, digit.of(key), place(i), key);
            }
        }
        if !WHOLE {
            load_values(&mut value);
        }
        let Some((values, out)) = values else { return };
        if const { is_large(size_of::<V>()) } {
            let list =
                shared.array::<u16>(const { list_of(size_of::<K>(), size_of::<V>()) }, const { SORT_THREADS * N });
            // Not a constant, so that the loop is not unrolled.
            for i in 0..cx.opaque(N as u32) as usize {
                // SAFETY: the caller's contract.
                let (from, key) = unsafe { (list.load(place(i)), by_key.load(place(i))) };
                let to = self.to(digit.of(key), place(i));
                let count = len.saturating_sub(place(i) / 32 * 32);
                let values = values.slice(first..first + len);
                match const { align_of::<V>() } {
                    1 => move_values::<_, u8>(cx, (values, from), (out, to), count),
                    2 => move_values::<_, u16>(cx, (values, from), (out, to), count),
                    4 => move_values::<_, u32>(cx, (values, from), (out, to), count),
                    _ => move_values::<_, u64>(cx, (values, from), (out, to), count),
                }
            }
            return;
        }
        let by_value = shared.array::<V>(OF_ITEMS, const { SORT_THREADS * N });
        cx.barrier();
        for (i, &value) in value.iter().enumerate() {
            // SAFETY: ranks are a permutation, and barriers stand between the reads of keys, this, and the reads below.
            unsafe { by_value.store(self.places.get(i) as usize, value) };
        }
        cx.barrier();
        for i in 0..N {
            // SAFETY: as above.
            unsafe { self.write_item::<_, WHOLE>(out, digits.get(i), place(i), by_value.load(place(i))) };
        }
    }

    /// Writes what has this digit and this place in the tile. All threads of the warp call it.
    ///
    /// # Safety
    /// The contract of [`write`](Self::write).
    #[inline(always)]
    unsafe fn write_item<T: Element, const WHOLE: bool>(
        &self,
        out: &mut GlobalMut<'_, T>,
        digit: u32,
        place: usize,
        item: T,
    ) {
        // What is after the end of a partial tile comes last in it.
        if WHOLE || place < self.len() {
            // SAFETY: the caller's contract; each place goes to an element of its own.
            unsafe { out.write_unchecked(self.to(digit, place), item) };
        }
        // Item by item, neighbouring warps write neighbouring parts of `out` at about the same time. If each warp read all its items before
        // it wrote them, a pass of 2^28 keys would take 7 percent longer on an H200, and of pairs 4 percent.
        if cfg!(target_arch = "nvptx64") {
            self.cx.sync_warp(FULL_MASK);
        }
    }

    /// The number of the tile's keys. It is read again each time, because registers are few.
    #[inline(always)]
    fn len(&self) -> usize {
        // SAFETY: written before the barrier, and not again.
        unsafe { self.ticket.load(1) as usize }
    }

    /// Where an item with this digit and this place in the tile goes.
    #[inline(always)]
    fn to(&self, digit: u32, place: usize) -> usize {
        // SAFETY: written before the barrier, and not again.
        unsafe { self.starts.load(digit as usize) }.wrapping_add(place as u64) as usize
    }
}

/// Moves the values of the first `count` lanes of a warp. Each lane has the index of its value, and the place where it goes. Neighbouring
/// lanes copy neighbouring words `W` of a value.
fn move_values<V: Element, W: Element>(
    cx: Block<'_>,
    (values, from): (Global<'_, V>, u16),
    (out, to): (&mut GlobalMut<'_, V>, usize),
    count: usize,
) {
    /// The number of words of a lane that are on their way at once.
    const AHEAD: usize = 4;
    let words = const { size_of::<V>() / size_of::<W>() };
    // SAFETY: elements have no padding, and what is written has in each byte what a value has there.
    let (values, mut out) =
        unsafe { (Global::from_raw(cx, values.as_ptr().cast::<W>(), values.len() * words), out.reinterpret::<W>()) };
    // Not a constant, so that the loop is not unrolled.
    for round in 0..cx.opaque(words.div_ceil(AHEAD) as u32) as usize {
        // The lane and the part of its value.
        let at = |k: usize| {
            let word = (round * AHEAD + k) * 32 + cx.lane() as usize;
            (word / words, word % words)
        };
        let mut word = [W::ZERO; AHEAD];
        for (k, word) in word.iter_mut().enumerate() {
            let (lane, part) = at(k);
            let from = cx.shuffle(FULL_MASK, from as u32, lane as u32 % 32, 32) as usize;
            if lane < count.min(32) {
                *word = values[from * words + part];
            }
        }
        for (k, &word) in word.iter().enumerate() {
            let (lane, part) = at(k);
            let to = cx.shuffle(FULL_MASK, to, lane as u32 % 32, 32);
            if lane < count.min(32) {
                // SAFETY: each value goes to an element of its own.
                unsafe { out.write(to.saturating_mul(words).saturating_add(part), word) };
            }
        }
    }
}

/// Numbers of `BITS` bits, of which a register keeps several.
pub(super) struct Packed<const BITS: usize, const N: usize>([u32; N]);

impl<const BITS: usize, const N: usize> Default for Packed<BITS, N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const BITS: usize, const N: usize> Packed<BITS, N> {
    const EACH: usize = 32 / BITS;

    /// Sets a number that is 0.
    #[inline(always)]
    pub(super) fn set(&mut self, i: usize, number: u32) {
        self.0[i / Self::EACH] |= number << (i % Self::EACH * BITS);
    }

    #[inline(always)]
    fn get(&self, i: usize) -> u32 {
        self.0[i / Self::EACH] >> (i % Self::EACH * BITS) & (u32::MAX >> (32 - BITS))
    }
}
