//! The layouts of a program's operands: one nest of loops, with a stride for each operand and axis.

use super::shape::{Layout, MAX_RANK, Shape, Strides};

/// A shape and the layout of each operand in it, with the fewest axes.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    /// The number of axes of the nest.
    pub(crate) rank: usize,
    /// The extents of these axes, outermost first.
    pub(crate) extents: [usize; MAX_RANK],
    pub(crate) operands: Vec<OperandLayout>,
    /// The number of elements.
    pub(crate) elements: usize,
    /// The axes that stay apart, by their numbers in the shape, counted from the innermost.
    pub(crate) apart: [Option<Apart>; MAX_RANK],
}

/// An axis of the shape that is an axis of the nest by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Apart {
    /// The number of the axis in the nest.
    pub(crate) axis: u8,
    /// Whether the nest runs along the axis from the last index to the first.
    pub(crate) backwards: bool,
}

/// A set of axes as bits, counted from the innermost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axes(pub(crate) u16);

impl Axes {
    pub(crate) fn contains(self, from_innermost: usize) -> bool {
        self.0 >> from_innermost & 1 != 0
    }
}

/// The layout of an operand, in elements of its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandLayout {
    pub(crate) offset: usize,
    pub(crate) strides: Strides,
}

impl Nest {
    /// Returns the nest of operands that all have shape `shape`, in the order of the first operand's elements in memory. Returns `None` if
    /// there are more elements than can be counted.
    pub(crate) fn new<'a>(shape: &Shape, layouts: impl Iterator<Item = &'a Layout>) -> Option<Self> {
        Self::keeping(shape, layouts, Axes::default())
    }

    /// Works as [`new`](Self::new), but some axes stay apart, even if they have one index.
    pub(crate) fn keeping<'a>(shape: &Shape, layouts: impl Iterator<Item = &'a Layout>, apart: Axes) -> Option<Self> {
        let elements = shape.elements()?;
        let mut operands: Vec<OperandLayout> =
            layouts.map(|layout| OperandLayout { offset: layout.offset, strides: layout.strides }).collect();
        let is_apart = |axis: usize| apart.contains(shape.rank() - 1 - axis);
        let mut axes: Vec<usize> = (0..shape.rank()).filter(|&axis| shape[axis] != 1 || is_apart(axis)).collect();
        let mut backwards = [false; MAX_RANK];
        if elements == 0 {
            axes.retain(|&axis| is_apart(axis));
            // Steps that are never taken may have any size.
            operands.iter_mut().for_each(|operand| operand.strides = [0; MAX_RANK]);
        }
        if let Some(first) = operands.first().copied() {
            // An axis runs backwards if it runs backwards in the first operand.
            for &axis in axes.iter().filter(|&&axis| first.strides[axis] < 0) {
                for operand in &mut operands {
                    let last = operand.strides[axis] * (shape[axis] as isize - 1);
                    operand.offset = operand.offset.wrapping_add_signed(last);
                    operand.strides[axis] = -operand.strides[axis];
                }
                backwards[axis] = true;
            }
            axes.sort_by_key(|&axis| std::cmp::Reverse(first.strides[axis].abs()));
        }
        let mut nest = Self::of(operands, elements);
        nest.take_axes(shape, &[&axes], apart);
        for (from_innermost, apart) in nest.apart.iter_mut().enumerate() {
            if let Some(apart) = apart {
                apart.backwards = backwards[shape.rank() - 1 - from_innermost];
            }
        }
        Some(nest)
    }

    fn of(operands: Vec<OperandLayout>, elements: usize) -> Self {
        Self { rank: 0, extents: [1; MAX_RANK], operands, elements, apart: [None; MAX_RANK] }
    }

    /// Returns the nest of operands whose axes are in groups, in the given order, and the number of axes that are left of each group. Axes
    /// of different groups stay apart, and so do the axes of `apart`. No axis may be empty. Returns `None` if there are more elements than
    /// can be counted.
    pub(crate) fn grouped<'a, const N: usize>(
        shape: &Shape,
        layouts: impl Iterator<Item = &'a Layout>,
        groups: [&[usize]; N],
        apart: Axes,
    ) -> Option<(Self, [usize; N])> {
        let elements = shape.elements()?;
        let operands = layouts.map(|layout| OperandLayout { offset: layout.offset, strides: layout.strides }).collect();
        let mut nest = Self::of(operands, elements);
        let stays = |axis: usize| shape[axis] != 1 || apart.contains(shape.rank() - 1 - axis);
        let kept = groups.map(|group| group.iter().copied().filter(|&axis| stays(axis)).collect::<Vec<_>>());
        let ranks = nest.take_axes(shape, &kept.each_ref().map(|group| &group[..]), apart);
        let mut all = [0; N];
        all.copy_from_slice(&ranks);
        Some((nest, all))
    }

    /// Adds axes, outermost first. Axes of a group that continue each other, for every operand, become one axis, unless they stay apart.
    /// Returns the number of axes that are left of each group.
    fn take_axes(&mut self, shape: &Shape, groups: &[&[usize]], apart: Axes) -> Vec<usize> {
        let given: Vec<Strides> = self.operands.iter().map(|operand| operand.strides).collect();
        for operand in &mut self.operands {
            operand.strides = [0; MAX_RANK];
        }
        let mut ranks = Vec::with_capacity(groups.len());
        for group in groups {
            let before = self.rank;
            let mut alone = false;
            for &axis in *group {
                let extent = shape[axis];
                let (from_innermost, after_one) = (shape.rank() - 1 - axis, alone);
                alone = apart.contains(from_innermost);
                // The axis before this one continues it.
                let merges = self.rank > before
                    && !alone
                    && !after_one
                    && self.operands.iter().zip(&given).all(|(operand, strides)| {
                        strides[axis].checked_mul(extent as isize) == Some(operand.strides[self.rank - 1])
                    });
                if merges {
                    self.extents[self.rank - 1] *= extent;
                } else {
                    self.extents[self.rank] = extent;
                    self.rank += 1;
                }
                if alone {
                    self.apart[from_innermost] = Some(Apart { axis: self.rank as u8 - 1, backwards: false });
                }
                for (operand, strides) in self.operands.iter_mut().zip(&given) {
                    operand.strides[self.rank - 1] = strides[axis];
                }
            }
            ranks.push(self.rank - before);
        }
        ranks
    }

    /// Returns the extents of the nest.
    #[cfg(test)]
    pub(crate) fn extents(&self) -> &[usize] {
        &self.extents[..self.rank]
    }

    /// Returns whether an operand's elements are contiguous, in order.
    pub(crate) fn is_linear(&self, operand: usize) -> bool {
        let mut dense = 1isize;
        (0..self.rank).rev().all(|axis| {
            let fits = self.operands[operand].strides[axis] == dense;
            // After the last axis, the product may overflow.
            dense = dense.wrapping_mul(self.extents[axis] as isize);
            fits
        })
    }

    /// Returns whether an operand is one element, repeated.
    pub(crate) fn is_single(&self, operand: usize) -> bool {
        self.operands[operand].strides[..self.rank].iter().all(|&stride| stride == 0)
    }

    /// Returns whether some axes stay apart.
    pub(crate) fn has_apart(&self) -> bool {
        self.apart.iter().any(Option::is_some)
    }

    /// Returns the indices of the element with a number.
    fn index(&self, place: usize) -> [usize; MAX_RANK] {
        let mut index = [0; MAX_RANK];
        let mut rest = place;
        for axis in (0..self.rank).rev() {
            index[axis] = rest % self.extents[axis];
            rest /= self.extents[axis];
        }
        index
    }

    /// Calls `row` with (first element among `places`, its indices, length) for each run along the innermost axis. The nest must have at
    /// least one axis.
    pub(crate) fn rows(&self, places: std::ops::Range<usize>, mut row: impl FnMut(usize, &[usize; MAX_RANK], usize)) {
        let (inner, mut index, mut done) = (self.rank - 1, self.index(places.start), 0);
        while done < places.len() {
            let len = (self.extents[inner] - index[inner]).min(places.len() - done);
            row(done, &index, len);
            done += len;
            index[inner] = 0;
            for axis in (0..inner).rev() {
                index[axis] += 1;
                if index[axis] < self.extents[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
    }

    /// Calls `run` with (first element among `places`, the operand's first element, stride, length) for each run of an operand along the
    /// innermost axis.
    pub(crate) fn runs(
        &self,
        operand: usize,
        places: std::ops::Range<usize>,
        mut run: impl FnMut(usize, usize, isize, usize),
    ) {
        let OperandLayout { offset, strides } = &self.operands[operand];
        let Some(inner) = self.rank.checked_sub(1) else {
            if !places.is_empty() {
                run(0, *offset, 0, 1);
            }
            return;
        };
        let extents = &self.extents;
        let mut index = self.index(places.start);
        let mut at =
            (0..self.rank).fold(*offset, |at, axis| at.wrapping_add_signed(strides[axis] * index[axis] as isize));
        let mut done = 0;
        while done < places.len() {
            let len = (extents[inner] - index[inner]).min(places.len() - done);
            run(done, at, strides[inner], len);
            done += len;
            at = at.wrapping_add_signed(-(strides[inner] * index[inner] as isize));
            index[inner] = 0;
            for axis in (0..inner).rev() {
                index[axis] += 1;
                at = at.wrapping_add_signed(strides[axis]);
                if index[axis] < extents[axis] {
                    break;
                }
                at = at.wrapping_add_signed(-(strides[axis] * extents[axis] as isize));
                index[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(extents: &[usize], strides: &[isize], offset: usize) -> Layout {
        Layout::strided(Shape::new(extents).unwrap(), strides, offset).unwrap()
    }

    #[test]
    fn axes_that_continue_each_other_are_one() {
        let shape = Shape::new(&[4, 3, 5]).unwrap();
        let dense = Layout::contiguous(shape);
        let nest = Nest::new(&shape, [&dense, &dense].into_iter()).unwrap();
        assert_eq!((nest.rank, nest.extents()), (1, &[60][..]));
        let row = layout(&[4, 3, 5], &[0, 5, 1], 2);
        let nest = Nest::new(&shape, [&dense, &row].into_iter()).unwrap();
        assert_eq!(nest.extents(), [4, 15]);
        assert!(nest.is_linear(0) && !nest.is_linear(1));
    }

    #[test]
    fn an_output_that_lies_otherwise_is_walked_as_it_lies() {
        let shape = Shape::new(&[4, 3]).unwrap();
        let turned = layout(&[4, 3], &[1, 4], 0);
        let nest = Nest::new(&shape, [&turned, &turned].into_iter()).unwrap();
        assert_eq!(nest.extents(), [12]);
        let back = layout(&[4, 3], &[-3, -1], 11);
        let nest = Nest::new(&shape, [&back, &turned].into_iter()).unwrap();
        assert_eq!((nest.extents(), nest.operands[0].offset, nest.operands[1].offset), (&[4, 3][..], 0, 11));
        assert!(nest.is_linear(0));
    }

    #[test]
    fn axes_that_stay_apart_are_known() {
        let shape = Shape::new(&[2, 6, 4, 3, 5]).unwrap();
        let dense = Layout::contiguous(shape);
        let nest = Nest::keeping(&shape, [&dense].into_iter(), Axes(0b10)).unwrap();
        assert_eq!(nest.extents(), [48, 3, 5]);
        assert_eq!(nest.apart[1], Some(Apart { axis: 1, backwards: false }));
        assert_eq!(nest.apart.iter().flatten().count(), 1);
        // This is the innermost axis, backwards and as the outermost.
        let back = layout(&[2, 6, 4, 3, 5], &[72, 12, 3, 1, -144], 4 * 144);
        let nest = Nest::keeping(&shape, [&back].into_iter(), Axes(0b1)).unwrap();
        assert_eq!(nest.extents(), [5, 144]);
        assert_eq!(nest.apart[0], Some(Apart { axis: 0, backwards: true }));
        let mut rows = Vec::new();
        nest.rows(140..290, |first, index, len| rows.push((first, [index[0], index[1]], len)));
        assert_eq!(rows, [(0, [0, 140], 4), (4, [1, 0], 144), (148, [2, 0], 2)]);
    }

    #[test]
    fn runs_cover_places_in_order() {
        let shape = Shape::new(&[2, 3, 4]).unwrap();
        let view = layout(&[2, 3, 4], &[100, -10, 2], 50);
        let (nest, _) = Nest::grouped(&shape, [&view].into_iter(), [&[0, 1, 2]], Axes::default()).unwrap();
        let expected: Vec<usize> = (0..24).map(|i| (50 + 100 * (i / 12) + 2 * (i % 4)) - 10 * (i / 4 % 3)).collect();
        for places in [0..24, 3..21, 5..6, 7..7] {
            let mut got = vec![0; places.len()];
            nest.runs(0, places.clone(), |first, at, stride, len| {
                for i in 0..len {
                    got[first + i] = at.wrapping_add_signed(stride * i as isize);
                }
            });
            assert_eq!(got, expected[places]);
        }
    }
}
