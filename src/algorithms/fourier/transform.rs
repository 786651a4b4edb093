//! Fourier transforms of arrays.

use std::any::TypeId;

use super::generated::launch::Apart;
use super::launches::{Work, area_bytes};
use super::plan::FftPlan;
use crate::__algorithms::*;
use crate::__private::{Again, AgainMut};
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_device, check_output};
use crate::element::FftFloat;
use crate::functor::{Identity, RealPart, UnaryFn};
use crate::input::{Source, Span};
use crate::kernels::device;
use crate::output::{Sink, SpanMut};
use crate::{BufferSliceMut, Complex, ConvertTo, Error, InputArg, KernelParam, OutputArg, Result};

algorithm! {
    /// Inputs, functions and outputs that [`fft`], its inverse and its real forms have kernels for. `Self` is the type of the parts of a
    /// complex number.
    fft
}

/// The kind of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FftKind {
    /// The transform. Its factors are `exp(-2πi * j * k / n)`.
    Forward,
    /// The inverse transform, which does not divide by `n`. Its factors are `exp(2πi * j * k / n)`.
    Inverse,
    /// The half spectrum of a real array.
    RealForward,
    /// The inverse of a half spectrum, which is a real array.
    RealInverse,
}

/// Computes the discrete Fourier transforms of an array along the axes of a plan. For one axis: `X[k] = Σ x[j] * exp(-2πi * j * k / n)`.
///
/// The input has a complex or real number for each place of the plan's shape. It may be computed: a window, a shift or padding costs no
/// pass. `out` may be longer: the rest of it stays as it is. Results are multiplied by the [scale](FftPlan::scaled).
///
/// [`fft_in_place`] replaces the array. [`rfft`] computes the half spectrum of a real array. [`fft_by`] applies a function to each result
/// in the same pass.
///
/// **Determinism.** Results have the same bits on every run. With compiled kernels, such as those of the emulator, they have the same bits
/// on all devices whose blocks have the same amount of shared memory. With generated kernels, which a GPU runs, they have the same bits on
/// all devices of one model that are whole or slices of the same size, with two exceptions for rows of 2^24 complex numbers, or
/// 2^26 of `f32`: an input that does not begin at a multiple of 16 bytes, and a driver older than CUDA 12.0 or 12.1, give other last bits.
/// See [`FftPlan::path`].
///
/// **Accuracy.** The relative error is the root mean square of the errors, divided by that of the results. It grows with the square root of
/// the logarithm of the length `n`. For numbers without a pattern, it is on average at most `0.5 * sqrt(log2(n))` machine epsilons, and
/// `0.9 * sqrt(log2(n))` for lengths with prime factors larger than 13. For a single short array, it may be twice as large.
///
/// Cost: one launch for each [pass](FftPlan), which reads and writes all numbers once. Temporary memory of compiled kernels: none for one
/// pass, the size of the array for two, and twice that for more; for lengths with prime factors larger than 13, two to four times as much.
/// Temporary memory of generated kernels: none if each axis takes one pass; otherwise the size of the array, or up to half of the cache if
/// a launch makes two passes, or both for rows of 2^26 numbers and other long ones. [`irfft`] along several axes takes the size of the half
/// spectrum, or twice that.
///
/// Ready for `f32` and `f64`: complex and real inputs, complex outputs. For others, such as a window or a function, write
/// `instantiate!(kernel_primitives::algorithms::fft<f32, MyInput, MyFn, MyOutput>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `fourier::transforms::a_transform_has_the_same_bits_on_every_run` | of one [path](crate::algorithms::FftPlan::path), if blocks have the same amount of shared memory; generated kernels on GPUs of one model, whole or in slices of one size, with the two exceptions for rows of 2^24 numbers, or 2^26 of `f32`, that the docs of `fft` list: `fourier::transforms::a_transform_has_the_same_bits_on_every_run` | fixed by the plan |
///
/// cuFFT: `cufftPlanMany`, `cufftExecC2C`, `cufftExecZ2Z`. Differences: by a kept [`FftPlan`]; any axes of an array, any length; inputs may
/// be computed, and [`fft_by`] applies a function to results; [`FftChain`](crate::algorithms::FftChain) takes expressions before, between
/// and after transforms, as cuFFT's callbacks do.
///
/// Other peers: VkFFT, and FFTW's `fftw_plan_many_dft`.
///
/// ```
/// use kernel_primitives::algorithms::{FftPlan, fft};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let plan = FftPlan::<f64>::new(&stream, &[1000], &[0])?;
/// // A cosine of 20 turns.
/// let cosine = |i| (std::f64::consts::TAU * 20.0 * i as f64 / 1000.0).cos();
/// let x = stream.buffer_from(&(0..1000).map(|i| Complex::from(cosine(i))).collect::<Vec<_>>())?;
/// let mut spectrum = stream.buffer_zeroed(1000)?;
/// fft(&stream, &plan, &x, &mut spectrum)?;
/// let spectrum = spectrum.to_vec()?;
/// assert!((spectrum[20] - 500.0).l1_norm() < 1e-9 && spectrum[21].l1_norm() < 1e-9);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if the input does not have as many numbers as the plan's shape or if `out` has fewer,
/// [`Error::WrongDevice`] if the plan and the stream are on different devices, and the errors of a launch and of an allocation.
pub fn fft<'a, T, I, S, A, O, Tag>(run: impl Into<Run<'a>>, plan: &FftPlan<T>, x: I, out: A) -> Result<()>
where
    T: FftFloat + Fft<S::Short, Identity, O::Short, Tag>,
    I: InputArg<S>,
    S: Source<Item: ConvertTo<Complex<T>>>,
    A: OutputArg<O>,
    O: Sink<Item = Complex<T>>,
{
    transform("fft", run.into(), plan, FftKind::Forward, x, Identity, out)
}

