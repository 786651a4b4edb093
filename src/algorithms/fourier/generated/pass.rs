//! Passes: the work of a kernel, as a plain value. Equal values have the same text. Two passes also have the same text if they differ only
//! in the length of the last axis, and if blocks have all of their lines in both, or may lack some in both. The launch gives the number of
//! lines.

use super::text::code::Real;
use crate::simt::WARP;

/// The order of the lanes of a warp: along the line, or across lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Lanes {
    Along,
    Across,
}

/// An axis along which lines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct LineAxis {
    pub(super) extent: u32,
    /// The distance from a line to the next, in the input and in the output, in numbers.
    pub(super) strides: [u32; 2],
    /// The number of coordinates after which the places repeat, in the input and in the output, or 0 if they do not repeat.
    pub(super) rings: [u32; 2],
}

impl LineAxis {
    pub(super) fn new(extent: u32, strides: [u32; 2]) -> Self {
        Self { extent, strides, rings: [0; 2] }
    }
}

/// The numbers that are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Kind {
    Complex,
    /// Pairs of real numbers, which are [halved](LinePass::halved), are transformed to the half spectrum of an array of twice the length.
    RealForward,
    /// The way back from the half spectrum, without a factor.
    RealInverse,
    /// A line of prime length is a convolution that is shorter by 1.
    Rader,
    /// A line of this many numbers is a convolution with a chirp.
    Chirp(u32),
}

/// The factors between two passes of a longer transform. Element `e` of a line is multiplied by `exp(-2πi * e * c / length)`, where `c` is
/// the line's coordinate along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct OuterFactors {
    pub(super) axis: u8,
    pub(super) length: u32,
    /// Whether these are factors of the input. Otherwise, they are factors of the output. On the input they take less work, if the line's
    /// coordinate is the same in a warp.
    pub(super) of_input: bool,
}

/// A pass: transforms of lines of one length.
///
/// The elements of a line have the same stride. Lines have coordinates along axes. A block has `lines` neighbouring lines along the first
/// axis, and `threads` threads for each. 32 bits count the numbers of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct LinePass {
    pub(super) real: Real,
    /// Their product is the length of a line's transforms.
    pub(super) radices: Vec<u32>,
    pub(super) threads: u32,
    pub(super) lines: u32,
    /// The number of blocks that a multiprocessor should hold. It bounds the registers of a thread.
    pub(super) blocks: u32,
    /// Lines along the first axis are neighbours in a block.
    pub(super) axes: Vec<LineAxis>,
    /// The distance from an element to the next, in the input and in the output, in numbers.
    pub(super) elements: [u32; 2],
    pub(super) lanes: [Lanes; 2],
    pub(super) kind: Kind,
    /// Whether the real and imaginary parts are exchanged when numbers are read and written, which makes the inverse transform.
    pub(super) inverse: bool,
    pub(super) factors: Option<OuterFactors>,
    /// Whether numbers of a block pass through shared memory in order, because lines are in a row and short.
    pub(super) staged: bool,
    /// Whether blocks at the end of the first axis may have lines that do not exist. Otherwise, blocks continue along the next axis.
    pub(super) padded: bool,
    /// Whether other blocks of the launch have written the input. If so, the cache of the first level is not used to read it.
    pub(super) fresh: bool,
    /// Whether the input, and the output, should not stay in the caches.
    pub(super) streamed: [bool; 2],
    /// Whether results are multiplied by a factor, which the launch gives.
    pub(super) scaled: bool,
    /// The bytes of shared memory that a block may use to keep its threads in different banks.
    pub(super) shared: u32,
    /// Whether numbers of the input, and those of the output, are accessed part by part, because they may not be aligned to their size.
    pub(super) split: [bool; 2],
    /// Whether the input has real numbers, without imaginary parts.
    pub(super) of_reals: bool,
    /// Whether numbers of the input are halved when they are read. They are the pairs of real numbers whose half spectrum this pass, or a
    /// later one, makes.
    pub(super) halved: bool,
}

