use primitives_gpu::simt::AtomicOrder::{self, Acquire, Relaxed, Release};
use primitives_gpu::simt::Scope;
use primitives_gpu::simt::emulated::{AccessKind, Space};

use super::summaries::SMALL_GRAPH;
use super::*;

const FLAG: usize = 64;

/// Causality and the atomics of one memory.
#[derive(Default)]
struct Graph(Causality, Variables);

impl Graph {
    fn atomic(&mut self, clock: &BlockClock, lane: u32, kind: AccessKind, space: Space, address: usize) {
        self.0.make_room(&mut self.1);
        self.0.atomic(&mut self.1, clock, lane, kind, space, address);
    }
}

fn write(order: AtomicOrder) -> AccessKind {
    AccessKind::AtomicWrite(order, Scope::Device)
}

fn read(order: AtomicOrder) -> AccessKind {
    AccessKind::AtomicRead(order, Scope::Device)
}

/// Blocks of 64 threads.
fn clocks(graph: &mut Graph) -> [Rc<BlockClock>; 3] {
    [0, 1, 2].map(|rank| {
        let clock = graph.0.clock(64);
        clock.start(rank);
        clock
    })
}

#[test]
fn a_barrier_orders_the_block() {
    let mut causality = Graph::default();
    let [clock, ..] = clocks(&mut causality);
    let past = clock.now(3);
    assert!(causality.0.is_before(past, &clock, 3) && !causality.0.is_before(past, &clock, 4));
    causality.0.barrier(&clock);
    assert!(causality.0.is_before(past, &clock, 4) && causality.0.is_before(past, &clock, 63));
    assert!(!causality.0.is_before(clock.now(3), &clock, 4));
}

#[test]
fn a_warp_barrier_orders_the_lanes_of_its_mask() {
    let mut causality = Graph::default();
    let [clock, ..] = clocks(&mut causality);
    for _ in 0..3 {
        let past = clock.now(3);
        causality.0.sync_warp(&clock, 0, 0x0000_00ff, !0);
        assert!(causality.0.is_before(past, &clock, 7));
        assert!(!causality.0.is_before(past, &clock, 8) && !causality.0.is_before(past, &clock, 35));
        let of_another = clock.now(20);
        causality.0.sync_warp(&clock, 0, 0x0000_00ff, !0);
        assert!(!causality.0.is_before(of_another, &clock, 3));
        causality.0.sync_warp(&clock, 0, !0, !0);
        assert!(causality.0.is_before(past, &clock, 8) && causality.0.is_before(of_another, &clock, 3));
        assert!(!causality.0.is_before(past, &clock, 35));
    }
    assert!(causality.0.nodes.len() < 10, "repeated meetings of one mask take one node");
}

#[test]
fn a_meeting_that_was_released_stays_what_it_was() {
    let mut causality = Graph::default();
    let [one, other, _] = clocks(&mut causality);
    causality.0.sync_warp(&one, 0, 0xff, !0);
    causality.atomic(&one, 0, write(Release), Space::Global, FLAG);
    let later = one.now(5);
    causality.0.sync_warp(&one, 0, 0xff, !0);
    causality.atomic(&other, 9, read(Acquire), Space::Global, FLAG);
    assert!(!causality.0.is_before(later, &other, 9));
}

#[test]
fn a_chain_of_releases_and_acquires_orders_blocks() {
    let mut causality = Graph::default();
    let [one, two, three] = clocks(&mut causality);
    let past = one.now(40);
    causality.0.barrier(&one);
    let unreleased = one.now(41);
    causality.atomic(&one, 0, write(Release), Space::Global, FLAG);
    let after = one.now(0);
    causality.atomic(&two, 5, read(Acquire), Space::Global, FLAG);
    assert!(causality.0.is_before(past, &two, 5) && !causality.0.is_before(past, &two, 6));
    assert!(!causality.0.is_before(unreleased, &two, 5) && !causality.0.is_before(after, &two, 5));
    causality.0.barrier(&two);
    assert!(causality.0.is_before(past, &two, 63));
    causality.atomic(&two, 63, write(Release), Space::Global, FLAG + 4);
    causality.atomic(&three, 1, read(Acquire), Space::Global, FLAG + 4);
    assert!(causality.0.is_before(past, &three, 1) && !causality.0.is_before(unreleased, &three, 1));
}

#[test]
fn relaxed_accesses_need_fences_on_both_sides_of_sufficient_scope() {
    for (release, acquire, ordered) in [
        (Some(Scope::Device), Some(Scope::Device), true),
        (Some(Scope::System), Some(Scope::Device), true),
        (Some(Scope::Block), Some(Scope::Device), false),
        (Some(Scope::Device), Some(Scope::Block), false),
        (None, Some(Scope::Device), false),
        (Some(Scope::Device), None, false),
    ] {
        let mut causality = Graph::default();
        let [one, other, _] = clocks(&mut causality);
        let past = one.now(0);
        release.inspect(|&scope| causality.0.fence(&one, 0, scope));
        causality.atomic(&one, 0, write(Relaxed), Space::Global, FLAG);
        causality.atomic(&other, 0, read(Relaxed), Space::Global, FLAG);
        acquire.inspect(|&scope| causality.0.fence(&other, 0, scope));
        assert_eq!(causality.0.is_before(past, &other, 0), ordered, "{release:?} {acquire:?}");
    }
}

