//! Functions on expressions.

use super::dtype::{Floating, Integral, Numeric, Promote, Scalar};
use super::graph::{
    Distribution, Expr, Kind, Math, Op, Operand, arguments, function, function_of_two, math, one, scalar, zero,
};
use super::split::SplitTensor;
use super::tensor::Tensor;

type Common<A, B> = <<A as Operand>::Elem as Promote<<B as Operand>::Elem>>::Output;

fn common<C: Scalar, A: Operand, B: Operand>(a: A, b: B) -> (Expr<C>, Expr<C>) {
    (a.expr().convert(), b.expr().convert())
}

/// The functions of one operand: the name, the types that the function takes, the type of the result, and the result's node. Expressions,
/// operators with descriptors ([`ops`](crate::ops)) and their tests are generated from this table: each passes its own macro to it. The
/// elementary functions come from the table of [`Real`](crate::Real).
#[doc(hidden)]
#[macro_export]
macro_rules! __functions {
    ($then:ident) => {
        $crate::__elementary! { $crate::__functions [$then] }
    };
    (
        [$then:ident]
        $($(#[$doc:meta])* $name:ident $variant:ident $method:ident $functions:tt $real:tt;)*
    ) => {
        $then! {
            /// The square root, correctly rounded.
            sqrt(x) Floating -> Elem = math(Math::Sqrt, x);
            /// The reciprocal square root.
            rsqrt(x) Floating -> Elem = math(Math::Rsqrt, x);
            $($(#[$doc])* $name(x) Floating -> Elem = math(Math::$variant, x);)*
            /// The value, rounded down.
            floor(x) Floating -> Elem = math(Math::Floor, x);
            /// The value, rounded up.
            ceil(x) Floating -> Elem = math(Math::Ceil, x);
            /// The value, rounded towards 0.
            trunc(x) Floating -> Elem = math(Math::Trunc, x);
            /// The nearest whole number. Halves are rounded away from 0.
            round(x) Floating -> Elem = math(Math::Round, x);
            /// The nearest whole number. Halves are rounded to the even one.
            round_ties_even(x) Floating -> Elem = math(Math::RoundTiesEven, x);
            /// The absolute value. The smallest signed integer is unchanged.
            abs(x) Numeric -> Elem = function(Op::Abs, x);
            /// 1 divided by `x`.
            recip(x) Floating -> Elem = function(Op::Recip, x);
            /// `x` times `x`.
            square(x) Numeric -> Elem = function_of_two(Op::Mul, x.clone(), x);
            /// Whether `x` is not a number.
            is_nan(x) Floating -> bool = function(Op::IsNan, x);
            /// 1 / (1 + e⁻ˣ).
            sigmoid(x) Floating -> Elem = {
                let (power, one) = (math(Math::Exp, function(Op::Neg, x.clone())), one(x.dtype));
                function(Op::Recip, function_of_two(Op::Add, power, one))
            };
            /// The larger of `x` and 0.
            relu(x) Scalar -> Elem = function_of_two(Op::Max, x.clone(), zero(x.dtype));
        }
    };
}

/// Makes each function a free function and a method of operands.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($x:ident) $bound:ident -> $out:ident = $node:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $name<X: Operand<Elem: $bound>>($x: X) -> Expr<functions!(@out X, $out)> {
                let $x = $x.expr().node;
                Expr::of_node($node)
            }
        )*

        /// The functions on tensors and expressions, as methods: `x.sin()`.
        pub trait Functions {
            /// The type of an element.
            type Item: Scalar;

            /// Returns this as an expression.
            fn to_expr(&self) -> Expr<Self::Item>;

            $(
                $(#[$doc])*
                fn $name(&self) -> Expr<functions!(@item Self, $out)>
                where
                    Self::Item: $bound,
                {
                    $name(self.to_expr())
                }
            )*

            /// Converts the elements to another type, by the rules of [`ConvertTo`](primitives_gpu::element::ConvertTo). These are the
            /// rules of Rust's `as`.
            fn cast<U: Scalar>(&self) -> Expr<U> {
                self.to_expr().convert()
            }
        }
    };
    (@item $x:ty, Elem) => { <$x as Functions>::Item };
    (@item $x:ty, $out:ident) => { $out };
    (@out $x:ty, Elem) => { <$x as Operand>::Elem };
    (@out $x:ty, $out:ident) => { $out };
}
crate::__functions!(functions);

impl<T: Scalar> Functions for Tensor<T> {
    type Item = T;
    fn to_expr(&self) -> Expr<T> {
        self.expr()
    }
}

impl<T: Scalar> Functions for Expr<T> {
    type Item = T;
    fn to_expr(&self) -> Expr<T> {
        self.clone()
    }
}

/// The functions of two operands: the name, the operation, the types of the operands, and the type of the result.
#[doc(hidden)]
#[macro_export]
macro_rules! __pair_functions {
    ($then:ident) => {
        $then! {
            /// The smaller value; NaN if one is NaN. −0 is less than +0.
            minimum Min Scalar -> Common;
            /// The larger value; NaN if one is NaN. −0 is less than +0.
            maximum Max Scalar -> Common;
            /// The quotient rounded down: Python's and NumPy's `//`.
            floor_div FloorDiv Numeric -> Common;
            /// The remainder of `floor_div`, with the sign of `b`: Python's and NumPy's `%`. The operator `%` is Rust's `%`.
            floor_rem FloorRem Numeric -> Common;
            /// `a` to the power of `b`.
            pow Pow Floating -> Common;
            /// The angle of the point (`b`, `a`), in radians.
            atan2 Atan2 Floating -> Common;
            /// The length of the vector (`a`, `b`), without overflow of the squares.
            hypot Hypot Floating -> Common;
            /// Whether both are equal.
            eq Eq Scalar -> bool;
            /// Whether they differ.
            ne Ne Scalar -> bool;
            /// Whether `a` is less than `b`.
            lt Lt Scalar -> bool;
            /// Whether `a` is less than `b` or equals it.
            le Le Scalar -> bool;
        }
    };
}

macro_rules! pairs {
    ($($(#[$doc:meta])* $name:ident $op:ident $bound:ident -> $out:ident;)*) => {
        $(
            $(#[$doc])*
            pub fn $name<A, B>(a: A, b: B) -> Expr<pairs!(@out $out A B)>
            where
                A: Operand<Elem: Promote<B::Elem, Output: $bound>>,
                B: Operand,
            {
                let (a, b) = common::<Common<A, B>, A, B>(a, b);
                Expr::binary(Op::$op, a, b)
            }
        )*

        /// The functions of two operands, as methods: `a.minimum(&b)`. They work in the operands' common type.
        pub trait PairFunctions: Functions {
            $(
                $(#[$doc])*
                fn $name<B: Operand>(&self, b: B) -> Expr<pairs!(@method $out Self B)>
                where
                    Self::Item: Promote<B::Elem, Output: $bound>,
                {
                    $name(self.to_expr(), b)
                }
            )*

            /// Whether this is greater than `b`.
            fn gt<B: Operand>(&self, b: B) -> Expr<bool>
            where
                Self::Item: Promote<B::Elem>,
            {
                gt(self.to_expr(), b)
            }

            /// Whether this is greater than `b` or equals it.
            fn ge<B: Operand>(&self, b: B) -> Expr<bool>
            where
                Self::Item: Promote<B::Elem>,
            {
                ge(self.to_expr(), b)
            }
        }
        impl<X: Functions> PairFunctions for X {}
    };
    (@method Common $a:ident $b:ident) => { <<$a as Functions>::Item as Promote<<$b as Operand>::Elem>>::Output };
    (@method bool $a:ident $b:ident) => { bool };
    (@out Common $a:ident $b:ident) => { Common<$a, $b> };
    (@out bool $a:ident $b:ident) => { bool };
}
crate::__pair_functions!(pairs);

/// Whether `a` is greater than `b`.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Reductions, Tensor, gt, scalar}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// assert_eq!(gt(&x, scalar(2.0f32)).count().item()?, 1);
/// # Ok(())
/// # }
/// ```
pub fn gt<A: Operand<Elem: Promote<B::Elem>>, B: Operand>(a: A, b: B) -> Expr<bool> {
    let (a, b) = common::<Common<A, B>, A, B>(a, b);
    Expr::binary(Op::Lt, b, a)
}

/// Whether `a` is greater than `b` or equals it.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Reductions, Tensor, ge, scalar}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// assert_eq!(ge(&x, scalar(2.0f32)).count().item()?, 2);
/// # Ok(())
/// # }
/// ```
pub fn ge<A: Operand<Elem: Promote<B::Elem>>, B: Operand>(a: A, b: B) -> Expr<bool> {
    let (a, b) = common::<Common<A, B>, A, B>(a, b);
    Expr::binary(Op::Le, b, a)
}

/// Returns `a` where `condition` is true, and `b` elsewhere. Both are computed.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Tensor, gt, scalar, select}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// let y = Tensor::uninit(&stream, 3)?;
/// y.assign(select(gt(&x, scalar(2.0f32)), &x, scalar(0.0f32)))?;
/// assert_eq!(y.to_vec()?, [0.0, 0.0, 3.0]);
/// # Ok(())
/// # }
/// ```
pub fn select<C: Operand<Elem = bool>, A: Operand<Elem: Promote<B::Elem>>, B: Operand>(
    condition: C,
    a: A,
    b: B,
) -> Expr<Common<A, B>> {
    let (a, b) = common::<Common<A, B>, A, B>(a, b);
    Expr::ternary(Op::Select, condition.expr(), a, b)
}

/// `a * b + c`, rounded once.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Tensor, mul_add, scalar}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// let y = Tensor::uninit(&stream, 3)?;
/// y.assign(mul_add(&x, &x, scalar(1.0f32)))?;
/// assert_eq!(y.to_vec()?, [2.0, 5.0, 10.0]);
/// # Ok(())
/// # }
/// ```
pub fn mul_add<T: Floating>(
    a: impl Operand<Elem = T>,
    b: impl Operand<Elem = T>,
    c: impl Operand<Elem = T>,
) -> Expr<T> {
    Expr::ternary(Op::MulAdd, a.expr(), b.expr(), c.expr())
}

/// Limits `x` to the range from `low` to `high`.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Tensor, clamp}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// let y = Tensor::uninit(&stream, 3)?;
/// y.assign(clamp(&x, 1.5, 2.5))?;
/// assert_eq!(y.to_vec()?, [1.5, 2.0, 2.5]);
/// # Ok(())
/// # }
/// ```
pub fn clamp<T: Numeric>(x: impl Operand<Elem = T>, low: T, high: T) -> Expr<T> {
    let low: Expr<T> = Expr::binary(Op::Max, x.expr(), scalar(low));
    Expr::binary(Op::Min, low, scalar(high))
}

/// Returns the number of the element in the target, outermost axis first, as a `T`. In a reduction, it is the number in the reduced
/// expression.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Tensor, element_index}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let y = Tensor::uninit(&stream, [2, 2])?;
/// y.assign(element_index::<f32>() * 10.0)?;
/// assert_eq!(y.to_vec()?, [0.0, 10.0, 20.0, 30.0]);
/// # Ok(())
/// # }
/// ```
pub fn element_index<T: Numeric>() -> Expr<T> {
    Expr::<u64>::new(Kind::Index(None), arguments([])).convert()
}

/// Returns the element's index along an axis of the target, as a `T`. In a reduction, it is an axis of the reduced expression. The
/// outermost axis is 0.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Reductions, Tensor, axis_index, gather}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// // The sum of one element of each row.
/// let x = Tensor::from_slice(&stream, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let columns = Tensor::from_slice(&stream, 2, &[2u64, 0])?;
/// let picked = gather(&x.reshape(6)?, axis_index::<u64>(0) * 3 + &columns);
/// assert_eq!(picked.sum().item()?, 7.0);
/// # Ok(())
/// # }
/// ```
pub fn axis_index<T: Numeric>(axis: usize) -> Expr<T> {
    Expr::<u64>::new(Kind::Index(Some(axis)), arguments([])).convert()
}

/// Returns the elements of a vector at the indices `index`. An index out of bounds is a fault. Negative indices are out of bounds.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Tensor, gather}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let table = Tensor::from_slice(&stream, 3, &[0.5f32, 1.5, 2.5])?;
/// let index = Tensor::from_slice(&stream, [2, 2], &[2u32, 0, 1, 2])?;
/// let y = Tensor::zeros(&stream, [2, 2])?;
/// y.assign(gather(&table, &index) * 2.0)?;
/// assert_eq!(y.to_vec()?, [5.0, 1.0, 3.0, 5.0]);
/// # Ok(())
/// # }
/// ```
///
/// In an expression of [`SplitTensor`]s, `vector` is a [`SplitTensor`], too. It is on the same devices, but may be split in another way.
/// Before a device computes its rows, it receives a copy of the whole vector if the vector is short. Otherwise, it receives the items that
/// its indices name. See [several devices](crate::docs::several_devices#gathers).
///
/// The call that evaluates it returns [`Error::Expression`](crate::Error::Expression) unless `vector` has one axis.
pub fn gather<T: Scalar>(vector: &impl Table<Elem = T>, index: impl Operand<Elem: Integral>) -> Expr<T> {
    vector.at_index(index.expr())
}

/// A vector that [`gather`] reads: a [`Tensor`] or a [`SplitTensor`] with one axis.
///
/// ```
/// # use kernel_primitives::expr::{SplitTensor, gather};
/// # use kernel_primitives::{Devices, Split};
/// # fn main() -> kernel_primitives::Result<()> {
/// let split = Split::even(&Devices::emulated(2)?)?;
/// let table = SplitTensor::from_slice(&split, 3, &[0.5f32, 1.5, 2.5])?;
/// let index = SplitTensor::from_slice(&split, 4, &[2u32, 0, 1, 2])?;
/// let y = SplitTensor::uninit(&split, 4)?;
/// y.assign(gather(&table, &index) * 2.0)?;
/// assert_eq!(y.to_vec()?, [5.0, 1.0, 3.0, 5.0]);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`gather` does not read `{Self}`",
    label = "no `Tensor` or `SplitTensor`",
    note = "assign an expression to a tensor first"
)]
pub trait Table {
    /// The type of an element.
    type Elem: Scalar;

    /// Returns the elements at the indices `index`: see [`gather`].
    #[doc(hidden)]
    fn at_index<I: Integral>(&self, index: Expr<I>) -> Expr<Self::Elem>;
}

impl<T: Scalar> Table for Tensor<T> {
    type Elem = T;
    fn at_index<I: Integral>(&self, index: Expr<I>) -> Expr<T> {
        Expr::new(Kind::Gather(self.view.clone()), arguments([index.node]))
    }
}

impl<T: Scalar> Table for SplitTensor<T> {
    type Elem = T;
    fn at_index<I: Integral>(&self, index: Expr<I>) -> Expr<T> {
        Expr::new(Kind::SplitGather(self.view.clone()), arguments([index.node]))
    }
}

impl<X: Table> Table for &X {
    type Elem = X::Elem;
    fn at_index<I: Integral>(&self, index: Expr<I>) -> Expr<X::Elem> {
        (**self).at_index(index)
    }
}

/// A type of random numbers.
pub trait RandomFloat: Floating {}
impl RandomFloat for f32 {}
impl RandomFloat for f64 {}

/// Returns uniform random numbers from 0 to 1 (1 excluded). Each is a function of `seed` and the element's number.
///
/// The generator is Philox4x32-10. It gives the same numbers on every device: each draw of
/// [`Philox::new(seed, 0)`](primitives_gpu::thread::Philox) gives four `f32` or two `f64`.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Reductions, Tensor, uniform}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::<f64>::uninit(&stream, 1000)?;
/// x.assign(uniform::<f64>(7))?;
/// assert!(x.to_vec()?.iter().all(|x| (0.0..1.0).contains(x)));
/// assert!((x.sum().item()? / 1000.0 - 0.5).abs() < 0.1);
/// # Ok(())
/// # }
/// ```
pub fn uniform<T: RandomFloat>(seed: u64) -> Expr<T> {
    uniform_at(scalar(seed), element_index())
}

/// Returns random numbers of the normal distribution with mean 0 and variance 1. Each is a function of `seed` and the element's number.
///
/// The Box-Muller transform computes them from the numbers of [`uniform`]. They are equal on all devices, except for the rounding of the
/// sine and the logarithm.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Reductions, Tensor, normal}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::<f64>::uninit(&stream, 1000)?;
/// x.assign(normal::<f64>(7))?;
/// assert!((x.sum().item()? / 1000.0).abs() < 0.2);
/// # Ok(())
/// # }
/// ```
pub fn normal<T: RandomFloat>(seed: u64) -> Expr<T> {
    normal_at(scalar(seed), element_index())
}

/// Works as [`uniform`], for the element with the number `index`, and with a seed that can differ by element.
pub fn uniform_at<T: RandomFloat>(seed: impl Operand<Elem = u64>, index: impl Operand<Elem = u64>) -> Expr<T> {
    Expr::new(Kind::Random(Distribution::Uniform), arguments([seed.expr().node, index.expr().node]))
}

/// Works as [`normal`], for the element with the number `index`, and with a seed that can differ by element.
pub fn normal_at<T: RandomFloat>(seed: impl Operand<Elem = u64>, index: impl Operand<Elem = u64>) -> Expr<T> {
    Expr::new(Kind::Random(Distribution::Normal), arguments([seed.expr().node, index.expr().node]))
}
