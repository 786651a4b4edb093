//! Groups of processes that compute together.
//!
//! | file | |
//! |---|---|
//! | `options.rs`, `environment.rs` | who a process is: given, or by a launcher's environment variables |
//! | `link.rs` | how a member finds rank 0, and calls |
//! | `hub.rs`, `matching.rs` | the thread of rank 0 that brings members and their calls together |
//! | `message.rs`, `socket.rs` | what goes over the connections, and what is asked of them |
//! | `gpu.rs` | which GPU a member has |
//! | `collectives.rs`, `number.rs` | the calls, and what reductions compute |
//! | `nccl.rs` | a member on a GPU |
//! | `devices.rs`, `in_process.rs` | the devices of one process, and NCCL for its GPUs |

mod collectives;
mod devices;
mod environment;
mod gpu;
mod hub;
#[cfg(feature = "cuda")]
mod in_process;
mod link;
mod matching;
mod message;
#[cfg(feature = "cuda")]
mod nccl;
mod number;
mod options;
mod socket;

use std::fmt;
use std::sync::Arc;

pub use self::devices::SplitGroup;
use self::gpu::Gpu;
use self::link::{Link, Meeting};
use self::message::{Failure, LONGEST, Request, Route};
pub use self::number::{GroupNumber, ReduceOp};
pub use self::options::GroupOptions;
use crate::device::Device;
use crate::memory::allocation::Allocation;
use crate::stream::Stream;
use crate::{Error, Result};

/// A member of a group of processes, or of threads, that compute together: NCCL's communicator, PyTorch's process group.
///
/// Each member has a rank, from 0, and a device. All members make the same calls in the same order, each on a stream of its device:
/// [`all_reduce`](Self::all_reduce), [`all_gather`](Self::all_gather), [`reduce_scatter`](Self::reduce_scatter),
/// [`broadcast`](Self::broadcast), [`all_to_all`](Self::all_to_all), [`barrier`](Self::barrier). Some of them exchange data by
/// [`send`](Self::send), [`recv`](Self::recv) and [`send_recv`](Self::send_recv).
///
/// On GPUs, NCCL does the work, and a call only enqueues it: what comes later on the stream finds the result. In the emulator,
/// data goes through rank 0 by TCP, and a call returns when it is over. So programs for several machines run on one,
/// as processes or as threads:
///
/// ```
/// use std::net::TcpListener;
/// use kernel_primitives::{Device, Group, GroupOptions, ReduceOp, Result};
///
/// fn member(rank: usize, address: &str) -> Result<Vec<f32>> {
///     let group = Group::new(&Device::emulator(), &GroupOptions::new(rank, 2, address))?;
///     let stream = group.device().stream()?;
///     let mut x = stream.buffer_from(&[1.0, group.rank() as f32])?;
///     group.all_reduce(&stream, &mut x, ReduceOp::Sum)?;
///     x.to_vec()
/// }
///
/// # fn main() -> Result<()> {
/// // A port that is free. Processes agree on one.
/// let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
/// let address = free.to_string();
/// std::thread::scope(|scope| {
///     let other = scope.spawn(|| member(1, &address));
///     assert_eq!(member(0, &address)?, [2.0, 1.0]);
///     assert_eq!(other.join().expect("no panic")?, [2.0, 1.0]);
///     Ok(())
/// })
/// # }
/// ```
///
/// # Failures
///
/// What is wrong between the members is [`Error::Group`] at all of them: calls that differ in kind, length or element type, a member
/// whose process ends or whose thread panics, a member that does not come to a call within the
/// [time-out](GroupOptions::timeout). After that each call of the group returns the same failure. Make a new group to go on.
///
/// On GPUs, a call may return before it fails. Then the next call that waits for its stream returns the failure, as a
/// [fault](Stream#faults) of a kernel: [`Stream::synchronize`], or a copy to the host of what the call should have written. What the call writes is
/// to be thrown away. If members are threads of one process, the others' kernels may write into its buffers until all of them have the
/// error: keep the buffers until then. After a call that has waited inside NCCL, end the process: its abort from another thread is
/// safe only as far as NCCL makes it so. The time-out of a call counts from when the stream has come to it. Calls that differ are found if
/// [`checked`](GroupOptions::checked) is set.
///
/// A mistake that a member can see alone, such as a buffer of the wrong length, is an error at this member, and the group is as before.
///
/// # The end
///
/// A member that is dropped leaves the group. A call that waits for it is an error. Rank 0 brings the others together as long as its process
/// runs: if its work may end first, let the last call of all be a [`barrier`](Self::barrier). On a GPU, a member that is dropped waits for its
/// calls that are under way, and for what their streams have before them.
pub struct Group {
    rank: usize,
    size: usize,
    device: Device,
    /// Of a GPU. Goes before the link.
    #[cfg(feature = "cuda")]
    engine: Option<nccl::Engine>,
    link: Arc<Link>,
}

