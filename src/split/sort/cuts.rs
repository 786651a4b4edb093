//! Finds where sorted runs are cut, so that each device receives exactly its share.
//!
//! A cut has a rank `r`. It takes the first items of each run, `r` items of all runs together, such that no item that it leaves comes
//! before an item that it takes. Among equal items, those of earlier runs come first, and in one run the earlier item. So there is exactly
//! one such cut.
//!
//! Each run has a window that contains the cut. The host reads the items at some places of all windows. For each item that it has read, it
//! then has bounds on the number of items of another run that come before this item: at least all up to the last place whose item comes
//! before, and at most all before the first place whose item comes after. The cut takes an item whose rank is surely less than `r`, and
//! leaves an item whose rank is surely not. The items between form the next window. With `s` places in each window, all windows together
//! shrink to about `4 / s`.
//!
//! With `p` runs and `p` cuts, one such step takes time in `p^3`, times a logarithm of the number of places: for each cut and run it finds
//! two ends by bisection, and each step of the bisection takes a sum over the runs. The comparisons for such a step are made once for all
//! cuts and both ends. For the eight devices of a machine this time does not matter. Hundreds of devices, which only the emulator has, take
//! seconds.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use crate::Result;
use crate::split::host::Call;

/// The number of places of a run that the host reads at a time, in all windows.
const LOOKED: usize = 1 << 15;

/// The least number of places in a window, even if there are many windows.
const LEAST: usize = 64;

/// Items of sorted runs that the host reads and compares. The search is compiled once for all types of items.
trait Items {
    /// Reads the items at ascending places of each run, in place of those that were read before.
    fn read(&mut self, places: &[Vec<usize>]) -> Result<()>;

    /// Returns whether item `i` that was read of a run comes before item `j` of another run, each given as `[run, i]`.
    fn is_before(&self, a: [usize; 2], b: [usize; 2]) -> bool;
}

/// The items of one type.
struct Typed<T, B, L> {
    items: Vec<Vec<T>>,
    is_before: B,
    look: L,
}

impl<T: Copy, B: Fn(T, T) -> bool, L: FnMut(&[Vec<usize>]) -> Result<Vec<Vec<T>>>> Items for Typed<T, B, L> {
    fn read(&mut self, places: &[Vec<usize>]) -> Result<()> {
        self.items = (self.look)(places)?;
        Ok(())
    }

    fn is_before(&self, a: [usize; 2], b: [usize; 2]) -> bool {
        (self.is_before)(self.items[a[0]][a[1]], self.items[b[0]][b[1]])
    }
}

/// The items of one run that the host has read, compared with those of all runs.
struct Compared<'s> {
    items: &'s dyn Items,
    /// The places of the items that were read, in each run.
    places: &'s [Vec<usize>],
    run: usize,
    /// For an item of the run: the number of read items of each other run that come before it.
    before: HashMap<usize, Vec<usize>>,
}

/// The cut of a rank. In each run it is inside a window.
struct Cut {
    rank: usize,
    windows: Vec<Range<usize>>,
}

/// Finds the cuts of ascending ranks in sorted runs with these lengths. Returns the number of items of each run that each cut takes.
///
/// `look` receives ascending places of each run, and returns the items there. If `is_before` is not an order, the cuts are unspecified, but
/// they add up to the ranks, and ascend in each run. If it panics, `call` has a fault.
pub(super) fn cuts<T: Copy>(
    call: Call,
    lens: &[usize],
    ranks: &[usize],
    is_before: impl Fn(T, T) -> bool,
    look: impl FnMut(&[Vec<usize>]) -> Result<Vec<Vec<T>>>,
) -> Result<Vec<Vec<usize>>> {
    cuts_of(call, lens, ranks, &mut Typed { items: Vec::new(), is_before, look })
}

