//! Tests operators and functions of floats, and their roundings.

use half::{bf16, f16};
use kernel_primitives::Result;
use kernel_primitives::expr::*;

use super::{check1, check2, compares, pairs};
use crate::elementary::elementary;
use crate::{Sample, Wide, assert_near, stream};

macro_rules! floats {
    ($($name:ident $t:ident, $wide:ident, |$x:ident| $to:expr, |$y:ident| $from:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            type T = $t;
            let to = |$x: T| -> $wide { $to };
            let from = |$y: $wide| -> T { $from };
            let two = |f: fn($wide, $wide) -> $wide| move |a: T, b: T| from(f(to(a), to(b)));
            check2("+", |a, b| a + b, 0, two(|a, b| a + b))?;
            check2("-", |a, b| a - b, 0, two(|a, b| a - b))?;
            check2("*", |a, b| a * b, 0, two(|a, b| a * b))?;
            check2("/", |a, b| a / b, 0, two(|a, b| a / b))?;
            check2("%", |a, b| a % b, 0, two(|a, b| a % b))?;
            // The results are those of Python.
            let floored = |a: $wide, b: $wide| {
                let rest = a % b;
                if rest == 0.0 { (rest.copysign(b), false) }
                else if (rest < 0.0) != (b < 0.0) { (rest + b, true) }
                else { (rest, false) }
            };
            check2("floor_rem", floor_rem, 0, move |a: T, b: T| from(floored(to(a), to(b)).0))?;
            check2("floor_div", floor_div, 1, move |a: T, b: T| {
                let (a, b) = (to(a), to(b));
                if b == 0.0 {
                    return from(a / b);
                }
                let quotient = ((a - a % b) / b).round_ties_even() - if floored(a, b).1 { 1.0 } else { 0.0 };
                from(if quotient == 0.0 { (0.0 as $wide).copysign(a / b) } else { quotient })
            })?;
            let zero_first = |a: T, b: T, least: bool| {
                if a.is_nan() || b.is_nan() { T::NAN }
                else if a == b { if a.is_sign_negative() == least { a } else { b } }
                else if (a < b) == least { a } else { b }
            };
            check2("min", minimum, 0, move |a: T, b: T| zero_first(a, b, true))?;
            check2("max", maximum, 0, move |a: T, b: T| zero_first(a, b, false))?;
            check1("relu", relu, 0, move |a: T| zero_first(a, from(0.0), false))?;
            check1("neg", |a| -a, 0, |a: T| if a.is_nan() { a } else { from(-to(a)) })?;
            check1("abs", abs, 0, move |a: T| from(to(a).abs()))?;
            check1("recip", recip, 0, move |a: T| from(1.0 / to(a)))?;
            check1("square", square, 0, move |a: T| from(to(a) * to(a)))?;
            check1("is_nan", is_nan, 0, |a: T| a.is_nan())?;
            check1("sqrt", sqrt, 0, move |a: T| from(to(a).sqrt()))?;
            check1("floor", floor, 0, move |a: T| from(to(a).floor()))?;
            check1("ceil", ceil, 0, move |a: T| from(to(a).ceil()))?;
            check1("trunc", trunc, 0, move |a: T| from(to(a).trunc()))?;
            check1("round", round, 0, move |a: T| from(to(a).round()))?;
            check1("round_ties_even", round_ties_even, 0, move |a: T| from(to(a).round_ties_even()))?;
            check1("1 - x", |a| from(1.0) - a, 0, move |a: T| from(1.0 - to(a)))?;
            let (third, least, most) = (from(1.0 / 3.0), from(-1.5), from(2.0));
            check1("x * third", |a| a * third, 0, move |a: T| from(to(a) * to(third)))?;
            check1("clamp", |a| clamp(a, least, most), 0, move |a: T| {
                zero_first(zero_first(a, least, false), most, true)
            })?;
            compares::<T>()?;
            approximations::<T>()
        }
    )*};
}
floats! {
    operators_f16 f16, f32, |x| x.to_f32(), |x| f16::from_f32(x);
    operators_bf16 bf16, f32, |x| x.to_f32(), |x| bf16::from_f32(x);
    operators_f32 f32, f32, |x| x, |x| x;
    operators_f64 f64, f64, |x| x, |x| x;
}

