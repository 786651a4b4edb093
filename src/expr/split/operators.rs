//! Rust's operators on split tensors: with split tensors, expressions and numbers.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use half::{bf16, f16};

use super::tensor::SplitTensor;
use crate::expr::dtype::{Integral, Logical, Numeric, Promote, Scalar};
use crate::expr::graph::{Expr, Op, Operand, scalar, shift_count};

/// An operator of a split tensor and another operand, in their common type; and of a split tensor and a number of its type.
macro_rules! binary {
    ($($trait:ident $method:ident $op:ident $bound:ident: $($number:ty),*;)*) => {$(
        binary!(@pairs $trait $method $op $bound; SplitTensor<T>; SplitTensor<U>, &SplitTensor<U>, Expr<U>, &Expr<U>);
        binary!(@pairs $trait $method $op $bound; &SplitTensor<T>; SplitTensor<U>, &SplitTensor<U>, Expr<U>, &Expr<U>);
        binary!(@pairs $trait $method $op $bound; Expr<T>; SplitTensor<U>, &SplitTensor<U>);
        binary!(@pairs $trait $method $op $bound; &Expr<T>; SplitTensor<U>, &SplitTensor<U>);
        binary!(@numbers $trait $method $op $bound; SplitTensor<T>, &SplitTensor<T>);
        $(binary!(@number $trait $method $op; $number; SplitTensor<$number>, &SplitTensor<$number>);)*
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
    (@number $trait:ident $method:ident $op:ident; $number:ty; $($b:ty),*) => {$(
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

/// Shifts: by integers of any type.
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
    Shl shl Shl: SplitTensor<T>, &SplitTensor<T>;
    Shr shr Shr: SplitTensor<T>, &SplitTensor<T>;
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
    Neg neg Neg Numeric: SplitTensor<T>, &SplitTensor<T>;
    Not not Not Logical: SplitTensor<T>, &SplitTensor<T>;
}
