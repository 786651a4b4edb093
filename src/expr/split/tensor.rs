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

/// A tensor whose rows lie on several devices: split along its outermost axis, as a [`Split`] says.
///
/// It stands in expressions as a [`Tensor`] does. An assignment runs on all devices at once, each on its stream: one kernel a device, and for
/// stencils the copies and fills of rows around its own.
/// [`element_index`](crate::expr::element_index), [`axis_index`](crate::expr::axis_index) and random numbers count over the whole, so
/// that the result is that of one device. Reductions are computed on each device and then across.
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
/// All split tensors of an expression are split in the same way: the same rows on the same devices. [`resplit`](Self::resplit) copies
/// one to another split. A clone has the same elements.
///
/// [Slices](Self::slice), [other shapes](Self::reshape), [permutations](Self::permute), and [repeated](Self::broadcast_to) rows are views,
/// as those of a [`Tensor`], whose elements stay on their devices. What stencils, gathers, and copies between devices read of a view that
/// is not [contiguous](Self::is_contiguous) is first copied on its device.
///
/// A [`Tensor`] of one device is not read by an expression of several devices, and a split tensor not by that of a [`Tensor`]:
/// [`to_tensor`](Self::to_tensor) collects, [`from_tensor`](Self::from_tensor) distributes, and [`shard`](Self::shard) is the part of one
/// device.
///
/// [Stencils](crate::expr::stencil) and [convolutions](crate::expr::convolve) read split tensors with the results of one device, bit for
/// bit. Each device gets the rows of others that the neighbours of its places are in. Make tensors that are read so by
/// [`uninit_with_halo`](Self::uninit_with_halo): then nothing else is copied. What other functions make has no such room, nor has a copy by
/// [`resplit`](Self::resplit).
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
/// [Gathers](crate::expr::gather) read split tensors at any places, of whatever device. For what goes between devices the host waits, if that
/// is not all of a short vector.
pub struct SplitTensor<T> {
    pub(in crate::expr) view: Arc<SplitView>,
    _elements: PhantomData<T>,
}

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
    /// A copy of `data`, which has as many elements as `shape`, outermost axis first.
    ///
    /// # Errors
    ///
    /// As [`Tensor::from_slice`]; and [`Error::Expression`](primitives_host::Error::Expression) for a shape without axes, which has nothing
    /// to split.
    #[track_caller]
    pub fn from_slice(split: &Split, shape: impl IntoShape, data: &[T]) -> Result<Self> {
        let shape = splittable(&shape, Some(data.len()))?;
        let row = row_elements(&shape);
        Self::made(split, shape, |stream, shape, rows| {
            Tensor::from_slice(stream, shape, &data[rows.start * row..rows.end * row])
        })
    }

    /// All elements zero, or `false`.
    ///
    /// # Errors
    ///
    /// As [`Tensor::zeros`]; and as [`from_slice`](Self::from_slice).
    #[track_caller]
    pub fn zeros(split: &Split, shape: impl IntoShape) -> Result<Self> {
        Self::made(split, splittable(&shape, None)?, |stream, shape, _| Tensor::zeros(stream, shape))
    }

    /// Unspecified elements, to be assigned. The emulator reports those that are read before they are written.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit(split: &Split, shape: impl IntoShape) -> Result<Self> {
        Self::made(split, splittable(&shape, None)?, |stream, shape, _| Tensor::uninit(stream, shape))
    }

    /// As [`uninit`](Self::uninit), with room for so many rows around those of each device: for a tensor that
    /// [stencils](crate::expr::stencil) read again and again.
    ///
    /// A stencil that reads up to so many rows before and after each place then copies only these rows between devices. The rows of a tensor
    /// without such room, or with less, are copied on each device, too: each call takes memory for them and for what is around them. An
    /// [interior](crate::expr::Boundary::Interior) stencil takes as much room as the rows from its first neighbour to its last, less one. If
    /// an expression reads one tensor by stencils with two boundaries, the room serves the first.
    ///
    /// The room is no part of the tensor. It takes as many rows twice on each device, and as many again for what other devices fetch.
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
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit_with_halo(split: &Split, shape: impl IntoShape, rows: usize) -> Result<Self> {
        let shape = splittable(&shape, None)?;
        let bounds = split.bounds(shape[0]);
        let (shards, halo) = Halo::new(split.streams(), (shape, &bounds), T::DTYPE, rows)?;
        Ok(Self::of_halo(split, bounds, shape, shards, Some(Arc::new(halo))))
    }

    /// For how many rows around those of each device there is room: see [`uninit_with_halo`](Self::uninit_with_halo).
    pub fn halo(&self) -> usize {
        self.view.room()
    }

    /// Made of the rows of each device, which are in a row and in memory of their own.
    pub(super) fn made(
        split: &Split,
        shape: Shape,
        mut part: impl FnMut(&Stream, Shape, Range<usize>) -> Result<Tensor<T>>,
    ) -> Result<Self> {
        Self::made_by(split, split.bounds(shape[0]), shape, |_, stream, shape, rows| part(stream, shape, rows))
    }

    /// As [`made`](Self::made), with the first row of each device given, and the number of rows. The function gets the device's number, too.
    pub(super) fn made_by(
        split: &Split,
        bounds: Vec<usize>,
        shape: Shape,
        mut part: impl FnMut(usize, &Stream, Shape, Range<usize>) -> Result<Tensor<T>>,
    ) -> Result<Self> {
        let ranges = bounds.windows(2).zip(split.streams()).enumerate();
        let shards = ranges.map(|(device, (bounds, stream))| {
            let rows = bounds[0]..bounds[1];
            Ok(part(device, stream, with_rows(shape, rows.len()), rows)?.view)
        });
        let shards = shards.collect::<Result<_>>()?;
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
        Self { view: Arc::new(view), _elements: PhantomData }
    }

    /// The elements of a split buffer: a vector that is split as it is.
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
        let bounds = (0..split.streams().len()).map(|device| buffer.range(device).start).chain([len]).collect();
        let vector = |len: usize| Shape::new(&[len]).unwrap_or(Shape::SCALAR);
        let parts = buffer.into_parts().into_iter().zip(split.streams());
        let shards = parts.map(|((part, len), stream)| {
            let storage = Arc::new(Storage::of(part));
            Tensor::<T>::at(storage, stream.clone(), Layout::contiguous(vector(len))).view
        });
        let shards = shards.collect();
        Self::of_shards(&split, bounds, vector(len), shards)
    }

    /// A row of so many elements on each device.
    pub(crate) fn of_rows(split: &Split, elements: usize, rows: Vec<Buffer<T>>) -> Result<Self> {
        let mut rows = rows.into_iter();
        let count = split.streams().len();
        let shape = Shape::new(&[count, elements]).unwrap_or(Shape::SCALAR);
        Self::made_by(split, (0..=count).collect(), shape, |_, stream, shape, _| {
            Tensor::from_buffer(stream, shape, rows.next().expect("a row for each device"))
        })
    }

    /// Unspecified elements, as [`uninit`](Self::uninit), of any type, of the same shape and on the same devices as these: for results of
    /// expressions of tensors that are split in a way of their own, as what [`split::select_if`](crate::split::select_if) keeps. There is no
    /// [room](Self::halo) around its rows.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn uninit_like<U: Scalar>(&self) -> Result<SplitTensor<U>> {
        let SplitView { split, bounds, shape, .. } = &*self.view;
        SplitTensor::made_by(split, bounds.clone(), *shape, |_, stream, shape, _| Tensor::uninit(stream, shape))
    }

    /// The extents of the whole.
    pub fn shape(&self) -> Shape {
        self.view.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        T::DTYPE
    }

    /// The number of elements of the whole.
    pub fn len(&self) -> usize {
        self.shape().elements().unwrap_or(usize::MAX)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How it is split.
    pub fn split(&self) -> &Split {
        &self.view.split
    }

    /// The rows of device `device` of the split: which they are of all.
    ///
    /// # Panics
    ///
    /// If the split has no such device.
    pub fn range(&self, device: usize) -> Range<usize> {
        self.view.bounds[device]..self.view.bounds[device + 1]
    }

    /// The rows of device `device` of the split, as a tensor of the same elements.
    ///
    /// # Panics
    ///
    /// If the split has no such device.
    pub fn shard(&self, device: usize) -> Tensor<T> {
        Tensor::of_view(self.view.shards[device].clone())
    }

    /// The rows of each device, as tensors of the same elements.
    pub fn shards(&self) -> impl Iterator<Item = Tensor<T>> {
        self.view.shards.iter().map(|view| Tensor::of_view(view.clone()))
    }

    /// Copies the elements to the host, outermost axis first, after everything that writes them.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to_vec`].
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

    /// Whether the rows of each device are contiguous, as in all tensors but some [views](Self::slice).
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

    /// Computes `value` into this tensor's elements: one kernel on each device that has some. For stencils, rows of other devices are copied
    /// before, and a kernel fills the rows outside of the tensor, at the devices that read these. For [gathers](crate::expr::gather) from split
    /// tensors, indices are computed and items are copied before. [Steps](Expr::steps) do so once a step.
    ///
    /// All is checked before the first kernel is launched. If a launch fails, as a fault does on the emulator, those of the devices before
    /// have run.
    ///
    /// # Errors
    ///
    /// As [`Tensor::assign`]; and [`Error::Expression`](primitives_host::Error::Expression) of the kind `BadSplit` if tensors are split in
    /// other ways than this one, or are of one device. For stencils and gathers,
    /// [`Error::Allocation`](primitives_host::Error::Allocation) if a device has no memory for what it gets, and
    /// [`Error::Capture`](primitives_host::Error::Capture) if a stream captures, since graphs hold no copies between devices.
    #[track_caller]
    pub fn assign(&self, value: impl Operand<Elem = T>) -> Result<()> {
        assign(Location::caller(), &self.view, &value.expr().node)
    }

    /// Sets all elements to `value`.
    ///
    /// # Errors
    ///
    /// As [`assign`](Self::assign).
    #[track_caller]
    pub fn fill(&self, value: T) -> Result<()> {
        self.assign(scalar(value))
    }
}

updates!(SplitTensor);

/// The shape, with so many elements if that is given, and with an axis to split.
#[track_caller]
pub(super) fn splittable(shape: &impl IntoShape, elements: Option<usize>) -> Result<Shape> {
    let shape = checked_shape(shape, elements)?;
    if shape.rank() == 0 {
        let reason = "a shape without axes has nothing to split".into();
        return Err(mistake(Location::caller(), ExpressionErrorKind::BadShape, reason, &[]));
    }
    Ok(shape)
}
