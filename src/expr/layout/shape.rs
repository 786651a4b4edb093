//! Shapes, strides and the rules of broadcasting.

use std::fmt;
use std::ops::{Deref, Range};

/// The most axes that a tensor can have.
pub const MAX_RANK: usize = 9;

/// The extents of a tensor, outermost first. There are at most [`MAX_RANK`] extents; a single value has none.
///
/// Make a shape from an array, a slice or a single number: `[3, 4].into()`, `5.into()`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: u8,
    extents: [usize; MAX_RANK],
}

impl Shape {
    /// The shape of a single value.
    pub const SCALAR: Self = Self { rank: 0, extents: [1; MAX_RANK] };

    /// Returns the shape with these extents, or `None` for more than [`MAX_RANK`] extents.
    pub fn new(extents: &[usize]) -> Option<Self> {
        let mut shape = Self::SCALAR;
        shape.rank = u8::try_from(extents.len()).ok()?;
        shape.extents.get_mut(..extents.len())?.copy_from_slice(extents);
        Some(shape)
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.rank.into()
    }

    /// Returns the number of elements, or `None` if it overflows `usize`.
    pub fn elements(&self) -> Option<usize> {
        if self.contains(&0) {
            return Some(0);
        }
        self.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent))
    }

    /// Returns the strides of contiguous elements, innermost axis last.
    pub(crate) fn contiguous_strides(&self) -> Strides {
        let mut strides = [0; MAX_RANK];
        let mut stride = 1isize;
        for axis in (0..self.rank()).rev() {
            strides[axis] = stride;
            stride = stride.wrapping_mul(self[axis].max(1) as isize);
        }
        strides
    }

    pub(crate) fn map(self, f: impl FnOnce(&mut Vec<usize>)) -> Option<Self> {
        let mut extents = self.to_vec();
        f(&mut extents);
        Self::new(&extents)
    }

    /// Returns the shape to which both broadcast, as in NumPy: axes are matched from the innermost, and an extent of 1 is repeated.
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        let (long, short) = if self.rank >= other.rank { (self, other) } else { (other, self) };
        let mut shape = *long;
        let ahead = long.rank() - short.rank();
        for axis in ahead..long.rank() {
            let (a, b) = (long[axis], short[axis - ahead]);
            shape.extents[axis] = match (a, b) {
                _ if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return None,
            };
        }
        Some(shape)
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.extents[..self.rank()]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A type that converts to a shape. A slice of more than [`MAX_RANK`] extents is not a shape; a call that takes it returns an error.
pub trait IntoShape {
    #[doc(hidden)]
    fn extents(&self) -> &[usize];
}

impl IntoShape for Shape {
    fn extents(&self) -> &[usize] {
        self
    }
}
impl IntoShape for usize {
    fn extents(&self) -> &[usize] {
        std::slice::from_ref(self)
    }
}
impl<const N: usize> IntoShape for [usize; N] {
    fn extents(&self) -> &[usize] {
        self
    }
}
impl IntoShape for &[usize] {
    fn extents(&self) -> &[usize] {
        self
    }
}
impl IntoShape for Vec<usize> {
    fn extents(&self) -> &[usize] {
        self
    }
}
impl<T: IntoShape + ?Sized> IntoShape for &T {
    fn extents(&self) -> &[usize] {
        (**self).extents()
    }
}

/// The steps between elements along each axis, in elements. Steps beyond the rank are 0.
pub(crate) type Strides = [isize; MAX_RANK];

/// The layout of a view, in elements of its memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    pub(crate) strides: Strides,
    /// The offset of the element whose indices are all 0.
    pub(crate) offset: usize,
}

impl Layout {
    pub(crate) fn contiguous(shape: Shape) -> Self {
        Self { shape, strides: shape.contiguous_strides(), offset: 0 }
    }

    /// Makes a layout with a stride for each axis. Returns `None` if the numbers of strides and axes differ.
    pub(crate) fn strided(shape: Shape, strides: &[isize], offset: usize) -> Option<Self> {
        if strides.len() != shape.rank() {
            return None;
        }
        let mut all = [0; MAX_RANK];
        all[..strides.len()].copy_from_slice(strides);
        Some(Self { shape, strides: all, offset })
    }

    /// Returns whether the elements are contiguous, in order.
    pub(crate) fn is_contiguous(&self) -> bool {
        let dense = self.shape.contiguous_strides();
        self.shape.contains(&0)
            || self.shape.iter().enumerate().all(|(axis, &extent)| extent == 1 || self.strides[axis] == dense[axis])
    }

