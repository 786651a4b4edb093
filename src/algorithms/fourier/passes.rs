//! Chooses the launches of a transform: lines, radices and places, without any memory.

use super::radices::{LONGEST, Limits, Line, Steps};
use crate::element::FftFloat;
use crate::io::FastDivMod;
use crate::kernels::device::{
    FFT_AFTER, FFT_BEFORE, FFT_CUT, FFT_HALF_INPUT, FFT_HALF_OUTPUT, FFT_MIRRORED, FFT_PADDED, FFT_PAIRS_INPUT,
    FFT_PAIRS_OUTPUT, FFT_TWIDDLES, FftPass, FftSide,
};

/// The method of the transforms of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Transforms of lines, in one to three launches.
    Smooth(Smooth),
    /// A convolution with a chirp, by transforms of a power of two (Bluestein, 1970).
    Chirp(Smooth),
}

/// A method for lengths of small factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Smooth {
    /// One launch.
    Lines(Line),
    /// A matrix whose rows have the second length. The columns come first, and then the rows, which are written as columns (Bailey, 1990).
    Matrix(Line, Line),
    /// A matrix whose rows are matrices.
    Cube(Line, Line, Line),
}

impl Smooth {
    fn new(n: usize, limits: Limits) -> Option<Self> {
        if let Some(line) = Line::new(n, limits) {
            return Some(Self::Lines(line));
        }
        matrix(n, limits, true).or_else(|| cube(n, limits)).or_else(|| matrix(n, limits, false))
    }

    pub(super) fn n(self) -> usize {
        match self {
            Self::Lines(line) => line.n,
            Self::Matrix(columns, rows) => columns.n * rows.n,
            Self::Cube(columns, middle, rows) => columns.n * middle.n * rows.n,
        }
    }
}

/// The two factors that are most similar. With `read_well`, both must be [read well](Line::is_read_well).
fn matrix(n: usize, limits: Limits, read_well: bool) -> Option<Smooth> {
    let line = |n| Line::new(n, limits).filter(|line| !read_well || line.is_read_well(limits));
    let factors = (n.div_ceil(LONGEST)..=n.isqrt().min(LONGEST)).rev().filter(|&factor| n.is_multiple_of(factor));
    // Rows are next to each other at least where they are read.
    factors
        .map(|columns| (columns, n / columns))
        .find_map(|(columns, rows)| Some(Smooth::Matrix(line(columns)?, line(rows)?)))
}

/// Three factors, of which the largest is as small as possible.
fn cube(n: usize, limits: Limits) -> Option<Smooth> {
    let factors: Vec<_> = (2..=n.isqrt().min(LONGEST)).filter(|&factor| n.is_multiple_of(factor)).collect();
    let mut cubes = Vec::new();
    for (i, &a) in factors.iter().enumerate() {
        for &b in factors[i..].iter().take_while(|&&b| b <= n / a / b) {
            if (n / a).is_multiple_of(b) && n / a / b <= LONGEST {
                cubes.push([n / a / b, b, a]);
            }
        }
    }
    cubes.sort_unstable();
    cubes.into_iter().find_map(|[rows, middle, columns]| {
        let line = |n| Line::new(n, limits);
        // The longest one is tested first, because the test costs least if it fails.
        let rows = line(rows)?;
        Some(Smooth::Cube(line(columns)?, line(middle)?, rows))
    })
}

impl Method {
    /// The method for a length other than 0, or `None` if the length is too long.
    pub(super) fn new(n: usize, limits: Limits) -> Option<Self> {
        // A length with a large prime factor has no factors that lines can have.
        match is_smooth(n).then(|| Smooth::new(n, limits)).flatten() {
            Some(smooth) => Some(Self::Smooth(smooth)),
            None => {
                let m = n.checked_mul(2)?.checked_next_power_of_two().filter(|&m| m <= LONGEST_FILTER)?;
                Smooth::new(m, limits).map(Self::Chirp)
            }
        }
    }
}

