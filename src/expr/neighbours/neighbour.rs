//! Neighbours: elements of a view at a distance from the element that is computed, and rules for indices outside the view.
//!
//! A shift is made for the extents of its view, so that one step of its rule suffices: no distance is longer than the axis, and an axis
//! with one index has no distance. For a split tensor, these are the extents of the whole tensor; an axis with [spare](Spare) elements may
//! be shorter. If a shift has a distance along an axis, this axis has the view's extent in all shapes that the view broadcasts to.

use std::ops::Range;

use crate::expr::cpu::{Memory, copy_run};
use crate::expr::layout::nest::{Apart, Axes, Nest, OperandLayout};
use crate::expr::layout::shape::{Layout, MAX_RANK};

/// The rule that chooses the element to read for an index outside the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rule {
    /// The nearest index inside.
    Clamp,
    /// The index on the other side, as if copies of the view followed each other.
    Periodic,
    /// The mirror image. The index at the edge is the mirror.
    Mirror,
    /// The mirror image. The mirror is beside the index at the edge.
    Symmetric,
    /// A value, given by its bits.
    Constant(u64),
}

impl Rule {
    /// Returns the distance that is equivalent to `by` on an axis and needs at most one step of the rule. Returns `None` if the neighbour
    /// is outside for all elements, and an error if the rule does not allow the distance.
    pub(crate) fn reduced(self, by: isize, extent: usize) -> Result<Option<isize>, &'static str> {
        let longest = isize::try_from(extent.saturating_sub(1)).unwrap_or(isize::MAX);
        if extent == 0 || by == 0 {
            return Ok(Some(0));
        }
        match self {
            Self::Clamp => Ok(Some(by.clamp(-longest, longest))),
            Self::Periodic => Ok(Some(by % longest.saturating_add(1))),
            Self::Mirror if by.unsigned_abs() > extent - 1 => Err("a mirror shows each element once"),
            Self::Symmetric if by.unsigned_abs() > extent => Err("a mirror shows each element once"),
            Self::Symmetric if extent == 1 => Ok(Some(0)),
            Self::Mirror | Self::Symmetric => Ok(Some(by)),
            Self::Constant(_) => Ok((by.unsigned_abs() < extent).then_some(by)),
        }
    }

    /// Returns the index that is read in place of `at`, the result of a reduced distance. Returns `None` for the constant. The memory has
    /// `before` more elements before index 0, and `after` more elements after the last index.
    fn index(self, at: isize, extent: isize, [before, after]: [isize; 2]) -> Option<isize> {
        if (-before..extent + after).contains(&at) {
            return Some(at);
        }
        let low = at < 0;
        match self {
            Self::Clamp => Some(if low { 0 } else { extent - 1 }),
            Self::Periodic => Some(if low { at + extent } else { at - extent }),
            Self::Mirror => Some(if low { -at } else { 2 * (extent - 1) - at }),
            Self::Symmetric => Some(if low { -1 - at } else { 2 * extent - 1 - at }),
            Self::Constant(_) => None,
        }
    }

    /// Returns the range of indices that are read along an axis at a reduced distance.
    fn indices(self, by: isize, extent: usize) -> Range<usize> {
        // Only an axis that repeats an element can be longer.
        let Some(len) = isize::try_from(extent).ok().filter(|&len| by != 0 && len <= isize::MAX / 4) else {
            return 0..extent;
        };
        // Between these ends, the indices ascend or descend.
        let ends = [0, -by - 1, -by, len - 1 - by, len - by, len - 1];
        let read =
            ends.into_iter().filter(|at| (0..len).contains(at)).filter_map(|at| self.index(at + by, len, [0; 2]));
        let (first, last) = read.fold((len, -1), |(first, last), at| (at.min(first), at.max(last)));
        first as usize..(last + 1) as usize
    }
}

/// The distances from an element to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shift {
    /// Reduced distances along the view's axes, counted from the innermost.
    pub(crate) by: [isize; MAX_RANK],
    pub(crate) rule: Rule,
}

impl Shift {
    /// Returns the axes along which the distance is not 0.
    pub(crate) fn axes(&self) -> Axes {
        (0..MAX_RANK).fold(Axes::default(), |axes, k| Axes(axes.0 | u16::from(self.by[k] != 0) << k))
    }

    /// Returns the distances along the axes of a view, outermost first.
    pub(crate) fn offsets(&self, rank: usize) -> Vec<isize> {
        self.by[..rank].iter().rev().copied().collect()
    }

