//! Algorithms over buffers that are split over devices.
//!
//! They have the same names as the algorithms over one [`Buffer`](crate::Buffer). The items of all devices form one sequence, in the order
//! of the [`Split`](crate::Split). All devices work at the same time, each on its own items. Only a few items go between devices: a count,
//! a sum, or the counts of bins. A sort copies the items that belong to other devices.
//!
//! | algorithm | result | between devices |
//! |---|---|---|
//! | [`transform`] | split as the input | nothing |
//! | [`gather`] | split as the indices | indices and the items that they name, or all of a short input; counts, through the host |
//! | [`inclusive_scan`], [`exclusive_scan`] | split as the input | one or two items of each device, to each later device |
//! | [`select_if`] | a selected item stays on its device | a count of each device, through the host |
//! | [`reduce_by_key`] | a run is on the device of its last item | a count, two keys and up to two runs of each device, through the host |
//! | [`histogram_even`], [`histogram_ranges`] | on the first device | the counts of each device |
//! | [`top_k`] | on the first device | the first `k` items of each device |
//! | [`sort_keys`], [`sort_pairs`]; [`sort_by`], [`sort_pairs_by`] | split in any way | each item once, if it goes to another device |
//! | [`spmv`], [`spmv_by`], [`spmv_with`] of a [`SplitCsr`] | split as the rows of the matrix | the items of other devices that a device's rows read |
//!
//! To reduce a split buffer, make a tensor with [`SplitTensor::from_buffer`](crate::expr::SplitTensor::from_buffer).
//!
//! On GPUs, the stream of a kernel returns the kernel's faults, such as an operator's panic. A call that does not wait for that stream does
//! not return them: [`Split::synchronize`](crate::Split::synchronize) waits for all streams, and returns the first fault.
//!
//! [`reduce_by_key`] and the sorts also call operators and comparators on the host, for the items that go between devices. An operator must
//! give the same results on the host as on the devices. If it panics on the host, the call returns an [`Error::Fault`].
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

mod by_key;
pub(crate) mod gather;
mod histogram;
mod host;
mod scan;
mod select;
mod sort;
mod sparse;
mod top_k;
mod transform;

use crate::{Element, Error, Result, SplitBuffer, Stream};

pub use by_key::reduce_by_key;
pub use gather::gather;
pub use histogram::{histogram_even, histogram_ranges};
pub use scan::{exclusive_scan, inclusive_scan};
pub use select::select_if;
pub use sort::{sort_by, sort_keys, sort_pairs, sort_pairs_by};
pub use sparse::{SplitCsr, spmv, spmv_by, spmv_with};
pub use top_k::top_k;
pub use transform::transform;

/// Returns an error if the result is not split as the input.
fn check_result<T: Element, U: Element>(call: &'static str, x: &SplitBuffer<T>, out: &SplitBuffer<U>) -> Result<()> {
    check("the input is split in another way than the result", call, x, out)
}

/// Returns an error if the keys and the values are not split in the same way.
fn check_values<K: Element, V: Element>(
    call: &'static str,
    keys: &SplitBuffer<K>,
    values: &SplitBuffer<V>,
) -> Result<()> {
    check("the keys are split in another way than the values", call, keys, values)
}

/// Returns an error if one of these streams captures: a graph cannot contain an exchange between devices. `advice` says what to do.
fn not_captured<'s>(
    call: &'static str,
    advice: &'static str,
    streams: impl IntoIterator<Item = &'s Stream>,
) -> Result<()> {
    if streams.into_iter().any(Stream::is_capturing) { Err(Error::Capture { call, advice }) } else { Ok(()) }
}

fn check<T: Element, U: Element>(
    wrong: &str,
    call: &'static str,
    a: &SplitBuffer<T>,
    b: &SplitBuffer<U>,
) -> Result<()> {
    if a.is_split_as(b) { Ok(()) } else { Err(Error::Split { call, reason: format!("{wrong}: {a:?} and {b:?}") }) }
}
