//! Matches the calls of the members, and finds mistakes between them.

use std::mem;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::hub::ranks;
use super::message::{Failure, Request, Route};

/// The reaction to a message of a member.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// These members get these bytes as answers.
    Answers(Vec<(usize, Vec<u8>)>),
    /// All members get this failure.
    Failed(Failure),
    /// No member is left.
    AllGone,
}

/// The members, and the call in which each of them waits.
pub(super) struct Matching {
    members: Vec<State>,
    timeout: Duration,
    has_failed: bool,
}

enum State {
    /// It computes.
    Busy,
    Waiting(Waiting),
    Left,
}

struct Waiting {
    request: Request,
    since: Instant,
    /// Whether its data has been received.
    is_sent: bool,
    received: Option<Vec<u8>>,
}

impl Waiting {
    fn is_collective(&self) -> bool {
        !matches!(self.request.route, Route::Exchange { .. })
    }

    fn is_over(&self) -> bool {
        match self.request.route {
            Route::Exchange { to, from } => {
                (to.is_none() || self.is_sent) && (from.is_none() || self.received.is_some())
            }
            _ => false,
        }
    }

    /// The members that it waits for.
    fn peers(&self, rank: usize, members: usize) -> Vec<usize> {
        match self.request.route {
            Route::Exchange { to, from } => {
                let to = to.filter(|_| !self.is_sent);
                let from = from.filter(|_| self.received.is_none());
                to.into_iter().chain(from).collect()
            }
            _ => (0..members).filter(|&other| other != rank).collect(),
        }
    }

    /// The call in words.
    fn describe(&self) -> String {
        let Request { route, call, expects, .. } = &self.request;
        match route {
            Route::Exchange { to: Some(to), from: None } => format!("`send` of {call} to rank {to}"),
            Route::Exchange { to: None, from: Some(from) } => format!("`recv` of {expects} from rank {from}"),
            Route::Exchange { to: Some(to), from: Some(from) } => {
                format!("`send_recv` of {call} to rank {to} and of {expects} from rank {from}")
            }
            _ => call.clone(),
        }
    }
}

impl Matching {
    pub(super) fn new(members: usize, timeout: Duration) -> Self {
        Self { members: (0..members).map(|_| State::Busy).collect(), timeout, has_failed: false }
    }

    /// When the time-out of the first waiting member ends.
    pub(super) fn until(&self) -> Option<Instant> {
        let since = self.waiting().map(|(_, waiting)| waiting.since).min()?;
        Some(since + self.timeout)
    }

    fn waiting(&self) -> impl Iterator<Item = (usize, &Waiting)> {
        self.members.iter().enumerate().filter_map(|(rank, state)| match state {
            State::Waiting(waiting) => Some((rank, waiting)),
            _ => None,
        })
    }

    fn waiting_at(&self, rank: usize) -> Option<&Waiting> {
        self.waiting().find(|(its, _)| *its == rank).map(|(_, waiting)| waiting)
    }

    fn waiting_mut(&mut self, rank: usize) -> Option<&mut Waiting> {
        match self.members.get_mut(rank) {
            Some(State::Waiting(waiting)) => Some(waiting),
            _ => None,
        }
    }

    /// The group cannot go on.
    pub(super) fn fail(&mut self, failure: Failure) -> Outcome {
        // All members are told once, and none waits after that.
        let was_failed = mem::replace(&mut self.has_failed, true);
        for state in &mut self.members {
            if let State::Waiting(_) = state {
                *state = State::Busy;
            }
        }
        if was_failed { Outcome::Answers(Vec::new()) } else { Outcome::Failed(failure) }
    }

    /// A member has made a call.
    pub(super) fn call(&mut self, rank: usize, request: Request, now: Instant) -> Outcome {
        if self.has_failed {
            return Outcome::Answers(Vec::new());
        }
        self.members[rank] = State::Waiting(Waiting { request, since: now, is_sent: false, received: None });
        self.advance().unwrap_or_else(|failure| self.fail(failure))
    }

    /// A member makes no more calls.
    pub(super) fn leave(&mut self, rank: usize) -> Outcome {
        self.members[rank] = State::Left;
        if self.are_all_gone() {
            return Outcome::AllGone;
        }
        self.advance().unwrap_or_else(|failure| self.fail(failure))
    }