/// Returns the sine of `x` half turns and `quarters` quarters of a turn. It takes whole quarters off first, so it is exact at the zeros and
/// right for large values.
pub(crate) fn sin_of_half_turns(x: f64, quarters: f64) -> f64 {
    let x = x % 2.0;
    let quarter = (2.0 * x).round_ties_even();
    let (sin, cos) = (std::f64::consts::PI * (x - quarter / 2.0)).sin_cos();
    let value = match (quarter + quarters).rem_euclid(4.0) {
        0.0 => sin,
        1.0 => cos,
        2.0 => -sin,
        3.0 => -cos,
        _ => f64::NAN,
    };
    match (value == 0.0, quarters == 0.0) {
        (false, _) => value,
        // As in C23: zeros of the sine have the sign of the number, and those of the cosine are positive.
        (true, true) => 0f64.copysign(x),
        (true, false) => 0.0,
    }
}

/// Compares functions that are not correctly rounded with `f64`. They may differ by a few units in the last place, and half types by one.
fn approximations<T: Sample + Floating + Promote<T, Output = T>>() -> Result<()> {
    let ulps = match T::DTYPE {
        DType::F16 | DType::BF16 => 1,
        _ => 6,
    };
    let back = |x: f64| T::of(Wide::Float(x));
    macro_rules! one {
        ($($name:ident: $reference:expr;)*) => {$({
            let reference: fn(f64) -> f64 = $reference;
            check1(stringify!($name), |x| $name(x), ulps, |a: T| back(reference(a.float())))?;
        })*};
    }
    macro_rules! table {
        ($($name:ident $variant:ident $method:ident $functions:tt $limits:tt $reference:expr;)*) => {
            one! { $($name: $reference;)* }
        };
    }
    elementary!(table);
    one! {
        sin_pi: |x| sin_of_half_turns(x, 0.0);
        cos_pi: |x| sin_of_half_turns(x, 1.0);
        rsqrt: |x| 1.0 / x.sqrt();
    }
    // The exponential and the sum 1 + e⁻ˣ are computed in the type itself.
    check1("sigmoid", sigmoid, ulps + 2, |a: T| {
        let e = back((-a.float()).exp()).float();
        back(1.0 / back(1.0 + e).float())
    })?;
    check2("pow", pow, ulps, |a: T, b: T| back(a.float().powf(b.float())))?;
    check2("atan2", atan2, ulps, |a: T, b: T| back(a.float().atan2(b.float())))?;
    check2("hypot", hypot, ulps, |a: T, b: T| back(a.float().hypot(b.float())))
}

#[test]
fn a_multiplied_sum_is_rounded_once() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ident: $reference:expr;)*) => {$({
            let (a, b) = pairs::<$t>();
            let c = a.iter().zip(&b).rev().map(|(&a, &b)| -(a * b)).collect::<Vec<_>>();
            let make = |data: &[$t]| Tensor::from_slice(&stream, data.len(), data);
            let z = Tensor::uninit(&stream, a.len())?;
            z.assign(mul_add(&make(&a)?, &make(&b)?, &make(&c)?))?;
            let reference: fn($t, $t, $t) -> $t = $reference;
            let expected: Vec<$t> = (0..a.len()).map(|i| reference(a[i], b[i], c[i])).collect();
            assert_near(&z.to_vec()?, &expected, 0, stringify!($t));
        })*};
    }
    check! {
        f32: f32::mul_add;
        f64: f64::mul_add;
        f16: |a, b, c| f16::from_f64(a.to_f64() * b.to_f64() + c.to_f64());
    }
    // Here, two roundings, by `f32` and by `bf16`, would give another result. A GPU without the instruction rounds to odd in between.
    let make = |bits: u16| Tensor::from_slice(&stream, 1, &[bf16::from_bits(bits)]);
    let z = Tensor::<bf16>::zeros(&stream, 1)?;
    // (1 + 1/128) (1 + 1/2) is halfway between two values. A small number is subtracted.
    let (one, factor, little) = (make(0x3f81)?, make(0x3fc0)?, make(0xaf80)?);
    z.assign(mul_add(&one, &factor, &little))?;
    assert_eq!(z.to_vec()?[0].to_bits(), 0x3fc1);
    assert!(z.ptx(mul_add(&one, &factor, &little), 75)?.contains("fma.rz.f64"));
    assert!(z.ptx(mul_add(&one, &factor, &little), 80)?.contains("fma.rn.bf16"));
    // 259 - 2^-20 has more digits than `f32`. As `f32`, it is 259, halfway between 258 and 260.
    let [a, b, c] = [7.0, 37.0, -f32::powi(2.0, -20)].map(|x| make(bf16::from_f32(x).to_bits()));
    let (a, b, c) = (a?, b?, c?);
    z.assign(mul_add(&a, &b, &c))?;
    assert_eq!(z.to_vec()?, [bf16::from_f32(258.0)]);
    // Nothing is rounded to nearest in between.
    let text = z.ptx(mul_add(&a, &b, &c), 75)?;
    assert!(["fma.rz.f64", "fma.rm.f64", "fma.rp.f64", "cvt.rz.f32.f64"].iter().all(|op| text.contains(op)), "{text}");
    assert!(["fma.rn", "add.rn", "mul.rn", "cvt.rn.f32.f64"].iter().all(|op| !text.contains(op)), "{text}");
    // Without `mul_add`, each operation is rounded.
    let x = Tensor::from_slice(&stream, 1, &[1.0f32 + f32::EPSILON])?;
    let y = Tensor::zeros(&stream, 1)?;
    y.assign(&x * &x - (1.0 + 2.0 * f32::EPSILON))?;
    assert_eq!(y.to_vec()?, [0.0]);
    Ok(())
}

