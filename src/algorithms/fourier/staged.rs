//! Inputs that are more than numbers in their places go through shared memory before the first step. Such outputs go through shared memory
//! after the last step.

use kernel_primitives::element::FftFloat;
use kernel_primitives::prelude::*;
use kernel_primitives::thread::{times, zero};

use super::block::{BlockLines, LineMemory, ThreadLine, signed};
use super::lines::*;

/// The numbers of a thread that are in flight at a time.
const AHEAD: usize = 4;

/// Runs the code for each number in flight. On a GPU, the code is repeated, so that numbers stay in registers.
macro_rules! each_ahead {
    ($j:ident, $code:block) => { each_ahead!(@ $j, $code, 0 1 2 3) };
    (@ $j:ident, $code:block, $($number:literal)*) => {$( {
        const $j: usize = $number;
        $code
    } )*};
}

/// The elements of a line in global memory.
#[derive(Clone, Copy)]
struct Elements {
    /// The index of position 0.
    base: u64,
    /// The position of element 0.
    first: u64,
    /// The distance from an element to the next one, in positions.
    apart: u64,
    /// The distance from a position to the next one, in indices.
    inner: u64,
}

impl Elements {
    #[inline(always)]
    fn position(self, e: u32) -> u64 {
        self.first + u64::from(e) * self.apart
    }

    #[inline(always)]
    fn index(self, position: u64) -> usize {
        (self.base + position * self.inner) as usize
    }
}

