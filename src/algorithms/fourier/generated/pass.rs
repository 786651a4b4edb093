//! Passes: what a kernel does, as a plain value. Equal values have the same text. So have those whose last axes differ in length, if blocks
//! have all of their lines in both or may lack some in both: the launch gives the number of lines.

use super::text::code::Real;
use crate::simt::WARP;

/// Lanes of a warp are neighbours along the line, or across lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Lanes {
    Along,
    Across,
}

/// An axis along which lines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct LineAxis {
    pub(super) extent: u32,
    /// Numbers from a line to the next, in the input and in the output.
    pub(super) strides: [u32; 2],
    /// Coordinates come round after so many, in the input and in the output; 0 if they do not.
    pub(super) rings: [u32; 2],
}

impl LineAxis {
    pub(super) fn new(extent: u32, strides: [u32; 2]) -> Self {
        Self { extent, strides, rings: [0; 2] }
    }
}

/// What is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Kind {
    Complex,
    /// Pairs of real numbers, to the half spectrum of an array of twice the length.
    RealForward,
    /// The mirror image, without a factor.
    RealInverse,
    /// A line of prime length, as a convolution that is shorter by 1.
    Rader,
    /// A line of so many numbers, as a convolution with a chirp.
    Chirp(u32),
}

/// Factors between two passes of a longer transform: element `e` of a line, times `exp(-2πi * e * c / length)`, where `c` is the line's
/// coordinate along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct OuterFactors {
    pub(super) axis: u8,
    pub(super) length: u32,
    /// Of the input; else of the output. Of the input they take less, if the line's coordinate is the same in a warp.
    pub(super) of_input: bool,
}

/// A pass: transforms of lines of one length.
///
/// A line's elements have the same stride; lines have coordinates along axes. A block has `lines` neighbouring lines along the first axis,
/// and `threads` threads for each. Numbers of an array are counted by 32 bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct LinePass {
    pub(super) real: Real,
    /// Their product is the length of a line's transforms.
    pub(super) radices: Vec<u32>,
    pub(super) threads: u32,
    pub(super) lines: u32,
    /// Blocks that a multiprocessor should hold, which bounds a thread's registers.
    pub(super) blocks: u32,
    /// The first one's lines are neighbours in a block.
    pub(super) axes: Vec<LineAxis>,
    /// Numbers from an element to the next, in the input and in the output.
    pub(super) elements: [u32; 2],
    pub(super) lanes: [Lanes; 2],
    pub(super) kind: Kind,
    /// Exchanges the parts of what is read and written, which makes the inverse transform.
    pub(super) inverse: bool,
    pub(super) factors: Option<OuterFactors>,
    /// Lines lie in a row and are short: a block's numbers pass through shared memory in order.
    pub(super) staged: bool,
    /// Blocks at the end of the first axis may have lines that are not there. Otherwise blocks go on along the next axis.
    pub(super) padded: bool,
    /// Other blocks of the launch have written the input: it is not read from the cache of the first level.
    pub(super) fresh: bool,
    /// Whether the input, and the output, are not to stay in the caches.
    pub(super) streamed: [bool; 2],
    /// Whether results are multiplied by a factor, which the launch gives.
    pub(super) scaled: bool,
    /// Bytes of shared memory that a block may take to keep its threads out of each other's banks.
    pub(super) shared: u32,
    /// Whether numbers of the input, and those of the output, are accessed part by part: they may lie between two whole ones.
    pub(super) split: [bool; 2],
    /// Whether the input has real numbers, without imaginary parts.
    pub(super) of_reals: bool,
}

/// A stage of a line's transform: from transforms of length `done` to such of length `done * radix` (Stockham's algorithm).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) radix: u32,
    pub(super) done: u32,
    /// Butterflies, which are also the elements between the inputs of one.
    pub(super) apart: u32,
    /// Whether a thread has butterflies `u` and `apart - u` of the stage, for real arrays; of `u = 0` there are 0 and `apart / 2`.
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

    /// How many butterflies of a stage a thread has, at most.
    pub(super) fn butterflies(&self, stage: &Stage) -> u32 {
        if stage.paired { 2 * (stage.apart / 2).div_ceil(self.threads) } else { stage.apart.div_ceil(self.threads) }
    }

    /// Which butterfly a thread's number `i` is, if it has one.
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

    /// All lines.
    pub(super) fn all_lines(&self) -> u64 {
        self.axes.iter().map(|axis| u64::from(axis.extent)).product()
    }

    /// Whether the lines of a block may lie along several axes.
    pub(super) fn goes_on(&self) -> bool {
        self.axes.len() > 1 && !self.padded && !self.axes[0].extent.is_multiple_of(self.lines)
    }

    /// How many lines there are where blocks may have some that are not there: in all, or along the first axis.
    pub(super) fn bound(&self) -> u32 {
        let lines = if self.goes_on() { self.all_lines() } else { self.axes[0].extent.into() };
        u32::try_from(lines).expect("32 bits count lines")
    }

    /// Blocks of a launch.
    pub(super) fn tiles(&self) -> u64 {
        if self.goes_on() {
            return self.all_lines().div_ceil(self.lines.into());
        }
        let outer: u64 = self.axes[1..].iter().map(|axis| u64::from(axis.extent)).product();
        u64::from(self.axes[0].extent.div_ceil(self.lines)) * outer
    }

    /// Whether a warp has all threads of its lines in the exchanges, so that it waits for no other.
    pub(super) fn is_of_warps(&self) -> bool {
        WARP.is_multiple_of(self.threads) && self.lanes == [Lanes::Along; 2] && !self.staged && !self.is_convolution()
    }

    /// Numbers of shared memory from a line to the next where a block's numbers are staged: odd, so that lines begin in different banks.
    pub(super) fn staged_pitch(&self) -> u32 {
        self.length() | 1
    }

    /// The line and the thread of it that a thread of the block is.
    pub(super) fn place(&self, lanes: Lanes, thread: u32) -> (u32, u32) {
        match lanes {
            Lanes::Along => (thread / self.threads, thread % self.threads),
            Lanes::Across => (thread % self.lines, thread / self.lines),
        }
    }
}
