//! Devices, cases and inputs for all tests.

use kernel_primitives::{Device, Dim3, Dims, Element, EmulatorOptions, Result, Stream};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

/// Returns a stream on the device that the environment names.
pub fn stream() -> Result<Stream> {
    Device::auto()?.stream()
}

/// Returns a stream on the device that the environment names. If that is the emulator, it adds a stream on each other
/// kind of emulator: with and without checks, in plain order and in a random order, and as each architecture by which
/// kernels choose.
pub fn streams() -> Result<Vec<Stream>> {
    let device = Device::auto()?;
    let mut streams = vec![device.stream()?];
    if !device.is_gpu() {
        for (checked, seed, arch) in [(true, Some(1), 75), (false, None, 80), (false, Some(2), 90)] {
            let mut options = EmulatorOptions::default();
            (options.checked, options.seed, options.arch) = (checked, seed, Some(arch));
            streams.push(Device::emulator_with(options).stream()?);
        }
    }
    Ok(streams)
}

/// Block shapes: one thread, partial warps, whole warps, the largest block, and blocks of two and three dimensions.
pub const SHAPES: [(u32, u32, u32); 12] = [
    (1, 1, 1),
    (7, 1, 1),
    (32, 1, 1),
    (33, 1, 1),
    (65, 1, 1),
    (128, 1, 1),
    (256, 1, 1),
    (1024, 1, 1),
    (32, 4, 1),
    (7, 3, 1),
    (33, 2, 1),
    (16, 2, 2),
];

/// Lengths: zero, near a vector, near a block, near several blocks, and large.
pub const LENGTHS: [usize; 12] = [0, 1, 15, 16, 17, 127, 128, 129, 4095, 4096, 4097, 100_003];

/// The number of offsets of a slice in its buffer, in elements.
pub const OFFSETS: usize = 5;

/// Returns the number of threads of a block.
pub fn threads(shape: (u32, u32, u32)) -> usize {
    Dim3::from(shape).count() as usize
}

/// One combination of shape, length and offset.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub shape: (u32, u32, u32),
    pub len: usize,
    pub offset: usize,
}

impl Case {
    /// Returns dimensions that cover the length with a grid of at most `blocks` blocks.
    pub fn dims(&self, items_per_thread: usize, blocks: usize) -> Dims {
        let tile = threads(self.shape) * items_per_thread;
        Dims::new(self.len.div_ceil(tile).clamp(1, blocks) as u32, self.shape)
    }
}

/// Returns the cases of the `k`th variant of a test. Each variant has every shape and every length once. All variants
/// together have all pairs of shape, length and offset.
pub fn cases(k: usize) -> impl Iterator<Item = Case> {
    (0..SHAPES.len()).map(move |row| Case {
        shape: SHAPES[row],
        len: LENGTHS[(row + k) % LENGTHS.len()],
        offset: (row / 5 + row + k * 2) % OFFSETS,
    })
}

#[test]
fn cases_cover_all_pairs_in_sixty_variants() {
    let mut seen = std::collections::HashSet::new();
    for case in (0..60).flat_map(cases) {
        seen.insert((format!("{:?}", case.shape), case.len, usize::MAX));
        seen.insert((format!("{:?}", case.shape), usize::MAX, case.offset));
        seen.insert((String::new(), case.len, case.offset));
    }
    assert_eq!(seen.len(), 12 * 12 + 12 * OFFSETS + 12 * OFFSETS);
}

/// Checks that a property holds on random inputs.
///
/// The inputs are the same in every run. There are so few of them that the test is quick. `PROPTEST_CASES` asks for
/// more inputs, and `PROPTEST_RNG_SEED` for other inputs. A failure names its simplest input and the seed that finds it
/// again.
pub fn holds<S: Strategy>(cases: u32, inputs: S, property: impl Fn(S::Value) -> Result<()>) {
    let defaults = Config::default();
    let config = Config {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { defaults.cases } else { cases },
        rng_seed: if defaults.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { defaults.rng_seed },
        failure_persistence: None,
        ..defaults
    };
    let mut runner = TestRunner::new(config);
    let failed = |error: kernel_primitives::Error| TestCaseError::fail(error.to_string());
    if let Err(failure) = runner.run(&inputs, |input| property(input).map_err(failed)) {
        panic!("{failure}\n{runner}");
    }
}