    /// A member's connection has ended.
    pub(super) fn gone(&mut self, rank: usize, address: SocketAddr) -> Outcome {
        let has_left = matches!(self.members[rank], State::Left);
        self.members[rank] = State::Left;
        if self.are_all_gone() {
            return Outcome::AllGone;
        }
        if has_left {
            return Outcome::Answers(Vec::new());
        }
        let reason = format!("rank {rank} at {address} is gone: its process has ended, or its thread has panicked");
        self.fail(Failure::of(rank, reason))
    }

    fn are_all_gone(&self) -> bool {
        self.members.iter().all(|state| matches!(state, State::Left))
    }

    /// The time-out of a member has ended.
    pub(super) fn time_is_over(&mut self) -> Outcome {
        let Some((rank, waiting)) = self.waiting().min_by_key(|(_, waiting)| waiting.since) else {
            return Outcome::Answers(Vec::new());
        };
        let is_absent = |other: &usize| match self.waiting_at(*other) {
            Some(theirs) => !waiting.is_collective() || !theirs.is_collective(),
            None => true,
        };
        let mut absent = waiting.peers(rank, self.members.len());
        absent.retain(is_absent);
        let elsewhere = absent.iter().find_map(|other| Some((other, self.waiting_at(*other)?)));
        let elsewhere = match elsewhere {
            Some((other, theirs)) => format!("; rank {other} is in {}", theirs.describe()),
            None => String::new(),
        };
        let reason = format!(
            "{} did not come to {} within {:?}, in which rank {rank} waits{elsewhere}",
            ranks(&absent),
            waiting.describe(),
            self.timeout
        );
        let failure = Failure { reason, member: absent.first().copied() };
        self.fail(failure)
    }

    /// Matches all calls that can be matched now.
    fn advance(&mut self) -> Result<Outcome, Failure> {
        let mut answers = Vec::new();
        self.exchange()?;
        for (rank, state) in self.members.iter_mut().enumerate() {
            if let State::Waiting(waiting) = state
                && waiting.is_over()
            {
                answers.push((rank, waiting.received.take().unwrap_or_default()));
                *state = State::Busy;
            }
        }
        self.check_collectives()?;
        if self.waiting().filter(|(_, waiting)| waiting.is_collective()).count() == self.members.len() {
            return Ok(Outcome::Answers(self.collect()));
        }
        self.check_left()?;
        if answers.is_empty() {
            self.check_stuck()?;
        }
        Ok(Outcome::Answers(answers))
    }

    /// Passes data from a member that sends to the member that receives it.
    fn exchange(&mut self) -> Result<(), Failure> {
        for rank in 0..self.members.len() {
            let Some(sender) = self.waiting_at(rank) else { continue };
            let Route::Exchange { to: Some(to), .. } = sender.request.route else { continue };
            let Some(receiver) = self.waiting_at(to) else { continue };
            let Route::Exchange { from: Some(from), .. } = receiver.request.route else { continue };
            if from != rank || sender.is_sent || receiver.received.is_some() {
                continue;
            }
            let (sent, expected) = (&sender.request.call, &receiver.request.expects);
            if sent != expected {
                let reason = format!("rank {rank} sends {sent} to rank {to}, which receives {expected}");
                return Err(Failure::of(to, reason));
            }
            let bytes = self.waiting_mut(rank).map(|sender| {
                sender.is_sent = true;
                mem::take(&mut sender.request.bytes)
            });
            if let Some(receiver) = self.waiting_mut(to) {
                receiver.received = bytes;
            }
        }
        Ok(())
    }

    /// Returns a failure if members call different collectives.
    fn check_collectives(&self) -> Result<(), Failure> {
        let mut collectives = self.waiting().filter(|(_, waiting)| waiting.is_collective());
        let Some((first, one)) = collectives.next() else { return Ok(()) };
        match collectives.find(|(_, other)| other.request.call != one.request.call) {
            Some((rank, other)) => {
                let reason = format!("rank {rank} calls {}, and rank {first} {}", other.request.call, one.request.call);
                Err(Failure::of(rank, reason))
            }
            None => Ok(()),
        }
    }

