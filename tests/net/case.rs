//! Cases: how they are drawn, printed, read and shrunk.

use std::fmt;
use std::str::FromStr;

use kernel_primitives::algorithms::{Parameter, Tuning};

use crate::data::Pattern;

/// A repeatable sequence of numbers (splitmix64).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// The kind of device that runs a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The GPU, or one OS thread of the emulator, unchecked.
    Plain,
    /// Several OS threads of the emulator, which take blocks and lanes in random order.
    Shuffled,
    /// The emulator's checks for races.
    Checked,
}

const MODES: [Mode; 3] = [Mode::Plain, Mode::Shuffled, Mode::Checked];

/// The most items of a case that runs checked.
const CHECKED: usize = 600;

/// The number of items up to which a case may have any number equally often.
const DEAR: usize = 8000;

/// The values that decide a subject's input, call and output.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The number of items.
    pub len: usize,
    /// The place where inputs begin in their buffers.
    pub offset: usize,
    /// The place where outputs begin in their buffers.
    pub place: usize,
    pub pattern: Pattern,
    /// The seed of the items.
    pub seed: u64,
    /// The seed of lengths and of numbers beside the items. A [refill](Self::refill) keeps it. 0 and 1 are [usual shapes](Self::usual). For
    /// collectives, 2 to 5 are [corners](crate::shape::CORNERS).
    pub params: u64,
    /// The seed of tuning values. If it is 0, they are those of the device.
    pub tuning: u64,
    pub mode: Mode,
}

/// The lengths of a subject that matter.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// The numbers of items of tiles, vectors and blocks.
    pub near: Vec<usize>,
    /// The longest length that is drawn.
    pub most: usize,
    /// The longest length of all. The reference would take too long for more items.
    pub longest: usize,
}

impl Lengths {
    /// Makes lengths near each of those numbers, and up to a few times the largest.
    pub fn near(near: &[usize]) -> Self {
        let largest = near.iter().copied().max().unwrap_or(1024);
        Self { near: near.to_vec(), most: (5 * largest).clamp(4096, 70_000), longest: usize::MAX }
    }

    /// Limits all lengths.
    pub fn most(self, most: usize) -> Self {
        Self { most, longest: most, ..self }
    }

    fn draw(&self, random: &mut Random) -> usize {
        const WIDTHS: [usize; 11] = [4, 8, 16, 31, 32, 64, 128, 256, 512, 1024, 2048];
        let near = |random: &mut Random, of: &[usize]| random.one_of(of) + random.below(3);
        // For large tiles, there are fewer long cases, so that all subjects take about the same time.
        let tile = random.one_of(&self.near).max(1);
        let is_dear = random.below(tile) > DEAR;
        let len = match random.below(100) {
            0..12 => return random.below(4),
            12..35 => random.below(70) + 1,
            35..58 => near(random, &WIDTHS),
            58..73 => random.below(2500) + 1,
            73.. if is_dear => random.below(2500) + 1,
            73..95 => near(random, &[tile]),
            _ => {
                let whole = tile * (2 + random.below((self.most / tile).clamp(1, 16)));
                whole + [0, 1, 2, random.below(tile)][random.below(4)]
            }
        };
        (len - 1).min(self.most)
    }
}

impl Case {
    /// Returns the case of a seed. On a GPU, there is only one mode.
    pub fn draw(seed: u64, lengths: &Lengths, gpu: bool) -> Self {
        let mut random = Random::new(seed);
        let mode = match random.below(16) {
            0 | 1 if !gpu => Mode::Checked,
            2..5 if !gpu => Mode::Shuffled,
            _ => Mode::Plain,
        };
        let len = lengths.draw(&mut random);
        Self {
            len: if mode == Mode::Checked { len % CHECKED } else { len },
            offset: if random.below(3) == 0 { 0 } else { random.below(17) },
            place: if random.below(3) == 0 { 0 } else { random.below(17) },
            pattern: random.one_of(&Pattern::ALL),
            seed: random.bits() >> 32,
            params: random.bits() >> 32,
            tuning: if random.below(3) == 0 { 0 } else { random.bits() >> 32 },
            mode,
        }
    }

    /// Returns a case with this number of items, or with as many as the subject may have.
    pub fn with_len(self, len: usize, lengths: &Lengths) -> Self {
        Self { len: len.min(lengths.longest), ..self }
    }

    /// Returns a case of the same shape with other items.
    pub fn refill(&self, round: u64) -> Self {
        let mut random = Random::new(self.seed ^ (round << 40));
        Self { seed: random.bits() >> 32, pattern: random.one_of(&Pattern::ALL), ..self.clone() }
    }

    /// Returns a case with a usual shape, and with runs of items or with items of all kinds. Tests of long inputs need this, because many
    /// drawn shapes are trivial: one input of a merge is empty, or one segment has all items.
    pub fn shaped(self, shape: usize) -> Self {
        Self { params: shape as u64, pattern: [Pattern::Zipf, Pattern::Special][shape], ..self }
    }

