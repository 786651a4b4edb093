//! Random numbers from a counter: Philox.

use crate::element::{Float, Real};
use crate::functor::UnaryFn;
use crate::{Element, KernelParam};

/// Philox4x32-10: returns 128 random bits, which are a function of a counter and a key.
///
/// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. It takes about 60 integer instructions, no state and
/// no memory. Its results are those of the authors' library, Random123.
///
/// ```
/// use kernel_primitives::thread::philox4x32_10;
/// assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
/// ```
pub const fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k, mut l] = key;
    let mut round = 0;
    while round < 10 {
        let (m, n) = (0xd251_1f53 * a as u64, 0xcd9e_8d57 * c as u64);
        (a, b, c, d) = ((n >> 32) as u32 ^ b ^ k, n as u32, (m >> 32) as u32 ^ d ^ l, m as u32);
        (k, l) = (k.wrapping_add(0x9e37_79b9), l.wrapping_add(0xbb67_ae85));
        round += 1;
    }
    [a, b, c, d]
}

/// A stream of random bits: a place in the sequence of [`philox4x32_10`].
///
/// One seed has 2⁶⁴ streams of 2⁶⁴ draws each, all of which are independent. Give each thread, or each element, its own stream, or its own
/// offset in a stream. Then the numbers do not depend on the shape of the launch. Seed: `curandStatePhilox4_32_10_t`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::thread::{NormalF32, Philox, UniformF32, elementwise_random};
///
/// #[kernel]
/// fn noise(cx: Block, seed: u64, mut out: GlobalMut<[f32; 4]>) {
///     for i in cx.items(out.len()) {
///         let mut random = Philox::new(seed, i.index() as u64);
///         out.set(i, elementwise_random(&mut random, NormalF32));
///     }
/// }
///
/// let mut random = Philox::new(1, 0);
/// let uniform: [f32; 8] = elementwise_random(&mut random, UniformF32);
/// assert!(uniform.iter().all(|u| (0.0..1.0).contains(u)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Element)]
#[repr(C)]
pub struct Philox {
    seed: u64,
    stream: u64,
    offset: u64,
}

impl Philox {
    /// The start of a stream.
    #[inline(always)]
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self { seed, stream, offset: 0 }
    }

    /// Returns the place that is `draws` draws further in the stream.
    #[must_use = "the place itself does not move"]
    #[inline(always)]
    pub const fn skip(self, draws: u64) -> Self {
        Self { offset: self.offset.wrapping_add(draws), ..self }
    }

    /// The next 128 bits.
    #[inline(always)]
    pub const fn draw(&mut self) -> [u32; 4] {
        let counter = [low(self.offset), high(self.offset), low(self.stream), high(self.stream)];
        self.offset = self.offset.wrapping_add(1);
        philox4x32_10(counter, [low(self.seed), high(self.seed)])
    }
}

#[inline(always)]
const fn low(value: u64) -> u32 {
    value as u32
}

#[inline(always)]
const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

/// Converts 128 random bits to four `f32`, uniform from 0 to 1 (exclusive), which are multiples of 2⁻²⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct UniformF32;

impl UnaryFn<[u32; 4]> for UniformF32 {
    type Output = [f32; 4];
    #[inline(always)]
    fn apply(&self, bits: [u32; 4]) -> [f32; 4] {
        bits.map(|bits| (bits >> 8) as f32 * (1.0 / (1 << 24) as f32))
    }
}

/// Converts 128 random bits to two `f64`, uniform from 0 to 1 (exclusive), which are multiples of 2⁻⁵³.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct UniformF64;

