//! Tests the first few of any number of keys against a stable sort, especially with bursts of better keys.

use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::{Buffer, Result, Stream};

use crate::kernels::top_k as kernels;
use crate::keys::{Key, raw};
use crate::support::{Random, stream, streams};

/// The parameters of a search.
#[derive(Clone, Copy, Debug)]
struct Asked {
    threads: usize,
    k: usize,
    way: u32,
}

/// Returns the places of the first keys, in order. Of equal keys, the first ones count.
fn first<K: Key, O: Direction>(x: &[K], k: usize) -> Vec<u32> {
    let mut places: Vec<u32> = (0..x.len() as u32).collect();
    places.sort_by(|&a, &b| {
        let order = x[a as usize].order(&x[b as usize]);
        if O::DESCENDING { order.reverse() } else { order }
    });
    places.truncate(k);
    places
}

fn finds<K: Key, O: Direction>(
    stream: &Stream,
    x: &[K],
    asked: Asked,
    items: usize,
    launch: impl Fn(&Stream, &Buffer<K>, Asked, &mut Buffer<K>, &mut Buffer<u32>) -> Result<()>,
) -> Result<()> {
    let (mut out, mut places) =
        (stream.buffer_zeroed(asked.threads * items)?, stream.buffer_zeroed(asked.threads * items)?);
    launch(stream, &stream.buffer_from(x)?, asked, &mut out, &mut places)?;
    let expected = first::<K, O>(x, asked.k);
    let keys: Vec<K> = expected.iter().map(|&place| x[place as usize]).collect();
    assert_eq!(raw(&out.to_vec()?[..keys.len()]), raw(&keys), "{asked:?} of {}", x.len());
    assert_eq!(places.to_vec()?[..keys.len()], expected, "{asked:?} of {}", x.len());
    Ok(())
}

macro_rules! finders {
    ($($name:ident: $t:ty, $order:ident, $items:literal, $tile:literal, $read:literal;)*) => {$(
        fn $name(stream: &Stream, x: &[$t], asked: Asked) -> Result<()> {
            finds::<$t, $order>(stream, x, asked, $items, |stream, x, Asked { threads, k, way }, out, places| {
                type Kernel = kernels::top_of<$t, $order, $items, $tile, $read>;
                Kernel::launch(stream, (1, threads as u32), x, k as u32, way, out, places, $order)
            })
        }
    )*};
}
finders! {
    find_floats: f32, Greater, 8, 2048, 8;
    find_longs: u64, Less, 2, 128, 3;
    find_shorts: i16, Less, 4, 400, 16;
}

/// Makes keys of a few levels. Each burst begins at an item, has a number of items, and adds a level of its own to the keys there.
fn with_bursts(len: usize, bursts: &[(usize, usize, i16)]) -> Vec<i16> {
    let mut x = vec![0; len];
    for &(from, count, level) in bursts {
        x.iter_mut().skip(from).take(count).for_each(|key| *key = level);
    }
    x
}

/// A burst fills the rest of the room to the last place, before a burst that needs half of the room.
#[test]
fn winners_of_a_second_burst_are_kept_sanitize() -> Result<()> {
    for stream in streams()? {
        let tile = 2048;
        let x = with_bursts(15 * tile, &[(0, tile, 10), (tile, tile / 2, 30), (2 * tile, 400, 20)]);
        let x: Vec<f32> = x.into_iter().map(f32::from).collect();
        for way in [0, 1] {
            find_floats(&stream, &x, Asked { threads: 256, k: 1024, way })?;
        }
    }
    Ok(())
}

/// Most of one burst stays beside the first `k`. Then there is no room for the second burst. Each is in four rounds of its own.
#[test]
fn a_burst_that_stays_before_one_without_room_sanitize() -> Result<()> {
    for stream in streams()? {
        let tile = 2048;
        for (second, third) in [(1, 2), (4, 5), (4, 8), (5, 9), (7, 12)] {
            let x = with_bursts(15 * tile, &[(0, tile, 10), (second * tile, 400, 20), (third * tile, tile / 2, 30)]);
            let x: Vec<f32> = x.into_iter().map(f32::from).collect();
            for way in [0, 1] {
                find_floats(&stream, &x, Asked { threads: 256, k: 1024, way })?;
            }
        }
    }
    Ok(())
}

