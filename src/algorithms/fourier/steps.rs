//! Transforms of lines of any length, in steps of any radix up to 16.

use kernel_primitives::element::FftFloat;
use kernel_primitives::thread::thread_fft;

use super::block::{BlockLines, LineMemory, Numbers, ThreadLine, each_number, times, zero};
use super::lines::{FFT_NUMBERS, fft_place};

/// A step of Stockham's algorithm: from transforms of length `done` to such of length `done * radix`.
#[derive(Clone, Copy)]
struct Step {
    radix: u32,
    rounds: u32,
    done: u32,
    first: bool,
    last: bool,
}

/// Radices, and how many transforms of them a thread makes at once.
macro_rules! steps {
    ($(($radix:literal, $rounds:literal))*) => {
        /// The radices of steps, and how many transforms of them a thread makes at once, for a radix the most first.
        pub const FFT_STEPS: &[(usize, usize)] = &[$(($radix, $rounds)),*];

        impl<T: FftFloat> BlockLines<'_, T> {
            /// A step between global memory, which is read before the first one and written after the last one.
            // On the host once for all inputs and outputs: it takes long to compile.
            #[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
            fn step(&self, step: Step, line: ThreadLine, x: &mut Numbers<T>) {
                $(if step.radix == $radix && step.rounds == $rounds {
                    return self.step_of::<$radix, $rounds>(step, line, x);
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
    pub(super) fn transform_any(&self, memory: &mut impl LineMemory<T>) {
        let (mut done, mut steps) = (1, self.lines.steps);
        // Of a line that is not there, a thread without numbers.
        let line_of = |side| {
            let line = self.line(side);
            ThreadLine { thread: if line.is_there { line.thread } else { self.lines.n }, ..line }
        };
        let mut line = line_of(&self.lines.input);
        let mut x = [zero(); FFT_NUMBERS];
        // How many numbers the thread has in a step in which so many elements lie between them.
        let count = |apart: u32, line: ThreadLine| {
            if line.thread < apart { (self.lines.n / apart) as usize } else { 0 }
        };
        loop {
            let (radix, rounds) = (steps as u32 % 16 + 1, (steps >> 4) as u32 % 16 + 1);
            let step = Step { radix, rounds, done, first: done == 1, last: done * radix >= self.lines.n };
            if step.first {
                let apart = self.lines.n / (radix * rounds);
                x = self.load(line, count(apart, line), apart, memory);
                self.prepare_turns(self.apart_in_the_end(), memory);
                if step.last {
                    self.cx.barrier();
                }
            } else if step.last {
                line = line_of(&self.lines.output);
            }
            self.step(step, line, &mut x);
            if step.last {
                let apart = self.apart_in_the_end();
                return self.store(line, count(apart, line), apart, memory, &x);
            }
            (done, steps) = (done * radix, steps >> 8);
        }
    }

    /// How many elements lie between a thread's numbers in the last step.
    fn apart_in_the_end(&self) -> u32 {
        let mut step = self.lines.steps;
        while step >> 8 != 0 {
            step >>= 8;
        }
        self.lines.n / ((step as u32 % 16 + 1) * ((step >> 4) as u32 + 1))
    }

    /// A step, between barriers: of numbers in shared memory unless it is the first one, and its results go there unless it is the last one.
    fn step_of<const R: usize, const P: usize>(&self, step: Step, line: ThreadLine, x: &mut Numbers<T>) {
        const { assert!(R * P <= FFT_NUMBERS) };
        let Step { done, first, last, .. } = step;
        let threads = self.lines.n / (R * P) as u32;
        let works = line.thread < threads;
        let memory = self.place_of(line);
        if !first {
            if works {
                each_number!(M, {
                    if M < R * P {
                        let e = line.thread + M as u32 * threads;
                        // SAFETY: inside the line; written before the last barrier, and not written before the next one.
                        x[M] = unsafe { self.shared.load((memory + fft_place(e, self.lines.pad)) as usize) };
                    }
                });
            }
            if !last {
                self.cx.barrier();
            }
        }
        if works {
            each_number!(I, {
                if I < P {
                    let (run, at) = divided(line.thread + I as u32 * threads, done);
                    let mut y = [zero(); R];
                    each_number!(K, {
                        if K < R {
                            y[K] = x[K * P + I];
                        }
                    });
                    if !first {
                        // The table has the roots of the numbers `done` to `done * R` of a line from `done` on.
                        let first_root = self.lines.roots as usize + at as usize;
                        each_number!(K, {
                            if K > 0 && K < R {
                                y[K] = times(y[K], self.root(first_root + K * done as usize));
                            }
                        });
                    }
                    let y = thread_fft(&y);
                    let first_place = run * (R as u32 * done) + at;
                    each_number!(K, {
                        if K < R {
                            if last {
                                x[K * P + I] = y[K];
                            } else {
                                let e = first_place + K as u32 * done;
                                let place = fft_place(e, self.lines.pad);
                                // SAFETY: inside the line; each number has one writer, and is read after the barrier.
                                unsafe { self.shared.store((memory + place) as usize, y[K]) };
                            }
                        }
                    });
                }
            });
        }
        if !last {
            // They need no registers meanwhile.
            *x = [zero(); FFT_NUMBERS];
            self.cx.barrier();
        }
    }
}

/// The quotient and the remainder of a number less than 2^16 by the length of the transforms so far, which is less, too.
fn divided(j: u32, done: u32) -> (u32, u32) {
    if done == 1 {
        return (j, 0);
    }
    // Rounded up, by less than what would show in the quotient.
    let reciprocal = u32::MAX / done.max(1) + 1;
    let quotient = ((u64::from(j) * u64::from(reciprocal)) >> 32) as u32;
    (quotient, j - quotient * done)
}
