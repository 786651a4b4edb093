//! Views whose places are known.

use std::any::Any;

use kernel_primitives::expr::*;
use kernel_primitives::{Result, Stream};
use proptest::prelude::*;

use super::{hash, indices, with};
use crate::{Sample, Wide};

/// The layout of a view in its memory.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The axes that have extent 1, as bits, and the number of outermost axes that are missing.
    narrow: u16,
    missing: u8,
    /// A number that decides the order of axes, steps and signs.
    turns: u64,
    /// Whether the elements are contiguous.
    plain: bool,
}

impl Layout {
    /// Makes a layout with all axes.
    pub(super) fn turned(turns: u64) -> Self {
        Self { narrow: 0, missing: 0, turns, plain: false }
    }
}

pub(super) fn layout() -> impl Strategy<Value = Layout> {
    let missing = prop_oneof![5 => Just(0u8), 1 => 1..10u8];
    let narrow = prop_oneof![2 => Just(0u16), 1 => any::<u16>()];
    (narrow, missing, any::<u64>(), any::<bool>()).prop_map(|(narrow, missing, turns, plain)| Layout {
        narrow,
        missing,
        turns,
        plain,
    })
}

/// The elements of a memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    /// All values, also those that a rule may treat in a special way.
    Any,
    /// Whole numbers of small magnitude, whose sums are exact.
    Small,
    /// 1, −1, 2 and ½. Products of some dozen are exact.
    Powers,
}

impl Data {
    pub(super) fn value(self, dtype: DType, seed: u64, at: u64) -> Wide {
        let bits = hash(seed, at);
        with!(dtype, T => {
            let value = match self {
                Self::Any if bits >> 60 < 6 => {
                    let samples = <T as Sample>::samples();
                    samples[bits as usize % samples.len()]
                }
                Self::Any if dtype.is_float() => T::of(Wide::Float(bits as i32 as f64 / (1u64 << (bits >> 40 & 31)) as f64)),
                Self::Any => T::of(Wide::Int((bits as i64 >> (bits >> 40 & 63 & 56)).into())),
                Self::Small => T::of(Wide::Int(i128::from(bits % 17) - if dtype.is_signed() { 8 } else { 0 })),
                Self::Powers if dtype.is_float() => T::of(Wide::Float([1.0, -1.0, 2.0, 0.5][bits as usize % 4])),
                Self::Powers => T::of(Wide::Int(i128::from(bits % 5) - 2)),
            };
            value.wide()
        })
    }
}

/// A memory, a view of it, and the contents.
pub(super) struct Lie {
    pub(super) dtype: DType,
    /// A `Tensor` of the whole memory.
    whole: Box<dyn Any>,
    /// A `Tensor` of the view.
    view: Box<dyn Any>,
    /// The place in memory of each element of the view, broadcast to the shape.
    pub(super) places: Vec<usize>,
    pub(super) memory: Vec<Wide>,
}

