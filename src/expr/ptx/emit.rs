//! The arithmetic of programs in PTX, element by element.
//!
//! Values narrower than 32 bits are in 32-bit registers with zeros above, or their sign; `bool` is a predicate; `f16` and `bf16` are
//! their 16 bits. Every operation rounds, and nothing is contracted: the results are those of the CPU, but for the elementary
//! functions.

use std::fmt::{self, Write};

use primitives_host::{FunctionCode, ValueType};

use crate::expr::dtype::DType;
use crate::expr::graph::{Math, Op};
use crate::kernels::functions;

/// The kinds of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Pred,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Class {
    pub(super) const ALL: [Self; 6] = [Self::Pred, Self::B16, Self::B32, Self::B64, Self::F32, Self::F64];

    /// The class of values of a type.
    pub(super) fn of(dtype: DType) -> Self {
        match dtype {
            DType::Bool => Self::Pred,
            DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32 | DType::U32 => Self::B32,
            DType::I64 | DType::U64 => Self::B64,
            DType::F16 | DType::BF16 => Self::B16,
            DType::F32 => Self::F32,
            DType::F64 => Self::F64,
        }
    }

    pub(crate) fn ptx(self) -> &'static str {
        match self {
            Self::Pred => "pred",
            Self::B16 => "b16",
            Self::B32 => "b32",
            Self::B64 => "b64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Pred => "%p",
            Self::B16 => "%h",
            Self::B32 => "%r",
            Self::B64 => "%rd",
            Self::F32 => "%f",
            Self::F64 => "%fd",
        }
    }

    /// Bytes of a parameter.
    pub(super) fn param_bytes(self) -> usize {
        if matches!(self, Self::B64 | Self::F64) { 8 } else { 4 }
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg {
    pub(crate) class: Class,
    number: u32,
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.prefix(), self.number)
    }
}

/// The text of a kernel in the making.
pub(crate) struct Emitter {
    pub(crate) arch: u32,
    pub(crate) body: String,
    counts: [u32; 6],
    labels: u32,
    /// Functions' items, each once.
    pub(super) items: Vec<&'static str>,
    /// Tables of weights, each once.
    pub(super) tables: Vec<String>,
    /// PTX version times ten.
    pub(crate) version: u32,
    /// Functions that have no code for the architecture.
    pub(super) missing: Option<&'static str>,
}

/// Writes an instruction: `op!(e, "add.s32 {}, {}, {};", d, a, b)`.
macro_rules! op {
    ($e:expr, $($text:tt)*) => {{
        $e.body.push_str("    ");
        let _ = writeln!($e.body, $($text)*);
    }};
}
pub(crate) use op;

impl Emitter {
    pub(crate) fn new(arch: u32, version: u32) -> Self {
        let counts = [0; 6];
        let (body, items, tables) = (String::new(), Vec::new(), Vec::new());
        Self { arch, body, counts, labels: 0, items, tables, version, missing: None }
    }

    pub(crate) fn reg(&mut self, class: Class) -> Reg {
        let count = &mut self.counts[class as usize];
        *count += 1;
        Reg { class, number: *count - 1 }
    }

    pub(crate) fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// The declarations of all registers.
    pub(crate) fn registers(&self) -> String {
        let mut text = String::new();
        for class in Class::ALL {
            let count = self.counts[class as usize];
            if count > 0 {
                let _ = writeln!(text, "    .reg .{} {}<{count}>;", class.ptx(), class.prefix());
            }
        }
        text
    }

    /// `instruction` of registers into a new one.
    pub(crate) fn op(&mut self, class: Class, instruction: &str, arguments: &[Reg]) -> Reg {
        let to = self.reg(class);
        let _ = write!(self.body, "    {instruction} {to}");
        for argument in arguments {
            let _ = write!(self.body, ", {argument}");
        }
        self.body.push_str(";\n");
        to
    }

    /// `instruction` of registers and a last operand as text.
    pub(crate) fn op_with(
        &mut self,
        class: Class,
        instruction: &str,
        arguments: &[Reg],
        last: impl fmt::Display,
    ) -> Reg {
        let to = self.reg(class);
        let _ = write!(self.body, "    {instruction} {to}");
        for argument in arguments {
            let _ = write!(self.body, ", {argument}");
        }
        let _ = writeln!(self.body, ", {last};");
        to
    }

