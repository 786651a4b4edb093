//! What both kernels of Fourier transforms share: lines, and where their numbers are.

use kernel_primitives::element::FftFloat;
use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;
use kernel_primitives::thread::{times, zero};
use kernel_primitives::view::SharedArray;

use super::lines::*;

/// The numbers of a thread: in a step of radix `R`, of which it makes `P` transforms, `x[k * P + i]` is number `k` of the transform `i`.
pub(super) type Numbers<T> = [Complex<T>; FFT_NUMBERS];

/// The memory of lines.
pub(super) trait LineMemory<T: FftFloat> {
    /// Whether the results can be those of a part of a longer transform, with [twiddle factors](FFT_TWIDDLES): then they are complex.
    fn can_twiddle(&self) -> bool;

    /// Whether numbers can be read as [aligned](Self::load_aligned) ones.
    fn is_aligned(&self) -> bool;

    /// The number at an index, by one access if it lies in memory.
    ///
    /// # Safety
    /// As for [`load`](Self::load), and numbers are aligned.
    unsafe fn load_aligned(&self, at: usize) -> Complex<T>;

    /// The number at an index.
    ///
    /// # Safety
    /// It is inside. No other thread writes it, or a barrier lies in between.
    unsafe fn load(&self, at: usize) -> Complex<T>;

    /// The real numbers at an index and `apart` indices after it.
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
    /// The thread's rank among those of the line.
    pub(super) thread: u32,
    /// Whether there is such a line.
    pub(super) is_there: bool,
}

/// The code with each index below a constant, which is [`FFT_NUMBERS`] at most. On a GPU one after the other, so that numbers stay in
/// registers whatever it does.
#[cfg(target_arch = "nvptx64")]
macro_rules! each_number {
    ($m:ident < $n:expr, $code:block) => { each_number!(@ $m, $n, $code, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $m:ident, $n:expr, $code:block, $($number:literal)*) => {$(
        // Of what is not there, the compiler makes no code that it would have to remove.
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
        // On the host once for all inputs and outputs: it takes long to compile.
        #[cfg(not(target_arch = "nvptx64"))]
        let memory: &mut dyn LineMemory<T> = memory;
        if POWERS { self.transform_powers(memory) } else { self.transform_any(memory) }
    }

    /// The thread's line. Neighbouring threads are in one line if its elements lie side by side, and else in neighbouring lines.
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

    /// The number of a line of this block among all lines.
    #[inline(always)]
    pub(super) fn rank(&self, number: u32) -> u64 {
        self.cx.block_rank() as u64 * self.pass.lines_of_block.divisor() as u64 + number as u64
    }

    /// Where a line begins in shared memory.
    #[inline(always)]
    pub(super) fn place_of(&self, line: ThreadLine) -> u32 {
        line.number * self.pass.pitch
    }

    /// Whether numbers come from global memory to threads as they are.
    #[inline(always)]
    pub(super) fn is_direct_input<M: LineMemory<T> + ?Sized>(&self, memory: &M) -> bool {
        self.pass.options & FFT_STAGED_INPUT == 0 && memory.is_aligned()
    }

    /// Whether results go from threads to global memory as they are.
    #[inline(always)]
    pub(super) fn is_direct_output(&self) -> bool {
        self.pass.options & FFT_STAGED_OUTPUT == 0
    }

    /// Where a thread's number 0 lies in global memory, and how many indices lie from one to the next, if there are `apart` elements between
    /// them.
    #[inline(always)]
    pub(super) fn indices(&self, line: ThreadLine, side: &FftSide, apart: u32) -> (usize, usize) {
        let at = self.pass.coordinates(self.rank(line.number));
        let first = self.pass.index(side, at, u64::from(line.thread) * side.element + at[2] * side.line);
        (first, (u64::from(apart) * side.element * self.pass.inner.divisor()) as usize)
    }

    /// The twiddle factor of the thread's first result, if lines are a part of a longer transform.
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

    /// Puts the twiddle factors of lines that are part of a longer transform into shared memory: from a thread's first number to each of the
    /// rest. `apart` elements lie between them.
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

    /// Where twiddle factors begin in shared memory: for each of a thread's numbers those of all lines.
    #[inline(always)]
    fn first_twiddle(&self) -> u32 {
        self.pass.lines_of_block.divisor() * self.pass.pitch
    }

    /// A thread's result `m` times its twiddle factor. That of the first one is `twiddle`.
    fn twiddled(&self, x: Complex<T>, twiddle: Complex<T>, line: ThreadLine, m: usize) -> Complex<T> {
        if m == 0 {
            return times(x, twiddle);
        }
        let at = self.first_twiddle() + m as u32 * self.pass.lines_of_block.divisor() + line.number;
        // SAFETY: it is there, and was written before a barrier.
        let on = unsafe { self.shared.load(at as usize) };
        times(x, times(twiddle, on))
    }

    /// A root of unity of the longer transform that lines are part of.
    #[inline(always)]
    fn root_of_whole(&self, index: u64) -> Complex<T> {
        let near = 1 << self.pass.twiddle_bits;
        let far = self.factor(self.pass.twiddles, near + (index >> self.pass.twiddle_bits));
        times(self.factor(self.pass.twiddles, index & (near - 1)), far)
    }

    /// A number of a part of the table.
    #[inline(always)]
    pub(super) fn factor(&self, part: u64, index: u64) -> Complex<T> {
        self.root((part + index) as usize)
    }

    /// A number of the table.
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

/// The number, or its conjugate if `sign` is −1.
#[inline(always)]
pub(super) fn signed<T: FftFloat>(x: Complex<T>, sign: T) -> Complex<T> {
    Complex { re: x.re, im: x.im.mul(sign) }
}
