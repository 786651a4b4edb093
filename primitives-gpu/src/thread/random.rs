//! Random numbers by a counter: Philox.

use crate::element::Real;
use crate::functor::UnaryFn;
use crate::{Element, KernelParam};

/// Philox4x32-10: 128 random bits, a function of a counter and a key.
///
/// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. About 60 integer instructions, no
/// state and no memory. It gives what their library, Random123, gives.
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
/// One seed has 2⁶⁴ streams of 2⁶⁴ draws each, all independent. Give each thread, or each element, its own stream, or its
/// own offset in one: then the numbers do not depend on the launch's shape. Seed: `curandStatePhilox4_32_10_t`.
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

    /// This stream, `draws` further on.
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

/// 128 random bits to four `f32`, uniform in 0 to 1 (exclusive): multiples of 2⁻²⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct UniformF32;

impl UnaryFn<[u32; 4]> for UniformF32 {
    type Output = [f32; 4];
    #[inline(always)]
    fn apply(&self, bits: [u32; 4]) -> [f32; 4] {
        bits.map(|bits| (bits >> 8) as f32 * (1.0 / (1 << 24) as f32))
    }
}

/// 128 random bits to two `f64`, uniform in 0 to 1 (exclusive): multiples of 2⁻⁵³.
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

/// 128 random bits to four `f32` of the normal distribution with mean 0 and variance 1, by Box and Muller's transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct NormalF32;

impl UnaryFn<[u32; 4]> for NormalF32 {
    type Output = [f32; 4];
    #[inline(always)]
    fn apply(&self, bits: [u32; 4]) -> [f32; 4] {
        let [a, b, c, d] = UniformF32.apply(bits);
        let ([w, x], [y, z]) = (box_muller(a, b), box_muller(c, d));
        [w, x, y, z]
    }
}

/// 128 random bits to two `f64` of the normal distribution with mean 0 and variance 1, by Box and Muller's transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct NormalF64;

impl UnaryFn<[u32; 4]> for NormalF64 {
    type Output = [f64; 2];
    #[inline(always)]
    fn apply(&self, bits: [u32; 4]) -> [f64; 2] {
        let [a, b] = UniformF64.apply(bits);
        box_muller(a, b)
    }
}

/// Two independent normal numbers of two uniform ones in 0 to 1 (exclusive).
#[inline(always)]
fn box_muller<T: Real>(a: T, b: T) -> [T; 2] {
    // 1 − a is exact and not 0.
    let radius = T::from_f64(-2.0).mul(T::ONE.sub(a).ln()).sqrt();
    // In half turns, which need no reduction of large angles, and with it no local memory.
    let angle = b.add(b);
    [radius.mul(angle.cos_pi()), radius.mul(angle.sin_pi())]
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

/// Fills registers with random numbers: each `K` of them are what `f` makes of `random`, from which it draws as often as it
/// needs.
///
/// `f` is one of [`UniformF32`], [`UniformF64`], [`NormalF32`], [`NormalF64`], which draw once, or an author's own: a
/// [`UnaryFn`] of the stream. If `N` is no multiple of `K`, the last numbers of the last call are dropped. Seed:
/// `ElementwiseRandom<StateType, OutT, ReturnsCount, OpFunc>(out, compute, state)`.
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
    let mut drawn = f.apply(random);
    core::array::from_fn(|i| {
        if i > 0 && i % K == 0 {
            drawn = f.apply(random);
        }
        drawn[i % K]
    })
}
