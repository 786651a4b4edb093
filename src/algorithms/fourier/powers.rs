//! Transforms of lines whose length is a power of two.

use kernel_primitives::element::FftFloat;
use kernel_primitives::thread::thread_fft;

use super::block::{BlockLines, LineMemory, Numbers, ThreadLine, each_number, times, zero};
use super::lines::{FFT_NUMBERS, FFT_PAD, fft_place};

impl<T: FftFloat> BlockLines<'_, T> {
    /// The transforms of lines whose length is a power of two, at least 16: a step of radix 16 as long as there is one, and what is left in the
    /// end. All threads of a line have 16 numbers in each step.
    pub(super) fn transform_powers(&self, memory: &mut impl LineMemory<T>) {
        let threads = self.lines.n / 16;
        // Before there are numbers that take registers.
        self.prepare_turns(threads, memory);
        let mut line = self.line(&self.lines.input);
        let count = |line: ThreadLine| if line.is_there { FFT_NUMBERS } else { 0 };
        let mut x = self.load(line, count(line), threads, memory);
        let (mut done, mut rest) = (16, self.lines.n / 16);
        self.begin(line, &mut x, rest > 1);
        while rest > 1 {
            if rest <= 16 {
                line = self.line(&self.lines.output);
            }
            self.go_on(line, done, rest, &mut x);
            (done, rest) = (done * 16, rest / 16);
        }
        self.store(line, count(line), threads, memory, &x);
    }

    /// The first step. If it goes on, the results are in shared memory.
    // On the host once for all inputs and outputs: it takes long to compile.
    #[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
    fn begin(&self, line: ThreadLine, x: &mut Numbers<T>, goes_on: bool) {
        *x = thread_fft(x);
        if goes_on && line.is_there {
            let first = self.place_of(line) + fft_place(16 * line.thread, FFT_PAD);
            each_number!(K, {
                // SAFETY: inside the line; each number has one writer, and is read after the barrier.
                unsafe { self.shared.store((first + K as u32) as usize, x[K]) };
            });
        }
        self.cx.barrier();
    }

    /// The step after transforms of length `done`, a multiple of 16, of numbers in shared memory. If it is not the last one, so are the
    /// results.
    #[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
    fn go_on(&self, line: ThreadLine, done: u32, rest: u32, x: &mut Numbers<T>) {
        let (memory, threads) = (self.place_of(line), self.lines.n / 16);
        *x = [zero(); FFT_NUMBERS];
        if line.is_there {
            if threads.is_multiple_of(16) {
                let first = memory + fft_place(line.thread, FFT_PAD);
                each_number!(M, {
                    // SAFETY: inside the line; written before the last barrier, and not written before the next one.
                    x[M] = unsafe { self.shared.load((first + M as u32 * fft_place(threads, FFT_PAD)) as usize) };
                });
            } else {
                each_number!(M, {
                    let e = line.thread + M as u32 * threads;
                    // SAFETY: as above.
                    x[M] = unsafe { self.shared.load((memory + fft_place(e, FFT_PAD)) as usize) };
                });
            }
        }
        if rest > 16 {
            self.cx.barrier();
        }
        match rest {
            2 => self.turn::<2, 8>(line.thread, done, x),
            4 => self.turn::<4, 4>(line.thread, done, x),
            8 => self.turn::<8, 2>(line.thread, done, x),
            _ => self.turn::<16, 1>(line.thread & (done - 1), done, x),
        }
        if rest > 16 {
            if line.is_there {
                let at = line.thread & (done - 1);
                let first = memory + fft_place((line.thread - at) * 16 + at, FFT_PAD);
                each_number!(K, {
                    // SAFETY: inside the line; each number has one writer, and is read after the barrier.
                    unsafe { self.shared.store((first + K as u32 * fft_place(done, FFT_PAD)) as usize, x[K]) };
                });
            }
            // They need no registers meanwhile.
            *x = [zero(); FFT_NUMBERS];
            self.cx.barrier();
        }
    }

    /// The `P` transforms of radix `R` of a thread, the first at place `at`.
    fn turn<const R: usize, const P: usize>(&self, at: u32, done: u32, x: &mut Numbers<T>) {
        each_number!(I, {
            if I < P {
                let first = self.lines.roots as usize + (at + I as u32 * (done / P as u32)) as usize;
                let mut y = [zero(); R];
                each_number!(K, {
                    if K < R {
                        y[K] = x[K * P + I];
                    }
                    if K > 0 && K < R {
                        y[K] = times(y[K], self.root(first + K * done as usize));
                    }
                });
                let y = thread_fft(&y);
                each_number!(K, {
                    if K < R {
                        x[K * P + I] = y[K];
                    }
                });
            }
        });
    }
}
