//! Every operator and function, of every element type, against Rust's own arithmetic and `libm`.

use half::{bf16, f16};
use kernel_primitives::Result;
use kernel_primitives::expr::*;

use crate::{Sample, Wide, assert_near, stream};

/// All pairs of samples: the first of each, and the second.
fn pairs<T: Sample>() -> (Vec<T>, Vec<T>) {
    let samples = T::samples();
    samples.iter().flat_map(|&a| samples.iter().map(move |&b| (a, b))).unzip()
}

/// Compares an expression of all pairs of samples with a function.
fn check2<T: Sample, O: Sample>(
    name: &str,
    expression: impl Fn(Expr<T>, Expr<T>) -> Expr<O>,
    ulps: u64,
    reference: impl Fn(T, T) -> O,
) -> Result<()> {
    check_pairs(name, pairs(), expression, ulps, reference)
}

fn check_pairs<T: Sample, U: Sample, O: Sample>(
    name: &str,
    (a, b): (Vec<T>, Vec<U>),
    expression: impl Fn(Expr<T>, Expr<U>) -> Expr<O>,
    ulps: u64,
    reference: impl Fn(T, U) -> O,
) -> Result<()> {
    let stream = stream()?;
    let (x, y) = (Tensor::from_slice(&stream, a.len(), &a)?, Tensor::from_slice(&stream, b.len(), &b)?);
    let z = Tensor::uninit(&stream, a.len())?;
    z.assign(expression(x.expr(), y.expr()))?;
    let got = z.to_vec()?;
    for i in 0..a.len() {
        let what = format!("{name} of {} {:?} and {} {:?}", T::DTYPE, a[i], U::DTYPE, b[i]);
        assert_near(&got[i..=i], &[reference(a[i], b[i])], ulps, &what);
    }
    Ok(())
}

fn check1<T: Sample, O: Sample>(
    name: &str,
    expression: impl Fn(Expr<T>) -> Expr<O>,
    ulps: u64,
    reference: impl Fn(T) -> O,
) -> Result<()> {
    let samples = T::samples();
    check_pairs(name, (samples.clone(), samples), |x, _: Expr<T>| expression(x), ulps, |a, _| reference(a))
}

fn bits<T: Sample>(x: T) -> T {
    x
}

/// A count that the type of what is shifted does not hold is more than it has bits, and so is a negative one.
#[test]
fn shifts_by_counts_of_other_types() -> Result<()> {
    macro_rules! check {
        ($($t:ident by $($by:ident)*;)*) => {$($(
            let counts = [0i128, 1, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 200, 255, 256, 257, 1 << 16, 1 << 32, -1, -8, -256, -1 << 32];
            let counts: Vec<$by> = counts.into_iter().filter_map(|count| count.try_into().ok()).collect();
            for x in $t::samples() {
                let by = |count: $by| u32::try_from(count).unwrap_or(u32::MAX).min(200);
                let pairs = || (vec![x; counts.len()], counts.clone());
                check_pairs("<<", pairs(), |a, b| a << b, 0, |a: $t, b| (0..by(b)).fold(a, |a, _| a.wrapping_add(a)))?;
                check_pairs(">>", pairs(), |a, b| a >> b, 0, |a: $t, b| (0..by(b)).fold(a, |a, _| a >> 1))?;
            }
        )*)*};
    }
    check! {
        u8 by u16 u32 u64 i8 i16 i32 i64;
        i8 by u8 i16 u32 u64 i64;
        u16 by u8 u32 i32 i64;
        i32 by i8 u64 i64;
        u64 by i8 u32 i64;
    }
    // One count for all.
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 3, &[1u8, 2, 255])?;
    let z = Tensor::uninit(&stream, 3)?;
    z.assign(&x << scalar(256i32))?;
    assert_eq!(z.to_vec()?, [0; 3]);
    Ok(())
}

