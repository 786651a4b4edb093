//! The arithmetic of programs in PTX, element by element.
//!
//! Every operation rounds, and no operations are contracted. So the results are those of the CPU, except for the elementary functions.

use primitives_host::FunctionCode;

use super::emit::{Class, Emitter, Reg};
use crate::expr::dtype::DType;
use crate::expr::graph::{Math, Op};
use crate::kernels::functions;

impl Emitter {
    /// Computes an operation of a half type in `f32`.
    fn in_f32(&mut self, dtype: DType, arguments: &[Reg], f: impl FnOnce(&mut Self, &[Reg]) -> Reg) -> Reg {
        let wide: Vec<Reg> = arguments.iter().map(|&argument| self.widen(dtype, argument)).collect();
        let value = f(self, &wide);
        if value.class == Class::F32 { self.narrow(dtype, value) } else { value }
    }

    /// Writes an operator with arguments of type `from` and a result of type `to`. Returns the result.
    pub(crate) fn compute(&mut self, op: Op, from: DType, to: DType, x: &[Reg]) -> Reg {
        if op == Op::Select {
            return self.select(to, x[0], x[1], x[2]);
        }
        if op == Op::Cast {
            return self.cast(from, to, x[0]);
        }
        match from {
            DType::Bool => self.logic(op, x),
            DType::F32 => self.float(op, "f32", x),
            DType::F64 => self.float(op, "f64", x),
            DType::F16 | DType::BF16 => self.half(op, from, x),
            _ => self.integer(op, from, x),
        }
    }

    /// Returns `a` if `which` is true, and `b` otherwise.
    pub(super) fn select(&mut self, dtype: DType, which: Reg, a: Reg, b: Reg) -> Reg {
        match Class::of(dtype) {
            Class::Pred => {
                let yes = self.op(Class::Pred, "and.pred", &[which, a]);
                let not = self.op(Class::Pred, "not.pred", &[which]);
                let no = self.op(Class::Pred, "and.pred", &[not, b]);
                self.op(Class::Pred, "or.pred", &[yes, no])
            }
            class => self.op(class, &format!("selp.{}", class.ptx()), &[a, b, which]),
        }
    }

    fn logic(&mut self, op: Op, x: &[Reg]) -> Reg {
        let p = Class::Pred;
        match op {
            Op::Not => self.op(p, "not.pred", x),
            Op::And | Op::Min => self.op(p, "and.pred", x),
            Op::Or | Op::Max => self.op(p, "or.pred", x),
            Op::Xor | Op::Ne => self.op(p, "xor.pred", x),
            Op::Eq => {
                let differ = self.op(p, "xor.pred", x);
                self.op(p, "not.pred", &[differ])
            }
            Op::Lt => {
                let not = self.op(p, "not.pred", &[x[0]]);
                self.op(p, "and.pred", &[not, x[1]])
            }
            Op::Le => {
                let not = self.op(p, "not.pred", &[x[0]]);
                self.op(p, "or.pred", &[not, x[1]])
            }
            other => unreachable!("{other:?} of bool, which its bounds exclude"),
        }
    }

    fn float(&mut self, op: Op, t: &str, x: &[Reg]) -> Reg {
        let class = x[0].class;
        let with = |name: &str| format!("{name}.{t}");
        match op {
            Op::Neg => self.op(class, &with("neg"), x),
            Op::Abs => self.op(class, &with("abs"), x),
            Op::Recip => self.op(class, &with("rcp.rn"), x),
            Op::IsNan => self.op(Class::Pred, &with("setp.nan"), &[x[0], x[0]]),
            Op::Add => self.op(class, &with("add.rn"), x),
            Op::Sub => self.op(class, &with("sub.rn"), x),
            Op::Mul => self.op(class, &with("mul.rn"), x),
            Op::Div => self.op(class, &with("div.rn"), x),
            Op::MulAdd => self.op(class, &with("fma.rn"), x),
            Op::Min => self.extreme("min", t, x),
            Op::Max => self.extreme("max", t, x),
            Op::Eq => self.op(Class::Pred, &with("setp.eq"), x),
            Op::Ne => self.op(Class::Pred, &with("setp.neu"), x),
            Op::Lt => self.op(Class::Pred, &with("setp.lt"), x),
            Op::Le => self.op(Class::Pred, &with("setp.le"), x),
            Op::Rem => self.call(functions::fmod_f32::info().code(), functions::fmod_f64::info().code(), t, x),
            Op::FloorDiv => {
                self.call(functions::floor_div_f32::info().code(), functions::floor_div_f64::info().code(), t, x)
            }
            Op::FloorRem => {
                self.call(functions::floor_rem_f32::info().code(), functions::floor_rem_f64::info().code(), t, x)
            }
            Op::Pow => self.call(functions::pow_f32::info().code(), functions::pow_f64::info().code(), t, x),
            Op::Atan2 => self.call(functions::atan2_f32::info().code(), functions::atan2_f64::info().code(), t, x),
            Op::Hypot => self.call(functions::hypot_f32::info().code(), functions::hypot_f64::info().code(), t, x),
            Op::Math(function) => self.math(function, t, x),
            other => unreachable!("{other:?} of a float, which its bounds exclude"),
        }
    }

