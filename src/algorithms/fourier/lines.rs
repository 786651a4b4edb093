//! What the kernels of Fourier transforms are told.

use kernel_primitives::io::FastDivMod;
use kernel_primitives::prelude::*;

use crate::algorithms::tile::CONTROL;

/// The most threads of a block of [`fft_lines`](struct@super::kernel::fft_lines), of complex numbers of so many bytes: each has the registers
/// for its numbers, of which transforms of powers of two take fewer.
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

/// Numbers of shared memory from a line of `n` to the next. They are an odd number, so that threads at one place in several lines are in
/// different banks.
pub const fn fft_pitch(n: usize, pad: u32) -> usize {
    (fft_place(n as u32 - 1, pad) as usize + 1) | 1
}

/// Bytes of shared memory for lines, of those that a block can have.
pub const fn fft_shared_bytes(most: usize) -> usize {
    most.saturating_sub(CONTROL)
}

/// Where a number of a line lies in shared memory, counted from where the line begins.
#[inline(always)]
pub const fn fft_place(index: u32, pad: u32) -> u32 {
    index + (index >> pad)
}

/// Where the numbers of lines lie: the element `e` of the line with the coordinates `[a, k, b, c]` at
/// `(a * extent + k * part + b * line + e * element) * inner + c`.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct FftSide {
    /// Positions from an element to the next.
    pub element: u64,
    /// Positions from a line to the next one in `b`.
    pub line: u64,
    /// Positions from a line to the next one in `k`.
    pub part: u64,
    /// Positions along the axis in memory. Results after these are not written.
    pub extent: u64,
    /// 1 if the elements of a line lie side by side, 0 if those of neighbouring lines do.
    pub contiguous: u64,
}

/// What [`fft_lines`](struct@super::kernel::fft_lines) does.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct FftPass<T> {
    /// The length of a line.
    pub n: u32,
    /// A place of shared memory is left out after each `2^pad` numbers of a line, so that threads are in different banks.
    pub pad: u32,
    /// Numbers of shared memory from a line to the next.
    pub pitch: u32,
    /// A sum of options.
    pub options: u32,
    /// The steps: radix, and how many transforms of it a thread makes at once, less one, four bits each, the first step's lowest.
    pub steps: u64,
    /// Lines of a block.
    pub lines_of_block: FastDivMod<u32>,
    /// Threads of a line.
    pub threads: FastDivMod<u32>,
    /// All lines.
    pub lines: u64,
    /// How many values the last coordinate of a line has.
    pub inner: FastDivMod<u64>,
    /// How many values the coordinate before has.
    pub middle: FastDivMod<u64>,
    /// How many values the one before that has.
    pub parts: FastDivMod<u64>,
    /// Where the input is.
    pub input: FftSide,
    /// Where the output goes.
    pub output: FftSide,
    /// Positions of a whole transform: what lies after them is zero. A mirrored input has those up to the half.
    pub length: u64,
    /// Where the roots of unity of a line begin in the table: for the number `i` of those that a step of radix `R` makes from transforms of
    /// length `done`, `done <= i < done * R`, that of `(i / done) * (i % done)` of `done * R`.
    pub roots: u64,
    /// Where the factors of the input begin, by position; of a [half spectrum](FFT_HALF_INPUT) roots of unity of twice the length.
    pub before: u64,
    /// Where the factors of the transforms begin, by position; of a [half spectrum](FFT_HALF_OUTPUT) roots of unity of twice the length.
    pub after: u64,
    /// Where the twiddle factors begin, if lines are part of a longer transform: `2^twiddle_bits` of its roots of unity, then one of so many.
    pub twiddles: u64,
    /// How many roots of unity lie side by side there, as a power of two.
    pub twiddle_bits: u32,
    /// What imaginary parts of the input are multiplied by: 1, or −1 of an inverse transform, which is the conjugate of the transform of the
    /// conjugate.
    pub input_sign: T,
    /// What imaginary parts of the transforms are multiplied by before their [factors](FFT_AFTER): 1 or −1.
    pub sign: T,
    /// What real and imaginary parts of the results are multiplied by.
    pub scales: [T; 2],
}

impl<T> FftPass<T> {
    /// The coordinates of a line, the last one of which changes first.
    pub(crate) fn coordinates(&self, line: u64) -> [u64; 4] {
        // Of coordinates with one value there are more than others.
        let divided = |by: FastDivMod<u64>, line| if by.divisor() == 1 { (line, 0) } else { by.div_mod(line) };
        let (rest, c) = divided(self.inner, line);
        let (rest, b) = divided(self.middle, rest);
        let (a, k) = divided(self.parts, rest);
        [a, k, b, c]
    }

    /// The index in memory of a position along the axis, counted from where the line's part begins, of a line with these coordinates.
    #[inline(always)]
    pub(crate) fn index(&self, side: &FftSide, [a, k, _, c]: [u64; 4], position: u64) -> usize {
        ((a * side.extent + k * side.part + position) * self.inner.divisor() + c) as usize
    }
}

/// Positions after the half are the conjugates of those before it.
pub const FFT_MIRRORED: u32 = 1;
/// The input has factors.
pub const FFT_BEFORE: u32 = 2;
/// Positions of lines lie after [`FftPass::length`].
pub const FFT_PADDED: u32 = 4;
/// The results have twiddle factors: element `e` of the line with the coordinate `b` that of `e * b`. Not with options of the output.
pub const FFT_TWIDDLES: u32 = 8;
/// The transforms have factors.
pub const FFT_AFTER: u32 = 16;
/// Positions of lines lie after the extent of the output.
pub const FFT_CUT: u32 = 32;

/// Element `e` of the input are the real numbers `2 * e` and `2 * e + 1`, of a real array of twice the length.
pub const FFT_PAIRS_INPUT: u32 = 64;
/// The input is the half spectrum of such an array.
pub const FFT_HALF_INPUT: u32 = 128;
/// Element `e` of the output are two real numbers.
pub const FFT_PAIRS_OUTPUT: u32 = 256;
/// The output is a half spectrum.
pub const FFT_HALF_OUTPUT: u32 = 512;

/// The options of an input whose numbers go through shared memory before the first step.
pub(super) const FFT_STAGED_INPUT: u32 = FFT_MIRRORED | FFT_BEFORE | FFT_PADDED | FFT_PAIRS_INPUT | FFT_HALF_INPUT;
/// Those of an output whose numbers go through shared memory after the last one.
pub(super) const FFT_STAGED_OUTPUT: u32 = FFT_AFTER | FFT_CUT | FFT_PAIRS_OUTPUT | FFT_HALF_OUTPUT;