    /// A value that is part of the kernel.
    pub(super) fn constant(&mut self, dtype: DType, word: u64) -> Reg {
        let class = Class::of(dtype);
        match class {
            Class::Pred => {
                let word = self.op_with(Class::B32, "mov.b32", &[], word);
                self.op_with(Class::Pred, "setp.ne.u32", &[word], 0)
            }
            Class::F32 => self.op_with(class, "mov.f32", &[], format_args!("0f{:08X}", word as u32)),
            Class::F64 => self.op_with(class, "mov.f64", &[], format_args!("0d{word:016X}")),
            Class::B32 => {
                let value = self.op_with(class, "mov.b32", &[], word as u32);
                self.normalized(dtype, value)
            }
            class => self.op_with(class, &format!("mov.{}", class.ptx()), &[], word),
        }
    }

    pub(super) fn mov_f32(&mut self, value: f32) -> Reg {
        self.constant(DType::F32, value.to_bits().into())
    }

    /// A narrow integer's 32 bits with zeros, or its sign, above.
    pub(super) fn normalized(&mut self, dtype: DType, value: Reg) -> Reg {
        match dtype {
            DType::U8 => self.op_with(Class::B32, "and.b32", &[value], 0xff),
            DType::U16 => self.op_with(Class::B32, "and.b32", &[value], 0xffff),
            DType::I8 => self.op(Class::B32, "cvt.s32.s8", &[value]),
            DType::I16 => self.op(Class::B32, "cvt.s32.s16", &[value]),
            _ => value,
        }
    }

