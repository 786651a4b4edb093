//! Arrays of the crate [`ndarray`](https://docs.rs/ndarray): copies to a device and back, and views of a tensor without a copy if the
//! tensor's memory is on the host.
//!
//! | from | to | call | copies |
//! |---|---|---|---|
//! | array or view, of any strides | tensor | [`Tensor::from_ndarray`] | once to the device; before on the host if the elements are not contiguous |
//! | array or view | elements of a tensor | [`Tensor::assign_ndarray`] | as above, and in one kernel |
//! | tensor, of any strides | array | [`Tensor::to_ndarray`] | once to the host; before on the device if the elements are not contiguous |
//! | tensor | array or view that is there | [`Tensor::copy_to_ndarray`] | as above; once more on the host if they are not contiguous there |
//! | tensor on the emulator | view | [`Tensor::with_ndarray`], [`Tensor::with_ndarray_mut`] | none |
//! | array or view | buffer, of any element | [`to_buffer`] | as a tensor |
//! | buffer or a part of one | array | [`from_slice`] | once to the host |
//!
//! An axis may have a negative stride or the stride 0, and an array may have no elements. A tensor has at most [`MAX_RANK`] axes.
//!
//! ```
//! use kernel_primitives::Device;
//! use kernel_primitives::expr::{Tensor, scalar};
//! use ndarray::{Array2, array, s};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let host = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! let x = Tensor::from_ndarray(&stream, &host.slice(s![.., ..;-1]))?;
//! x.mul_assign(scalar(10.0f32))?;
//! let y: Array2<f32> = x.to_ndarray()?;
//! assert_eq!(y, array![[30.0, 20.0, 10.0], [60.0, 50.0, 40.0]]);
//!
//! if !x.device().is_gpu() {
//!     assert_eq!(x.with_ndarray(|view| view.sum())?, 210.0); // no copy
//! }
//! # Ok(())
//! # }
//! ```

use std::ops::Range;
use std::panic::Location;

use ::ndarray::{
    Array, ArrayBase, ArrayD, ArrayViewD, ArrayViewMutD, Axis, Data, DataMut, Dimension, IxDyn, ShapeBuilder,
    StrideShape,
};
use primitives_gpu::Element;
use primitives_host::storage::{with_bytes, zeroed_vec};
use primitives_host::{Buffer, BufferSlice, Error, ExpressionErrorKind, Result, Stream};

use crate::expr::evaluate::mistake;
use crate::expr::layout::shape::Layout;
use crate::expr::{MAX_RANK, Scalar, Tensor};

/// Makes a buffer with a copy of the elements, in logical order: the last index changes first.
///
/// # Errors
///
/// Returns [`Error::Allocation`] if the device or the host does not have enough memory.
///
/// ```
/// use kernel_primitives::interop::ndarray::{from_slice, to_buffer};
/// use kernel_primitives::{Complex, Device};
/// use ndarray::{Ix2, array};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let i = Complex { re: 0.0f32, im: 1.0 };
/// let host = array![[i, -i, i], [i, i, i]];
/// let buffer = to_buffer(&stream, &host.t())?;
/// assert_eq!(buffer.to_vec()?, [i, i, -i, i, i, i]);
/// assert_eq!(from_slice::<_, Ix2>(&[3, 2], &buffer)?, host.t());
/// # Ok(())
/// # }
/// ```
pub fn to_buffer<T: Element, S: Data<Elem = T>, D: Dimension>(
    stream: &Stream,
    array: &ArrayBase<S, D>,
) -> Result<Buffer<T>> {
    in_a_row(array, |elements| stream.buffer_from(elements))
}

