//! Tests of the kernels of passes: a machine for PTX runs them, and the results are compared with sums by definition.

use std::ops::Range;

use ptx_machine::Machine;

use super::choose::{self, rows};
use super::layout;
use super::pass::{Kind, Lanes, LineAxis, LinePass, OuterFactors};
use super::plan::Work;
use super::room::Room;
use super::text::code::Real;
use super::text::convolution::is_smooth;
use super::text::kernel::{PassKernel, kernel};
use crate::Complex;
use crate::element::root_of_unity;

pub(super) type Numbers = Vec<Complex<f64>>;

pub(super) const NOTHING: Complex<f64> = Complex { re: f64::NAN, im: f64::NAN };

/// Complex numbers as a kernel stores them, from an address that is a multiple of 16.
pub(super) struct Memory {
    words: Vec<u128>,
    real: Real,
    len: usize,
}

impl Memory {
    pub(super) fn new(real: Real, numbers: &[Complex<f64>]) -> Self {
        let words = match real {
            Real::F32 => {
                let word =
                    |x: &Complex<f64>| u128::from((x.re as f32).to_bits()) | u128::from((x.im as f32).to_bits()) << 32;
                numbers.chunks(2).map(|pair| word(&pair[0]) | pair.get(1).map_or(0, word) << 64).collect()
            }
            Real::F64 => {
                numbers.iter().map(|x| u128::from(x.re.to_bits()) | u128::from(x.im.to_bits()) << 64).collect()
            }
        };
        Self { words, real, len: numbers.len() }
    }

    /// Returns counters of 32 bits, which are 0.
    pub(super) fn counters(count: u32) -> Self {
        Self::new(Real::F32, &vec![Complex::ZERO; count.div_ceil(2) as usize])
    }

    /// Returns one of the first four counters.
    pub(super) fn counter(&self, which: u32) -> u32 {
        (self.words[0] >> (32 * which)) as u32
    }

    pub(super) fn numbers(&self) -> Numbers {
        let part = |index: usize| match self.real {
            Real::F32 => f64::from(f32::from_bits((self.words[index / 4] >> (index % 4 * 32)) as u32)),
            Real::F64 => f64::from_bits((self.words[index / 2] >> (index % 2 * 64)) as u64),
        };
        (0..self.len).map(|i| Complex { re: part(2 * i), im: part(2 * i + 1) }).collect()
    }

    pub(super) fn address(&mut self) -> u64 {
        self.addresses().start
    }

    /// Returns the addresses of the memory. The machine writes there.
    fn addresses(&mut self) -> Range<u64> {
        let start = self.words.as_mut_ptr().expose_provenance() as u64;
        start..start + self.len as u64 * u64::from(self.real.number())
    }
}

/// A kernel to run: its text, its blocks, the threads of a block, the bytes of shared memory that its launch gives, the parameters after
/// the addresses, and the order in which its blocks continue, if they wait for each other.
pub(super) struct Launch {
    pub(super) text: String,
    pub(super) blocks: u64,
    pub(super) threads: u32,
    pub(super) shared: u32,
    pub(super) words: Vec<u64>,
    pub(super) seed: u64,
}

/// Runs a kernel whose parameters are these memories. Returns how often lanes waited for a bank.
pub(super) fn launch(kernel: Launch, memories: &mut [Memory], parameters: &[usize], writes: &[usize]) -> usize {
    launch_with(kernel, memories, parameters, writes, None)
}

/// Works as [`launch`]. If there is a word `first`, it replaces the first parameter.
pub(super) fn launch_with(
    kernel: Launch,
    memories: &mut [Memory],
    parameters: &[usize],
    writes: &[usize],
    first: Option<u64>,
) -> usize {
    let Launch { text, blocks, threads, shared, words, seed } = kernel;
    let addresses: Vec<Range<u64>> = memories.iter_mut().map(Memory::addresses).collect();
    let mut words: Vec<u64> = parameters.iter().map(|&which| addresses[which].start).chain(words).collect();
    words[0] = first.unwrap_or(words[0]);
    let writes: Vec<Range<u64>> = writes.iter().map(|&which| addresses[which].clone()).collect();
    let is_fused = text.contains(" bra ");
    let machine = Machine::new(&with_shared(text, shared));
    let (blocks, threads) = (blocks as usize, threads as usize);
    if is_fused {
        let machine = machine.parting();
        // SAFETY: the memories are borrowed.
        unsafe { machine.run_at_once(blocks, threads, &words, &addresses, &writes, seed) };
        return machine.conflicts();
    }
    // SAFETY: as above.
    unsafe { machine.run(blocks, threads, &words, &addresses, &writes) };
    machine.conflicts()
}

