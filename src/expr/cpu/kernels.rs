//! Kernels that compute an operator over a chunk of elements of any type.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use primitives_gpu::element::{
    Arithmetic, Bits as _, ConvertTo, Divide, Float, Integer, Magnitude, Ordered, Quotient, Real,
};
use primitives_gpu::simt::{Fault, FaultKind};
use primitives_host::Diagnosis;

use super::{Compute, Kernel};
use crate::expr::call::FunctionRef;
use crate::expr::dtype::{DType, with_type};
use crate::expr::graph::{Math, Op};

struct Map1<A, O, F> {
    f: F,
    types: PhantomData<fn(A) -> O>,
}

fn map1<A: Copy + 'static, O: 'static>(f: impl Fn(A) -> O + Send + Sync + 'static) -> Kernel {
    Box::new(Map1 { f, types: PhantomData })
}

impl<A: Copy, O, F: Fn(A) -> O + Send + Sync> Compute for Map1<A, O, F> {
    unsafe fn compute(&self, arguments: &[*const u8], to: *mut u8, len: usize) -> Option<Diagnosis> {
        // SAFETY: the caller's contract.
        let (a, to) = unsafe { (all(arguments[0].cast::<A>(), len), room(to.cast::<O>(), len)) };
        for (to, &a) in to.iter_mut().zip(a) {
            to.write((self.f)(a));
        }
        None
    }
}

/// # Safety
/// There must be `len` values.
unsafe fn all<'a, T>(values: *const T, len: usize) -> &'a [T] {
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts(values, len) }
}

/// # Safety
/// There must be room for `len` values, which nothing else uses.
unsafe fn room<'a, T>(values: *mut T, len: usize) -> &'a mut [MaybeUninit<T>] {
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts_mut(values.cast(), len) }
}

struct Map2<A, B, O, F> {
    f: F,
    uniform: [bool; 2],
    types: PhantomData<fn(A, B) -> O>,
}

/// Makes a kernel of two arguments of the chunk's length. An argument is a single value if `uniform` says so. At most one of them is.
fn map2<A: Copy + 'static, B: Copy + 'static, O: 'static>(
    uniform: [bool; 2],
    f: impl Fn(A, B) -> O + Send + Sync + 'static,
) -> Kernel {
    Box::new(Map2 { f, uniform, types: PhantomData })
}

impl<A: Copy, B: Copy, O, F: Fn(A, B) -> O + Send + Sync> Compute for Map2<A, B, O, F> {
    unsafe fn compute(&self, arguments: &[*const u8], to: *mut u8, len: usize) -> Option<Diagnosis> {
        let (a, b) = (arguments[0].cast::<A>(), arguments[1].cast::<B>());
        // SAFETY: the caller's contract.
        let to = unsafe { room(to.cast::<O>(), len) };
        match self.uniform {
            [true, _] => {
                // SAFETY: the caller's contract.
                let (a, b) = unsafe { (a.read(), all(b, len)) };
                for (to, &b) in to.iter_mut().zip(b) {
                    to.write((self.f)(a, b));
                }
            }
            [false, true] => {
                // SAFETY: the caller's contract.
                let (a, b) = unsafe { (all(a, len), b.read()) };
                for (to, &a) in to.iter_mut().zip(a) {
                    to.write((self.f)(a, b));
                }
            }
            [false, false] => {
                // SAFETY: the caller's contract.
                let (a, b) = unsafe { (all(a, len), all(b, len)) };
                for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
                    to.write((self.f)(a, b));
                }
            }
        }
        None
    }
}

struct Map3<A, B, O, F> {
    f: F,
    types: PhantomData<fn(A, B) -> O>,
}

fn map3<A: Copy + 'static, B: Copy + 'static, O: 'static>(f: impl Fn(A, B, B) -> O + Send + Sync + 'static) -> Kernel {
    Box::new(Map3 { f, types: PhantomData })
}

