//! The parameters of the kernels of Fourier transforms.

use kernel_primitives::io::FastDivMod;
use kernel_primitives::prelude::*;

use crate::algorithms::tile::CONTROL;

/// Returns the most threads of a block of [`fft_lines`](struct@super::kernel::fft_lines), for complex numbers of `number` bytes. Each
/// thread has the registers for its numbers. Transforms of powers of two need fewer registers.
pub const fn fft_threads(number: usize, powers: bool) -> usize {
    match (number, powers) {
        (8, true) => 1024,
        (8, false) => 512,
        (_, true) => 512,
        (_, false) => 256,
    }
}

/// The most numbers of a thread.
pub const FFT_NUMBERS: usize = 16;

/// The [`FftPass::pad`] of lines whose length is a power of two.
pub const FFT_PAD: u32 = 4;

/// Returns the distance between two lines of length `n` in shared memory, in numbers. It is odd, so threads at the same place of several
/// lines are in different banks.
pub const fn fft_pitch(n: usize, pad: u32) -> usize {
    (fft_place(n as u32 - 1, pad) as usize + 1) | 1
}

/// Returns the bytes of shared memory that lines can take, if a block can have `most` bytes.
pub const fn fft_shared_bytes(most: usize) -> usize {
    most.saturating_sub(CONTROL)
}

/// Returns the place of a number in shared memory, relative to the beginning of its line.
#[inline(always)]
pub const fn fft_place(index: u32, pad: u32) -> u32 {
    index + (index >> pad)
}

/// The places of the numbers of lines. The element `e` of the line with the coordinates `[a, k, b, c]` is at the index
/// `(a * extent + k * part + b * line + e * element) * inner + c`.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct FftSide {
    /// The distance from an element to the next one, in positions.
    pub element: u64,
    /// The distance from a line to the next one in `b`, in positions.
    pub line: u64,
    /// The distance from a line to the next one in `k`, in positions.
    pub part: u64,
    /// The number of positions along the axis in memory. Later results are not written.
    pub extent: u64,
    /// 1 if the elements of a line are contiguous, and 0 if neighbouring lines are.
    pub contiguous: u64,
}

/// The parameters of [`fft_lines`](struct@super::kernel::fft_lines).
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct FftPass<T> {
    /// The length of a line.
    pub n: u32,
    /// After each `2^pad` numbers of a line, a place of shared memory is left out, so that threads are in different banks.
    pub pad: u32,
    /// The distance from a line to the next one in shared memory, in numbers.
    pub pitch: u32,
    /// The sum of the options.
    pub options: u32,
    /// The steps. Each step has eight bits, and the first step has the lowest. The lower four bits are the radix less one, and the upper
    /// four bits are the number of transforms that a thread makes at once, less one.
    pub steps: u64,
    /// The number of lines of a block.
    pub lines_of_block: FastDivMod<u32>,
    /// The number of threads of a line.
    pub threads: FastDivMod<u32>,
    /// The number of all lines.
    pub lines: u64,
    /// The number of values of a line's last coordinate.
    pub inner: FastDivMod<u64>,
    /// The number of values of the coordinate before it.
    pub middle: FastDivMod<u64>,
    /// The number of values of the coordinate before that one.
    pub parts: FastDivMod<u64>,
    /// The places of the input.
    pub input: FftSide,
    /// The places of the output.
    pub output: FftSide,
    /// The number of positions of a whole transform. The input is zero after them. A mirrored input has the positions up to the half.
    pub length: u64,
    /// The beginning of a line's roots of unity in the table. A step of radix `R` makes transforms of length `done * R` from transforms of
    /// length `done`. For this step, root `i`, with `done <= i < done * R`, is the root `(i / done) * (i % done)` of order `done * R`.
    pub roots: u64,
    /// The beginning of the input's factors, by position. For a [half spectrum](FFT_HALF_INPUT), these are the roots of unity of twice the
    /// length.
    pub before: u64,
    /// The beginning of the factors of the transforms, by position. For a [half spectrum](FFT_HALF_OUTPUT), these are the roots of unity of
    /// twice the length.
    pub after: u64,
    /// The beginning of the twiddle factors, if lines are part of a longer transform. First come `2^twiddle_bits` consecutive roots of
    /// unity of the longer transform, then each `2^twiddle_bits`-th root.
    pub twiddles: u64,
    /// The number of consecutive roots of unity there, as a power of two.
    pub twiddle_bits: u32,
    /// The factor of the imaginary parts of the input: 1, or −1 for an inverse transform, which is the conjugate of the transform of the
    /// conjugate.
    pub input_sign: T,
    /// The factor of the imaginary parts of the transforms, before their [factors](FFT_AFTER): 1 or −1.
    pub sign: T,
    /// The factors of the real and imaginary parts of the results.
    pub scales: [T; 2],
}

impl<T> FftPass<T> {
    /// Returns the coordinates of a line. The last one changes first.
    pub(crate) fn coordinates(&self, line: u64) -> [u64; 4] {
        // More coordinates have one value than have several.
        let divided = |by: FastDivMod<u64>, line| if by.divisor() == 1 { (line, 0) } else { by.div_mod(line) };
        let (rest, c) = divided(self.inner, line);
        let (rest, b) = divided(self.middle, rest);
        let (a, k) = divided(self.parts, rest);
        [a, k, b, c]
    }

    /// Returns the index in memory of a position along the axis, for a line with these coordinates. The position counts from the beginning
    /// of the line's part.
    #[inline(always)]
    pub(crate) fn index(&self, side: &FftSide, [a, k, _, c]: [u64; 4], position: u64) -> usize {
        ((a * side.extent + k * side.part + position) * self.inner.divisor() + c) as usize
    }
}

/// Positions after the half are the conjugates of the positions before it.
pub const FFT_MIRRORED: u32 = 1;
/// The input has factors.
pub const FFT_BEFORE: u32 = 2;
/// Some positions of lines are after [`FftPass::length`].
pub const FFT_PADDED: u32 = 4;
/// The results have twiddle factors: element `e` of the line with the coordinate `b` has the factor of `e * b`. Options of the output
/// exclude this option.
pub const FFT_TWIDDLES: u32 = 8;
/// The transforms have factors.
pub const FFT_AFTER: u32 = 16;
/// Some positions of lines are after the extent of the output.
pub const FFT_CUT: u32 = 32;

/// Element `e` of the input is the pair of the real numbers `2 * e` and `2 * e + 1` of a real array of twice the length. The output is a
/// [half spectrum](FFT_HALF_OUTPUT), which has half of the sums, so the pair is halved when it is read.
pub const FFT_PAIRS_INPUT: u32 = 64;
/// The input is the half spectrum of such an array.
pub const FFT_HALF_INPUT: u32 = 128;
/// Element `e` of the output is a pair of real numbers.
pub const FFT_PAIRS_OUTPUT: u32 = 256;
/// The output is a half spectrum.
pub const FFT_HALF_OUTPUT: u32 = 512;

/// The options of an input whose numbers go through shared memory before the first step.
pub(super) const FFT_STAGED_INPUT: u32 = FFT_MIRRORED | FFT_BEFORE | FFT_PADDED | FFT_PAIRS_INPUT | FFT_HALF_INPUT;
/// The options of an output whose numbers go through shared memory after the last step.
pub(super) const FFT_STAGED_OUTPUT: u32 = FFT_AFTER | FFT_CUT | FFT_PAIRS_OUTPUT | FFT_HALF_OUTPUT;