    /// Returns the part of a view that contains the neighbours. Along an axis with spare elements, it contains these too.
    pub(crate) fn part_of(&self, view: &Layout, spare: Option<Spare>) -> Layout {
        let Layout { shape, strides, mut offset } = *view;
        let rank = shape.rank();
        let part = shape.map(|extents| {
            for (axis, extent) in extents.iter_mut().enumerate().filter(|(_, extent)| **extent > 0) {
                let k = rank - 1 - axis;
                if spare.is_some_and(|spare| usize::from(spare.axis) == k) {
                    offset = offset.wrapping_add_signed(strides[axis].wrapping_mul(self.by[k]));
                    continue;
                }
                let read = self.rule.indices(self.by[k], *extent);
                offset = offset.wrapping_add_signed(strides[axis].wrapping_mul(read.start as isize));
                *extent = read.len();
            }
        });
        part.map_or(*view, |shape| Layout { shape, strides, offset })
    }

    /// Returns the same shift along the axes of a nest.
    pub(crate) fn along(&self, apart: &[Option<Apart>; MAX_RANK]) -> Self {
        let mut by = [0; MAX_RANK];
        for (distance, apart) in self.by.into_iter().zip(apart) {
            if let (true, Some(apart)) = (distance != 0, apart) {
                by[usize::from(apart.axis)] = if apart.backwards { -distance } else { distance };
            }
        }
        Self { by, rule: self.rule }
    }
}

/// The elements in memory before and after a view, along one of its axes. A stencil reads them unchanged, without a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spare {
    /// The axis, counted from the innermost.
    pub(crate) axis: u8,
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl Spare {
    /// Returns the spare elements that both have, along one axis.
    pub(crate) fn with(self, other: Self) -> Self {
        Self { axis: self.axis, before: self.before.max(other.before), after: self.after.max(other.after) }
    }

    /// Returns the view together with its spare elements.
    pub(crate) fn around(self, view: &Layout) -> Layout {
        let Layout { shape, strides, mut offset } = *view;
        let axis = shape.rank() - 1 - usize::from(self.axis);
        offset = offset.wrapping_add_signed(strides[axis].wrapping_mul(-(self.before as isize)));
        let shape = shape.map(|extents| extents[axis] += self.before + self.after);
        shape.map_or(*view, |shape| Layout { shape, strides, offset })
    }

    /// Returns the numbers of spare elements along an axis of a nest, before index 0 and after the last index.
    pub(crate) fn along(spare: Option<Self>, apart: &[Option<Apart>; MAX_RANK], axis: usize) -> [isize; 2] {
        match spare.map(|spare| (spare, apart[usize::from(spare.axis)])) {
            Some((Self { before, after, .. }, Some(apart))) if usize::from(apart.axis) == axis => {
                let ends = [before as isize, after as isize];
                if apart.backwards { [ends[1], ends[0]] } else { ends }
            }
            _ => [0; 2],
        }
    }
}

