//! The messages between the members of a group and its hub, over TCP.
//!
//! A member begins with a [`Hello`] of fixed length. All other messages are frames: 8 bytes with the length, and then the bytes. Numbers
//! are little-endian.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::gpu::Gpu;

/// The first bytes of a connection: a name, and the version of the protocol.
const MAGIC: [u8; 16] = *b"kp group\0\0\0\0\0\0\0\x02";

/// The longest time-out. A clock cannot add much more.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// No member.
const NONE: u64 = u64::MAX;

/// A member that comes to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) rank: usize,
    /// The size of the group, as this member knows it.
    pub(super) size: usize,
    pub(super) gpu: Option<Gpu>,
    /// How long it still waits for the other members.
    pub(super) patience: Duration,
    /// How long it waits in a call.
    pub(super) timeout: Duration,
}

impl Hello {
    const BYTES: usize = MAGIC.len() + 6 * 8;

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        let gpu = self.gpu.map_or([NONE; 2], |gpu| [gpu.host, gpu.place]);
        let times = [milliseconds(self.patience), milliseconds(self.timeout)];
        for number in [[self.rank as u64, self.size as u64], gpu, times].as_flattened() {
            bytes.extend(number.to_le_bytes());
        }
        to.write_all(&bytes)
    }

    /// Returns an error also if the other side is not a member.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; Self::BYTES];
        from.read_exact(&mut bytes)?;
        let mut reader = Reader(&bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(malformed());
        }
        let (rank, size) = (reader.index()?, reader.index()?);
        let gpu = Gpu { host: reader.number()?, place: reader.number()? };
        let mut time = || Ok::<_, io::Error>(Duration::from_millis(reader.number()?).min(LONGEST));
        let (patience, timeout) = (time()?, time()?);
        Ok(Self { rank, size, gpu: Some(gpu).filter(|gpu| gpu.place != NONE), patience, timeout })
    }
}

/// At least 1 ms.
pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Where the bytes of a call go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// All bytes of all members go to all members, in the order of the ranks.
    Gather,
    /// Each member's bytes have as many equal parts as there are members. Part `i` of each goes to member `i`, in the order of the ranks.
    Transpose,
    /// The bytes of the root go to all members.
    Broadcast { root: usize },
    /// Bytes go to one member, come from one member, or both.
    Exchange { to: Option<usize>, from: Option<usize> },
}

/// A call of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) route: Route,
    /// A description of the call, with everything that must be the same at all members. For an exchange, it describes the data that is
    /// sent.
    pub(super) call: String,
    /// For an exchange, a description of the data to receive.
    pub(super) expects: String,
    pub(super) bytes: Vec<u8>,
}

/// What a member says after its hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToHub {
    Call(Request),
    /// Why it cannot go on, which all are to know.
    Fail(String),
    /// The last word.
    Leave,
}

impl ToHub {
    fn encode(&self) -> Vec<u8> {
        let request = match self {
            Self::Call(request) => request,
            Self::Fail(reason) => return [&[5], reason.as_bytes()].concat(),
            Self::Leave => return vec![4],
        };
        let peer = |rank: Option<usize>| rank.map_or(NONE, |rank| rank as u64);
        let (route, first, second) = match request.route {
            Route::Gather => (0u8, NONE, NONE),
            Route::Transpose => (1, NONE, NONE),
            Route::Broadcast { root } => (2, root as u64, NONE),
            Route::Exchange { to, from } => (3, peer(to), peer(from)),
        };
        let mut bytes = vec![route];
        bytes.extend(first.to_le_bytes());
        bytes.extend(second.to_le_bytes());
        for text in [&request.call, &request.expects] {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend(&request.bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut reader = Reader(bytes);
        let kind = reader.take(1)?[0];
        match kind {
            4 => return Ok(Self::Leave),
            5 => return Ok(Self::Fail(String::from_utf8_lossy(reader.0).into_owned())),
            _ => {}
        }
        let (first, second) = (reader.peer()?, reader.peer()?);
        let route = match (kind, first) {
            (0, _) => Route::Gather,
            (1, _) => Route::Transpose,
            (2, Some(root)) => Route::Broadcast { root },
            (3, to) => Route::Exchange { to, from: second },
            _ => return Err(malformed()),
        };
        let (call, expects) = (reader.text()?, reader.text()?);
        Ok(Self::Call(Request { route, call, expects, bytes: reader.0.to_vec() }))
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write_frame(to, &self.encode())
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        Self::decode(&read_frame(from)?)
    }
}

/// Why a group is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// The member that is to blame.
    pub(super) member: Option<usize>,
}

impl Failure {
    pub(super) fn of(member: usize, reason: String) -> Self {
        Self { reason, member: Some(member) }
    }
}

/// What the hub answers.
pub(super) type Answer = Result<Vec<u8>, Failure>;

pub(super) fn write_answer(to: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let mut bytes = Vec::new();
    match answer {
        Ok(answer) => {
            bytes.push(0);
            bytes.extend(answer);
        }
        Err(Failure { reason, member }) => {
            bytes.push(1);
            bytes.extend(member.map_or(NONE, |rank| rank as u64).to_le_bytes());
            bytes.extend(reason.as_bytes());
        }
    }
    write_frame(to, &bytes)
}

pub(super) fn read_answer(from: &mut impl Read) -> io::Result<Answer> {
    let mut bytes = read_frame(from)?;
    match bytes.first() {
        Some(0) => {
            bytes.remove(0);
            Ok(Ok(bytes))
        }
        Some(1) => {
            let mut reader = Reader(&bytes[1..]);
            let member = reader.peer()?;
            Ok(Err(Failure { reason: String::from_utf8_lossy(reader.0).into_owned(), member }))
        }
        _ => Err(malformed()),
    }
}

fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 8];
    from.read_exact(&mut len)?;
    let (len, mut bytes) = (u64::from_le_bytes(len), Vec::new());
    // The memory grows with what comes, and not with what a stranger announces.
    from.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "this is no message of a group")
}