impl Lie {
    /// Makes a view that broadcasts to `shape`. For a target, the view has exactly that shape.
    pub(super) fn new(
        stream: &Stream,
        dtype: DType,
        shape: &[usize],
        layout: &Layout,
        target: bool,
        (data, seed): (Data, u64),
    ) -> Result<Self> {
        let mut own = shape.to_vec();
        if !target {
            for (axis, extent) in own.iter_mut().enumerate() {
                if layout.narrow >> axis & 1 != 0 {
                    *extent = 1;
                }
            }
            own.drain(..usize::from(layout.missing).min(shape.len()));
        }
        let rank = own.len();
        let turn = |axis: usize| if layout.plain { 0 } else { hash(layout.turns, axis as u64) };
        // In memory, the axes are in this order, and each is longer than the view's axis.
        let mut order: Vec<usize> = (0..rank).collect();
        order.sort_by_key(|&axis| turn(axis) >> 48 & 3);
        // There are gaps along all axes if there are few, or along one axis, so that the memory stays small.
        let gaps = |axis: usize, bits: u32, sizes: [usize; 5]| {
            let has = rank <= 3 || layout.turns as usize % rank == axis;
            sizes[if has { (turn(axis) >> bits) as usize % 5 } else { 0 }]
        };
        let step = |axis: usize| gaps(axis, 0, [1, 1, 1, 2, 3]);
        let before = |axis: usize| gaps(axis, 8, [0, 0, 0, 1, 4]);
        let after = |axis: usize| gaps(axis, 16, [0, 0, 0, 1, 3]);
        let back = |axis: usize| turn(axis) >> 24 & 3 == 1;
        let long = |axis: usize| before(axis) + own[axis] * step(axis) + after(axis);
        let extents: Vec<usize> = order.iter().map(|&axis| long(axis)).collect();
        let mut strides = vec![0; rank];
        let mut len = 1;
        for (&axis, &extent) in order.iter().zip(&extents).rev() {
            strides[axis] = len;
            len *= extent;
        }
        let memory: Vec<Wide> = (0..len).map(|at| data.value(dtype, seed, at as u64)).collect();
        let at = |axis: usize, index: usize| {
            let index = if back(axis) { own[axis] - 1 - index } else { index };
            (before(axis) + index * step(axis)) * strides[axis]
        };
        let ahead = shape.len() - rank;
        let places = indices(shape)
            .map(|index| (0..rank).map(|axis| at(axis, if own[axis] == 1 { 0 } else { index[ahead + axis] })).sum())
            .collect();
        let (whole, view) = with!(dtype, T => {
            let all: Vec<T> = memory.iter().map(|&value| T::of(value)).collect();
            let whole = Tensor::from_slice(stream, &extents, &all)?;
            let mut slices = Vec::new();
            for &axis in &order {
                let (first, end) = (before(axis) as isize, (before(axis) + own[axis] * step(axis)) as isize);
                slices.push(AxisSlice::from(first..end).by(step(axis) as isize));
            }
            let mut view = whole.slice(&slices[..])?;
            let mut inverse = vec![0; rank];
            for (at, &axis) in order.iter().enumerate() {
                inverse[axis] = at;
            }
            view = view.permute(&inverse)?;
            let flips: Vec<AxisSlice> = (0..rank).map(|axis| AxisSlice::from(..).by(if back(axis) { -1 } else { 1 })).collect();
            view = view.slice(&flips[..])?;
            // An axis of extent 1 may have any stride.
            if let Some(axis) = (0..rank).find(|&axis| own[axis] == 1 && turn(axis) >> 32 & 1 != 0) {
                let mut slices = vec![AxisSlice::from(..); axis];
                slices.push(AxisSlice::from(0));
                view = view.slice(&slices[..])?.insert_axis(axis)?;
            }
            if !target && turn(0) >> 40 & 3 == 1 {
                view = view.broadcast_to(shape)?;
            }
            (Box::new(whole) as Box<dyn Any>, Box::new(view) as Box<dyn Any>)
        });
        Ok(Self { dtype, whole, view, places, memory })
    }

    pub(super) fn view<T: Sample>(&self) -> &Tensor<T> {
        self.view.downcast_ref().expect("a view of the type")
    }

    /// Returns the elements over the shape that the view broadcasts to.
    pub(super) fn values(&self) -> Vec<Wide> {
        self.places.iter().map(|&place| self.memory[place]).collect()
    }

    /// Sets the elements in the interpreter's copy.
    pub(super) fn store(&mut self, values: &[Wide]) {
        for (&place, &value) in self.places.iter().zip(values) {
            self.memory[place] = value;
        }
    }

    /// Fills the whole memory again.
    pub(super) fn renew(&mut self, (data, seed): (Data, u64)) -> Result<()> {
        for (at, value) in self.memory.iter_mut().enumerate() {
            *value = data.value(self.dtype, seed, at as u64);
        }
        with!(self.dtype, T => {
            let whole = self.whole.downcast_ref::<Tensor<T>>().expect("a tensor of the type");
            let all: Vec<T> = self.memory.iter().map(|&value| T::of(value)).collect();
            whole.assign(Tensor::from_slice(whole.stream(), whole.shape(), &all)?)
        })
    }

    /// Compares the whole memory with the interpreter's copy.
    pub(super) fn compare(&self) -> Result<(), String> {
        with!(self.dtype, T => {
            let whole = self.whole.downcast_ref::<Tensor<T>>().expect("a tensor of the type");
            let got = whole.to_vec().map_err(|error| error.to_string())?;
            for (at, (got, &expected)) in got.into_iter().zip(&self.memory).enumerate() {
                let expected = T::of(expected);
                if got.distance(expected) != 0 {
                    let of_view = self.places.iter().position(|&place| place == at);
                    return Err(format!("{got:?}, not {expected:?}, at {at}, element {of_view:?} of the view"));
                }
            }
            Ok(())
        })
    }
}
