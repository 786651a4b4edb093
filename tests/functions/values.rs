//! Tests the library's functions on the host against references.

use kernel_primitives::kernels::functions::*;
use kernel_primitives::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64, elementwise_random};

use crate::elementary::elementary;

/// Returns points near 0, 1 and whole numbers, with both signs, small and large.
fn points() -> Vec<f64> {
    let mut points = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let mut x = 1e-30f64;
    while x < 1e30 {
        points.extend([x, -x]);
        x *= 1.37;
    }
    points.extend((-400..=400).map(|i| f64::from(i) * 0.173));
    points.extend((-30..=30).map(f64::from));
    points
}

/// Returns the distance of `found` from `exact`, in units in the last place of `f32`.
pub(crate) fn units_f32(found: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if found == nearest || found.is_nan() && nearest.is_nan() {
        return 0.0;
    }
    let unit = f64::from(nearest.abs().next_up() - nearest.abs()).max(f64::from(f32::from_bits(1)));
    (f64::from(found) - exact).abs() / unit
}

pub(crate) fn units_f64(found: f64, exact: f64) -> f64 {
    if found == exact || found.is_nan() && exact.is_nan() {
        return 0.0;
    }
    (found - exact).abs() / (exact.abs().next_up() - exact.abs())
}

/// The functions of one argument: in `f32`, in `f64`, and a reference.
type Unary = (&'static str, fn(f32) -> f32, fn(f64) -> f64, fn(f64) -> f64);

macro_rules! unary {
    (
        [$($other_f32:ident $other_f64:ident $other:expr;)*]
        $($name:ident $variant:ident $method:ident ($f32:ident $f64:ident $libm:expr) $limits:tt $reference:expr;)*
    ) => {
        &[
            $((stringify!($other_f64), $other_f32, $other_f64, $other),)*
            $((stringify!($f64), $f32, $f64, $libm),)*
        ]
    };
}

/// On the host, seven of these functions are `libm`'s own. For these, `known.rs` has values that are computed in another way.
pub(crate) const UNARY: &[Unary] = elementary!(unary [
    exp10_f32 exp10_f64 libm::exp10;
    tgamma_f32 tgamma_f64 libm::tgamma;
]);

#[test]
fn functions_of_one_argument_are_near_the_reference() {
    for &(name, single, double, reference) in UNARY {
        for x in points() {
            let x32 = x as f32;
            let units = units_f32(single(x32), reference(f64::from(x32)));
            assert!(units <= 2.0, "{name} in f32 at {x32:e}: {:e} is {units} off", single(x32));
            let units = units_f64(double(x), reference(x));
            assert!(units <= 4.0, "{name} at {x:e}: {:e} is {units} off", double(x));
        }
    }
}

#[test]
fn functions_of_two_arguments_are_near_the_reference() {
    let values = [0.0, -0.0, 0.3, -0.7, 1.0, -1.0, 2.0, 5.5, -3.0, 100.25, 1e-20, 1e20, f64::INFINITY, f64::NAN];
    for x in values {
        for y in values {
            let (x32, y32) = (x as f32, y as f32);
            let (wx, wy) = (f64::from(x32), f64::from(y32));
            for (name, single, exact) in [
                ("pow", pow_f32(x32, y32), libm::pow(wx, wy)),
                ("atan2", atan2_f32(x32, y32), libm::atan2(wx, wy)),
                ("hypot", hypot_f32(x32, y32), libm::hypot(wx, wy)),
                ("fmod", fmod_f32(x32, y32), libm::fmod(wx, wy)),
            ] {
                assert!(units_f32(single, exact) <= 2.0, "{name}({x32:e}, {y32:e}) = {single:e}, not {exact:e}");
            }
            for (name, double, exact) in [
                ("pow", pow_f64(x, y), libm::pow(x, y)),
                ("atan2", atan2_f64(x, y), libm::atan2(x, y)),
                ("hypot", hypot_f64(x, y), libm::hypot(x, y)),
                ("fmod", fmod_f64(x, y), x % y),
            ] {
                assert!(units_f64(double, exact) <= 2.0, "{name}({x:e}, {y:e}) = {double:e}, not {exact:e}");
            }
        }
    }
}

#[test]
fn whole_powers() {
    for n in [0, 1, -1, 2, 3, 7, -8, 31, 100, i32::MAX, i32::MIN] {
        assert_eq!((powi_f64(1.0, n), powi_f64(-1.0, n)), (1.0, if n % 2 == 0 { 1.0 } else { -1.0 }));
        assert_eq!(
            powi_f32(0.0, n),
            if n == 0 {
                1.0
            } else if n > 0 {
                0.0
            } else {
                f32::INFINITY
            }
        );
    }
    for n in -20..=20 {
        for x in [0.3f64, -1.7, 2.0, 11.0] {
            assert!(units_f64(powi_f64(x, n), x.powf(f64::from(n))) <= 20.0, "{x} to the {n}");
            let x = x as f32;
            assert!(units_f32(powi_f32(x, n), f64::from(x).powi(n)) <= 20.0, "{x} to the {n}");
        }
    }
}

#[test]
fn random_numbers_are_the_elements_of_a_stream() {
    const N: usize = 41;
    let seed = 0x0123_4567_89ab_cdef;
    fn stream<T: Copy, F, const K: usize>(seed: u64, f: F) -> [T; N]
    where
        F: for<'a> kernel_primitives::UnaryFn<&'a mut Philox, Output = [T; K]>,
    {
        elementwise_random(&mut Philox::new(seed, 0), f)
    }
    let each = |i: usize| i as u64;
    assert_eq!(std::array::from_fn(|i| uniform_f32(seed, each(i))), stream(seed, UniformF32));
    assert_eq!(std::array::from_fn(|i| uniform_f64(seed, each(i))), stream(seed, UniformF64));
    assert_eq!(std::array::from_fn(|i| normal_f32(seed, each(i))), stream(seed, NormalF32));
    assert_eq!(std::array::from_fn(|i| normal_f64(seed, each(i))), stream(seed, NormalF64));
    // This is an index beyond 2³² draws, and another seed.
    assert_ne!(uniform_f64(seed, 3), uniform_f64(seed, 3 + (1 << 40)));
    assert_ne!(uniform_f64(seed, 3), uniform_f64(seed + 1, 3));
}

/// Normal random numbers use these functions.
#[test]
fn sines_and_cosines_of_half_turns() {
    use kernel_primitives::Real;
    use std::f64::consts::PI;
    for i in -1000..=1000 {
        let x = f64::from(i) / 64.0;
        let near = |found: f64, exact: f64| (found - exact).abs() < 1e-14;
        assert!(near(x.sin_pi(), (PI * x).sin()) && near(x.cos_pi(), (PI * x).cos()), "{x}");
        let (x, x32) = (f64::from(i), i as f32);
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        assert_eq!((x.sin_pi(), x.cos_pi()), (0.0, sign));
        // The signs of zeros are those of libdevice and of C23.
        let zero = if i < 0 { -0.0f64 } else { 0.0 };
        assert_eq!((x.sin_pi().to_bits(), (x + 0.5).cos_pi().to_bits()), (zero.to_bits(), 0), "{x}");
        let zero = zero as f32;
        assert_eq!((x32.sin_pi().to_bits(), (x32 + 0.5).cos_pi().to_bits()), (zero.to_bits(), 0), "{x}");
        assert_eq!(((x + 0.5).sin_pi(), (x + 0.5).cos_pi()), (sign, 0.0));
        assert_eq!(((x32 + 0.5).sin_pi(), (x32 + 0.25).cos_pi()), (sign as f32, sign as f32 * 0.5f32.sqrt()));
    }
    assert!((-0.0f64).sin_pi().is_sign_negative() && (-0.0f32).sin_pi().is_sign_negative());
    assert!(f64::INFINITY.sin_pi().is_nan() && f32::NAN.cos_pi().is_nan());
    assert_eq!((1e300.sin_pi(), 1e300.cos_pi()), (0.0, 1.0));
}