/// Computes the inverse of [`fft`] without a factor. For one axis: `x[j] = Σ X[k] * exp(2πi * j * k / n)`.
///
/// Otherwise this works as [`fft`]. To make it the inverse of [`fft`], [scale](FftPlan::scaled) its results by `1 / n`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `fourier::transforms::a_transform_has_the_same_bits_on_every_run` | as `fft` | as `fft` |
///
/// cuFFT: `cufftPlanMany`, `cufftExecC2C`, `cufftExecZ2Z`.
///
/// ```
/// use kernel_primitives::algorithms::{FftPlan, fft, ifft};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let plan = FftPlan::<f64>::new(&stream, &[4], &[0])?.scaled(1.0, 1.0 / 4.0);
/// let x = stream.buffer_from(&[1.0f64, 2.0, 3.0, 4.0].map(Complex::from))?;
/// let mut spectrum = stream.buffer_zeroed::<Complex<f64>>(4)?;
/// let mut same = stream.buffer_zeroed::<Complex<f64>>(4)?;
/// fft(&stream, &plan, &x, &mut spectrum)?;
/// ifft(&stream, &plan, &spectrum, &mut same)?;
/// assert!(same.to_vec()?.into_iter().zip(x.to_vec()?).all(|(a, b)| (a - b).l1_norm() < 1e-12));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`fft`].
pub fn ifft<'a, T, I, S, A, O, Tag>(run: impl Into<Run<'a>>, plan: &FftPlan<T>, x: I, out: A) -> Result<()>
where
    T: FftFloat + Fft<S::Short, Identity, O::Short, Tag>,
    I: InputArg<S>,
    S: Source<Item: ConvertTo<Complex<T>>>,
    A: OutputArg<O>,
    O: Sink<Item = Complex<T>>,
{
    transform("ifft", run.into(), plan, FftKind::Inverse, x, Identity, out)
}

