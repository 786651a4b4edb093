//! Functors that say which items a selection keeps.

use super::UnaryFn;
use crate::KernelParam;
use crate::element::ConvertTo;

/// Says which items a selection keeps.
///
/// Every function of one item that returns `bool` implements it, including closures: it keeps the items for which it is true. [`Flagged`]
/// uses the flags of the items instead.
///
/// ```
/// use kernel_primitives::functor::{Choice, Flagged, LessThan, bind_second};
/// assert!(bind_second(LessThan, 3).keeps(2, ()) && !bind_second(LessThan, 3).keeps(3, ()));
/// assert!(Flagged.keeps(7, true));
/// ```
pub trait Choice<T, F> {
    /// Returns whether the item with this flag is kept.
    #[track_caller]
    fn keeps(&self, item: T, flag: F) -> bool;
}

impl<T, P: UnaryFn<T, Output = bool>> Choice<T, ()> for P {
    #[inline(always)]
    fn keeps(&self, item: T, (): ()) -> bool {
        self.apply(item)
    }
}

/// Keeps the items whose flags are true. A number is true if it is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct Flagged;

impl<T, F: ConvertTo<bool>> Choice<T, F> for Flagged {
    #[inline(always)]
    fn keeps(&self, _: T, flag: F) -> bool {
        flag.convert()
    }
}
