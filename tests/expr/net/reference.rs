//! The results of operators, in plain Rust.

use kernel_primitives::expr::DType;

use super::with;
use crate::elementary::elementary;
use crate::{Sample, Wide};

/// Operators of one value, with a result of its own type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum One {
    Neg,
    Abs,
    Square,
    Relu,
    Not,
    Recip,
    Sqrt,
    Floor,
    Ceil,
    Trunc,
    Round,
    RoundTiesEven,
    Approximate(Approximate),
}

macro_rules! approximate {
    ($($name:ident $variant:ident $method:ident $functions:tt $limits:tt $reference:expr;)*) => {
        /// Functions of one value whose rounding is not defined: those of the table of elementary functions, and others.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) enum Approximate {
            Rsqrt,
            SinPi,
            CosPi,
            $($variant,)*
            /// The sine, as a call of a device function.
            Call,
        }

        /// The functions that are drawn. `Call` is drawn for some types only.
        const APPROXIMATE: &[Approximate] =
            &[Approximate::Rsqrt, Approximate::SinPi, Approximate::CosPi, $(Approximate::$variant),*];

        /// Returns the reference.
        fn approximate(function: Approximate) -> fn(f64) -> f64 {
            match function {
                Approximate::Rsqrt => |x| 1.0 / x.sqrt(),
                Approximate::SinPi => |x| crate::operators::sin_of_half_turns(x, 0.0),
                Approximate::CosPi => |x| crate::operators::sin_of_half_turns(x, 1.0),
                $(Approximate::$variant => $reference,)*
                Approximate::Call => f64::sin,
            }
        }
    };
}
elementary!(approximate);

/// Operators of two values of one type, with a result of that type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Two {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    FloorDiv,
    FloorRem,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Pow,
    Atan2,
    Hypot,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

pub(super) const COMPARE: [Compare; 6] = [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];

/// Returns an operator of one value that a type has. Half of the operators that are drawn are exact.
pub(super) fn one(dtype: DType, number: u8) -> One {
    use One::*;
    let of = |all: &[One]| all[usize::from(number) % all.len()];
    match dtype {
        DType::Bool => Not,
        dtype if dtype.is_integer() => of(&[Neg, Abs, Square, Relu, Not]),
        DType::F32 | DType::F64 if number == 255 => Approximate(self::Approximate::Call),
        _ if number % 2 == 1 => Approximate(APPROXIMATE[usize::from(number / 2) % APPROXIMATE.len()]),
        _ => [Neg, Abs, Square, Relu, Recip, Sqrt, Floor, Ceil, Trunc, Round, RoundTiesEven]
            [usize::from(number / 2) % 11],
    }
}

/// Returns an operator of two values that a type has.
pub(super) fn two(dtype: DType, number: u8) -> Two {
    use Two::*;
    let of = |all: &[Two]| all[usize::from(number) % all.len()];
    match dtype {
        DType::Bool => of(&[And, Or, Xor, Min, Max]),
        dtype if dtype.is_integer() => {
            of(&[Add, Sub, Mul, Div, Rem, FloorDiv, FloorRem, Min, Max, And, Or, Xor, Shl, Shr])
        }
        _ => of(&[Add, Sub, Mul, Div, Add, Sub, Mul, Div, Rem, FloorDiv, FloorRem, Min, Max, Pow, Atan2, Hypot]),
    }
}

/// Returns the allowed error of a result in units in the last place.
pub(super) fn ulps(dtype: DType) -> u64 {
    match dtype {
        DType::F16 | DType::BF16 => 1,
        _ => 6,
    }
}

/// Converts a number to a type, by the rules of `as`: it is rounded once, or wrapped.
pub(super) fn convert(value: Wide, dtype: DType) -> Wide {
    let value = match value {
        // The number becomes an `f64` whose last bit stands for the lost part, so that only the next rounding counts.
        Wide::Int(x) if matches!(dtype, DType::F16 | DType::BF16) => {
            let low = (128 - x.unsigned_abs().leading_zeros()).saturating_sub(52);
            let kept = x.unsigned_abs() >> low;
            let sticky = u128::from(kept << low != x.unsigned_abs());
            let magnitude = ((kept | sticky) << low) as f64;
            Wide::Float(if x < 0 { -magnitude } else { magnitude })
        }
        other => other,
    };
    with!(dtype, T => T::of(value).wide())
}

fn float(value: Wide) -> f64 {
    match value {
        Wide::Int(x) => x as f64,
        Wide::Float(x) => x,
    }
}

fn int(value: Wide) -> i128 {
    match value {
        Wide::Int(x) => x,
        Wide::Float(x) => unreachable!("{x} is no integer"),
    }
}

pub(super) fn truth(value: Wide) -> bool {
    int(value) != 0
}

/// Returns IEEE's minimum or maximum: NaN if one value is NaN, and −0 is less than +0.
fn extreme(a: f64, b: f64, least: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == b {
        if a.is_sign_negative() == least { a } else { b }
    } else if (a < b) == least {
        a
    } else {
        b
    }
}

