//! The environment variables of launchers.

use std::net::Ipv6Addr;
use std::time::Duration;

use super::options::GroupOptions;
use crate::device::whole_number;
use crate::{Error, Result};

/// Where the members meet.
const ADDRESS: &str = "KERNEL_PRIMITIVES_GROUP";

/// The time-out, in seconds.
const TIMEOUT: &str = "KERNEL_PRIMITIVES_GROUP_TIMEOUT";

/// The variables of a launcher. If there are several for one value, the first that is set counts.
struct Launcher {
    rank: &'static str,
    size: &'static [&'static str],
    local_rank: &'static [&'static str],
    /// Whether its processes may be the tasks of a Slurm step.
    is_of_step: bool,
}

/// The number of tasks of a Slurm step.
const STEP_SIZE: [&str; 2] = ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];

/// MPI comes before Slurm: inside a Slurm allocation, all processes that `mpirun` starts have the Slurm variables of `mpirun`'s own
/// process.
const LAUNCHERS: [Launcher; 4] = [
    Launcher { rank: "RANK", size: &["WORLD_SIZE"], local_rank: &["LOCAL_RANK"], is_of_step: true },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        size: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        is_of_step: false,
    },
    Launcher {
        rank: "PMI_RANK",
        size: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "SLURM_LOCALID"],
        is_of_step: true,
    },
    Launcher { rank: "SLURM_PROCID", size: &STEP_SIZE, local_rank: &["SLURM_LOCALID"], is_of_step: true },
];

fn wrong(variable: &'static str, value: &str, expected: impl Into<String>) -> Error {
    Error::Environment { variable, value: value.into(), expected: expected.into() }
}

/// Whether a text is a host and a port from 1 on. The end of an IPv6 address is no port.
pub(super) fn is_place(address: &str) -> bool {
    let parts = address.rsplit_once(':').filter(|_| address.parse::<Ipv6Addr>().is_err());
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// The environment variables of the process. A variable that is not set is empty.
struct Variables<F>(F);

impl<F: Fn(&'static str) -> Result<String>> Variables<F> {
    fn text(&self, variable: &'static str) -> Result<Option<String>> {
        Ok(Some((self.0)(variable)?.trim().to_owned()).filter(|value| !value.is_empty()))
    }

    fn number(&self, variable: &'static str) -> Result<Option<usize>> {
        let Some(value) = self.text(variable)? else { return Ok(None) };
        whole_number(&value).map(Some).ok_or_else(|| wrong(variable, &value, "it is a number from 0"))
    }

    /// The first of the variables that is set, with its number.
    fn first(&self, variables: &'static [&'static str]) -> Result<Option<(&'static str, usize)>> {
        for variable in variables {
            if let Some(number) = self.number(variable)? {
                return Ok(Some((variable, number)));
            }
        }
        Ok(None)
    }

    fn first_number(&self, variables: &'static [&'static str]) -> Result<Option<usize>> {
        Ok(self.first(variables)?.map(|(_, number)| number))
    }

    fn port(&self, variable: &'static str) -> Result<Option<u16>> {
        let Some(number) = self.number(variable)? else { return Ok(None) };
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        port.map(Some).ok_or_else(|| wrong(variable, &number.to_string(), "it is a port, from 1 to 65535"))
    }

    /// Whether this process is the task with this number in a Slurm step of this size. Otherwise the step's variables belong to a process
    /// that `mpirun` has started on this machine with `srun`, and differ between machines.
    fn is_in_step(&self, rank: usize, size: usize) -> Result<bool> {
        Ok(self.number("SLURM_PROCID")? == Some(rank) && self.first_number(&STEP_SIZE)? == Some(size))
    }

    /// Where the members meet.
    fn address(&self, is_in_step: bool) -> Result<String> {
        if let Some(address) = self.text(ADDRESS)? {
            let expected = "it is a host and a port, such as `node1:29500` or `[fe80::1]:29500`";
            return if is_place(&address) { Ok(address) } else { Err(wrong(ADDRESS, &address, expected)) };
        }
        let missing = |variable| {
            let expected = format!("it is where the members meet, unless {ADDRESS} says that, such as `node1:29500`");
            move || wrong(variable, "", expected)
        };
        let (host, port) = (self.text("MASTER_ADDR")?, self.port("MASTER_PORT")?);
        let host = match host {
            Some(host) => host,
            None => self.slurm_host(is_in_step)?.ok_or_else(missing("MASTER_ADDR"))?,
        };
        let port = match port {
            Some(port) if self.text("TORCHELASTIC_USE_AGENT_STORE")?.as_deref() == Some("True") => port
                .checked_add(1)
                .ok_or_else(|| wrong("MASTER_PORT", "65535", "torchrun has it: there is no next one"))?,
            Some(port) => port,
            None => self.slurm_port(is_in_step)?.ok_or_else(missing("MASTER_PORT"))?,
        };
        Ok(if host.contains(':') && !host.starts_with('[') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        })
    }

    fn slurm_host(&self, is_in_step: bool) -> Result<Option<String>> {
        let all = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"];
        for variable in all.into_iter().skip(usize::from(!is_in_step)) {
            if let Some(list) = self.text(variable)? {
                let expected = "it is a list of hosts, such as `node[1-3,7]`";
                return first_host(&list).map(Some).ok_or_else(|| wrong(variable, &list, expected));
            }
        }
        Ok(None)
    }

    /// A port that all processes of a step or a job compute, and that another job on the machine hardly uses. It is below the ports that
    /// systems assign.
    fn slurm_port(&self, is_in_step: bool) -> Result<Option<u16>> {
        let Some(job) = self.number("SLURM_JOB_ID")? else { return Ok(None) };
        // The step of a batch script has no number.
        let step = self.text("SLURM_STEP_ID")?.filter(|_| is_in_step).and_then(|step| whole_number(&step)).unwrap_or(0);
        let spread = (job % 10_000 * 31 + step % 10_000) % 10_000;
        Ok(Some(15_000 + spread as u16))
    }
}