/// Returns the output of a pass's kernel, and how often lanes waited for a bank.
fn run(pass: &LinePass, input: &[Complex<f64>], outputs: usize) -> (Numbers, usize) {
    let PassKernel { text, blocks, threads, shared, roots, outer_roots } = kernel(pass, 90);
    let nothing = vec![NOTHING; outputs];
    let numbers: [&[Complex<f64>]; 4] = [input, &nothing, &roots, &outer_roots];
    let mut memories = numbers.map(|x| Memory::new(pass.real, x));
    let words = Work::Pass(pass.clone()).words(0);
    let kernel = Launch { text, blocks, threads, shared, words, seed: 0 };
    let conflicts = launch(kernel, &mut memories, &[0, 1, 2, 3], &[1]);
    (memories[1].numbers(), conflicts)
}

/// Gives the machine the memory that a kernel declares.
fn with_shared(text: String, bytes: u32) -> String {
    match bytes {
        0 => text,
        _ => text.replacen("\n{\n", &format!("\n{{\n    .shared .align 16 .b8 numbers[{bytes}];\n"), 1),
    }
}

/// Returns numbers without a pattern.
pub(super) fn some(len: usize) -> Numbers {
    let mut state = 1u64;
    let mut part = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    };
    (0..len).map(|_| Complex { re: part(), im: part() }).collect()
}

/// Computes the transform by its definition.
pub(super) fn sums(x: &[Complex<f64>], inverse: bool) -> Numbers {
    sums_at(x, inverse, 0..x.len())
}

/// Computes some of these sums.
pub(super) fn sums_at(x: &[Complex<f64>], inverse: bool, places: impl Iterator<Item = usize>) -> Numbers {
    let n = x.len();
    let root = |i: usize| if inverse { root_of_unity((n - i) % n, n) } else { root_of_unity(i, n) };
    let roots: Numbers = (0..n).map(root).collect();
    // This is most of the time of these tests, which are not optimized. So the loop calls nothing.
    let (roots, mut all) = (&roots[..], Numbers::new());
    for k in places {
        let (mut re, mut im, mut j, mut turn) = (0.0, 0.0, 0, 0);
        while j < n {
            let (a, b) = (&x[j], &roots[turn]);
            re += a.re * b.re - a.im * b.im;
            im += a.re * b.im + a.im * b.re;
            turn += k;
            if turn >= n {
                turn -= n;
            }
            j += 1;
        }
        all.push(Complex { re, im });
    }
    all
}

/// Returns the largest allowed difference from the expected numbers.
pub(super) fn bound(expected: &[Complex<f64>], real: Real) -> f64 {
    let largest = expected.iter().map(|x| x.l1_norm()).fold(0.0, f64::max);
    largest * if real == Real::F32 { 2e-6 } else { 1e-13 }
}

#[track_caller]
pub(super) fn assert_near(found: &[Complex<f64>], expected: &[Complex<f64>], real: Real, what: &dyn std::fmt::Debug) {
    let bound = bound(expected, real);
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((*found - *expected).l1_norm() <= bound, "{i}: {found} for {expected}: {what:?}");
    }
    assert_eq!(found.len(), expected.len());
}

pub(super) fn axis(extent: u32, input: u32, output: u32) -> LineAxis {
    LineAxis::new(extent, [input, output])
}

/// Returns a pass over lines in a row.
pub(super) fn in_a_row(real: Real, radices: &[u32], threads: u32, lines: u32, count: u32) -> LinePass {
    let n = radices.iter().product();
    LinePass {
        real,
        radices: radices.to_vec(),
        threads,
        lines,
        blocks: 1,
        axes: vec![axis(count, n, n)],
        elements: [1; 2],
        lanes: [Lanes::Along; 2],
        kind: Kind::Complex,
        inverse: false,
        factors: None,
        staged: false,
        padded: false,
        fresh: false,
        streamed: [false; 2],
        scaled: false,
        shared: u32::MAX,
        split: [false; 2],
        of_reals: false,
        halved: false,
    }
}

