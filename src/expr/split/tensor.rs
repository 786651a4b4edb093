//! The type of split tensors.

use std::marker::PhantomData;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::{Storage, zeroed_vec};
use primitives_host::{Buffer, ExpressionErrorKind, Result, Split, SplitBuffer, Stream};

use super::assign::assign;
use super::halo::Halo;
use super::packed::contiguous;
use super::view::{SplitView, row_elements, with_rows};
use crate::expr::dtype::{DType, Numeric, Promote, Scalar};
use crate::expr::evaluate::mistake;
use crate::expr::functions::Functions;
use crate::expr::graph::{Expr, Kind, Operand, View, arguments, scalar};
use crate::expr::layout::shape::{IntoShape, Layout, Shape};
use crate::expr::tensor::{Tensor, checked_shape, updates};

/// A tensor whose rows are on several devices. It is split along its outermost axis, as a [`Split`] says.
///
/// Use it in expressions as you use a [`Tensor`]. An assignment runs on all devices at once, each on its stream. Each device runs one
/// kernel. For stencils, it also copies and fills the rows around its own. [`element_index`](crate::expr::element_index),
/// [`axis_index`](crate::expr::axis_index) and random numbers count over the whole tensor, so the result is the same as on one device.
/// Reductions are computed on each device, and then over the devices.
///
/// ```
/// use kernel_primitives::expr::{Reductions, SplitTensor, element_index, sin, sqrt};
/// use kernel_primitives::{Devices, Split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let split = Split::even(&Devices::emulated(3)?)?;
/// let n = 1000;
/// let x = SplitTensor::<f64>::uninit(&split, n)?;
/// let y = SplitTensor::uninit(&split, n)?;
/// x.assign(element_index::<f64>() / n as f64)?;
/// y.assign(sin(&x * 2.0) + sqrt(1.0 - &x * &x))?;
///
/// assert_eq!((x.range(1), x.shard(1).len()), (333..666, 333));
/// assert_eq!(y.to_vec()?[0], 1.0);
/// // The integral from 0 to 1 is (1 - cos 2) / 2 + π / 4.
/// let integral = (1.0 - f64::cos(2.0)) / 2.0 + std::f64::consts::FRAC_PI_4;
/// assert!((y.mean().item()? - integral).abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
///
/// All split tensors of an expression must be split in the same way: the same rows must be on the same devices. [`resplit`](Self::resplit)
/// copies a tensor to another split. A clone has the same elements.
///
/// [Slices](Self::slice), [other shapes](Self::reshape), [permutations](Self::permute), and [repeated](Self::broadcast_to) rows are views,
/// like those of a [`Tensor`]. Their elements stay on their devices. If a view is not [contiguous](Self::is_contiguous), the elements that
/// stencils, gathers, and copies between devices read are first copied on its device.
///
/// An expression of several devices cannot read a [`Tensor`] of one device, and the expression of a [`Tensor`] cannot read a split tensor.
/// [`to_tensor`](Self::to_tensor) collects the elements, [`from_tensor`](Self::from_tensor) distributes them, and [`shard`](Self::shard)
/// returns the part of one device.
///
/// [Stencils](crate::expr::stencil) and [convolutions](crate::expr::convolve) of split tensors have the same results as on one device, bit
/// for bit. Each device gets the rows of other devices that have neighbours of its places. Make tensors for stencils with
/// [`uninit_with_halo`](Self::uninit_with_halo): then only these rows are copied. Tensors that other functions make have no room for them,
/// and neither has a copy by [`resplit`](Self::resplit).
///
/// [Steps](Expr::steps) apply a stencil many times. The call checks and prepares all of them, and the host does not wait between them.
///
/// ```
/// use kernel_primitives::expr::{Boundary, Functions, Reductions, SplitTensor, axis_index, eq, scalar, stencil};
/// use kernel_primitives::{Devices, Split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let split = Split::even(&Devices::emulated(3)?)?;
/// let plate = || SplitTensor::<f64>::uninit_with_halo(&split, [60, 40], 1);
/// let (start, later) = (plate()?, plate()?);
/// // One hot row, whose heat spreads to all; none is lost.
/// start.assign(eq(axis_index::<u64>(0), scalar(30u64)).cast::<f64>())?;
/// let heat = stencil(&start, Boundary::Clamp, |n| {
///     n.at([0, 0]) + 0.25 * (n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]) - 4.0 * n.at([0, 0]))
/// });
/// later.assign(heat.steps(100))?;
/// assert!((later.sum().item()? - 40.0).abs() < 1e-9 && later.max().item()? < 0.1);
/// # Ok(())
/// # }
/// ```
///
/// [Gathers](crate::expr::gather) read split tensors at any places, on any device. The host waits for the items that go between devices,
/// unless they are the whole of a short vector.
pub struct SplitTensor<T> {
    pub(in crate::expr) view: Arc<SplitView>,
    _elements: PhantomData<T>,
}