impl UnaryFn<[u32; 4]> for UniformF64 {
    type Output = [f64; 2];
    fn apply(&self, [a, b, c, d]: [u32; 4]) -> [f64; 2] {
        [[a, b], [c, d]].map(|[high, low]| {
            let bits = (high as u64) << 32 | low as u64;
            (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
        })
    }
}

/// Converts 128 random bits to four `f32` of the normal distribution with mean 0 and variance 1, by Box and Muller's transform.
///
/// The bits are the same on all machines. They are within five units in the last place of the transform of the numbers of [`UniformF32`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct NormalF32;

impl UnaryFn<[u32; 4]> for NormalF32 {
    type Output = [f32; 4];
    #[inline(always)]
    fn apply(&self, bits: [u32; 4]) -> [f32; 4] {
        let [a, b, c, d] = bits;
        let ([w, x], [y, z]) = (box_muller_f32(a, b), box_muller_f32(c, d));
        [w, x, y, z]
    }
}

/// Converts 128 random bits to two `f64` of the normal distribution with mean 0 and variance 1, by Box and Muller's transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct NormalF64;

impl UnaryFn<[u32; 4]> for NormalF64 {
    type Output = [f64; 2];
    #[inline(always)]
    fn apply(&self, bits: [u32; 4]) -> [f64; 2] {
        let [a, b] = UniformF64.apply(bits);
        box_muller_f64(a, b)
    }
}

/// Makes two independent normal numbers from two uniform ones from 0 to 1 (exclusive).
#[inline(always)]
fn box_muller_f64(a: f64, b: f64) -> [f64; 2] {
    // 1 − a is exact and not 0.
    let radius = (-2.0 * Real::ln(1.0 - a)).sqrt();
    // In half turns, which need no reduction of large angles, and with it no local memory.
    let angle = b + b;
    [radius * angle.cos_pi(), radius * angle.sin_pi()]
}

/// What normal numbers of `f32` are computed with, here and in the kernels that are written at run time.
#[doc(hidden)]
pub mod box_muller {
    /// The bits of 2/3, where mantissas begin.
    pub const TWO_THIRDS: u32 = 0x3f2a_aaab;
    /// −2 ln 2.
    pub const OF_EXPONENT: f32 = -2.0 * core::f32::consts::LN_2;
    /// The polynomial p for which g + p(g) g² is −2 ln(1 − g/2), for g from −2/3 to 2/3, within 0.08 · 2⁻²⁴ of it.
    pub const LOGARITHM: [f32; 9] = [
        0.25,
        0.08333302,
        0.031249646,
        0.012506717,
        0.0052132206,
        0.0021876814,
        0.00095055887,
        0.0005470608,
        0.0002529095,
    ];
    /// The polynomial p for which y p(y²) is the sine of y quarter turns, for y from −1/2 to 1/2, within 0.06 · 2⁻²⁴ of it.
    pub const SINE: [f32; 4] = [1.5707964, -0.6459635, 0.07968003, -0.004601658];
    /// The polynomial p for which 1 + y² p(y²) is the cosine, within 0.001 · 2⁻²⁴.
    pub const COSINE: [f32; 4] = [-1.2337005, 0.25366923, -0.020860288, 0.00090402167];
}

/// Makes two independent normal numbers from the upper 24 bits of two random words.
///
/// With [`UniformF32`]'s numbers a and b, the radius is √(−2 ln(1 − a)) and the angle b turns. It takes integers, fused
/// multiplications and a root, which all machines round alike, and neither a division nor a function with cases: 1 − a is a
/// multiple of 2⁻²⁴ and not 0, and an angle in 32 bits wraps by itself.
#[inline(always)]
fn box_muller_f32(a: u32, b: u32) -> [f32; 2] {
    use box_muller::{COSINE, LOGARITHM, OF_EXPONENT, SINE, TWO_THIRDS};
    // 1 − a = m · 2^e, with m from 2/3 to 4/3.
    let rest = ((1 << 24) - (a >> 8)) as f32;
    let bits = rest.to_bits().wrapping_sub(TWO_THIRDS + (24 << 23));
    let e = (bits as i32 >> 23) as f32;
    let m = f32::from_bits((bits & 0x7f_ffff) + TWO_THIRDS);
    // Exact, since m has 24 bits of which the first is 1/2 or 1.
    let g = Float::mul_add(m, -2.0, 2.0);
    let logarithm = Float::mul_add(polynomial(LOGARITHM, g), g * g, g);
    let radius = Real::sqrt(Float::mul_add(e, OF_EXPONENT, logarithm));
    // b = (quadrant + y) quarter turns, with y from −1/2 to 1/2, which is exact.
    let angle = b & !0xff;
    let quadrant = angle.wrapping_add(1 << 29) >> 30;
    let y = angle.wrapping_sub(quadrant << 30) as i32 as f32 * (1.0 / (1 << 30) as f32);
    let square = y * y;
    let sine = y * polynomial(SINE, square);
    let cosine = Float::mul_add(polynomial(COSINE, square), square, 1.0);
    let (x, y) = if quadrant & 1 == 0 { (cosine, sine) } else { (sine, cosine) };
    // The cosine is negative in quadrants 1 and 2, the sine in 2 and 3.
    let signed = |value: f32, quadrant: u32| f32::from_bits(value.to_bits() ^ (quadrant & 2) << 30);
    [radius * signed(x, quadrant + 1), radius * signed(y, quadrant)]
}

/// By Horner's scheme; the last coefficient is that of the highest power.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: [f32; N], x: f32) -> f32 {
    let mut value = coefficients[N - 1];
    let mut power = N - 1;
    while power > 0 {
        power -= 1;
        value = Float::mul_add(value, x, coefficients[power]);
    }
    value
}