/// Checks a pass of complex numbers. Its axes have this many numbers in all.
#[track_caller]
fn check(pass: &LinePass, numbers: usize) {
    let x = some(numbers);
    let x = Memory::new(pass.real, &x).numbers();
    let (n, lines) = (pass.length() as usize, pass.all_lines() as usize);
    let mut expected = vec![NOTHING; numbers];
    for line in 0..lines {
        let (mut rest, mut begins, mut coordinates) = (line, [0; 2], Vec::new());
        for axis in &pass.axes {
            let coordinate = rest % axis.extent as usize;
            rest /= axis.extent as usize;
            coordinates.push(coordinate);
            begins = [0, 1].map(|side| begins[side] + coordinate * axis.strides[side] as usize);
        }
        let [input, output] = pass.elements.map(|element| element as usize);
        let mut numbers: Numbers = (0..n).map(|e| x[begins[0] + e * input]).collect();
        let multiply = |numbers: &mut Numbers, of_input: bool| {
            let Some(factors) = pass.factors.filter(|factors| factors.of_input == of_input) else { return };
            let length = factors.length as usize;
            for (e, number) in numbers.iter_mut().enumerate() {
                *number *= root_of_unity(e * coordinates[usize::from(factors.axis)] % length, length);
            }
        };
        multiply(&mut numbers, true);
        let mut numbers = sums(&numbers, pass.inverse);
        multiply(&mut numbers, false);
        for (e, number) in numbers.into_iter().enumerate() {
            expected[begins[1] + e * output] = number;
        }
    }
    let (found, _) = run(pass, &x, numbers);
    assert_near(&found, &expected, pass.real, pass);
}

#[test]
fn lines_of_all_small_lengths_are_transformed() {
    for n in 2..=40 {
        for real in [Real::F32, Real::F64] {
            let pass = rows(real, n, 5, Room::H100);
            assert_eq!(pass.is_some(), n != 37, "{n}");
            if let Some(pass) = pass {
                check(&pass, 5 * n as usize);
            }
        }
    }
}

/// If one number of a line is 1 and the rest are 0, the results are roots.
#[test]
fn butterflies_have_the_nearest_roots() {
    for n in [3, 5, 7, 11, 13, 17, 19, 23, 29, 31] {
        let pass = rows(Real::F64, n, n, Room::H100).expect("a pass");
        let n = n as usize;
        let x: Numbers = (0..n * n).map(|i| Complex { re: f64::from(u8::from(i / n == i % n)), im: 0.0 }).collect();
        let (found, _) = run(&pass, &x, n * n);
        let expected: Numbers = (0..n * n).map(|i| root_of_unity(i / n * (i % n) % n, n)).collect();
        assert_eq!(found, expected, "{n}");
    }
}

#[test]
fn lines_of_some_larger_lengths_are_transformed() {
    for n in [60, 64, 100, 125, 128, 243, 343, 350, 1000, 1024] {
        let pass = rows(Real::F32, n, 3, Room::H100).expect("a pass");
        check(&pass, 3 * n as usize);
    }
    check(&rows(Real::F64, 360, 3, Room::H100).expect("a pass"), 3 * 360);
}

#[test]
fn threads_may_have_butterflies_that_others_lack() {
    // The stages have 120, 108 and 90 butterflies, for 100 threads.
    check(&in_a_row(Real::F64, &[9, 10, 12], 100, 1, 2), 2 * 1080);
    check(&in_a_row(Real::F64, &[5, 3, 4], 7, 3, 4), 4 * 60);
}

#[test]
fn an_inverse_transform_is_the_conjugate() {
    for radices in [&[8, 4][..], &[6, 5]] {
        let n: u32 = radices.iter().product();
        let pass = LinePass { inverse: true, ..in_a_row(Real::F64, radices, 8, 3, 3) };
        check(&pass, 3 * n as usize);
        let pass = LinePass { staged: true, ..pass };
        check(&pass, 3 * n as usize);
    }
}

