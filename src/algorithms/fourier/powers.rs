//! Transforms of lines whose length is a power of two.

use kernel_primitives::element::FftFloat;
use kernel_primitives::thread::{thread_fft, times, zero};

use super::block::{BlockLines, LineMemory, Numbers, ThreadLine, each_number, signed};
use super::lines::{FFT_NUMBERS, FFT_PAD, fft_place};

impl<T: FftFloat> BlockLines<'_, T> {
    /// Transforms lines whose length is a power of two, and at least 16. The steps have radix 16, except the last one, which may have a
    /// smaller radix. All threads of a line have 16 numbers in each step.
    pub(super) fn transform_powers<M: LineMemory<T> + ?Sized>(&self, memory: &mut M) {
        let threads = self.pass.n / 16;
        // This comes before there are numbers that take registers.
        self.prepare_twiddles(threads, memory);
        let mut line = self.line(&self.pass.input);
        let mut x = [zero(); FFT_NUMBERS];
        if self.is_direct_input(memory) {
            self.read(line, threads, memory, &mut x);
        } else {
            self.stage_input(line, memory);
            self.take(line, &mut x);
            self.cx.barrier();
        }
        let (mut done, mut rest) = (16, self.pass.n / 16);
        self.begin(line, &mut x, rest > 1);
        while rest > 1 {
            if rest <= 16 {
                line = self.line(&self.pass.output);
            }
            self.go_on(line, done, rest, &mut x);
            (done, rest) = (done * 16, rest / 16);
        }
        if self.is_direct_output() {
            return self.write_all(line, threads, memory, &x);
        }
        // Other threads may still read.
        self.cx.barrier();
        self.give(line, &x);
        self.cx.barrier();
        self.stage_output(line, memory);
    }

    /// Reads the thread's numbers from global memory.
    fn read<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, threads: u32, memory: &M, x: &mut Numbers<T>) {
        if line.is_there {
            let (first, apart) = self.indices(line, &self.pass.input, threads);
            each_number!(M < FFT_NUMBERS, {
                // SAFETY: all elements of the line are there.
                x[M] = signed(unsafe { memory.load_aligned(first + M * apart) }, self.pass.input_sign);
            });
        }
    }

    /// Writes the thread's results to global memory.
    fn write_all<M: LineMemory<T> + ?Sized>(&self, line: ThreadLine, threads: u32, memory: &mut M, x: &Numbers<T>) {
        if line.is_there {
            let twiddle = self.twiddle(line, memory);
            let (first, apart) = self.indices(line, &self.pass.output, threads);
            each_number!(M < FFT_NUMBERS, {
                // SAFETY: all elements of the line are there. Of all threads only this one writes their indices; where an output that is
                // computed puts them is the caller's. In place, the line's reads lie before a barrier, or before this in the same thread.
                unsafe { self.write((line, M), first + M * apart, x[M], twiddle, memory) };
            });
        }
    }

    /// Reads the thread's numbers from shared memory. Their distance is `n / 16` elements.
    fn take(&self, line: ThreadLine, x: &mut Numbers<T>) {
        if !line.is_there {
            return;
        }
        let (memory, threads) = (self.place_of(line), self.pass.n / 16);
        if threads.is_multiple_of(16) {
            let first = memory + fft_place(line.thread, FFT_PAD);
            each_number!(M < FFT_NUMBERS, {
                // SAFETY: inside the line; written before the last barrier, and not written before the next one.
                x[M] = unsafe { self.shared.load((first + M as u32 * fft_place(threads, FFT_PAD)) as usize) };
            });
        } else {
            each_number!(M < FFT_NUMBERS, {
                let e = line.thread + M as u32 * threads;
                // SAFETY: as above.
                x[M] = unsafe { self.shared.load((memory + fft_place(e, FFT_PAD)) as usize) };
            });
        }
    }

    /// Writes the thread's results to shared memory, to the places from which [`take`](Self::take) reads numbers.
    fn give(&self, line: ThreadLine, x: &Numbers<T>) {
        if line.is_there {
            let (memory, threads) = (self.place_of(line), self.pass.n / 16);
            each_number!(M < FFT_NUMBERS, {
                let e = line.thread + M as u32 * threads;
                // SAFETY: inside the line; each number has one writer, and is read after the barrier.
                unsafe { self.shared.store((memory + fft_place(e, FFT_PAD)) as usize, x[M]) };
            });
        }
    }

    /// Makes the first step. If another step follows, the results are in shared memory.
    fn begin(&self, line: ThreadLine, x: &mut Numbers<T>, goes_on: bool) {
        *x = thread_fft(x);
        if goes_on {
            if line.is_there {
                let first = self.place_of(line) + fft_place(16 * line.thread, FFT_PAD);
                each_number!(K < FFT_NUMBERS, {
                    // SAFETY: inside the line; each number has one writer, and is read after the barrier.
                    unsafe { self.shared.store((first + K as u32) as usize, x[K]) };
                });
            }
            self.cx.barrier();
        }
    }

    /// Makes the step after transforms of length `done`, which is a multiple of 16, from numbers in shared memory. If it is not the last
    /// step, its results are in shared memory, too.
    fn go_on(&self, line: ThreadLine, done: u32, rest: u32, x: &mut Numbers<T>) {
        *x = [zero(); FFT_NUMBERS];
        self.take(line, x);
        if rest > 16 {
            self.cx.barrier();
        }
        match rest {
            2 => self.transforms::<2, 8>(line.thread, done, x),
            4 => self.transforms::<4, 4>(line.thread, done, x),
            8 => self.transforms::<8, 2>(line.thread, done, x),
            _ => self.transforms::<16, 1>(line.thread & (done - 1), done, x),
        }
        if rest > 16 {
            if line.is_there {
                let at = line.thread & (done - 1);
                let first = self.place_of(line) + fft_place((line.thread - at) * 16 + at, FFT_PAD);
                each_number!(K < FFT_NUMBERS, {
                    // SAFETY: inside the line; each number has one writer, and is read after the barrier.
                    unsafe { self.shared.store((first + K as u32 * fft_place(done, FFT_PAD)) as usize, x[K]) };
                });
            }
            // They need no registers before the next step.
            *x = [zero(); FFT_NUMBERS];
            self.cx.barrier();
        }
    }

    /// Makes the `P` transforms of radix `R` of a thread. The first one is at place `at`.
    fn transforms<const R: usize, const P: usize>(&self, at: u32, done: u32, x: &mut Numbers<T>) {
        each_number!(I < P, {
            let first = self.pass.roots as usize + (at + I as u32 * (done / P as u32)) as usize;
            let mut y = [zero(); R];
            each_number!(K < R, {
                y[K] = x[K * P + I];
                if K > 0 {
                    y[K] = times(y[K], self.root(first + K * done as usize));
                }
            });
            let y = thread_fft(&y);
            each_number!(K < R, {
                x[K * P + I] = y[K];
            });
        });
    }
}