macro_rules! distributions {
    ($($name:ident: $numbers:ty),*) => {$(
        impl UnaryFn<&mut Philox> for $name {
            type Output = $numbers;
            #[inline(always)]
            fn apply(&self, random: &mut Philox) -> $numbers {
                self.apply(random.draw())
            }
        }
    )*};
}
distributions!(UniformF32: [f32; 4], UniformF64: [f64; 2], NormalF32: [f32; 4], NormalF64: [f64; 2]);

/// Fills registers with random numbers. `f` makes `K` of them at a time from `random`, from which it draws as often as it needs.
///
/// `f` is one of [`UniformF32`], [`UniformF64`], [`NormalF32`] and [`NormalF64`], which draw once, or your own [`UnaryFn`] of the stream.
/// If `N` is not a multiple of `K`, the last numbers of the last call are dropped. Seed: `ElementwiseRandom<StateType, OutT, ReturnsCount,
/// OpFunc>(out, compute, state)`.
///
/// ```
/// use kernel_primitives::thread::{NormalF32, Philox, UniformF64, elementwise_random};
///
/// // A stream for each thread: on the GPU its number is the thread's.
/// let (seed, thread) = (2024, 7);
/// let mut random = Philox::new(seed, thread);
/// let uniform: [f64; 3] = elementwise_random(&mut random, UniformF64);
/// let normal: [f32; 4] = elementwise_random(&mut random, NormalF32);
/// assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)) && normal.iter().all(|x| x.abs() < 10.0));
/// assert_eq!(elementwise_random::<_, _, 3, 2>(&mut Philox::new(seed, thread), UniformF64), uniform);
///
/// // A die, thrown anew where the bits would favour some of its faces.
/// let die = |random: &mut Philox| loop {
///     let [bits, ..] = random.draw();
///     if bits < u32::MAX / 6 * 6 {
///         return [bits % 6 + 1];
///     }
/// };
/// let thrown: [u32; 100] = elementwise_random(&mut random, die);
/// assert!((1..=6).all(|face| thrown.contains(&face)));
/// ```
pub fn elementwise_random<T: Copy, F, const N: usize, const K: usize>(random: &mut Philox, f: F) -> [T; N]
where
    F: for<'a> UnaryFn<&'a mut Philox, Output = [T; K]>,
{
    const { assert!(K > 0, "a distribution gives at least one number at a time") };
    let mut drawn = None;
    core::array::from_fn(|i| match drawn {
        Some(drawn) if i % K > 0 => drawn,
        _ => *drawn.insert(f.apply(random)),
    }[i % K])
}
