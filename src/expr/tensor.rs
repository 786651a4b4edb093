//! Tensors: views of device memory with a shape.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::Storage;
use primitives_host::{Buffer, BufferSlice, BufferSliceMut, Device, Error, ExpressionErrorKind, Result, Stream};

use super::assignments::Assignment;
use super::dtype::{DType, Numeric, Promote, Scalar};
use super::evaluate::{evaluate, kernel_text, mistake};
use super::graph::{Expr, Kind, Operand, View, arguments, scalar};
use super::layout::shape::{IntoShape, IntoSlices, Layout, MAX_RANK, Shape};

/// An array in device memory with a shape. Expressions read and write tensors. A tensor with a single axis is a vector.
///
/// A tensor is a view: a clone, a slice or a transpose of it has the same elements, which are freed after the last view. So assignments
/// take it by reference, and you can assign to a view. Work on a tensor runs in the order of the stream that it was created on. A use on
/// another stream waits for earlier uses of the elements.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Tensor, sin};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let b = Tensor::from_slice(&stream, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let row = Tensor::from_slice(&stream, 3, &[10.0f32, 20.0, 30.0])?;
/// let a = Tensor::zeros(&stream, [2, 3])?;
///
/// a.assign(&b * &row + sin(&b) * 0.0)?; // one kernel
/// assert_eq!(a.to_vec()?, [10.0, 40.0, 90.0, 40.0, 100.0, 180.0]);
///
/// a.slice((.., 1))?.add_assign(a.slice((.., 0))?)?; // the second column += the first
/// assert_eq!(a.to_vec()?, [10.0, 50.0, 90.0, 40.0, 140.0, 180.0]);
/// # Ok(())
/// # }
/// ```
pub struct Tensor<T> {
    pub(crate) view: Arc<View>,
    _elements: PhantomData<T>,
}

impl<T> Clone for Tensor<T> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone(), _elements: PhantomData }
    }
}

impl<T: Scalar> std::fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor<{}>({} on {})", T::DTYPE, self.shape(), self.view.stream.device())
    }
}

impl<T: Scalar> Operand for &Tensor<T> {
    type Elem = T;
    fn expr(self) -> Expr<T> {
        Expr::new(Kind::View(self.view.clone()), arguments([]))
    }
}

impl<T: Scalar> Operand for Tensor<T> {
    type Elem = T;
    fn expr(self) -> Expr<T> {
        Expr::new(Kind::View(self.view), arguments([]))
    }
}

impl<T: Scalar> Tensor<T> {
    /// Creates a tensor with a copy of `data`, which must have as many elements as `shape`, outermost axis first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if `data` has another number of elements, or if there are more than [`MAX_RANK`] axes, and
    /// [`Error::Allocation`] if there is not enough memory.
    #[track_caller]
    pub fn from_slice(stream: &Stream, shape: impl IntoShape, data: &[T]) -> Result<Self> {
        let shape = checked_shape(&shape, Some(data.len()))?;
        Ok(Self::of(stream, Layout::contiguous(shape), stream.buffer_from(data)?))
    }

    /// Creates a tensor whose elements are all zero, or `false`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if there are more than [`MAX_RANK`] axes, and [`Error::Allocation`] if there is not enough memory.
    #[track_caller]
    pub fn zeros(stream: &Stream, shape: impl IntoShape) -> Result<Self> {
        let shape = checked_shape(&shape, None)?;
        Ok(Self::of(stream, Layout::contiguous(shape), stream.buffer_zeroed(shape.elements().unwrap_or(usize::MAX))?))
    }

