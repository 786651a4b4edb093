//! The hub of a group: a thread in the process of rank 0 to which all members are connected.
//!
//! It waits until all members have come. Then it matches their calls: it compares the calls, passes the bytes on, and reports failures to
//! all members. It answers rank 0 last: when rank 0 knows that a call is over, the answers to all other members are sent, and its process
//! may end.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::gpu::Gpu;
use super::matching::{Matching, Outcome};
use super::message::{Answer, Failure, Hello, ToHub, Until, milliseconds, write_answer};
use super::socket;

/// How long the hub waits for messages before it checks for new connections.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a hub whose group has failed tells this to members that still come.
const LINGER: Duration = Duration::from_secs(5);

/// The ports at which hubs of this process still listen after their group has failed.
static LINGERING: Mutex<Vec<u16>> = Mutex::new(Vec::new());

fn lingering() -> MutexGuard<'static, Vec<u16>> {
    LINGERING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a hub of this process still listens at a port, for a short time, after its group has failed.
pub(super) fn lingers(port: u16) -> bool {
    lingering().contains(&port)
}

/// How many silent connections there may be in addition to the members.
const STRANGERS: usize = 64;

/// The size of an answer that fits into the system's buffer of a connection. At most one answer of a connection is unread.
const SMALL: usize = 16 << 10;

/// The size of the stack of a thread that reads messages.
const STACK_BYTES: usize = 128 << 10;

/// Messages of the reading threads to the hub. Each comes with the number of its connection.
enum Event {
    Came(Hello, Member),
    Said(ToHub),
    Gone,
}

/// A member's connection.
struct Member {
    stream: Arc<TcpStream>,
    address: SocketAddr,
    gpu: Option<Gpu>,
}