#[test]
fn lines_side_by_side_are_transformed() {
    // The lines are across an axis of 6. Blocks have 3 or 4 of them, or 4 that continue along the next axis.
    for (lines, padded) in [(3, false), (4, true), (4, false)] {
        let pass = LinePass {
            axes: vec![axis(6, 1, 1), axis(3, 6 * 24, 6 * 24)],
            elements: [6; 2],
            lanes: [Lanes::Across; 2],
            padded,
            ..in_a_row(Real::F32, &[4, 6], 4, lines, 1)
        };
        check(&pass, 3 * 6 * 24);
    }
}

#[test]
fn lines_in_a_row_become_lines_side_by_side() {
    for of_input in [true, false] {
        let factors = OuterFactors { axis: 0, length: 16 * 32, of_input };
        let pass = LinePass {
            axes: vec![axis(16, 32, 1), axis(2, 512, 512)],
            elements: [1, 16],
            lanes: [Lanes::Along, Lanes::Across],
            factors: Some(factors),
            ..in_a_row(Real::F64, &[8, 4], 4, 8, 1)
        };
        check(&pass, 1024);
    }
}

#[test]
fn two_passes_make_a_long_transform() {
    let (n1, n2) = (16u32, 24u32);
    let n = n1 * n2;
    let x = some(n as usize);
    let first = LinePass {
        axes: vec![axis(n2, 1, 1)],
        elements: [n2; 2],
        lanes: [Lanes::Across; 2],
        ..in_a_row(Real::F64, &[4, 4], 4, 8, 1)
    };
    let second = LinePass {
        axes: vec![axis(n1, n2, 1)],
        elements: [1, n1],
        lanes: [Lanes::Along, Lanes::Across],
        factors: Some(OuterFactors { axis: 0, length: n, of_input: true }),
        ..in_a_row(Real::F64, &[6, 4], 6, 8, 1)
    };
    let (between, _) = run(&first, &x, n as usize);
    let (found, _) = run(&second, &between, n as usize);
    assert_near(&found, &sums(&x, false), Real::F64, &"two passes");
}

#[test]
fn factors_of_long_transforms_come_from_two_tables() {
    // A block has 12 neighbouring lines of a transform of 2^14 numbers.
    let pass = LinePass {
        axes: vec![axis(12, 1, 1)],
        elements: [12; 2],
        lanes: [Lanes::Across; 2],
        factors: Some(OuterFactors { axis: 0, length: 1 << 14, of_input: false }),
        ..in_a_row(Real::F64, &[16], 1, 4, 1)
    };
    check(&pass, 12 * 16);
}

#[test]
fn half_spectra_of_real_arrays_are_transformed_and_back() {
    // The last radix is even or odd, and so is the first one.
    for (radices, threads) in [(&[8, 4][..], 4), (&[8, 3], 4), (&[4, 4, 4], 8), (&[2, 2], 1)] {
        let m: usize = radices.iter().product::<u32>() as usize;
        let lines = 3;
        let real = Real::F64;
        let half = m as u32 + 1;
        let pairs = some(lines * m);
        let forward = LinePass {
            axes: vec![axis(lines as u32, m as u32, half)],
            kind: Kind::RealForward,
            halved: true,
            ..in_a_row(real, radices, threads, 2, 1)
        };
        let (spectra, _) = run(&forward, &pairs, lines * (m + 1));
        for line in 0..lines {
            let x: Numbers = pairs[line * m..][..m]
                .iter()
                .flat_map(|pair| [pair.re, pair.im].map(|re| Complex { re, im: 0.0 }))
                .collect();
            assert_near(&spectra[line * (m + 1)..][..m + 1], &sums(&x, false)[..=m], real, &forward);
        }
        // The half spectrum of a real array has no such imaginary parts. They are ignored.
        let mut spectra = spectra;
        for line in spectra.chunks_mut(m + 1) {
            (line[0].im, line[m].im) = (7.0, -3.0);
        }
        let back: Vec<u32> = radices.iter().rev().copied().collect();
        let inverse = LinePass {
            axes: vec![axis(lines as u32, half, m as u32)],
            kind: Kind::RealInverse,
            inverse: true,
            ..in_a_row(real, &back, threads, 2, 1)
        };
        let (found, _) = run(&inverse, &spectra, lines * m);
        let expected: Numbers = pairs.iter().map(|pair| *pair * (2 * m) as f64).collect();
        assert_near(&found, &expected, real, &inverse);
    }
}

