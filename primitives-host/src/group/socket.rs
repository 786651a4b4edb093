//! What the standard library does not have for connections: a look at what has come without a wait, and probes of the other side.

use std::net::TcpStream;

/// Whether there is something to read, which may be the end. It does not wait. Nobody else reads meanwhile.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only members on GPUs look"))]
pub(super) fn has_come(stream: &TcpStream) -> bool {
    system::has_come(stream)
}

/// Makes the system probe the other side of a connection that is silent, so that the end of a machine is found without a call: after about
/// 3 minutes. If that fails, the end is found by the next call.
pub(super) fn keep_alive(stream: &TcpStream) {
    let _ = system::keep_alive(stream);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::io::{self, ErrorKind};
    use std::net::TcpStream;
    use std::os::fd::AsRawFd;

    use libc::{
        IPPROTO_TCP, MSG_DONTWAIT, MSG_PEEK, SO_KEEPALIVE, SOL_SOCKET, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL,
    };
    use libc::{c_int, socklen_t};

    /// Probes: after so many seconds of silence, so many seconds apart, and so many without an answer are the end.
    const PROBES: [(c_int, c_int); 3] = [(TCP_KEEPIDLE, 60), (TCP_KEEPINTVL, 20), (TCP_KEEPCNT, 6)];

    pub(super) fn has_come(stream: &TcpStream) -> bool {
        let mut byte = 0u8;
        // SAFETY: the descriptor is open as long as the stream, and there is a byte at the pointer.
        let len = unsafe { libc::recv(stream.as_raw_fd(), (&raw mut byte).cast(), 1, MSG_PEEK | MSG_DONTWAIT) };
        len >= 0 || !matches!(io::Error::last_os_error().kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
    }

    pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
        PROBES.iter().try_for_each(|&(option, value)| set(stream, IPPROTO_TCP, option, value))?;
        set(stream, SOL_SOCKET, SO_KEEPALIVE, 1)
    }

    fn set(stream: &TcpStream, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
        let bytes = size_of::<c_int>() as socklen_t;
        // SAFETY: the descriptor is open as long as the stream, and there are so many bytes at the pointer.
        match unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, (&raw const value).cast(), bytes) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    use std::io;
    use std::net::TcpStream;
    use std::time::Duration;

    use crate::group::message::is_late;

    /// Waits for the shortest time that there is.
    pub(super) fn has_come(stream: &TcpStream) -> bool {
        let looked = stream.set_read_timeout(Some(Duration::from_millis(1))).and_then(|()| stream.peek(&mut [0]));
        !looked.is_err_and(|error| is_late(&error))
    }

    pub(super) fn keep_alive(_stream: &TcpStream) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::*;

    /// Both ends of a connection.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        (one, listener.accept().expect("a connection").0)
    }

    #[test]
    fn a_look_at_a_silent_connection_does_not_wait() {
        let (one, mut other) = connection();
        let look = || {
            let start = Instant::now();
            assert!(!has_come(&one));
            start.elapsed()
        };
        // Of many, one was not interrupted. A wait is for a millisecond or more.
        let shortest = (0..50).map(|_| look()).min().expect("some");
        assert!(shortest < Duration::from_micros(500), "{shortest:?}");
        other.write_all(&[1]).expect("it is sent");
        let until = Instant::now() + Duration::from_secs(30);
        while !has_come(&one) && Instant::now() < until {}
        // It is still there.
        assert!(has_come(&one));
        drop(other);
        let (one, other) = connection();
        drop(other);
        while !has_come(&one) && Instant::now() < until {}
        assert!(has_come(&one), "the end comes, too");
    }
}
