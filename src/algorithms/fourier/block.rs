//! What both kernels of Fourier transforms share: lines, and their way from global memory and back.

use kernel_primitives::element::FftFloat;
use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedArray;

use super::lines::*;

/// The numbers of a thread: in a step of radix `R`, of which it makes `P` transforms, `x[k * P + i]` is number `k` of the transform `i`.
pub(super) type Numbers<T> = [Complex<T>; FFT_NUMBERS];

/// The memory of lines.
pub(super) trait LineMemory<T> {
    /// Whether the results can be those of a part of a longer transform, [which turn](FFT_TURNS): then they are complex.
    const TURNS: bool;

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

    /// Writes a result.
    ///
    /// # Safety
    /// It is inside. No other thread accesses it, or a barrier lies in between.
    unsafe fn store(&mut self, at: usize, value: Complex<T>);
}

/// The lines of a block.
pub(super) struct BlockLines<'k, T> {
    pub(super) cx: Block<'k>,
    pub(super) lines: FftLines<T>,
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

/// The code with each number of a thread. On a GPU one after the other, so that numbers stay in registers whatever it does.
#[cfg(target_arch = "nvptx64")]
macro_rules! each_number {
    ($m:ident, $code:block) => { each_number!(@ $m, $code, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $m:ident, $code:block, $($number:literal)*) => {$( {
        const $m: usize = $number;
        $code
    } )*};
}
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! each_number {
    ($m:ident, $code:block) => {
        #[allow(non_snake_case, clippy::needless_range_loop, reason = "a constant on a GPU")]
        for $m in 0..FFT_NUMBERS $code
    };
}
pub(super) use each_number;

impl<'k, T: FftFloat> BlockLines<'k, T> {
    #[inline(always)]
    pub(super) fn new(
        cx: Block<'k>,
        lines: FftLines<T>,
        table: Input<'k, Span<Complex<T>>>,
        shared: SharedSlice<'k, Complex<T>>,
    ) -> Self {
        Self { cx, lines, table, shared: shared.array() }
    }

    #[inline(always)]
    pub(super) fn transform<const POWERS: bool>(&self, memory: &mut impl LineMemory<T>) {
        if POWERS { self.transform_powers(memory) } else { self.transform_any(memory) }
    }

    /// The thread's line. Neighbouring threads are in one line if its elements lie side by side, and else in neighbouring lines.
    pub(super) fn line(&self, side: &FftSide) -> ThreadLine {
        let rank = self.cx.thread_rank();
        let (number, thread) = if side.contiguous != 0 {
            self.lines.threads.div_mod(rank)
        } else {
            let (thread, number) = self.lines.lines_of_block.div_mod(rank);
            (number, thread)
        };
        ThreadLine { number, thread, is_there: self.rank(number) < self.lines.lines }
    }

    /// The number of a line of this block among all lines.
    #[inline(always)]
    fn rank(&self, number: u32) -> u64 {
        self.cx.block_rank() as u64 * self.lines.lines_of_block.divisor() as u64 + number as u64
    }

    /// Where a line begins in shared memory.
    #[inline(always)]
    pub(super) fn place_of(&self, line: ThreadLine) -> u32 {
        line.number * self.lines.pitch
    }

    /// The position of the thread's first number on a side.
    #[inline(always)]
    fn position(line: ThreadLine, at: [u64; 4], side: &FftSide) -> u64 {
        u64::from(line.thread) * side.element + at[2] * side.line
    }

    /// So many numbers of a line from global memory, `apart` elements from one to the next.
    pub(super) fn load(&self, line: ThreadLine, count: usize, apart: u32, memory: &impl LineMemory<T>) -> Numbers<T> {
        let (mut x, side, apart) = ([zero(); FFT_NUMBERS], &self.lines.input, u64::from(apart));
        let at = self.lines.coordinates(self.rank(line.number));
        let (mut position, stride) = (Self::position(line, at, side), apart * side.element);
        if self.lines.options & FFT_INPUT_OPTIONS == 0 && memory.is_aligned() {
            let first = self.lines.index(side, at, position);
            let stride = (stride * self.lines.inner.divisor()) as usize;
            each_number!(M, {
                if M < count {
                    // SAFETY: all positions of the line are there.
                    x[M] = unsafe { memory.load_aligned(first + M * stride) };
                }
            });
            each_number!(M, {
                x[M] = signed(x[M], self.lines.input_sign);
            });
            return x;
        }
        each_number!(M, {
            if M < count {
                x[M] = self.load_by_options(at, position, memory);
                position += stride;
            }
        });
        x
    }

    fn load_by_options(&self, at: [u64; 4], position: u64, memory: &impl LineMemory<T>) -> Complex<T> {
        if position >= self.lines.length {
            return zero();
        }
        let mirrored = self.has(FFT_MIRRORED) && position > self.lines.length / 2;
        let from = if mirrored { self.lines.length - position } else { position };
        // SAFETY: the position or its mirror is there.
        let mut x = unsafe { memory.load(self.lines.index(&self.lines.input, at, from)) };
        if mirrored {
            x.im = x.im.neg();
        }
        // The spectrum of real numbers has none there, and what is there would not quite cancel.
        if self.has(FFT_MIRRORED) && (position == 0 || 2 * position == self.lines.length) {
            x.im = T::ZERO;
        }
        x = signed(x, self.lines.input_sign);
        if self.has(FFT_BEFORE) { times(x, self.factor(self.lines.before, position)) } else { x }
    }

    /// Writes so many results of a line to global memory, `apart` elements from one to the next.
    pub(super) fn store(
        &self,
        line: ThreadLine,
        count: usize,
        apart: u32,
        memory: &mut impl LineMemory<T>,
        x: &Numbers<T>,
    ) {
        let (side, apart) = (&self.lines.output, u64::from(apart));
        let at = self.lines.coordinates(self.rank(line.number));
        let (mut position, stride) = (Self::position(line, at, side), apart * side.element);
        if self.lines.options & FFT_OUTPUT_OPTIONS == 0 {
            let first = self.lines.index(side, at, position);
            let stride = (stride * self.lines.inner.divisor()) as usize;
            let turns = self.turns(memory) && count > 0;
            let turn = if turns { self.root_of_whole(u64::from(line.thread) * at[2]) } else { zero() };
            each_number!(M, {
                if M < count {
                    let x = if self.turns(memory) { self.turned(x[M], turn, line, M) } else { x[M] };
                    // SAFETY: all positions of the line are there; see below.
                    unsafe { memory.store(first + M * stride, self.scaled(x)) };
                }
            });
            return;
        }
        each_number!(M, {
            if M < count && position < side.extent {
                let mut x = x[M];
                if self.has(FFT_AFTER) {
                    x = times(signed(x, self.lines.sign), self.factor(self.lines.after, position));
                }
                // SAFETY: the position is there. Of all threads only this one writes its index; where an output that is computed puts it is
                // the caller's. In place, the line's reads lie before the last barrier, or before this in the same thread.
                unsafe { memory.store(self.lines.index(side, at, position), self.scaled(x)) };
            }
            position += stride;
        });
    }

    /// What lines that are part of a longer transform turn by, into shared memory: from a thread's first number to each of the others. `apart`
    /// elements lie between them. A barrier comes before [`store`](Self::store).
    pub(super) fn prepare_turns(&self, apart: u32, memory: &impl LineMemory<T>) {
        if !self.turns(memory) {
            return;
        }
        let lines = self.lines.lines_of_block.divisor();
        let mut i = self.cx.thread_rank();
        while i < lines * FFT_NUMBERS as u32 {
            let (m, number) = self.lines.lines_of_block.div_mod(i);
            if m * apart < self.lines.n {
                let [_, _, b, _] = self.lines.coordinates(self.rank(number));
                let turn = self.root_of_whole(u64::from(m * apart) * b);
                // SAFETY: the launch has memory for them after the lines; each has one writer.
                unsafe { self.shared.store((self.first_turn() + i) as usize, turn) };
            }
            i += self.cx.block_threads();
        }
    }

    #[inline(always)]
    fn turns<M: LineMemory<T>>(&self, _: &M) -> bool {
        M::TURNS && self.has(FFT_TURNS)
    }

    /// Where turns begin in shared memory: for each of a thread's numbers those of all lines.
    #[inline(always)]
    fn first_turn(&self) -> u32 {
        self.lines.lines_of_block.divisor() * self.lines.pitch
    }

    /// A thread's result `m`, turned as a part of a longer transform, of which the thread's first one turns by `turn`.
    fn turned(&self, x: Complex<T>, turn: Complex<T>, line: ThreadLine, m: usize) -> Complex<T> {
        if m == 0 {
            return times(x, turn);
        }
        let at = self.first_turn() + m as u32 * self.lines.lines_of_block.divisor() + line.number;
        // SAFETY: it is there, and was written before a barrier.
        let on = unsafe { self.shared.load(at as usize) };
        times(x, times(turn, on))
    }

    /// A root of unity of the longer transform that lines are part of.
    #[inline(always)]
    fn root_of_whole(&self, index: u64) -> Complex<T> {
        let near = 1 << self.lines.turn_bits;
        let far = self.factor(self.lines.turns, near + (index >> self.lines.turn_bits));
        times(self.factor(self.lines.turns, index & (near - 1)), far)
    }

    /// A number of a part of the table.
    #[inline(always)]
    fn factor(&self, part: u64, index: u64) -> Complex<T> {
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
    fn scaled(&self, x: Complex<T>) -> Complex<T> {
        let [re, im] = self.lines.scales;
        Complex { re: x.re.mul(re), im: x.im.mul(im) }
    }

    #[inline(always)]
    fn has(&self, option: u32) -> bool {
        self.lines.options & option != 0
    }
}

/// The product, with fused operations.
#[inline(always)]
pub(super) fn times<T: FftFloat>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
    Complex { re: a.re.mul_add(b.re, a.im.mul(b.im).neg()), im: a.re.mul_add(b.im, a.im.mul(b.re)) }
}

/// The number, or its conjugate if `sign` is −1.
#[inline(always)]
fn signed<T: FftFloat>(x: Complex<T>, sign: T) -> Complex<T> {
    Complex { re: x.re, im: x.im.mul(sign) }
}

#[inline(always)]
pub(super) fn zero<T: FftFloat>() -> Complex<T> {
    Complex { re: T::ZERO, im: T::ZERO }
}