/// A stage of a line's transform: it makes transforms of length `done * radix` from transforms of length `done` (Stockham's algorithm).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) radix: u32,
    pub(super) done: u32,
    /// The number of butterflies, which is also the distance between the inputs of a butterfly, in elements.
    pub(super) apart: u32,
    /// Whether a thread has butterflies `u` and `apart - u` of the stage, for real arrays. For `u = 0`, these are 0 and `apart / 2`.
    pub(super) paired: bool,
}

impl LinePass {
    /// The length of a line's transforms.
    pub(super) fn length(&self) -> u32 {
        self.radices.iter().product()
    }

    pub(super) fn block_threads(&self) -> u32 {
        self.threads * self.lines
    }

    pub(super) fn stages(&self) -> Vec<Stage> {
        let (n, last) = (self.length(), self.radices.len() - 1);
        let mut done = 1;
        let mut stages = Vec::with_capacity(self.radices.len());
        for (i, &radix) in self.radices.iter().enumerate() {
            let paired = self.kind == Kind::RealForward && i == last || self.kind == Kind::RealInverse && i == 0;
            stages.push(Stage { radix, done, apart: n / radix, paired });
            done *= radix;
        }
        stages
    }

    /// Returns the most butterflies of a stage that a thread has.
    pub(super) fn butterflies(&self, stage: &Stage) -> u32 {
        if stage.paired { 2 * (stage.apart / 2).div_ceil(self.threads) } else { stage.apart.div_ceil(self.threads) }
    }

    /// Returns the butterfly that a thread has as its number `i`, if it has one.
    pub(super) fn butterfly(&self, stage: &Stage, thread: u32, i: u32) -> Option<u32> {
        if !stage.paired {
            let b = thread + i * self.threads;
            return (b < stage.apart).then_some(b);
        }
        let u = thread + i / 2 * self.threads;
        (u < stage.apart / 2).then_some(match (i % 2, u) {
            (0, _) => u,
            (_, 0) => stage.apart / 2,
            _ => stage.apart - u,
        })
    }

    /// Returns the number of all lines.
    pub(super) fn all_lines(&self) -> u64 {
        self.axes.iter().map(|axis| u64::from(axis.extent)).product()
    }

    /// Returns whether the lines of a block may be along several axes.
    pub(super) fn goes_on(&self) -> bool {
        self.axes.len() > 1 && !self.padded && !self.axes[0].extent.is_multiple_of(self.lines)
    }

    /// Returns the number of lines, by which a block knows which of its lines exist. It counts all lines, or those along the first axis.
    pub(super) fn bound(&self) -> u32 {
        let lines = if self.goes_on() { self.all_lines() } else { self.axes[0].extent.into() };
        u32::try_from(lines).expect("32 bits count lines")
    }

    /// Returns the number of blocks of a launch.
    pub(super) fn tiles(&self) -> u64 {
        if self.goes_on() {
            return self.all_lines().div_ceil(self.lines.into());
        }
        let outer: u64 = self.axes[1..].iter().map(|axis| u64::from(axis.extent)).product();
        u64::from(self.axes[0].extent.div_ceil(self.lines)) * outer
    }

    /// Returns whether a warp has all threads of its lines in the exchanges, so that it waits for no other warp.
    pub(super) fn is_of_warps(&self) -> bool {
        WARP.is_multiple_of(self.threads) && self.lanes == [Lanes::Along; 2] && !self.staged && !self.is_convolution()
    }

    /// Returns the distance from a line to the next in shared memory, if numbers of a block are staged. It is odd, so that lines begin in
    /// different banks.
    pub(super) fn staged_pitch(&self) -> u32 {
        self.length() | 1
    }

    /// Returns the line of a thread of the block, and the thread's number in that line.
    pub(super) fn place(&self, lanes: Lanes, thread: u32) -> (u32, u32) {
        match lanes {
            Lanes::Along => (thread / self.threads, thread % self.threads),
            Lanes::Across => (thread % self.lines, thread / self.lines),
        }
    }
}