/// Makes an array with a copy of a buffer or of a part of it, after all work that writes it. `D` is the type of the axes, such as
/// [`Ix2`](type@::ndarray::Ix2), or [`IxDyn`](type@IxDyn) for any number of axes.
///
/// # Errors
///
/// Returns [`Error::Expression`] if `shape` has another number of elements or of axes, and the errors of [`BufferSlice::to_vec`].
#[track_caller]
pub fn from_slice<'a, T: Element, D: Dimension>(
    shape: &[usize],
    slice: impl Into<BufferSlice<'a, T>>,
) -> Result<Array<T, D>> {
    let slice = slice.into();
    check_shape::<D>(shape, slice.len())?;
    shaped(shape, slice.to_vec()?)
}

/// Calls `then` with the elements in logical order. It copies them if necessary.
fn in_a_row<T: Element, S: Data<Elem = T>, D: Dimension, R>(
    array: &ArrayBase<S, D>,
    then: impl FnOnce(&[T]) -> Result<R>,
) -> Result<R> {
    if let Some(elements) = array.as_slice() {
        return then(elements);
    }
    let mut elements = Vec::new();
    elements.try_reserve_exact(array.len()).map_err(|error| Error::Allocation {
        bytes: array.len() as u128 * size_of::<T>() as u128,
        device: "the host".into(),
        reason: error.to_string(),
        driver: None,
    })?;
    elements.extend(array.iter());
    then(&elements)
}

/// Returns an error for a shape that has another number of axes than `D`, has another number of elements than `len`, or is not possible in
/// `ndarray`.
#[track_caller]
fn check_shape<D: Dimension>(shape: &[usize], len: usize) -> Result<()> {
    if let Some(axes) = D::NDIM.filter(|axes| *axes != shape.len()) {
        return Err(bad_shape(format!("the shape {shape:?} has {} axes, but the array has {axes}", shape.len())));
    }
    check_extents(shape)?;
    if shape.iter().product::<usize>() != len {
        return Err(bad_shape(format!("there are {len} elements, which is not what the shape {shape:?} has")));
    }
    Ok(())
}

/// Makes the array of a shape that was checked.
#[track_caller]
fn shaped<T, D: Dimension>(shape: &[usize], values: Vec<T>) -> Result<Array<T, D>> {
    match ArrayD::from_shape_vec(IxDyn(shape), values).and_then(|array| array.into_dimensionality::<D>()) {
        Ok(array) => Ok(array),
        Err(error) => Err(bad_shape(format!("ndarray has no array of shape {shape:?}: {error}"))),
    }
}

/// Returns an error for a shape that is not possible in `ndarray`, which counts elements without the extents that are 0.
#[track_caller]
fn check_extents(shape: &[usize]) -> Result<()> {
    let some = shape.iter().filter(|extent| **extent > 0).try_fold(1usize, |all, &extent| all.checked_mul(extent));
    match some {
        Some(count) if count <= isize::MAX as usize => Ok(()),
        _ => Err(bad_shape(format!(
            "ndarray has no array of shape {shape:?}: its extents multiply to more than can be counted"
        ))),
    }
}

#[track_caller]
fn bad_shape(reason: String) -> Error {
    mistake(Location::caller(), ExpressionErrorKind::BadShape, reason, &[])
}

/// A layout in the form that `ndarray` takes: it starts at the element with the lowest address, and its strides are not negative.
struct Frame {
    shape: Vec<usize>,
    /// The strides. An axis with one index has the stride 0, and so has each axis if there are no elements.
    strides: Vec<usize>,
    /// The axes to reverse afterwards.
    turned: Vec<usize>,
    /// The place of the lowest element in the memory.
    start: usize,
}

impl Frame {
    /// Makes the frame of a layout that is inside its memory.
    #[track_caller]
    fn new(layout: &Layout) -> Result<Self> {
        let shape = layout.shape.to_vec();
        check_extents(&shape)?;
        let mut frame = Self { strides: vec![0; shape.len()], shape, turned: Vec::new(), start: layout.offset };
        if frame.is_empty() {
            // There is no place in memory.
            frame.start = 0;
            return Ok(frame);
        }
        for (axis, (&extent, &stride)) in layout.shape.iter().zip(&layout.strides).enumerate() {
            // If an axis has one index, its stride may have any size.
            if extent > 1 {
                frame.strides[axis] = stride.unsigned_abs();
                if stride < 0 {
                    frame.start -= stride.unsigned_abs() * (extent - 1);
                    frame.turned.push(axis);
                }
            }
        }
        Ok(frame)
    }

    fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The shape and the strides. `ndarray` chooses the strides if there are no elements.
    fn stride_shape(&self) -> StrideShape<IxDyn> {
        let shape = IxDyn(&self.shape);
        if self.is_empty() { shape.into() } else { shape.strides(IxDyn(&self.strides)) }
    }

    /// Returns whether each step, starting with the smallest, is larger than the reach of the smaller ones. `ndarray` requires this, so
    /// that no two indices name the same element.
    fn is_nested(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let axes = self.strides.iter().copied().zip(self.shape.iter().copied());
        let mut axes: Vec<(usize, usize)> = axes.filter(|(_, extent)| *extent > 1).collect();
        axes.sort_unstable();
        let mut reach = 0;
        axes.into_iter().all(|(stride, extent)| {
            let passes = stride > reach;
            reach += stride * (extent - 1);
            passes
        })
    }

    /// Returns the number of elements of memory from the lowest element to the highest one.
    fn span(&self) -> usize {
        self.strides.iter().zip(&self.shape).map(|(stride, extent)| stride * (extent - 1)).sum::<usize>() + 1
    }

    /// Returns a place in the memory for which `f` returns true. A view may repeat elements more often than a loop can count. So for each
    /// axis, this takes no more steps than there are elements in the [`span`](Self::span).
    fn find(&self, f: &mut dyn FnMut(usize) -> bool) -> Result<Option<usize>> {
        if self.is_empty() {
            return Ok(None);
        }
        // Along an axis of stride 0, there is one element.
        let axes = self.strides.iter().copied().zip(self.shape.iter().copied());
        let axes: Vec<(usize, usize)> = axes.filter(|(stride, _)| *stride > 0).collect();
        if axes.iter().map(|(_, extent)| extent).product::<usize>() <= self.span() {
            return Ok(walk(&axes, self.start, f));
        }
        let reached = self.reached(0)?;
        Ok((self.start..).zip(reached).find_map(|(place, is_reached)| (is_reached && f(place)).then_some(place)))
    }

    /// Returns for each element of the span whether steps along the axes `first..` lead to it from the lowest element.
    fn reached(&self, first: usize) -> Result<Vec<bool>> {
        let mut reached = zeroed_vec::<bool>(self.span())?;
        reached[0] = true;
        for (&stride, &extent) in self.strides.iter().zip(&self.shape).skip(first).filter(|(stride, _)| **stride > 0) {
            for line in 0..stride {
                // The number of steps that still lead on along this axis.
                let mut left = 0;
                for is_reached in reached.iter_mut().skip(line).step_by(stride) {
                    if *is_reached {
                        left = extent - 1;
                    } else if left > 0 {
                        left -= 1;
                        *is_reached = true;
                    }
                }
            }
        }
        Ok(reached)
    }

    /// Returns the number, in logical order, of an element at this place, which the view has.
    fn index_of(&self, place: usize) -> Result<usize> {
        let (mut rest, mut index) = (place - self.start, 0);
        for (axis, (&stride, &extent)) in self.strides.iter().zip(&self.shape).enumerate() {
            let inner = self.reached(axis + 1)?;
            let leads_there = |steps: &usize| rest.checked_sub(steps * stride).is_some_and(|rest| inner[rest]);
            let steps = (0..extent).find(leads_there).expect("the view has this place");
            rest -= steps * stride;
            index = index * extent + if self.turned.contains(&axis) { extent - 1 - steps } else { steps };
        }
        Ok(index)
    }
}

