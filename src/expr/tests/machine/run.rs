//! Runs blocks and their warps in turns.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::{Argument, Given, LANES, Lanes, Launch, Machine, SharedMemory, What};

/// The place of lanes that have returned.
const NOWHERE: usize = usize::MAX;

/// The number of blocks that run at once.
const AT_ONCE: usize = 64;

/// The number of successive turns, for each running block, that may end at a branch back. After these, all blocks have looked at the values
/// that they wait for, and no block will go on.
const IN_VAIN: usize = 64;

struct Warp<'a> {
    launch: Launch<'a>,
    registers: Vec<Lanes>,
    /// The place at which each lane goes on.
    at: [usize; LANES],
    /// Whether it waits for the other warps of its block.
    waits: bool,
}

impl Machine {
    /// Runs all blocks with these parameters, one after the other. Each has `threads` threads. Accesses are to bytes in `reads` or
    /// `writes`.
    pub(crate) fn run(
        &self,
        blocks: usize,
        threads: usize,
        words: &[u64],
        reads: &[Range<u64>],
        writes: &[Range<u64>],
    ) {
        let given = self.given((blocks, threads), words, reads, writes);
        for block in 0..blocks {
            let mut warps = self.block(&given, block);
            while !is_done(&warps) {
                turn(&mut warps, 0, false);
            }
        }
    }

    /// Works as [`run`](Self::run), with many blocks at once. A random block goes on to a barrier or a branch back, from a random warp on.
    /// This is for kernels whose loops wait for other blocks. It panics if all blocks wait for good.
    pub(crate) fn run_at_once(
        &self,
        blocks: usize,
        threads: usize,
        words: &[u64],
        reads: &[Range<u64>],
        writes: &[Range<u64>],
        seed: u64,
    ) {
        let given = self.given((blocks, threads), words, reads, writes);
        let (mut state, mut in_vain) = (seed, 0);
        let mut rest = 0..blocks;
        let mut under_way: Vec<Vec<Warp<'_>>> = Vec::new();
        loop {
            let room = AT_ONCE - under_way.len();
            under_way.extend(rest.by_ref().take(room).map(|block| self.block(&given, block)));
            if under_way.is_empty() {
                return;
            }
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let which = (state >> 33) as usize % under_way.len();
            let first = (state >> 48) as usize;
            in_vain = if turn(&mut under_way[which], first, true) { 0 } else { in_vain + 1 };
            assert!(in_vain < IN_VAIN * under_way.len(), "blocks wait for good");
            if is_done(&under_way[which]) {
                under_way.swap_remove(which);
            }
        }
    }

    fn given<'a>(
        &self,
        (blocks, threads): (usize, usize),
        words: &'a [u64],
        reads: &'a [Range<u64>],
        writes: &'a [Range<u64>],
    ) -> Given<'a> {
        let words_in = |table: &Vec<u64>| {
            let start = table.as_ptr().expose_provenance() as u64;
            start..start + 8 * table.len() as u64
        };
        Given { blocks, threads, words, reads, writes, constants: self.constants.iter().map(words_in).collect() }
    }

    /// Returns the warps of a block, at its beginning.
    fn block<'a>(&'a self, given: &'a Given<'a>, block: usize) -> Vec<Warp<'a>> {
        let shared =
            SharedMemory { bytes: vec![0; self.shared], written: vec![false; self.shared], ..SharedMemory::default() };
        let shared = Rc::new(RefCell::new(shared));
        let warp = |first: usize| Warp {
            launch: Launch { machine: self, given, block, first, shared: shared.clone() },
            registers: vec![[0; LANES]; self.registers],
            // The last warp may have fewer lanes.
            at: std::array::from_fn(|lane| if first + lane < given.threads { 0 } else { NOWHERE }),
            waits: false,
        };
        (0..given.threads).step_by(LANES).map(warp).collect()
    }
}

fn is_done(warps: &[Warp<'_>]) -> bool {
    warps.iter().all(Warp::is_done)
}

/// Runs the warps of a block that can go on, from the warp `first` on; see [`Warp::run`]. Returns whether a warp came to something other than
/// a branch back.
fn turn(warps: &mut [Warp<'_>], first: usize, takes_turns: bool) -> bool {
    let (mut has_gone_on, (before, after)) = (false, warps.split_at_mut(first % warps.len()));
    for warp in after.iter_mut().chain(before).filter(|warp| !warp.waits && !warp.is_done()) {
        has_gone_on |= warp.run(takes_turns);
    }
    if warps.iter().all(|warp| warp.waits || warp.is_done()) {
        warps.iter_mut().for_each(|warp| warp.waits = false);
    }
    has_gone_on
}

impl Warp<'_> {
    fn is_done(&self) -> bool {
        self.at.iter().all(|&at| at == NOWHERE)
    }

    /// Runs to a barrier, to the end or, if blocks take turns, to a branch back. Returns false for a branch back.
    fn run(&mut self, takes_turns: bool) -> bool {
        let machine = self.launch.machine;
        loop {
            let at = self.at.into_iter().min().expect("lanes");
            let Some(instruction) = machine.code.get(at) else {
                self.at = [NOWHERE; LANES];
                return true;
            };
            let here = self.at.map(|lane| lane == at);
            let active: [bool; LANES] = std::array::from_fn(|lane| {
                let holds = |(register, not): (usize, bool)| (self.registers[register][lane] != 0) != not;
                here[lane] && instruction.guard.is_none_or(holds)
            });
            let together = || (0..LANES).all(|lane| here[lane] || self.at[lane] == NOWHERE);
            let mut next = at + 1;
            match &instruction.what {
                What::Return => next = NOWHERE,
                What::Branch => {
                    let Some(Argument::Label(label)) = instruction.arguments.first() else { panic!("a label") };
                    let parts = active != here && active.contains(&true);
                    assert!(machine.parting || !parts, "lanes part at {}", instruction.text);
                    let to = machine.labels[label];
                    for lane in (0..LANES).filter(|&lane| here[lane]) {
                        self.at[lane] = if active[lane] { to } else { next };
                    }
                    if takes_turns && to <= at && active.contains(&true) {
                        return false;
                    }
                    continue;
                }
                What::Barrier | What::WarpBarrier => assert!(together(), "some lanes wait at {}", instruction.text),
                _ => self.launch.step(instruction, &active, &mut self.registers),
            }
            for lane in (0..LANES).filter(|&lane| here[lane]) {
                self.at[lane] = next;
            }
            if matches!(instruction.what, What::Barrier) {
                self.waits = true;
                return true;
            }
        }
    }
}
