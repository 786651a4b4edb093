//! Tests exchanges between arrangements, and loads and stores in them.

use kernel_primitives::{Buffer, Complex, Result, Stream, bf16, f16};
use proptest::prelude::any;

use crate::kernels::exchange as kernels;
use crate::kernels::{Flagged, Sixteen, Twelve};
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
    assert!(error.to_string().contains("a size of 96; its limit is 128"), "{error}");
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
