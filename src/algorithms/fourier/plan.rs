//! Plans of Fourier transforms.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::generated::launch::Generated;
use super::passes::{self, Axis, LONGEST_FILTER, Method, Part, Pass};
use super::radices::{Limits, Line};
use super::tables::Table;
use super::transform::FftKind;
use crate::element::FftFloat;
use crate::kernels::device::fft_shared_bytes;
use crate::{Buffer, Complex, Error, Result, Stream};

/// A plan of the Fourier transforms of an array. It has the launches that compute them, and tables of factors on the device.
///
/// The array has a shape and is in row-major order: neighbours along the last axis are neighbours in memory. The plan transforms along some
/// of the axes. The other axes are batches: 100 transforms of 1024 numbers have the shape `[100, 1024]` and the axis 1. Numbers are
/// complex, and their parts have the type `T`, `f32` or `f64`. A real array has a half spectrum along the last axis of the list of axes.
///
/// A plan serves any number of calls of [`fft`](super::fft()), [`ifft`](super::ifft), [`rfft`](super::rfft) and [`irfft`](super::irfft),
/// from any number of threads and streams.
///
/// **Passes.** Each pass is a launch that reads and writes all numbers once. With the library's own kernels, these are:
///
/// | length of the axis | passes | temporary memory |
/// |---|---|---|
/// | a product of 2, 3, 5, 7, 11 and 13 that a block has threads and memory for: up to 2^14 of `f32`, 2^13 of `f64` | 1 | none |
/// | a product of two of these: a matrix of columns and rows (Bailey, 1990), of which blocks have enough side by side: powers of two up to 2^22 if they have 160 KiB of shared memory | 2 | an array |
/// | a product of three of these: a matrix whose rows are matrices | 3 | two arrays |
/// | any other: a convolution with a chirp (Bluestein, 1970) | 2, 4 or 6 | one or two arrays, two to four times as long |
///
/// A real array, or a half spectrum, takes half of the work if the last axis of the list has an even length and half of that length takes
/// one pass. The plan then transforms pairs of real numbers as complex numbers. Otherwise a real array is transformed as a complex array.
///
/// The passes of several axes follow each other, with one or two temporary arrays between them. On all GPUs, whose blocks have at least 64
/// KiB of shared memory, powers of two have a plan up to 2^36 for `f32` and 2^33 for `f64`. All lengths up to 2^25 have a plan.
///
/// **Kernels.** On a GPU, generated kernels transform numbers that are read from buffers and written to buffers. They are written for the
/// lengths of the plan when it is first used, and the driver compiles them, which takes up to a second for each launch. Plans that differ
/// only in their scales share kernels, with one exception: for a scale of 1, the last launch has another kernel, which does not multiply.
/// Plans that differ in the batch share a kernel if its last block lacks lines in both plans, or in neither. A launch that makes two passes
/// has a kernel for each batch.
///
/// Generated kernels have these advantages. They make two passes in one launch if the cache holds the numbers between the passes. They need
/// no temporary array if each axis takes one pass. They take lengths with large prime factors in one pass if a block holds the convolution.
///
/// The following take the library's own kernels, as everything does on the emulator, with the passes of the table above: computed inputs
/// and outputs, functions of results, longer lengths with prime factors above 31, real axes that are not the last one or have an odd
/// length, arrays of 2^31 numbers or more, and everything on a driver without a compiler. [`path`](Self::path) says which kernels a plan
/// takes, and why. For transforms of expressions of tensors, in one generated kernel, see [`FftChain`](super::FftChain).
///
/// **Memory of the plan.** For one pass, the plan has as many complex numbers as the axis is long; for two or three passes, a few times the
/// square root of the length; for other lengths, three to nine times the length. If the last axis of the list has an even length, and half
/// of it takes one pass, the plan has another three quarters of the length. On a GPU, the tables of generated kernels take up to twice as
/// much again, and rows of 2^24 complex numbers take 2.5 MB more, or 10 MB for 2^26 of `f32`. The host computes all tables in double precision. Meanwhile
/// this takes up to 100 bytes for each number of the axis, and seconds for the longest axes.
///
/// ```
/// use kernel_primitives::algorithms::{FftPlan, fft, ifft};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// // Two transforms of four numbers each.
/// let plan = FftPlan::<f32>::new(&stream, &[2, 4], &[1])?.scaled(1.0, 0.25);
/// let x = stream.buffer_from(&[1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0].map(Complex::from))?;
/// let (mut spectra, mut same) = (stream.buffer_zeroed(8)?, stream.buffer_zeroed(8)?);
/// fft(&stream, &plan, &x, &mut spectra)?;
/// assert_eq!(spectra.to_vec()?, [1.0, 1.0, 1.0, 1.0, 4.0, 0.0, 0.0, 0.0].map(Complex::from));
/// ifft(&stream, &plan, &spectra, &mut same)?;
/// assert_eq!(same.to_vec()?, x.to_vec()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FftPlan<T> {
    shape: Vec<usize>,
    axes: Vec<usize>,
    /// The methods of the axes, in their order.
    methods: Vec<Method>,
    /// The lines of pairs of real numbers along the last axis, if it has an even length and a block can hold them.
    pairs: Option<Line>,
    limits: Limits,
    pub(super) table: Buffer<Complex<T>>,
    places: HashMap<Part, u64>,
    /// The launches of each kind of transform. The first call plans them.
    passes: [OnceLock<Vec<Pass>>; 4],
    scales: [T; 2],
    /// The kernels that are generated for the plan, or the reason why there are none.
    pub(super) generated: std::result::Result<Generated<T>, String>,
}