/// Calls `f` with the places that these strides and extents lead to, until it returns true. Returns the last place then.
fn walk(axes: &[(usize, usize)], start: usize, f: &mut dyn FnMut(usize) -> bool) -> Option<usize> {
    match axes {
        [] => f(start).then_some(start),
        [(stride, extent), inner @ ..] => (0..*extent).find_map(|index| walk(inner, start + index * stride, f)),
    }
}

impl<T: Scalar> Tensor<T> {
    /// Makes a contiguous tensor with a copy of an array or of a view. Its last index changes first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] for more than [`MAX_RANK`] axes, and [`Error::Allocation`] if the device or the host does not have
    /// enough memory.
    #[track_caller]
    pub fn from_ndarray<S: Data<Elem = T>, D: Dimension>(stream: &Stream, array: &ArrayBase<S, D>) -> Result<Self> {
        let place = Location::caller();
        if array.ndim() > MAX_RANK {
            let reason = format!("an array of {} axes; a tensor can have {MAX_RANK}", array.ndim());
            return Err(mistake(place, ExpressionErrorKind::BadShape, reason, &[]));
        }
        in_a_row(array, |elements| Self::from_slice(stream, array.shape(), elements))
    }

    /// Copies an array or a view over the elements, in the order of the tensor's stream. It broadcasts to the tensor's shape.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_ndarray`](Self::from_ndarray) and of [`assign`](Self::assign).
    #[track_caller]
    pub fn assign_ndarray<S: Data<Elem = T>, D: Dimension>(&self, array: &ArrayBase<S, D>) -> Result<()> {
        self.assign(Self::from_ndarray(self.stream(), array)?)
    }

    /// Makes a copy on the host, after all work that writes the elements. `D` is the type of the axes, such as
    /// [`Ix2`](type@::ndarray::Ix2), or [`IxDyn`](type@IxDyn) for any number of axes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the tensor has another number of axes, and the errors of [`to_vec`](Self::to_vec).
    #[track_caller]
    pub fn to_ndarray<D: Dimension>(&self) -> Result<Array<T, D>> {
        let shape = self.shape();
        check_shape::<D>(&shape, self.len())?;
        shaped(&shape, self.to_vec()?)
    }

    /// Copies the elements to an array or a view of the same shape, after all work that writes them.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the shapes differ, and the errors of [`to_vec`](Self::to_vec).
    #[track_caller]
    pub fn copy_to_ndarray<S: DataMut<Elem = T>, D: Dimension>(&self, array: &mut ArrayBase<S, D>) -> Result<()> {
        if array.shape() != &*self.shape() {
            return Err(bad_shape(format!(
                "a tensor of shape {} is to be copied to {:?}",
                self.shape(),
                array.shape()
            )));
        }
        match (self.as_slice(), array.as_slice_mut()) {
            (Some(elements), Some(to)) => elements.copy_to(to),
            _ => {
                let elements = self.to_vec()?;
                array.iter_mut().zip(elements).for_each(|(to, element)| *to = element);
                Ok(())
            }
        }
    }

