//! Fourier transforms of a block.

// An iterator over the items of a thread would keep them in local memory.
#![allow(clippy::needless_range_loop, reason = "indices that are constants keep items in registers")]

use core::marker::PhantomData;
use core::mem::size_of;
use core::panic::Location;

use crate::element::{Complex, FftFloat};
use crate::simt::{Block, FaultKind, WARP};
use crate::thread::{is_smooth, swapped, thread_fft, times, zero};
use crate::view::{Shared, SharedArray, SharedStorage};

/// The shared memory of [`block_fft`] and [`block_ifft`]: `BATCH` transforms of `N` complex numbers with parts of type `T`, and padding. It
/// is twice as large if there are passes that cannot keep the items of a thread in its registers.
pub struct FftStorage<T, const N: usize, const ITEMS: usize, const BATCH: usize = 1>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: FftFloat, const N: usize, const ITEMS: usize, const BATCH: usize> SharedStorage
    for FftStorage<T, N, ITEMS, BATCH>
{
    const BYTES: usize = copies(N, ITEMS) * BATCH * places(N) * size_of::<Complex<T>>();
    const ALIGN: usize = 16;
}

/// The place of number `index` of a transform. One place is left out after each 16, so that threads write to different banks if a power of
/// two lies between them.
const fn place(index: usize) -> usize {
    index + index / 16
}

/// The number of places of a transform.
const fn places(n: usize) -> usize {
    place(n - 1) + 1
}

/// Two if there is a pass from memory to memory, otherwise one.
const fn copies(n: usize, items: usize) -> usize {
    assert!(is_smooth(n), "the length of a Fourier transform is a product of 2, 3, 5, 7, 11 and 13");
    let mut done = 1;
    while done < n {
        let radix = radix(n, items, done);
        if !items.is_multiple_of(radix) {
            return 2;
        }
        done *= radix;
    }
    1
}

/// The largest radix of a pass.
const MOST: usize = 16;

/// The radix of the pass after those that make transforms of length `done`. It is the largest one that divides the number of a thread's
/// items, or, if none does, the largest one.
const fn radix(n: usize, items: usize, done: usize) -> usize {
    let rest = n / done;
    let (mut radix, mut largest) = (MOST, 1);
    while radix > 1 {
        if rest.is_multiple_of(radix) {
            if items.is_multiple_of(radix) {
                return radix;
            }
            if largest == 1 {
                largest = radix;
            }
        }
        radix -= 1;
    }
    largest
}

/// The length of the transforms before a pass, and the radix of the pass; `n` and 1 if there are fewer passes.
const fn step(n: usize, items: usize, pass: usize) -> (usize, usize) {
    let (mut done, mut i) = (1, 0);
    while i < pass {
        done *= radix(n, items, done);
        i += 1;
    }
    (done, radix(n, items, done))
}

