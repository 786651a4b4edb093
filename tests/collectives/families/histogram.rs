//! Histograms, and runs written out.

use super::Twelve;
use kernel_primitives::functor::Cast;
use kernel_primitives::prelude::*;

/// Counts the values with each remainder for each block, tile after tile with the same storage.
#[kernel]
pub fn remainders(
    cx: Block,
    bins: u32,
    x: Global<u32>,
    counts: GlobalMut<u32, Atomic>,
    mut shared: Shared<HistogramStorage<100>>,
) {
    for tile in cx.tiles::<5>(x.len()) {
        let mut items = init::<u32, 5>(0);
        read_data(cx, &mut items, x.tile(tile));
        let items = items.into_iter().take(tile.valid_items(cx));
        let items = items.map(|value| value % 120);
        let bins = block_histogram(cx, &mut shared, bins as usize, items, Cast::<usize>::new());
        let mut bin = cx.thread_rank() as usize;
        while bin < bins.len() {
            counts.at(bin).fetch_add(bins.get(bin));
            bin += cx.block_threads() as usize;
        }
    }
}

/// Writes out runs, and each item's distance from its run's start.
#[kernel(instantiate(<u8, 32, 1>, <Twelve, 96, 3>, <u32, 65, 2>))]
pub fn decoded<T: Element, const THREADS: usize, const RUNS: usize>(
    cx: Block,
    values: Global<T>,
    lengths: Global<u32>,
    mut out: GlobalMut<T, Tiles<4>>,
    mut offsets: GlobalMut<u32, Tiles<4>>,
    mut total: GlobalMut<u32, PerBlock>,
    mut shared: Shared<RunLengthStorage<T, THREADS, RUNS>>,
) {
    let (mut v, mut l) = (init::<T, RUNS>(T::ZERO), init::<u32, RUNS>(0));
    read_data(cx, &mut v, values);
    read_data(cx, &mut l, lengths);
    // This runs twice, so that the storage is used again.
    run_length_begin(cx, &mut shared, &v, &l);
    let runs = run_length_begin(cx, &mut shared, &v, &l);
    for tile in cx.tiles::<4>(out.len()) {
        let mut items = init::<T, 4>(T::ZERO);
        let at = run_length_decode(cx, runs, tile.start() as u32, &mut items);
        write_data(cx, out.tile(tile), &items);
        write_data(cx, offsets.tile(tile), &at);
    }
    total.store(runs.len());
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::{Buffer, Result, Stream};
    use proptest::prelude::any;

    use crate::families::Twelve;
    use crate::families::histogram as kernels;
    use crate::support::{Arbitrary, Random, holds, stream, streams, values};

    fn blocks_count((threads, bins, len, seed): (u32, u32, usize, u64), stream: &Stream) -> Result<()> {
        let x: Vec<u32> = values(len, seed);
        let mut counts = stream.buffer_zeroed(100)?;
        kernels::remainders::launch(stream, (3, threads), bins, &stream.buffer_from(&x)?, &mut counts)?;
        let mut expected = vec![0u32; 100];
        x.iter().filter(|&x| x % 120 < bins).for_each(|x| expected[(x % 120) as usize] += 1);
        assert_eq!(counts.to_vec()?, expected, "{threads} threads, {bins} bins, {len} items");
        Ok(())
    }

    #[test]
    fn sanitize_blocks_count_remainders() -> Result<()> {
        for stream in streams()? {
            for (threads, bins) in [(1, 100), (7, 3), (65, 100), (128, 1), (256, 100), (96, 0)] {
                blocks_count((threads, bins, 3001, 4), &stream)?;
            }
        }
        Ok(())
    }

    #[test]
    fn blocks_of_any_size_count_any_number_of_items() {
        holds(16, (1..400u32, 0..=100u32, 0..4000usize, any::<u64>()), |case| blocks_count(case, &stream()?));
    }

    #[test]
    fn more_bins_than_the_storage_has_are_a_fault() -> Result<()> {
        let stream = stream()?;
        let mut counts = stream.buffer_zeroed(200)?;
        let launched = kernels::remainders::launch(&stream, (1, 32), 101, &stream.buffer_from(&[1])?, &mut counts);
        let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
        assert!(error.to_string().contains("a size of 101; its limit is 100"), "{error}");
        Ok(())
    }

    fn decodes<T: Arbitrary>(
        runs: usize,
        launch: impl Fn(&Stream, &Buffer<T>, &Buffer<u32>, &mut Buffer<T>, [&mut Buffer<u32>; 2]) -> Result<()>,
    ) -> Result<()> {
        let check = |stream: &Stream, longest: u64, seed| -> Result<()> {
            let x: Vec<T> = values(runs, seed);
            let mut random = Random::new(longest ^ seed);
            let lengths: Vec<u32> = x.iter().map(|_| random.below(longest + 1) as u32).collect();
            let mut decoded: Vec<T> = Vec::new();
            let mut offsets: Vec<u32> = Vec::new();
            for (&value, &length) in x.iter().zip(&lengths) {
                decoded.extend((0..length).map(|_| value));
                offsets.extend(0..length);
            }
            let total = decoded.len() as u32;
            // A few places more than the runs have are read.
            decoded.resize(decoded.len() + 9, T::ZERO);
            offsets.resize(decoded.len(), 0);
            let (mut out, mut at) = (stream.buffer_zeroed(decoded.len())?, stream.buffer_zeroed(decoded.len())?);
            let mut count = stream.buffer_zeroed(1)?;
            let (values, lengths) = (stream.buffer_from(&x)?, stream.buffer_from(&lengths)?);
            launch(stream, &values, &lengths, &mut out, [&mut at, &mut count])?;
            assert_eq!(out.to_vec()?, decoded, "runs of up to {longest}");
            assert_eq!(at.to_vec()?, offsets, "runs of up to {longest}");
            assert_eq!(count.to_vec()?, [total]);
            Ok(())
        };
        for stream in streams()? {
            [1, 2, 5, 100].into_iter().try_for_each(|longest| check(&stream, longest, 1))?;
        }
        holds(8, (0..60u64, any::<u64>()), |(longest, seed)| check(&stream()?, longest, seed));
        Ok(())
    }

    macro_rules! decodes {
        ($($name:ident: $t:ty, $threads:literal, $runs:literal;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                decodes::<$t>($threads * $runs, |stream, values, lengths, out, [at, total]| {
                    kernels::decoded::<$t, $threads, $runs>::launch(stream, (1, $threads), values, lengths, out, at, total)
                })
            }
        )*};
    }
    decodes! {
        a_warp_decodes_runs_of_bytes: u8, 32, 1;
        sanitize_a_block_decodes_runs_of_12_bytes: Twelve, 96, 3;
        a_block_with_a_partial_warp_decodes_runs: u32, 65, 2;
    }

    #[test]
    fn runs_of_more_items_than_are_counted_are_a_fault() -> Result<()> {
        let stream = stream()?;
        let values = stream.buffer_from(&[1u8; 32])?;
        let launch = |lengths: &[u32; 32]| -> Result<u32> {
            let (mut out, mut at) = (stream.buffer_zeroed(128)?, stream.buffer_zeroed(128)?);
            let mut total = stream.buffer_zeroed(1)?;
            let lengths = stream.buffer_from(lengths)?;
            kernels::decoded::<u8, 32, 1>::launch(&stream, (1, 32), &values, &lengths, &mut out, &mut at, &mut total)?;
            Ok(total.to_vec()?[0])
        };
        let mut lengths = [0; 32];
        (lengths[3], lengths[20]) = (1 << 31, (1 << 31) - 1);
        assert_eq!(launch(&lengths)?, u32::MAX);
        lengths[31] = 1;
        let error = launch(&lengths).unwrap_err().to_string();
        assert!(error.contains("a size of 4294967296; its limit is 4294967295"), "{error}");
        Ok(())
    }
}
