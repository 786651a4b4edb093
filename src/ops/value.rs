//! Values whose types are known at run time.

use std::sync::Arc;

use primitives_gpu::element::ConvertTo;
use primitives_host::ExpressionErrorKind;

use crate::expr::dtype::{Bits, DType, Scalar, with_type};
use crate::expr::graph::{Kind, Math, Node, Op, arguments, convert, node, shift_count};

/// A value in an operator: an element of an input, or what was computed of some.
///
/// Its element type is known when the operator is planned. Operators and functions are those of
/// [expressions](crate::expr), with their [rules](DType) for operands of two types; a number takes the type of what it is combined
/// with. Where there is no rule, the plan is an error.
#[derive(Clone)]
pub struct Value(pub(super) Result<Arc<Node>, Mistake>);

/// Why there is no value.
#[derive(Clone, Debug)]
pub(super) struct Mistake {
    pub(super) kind: ExpressionErrorKind,
    pub(super) reason: String,
}

/// The types that an operator takes.
#[derive(Clone, Copy)]
enum Class {
    Any,
    Number,
    Integer,
    Bits,
    Float,
}

impl Class {
    fn has(self, dtype: DType) -> bool {
        match self {
            Self::Any => true,
            Self::Number => dtype != DType::Bool,
            Self::Integer => dtype.is_integer(),
            Self::Bits => !dtype.is_float(),
            Self::Float => dtype.is_float(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "any type",
            Self::Number => "numbers",
            Self::Integer => "integers",
            Self::Bits => "`bool` and integers",
            Self::Float => "floats",
        }
    }
}

fn bad_dtype(reason: String) -> Mistake {
    Mistake { kind: ExpressionErrorKind::BadDtype, reason }
}

impl Value {
    pub(super) fn parameter(number: usize, dtype: DType) -> Self {
        Self(Ok(node(Kind::Parameter(number as u32), dtype, arguments([]))))
    }

    /// A number of its own type, the same for all elements.
    pub fn scalar<T: Scalar>(value: T) -> Self {
        Self(Ok(node(Kind::Scalar(value.to_word()), T::DTYPE, arguments([]))))
    }

    /// The element type; `None` where there is no value.
    pub fn dtype(&self) -> Option<DType> {
        self.0.as_ref().ok().map(|node| node.dtype)
    }

    /// In another type, by the rules of Rust's `as`.
    pub fn cast(&self, dtype: DType) -> Self {
        Self(self.0.clone().map(|value| convert(value, dtype)))
    }

    /// `a` where this holds, else `b`; both are computed.
    pub fn select(&self, a: &Self, b: &Self) -> Self {
        Self(self.try_select(a, b))
    }

    fn try_select(&self, a: &Self, b: &Self) -> Result<Arc<Node>, Mistake> {
        let condition = self.0.clone()?;
        if condition.dtype != DType::Bool {
            return Err(bad_dtype(format!("`select` takes a condition of `bool`, not {}", condition.dtype)));
        }
        let [a, b] = common("select", Class::Any, [a, b])?;
        let dtype = a.dtype;
        Ok(node(Kind::Op(Op::Select), dtype, arguments([condition, a, b])))
    }

    /// This times `a` plus `b`, rounded once.
    pub fn mul_add(&self, a: &Self, b: &Self) -> Self {
        let all = common("mul_add", Class::Float, [self, a, b]);
        Self(all.map(|all| node(Kind::Op(Op::MulAdd), all[0].dtype, arguments(all))))
    }

    /// This between `low` and `high`.
    pub fn clamp(&self, low: &Self, high: &Self) -> Self {
        self.maximum(low).minimum(high)
    }

    /// This times itself.
    pub fn square(&self) -> Self {
        self.mul(self)
    }

    /// 1 / (1 + e⁻ˣ).
    pub fn sigmoid(&self) -> Self {
        (self.unary("sigmoid", Op::Neg, Class::Float).exp() + 1).recip()
    }

    /// The larger of this and 0.
    pub fn relu(&self) -> Self {
        match self.literal(0.0) {
            Ok(zero) => self.maximum(&zero),
            Err(mistake) => Self(Err(mistake)),
        }
    }