impl<T: FftFloat> BlockLines<'_, T> {
    #[inline(always)]
    fn elements(&self, line: ThreadLine, side: &FftSide) -> Elements {
        let at = self.pass.coordinates(self.rank(line.number));
        let base = self.pass.index(side, at, 0) as u64;
        Elements { base, first: at[2] * side.line, apart: side.element, inner: self.pass.inner.divisor() }
    }

    /// Puts the numbers of the thread's line into shared memory. All threads of the line take part. A barrier follows.
    pub(super) fn stage_input<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, memory: &M) {
        if line.is_there {
            if self.has(FFT_HALF_INPUT) {
                self.stage_half_input(line, memory);
            } else {
                self.stage_numbers(line, memory);
            }
        }
        self.cx.barrier();
    }

    fn stage_numbers<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, memory: &M) {
        let (elements, n, threads) = (self.elements(line, &self.pass.input), self.pass.n, self.pass.threads.divisor());
        let mut e = line.thread;
        while e < n {
            let mut x = [zero(); AHEAD];
            each_ahead!(J, {
                let e = e + J as u32 * threads;
                if e < n {
                    x[J] = self.input_number(elements, elements.position(e), memory);
                }
            });
            each_ahead!(J, {
                let e = e + J as u32 * threads;
                if e < n {
                    self.put(line, e, x[J]);
                }
            });
            e += AHEAD as u32 * threads;
        }
    }

    fn input_number<M: LineMemory<T> + ?Sized>(&self, elements: Elements, position: u64, memory: &M) -> Complex<T> {
        if self.has(FFT_PAIRS_INPUT) {
            // SAFETY: both positions are there.
            let x = unsafe { memory.load_pair(elements.index(position), elements.inner as usize) };
            // A half spectrum has half of the sums. Transforms of whole numbers could be too large for the type.
            let half = T::from_f64(0.5);
            return Complex { re: x.re.mul(half), im: x.im.mul(half) };
        }
        let length = self.pass.length;
        if position >= length {
            return zero();
        }
        let mirrored = self.has(FFT_MIRRORED) && position > length / 2;
        // SAFETY: the position or its mirror is there.
        let mut x = unsafe { memory.load(elements.index(if mirrored { length - position } else { position })) };
        if mirrored {
            x.im = x.im.neg();
        }
        // In the spectrum of real numbers, these imaginary parts are zero. Other values would not quite cancel.
        if self.has(FFT_MIRRORED) && (position == 0 || 2 * position == length) {
            x.im = T::ZERO;
        }
        x = signed(x, self.pass.input_sign);
        if self.has(FFT_BEFORE) { times(x, self.factor(self.pass.before, position)) } else { x }
    }

    /// Reads the half spectrum `X` of `2 * n` real numbers. Puts the transform `Z` of the `n` complex numbers that their pairs make, times
    /// 2, into shared memory.
    fn stage_half_input<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, memory: &M) {
        let (elements, n) = (self.elements(line, &self.pass.input), self.pass.n);
        let mut k = line.thread;
        while k <= n / 2 {
            let [low, high] = [k, n - k].map(|k| elements.index(u64::from(k)));
            // SAFETY: a half spectrum has the positions from 0 to `n`.
            let (mut a, mut b) = unsafe { (memory.load(low), memory.load(high)) };
            if k == 0 {
                // In the spectrum of real numbers, these imaginary parts are zero.
                (a.im, b.im) = (T::ZERO, T::ZERO);
            }
            let (sum, difference) = sum_and_difference(a, conjugate(b));
            // This is the part of the odd numbers, without its twiddle factor.
            let odd = times(difference, conjugate(self.factor(self.pass.before, u64::from(k))));
            let sign = self.pass.input_sign;
            let z = Complex { re: sum.re.sub(odd.im), im: sum.im.add(odd.re) };
            self.put(line, k, signed(z, sign));
            if k > 0 && k < n - k {
                let z = Complex { re: sum.re.add(odd.im), im: odd.re.sub(sum.im) };
                self.put(line, n - k, signed(z, sign));
            }
            k += self.pass.threads.divisor();
        }
    }

    /// Writes the transforms that are in shared memory. A barrier comes before it.
    pub(super) fn stage_output<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, memory: &mut M) {
        if !line.is_there {
            return;
        }
        if self.has(FFT_HALF_OUTPUT) {
            return self.stage_half_output(line, memory);
        }
        let (side, n) = (&self.pass.output, self.pass.n);
        let elements = self.elements(line, side);
        let mut e = line.thread;
        while e < n {
            let (mut x, position) = (self.get(line, e), elements.position(e));
            let at = elements.index(position);
            if self.has(FFT_PAIRS_OUTPUT) {
                let Complex { re, im } = self.scaled(x);
                // SAFETY: both positions are there. Of all threads only this one writes their indices; where an output that is computed puts
                // them is the caller's. In place, the line's reads lie before a barrier.
                unsafe { memory.store_pair(at, elements.inner as usize, [re, im]) };
            } else if position < side.extent {
                if self.has(FFT_AFTER) {
                    x = times(signed(x, self.pass.sign), self.factor(self.pass.after, position));
                }
                // SAFETY: as above.
                unsafe { memory.store(at, self.scaled(x)) };
            }
            e += self.pass.threads.divisor();
        }
    }

    /// Reads the transform `Z` of the `n` complex numbers that the pairs of `2 * n` real numbers make, after they were halved. Writes the
    /// half spectrum `X` of the real numbers.
    fn stage_half_output<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, memory: &mut M) {
        let (elements, n) = (self.elements(line, &self.pass.output), self.pass.n);
        let mut k = line.thread;
        while k <= n / 2 {
            let (a, b) = (self.get(line, k), self.get(line, if k == 0 { 0 } else { n - k }));
            let (sum, difference) = sum_and_difference(a, conjugate(b));
            let odd = times(difference, self.factor(self.pass.after, u64::from(k)));
            let [low, high] = [k, n - k].map(|k| elements.index(u64::from(k)));
            let x = Complex { re: sum.re.add(odd.im), im: sum.im.sub(odd.re) };
            // SAFETY: a half spectrum has the positions from 0 to `n`; for the rest see `stage_output`.
            unsafe { memory.store(low, self.scaled(x)) };
            if k < n - k {
                let x = Complex { re: sum.re.sub(odd.im), im: sum.im.add(odd.re).neg() };
                // SAFETY: as above.
                unsafe { memory.store(high, self.scaled(x)) };
            }
            k += self.pass.threads.divisor();
        }
    }

    /// Writes a number of the line into shared memory.
    #[inline(always)]
    fn put(&self, line: ThreadLine, e: u32, x: Complex<T>) {
        // SAFETY: inside the line; each number has one writer between barriers.
        unsafe { self.shared.store((self.place_of(line) + fft_place(e, self.pass.pad)) as usize, x) }
    }

    /// Reads a number of the line from shared memory.
    #[inline(always)]
    fn get(&self, line: ThreadLine, e: u32) -> Complex<T> {
        // SAFETY: inside the line; written before the last barrier.
        unsafe { self.shared.load((self.place_of(line) + fft_place(e, self.pass.pad)) as usize) }
    }
}

#[inline(always)]
fn conjugate<T: FftFloat>(x: Complex<T>) -> Complex<T> {
    Complex { re: x.re, im: x.im.neg() }
}

#[inline(always)]
fn sum_and_difference<T: FftFloat>(a: Complex<T>, b: Complex<T>) -> (Complex<T>, Complex<T>) {
    let sum = Complex { re: a.re.add(b.re), im: a.im.add(b.im) };
    (sum, Complex { re: a.re.sub(b.re), im: a.im.sub(b.im) })
}