/// The kernels that a plan launches; see [`FftPlan::path`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FftPath {
    /// Kernels that are written at run time for the lengths of the plan. The driver compiles them when they are first launched.
    Generated {
        /// The number of launches of a transform.
        launches: usize,
    },
    /// Kernels of the library, for any length.
    Compiled {
        /// The number of launches of a transform.
        launches: usize,
        /// Why generated kernels cannot be used.
        reason: String,
    },
}

/// The error of a plan that cannot be made.
fn wrong<P>(reason: String) -> Result<P> {
    Err(Error::Fft { call: "FftPlan::new", reason })
}

/// How the lines along each axis are transformed.
fn methods(stream: &Stream, shape: &[usize], axes: &[usize], limits: Limits) -> Result<Vec<Method>> {
    let mut methods = Vec::with_capacity(axes.len());
    for (i, &axis) in axes.iter().enumerate() {
        let Some(&n) = shape.get(axis) else {
            return wrong(format!("there is no axis {axis} in the shape {shape:?}"));
        };
        if axes[..i].contains(&axis) {
            return wrong(format!("axis {axis} is given twice"));
        }
        if n == 0 {
            return wrong(format!("the length of axis {axis} is 0"));
        }
        let Some(method) = Method::new(n, limits) else {
            let reason = format!(
                "axis {axis} is {n} numbers long, which is too long for {} with {} bytes of shared memory, or has a \
                 prime factor above 13 and is longer than {}",
                stream.device(),
                limits.shared_bytes,
                LONGEST_FILTER / 2
            );
            return wrong(reason);
        };
        methods.push(method);
    }
    Ok(methods)
}