macro_rules! integers {
    ($($name:ident $t:ident;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            type T = $t;
            /// Pairs whose second is not 0.
            fn divisors() -> (Vec<T>, Vec<T>) {
                let (a, b) = pairs::<T>();
                a.into_iter().zip(b).filter(|pair| pair.1 != 0).unzip()
            }
            let wide = |x: T| x as i128;
            check2("+", |a, b| a + b, 0, T::wrapping_add)?;
            check2("-", |a, b| a - b, 0, T::wrapping_sub)?;
            check2("*", |a, b| a * b, 0, T::wrapping_mul)?;
            check_pairs("/", divisors(), |a, b| a / b, 0, T::wrapping_div)?;
            check_pairs("%", divisors(), |a, b| a % b, 0, T::wrapping_rem)?;
            let floor = move |a: T, b: T| {
                let (a, b): (i128, i128) = (wide(a), wide(b));
                (a.rem_euclid(b) + if a.rem_euclid(b) != 0 && b < 0 { b } else { 0 }, a, b)
            };
            check_pairs("floor_rem", divisors(), floor_rem, 0, move |a, b| floor(a, b).0 as T)?;
            check_pairs("floor_div", divisors(), floor_div, 0, move |a, b| {
                let (rest, a, b) = floor(a, b);
                ((a - rest) / b) as T
            })?;
            check2("min", minimum, 0, T::min)?;
            check2("max", maximum, 0, T::max)?;
            check2("&", |a, b| a & b, 0, |a: T, b: T| a & b)?;
            check2("|", |a, b| a | b, 0, |a: T, b: T| a | b)?;
            check2("^", |a, b| a ^ b, 0, |a: T, b: T| a ^ b)?;
            // By as many bits as there are or more: as that many shifts by one. A negative number is many.
            let by = |b: T| -> u32 { u32::try_from(b).unwrap_or(u32::MAX).min(200) };
            check2("<<", |a, b| a << b, 0, move |a: T, b: T| (0..by(b)).fold(a, |a, _| a.wrapping_add(a)))?;
            check2(">>", |a, b| a >> b, 0, move |a: T, b: T| (0..by(b)).fold(a, |a, _| a >> 1))?;
            check1("neg", |a| -a, 0, T::wrapping_neg)?;
            check1("!", |a| !a, 0, |a: T| !a)?;
            check1("abs", abs, 0, |a: T| if wide(a) < 0 { a.wrapping_neg() } else { a })?;
            check1("square", square, 0, |a: T| a.wrapping_mul(a))?;
            check1("relu", relu, 0, |a: T| a.max(0))?;
            check1("clamp", |a| clamp(a, 3, 100), 0, |a: T| a.clamp(3, 100))?;
            compares::<T>()?;
            // Numbers on either side.
            check1("7 - x", |a| 7 - a, 0, |a: T| (7 as T).wrapping_sub(a))?;
            check1("x + 7", |a| a + 7, 0, |a: T| a.wrapping_add(7))?;
            check1("x >> 2", |a| a >> scalar(2u8), 0, |a: T| a >> 2)?;
            check1("6 & x", |a| 6 & a, 0, |a: T| a & 6)?;
            check1("constant", |a| a * constant(3 as T), 0, |a: T| a.wrapping_mul(3))
        }
    )*};
}
integers! {
    operators_i8 i8; operators_i16 i16; operators_i32 i32; operators_i64 i64;
    operators_u8 u8; operators_u16 u16; operators_u32 u32; operators_u64 u64;
}

/// Comparisons and what rests on them, of every type.
fn compares<T: Sample + PartialOrd + Promote<T, Output = T>>() -> Result<()> {
    check2("==", eq, 0, |a: T, b| a == b)?;
    check2("!=", ne, 0, |a: T, b| a != b)?;
    check2("<", lt, 0, |a: T, b| a < b)?;
    check2("<=", le, 0, |a: T, b| a <= b)?;
    check2(">", gt, 0, |a: T, b| a > b)?;
    check2(">=", ge, 0, |a: T, b| a >= b)?;
    check2("select", |a, b| select(lt(&a, &b), a, b), 0, |a: T, b| if a < b { a } else { b })
}

#[test]
fn operators_bool() -> Result<()> {
    check2("&", |a, b| a & b, 0, |a: bool, b| a & b)?;
    check2("|", |a, b| a | b, 0, |a: bool, b| a | b)?;
    check2("^", |a, b| a ^ b, 0, |a: bool, b| a ^ b)?;
    check2("min", minimum, 0, |a: bool, b| a & b)?;
    check2("max", maximum, 0, |a: bool, b| a | b)?;
    check1("!", |a| !a, 0, |a: bool| !a)?;
    check1("true & x", |a| true & a, 0, bits::<bool>)?;
    compares::<bool>()
}

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
            // As Python's.
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

/// By quarters of a turn, which leave nothing of large values, and are exact at the zeros; `quarters` more of them.
pub(crate) fn sin_of_half_turns(x: f64, quarters: f64) -> f64 {
    let x = x % 2.0;
    let quarter = (2.0 * x).round_ties_even();
    let (sin, cos) = (std::f64::consts::PI * (x - quarter / 2.0)).sin_cos();
    match (quarter + quarters).rem_euclid(4.0) {
        0.0 => sin,
        1.0 => cos,
        2.0 => -sin,
        3.0 => -cos,
        _ => f64::NAN,
    }
}

