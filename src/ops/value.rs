//! Values whose types are known at run time.

use std::sync::Arc;

use primitives_gpu::element::ConvertTo;
use primitives_host::ExpressionErrorKind;

use crate::expr::dtype::{DType, Scalar, ToWord, with_type};
use crate::expr::graph::{
    Kind, Math, Node, Op, arguments, convert, function, function_of_two, math, node, one, shift_count, zero,
};

/// A value in an operator: an element of an input, or a result that was computed from such elements.
///
/// Its element type is known when the operator is planned. Operators and functions are those of [expressions](crate::expr), with the same
/// [rules](DType) for operands of two types. A number takes the type of the value that it is combined with. If there is no rule, the plan
/// returns an error.
#[derive(Clone)]
pub struct Value(pub(super) Result<Arc<Node>, Mistake>);

/// The reason why there is no value.
#[derive(Clone, Debug)]
pub(super) struct Mistake {
    pub(super) kind: ExpressionErrorKind,
    pub(super) reason: String,
}

/// The types that an operator takes. Their names are those of the traits that are the bounds of expressions.
#[derive(Clone, Copy)]
enum Class {
    Scalar,
    Numeric,
    Integral,
    Logical,
    Floating,
}

impl Class {
    fn has(self, dtype: DType) -> bool {
        match self {
            Self::Scalar => true,
            Self::Numeric => dtype != DType::Bool,
            Self::Integral => dtype.is_integer(),
            Self::Logical => !dtype.is_float(),
            Self::Floating => dtype.is_float(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Scalar => "any type",
            Self::Numeric => "numbers",
            Self::Integral => "integers",
            Self::Logical => "`bool` and integers",
            Self::Floating => "floats",
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

    /// A number of its own type, which is the same for all elements.
    pub fn scalar<T: Scalar>(value: T) -> Self {
        Self(Ok(node(Kind::Scalar(value.to_word()), T::DTYPE, arguments([]))))
    }

    /// The element type, or `None` if there is no value.
    pub fn dtype(&self) -> Option<DType> {
        self.0.as_ref().ok().map(|node| node.dtype)
    }

    /// Converts the value to another type, by the rules of Rust's `as`.
    pub fn cast(&self, dtype: DType) -> Self {
        Self(self.0.clone().map(|value| convert(value, dtype)))
    }

    /// Returns `a` where this is true, and `b` elsewhere. Both are computed.
    pub fn select(&self, a: &Self, b: &Self) -> Self {
        Self(self.try_select(a, b))
    }

    fn try_select(&self, a: &Self, b: &Self) -> Result<Arc<Node>, Mistake> {
        let condition = self.0.clone()?;
        if condition.dtype != DType::Bool {
            return Err(bad_dtype(format!("`select` takes a condition of `bool`, not {}", condition.dtype)));
        }
        let [a, b] = common("select", Class::Scalar, [a, b])?;
        let dtype = a.dtype;
        Ok(node(Kind::Op(Op::Select), dtype, arguments([condition, a, b])))
    }

    /// This times `a` plus `b`, rounded once.
    pub fn mul_add(&self, a: &Self, b: &Self) -> Self {
        let all = common("mul_add", Class::Floating, [self, a, b]);
        Self(all.map(|all| node(Kind::Op(Op::MulAdd), all[0].dtype, arguments(all))))
    }

    /// Limits the value to the range from `low` to `high`.
    pub fn clamp(&self, low: &Self, high: &Self) -> Self {
        let all = common("clamp", Class::Scalar, [self, low, high]);
        Self(all.map(|[x, low, high]| function_of_two(Op::Min, function_of_two(Op::Max, x, low), high)))
    }

    /// The negative.
    pub fn neg(&self) -> Self {
        self.unary("neg", Class::Numeric, |x| function(Op::Neg, x))
    }

    /// The bits that are not set.
    pub fn not(&self) -> Self {
        self.unary("not", Class::Logical, |x| function(Op::Not, x))
    }

    /// Whether this is greater than `b`.
    pub fn gt(&self, b: &Self) -> Self {
        b.binary("gt", Op::Lt, Class::Scalar, self)
    }

    /// Whether this is greater than `b` or equals it.
    pub fn ge(&self, b: &Self) -> Self {
        b.binary("ge", Op::Le, Class::Scalar, self)
    }

    fn unary(&self, name: &str, class: Class, function: fn(Arc<Node>) -> Arc<Node>) -> Self {
        Self(self.0.clone().and_then(|x| {
            if !class.has(x.dtype) {
                return Err(bad_dtype(format!("`{name}` takes {}, not {}", class.name(), x.dtype)));
            }
            Ok(function(x))
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

    /// Converts a number to the type of this value, which must be able to hold it.
    fn literal(&self, number: f64) -> Result<Self, Mistake> {
        let dtype = self.0.as_ref().map_err(Clone::clone)?.dtype;
        let fits = match dtype {
            DType::Bool => number == 0.0 || number == 1.0,
            // The number is rounded, but not beyond the largest value.
            dtype if dtype.is_float() => with_type!(dtype, T => {
                let there: T = number.convert();
                ConvertTo::<f64>::convert(there).is_finite() || !number.is_finite()
            }),
            dtype => {
                // The number after the largest value. The conversion below converts it to the largest value.
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

/// Converts the values to their common type.
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

/// Returns the value to shift and the number of bits, which is converted to its type.
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
    ($($(#[$doc:meta])* $name:ident($x:ident) $class:ident -> $out:ident = $node:expr;)*) => {
        impl Value {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> Self {
                    self.unary(stringify!($name), Class::$class, |$x| $node)
                }
            )*
        }

        pub(super) const UNARY: &[Unary] =
            &[("neg", Value::neg), ("not", Value::not), $((stringify!($name), Value::$name)),*];
    };
}
crate::__functions!(unary);

macro_rules! binary {
    ($list:ident: $($(#[$doc:meta])* $name:ident $op:ident $class:ident -> $out:ident;)*) => {
        impl Value {
            $(
                $(#[$doc])*
                pub fn $name(&self, b: &Self) -> Self {
                    self.binary(stringify!($name), Op::$op, Class::$class, b)
                }
            )*
        }

        const $list: &[Binary] = &[$((stringify!($name), Value::$name)),*];
    };
}
macro_rules! pairs {
    ($($rows:tt)*) => { binary! { PAIRS: $($rows)* } };
}
crate::__pair_functions!(pairs);
binary! { OPERATORS:
    /// The sum.
    add Add Numeric -> Common;
    /// The difference.
    sub Sub Numeric -> Common;
    /// The product.
    mul Mul Numeric -> Common;
    /// The quotient, which is truncated for integers.
    div Div Numeric -> Common;
    /// The remainder of the truncated quotient.
    rem Rem Numeric -> Common;
    /// The bits that are set in both.
    and And Logical -> Common;
    /// The bits that are set in one or in both.
    or Or Logical -> Common;
    /// The bits that are set in exactly one of the two.
    xor Xor Logical -> Common;
    /// The value shifted left by `b` bits. It is 0 if `b` is negative, or is not less than the number of bits.
    shl Shl Integral -> Common;
    /// The value shifted right by `b` bits. If `b` is negative, or is not less than the number of bits, it is 0, or −1 for a negative
    /// value.
    shr Shr Integral -> Common;
}

/// All operators of two values.
pub(super) fn binary() -> impl Iterator<Item = &'static Binary> {
    const ORDERS: &[Binary] = &[("gt", Value::gt), ("ge", Value::ge)];
    [OPERATORS, PAIRS, ORDERS].into_iter().flatten()
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
