//! Counts of the work of a device.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// Counts of the work of a device since it was opened, from [`Device::counters`](crate::Device::counters).
        ///
        /// A test that takes two snapshots shows what a piece of code costs, for instance that it makes one launch and no copies:
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
        /// An expression of any length is one launch:
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
            /// The counts since `earlier`, a snapshot of the same device.
            pub fn since(self, earlier: Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }

        /// The counts of a device. Its handles share them.
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
    /// Launches of kernels. The kernel of an expression counts as one launch, also on the emulator's device, where the CPU's cores compute
    /// it. Launches without blocks, launches that a capture records, and launches inside a graph are not counted.
    launches,
    /// Launches of graphs. Each launch counts once, for any number of kernels.
    graph_launches,
    /// Copies from the host into buffers. Here and below, copies of no bytes are not counted.
    host_to_device_copies,
    /// Bytes that these copies moved.
    host_to_device_bytes,
    /// Copies from buffers to the host.
    device_to_host_copies,
    /// Bytes that these copies moved.
    device_to_host_bytes,
    /// Copies from buffer to buffer. Copies of a graph are not counted.
    device_copies,
    /// Copies from buffers of another device. The target's device counts them.
    peer_copies,
    /// Bytes that these copies moved.
    peer_bytes,
    /// Allocations of buffers. Allocations of no bytes are not counted.
    allocations,
    /// Times that the program waited for a stream or an event. Copies between host and device wait too, but count only as copies.
    synchronizations,
}

/// One count. It implies no order of other memory accesses.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, by: usize) {
        self.0.fetch_add(by as u64, Ordering::Relaxed);
    }
}
