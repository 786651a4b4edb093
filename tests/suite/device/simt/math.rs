//! Tests mathematics.

use kernel_primitives::Result;

use crate::kernels::simt::elementary::elementary;
use crate::kernels::simt::math as kernels;
use crate::support::{Random, stream};

/// Returns the number of floats between two floats, and 0 if both are NaN.
fn ulps_f32(a: f32, b: f32) -> u64 {
    if a.is_nan() && b.is_nan() {
        return 0;
    }
    let ordered =
        |x: f32| if x.is_sign_negative() { -((x.to_bits() & 0x7fff_ffff) as i64) } else { x.to_bits() as i64 };
    if a.is_nan() || b.is_nan() { u64::MAX } else { ordered(a).abs_diff(ordered(b)) }
}

fn ulps_f64(a: f64, b: f64) -> u64 {
    if a.is_nan() && b.is_nan() {
        return 0;
    }
    let ordered =
        |x: f64| if x.is_sign_negative() { -((x.to_bits() & (!0 >> 1)) as i128) } else { x.to_bits() as i128 };
    if a.is_nan() || b.is_nan() { u64::MAX } else { ordered(a).abs_diff(ordered(b)) as u64 }
}

/// The file with the docs of the functions.
const DOCS: &str = include_str!("../../../../primitives-gpu/src/simt/math.rs");

/// Returns the functions in the table of the docs, with their largest errors in f32 and f64.
fn documented() -> Vec<(&'static str, [u64; 2])> {
    let rows = DOCS.lines().filter_map(|line| line.trim().strip_prefix("/// | `"));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        // After a comma, the docs say where errors are larger.
        let units =
            |cell: &str| cell.split(',').next().and_then(|units| units.trim().parse::<u64>().ok()).expect("units");
        let errors = [units(cells[1]), units(cells[2])];
        cells[0].split(',').map(move |name| (name.trim().trim_matches('`'), errors))
    })
    .collect()
}

type Reference = fn(f64, f64, f64) -> f64;

