//! Registers, integers and real values of a kernel that is being written.
//!
//! Arithmetic is explicit: every operation rounds to nearest, and `fma` adds products only where this module says so. Results have the same
//! bits wherever the text runs.

use std::fmt::Write;

use crate::expr::ptx::emit::{Class, Emitter, Reg, op};

/// The type of a complex number's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super::super) enum Real {
    F32,
    F64,
}

impl Real {
    /// Returns the bytes of a complex number.
    pub(in super::super) fn number(self) -> u32 {
        match self {
            Self::F32 => 8,
            Self::F64 => 16,
        }
    }

    pub(in super::super) fn class(self) -> Class {
        match self {
            Self::F32 => Class::F32,
            Self::F64 => Class::F64,
        }
    }

    pub(in super::super) fn ptx(self) -> &'static str {
        self.class().ptx()
    }

    /// Returns the bits of the nearest value.
    pub(in super::super) fn bits(self, value: f64) -> u64 {
        match self {
            Self::F32 => (value as f32).to_bits().into(),
            Self::F64 => value.to_bits(),
        }
    }

    fn literal(self, value: f64) -> String {
        match self {
            Self::F32 => format!("0f{:08X}", self.bits(value)),
            Self::F64 => format!("0d{:016X}", self.bits(value)),
        }
    }
}

/// A real value: a register times a factor. Signs and √½ wait for the next addition, which uses them as the multiplier of an `fma`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Value {
    pub(in super::super) factor: f64,
    pub(in super::super) reg: Reg,
}

impl Value {
    pub(in super::super) fn of(reg: Reg) -> Self {
        Self { factor: 1.0, reg }
    }

    pub(in super::super) fn negated(self) -> Self {
        self.times(-1.0)
    }

    /// Multiplies by a constant, without an instruction.
    pub(in super::super) fn times(self, factor: f64) -> Self {
        Self { factor: self.factor * factor, ..self }
    }

    /// Returns whether the factor is a sign.
    fn is_plain(self) -> bool {
        self.factor.abs() == 1.0
    }
}

/// A complex value.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Number {
    pub(in super::super) re: Value,
    pub(in super::super) im: Value,
}

impl Number {
    pub(in super::super) fn of([re, im]: [Reg; 2]) -> Self {
        Self { re: Value::of(re), im: Value::of(im) }
    }

    /// Exchanges the parts. An inverse transform is a forward transform of such numbers.
    pub(in super::super) fn exchanged(self) -> Self {
        Self { re: self.im, im: self.re }
    }

    /// Multiplies by -i.
    pub(in super::super) fn turned(self) -> Self {
        Self { re: self.im, im: self.re.negated() }
    }

    pub(in super::super) fn negated(self) -> Self {
        Self { re: self.re.negated(), im: self.im.negated() }
    }

    pub(in super::super) fn conjugate(self) -> Self {
        Self { re: self.re, im: self.im.negated() }
    }
}

/// A memory access: the space, the address, and the threads that access it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Place {
    /// `global`, `global.nc`, `shared` and the like.
    pub(in super::super) space: &'static str,
    pub(in super::super) address: Reg,
    /// The offset from the address, in bytes.
    pub(in super::super) offset: i64,
    /// The predicate of threads that access it.
    pub(in super::super) guard: Option<Reg>,
}

impl Place {
    /// Returns whether it accesses the input or the output.
    fn is_end(&self) -> bool {
        matches!(self.space, "global" | "global.cg" | "global.cs")
    }
}

/// A kernel's text, and the type that it computes with.
pub(in super::super) struct Code {
    pub(in super::super) e: Emitter,
    pub(in super::super) real: Real,
    /// Whether numbers of the input, and those of the output, are accessed part by part, because they may not be aligned to their size.
    pub(in super::super) split: [bool; 2],
    /// Whether the input has real numbers, without imaginary parts.
    pub(in super::super) of_reals: bool,
    /// Whether numbers of the input are halved.
    pub(in super::super) halved: bool,
    /// The factor of numbers of the output, if it is not 1.
    pub(in super::super) scale: Option<Reg>,
    /// The blocks of a cluster.
    pub(in super::super) cluster: u32,
}

/// Integers below this are divided by a multiplication. Numbers of threads and of butterflies are below it.
pub(in super::super) const SMALL: u32 = 1 << 16;

/// Operations on 32-bit integers.
impl Code {
    pub(in super::super) fn new(real: Real, arch: u32, version: u32) -> Self {
        let e = Emitter::new(arch, version);
        Self { e, real, split: [false; 2], of_reals: false, halved: false, scale: None, cluster: 1 }
    }

    /// Loads a parameter that is an integer.
    pub(in super::super) fn integer_parameter(&mut self, number: usize) -> Reg {
        self.e.op_with(Class::B32, "ld.param.u32", &[], format_args!("[a{number}]"))
    }

