//! Rust's operators on split tensors: with split tensors, expressions and numbers.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use half::{bf16, f16};

use super::tensor::SplitTensor;
use crate::expr::dtype::{Integral, Logical, Numeric, Promote, Scalar};
use crate::expr::graph::{Expr, Op, Operand, scalar, shift_count};

macro_rules! binary {
    ($($trait:ident $method:ident $op:ident $bound:ident: $($number:ty),*;)*) => {$(
        binary!(@pair $trait $method $op $bound; &SplitTensor<T>; &SplitTensor<U>);
        binary!(@pair $trait $method $op $bound; &SplitTensor<T>; Expr<U>);
        binary!(@pair $trait $method $op $bound; &SplitTensor<T>; &Expr<U>);
        binary!(@pair $trait $method $op $bound; Expr<T>; &SplitTensor<U>);
        binary!(@pair $trait $method $op $bound; &Expr<T>; &SplitTensor<U>);

        impl<T: Scalar + $bound> $trait<T> for &SplitTensor<T> {
            type Output = Expr<T>;
            fn $method(self, other: T) -> Expr<T> {
                Expr::binary(Op::$op, self.expr(), scalar(other))
            }
        }

        $(impl $trait<&SplitTensor<$number>> for $number {
            type Output = Expr<$number>;
            fn $method(self, other: &SplitTensor<$number>) -> Expr<$number> {
                Expr::binary(Op::$op, scalar(self), other.expr())
            }
        })*
    )*};
    (@pair $trait:ident $method:ident $op:ident $bound:ident; $a:ty; $b:ty) => {
        impl<T: Promote<U, Output: $bound>, U: Scalar> $trait<$b> for $a {
            type Output = Expr<T::Output>;
            fn $method(self, other: $b) -> Expr<T::Output> {
                Expr::binary(Op::$op, self.expr().convert::<T::Output>(), other.expr().convert::<T::Output>())
            }
        }
    };
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

impl<T: Integral, B: Operand<Elem: Integral>> Shl<B> for &SplitTensor<T> {
    type Output = Expr<T>;
    fn shl(self, by: B) -> Expr<T> {
        Expr::binary(Op::Shl, self.expr(), Expr::<T>::of_node(shift_count(by.expr().node, T::DTYPE)))
    }
}

impl<T: Integral, B: Operand<Elem: Integral>> Shr<B> for &SplitTensor<T> {
    type Output = Expr<T>;
    fn shr(self, by: B) -> Expr<T> {
        Expr::binary(Op::Shr, self.expr(), Expr::<T>::of_node(shift_count(by.expr().node, T::DTYPE)))
    }
}

impl<T: Numeric> Neg for &SplitTensor<T> {
    type Output = Expr<T>;
    fn neg(self) -> Expr<T> {
        Expr::unary(Op::Neg, self.expr())
    }
}

impl<T: Logical> Not for &SplitTensor<T> {
    type Output = Expr<T>;
    fn not(self) -> Expr<T> {
        Expr::unary(Op::Not, self.expr())
    }
}
