//! The code that both kernels of Fourier transforms share: lines, and the places of their numbers.

use kernel_primitives::element::FftFloat;
use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;
use kernel_primitives::thread::{times, zero};
use kernel_primitives::view::SharedArray;

use super::lines::*;

/// The numbers of a thread. In a step of radix `R`, a thread makes `P` transforms, and `x[k * P + i]` is number `k` of transform `i`.
pub(super) type Numbers<T> = [Complex<T>; FFT_NUMBERS];

/// The memory of lines.
pub(super) trait LineMemory<T: FftFloat> {
    /// Whether the results can be a part of a longer transform, with [twiddle factors](FFT_TWIDDLES). If so, they are complex.
    fn can_twiddle(&self) -> bool;

    /// Whether numbers can be read as [aligned](Self::load_aligned) ones.
    fn is_aligned(&self) -> bool;

    /// Returns the number at an index. It takes one access if the number is in memory.
    ///
    /// # Safety
    /// As for [`load`](Self::load), and numbers are aligned.
    unsafe fn load_aligned(&self, at: usize) -> Complex<T>;

    /// Returns the number at an index.
    ///
    /// # Safety
    /// It is inside. No other thread writes it, or a barrier lies in between.
    unsafe fn load(&self, at: usize) -> Complex<T>;

    /// Returns the real numbers at an index and `apart` indices after it.
    ///
    /// # Safety
    /// As for [`load`](Self::load), of both.
    #[inline(always)]
    unsafe fn load_pair(&self, at: usize, apart: usize) -> Complex<T> {
        // SAFETY: the caller's contract.
        let (first, second) = unsafe { (self.load(at), self.load(at + apart)) };
        Complex { re: first.re, im: second.re }
    }

    /// Writes a result.
    ///
    /// # Safety
    /// It is inside. No other thread accesses it, or a barrier lies in between.
    unsafe fn store(&mut self, at: usize, value: Complex<T>);

    /// Writes two real results, the second one `apart` indices after the first.
    ///
    /// # Safety
    /// As for [`store`](Self::store), of both.
    unsafe fn store_pair(&mut self, at: usize, apart: usize, [first, second]: [T; 2]) {
        // SAFETY: the caller's contract.
        unsafe {
            self.store(at, Complex { re: first, im: T::ZERO });
            self.store(at + apart, Complex { re: second, im: T::ZERO });
        }
    }
}

/// The lines of a block.
pub(super) struct BlockLines<'k, T> {
    pub(super) cx: Block<'k>,
    pub(super) pass: FftPass<T>,
    table: Input<'k, Span<Complex<T>>>,
    pub(super) shared: SharedArray<'k, Complex<T>>,
}

/// A line, as a thread sees it.
#[derive(Clone, Copy)]
pub(super) struct ThreadLine {
    /// The number in the block.
    pub(super) number: u32,
    /// The thread's rank among the threads of the line.
    pub(super) thread: u32,
    /// Whether the line exists.
    pub(super) is_there: bool,
}

