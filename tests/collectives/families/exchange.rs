//! Exchanges between arrangements, and loads and stores in them.

use super::{Flagged, Sixteen, Twelve};
use kernel_primitives::prelude::*;
use kernel_primitives::view::Phases;

/// Writes, for each item, its place in the threads afterwards: striped and back, warp-striped and back, and scattered to blocked and
/// striped by its rank in the tile.
#[kernel(instantiate(
    <f32, 128, 4>, <u8, 65, 16>, <f64, 96, 9>, <u32, 256, 8>, <Twelve, 32, 11>, <f16, 17, 8>, <Sixteen, 64, 2>, <i32, 1, 4>,
    <u32, 64, 16>, <Complex<f64>, 40, 3>, <bool, 96, 5>, <bool, 64, 32>, <Flagged, 33, 4>, <[bool; 3], 20, 3>,
    <u64, 1, 1>, <bf16, 2, 16>, <u64, 7, 4>, <i8, 31, 7>, <u32, 33, 5>, <i16, 100, 6>, <u32, 160, 12>, <u16, 512, 2>,
))]
pub fn exchanged<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    ranks: Global<u32>,
    mut out: GlobalMut<[T; 6], Tiles<ITEMS>>,
    mut shared: Shared<ExchangeStorage<T, THREADS, ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut items = init::<T, ITEMS>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut places = init::<u32, ITEMS>(0);
        read_data(cx, &mut places, ranks);
        let striped = blocked_to_striped(cx, &mut shared, &items);
        let from_striped = striped_to_blocked(cx, &mut shared, &striped);
        let warp_striped = blocked_to_warp_striped(cx, &mut shared, &items);
        let from_warp_striped = warp_striped_to_blocked(cx, &mut shared, &warp_striped);
        let blocked = scatter_to_blocked(cx, &mut shared, &items, &places);
        let scattered = scatter_to_striped(cx, &mut shared, &items, &places);
        let results: [[T; 6]; ITEMS] = core::array::from_fn(|i| {
            [striped[i], from_striped[i], warp_striped[i], from_warp_striped[i], blocked[i], scattered[i]]
        });
        write_data(cx, out.tile(tile), &results);
    }
}

/// Keeps the odd items of a tile, in order, at its start. Returns the number of these items.
#[kernel]
pub fn odd_first(
    cx: Block,
    x: Global<u32>,
    mut out: GlobalMut<u32, Striped<3>>,
    mut shared: Shared<ExchangeStorage<u32, 96, 3>>,
    mut scan: Shared<ScanStorage<u32>>,
) {
    for tile in cx.tiles::<3>(out.len()) {
        let mut items = init::<u32, 3>(0);
        read_data(cx, &mut items, x.tile(tile));
        let kept: [u32; 3] = core::array::from_fn(|i| items[i] % 2);
        let (before, count) = block_exclusive_scan(cx, &mut scan, &kept, Add);
        // First, all places get zeros, because a scatter writes only its own places.
        let everywhere = core::array::from_fn(|i| cx.thread_rank() * 3 + i as u32);
        scatter_to_striped(cx, &mut shared, &[0; 3], &everywhere);
        let ranks = core::array::from_fn(|i| if kept[i] == 1 { before[i] } else { u32::MAX });
        let mut compacted = scatter_to_striped(cx, &mut shared, &items, &ranks);
        for (i, item) in compacted.iter_mut().enumerate() {
            if cx.thread_rank() as usize + i * 96 >= count as usize {
                *item = 0;
            }
        }
        store_striped(cx, out.tile(tile), &compacted);
    }
}