    fn unary(&self, name: &str, op: Op, class: Class) -> Self {
        Self(self.0.clone().and_then(|a| {
            if !class.has(a.dtype) {
                return Err(bad_dtype(format!("`{name}` takes {}, not {}", class.name(), a.dtype)));
            }
            let dtype = if op == Op::IsNan { DType::Bool } else { a.dtype };
            Ok(node(Kind::Op(op), dtype, arguments([a])))
        }))
    }

    fn binary(&self, name: &str, op: Op, class: Class, other: &Self) -> Self {
        let pair = match op {
            Op::Shl | Op::Shr => shifted(name, self, other),
            _ => common(name, class, [self, other]),
        };
        Self(pair.map(|pair| {
            let dtype = if matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le) { DType::Bool } else { pair[0].dtype };
            node(Kind::Op(op), dtype, arguments(pair))
        }))
    }

    /// A number in this value's type, which must hold it.
    fn literal(&self, number: f64) -> Result<Self, Mistake> {
        let dtype = self.0.as_ref().map_err(Clone::clone)?.dtype;
        let fits = match dtype {
            DType::Bool => number == 0.0 || number == 1.0,
            // Rounded, but not beyond the largest.
            dtype if dtype.is_float() => with_type!(dtype, T => {
                let there: T = number.convert();
                ConvertTo::<f64>::convert(there).is_finite() || !number.is_finite()
            }),
            dtype => {
                // The number after the largest, which the conversion below takes for the largest.
                let end = 2f64.powi(8 * dtype.size() as i32 - i32::from(dtype.is_signed()));
                number < end
                    && with_type!(dtype, T => {
                        let there: T = number.convert();
                        ConvertTo::<f64>::convert(there) == number
                    })
            }
        };
        if !fits {
            return Err(bad_dtype(format!("{number} is no {dtype}")));
        }
        let word = with_type!(dtype, T => ConvertTo::<T>::convert(number).to_word());
        Ok(Self(Ok(node(Kind::Scalar(word), dtype, arguments([])))))
    }
}

/// The values in their common type.
fn common<const N: usize>(name: &str, class: Class, values: [&Value; N]) -> Result<[Arc<Node>; N], Mistake> {
    let mut nodes = Vec::with_capacity(N);
    for value in values {
        nodes.push(value.0.clone()?);
    }
    let mut dtype = nodes[0].dtype;
    for node in &nodes {
        dtype = dtype.promote(node.dtype).ok_or_else(|| {
            bad_dtype(format!("`{name}` takes no {dtype} together with {}: cast one of the two", node.dtype))
        })?;
    }
    if !class.has(dtype) {
        return Err(bad_dtype(format!("`{name}` takes {}, not {dtype}", class.name())));
    }
    let mut nodes = nodes.into_iter();
    Ok(std::array::from_fn(|_| convert(nodes.next().expect("as many as values"), dtype)))
}

/// What is shifted, and by how much in its type.
fn shifted(name: &str, a: &Value, by: &Value) -> Result<[Arc<Node>; 2], Mistake> {
    let (a, by) = (a.0.clone()?, by.0.clone()?);
    for dtype in [a.dtype, by.dtype] {
        if !dtype.is_integer() {
            return Err(bad_dtype(format!("`{name}` takes integers, not {dtype}")));
        }
    }
    let dtype = a.dtype;
    Ok([a, shift_count(by, dtype)])
}