#[test]
fn contracted_sums_of_products_are_rounded_once() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ident)*) => {$({
            let (a, b) = pairs::<$t>();
            let c = a.iter().zip(&b).rev().map(|(&a, &b)| -(a * b)).collect::<Vec<_>>();
            let make = |data: &[$t]| Tensor::from_slice(&stream, data.len(), data);
            let (x, y, z) = (make(&a)?, make(&b)?, make(&c)?);
            let result = Tensor::uninit(&stream, a.len())?;
            let fused = |x: $t, y: $t, z: $t| x.mul_add(y, z);
            let cases: [(&str, Expr<$t>, &dyn Fn($t, $t, $t) -> $t); 7] = [
                ("x y + z", &x * &y + &z, &fused),
                ("z + x y", &z + &x * &y, &fused),
                ("x y - z", &x * &y - &z, &|x, y, z| fused(x, y, -z)),
                ("z - x y", &z - &x * &y, &|x, y, z| fused(-x, y, z)),
                // The first product is contracted, with the other product rounded.
                ("x y + y z", &x * &y + &y * &z, &|x, y, z| fused(x, y, y * z)),
                // The product is deep inside, or is also needed by itself.
                ("sqrt(x y + z) - x y", sqrt(&x * &y + &z) - &x * &y, &|x, y, z| fused(-x, y, fused(x, y, z).sqrt())),
                // This is not a sum of a product.
                ("(x + y) / z", (&x + &y) / &z, &|x, y, z| (x + y) / z),
            ];
            for (name, expr, reference) in cases {
                result.assign(expr.contract())?;
                let expected: Vec<$t> = (0..a.len()).map(|i| reference(a[i], b[i], c[i])).collect();
                assert_near(&result.to_vec()?, &expected, 0, &format!("{name} of {}", stringify!($t)));
            }
        })*};
    }
    check!(f32 f64);
    // For integers, nothing is rounded.
    let x = Tensor::from_slice(&stream, 2, &[i32::MAX, -7])?;
    let y = Tensor::zeros(&stream, 2)?;
    y.assign((&x * 3 + 1).contract())?;
    assert_eq!(y.to_vec()?, [i32::MAX.wrapping_mul(3).wrapping_add(1), -20]);
    // These chains are too long for recursion.
    let one = Tensor::from_slice(&stream, 1, &[1.0f64])?;
    let sum = |length: usize| (0..length).fold(one.clone().expr(), |sum, _| sum + &one * constant(0.5)).contract();
    let total = Tensor::zeros(&stream, 1)?;
    total.assign(sum(1000))?;
    assert_eq!(total.to_vec()?, [501.0]);
    drop(sum(100_000));
    Ok(())
}
