//! Lines: the steps that make their transforms, and the number of lines in a block.

use super::banks;
use crate::kernels::device::{FFT_NUMBERS, FFT_PAD, FFT_STEPS, fft_pitch, fft_threads};

/// The limits of a block on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The bytes of shared memory.
    pub shared_bytes: usize,
    /// The bytes of a complex number.
    pub number: usize,
}

/// The number of threads that a block has if its lines are short.
const USUAL_THREADS: usize = 256;

/// The bytes that neighbouring lines should have together, if that takes no more threads than the second number.
const SIDE_BY_SIDE: (usize, usize) = (128, 512);

/// The bytes that they must have in any case. An additional pass takes less time than shorter pieces of memory.
const LEAST_SIDE_BY_SIDE: usize = 64;

/// A line, as a block transforms it. A block can transform several lines in one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub n: usize,
    pub steps: Steps,
    pub threads: usize,
    /// After each `2^pad` numbers, a place of shared memory is left out.
    pub pad: u32,
}

/// The steps of a line. Each step has eight bits, and the first step has the lowest. The lower four bits are the radix less one, and the
/// upper four bits are the number of transforms that a thread makes at once, less one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Steps(u64);

impl Steps {
    fn new(steps: &[(usize, usize)]) -> Self {
        let bytes = steps.iter().rev().map(|(radix, many)| (radix - 1 + 16 * (many - 1)) as u64);
        Self(bytes.fold(0, |all, byte| (all << 8) + byte))
    }

    /// Returns the bits that a kernel takes.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Returns the radices for a line of `n` numbers, in order.
    pub(super) fn radices(self, n: usize) -> impl Iterator<Item = usize> {
        let (mut done, mut rest) = (1, self.0);
        std::iter::from_fn(move || {
            let radix = (rest % 16) as usize + 1;
            (done, rest) = (done * radix, rest >> 8);
            (done <= n && radix > 1).then_some(radix)
        })
    }
}

impl Line {
    /// Returns a line of `n` numbers, if a block can hold it.
    pub(super) fn new(n: usize, limits: Limits) -> Option<Self> {
        if n > LONGEST || Self::numbers_of(n, FFT_PAD, true) * limits.number > limits.shared_bytes {
            return None;
        }
        if n == 1 {
            return Some(Self { n, steps: Steps(0), threads: 1, pad: FFT_PAD });
        }
        let most_threads = fft_threads(limits.number, is_power(n));
        if is_power(n) {
            // Steps of radix 16 come first. A smaller radix comes last, if one is needed.
            let (sixteens, rest) = (n.ilog2() / 4, 1 << (n.ilog2() % 4));
            let mut steps = vec![(16, 1); sixteens as usize];
            steps.extend((rest > 1).then_some((rest, 16 / rest)));
            let threads = n / FFT_NUMBERS;
            return (threads <= most_threads).then(|| Self { n, steps: Steps::new(&steps), threads, pad: FFT_PAD });
        }
        // A thread has at most this many numbers in each step.
        if n > most_threads * FFT_NUMBERS {
            return None;
        }
        let mut search = Search { n, most_threads, steps: Vec::new(), best: None };
        search.look(n);
        let Best { threads, mut steps, .. } = search.best?;
        let pad = banks::arrange(n, &mut steps, limits);
        Some(Self { n, steps: Steps::new(&steps), threads, pad })
    }

    /// The largest number of threads in a block of such lines.
    fn most_threads(self, limits: Limits) -> usize {
        fft_threads(limits.number, self.is_power())
    }

    /// Returns whether the line has the kernel for powers of two.
    pub(super) fn is_power(self) -> bool {
        is_power(self.n)
    }

    /// The distance between the beginnings of two lines in shared memory, in numbers.
    pub(super) fn pitch(self) -> usize {
        fft_pitch(self.n, self.pad)
    }

    /// The numbers of shared memory that a line takes, including its twiddle factors if it has some.
    pub(super) fn numbers(self, twiddles: bool) -> usize {
        Self::numbers_of(self.n, self.pad, twiddles)
    }

    fn numbers_of(n: usize, pad: u32, twiddles: bool) -> usize {
        fft_pitch(n, pad) + if twiddles { FFT_NUMBERS } else { 0 }
    }

    /// Returns whether a block reads and writes whole sectors of memory if neighbouring lines are neighbours in memory.
    pub(super) fn is_read_well(self, limits: Limits) -> bool {
        self.lines_of_block(usize::MAX, false, limits) * limits.number >= LEAST_SIDE_BY_SIDE
    }

    /// The number of lines of a block.
    pub(super) fn lines_of_block(self, lines: usize, contiguous: bool, limits: Limits) -> usize {
        let (bytes, threads) = SIDE_BY_SIDE;
        let beside = (threads / self.threads).max(LEAST_SIDE_BY_SIDE / limits.number).min(bytes / limits.number);
        let wanted = if contiguous { self.whole_warps(limits) } else { beside.max(USUAL_THREADS / self.threads) };
        let most = self.most_threads(limits) / self.threads;
        let fitting = wanted.min(most).min(limits.shared_bytes / (self.numbers(true) * limits.number));
        // Then neighbouring lines fill whole sectors of memory.
        let even = if contiguous || fitting == 0 { fitting } else { 1 << fitting.ilog2() };
        even.clamp(1, lines.max(1))
    }

