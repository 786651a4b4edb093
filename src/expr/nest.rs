//! How the operands of a program lie: one nest of loops with a stride for each operand.

use super::shape::{Layout, MAX_RANK, Shape, Strides};

/// A shape and where each operand's elements lie in it, with as few axes as that takes.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    /// The axes that are left.
    pub(crate) rank: usize,
    /// Their extents, outermost first.
    pub(crate) extents: [usize; MAX_RANK],
    pub(crate) operands: Vec<Lie>,
    /// The number of elements.
    pub(crate) elements: usize,
}

/// Where an operand's elements lie, in elements of its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lie {
    pub(crate) offset: usize,
    pub(crate) strides: Strides,
}

impl Nest {
    /// The nest of operands that have `shape` all, in the order in which the first one's elements lie. `None` if there are more
    /// elements than can be counted.
    pub(crate) fn new<'a>(shape: &Shape, layouts: impl Iterator<Item = &'a Layout>) -> Option<Self> {
        let elements = shape.elements()?;
        let mut operands: Vec<Lie> =
            layouts.map(|layout| Lie { offset: layout.offset, strides: layout.strides }).collect();
        let mut axes: Vec<usize> = (0..shape.rank()).filter(|&axis| shape[axis] != 1).collect();
        if elements == 0 {
            axes.clear();
        }
        if let Some(first) = operands.first().copied() {
            // Backwards where the first operand lies backwards.
            for &axis in axes.iter().filter(|&&axis| first.strides[axis] < 0) {
                for operand in &mut operands {
                    let last = operand.strides[axis] * (shape[axis] as isize - 1);
                    operand.offset = operand.offset.wrapping_add_signed(last);
                    operand.strides[axis] = -operand.strides[axis];
                }
            }
            axes.sort_by_key(|&axis| std::cmp::Reverse(first.strides[axis].abs()));
        }
        let mut nest = Self { rank: 0, extents: [1; MAX_RANK], operands, elements };
        nest.take_axes(shape, &[&axes]);
        Some(nest)
    }

    /// The nest of operands whose axes come in groups, in which they are in order; and how many axes of each group are left. Axes
    /// of different groups stay apart, and none is empty. `None` if there are more elements than can be counted.
    pub(crate) fn grouped<'a, const N: usize>(
        shape: &Shape,
        layouts: impl Iterator<Item = &'a Layout>,
        groups: [&[usize]; N],
    ) -> Option<(Self, [usize; N])> {
        let elements = shape.elements()?;
        let operands = layouts.map(|layout| Lie { offset: layout.offset, strides: layout.strides }).collect();
        let mut nest = Self { rank: 0, extents: [1; MAX_RANK], operands, elements };
        let kept = groups.map(|group| group.iter().copied().filter(|&axis| shape[axis] != 1).collect::<Vec<_>>());
        let ranks = nest.take_axes(shape, &kept.each_ref().map(|group| &group[..]));
        let mut all = [0; N];
        all.copy_from_slice(&ranks);
        Some((nest, all))
    }

    /// Takes axes, outermost first; those of a group that continue each other, for every operand, become one. Returns how many
    /// are left of each group.
    fn take_axes(&mut self, shape: &Shape, groups: &[&[usize]]) -> Vec<usize> {
        let given: Vec<Strides> = self.operands.iter().map(|operand| operand.strides).collect();
        for operand in &mut self.operands {
            operand.strides = [0; MAX_RANK];
        }
        let mut ranks = Vec::with_capacity(groups.len());
        for group in groups {
            let before = self.rank;
            for &axis in *group {
                let extent = shape[axis];
                // The axis before this one goes on where this one ends.
                let merges = self.rank > before
                    && self.operands.iter().zip(&given).all(|(operand, strides)| {
                        strides[axis].checked_mul(extent as isize) == Some(operand.strides[self.rank - 1])
                    });
                if merges {
                    self.extents[self.rank - 1] *= extent;
                } else {
                    self.extents[self.rank] = extent;
                    self.rank += 1;
                }
                for (operand, strides) in self.operands.iter_mut().zip(&given) {
                    operand.strides[self.rank - 1] = strides[axis];
                }
            }
            ranks.push(self.rank - before);
        }
        ranks
    }

    /// The extents that are left.
    #[cfg(test)]
    pub(crate) fn extents(&self) -> &[usize] {
        &self.extents[..self.rank]
    }

    /// Whether an operand's elements lie in a row, in order.
    pub(crate) fn is_linear(&self, operand: usize) -> bool {
        let mut dense = 1isize;
        (0..self.rank).rev().all(|axis| {
            let fits = self.operands[operand].strides[axis] == dense;
            // Past the last axis it may be more than is counted.
            dense = dense.wrapping_mul(self.extents[axis] as isize);
            fits
        })
    }

    /// Whether an operand is one element, repeated.
    pub(crate) fn is_single(&self, operand: usize) -> bool {
        self.operands[operand].strides[..self.rank].iter().all(|&stride| stride == 0)
    }

    /// Calls `run` with (first place among `places`, the operand's first element, stride, length) of each run of an operand along
    /// the innermost axis.
    pub(crate) fn runs(
        &self,
        operand: usize,
        places: std::ops::Range<usize>,
        mut run: impl FnMut(usize, usize, isize, usize),
    ) {
        let Lie { offset, strides } = &self.operands[operand];
        let Some(inner) = self.rank.checked_sub(1) else {
            if !places.is_empty() {
                run(0, *offset, 0, 1);
            }
            return;
        };
        let extents = &self.extents;
        // The indices of the first place.
        let mut index = [0; MAX_RANK];
        let mut rest = places.start;
        for axis in (0..self.rank).rev() {
            index[axis] = rest % extents[axis];
            rest /= extents[axis];
        }
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
        let mut all = [0; MAX_RANK];
        all[..strides.len()].copy_from_slice(strides);
        Layout { shape: Shape::new(extents).unwrap(), strides: all, offset }
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
    fn runs_cover_places_in_order() {
        let shape = Shape::new(&[2, 3, 4]).unwrap();
        let view = layout(&[2, 3, 4], &[100, -10, 2], 50);
        let (nest, _) = Nest::grouped(&shape, [&view].into_iter(), [&[0, 1, 2]]).unwrap();
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