/// Copies the neighbours of places into a row. `shift` is along the axes of the nest. Only the neighbours outside, at the ends of rows, are
/// computed one by one.
///
/// # Safety
/// `operand` must be of a view of the memory. The view must have the nest's extents along all axes of the shift, or broadcast to them. The
/// memory must have the spare elements. There must be room for one element for each place.
pub(in crate::expr) unsafe fn copy_neighbours(
    nest: &Nest,
    operand: &OperandLayout,
    memory: &Memory,
    (shift, spare): (&Shift, Option<Spare>),
    places: Range<usize>,
    to: *mut u8,
) {
    let (inner, size, Shift { by, rule }) = (nest.rank - 1, memory.size, *shift);
    let spare = |axis: usize| Spare::along(spare, &nest.apart, axis);
    let [before, after] = spare(inner);
    // A word rather than its bytes, so that it is aligned for every type.
    let constant = if let Rule::Constant(word) = rule { word.to_le() } else { 0 };
    let stride = operand.strides[inner];
    nest.rows(places, |first, index, len| {
        // SAFETY: the element is inside the room.
        let to = |i: isize| unsafe { to.add((first + i as usize) * size) };
        // SAFETY: these are elements of the view, or spare ones, because a rule leads inside. The places are in the row from `i`.
        let copy = |from: usize, from_stride: isize, i: isize, len: isize| unsafe {
            copy_run(memory.at(from), from_stride, to(i), 1, len as usize, size);
        };
        // SAFETY: as above; the bytes are the bytes of an element.
        let fill = |i: isize, len: isize| unsafe {
            copy_run((&raw const constant).cast(), 0, to(i), 1, len as usize, size);
        };
        let len = len as isize;
        let mut row = operand.offset;
        for axis in 0..inner {
            let at = index[axis] as isize + by[axis];
            let Some(at) = rule.index(at, nest.extents[axis] as isize, spare(axis)) else {
                return fill(0, len);
            };
            row = row.wrapping_add_signed(operand.strides[axis] * at);
        }
        let (start, extent) = (index[inner] as isize + by[inner], nest.extents[inner] as isize);
        let element = |at: isize| row.wrapping_add_signed(stride * at);
        // The neighbours inside are contiguous, because the elements are.
        let low = (-before - start).clamp(0, len);
        let high = (extent + after - start).clamp(low, len);
        if high > low {
            copy(element(start + low), stride, low, high - low);
        }
        for outside in [0..low, high..len] {
            match rule {
                _ if outside.is_empty() => {}
                Rule::Constant(_) => fill(outside.start, outside.end - outside.start),
                Rule::Clamp => {
                    let edge = if start + outside.start < 0 { 0 } else { extent - 1 };
                    copy(element(edge), 0, outside.start, outside.end - outside.start);
                }
                _ => {
                    for i in outside {
                        let at = rule.index(start + i, extent, [0; 2]).expect("only a constant has none");
                        copy(element(at), 0, i, 1);
                    }
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::cpu::Placement;
    use crate::expr::layout::shape::Shape;

    /// The rules are compared with numpy's padding: `edge`, `wrap`, `reflect`, `symmetric`.
    #[test]
    fn rules_are_those_of_padding() {
        let read = |rule: Rule, extent: usize| -> Vec<Option<isize>> {
            let reach = extent as isize - 1;
            (-reach..extent as isize + reach).map(|at| rule.index(at, extent as isize, [0; 2])).collect()
        };
        let some = |indices: &[isize]| indices.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(read(Rule::Clamp, 4), some(&[0, 0, 0, 0, 1, 2, 3, 3, 3, 3]));
        assert_eq!(read(Rule::Periodic, 4), some(&[1, 2, 3, 0, 1, 2, 3, 0, 1, 2]));
        assert_eq!(read(Rule::Mirror, 4), some(&[3, 2, 1, 0, 1, 2, 3, 2, 1, 0]));
        assert_eq!(read(Rule::Symmetric, 4), some(&[2, 1, 0, 0, 1, 2, 3, 3, 2, 1]));
        let constant = read(Rule::Constant(7), 4);
        assert!(constant[..3].iter().chain(&constant[7..]).all(Option::is_none));
        assert_eq!(constant[3..7], some(&[0, 1, 2, 3]));
    }

    /// Copies of elements assert that they are aligned.
    #[test]
    fn constants_outside_are_aligned() {
        let shape = Shape::new(&[4]).unwrap();
        let layout = Layout::contiguous(shape);
        let nest = Nest::keeping(&shape, [&layout].into_iter(), Axes(1)).unwrap();
        let data = [1u64, 2, 3, 4];
        let address = data.as_ptr().expose_provenance() as u64;
        let memory = Memory { address, size: size_of::<u64>(), placement: Placement::Nested(0) };
        let mut by = [0; MAX_RANK];
        by[0] = -2;
        let shift = Shift { by, rule: Rule::Constant(7) }.along(&nest.apart);
        let mut to = [0u64; 4];
        // SAFETY: the view is the whole memory, and there is room for four elements.
        unsafe { copy_neighbours(&nest, &nest.operands[0], &memory, (&shift, None), 0..4, to.as_mut_ptr().cast()) };
        assert_eq!(to, [7, 7, 1, 2]);
    }

    #[test]
    fn distances_are_reduced_to_one_step() {
        assert_eq!(Rule::Clamp.reduced(isize::MIN, 4), Ok(Some(-3)));
        assert_eq!(Rule::Clamp.reduced(9, 1), Ok(Some(0)));
        assert_eq!(Rule::Periodic.reduced(-9, 4), Ok(Some(-1)));
        assert_eq!(Rule::Periodic.reduced(isize::MIN, 1), Ok(Some(0)));
        assert_eq!(Rule::Mirror.reduced(3, 4), Ok(Some(3)));
        assert!(Rule::Mirror.reduced(-4, 4).is_err() && Rule::Mirror.reduced(1, 1).is_err());
        assert_eq!(Rule::Symmetric.reduced(-4, 4), Ok(Some(-4)));
        assert_eq!(Rule::Symmetric.reduced(1, 1), Ok(Some(0)));
        assert!(Rule::Symmetric.reduced(5, 4).is_err());
        assert_eq!(Rule::Constant(0).reduced(3, 4), Ok(Some(3)));
        assert_eq!(Rule::Constant(0).reduced(-4, 4), Ok(None));
        // Any distance is right if there are no elements.
        assert_eq!(Rule::Mirror.reduced(5, 0), Ok(Some(0)));
    }
}
