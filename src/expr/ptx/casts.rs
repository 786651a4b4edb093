//! Conversions between types.

use super::emit::{Class, Emitter, Reg};
use crate::expr::dtype::DType;

impl Emitter {
    /// Returns a value of a half type as `f32`.
    pub(super) fn widen(&mut self, dtype: DType, value: Reg) -> Reg {
        match dtype {
            DType::F16 => self.op(Class::F32, "cvt.f32.f16", &[value]),
            DType::BF16 => {
                let word = self.op(Class::B32, "cvt.u32.u16", &[value]);
                let word = self.op_with(Class::B32, "shl.b32", &[word], 16);
                self.op(Class::F32, "mov.b32", &[word])
            }
            _ => value,
        }
    }

    /// Returns an `f32`, rounded to the nearest value of a half type.
    pub(super) fn narrow(&mut self, dtype: DType, value: Reg) -> Reg {
        match dtype {
            DType::F16 => self.op(Class::B16, "cvt.rn.f16.f32", &[value]),
            DType::BF16 if self.arch >= 80 => self.op(Class::B16, "cvt.rn.bf16.f32", &[value]),
            DType::BF16 => {
                let bits = self.op(Class::B32, "mov.b32", &[value]);
                let odd = self.op_with(Class::B32, "bfe.u32", &[bits], "16, 1");
                let half = self.op_with(Class::B32, "add.u32", &[odd], 0x7fff);
                let sum = self.op(Class::B32, "add.u32", &[bits, half]);
                let nan = self.op(Class::Pred, "setp.nan.f32", &[value, value]);
                let kept = self.op_with(Class::B32, "or.b32", &[bits], 0x40_0000);
                let bits = self.op(Class::B32, "selp.b32", &[kept, sum, nan]);
                let bits = self.op_with(Class::B32, "shr.u32", &[bits], 16);
                self.op(Class::B16, "cvt.u16.u32", &[bits])
            }
            _ => value,
        }
    }

    pub(super) fn cast(&mut self, from: DType, to: DType, x: Reg) -> Reg {
        match (from, to) {
            _ if from == to => x,
            (_, DType::Bool) => match from {
                DType::F32 | DType::F64 => {
                    let zero = self.constant(from, 0);
                    self.op(Class::Pred, &format!("setp.neu.{from}"), &[x, zero])
                }
                DType::F16 | DType::BF16 => {
                    let wide = self.widen(from, x);
                    self.cast(DType::F32, to, wide)
                }
                _ => {
                    let bits = if x.class == Class::B64 { 64 } else { 32 };
                    self.op_with(Class::Pred, &format!("setp.ne.s{bits}"), &[x], 0)
                }
            },
            (DType::Bool, _) => {
                let class = Class::of(to);
                let one = match to {
                    DType::F16 => 0x3c00,
                    DType::BF16 => 0x3f80,
                    DType::F32 => 1f32.to_bits().into(),
                    DType::F64 => 1f64.to_bits(),
                    _ => 1,
                };
                let (one, zero) = (self.constant(to, one), self.constant(to, 0));
                self.op(class, &format!("selp.{}", class.ptx()), &[one, zero, x])
            }
            _ if from.is_integer() && to.is_integer() => {
                let value = match (x.class, Class::of(to)) {
                    (Class::B32, Class::B64) if from.is_signed() => self.op(Class::B64, "cvt.s64.s32", &[x]),
                    (Class::B32, Class::B64) => self.op(Class::B64, "cvt.u64.u32", &[x]),
                    (Class::B64, Class::B32) => self.op(Class::B32, "cvt.u32.u64", &[x]),
                    _ => x,
                };
                self.normalized(to, value)
            }
            _ if from.is_integer() => self.integer_to_float(from, to, x),
            _ if to.is_integer() => self.float_to_integer(from, to, x),
            (DType::F32, DType::F64) => self.op(Class::F64, "cvt.f64.f32", &[x]),
            (DType::F64, DType::F32) => self.op(Class::F32, "cvt.rn.f32.f64", &[x]),
            (DType::F32, _) => self.narrow(to, x),
            (DType::F64, DType::F16) => self.op(Class::B16, "cvt.rn.f16.f64", &[x]),
            (DType::F64, _) => {
                let near = self.op(Class::F32, "cvt.rz.f32.f64", &[x]);
                let back = self.op(Class::F64, "cvt.f64.f32", &[near]);
                let inexact = self.op(Class::Pred, "setp.ne.f64", &[back, x]);
                let odd = self.odd(near, inexact);
                self.narrow(to, odd)
            }
            _ => {
                let wide = self.widen(from, x);
                self.cast(DType::F32, to, wide)
            }
        }
    }

    /// Rounds an `f32` to odd that was rounded to zero. If the result is rounded once more, this is the same as one rounding of the exact
    /// value.
    fn odd(&mut self, near: Reg, inexact: Reg) -> Reg {
        let bits = self.op(Class::B32, "mov.b32", &[near]);
        let odd = self.op_with(Class::B32, "or.b32", &[bits], 1);
        let bits = self.op(Class::B32, "selp.b32", &[odd, bits, inexact]);
        self.op(Class::F32, "mov.b32", &[bits])
    }

    fn integer_to_float(&mut self, from: DType, to: DType, x: Reg) -> Reg {
        let t = format!("{}{}", if from.is_signed() { 's' } else { 'u' }, if x.class == Class::B64 { 64 } else { 32 });
        match to {
            DType::F32 => self.op(Class::F32, &format!("cvt.rn.f32.{t}"), &[x]),
            DType::F64 => self.op(Class::F64, &format!("cvt.rn.f64.{t}"), &[x]),
            DType::F16 => self.op(Class::B16, &format!("cvt.rn.f16.{t}"), &[x]),
            _ => {
                let near = self.op(Class::F32, &format!("cvt.rz.f32.{t}"), &[x]);
                let back = self.op(x.class, &format!("cvt.rzi.{t}.f32"), &[near]);
                let inexact = self.op(Class::Pred, &format!("setp.ne.{t}"), &[back, x]);
                let odd = self.odd(near, inexact);
                self.narrow(to, odd)
            }
        }
    }

    fn float_to_integer(&mut self, from: DType, to: DType, x: Reg) -> Reg {
        if !matches!(from, DType::F32 | DType::F64) {
            let wide = self.widen(from, x);
            return self.float_to_integer(DType::F32, to, wide);
        }
        let class = Class::of(to);
        let t = format!("{}{}", if to.is_signed() { 's' } else { 'u' }, if class == Class::B64 { 64 } else { 32 });
        // The conversion saturates. NaN needs code of its own.
        let value = self.op(class, &format!("cvt.rzi.{t}.{from}"), &[x]);
        let nan = self.op(Class::Pred, &format!("setp.nan.{from}"), &[x, x]);
        let zero = self.op_with(class, &format!("mov.{}", class.ptx()), &[], 0);
        let value = self.op(class, &format!("selp.{}", class.ptx()), &[zero, value, nan]);
        let limits = match to {
            DType::I8 => Some((-128, 127)),
            DType::I16 => Some((-32768, 32767)),
            DType::U8 => Some((0, 255)),
            DType::U16 => Some((0, 65535)),
            _ => None,
        };
        let Some((low, high)) = limits else { return value };
        let value = if to.is_signed() { self.op_with(class, "max.s32", &[value], low) } else { value };
        self.op_with(class, &format!("min.{t}"), &[value], high)
    }
}