/// A name, the largest errors in f32 and f64 in units in the last place, the range of the arguments, and a reference.
type Row = (&'static str, u64, u64, f64, f64, Reference);

macro_rules! rows {
    (
        [$($other:tt)*]
        $($name:ident $variant:ident $method:ident $functions:tt ($f32:literal $f64:literal, $from:literal $to:literal) $reference:expr;)*
    ) => {
        &[
            $($other)*
            $((stringify!($method), $f32, $f64, $from, $to, |x, _, _| {
                let reference: fn(f64) -> f64 = $reference;
                reference(x)
            }),)*
        ]
    };
}

/// Rows are in the order of the kernel's numbers: these functions, and then those of the table of elementary functions. The errors are
/// those of the CUDA programming guide, plus one for the reference, or plus two for a reference of `libm` in f64. They are 0 if the result
/// is correctly rounded.
const MATH: &[Row] = elementary!(rows [
    ("sqrt", 0, 0, 0.0, 1e30, |x, _, _| x.sqrt()),
    ("rsqrt", 3, 3, 1e-30, 1e30, |x, _, _| 1.0 / x.sqrt()),
    ("powf", 5, 3, 0.1, 20.0, |x, y, _| x.powf(y)),
    ("atan2", 4, 3, -1e3, 1e3, |x, y, _| x.atan2(y)),
    ("hypot", 4, 3, -1e10, 1e10, |x, y, _| x.hypot(y)),
    ("abs", 0, 0, -1e30, 1e30, |x, _, _| x.abs()),
    ("floor", 0, 0, -100.0, 100.0, |x, _, _| x.floor()),
    ("ceil", 0, 0, -100.0, 100.0, |x, _, _| x.ceil()),
    ("trunc", 0, 0, -100.0, 100.0, |x, _, _| x.trunc()),
    ("round_ties_even", 0, 0, -100.0, 100.0, |x, _, _| x.round_ties_even()),
    ("round", 0, 0, -100.0, 100.0, |x, _, _| x.round()),
    ("mul_add", 0, 0, -1e10, 1e10, |x, y, z| x.mul_add(y, z)),
    ("copysign", 0, 0, -1e10, 1e10, |x, y, _| x.copysign(y)),
    ("tgamma", 6, 12, -5.0, 34.0, |x, _, _| libm::tgamma(x)),
    ("lgamma", 7, 6, -2.2, 20.0, |x, _, _| libm::lgamma(x)),
]);

/// Returns true if the docs have a largest error for a function of f64.
fn is_bounded(name: &str, x: f64) -> bool {
    name != "lgamma" || !(-23.0001..=-2.2637).contains(&x)
}

/// The docs cannot change without the table here.
#[test]
fn distances_are_those_of_the_docs() {
    assert!(DOCS.contains("up to 2 units for most functions"));
    assert!(
        DOCS.contains("from −10.001 to −2.264") && DOCS.contains("from −23.0001 to −2.2637"),
        "as `is_bounded` has it"
    );
    let documented = documented();
    for &(name, in_f32, in_f64, ..) in MATH {
        match documented.iter().find(|(documented, _)| *documented == name) {
            Some((_, [of_f32, of_f64])) => {
                assert_eq!(in_f32, of_f32 + 1, "{name} in f32");
                assert!(
                    (of_f64 + 1..=of_f64 + 2).contains(&in_f64),
                    "{name} in f64: {in_f64}, and the docs say {of_f64}"
                );
            }
            None => assert!(in_f32 <= 3 && in_f64 <= 3, "{name} is not in the table of the docs"),
        }
    }
    for (name, _) in &documented {
        assert!(
            MATH.iter().any(|(tested, ..)| tested == name),
            "{name} is in the table of the docs, and is not tested"
        );
    }
    // Each function with larger errors is there once.
    let larger = MATH.iter().filter(|&&(_, in_f32, in_f64, ..)| in_f32 > 3 || in_f64 > 3);
    assert_eq!(documented.len(), larger.count(), "{documented:?}");
    assert_eq!(MATH.iter().position(|(name, ..)| *name == "cbrt"), Some(kernels::OTHERS as usize));
}

/// Returns an argument in a range. Some arguments are multiples of a half. Wide ranges have arguments of all
/// magnitudes.
fn arguments(random: &mut Random, from: f64, to: f64) -> f64 {
    let uniform = from + random.unit() * (to - from);
    match random.below(4) {
        0 => (uniform * 2.0).round() / 2.0,
        1 if to >= 1e3 => uniform * 10f64.powf(-random.unit() * to.log10() * 1.5),
        _ => uniform,
    }
    .clamp(from, to)
}

#[test]
fn mathematics_of_f32_is_as_accurate_as_documented() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(31);
    for (which, &(name, allowed, _, from, to, reference)) in MATH.iter().enumerate() {
        let mut argument = || (0..2000).map(|_| arguments(&mut random, from, to) as f32).collect::<Vec<_>>();
        let (x, y, z) = (argument(), argument(), argument());
        let mut out = stream.buffer_zeroed(x.len())?;
        kernels::math::<f32>::launch(
            &stream,
            (3, 128),
            which as u32,
            &stream.buffer_from(&x)?,
            &stream.buffer_from(&y)?,
            &stream.buffer_from(&z)?,
            &mut out,
        )?;
        for (i, found) in out.to_vec()?.into_iter().enumerate() {
            // The reference is computed in f64 and rounded once more, unless that would round twice.
            let expected = match name {
                "mul_add" => x[i].mul_add(y[i], z[i]),
                _ => reference(x[i] as f64, y[i] as f64, z[i] as f64) as f32,
            };
            let distance = ulps_f32(found, expected);
            assert!(distance <= allowed, "{name}({}, {}, {}): {found} is {distance} from {expected}", x[i], y[i], z[i]);
        }
    }
    Ok(())
}

#[test]
fn mathematics_of_f64_is_as_accurate_as_documented() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(32);
    for (which, &(name, _, allowed, from, to, reference)) in MATH.iter().enumerate() {
        let mut argument = || (0..2000).map(|_| arguments(&mut random, from, to)).collect::<Vec<_>>();
        let (x, y, z) = (argument(), argument(), argument());
        let mut out = stream.buffer_zeroed(x.len())?;
        kernels::math::<f64>::launch(
            &stream,
            (3, 128),
            which as u32,
            &stream.buffer_from(&x)?,
            &stream.buffer_from(&y)?,
            &stream.buffer_from(&z)?,
            &mut out,
        )?;
        for (i, found) in out.to_vec()?.into_iter().enumerate() {
            let expected = reference(x[i], y[i], z[i]);
            let distance = ulps_f64(found, expected);
            assert!(distance <= allowed, "{name}({}, {}, {}): {found} is {distance} from {expected}", x[i], y[i], z[i]);
        }
    }
    Ok(())
}