    /// Returns IEEE's minimum or maximum: NaN if one argument is NaN.
    fn extreme(&mut self, name: &str, t: &str, x: &[Reg]) -> Reg {
        let class = x[0].class;
        if t == "f32" && self.arch >= 80 {
            return self.op(class, &format!("{name}.NaN.f32"), x);
        }
        let extreme = self.op(class, &format!("{name}.{t}"), x);
        let nan = self.op(Class::Pred, &format!("setp.nan.{t}"), x);
        let sum = self.op(class, &format!("add.rn.{t}"), x);
        self.op(class, &format!("selp.{t}"), &[sum, extreme, nan])
    }

    fn math(&mut self, function: Math, t: &str, x: &[Reg]) -> Reg {
        let class = x[0].class;
        let rounded = |mode: &str| format!("cvt.{mode}.{t}.{t}");
        macro_rules! texts {
            ($($(#[$doc:meta])* $name:ident $variant:ident $method:ident ($f32:ident $f64:ident) $real:tt;)*) => {
                match function {
                    Math::Sqrt => self.op(class, &format!("sqrt.rn.{t}"), x),
                    Math::Rsqrt => {
                        let root = self.op(class, &format!("sqrt.rn.{t}"), x);
                        self.op(class, &format!("rcp.rn.{t}"), &[root])
                    }
                    Math::Floor => self.op(class, &rounded("rmi"), x),
                    Math::Ceil => self.op(class, &rounded("rpi"), x),
                    Math::Trunc => self.op(class, &rounded("rzi"), x),
                    Math::RoundTiesEven => self.op(class, &rounded("rni"), x),
                    Math::Round => self.round(t, x[0]),
                    $(Math::$variant => self.call(functions::$f32::info().code(), functions::$f64::info().code(), t, x),)*
                }
            };
        }
        crate::__elementary!(texts)
    }

    /// Returns the nearest whole number. Halves are rounded away from 0.
    fn round(&mut self, t: &str, x: Reg) -> Reg {
        let class = x.class;
        let whole = self.op(class, &format!("cvt.rzi.{t}.{t}"), &[x]);
        let rest = self.op(class, &format!("sub.rn.{t}"), &[x, whole]);
        let rest = self.op(class, &format!("abs.{t}"), &[rest]);
        let (half, one) = if t == "f32" {
            (self.mov_f32(0.5), self.mov_f32(1.0))
        } else {
            (self.constant(DType::F64, 0.5f64.to_bits()), self.constant(DType::F64, 1f64.to_bits()))
        };
        let away = self.op(Class::Pred, &format!("setp.ge.{t}"), &[rest, half]);
        let step = self.op(class, &format!("copysign.{t}"), &[x, one]);
        let next = self.op(class, &format!("add.rn.{t}"), &[whole, step]);
        self.op(class, &format!("selp.{t}"), &[next, whole, away])
    }

    fn half(&mut self, op: Op, dtype: DType, x: &[Reg]) -> Reg {
        match op {
            Op::Neg => self.op_with(Class::B16, "xor.b16", x, 0x8000),
            Op::Abs => self.op_with(Class::B16, "and.b16", x, 0x7fff),
            Op::Add if dtype == DType::F16 => self.op(Class::B16, "add.rn.f16", x),
            Op::Sub if dtype == DType::F16 => self.op(Class::B16, "sub.rn.f16", x),
            Op::Mul if dtype == DType::F16 => self.op(Class::B16, "mul.rn.f16", x),
            Op::MulAdd if dtype == DType::F16 => self.op(Class::B16, "fma.rn.f16", x),
            Op::MulAdd if self.arch >= 80 => self.op(Class::B16, "fma.rn.bf16", x),
            Op::MulAdd => {
                // The `f64` result is rounded to odd, so that in all the result is rounded only once.
                let wide: Vec<Reg> = x.iter().map(|&x| self.cast(dtype, DType::F64, x)).collect();
                let [near, down, up] =
                    ["rz", "rm", "rp"].map(|way| self.op(Class::F64, &format!("fma.{way}.f64"), &wide));
                let inexact = self.op(Class::Pred, "setp.ne.f64", &[down, up]);
                let bits = self.op(Class::B64, "mov.b64", &[near]);
                let odd = self.op_with(Class::B64, "or.b64", &[bits], 1);
                let bits = self.op(Class::B64, "selp.b64", &[odd, bits, inexact]);
                let odd = self.op(Class::F64, "mov.b64", &[bits]);
                self.cast(DType::F64, dtype, odd)
            }
            // If the `f32` result of any other operation is rounded once more, it is the result of the half type.
            _ => self.in_f32(dtype, x, |e, x| e.float(op, "f32", x)),
        }
    }

    fn integer(&mut self, op: Op, dtype: DType, x: &[Reg]) -> Reg {
        let class = x[0].class;
        let bits = if class == Class::B64 { 64 } else { 32 };
        let typed = |name: &str| format!("{name}.{}{bits}", if dtype.is_signed() { 's' } else { 'u' });
        let untyped = |name: &str| format!("{name}.b{bits}");
        let value = match op {
            Op::Neg => self.op(class, &format!("neg.s{bits}"), x),
            Op::Not => self.op(class, &untyped("not"), x),
            Op::Abs if dtype.is_signed() => self.op(class, &format!("abs.s{bits}"), x),
            Op::Abs => x[0],
            Op::Add => self.op(class, &typed("add"), x),
            Op::Sub => self.op(class, &typed("sub"), x),
            Op::Mul => self.op(class, &typed("mul.lo"), x),
            Op::Div => self.op(class, &typed("div"), x),
            Op::Rem => self.op(class, &typed("rem"), x),
            Op::FloorDiv | Op::FloorRem => self.floored(op, dtype, x),
            Op::Min => self.op(class, &typed("min"), x),
            Op::Max => self.op(class, &typed("max"), x),
            Op::And => self.op(class, &untyped("and"), x),
            Op::Or => self.op(class, &untyped("or"), x),
            Op::Xor => self.op(class, &untyped("xor"), x),
            // The hardware takes a count of 32 bits. A count larger than the width counts as the width.
            Op::Shl | Op::Shr => {
                let count = if bits == 64 {
                    let count = self.op_with(Class::B64, "min.u64", &[x[1]], 64);
                    self.op(Class::B32, "cvt.u32.u64", &[count])
                } else {
                    x[1]
                };
                let name = if op == Op::Shl { untyped("shl") } else { typed("shr") };
                self.op(class, &name, &[x[0], count])
            }
            Op::Eq => return self.op(Class::Pred, &typed("setp.eq"), x),
            Op::Ne => return self.op(Class::Pred, &typed("setp.ne"), x),
            Op::Lt => return self.op(Class::Pred, &typed("setp.lt"), x),
            Op::Le => return self.op(Class::Pred, &typed("setp.le"), x),
            Op::IsNan => return self.constant(DType::Bool, 0),
            other => unreachable!("{other:?} of an integer, which its bounds exclude"),
        };
        self.normalized(dtype, value)
    }

    fn floored(&mut self, op: Op, dtype: DType, x: &[Reg]) -> Reg {
        let class = x[0].class;
        let bits = if class == Class::B64 { 64 } else { 32 };
        let sign = if dtype.is_signed() { 's' } else { 'u' };
        let quotient = self.op(class, &format!("div.{sign}{bits}"), x);
        let rest = self.op(class, &format!("rem.{sign}{bits}"), x);
        if !dtype.is_signed() {
            return if op == Op::FloorDiv { quotient } else { rest };
        }
        let signs = self.op(class, &format!("xor.b{bits}"), &[rest, x[1]]);
        let differ = self.op_with(Class::Pred, &format!("setp.lt.s{bits}"), &[signs], 0);
        let some = self.op_with(Class::Pred, &format!("setp.ne.s{bits}"), &[rest], 0);
        let down = self.op(Class::Pred, "and.pred", &[differ, some]);
        if op == Op::FloorDiv {
            let less = self.op_with(class, &format!("add.s{bits}"), &[quotient], -1);
            self.op(class, &format!("selp.b{bits}"), &[less, quotient, down])
        } else {
            let more = self.op(class, &format!("add.s{bits}"), &[rest, x[1]]);
            self.op(class, &format!("selp.b{bits}"), &[more, rest, down])
        }
    }

    fn call(&mut self, f32: &'static FunctionCode, f64: &'static FunctionCode, t: &str, x: &[Reg]) -> Reg {
        self.function(if t == "f32" { f32 } else { f64 }, x)
    }
}