/// The largest number of numbers of a convolution with a chirp. A plan has a table of as many.
pub(super) const LONGEST_FILTER: usize = 1 << 26;

/// Returns whether a number is a product of 2, 3, 5, 7, 11 and 13.
fn is_smooth(mut n: usize) -> bool {
    for prime in [2, 3, 5, 7, 11, 13] {
        while n.is_multiple_of(prime) {
            n /= prime;
        }
    }
    n == 1
}

/// A part of the table that a pass needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Part {
    /// The roots of unity of a line.
    Roots(usize, Steps),
    /// The roots of unity of a longer line. The first part has consecutive roots, whose number is a power of two, and the second part has
    /// the multiples of that number.
    Twiddles(usize, u32),
    /// The roots of unity of a length that is twice that of a line. There are as many as the line has pairs of numbers.
    Half(usize),
    /// The chirp of a length: `exp(-πi k² / n)`.
    Chirp(usize),
    /// The transform of the chirp's conjugate, of length `n`, in `m` numbers, divided by `m`.
    Filter(usize, usize),
}

/// The axis of an array. It has the number of values of the coordinates before it and of those after it, and its extents in the input and
/// the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub outer: usize,
    pub inner: usize,
    /// The length of the transforms.
    pub n: usize,
    pub input: usize,
    pub output: usize,
}

/// A launch.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    pub line: Line,
    pub lines: usize,
    pub lines_of_block: usize,
    pub options: u32,
    /// The number of numbers that the pass writes.
    pub output_len: usize,
    parts: usize,
    middle: usize,
    inner: usize,
    length: usize,
    input: FftSide,
    output: FftSide,
    before: Option<Part>,
    after: Option<Part>,
    twiddles: Option<Part>,
    /// The values that are conjugated.
    pub conjugate: Conjugate,
}

/// The values that a pass conjugates. An inverse transform is the conjugate of the transform of the conjugate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conjugate {
    pub input: bool,
    /// The transforms, before their factors.
    pub transforms: bool,
    pub output: bool,
}

impl Pass {
    /// The parts of the table that the pass needs.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part> {
        [Some(self.roots()), self.before, self.after, self.twiddles].into_iter().flatten()
    }

    fn roots(&self) -> Part {
        Part::Roots(self.line.n, self.line.steps)
    }

    pub(super) fn threads(&self) -> usize {
        self.line.threads * self.lines_of_block
    }

    pub(super) fn shared_bytes(&self, limits: Limits) -> usize {
        self.lines_of_block * self.line.numbers(self.twiddles.is_some()) * limits.number
    }

    /// The parameters of the kernel, with the places of parts in the table.
    pub(super) fn parameters<T: FftFloat>(&self, scale: T, place: impl Fn(Part) -> u64) -> FftPass<T> {
        let of = |part: Option<Part>| part.map_or(0, &place);
        let twiddle_bits = if let Some(Part::Twiddles(_, bits)) = self.twiddles { bits } else { 0 };
        FftPass {
            n: self.line.n as u32,
            pad: self.line.pad,
            pitch: self.line.pitch() as u32,
            options: self.options,
            steps: self.line.steps.bits(),
            lines_of_block: FastDivMod::new(self.lines_of_block as u32),
            threads: FastDivMod::new(self.line.threads as u32),
            lines: self.lines as u64,
            inner: FastDivMod::new(self.inner as u64),
            middle: FastDivMod::new(self.middle as u64),
            parts: FastDivMod::new(self.parts as u64),
            input: self.input,
            output: self.output,
            length: self.length as u64,
            roots: place(self.roots()),
            before: of(self.before),
            after: of(self.after),
            twiddles: of(self.twiddles),
            twiddle_bits,
            input_sign: sign(self.conjugate.input),
            sign: sign(self.conjugate.transforms),
            scales: [scale, scale.mul(sign(self.conjugate.output))],
        }
    }
}