/// Computes the half spectrum of a real array: along the last axis of the plan's list, the first `n / 2 + 1` results.
///
/// The other results follow from these: `X[-k]` is the conjugate of `X[k]`, where `k` has an index for each of the axes, and `-k` counts
/// from the end. `out` has the plan's [half shape](FftPlan::half_shape). Otherwise this works as [`fft`].
///
/// **Accuracy.** As `fft`. If the last axis of the list has an even length, numbers are halved before they are added. So a number below
/// twice the smallest normal number of the type may lose its last bit.
///
/// Ready for `f32` and `f64`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `fourier::real::real_numbers_need_not_be_aligned_for_one_access` | as `fft` | as `fft` |
///
/// cuFFT: `cufftPlanMany`, `cufftExecR2C`, `cufftExecD2Z`.
///
/// ```
/// use kernel_primitives::algorithms::{FftPlan, irfft, rfft};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let plan = FftPlan::<f32>::new(&stream, &[3, 4], &[0, 1])?.scaled(1.0, 1.0 / 12.0);
/// let x = stream.buffer_from(&(0..12).map(|i| i as f32).collect::<Vec<_>>())?;
/// let mut half = stream.buffer_zeroed(plan.half_items())?;
/// rfft(&stream, &plan, &x, &mut half)?;
/// assert_eq!(plan.half_shape(), [3, 3]);
/// assert_eq!(half.to_vec()?[..3], [Complex::new(66.0, 0.0), Complex::new(-6.0, 6.0), Complex::new(-6.0, 0.0)]);
///
/// let mut same = stream.buffer_zeroed::<f32>(12)?;
/// irfft(&stream, &plan, &half, &mut same)?;
/// assert!(same.to_vec()?.iter().zip(0..).all(|(x, i)| (x - i as f32).abs() < 1e-5));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`fft`]. `out` needs as many numbers as the half shape has.
pub fn rfft<'a, T, I, S, A, O, Tag>(run: impl Into<Run<'a>>, plan: &FftPlan<T>, x: I, out: A) -> Result<()>
where
    T: FftFloat + Fft<S::Short, Identity, O::Short, Tag>,
    I: InputArg<S>,
    S: Source<Item: ConvertTo<T> + ConvertTo<Complex<T>>>,
    A: OutputArg<O>,
    O: Sink<Item = Complex<T>>,
{
    transform("rfft", run.into(), plan, FftKind::RealForward, x, Identity, out)
}

/// Computes the inverse of [`rfft`] without a factor: a real array from half of its spectrum.
///
/// The input has the plan's [half shape](FftPlan::half_shape), and `out` has the plan's shape. The half spectrum of a real array has some
/// imaginary parts that are 0, such as that of `X[0]`. Along one axis, these parts of the input are ignored. Along several axes, they are
/// used until the last pass, which drops what follows from them: a NaN spreads. Otherwise this works as [`fft`].
///
/// Ready for `f32` and `f64`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `fourier::real::real_numbers_need_not_be_aligned_for_one_access` | as `fft` | as `fft` |
///
/// cuFFT: `cufftPlanMany`, `cufftExecC2R`, `cufftExecZ2D`.
///
/// ```
/// use kernel_primitives::algorithms::{FftPlan, irfft};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let plan = FftPlan::<f32>::new(&stream, &[4], &[0])?;
/// // Four real numbers have a half spectrum of three. This is that of a constant.
/// let half = stream.buffer_from(&[8.0f32, 0.0, 0.0].map(Complex::from))?;
/// let mut x = stream.buffer_zeroed::<f32>(4)?;
/// irfft(&stream, &plan, &half, &mut x)?;
/// assert_eq!(x.to_vec()?, [8.0; 4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`fft`]. The input needs as many numbers as the half shape has.
pub fn irfft<'a, T, I, S, A, O, Tag>(run: impl Into<Run<'a>>, plan: &FftPlan<T>, x: I, out: A) -> Result<()>
where
    T: FftFloat + Fft<S::Short, RealPart, O::Short, Tag>,
    I: InputArg<S>,
    S: Source<Item: ConvertTo<Complex<T>>>,
    A: OutputArg<O>,
    O: Sink<Item = T>,
{
    transform("irfft", run.into(), plan, FftKind::RealInverse, x, RealPart, out)
}

/// Computes a transform of any kind, and applies a function to each result in the same pass.
///
/// With [`NormSquared`](crate::functor::NormSquared), results are the power spectrum. Otherwise this works as [`fft`], [`ifft`], [`rfft`]
/// and [`irfft`]. With [`FftKind::RealForward`], imaginary parts of the input must be zero.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | as `fft` | as `fft` | as `fft` |
///
/// cuFFT: `cufftPlanMany`, `cufftExecC2C`, `cufftExecZ2Z`, `cufftExecR2C`, `cufftExecD2Z`, `cufftExecC2R`, `cufftExecZ2D`.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::algorithms::{FftKind, FftPlan, fft_by};
/// use kernel_primitives::functor::NormSquared;
/// use kernel_primitives::prelude::*;
///
/// instantiate!(kernel_primitives::algorithms::fft<f32, Complex<f32>, NormSquared, f32>);
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::emulator().stream()?;
/// let plan = FftPlan::<f32>::new(&stream, &[4], &[0])?;
/// let x = stream.buffer_from(&[2.0f32, 0.0, 0.0, 0.0].map(Complex::from))?;
/// let mut powers = stream.buffer_zeroed::<f32>(4)?;
/// fft_by(&stream, &plan, FftKind::Forward, &x, NormSquared, &mut powers)?;
/// assert_eq!(powers.to_vec()?, [4.0; 4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`fft`].
pub fn fft_by<'a, T, I, S, F, A, O, Tag>(
    run: impl Into<Run<'a>>,
    plan: &FftPlan<T>,
    kind: FftKind,
    x: I,
    f: F,
    out: A,
) -> Result<()>
where
    T: FftFloat + Fft<S::Short, F, O::Short, Tag>,
    I: InputArg<S>,
    S: Source<Item: ConvertTo<Complex<T>>>,
    F: UnaryFn<Complex<T>> + KernelParam,
    A: OutputArg<O>,
    O: Sink<Item = F::Output>,
{
    transform("fft_by", run.into(), plan, kind, x, f, out)
}