/// An operator of one value, by its name.
pub(super) type Unary = (&'static str, fn(&Value) -> Value);
/// An operator of two values, by its name.
pub(super) type Binary = (&'static str, fn(&Value, &Value) -> Value);
/// An operator of three values, by its name.
pub(super) type Ternary = (&'static str, fn(&Value, &Value, &Value) -> Value);

macro_rules! unary {
    ($($class:ident: $($(#[$doc:meta])* $name:ident $op:expr),*;)*) => {
        impl Value {
            $($(
                $(#[$doc])*
                pub fn $name(&self) -> Self {
                    self.unary(stringify!($name), $op, Class::$class)
                }
            )*)*
        }

        pub(super) const UNARY: &[Unary] = &[
            $($((stringify!($name), Value::$name),)*)*
            ("square", Value::square),
            ("sigmoid", Value::sigmoid),
            ("relu", Value::relu),
        ];
    };
}
unary! {
    Number:
        #[doc = "The negative."] neg Op::Neg,
        #[doc = "The absolute value."] abs Op::Abs;
    Bits:
        #[doc = "The bits that are not set."] not Op::Not;
    Float:
        #[doc = "1 divided by this."] recip Op::Recip,
        #[doc = "Whether this is not a number."] is_nan Op::IsNan,
        #[doc = "The square root."] sqrt Op::Math(Math::Sqrt),
        #[doc = "The reciprocal square root."] rsqrt Op::Math(Math::Rsqrt),
        #[doc = "The cube root."] cbrt Op::Math(Math::Cbrt),
        #[doc = "e to the power of this."] exp Op::Math(Math::Exp),
        #[doc = "2 to the power of this."] exp2 Op::Math(Math::Exp2),
        #[doc = "e to the power of this, minus 1."] exp_m1 Op::Math(Math::ExpM1),
        #[doc = "The natural logarithm."] ln Op::Math(Math::Ln),
        #[doc = "The logarithm to the base 2."] log2 Op::Math(Math::Log2),
        #[doc = "The logarithm to the base 10."] log10 Op::Math(Math::Log10),
        #[doc = "The natural logarithm of 1 plus this."] ln_1p Op::Math(Math::Ln1p),
        #[doc = "The sine."] sin Op::Math(Math::Sin),
        #[doc = "The cosine."] cos Op::Math(Math::Cos),
        #[doc = "The tangent."] tan Op::Math(Math::Tan),
        #[doc = "The sine of half turns."] sin_pi Op::Math(Math::SinPi),
        #[doc = "The cosine of half turns."] cos_pi Op::Math(Math::CosPi),
        #[doc = "The arcsine."] asin Op::Math(Math::Asin),
        #[doc = "The arccosine."] acos Op::Math(Math::Acos),
        #[doc = "The arctangent."] atan Op::Math(Math::Atan),
        #[doc = "The hyperbolic sine."] sinh Op::Math(Math::Sinh),
        #[doc = "The hyperbolic cosine."] cosh Op::Math(Math::Cosh),
        #[doc = "The hyperbolic tangent."] tanh Op::Math(Math::Tanh),
        #[doc = "The inverse of the hyperbolic sine."] asinh Op::Math(Math::Asinh),
        #[doc = "The inverse of the hyperbolic cosine."] acosh Op::Math(Math::Acosh),
        #[doc = "The inverse of the hyperbolic tangent."] atanh Op::Math(Math::Atanh),
        #[doc = "The error function."] erf Op::Math(Math::Erf),
        #[doc = "1 minus the error function."] erfc Op::Math(Math::Erfc),
        #[doc = "Rounded down."] floor Op::Math(Math::Floor),
        #[doc = "Rounded up."] ceil Op::Math(Math::Ceil),
        #[doc = "Rounded towards 0."] trunc Op::Math(Math::Trunc),
        #[doc = "To the nearest whole number, halves away from 0."] round Op::Math(Math::Round),
        #[doc = "To the nearest whole number, halves to even ones."] round_ties_even Op::Math(Math::RoundTiesEven);
}

macro_rules! binary {
    ($($class:ident: $($(#[$doc:meta])* $name:ident $op:ident),*;)*) => {
        impl Value {
            $($(
                $(#[$doc])*
                pub fn $name(&self, b: &Self) -> Self {
                    self.binary(stringify!($name), Op::$op, Class::$class, b)
                }
            )*)*

            /// Whether this is greater than `b`.
            pub fn gt(&self, b: &Self) -> Self {
                b.binary("gt", Op::Lt, Class::Any, self)
            }

            /// Whether this is greater than `b` or equals it.
            pub fn ge(&self, b: &Self) -> Self {
                b.binary("ge", Op::Le, Class::Any, self)
            }
        }

        pub(super) const BINARY: &[Binary] =
            &[$($((stringify!($name), Value::$name),)*)* ("gt", Value::gt), ("ge", Value::ge)];
    };
}
binary! {
    Number:
        #[doc = "The sum."] add Add,
        #[doc = "The difference."] sub Sub,
        #[doc = "The product."] mul Mul,
        #[doc = "The quotient; of integers, truncated."] div Div,
        #[doc = "What the truncated quotient leaves."] rem Rem,
        #[doc = "The quotient rounded down."] floor_div FloorDiv,
        #[doc = "What the quotient rounded down leaves."] floor_rem FloorRem;
    Any:
        #[doc = "The smaller; NaN if one is NaN."] minimum Min,
        #[doc = "The larger; NaN if one is NaN."] maximum Max,
        #[doc = "Whether both are equal."] eq Eq,
        #[doc = "Whether they differ."] ne Ne,
        #[doc = "Whether this is less than `b`."] lt Lt,
        #[doc = "Whether this is less than `b` or equals it."] le Le;
    Bits:
        #[doc = "The bits that both have."] and And,
        #[doc = "The bits that either has."] or Or,
        #[doc = "The bits that one of the two has."] xor Xor;
    Integer:
        #[doc = "Shifted up by `b` bits: 0 for a negative number, and for as many bits as there are or more."] shl Shl,
        #[doc = "Shifted down by `b` bits: 0, or −1 for a negative number to shift, for a negative `b` and for as many bits as there are or more."] shr Shr;
    Float:
        #[doc = "This to the power of `b`."] pow Pow,
        #[doc = "The angle of the point (`b`, this)."] atan2 Atan2,
        #[doc = "The length of the vector (this, `b`)."] hypot Hypot;
}

pub(super) const TERNARY: &[Ternary] =
    &[("select", Value::select), ("mul_add", Value::mul_add), ("clamp", Value::clamp)];

macro_rules! rust_operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait<&Value> for &Value {
            type Output = Value;
            fn $method(self, other: &Value) -> Value {
                Value::$method(self, other)
            }
        }
        impl std::ops::$trait<Value> for &Value {
            type Output = Value;
            fn $method(self, other: Value) -> Value {
                Value::$method(self, &other)
            }
        }
        impl std::ops::$trait<&Value> for Value {
            type Output = Value;
            fn $method(self, other: &Value) -> Value {
                Value::$method(&self, other)
            }
        }
        impl std::ops::$trait for Value {
            type Output = Value;
            fn $method(self, other: Value) -> Value {
                Value::$method(&self, &other)
            }
        }
        rust_operators!(@number $trait $method f64);
        rust_operators!(@number $trait $method i32);
    )*};
    (@number $trait:ident $method:ident $t:ty) => {
        impl std::ops::$trait<$t> for &Value {
            type Output = Value;
            fn $method(self, other: $t) -> Value {
                match self.literal(other.into()) {
                    Ok(other) => Value::$method(self, &other),
                    Err(mistake) => Value(Err(mistake)),
                }
            }
        }
        impl std::ops::$trait<$t> for Value {
            type Output = Value;
            fn $method(self, other: $t) -> Value {
                std::ops::$trait::$method(&self, other)
            }
        }
        impl std::ops::$trait<&Value> for $t {
            type Output = Value;
            fn $method(self, other: &Value) -> Value {
                match other.literal(self.into()) {
                    Ok(this) => Value::$method(&this, other),
                    Err(mistake) => Value(Err(mistake)),
                }
            }
        }
        impl std::ops::$trait<Value> for $t {
            type Output = Value;
            fn $method(self, other: Value) -> Value {
                std::ops::$trait::$method(self, &other)
            }
        }
    };
}
rust_operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    Rem rem;
}

impl std::ops::Neg for &Value {
    type Output = Value;
    fn neg(self) -> Value {
        Value::neg(self)
    }
}
impl std::ops::Neg for Value {
    type Output = Value;
    fn neg(self) -> Value {
        Value::neg(&self)
    }
}