    /// Returns a failure if a member waits for one that has left.
    fn check_left(&self) -> Result<(), Failure> {
        for (rank, waiting) in self.waiting() {
            let peers = waiting.peers(rank, self.members.len());
            if let Some(left) = peers.into_iter().find(|peer| matches!(self.members.get(*peer), Some(State::Left))) {
                let reason = format!("rank {left} has left the group, and rank {rank} waits in {}", waiting.describe());
                return Err(Failure::of(left, reason));
            }
        }
        Ok(())
    }

    /// Returns a failure if all members that have not left wait, and no call can end.
    fn check_stuck(&self) -> Result<(), Failure> {
        if self.members.iter().any(|state| matches!(state, State::Busy)) || self.are_all_gone() {
            return Ok(());
        }
        let calls: Vec<String> =
            self.waiting().take(8).map(|(rank, waiting)| format!("rank {rank} in {}", waiting.describe())).collect();
        Err(Failure { reason: format!("all members wait for each other: {}", calls.join(", ")), member: None })
    }

    /// The answers to a collective that all members have called.
    fn collect(&mut self) -> Vec<(usize, Vec<u8>)> {
        let size = self.members.len();
        let states = self.members.iter_mut().map(|state| mem::replace(state, State::Busy));
        let requests: Vec<Request> = states
            .filter_map(|state| match state {
                State::Waiting(waiting) => Some(waiting.request),
                _ => None,
            })
            .collect();
        let answer = |rank: usize| match requests[rank].route {
            Route::Broadcast { root } => requests.get(root).map(|root| root.bytes.clone()).unwrap_or_default(),
            Route::Transpose => {
                let part = |request: &Request| {
                    let len = request.bytes.len() / size;
                    request.bytes[rank * len..][..len].to_vec()
                };
                requests.iter().flat_map(part).collect()
            }
            _ => requests.iter().flat_map(|request| request.bytes.iter().copied()).collect(),
        };
        (0..size).map(|rank| (rank, answer(rank))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collective(route: Route, call: &str, bytes: &[u8]) -> Request {
        Request { route, call: call.into(), expects: String::new(), bytes: bytes.into() }
    }

    fn exchange(to: Option<usize>, from: Option<usize>, what: &str, bytes: &[u8]) -> Request {
        Request { route: Route::Exchange { to, from }, call: what.into(), expects: what.into(), bytes: bytes.into() }
    }

    /// The outcomes of calls, by rank and request, one after another.
    fn outcomes(members: usize, calls: Vec<(usize, Request)>) -> Vec<Outcome> {
        let mut matching = Matching::new(members, Duration::from_secs(1));
        let now = Instant::now();
        calls.into_iter().map(|(rank, request)| matching.call(rank, request, now)).collect()
    }

    #[track_caller]
    fn assert_answers(outcomes: &[Outcome], expected: &[(usize, &[u8])]) {
        let mut answers = Vec::new();
        for outcome in outcomes {
            let Outcome::Answers(some) = outcome else { panic!("{outcome:?}") };
            answers.extend(some.iter().map(|(rank, bytes)| (*rank, bytes.as_slice())));
        }
        assert_eq!(answers, expected);
    }

    #[track_caller]
    fn assert_failure(outcomes: &[Outcome], member: Option<usize>, part: &str) {
        let Some(Outcome::Failed(failure)) = outcomes.last() else { panic!("{outcomes:?}") };
        assert_eq!(failure.member, member, "{failure:?}");
        assert!(failure.reason.contains(part), "{failure:?}");
    }

    #[test]
    fn collectives_route_bytes() {
        let call = |route, parts: [&[u8]; 2]| {
            outcomes(2, vec![(1, collective(route, "call", parts[1])), (0, collective(route, "call", parts[0]))])
        };
        assert_answers(&call(Route::Gather, [&[1], &[2]]), &[(0, &[1, 2]), (1, &[1, 2])]);
        assert_answers(
            &call(Route::Transpose, [&[1, 2, 3, 4], &[5, 6, 7, 8]]),
            &[(0, &[1, 2, 5, 6]), (1, &[3, 4, 7, 8])],
        );
        assert_answers(&call(Route::Broadcast { root: 1 }, [&[], &[7]]), &[(0, &[7]), (1, &[7])]);
    }

    #[test]
    fn exchanges_meet_in_either_order_and_beside_others() {
        let (send, receive) = (exchange(Some(2), None, "a", &[5]), exchange(None, Some(0), "a", &[]));
        assert_answers(&outcomes(3, vec![(0, send.clone()), (2, receive.clone())]), &[(0, &[]), (2, &[5])]);
        let barrier = collective(Route::Gather, "barrier", &[]);
        let calls = vec![(1, barrier.clone()), (2, receive), (0, send), (0, barrier.clone()), (2, barrier)];
        assert_answers(&outcomes(3, calls), &[(0, &[]), (2, &[5]), (0, &[]), (1, &[]), (2, &[])]);
        // Round a ring.
        let ring = |rank: usize| exchange(Some((rank + 1) % 3), Some((rank + 2) % 3), "a", &[rank as u8]);
        let answers: [(usize, &[u8]); 3] = [(0, &[2]), (1, &[0]), (2, &[1])];
        let mut matching = Matching::new(3, Duration::from_secs(1));
        let mut all = Vec::new();
        for rank in 0..3 {
            let Outcome::Answers(some) = matching.call(rank, ring(rank), Instant::now()) else { panic!("an answer") };
            all.extend(some);
        }
        all.sort();
        assert_eq!(all, answers.map(|(rank, bytes)| (rank, bytes.to_vec())));
        // A message to oneself.
        assert_answers(&outcomes(2, vec![(0, exchange(Some(0), Some(0), "a", &[9]))]), &[(0, &[9])]);
    }

    #[test]
    fn calls_that_differ_fail() {
        let call = |call| collective(Route::Gather, call, &[]);
        assert_failure(&outcomes(3, vec![(0, call("a")), (2, call("b"))]), Some(2), "rank 2 calls b, and rank 0 a");
        let (send, receive) = (exchange(Some(1), None, "4 f32", &[]), exchange(None, Some(0), "5 f32", &[]));
        assert_failure(
            &outcomes(2, vec![(0, send.clone()), (1, receive)]),
            Some(1),
            "sends 4 f32 to rank 1, which receives 5",
        );
        let sends = vec![(0, send), (1, exchange(Some(0), None, "4 f32", &[]))];
        assert_failure(&outcomes(2, sends), None, "rank 0 in `send` of 4 f32 to rank 1, rank 1 in `send`");
    }

    #[test]
    fn who_is_gone_fails_the_others_and_who_has_left_does_not() {
        let address = "127.0.0.1:1".parse().expect("an address");
        let mut matching = Matching::new(2, Duration::from_secs(1));
        assert_failure(&[matching.gone(1, address)], Some(1), "rank 1 at 127.0.0.1:1 is gone");
        // Once.
        assert_answers(&[matching.call(0, exchange(Some(1), None, "a", &[]), Instant::now())], &[]);
        assert_eq!(matching.leave(0), Outcome::AllGone);

        let mut matching = Matching::new(2, Duration::from_secs(1));
        assert_answers(&[matching.leave(1), matching.gone(1, address)], &[]);
        let left = matching.call(0, collective(Route::Gather, "barrier", &[]), Instant::now());
        assert_failure(&[left], Some(1), "rank 1 has left the group, and rank 0 waits in barrier");
    }

    #[test]
    fn time_outs_name_who_did_not_come() {
        let mut matching = Matching::new(3, Duration::from_secs(1));
        let now = Instant::now();
        assert_eq!(matching.until(), None);
        assert_answers(&[matching.call(0, collective(Route::Gather, "barrier", &[]), now)], &[]);
        assert_answers(&[matching.call(1, exchange(Some(2), None, "a", &[]), now)], &[]);
        assert_eq!(matching.until(), Some(now + Duration::from_secs(1)));
        let failure = matching.time_is_over();
        assert_failure(&[failure], Some(1), "ranks 1 and 2 did not come to barrier within 1s");
        assert_eq!(matching.until(), None);
    }
}