impl Member {
    /// Answers within the time-out. If that fails, the reading thread reports that the member is gone.
    fn answer(&self, answer: &Answer, timeout: Duration) {
        if write_answer(&mut Until(&self.stream, Instant::now() + timeout), answer).is_err() {
            // A partial answer is useless.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Serves a group of `size` members, on a thread that ends when all members are gone.
pub(super) fn serve(listeners: Vec<TcpListener>, size: usize, patience: Duration) -> io::Result<()> {
    listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
    let serve = move || {
        let (sender, events) = mpsc::channel();
        let mut door = Door { listeners, sender, connections: 0, most: size + STRANGERS, strangers: Vec::new() };
        match assemble(&mut door, &events, size, patience) {
            Ok(joined) => {
                // The next group may meet at the address. Each reader has a sender: when all readers have ended, the hub waits for no one.
                drop(door);
                joined.serve(&events);
            }
            Err(refused) => {
                let port =
                    door.listeners.first().and_then(|listener| listener.local_addr().ok()).map_or(0, |at| at.port());
                lingering().push(port);
                refused.tell(&mut door, &events);
                // The address must be free before the list says so.
                drop(door);
                let mut lingering = lingering();
                let own = lingering.iter().position(|&other| other == port);
                lingering.swap_remove(own.expect("it was pushed"));
            }
        }
    };
    thread::Builder::new().name("group".into()).spawn(serve).map(drop)
}

/// Reads the messages of a connection.
fn read(number: usize, stream: Arc<TcpStream>, address: SocketAddr, events: &Sender<(usize, Event)>, until: Instant) {
    let Ok(hello) = Hello::read(&mut Until(&stream, until)) else { return };
    socket::keep_alive(&stream);
    let (Ok(()), Ok(mut reader)) = (stream.set_read_timeout(None), stream.try_clone()) else { return };
    let member = Member { stream, address, gpu: hello.gpu };
    if events.send((number, Event::Came(hello, member))).is_err() {
        return;
    }
    while let Ok(message) = ToHub::read(&mut reader) {
        if events.send((number, Event::Said(message))).is_err() {
            return;
        }
    }
    let _ = events.send((number, Event::Gone));
}

/// Accepts the connections of members.
struct Door {
    listeners: Vec<TcpListener>,
    sender: Sender<(usize, Event)>,
    /// The number of connections so far.
    connections: usize,
    /// The most silent connections.
    most: usize,
    /// The silent connections and their numbers.
    strangers: Vec<(usize, Weak<TcpStream>)>,
}

impl Door {
    /// Accepts all waiting connections, and starts a reading thread for each.
    fn accept(&mut self, until: Instant) {
        while let Some((stream, address)) = self.listeners.iter().find_map(|listener| listener.accept().ok()) {
            let (number, sender) = (self.connections, self.sender.clone());
            self.connections += 1;
            let stream = Arc::new(stream);
            self.make_room();
            self.strangers.push((number, Arc::downgrade(&stream)));
            let reader = thread::Builder::new().name("group member".into()).stack_size(STACK_BYTES);
            let read = move || {
                if stream.set_nonblocking(false).is_ok() && stream.set_nodelay(true).is_ok() {
                    read(number, stream, address, &sender, until);
                }
            };
            // Without a thread the connection ends, and the member tries again.
            let _ = reader.spawn(read);
        }
    }

    /// Closes the oldest silent connection, if there are too many. If it is a member's, this member connects again.
    fn make_room(&mut self) {
        if self.strangers.len() < self.most {
            return;
        }
        self.strangers.retain(|(_, stranger)| stranger.strong_count() > 0);
        if self.strangers.len() >= self.most
            && let Some(stream) = self.strangers.remove(0).1.upgrade()
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Notes that a connection is no longer silent.
    fn knows(&mut self, number: usize) {
        self.strangers.retain(|(stranger, _)| *stranger != number);
    }
}

/// Accepts members until all have come, or until the time of one of them or of the hub has ended.
fn assemble(
    door: &mut Door,
    events: &Receiver<(usize, Event)>,
    size: usize,
    patience: Duration,
) -> Result<Joined, Refused> {
    let mut came: Vec<Option<(usize, Member)>> = (0..size).map(|_| None).collect();
    let (mut until, mut timeout) = (Instant::now() + patience, patience);
    loop {
        door.accept(until);
        match events.recv_timeout(PAUSE) {
            Ok((number, Event::Came(hello, member))) => {
                door.knows(number);
                let rank = hello.rank;
                if let Err(failure) = check(&hello, &member, &came) {
                    return Err(Refused::new(came, Some((rank, member)), failure, timeout));
                }
                came[rank] = Some((number, member));
                until = until.min(Instant::now() + hello.patience);
                timeout = timeout.min(hello.timeout);
            }
            // The member may come again.
            Ok((number, _)) => came.iter_mut().filter(|one| is_number(one, number)).for_each(|one| *one = None),
            Err(_) => {}
        }
        if came.iter().all(Option::is_some) {
            let (numbers, members) = came.into_iter().flatten().unzip();
            return Ok(Joined { numbers, members, timeout });
        }
        if Instant::now() >= until {
            let missing = came.iter().enumerate().filter(|(_, one)| one.is_none()).map(|(rank, _)| rank);
            let missing: Vec<usize> = missing.collect();
            let reason = format!("{} of {size} did not come in time", ranks(&missing));
            let failure = Failure { reason, member: missing.first().copied() };
            return Err(Refused::new(came, None, failure, timeout));
        }
    }
}

/// Refuses a member that does not fit the members that have come.
fn check(hello: &Hello, member: &Member, came: &[Option<(usize, Member)>]) -> Result<(), Failure> {
    let (rank, size, address) = (hello.rank, came.len(), member.address);
    if hello.size != size || rank >= size {
        let says = hello.size;
        let reason =
            format!("rank {rank} at {address} says that the group has {says} members, and rank 0 that it has {size}");
        return Err(Failure::of(rank, reason));
    }
    if let Some((_, earlier)) = &came[rank] {
        let reason = format!("two members have rank {rank}: one at {}, and one at {address}", earlier.address);
        return Err(Failure::of(rank, reason));
    }
    let all = came.iter().enumerate().filter_map(|(rank, one)| Some((rank, &one.as_ref()?.1)));
    let has_it = |(_, other): &(usize, &Member)| other.gpu.is_some() && other.gpu == member.gpu;
    if let (Some((other, earlier)), Some(gpu)) = (all.into_iter().find(has_it), member.gpu) {
        let both = [(other, earlier.address), (rank, address)];
        let [first, second] = if other < rank { both } else { [both[1], both[0]] };
        let reason = format!(
            "rank {} at {} and rank {} at {} have one GPU, {gpu}: each member needs a GPU to itself",
            first.0, first.1, second.0, second.1
        );
        return Err(Failure::of(second.0, reason));
    }
    Ok(())
}

fn is_number(one: &Option<(usize, Member)>, number: usize) -> bool {
    one.as_ref().is_some_and(|(its, _)| *its == number)
}

/// Members whose group has failed to form.
struct Refused {
    /// Which ranks are there.
    came: Vec<bool>,
    members: Vec<Member>,
    answer: Answer,
    timeout: Duration,
}

impl Refused {
    fn new(
        came: Vec<Option<(usize, Member)>>,
        other: Option<(usize, Member)>,
        failure: Failure,
        timeout: Duration,
    ) -> Self {
        let mut refused = Self { came: vec![false; came.len()], members: Vec::new(), answer: Err(failure), timeout };
        let came = came.into_iter().enumerate().filter_map(|(rank, one)| Some((rank, one?.1)));
        came.chain(other).for_each(|(rank, member)| refused.add(rank, member));
        refused
    }

    fn add(&mut self, rank: usize, member: Member) {
        if let Some(came) = self.came.get_mut(rank) {
            *came = true;
        }
        self.members.push(member);
    }

    /// Tells the reason to these members, and to those that come soon. It waits until they have read it and closed: if a connection ends
    /// with unread bytes, its answer may be lost.
    fn tell(mut self, door: &mut Door, events: &Receiver<(usize, Event)>) {
        self.members.iter().rev().for_each(|member| member.answer(&self.answer, self.timeout));
        let until = Instant::now() + LINGER;
        let mut ended = 0;
        while Instant::now() < until && (ended < self.members.len() || self.came.contains(&false)) {
            door.accept(until);
            match events.recv_timeout(PAUSE) {
                Ok((number, Event::Came(hello, member))) => {
                    door.knows(number);
                    member.answer(&self.answer, self.timeout);
                    self.add(hello.rank, member);
                }
                Ok((_, Event::Gone)) => ended += 1,
                _ => {}
            }
        }
    }
}

/// `rank 1`, or `ranks 1, 2 and 5`. If there are many, the first few.
pub(super) fn ranks(ranks: &[usize]) -> String {
    const MOST: usize = 8;
    let words: Vec<String> = ranks.iter().take(MOST).map(usize::to_string).collect();
    match (&words[..], ranks.len()) {
        ([one], _) => format!("rank {one}"),
        ([first @ .., last], ..=MOST) => format!("ranks {} and {last}", first.join(", ")),
        (_, all) => format!("ranks {}, … ({all} of them)", words.join(", ")),
    }
}

/// All members of a group.
struct Joined {
    /// The numbers of their connections.
    numbers: Vec<usize>,
    members: Vec<Member>,
    /// The shortest time-out of the members.
    timeout: Duration,
}

impl Joined {
    fn serve(self, events: &Receiver<(usize, Event)>) {
        let timeout = milliseconds(self.timeout).to_le_bytes().to_vec();
        self.answer((0..self.members.len()).map(|rank| (rank, Ok(timeout.clone()))).collect());
        let mut matching = Matching::new(self.members.len(), self.timeout);
        loop {
            let event = match matching.until() {
                Some(until) => events.recv_timeout(until.saturating_duration_since(Instant::now())),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let outcome = match event {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => matching.time_is_over(),
                Ok((number, event)) => {
                    // A connection that came after all members is not a member.
                    let Some(rank) = self.numbers.iter().position(|its| *its == number) else { continue };
                    match event {
                        Event::Came(..) => continue,
                        Event::Said(ToHub::Call(request)) => matching.call(rank, request, Instant::now()),
                        Event::Said(ToHub::Fail(reason)) => matching.fail(Failure::of(rank, reason)),
                        Event::Said(ToHub::Leave) => matching.leave(rank),
                        Event::Gone => matching.gone(rank, self.members[rank].address),
                    }
                }
            };
            match outcome {
                Outcome::Answers(answers) => {
                    self.answer(answers.into_iter().map(|(rank, bytes)| (rank, Ok(bytes))).collect());
                }
                Outcome::Failed(failure) => {
                    self.answer((0..self.members.len()).map(|rank| (rank, Err(failure.clone()))).collect());
                }
                Outcome::AllGone => return,
            }
        }
    }

    /// Answers the members, rank 0 last. No other member waits until another member has read a large answer.
    fn answer(&self, mut answers: Vec<(usize, Answer)>) {
        answers.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        thread::scope(|scope| {
            for (rank, answer) in answers.extract_if(.., |(rank, _)| *rank > 0) {
                let member = &self.members[rank];
                let is_large = answer.as_ref().is_ok_and(|bytes| bytes.len() > SMALL);
                let write = move || member.answer(&answer, self.timeout);
                if !is_large {
                    write();
                    continue;
                }
                let writer = thread::Builder::new().name("group answer".into()).stack_size(STACK_BYTES);
                if writer.spawn_scoped(scope, write).is_err() {
                    // The member gets no answer, and must notice it.
                    let _ = member.stream.shutdown(Shutdown::Both);
                }
            }
        });
        for (rank, answer) in answers {
            self.members[rank].answer(&answer, self.timeout);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::group::message::{Request, Route, read_answer};

    /// Longer than all that is not to end by it.
    const LONG: Duration = Duration::from_secs(60);

    /// The addresses of a hub that listens at so many.
    fn hub(addresses: usize, size: usize) -> Vec<SocketAddr> {
        let listeners: Vec<_> = (0..addresses).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses = listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
        serve(listeners, size, LONG).expect("a hub");
        addresses
    }

    /// A member without the rest of it.
    fn come(address: SocketAddr, rank: usize, size: usize, gpu: Option<Gpu>) -> TcpStream {
        let mut stream = TcpStream::connect(address).expect("somebody listens");
        Hello { rank, size, gpu, patience: LONG, timeout: LONG }.write(&mut stream).expect("it is sent");
        stream
    }

    fn answer(stream: &TcpStream) -> Answer {
        read_answer(&mut Until(stream, Instant::now() + LONG / 2)).expect("an answer")
    }

    #[test]
    fn members_may_come_by_several_addresses() {
        let addresses = hub(2, 2);
        let members = [come(addresses[1], 0, 2, None), come(addresses[0], 1, 2, None)];
        assert!(members.iter().all(|member| answer(member).is_ok()));
    }

    #[test]
    fn who_says_nothing_makes_room_for_members() {
        let address = hub(1, 2)[0];
        let connect = || TcpStream::connect(address).expect("somebody listens");
        let silent: Vec<TcpStream> = (0..2 * (2 + STRANGERS)).map(|_| connect()).collect();
        let end = Until(&silent[0], Instant::now() + LONG / 2).read(&mut [0]);
        assert!(end.as_ref().is_ok_and(|len| *len == 0), "{end:?}");
        let members = [come(address, 0, 2, None), come(address, 1, 2, None)];
        assert!(members.iter().all(|member| answer(member).is_ok()));
    }

    #[test]
    fn who_does_not_read_holds_up_nobody_but_rank_0() {
        let address = hub(1, 3)[0];
        let mut members: Vec<_> = (0..3).map(|rank| come(address, rank, 3, None)).collect();
        assert!(members.iter().all(|member| answer(member).is_ok()));
        // More than the system keeps.
        let (call, bytes) = ("all".to_owned(), vec![7; 8 << 20]);
        let request = ToHub::Call(Request { route: Route::Gather, call, expects: String::new(), bytes });
        members.iter_mut().for_each(|member| request.write(member).expect("it is sent"));
        assert_eq!(answer(&members[1]).expect("what all have sent").len(), 3 * (8 << 20));
        members.pop();
        assert_eq!(answer(&members[0]).expect("what all have sent").len(), 3 * (8 << 20));
        assert_eq!(answer(&members[0]).expect_err("one is gone").member, Some(2));
    }

    #[test]
    fn two_members_on_one_gpu_are_named() {
        let gpu = |host, place| Some(Gpu { host, place });
        let address = hub(1, 4)[0];
        let gpus = [gpu(1, 0x1700), gpu(2, 0x1700), gpu(1, 0xca00), gpu(1, 0x1700)];
        let members = [3, 1, 2, 0].map(|rank| (rank, come(address, rank, 4, gpus[rank])));
        for (rank, member) in members {
            let failure = answer(&member).expect_err("two have one");
            assert_eq!(failure.member, Some(3), "{rank}: {failure:?}");
            let parts = ["rank 0 at 127.0.0.1:", " and rank 3 at 127.0.0.1:", " have one GPU, 0000:17:00.0: each"];
            assert!(parts.iter().all(|part| failure.reason.contains(part)), "{failure:?}");
        }
    }

    #[test]
    fn ranks_are_listed_in_words() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&[1, 2]), "ranks 1 and 2");
        assert_eq!(ranks(&[1, 2, 5]), "ranks 1, 2 and 5");
        let many: Vec<usize> = (0..20).collect();
        assert_eq!(ranks(&many), "ranks 0, 1, 2, 3, 4, 5, 6, 7, … (20 of them)");
    }
}
