//! The options with which a process becomes a member of a group.

use std::time::Duration;

use super::environment::{self, is_place};
use crate::device::{DEVICE_VARIABLE, Device, environment as variable};
use crate::{Error, Result};

/// The most members of a group.
const MOST: usize = 1 << 20;

/// The rank of a process in a [`Group`](crate::Group), and where the members meet.
///
/// ```
/// use std::time::Duration;
/// use kernel_primitives::GroupOptions;
///
/// let mut options = GroupOptions::new(1, 4, "node1:29500");
/// options.timeout = Duration::from_secs(20);
/// assert_eq!((options.rank, options.size, options.local_rank), (1, 4, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupOptions {
    /// The member's rank, from 0.
    pub rank: usize,
    /// The number of members.
    pub size: usize,
    /// The member's number among the members on its machine. It is the rank, unless a launcher sets it.
    pub local_rank: usize,
    /// Where the members meet: a host name or an address of the machine of rank 0, and a free port of this machine, such as `node1:29500`.
    ///
    /// Rank 0 listens there until all members have come. If the host is a name other than `localhost`, rank 0 listens at all IPv6 and IPv4
    /// addresses of its machine.
    pub address: String,
    /// How long a member waits for the other members: when the group is created, and in each call. The default is 5 minutes. The group uses
    /// the shortest time-out of its members. In the emulator, the data of a call must also reach rank 0 within this time, and each member
    /// must take its result within this time.
    pub timeout: Duration,
    /// Whether members on GPUs compare each call before they enqueue it, which takes a message to rank 0 and back. If so, calls that differ
    /// are errors at once, and the error names a member that does not come. If not, such calls end after the time-out, or give wrong
    /// results. It is set by default in builds with debug assertions. All members must have the same value. Members in the emulator always
    /// compare their calls.
    pub checked: bool,
}

impl GroupOptions {
    /// The options of member `rank` of `size` members that meet at this address.
    #[must_use]
    pub fn new(rank: usize, size: usize, address: impl Into<String>) -> Self {
        let (address, timeout) = (address.into(), Duration::from_secs(300));
        Self { rank, size, local_rank: rank, address, timeout, checked: cfg!(debug_assertions) }
    }

    /// Reads the options that the launcher of the process has set in environment variables.
    ///
    /// | launcher | rank | size | local rank |
    /// |---|---|---|---|
    /// | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_RANK` |
    /// | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | `OMPI_COMM_WORLD_LOCAL_RANK` |
    /// | MPICH, Intel MPI | `PMI_RANK` | `PMI_SIZE` | `MPI_LOCALRANKID`, `SLURM_LOCALID` |
    /// | Slurm | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, `SLURM_NTASKS` | `SLURM_LOCALID` |
    ///
    /// The first launcher of the table whose rank is set counts. The members meet
    ///
    /// 1. at `KERNEL_PRIMITIVES_GROUP`, such as `node1:29500`, if it is set;
    /// 2. otherwise at `MASTER_ADDR` and `MASTER_PORT`, which torchrun or the user sets. If torchrun itself listens at the port
    ///    (`TORCHELASTIC_USE_AGENT_STORE` is `True`), the members use the next port;
    /// 3. under Slurm, if one of these two is missing: at the first host of `SLURM_STEP_NODELIST` or `SLURM_JOB_NODELIST`, and at a port
    ///    from 15000 to 24999 that is computed from `SLURM_JOB_ID` and `SLURM_STEP_ID`. The step's variables count only if `srun` has
    ///    started this process itself, and not `mpirun`: if `SLURM_PROCID` is the rank, and the step has as many tasks as the group has
    ///    members.
    ///
    /// `KERNEL_PRIMITIVES_GROUP_TIMEOUT` is the time-out in seconds.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if no launcher has set a rank, and [`Error::Environment`] if a variable is missing or invalid.
    pub fn from_environment() -> Result<Self> {
        environment::options(variable)
    }

    /// Opens the device of this process: the GPU with the number of the local rank, or the emulator if there is no GPU.
    ///
    /// If a process sees fewer GPUs than its local rank needs, the numbers start at the first GPU again: a launcher may show each process
    /// only its own GPU. `KERNEL_PRIMITIVES_DEVICE` chooses as for [`Device::auto`], except that `gpu` also means the GPU of the local
    /// rank.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Device::auto`].
    pub fn device(&self) -> Result<Device> {
        match (Device::gpu_count(), &*variable(DEVICE_VARIABLE)?) {
            (count @ 1.., "" | "auto" | "gpu") => Device::gpu_at(self.local_rank % count),
            _ => Device::auto(),
        }
    }

    /// Refuses invalid options.
    pub(super) fn check(&self, call: &'static str) -> Result<()> {
        let refuse = |reason| Err(Error::Group { call, member: Some(self.rank), reason });
        if self.rank >= self.size {
            return refuse(format!("there is no rank {} in a group of {}", self.rank, self.size));
        }
        if self.size > MOST {
            return refuse(format!("a group has at most {MOST} members, and not {}", self.size));
        }
        if !is_place(&self.address) {
            let reason =
                format!("{} is not a host and a port at which members can meet, such as `node1:29500`", self.address);
            return refuse(reason);
        }
        if self.timeout.is_zero() {
            return refuse("a time-out of nothing is over before anybody can come".into());
        }
        Ok(())
    }
}
