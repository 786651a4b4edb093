//! A member's connection to the hub.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::hub;
use super::message::{Answer, Failure, Hello, Request, ToHub, Until, is_late, read_answer};

/// How long a member pauses before it looks for rank 0 again.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a member waits for what the hub says when time is over.
const GRACE: Duration = Duration::from_secs(2);

/// A member's connection to the hub.
pub(super) struct Link(Mutex<State>);

enum State {
    Open {
        stream: TcpStream,
        /// How long the hub lets it wait in a call.
        timeout: Duration,
    },
    Failed(Failure),
}

/// How the members of a group find each other.
pub(super) struct Meeting<'a> {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) address: &'a str,
    pub(super) timeout: Duration,
}

impl Meeting<'_> {
    /// Meets the others. Rank 0 makes the hub first.
    pub(super) fn meet(&self) -> Result<Link, Failure> {
        let until = Instant::now() + self.timeout;
        if self.rank == 0 {
            self.open().map_err(|error| {
                let hint = match error.kind() {
                    io::ErrorKind::AddrInUse => "; another member has rank 0 too, or another program listens there",
                    _ => "",
                };
                Failure::of(0, format!("rank 0 cannot listen at {}: {error}{hint}", self.address))
            })?;
        }
        // Why it was not answered so far.
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
        let Self { rank, size, address, timeout } = self;
        let reason = format!(
            "rank 0 of {size} did not answer rank {rank} at {address} within {timeout:?}: {cause}; it is not there, or its group is complete \
             without this process"
        );
        Err(Failure::of(0, reason))
    }

    /// Makes the hub, where the others look for it.
    fn open(&self) -> io::Result<()> {
        let listener = match self.address.rsplit_once(':') {
            // A name may be that of another address on the own machine than on others. So it listens at all of its addresses.
            Some((host, port)) if is_name(host) => {
                let port = port.parse().map_err(|_| io::Error::other("the port is no number"))?;
                TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port)))?
            }
            _ => TcpListener::bind(self.address)?,
        };
        hub::serve(listener, self.size, self.timeout)
    }

    /// An error is nobody's answer.
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
        let stream = TcpStream::connect_timeout(&address, left())?;
        if stream.local_addr()? == stream.peer_addr()? {
            return Err(io::Error::other("nobody listens there, and the connection has met itself"));
        }
        stream.set_nodelay(true)?;
        let hello = Hello { rank: self.rank, size: self.size, patience: left(), timeout: self.timeout };
        hello.write(&mut Until(&stream, until))?;
        Ok(read_answer(&mut Until(&stream, until + GRACE))?.map(|timeout| {
            let timeout =
                timeout.try_into().map_or(self.timeout, |bytes| Duration::from_millis(u64::from_le_bytes(bytes)));
            Link(Mutex::new(State::Open { stream, timeout }))
        }))
    }
}

/// Whether it is the name of a host that others may know by another address.
fn is_name(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host != "localhost" && host.parse::<std::net::IpAddr>().is_err()
}

impl Link {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, and waits for its end. After a failure there are no others.
    pub(super) fn call(&self, request: Request) -> Answer {
        let mut state = self.state();
        let (stream, timeout) = match &*state {
            State::Open { stream, timeout } => (stream, *timeout),
            State::Failed(failure) => return Err(failure.clone()),
        };
        let until = Instant::now() + timeout + GRACE;
        // What the hub has said of a failure is there to be read, even if it takes no calls any more.
        let written = ToHub::Call(request).write(&mut Until(stream, until));
        let answer = match read_answer(&mut Until(stream, until)) {
            Ok(answer) => answer,
            Err(error) => {
                let error = written.err().unwrap_or(error);
                Err(Failure::of(
                    0,
                    match is_late(&error) {
                        true => format!("rank 0 did not answer within {timeout:?}"),
                        false => format!("rank 0 is gone, its process has ended: {error}"),
                    },
                ))
            }
        };
        if let Err(failure) = &answer {
            // The connection ends with it.
            *state = State::Failed(failure.clone());
        }
        answer
    }
}

impl Drop for Link {
    /// Leaves the group. Who panics does not: that is a failure, which the others are to know.
    fn drop(&mut self) {
        if let State::Open { stream, .. } = &*self.state()
            && !thread::panicking()
        {
            let _ = ToHub::Leave.write(&mut Until(stream, Instant::now() + GRACE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_addresses() {
        assert!(is_name("node1") && is_name("node1.cluster"));
        for address in ["localhost", "127.0.0.1", "10.0.0.7", "[::1]", "::1"] {
            assert!(!is_name(address), "{address}");
        }
    }
}