    /// Creates a tensor with unspecified elements. Assign them before you read them: the emulator reports an element that is read before it
    /// is written.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit(stream: &Stream, shape: impl IntoShape) -> Result<Self> {
        let shape = checked_shape(&shape, None)?;
        Ok(Self::of(stream, Layout::contiguous(shape), stream.buffer_uninit(shape.elements().unwrap_or(usize::MAX))?))
    }

    /// Creates a tensor from the elements of a buffer, one for each element of `shape`. Work on the tensor runs in the order of `stream`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_slice`](Self::from_slice), and [`Error::WrongDevice`] if the buffer is not on the stream's device.
    #[track_caller]
    pub fn from_buffer(stream: &Stream, shape: impl IntoShape, buffer: Buffer<T>) -> Result<Self> {
        let shape = checked_shape(&shape, Some(buffer.len()))?;
        let tensor = Self::of(stream, Layout::contiguous(shape), buffer);
        let storage = &tensor.view.storage;
        if !storage.is_on(stream.device()) {
            return Err(Error::WrongDevice {
                kernel: "Tensor::from_buffer".into(),
                argument: "`buffer`".into(),
                stream: stream.device().to_string(),
                buffer: storage.device().to_string(),
            });
        }
        Ok(tensor)
    }

    fn of(stream: &Stream, layout: Layout, buffer: Buffer<T>) -> Self {
        Self::at(Arc::new(Storage::of(buffer)), stream.clone(), layout)
    }

    pub(crate) fn at(storage: Arc<Storage>, stream: Stream, layout: Layout) -> Self {
        Self::of_view(Arc::new(View { storage, stream, layout, dtype: T::DTYPE, spare: None, origin: None }))
    }

    /// Makes the tensor of a view. The elements of the view have the type `T`.
    pub(super) fn of_view(view: Arc<View>) -> Self {
        Self { view, _elements: PhantomData }
    }

    /// Returns a view of the same memory with another layout, which is inside it.
    fn with_layout(&self, layout: Layout) -> Self {
        Self::at(self.view.storage.clone(), self.view.stream.clone(), layout)
    }

    /// Returns the extents of all axes.
    pub fn shape(&self) -> Shape {
        self.view.layout.shape
    }

    /// Returns the steps between elements along each axis, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.view.layout.strides[..self.shape().rank()]
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        T::DTYPE
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape().elements().unwrap_or(usize::MAX)
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the stream that work is enqueued on.
    pub fn stream(&self) -> &Stream {
        &self.view.stream
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.view.stream.device()
    }

    /// Returns whether the elements are contiguous, outermost axis first.
    pub fn is_contiguous(&self) -> bool {
        self.view.layout.is_contiguous()
    }

    /// Returns a view of the same elements that enqueues its work on another stream, after the work that is enqueued now.
    pub fn on(&self, stream: &Stream) -> Self {
        Self::at(self.view.storage.clone(), stream.clone(), self.view.layout)
    }

    /// Returns the elements as a slice, for [algorithms](crate::algorithms) and kernels, or `None` if they are not contiguous.
    pub fn as_slice(&self) -> Option<BufferSlice<'_, T>> {
        let start = self.view.layout.offset;
        // SAFETY: a tensor of `T` has the memory of a buffer of `T`, or of complex numbers with such parts.
        let all = unsafe { self.view.storage.as_slice::<T>() };
        if self.is_contiguous() { all.slice(start..start + self.len()).ok() } else { None }
    }

    /// Returns the elements as a slice to write, for [algorithms](crate::algorithms) and kernels. Returns `None` if the elements are not
    /// contiguous, if they were imported as read-only, or if the tensor is not the only view of its memory. It is not if a clone, a slice,
    /// an expression or a [`Prepared`](super::Prepared) also uses this memory.
    ///
    /// ```
    /// use kernel_primitives::algorithms::inclusive_scan;
    /// use kernel_primitives::expr::Tensor;
    /// use kernel_primitives::functor::Add;
    /// use kernel_primitives::Device;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
    /// let mut sums = Tensor::uninit(&stream, 3)?;
    /// inclusive_scan(&stream, &x, Add, sums.as_slice_mut().expect("it has no other view"))?;
    /// sums.assign(&sums * 10.0)?;
    /// assert_eq!(sums.to_vec()?, [10.0, 30.0, 60.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_slice_mut(&mut self) -> Option<BufferSliceMut<'_, T>> {
        if !self.is_contiguous() || self.view.storage.is_read_only() {
            return None;
        }
        let (start, len) = (self.view.layout.offset, self.len());
        let storage = Arc::get_mut(&mut Arc::get_mut(&mut self.view)?.storage)?;
        // SAFETY: a tensor of `T` has the memory of a buffer of `T`, or of complex numbers with such parts. No other view has the storage,
        // so that only enqueued work and graphs use clones of it until the slice ends.
        let all = unsafe { storage.as_mut_slice::<T>() };
        all.into_slice(start..start + len).ok()
    }

    /// Copies the elements to the host, outermost axis first. The copy waits for all earlier writes of the elements.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Fault`] if a kernel that writes the elements had a fault, and the errors of the copy.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        match self.as_slice() {
            Some(slice) => slice.to_vec(),
            None => self.contiguous()?.to_vec(),
        }
    }

    /// Copies the only element to the host.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the tensor does not have exactly one element, and the errors of [`to_vec`](Self::to_vec).
    #[track_caller]
    pub fn item(&self) -> Result<T> {
        if self.len() != 1 {
            let reason = format!("a tensor of shape {} has {} elements, not one", self.shape(), self.len());
            return Err(view_error(ExpressionErrorKind::BadShape, reason));
        }
        Ok(self.to_vec()?[0])
    }

    /// Returns this tensor if its elements are contiguous, and a contiguous copy otherwise.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`] if there is not enough memory, and the errors of the copy.
    #[track_caller]
    pub fn contiguous(&self) -> Result<Self> {
        if self.is_contiguous() {
            return Ok(self.clone());
        }
        let copy = Self::uninit(self.stream(), self.shape())?;
        copy.assign(self)?;
        Ok(copy)
    }

    // Views.

    /// Returns a view of slices along the leading axes, as in NumPy. A range keeps its axis, and a single index removes its axis. Negative
    /// bounds count from the end. `AxisSlice::from(..).by(-1)` reverses an axis.
    ///
    /// ```
    /// # use kernel_primitives::{Device, expr::{AxisSlice, Tensor}};
    /// # fn main() -> kernel_primitives::Result<()> {
    /// # let stream = Device::auto()?.stream()?;
    /// let x = Tensor::from_slice(&stream, [3, 4], &Vec::from_iter(0..12))?;
    /// assert_eq!(x.slice((1.., ..2))?.to_vec()?, [4, 5, 8, 9]);
    /// assert_eq!(x.slice((-1, AxisSlice::from(..).by(-2)))?.to_vec()?, [11, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if there are more slices than axes, if an index is out of bounds, or if a step is 0. A range that goes
    /// beyond the axis is shortened, as in Python.
    #[track_caller]
    pub fn slice(&self, slices: impl IntoSlices) -> Result<Self> {
        self.viewed(ExpressionErrorKind::OutOfRange, |layout| layout.sliced(&slices.slices()))
    }

    /// Returns a view with a layout that is made from this view's layout. If there is no such layout, the function says why.
    #[track_caller]
    fn viewed(
        &self,
        kind: ExpressionErrorKind,
        layout: impl FnOnce(&Layout) -> Result<Layout, String>,
    ) -> Result<Self> {
        match layout(&self.view.layout) {
            Ok(layout) => Ok(self.with_layout(layout)),
            Err(reason) => Err(view_error(kind, reason)),
        }
    }

    /// Returns a view of the same elements in another shape, outermost axis first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the number of elements differs, or if no strides give that shape without a copy: see
    /// [`contiguous`](Self::contiguous).
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Self> {
        let shape = checked_shape(&shape, Some(self.len()))?;
        self.viewed(ExpressionErrorKind::BadStrides, |layout| layout.reshaped(shape))
    }

    /// Returns a view with the axes in reverse order. For a matrix, this is the transpose.
    pub fn t(&self) -> Self {
        let axes: Vec<usize> = (0..self.shape().rank()).rev().collect();
        self.with_layout(self.view.layout.permuted(&axes).unwrap_or(self.view.layout))
    }

    /// Returns a view with the axes in this order: axis `i` of the result is axis `axes[i]` of this tensor.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if `axes` is not an order of all axes.
    #[track_caller]
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.viewed(ExpressionErrorKind::OutOfRange, |layout| layout.permuted(axes))
    }

    /// Returns a view that repeats the elements to a shape, as NumPy broadcasts. You can read a view that repeats elements, but you cannot
    /// assign to it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the tensor's shape does not broadcast to the given shape.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Result<Self> {
        let shape = checked_shape(&shape, None)?;
        self.viewed(ExpressionErrorKind::BadShape, |layout| layout.repeated(&shape))
    }

    /// Returns a view with a new axis of extent 1 before axis `axis`, or after all axes if `axis` is the number of axes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if there is no such axis, or if there are already [`MAX_RANK`] axes.
    #[track_caller]
    pub fn insert_axis(&self, axis: usize) -> Result<Self> {
        self.viewed(ExpressionErrorKind::OutOfRange, |layout| layout.with_axis(axis))
    }

    /// Returns a view of this tensor's memory, from its first element, with any shape and strides. Strides are in elements. The view may
    /// repeat elements.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the view is not inside the memory.
    #[track_caller]
    pub fn as_strided(&self, shape: impl IntoShape, strides: &[isize]) -> Result<Self> {
        let shape = checked_shape(&shape, None)?;
        let (offset, elements) = (self.view.layout.offset, self.view.storage.len() / size_of::<T>());
        let is_inside = |layout: &Layout| layout.span().is_some_and(|span| span.end <= elements);
        let Some(layout) = Layout::strided(shape, strides, offset).filter(is_inside) else {
            let reason = format!(
                "shape {shape} with strides {strides:?} from element {offset} on is no view of a memory of {elements} elements"
            );
            return Err(view_error(ExpressionErrorKind::BadStrides, reason));
        };
        Ok(self.with_layout(layout))
    }

    // Assignments.

    /// Computes `value` into this tensor's elements, in one kernel.
    ///
    /// `value` broadcasts to this tensor's shape. It may read this tensor at the element that it computes; any other overlap is an error.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if shapes do not broadcast, if there is an overlap, or if the view repeats elements;
    /// [`Error::WrongDevice`] if a tensor is on another device; [`Error::Load`] if the driver refuses the kernel; and [`Error::Fault`] if
    /// an integer is divided by zero, or an index of a [`gather`](super::gather) is out of bounds. The emulator returns a fault from this
    /// call; a GPU returns it from a later call.
    #[track_caller]
    pub fn assign(&self, value: impl Operand<Elem = T>) -> Result<()> {
        evaluate(Location::caller(), &[&self.view], &[value.expr().node])
    }

    /// Describes an assignment to this tensor, for [`assign_all`](super::assign_all), which makes several assignments in one kernel.
    pub fn to(&self, value: impl Operand<Elem = T>) -> Assignment {
        Assignment::new(self.view.clone(), value.expr().node)
    }

    /// Returns the PTX of the kernel that [`assign`](Self::assign) of `value` launches on a GPU of an architecture, given as compute
    /// capability times ten.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`assign`](Self::assign) before its launch; [`Error::NoImage`] if a function has no code for the architecture,
    /// as in a build without the feature `cuda`; and [`Error::LaunchLimit`] if the parameters exceed the 4096 bytes that a kernel takes. A
    /// tensor takes 8 bytes, a vector that is gathered from takes 24, and a number or a stride takes 4 or 8.
    ///
    /// ```
    /// # use kernel_primitives::{Device, expr::Tensor};
    /// # fn main() -> kernel_primitives::Result<()> {
    /// # let stream = Device::auto()?.stream()?;
    /// let x = Tensor::zeros(&stream, 1024)?;
    /// let ptx = x.ptx(&x * 2.0f32 + 1.0, 90)?;
    /// assert!(ptx.contains(".target sm_90") && ptx.contains("ld.global.v4.b32"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn ptx(&self, value: impl Operand<Elem = T>, arch: u32) -> Result<String> {
        kernel_text(Location::caller(), &[&self.view], &[value.expr().node], arch)
    }

    /// Sets all elements to `value`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`assign`](Self::assign).
    #[track_caller]
    pub fn fill(&self, value: T) -> Result<()> {
        self.assign(scalar(value))
    }
}

