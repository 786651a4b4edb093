//! Tests whether two views have elements in common, and whether a view repeats elements, by arithmetic on strides.

use super::shape::Layout;

/// Returns whether two views of one memory have a byte in common. Their elements have `sizes` bytes. The answer is exact, except for cases
/// that take long to decide: then it is true.
pub(crate) fn overlap(a: &Layout, b: &Layout, sizes: [usize; 2]) -> bool {
    let (Some(x), Some(y)) = (a.span(), b.span()) else { return true };
    let [m, n] = sizes.map(|size| size as i128);
    let (x, y) = ((x.start as i128 * m, x.end as i128 * m), (y.start as i128 * n, y.end as i128 * n));
    if x.0.max(y.0) >= x.1.min(y.1) {
        return false;
    }
    // The steps lead from the first byte of `a` to any byte of `a`, and from any byte of `b` back to its first byte.
    let mut steps = Steps::default();
    for (layout, scale) in [(a, m), (b, -n)] {
        for (&extent, &stride) in layout.shape.iter().zip(&layout.strides) {
            steps.add(scale * stride as i128, 0, extent as i128 - 1);
        }
    }
    if m != n {
        steps.add(1, 0, m - 1);
        steps.add(-1, 0, n - 1);
    }
    steps.reach(b.offset as i128 * n - a.offset as i128 * m)
}

/// Returns whether two indices of a view mean the same element. The answer is exact, except for cases that take long to decide: then it is
/// true.
pub(crate) fn repeats(layout: &Layout) -> bool {
    if layout.shape.contains(&0) {
        return false;
    }
    let mut axes: Vec<(i128, i128)> = layout
        .shape
        .iter()
        .zip(&layout.strides)
        .filter(|(extent, _)| **extent > 1)
        .map(|(&extent, &stride)| ((stride as i128).abs(), extent as i128 - 1))
        .collect();
    axes.sort_unstable();
    // In most views, a step along an axis leads past all elements that the axes before it reach.
    let mut reach = 0;
    let passes = |&(stride, most): &(i128, i128)| {
        let passes = stride > reach;
        reach += stride * most;
        passes
    };
    if axes.iter().all(passes) {
        return false;
    }
    // If two indices mean the same element, they differ along a first axis, and the sum of all steps between them is 0.
    axes.iter().enumerate().any(|(at, &(stride, most))| {
        let mut steps = Steps::default();
        for &(stride, most) in &axes[at + 1..] {
            steps.add(stride, -most, most);
        }
        steps.add(stride, 1, most);
        stride == 0 || steps.reach(0)
    })
}

/// A distance that can be taken any number of times from `low` to `high`.
struct Step {
    size: i128,
    low: i128,
    high: i128,
}

/// Steps of different sizes.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn add(&mut self, step: i128, low: i128, high: i128) {
        let (low, high) = if step < 0 { (-high, -low) } else { (low, high) };
        let size = step.abs();
        if size == 0 || (low, high) == (0, 0) {
            return;
        }
        match self.0.iter_mut().find(|known| known.size == size) {
            Some(known) => (known.low, known.high) = (known.low + low, known.high + high),
            None => self.0.push(Step { size, low, high }),
        }
    }

    /// Returns whether some of the steps add up to `distance`.
    fn reach(mut self, distance: i128) -> bool {
        const TRIES: usize = 10_000;
        self.0.sort_by_key(|step| std::cmp::Reverse(step.size));
        reaches(distance, &self.0, &mut { TRIES })
    }
}

fn reaches(distance: i128, steps: &[Step], tries: &mut usize) -> bool {
    let Some((step, rest)) = steps.split_first() else { return distance == 0 };
    let low: i128 = rest.iter().map(|step| step.size * step.low).sum();
    let high: i128 = rest.iter().map(|step| step.size * step.high).sum();
    let divisor = rest.iter().fold(0, |divisor, step| greatest_common_divisor(divisor, step.size));
    // The counts of this step with which the rest can still reach the distance.
    let from = (-(high - distance).div_euclid(step.size)).max(step.low);
    let to = (distance - low).div_euclid(step.size).min(step.high);
    (from..=to).any(|count| {
        if *tries == 0 {
            return true;
        }
        *tries -= 1;
        let left = distance - step.size * count;
        (left == 0 || divisor != 0 && left % divisor == 0) && reaches(left, rest, tries)
    })
}

fn greatest_common_divisor(a: i128, b: i128) -> i128 {
    if a == 0 { b } else { greatest_common_divisor(b % a, a) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::layout::shape::Shape;

    fn layout(extents: &[usize], strides: &[isize], offset: usize) -> Layout {
        Layout::strided(Shape::new(extents).unwrap(), strides, offset).unwrap()
    }

    #[test]
    fn overlap_is_decided_by_elements() {
        let overlap = |a: Layout, b: Layout| overlap(&a, &b, [4, 4]);
        // These are even and odd places, left and right columns, and a matrix and its transpose.
        assert!(!overlap(layout(&[5], &[2], 0), layout(&[5], &[2], 1)));
        assert!(!overlap(layout(&[4, 3], &[6, 1], 0), layout(&[4, 3], &[6, 1], 3)));
        assert!(overlap(layout(&[4, 3], &[6, 1], 0), layout(&[4, 3], &[6, 1], 2)));
        assert!(overlap(layout(&[4, 4], &[4, 1], 0), layout(&[4, 4], &[1, 4], 0)));
        assert!(!overlap(layout(&[4], &[-1], 3), layout(&[4], &[1], 4)));
        // These are even and odd columns of a large matrix, and a row and a column that do not meet.
        assert!(!overlap(layout(&[9999, 5000], &[10_000, 2], 0), layout(&[9999, 5000], &[10_000, 2], 1)));
        assert!(!overlap(layout(&[5000, 3000], &[6, 30_000], 1), layout(&[3000, 10_000], &[30_000, 3], 0)));
        assert!(!overlap(layout(&[0, 3], &[0, 0], 2), layout(&[4], &[1], 0)));
    }

    #[test]
    fn overlap_of_elements_of_two_sizes_is_decided_by_bytes() {
        // These are records of a word and a half: bytes 0 to 3, and bytes 4 to 5, of every 8.
        let (words, halves) = (layout(&[100], &[2], 0), layout(&[100], &[4], 2));
        assert!(!overlap(&words, &halves, [4, 2]));
        assert!(overlap(&words, &layout(&[100], &[4], 1), [4, 2]));
        assert!(overlap(&layout(&[1], &[0], 0), &layout(&[8], &[1], 7), [8, 1]));
        assert!(!overlap(&layout(&[1], &[0], 0), &layout(&[8], &[1], 8), [8, 1]));
    }

    #[test]
    fn views_that_repeat_elements_are_known() {
        let repeats = |extents: &[usize], strides: &[isize]| repeats(&layout(extents, strides, 0));
        assert!(!repeats(&[13, 4], &[10, 1]));
        assert!(!repeats(&[13, 4], &[1, 13]));
        assert!(repeats(&[13, 4], &[0, 1]));
        assert!(repeats(&[13, 4], &[3, 1]));
        assert!(!repeats(&[1, 4], &[0, -1]));
        // These are steps that pass each other without meeting. Without elements, no element is there twice.
        assert!(!repeats(&[3, 2], &[2, 3]));
        assert!(repeats(&[4, 3], &[2, 3]));
        assert!(!repeats(&[3, 0], &[0, 0]));
        assert!(!repeats(&[1, usize::MAX], &[isize::MIN, 1]));
    }
}
