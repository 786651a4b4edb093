//! Rust's operators on tensors and expressions.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use half::{bf16, f16};

use super::dtype::{Integral, Logical, Numeric, Promote, Scalar};
use super::graph::{Expr, Op, Operand, scalar, shift_count};
use super::tensor::Tensor;

/// An operator of any two operands, in their common type; and of an operand and a number of its type.
macro_rules! binary {
    ($($trait:ident $method:ident $op:ident $bound:ident;)*) => {$(
        binary!(@pairs $trait $method $op $bound; (Tensor<T>), (&Tensor<T>), (Expr<T>), (&Expr<T>));
        binary!(@left $trait $method $op;
            bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
    )*};
    (@pairs $trait:ident $method:ident $op:ident $bound:ident; $(($a:ty)),*) => {$(
        binary!(@pair $trait $method $op $bound; $a; Tensor<U>);
        binary!(@pair $trait $method $op $bound; $a; &Tensor<U>);
        binary!(@pair $trait $method $op $bound; $a; Expr<U>);
        binary!(@pair $trait $method $op $bound; $a; &Expr<U>);

        impl<T: Scalar + $bound> $trait<T> for $a {
            type Output = Expr<T>;
            fn $method(self, other: T) -> Expr<T> {
                Expr::binary(Op::$op, self.expr(), scalar(other))
            }
        }
    )*};
    (@pair $trait:ident $method:ident $op:ident $bound:ident; $a:ty; $b:ty) => {
        impl<T: Promote<U, Output: $bound>, U: Scalar> $trait<$b> for $a {
            type Output = Expr<T::Output>;
            fn $method(self, other: $b) -> Expr<T::Output> {
                Expr::binary(Op::$op, self.expr().convert::<T::Output>(), other.expr().convert::<T::Output>())
            }
        }
    };
    (@left $trait:ident $method:ident $op:ident; $($t:ident),*) => {
        $(binary!(@left_one $trait $op $t $method);)*
    };
    // Only the types that the operator is for.
    (@left_one BitAnd $op:ident $t:ident $method:ident) => { binary!(@bits BitAnd $op $t $method); };
    (@left_one BitOr $op:ident $t:ident $method:ident) => { binary!(@bits BitOr $op $t $method); };
    (@left_one BitXor $op:ident $t:ident $method:ident) => { binary!(@bits BitXor $op $t $method); };
    (@left_one $trait:ident $op:ident bool $method:ident) => {};
    (@left_one $trait:ident $op:ident $t:ident $method:ident) => { binary!(@number $trait $op $t $method); };
    (@bits $trait:ident $op:ident f16 $method:ident) => {};
    (@bits $trait:ident $op:ident bf16 $method:ident) => {};
    (@bits $trait:ident $op:ident f32 $method:ident) => {};
    (@bits $trait:ident $op:ident f64 $method:ident) => {};
    (@bits $trait:ident $op:ident $t:ident $method:ident) => { binary!(@number $trait $op $t $method); };
    (@number $trait:ident $op:ident $t:ident $method:ident) => {
        binary!(@from $trait $op $t $method, Tensor<$t>);
        binary!(@from $trait $op $t $method, &Tensor<$t>);
        binary!(@from $trait $op $t $method, Expr<$t>);
        binary!(@from $trait $op $t $method, &Expr<$t>);
    };
    (@from $trait:ident $op:ident $t:ident $method:ident, $b:ty) => {
        impl $trait<$b> for $t {
            type Output = Expr<$t>;
            fn $method(self, other: $b) -> Expr<$t> {
                Expr::binary(Op::$op, scalar(self), other.expr())
            }
        }
    };
}
binary! {
    Add add Add Numeric;
    Sub sub Sub Numeric;
    Mul mul Mul Numeric;
    Div div Div Numeric;
    Rem rem Rem Numeric;
    BitAnd bitand And Logical;
    BitOr bitor Or Logical;
    BitXor bitxor Xor Logical;
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
    Shl shl Shl: Tensor<T>, &Tensor<T>, Expr<T>, &Expr<T>;
    Shr shr Shr: Tensor<T>, &Tensor<T>, Expr<T>, &Expr<T>;
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
    Neg neg Neg Numeric: Tensor<T>, &Tensor<T>, Expr<T>, &Expr<T>;
    Not not Not Logical: Tensor<T>, &Tensor<T>, Expr<T>, &Expr<T>;
}