    /// Returns the number of lines of a block for which the most threads of a multiprocessor have a line. The last warp of a block may have
    /// threads that have none.
    fn whole_warps(self, limits: Limits) -> usize {
        let usual = (USUAL_THREADS / self.threads).max(1);
        let most = (2 * USUAL_THREADS / self.threads).max(1);
        let working = |lines: usize| {
            let threads = lines * self.threads;
            threads * (self.most_threads(limits) / threads.next_multiple_of(32))
        };
        // There must be at least two blocks: one works while the other waits.
        let two = |lines: &usize| lines * self.threads * 2 <= self.most_threads(limits);
        (usual..=most).filter(two).rev().max_by_key(|&lines| working(lines)).unwrap_or(usual)
    }
}

/// The longest line. Quotients are exact up to this length.
pub(super) const LONGEST: usize = (1 << 16) - 1;

/// Returns whether lines of `n` numbers have the kernel for powers of two.
fn is_power(n: usize) -> bool {
    n >= FFT_NUMBERS && n.is_power_of_two()
}

/// The best steps so far. The best ones are the fewest; among these, those with the fewest threads; and then those with the smallest
/// radices.
struct Best {
    threads: usize,
    sum: usize,
    steps: Vec<(usize, usize)>,
}

/// A search for the steps of a line of `n` numbers.
struct Search {
    n: usize,
    most_threads: usize,
    steps: Vec<(usize, usize)>,
    best: Option<Best>,
}

impl Search {
    /// Tries all steps that begin with the current ones, which leave `rest`. The first step has the smallest radix, because its numbers
    /// have no factors.
    fn look(&mut self, rest: usize) {
        if self.best.as_ref().is_some_and(|best| self.steps.len() + (rest > 1) as usize > best.steps.len()) {
            return;
        }
        if rest == 1 {
            let threads = self.steps.iter().map(|(radix, many)| self.n / (radix * many)).max().unwrap_or(1);
            let sum = self.steps.iter().map(|(radix, _)| radix).sum();
            let cost = (self.steps.len(), threads, sum);
            let is_better = self.best.as_ref().is_none_or(|best| cost < (best.steps.len(), best.threads, best.sum));
            if threads <= self.most_threads && is_better {
                self.best = Some(Best { threads, sum, steps: self.steps.clone() });
            }
            return;
        }
        let smallest = self.steps.last().map_or(2, |(radix, _)| *radix);
        let mut before = 0;
        for &(radix, many) in FFT_STEPS {
            // A thread makes the largest number of transforms at once that divides the number of all transforms.
            if radix != before
                && radix >= smallest
                && rest.is_multiple_of(radix)
                && (self.n / radix).is_multiple_of(many)
            {
                before = radix;
                self.steps.push((radix, many));
                self.look(rest / radix);
                self.steps.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::device::fft_shared_bytes;

    const H200: Limits = Limits { shared_bytes: 227 << 10, number: 8 };

    #[test]
    fn every_line_is_the_product_of_its_radices() {
        for line in (1..1 << 14).filter_map(|n| Line::new(n, H200)) {
            assert_eq!(line.steps.radices(line.n).product::<usize>(), line.n, "{line:?}");
            assert!(line.threads <= fft_threads(H200.number, line.is_power()), "{line:?}");
            let mut steps = line.steps.0;
            for radix in line.steps.radices(line.n) {
                let many = (steps >> 4) as usize % 16 + 1;
                assert!(FFT_STEPS.contains(&(radix, many)), "{line:?}");
                assert!(line.n.is_multiple_of(radix * many) && line.n / (radix * many) <= line.threads, "{line:?}");
                steps >>= 8;
            }
        }
    }

    #[test]
    fn powers_of_two_take_sixteen_numbers_a_thread() {
        for n in (4..14).map(|bits| 1 << bits) {
            let line = Line::new(n, H200).expect("it fits");
            assert_eq!(line.threads, n / FFT_NUMBERS, "{line:?}");
        }
    }

    /// This holds on the GPUs of all architectures, with the memory that a line of a longer transform needs.
    #[test]
    fn blocks_have_the_memory_and_the_threads_for_their_lines() {
        for (kib, number) in [64, 99, 163, 227].into_iter().flat_map(|kib| [(kib, 8), (kib, 16)]) {
            let limits = Limits { shared_bytes: fft_shared_bytes(kib << 10), number };
            let lens = [1, 2, 3, 13, 16, 60, 64, 1000, 1001, 1024, 3000, 4096, 6561, 7776, 8192, 1 << 14];
            for line in lens.into_iter().filter_map(|n| Line::new(n, limits)) {
                for contiguous in [false, true] {
                    let lines = line.lines_of_block(usize::MAX, contiguous, limits);
                    assert!(lines * line.numbers(true) * number <= limits.shared_bytes, "{limits:?}: {line:?}");
                    assert!((1..=line.most_threads(limits)).contains(&(lines * line.threads)), "{limits:?}: {line:?}");
                }
            }
        }
    }
}
