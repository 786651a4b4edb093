//! Counts of what a device was asked to do.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What a device was asked to do since it was opened, from [`Device::counters`](crate::Device::counters).
        ///
        /// A test that takes two snapshots shows what a piece of code costs, for instance that it is one launch and moves
        /// no memory:
        ///
        /// ```
        /// use kernel_primitives::prelude::*;
        /// use kernel_primitives::{Device, Dims, kernels::map_binary};
        ///
        /// # fn main() -> kernel_primitives::Result<()> {
        /// let device = Device::emulator();
        /// let stream = device.stream()?;
        /// let x = stream.buffer_from(&[1.0f32; 100])?;
        /// let mut sum = stream.buffer_zeroed::<f32>(100)?;
        ///
        /// let before = device.counters();
        /// let dims = Dims::for_items(100).items_per_thread(4);
        /// map_binary::<f32, f32, Add, 4>::launch(&stream, dims, &x, &x, &mut sum, Add)?;
        /// let cost = device.counters().since(before);
        /// assert_eq!((cost.launches, cost.allocations, cost.synchronizations), (1, 0, 0));
        ///
        /// let _ = sum.to_vec()?;
        /// let cost = device.counters().since(before);
        /// assert_eq!((cost.device_to_host_copies, cost.device_to_host_bytes), (1, 400));
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// An expression is one launch, however long it is:
        ///
        /// ```
        /// use kernel_primitives::Device;
        /// use kernel_primitives::expr::{Reductions, Tensor, exp};
        ///
        /// # fn main() -> kernel_primitives::Result<()> {
        /// let device = Device::emulator();
        /// let stream = device.stream()?;
        /// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
        /// let y = Tensor::uninit(&stream, 3)?;
        ///
        /// let before = device.counters();
        /// y.assign(exp(&x) * 2.0 + 1.0)?;
        /// let _ = (&x * &y).sum().item()?;
        /// assert_eq!(device.counters().since(before).launches, 2);
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl Counters {
            /// What was added since `earlier`, a snapshot of the same device.
            pub fn since(self, earlier: Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }

        /// The counts of a device, which its handles share.
        #[derive(Default)]
        pub(crate) struct Tally {
            $(pub(crate) $name: Count,)*
        }

        impl Tally {
            pub(crate) fn snapshot(&self) -> Counters {
                Counters { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}
counters! {
    /// Launches of kernels. The kernel of an expression counts as one, on the emulator's device too, where the CPU's cores compute it. Those
    /// of nothing, those that a capture records and those of a graph's kernels are not counted.
    launches,
    /// Launches of graphs, each counted once, whatever it holds.
    graph_launches,
    /// Copies from the host into buffers. Here and below, copies of no bytes are not counted.
    host_to_device_copies,
    /// Bytes that these copies moved.
    host_to_device_bytes,
    /// Copies from buffers to the host.
    device_to_host_copies,
    /// Bytes that these copies moved.
    device_to_host_bytes,
    /// Copies from buffer to buffer. Those of a graph are not counted.
    device_copies,
    /// Copies from buffers of another device, counted where they go to.
    peer_copies,
    /// Bytes that these copies moved.
    peer_bytes,
    /// Allocations of buffers. Those of no bytes are not counted.
    allocations,
    /// Times that the program waited for a stream or an event. Copies between host and device wait too, but count as
    /// copies alone.
    synchronizations,
}

/// One count: no order with anything else is implied.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, by: usize) {
        self.0.fetch_add(by as u64, Ordering::Relaxed);
    }
}