    /// Returns the range of the memory from the first to the last element of the view, or `None` if the numbers overflow.
    pub(crate) fn span(&self) -> Option<Range<usize>> {
        if self.shape.contains(&0) {
            return Some(self.offset..self.offset);
        }
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = stride as i128 * (extent as i128 - 1);
            if reach < 0 {
                low += reach;
            } else {
                high += reach;
            }
        }
        Some(usize::try_from(low).ok()?..usize::try_from(high + 1).ok()?)
    }

    /// Returns the number of elements of memory from the first to the last element, both included.
    pub(crate) fn reach(&self) -> u128 {
        if self.shape.contains(&0) {
            return 0;
        }
        let axes = self.shape.iter().zip(&self.strides);
        axes.map(|(&extent, stride)| stride.unsigned_abs() as u128 * (extent as u128 - 1)).sum::<u128>() + 1
    }

    /// Returns the layout of the same elements repeated over `shape`, or `None` if they do not broadcast to it.
    pub(crate) fn broadcast_to(&self, shape: &Shape) -> Option<Self> {
        let ahead = shape.rank().checked_sub(self.shape.rank())?;
        let mut strides = [0; MAX_RANK];
        for (axis, &extent) in self.shape.iter().enumerate() {
            if extent == shape[ahead + axis] {
                strides[ahead + axis] = self.strides[axis];
            } else if extent != 1 {
                return None;
            }
        }
        Some(Self { shape: *shape, strides, offset: self.offset })
    }

    /// Returns whether every index means the same element of the memory in both.
    pub(crate) fn same_places(&self, other: &Self) -> bool {
        let strides = self.strides.iter().zip(&other.strides);
        self.shape == other.shape
            && (self.shape.contains(&0)
                || self.offset == other.offset
                    && self.shape.iter().zip(strides).all(|(&extent, (a, b))| extent == 1 || a == b))
    }
}

/// A slice of one axis, as Python writes `start:end:step`. Negative bounds count from the end. A single index removes the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisSlice {
    start: Option<isize>,
    end: Option<isize>,
    step: isize,
    /// A single index.
    single: bool,
}

impl AxisSlice {
    /// Takes every `step`-th element, and goes backwards from the last element if `step` is negative. A step has no effect on a single
    /// index. But the call that slices always refuses a step of 0.
    pub fn by(self, step: isize) -> Self {
        Self { step, ..self }
    }

    /// Returns the first index, the number of indices, the step, and whether the axis stays, for an axis of extent `extent`. Returns `None`
    /// if the step is 0 or a single index is out of bounds.
    pub(crate) fn resolve(self, extent: usize) -> Option<(usize, usize, isize, bool)> {
        if self.step == 0 {
            return None;
        }
        // An extent may be larger than an `isize`.
        let len = extent as i128;
        let from_end = |at: isize| at as i128 + if at < 0 { len } else { 0 };
        if self.single {
            let at = from_end(self.start.unwrap_or(0));
            return (0..len).contains(&at).then_some((at as usize, 1, 1, false));
        }
        let (low, high) = if self.step > 0 { (0, len) } else { (-1, len - 1) };
        let bound = |bound: Option<isize>, default: i128| bound.map_or(default, |at| from_end(at).clamp(low, high));
        let (first, last) = if self.step > 0 { (low, high) } else { (high, low) };
        let (start, end) = (bound(self.start, first), bound(self.end, last));
        let distance = if self.step > 0 { end - start } else { start - end };
        let count = if distance > 0 { (distance as usize).div_ceil(self.step.unsigned_abs()) } else { 0 };
        Some((if count == 0 { 0 } else { start as usize }, count, self.step, true))
    }
}

impl From<std::ops::Range<isize>> for AxisSlice {
    fn from(range: std::ops::Range<isize>) -> Self {
        Self { start: Some(range.start), end: Some(range.end), step: 1, single: false }
    }
}
impl From<std::ops::RangeFrom<isize>> for AxisSlice {
    fn from(range: std::ops::RangeFrom<isize>) -> Self {
        Self { start: Some(range.start), end: None, step: 1, single: false }
    }
}
impl From<std::ops::RangeTo<isize>> for AxisSlice {
    fn from(range: std::ops::RangeTo<isize>) -> Self {
        Self { start: None, end: Some(range.end), step: 1, single: false }
    }
}
impl From<std::ops::RangeFull> for AxisSlice {
    fn from(_: std::ops::RangeFull) -> Self {
        Self { start: None, end: None, step: 1, single: false }
    }
}
impl From<isize> for AxisSlice {
    fn from(index: isize) -> Self {
        Self { start: Some(index), end: None, step: 1, single: true }
    }
}

