//! Tensors that are split over devices, and expressions of them.
//!
//! [`tensor`] has the type, [`view`] what expressions know of it, [`assign`] makes an expression one of each device, [`reduce`] reduces on
//! each device and then across, and [`copy`] moves rows between devices.

mod assign;
mod copy;
mod reduce;
mod tensor;
mod view;

pub use tensor::SplitTensor;
pub(super) use view::SplitView;
