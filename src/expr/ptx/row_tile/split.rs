//! Divides a program: values of neighbours are computed in windows, and the rest for vectors.

use super::super::Way;
use crate::expr::graph::Op;
use crate::expr::neighbours::stencil::is_cheap;
use crate::expr::program::{Instruction, Program, What};

/// The most values that windows pass on.
const PASSED: usize = 2;

/// The parts of a program, by instruction. Uniform values are in neither part.
pub(super) struct Split {
    /// The instructions that are computed from a window.
    pub(super) window: Vec<bool>,
    /// The instructions that are computed at the places of vectors.
    pub(super) rest: Vec<bool>,
    /// The values of windows that results or the rest need.
    pub(super) passed: Vec<usize>,
}

impl Split {
    /// Returns `None` if windows would pass on no values, or too many.
    pub(super) fn new(program: &Program, uniform: &[bool]) -> Option<Self> {
        let local = of_windows(program, uniform);
        let code = &program.code;
        let mut rest = vec![false; code.len()];
        let mut passed = Vec::new();
        let mut open: Vec<usize> = program.results.iter().map(|&result| result as usize).collect();
        while let Some(at) = open.pop() {
            if uniform[at] || rest[at] || passed.contains(&at) {
                continue;
            }
            // An element at its own place is read again, because this is cheaper than shared memory.
            if local[at] && !matches!(code[at].what, What::Load(_)) {
                passed.push(at);
                continue;
            }
            rest[at] = true;
            open.extend(code[at].takes().iter().map(|&value| value as usize));
        }
        if passed.is_empty() || passed.len() > PASSED {
            return None;
        }
        passed.sort_unstable();
        let mut window = vec![false; code.len()];
        let mut open = passed.clone();
        while let Some(at) = open.pop() {
            if !uniform[at] && !window[at] {
                window[at] = true;
                open.extend(code[at].takes().iter().map(|&value| value as usize));
            }
        }
        Some(Self { window, rest, passed })
    }
}

/// Returns which instructions windows can compute.
fn of_windows(program: &Program, uniform: &[bool]) -> Vec<bool> {
    let mut local = vec![false; program.code.len()];
    for (at, one) in program.code.iter().enumerate() {
        local[at] = match one.what {
            What::Neighbour(..) | What::Weighted(..) => true,
            What::Load(input) => program.inputs[input as usize].shifted && !uniform[at],
            What::Op(op) if is_light(op, one) => {
                let mut takes = one.takes().iter().map(|&value| value as usize);
                takes.all(|value| local[value] || uniform[value]) && !uniform[at]
            }
            _ => false,
        };
    }
    local
}

/// Returns whether an operator takes few instructions and cannot fail. Windows past the end of a row compute, too.
fn is_light(op: Op, one: &Instruction) -> bool {
    is_cheap(op) && (!op.divides() || op == Op::Div && !one.dtype.is_integer())
}

/// Returns which values are the same for all elements. The kernel finds the same values.
pub(super) fn uniform(program: &Program, operands: &[Way]) -> Vec<bool> {
    let mut operand_of = vec![usize::MAX; program.inputs.len()];
    let loads = program.inputs.iter().enumerate().filter(|(_, input)| !input.gathered);
    for ((input, _), operand) in loads.zip(program.results.len()..) {
        operand_of[input] = operand;
    }
    let mut uniform = vec![false; program.code.len()];
    for (at, one) in program.code.iter().enumerate() {
        uniform[at] = match one.what {
            What::Scalar(_) | What::Constant(_) => true,
            What::Load(input) => operands[operand_of[input as usize]] == Way::Single,
            What::Op(op) => !op.divides_integers(one.dtype) && one.takes().iter().all(|&value| uniform[value as usize]),
            _ => false,
        };
    }
    uniform
}