/// Slices of the leading axes: a single slice, a tuple of up to [`MAX_RANK`] slices, or an array or a slice of [`AxisSlice`].
pub trait IntoSlices {
    #[doc(hidden)]
    fn slices(self) -> Vec<AxisSlice>;
}

impl<T: Into<AxisSlice>> IntoSlices for T {
    fn slices(self) -> Vec<AxisSlice> {
        vec![self.into()]
    }
}
impl<const N: usize> IntoSlices for [AxisSlice; N] {
    fn slices(self) -> Vec<AxisSlice> {
        self.to_vec()
    }
}
impl IntoSlices for &[AxisSlice] {
    fn slices(self) -> Vec<AxisSlice> {
        self.to_vec()
    }
}
macro_rules! tuples {
    ($($($t:ident $x:ident),+;)*) => {$(
        impl<$($t: Into<AxisSlice>),+> IntoSlices for ($($t,)+) {
            fn slices(self) -> Vec<AxisSlice> {
                let ($($x,)+) = self;
                vec![$($x.into()),+]
            }
        }
    )*};
}
tuples! {
    A a, B b;
    A a, B b, C c;
    A a, B b, C c, D d;
    A a, B b, C c, D d, E e;
    A a, B b, C c, D d, E e, F f;
    A a, B b, C c, D d, E e, F f, G g;
    A a, B b, C c, D d, E e, F f, G g, H h;
    A a, B b, C c, D d, E e, F f, G g, H h, I i;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "negative bounds count from the end")]
    fn slices_are_pythons() {
        let resolve = |slice: AxisSlice, extent| slice.resolve(extent);
        assert_eq!(resolve((1..-1).into(), 5), Some((1, 3, 1, true)));
        assert_eq!(resolve((..).into(), 5), Some((0, 5, 1, true)));
        assert_eq!(resolve(AxisSlice::from(..).by(-1), 5), Some((4, 5, -1, true)));
        assert_eq!(resolve(AxisSlice::from(1..).by(2), 5), Some((1, 2, 2, true)));
        assert_eq!(resolve(AxisSlice::from(3..0).by(-2), 5), Some((3, 2, -2, true)));
        assert_eq!(resolve((7..9).into(), 5), Some((0, 0, 1, true)));
        assert_eq!(resolve((-1).into(), 5), Some((4, 1, 1, false)));
        assert_eq!(resolve(5.into(), 5), None);
        assert_eq!(resolve(AxisSlice::from(..).by(0), 5), None);
        assert_eq!(resolve(AxisSlice::from(1).by(0), 5), None);
        assert_eq!(resolve(AxisSlice::from(1).by(-3), 5), Some((1, 1, 1, false)));
        // There are more indices than an `isize` counts.
        let most = usize::MAX;
        assert_eq!(resolve((..).into(), most), Some((0, most, 1, true)));
        assert_eq!(resolve((-3..).into(), most), Some((most - 3, 3, 1, true)));
        assert_eq!(resolve(AxisSlice::from(..).by(isize::MIN), most), Some((most - 1, 2, isize::MIN, true)));
        assert_eq!(resolve((-1).into(), most), Some((most - 1, 1, 1, false)));
        assert_eq!(resolve(isize::MIN.into(), most), Some((most / 2, 1, 1, false)));
        assert_eq!(resolve((isize::MIN..isize::MAX).into(), 0), Some((0, 0, 1, true)));
    }

    #[test]
    fn shapes_broadcast_from_the_innermost_axis() {
        let shape = |extents: &[usize]| Shape::new(extents).unwrap();
        assert_eq!(shape(&[13, 17, 1]).broadcast(&shape(&[17, 17])), Some(shape(&[13, 17, 17])));
        assert_eq!(shape(&[]).broadcast(&shape(&[2, 0])), Some(shape(&[2, 0])));
        assert_eq!(shape(&[3, 4]).broadcast(&shape(&[3])), None);
        assert_eq!(shape(&[1, 0]).broadcast(&shape(&[5, 1])), Some(shape(&[5, 0])));
        assert!(Shape::new(&[1; 10]).is_none());
    }
}