/// Writes the tile's items at every other place, striped and blocked. Between them are the old bits of the memory, which are not values.
#[kernel(instantiate(<bool, 64, 2>, <bool, 40, 16>, <Flagged, 32, 4>, <[bool; 3], 20, 3>))]
pub fn scattered_apart<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; 2], Tiles<ITEMS>>,
    mut shared: Shared<Phases<(ExchangeStorage<T, THREADS, ITEMS>, [u8; 1024])>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut items = init::<T, ITEMS>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let first = cx.thread_rank() * ITEMS as u32;
        let ranks: [u32; ITEMS] = core::array::from_fn(|i| (first + i as u32) * 2);
        let [striped, blocked] = [true, false].map(|to_striped| {
            shared.sync();
            let bytes = shared.phase::<[u8; 1024]>();
            let mut i = cx.thread_rank() as usize;
            while i < bytes.len() {
                bytes.set(i, 0xfe);
                i += THREADS;
            }
            shared.sync();
            let storage = shared.phase::<ExchangeStorage<T, THREADS, ITEMS>>();
            if to_striped {
                scatter_to_striped(cx, storage, &items, &ranks)
            } else {
                scatter_to_blocked(cx, storage, &items, &ranks)
            }
        });
        let both: [[T; 2]; ITEMS] = core::array::from_fn(|i| [striped[i], blocked[i]]);
        write_data(cx, out.tile(tile), &both);
    }
}