    /// Calls `f` with a view of the elements in the host's memory, without a copy. The tensor must be on the emulator.
    ///
    /// The call waits for the work that writes the tensor's memory. Until `f` returns, other threads that write the memory wait. A call in
    /// `f` that would wait for the end of `f` returns an error. `f` should compute and not launch. It holds the memory, and other threads
    /// that wait for the memory may hold something that `f` needs.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotOnHost`] if the tensor's memory is on a GPU, [`Error::Fault`] if an element has not been written,
    /// [`Error::Expression`] for a shape that is not possible in `ndarray`, [`Error::InvalidBits`] for a byte that is not a `bool`,
    /// [`Error::Capture`] if a capture of this thread uses the memory, [`Error::InKernel`] in a kernel that writes the memory, and
    /// [`Error::Allocation`] if elements overlap and the host does not have the memory to check them.
    #[track_caller]
    pub fn with_ndarray<R>(&self, f: impl FnOnce(ArrayViewD<'_, T>) -> R) -> Result<R> {
        self.with_frame("`Tensor::with_ndarray`", false, |start, frame| {
            // SAFETY: the elements are in the tensor's memory, at an aligned address, and nobody writes them until `f` returns. Their
            // number and the largest step fit in an `isize`, and strides are not negative. They are values of `T`. If there are none,
            // `ndarray` chooses the strides, and the extents other than 0 multiply to an `isize`.
            let mut view = unsafe { ArrayViewD::from_shape_ptr(frame.stride_shape(), start) };
            frame.turned.iter().for_each(|&axis| view.invert_axis(Axis(axis)));
            f(view)
        })
    }

    /// Works as [`with_ndarray`](Self::with_ndarray), but `f` may write the elements. Elements that have not been written have unspecified
    /// values.
    ///
    /// Later work sees what `f` has written. Until `f` returns, other threads that use the memory wait.
    ///
    /// ```
    /// use kernel_primitives::Device;
    /// use kernel_primitives::expr::Tensor;
    /// use ndarray::Axis;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::emulator().stream()?;
    /// let x = Tensor::<i32>::zeros(&stream, [2, 3])?;
    /// x.t().with_ndarray_mut(|mut view| view.index_axis_mut(Axis(0), 2).fill(7))?;
    /// assert_eq!(x.to_vec()?, [0, 0, 7, 0, 0, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`with_ndarray`](Self::with_ndarray); [`Error::Expression`] if the tensor repeats elements, as a broadcast
    /// tensor does, or if its axes interleave, because `ndarray` has no writable view of such elements; and [`Error::ReadOnly`] if the
    /// memory was imported as read-only.
    #[track_caller]
    pub fn with_ndarray_mut<R>(&self, f: impl FnOnce(ArrayViewMutD<'_, T>) -> R) -> Result<R> {
        self.with_frame("`Tensor::with_ndarray_mut`", true, |start, frame| {
            // SAFETY: as above; nobody else accesses the elements, and no two indices mean the same one.
            let mut view = unsafe { ArrayViewMutD::from_shape_ptr(frame.stride_shape(), start) };
            frame.turned.iter().for_each(|&axis| view.invert_axis(Axis(axis)));
            f(view)
        })
    }

    /// Calls `f` with the address of the lowest element, while it holds the memory.
    #[track_caller]
    fn with_frame<R>(&self, call: &'static str, write: bool, f: impl FnOnce(*mut T, &Frame) -> R) -> Result<R> {
        let frame = Frame::new(&self.view.layout)?;
        if write && !frame.is_nested() {
            let (shape, strides) = (self.shape(), self.strides());
            let reason = format!(
                "a view of shape {shape} and strides {strides:?} repeats elements, or its axes interleave: ndarray has no view of it to \
                 write"
            );
            return Err(mistake(Location::caller(), ExpressionErrorKind::BadStrides, reason, &[]));
        }
        let size = size_of::<T>();
        let ranges = |f: &mut dyn FnMut(Range<usize>) -> bool| {
            frame.find(&mut |place| f(place * size..(place + 1) * size)).map(drop)
        };
        with_bytes(call, Location::caller(), (&self.view.storage, write), ranges, |first| {
            if !T::ANY_BITS {
                check_values::<T>(&frame, first)?;
            }
            // If there are no elements, any aligned address is right.
            Ok(f(first.cast::<T>().wrapping_add(frame.start), &frame))
        })
    }
}

/// Checks that the bytes of all elements are values. `first` is the first byte of the memory, which is held.
fn check_values<T: Element>(frame: &Frame, first: *const u8) -> Result<()> {
    let size = size_of::<T>();
    let bytes = |place: usize| {
        // SAFETY: these are the bytes of an element, which are in the memory.
        unsafe { std::slice::from_raw_parts(first.add(place * size), size) }
    };
    let Some(place) = frame.find(&mut |place| !T::valid_bits(bytes(place)))? else { return Ok(()) };
    let bits = bytes(place).iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    Err(Error::InvalidBits { element: std::any::type_name::<T>(), index: frame.index_of(place)?, bits })
}