/// Makes block shapes of at most `threads` threads, in one to three dimensions.
pub fn any_shape(threads: u32) -> impl Strategy<Value = (u32, u32, u32)> {
    let ends = (1..=threads, 1..=threads.min(64), 1..=threads.min(8));
    ends.prop_map(move |(x, y, z)| {
        let y = y.min(threads / x);
        (x, y, z.min(threads / (x * y)))
    })
}

/// A repeatable sequence of random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// Returns a uniform number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Makes arbitrary values of a type from bits.
pub trait Arbitrary: Element + PartialEq + std::fmt::Debug {
    fn arbitrary(bits: u64) -> Self;
}

macro_rules! arbitrary {
    ($($t:ty: $bits:ident => $value:expr;)*) => {$(
        impl Arbitrary for $t {
            fn arbitrary($bits: u64) -> Self {
                $value
            }
        }
    )*};
}
// Floats are small integers. Their sums are exact in every order, and there is no NaN, which would not equal itself.
// The net tests other floats, such as NaN, −0 and sums that round, on every algorithm and collective: see
// `tests/net/data.rs`.
arbitrary! {
    f32: bits => (bits % 2001) as f32 - 1000.0;
    f64: bits => (bits % 20_001) as f64 - 10_000.0;
    kernel_primitives::f16: bits => kernel_primitives::f16::from_f32((bits % 201) as f32 - 100.0);
    kernel_primitives::bf16: bits => kernel_primitives::bf16::from_f32((bits % 201) as f32 - 100.0);
    i8: bits => bits as i8;
    u8: bits => bits as u8;
    i16: bits => bits as i16;
    u16: bits => bits as u16;
    i32: bits => bits as i32;
    u32: bits => bits as u32;
    i64: bits => bits as i64;
    u64: bits => bits;
    bool: bits => bits % 2 == 1;
    kernel_primitives::Complex<f64>: bits => Self::new((bits % 1001) as f64 - 500.0, (bits >> 20 & 511) as f64);
    kernel_primitives::Complex<f32>: bits => Self::new((bits % 101) as f32 - 50.0, (bits >> 20 & 63) as f32);
    crate::kernels::Twelve: bits => Self { a: (bits % 1000) as f32, b: (bits >> 10) as u32, c: (bits >> 32) as i32 };
    crate::kernels::Sixteen: bits => Self { a: bits, b: (bits % 1000) as f64 };
    crate::kernels::Flagged: bits => Self { flags: [bits % 2 == 1, bits % 3 == 1], value: (bits >> 20) as u16 };
    crate::kernels::Map<u32>: bits => Self { a: bits as u32, b: (bits >> 32) as u32 };
    crate::kernels::Map<u64>: bits => Self { a: bits, b: bits.rotate_left(20) };
    crate::kernels::Triangular: bits => Self { x: bits as u32, y: (bits >> 16) as u32, z: (bits >> 32) as u32 };
}

impl<T: Arbitrary, const N: usize> Arbitrary for [T; N] {
    fn arbitrary(bits: u64) -> Self {
        let mut random = Random::new(bits);
        std::array::from_fn(|_| T::arbitrary(random.bits()))
    }
}

/// Returns `len` arbitrary values.
pub fn values<T: Arbitrary>(len: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..len).map(|_| T::arbitrary(random.bits())).collect()
}

/// Rounds a value that is not NaN to the half type with `fraction_bits` fraction bits (10 for f16, 7 for bf16), and
/// returns the bits. Ties go to even.
pub fn round_to_half(value: f64, fraction_bits: u32) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    let bias = (1i32 << (14 - fraction_bits)) - 1;
    let infinity = ((2 * bias + 1) as u16) << fraction_bits;
    if magnitude.is_infinite() {
        return sign | infinity;
    }
    // This is the power of two below the value, but at least the power of the smallest normal number.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // Scaling by powers of two is exact. There are two steps, because one power alone might not be a double.
    let scaled = magnitude * 2f64.powi(-exponent) * 2f64.powi(fraction_bits as i32);
    let units = scaled.round_ties_even() as i64;
    // A carry out of the fraction goes into the exponent, which is right.
    let bits = ((exponent + bias - 1) as i64 * (1 << fraction_bits)) + units;
    sign | (bits as u64).min(infinity as u64) as u16
}
