//! What selections keep.

use super::UnaryFn;
use crate::KernelParam;
use crate::element::ConvertTo;

/// Which items a selection keeps.
///
/// Implemented by every function of one item that returns `bool`, closures included: it keeps the items for which it is true.
/// [`Flagged`] goes by what stands beside them.
///
/// ```
/// use kernel_primitives::functor::{Choice, Flagged, LessThan, bind_second};
/// assert!(bind_second(LessThan, 3).keeps(2, ()) && !bind_second(LessThan, 3).keeps(3, ()));
/// assert!(Flagged.keeps(7, true));
/// ```
pub trait Choice<T, F> {
    /// Whether the item is kept beside which the flag stands.
    #[track_caller]
    fn keeps(&self, item: T, flag: F) -> bool;
}

impl<T, P: UnaryFn<T, Output = bool>> Choice<T, ()> for P {
    #[inline(always)]
    fn keeps(&self, item: T, (): ()) -> bool {
        self.apply(item)
    }
}

/// Keeps the items whose flags are true; of numbers, not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct Flagged;

impl<T, F: ConvertTo<bool>> Choice<T, F> for Flagged {
    #[inline(always)]
    fn keeps(&self, _: T, flag: F) -> bool {
        flag.convert()
    }
}