/// Runs the code for each index below a constant, which is at most [`FFT_NUMBERS`]. On a GPU, the code is repeated, so that numbers stay in
/// registers in any case.
#[cfg(target_arch = "nvptx64")]
macro_rules! each_number {
    ($m:ident < $n:expr, $code:block) => { each_number!(@ $m, $n, $code, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $m:ident, $n:expr, $code:block, $($number:literal)*) => {$(
        // The compiler makes no code for indices outside, so it need not remove such code.
        if const { $number < $n } {
            #[allow(unconditional_panic, clippy::out_of_bounds_indexing, reason = "a number that is not there")]
            {
                const $m: usize = $number;
                $code
            }
        }
    )*};
}
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! each_number {
    ($m:ident < $n:expr, $code:block) => {
        #[allow(non_snake_case, clippy::needless_range_loop, reason = "a constant on a GPU")]
        for $m in 0..$n $code
    };
}
pub(super) use each_number;

impl<'k, T: FftFloat> BlockLines<'k, T> {
    #[inline(always)]
    pub(super) fn new(
        cx: Block<'k>,
        pass: FftPass<T>,
        table: Input<'k, Span<Complex<T>>>,
        shared: SharedSlice<'k, Complex<T>>,
    ) -> Self {
        Self { cx, pass, table, shared: shared.array() }
    }

    #[inline(always)]
    pub(super) fn transform<const POWERS: bool>(&self, memory: &mut impl LineMemory<T>) {
        // On the host, one function serves all inputs and outputs, because it takes long to compile.
        #[cfg(not(target_arch = "nvptx64"))]
        let memory: &mut dyn LineMemory<T> = memory;
        if POWERS { self.transform_powers(memory) } else { self.transform_any(memory) }
    }

    /// Returns the thread's line. Neighbouring threads are in one line if its elements are contiguous, and otherwise in neighbouring lines.
    pub(super) fn line(&self, side: &FftSide) -> ThreadLine {
        let rank = self.cx.thread_rank();
        let (number, thread) = if side.contiguous != 0 {
            self.pass.threads.div_mod(rank)
        } else {
            let (thread, number) = self.pass.lines_of_block.div_mod(rank);
            (number, thread)
        };
        ThreadLine { number, thread, is_there: self.rank(number) < self.pass.lines }
    }

    /// Returns the rank among all lines of a line of this block.
    #[inline(always)]
    pub(super) fn rank(&self, number: u32) -> u64 {
        self.cx.block_rank() as u64 * self.pass.lines_of_block.divisor() as u64 + number as u64
    }

    /// Returns the beginning of a line in shared memory.
    #[inline(always)]
    pub(super) fn place_of(&self, line: ThreadLine) -> u32 {
        line.number * self.pass.pitch
    }

    /// Returns whether numbers go from global memory to threads without a change.
    #[inline(always)]
    pub(super) fn is_direct_input<M: LineMemory<T> + ?Sized>(&self, memory: &M) -> bool {
        self.pass.options & FFT_STAGED_INPUT == 0 && memory.is_aligned()
    }

    /// Returns whether results go from threads to global memory without a change.
    #[inline(always)]
    pub(super) fn is_direct_output(&self) -> bool {
        self.pass.options & FFT_STAGED_OUTPUT == 0
    }

    /// Returns the index of a thread's number 0 in global memory, and the distance between the indices of its numbers. The numbers are
    /// `apart` elements apart.
    #[inline(always)]
    pub(super) fn indices(&self, line: ThreadLine, side: &FftSide, apart: u32) -> (usize, usize) {
        let at = self.pass.coordinates(self.rank(line.number));
        let first = self.pass.index(side, at, u64::from(line.thread) * side.element + at[2] * side.line);
        (first, (u64::from(apart) * side.element * self.pass.inner.divisor()) as usize)
    }

    /// Returns the twiddle factor of the thread's first result, if lines are part of a longer transform.
    pub(super) fn twiddle<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, memory: &M) -> Complex<T> {
        if !self.has_twiddles(memory) {
            return zero();
        }
        let [_, _, b, _] = self.pass.coordinates(self.rank(line.number));
        self.root_of_whole(u64::from(line.thread) * b)
    }

    /// Writes the thread's result `m` to global memory.
    ///
    /// # Safety
    /// As for [`LineMemory::store`].
    #[inline(always)]
    pub(super) unsafe fn write<M: LineMemory<T> + ?Sized>(
        &self,
        (line, m): (ThreadLine, usize),
        at: usize,
        x: Complex<T>,
        twiddle: Complex<T>,
        memory: &mut M,
    ) {
        let x = if self.has_twiddles(memory) { self.twiddled(x, twiddle, line, m) } else { x };
        // SAFETY: the caller's contract.
        unsafe { memory.store(at, self.scaled(x)) };
    }

    /// Puts twiddle factors into shared memory, if lines are part of a longer transform. These factors lead from a thread's first number to
    /// each of its other numbers. `apart` elements are between them.
    pub(super) fn prepare_twiddles<M: LineMemory<T> + ?Sized>(&self, apart: u32, memory: &M) {
        if !self.has_twiddles(memory) {
            return;
        }
        let lines = self.pass.lines_of_block.divisor();
        let mut i = self.cx.thread_rank();
        while i < lines * FFT_NUMBERS as u32 {
            let (m, number) = self.pass.lines_of_block.div_mod(i);
            if m * apart < self.pass.n {
                let [_, _, b, _] = self.pass.coordinates(self.rank(number));
                let twiddle = self.root_of_whole(u64::from(m * apart) * b);
                // SAFETY: the launch has memory for them after the lines; each has one writer.
                unsafe { self.shared.store((self.first_twiddle() + i) as usize, twiddle) };
            }
            i += self.cx.block_threads();
        }
        self.cx.barrier();
    }

    #[inline(always)]
    fn has_twiddles<M: LineMemory<T> + ?Sized>(&self, memory: &M) -> bool {
        memory.can_twiddle() && self.has(FFT_TWIDDLES)
    }

    /// Returns the beginning of the twiddle factors in shared memory. For each number of a thread, they have the factors of all lines.
    #[inline(always)]
    fn first_twiddle(&self) -> u32 {
        self.pass.lines_of_block.divisor() * self.pass.pitch
    }

    /// Multiplies a thread's result `m` by its twiddle factor. The factor of the first result is `twiddle`.
    fn twiddled(&self, x: Complex<T>, twiddle: Complex<T>, line: ThreadLine, m: usize) -> Complex<T> {
        if m == 0 {
            return times(x, twiddle);
        }
        let at = self.first_twiddle() + m as u32 * self.pass.lines_of_block.divisor() + line.number;
        // SAFETY: it is there, and was written before a barrier.
        let on = unsafe { self.shared.load(at as usize) };
        times(x, times(twiddle, on))
    }

    /// Returns a root of unity of the longer transform that lines are part of.
    #[inline(always)]
    fn root_of_whole(&self, index: u64) -> Complex<T> {
        let near = 1 << self.pass.twiddle_bits;
        let far = self.factor(self.pass.twiddles, near + (index >> self.pass.twiddle_bits));
        times(self.factor(self.pass.twiddles, index & (near - 1)), far)
    }

    /// Returns a number of a part of the table.
    #[inline(always)]
    pub(super) fn factor(&self, part: u64, index: u64) -> Complex<T> {
        self.root((part + index) as usize)
    }

    /// Returns a number of the table.
    #[inline(always)]
    pub(super) fn root(&self, index: usize) -> Complex<T> {
        // SAFETY: the library alone launches, with the table of a plan, which has all parts that its passes name. Each is as long as what
        // they are indexed by: the numbers of a line, the positions along an axis, or products of coordinates below the length of the whole.
        let [root] = unsafe { self.table.vector_inside::<1>(index) };
        root
    }

    #[inline(always)]
    pub(super) fn scaled(&self, x: Complex<T>) -> Complex<T> {
        let [re, im] = self.pass.scales;
        Complex { re: x.re.mul(re), im: x.im.mul(im) }
    }

    #[inline(always)]
    pub(super) fn has(&self, option: u32) -> bool {
        self.pass.options & option != 0
    }
}

/// Returns the number, or its conjugate if `sign` is −1.
#[inline(always)]
pub(super) fn signed<T: FftFloat>(x: Complex<T>, sign: T) -> Complex<T> {
    Complex { re: x.re, im: x.im.mul(sign) }
}
