//! Half spectra of real arrays in a pass of their own. The pass comes after transforms of pairs that a block does not hold, or before them.
//!
//! The transform of the pairs of numbers has `pairs` elements, and the half spectrum has one more. A thread has the elements `o` and
//! `pairs - o`; see [`half`](super::half).

use std::fmt::Write;

use super::code::{Code, Number, Place, Real};
use super::factors::{Levels, Roots};
use super::half::{from_half, to_half};
use super::kernel::{BOUND, PARAMETERS, PassKernel, SCALE};
use super::module::module;
use crate::expr::ptx::emit::{Class, op};
use crate::expr::ptx::target_of;

/// The threads of a block.
const THREADS: u32 = 256;

/// The number of blocks that a multiprocessor should hold.
const BLOCKS: u32 = 4;

/// The half spectra of lines in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super::super) struct SpectrumPass {
    pub(in super::super) real: Real,
    /// The complex numbers of a line's transform.
    pub(in super::super) pairs: u32,
    pub(in super::super) lines: u32,
    /// Whether the pass goes from half spectra to the numbers that an inverse transform takes.
    pub(in super::super) inverse: bool,
    /// This field, and the next two, are those of a [`LinePass`](super::super::pass::LinePass).
    pub(in super::super) halved: bool,
    pub(in super::super) scaled: bool,
    pub(in super::super) split: [bool; 2],
}

impl SpectrumPass {
    /// Returns the number of threads of a line.
    fn of_line(&self) -> u32 {
        self.pairs / 2 + 1
    }

    /// Returns the number of threads that have something to do.
    pub(in super::super) fn bound(&self) -> u32 {
        self.lines * self.of_line()
    }
}

/// Returns the kernel of a pass.
pub(in super::super::super) fn spectrum(pass: &SpectrumPass, arch: u32) -> PassKernel {
    let (target, version) = target_of(arch);
    let mut code = Code::new(pass.real, target, version);
    (code.split, code.halved) = (pass.split, pass.halved);
    code.scale = pass.scaled.then(|| code.real_parameter(SCALE));
    let [input, output, roots, _] = [0, 1, 2, 3].map(|number| code.pointer_parameter(number));
    let thread = code.integer("%tid.x");
    let tile = code.integer("%ctaid.x");
    let (index, bound) = (code.scaled_plus(tile, THREADS, thread), code.integer_parameter(BOUND));
    let there = Some(code.below(index, bound));
    let (line, o) = code.divided(index, pass.of_line(), u32::MAX);
    let (of_input, of_output) = if pass.inverse { (pass.pairs + 1, pass.pairs) } else { (pass.pairs, pass.pairs + 1) };
    let back = code.less(pass.pairs, o);
    let zero = code.is_zero(o);
    // In a transform, element 0 is its own partner.
    let other = if pass.inverse { back } else { code.chosen(zero, 0, back) };
    let number = |code: &mut Code, memory, of_line, element| {
        let index = code.scaled_plus(line, of_line, element);
        code.address(memory, index)
    };
    let [from, from_other] = [o, other].map(|element| number(&mut code, input, of_input, element));
    let [to, to_other] = [o, back].map(|element| number(&mut code, output, of_output, element));
    // These are the roots of the real axis, whose length fits into 32 bits.
    let levels = Levels::new(2 * pass.pairs);
    let root = Roots { levels, table: roots, guard: there }.root(&mut code, o);
    let place = |address, guard| Place { space: "global", address, offset: 0, guard };
    let mut numbers = [from, from_other].map(|address| code.load(place(address, there)));
    let results = if pass.inverse {
        // Elements 0 and `pairs` of the half spectrum of a real array are real.
        numbers = numbers.map(|number| code.real_where(zero, number));
        let numbers = numbers.map(Number::of);
        from_half(&mut code, numbers, root)
    } else {
        let numbers = numbers.map(Number::of);
        to_half(&mut code, numbers, root)
    };
    // The numbers that an inverse transform takes have no element `pairs`.
    let second = if pass.inverse {
        let not = code.e.op(Class::Pred, "not.pred", &[zero]);
        code.both(Some(not), there)
    } else {
        there
    };
    for ((address, guard), result) in [(to, there), (to_other, second)].into_iter().zip(results) {
        code.store(place(address, guard), result);
    }
    op!(code.e, "ret;");
    let (text, shared) = module(&code, PARAMETERS, (THREADS, BLOCKS), 0);
    let blocks = pass.bound().div_ceil(THREADS).into();
    PassKernel { text, blocks, threads: THREADS, shared, roots: levels.roots(), outer_roots: Vec::new() }
}