/// Computes the discrete Fourier transforms of a block: `X[k] = Σ x[j] * exp(-2πi * j * k / N)`. There are `BATCH` of them, side by side.
///
/// `N` is a product of 2, 3, 5, 7, 11 and 13, and a multiple of `ITEMS`. `N / ITEMS` threads have a transform. Input and result are
/// striped: thread `t` of these `T` threads has `x[t]`, `x[t + T]`, `x[t + 2 * T]` and so on, and gets `X[t]`, `X[t + T]` and so on. The
/// block must have `BATCH * N / ITEMS` threads, in any shape; another number is a fault. The first `T` threads have the first transform,
/// the next `T` the second, and so on.
///
/// Phases: Stockham's algorithm, in passes of radices up to 16. A pass transforms a thread's own items as [`thread_fft`] does. Between two
/// passes, items move to other threads through shared memory. There are the fewest passes if `N` is a power of `ITEMS`: 4096 numbers with
/// 16 items in a thread take three. A radix divides `ITEMS` if `N` allows it. For a prime factor that `ITEMS` does not have, items go
/// through shared memory before and after the pass, and the storage is twice as large.
///
/// Barriers: passes whose radix divides `ITEMS` come first. If all `a` passes are of this kind, there are `2 * a - 3` barriers, or none for
/// one pass. With `m` passes of the other kind, there are `2 * a - 1 + m`, or `m + 1` if `a` is 0. They are barriers of a warp if a transform
/// has 1, 2, 4, 8, 16 or 32 threads, and otherwise barriers of the block. The factors come from a table of `N` roots of unity, which are
/// rounded once. The table is part of the program.
///
/// Registers: those of the thread's items, and of the numbers of a pass, up to 16. A kernel should say how many threads its blocks have, by
/// `threads` or `max_threads`. Otherwise it may take so many registers that a GPU refuses blocks of more than 256 threads.
///
/// For random numbers, the root mean square of the errors, divided by that of the results, is less than half the machine epsilon times the
/// square root of log2 `N`.
///
/// Shared memory: an [`FftStorage`]. It may be used again after the next barrier, which the next collective on it makes by itself.
///
/// cuFFTDx: `FFT<…, Block>`. Differences: `ITEMS` is `ElementsPerThread`, and `BATCH` is `FFTsPerBlock`; striped before and after; complex
/// to complex; the inverse is not divided by the length.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{FftStorage, block_fft, block_ifft};
/// use kernel_primitives::prelude::*;
///
/// /// The circular convolution of each row of 1000 numbers with a filter.
/// #[kernel(threads(100))]
/// fn convolve(
///     cx: Block,
///     x: Global<Complex<f32>>,
///     filter: Global<Complex<f32>>,
///     mut out: GlobalMut<Complex<f32>, Striped<10>>,
///     mut shared: Shared<FftStorage<f32, 1000, 10>>,
/// ) {
///     let mut items = init::<Complex<f32>, 10>(Complex::ZERO);
///     load_striped(cx, &mut items, filter);
///     let response = block_fft(cx, &mut shared, &items);
///     for tile in cx.tiles::<10>(out.len()) {
///         load_striped(cx, &mut items, x.tile(tile));
///         let spectrum = block_fft(cx, &mut shared, &items);
///         let product = core::array::from_fn(|i| spectrum[i] * response[i] / 1000.0);
///         store_striped(cx, out.tile(tile), &block_ifft(cx, &mut shared, &product));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x: Vec<Complex<f32>> = (0..3000).map(|i| Complex::from((i % 7) as f32)).collect();
/// // The mean of a number and the one three places before.
/// let mut filter = vec![Complex::ZERO; 1000];
/// (filter[0], filter[3]) = (Complex::from(0.5), Complex::from(0.5));
/// let mut out = stream.buffer_zeroed(3000)?;
/// convolve::launch(&stream, (2, 100), &stream.buffer_from(&x)?, &stream.buffer_from(&filter)?, &mut out)?;
/// let out = out.to_vec()?;
/// assert!((out[1500] - (x[1500] + x[1497]) * 0.5).l1_norm() < 1e-5);
/// assert!((out[1000] - (x[1000] + x[1997]) * 0.5).l1_norm() < 1e-5);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_fft<T: FftFloat, const N: usize, const ITEMS: usize, const BATCH: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, FftStorage<T, N, ITEMS, BATCH>>,
    items: &[Complex<T>; ITEMS],
) -> [Complex<T>; ITEMS] {
    const { assert!(is_smooth(N), "the length of a Fourier transform is a product of 2, 3, 5, 7, 11 and 13") };
    const { assert!(N.is_multiple_of(ITEMS), "each thread has as many items of a Fourier transform as the others") };
    let threads = const { N / ITEMS };
    if cx.block_threads() as usize != const { BATCH * (N / ITEMS) } {
        let expected = (BATCH * threads) as u64;
        cx.raise(FaultKind::BadShape, [cx.block_threads() as u64, expected], Location::caller());
    }
    let (transform, thread) = (cx.thread_rank() as usize / threads, cx.thread_rank() as usize % threads);
    let mut state = Transform::<T, N, ITEMS> {
        cx,
        memory: shared.array(0, const { copies(N, ITEMS) * BATCH * places(N) }),
        first: transform * places(N),
        second: if const { copies(N, ITEMS) == 2 } { (BATCH + transform) * places(N) } else { 0 },
        thread,
        items: *items,
        in_memory: false,
        readers: false,
    };
    // If a thread has all numbers in one pass, none goes through memory.
    if const { N > ITEMS || radix(N, ITEMS, 1) < N } {
        shared.enter();
    }
    // Radices must be constants.
    macro_rules! passes {
        ($($pass:literal)*) => {$(
            let done = const { step(N, ITEMS, $pass).0 };
            match const { step(N, ITEMS, $pass).1 } {
                2 => state.pass::<2>(done),
                3 => state.pass::<3>(done),
                4 => state.pass::<4>(done),
                5 => state.pass::<5>(done),
                6 => state.pass::<6>(done),
                7 => state.pass::<7>(done),
                8 => state.pass::<8>(done),
                9 => state.pass::<9>(done),
                10 => state.pass::<10>(done),
                11 => state.pass::<11>(done),
                12 => state.pass::<12>(done),
                13 => state.pass::<13>(done),
                14 => state.pass::<14>(done),
                15 => state.pass::<15>(done),
                16 => state.pass::<16>(done),
                _ => {}
            }
        )*};
    }
    const {
        assert!(
            step(N, ITEMS, 12).0 == N,
            "a Fourier transform of a block has too many passes: give threads more items"
        )
    };
    passes!(0 1 2 3 4 5 6 7 8 9 10 11);
    state.take_items();
    state.items
}

/// Computes the inverses of [`block_fft`] times `N`: `x[j] = Σ X[k] * exp(2πi * j * k / N)`.
///
/// Arrangements, cost and storage are those of [`block_fft`].
///
/// cuFFTDx: `FFT<…, Block>`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[inline(always)]
#[track_caller]
pub fn block_ifft<T: FftFloat, const N: usize, const ITEMS: usize, const BATCH: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, FftStorage<T, N, ITEMS, BATCH>>,
    items: &[Complex<T>; ITEMS],
) -> [Complex<T>; ITEMS] {
    block_fft(cx, shared, &items.map(swapped)).map(swapped)
}

