//! Histograms, and runs written out.

use kernel_primitives::prelude::*;

use crate::kernels::Twelve;

/// Counts the items of each block with each remainder by 120 for which there is a bin.
#[kernel(max_threads(1024))]
pub fn remainders(
    cx: Block,
    bins: u32,
    x: Global<u32>,
    counts: GlobalMut<u32, Atomic>,
    mut shared: Shared<HistogramStorage<120>>,
) {
    for tile in cx.tiles::<5>(x.len()) {
        let mut items = init::<u32, 5>(0);
        read_data(cx, &mut items, x.tile(tile));
        let items = items.into_iter().take(tile.valid_items(cx));
        let bins = block_histogram(cx, &mut shared, bins as usize, items, |value: u32| (value % 120) as usize);
        let mut bin = cx.thread_rank() as usize;
        while bin < bins.len() {
            counts.at(bin).fetch_add(bins.get(bin));
            bin += cx.block_threads() as usize;
        }
    }
}

/// Writes out runs, and each item's distance from its run's first item.
#[kernel(instantiate(<u8, 32, 1>, <Twelve, 65, 3>))]
pub fn decoded<T: Element, const THREADS: usize, const RUNS: usize>(
    cx: Block,
    values: Global<T>,
    lengths: Global<u32>,
    mut out: GlobalMut<T, Tiles<4>>,
    mut distances: GlobalMut<u32, Tiles<4>>,
    mut shared: Shared<RunLengthStorage<T, THREADS, RUNS>>,
) {
    let (mut own, mut own_lengths) = (init::<T, RUNS>(T::ZERO), init::<u32, RUNS>(0));
    read_data(cx, &mut own, values);
    read_data(cx, &mut own_lengths, lengths);
    let runs = run_length_begin(cx, &mut shared, &own, &own_lengths);
    for tile in cx.tiles::<4>(out.len()) {
        let mut items = init::<T, 4>(T::ZERO);
        let at = run_length_decode(cx, runs, tile.start() as u32, &mut items);
        write_data(cx, out.tile(tile), &items);
        write_data(cx, distances.tile(tile), &at);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use super::{decoded, remainders};
    use crate::case::{Case, Lengths};
    use crate::data::items;
    use crate::items::Item;
    use crate::kernels::Twelve;
    use crate::shape::{Shape, blocks, len};
    use crate::subject::{Subject, exact, subject};

    fn bins(case: &Case) -> usize {
        let mut param = case.param(29);
        [0, 1, 120, param.below(121)][param.below(4)]
    }

    /// Returns the lengths of runs. They and their sum depend only on the parameters.
    fn run_lengths(case: &Case, runs: usize) -> Vec<u32> {
        let mut param = case.param(30);
        let longest = param.one_of(&[1, 2, 5, 60]);
        let mut lengths: Vec<u32> = (0..runs).map(|_| param.below(longest + 1) as u32).collect();
        if param.below(3) == 0 {
            let one = param.below(runs);
            lengths.iter_mut().enumerate().for_each(|(i, length)| *length = if i == one { 500 } else { 0 });
        }
        lengths
    }

    /// Returns the items of all runs with their distances, and a few that are not in a run.
    fn written_out<T: Item>(values: &[T], lengths: &[u32]) -> (Vec<T>, Vec<u32>) {
        let runs = || values.iter().zip(lengths);
        let values = runs().flat_map(|(&value, &length)| (0..length).map(move |_| value)).chain([T::ZERO; 5]);
        (values.collect(), lengths.iter().flat_map(|&length| 0..length).chain([0; 5]).collect())
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = vec![subject(
            &["block_histogram"],
            "u32, 120",
            Lengths::near(&[128 * 5, 1024]).most(4000),
            |case| (items::<u32>(case, 0, len(case, 5 * Shape::of(case, 1024).threads())), vec![0u32; 120]),
            |case, (x, _)| {
                let mut counts = vec![0; 120];
                x.iter().filter(|&x| ((x % 120) as usize) < bins(case)).for_each(|x| counts[(x % 120) as usize] += 1);
                (exact(counts),)
            },
            |case, place, (x, zeros), (counts,)| {
                let (dims, mut counts) = (Shape::of(case, 1024).dims(blocks(case)), counts.exact());
                counts.copy_from_device(place.stream, zeros.get())?;
                remainders::launch(place.stream, dims, bins(case) as u32, x.get(), &mut counts)
            },
        )];
        macro_rules! decodes {
            ($($name:literal, $t:ty, $threads:literal, $runs:literal;)*) => {$(
                all.push(subject(
                    &["run_length_decode", "run_length_begin"],
                    $name,
                    Lengths::near(&[128]).most(500),
                    |case| (items::<$t>(case, 0, $threads * $runs), run_lengths(case, $threads * $runs)),
                    |_, (values, lengths)| {
                        let (values, distances) = written_out(values, lengths);
                        (exact(values), exact(distances))
                    },
                    |_, place, (values, lengths), (out, distances)| {
                        decoded::<$t, $threads, $runs>::launch(
                            place.stream, (1, $threads), values.get(), lengths.get(), out.exact(), distances.exact(),
                        )
                    },
                ));
            )*};
        }
        decodes! { "u8, 32, 1", u8, 32, 1; "Twelve, 65, 3", Twelve, 65, 3; }
        all
    }
}