impl<A: Copy, B: Copy, O, F: Fn(A, B, B) -> O + Send + Sync> Compute for Map3<A, B, O, F> {
    unsafe fn compute(&self, arguments: &[*const u8], to: *mut u8, len: usize) -> Option<Diagnosis> {
        // SAFETY: the caller's contract.
        let (a, b, c, to) = unsafe {
            (
                all(arguments[0].cast::<A>(), len),
                all(arguments[1].cast::<B>(), len),
                all(arguments[2].cast::<B>(), len),
                room(to.cast::<O>(), len),
            )
        };
        for (((to, &a), &b), &c) in to.iter_mut().zip(a).zip(b).zip(c) {
            to.write((self.f)(a, b, c));
        }
        None
    }
}

/// A division of integers, which is a fault if a divisor is zero.
struct Division<T> {
    kernel: Kernel,
    /// Whether the divisor is a single value.
    uniform: bool,
    types: PhantomData<fn(T)>,
}

/// Makes a kernel for a quotient. A division of integers by zero is a fault.
fn quotient<T: Divisor>(uniform: [bool; 2], f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Kernel {
    let kernel = map2(uniform, f);
    match T::INTEGER {
        true => Box::new(Division::<T> { kernel, uniform: uniform[1], types: PhantomData }),
        false => kernel,
    }
}

impl<T: Divisor> Compute for Division<T> {
    unsafe fn compute(&self, arguments: &[*const u8], to: *mut u8, len: usize) -> Option<Diagnosis> {
        // SAFETY: the caller's contract.
        let divisors = unsafe { all(arguments[1].cast::<T>(), if self.uniform { 1 } else { len }) };
        if divisors.contains(&T::ZERO) {
            return Some(Fault { kind: FaultKind::DivisionByZero, args: [0; 2] }.into());
        }
        // SAFETY: the caller's contract.
        unsafe { self.kernel.compute(arguments, to, len) }
    }
}

trait Divisor: Quotient + 'static {
    const INTEGER: bool;
}
macro_rules! divisors {
    ($($integer:literal: $($t:ty),*;)*) => { $($(impl Divisor for $t { const INTEGER: bool = $integer; })*)* };
}
divisors! {
    true: i8, i16, i32, i64, u8, u16, u32, u64;
    false: half::f16, half::bf16, f32, f64;
}

impl Compute for FunctionRef {
    unsafe fn compute(&self, arguments: &[*const u8], to: *mut u8, len: usize) -> Option<Diagnosis> {
        // SAFETY: the caller's contract, for the function's types.
        let run = || unsafe { self.0.run(arguments, to, len) };
        let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
        let text = panic.downcast_ref::<&str>().map(|&text| text.into());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Some(Diagnosis::Panicked { message })
    }
}