/// The transform of the call `name`.
fn transform<T, I, S, F, A, O, Tag>(
    name: &'static str,
    run: Run<'_>,
    plan: &FftPlan<T>,
    kind: FftKind,
    x: I,
    f: F,
    out: A,
) -> Result<()>
where
    T: FftFloat + Fft<S::Short, F, O::Short, Tag>,
    I: InputArg<S>,
    S: Source<Item: ConvertTo<Complex<T>>>,
    F: UnaryFn<Complex<T>> + KernelParam,
    A: OutputArg<O>,
    O: Sink<Item = F::Output>,
{
    let (all, all_powers, first, first_powers, last, last_powers, between, between_powers) =
        <T as Fft<S::Short, F, O::Short, Tag>>::kernels();
    let (items, needed) = match kind {
        FftKind::Forward | FftKind::Inverse => (plan.items(), plan.items()),
        FftKind::RealForward => (plan.items(), plan.half_items()),
        FftKind::RealInverse => (plan.half_items(), plan.items()),
    };
    check_input(name, items, run.items(name, &x)?)?;
    check_output(name, "out", out.places(), needed)?;
    check_device(name, "`plan`", run.stream, plan.table.device())?;
    if items == 0 {
        return Ok(());
    }
    let mut out = out;
    if let Some(of_reals) = in_memory::<T, S, F, O>(kind)
        && let Ok(generated) = &plan.generated
        && generated.has(kind)
        && let (Some(from), Some(to)) = (x.buffer_address(), out.buffer_address())
    {
        let ends = Apart::<_, _, S, O>::new(Again(&x), AgainMut(&mut out));
        // SAFETY: the lengths were compared with the plan's above, and the types are those of the kind.
        return unsafe { generated.run(run, kind, plan.scale(kind), of_reals, [from, to], ends) };
    }
    let work = Work { stream: run.stream, plan, kind };
    let (end, before) = work.passes();
    if before.is_empty() {
        return work.launch((all, all_powers), end, true, x, f, out);
    }
    let mut memory = run.memory(&area_bytes::<T>(before))?;
    let area = work.launch_before(&mut memory, (first, first_powers), (between, between_powers), x)?;
    work.launch((last, last_powers), end, true, &area, f, out)
}

/// Returns whether the input is real, if the input is a buffer, the output is another buffer, and there is no function. Otherwise returns
/// `None`.
fn in_memory<T: FftFloat, S: Source, F: 'static, O: Sink>(kind: FftKind) -> Option<bool> {
    fn is<A: 'static, B: 'static>() -> bool {
        TypeId::of::<A>() == TypeId::of::<B>()
    }
    let (complex, real) = (is::<S, Span<Complex<T>>>(), is::<S, Span<T>>());
    let as_it_is = is::<F, Identity>() && is::<O, SpanMut<Complex<T>>>();
    match kind {
        FftKind::Forward | FftKind::Inverse => ((complex || real) && as_it_is).then_some(real),
        FftKind::RealForward => (real && as_it_is).then_some(false),
        FftKind::RealInverse => (complex && is::<F, RealPart>() && is::<O, SpanMut<T>>()).then_some(false),
    }
}