    /// Returns a constant, a special register such as `%tid.x`, or the address of a variable.
    pub(in super::super) fn integer(&mut self, value: impl std::fmt::Display) -> Reg {
        self.e.op_with(Class::B32, "mov.u32", &[], value)
    }

    /// Returns `a * by`.
    pub(in super::super) fn scaled(&mut self, a: Reg, by: u32) -> Reg {
        match by {
            1 => a,
            _ if by.is_power_of_two() => self.e.op_with(Class::B32, "shl.b32", &[a], by.ilog2()),
            _ => self.e.op_with(Class::B32, "mul.lo.u32", &[a], by),
        }
    }

    /// Returns `a * by + b`.
    pub(in super::super) fn scaled_plus(&mut self, a: Reg, by: u32, b: Reg) -> Reg {
        match by {
            0 => b,
            1 => self.e.op(Class::B32, "add.u32", &[a, b]),
            _ => self.e.op_with(Class::B32, "mad.lo.u32", &[a], format_args!("{by}, {b}")),
        }
    }

    /// Returns `a + b`.
    pub(in super::super) fn plus(&mut self, a: Reg, b: u32) -> Reg {
        if b == 0 { a } else { self.e.op_with(Class::B32, "add.u32", &[a], b) }
    }

    /// Returns `a - b`.
    pub(in super::super) fn less(&mut self, a: u32, b: Reg) -> Reg {
        let to = self.e.reg(Class::B32);
        op!(self.e, "sub.u32 {to}, {a}, {b};");
        to
    }

    /// Returns the quotient of a number that is less than `most`.
    pub(in super::super) fn quotient(&mut self, a: Reg, by: u32, most: u32) -> Reg {
        match by {
            1 => a,
            _ if by.is_power_of_two() => self.e.op_with(Class::B32, "shr.u32", &[a], by.ilog2()),
            // The reciprocal is rounded up. The difference is too small to change the quotient.
            _ if most <= SMALL => self.e.op_with(Class::B32, "mul.hi.u32", &[a], (1u64 << 32) / u64::from(by) + 1),
            _ => self.e.op_with(Class::B32, "div.u32", &[a], by),
        }
    }

    /// Returns the quotient and the remainder of a number that is less than `most`.
    pub(in super::super) fn divided(&mut self, a: Reg, by: u32, most: u32) -> (Reg, Reg) {
        if by == 1 {
            return (a, self.integer(0));
        }
        let quotient = self.quotient(a, by, most);
        if by.is_power_of_two() {
            return (quotient, self.e.op_with(Class::B32, "and.b32", &[a], by - 1));
        }
        let product = self.e.op_with(Class::B32, "mul.lo.u32", &[quotient], by);
        (quotient, self.e.op(Class::B32, "sub.u32", &[a, product]))
    }

    /// Returns whether `a < b`.
    pub(in super::super) fn below(&mut self, a: Reg, b: impl std::fmt::Display) -> Reg {
        self.e.op_with(Class::Pred, "setp.lt.u32", &[a], b)
    }

    pub(in super::super) fn is_zero(&mut self, a: Reg) -> Reg {
        self.e.op_with(Class::Pred, "setp.eq.u32", &[a], 0)
    }

    /// Returns `a` where `which` holds, and `b` elsewhere.
    pub(in super::super) fn chosen(&mut self, which: Reg, a: u32, b: Reg) -> Reg {
        let to = self.e.reg(Class::B32);
        op!(self.e, "selp.b32 {to}, {a}, {b}, {which};");
        to
    }

    /// Returns the predicate of threads for which both hold.
    pub(in super::super) fn both(&mut self, a: Option<Reg>, b: Option<Reg>) -> Option<Reg> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.e.op(Class::Pred, "and.pred", &[a, b])),
            _ => a.or(b),
        }
    }
}

/// Addresses and accesses.
impl Code {
    /// Loads a parameter that is an address of global memory.
    pub(in super::super) fn pointer_parameter(&mut self, number: usize) -> Reg {
        let address = self.e.op_with(Class::B64, "ld.param.u64", &[], format_args!("[a{number}]"));
        self.e.op(Class::B64, "cvta.to.global.u64", &[address])
    }

    /// Returns the address of a complex number.
    pub(in super::super) fn address(&mut self, of: Reg, index: Reg) -> Reg {
        let bytes = self.e.op_with(Class::B64, "mul.wide.u32", &[index], self.real.number());
        self.e.op(Class::B64, "add.u64", &[of, bytes])
    }

