//! Transforms of lines of any length, in steps of any radix up to 16.

use kernel_primitives::element::FftFloat;
use kernel_primitives::thread::{thread_fft, times, zero};

use super::block::{BlockLines, LineMemory, Numbers, ThreadLine, each_number, signed};
use super::lines::{FFT_NUMBERS, fft_place};

/// A step of Stockham's algorithm: it makes transforms of length `done * radix` from transforms of length `done`. Each thread makes `many`
/// transforms.
#[derive(Clone, Copy)]
struct Step {
    radix: u32,
    many: u32,
    done: u32,
    /// The number of threads that have numbers, which is also the distance between the elements of a thread. It does not come from the
    /// constants of a radix: the compiler would compute it for all radices, and before the first step.
    threads: u32,
    /// Whether numbers come from global memory, and not from shared memory.
    reads: bool,
    /// Whether results go to global memory.
    writes: bool,
}

/// The radices, and the numbers of transforms that a thread makes at once.
macro_rules! steps {
    ($(($radix:literal, $many:literal))*) => {
        /// The radices of steps, and the number of transforms that a thread makes at once. For each radix, the largest number comes first.
        pub const FFT_STEPS: &[(usize, usize)] = &[$(($radix, $many)),*];

        impl<T: FftFloat> BlockLines<'_, T> {
            #[inline(always)]
            fn step<M: LineMemory<T> + ?Sized>(&self, step: Step, line: ThreadLine, memory: &mut M) {
                $(if step.radix == $radix && step.many == $many {
                    return self.step_of::<M, $radix, $many>(step, line, memory);
                })*
            }
        }
    };
}
steps! {
    (16, 1) (15, 1) (14, 1) (13, 1) (12, 1) (11, 1) (10, 1) (9, 1) (8, 2) (8, 1) (7, 2) (7, 1) (6, 2) (6, 1) (5, 3) (5, 2) (5, 1)
    (4, 4) (4, 2) (4, 1) (3, 5) (3, 3) (3, 1) (2, 8) (2, 4) (2, 1) (1, 1)
}

impl<T: FftFloat> BlockLines<'_, T> {
    pub(super) fn transform_any<M: LineMemory<T> + ?Sized>(&self, memory: &mut M) {
        self.prepare_twiddles(self.apart_in_the_end(), memory);
        // If the line does not exist, the thread has no numbers.
        let line_of = |side| {
            let line = self.line(side);
            ThreadLine { thread: if line.is_there { line.thread } else { self.pass.n }, ..line }
        };
        let mut line = line_of(&self.pass.input);
        let (reads, writes) = (self.is_direct_input(memory), self.is_direct_output());
        if !reads {
            self.stage_input(line, memory);
        }
        let (mut done, mut steps) = (1, self.pass.steps);
        loop {
            let (radix, many) = (steps as u32 % 16 + 1, (steps >> 4) as u32 % 16 + 1);
            let last = done * radix >= self.pass.n;
            if last && done > 1 {
                line = line_of(&self.pass.output);
            }
            let threads = self.pass.n / (radix * many);
            let step = Step { radix, many, done, threads, reads: reads && done == 1, writes: writes && last };
            self.step(step, line, memory);
            if last {
                break;
            }
            (done, steps) = (done * radix, steps >> 8);
        }
        if !writes {
            self.stage_output(line, memory);
        }
    }

    /// The distance between a thread's numbers in the last step, in elements.
    fn apart_in_the_end(&self) -> u32 {
        let mut step = self.pass.steps;
        while step >> 8 != 0 {
            step >>= 8;
        }
        self.pass.n / ((step as u32 % 16 + 1) * ((step >> 4) as u32 + 1))
    }

    /// Makes a step. A barrier comes before it. If the step writes shared memory, another barrier follows.
    fn step_of<M: LineMemory<T> + ?Sized, const R: usize, const P: usize>(
        &self,
        step: Step,
        line: ThreadLine,
        memory: &mut M,
    ) {
        const { assert!(R * P <= FFT_NUMBERS) };
        let Step { done, threads, reads, writes, .. } = step;
        let works = line.thread < threads;
        let shared = self.place_of(line);
        let mut x: Numbers<T> = [zero(); FFT_NUMBERS];
        if reads {
            if works {
                let (first, apart) = self.indices(line, &self.pass.input, threads);
                each_number!(M < R * P, {
                    // SAFETY: all elements of the line are there.
                    x[M] = signed(unsafe { memory.load_aligned(first + M * apart) }, self.pass.input_sign);
                });
            }
        } else {
            if works {
                each_number!(M < R * P, {
                    let e = line.thread + M as u32 * threads;
                    // SAFETY: inside the line; written before the last barrier, and not written before the next one.
                    x[M] = unsafe { self.shared.load((shared + fft_place(e, self.pass.pad)) as usize) };
                });
            }
            if !writes {
                self.cx.barrier();
            }
        }
        if works {
            each_number!(I < P, {
                let (run, at) = divided(line.thread + I as u32 * threads, done);
                let mut y = [zero(); R];
                each_number!(K < R, {
                    y[K] = x[K * P + I];
                });
                if done > 1 {
                    // From `done` on, the table of a line has the roots of the numbers `done` to `done * R`.
                    let root = self.pass.roots as usize + at as usize;
                    each_number!(K < R, {
                        if K > 0 {
                            y[K] = times(y[K], self.root(root + K * done as usize));
                        }
                    });
                }
                let y = thread_fft(&y);
                let first = run * (R as u32 * done) + at;
                each_number!(K < R, {
                    if writes {
                        x[K * P + I] = y[K];
                    } else {
                        let place = fft_place(first + K as u32 * done, self.pass.pad);
                        // SAFETY: inside the line; each number has one writer, and is read after the barrier.
                        unsafe { self.shared.store((shared + place) as usize, y[K]) };
                    }
                });
            });
            if writes {
                let twiddle = self.twiddle(line, memory);
                let (first, apart) = self.indices(line, &self.pass.output, threads);
                each_number!(M < R * P, {
                    // SAFETY: all elements of the line are there. Of all threads only this one writes their indices; where an output
                    // that is computed puts them is the caller's. In place, the line's reads lie before a barrier, or before this in the
                    // same thread.
                    unsafe { self.write((line, M), first + M * apart, x[M], twiddle, memory) };
                });
            }
        }
        if !writes {
            self.cx.barrier();
        }
    }
}

/// Returns the quotient and the remainder of a number by the length of the transforms so far. Both are less than 2^16.
fn divided(j: u32, done: u32) -> (u32, u32) {
    if done == 1 {
        return (j, 0);
    }
    // It is rounded up. The difference is too small to change the quotient.
    let reciprocal = u32::MAX / done.max(1) + 1;
    let quotient = ((u64::from(j) * u64::from(reciprocal)) >> 32) as u32;
    (quotient, j - quotient * done)
}