/// Bytes to take from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| malformed())?))
    }

    fn index(&mut self) -> io::Result<usize> {
        usize::try_from(self.number()?).map_err(|_| malformed())
    }

    fn peer(&mut self) -> io::Result<Option<usize>> {
        match self.number()? {
            NONE => Ok(None),
            rank => usize::try_from(rank).map(Some).map_err(|_| malformed()),
        }
    }

    fn text(&mut self) -> io::Result<String> {
        let len = self.index()?;
        String::from_utf8(self.take(len)?.to_vec()).map_err(|_| malformed())
    }
}

/// A connection whose reads and writes end at a point in time.
pub(super) struct Until<'a>(pub(super) &'a TcpStream, pub(super) Instant);

impl Until<'_> {
    /// What is left, which is not 0: that would be no limit.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.1.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.set_read_timeout(self.left()?)?;
        let mut stream = self.0;
        stream.read(buffer)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set_write_timeout(self.left()?)?;
        let mut stream = self.0;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a call ended since its time was over.
pub(super) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<ToHub> {
        let routes = [
            Route::Gather,
            Route::Transpose,
            Route::Broadcast { root: 3 },
            Route::Exchange { to: Some(1), from: None },
            Route::Exchange { to: None, from: Some(0) },
        ];
        let call =
            |route| ToHub::Call(Request { route, call: "a call".into(), expects: "ä".into(), bytes: vec![1, 2, 3] });
        routes.into_iter().map(call).chain([ToHub::Leave, ToHub::Fail("why".into())]).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for gpu in [None, Some(Gpu { host: 5, place: 6 })] {
            let (patience, timeout) = (Duration::from_millis(3), Duration::from_secs(4));
            let hello = Hello { rank: 1, size: 2, gpu, patience, timeout };
            let mut bytes = Vec::new();
            hello.write(&mut bytes).expect("to memory");
            assert_eq!(Hello::read(&mut bytes.as_slice()).expect("a hello"), hello);
        }
        for message in requests() {
            let mut bytes = Vec::new();
            message.write(&mut bytes).expect("to memory");
            assert_eq!(ToHub::read(&mut bytes.as_slice()).expect("a message"), message);
        }
        let failure = Failure::of(7, "why".into());
        for answer in [Ok(vec![]), Ok(vec![0; 100]), Err(failure), Err(Failure { reason: "".into(), member: None })] {
            let mut bytes = Vec::new();
            write_answer(&mut bytes, &answer).expect("to memory");
            assert_eq!(read_answer(&mut bytes.as_slice()).expect("an answer"), answer);
        }
    }

    #[test]
    fn damaged_messages_are_errors() {
        for message in requests() {
            let bytes = message.encode();
            // Bytes at the end are the call's, and those of a failure a text; so only what comes before can be missing.
            let text = if let ToHub::Fail(reason) = &message { reason.len() } else { 3 };
            for len in 0..bytes.len().saturating_sub(text) {
                assert!(ToHub::decode(&bytes[..len]).is_err(), "{message:?} {len}");
            }
        }
        assert!(ToHub::decode(&[9; 100]).is_err());
        assert!(Hello::read(&mut [b'G'; 100].as_slice()).is_err());
        assert!(read_answer(&mut [0; 8].as_slice()).is_err());
        // A frame that announces more than there is.
        assert!(read_answer(&mut [255; 100].as_slice()).is_err());
    }
}