/// Makes the rows of a device: its number and its stream, the shape of its rows, and their range.
type Part<'a, T> = dyn FnMut(usize, &Stream, Shape, Range<usize>) -> Result<Tensor<T>> + 'a;

impl<T> Clone for SplitTensor<T> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone(), _elements: PhantomData }
    }
}

impl<T: Scalar> std::fmt::Debug for SplitTensor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SplitTensor<{}>({}: {})", T::DTYPE, self.shape(), self.view.describe())
    }
}

impl<T: Scalar> Operand for &SplitTensor<T> {
    type Elem = T;
    fn expr(self) -> Expr<T> {
        Expr::new(Kind::Split(self.view.clone()), arguments([]))
    }
}

impl<T: Scalar> Operand for SplitTensor<T> {
    type Elem = T;
    fn expr(self) -> Expr<T> {
        Expr::new(Kind::Split(self.view), arguments([]))
    }
}

impl<T: Scalar> Functions for SplitTensor<T> {
    type Item = T;
    fn to_expr(&self) -> Expr<T> {
        self.expr()
    }
}

impl<T: Scalar> SplitTensor<T> {
    /// Copies `data` to a new tensor. `data` has as many elements as `shape`, outermost axis first.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::from_slice`], and [`Error::Expression`](primitives_host::Error::Expression) for a shape without
    /// axes, which has nothing to split.
    #[track_caller]
    pub fn from_slice(split: &Split, shape: impl IntoShape, data: &[T]) -> Result<Self> {
        let shape = splittable(&shape, Some(data.len()))?;
        let row = row_elements(&shape);
        Self::made(split, shape, &mut |_, stream, shape, rows| {
            Tensor::from_slice(stream, shape, &data[rows.start * row..rows.end * row])
        })
    }

    /// Makes a tensor whose elements are zero, or `false`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::zeros`] and of [`from_slice`](Self::from_slice).
    #[track_caller]
    pub fn zeros(split: &Split, shape: impl IntoShape) -> Result<Self> {
        Self::made(split, splittable(&shape, None)?, &mut |_, stream, shape, _| Tensor::zeros(stream, shape))
    }