/// The transform of the pairs, and sums of its numbers, may be twice as large as the numbers of the half spectrum.
#[test]
fn half_spectra_reach_the_largest_numbers() {
    let (m, n) = (4, 8);
    // Numbers are in units of the largest one. In each of the first lines, one number is not 0.
    let one = |place: usize| std::array::from_fn::<f64, 8, _>(|i| if i == place { 0.7 } else { 0.0 });
    let mut lines: Vec<[f64; 8]> = (0..n).map(one).collect();
    // The pairs turn once, so one number of their transform is 4 * 0.255, and the rest are 0.
    lines.push([1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0, -1.0].map(|x| 0.255 * x));
    for (real, most) in [(Real::F32, f64::from(f32::MAX)), (Real::F64, f64::MAX)] {
        let pair = |pair: &[f64]| Complex { re: pair[0] * most, im: pair[1] * most };
        let pairs: Numbers = lines.iter().flat_map(|x| x.chunks(2)).map(pair).collect();
        let pass = LinePass {
            axes: vec![axis(lines.len() as u32, m as u32, m as u32 + 1)],
            kind: Kind::RealForward,
            halved: true,
            ..in_a_row(real, &[2, 2], 1, 2, 1)
        };
        let (spectra, _) = run(&pass, &pairs, lines.len() * (m + 1));
        for (x, found) in lines.iter().zip(spectra.chunks(m + 1)) {
            let x: Numbers = x.iter().map(|&re| Complex { re, im: 0.0 }).collect();
            let found: Numbers = found.iter().map(|x| *x / most).collect();
            assert_near(&found, &sums(&x, false)[..=m], real, &pass);
        }
    }
}

#[test]
fn powers_of_two_wait_for_no_bank() {
    let pass = in_a_row(Real::F32, &[16, 16, 4], 64, 1, 1);
    let (_, conflicts) = run(&pass, &some(1024), 1024);
    assert_eq!(conflicts, 0, "{:?}", layout::layouts(&pass));
}

#[test]
fn chosen_passes_fit_in_a_block() {
    for n in (2..1 << 14).step_by(97).chain([4096, 8192, 10_000, 15_625, 16_384]) {
        for real in [Real::F32, Real::F64] {
            let pass = rows(real, n, 1 << 10, Room::H100);
            // No block holds some of the longer lines.
            assert!(pass.is_some() == is_smooth(n) || n > 8192, "{n}");
            let Some(pass) = pass else { continue };
            assert_eq!(pass.length(), n, "{pass:?}");
            assert!(pass.block_threads() <= 1024, "{pass:?}");
            assert!(layout::memory(&pass) <= Room::H100.block_shared, "{pass:?}");
        }
    }
}

#[test]
fn lengths_that_were_measured_have_the_plans_that_were_best() {
    let plan = |n: u32| {
        let pass = rows(Real::F32, n, 1 << 10, Room::H100).expect("a pass");
        let mut radices = pass.radices.clone();
        radices.sort_unstable();
        (radices, pass.threads, pass.staged)
    };
    assert_eq!(plan(343), (vec![7, 7, 7], 49, false));
    assert_eq!(plan(729), (vec![9, 9, 9], 81, false));
    assert_eq!(plan(1331), (vec![11, 11, 11], 121, false));
    assert_eq!(plan(100), (vec![10, 10], 10, true));
}

#[test]
fn passes_with_small_blocks_have_few_blocks_at_a_time() {
    let carveout = |real, n| choose::carveout(&rows(real, n, 1 << 10, Room::H100).expect("a pass"));
    assert_eq!([1024, 4096].map(|n| carveout(Real::F64, n)), [Some(100 << 10), None]);
    assert_eq!([256, 1024, 4096].map(|n| carveout(Real::F32, n)), [Some(100 << 10), Some(100 << 10), None]);
}