    /// A half type's value as `f32`.
    fn widen(&mut self, dtype: DType, value: Reg) -> Reg {
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

    /// An `f32` as a half type, to nearest.
    fn narrow(&mut self, dtype: DType, value: Reg) -> Reg {
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

    /// Computes in `f32` what is of a half type.
    fn in_f32(&mut self, dtype: DType, arguments: &[Reg], f: impl FnOnce(&mut Self, &[Reg]) -> Reg) -> Reg {
        let wide: Vec<Reg> = arguments.iter().map(|&argument| self.widen(dtype, argument)).collect();
        let value = f(self, &wide);
        if value.class == Class::F32 { self.narrow(dtype, value) } else { value }
    }

    /// An operator of arguments of type `from`, to a value of type `to`.
    pub(super) fn compute(&mut self, op: Op, from: DType, to: DType, x: &[Reg]) -> Reg {
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

    /// `a` where `which` is true, else `b`.
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

    /// IEEE's minimum and maximum: NaN if one is NaN.
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
        macro_rules! call {
            ($f32:ident, $f64:ident) => {
                self.call(functions::$f32::info().code(), functions::$f64::info().code(), t, x)
            };
        }
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
            Math::Round => {
                let whole = self.op(class, &rounded("rzi"), x);
                let rest = self.op(class, &format!("sub.rn.{t}"), &[x[0], whole]);
                let rest = self.op(class, &format!("abs.{t}"), &[rest]);
                let (half, one) = if t == "f32" {
                    (self.mov_f32(0.5), self.mov_f32(1.0))
                } else {
                    (self.constant(DType::F64, 0.5f64.to_bits()), self.constant(DType::F64, 1f64.to_bits()))
                };
                let away = self.op(Class::Pred, &format!("setp.ge.{t}"), &[rest, half]);
                let step = self.op(class, &format!("copysign.{t}"), &[x[0], one]);
                let next = self.op(class, &format!("add.rn.{t}"), &[whole, step]);
                self.op(class, &format!("selp.{t}"), &[next, whole, away])
            }
            Math::Cbrt => call!(cbrt_f32, cbrt_f64),
            Math::Exp => call!(exp_f32, exp_f64),
            Math::Exp2 => call!(exp2_f32, exp2_f64),
            Math::ExpM1 => call!(exp_m1_f32, exp_m1_f64),
            Math::Ln => call!(ln_f32, ln_f64),
            Math::Log2 => call!(log2_f32, log2_f64),
            Math::Log10 => call!(log10_f32, log10_f64),
            Math::Ln1p => call!(ln_1p_f32, ln_1p_f64),
            Math::Sin => call!(sin_f32, sin_f64),
            Math::Cos => call!(cos_f32, cos_f64),
            Math::Tan => call!(tan_f32, tan_f64),
            Math::SinPi => call!(sin_pi_f32, sin_pi_f64),
            Math::CosPi => call!(cos_pi_f32, cos_pi_f64),
            Math::Asin => call!(asin_f32, asin_f64),
            Math::Acos => call!(acos_f32, acos_f64),
            Math::Atan => call!(atan_f32, atan_f64),
            Math::Sinh => call!(sinh_f32, sinh_f64),
            Math::Cosh => call!(cosh_f32, cosh_f64),
            Math::Tanh => call!(tanh_f32, tanh_f64),
            Math::Asinh => call!(asinh_f32, asinh_f64),
            Math::Acosh => call!(acosh_f32, acosh_f64),
            Math::Atanh => call!(atanh_f32, atanh_f64),
            Math::Erf => call!(erf_f32, erf_f64),
            Math::Erfc => call!(erfc_f32, erfc_f64),
        }
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
                // Rounded to odd on the way, so that it is rounded once.
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
            // The other operations of `f32` give, rounded once more, what the half type's would.
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
            // The hardware takes a count of 32 bits, and more than the width for the width.
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

    /// A division of integers by zero is a fault: that of any of these divisors.
    pub(super) fn check_divisors(&mut self, divisors: &[Reg]) {
        let mut zero: Option<Reg> = None;
        for &divisor in divisors {
            let bits = if divisor.class == Class::B64 { 64 } else { 32 };
            zero = Some(match zero {
                None => self.op_with(Class::Pred, &format!("setp.eq.s{bits}"), &[divisor], 0),
                Some(other) => {
                    self.op_with(Class::Pred, &format!("setp.eq.or.s{bits}"), &[divisor], format_args!("0, {other}"))
                }
            });
        }
        let (Some(zero), label) = (zero, self.label()) else { return };
        op!(self, "@!{zero} bra {label};");
        self.function(functions::division_by_zero::info().code(), &[]);
        // It does not return: nothing needs to be kept over the call.
        op!(self, "exit;");
        self.place(&label);
    }

    /// An index is below `len`, or it is a fault; both are of 64 bits.
    pub(super) fn check_index(&mut self, index: Reg, len: Reg) {
        let (fine, label) = (self.op(Class::Pred, "setp.lt.u64", &[index, len]), self.label());
        op!(self, "@{fine} bra {label};");
        self.function(functions::index_out_of_bounds::info().code(), &[index, len]);
        op!(self, "exit;");
        self.place(&label);
    }

    pub(crate) fn place(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
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

    /// An `f32` that was cut off, rounded to odd: rounding it once more is rounding once.
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
        // The conversion saturates; NaN is for us to see to.
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

    fn call(&mut self, f32: &'static FunctionCode, f64: &'static FunctionCode, t: &str, x: &[Reg]) -> Reg {
        self.function(if t == "f32" { f32 } else { f64 }, x)
    }

    /// A call of a device function, with its code.
    pub(super) fn function(&mut self, code: &'static FunctionCode, x: &[Reg]) -> Reg {
        let Some(image) = code.image(self.arch) else {
            self.missing.get_or_insert(code.name());
            return self.reg(value_class(code.result()));
        };
        self.version = self.version.max(image.version);
        for item in image.items {
            if !self.items.contains(item) {
                self.items.push(item);
            }
        }
        self.body.push_str("    {\n");
        let mut names = Vec::new();
        for (i, (&param, &argument)) in code.params().iter().zip(x).enumerate() {
            // A predicate and a half have no room of their own.
            let argument = match argument.class {
                Class::Pred => self.op_with(Class::B32, "selp.b32", &[], format_args!("1, 0, {argument}")),
                _ => argument,
            };
            op!(self, ".param {} p{i};", param.param());
            op!(self, "st.param.{} [p{i}], {argument};", argument.class.ptx());
            names.push(format!("p{i}"));
        }
        let result = code.result();
        op!(self, ".param {} result;", result.param());
        let list = if names.is_empty() { String::new() } else { format!(", ({})", names.join(", ")) };
        op!(self, "call (result), {}{list};", code.symbol());
        let class = value_class(result);
        let value = if class == Class::Pred {
            let word = self.op_with(Class::B32, "ld.param.b32", &[], "[result]");
            self.op_with(Class::Pred, "setp.ne.u32", &[word], 0)
        } else {
            self.op_with(class, &format!("ld.param.{}", class.ptx()), &[], "[result]")
        };
        self.body.push_str("    }\n");
        value
    }
}

fn value_class(value: ValueType) -> Class {
    match value {
        ValueType::Bool => Class::Pred,
        ValueType::I64 | ValueType::U64 => Class::B64,
        ValueType::F32 => Class::F32,
        ValueType::F64 => Class::F64,
        _ => Class::B32,
    }
}