    /// Makes a tensor of unspecified elements, which an assignment can write. The emulator reports a read of an element that is not written
    /// yet.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit(split: &Split, shape: impl IntoShape) -> Result<Self> {
        Self::made(split, splittable(&shape, None)?, &mut |_, stream, shape, _| Tensor::uninit(stream, shape))
    }

    /// Works as [`uninit`](Self::uninit), and also makes room for `rows` rows on both sides of the rows of each device. Use it for a tensor
    /// that [stencils](crate::expr::stencil) read again and again.
    ///
    /// Then a stencil that reads at most this many rows before and after each place copies only these rows between devices. If a tensor has
    /// no room, or less, its rows are copied on each device, too: each call takes memory for them and for the rows around them. An
    /// [interior](crate::expr::Boundary::Interior) stencil needs room for one row less than there are from its first neighbour to its last,
    /// where the place itself counts as a neighbour. If an expression reads one tensor with stencils of two boundaries, the first boundary
    /// uses the room. If two threads read one tensor at a time, the first thread uses it.
    ///
    /// The room is not a part of the tensor. On each device, it takes this many rows twice, and as many again for the rows that other
    /// devices read.
    ///
    /// ```
    /// use kernel_primitives::expr::{Boundary, SplitTensor, element_index, stencil};
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let split = Split::even(&Devices::emulated(3)?)?;
    /// let [mut now, mut next] = [(); 2].map(|()| SplitTensor::<f32>::uninit_with_halo(&split, [300, 200], 1));
    /// let (mut now, mut next) = (now?, next?);
    /// now.assign(element_index::<f32>() / 6e4)?;
    /// for _ in 0..10 {
    ///     let around = stencil(&now, Boundary::Clamp, |n| n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]));
    ///     next.assign(&now + (around - &now * 4.0) * 0.2)?; // each device gets a row of each neighbour
    ///     std::mem::swap(&mut now, &mut next);
    /// }
    /// assert_eq!(now.halo(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit_with_halo(split: &Split, shape: impl IntoShape, rows: usize) -> Result<Self> {
        let shape = splittable(&shape, None)?;
        let bounds = split.bounds(shape[0]);
        let (shards, halo) = Halo::new(split.streams(), (shape, &bounds), T::DTYPE, rows)?;
        Ok(Self::of_halo(split, bounds, shape, shards, Some(Arc::new(halo))))
    }

    /// Returns the number of rows for which there is room around the rows of each device; see [`uninit_with_halo`](Self::uninit_with_halo).
    pub fn halo(&self) -> usize {
        self.view.room()
    }

    /// Makes a tensor from the rows of each device, which are contiguous and in memory of their own.
    pub(super) fn made(split: &Split, shape: Shape, part: &mut Part<'_, T>) -> Result<Self> {
        Self::made_by(split, split.bounds(shape[0]), shape, part)
    }

    /// Works as [`made`](Self::made), with the given first row of each device, and the number of rows.
    pub(super) fn made_by(split: &Split, bounds: Vec<usize>, shape: Shape, part: &mut Part<'_, T>) -> Result<Self> {
        let mut shards = Vec::with_capacity(split.streams().len());
        for (device, stream) in split.streams().iter().enumerate() {
            let rows = bounds[device]..bounds[device + 1];
            shards.push(part(device, stream, with_rows(shape, rows.len()), rows)?.view);
        }
        Ok(Self::of_shards(split, bounds, shape, shards))
    }

    pub(super) fn of_shards(split: &Split, bounds: Vec<usize>, shape: Shape, shards: Vec<Arc<View>>) -> Self {
        Self::of_halo(split, bounds, shape, shards, None)
    }

    fn of_halo(
        split: &Split,
        bounds: Vec<usize>,
        shape: Shape,
        shards: Vec<Arc<View>>,
        halo: Option<Arc<Halo>>,
    ) -> Self {
        let view = SplitView { split: split.clone(), shape, bounds, shards, dtype: T::DTYPE, halo, by_stencil: false };
        Self::of_view(Arc::new(view))
    }

    /// Makes the tensor of a view of elements of its type.
    pub(super) fn of_view(view: Arc<SplitView>) -> Self {
        Self { view, _elements: PhantomData }
    }

    /// Makes a vector of the elements of a split buffer. It is split like the buffer.
    ///
    /// ```
    /// use kernel_primitives::expr::{Reductions, SplitTensor};
    /// use kernel_primitives::{Devices, Split, SplitBuffer};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let split = Split::even(&Devices::emulated(2)?)?;
    /// let x = SplitTensor::from_buffer(SplitBuffer::from_slice(&split, &[3, 1, 4, 1, 5])?);
    /// assert_eq!((x.sum().item()?, x.arg_max().item()?), (14, 4));
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_buffer(buffer: SplitBuffer<T>) -> Self {
        let (split, len) = (buffer.split().clone(), buffer.len());
        let bounds = buffer.bounds().to_vec();
        let vector = |len: usize| Shape::new(&[len]).unwrap_or(Shape::SCALAR);
        let mut shards = Vec::with_capacity(split.streams().len());
        for ((part, len), stream) in buffer.into_parts().into_iter().zip(split.streams()) {
            let storage = Arc::new(Storage::of(part));
            shards.push(Tensor::<T>::at(storage, stream.clone(), Layout::contiguous(vector(len))).view);
        }
        Self::of_shards(&split, bounds, vector(len), shards)
    }

    /// Makes a tensor with a row of `elements` elements on each device.
    pub(crate) fn of_rows(split: &Split, elements: usize, rows: Vec<Buffer<T>>) -> Result<Self> {
        let mut rows = rows.into_iter();
        let count = split.streams().len();
        let shape = Shape::new(&[count, elements]).unwrap_or(Shape::SCALAR);
        Self::made_by(split, (0..=count).collect(), shape, &mut |_, stream, shape, _| {
            Tensor::from_buffer(stream, shape, rows.next().expect("a row for each device"))
        })
    }

    /// Makes a tensor of unspecified elements of any type, as [`uninit`](Self::uninit) does. It has the same shape as this tensor, and is
    /// on the same devices. Use it for results of expressions of tensors that have a split of their own, such as the items that
    /// [`split::select_if`](crate::split::select_if) keeps. There is no [room](Self::halo) around its rows.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`zeros`](Self::zeros).
    pub fn uninit_like<U: Scalar>(&self) -> Result<SplitTensor<U>> {
        let SplitView { split, bounds, shape, .. } = &*self.view;
        SplitTensor::made_by(split, bounds.clone(), *shape, &mut |_, stream, shape, _| Tensor::uninit(stream, shape))
    }

    /// Returns the extents of the whole tensor.
    pub fn shape(&self) -> Shape {
        self.view.shape
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        T::DTYPE
    }

    /// Returns the number of elements of the whole tensor.
    pub fn len(&self) -> usize {
        self.shape().elements().unwrap_or(usize::MAX)
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the split of the tensor.
    pub fn split(&self) -> &Split {
        &self.view.split
    }

    /// Returns the rows of the whole tensor that device `device` of the split has.
    ///
    /// # Panics
    ///
    /// Panics if the split has no such device.
    pub fn range(&self, device: usize) -> Range<usize> {
        self.view.bounds[device]..self.view.bounds[device + 1]
    }

    /// Returns the rows of device `device` of the split, as a tensor of the same elements.
    ///
    /// # Panics
    ///
    /// Panics if the split has no such device.
    pub fn shard(&self, device: usize) -> Tensor<T> {
        Tensor::of_view(self.view.shards[device].clone())
    }

    /// Returns the rows of each device, as tensors of the same elements.
    pub fn shards(&self) -> impl Iterator<Item = Tensor<T>> {
        self.view.shards.iter().map(|view| Tensor::of_view(view.clone()))
    }

    /// Copies the elements to the host, outermost axis first, after all earlier writes.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::to_vec`].
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut host = zeroed_vec(self.len())?;
        let (mut rest, own) = (&mut host[..], self.contiguous()?);
        for shard in own.shards() {
            let (part, after) = rest.split_at_mut(shard.len());
            shard.as_slice().expect("rows that lie in a row").copy_to(part)?;
            rest = after;
        }
        Ok(host)
    }

    /// Returns whether the rows of each device are contiguous, as in all tensors except some [views](Self::slice).
    pub fn is_contiguous(&self) -> bool {
        self.view.is_contiguous()
    }

    /// Returns this tensor if the rows of each device are contiguous, and otherwise a copy that is split in the same way.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`](primitives_host::Error::Allocation) if a device does not have enough memory, and the errors of the
    /// kernels.
    #[track_caller]
    pub fn contiguous(&self) -> Result<Self> {
        Ok(Self { view: contiguous(Location::caller(), &self.view)?, _elements: PhantomData })
    }

    /// Computes `value` into this tensor's elements, with one kernel on each device that has some elements. For stencils, the rows of other
    /// devices are copied first, and a kernel fills the rows outside of the tensor on the devices that read them. For
    /// [gathers](crate::expr::gather) from split tensors, indices are computed and items are copied first. [Steps](Expr::steps) do this
    /// once for each step.
    ///
    /// All checks come before the first launch. If a launch fails, as a fault does on the emulator, the launches on the devices before it
    /// have run.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::assign`]. Returns [`Error::Expression`](primitives_host::Error::Expression) of the kind `BadSplit`
    /// if tensors are split in another way than this one, or are on one device. For stencils and gathers, returns
    /// [`Error::Allocation`](primitives_host::Error::Allocation) if a device does not have enough memory for the elements that it gets, and
    /// [`Error::Capture`](primitives_host::Error::Capture) if a stream captures, because graphs cannot have copies between devices.
    #[track_caller]
    pub fn assign(&self, value: impl Operand<Elem = T>) -> Result<()> {
        assign(Location::caller(), &self.view, &value.expr().node)
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

updates!(SplitTensor);

/// Returns the shape, or an error if it has no axis to split or does not have `elements` elements, if that is given.
#[track_caller]
pub(super) fn splittable(shape: &impl IntoShape, elements: Option<usize>) -> Result<Shape> {
    let shape = checked_shape(shape, elements)?;
    if shape.rank() == 0 {
        let reason = "a shape without axes has nothing to split".into();
        return Err(mistake(Location::caller(), ExpressionErrorKind::BadShape, reason, &[]));
    }
    Ok(shape)
}