fn cuts_of(call: Call, lens: &[usize], ranks: &[usize], items: &mut dyn Items) -> Result<Vec<Vec<usize>>> {
    let mut cuts: Vec<Cut> =
        ranks.iter().map(|&rank| Cut { rank, windows: lens.iter().map(|&len| 0..len).collect() }).collect();
    cuts.iter_mut().for_each(Cut::tighten);
    let open = |cuts: &[Cut]| cuts.iter().flat_map(|cut| &cut.windows).map(|window| window.len() as u128).sum::<u128>();
    let mut left = open(&cuts);
    while left > 0 {
        let places: Vec<Vec<usize>> =
            (0..lens.len()).map(|run| places(cuts.iter().map(|cut| cut.windows[run].clone()))).collect();
        items.read(&places)?;
        let items = &*items;
        let narrowed = call.run(|| {
            let mut narrowed = vec![Vec::new(); cuts.len()];
            // All cuts of one run come before the next run, so that few comparisons are kept at a time.
            for run in 0..lens.len() {
                let mut compared = Compared { items, places: &places, run, before: HashMap::new() };
                for (cut, windows) in cuts.iter().zip(&mut narrowed) {
                    windows.push(cut.narrowed(&mut compared));
                }
            }
            narrowed
        })?;
        for (cut, windows) in cuts.iter_mut().zip(narrowed) {
            cut.windows = windows;
            cut.tighten();
        }
        let now = open(&cuts);
        // If `is_before` is an order, less than half is left.
        if now > left / 2 {
            break;
        }
        left = now;
    }
    let mut all = Vec::with_capacity(cuts.len());
    let mut before = vec![0; lens.len()];
    for cut in cuts {
        before = cut.counts(lens, &before);
        all.push(before.clone());
    }
    Ok(all)
}