/// The first host of a list as Slurm writes it: `node[01-03,07],other`, `rack[1-2]node[5,6]`.
fn first_host(list: &str) -> Option<String> {
    let (mut host, mut rest) = (String::new(), list);
    loop {
        let end = rest.find(['[', ',']).unwrap_or(rest.len());
        host.push_str(&rest[..end]);
        match rest[end..].strip_prefix('[') {
            None => break,
            Some(inside) => {
                let (ranges, after) = inside.split_once(']')?;
                let first = ranges.split([',', '-']).next().filter(|first| !first.is_empty())?;
                host.push_str(first);
                rest = after;
            }
        }
    }
    Some(host).filter(|host| !host.is_empty())
}

/// The options that the variables describe. `get` reads a variable.
pub(super) fn options(get: impl Fn(&'static str) -> Result<String>) -> Result<GroupOptions> {
    let variables = Variables(get);
    for Launcher { rank: variable, size: sizes, local_rank, is_of_step } in &LAUNCHERS {
        let Some(rank) = variables.number(variable)? else { continue };
        let size = variables.first(sizes)?;
        let (of_size, size) =
            size.ok_or_else(|| wrong(sizes[0], "", format!("{variable} is set, so it is the number of processes")))?;
        if rank >= size {
            return Err(wrong(variable, &rank.to_string(), format!("it is less than the {size} of {of_size}")));
        }
        let is_in_step = *is_of_step && variables.is_in_step(rank, size)?;
        let mut options = GroupOptions::new(rank, size, variables.address(is_in_step)?);
        options.local_rank = variables.first_number(local_rank)?.unwrap_or(rank);
        if let Some(seconds) = variables.number(TIMEOUT)? {
            if seconds == 0 {
                return Err(wrong(TIMEOUT, "0", "it is a number of seconds from 1"));
            }
            options.timeout = Duration::from_secs(seconds as u64);
        }
        return Ok(options);
    }
    let variables: Vec<&str> = LAUNCHERS.iter().map(|launcher| launcher.rank).collect();
    let reason = format!(
        "no launcher has started this process: none of {} is set. Start it by torchrun, srun or mpirun, or use `GroupOptions::new`",
        variables.join(", ")
    );
    Err(Error::Group { call: "`GroupOptions::from_environment`", member: None, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Result<GroupOptions> {
        options(|variable| {
            let value = set.iter().find(|(name, _)| *name == variable).map(|(_, value)| *value);
            Ok(value.unwrap_or_default().to_owned())
        })
    }

    #[track_caller]
    fn is(set: &[(&str, &str)], rank: usize, size: usize, local_rank: usize, address: &str) {
        let options = of(set).expect("options");
        let expected = (rank, size, local_rank, address);
        assert_eq!((options.rank, options.size, options.local_rank, &*options.address), expected, "{set:?}");
    }

    #[test]
    fn torchrun_sets_all() {
        let base = [("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1"), ("MASTER_ADDR", "node1")];
        let with = |more: &[(&'static str, &'static str)]| [&base[..], more].concat();
        is(&with(&[("MASTER_PORT", "29500")]), 3, 8, 1, "node1:29500");
        is(&with(&[("MASTER_PORT", "29500"), ("TORCHELASTIC_USE_AGENT_STORE", "True")]), 3, 8, 1, "node1:29501");
        is(&with(&[("MASTER_PORT", "29500"), ("TORCHELASTIC_USE_AGENT_STORE", "False")]), 3, 8, 1, "node1:29500");
        is(&with(&[("MASTER_PORT", "1"), ("KERNEL_PRIMITIVES_GROUP", "b:2")]), 3, 8, 1, "b:2");
        let timeout = of(&with(&[("MASTER_PORT", "1"), (TIMEOUT, "7")])).expect("options").timeout;
        assert_eq!(timeout, Duration::from_secs(7));
        let version6 = [("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "fe80::1"), ("MASTER_PORT", "1")];
        is(&version6, 0, 1, 0, "[fe80::1]:1");
    }

    #[test]
    fn mpi_comes_before_slurm() {
        let slurm = [
            ("SLURM_PROCID", "5"),
            ("SLURM_NTASKS", "6"),
            ("SLURM_LOCALID", "2"),
            ("SLURM_STEP_NODELIST", "gpu[07-09,12]"),
            ("SLURM_JOB_NODELIST", "gpu[06-12]"),
            ("SLURM_JOB_ID", "123"),
            ("SLURM_STEP_ID", "4"),
        ];
        is(&slurm, 5, 6, 2, "gpu07:18817");
        let with = |more: &[(&'static str, &'static str)]| [&slurm[..], more].concat();
        is(&with(&[("MASTER_PORT", "9"), ("SLURM_STEP_NUM_TASKS", "7")]), 5, 7, 2, "gpu07:9");
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("MASTER_ADDR", "a"),
        ];
        is(&with(&open_mpi), 1, 2, 0, "a:18813");
        // The step's host and number count for who is in it.
        is(&with(&open_mpi[..3]), 1, 2, 0, "gpu06:18813");
        is(&with(&[("PMI_RANK", "0"), ("PMI_SIZE", "3")]), 0, 3, 2, "gpu06:18813");
        is(&with(&[("PMI_RANK", "5"), ("PMI_SIZE", "6")]), 5, 6, 2, "gpu07:18817");
        is(&[("PMI_RANK", "1"), ("PMI_SIZE", "3"), ("KERNEL_PRIMITIVES_GROUP", "h:1")], 1, 3, 1, "h:1");
    }

    #[test]
    fn hosts_come_from_lists() {
        for (list, first) in [
            ("a", "a"),
            ("a,b", "a"),
            ("n[3]", "n3"),
            ("n[03-05],m", "n03"),
            ("n[2,4-5].x,m", "n2.x"),
            ("r[1-2]n[7,8]", "r1n7"),
        ] {
            assert_eq!(first_host(list).as_deref(), Some(first), "{list}");
        }
        for wrong in ["", ",", "n[", "n[]", "n[1"] {
            assert_eq!(first_host(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let group = |more: &[(&'static str, &'static str)]| [&[("RANK", "0"), ("WORLD_SIZE", "2")], more].concat();
        let (no_port, port_0) = (group(&[(ADDRESS, "2001:db8::5000")]), group(&[(ADDRESS, "a:0")]));
        let no_time = group(&[(ADDRESS, "a:1"), (TIMEOUT, "0")]);
        let cases: [(&[(&str, &str)], &str); 12] = [
            (&no_port[..], ADDRESS),
            (&port_0, ADDRESS),
            (&no_time, TIMEOUT),
            (&[("RANK", "0")], "WORLD_SIZE"),
            (&[("RANK", "one"), ("WORLD_SIZE", "2")], "RANK"),
            (&[("RANK", "-1"), ("WORLD_SIZE", "2")], "RANK"),
            (&[("RANK", "2"), ("WORLD_SIZE", "2")], "RANK"),
            (&[("RANK", "0"), ("WORLD_SIZE", "2")], "MASTER_ADDR"),
            (&[("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a")], "MASTER_PORT"),
            (&[("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "65536")], "MASTER_PORT"),
            (&[("RANK", "0"), ("WORLD_SIZE", "2"), ("KERNEL_PRIMITIVES_GROUP", "a")], "KERNEL_PRIMITIVES_GROUP"),
            (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_JOB_NODELIST", "n[")], "SLURM_JOB_NODELIST"),
        ];
        for (set, variable) in cases {
            match of(set) {
                Err(Error::Environment { variable: named, .. }) => assert_eq!(named, variable, "{set:?}"),
                other => panic!("{set:?}: {other:?}"),
            }
        }
        for size in STEP_SIZE {
            let error = of(&[("SLURM_PROCID", "2"), (size, "2")]).expect_err("no such rank").to_string();
            assert!(error.contains(&format!("the 2 of {size}")), "{error}");
        }
        let nothing = of(&[]).expect_err("no launcher").to_string();
        assert!(nothing.contains("none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID is set"), "{nothing}");
    }
}