/// Functions that are not correctly rounded, against `f64`: to a few units in the last place, of the half types to one.
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
    one! {
        cbrt: f64::cbrt;
        exp: f64::exp;
        exp2: f64::exp2;
        exp_m1: f64::exp_m1;
        ln: f64::ln;
        log2: f64::log2;
        log10: f64::log10;
        ln_1p: f64::ln_1p;
        asin: f64::asin;
        acos: f64::acos;
        atan: f64::atan;
        sinh: f64::sinh;
        cosh: f64::cosh;
        tanh: f64::tanh;
        asinh: libm::asinh;
        acosh: |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
        atanh: libm::atanh;
        erf: libm::erf;
        erfc: libm::erfc;
        sin: f64::sin;
        cos: f64::cos;
        tan: f64::tan;
        sin_pi: |x| sin_of_half_turns(x, 0.0);
        cos_pi: |x| sin_of_half_turns(x, 1.0);
        rsqrt: |x| 1.0 / x.sqrt();
    }
    // Of 1 + e⁻ˣ in the type itself.
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
    // Where `f32` and `bf16` would round one after the other; a GPU without the instruction rounds to odd in between.
    let make = |bits: u16| Tensor::from_slice(&stream, 1, &[bf16::from_bits(bits)]);
    let z = Tensor::<bf16>::zeros(&stream, 1)?;
    // (1 + 1/128) (1 + 1/2) lies halfway between two values; a little is taken away.
    let (one, factor, little) = (make(0x3f81)?, make(0x3fc0)?, make(0xaf80)?);
    z.assign(mul_add(&one, &factor, &little))?;
    assert_eq!(z.to_vec()?[0].to_bits(), 0x3fc1);
    assert!(z.ptx(mul_add(&one, &factor, &little), 75)?.contains("fma.rz.f64"));
    assert!(z.ptx(mul_add(&one, &factor, &little), 80)?.contains("fma.rn.bf16"));
    // 259 - 2^-20 has more digits than `f32`, in which it is 259, halfway between 258 and 260.
    let [a, b, c] = [7.0, 37.0, -f32::powi(2.0, -20)].map(|x| make(bf16::from_f32(x).to_bits()));
    let (a, b, c) = (a?, b?, c?);
    z.assign(mul_add(&a, &b, &c))?;
    assert_eq!(z.to_vec()?, [bf16::from_f32(258.0)]);
    // Nothing is rounded to nearest on the way.
    let text = z.ptx(mul_add(&a, &b, &c), 75)?;
    assert!(["fma.rz.f64", "fma.rm.f64", "fma.rp.f64", "cvt.rz.f32.f64"].iter().all(|op| text.contains(op)), "{text}");
    assert!(["fma.rn", "add.rn", "mul.rn", "cvt.rn.f32.f64"].iter().all(|op| !text.contains(op)), "{text}");
    // Without it, each operation is rounded.
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
                // The first product, of the other as it is rounded.
                ("x y + y z", &x * &y + &y * &z, &|x, y, z| fused(x, y, y * z)),
                // Deep inside, and where the product is needed too.
                ("sqrt(x y + z) - x y", sqrt(&x * &y + &z) - &x * &y, &|x, y, z| fused(-x, y, fused(x, y, z).sqrt())),
                // No sum of a product.
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
    // Of integers there is nothing to round.
    let x = Tensor::from_slice(&stream, 2, &[i32::MAX, -7])?;
    let y = Tensor::zeros(&stream, 2)?;
    y.assign((&x * 3 + 1).contract())?;
    assert_eq!(y.to_vec()?, [i32::MAX.wrapping_mul(3).wrapping_add(1), -20]);
    // Chains that are too long for recursion.
    let one = Tensor::from_slice(&stream, 1, &[1.0f64])?;
    let sum = |length: usize| (0..length).fold(one.clone().expr(), |sum, _| sum + &one * constant(0.5)).contract();
    let total = Tensor::zeros(&stream, 1)?;
    total.assign(sum(1000))?;
    assert_eq!(total.to_vec()?, [501.0]);
    drop(sum(100_000));
    Ok(())
}

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

/// Compares an operator of two types with that of their common type.
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

