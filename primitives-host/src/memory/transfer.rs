//! Asynchronous copies between device memory and page-locked host memory.

use std::mem;

use primitives_gpu::Element;

use crate::Result;
use crate::memory::pinned::PinnedBuffer;
use crate::memory::{bytes_of_mut, check_bits};
use crate::stream::{Event, Stream};

/// The direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    FromHost,
    ToHost,
}

/// An asynchronous copy between a buffer and a [`PinnedBuffer`], from [`Buffer::copy_from_async`](crate::Buffer::copy_from_async) and
/// [`Buffer::copy_to_async`](crate::Buffer::copy_to_async).
///
/// The transfer owns the host's memory, so that no other code can access it during the copy; [`wait`](Self::wait) returns the memory.
/// Dropping the transfer waits for the copy. The buffer is borrowed only while the copy is enqueued, as for a launch: later work comes
/// after the copy. On the emulator, the copy is made at once.
///
/// With two streams and two transfers, copies and kernels run at the same time:
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::algorithms::inclusive_scan;
/// use kernel_primitives::functor::Add;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let device = Device::auto()?;
/// let stream = device.stream()?;
/// let (mut x, mut out) = (stream.buffer_zeroed::<u32>(1000)?, stream.buffer_zeroed::<u32>(1000)?);
///
/// let mut host = device.pinned::<u32>(1000)?;
/// host.fill(1);
/// let upload = x.copy_from_async(&stream, host)?;
/// inclusive_scan(&stream, &x, Add, &mut out)?;
/// let download = out.copy_to_async(&stream, device.pinned(1000)?)?;
/// // Here the host has time for something else.
/// let (host, sums) = (upload.wait()?, download.wait()?);
/// assert_eq!((host[0], sums[0], sums[999]), (1, 1, 1000));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropped, a transfer waits"]
pub struct Transfer<T: Element> {
    /// The host's memory, until it is returned. It is leaked if the driver cannot say whether the copy is over.
    host: Option<PinnedBuffer<T>>,
    direction: Direction,
    end: Event,
}

impl<T: Element> Transfer<T> {
    /// Makes a transfer. `enqueue` receives the memory, and puts the copy on the stream. If it returns an error, there is no copy.
    pub(crate) fn begin(
        stream: &Stream,
        mut host: PinnedBuffer<T>,
        direction: Direction,
        enqueue: impl FnOnce(*mut u8) -> Result<()>,
    ) -> Result<Self> {
        enqueue(bytes_of_mut(&mut host).as_mut_ptr())?;
        match stream.record() {
            Ok(end) => Ok(Self { host: Some(host), direction, end }),
            Err(error) => {
                // The copy is under way, and no event marks its end.
                if stream.0.drain().is_err() {
                    mem::forget(host);
                }
                Err(error)
            }
        }
    }

    /// Waits until the copy is over, and returns the memory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Fault`](crate::Error::Fault) if an earlier kernel on the stream had a fault, and
    /// [`Error::InvalidBits`](crate::Error::InvalidBits) if a buffer of `bool` holds bytes that are not valid. If there is an error, the
    /// memory is dropped.
    pub fn wait(mut self) -> Result<PinnedBuffer<T>> {
        self.end.synchronize()?;
        let host = self.host.take().expect("it is given back once");
        if !T::ANY_BITS && self.direction == Direction::ToHost {
            check_bits::<T>(host.bytes())?;
        }
        Ok(host)
    }
}

impl<T: Element> Drop for Transfer<T> {
    fn drop(&mut self) {
        if self.host.is_some() && self.end.passed().is_err() {
            // The device is lost, or the driver cannot say whether the copy is over.
            mem::forget(self.host.take());
        }
    }
}