/// Returns the value of an operator, exact or rounded once. For an approximation, this is the rounded value of the exact function.
pub(super) fn apply_one(op: One, dtype: DType, a: Wide) -> Wide {
    if !dtype.is_float() {
        let a = int(a);
        let value = match op {
            One::Neg => -a,
            One::Abs => a.abs(),
            One::Square => a.wrapping_mul(a),
            One::Relu => a.max(0),
            One::Not if dtype == DType::Bool => 1 - a,
            One::Not => !a,
            other => unreachable!("{other:?} of {dtype}"),
        };
        return convert(Wide::Int(value), dtype);
    }
    let a = float(a);
    // If the result of one operation of a narrower type is rounded in `f64` and once more, this is the same as one rounding.
    let value = match op {
        One::Neg => -a,
        One::Abs => a.abs(),
        One::Square => a * a,
        One::Relu => extreme(a, 0.0, false),
        One::Recip => 1.0 / a,
        One::Sqrt => a.sqrt(),
        One::Floor => a.floor(),
        One::Ceil => a.ceil(),
        One::Trunc => a.trunc(),
        One::Round => a.round(),
        One::RoundTiesEven => a.round_ties_even(),
        One::Approximate(function) => approximate(function)(a),
        One::Not => unreachable!("{op:?} of {dtype}"),
    };
    convert(Wide::Float(value), dtype)
}

/// Works as [`apply_one`], for two values. The caller must avoid a division of integers by zero.
pub(super) fn apply_two(op: Two, dtype: DType, a: Wide, b: Wide) -> Wide {
    if !dtype.is_float() {
        let (a, b) = (int(a), int(b));
        let bits = 8 * dtype.size() as i128;
        let rest = || {
            let rest = a.rem_euclid(b);
            if rest != 0 && b < 0 { rest + b } else { rest }
        };
        let value = match op {
            Two::Add => a + b,
            Two::Sub => a - b,
            Two::Mul => a.wrapping_mul(b),
            Two::Div => a / b,
            Two::Rem => a % b,
            Two::FloorRem => rest(),
            Two::FloorDiv => (a - rest()) / b,
            Two::Min => a.min(b),
            Two::Max => a.max(b),
            Two::And => a & b,
            Two::Or => a | b,
            Two::Xor => a ^ b,
            // A negative count is more than the number of bits.
            Two::Shl => {
                if (0..bits).contains(&b) {
                    a << b
                } else {
                    0
                }
            }
            Two::Shr => {
                if (0..bits).contains(&b) {
                    a >> b
                } else {
                    a >> 127
                }
            }
            other => unreachable!("{other:?} of {dtype}"),
        };
        return convert(Wide::Int(value), dtype);
    }
    let (a, b) = (float(a), float(b));
    let rest = a % b;
    let floored = if rest == 0.0 {
        rest.copysign(b)
    } else if (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    };
    let value = match op {
        Two::Add => a + b,
        Two::Sub => a - b,
        Two::Mul => a * b,
        Two::Div => a / b,
        Two::Rem => rest,
        Two::FloorRem => floored,
        Two::FloorDiv if b == 0.0 => a / b,
        Two::FloorDiv => {
            let down = rest != 0.0 && (rest < 0.0) != (b < 0.0);
            // This is computed in the type itself, because large quotients are rounded, and for halves in `f32`.
            let dtype = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
            let part = float(convert(Wide::Float(a - rest), dtype));
            let quotient = float(convert(Wide::Float(part / b), dtype)).round_ties_even() - f64::from(u8::from(down));
            if quotient == 0.0 { 0f64.copysign(a.signum() * b.signum()) } else { quotient }
        }
        Two::Min => extreme(a, b, true),
        Two::Max => extreme(a, b, false),
        Two::Pow => a.powf(b),
        Two::Atan2 => a.atan2(b),
        Two::Hypot => a.hypot(b),
        other => unreachable!("{other:?} of {dtype}"),
    };
    convert(Wide::Float(value), dtype)
}

/// Returns whether the rounding of an operator of two values is not defined.
pub(super) fn is_approximate(op: Two, dtype: DType) -> bool {
    matches!(op, Two::Pow | Two::Atan2 | Two::Hypot) || dtype.is_float() && op == Two::FloorDiv
}

pub(super) fn compare(op: Compare, a: Wide, b: Wide) -> Wide {
    let order = match (a, b) {
        (Wide::Int(a), Wide::Int(b)) => Some(a.cmp(&b)),
        (a, b) => float(a).partial_cmp(&float(b)),
    };
    let holds = match op {
        Compare::Eq => order.is_some_and(|order| order.is_eq()),
        Compare::Ne => order.is_none_or(|order| order.is_ne()),
        Compare::Lt => order.is_some_and(|order| order.is_lt()),
        Compare::Le => order.is_some_and(|order| order.is_le()),
        Compare::Gt => order.is_some_and(|order| order.is_gt()),
        Compare::Ge => order.is_some_and(|order| order.is_ge()),
    };
    Wide::Int(holds.into())
}

/// Returns `a * b + c`, rounded once.
pub(super) fn mul_add(dtype: DType, a: Wide, b: Wide, c: Wide) -> Wide {
    let (a, b, c) = (float(a), float(b), float(c));
    Wide::Float(match dtype {
        DType::F64 => a.mul_add(b, c),
        DType::F32 => (a as f32).mul_add(b as f32, c as f32).into(),
        _ => {
            // The product is exact in `f64`. If the sum is not exact, its last bit is set towards the lost part.
            let (product, sum) = (a * b, a * b + c);
            let part = sum - product;
            let lost = (product - (sum - part)) + (c - part);
            let odd = if lost.is_finite() && lost != 0.0 && sum.to_bits() & 1 == 0 {
                let outward = (lost > 0.0) == (sum > 0.0);
                f64::from_bits(if outward { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
            } else {
                sum
            };
            return convert(Wide::Float(odd), dtype);
        }
    })
}