#[test]
fn inside_a_block_its_scope_suffices() {
    for space in [Space::Shared, Space::Global] {
        let mut causality = Graph::default();
        let [clock, ..] = clocks(&mut causality);
        let past = clock.now(0);
        causality.0.fence(&clock, 0, Scope::Block);
        causality.atomic(&clock, 0, write(Relaxed), space, FLAG);
        causality.atomic(&clock, 50, read(Relaxed), space, FLAG);
        assert!(!causality.0.is_before(past, &clock, 50));
        causality.0.fence(&clock, 50, Scope::Block);
        assert!(causality.0.is_before(past, &clock, 50) && !causality.0.is_before(past, &clock, 51));
    }
}

#[test]
fn a_store_ends_what_was_released_and_an_update_does_not() {
    for (kind, ordered) in [(write(Relaxed), false), (AccessKind::AtomicUpdate(Relaxed, Scope::Device), true)] {
        let mut causality = Graph::default();
        let [one, two, three] = clocks(&mut causality);
        let past = one.now(0);
        causality.atomic(&one, 0, write(Release), Space::Global, FLAG);
        causality.atomic(&two, 0, kind, Space::Global, FLAG);
        causality.atomic(&three, 0, read(Acquire), Space::Global, FLAG);
        assert_eq!(causality.0.is_before(past, &three, 0), ordered);
    }
}
/// Any number of updates by a few lanes leaves a graph of few nodes, in which all is still known that was.
#[test]
fn many_updates_leave_few_nodes() {
    let mut causality = Graph::default();
    let [one, two, three] = clocks(&mut causality);
    let update = AccessKind::AtomicUpdate(AtomicOrder::AcqRel, Scope::Device);
    let (past, unreleased) = (one.now(40), one.now(5));
    causality.atomic(&one, 40, write(Release), Space::Global, FLAG);
    causality.0.sync_warp(&one, 1, !0, !0);
    let synced = one.now(50);
    causality.0.sync_warp(&one, 1, !0, !0);
    causality.atomic(&three, 7, read(Relaxed), Space::Global, FLAG);
    let most = (0..1u32 << 19).map(|i| {
        let (clock, lane) = if i % 3 == 0 { (&one, 33) } else { (&two, i / 5 % 40) };
        causality.atomic(clock, lane, update, Space::Global, FLAG + 4 * (i as usize / 7 % 3));
        causality.0.nodes.len()
    });
    assert!(most.max() <= Some(SMALL_GRAPH + 2), "they are summarized");

    let after = two.now(11);
    for address in [FLAG, FLAG + 4, FLAG + 8] {
        causality.atomic(&three, 20, read(Acquire), Space::Global, address);
    }
    let mut knows = |past, lane| causality.0.is_before(past, &three, lane);
    assert!(knows(past, 20) && knows(synced, 20), "what was released first, and what its warp did");
    assert!(!knows(unreleased, 20) && !knows(one.now(0), 20) && !knows(two.now(0), 20) && !knows(after, 20));
    assert!(!knows(past, 7), "a relaxed load alone orders nothing");
    causality.0.fence(&three, 7, Scope::Device);
    assert!(causality.0.is_before(past, &three, 7) && !causality.0.is_before(synced, &three, 7));
}

/// Random lanes synchronise in all ways, once with a graph that is summarized all the time, and once with one that never is.
#[test]
fn summaries_know_what_the_graph_knows() {
    for seed in 0..20 {
        let mut state: u64 = seed;
        let mut random = move |end: u32| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) as u32) % end
        };
        let mut graphs = [Graph::default(), Graph::default()];
        let [small, large] = graphs.each_mut().map(clocks);
        let mut moments = Vec::new();
        for step in 0..3000 {
            let (block, lane, address) = (random(3) as usize, random(64), FLAG + 4 * random(5) as usize);
            moments.push(small[block].now(lane));
            let order = [Relaxed, Acquire, Release, AtomicOrder::AcqRel][random(4) as usize];
            let scope = [Scope::Block, Scope::Device][random(2) as usize];
            let space = [Space::Global, Space::Shared][random(2) as usize];
            let (action, mask) = (random(12), 1 << (lane % WARP) | random(u32::MAX));
            for (graph, clocks) in graphs.iter_mut().zip([&small, &large]) {
                let (Graph(causality, variables), clock) = (graph, &clocks[block]);
                let kind = match action {
                    0 => {
                        causality.fence(clock, lane, scope);
                        continue;
                    }
                    1 => {
                        causality.sync_warp(clock, lane / WARP, mask, !0);
                        continue;
                    }
                    2 if step % 5 == 0 => {
                        causality.barrier(clock);
                        continue;
                    }
                    3..6 => AccessKind::AtomicRead(order, scope),
                    6..8 => AccessKind::AtomicWrite(order, scope),
                    _ => AccessKind::AtomicUpdate(order, scope),
                };
                let own = &mut *clock.variables.borrow_mut();
                let variables = if space == Space::Shared { own } else { variables };
                causality.atomic(variables, clock, lane, kind, space, address);
            }
            if step % 64 == 0 {
                let Graph(causality, variables) = &mut graphs[0];
                causality.summarize(variables);
                let lanes = 3 * 64 * LaneClock::default().nodes().len();
                assert!(causality.nodes.len() <= lanes + 4 * 20, "{}", causality.nodes.len());
            }
            let past = moments[random(moments.len() as u32) as usize];
            let known = [0, 1].map(|i| graphs[i].0.is_before(past, &[&small, &large][i][block], lane));
            assert_eq!(known[0], known[1], "seed {seed}, step {step}: {past:?} by lane {lane} of block {block}");
        }
    }
}
