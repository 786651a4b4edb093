//! The text of a kernel: registers, instructions, and calls of device functions.
//!
//! Values narrower than 32 bits are in 32-bit registers, with zeros or copies of their sign above. A `bool` is a predicate. `f16` and
//! `bf16` are in registers of 16 bits, as their bits.

use std::fmt::{self, Write};

use primitives_host::{FunctionCode, ValueType};

use crate::expr::dtype::DType;
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

    /// Returns the class of values of a type.
    pub(crate) fn of(dtype: DType) -> Self {
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

    /// Returns the number of bytes of a parameter.
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

/// The text of a kernel that is not finished.
pub(crate) struct Emitter {
    pub(crate) arch: u32,
    pub(crate) body: String,
    counts: [u32; 6],
    labels: u32,
    /// The items of functions. Each is listed once.
    pub(crate) items: Vec<&'static str>,
    /// The tables of weights. Each is listed once.
    pub(super) tables: Vec<String>,
    /// The version of PTX, times ten.
    pub(crate) version: u32,
    /// A function that has no code for the architecture.
    pub(crate) missing: Option<&'static str>,
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

    /// Returns the declarations of all registers.
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

    /// Writes `instruction` with registers as its operands, and a new register for the result.
    pub(crate) fn op(&mut self, class: Class, instruction: &str, arguments: &[Reg]) -> Reg {
        let to = self.reg(class);
        let _ = write!(self.body, "    {instruction} {to}");
        for argument in arguments {
            let _ = write!(self.body, ", {argument}");
        }
        self.body.push_str(";\n");
        to
    }

    /// Writes `instruction` with registers and a last operand, given as text.
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

    /// Returns a register with a value that is part of the kernel.
    pub(crate) fn constant(&mut self, dtype: DType, word: u64) -> Reg {
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

    /// Returns the 32 bits of a narrow integer, with zeros or copies of its sign above.
    pub(crate) fn normalized(&mut self, dtype: DType, value: Reg) -> Reg {
        match dtype {
            DType::U8 => self.op_with(Class::B32, "and.b32", &[value], 0xff),
            DType::U16 => self.op_with(Class::B32, "and.b32", &[value], 0xffff),
            DType::I8 => self.op(Class::B32, "cvt.s32.s8", &[value]),
            DType::I16 => self.op(Class::B32, "cvt.s32.s16", &[value]),
            _ => value,
        }
    }

    /// Writes a check of divisors of integers. It faults if one of them is zero.
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
        // The call does not return, so nothing needs to be kept over it.
        op!(self, "exit;");
        self.place(&label);
    }

    /// Writes a check that an index is below `len`. It faults otherwise. Both have 64 bits.
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

    /// Writes a call of a device function, and adds the function's code.
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
            // A predicate is passed as a register of 32 bits.
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
