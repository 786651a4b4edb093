//! Tests conversions, and the common types of operands.

use half::{bf16, f16};
use kernel_primitives::Result;
use kernel_primitives::expr::*;

use super::check1;
use crate::{Sample, assert_near, stream};

macro_rules! casts {
    ($($name:ident $a:ident;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            casts!(@to $a; bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
            Ok(())
        }
    )*};
    (@to $a:ident; $($b:ident),*) => {
        $(check1(concat!("cast to ", stringify!($b)), |x| x.cast::<$b>(), 0, |a: $a| <$b>::of(a.wide()))?;)*
    };
}
casts! {
    casts_bool bool; casts_i8 i8; casts_i16 i16; casts_i32 i32; casts_i64 i64; casts_u8 u8; casts_u16 u16; casts_u32 u32;
    casts_u64 u64; casts_f16 f16; casts_bf16 bf16; casts_f32 f32; casts_f64 f64;
}

#[test]
fn operands_of_two_types_meet_in_their_common_type() -> Result<()> {
    macro_rules! check {
        ($($a:ident $b:ident => $c:ident;)*) => {$(
            assert_eq!(DType::promote($a::DTYPE, $b::DTYPE), Some($c::DTYPE));
            check_promotion::<$a, $b, $c>(|a, b| minimum(a, b), |a, b| minimum(a, b))?;
            check_promotion::<$a, $b, $c>(|a, b| select(lt(&a, &b), a, b), |a, b| select(lt(&a, &b), a, b))?;
        )*};
    }
    check! {
        bool i8 => i8; bool f16 => f16; u64 bool => u64;
        i8 u8 => i16; u16 i8 => i32; u16 i16 => i32; i32 u16 => i32; i16 u32 => i64; i64 u8 => i64; u8 u32 => u32;
        i64 f16 => f16; u8 bf16 => bf16; f32 i32 => f32; f64 u64 => f64;
        f16 bf16 => f32; bf16 f32 => f32; f16 f64 => f64; f32 f64 => f64;
    }
    Ok(())
}

/// Compares an operator of two types with the operator of their common type.
fn check_promotion<A: Sample + Promote<B, Output = C>, B: Sample, C: Sample + Promote<C, Output = C>>(
    mixed: impl Fn(Expr<A>, Expr<B>) -> Expr<C>,
    common: impl Fn(Expr<C>, Expr<C>) -> Expr<C>,
) -> Result<()> {
    let stream = stream()?;
    let (a, b) = (A::samples(), B::samples());
    let x = Tensor::from_slice(&stream, [a.len(), 1], &a)?;
    let y = Tensor::from_slice(&stream, b.len(), &b)?;
    let z = Tensor::uninit(&stream, [2, a.len(), b.len()])?;
    z.slice(0)?.assign(mixed(x.clone().expr(), y.clone().expr()))?;
    z.slice(1)?.assign(common(x.cast(), y.cast()))?;
    let what = format!("{} and {}", A::DTYPE, B::DTYPE);
    assert_near(&z.slice(0)?.to_vec()?, &z.slice(1)?.to_vec()?, 0, &what);
    Ok(())
}