/// Adds the methods that combine the elements of a tensor type with a value.
macro_rules! updates {
    ($tensor:ident) => {
        $crate::expr::tensor::updates! { @ $tensor;
            /// Adds `value` to the elements, in their type.
            add_assign: +;
            /// Subtracts `value` from the elements, in their type.
            sub_assign: -;
            /// Multiplies the elements by `value`, in their type.
            mul_assign: *;
            /// Divides the elements by `value`, in their type.
            div_assign: /;
        }
    };
    (@ $tensor:ident; $($(#[$doc:meta])* $name:ident: $op:tt;)*) => {
        impl<T: Numeric> $tensor<T> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// Returns the errors of [`assign`](Self::assign).
                #[track_caller]
                pub fn $name<V: Operand>(&self, value: V) -> Result<()>
                where
                    T: Promote<V::Elem, Output = T>,
                {
                    self.assign(self.expr() $op value.expr())
                }
            )*
        }
    };
}
pub(super) use updates;
updates!(Tensor);

#[track_caller]
fn view_error(kind: ExpressionErrorKind, reason: String) -> Error {
    mistake(Location::caller(), kind, reason, &[])
}

/// Checks a shape, and its number of elements if `elements` is given.
#[track_caller]
pub(super) fn checked_shape(shape: &impl IntoShape, elements: Option<usize>) -> Result<Shape> {
    let extents = shape.extents();
    let Some(shape) = Shape::new(extents) else {
        let reason = format!("a shape of {} axes; there can be {MAX_RANK}", extents.len());
        return Err(view_error(ExpressionErrorKind::BadShape, reason));
    };
    match (shape.elements(), elements) {
        (None, _) => {
            let reason = format!("the shape {shape} has more elements than can be counted");
            Err(view_error(ExpressionErrorKind::BadShape, reason))
        }
        (Some(count), Some(len)) if count != len => {
            let reason = format!("the shape {shape} has {count} elements, but there are {len}");
            Err(view_error(ExpressionErrorKind::BadShape, reason))
        }
        _ => Ok(shape),
    }
}