fn side(element: usize, line: usize, part: usize, extent: usize, contiguous: bool) -> FftSide {
    let [element, line, part, extent, contiguous] =
        [element, line, part, extent, contiguous as usize].map(|number| number as u64);
    FftSide { element, line, part, extent, contiguous }
}

fn sign<T: FftFloat>(conjugate: bool) -> T {
    if conjugate { T::ONE.neg() } else { T::ONE }
}

fn option(is_on: bool, option: u32) -> u32 {
    if is_on { option } else { 0 }
}

/// Appends the passes of the transforms along an axis. If `mirrored`, the input has the first half of the positions, and the other
/// positions are conjugates of these.
pub(super) fn append(passes: &mut Vec<Pass>, method: Method, axis: Axis, mirrored: bool, limits: Limits) {
    let begin = passes.len();
    match method {
        Method::Smooth(smooth) => append_smooth(passes, smooth, axis, axis.n, limits),
        Method::Chirp(smooth) => {
            let (n, m) = (axis.n, smooth.n());
            append_smooth(passes, smooth, Axis { n: m, output: m, ..axis }, n, limits);
            let (first, last) = (begin, passes.len() - 1);
            passes[first].before = Some(Part::Chirp(n));
            passes[first].options |= FFT_BEFORE;
            passes[last].after = Some(Part::Filter(n, m));
            // The second transform is an inverse one.
            passes[last].options |= FFT_AFTER;
            passes[last].conjugate.output = true;
            append_smooth(passes, smooth, Axis { n: m, input: m, ..axis }, m, limits);
            let last = passes.len() - 1;
            passes[last].after = Some(Part::Chirp(n));
            passes[last].options |= FFT_AFTER;
            passes[last].conjugate.transforms = true;
        }
    }
    if mirrored {
        passes[begin].options |= FFT_MIRRORED;
    }
}

/// The pass of the transforms of real numbers along an axis, computed as transforms of pairs: to the half spectrum, or from it.
pub(super) fn half(line: Line, axis: Axis, inverse: bool, limits: Limits) -> Pass {
    let Axis { outer, inner, n, input, output } = axis;
    let (lines, contiguous, roots) = (outer * inner, inner == 1, Some(Part::Half(n)));
    let (pairs, numbers) = (|extent| side(2, 0, 0, extent, contiguous), |extent| side(1, 0, 0, extent, contiguous));
    let (input, output) = if inverse { (numbers(input), pairs(output)) } else { (pairs(input), numbers(output)) };
    Pass {
        line,
        lines,
        lines_of_block: line.lines_of_block(lines, contiguous, limits),
        options: if inverse { FFT_HALF_INPUT | FFT_PAIRS_OUTPUT } else { FFT_PAIRS_INPUT | FFT_HALF_OUTPUT },
        output_len: outer * output.extent as usize * inner,
        parts: 1,
        middle: 1,
        inner,
        length: n,
        input,
        output,
        before: if inverse { roots } else { None },
        after: if inverse { None } else { roots },
        twiddles: None,
        conjugate: Conjugate { input: inverse, transforms: false, output: inverse },
    }
}