/// Computes [`fft`], and replaces the array by its transforms.
///
/// `data` has as many numbers as the plan's shape. The passes and the temporary memory are those of [`fft`].
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes, those of `fft`: `fourier::transforms::every_length_is_transformed` | as `fft` | as `fft` |
///
/// cuFFT: `cufftPlanMany`, `cufftExecC2C`, `cufftExecZ2Z`.
///
/// ```
/// use kernel_primitives::algorithms::{FftPlan, fft_in_place};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let plan = FftPlan::<f32>::new(&stream, &[3], &[0])?;
/// let mut x = stream.buffer_from(&[1.0, 1.0, 1.0].map(Complex::from))?;
/// fft_in_place(&stream, &plan, &mut x)?;
/// assert_eq!(x.to_vec()?, [3.0, 0.0, 0.0].map(Complex::from));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`fft`].
pub fn fft_in_place<'a, 'd, T: InPlace>(
    run: impl Into<Run<'a>>,
    plan: &FftPlan<T>,
    data: impl Into<BufferSliceMut<'d, Complex<T>>>,
) -> Result<()> {
    T::transform(run.into(), plan, FftKind::Forward, data.into())
}

/// Computes [`ifft`], and replaces the array by its transforms; see [`fft_in_place`].
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes, those of `ifft`: `fourier::transforms::every_length_is_transformed` | as `fft` | as `fft` |
///
/// cuFFT: `cufftPlanMany`, `cufftExecC2C`, `cufftExecZ2Z`.
///
/// ```
/// use kernel_primitives::algorithms::{FftPlan, ifft_in_place};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let plan = FftPlan::<f32>::new(&stream, &[3], &[0])?;
/// let mut x = stream.buffer_from(&[2.0, 0.0, 0.0].map(Complex::from))?;
/// ifft_in_place(&stream, &plan, &mut x)?;
/// assert_eq!(x.to_vec()?, [2.0, 2.0, 2.0].map(Complex::from));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`fft`].
pub fn ifft_in_place<'a, 'd, T: InPlace>(
    run: impl Into<Run<'a>>,
    plan: &FftPlan<T>,
    data: impl Into<BufferSliceMut<'d, Complex<T>>>,
) -> Result<()> {
    T::transform(run.into(), plan, FftKind::Inverse, data.into())
}

fn check_input(name: &str, items: usize, len: usize) -> Result<()> {
    if items == len {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        kernel: name.into(),
        first: "an array of the plan".into(),
        first_len: items,
        second: "the input".into(),
        second_len: len,
    })
}

mod sealed {
    use super::{FftKind, FftPlan};
    use crate::algorithms::Run;
    use crate::element::FftFloat;
    use crate::{BufferSliceMut, Complex, Result};

    /// The float types that the library has kernels for.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait InPlace: FftFloat {
        fn transform(
            run: Run<'_>,
            plan: &FftPlan<Self>,
            kind: FftKind,
            data: BufferSliceMut<'_, Complex<Self>>,
        ) -> Result<()>;
    }
}
pub(super) use sealed::InPlace;

macro_rules! in_place {
    ($($t:ty)*) => {$(
        impl InPlace for $t {
            fn transform(
                run: Run<'_>,
                plan: &FftPlan<Self>,
                kind: FftKind,
                mut data: BufferSliceMut<'_, Complex<Self>>,
            ) -> Result<()> {
                let name = if kind == FftKind::Forward { "fft_in_place" } else { "ifft_in_place" };
                check_input(name, plan.items(), data.len())?;
                check_device(name, "`plan`", run.stream, plan.table.device())?;
                if data.is_empty() {
                    return Ok(());
                }
                if let Ok(generated) = &plan.generated
                    && generated.has(kind)
                    && let Some(address) = OutputArg::buffer_address(&data)
                {
                    // SAFETY: the length was compared with the plan's above.
                    return unsafe { generated.run(run, kind, plan.scale(kind), false, [address; 2], &mut data) };
                }
                let work = Work { stream: run.stream, plan, kind };
                let (end, before) = work.passes();
                if before.is_empty() {
                    let (dims, pass, table) = (work.dims(end), work.parameters(end, true), &plan.table);
                    if end.line.is_power() {
                        return device::fft_lines_in_place::<$t, true>::launch(run.stream, dims, &mut data, pass, table);
                    }
                    return device::fft_lines_in_place::<$t, false>::launch(run.stream, dims, &mut data, pass, table);
                }
                let (any, powers, ..) = <$t as Fft<Complex<$t>, Identity, Complex<$t>, ()>>::kernels();
                let kernels = (any, powers);
                let mut memory = run.memory(&area_bytes::<$t>(before))?;
                let area = work.launch_before(&mut memory, kernels, kernels, &data)?;
                work.launch(kernels, end, true, &area, Identity, &mut data)
            }
        }
    )*};
}
in_place!(f32 f64);
