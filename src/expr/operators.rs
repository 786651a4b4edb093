//! Rust's operators on tensors, split tensors and expressions.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use half::{bf16, f16};

use super::dtype::{Integral, Logical, Numeric, Promote, Scalar};
use super::graph::{Expr, Op, Operand, scalar, shift_count};
use super::split::SplitTensor;
use super::tensor::Tensor;

/// An operator on two operands in their common type, and on an operand and a number of its type. There is no operator on a tensor of one
/// device and a split tensor.
macro_rules! binary {
    ($($trait:ident $method:ident $op:ident $bound:ident: $($number:ty),*;)*) => {$(
        binary!(@pairs $trait $method $op $bound; Tensor<T>; Tensor<U>, &Tensor<U>, Expr<U>, &Expr<U>);
        binary!(@pairs $trait $method $op $bound; &Tensor<T>; Tensor<U>, &Tensor<U>, Expr<U>, &Expr<U>);
        binary!(@pairs $trait $method $op $bound; SplitTensor<T>; SplitTensor<U>, &SplitTensor<U>, Expr<U>, &Expr<U>);
        binary!(@pairs $trait $method $op $bound; &SplitTensor<T>; SplitTensor<U>, &SplitTensor<U>, Expr<U>, &Expr<U>);
        binary!(@pairs $trait $method $op $bound; Expr<T>;
            Tensor<U>, &Tensor<U>, SplitTensor<U>, &SplitTensor<U>, Expr<U>, &Expr<U>);
        binary!(@pairs $trait $method $op $bound; &Expr<T>;
            Tensor<U>, &Tensor<U>, SplitTensor<U>, &SplitTensor<U>, Expr<U>, &Expr<U>);
        binary!(@numbers $trait $method $op $bound;
            Tensor<T>, &Tensor<T>, SplitTensor<T>, &SplitTensor<T>, Expr<T>, &Expr<T>);
        $(binary!(@number $trait $method $op $number;
            Tensor<$number>, &Tensor<$number>, SplitTensor<$number>, &SplitTensor<$number>, Expr<$number>, &Expr<$number>);)*
    )*};
    (@pairs $trait:ident $method:ident $op:ident $bound:ident; $a:ty; $($b:ty),*) => {$(
        impl<T: Promote<U, Output: $bound>, U: Scalar> $trait<$b> for $a {
            type Output = Expr<T::Output>;
            fn $method(self, other: $b) -> Expr<T::Output> {
                Expr::binary(Op::$op, self.expr().convert::<T::Output>(), other.expr().convert::<T::Output>())
            }
        }
    )*};
    (@numbers $trait:ident $method:ident $op:ident $bound:ident; $($a:ty),*) => {$(
        impl<T: Scalar + $bound> $trait<T> for $a {
            type Output = Expr<T>;
            fn $method(self, other: T) -> Expr<T> {
                Expr::binary(Op::$op, self.expr(), scalar(other))
            }
        }
    )*};
    (@number $trait:ident $method:ident $op:ident $number:ty; $($b:ty),*) => {$(
        impl $trait<$b> for $number {
            type Output = Expr<$number>;
            fn $method(self, other: $b) -> Expr<$number> {
                Expr::binary(Op::$op, scalar(self), other.expr())
            }
        }
    )*};
}
binary! {
    Add add Add Numeric: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Sub sub Sub Numeric: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Mul mul Mul Numeric: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Div div Div Numeric: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Rem rem Rem Numeric: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    BitAnd bitand And Logical: bool, i8, i16, i32, i64, u8, u16, u32, u64;
    BitOr bitor Or Logical: bool, i8, i16, i32, i64, u8, u16, u32, u64;
    BitXor bitxor Xor Logical: bool, i8, i16, i32, i64, u8, u16, u32, u64;
}

/// Shifts by integers of any type.
macro_rules! shifts {
    ($($trait:ident $method:ident $op:ident: $($a:ty),*;)*) => {$($(
        impl<T: Integral, B: Operand<Elem: Integral>> $trait<B> for $a {
            type Output = Expr<T>;
            fn $method(self, by: B) -> Expr<T> {
                Expr::binary(Op::$op, self.expr(), Expr::<T>::of_node(shift_count(by.expr().node, T::DTYPE)))
            }
        }
    )*)*};
}
shifts! {
    Shl shl Shl: Tensor<T>, &Tensor<T>, SplitTensor<T>, &SplitTensor<T>, Expr<T>, &Expr<T>;
    Shr shr Shr: Tensor<T>, &Tensor<T>, SplitTensor<T>, &SplitTensor<T>, Expr<T>, &Expr<T>;
}

macro_rules! unary {
    ($($trait:ident $method:ident $op:ident $bound:ident: $($a:ty),*;)*) => {$($(
        impl<T: $bound> $trait for $a {
            type Output = Expr<T>;
            fn $method(self) -> Expr<T> {
                Expr::unary(Op::$op, self.expr())
            }
        }
    )*)*};
}
unary! {
    Neg neg Neg Numeric: Tensor<T>, &Tensor<T>, SplitTensor<T>, &SplitTensor<T>, Expr<T>, &Expr<T>;
    Not not Not Logical: Tensor<T>, &Tensor<T>, SplitTensor<T>, &SplitTensor<T>, Expr<T>, &Expr<T>;
}
