//! The element types of expressions, as values and as types.

use half::{bf16, f16};
use primitives_gpu::Element;

/// An element type of expressions, as a value.
///
/// # Promotion
///
/// An operator on two types works in their [common type](DType::promote):
///
/// | operands | common type |
/// |---|---|
/// | the same type | that type |
/// | `bool` and a number | the number's type |
/// | an integer and a float | the float's type |
/// | two floats | the wider type; `f32` for `f16` and `bf16`, because neither holds all values of the other |
/// | two signed or two unsigned integers | the wider type |
/// | a signed and an unsigned integer | the smallest signed type that holds both; for `u64` there is no such type, so there is no rule |
///
/// For typed [expressions](crate::expr::Expr), the compiler finds the common type, through [`Promote`]. A scalar takes the type of the
/// operand that it is combined with, as a literal does: `x * 2.0` has the type of `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "Rust's names")]
#[non_exhaustive]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    /// All element types.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    /// Returns Rust's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Returns the size of an element in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Returns whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Returns whether it is an integer type. `bool` is not an integer type.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool)
    }

    /// Returns whether it has negative values.
    pub const fn is_signed(self) -> bool {
        self.is_float() || matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns the type in which an operator on these two types works, or `None` if there is no rule.
    pub const fn promote(self, other: Self) -> Option<Self> {
        const fn wider(a: DType, b: DType) -> DType {
            if a.size() >= b.size() { a } else { b }
        }
        Some(match (self, other) {
            (Self::Bool, other) => other,
            (this, Self::Bool) => this,
            (Self::F16, Self::BF16) | (Self::BF16, Self::F16) => Self::F32,
            (a, b) if a.is_float() == b.is_float() && a.is_signed() == b.is_signed() => wider(a, b),
            (a, b) if a.is_float() != b.is_float() => {
                if a.is_float() {
                    a
                } else {
                    b
                }
            }
            (a, b) => {
                let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
                let above = match unsigned {
                    Self::U8 => Self::I16,
                    Self::U16 => Self::I32,
                    Self::U32 => Self::I64,
                    _ => return None,
                };
                wider(signed, above)
            }
        })
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

mod sealed {
    /// A value's bits in a word, zero-extended.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait ToWord: Copy {
        fn to_word(self) -> u64;
        fn from_word(word: u64) -> Self;
    }
}
pub(crate) use sealed::ToWord;

/// A Rust type that is an element type of expressions: `bool`, integers, `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element type of expressions",
    label = "not `bool`, an integer of 8 to 64 bits, `f16`, `bf16`, `f32` or `f64`"
)]
pub trait Scalar: Element + ToWord + PartialEq + std::fmt::Debug {
    /// The type as a value.
    const DTYPE: DType;
}

macro_rules! scalars {
    ($($t:ty: $dtype:ident, $x:ident: $to:expr, $word:ident: $from:expr;)*) => {$(
        impl ToWord for $t {
            #[inline]
            fn to_word(self) -> u64 { let $x = self; $to }
            #[inline]
            fn from_word($word: u64) -> Self { $from }
        }
        impl Scalar for $t {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}
scalars! {
    bool: Bool, x: x.into(), word: word != 0;
    i8: I8, x: x as u8 as u64, word: word as i8;
    i16: I16, x: x as u16 as u64, word: word as i16;
    i32: I32, x: x as u32 as u64, word: word as i32;
    i64: I64, x: x as u64, word: word as i64;
    u8: U8, x: x.into(), word: word as u8;
    u16: U16, x: x.into(), word: word as u16;
    u32: U32, x: x.into(), word: word as u32;
    u64: U64, x: x, word: word;
    f16: F16, x: x.to_bits().into(), word: f16::from_bits(word as u16);
    bf16: BF16, x: x.to_bits().into(), word: bf16::from_bits(word as u16);
    f32: F32, x: x.to_bits().into(), word: f32::from_bits(word as u32);
    f64: F64, x: x.to_bits(), word: f64::from_bits(word);
}

/// A number: every [`Scalar`] but `bool`.
pub trait Numeric: Scalar {}
/// A floating-point [`Scalar`].
pub trait Floating: Numeric {}
/// An integer [`Scalar`].
pub trait Integral: Numeric + Logical {}
/// A [`Scalar`] with bitwise operations: `bool` and the integers.
pub trait Logical: Scalar {}

macro_rules! kinds {
    ($($kind:ident: $($t:ty),*;)*) => { $($(impl $kind for $t {})*)* };
}
kinds! {
    Numeric: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Floating: f16, bf16, f32, f64;
    Integral: i8, i16, i32, i64, u8, u16, u32, u64;
    Logical: bool, i8, i16, i32, i64, u8, u16, u32, u64;
}

/// The common type of two element types: the rules of [`DType`], for the compiler.
#[diagnostic::on_unimplemented(
    message = "no operator takes `{Self}` and `{U}` together",
    label = "no common type",
    note = "convert one of the two with `.cast::<…>()`"
)]
pub trait Promote<U: Scalar>: Scalar {
    /// The common type.
    type Output: Scalar;
}

macro_rules! promote {
    ($($a:ty: $($b:ty => $c:ty),*;)*) => {$($(
        impl Promote<$b> for $a { type Output = $c; }
        impl Promote<$a> for $b { type Output = $c; }
    )*)*};
}
macro_rules! promote_self {
    ($($a:ty),*) => { $(impl Promote<$a> for $a { type Output = $a; })* };
}
promote_self!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
promote! {
    bool: i8 => i8, i16 => i16, i32 => i32, i64 => i64, u8 => u8, u16 => u16, u32 => u32, u64 => u64,
        f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    i8: i16 => i16, i32 => i32, i64 => i64, u8 => i16, u16 => i32, u32 => i64,
        f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    i16: i32 => i32, i64 => i64, u8 => i16, u16 => i32, u32 => i64, f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    i32: i64 => i64, u8 => i32, u16 => i32, u32 => i64, f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    i64: u8 => i64, u16 => i64, u32 => i64, f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    u8: u16 => u16, u32 => u32, u64 => u64, f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    u16: u32 => u32, u64 => u64, f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    u32: u64 => u64, f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    u64: f16 => f16, bf16 => bf16, f32 => f32, f64 => f64;
    f16: bf16 => f32, f32 => f32, f64 => f64;
    bf16: f32 => f32, f64 => f64;
    f32: f64 => f64;
}

/// Calls `$body` with `$T` as the Rust type of a [`DType`].
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::expr::dtype::with_type!(@ $dtype, $T => $body;
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $t:ty),*) => {
        match $dtype {
            $($crate::expr::DType::$variant => {
                type $T = $t;
                $body
            })*
        }
    };
}
pub(crate) use with_type;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_rules_are_those_of_the_table() {
        fn check<A: Promote<B>, B: Scalar>() {
            assert_eq!(A::DTYPE.promote(B::DTYPE), Some(A::Output::DTYPE), "{} and {}", A::DTYPE, B::DTYPE);
        }
        macro_rules! all {
            ($($a:ty),*) => { $(check::<$a, $a>(); check::<$a, bool>(); check::<$a, f32>(); check::<f64, $a>();
                check::<f16, $a>();)* };
        }
        all!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
        check::<i8, u8>();
        check::<i8, u32>();
        check::<i64, u32>();
        check::<u16, i16>();
        check::<f16, bf16>();
        assert_eq!(DType::I32.promote(DType::U64), None);
        for a in DType::ALL {
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} and {b}");
            }
        }
    }
}