#[test]
fn indices_are_of_the_target() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<u64>::zeros(&stream, [3, 4, 5])?;
    x.assign(element_index())?;
    assert_eq!(x.to_vec()?, (0..60).collect::<Vec<_>>());
    x.assign(axis_index::<u64>(0) * 100 + axis_index::<u64>(1) * 10 + axis_index::<u64>(2))?;
    assert_eq!(x.to_vec()?, (0..60).map(|i| i / 20 * 100 + i / 5 % 4 * 10 + i % 5).collect::<Vec<_>>());
    // Whatever way the target lies.
    let turned = x.permute(&[2, 0, 1])?.slice((AxisSlice::from(..).by(-1), 1..))?;
    turned.assign(element_index())?;
    assert_eq!(turned.to_vec()?, (0..40).collect::<Vec<_>>());
    // Also where what is read makes the order, and through tiles.
    let square = Tensor::<u64>::zeros(&stream, [100, 100])?;
    square.assign(element_index())?;
    let sum = Tensor::<u64>::zeros(&stream, [100, 100])?;
    let counted = || element_index::<u64>() * 2 + axis_index::<u64>(0) * 3 + axis_index::<u64>(1) * 5;
    let expected = |i: u64, j: u64| (i * 100 + j) * 2 + i * 3 + j * 5;
    for (target, at) in [(sum.clone(), [100, 1]), (sum.t(), [1, 100])] {
        target.assign(square.t() + counted())?;
        let all = sum.to_vec()?;
        for (i, j) in (0..100).flat_map(|i| (0..100).map(move |j| (i, j))) {
            assert_eq!(all[i * at[0] + j * at[1]], (j * 100 + i) as u64 + expected(i as u64, j as u64));
        }
    }
    let part = sum.slice((3..90, 1..))?;
    part.assign(axis_index::<u64>(1) * 1000 + axis_index::<u64>(0))?;
    assert_eq!(part.slice(80)?.to_vec()?, (0..99).map(|j| j * 1000 + 80).collect::<Vec<u64>>());
    let f = Tensor::<f16>::zeros(&stream, 4)?;
    f.assign(element_index::<f16>() * f16::from_f32(0.5))?;
    assert_eq!(f.to_vec()?, [0.0, 0.5, 1.0, 1.5].map(f16::from_f32));
    let one = Tensor::<i8>::zeros(&stream, [1usize; 0])?;
    one.assign(element_index::<i8>() + 3)?;
    assert_eq!(one.item()?, 3);
    Ok(())
}

#[test]
fn updates_in_place() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 4, &[1i64, 2, 3, 4])?;
    let y = Tensor::from_slice(&stream, 1, &[3u8])?;
    x.mul_assign(&y)?;
    x.add_assign(&x)?;
    x.sub_assign(scalar(1i64))?;
    x.div_assign(y.cast::<i16>() - 1)?;
    assert_eq!(x.to_vec()?, [2, 5, 8, 11]);
    x.fill(-1)?;
    assert_eq!(x.to_vec()?, [-1; 4]);
    Ok(())
}

#[test]
fn assignments_together() -> Result<()> {
    let stream = stream()?;
    let n = 5000;
    let (a, b) = (crate::numbers::<f32>(n, 1), crate::numbers::<f32>(n, 2));
    let x = Tensor::from_slice(&stream, [50, 100], &a)?;
    let y = Tensor::from_slice(&stream, [50, 100], &b)?;
    let less = Tensor::<bool>::uninit(&stream, [50, 100])?;
    let turned = Tensor::<f64>::zeros(&stream, [100, 50])?;
    let sum = &x + &y;
    // Each of what was before.
    assign_all([x.to(&sum * 2.0f32), y.to(&x - &y), less.to(lt(&x, &y)), turned.t().to(sum.cast::<f64>())])?;
    let (x, y, less, turned) = (x.to_vec()?, y.to_vec()?, less.to_vec()?, turned.t().to_vec()?);
    for i in 0..n {
        let (a, b) = (a[i], b[i]);
        let expected = ((a + b) * 2.0, a - b, a < b, f64::from(a + b));
        assert_eq!((x[i], y[i], less[i], turned[i]), expected, "element {i}");
    }
    // Swapped, and the same value twice.
    let (x, y) = (Tensor::from_slice(&stream, 2, &[1, 2])?, Tensor::from_slice(&stream, 2, &[3, 4])?);
    assign_all([x.to(&y), y.to(&x)])?;
    assert_eq!((x.to_vec()?, y.to_vec()?), (vec![3, 4], vec![1, 2]));
    let value = &x * 2;
    assign_all([x.to(&value), y.to(value)])?;
    assert_eq!((x.to_vec()?, y.to_vec()?), (vec![6, 8], vec![6, 8]));
    assign_all([])?;
    let error = assign_all([x.to(scalar(1)), x.to(scalar(2))]).unwrap_err().to_string();
    assert!(error.contains("two targets of one kernel overlap") && error.contains("operators.rs:"), "{error}");
    let error = assign_all([x.to(scalar(1)), x.slice(0)?.to(scalar(2))]).unwrap_err().to_string();
    assert!(error.contains("one shape"), "{error}");
    Ok(())
}
