//! What selections keep.

use super::UnaryFn;
use crate::KernelParam;
use crate::element::{ConvertTo, Element};

/// Which items a selection keeps, and what it keeps of them.
///
/// Implemented by every function of one item that returns `bool`, closures included: it keeps the items of which it is true.
/// [`Flagged`] goes by what stands beside them.
///
/// ```
/// use kernel_primitives::functor::{Choice, Flagged, LessThan, bind_second};
/// assert!(bind_second(LessThan, 3).keeps(2) && !bind_second(LessThan, 3).keeps(3));
/// assert!(Flagged.keeps((7, true)));
/// assert_eq!(Flagged.kept((7, true)), 7);
/// ```
pub trait Choice<T> {
    /// What is kept of an item.
    type Kept: Element;

    /// Whether the item is kept.
    #[track_caller]
    fn keeps(&self, item: T) -> bool;

    /// What is kept of it, if it is.
    #[track_caller]
    fn kept(&self, item: T) -> Self::Kept;
}

impl<T: Element, P: UnaryFn<T, Output = bool>> Choice<T> for P {
    type Kept = T;
    #[inline(always)]
    fn keeps(&self, item: T) -> bool {
        self.apply(item)
    }
    #[inline(always)]
    fn kept(&self, item: T) -> T {
        item
    }
}

/// The first of each pair whose second is true; of numbers, not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct Flagged;

impl<T: Element, F: ConvertTo<bool>> Choice<(T, F)> for Flagged {
    type Kept = T;
    #[inline(always)]
    fn keeps(&self, (_, flag): (T, F)) -> bool {
        flag.convert()
    }
    #[inline(always)]
    fn kept(&self, (item, _): (T, F)) -> T {
        item
    }
}
