//! The order of a line's steps, which depends on the banks of shared memory that the threads access together.

use super::radices::Limits;
use crate::kernels::device::{FFT_PAD, fft_place};

/// The bytes that the shared memory of a multiprocessor moves at a time.
const WAVEFRONT: usize = 128;

/// Puts the steps of a line in the order that takes the fewest accesses of shared memory, and returns the [`FftPass::pad`] of the line.
///
/// [`FftPass::pad`]: crate::kernels::device::FftPass::pad
pub(super) fn arrange(n: usize, steps: &mut [(usize, usize)], limits: Limits) -> u32 {
    let mut best = (usize::MAX, FFT_PAD, steps.to_vec());
    let mut order = steps.to_vec();
    orders(&mut order, 0, &mut |order| {
        // No place is left out with the first one, and places are left out with the second one.
        for pad in [u32::BITS - 1, FFT_PAD] {
            let cost = accesses(n, order, pad, limits);
            if cost < best.0 {
                best = (cost, pad, order.to_vec());
            }
        }
    });
    steps.copy_from_slice(&best.2);
    best.1
}

/// Calls `f` with each order of the steps from index `from`.
fn orders(steps: &mut [(usize, usize)], from: usize, f: &mut impl FnMut(&[(usize, usize)])) {
    if from + 1 >= steps.len() {
        return f(steps);
    }
    for i in from..steps.len() {
        if !steps[from..i].contains(&steps[i]) {
            steps.swap(from, i);
            orders(steps, from + 1, f);
            steps.swap(from, i);
        }
    }
}

/// Returns the number of accesses of shared memory that a line takes. Each one counts as often as different numbers are in one bank. The
/// count is an estimate from the first threads.
fn accesses(n: usize, steps: &[(usize, usize)], pad: u32, limits: Limits) -> usize {
    let lanes = WAVEFRONT / limits.number;
    let (mut done, mut all) = (1, 0);
    for (i, &(radix, many)) in steps.iter().enumerate() {
        let threads = n / (radix * many);
        let judged = threads.min(4 * lanes);
        let mut wavefronts = 0;
        let mut count = |place: &dyn Fn(usize) -> usize| {
            for first in (0..judged).step_by(lanes) {
                let mut banks = [0; WAVEFRONT];
                for thread in first..judged.min(first + lanes) {
                    banks[fft_place(place(thread) as u32, pad) as usize % lanes] += 1;
                }
                wavefronts += banks.iter().max().copied().unwrap_or(0);
            }
        };
        if i > 0 {
            (0..radix * many).for_each(|m| count(&|thread| thread + m * threads));
        }
        if i + 1 < steps.len() {
            for at in 0..many {
                let first = |thread: usize| {
                    let j = thread + at * threads;
                    j / done * radix * done + j % done
                };
                (0..radix).for_each(|k| count(&|thread| first(thread) + k * done));
            }
        }
        all += wavefronts * threads / judged;
        done *= radix;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Limits = Limits { shared_bytes: 227 << 10, number: 8 };

    #[test]
    fn threads_are_in_different_banks() {
        let mut steps = vec![(10, 1); 3];
        assert_eq!(arrange(1000, &mut steps, F32), u32::BITS - 1);
        let [bare, padded] = [u32::BITS - 1, FFT_PAD].map(|pad| accesses(1000, &steps, pad, F32));
        // Two steps write and two read. 16 numbers are moved at a time if each is in a bank of its own. Here at most two are in one bank.
        let at_best = 4 * 1000usize.div_ceil(16);
        assert!((at_best..=2 * at_best).contains(&bare), "{bare}");
        // If places are left out, the first step writes five numbers to a bank.
        assert!(4 * bare < 3 * padded, "{bare} {padded}");
    }

    #[test]
    fn places_are_left_out_where_steps_are_of_powers_of_two() {
        let mut steps = vec![(3, 5), (16, 1), (16, 1)];
        assert_eq!(arrange(768, &mut steps, F32), FFT_PAD);
        assert_eq!(steps.iter().map(|(radix, _)| radix).product::<usize>(), 768);
    }

    #[test]
    fn each_order_comes_once() {
        let mut seen = Vec::new();
        orders(&mut [(2, 1), (3, 1), (2, 1)], 0, &mut |order| seen.push(order.to_vec()));
        seen.sort_unstable();
        let (two, three) = ((2, 1), (3, 1));
        assert_eq!(seen, [[two, two, three], [two, three, two], [three, two, two]]);
    }
}