    /// Returns the value for the case's usual shape, or `None` if the shape is drawn.
    pub fn usual<T: Copy>(&self, of_shapes: [T; 2]) -> Option<T> {
        of_shapes.get(self.params as usize).copied()
    }

    /// Returns the `n`th of the numbers beside the items.
    pub fn param(&self, n: u64) -> Random {
        Random::new(self.params.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(n << 48))
    }

    /// Returns the case for an item that a call takes by value. A captured call keeps the item, so it depends only on the parameters.
    pub fn fixed(&self) -> Self {
        Self { seed: self.params, pattern: Pattern::Special, ..self.clone() }
    }

    /// Returns tuning values. Each is one of the candidates, the least or the greatest, or a random value.
    pub fn tuning(&self, device: &Tuning) -> Tuning {
        let mut tuning = device.clone();
        let mut random = Random::new(self.tuning);
        if self.tuning == 0 {
            return tuning;
        }
        for &parameter in Parameter::ALL {
            let value = match random.below(4) {
                0 => continue,
                1 => random.one_of(&[1, 2, 32]),
                2 => random.one_of(parameter.candidates()),
                _ => random.one_of(&[3, 7, 64, 96, 1024, 65535]),
            };
            // A value that a parameter does not accept changes nothing.
            let _ = tuning.set(parameter, None, value);
        }
        // With this, a few tiles are a pipeline.
        let pipeline = random.one_of(&[2, 2, 3, 1 << 20]);
        tuning.set(Parameter::ScanPipeline, None, pipeline).expect("in its range");
        tuning
    }

    /// Returns simpler cases, the simplest first.
    pub fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut push = |case: Self| {
            if case != *self && !all.contains(&case) {
                all.push(case);
            }
        };
        let len = self.len;
        for shorter in
            [0, 1, len / 4, len / 2, len - len / 4, len - len / 16, len.saturating_sub(7), len.saturating_sub(1)]
        {
            if shorter < len {
                push(Self { len: shorter, ..self.clone() });
            }
        }
        push(Self { tuning: 0, ..self.clone() });
        push(Self { mode: Mode::Plain, ..self.clone() });
        for offset in [0, 1, self.offset / 2] {
            push(Self { offset: offset.min(self.offset), ..self.clone() });
            push(Self { place: offset.min(self.place), ..self.clone() });
        }
        for seed in [0, 1, 2] {
            push(Self { params: seed.min(self.params), ..self.clone() });
            push(Self { seed: seed.min(self.seed), ..self.clone() });
        }
        let simpler = Pattern::ALL.iter().take_while(|&&pattern| pattern != self.pattern);
        simpler.for_each(|&pattern| push(Self { pattern, ..self.clone() }));
        all
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len, offset, place, pattern, seed, params, tuning, mode } = self;
        write!(f, "len={len} offset={offset} place={place} pattern={pattern:?} seed={seed} params={params} ")?;
        write!(f, "tuning={tuning} mode={mode:?}")
    }
}

impl FromStr for Case {
    type Err = String;

    /// Reads the text that [`Display`](fmt::Display) prints.
    fn from_str(text: &str) -> Result<Self, String> {
        let field = |name: &str| {
            let of = |word: &str| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
            text.split_whitespace().find_map(of).ok_or_else(|| format!("`{name}=` is missing in `{text}`"))
        };
        let number = |name: &str| field(name)?.parse::<u64>().map_err(|error| format!("{name}: {error}"));
        let (pattern, mode) = (field("pattern")?, field("mode")?);
        Ok(Self {
            len: number("len")? as usize,
            offset: number("offset")? as usize,
            place: number("place")? as usize,
            pattern: *Pattern::ALL.iter().find(|p| format!("{p:?}") == pattern).ok_or("no such pattern")?,
            seed: number("seed")?,
            params: number("params")?,
            tuning: number("tuning")?,
            mode: *MODES.iter().find(|m| format!("{m:?}") == mode).ok_or("no such mode")?,
        })
    }
}

#[test]
fn a_case_is_read_as_it_is_printed() {
    for seed in 0..200 {
        let case = Case::draw(seed, &Lengths::near(&[2048]), false);
        assert_eq!(case.to_string().parse(), Ok(case));
    }
}

#[test]
fn lengths_come_close_to_each_tile() {
    let lengths = Lengths::near(&[300, 7168]);
    let drawn: std::collections::HashSet<_> = (0..5000).map(|seed| Case::draw(seed, &lengths, true).len).collect();
    for len in [0, 1, 2, 299, 300, 301, 7167, 7168, 7169, 2 * 7168, 2 * 7168 + 1] {
        assert!(drawn.contains(&len), "{len}");
    }
    assert!(drawn.iter().all(|&len| len <= lengths.most));
}
