//! A member's connection to the hub.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::gpu::Gpu;
use super::hub;
use super::message::{Answer, Failure, Hello, LONGEST, Request, ToHub, Until, is_late, read_answer};
use super::socket;

/// How long a member pauses before it tries to reach rank 0 again.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a member waits for the hub's message after the time-out.
const GRACE: Duration = Duration::from_secs(2);

/// How long a member tries one address of a host before it tries the next one.
const ATTEMPT: Duration = Duration::from_secs(10);

/// The most bytes of the hub's answer when members meet. A longer answer comes from another program.
const MOST: u64 = 1 << 20;

/// A member's connection to the hub.
pub(super) struct Link {
    stream: TcpStream,
    /// The time-out of a call, as the hub has told it.
    timeout: Duration,
    /// The longest time until the hub's answer begins, and between its parts.
    patience: Duration,
    /// The failure after which there are no more calls. The thread that reads the hub's messages holds the lock, from the call to the
    /// answer.
    failure: Mutex<Option<Failure>>,
    /// The thread that writes holds the lock.
    writing: Mutex<()>,
}

/// How the members of a group find each other.
pub(super) struct Meeting<'a> {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) address: &'a str,
    pub(super) gpu: Option<Gpu>,
    pub(super) timeout: Duration,
}

impl Meeting<'_> {
    /// Meets the other members. Rank 0 starts the hub first.
    pub(super) fn meet(&self) -> Result<Link, Failure> {
        let until = Instant::now() + self.timeout;
        if self.rank == 0 {
            self.open_until(until).map_err(|error| {
                let hint = match error.kind() {
                    io::ErrorKind::AddrInUse => "; another member has rank 0 too, or another program listens there",
                    _ => "",
                };
                Failure::of(0, format!("rank 0 cannot listen at {}: {error}{hint}", self.address))
            })?;
        }
        // The reason why there is no answer so far.
        let mut cause;
        loop {
            match self.try_meet(until) {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(failure)) => return Err(failure),
                Err(error) => cause = error,
            }
            if Instant::now() + PAUSE >= until {
                break;
            }
            thread::sleep(PAUSE);
        }
        let Self { rank, size, address, timeout, .. } = self;
        let reason = format!(
            "rank 0 of {size} did not answer rank {rank} at {address} within {timeout:?}: {cause}; it is not there, or its group is complete \
             without this process"
        );
        Err(Failure::of(0, reason))
    }

    /// Starts the hub. If a hub of this process still has the address for a group that has failed, it waits.
    fn open_until(&self, until: Instant) -> io::Result<()> {
        loop {
            let port = self.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            let lingers = port.is_some_and(hub::lingers);
            match self.open() {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && lingers && Instant::now() < until => {
                    thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }

    /// Starts the hub at the address where the other members look for it.
    fn open(&self) -> io::Result<()> {
        let listeners = match self.address.rsplit_once(':') {
            // On this machine, the name may stand for another address than on other machines. So the hub listens at all addresses of the
            // machine.
            Some((host, port)) if is_name(host) => {
                let port = port.parse().map_err(|_| io::Error::other("the port is no number"))?;
                everywhere(port)?
            }
            _ => vec![TcpListener::bind(self.address)?],
        };
        hub::serve(listeners, self.size, self.timeout)
    }

    /// Tries to meet. The outer error means that no hub has answered.
    fn try_meet(&self, until: Instant) -> io::Result<Result<Link, Failure>> {
        let mut result = Err(io::Error::other("the address has no host"));
        for address in self.address.to_socket_addrs()? {
            result = self.try_address(address, until);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn try_address(&self, address: SocketAddr, until: Instant) -> io::Result<Result<Link, Failure>> {
        let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&address, left().min(ATTEMPT))?;
        if stream.local_addr()? == stream.peer_addr()? {
            return Err(io::Error::other("nobody listens there, and the connection has met itself"));
        }
        stream.set_nodelay(true)?;
        socket::keep_alive(&stream);
        let &Self { rank, size, gpu, timeout, .. } = self;
        let hello = Hello { rank, size, gpu, patience: left(), timeout };
        hello.write(&mut Until(&stream, until))?;
        Ok(read_answer(&mut Until(&stream, until + GRACE).take(MOST))?.map(|timeout| {
            let timeout = timeout
                .try_into()
                .map_or(self.timeout, |bytes| LONGEST.min(Duration::from_millis(u64::from_le_bytes(bytes))));
            // The hub is in the process of rank 0. It answers rank 0 last, and waits for members that do not read.
            let patience = GRACE + if rank == 0 { timeout * 2 } else { timeout };
            Link { stream, timeout, patience, failure: Mutex::default(), writing: Mutex::default() }
        }))
    }
}

/// Listens at all addresses of this machine. On most systems, an IPv6 socket also has the IPv4 addresses, and no second socket can have
/// them. Some systems keep the two apart.
fn everywhere(port: u16) -> io::Result<Vec<TcpListener>> {
    let first = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).ok();
    match (first, TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))) {
        (first, Ok(second)) => Ok(first.into_iter().chain([second]).collect()),
        (Some(first), Err(_)) => Ok(vec![first]),
        (None, Err(error)) => Err(error),
    }
}

/// Whether this is a host name that may stand for another address on other machines.
fn is_name(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host != "localhost" && host.parse::<std::net::IpAddr>().is_err()
}