#[test]
fn mathematics_at_special_values() -> Result<()> {
    let stream = stream()?;
    let special = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5, -0.5, 1.5, 2.5, -2.5, 1e300];
    for (which, &(name, _, allowed, _, _, reference)) in MATH.iter().enumerate() {
        let pairs: Vec<(f64, f64)> = special.iter().flat_map(|&x| special.iter().map(move |&y| (x, y))).collect();
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let input = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
        let mut out = stream.buffer_zeroed(x.len())?;
        kernels::math::<f64>::launch(&stream, (1, 64), which as u32, &input.0, &input.1, &input.0, &mut out)?;
        for ((x, y), found) in pairs.into_iter().zip(out.to_vec()?) {
            let expected = reference(x, y, x);
            let near = ulps_f64(found, expected) <= allowed.max(1) || !is_bounded(name, x);
            let sign = found.is_nan() || found != 0.0 || found.is_sign_negative() == expected.is_sign_negative();
            // For the sine of 1e300, libdevice and glibc both have an exact argument reduction.
            assert!(near && sign, "{name}({x}, {y}): {found}, expected {expected}");
        }
    }
    Ok(())
}

#[test]
fn sanitize_square_roots_are_correctly_rounded() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(5);
    let mut x: Vec<f32> = (0..4096).map(|_| f32::from_bits(random.bits() as u32 >> 1)).collect();
    x.extend([0.0, -0.0, f32::MIN_POSITIVE, 1e-45, 3e-42, f32::MAX, f32::INFINITY, -1.0, f32::NAN]);
    let input = stream.buffer_from(&x)?;
    let mut out = stream.buffer_zeroed(x.len())?;
    kernels::math::<f32>::launch(&stream, (4, 128), 0, &input, &input, &input, &mut out)?;
    for (x, found) in x.into_iter().zip(out.to_vec()?) {
        // The root of a 24-bit number in f64 is correctly rounded after rounding to f32.
        let expected = (x as f64).sqrt() as f32;
        assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{x}: {found}");
    }
    Ok(())
}

#[test]
fn quotients_and_products_are_rounded_correctly_and_not_fused() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(6);
    let special = [0.0f32, -0.0, 1.0, 3.0, 1e-45, 3e-39, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, -7.0];
    let mut pairs: Vec<(f32, f32)> = special.iter().flat_map(|&x| special.iter().map(move |&y| (x, y))).collect();
    pairs.extend((0..8192).map(|_| (f32::from_bits(random.bits() as u32), f32::from_bits(random.bits() as u32))));
    // These quotients are in the subnormal range.
    pairs.extend((0..2000).map(|_| (random.unit() as f32 * 1e-30, 1e8 + random.unit() as f32 * 1e9)));
    pairs.extend((0..2000).map(|_| (random.unit() as f32, random.unit() as f32)));
    let (x, y): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let (x64, y64): (Vec<f64>, Vec<f64>) = x.iter().zip(&y).map(|(&x, &y)| (x as f64 / 3.0, y as f64 / 7.0)).unzip();
    let mut out = stream.buffer_zeroed(x.len())?;
    let mut out64 = stream.buffer_zeroed(x.len())?;
    kernels::divide_f32::launch(&stream, (9, 256), &stream.buffer_from(&x)?, &stream.buffer_from(&y)?, &mut out)?;
    kernels::divide_f64::launch(&stream, (9, 256), &stream.buffer_from(&x64)?, &stream.buffer_from(&y64)?, &mut out64)?;
    for (i, ([quotient, sum], [quotient64, sum64])) in out.to_vec()?.into_iter().zip(out64.to_vec()?).enumerate() {
        let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        let same64 = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        // f64 has more than twice the bits of f32 plus two, so rounding its quotients again does no harm. Subnormals
        // are also exact in f64.
        let expected = (x[i] as f64 / y[i] as f64) as f32;
        assert!(same(quotient, expected), "{} / {} = {quotient}", x[i], y[i]);
        assert!(same(sum, x[i] * y[i] + x[i]), "{} * {} + itself = {sum}", x[i], y[i]);
        assert!(same64(quotient64, x64[i] / y64[i]) && same64(sum64, x64[i] * y64[i] + x64[i]));
    }
    Ok(())
}