    /// Returns the address of a number of the input, or of the output.
    pub(in super::super) fn end_address(&mut self, side: usize, of: Reg, index: Reg) -> Reg {
        if side == 1 || !self.of_reals {
            return self.address(of, index);
        }
        let bytes = self.e.op_with(Class::B64, "mul.wide.u32", &[index], self.real.number() / 2);
        self.e.op(Class::B64, "add.u64", &[of, bytes])
    }

    /// Returns the place with an offset that an instruction can hold.
    fn near(&mut self, place: Place) -> Place {
        // The offsets of both parts must fit.
        if [place.offset, place.offset + 8].into_iter().all(|offset| i32::try_from(offset).is_ok()) {
            return place;
        }
        let address = self.e.op_with(Class::B64, "add.s64", &[place.address], place.offset);
        Place { address, offset: 0, ..place }
    }

    fn guard(place: &Place) -> String {
        place.guard.map_or(String::new(), |guard| format!("@{guard} "))
    }

    pub(in super::super) fn load(&mut self, place: Place) -> [Reg; 2] {
        if self.of_reals && place.is_end() {
            return self.load_real(Place { offset: place.offset / 2, ..place });
        }
        let place = self.near(place);
        let [re, im] = [(); 2].map(|()| self.e.reg(self.real.class()));
        let is_split = self.split[0] && place.is_end();
        let (guard, Place { space, address, offset, .. }, t) = (Self::guard(&place), place, self.real.ptx());
        if is_split {
            let half = i64::from(self.real.number() / 2);
            op!(self.e, "{guard}ld.{space}.{t} {re}, [{address}{}];", Offset(offset));
            op!(self.e, "{guard}ld.{space}.{t} {im}, [{address}{}];", Offset(offset + half));
        } else {
            op!(self.e, "{guard}ld.{space}.v2.{t} {{{re}, {im}}}, [{address}{}];", Offset(offset));
        }
        if self.halved && place.is_end() { [re, im].map(|part| self.product(part, 0.5)) } else { [re, im] }
    }

    fn load_real(&mut self, place: Place) -> [Reg; 2] {
        let place = self.near(place);
        let re = self.e.reg(self.real.class());
        let (guard, Place { space, address, offset, .. }, t) = (Self::guard(&place), place, self.real.ptx());
        op!(self.e, "{guard}ld.{space}.{t} {re}, [{address}{}];", Offset(offset));
        [re, self.zero()]
    }

    pub(in super::super) fn store(&mut self, place: Place, number: Number) {
        let place = self.near(place);
        let scale = self.scale.filter(|_| place.is_end());
        let [re, im] = self.scaled_parts(number, scale);
        let is_split = self.split[1] && place.is_end();
        let (guard, Place { space, address, offset, .. }, t) = (Self::guard(&place), place, self.real.ptx());
        if is_split {
            let half = i64::from(self.real.number() / 2);
            op!(self.e, "{guard}st.{space}.{t} [{address}{}], {re};", Offset(offset));
            op!(self.e, "{guard}st.{space}.{t} [{address}{}], {im};", Offset(offset + half));
        } else {
            op!(self.e, "{guard}st.{space}.v2.{t} [{address}{}], {{{re}, {im}}};", Offset(offset));
        }
    }

    /// Returns registers that have the parts of a number, multiplied by a factor if there is one.
    fn scaled_parts(&mut self, number: Number, scale: Option<Reg>) -> [Reg; 2] {
        [number.re, number.im].map(|part| {
            let part = self.register(part);
            scale.map_or(part, |scale| self.float("mul.rn", &[part, scale]))
        })
    }

    /// Returns a number whose parts are registers, multiplied by a factor if there is one.
    pub(in super::super) fn scaled_number(&mut self, number: Number, scale: Option<Reg>) -> Number {
        Number::of(self.scaled_parts(number, scale))
    }

    /// Writes a barrier of a warp, or of the block.
    pub(in super::super) fn barrier(&mut self, warp: bool) {
        op!(self.e, "{}", if warp { "bar.warp.sync -1;" } else { "bar.sync 0;" });
    }
}

struct Offset(i64);

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => Ok(()),
            // The assembler accepts a negative offset after a plus sign.
            offset => write!(f, "+{offset}"),
        }
    }
}

/// Operations on real values.
impl Code {
    /// Loads a parameter that is a real value.
    pub(in super::super) fn real_parameter(&mut self, number: usize) -> Reg {
        let (class, name) = (self.real.class(), format!("ld.param.{}", self.real.ptx()));
        self.e.op_with(class, &name, &[], format_args!("[a{number}]"))
    }

    fn float(&mut self, name: &str, arguments: &[Reg]) -> Reg {
        self.e.op(self.real.class(), &format!("{name}.{}", self.real.ptx()), arguments)
    }

