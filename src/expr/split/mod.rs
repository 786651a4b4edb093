//! Tensors that are split over devices, and expressions of them.
//!
//! [`tensor`] has the type, [`view`] what expressions know of it, [`assign`] makes an expression one of each device, [`reduce`] reduces on
//! each device and then across, and [`copy`] moves rows between devices. [`beside`] is what stencils read, and [`halo`] brings it.
//! [`gathers`] brings what is gathered from split tensors, and [`owners`] says whose items indices are of.

mod assign;
mod beside;
mod copy;
mod gathers;
mod halo;
mod owners;
mod reduce;
mod tensor;
mod view;

pub(super) use beside::Beside;
pub(crate) use owners::{Wanted, vector_of};
pub use tensor::SplitTensor;
pub(super) use view::SplitView;