impl Group {
    /// Meets the other members, each of which calls this with the same size and address.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if the rank is not less than the size, if rank 0 cannot listen at the address, and within the time-out, at all
    /// members that have come: if one does not come, if two have one rank or one GPU, and if the sizes differ. A member that cannot
    /// find rank 0 returns it when its time-out is over. On GPUs, also if NCCL cannot be opened at a member, or does not connect them.
    pub fn new(device: &Device, options: &GroupOptions) -> Result<Self> {
        let call = "`Group::new`";
        options.check(call)?;
        let GroupOptions { rank, size, address, timeout, .. } = options;
        let (gpu, timeout) = (Gpu::of(device), LONGEST.min(*timeout));
        let meeting = Meeting { rank: *rank, size: *size, address, gpu, timeout };
        let link = Arc::new(meeting.meet().map_err(|failure| failed(call, failure))?);
        Ok(Self {
            rank: *rank,
            size: *size,
            device: device.clone(),
            #[cfg(feature = "cuda")]
            engine: match device.is_gpu() {
                true => Some(nccl::Engine::new(device, options, &link).map_err(|failure| failed(call, failure))?),
                false => None,
            },
            link,
        })
    }

    /// The group that the launcher of the process has in mind, on the device of the process: as [`GroupOptions::from_environment`] and
    /// [`GroupOptions::device`] say.
    ///
    /// # Errors
    ///
    /// As these two and [`new`](Self::new).
    pub fn from_environment() -> Result<Self> {
        let options = GroupOptions::from_environment()?;
        Self::new(&options.device()?, &options)
    }

    /// The member's number, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The member's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Checks what a call is given. In the emulator, it waits until the stream has come to it.
    fn begin(&self, call: &'static str, stream: &Stream, arguments: &[(&str, &Allocation)]) -> Result<()> {
        if stream.is_capturing() {
            let advice = "a graph is of one process: call it before its launch, or after it";
            return Err(Error::Capture { call, advice });
        }
        let devices = arguments.iter().map(|(argument, allocation)| (*argument, allocation.device()));
        for (argument, device) in devices.chain([("the group", &self.device)]) {
            if !device.same_as(stream.device()) {
                return Err(Error::WrongDevice {
                    kernel: call.trim_matches('`').into(),
                    argument: argument.into(),
                    stream: stream.device().to_string(),
                    buffer: device.to_string(),
                });
            }
        }
        if self.device.is_gpu() { stream.0.check_fault() } else { stream.0.synchronize() }
    }

    /// Refuses a rank that there is not.
    fn check_rank(&self, call: &'static str, rank: usize) -> Result<()> {
        if rank < self.size {
            return Ok(());
        }
        let reason = format!("there is no rank {rank} in a group of {}", self.size);
        Err(Error::Group { call, member: Some(self.rank), reason })
    }

    /// Makes a call whose bytes go by a route, and returns those that come.
    fn request(&self, call: &'static str, route: Route, what: [String; 2], bytes: &[u8]) -> Result<Vec<u8>> {
        let [sent, expected] = what;
        let request = Request { route, call: sent, expects: expected, bytes: bytes.to_vec() };
        self.link.call(request).map_err(|failure| failed(call, failure))
    }
}

fn failed(call: &'static str, failure: Failure) -> Error {
    let Failure { reason, member } = failure;
    Error::Group { call, member, reason }
}

/// `Group(rank 1 of 4 on the emulator)`.
impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(rank {} of {} on {})", self.rank, self.size, self.device)
    }
}