    /// Returns `a * by` for a constant `by`.
    fn product(&mut self, a: Reg, by: f64) -> Reg {
        let (class, literal) = (self.real.class(), self.real.literal(by));
        self.e.op_with(class, &format!("mul.rn.{}", self.real.ptx()), &[a], literal)
    }

    /// Returns `a * by + b` for a constant `by`.
    fn fused(&mut self, a: Reg, by: f64, b: Reg) -> Reg {
        let (class, literal) = (self.real.class(), self.real.literal(by));
        self.e.op_with(class, &format!("fma.rn.{}", self.real.ptx()), &[a], format_args!("{literal}, {b}"))
    }

    /// Returns a register that has the value itself.
    pub(in super::super) fn register(&mut self, a: Value) -> Reg {
        match a.factor {
            1.0 => a.reg,
            -1.0 => self.float("neg", &[a.reg]),
            factor => self.product(a.reg, factor),
        }
    }

    fn plain(&mut self, a: Value) -> Value {
        if a.is_plain() { a } else { Value::of(self.register(a)) }
    }

    pub(in super::super) fn add(&mut self, a: Value, b: Value) -> Value {
        if a.factor == b.factor {
            return Value { factor: a.factor, reg: self.float("add.rn", &[a.reg, b.reg]) };
        }
        if a.factor == -b.factor {
            let (plus, minus) = if a.factor > 0.0 { (a, b) } else { (b, a) };
            return Value { factor: plus.factor, reg: self.float("sub.rn", &[plus.reg, minus.reg]) };
        }
        let (a, b) = if b.is_plain() && !a.is_plain() { (b, a) } else { (a, b) };
        let a = self.plain(a);
        Value { factor: a.factor, reg: self.fused(b.reg, b.factor / a.factor, a.reg) }
    }

    pub(in super::super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.add(a, b.negated())
    }

    /// Returns `a * by`, rounded.
    pub(in super::super) fn scale(&mut self, a: Value, by: f64) -> Value {
        Value::of(self.product(a.reg, a.factor * by))
    }

    /// Returns `sum + a * by`.
    pub(in super::super) fn add_product(&mut self, sum: Value, a: Value, by: f64) -> Value {
        let sum = self.plain(sum);
        Value { factor: sum.factor, reg: self.fused(a.reg, a.factor * by / sum.factor, sum.reg) }
    }

    pub(in super::super) fn zero(&mut self) -> Reg {
        let (class, literal) = (self.real.class(), self.real.literal(0.0));
        self.e.op_with(class, &format!("mov.{}", self.real.ptx()), &[], literal)
    }
}

/// Operations on complex values.
impl Code {
    pub(in super::super) fn add_number(&mut self, a: Number, b: Number) -> Number {
        Number { re: self.add(a.re, b.re), im: self.add(a.im, b.im) }
    }

    pub(in super::super) fn sub_number(&mut self, a: Number, b: Number) -> Number {
        self.add_number(a, b.negated())
    }

    /// Returns `a * w`, where `w` is in registers. This takes two products and two `fma`.
    pub(in super::super) fn multiply(&mut self, a: Number, w: [Reg; 2]) -> Number {
        let a = if a.re.factor.abs() == a.im.factor.abs() {
            a
        } else {
            Number { re: Value::of(self.register(a.re)), im: Value::of(self.register(a.im)) }
        };
        let (re, im) = (a.re.reg, a.im.reg);
        let mut products = [self.float("mul.rn", &[im, w[1]]), self.float("mul.rn", &[re, w[1]])];
        // This is the product that is subtracted, after the signs of the factors are taken out.
        let subtracted = if a.re.factor == a.im.factor { 0 } else { 1 };
        products[subtracted] = self.float("neg", &[products[subtracted]]);
        Number {
            re: Value { factor: a.re.factor, reg: self.float("fma.rn", &[re, w[0], products[0]]) },
            im: Value { factor: a.im.factor, reg: self.float("fma.rn", &[im, w[0], products[1]]) },
        }
    }

    /// Returns `a` where `which` holds, and `b` elsewhere.
    pub(in super::super) fn choose_number(&mut self, which: Reg, a: Number, b: Number) -> Number {
        let parts = [(a.re, b.re), (a.im, b.im)].map(|(a, b)| {
            let (a, b) = (self.register(a), self.register(b));
            self.e.op(self.real.class(), &format!("selp.{}", self.real.ptx()), &[a, b, which])
        });
        Number::of(parts)
    }

    /// Drops the imaginary part where `which` holds.
    pub(in super::super) fn real_where(&mut self, which: Reg, a: [Reg; 2]) -> [Reg; 2] {
        let zero = self.zero();
        [a[0], self.e.op(self.real.class(), &format!("selp.{}", self.real.ptx()), &[zero, a[1], which])]
    }
}