#[test]
fn bursts_of_every_placement_lose_nothing() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(1);
    for case in 0..150 {
        // Each kernel has blocks of a warp, of a part of a warp, and of several warps.
        let (kind, threads) = (case % 3, [[32, 64, 20], [32, 64, 7], [32, 100, 64]][case % 3][case / 3 % 3]);
        let (items, read) = [(8, 8), (2, 3), (4, 16)][kind];
        let (room, round) = (threads * items, threads * read);
        let k = [1, 31, room / 2, room / 2 - 1, room / 4][case / 9 % 5].clamp(1, room / 2);
        let len = round * (1 + random.below(20) as usize) - random.below(round as u64) as usize;
        let bursts: Vec<_> = (0..1 + random.below(6))
            .map(|_| {
                // A burst begins on a boundary of rounds, or anywhere. It has the items of a round, of the rest beside `k`, or of a few.
                let from = random.below(len as u64) as usize;
                let from = if random.below(2) == 0 { from / round * round } else { from };
                let count = [round, room / 2, room / 2 - k, room / 2 + k / 2, 5, 2 * round][random.below(6) as usize];
                (from, count, random.below(9) as i16 - 2)
            })
            .collect();
        let mut x = with_bursts(len, &bursts);
        if case % 2 == 0 {
            // There is noise before the bursts.
            x.iter_mut().take(round).for_each(|key| *key += random.below(3) as i16);
        }
        for way in [0, 1] {
            let asked = Asked { threads, k, way };
            match kind {
                0 => find_floats(&stream, &x.iter().map(|&x| f32::from(x)).collect::<Vec<_>>(), asked)?,
                1 => find_longs(&stream, &x.iter().map(|&x| (100 - x) as u64).collect::<Vec<_>>(), asked)?,
                _ => find_shorts(&stream, &x.iter().map(|&x| -x).collect::<Vec<_>>(), asked)?,
            }
        }
    }
    Ok(())
}

#[test]
fn the_first_of_keys_that_get_better_or_are_all_equal_or_few() -> Result<()> {
    let stream = stream()?;
    for len in [0, 1, 20, 255, 256, 257, 5000] {
        let keys: [Vec<f32>; 3] =
            [(0..len).map(|i| i as f32).collect(), (0..len).map(|i| -(i as f32)).collect(), vec![1.5; len]];
        for (n, x) in keys.iter().enumerate() {
            for way in [0, 1] {
                for k in [0, 1, 31, 256] {
                    find_floats(&stream, x, Asked { threads: 64, k, way })?;
                }
            }
            // Each thread's keys are a descending sequence. In each four rounds, all threads have some keys.
            if n > 0 {
                find_floats(&stream, x, Asked { threads: 64, k: 256, way: 2 })?;
            }
        }
    }
    Ok(())
}

/// The keys of the sequences come by turns. There are ties between sequences and in them, and one sequence may have all the winners.
#[test]
fn the_first_of_sorted_sequences_sanitize() -> Result<()> {
    for stream in streams()? {
        let mut random = Random::new(2);
        for case in 0..40 {
            let (threads, sequences) = ([32, 64, 256][case % 3], 1 + random.below(60) as usize);
            let each = random.below(200) as usize;
            let kind = case % 4;
            let mut sorted: Vec<Vec<f32>> = (0..sequences)
                .map(|s| {
                    let key = |bits: u64| match kind {
                        0 => bits as f32,
                        1 => (bits % 3) as f32,
                        2 => 7.0,
                        _ => (bits % 1000 + if s == sequences / 2 { 5000 } else { 0 }) as f32,
                    };
                    (0..each).map(|_| key(random.below(1 << 20))).collect()
                })
                .collect();
            sorted.iter_mut().for_each(|keys| keys.sort_by(|a, b| b.total_cmp(a)));
            let x: Vec<f32> = (0..sequences * each).map(|i| sorted[i % sequences][i / sequences]).collect();
            let k = [1, 31, 100, threads * 4][case % 4].min(threads * 4);
            find_floats(&stream, &x, Asked { threads, k, way: 2 })?;
        }
    }
    Ok(())
}

/// The search may lose keys, but it writes nowhere else.
#[test]
fn a_source_that_changes_between_two_reads_overruns_nothing() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed(64)?;
    for k in [1, 200, 256] {
        kernels::top_of_a_changing_source::launch(&stream, (1, 64), k, &mut out)?;
        stream.synchronize()?;
    }
    Ok(())
}