/// Returns the places to read in the windows of one run: all places of a short window, and places at equal distances in a long one.
fn places(windows: impl Iterator<Item = Range<usize>>) -> Vec<usize> {
    let mut windows: Vec<(usize, usize)> =
        windows.filter(|window| !window.is_empty()).map(|window| (window.start, window.len())).collect();
    windows.sort_unstable();
    windows.dedup();
    let most = (LOOKED / windows.len().max(1)).max(LEAST);
    let of_window = |(start, len): (usize, usize)| {
        let count = len.min(most);
        (0..count).map(move |i| start + (i as u128 * len as u128 / count as u128) as usize)
    };
    let mut places: Vec<usize> = windows.into_iter().flat_map(of_window).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns the first number of a range for which a condition is false, if it is true for all numbers before it.
fn first_not(range: Range<usize>, mut is_true: impl FnMut(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if is_true(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    start
}

impl Compared<'_> {
    /// Returns the number of read items of each other run that come before an item of this run.
    fn before(&mut self, at: usize) -> &[usize] {
        let Self { items, places, run, .. } = *self;
        self.before.entry(at).or_insert_with(|| {
            let count = |other: usize| {
                let all = 0..places[other].len();
                match other.cmp(&run) {
                    Ordering::Less => first_not(all, |i| !items.is_before([run, at], [other, i])),
                    Ordering::Equal => at,
                    Ordering::Greater => first_not(all, |i| items.is_before([other, i], [run, at])),
                }
            };
            (0..places.len()).map(count).collect()
        })
    }
}

impl Cut {
    /// Narrows each window to the counts that the other windows leave for it.
    fn tighten(&mut self) {
        let sum = |ends: fn(&Range<usize>) -> usize| self.windows.iter().map(ends).sum::<usize>();
        let (least, most) = (sum(|window| window.start), sum(|window| window.end));
        for window in &mut self.windows {
            let start = self.rank.saturating_sub(most - window.end).clamp(window.start, window.end);
            let end = self.rank.saturating_sub(least - window.start).clamp(start, window.end);
            *window = start..end;
        }
    }

    /// Returns the part of a run's window that can contain the cut, according to the items that the host has read.
    fn narrowed(&self, of: &mut Compared<'_>) -> Range<usize> {
        let (window, places) = (&self.windows[of.run], &of.places[of.run]);
        let inside = |end: usize| places.partition_point(|&place| place < end);
        let own = inside(window.start)..inside(window.end);
        let taken = first_not(own.clone(), |at| self.ranks(of, at).1 < self.rank);
        // An item that is surely taken is not surely left.
        let left = first_not(taken..own.end, |at| self.ranks(of, at).0 < self.rank);
        let start = if taken > own.start { places[taken - 1] + 1 } else { window.start };
        let end = if left < own.end { places[left] } else { window.end };
        start..end
    }

    /// Returns the least and the greatest rank of an item of a run. In each other run, at least the items before the window come before
    /// this item, and at most the items before the window's end.
    fn ranks(&self, of: &mut Compared<'_>, at: usize) -> (usize, usize) {
        let (all_places, run) = (of.places, of.run);
        let place = all_places[run][at];
        let (mut least, mut most) = (place, place);
        let others = self.windows.iter().zip(all_places).zip(of.before(at)).enumerate();
        for (_, ((window, places), &count)) in others.filter(|&(other, _)| other != run) {
            let after_last = count.checked_sub(1).map_or(0, |last| places[last] + 1);
            let first = places.get(count).copied().unwrap_or(usize::MAX);
            least += after_last.clamp(window.start, window.end);
            most += first.clamp(window.start, window.end);
        }
        (least, most)
    }

    /// Returns the number of items of each run that are taken: the beginning of the run's window. The beginnings are changed only if they
    /// do not add up to the rank, or if the cut before takes more items of a run.
    fn counts(&self, lens: &[usize], before: &[usize]) -> Vec<usize> {
        let mut counts: Vec<usize> =
            self.windows.iter().zip(before).map(|(window, &before)| window.start.max(before)).collect();
        let mut sum: usize = counts.iter().sum();
        for (run, count) in counts.iter_mut().enumerate() {
            let fewer = sum.saturating_sub(self.rank).min(*count - before[run]);
            let more = self.rank.saturating_sub(sum).min(lens[run] - *count);
            *count = *count - fewer + more;
            sum = sum - fewer + more;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Returns the cuts, and the number of times that the host looked.
    fn found(runs: &[Vec<u32>], ranks: &[usize], is_before: impl Fn(u32, u32) -> bool) -> (Vec<Vec<usize>>, usize) {
        let lens: Vec<usize> = runs.iter().map(Vec::len).collect();
        let mut looks = 0;
        let cuts = cuts(Call::of("cuts"), &lens, ranks, is_before, |places| {
            looks += 1;
            let of = |(run, places): (&Vec<u32>, &Vec<usize>)| {
                assert!(places.is_sorted_by(|a, b| a < b));
                places.iter().map(|&place| run[place]).collect()
            };
            Ok(runs.iter().zip(places).map(of).collect())
        });
        (cuts.expect("cuts"), looks)
    }

    /// Computes the cuts by a sort of all items with their runs.
    fn expected(runs: &[Vec<u32>], ranks: &[usize]) -> Vec<Vec<usize>> {
        let items = runs.iter().enumerate().flat_map(|(run, items)| items.iter().map(move |&item| (item, run)));
        let mut all: Vec<(u32, usize)> = items.collect();
        all.sort_unstable();
        let of_run = |rank: usize, run: usize| all[..rank].iter().filter(|(_, of)| *of == run).count();
        ranks.iter().map(|&rank| (0..runs.len()).map(|run| of_run(rank, run)).collect()).collect()
    }

    fn hash(i: usize) -> u32 {
        (i as u32).wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519) >> 7
    }

    fn run(len: usize, item: impl Fn(usize) -> u32) -> Vec<u32> {
        let mut items: Vec<u32> = (0..len).map(item).collect();
        items.sort_unstable();
        items
    }

    #[test]
    fn cuts_are_those_of_a_sort() {
        let lens: [&[usize]; 9] =
            [&[0], &[1], &[5], &[0, 3], &[4, 4], &[1, 0, 9], &[7, 2, 5], &[0, 0, 6, 0], &[3, 1, 4, 1, 5, 9, 2, 6]];
        let items: [fn(usize, usize) -> u32; 5] = [
            |_, _| 7,
            |run, i| hash(1000 * run + i) % 5,
            |run, i| hash(1000 * run + i),
            |run, i| (100 * run + i) as u32,
            |run, i| (10_000 - 100 * run + i) as u32,
        ];
        for lens in lens {
            for item in items {
                let runs: Vec<Vec<u32>> =
                    lens.iter().enumerate().map(|(number, &len)| run(len, |i| item(number, i))).collect();
                let ranks: Vec<usize> = (0..=lens.iter().sum()).collect();
                assert_eq!(found(&runs, &ranks, |a, b| a < b).0, expected(&runs, &ranks), "{runs:?}");
            }
        }
    }

    #[test]
    fn few_looks_at_many_items_are_enough() {
        type Item = fn(usize, usize) -> u32;
        let kinds: [(&str, Item); 5] = [
            ("all equal", |_, _| 7),
            ("few values", |run, i| hash(1_000_000 * run + i) % 3),
            ("random", |run, i| hash(1_000_000 * run + i)),
            ("in turn", |run, i| (1_000_000 * run + i) as u32),
            ("one run has the small ones", |run, i| if run == 2 { i as u32 } else { hash(i) | 1 << 24 }),
        ];
        for (kind, item) in kinds {
            for lens in [[40_000, 40_000, 40_000], [1, 90_000, 5], [20_000, 0, 50_000]] {
                let runs: Vec<Vec<u32>> =
                    lens.iter().enumerate().map(|(number, &len)| run(len, |i| item(number, i))).collect();
                let all: usize = lens.iter().sum();
                let ranks = [0, 1, all / 3, all / 3, all / 2, all - 1, all];
                let (cuts, looks) = found(&runs, &ranks, |a, b| a < b);
                assert_eq!(cuts, expected(&runs, &ranks), "{kind}, {lens:?}");
                assert!(looks <= 3, "{kind}, {lens:?}: {looks}");
            }
        }
    }

    /// Each requested item is compared with each other run once, by bisection.
    #[test]
    fn many_runs_take_few_comparisons() {
        let runs: Vec<Vec<u32>> = (0..64).map(|number| run(100, |i| hash(1000 * number + i))).collect();
        let ranks: Vec<usize> = (1..64).map(|run| 100 * run).collect();
        let count = Cell::new(0);
        let (cuts, looks) = found(&runs, &ranks, |a, b| {
            count.set(count.get() + 1);
            a < b
        });
        assert_eq!((cuts, looks), (expected(&runs, &ranks), 1));
        assert!(count.get() <= 6400 * 63 * 8, "{}", count.get());
    }

    #[test]
    fn a_panic_of_a_comparison_is_a_fault() {
        let look = |places: &[Vec<usize>]| Ok(places.to_vec());
        let cuts = cuts(Call::of("cuts"), &[5, 5], &[5], |_, _| panic!("no comparison"), look);
        assert!(matches!(cuts, Err(crate::Error::Fault(_))), "{cuts:?}");
    }

    #[test]
    fn what_is_no_order_gives_cuts_of_the_right_size() {
        let runs: Vec<Vec<u32>> = [70_000, 0, 3, 50_000].into_iter().map(|len| (0..len).map(hash).collect()).collect();
        let ranks = [0, 40_000, 40_001, 90_000, 120_003];
        let lies: [fn(u32, u32) -> bool; 4] =
            [|_, _| true, |_, _| false, |a, b| a % 3 < b % 2, |a, b| a.wrapping_sub(b) > 1 << 30];
        for is_before in lies {
            let (cuts, _) = found(&runs, &ranks, is_before);
            for (cut, rank) in cuts.iter().zip(ranks) {
                assert_eq!(cut.iter().sum::<usize>(), rank);
                assert!(cut.iter().zip(&runs).all(|(&count, run)| count <= run.len()));
            }
            assert!(cuts.is_sorted_by(|a, b| a.iter().zip(b).all(|(a, b)| a <= b)));
        }
    }
}