/// Calls the body with `$T` as the type, which is one of a list.
macro_rules! among {
    ($dtype:expr, numbers, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    ($dtype:expr, integers, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    ($dtype:expr, bits, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    ($dtype:expr, floats, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $t:ty),*) => {
        match $dtype {
            $(DType::$variant => {
                type $T = $t;
                $body
            })*
            #[allow(unreachable_patterns, reason = "some lists are whole")]
            other => unreachable!("an operator on {other}, which its bounds exclude"),
        }
    };
}

pub(super) use among;

/// Returns the kernel of an operator whose first argument has type `from`.
pub(in crate::expr) fn kernel(op: Op, from: DType, to: DType) -> Kernel {
    kernel_of(op, from, to, [false; 2])
}

/// Works as [`kernel`], but one of two arguments may be a single value for all elements.
pub(super) fn kernel_of(op: Op, from: DType, to: DType, uniform: [bool; 2]) -> Kernel {
    match op {
        Op::Neg => among!(from, numbers, T => map1(|a: T| Arithmetic::neg(a))),
        Op::Not => among!(from, bits, T => map1(|a: T| primitives_gpu::element::Bits::not(a))),
        Op::Abs => among!(from, numbers, T => map1(|a: T| a.magnitude())),
        Op::Recip => among!(from, floats, T => map1(|a: T| Divide::divide(<T as Arithmetic>::ONE, a))),
        Op::Cast => with_type!(from, T => with_type!(to, U => map1(|a: T| ConvertTo::<U>::convert(a)))),
        Op::IsNan => among!(from, numbers, T => map1(|a: T| a.unordered())),
        Op::Math(function) => among!(from, floats, T => math::<T>(function)),
        Op::Add => among!(from, numbers, T => map2(uniform, |a: T, b: T| Arithmetic::add(a, b))),
        Op::Sub => among!(from, numbers, T => map2(uniform, |a: T, b: T| Arithmetic::sub(a, b))),
        Op::Mul => among!(from, numbers, T => map2(uniform, |a: T, b: T| Arithmetic::mul(a, b))),
        Op::Div => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.divide(b))),
        Op::Rem => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.trunc_remainder(b))),
        Op::FloorDiv => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.floor_divide(b))),
        Op::FloorRem => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.floor_remainder(b))),
        Op::Min => with_type!(from, T => map2(uniform, |a: T, b: T| Ordered::minimum(a, b))),
        Op::Max => with_type!(from, T => map2(uniform, |a: T, b: T| Ordered::maximum(a, b))),
        Op::And => among!(from, bits, T => map2(uniform, |a: T, b: T| a.and(b))),
        Op::Or => among!(from, bits, T => map2(uniform, |a: T, b: T| a.or(b))),
        Op::Xor => among!(from, bits, T => map2(uniform, |a: T, b: T| a.xor(b))),
        Op::Shl => {
            among!(from, integers, T => map2(uniform, |a: T, b: T| Integer::shl(a, shift(b))))
        }
        Op::Shr => {
            among!(from, integers, T => map2(uniform, |a: T, b: T| Integer::shr(a, shift(b))))
        }
        Op::Eq => with_type!(from, T => map2(uniform, |a: T, b: T| a == b)),
        Op::Ne => with_type!(from, T => map2(uniform, |a: T, b: T| a != b)),
        Op::Lt => with_type!(from, T => map2(uniform, |a: T, b: T| a.less(b))),
        Op::Le => with_type!(from, T => map2(uniform, |a: T, b: T| a.less_or_equal(b))),
        Op::Pow => among!(from, floats, T => map2(uniform, |a: T, b: T| Real::powf(a, b))),
        Op::Atan2 => among!(from, floats, T => map2(uniform, |a: T, b: T| Real::atan2(a, b))),
        Op::Hypot => among!(from, floats, T => map2(uniform, |a: T, b: T| Real::hypot(a, b))),
        Op::Select => with_type!(to, T => map3(|which: bool, a: T, b: T| if which { a } else { b })),
        Op::MulAdd => among!(from, floats, T => map3(|a: T, b: T, c: T| Float::mul_add(a, b, c))),
    }
}

/// Returns the number of bits to shift by. A negative number, or a number that does not fit in a word, becomes more than the number of
/// bits.
fn shift(by: impl TryInto<u32>) -> u32 {
    by.try_into().unwrap_or(u32::MAX)
}

fn math<T: Real + 'static>(function: Math) -> Kernel {
    macro_rules! kernels {
        ($($(#[$doc:meta])* $name:ident $variant:ident $method:ident $functions:tt $real:tt;)*) => {
            match function {
                Math::Sqrt => map1(|a: T| Real::sqrt(a)),
                Math::Rsqrt => map1(|a: T| Real::rsqrt(a)),
                Math::Floor => map1(|a: T| Real::floor(a)),
                Math::Ceil => map1(|a: T| Real::ceil(a)),
                Math::Trunc => map1(|a: T| Real::trunc(a)),
                Math::Round => map1(|a: T| Real::round(a)),
                Math::RoundTiesEven => map1(|a: T| Real::round_ties_even(a)),
                $(Math::$variant => map1(|a: T| Real::$method(a)),)*
            }
        };
    }
    crate::__elementary!(kernels)
}
