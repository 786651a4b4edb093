//! Tensors that are split over devices, and expressions of them.
//!
//! [`tensor`] has the type, and [`view`] the part of it that expressions know. [`assign`] turns an expression into one expression for each
//! device. [`slices`] makes views of some elements. [`reduce`] reduces on each device and then over the devices. [`copy`] moves rows between
//! devices. [`beside`] describes the elements that stencils read, and [`halo`] copies them to the devices. [`gathers`] does the same for
//! gathers from split tensors, and [`owners`] finds the device that has the item of an index. [`packed`] makes contiguous copies of views
//! for all of these. [`steps`] applies a stencil many times.

mod assign;
mod beside;
mod copy;
mod gathers;
mod halo;
mod owners;
mod packed;
mod reduce;
mod slices;
mod steps;
mod tensor;
mod view;

pub(super) use beside::Beside;
pub(crate) use owners::{Wanted, vector_of};
pub use tensor::SplitTensor;
pub(super) use view::SplitView;
