//! Groups of processes that compute together.
//!
//! | file | |
//! |---|---|
//! | `options.rs`, `environment.rs` | rank, size and address of a process: given, or from a launcher's environment variables |
//! | `link.rs` | how a member finds rank 0, and makes calls |
//! | `hub.rs`, `matching.rs` | the thread of rank 0 that connects members and matches their calls |
//! | `message.rs`, `socket.rs` | the messages between members, and the options of their connections |
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

/// A member of a group of processes or threads that compute together. It corresponds to a communicator of NCCL and a process group of
/// PyTorch.
///
/// Each member has a rank, from 0, and a device. All members make the same calls in the same order, each on a stream of its device:
/// [`all_reduce`](Self::all_reduce), [`all_gather`](Self::all_gather), [`reduce_scatter`](Self::reduce_scatter),
/// [`broadcast`](Self::broadcast), [`all_to_all`](Self::all_to_all), [`barrier`](Self::barrier). Some of them exchange data by
/// [`send`](Self::send), [`recv`](Self::recv) and [`send_recv`](Self::send_recv).
///
/// On GPUs, NCCL does the work, and a call only enqueues it: later work on the stream finds the result. In the emulator, data goes through
/// rank 0 over TCP, and a call returns when its result is there. So a program for several machines can run on one machine, as processes or
/// as threads:
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
/// A failure between members is [`Error::Group`] at all members. The causes are: calls that differ in kind, length or element type, a
/// member whose process ends or whose thread panics, and a member that does not make a call within the [time-out](GroupOptions::timeout).
/// After that, each call of the group returns the same failure. Create a new group to go on.
///
/// On GPUs, a call may return before it fails. Then the next call that waits for its stream returns the failure, like a
/// [fault](Stream#faults) of a kernel: [`Stream::synchronize`], or a copy of the call's result to the host. Do not use the result of the
/// call. If members are threads of one process, the kernels of other members may write into the buffers of a failed call until all members
/// have the error: keep the buffers until then. If a call has waited inside NCCL, end the process after the error: another thread has
/// aborted the call, and this is safe only if the version of NCCL makes it so. The time-out of a call starts when the stream reaches the
/// call. Calls that differ are detected if [`checked`](GroupOptions::checked) is set.
///
/// Some mistakes concern one member only, such as a buffer of the wrong length. They are errors at this member, and the group stays usable.
///
/// # The end
///
/// A member that is dropped leaves the group. If another member waits for it in a call, this is an error. Rank 0 serves all other members
/// while its process runs. If the work of rank 0 may end first, make a [`barrier`](Self::barrier) the last call of all members. On a GPU,
/// the drop of a member waits for its calls that are under way, and for the work before them on their streams.
pub struct Group {
    rank: usize,
    size: usize,
    device: Device,
    /// The engine of a GPU. It must be dropped before the link.
    #[cfg(feature = "cuda")]
    engine: Option<nccl::Engine>,
    link: Arc<Link>,
}

impl Group {
    /// Connects to the other members. Each member calls this function with the same size and address.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if the rank is not less than the size, if the address is not a host and a port, or if rank 0 cannot listen
    /// there. Within the time-out, all members that have come get the error if a member does not come, if two members have the same rank or
    /// the same GPU, or if the sizes differ. A member that does not find rank 0 gets the error after its time-out. On GPUs, the error also
    /// means that a member cannot open NCCL, or that NCCL does not connect the members.
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

    /// Creates the group that the launcher of the process describes, on the device of the process: see [`GroupOptions::from_environment`]
    /// and [`GroupOptions::device`].
    ///
    /// # Errors
    ///
    /// Returns the errors of these two functions and of [`new`](Self::new).
    pub fn from_environment() -> Result<Self> {
        let options = GroupOptions::from_environment()?;
        Self::new(&options.device()?, &options)
    }

    /// The member's rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of members.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The member's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Checks the arguments of a call. In the emulator, also waits for the earlier work on the stream.
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

    /// Refuses a rank that does not exist.
    fn check_rank(&self, call: &'static str, rank: usize) -> Result<()> {
        if rank < self.size {
            return Ok(());
        }
        let reason = format!("there is no rank {rank} in a group of {}", self.size);
        Err(Error::Group { call, member: Some(self.rank), reason })
    }

    /// Makes a call whose bytes take a route, and returns the bytes that arrive.
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