/// A transform in progress.
struct Transform<'k, T, const N: usize, const ITEMS: usize> {
    cx: Block<'k>,
    memory: SharedArray<'k, Complex<T>>,
    /// The beginning of the transform's copy in memory.
    first: usize,
    /// The place to which a pass from memory to memory writes.
    second: usize,
    /// The rank of the thread among the threads of the transform.
    thread: usize,
    /// The items of the thread, striped.
    items: [Complex<T>; ITEMS],
    /// Whether the numbers are in the first copy in memory, and not in `items`.
    in_memory: bool,
    /// Whether other threads may still read the first copy.
    readers: bool,
}

impl<T: FftFloat, const N: usize, const ITEMS: usize> Transform<'_, T, N, ITEMS> {
    const THREADS: usize = N / ITEMS;

    /// Goes from transforms of length `done` to transforms of length `done * R`.
    #[track_caller]
    fn pass<const R: usize>(&mut self, done: usize) {
        if const { ITEMS.is_multiple_of(R) } {
            self.pass_in_registers::<R>(done)
        } else {
            self.pass_in_memory::<R>(done)
        }
    }

    /// Runs a pass in which one thread has all items of each transform.
    #[track_caller]
    fn pass_in_registers<const R: usize>(&mut self, done: usize) {
        self.take_items();
        let groups = const { ITEMS / R };
        for group in 0..groups {
            let j = self.thread + group * Self::THREADS;
            let mut x = [zero(); R];
            for k in 0..R {
                x[k] = self.items[group + k * groups];
            }
            let x = Self::transform(x, j, done);
            for k in 0..R {
                self.items[group + k * groups] = x[k];
            }
        }
        // The last pass leaves the items striped as they were.
        if done * R < N {
            if self.readers {
                self.barrier();
            }
            for group in 0..groups {
                let to = Self::first_place::<R>(self.thread + group * Self::THREADS, done);
                for k in 0..R {
                    // SAFETY: inside; each number has one writer, and is read after the barrier.
                    unsafe { self.memory.store(self.first + place(to + k * done), self.items[group + k * groups]) };
                }
            }
            self.barrier();
            self.in_memory = true;
        }
    }

    /// Runs a pass whose transforms threads take from memory, one after the other.
    #[track_caller]
    fn pass_in_memory<const R: usize>(&mut self, done: usize) {
        self.put_items();
        let mut j = self.thread;
        while j < const { N / R } {
            let mut x = [zero(); R];
            for k in 0..R {
                // SAFETY: inside; written before a barrier, and not written before the next one.
                x[k] = unsafe { self.memory.load(self.first + place(j + k * (N / R))) };
            }
            let to = Self::first_place::<R>(j, done);
            let x = Self::transform(x, j, done);
            for k in 0..R {
                // SAFETY: inside; each number has one writer, and is read after the barrier.
                unsafe { self.memory.store(self.second + place(to + k * done), x[k]) };
            }
            j += Self::THREADS;
        }
        self.barrier();
        core::mem::swap(&mut self.first, &mut self.second);
    }

    /// Computes transform `j` of a pass, of which there are `N / R`.
    fn transform<const R: usize>(mut x: [Complex<T>; R], j: usize, done: usize) -> [Complex<T>; R] {
        if done > 1 {
            let step = j % done * (N / (done * R));
            for k in 1..R {
                // SAFETY: `j % done` is less than `done`, and `k` less than `R`: less than `N`.
                x[k] = times(x[k], unsafe { T::root::<N>(k * step) });
            }
        }
        thread_fft(&x)
    }

    /// The place of the first result of transform `j`. The others follow in steps of `done`.
    #[inline(always)]
    fn first_place<const R: usize>(j: usize, done: usize) -> usize {
        j / done * done * R + j % done
    }

    /// Moves the numbers to registers, if they are in memory.
    #[track_caller]
    fn take_items(&mut self) {
        if self.in_memory {
            for i in 0..ITEMS {
                // SAFETY: inside; written before a barrier, and not written before the next one.
                self.items[i] = unsafe { self.memory.load(self.first + place(self.thread + i * Self::THREADS)) };
            }
            (self.in_memory, self.readers) = (false, true);
        }
    }

    /// Moves the numbers to the first copy in memory, if they are in registers.
    #[track_caller]
    fn put_items(&mut self) {
        if !self.in_memory {
            if self.readers {
                self.barrier();
            }
            for i in 0..ITEMS {
                // SAFETY: inside, and no thread accesses it before the barrier.
                unsafe { self.memory.store(self.first + place(self.thread + i * Self::THREADS), self.items[i]) };
            }
            self.barrier();
            self.in_memory = true;
        }
    }

    /// A barrier that includes at least the threads of a transform.
    #[track_caller]
    fn barrier(&self) {
        if const { (WARP as usize).is_multiple_of(Self::THREADS) } {
            self.cx.sync_warp(self.cx.warp_mask());
        } else {
            self.cx.barrier();
        }
    }
}
