//! What a process has to know to become a member of a group.

use std::time::Duration;

use super::environment;
use crate::device::{DEVICE_VARIABLE, Device, environment as variable};
use crate::{Error, Result};

/// Members of the largest group.
const MOST: usize = 1 << 20;

/// Who a process is among the members of a [`Group`](crate::Group), and where they meet.
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
    /// The member's number, from 0.
    pub rank: usize,
    /// How many members there are.
    pub size: usize,
    /// The member's number among those on its machine. The rank, unless a launcher says otherwise.
    pub local_rank: usize,
    /// Where the members meet: a host or an address of the machine of rank 0, and a port there that is free, such as `node1:29500`.
    ///
    /// Rank 0 listens there until all have come. By a name other than `localhost`, it listens at all addresses of its machine, of
    /// IPv6 and IPv4.
    pub address: String,
    /// How long a member waits for the others: to come in the first place, and in each call. 5 minutes unless set. The shortest among
    /// the members is that of the group.
    pub timeout: Duration,
    /// Whether members on GPUs compare each call before they enqueue it, which takes a message to rank 0 and back: then calls that differ
    /// are errors at once, and a member that does not come is named. The default in builds with debug assertions. Otherwise such
    /// calls end by the time-out, or not as they should. It is the same at all members. Members in the emulator always compare.
    pub checked: bool,
}

impl GroupOptions {
    /// Member `rank` of `size`, which meet at this address.
    #[must_use]
    pub fn new(rank: usize, size: usize, address: impl Into<String>) -> Self {
        let (address, timeout) = (address.into(), Duration::from_secs(300));
        Self { rank, size, local_rank: rank, address, timeout, checked: cfg!(debug_assertions) }
    }

    /// What the launcher of the process says in environment variables.
    ///
    /// | launcher | rank | size | local rank |
    /// |---|---|---|---|
    /// | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_RANK` |
    /// | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | `OMPI_COMM_WORLD_LOCAL_RANK` |
    /// | MPICH, Intel MPI | `PMI_RANK` | `PMI_SIZE` | `MPI_LOCALRANKID`, `SLURM_LOCALID` |
    /// | Slurm | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, `SLURM_NTASKS` | `SLURM_LOCALID` |
    ///
    /// The first launcher of the table counts whose rank is set. Where the members meet:
    ///
    /// 1. At `KERNEL_PRIMITIVES_GROUP`, such as `node1:29500`, if it is set.
    /// 2. At `MASTER_ADDR` and `MASTER_PORT`, which torchrun sets, and everybody may. If torchrun itself listens at the port
    ///    (`TORCHELASTIC_USE_AGENT_STORE` is `True`), at the next port.
    /// 3. What is missing of the two under Slurm: the first host of `SLURM_STEP_NODELIST` or `SLURM_JOB_NODELIST`, and a port from 15000 to 24999
    ///    that follows from `SLURM_JOB_ID` and `SLURM_STEP_ID`. The step's variables count if `srun` has started this process itself, and
    ///    not `mpirun`: if `SLURM_PROCID` is the rank, and the step has as many tasks as members.
    ///
    /// `KERNEL_PRIMITIVES_GROUP_TIMEOUT` is the time-out in seconds.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if no launcher has set a rank, and [`Error::Environment`] if a variable is missing or makes no sense.
    pub fn from_environment() -> Result<Self> {
        environment::options(variable)
    }

    /// The device of this process: a GPU by its local rank, or the emulator where there is no GPU.
    ///
    /// Processes that see fewer GPUs than there are members on the machine count from the first again: a launcher may show each of them its
    /// own. `KERNEL_PRIMITIVES_DEVICE` chooses as for [`Device::auto`], but `gpu` is that by the local rank, too.
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

    /// Refuses what no group has.
    pub(super) fn check(&self, call: &'static str) -> Result<()> {
        let refuse = |reason| Err(Error::Group { call, member: Some(self.rank), reason });
        if self.rank >= self.size {
            return refuse(format!("there is no rank {} in a group of {}", self.rank, self.size));
        }
        if self.size > MOST {
            return refuse(format!("a group has at most {MOST} members, and not {}", self.size));
        }
        if self.address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>() == Ok(0)) {
            return refuse(format!("{} has no port at which members can meet", self.address));
        }
        if self.timeout.is_zero() {
            return refuse("a time-out of nothing is over before anybody can come".into());
        }
        Ok(())
    }
}
