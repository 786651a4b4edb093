//! Random numbers. Neighbouring elements share a draw.

use primitives_gpu::thread::box_muller::{COSINE, LOGARITHM, OF_EXPONENT, SINE, TWO_THIRDS};

use super::emit::{Class, Emitter, Reg};
use super::{Kernel, Way};
use crate::expr::dtype::DType;
use crate::expr::graph::{Distribution, Math, Op};
use crate::expr::program::{Instruction, What};
use crate::kernels::functions::{normal_f32, normal_f64, uniform_f32, uniform_f64};

impl Kernel<'_> {
    /// Returns the random numbers of a vector's elements. If the elements have consecutive numbers and one seed, all numbers of a draw are
    /// used. Otherwise each element has its own draw.
    pub(super) fn random(
        &mut self,
        distribution: Distribution,
        instruction: &Instruction,
        values: &[Vec<Reg>],
        width: usize,
    ) -> Vec<Reg> {
        let dtype = instruction.dtype;
        let [seed, index] = [0, 1].map(|i| instruction.arguments[i] as usize);
        // A vector of contiguous elements begins at a multiple of its width.
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
                match distribution {
                    Distribution::Normal if dtype == DType::F32 => {
                        let [a, b, c, d] = words;
                        numbers.extend([[a, b], [c, d]].into_iter().flat_map(|pair| self.e.box_muller_f32(pair)));
                    }
                    Distribution::Normal => {
                        let uniform = self.e.uniform(dtype, words);
                        numbers.extend(self.e.box_muller_f64([uniform[0], uniform[1]]));
                    }
                    Distribution::Uniform => numbers.extend(self.e.uniform(dtype, words)),
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

/// Computes the same numbers as `primitives_gpu::thread::random`.
impl Emitter {
    /// Returns the words of Philox4x32-10 for a draw of a seed's stream 0.
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

    /// Returns the low and the high word.
    fn halves(&mut self, value: Reg) -> [Reg; 2] {
        let low = self.op(Class::B32, "cvt.u32.u64", &[value]);
        let high = self.op_with(Class::B64, "shr.u64", &[value], 32);
        [low, self.op(Class::B32, "cvt.u32.u64", &[high])]
    }

    /// Returns the uniform numbers of a draw from 0 to 1 (1 excluded): four numbers, or two of `f64`.
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

    /// Returns two normal numbers, computed from two uniform numbers.
    fn box_muller_f64(&mut self, [a, b]: [Reg; 2]) -> [Reg; 2] {
        let dtype = DType::F64;
        let one = self.constant(dtype, 1f64.to_bits());
        let minus_two = self.constant(dtype, (-2f64).to_bits());
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

    /// Returns two normal numbers, computed from the upper 24 bits of two words.
    fn box_muller_f32(&mut self, [a, b]: [Reg; 2]) -> [Reg; 2] {
        let upper = self.word("shr.u32", a, 8);
        let all = self.constant(DType::U32, 1 << 24);
        let rest = self.op(Class::B32, "sub.u32", &[all, upper]);
        let rest = self.op(Class::F32, "cvt.rn.f32.u32", &[rest]);
        let bits = self.op(Class::B32, "mov.b32", &[rest]);
        let bits = self.word("sub.u32", bits, TWO_THIRDS + (24 << 23));
        let exponent = self.word("shr.s32", bits, 23);
        let exponent = self.op(Class::F32, "cvt.rn.f32.s32", &[exponent]);
        let mantissa = self.word("and.b32", bits, 0x7f_ffff);
        let mantissa = self.word("add.u32", mantissa, TWO_THIRDS);
        let mantissa = self.op(Class::F32, "mov.b32", &[mantissa]);
        let [one, two, minus_two, of_exponent, quarter] =
            [1.0, 2.0, -2.0, OF_EXPONENT, 1.0 / (1 << 30) as f32].map(|value| self.mov_f32(value));
        let g = self.fma(mantissa, minus_two, two);
        let square = self.op(Class::F32, "mul.rn.f32", &[g, g]);
        let polynomial = self.polynomial(&LOGARITHM, g);
        let logarithm = self.fma(polynomial, square, g);
        let logarithm = self.fma(exponent, of_exponent, logarithm);
        let radius = self.op(Class::F32, "sqrt.rn.f32", &[logarithm]);

        let angle = self.word("and.b32", b, 0xffff_ff00);
        let quadrant = self.word("add.u32", angle, 1 << 29);
        let quadrant = self.word("shr.u32", quadrant, 30);
        let whole = self.word("shl.b32", quadrant, 30);
        let part = self.op(Class::B32, "sub.u32", &[angle, whole]);
        let part = self.op(Class::F32, "cvt.rn.f32.s32", &[part]);
        let y = self.op(Class::F32, "mul.rn.f32", &[part, quarter]);
        let square = self.op(Class::F32, "mul.rn.f32", &[y, y]);
        let polynomial = self.polynomial(&SINE, square);
        let sine = self.op(Class::F32, "mul.rn.f32", &[y, polynomial]);
        let polynomial = self.polynomial(&COSINE, square);
        let cosine = self.fma(polynomial, square, one);

        let odd = self.word("and.b32", quadrant, 1);
        let odd = self.op_with(Class::Pred, "setp.ne.u32", &[odd], 0);
        let next = self.word("add.u32", quadrant, 1);
        [([sine, cosine], next), ([cosine, sine], quadrant)].map(|([a, b], quadrant)| {
            let value = self.op(Class::F32, "selp.f32", &[a, b, odd]);
            let value = self.op(Class::B32, "mov.b32", &[value]);
            let sign = self.word("and.b32", quadrant, 2);
            let sign = self.word("shl.b32", sign, 30);
            let value = self.op(Class::B32, "xor.b32", &[value, sign]);
            let value = self.op(Class::F32, "mov.b32", &[value]);
            self.op(Class::F32, "mul.rn.f32", &[radius, value])
        })
    }

    /// Writes an instruction with a word and a constant as operands.
    fn word(&mut self, instruction: &str, x: Reg, constant: u32) -> Reg {
        self.op_with(Class::B32, instruction, &[x], constant)
    }

    fn fma(&mut self, a: Reg, b: Reg, c: Reg) -> Reg {
        self.op(Class::F32, "fma.rn.f32", &[a, b, c])
    }

    /// Evaluates a polynomial by Horner's scheme. The last coefficient is that of the highest power.
    fn polynomial(&mut self, coefficients: &[f32], x: Reg) -> Reg {
        let (&last, rest) = coefficients.split_last().expect("coefficients");
        let last = self.mov_f32(last);
        rest.iter().rev().fold(last, |value, &coefficient| {
            let coefficient = self.mov_f32(coefficient);
            self.fma(value, x, coefficient)
        })
    }
}