impl<T: FftFloat> FftPlan<T> {
    /// Makes a plan for arrays of this shape, with transforms along these axes, which count from 0.
    ///
    /// # Errors
    /// Returns [`Error::Fft`] if `axes` is empty, if an axis is not in the shape or comes twice, if its length is 0, or if its length, or
    /// the convolution that it needs, is too long for the shared memory of the device's blocks. Returns it also if the extents of the shape
    /// that are not 0 multiply to more than [`usize::MAX`]. Returns the errors of an allocation and of a copy.
    pub fn new(stream: &Stream, shape: &[usize], axes: &[usize]) -> Result<Self> {
        if axes.is_empty() {
            return wrong("no axis is given".into());
        }
        if shape.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent.max(1))).is_none() {
            return wrong(format!(
                "the extents of the shape {shape:?} that are not 0 multiply to more than can be counted"
            ));
        }
        let shared_bytes = fft_shared_bytes(stream.device().properties().max_shared_bytes);
        let limits = Limits { shared_bytes, number: size_of::<Complex<T>>() };
        let methods = methods(stream, shape, axes, limits)?;
        let along = |axis: usize| {
            let n = shape[axis];
            Axis { outer: 1, inner: 1, n, input: n, output: n }
        };
        let mut table = Table::<T>::new();
        for (&axis, &method) in axes.iter().zip(&methods) {
            let mut passes = Vec::new();
            passes::append(&mut passes, method, along(axis), false, limits);
            passes.iter().flat_map(Pass::parts).for_each(|part| table.add(part));
        }
        let last = axes[axes.len() - 1];
        let pairs = if shape[last].is_multiple_of(2) { Line::new(shape[last] / 2, limits) } else { None };
        if let Some(line) = pairs {
            passes::half(line, along(last), false, limits).parts().for_each(|part| table.add(part));
        }
        let (numbers, places) = table.into_parts();
        let (shape, axes, table) = (shape.to_vec(), axes.to_vec(), stream.buffer_from(&numbers)?);
        let (passes, scales) = (Default::default(), [T::ONE; 2]);
        let generated = Generated::new(stream, &shape, &axes)?;
        Ok(Self { shape, axes, methods, pairs, limits, table, places, passes, scales, generated })
    }

    /// Multiplies the results of transforms by `forward`, and those of inverse transforms by `inverse`, in the same pass. Without this,
    /// both factors are 1. Then a transform and an inverse transform together multiply the array by the number of items of a transform.
    #[must_use]
    pub fn scaled(self, forward: T, inverse: T) -> Self {
        let generated = self.generated.map(Generated::rescaled);
        Self { scales: [forward, inverse], generated, ..self }
    }

    /// Uses only the library's own kernels. This is for a length that is transformed a few times, because the driver then need not compile
    /// kernels. On a GPU, the library's kernels take several times as long as generated ones. [`new`](Self::new) takes the same time.
    #[must_use]
    pub fn compiled(self) -> Self {
        Self { generated: Err("the plan asks for compiled kernels".into()), ..self }
    }

    /// Returns which kernels make the transforms of a kind, for numbers in buffers.
    ///
    /// On a GPU, kernels can be [generated](FftPath::Generated). Computed inputs and outputs, such as a window or a function of the
    /// results, always take [compiled](FftPath::Compiled) kernels.
    ///
    /// ```
    /// use kernel_primitives::algorithms::{FftKind, FftPath, FftPlan};
    /// use kernel_primitives::Device;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let plan = FftPlan::<f32>::new(&Device::emulator().stream()?, &[100, 1000], &[1])?;
    /// let FftPath::Compiled { launches, reason } = plan.path(FftKind::Forward) else { panic!("the emulator runs no PTX") };
    /// assert_eq!((launches, &*reason), (1, "the emulator runs compiled kernels"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self, kind: FftKind) -> FftPath {
        let compiled = |reason| FftPath::Compiled { launches: self.passes(kind).len(), reason };
        match &self.generated {
            Ok(generated) => match generated.launches(kind) {
                Ok(launches) => FftPath::Generated { launches },
                Err(refusal) => compiled(refusal.to_string()),
            },
            Err(reason) => compiled(reason.clone()),
        }
    }

    /// The shape of arrays.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The axes along which transforms go.
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// The number of numbers in an array.
    pub fn items(&self) -> usize {
        self.shape.iter().product()
    }

    /// The shape of the half spectrum of a real array: the last axis of the list has `n / 2 + 1` numbers.
    pub fn half_shape(&self) -> Vec<usize> {
        let mut shape = self.shape.clone();
        let last = self.last_axis();
        shape[last] = shape[last] / 2 + 1;
        shape
    }

    /// The number of numbers in the half spectrum of a real array.
    pub fn half_items(&self) -> usize {
        self.half_shape().iter().product()
    }

    fn last_axis(&self) -> usize {
        self.axes[self.axes.len() - 1]
    }

    /// The launches of a transform, in order.
    pub(super) fn passes(&self, kind: FftKind) -> &[Pass] {
        self.passes[kind as usize].get_or_init(|| self.new_passes(kind))
    }

    /// Plans the launches of a transform. Inner axes come first, except for the axis of a real array, which is first or last.
    fn new_passes(&self, kind: FftKind) -> Vec<Pass> {
        let last = self.last_axis();
        let mut order: Vec<usize> = (0..self.axes.len()).collect();
        order.sort_unstable_by_key(|&i| std::cmp::Reverse(self.axes[i]));
        let end = self.axes.len() - 1;
        match kind {
            FftKind::Forward | FftKind::Inverse => {}
            FftKind::RealForward => order.sort_by_key(|&i| i != end),
            FftKind::RealInverse => order.sort_by_key(|&i| i == end),
        }
        let mut shape = match kind {
            FftKind::RealInverse => self.half_shape(),
            _ => self.shape.clone(),
        };
        let mut passes = Vec::new();
        for i in order {
            let (axis, n) = (self.axes[i], self.shape[self.axes[i]]);
            let input = shape[axis];
            let is_real = axis == last;
            if is_real && kind == FftKind::RealForward {
                shape[axis] = n / 2 + 1;
            } else {
                shape[axis] = n;
            }
            let along = Axis {
                outer: shape[..axis].iter().product(),
                inner: shape[axis + 1..].iter().product(),
                n,
                input,
                output: shape[axis],
            };
            let inverse = is_real && kind == FftKind::RealInverse;
            if inverse {
                invert(&mut passes);
            }
            let begin = passes.len();
            match self.pairs {
                Some(line) if inverse || is_real && kind == FftKind::RealForward => {
                    passes.push(passes::half(line, along, inverse, self.limits));
                }
                _ => {
                    passes::append(&mut passes, self.methods[i], along, inverse, self.limits);
                    if inverse {
                        invert(&mut passes[begin..]);
                    }
                }
            }
        }
        if kind == FftKind::Inverse {
            invert(&mut passes);
        }
        passes
    }

    /// The factor of results.
    pub(super) fn scale(&self, kind: FftKind) -> T {
        self.scales[matches!(kind, FftKind::Inverse | FftKind::RealInverse) as usize]
    }

    /// The beginning of a part in the table.
    pub(super) fn place(&self, part: Part) -> u64 {
        self.places[&part]
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }
}

/// Changes the passes of a transform into those of the inverse transform. Between two axes, nothing changes, except for a mirrored axis,
/// which does not conjugate its input.
fn invert(passes: &mut [Pass]) {
    if let Some(first) = passes.first_mut() {
        first.conjugate.input = true;
    }
    if let Some(last) = passes.last_mut() {
        last.conjugate.output = true;
    }
}