/// Writes each item and its place in the thread that reads it, striped and warp-striped.
#[kernel(instantiate(<u8, 1>, <f32, 4>, <Twelve, 3>, <f64, 11>))]
pub fn copied<T: Element, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    mut striped: GlobalMut<T, Striped<ITEMS>>,
    mut warp_striped: GlobalMut<T, WarpStriped<ITEMS>>,
    mut seen: GlobalMut<[T; 2], Tiles<ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(x.len()) {
        let (mut a, mut b) = (init::<T, ITEMS>(T::ZERO), init::<T, ITEMS>(T::ZERO));
        load_striped(cx, &mut a, x.tile(tile));
        load_warp_striped(cx, &mut b, x.tile(tile));
        store_striped(cx, striped.tile(tile), &a);
        store_striped(cx, warp_striped.tile(tile), &b);
        let both: [[T; 2]; ITEMS] = core::array::from_fn(|i| [a[i], b[i]]);
        write_data(cx, seen.tile(tile), &both);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::{Buffer, Complex, Result, Stream, bf16, f16};
    use proptest::prelude::any;

    use crate::families::exchange as kernels;
    use crate::families::{Flagged, Sixteen, Twelve};
    use crate::support::{Arbitrary, Random, holds, stream, streams, values};

    /// Returns, for each item of each thread, its number in the tile, in the warp-striped arrangement.
    fn warp_striped(threads: usize, items: usize) -> Vec<usize> {
        let mut order = Vec::new();
        for t in 0..threads {
            let (warp, lane) = (t / 32 * 32, t % 32);
            let lanes = (threads - warp).min(32);
            order.extend((0..items).map(|i| warp * items + i * lanes + lane));
        }
        order
    }

    /// Returns the same in the striped arrangement.
    fn striped(threads: usize, items: usize) -> Vec<usize> {
        (0..threads).flat_map(|t| (0..items).map(move |i| i * threads + t)).collect()
    }

    /// Exchanges `tiles` tiles. `kept` in a hundred of their items have a rank in the tile.
    fn blocks_exchange<T: Arbitrary>(
        stream: &Stream,
        (threads, items): (usize, usize),
        (tiles, kept, seed): (usize, u64, u64),
        launch: impl Fn(&Stream, u32, &Buffer<T>, &Buffer<u32>, &mut Buffer<[T; 6]>) -> Result<()>,
    ) -> Result<()> {
        let tile = threads * items;
        let x: Vec<T> = values(tile * tiles, seed);
        let mut ranks: Vec<u32> = (0..tile as u32).collect();
        let mut random = Random::new(!seed);
        (1..tile).for_each(|i| ranks.swap(i, random.below(i as u64 + 1) as usize));
        for rank in &mut ranks {
            if random.below(100) >= kept {
                *rank = [tile as u32, u32::MAX][random.below(2) as usize];
            }
        }
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, threads as u32, &stream.buffer_from(&x)?, &stream.buffer_from(&ranks)?, &mut out)?;
        let (stripes, warp_stripes) = (striped(threads, items), warp_striped(threads, items));
        for (tile, found) in x.chunks(tile).zip(out.to_vec()?.chunks(tile)) {
            let mut scattered = vec![None; tile.len()];
            for (&rank, &item) in ranks.iter().zip(tile) {
                if let Some(place) = scattered.get_mut(rank as usize) {
                    *place = Some(item);
                }
            }
            for (i, &found) in found.iter().enumerate() {
                let (stripe, warp_stripe) = (stripes[i], warp_stripes[i]);
                // A place that no item has may hold anything.
                let (blocked, striped) = (scattered[i].unwrap_or(found[4]), scattered[stripe].unwrap_or(found[5]));
                let expected = [tile[stripe], tile[i], tile[warp_stripe], tile[i], blocked, striped];
                assert_eq!(found, expected, "item {i}, {threads} threads of {items} items");
            }
        }
        Ok(())
    }

    macro_rules! exchanges {
        ($($name:ident: $t:ty, $threads:literal, $items:literal, $streams:expr;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                for stream in $streams {
                    blocks_exchange::<$t>(&stream, ($threads, $items), (3, 100, 1), |stream, threads, x, ranks, out| {
                        kernels::exchanged::<$t, $threads, $items>::launch(stream, (2, threads), x, ranks, out)
                    })?;
                }
                Ok(())
            }
        )*};
    }
    exchanges! {
        sanitize_128_threads_exchange_4_floats: f32, 128, 4, streams()?;
        sanitize_65_threads_exchange_16_bytes: u8, 65, 16, streams()?;
        threads_exchange_9_doubles: f64, 96, 9, [stream()?];
        threads_exchange_8_integers_with_padding: u32, 256, 8, [stream()?];
        threads_exchange_16_integers_with_padding: u32, 64, 16, [stream()?];
        threads_exchange_11_elements_of_12_bytes: Twelve, 32, 11, [stream()?];
        threads_exchange_8_halves: f16, 17, 8, [stream()?];
        threads_exchange_2_elements_of_16_bytes: Sixteen, 64, 2, [stream()?];
        a_thread_exchanges_with_itself: i32, 1, 4, [stream()?];
        threads_exchange_3_complex_numbers: Complex<f64>, 40, 3, [stream()?];
        threads_exchange_5_truth_values: bool, 96, 5, streams()?;
        threads_exchange_32_truth_values_with_padding: bool, 64, 32, [stream()?];
        threads_exchange_4_elements_with_truth_values: Flagged, 33, 4, [stream()?];
        threads_exchange_3_arrays_of_truth_values: [bool; 3], 20, 3, [stream()?];
    }

    #[test]
    fn any_number_of_threads_exchanges_any_number_of_items() {
        macro_rules! check {
            ($($t:ty, $threads:literal, $items:literal;)*) => {$(
                holds(12, (1..5usize, 0..=100u64, any::<u64>()), |case| {
                    blocks_exchange::<$t>(&stream()?, ($threads, $items), case, |stream, threads, x, ranks, out| {
                        kernels::exchanged::<$t, $threads, $items>::launch(stream, (2, threads), x, ranks, out)
                    })
                });
            )*};
        }
        check! {
            u64, 1, 1;
            bf16, 2, 16;
            u64, 7, 4;
            i8, 31, 7;
            u32, 33, 5;
            f32, 128, 4;
            i16, 100, 6;
            bool, 96, 5;
            u32, 160, 12;
            u16, 512, 2;
        }
    }

    #[test]
    fn another_number_of_threads_is_a_fault() -> Result<()> {
        let stream = stream()?;
        let (x, ranks) = (stream.buffer_from(&[1.0f32; 512])?, stream.buffer_from(&[0u32; 512])?);
        let mut out = stream.buffer_zeroed(512)?;
        let launched = kernels::exchanged::<f32, 128, 4>::launch(&stream, (1, 96), &x, &ranks, &mut out);
        let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
        assert!(error.to_string().contains("a size of 96; it is for 128"), "{error}");
        Ok(())
    }

    #[test]
    fn sanitize_a_scatter_compacts_a_tile() -> Result<()> {
        for stream in streams()? {
            let x: Vec<u32> = values(288 * 2 + 100, 3);
            let mut out = stream.buffer_zeroed(x.len())?;
            kernels::odd_first::launch(&stream, (2, 96), &stream.buffer_from(&x)?, &mut out)?;
            let mut expected = Vec::new();
            for tile in x.chunks(288) {
                let mut kept: Vec<u32> = tile.iter().copied().filter(|x| x % 2 == 1).collect();
                kept.resize(tile.len(), 0);
                expected.extend(kept);
            }
            assert_eq!(out.to_vec()?, expected);
        }
        Ok(())
    }

    fn scatters_apart<T: Arbitrary>(
        threads: usize,
        items: usize,
        launch: impl Fn(&Stream, u32, &Buffer<T>, &mut Buffer<[T; 2]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams()? {
            let x: Vec<T> = values(threads * items, 11);
            let mut out = stream.buffer_zeroed(x.len())?;
            launch(&stream, threads as u32, &stream.buffer_from(&x)?, &mut out)?;
            let places: Vec<T> = x.iter().flat_map(|&item| [item, T::ZERO]).take(x.len()).collect();
            let expected: Vec<[T; 2]> =
                striped(threads, items).iter().zip(&places).map(|(&i, &b)| [places[i], b]).collect();
            assert_eq!(out.to_vec()?, expected, "{threads} threads of {items} items");
        }
        Ok(())
    }

    macro_rules! scatters_apart {
        ($($name:ident: $t:ty, $threads:literal, $items:literal;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                scatters_apart::<$t>($threads, $items, |stream, threads, x, out| {
                    kernels::scattered_apart::<$t, $threads, $items>::launch(stream, (1, threads), x, out)
                })
            }
        )*};
    }
    scatters_apart! {
        sanitize_bits_that_are_no_truth_value_are_never_one: bool, 64, 2;
        bits_that_are_no_truth_value_are_never_one_of_16: bool, 40, 16;
        bits_that_are_no_value_of_a_structure_are_its_zero: Flagged, 32, 4;
        bits_that_are_no_value_of_an_array_are_its_zero: [bool; 3], 20, 3;
    }

    fn copies<T: Arbitrary, const N: usize>(
        launch: impl Fn(&Stream, u32, &Buffer<T>, [&mut Buffer<T>; 2], &mut Buffer<[T; 2]>) -> Result<()>,
    ) -> Result<()> {
        let mut random = Random::new(7);
        for stream in streams()? {
            for threads in [1usize, 15, 32, 65, 128, 256] {
                let tile = threads * N;
                for last in [0, 1, tile - 1, random.below(tile as u64 + 1) as usize] {
                    let x: Vec<T> = values(tile + last, 9);
                    let (mut a, mut b) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
                    let mut seen = stream.buffer_zeroed(x.len())?;
                    launch(&stream, threads as u32, &stream.buffer_from(&x)?, [&mut a, &mut b], &mut seen)?;
                    assert!(a.to_vec()? == x && b.to_vec()? == x, "{threads} threads, {last} in the last tile");
                    let orders = striped(threads, N).into_iter().zip(warp_striped(threads, N));
                    let expected: Vec<[T; 2]> = orders.map(|(i, j)| [x[i], x[j]]).collect();
                    assert!(seen.to_vec()?[..tile] == expected, "{threads} threads");
                }
            }
        }
        Ok(())
    }

    macro_rules! copies {
        ($($name:ident: $t:ty, $n:literal;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                copies::<$t, $n>(|stream, threads, x, [a, b], seen| {
                    kernels::copied::<$t, $n>::launch(stream, (1, threads), x, a, b, seen)
                })
            }
        )*};
    }
    copies! {
        bytes_are_copied_in_stripes: u8, 1;
        sanitize_floats_are_copied_in_stripes: f32, 4;
        elements_of_12_bytes_are_copied_in_stripes: Twelve, 3;
        doubles_are_copied_in_stripes: f64, 11;
    }
}
