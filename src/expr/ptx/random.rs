//! Random numbers of neighbouring elements, of one draw.

use super::emit::{Class, Emitter, Reg};
use super::{Kernel, Way};
use crate::expr::dtype::DType;
use crate::expr::graph::{Distribution, Math, Op};
use crate::expr::program::{Instruction, What};
use crate::kernels::functions::{normal_f32, normal_f64, uniform_f32, uniform_f64};

impl Kernel<'_> {
    /// The numbers of a vector's elements: of whole draws if they are by the element's number, else of a draw each.
    pub(super) fn random(
        &mut self,
        distribution: Distribution,
        instruction: &Instruction,
        values: &[Vec<Reg>],
        width: usize,
    ) -> Vec<Reg> {
        let dtype = instruction.dtype;
        let [seed, index] = [0, 1].map(|i| instruction.arguments[i] as usize);
        // A vector of elements in a row begins at a multiple of its width.
        let shift = if dtype == DType::F64 { 1 } else { 2 };
        let each = 1 << shift;
        let in_row = matches!(self.program.code[index].what, What::Index(None))
            && matches!(self.variant.operands[self.operand_of_index(index)], Way::Linear | Way::Row);
        if let (&[seed], &[element, ..]) = (&*values[seed], &*values[index])
            && in_row
            && width.is_multiple_of(each)
        {
            let first = self.e.op_with(Class::B64, "shr.u64", &[element], shift);
            let mut numbers = Vec::with_capacity(width);
            for draw in 0..width / each {
                let draw = if draw == 0 { first } else { self.e.op_with(Class::B64, "add.u64", &[first], draw) };
                let words = self.e.philox(seed, draw);
                let uniform = self.e.uniform(dtype, words);
                match distribution {
                    Distribution::Uniform => numbers.extend(uniform),
                    Distribution::Normal => {
                        numbers.extend(uniform.chunks(2).flat_map(|pair| self.e.box_muller(dtype, pair[0], pair[1])));
                    }
                }
            }
            return numbers;
        }
        let code = match (distribution, dtype) {
            (Distribution::Uniform, DType::F64) => uniform_f64::info().code(),
            (Distribution::Uniform, _) => uniform_f32::info().code(),
            (Distribution::Normal, DType::F64) => normal_f64::info().code(),
            (Distribution::Normal, _) => normal_f32::info().code(),
        };
        let varies = values[seed].len().max(values[index].len()) > 1;
        let of = |value: &[Reg], i: usize| if value.len() == 1 { value[0] } else { value[i] };
        (0..if varies { width } else { 1 })
            .map(|i| self.e.function(code, &[of(&values[seed], i), of(&values[index], i)]))
            .collect()
    }
}

/// As `primitives_gpu::thread::random` has it.
impl Emitter {
    /// Philox4x32-10 of a seed's stream 0.
    fn philox(&mut self, seed: Reg, draw: Reg) -> [Reg; 4] {
        let [mut k, mut l] = self.halves(seed);
        let [mut a, mut b] = self.halves(draw);
        let zero = self.constant(DType::U32, 0);
        let (mut c, mut d) = (zero, zero);
        for round in 0..10 {
            if round > 0 {
                k = self.op_with(Class::B32, "add.u32", &[k], 0x9e37_79b9u32);
                l = self.op_with(Class::B32, "add.u32", &[l], 0xbb67_ae85u32);
            }
            let m = self.op_with(Class::B64, "mul.wide.u32", &[a], 0xd251_1f53u32);
            let n = self.op_with(Class::B64, "mul.wide.u32", &[c], 0xcd9e_8d57u32);
            let ([m_low, m_high], [n_low, n_high]) = (self.halves(m), self.halves(n));
            let x = self.op(Class::B32, "xor.b32", &[n_high, b]);
            let y = self.op(Class::B32, "xor.b32", &[m_high, d]);
            a = self.op(Class::B32, "xor.b32", &[x, k]);
            c = self.op(Class::B32, "xor.b32", &[y, l]);
            (b, d) = (n_low, m_low);
        }
        [a, b, c, d]
    }

    /// The low and the high word.
    fn halves(&mut self, value: Reg) -> [Reg; 2] {
        let low = self.op(Class::B32, "cvt.u32.u64", &[value]);
        let high = self.op_with(Class::B64, "shr.u64", &[value], 32);
        [low, self.op(Class::B32, "cvt.u32.u64", &[high])]
    }

    /// Numbers between 0 and 1 (exclusive) of a draw: four, or two of `f64`.
    fn uniform(&mut self, dtype: DType, words: [Reg; 4]) -> Vec<Reg> {
        if dtype == DType::F64 {
            let unit = self.constant(dtype, (1.0 / (1u64 << 53) as f64).to_bits());
            return words
                .chunks(2)
                .map(|pair| {
                    let high = self.op(Class::B64, "cvt.u64.u32", &[pair[0]]);
                    let low = self.op(Class::B64, "cvt.u64.u32", &[pair[1]]);
                    let bits = self.op_with(Class::B64, "shl.b64", &[high], 32);
                    let bits = self.op(Class::B64, "or.b64", &[bits, low]);
                    let bits = self.op_with(Class::B64, "shr.u64", &[bits], 11);
                    let whole = self.op(Class::F64, "cvt.rn.f64.u64", &[bits]);
                    self.op(Class::F64, "mul.rn.f64", &[whole, unit])
                })
                .collect();
        }
        let unit = self.constant(dtype, (1.0 / (1 << 24) as f32).to_bits().into());
        let number = |word| {
            let bits = self.op_with(Class::B32, "shr.u32", &[word], 8);
            let whole = self.op(Class::F32, "cvt.rn.f32.u32", &[bits]);
            self.op(Class::F32, "mul.rn.f32", &[whole, unit])
        };
        words.map(number).into()
    }

    /// Two normal numbers of two uniform ones.
    fn box_muller(&mut self, dtype: DType, a: Reg, b: Reg) -> [Reg; 2] {
        let number = |value: f64| if dtype == DType::F64 { value.to_bits() } else { (value as f32).to_bits().into() };
        let one = self.constant(dtype, number(1.0));
        let minus_two = self.constant(dtype, number(-2.0));
        let mut compute = |op, x: &[Reg]| self.compute(op, dtype, dtype, x);
        let rest = compute(Op::Sub, &[one, a]);
        let log = compute(Op::Math(Math::Ln), &[rest]);
        let square = compute(Op::Mul, &[minus_two, log]);
        let radius = compute(Op::Math(Math::Sqrt), &[square]);
        let angle = compute(Op::Add, &[b, b]);
        [Math::CosPi, Math::SinPi].map(|of| {
            let part = compute(Op::Math(of), &[angle]);
            compute(Op::Mul, &[radius, part])
        })
    }
}
