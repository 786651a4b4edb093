//! Runs blocks and their warps in turns.

use std::ops::Range;
use std::rc::Rc;

use super::{Argument, Cluster, Given, LANES, Lanes, Launch, Machine, What};

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
    /// How often it has arrived at the barrier of its cluster.
    arrivals: u64,
}

impl Machine {
    /// Runs all blocks with these parameters, one after the other. Each has `threads` threads. Accesses are to bytes in `reads` or
    /// `writes`.
    ///
    /// # Safety
    /// The ranges are initialized memory with exposed provenance. Nothing else accesses it until this returns. Where the kernel copies tiles,
    /// their maps are [`TestMap`](crate::TestMap)s.
    pub unsafe fn run(
        &self,
        blocks: usize,
        threads: usize,
        words: &[u64],
        reads: &[Range<u64>],
        writes: &[Range<u64>],
    ) {
        assert_eq!(self.cluster, 1, "blocks of a cluster run at once");
        let given = self.given((blocks, threads), words, reads, writes);
        for block in 0..blocks {
            let mut warps = self.cluster(&given, block).remove(0);
            while !is_done(&warps) {
                turn(&mut warps, 0, false);
            }
        }
    }

    /// Works as [`run`](Self::run), with many blocks at once. A random block goes on to a barrier or a branch back, from a random warp on.
    /// This is for kernels whose loops wait for other blocks, and for clusters. It panics if all blocks wait for good.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    pub unsafe fn run_at_once(
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
        assert!(blocks.is_multiple_of(self.cluster), "whole clusters");
        let mut rest = 0..blocks / self.cluster;
        let mut under_way: Vec<Vec<Warp<'_>>> = Vec::new();
        loop {
            let room = (AT_ONCE - under_way.len()) / self.cluster;
            under_way.extend(rest.by_ref().take(room).flat_map(|cluster| self.cluster(&given, cluster)));
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

    /// Returns the warps of each block of a cluster, at its beginning.
    fn cluster<'a>(&'a self, given: &'a Given<'a>, number: usize) -> Vec<Vec<Warp<'a>>> {
        let cluster = Rc::new(Cluster::new(self.cluster, given.threads.div_ceil(LANES), self.shared));
        let warp = |block: usize, first: usize| Warp {
            launch: Launch { machine: self, given, block, first, cluster: cluster.clone() },
            registers: vec![[0; LANES]; self.registers],
            // The last warp may have fewer lanes.
            at: std::array::from_fn(|lane| if first + lane < given.threads { 0 } else { NOWHERE }),
            waits: false,
            arrivals: 0,
        };
        let blocks = number * self.cluster..(number + 1) * self.cluster;
        let of_block = |block| (0..given.threads).step_by(LANES).map(|first| warp(block, first)).collect();
        blocks.map(of_block).collect()
    }
}

fn is_done(warps: &[Warp<'_>]) -> bool {
    warps.iter().all(Warp::is_done)
}

/// Runs the warps of a block that can go on, from the warp `first` on; see [`Warp::run`]. Returns whether a warp came to something other than
/// a branch back.
fn turn(warps: &mut [Warp<'_>], first: usize, takes_turns: bool) -> bool {
    set_lives(warps, true);
    let (mut has_gone_on, (before, after)) = (false, warps.split_at_mut(first % warps.len()));
    for warp in after.iter_mut().chain(before).filter(|warp| !warp.waits && !warp.is_done()) {
        has_gone_on |= warp.run(takes_turns);
    }
    if warps.iter().all(|warp| warp.waits || warp.is_done()) {
        warps.iter_mut().for_each(|warp| warp.waits = false);
    }
    set_lives(warps, !is_done(warps));
    has_gone_on
}

fn set_lives(warps: &[Warp<'_>], lives: bool) {
    if let Some(warp) = warps.first() {
        warp.launch.shared().borrow_mut().lives = lives;
    }
}

impl Warp<'_> {
    fn is_done(&self) -> bool {
        self.at.iter().all(|&at| at == NOWHERE)
    }

    /// Runs to a barrier, to the end or, if blocks take turns, to a branch back. Returns false for a branch back, and if it waits for another
    /// block of its cluster.
    fn run(&mut self, takes_turns: bool) -> bool {
        let machine = self.launch.machine;
        loop {
            let at = self.at.into_iter().min().expect("lanes");
            let Some(instruction) = machine.code.get(at) else {
                self.at = [NOWHERE; LANES];
                return true;
            };
            let mut here = [false; LANES];
            for (here, lane) in here.iter_mut().zip(&self.at) {
                *here = *lane == at;
            }
            let mut active = here;
            if let Some((register, not)) = instruction.guard {
                for (active, value) in active.iter_mut().zip(&self.registers[register]) {
                    *active &= (*value != 0) != not;
                }
            }
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
                What::Arrive => {
                    assert!(together(), "some lanes arrive at {}", instruction.text);
                    self.arrivals += 1;
                    self.launch.cluster.arrive();
                }
                What::Meet => {
                    assert!(together(), "some lanes wait at {}", instruction.text);
                    if self.launch.cluster.phases.get() < self.arrivals {
                        return false;
                    }
                }
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