impl Link {
    fn write(&self, message: &ToHub, until: Instant) -> io::Result<()> {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        message.write(&mut Until(&self.stream, until))
    }

    /// Makes a call, and waits for its end. After a failure, calls return this failure.
    pub(super) fn call(&self, request: Request) -> Answer {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &*failure {
            return Err(failure.clone());
        }
        let written = self.write(&ToHub::Call(request), Instant::now() + self.patience).err();
        // The hub's report of a failure can be read even if the hub takes no more calls. It has come, or comes soon.
        let patience = if written.is_some() { GRACE } else { self.patience };
        let answer = self.read(written, patience);
        if let Err(reason) = &answer {
            *failure = Some(reason.clone());
        }
        answer
    }

    /// The time-out of a call.
    #[cfg(feature = "cuda")]
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The failure that the hub has reported, if there is one. While a call is under way, the call reads it.
    #[cfg(feature = "cuda")]
    pub(super) fn failure(&self) -> Option<Failure> {
        let mut failure = self.failure.try_lock().ok()?;
        if failure.is_none() && socket::has_come(&self.stream) {
            // Without a call, the hub sends nothing but a failure.
            *failure = self.read(None, GRACE).err();
        }
        failure.clone()
    }

    /// Tells the other members why this member cannot go on. The hub sends the failure to this member too.
    #[cfg(feature = "cuda")]
    pub(super) fn fail(&self, failure: &Failure) {
        // If the message cannot be sent, the other members find that this member is gone.
        if self.write(&ToHub::Fail(failure.reason.clone()), Instant::now() + GRACE).is_err() {
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Reads the hub's answer, which may be long: `patience` is for each wait, and not for the whole. The caller holds the lock for
    /// reading. `written` is the error of its message, if there was one.
    fn read(&self, written: Option<io::Error>, patience: Duration) -> Answer {
        let answer = self.stream.set_read_timeout(Some(patience)).and_then(|()| read_answer(&mut &self.stream));
        answer.unwrap_or_else(|error| {
            let error = written.unwrap_or(error);
            let reason = match is_late(&error) {
                true => format!("rank 0 did not answer within {:?}", self.timeout),
                false => format!("rank 0 is gone, its process has ended: {error}"),
            };
            Err(Failure::of(0, reason))
        })
    }
}

impl Drop for Link {
    /// Leaves the group. A thread that panics does not leave, so that the other members find a failure.
    fn drop(&mut self) {
        let failure = self.failure.get_mut().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() && !thread::panicking() {
            let _ = self.write(&ToHub::Leave, Instant::now() + GRACE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::group::message::{Route, milliseconds, write_answer};

    #[test]
    fn an_answer_may_take_longer_than_the_wait_for_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, timeout) = (listener.local_addr().expect("an address").to_string(), Duration::from_millis(500));
        let hub = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a member");
            Hello::read(&mut stream).expect("a hello");
            write_answer(&mut stream, &Ok(milliseconds(timeout).to_le_bytes().to_vec())).expect("it is sent");
            ToHub::read(&mut stream).expect("a call");
            let mut bytes = Vec::new();
            write_answer(&mut bytes, &Ok(vec![7; 1023])).expect("to memory");
            // 9 parts, which take longer than the time-out and the grace together.
            for part in bytes.chunks(120) {
                thread::sleep(Duration::from_millis(300));
                // A member that has given up fails itself.
                let _ = stream.write_all(part);
            }
        });
        let meeting = Meeting { rank: 1, size: 2, address: &address, gpu: None, timeout };
        let link = meeting.meet().unwrap_or_else(|failure| panic!("{failure:?}"));
        let request = Request { route: Route::Gather, call: "all".into(), expects: String::new(), bytes: Vec::new() };
        assert_eq!(link.call(request).map(|bytes| bytes.len()), Ok(1023));
        drop(link);
        hub.join().expect("no panic");
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn both_ends_of_a_silent_connection_are_probed() {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
        let (address, timeout) = (free.to_string(), Duration::from_secs(60));
        let meeting = Meeting { rank: 0, size: 1, address: &address, gpu: None, timeout };
        let _link = meeting.meet().unwrap_or_else(|failure| panic!("{failure:?}"));
        let port = format!(":{:04X}", free.port());
        // The ends that are connected, and have the timer of probes and no other.
        let probed = || {
            let all = std::fs::read_to_string("/proc/net/tcp").expect("what Linux knows of connections");
            let is_probed = |line: &&str| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                let is_end = fields.len() > 5 && (fields[1].ends_with(&port) || fields[2].ends_with(&port));
                is_end && fields[3] == "01" && fields[5].starts_with("02:")
            };
            all.lines().filter(is_probed).count()
        };
        let until = Instant::now() + timeout / 2;
        while probed() < 2 && Instant::now() < until {
            thread::sleep(PAUSE);
        }
        assert_eq!(probed(), 2);
    }

    #[test]
    fn all_addresses_of_the_machine_are_listened_at() {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let _listeners = everywhere(port).expect("nobody listens there");
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("by IPv4");
        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).expect("by IPv6");
        }
        assert_eq!(everywhere(port).expect_err("it is taken").kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn names_are_told_from_addresses() {
        assert!(is_name("node1") && is_name("node1.cluster"));
        for address in ["localhost", "127.0.0.1", "10.0.0.7", "[::1]", "::1"] {
            assert!(!is_name(address), "{address}");
        }
    }
}
