//! Algorithms over buffers that are split over devices.
//!
//! They have the names of those over one [`Buffer`](crate::Buffer), and the items of all devices count as one sequence, in the order of the
//! [`Split`](crate::Split). Each device works on its own items, at the same time as the others, and only what crosses between devices is
//! copied: a count, a sum, the counts of bins.
//!
//! | algorithm | result | between devices |
//! |---|---|---|
//! | [`inclusive_scan`], [`exclusive_scan`] | split as the input | an item or two of each device, through the host |
//! | [`select_if`] | what is kept stays on its device | a count of each device, through the host |
//! | [`histogram_even`], [`histogram_ranges`] | on the first device | the counts of each device |
//!
//! Reductions are those of [`SplitTensor`](crate::expr::SplitTensor::from_buffer).
//!
//! On GPUs a fault of a kernel, such as an operator's panic, comes from the stream that has the kernel. What does not wait for that stream
//! does not return it: [`Split::synchronize`](crate::Split::synchronize) waits for all, and returns the first.
//!
//! ```
//! use kernel_primitives::functor::{Add, LessThan, bind_second};
//! use kernel_primitives::{Devices, Split, SplitBuffer, split};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let devices = Split::even(&Devices::emulated(3)?)?;
//! let x = SplitBuffer::from_slice(&devices, &[3, 1, 4, 1, 5, 9, 2, 6])?;
//! let mut sums = SplitBuffer::zeroed(&devices, 8)?;
//! split::inclusive_scan(&x, Add, &mut sums)?;
//! assert_eq!(sums.to_vec()?, [3, 4, 8, 9, 14, 23, 25, 31]);
//! assert_eq!(split::select_if(&x, bind_second(LessThan, 4))?.to_vec()?, [3, 1, 1, 2]);
//! # Ok(())
//! # }
//! ```

mod histogram;
mod scan;
mod select;

pub use histogram::{histogram_even, histogram_ranges};
pub use scan::{exclusive_scan, inclusive_scan};
pub use select::select_if;
