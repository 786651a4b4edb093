//! Claims of calls that use several buffers.
//!
//! A call holds nothing while it waits for a buffer or for a stream (see [`Uses::lock`]). So it needs a moment at which all that it uses is
//! free. If other threads use one part of it in turn, and others another part, there may be no such moment. Therefore, a call that has lost
//! some rounds claims all that it uses. Calls that begin later wait for the claim, and what runs comes to its end.
//!
//! What runs may itself need calls that begin later: a kernel of the emulator can wait for another thread, and this thread for the claim. So
//! a claim lapses after as long as the claimant has waited until then, and each round that the claimant loses renews it. If the claimant
//! waits for such a kernel, it loses no more rounds, and the calls of others wait once. If others keep it from a free moment, it loses
//! rounds, and as it waits longer, others give it more time.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Result;
use crate::launch::in_kernel;
use crate::memory::allocation::{Allocation, Held};
use crate::memory::uses::{Mode, Uses, key};

/// The rounds that a call loses before it claims what it uses.
const ROUNDS: u32 = 4;

static CLAIMS: Mutex<Vec<Arc<Claim>>> = Mutex::new(Vec::new());

/// The number of claims. Calls that find none take no lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Notified when a claim ends.
static ENDED: Condvar = Condvar::new();

/// The use of an allocation or of a stream, which is identified by the address of its lock.
type Used = (usize, Mode);

struct Claim {
    /// When the claimant began to wait.
    since: Instant,
    /// When others need no longer wait.
    until: Mutex<Instant>,
    used: Vec<Used>,
}

impl Claim {
    /// Returns whether the claimant cannot have all that it uses beside this use.
    fn excludes(&self, (address, mode): Used) -> bool {
        self.used.iter().any(|&(claimed, by)| claimed == address && mode.max(by) == Mode::Write)
    }

    /// Returns when a call that began at `begin` need no longer wait. A claim that is renewed meanwhile does not keep it longer than the
    /// claimant had waited before.
    fn end_for(&self, begin: Instant) -> Instant {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.min(begin + begin.saturating_duration_since(self.since))
    }
}

fn claims() -> MutexGuard<'static, Vec<Arc<Claim>>> {
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the claims that exclude one of the uses. A lane of a kernel does not wait, because the claimant may wait for its kernel.
fn wait(used: impl Iterator<Item = Used> + Clone) {
    if COUNT.load(Ordering::Relaxed) == 0 || in_kernel::running().is_some() {
        return;
    }
    let (begin, mut claims) = (Instant::now(), claims());
    loop {
        let excluding = claims.iter().filter(|claim| used.clone().any(|one| claim.excludes(one)));
        let end = excluding.map(|claim| claim.end_for(begin)).max().unwrap_or(begin);
        let rest = end.saturating_duration_since(Instant::now());
        if rest == Duration::ZERO {
            return;
        }
        (claims, _) = ENDED.wait_timeout(claims, rest).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Locks an allocation, for a call that uses nothing else.
///
/// # Errors
/// Returns the errors of [`Allocation::lock`].
pub(crate) fn lock_one(allocation: &Allocation, mode: Mode) -> Result<Held<'_>> {
    wait(iter::once((key(allocation), mode)));
    allocation.lock(mode)
}

/// The rounds in which a call tries to get all that it uses.
pub(crate) struct Rounds<'a> {
    uses: &'a Uses,
    stream: Option<&'a Mutex<()>>,
    lost: u32,
    since: Option<Instant>,
    claim: Option<Arc<Claim>>,
}

impl<'a> Rounds<'a> {
    /// Begins after the claims of others. `stream` is the stream of the emulator on which the call takes its turn.
    pub(crate) fn begin(uses: &'a Uses, stream: Option<&'a Mutex<()>>) -> Self {
        let rounds = Self { uses, stream, lost: 0, since: None, claim: None };
        wait(rounds.used());
        rounds
    }

    fn used(&self) -> impl Iterator<Item = Used> + Clone {
        let stream = self.stream.map(|busy| (std::ptr::from_ref(busy).addr(), Mode::Write));
        self.uses.iter().map(|(allocation, mode)| (key(allocation), mode)).chain(stream)
    }

    /// Notes that others have something that the call uses, and that the call now waits for it.
    pub(crate) fn lose(&mut self) {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let until = now + (now - since);
        self.lost += 1;
        if let Some(claim) = &self.claim {
            *claim.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        } else if self.lost >= ROUNDS {
            let claim = Arc::new(Claim { since, until: Mutex::new(until), used: self.used().collect() });
            claims().push(claim.clone());
            COUNT.fetch_add(1, Ordering::Relaxed);
            self.claim = Some(claim);
        }
    }
}

impl Drop for Rounds<'_> {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            claims().retain(|other| !Arc::ptr_eq(other, &claim));
            COUNT.fetch_sub(1, Ordering::Relaxed);
            ENDED.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    const WAITED: Duration = Duration::from_millis(50);

    /// A call that has waited for a time, and claims what it uses if it loses one more round.
    fn claimant(uses: &Uses, waited: Duration) -> Rounds<'_> {
        let mut rounds = Rounds::begin(uses, None);
        (1..ROUNDS).for_each(|_| rounds.lose());
        std::thread::sleep(waited);
        rounds
    }

    /// The claim stands until the end, so a wait for its end would take for ever.
    #[test]
    fn a_call_waits_for_a_claim_as_long_as_the_claimant_has_waited() -> Result<()> {
        let stream = Device::emulator().stream()?;
        let mut x = stream.buffer_from(&[1u32])?;
        let mut uses = Uses::default();
        uses.add(x.allocation(), Mode::Read);
        let mut rounds = claimant(&uses, WAITED);
        // The second round renews the claim.
        for _ in 0..2 {
            let begin = Instant::now();
            rounds.lose();
            x.copy_from(&[2])?;
            assert!(begin.elapsed() >= WAITED);
        }
        drop(rounds);
        assert_eq!(x.to_vec()?, [2]);
        Ok(())
    }

    /// What the claimant waits for may itself wait for many calls.
    #[test]
    fn many_calls_wait_no_longer_than_one_for_a_claim_that_is_not_renewed() -> Result<()> {
        let stream = Device::emulator().stream()?;
        let mut x = stream.buffer_from(&[0u32])?;
        let mut uses = Uses::default();
        uses.add(x.allocation(), Mode::Read);
        let mut rounds = claimant(&uses, Duration::from_millis(1));
        rounds.lose();
        let begin = Instant::now();
        // If each call waited as long as the claimant until then, all of them would wait for 16 seconds.
        (0..14).try_for_each(|i| x.copy_from(&[i]))?;
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        drop(rounds);
        Ok(())
    }

    #[test]
    fn a_claim_excludes_writes_of_what_it_reads_and_all_uses_of_what_it_writes() {
        let now = Instant::now();
        let claim = Claim { since: now, until: Mutex::new(now), used: vec![(1, Mode::Read), (2, Mode::Write)] };
        let excluded = |address| [Mode::Read, Mode::Write].map(|mode| claim.excludes((address, mode)));
        assert_eq!([1, 2, 3].map(excluded), [[false, true], [true, true], [false, false]]);
    }
}