/// The passes of transforms of length `axis.n`, of which the input has the first `length` positions.
fn append_smooth(passes: &mut Vec<Pass>, smooth: Smooth, axis: Axis, length: usize, limits: Limits) {
    let Axis { outer, inner, n, input, output } = axis;
    let mut push = |line: Line, lines: [usize; 2], length: usize, sides: [FftSide; 2], twiddles: Option<usize>| {
        let ([parts, middle], [input, output]) = (lines, sides);
        let (lines, whole) = (outer * parts * middle * inner, line.n * parts * middle);
        let contiguous = input.contiguous == 1 && output.contiguous == 1;
        passes.push(Pass {
            line,
            lines,
            lines_of_block: line.lines_of_block(lines, contiguous, limits),
            options: option(twiddles.is_some(), FFT_TWIDDLES)
                | option(whole > length, FFT_PADDED)
                | option(whole > output.extent as usize, FFT_CUT),
            // Before the last pass of a convolution, there may be more numbers than can be counted.
            output_len: outer.saturating_mul(output.extent as usize).saturating_mul(inner),
            parts,
            middle,
            inner,
            length,
            input,
            output,
            before: None,
            after: None,
            conjugate: Conjugate::default(),
            twiddles: twiddles.map(|n| Part::Twiddles(n, n.ilog2().div_ceil(2))),
        });
    };
    match smooth {
        Smooth::Lines(line) => {
            let contiguous = inner == 1;
            push(line, [1, 1], length, [side(1, 0, 0, input, contiguous), side(1, 0, 0, output, contiguous)], None);
        }
        Smooth::Matrix(columns, rows) => {
            let (row, column) = (rows.n, columns.n);
            let sides = [side(row, 1, 0, input, false), side(row, 1, 0, n, false)];
            push(columns, [1, row], length, sides, Some(n));
            let sides = [side(1, row, 0, n, inner == 1), side(column, 1, 0, output, false)];
            push(rows, [1, column], n, sides, None);
        }
        // The second launch makes the columns of each row, and writes them in the order in which the third launch reads its rows.
        Smooth::Cube(columns, middle, rows) => {
            let (row, part) = (rows.n, middle.n * rows.n);
            let sides = [side(part, 1, 0, input, false), side(part, 1, 0, n, false)];
            push(columns, [1, part], length, sides, Some(n));
            let sides = [side(row, 1, part, n, false), side(columns.n * row, 1, row, n, false)];
            push(middle, [columns.n, row], n, sides, Some(part));
            let sides = [side(1, row, 0, n, inner == 1), side(n / row, 1, 0, output, false)];
            push(rows, [1, n / row], n, sides, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Limits = Limits { shared_bytes: 227 << 10, number: 8 };

    /// Returns the number of passes of one transform of a length.
    fn passes(n: usize) -> usize {
        let mut passes = Vec::new();
        let axis = Axis { outer: 1, inner: 1, n, input: n, output: n };
        append(&mut passes, Method::new(n, H200).expect("it is not too long"), axis, false, H200);
        passes.len()
    }

    #[test]
    fn transforms_take_few_passes() {
        for n in [1, 2, 7, 13, 1000, 1001, 1024, 4096, 8192, 1 << 14] {
            assert_eq!(passes(n), 1, "{n}");
        }
        for n in [1 << 15, 30_030, 1 << 20, 1 << 22, 17, 1009, 4093] {
            assert_eq!(passes(n), 2, "{n}");
        }
        // Two passes would read and write parts of sectors.
        for n in [1 << 24, 1 << 26, 1 << 30, 10_000_000] {
            assert_eq!(passes(n), 3, "{n}");
        }
        assert_eq!(passes(1_000_003), 4);
    }

    #[test]
    fn lengths_that_are_promised_have_a_plan() {
        for (number, bits) in [(8, 36), (16, 33)] {
            let limits = Limits { shared_bytes: (64 << 10) - 16, number };
            for n in (0..=bits).map(|bits| 1 << bits) {
                assert!(matches!(Method::new(n, limits), Some(Method::Smooth(_))), "{n}");
            }
            let smooth = (0..20).map(|i| 3usize.pow(i)).chain((0..8).map(|i| 13usize.pow(i)));
            let most = LONGEST_FILTER / 2;
            for n in smooth.filter(|&n| n <= 1 << (bits - 1)).chain(most - 100..=most) {
                assert!(Method::new(n, limits).is_some(), "{n}");
            }
        }
    }

    #[test]
    fn what_is_too_long_has_no_method() {
        assert_eq!(Method::new(1 << 50, H200), None);
        assert_eq!(Method::new(usize::MAX, H200), None);
    }

    /// Compares the places of all numbers of a launch, computed in 128 bits, with those that the kernel computes.
    #[test]
    fn places_after_the_first_four_billion_are_right() {
        for (outer, n, inner) in [
            (5, 1024, 1 << 22),
            (3, 1 << 20, 1 << 12),
            (1 << 33, 6, 1),
            (9, 17, 1 << 34),
            (1 << 12, 1 << 24, 1),
            (3, 1 << 24, 1 << 9),
        ] {
            let axis = Axis { outer, inner, n, input: n, output: n };
            let mut passes = Vec::new();
            append(&mut passes, Method::new(n, H200).expect("it is not too long"), axis, false, H200);
            for pass in passes {
                let lines = pass.parameters(1.0f32, |_| 0);
                let mut last = 0;
                for line in [0, 1, pass.lines / 3, pass.lines - 1] {
                    let at = lines.coordinates(line as u64);
                    let (rest, c) = (line / inner, line % inner);
                    let (rest, b) = (rest / pass.middle, rest % pass.middle);
                    assert_eq!(at, [rest / pass.parts, rest % pass.parts, b, c].map(|x| x as u64), "{pass:?}");
                    for (side, e) in [(&lines.input, 0), (&lines.output, 1), (&lines.output, pass.line.n - 1)] {
                        let position = e as u64 * side.element + at[2] * side.line;
                        let [a, k, _, c] = at.map(u128::from);
                        let before = a * side.extent as u128 + k * side.part as u128;
                        let expected = (before + position as u128) * inner as u128 + c;
                        last = lines.index(side, at, position);
                        assert_eq!(last as u128, expected, "{pass:?}");
                    }
                }
                // This is the last element of the last line, if the output has all of them.
                let is_whole = pass.output.extent as usize == pass.line.n * pass.parts * pass.middle;
                assert!(!is_whole || last == pass.output_len - 1, "{pass:?}");
                assert!(last > 1 << 32, "{pass:?}");
            }
        }
    }

    #[test]
    fn a_line_has_numbers_of_its_own() {
        // There are columns and rows. All lines together read and write each number once.
        for (n, count) in [(24_000, 2), (1 << 24, 3)] {
            let axis = Axis { outer: 2, inner: if count == 2 { 3 } else { 1 }, n, input: n, output: n };
            let mut passes = Vec::new();
            append(&mut passes, Method::new(n, H200).expect("it is not too long"), axis, false, H200);
            assert_eq!(passes.len(), count);
            for pass in passes {
                let lines = pass.parameters(1.0f32, |_| 0);
                for side in [&lines.input, &lines.output] {
                    let mut times = vec![0u8; pass.output_len];
                    for line in 0..pass.lines as u64 {
                        let at = lines.coordinates(line);
                        for e in 0..pass.line.n as u64 {
                            times[lines.index(side, at, e * side.element + at[2] * side.line)] += 1;
                        }
                    }
                    assert!(times.iter().all(|&times| times == 1), "{pass:?}");
                }
            }
        }
    }

    #[test]
    fn little_shared_memory_means_more_passes() {
        let little = Limits { shared_bytes: 16 << 10, number: 16 };
        assert!(matches!(Method::new(512, little), Some(Method::Smooth(Smooth::Lines(_)))));
        assert!(matches!(Method::new(1024, little), Some(Method::Smooth(Smooth::Matrix(..)))));
    }

    /// The kernel multiplies results by twiddle factors only if it does nothing else with them.
    #[test]
    fn a_pass_with_twiddle_factors_has_no_others() {
        for n in [1000, 1009, 30_030, 1 << 20, 1 << 24, 1_000_003] {
            for (input, output) in [(n, n), (n, n / 2 + 1), (n / 2 + 1, n)] {
                let mut passes = Vec::new();
                let method = Method::new(n, H200).expect("it is not too long");
                append(&mut passes, method, Axis { outer: 2, inner: 3, n, input, output }, input < n, H200);
                for pass in passes {
                    assert!(pass.options & FFT_TWIDDLES == 0 || pass.options & (FFT_AFTER | FFT_CUT) == 0, "{pass:?}");
                }
            }
        }
    }
}
