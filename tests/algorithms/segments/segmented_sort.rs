//! Tests sorts of segments against the standard library's stable sort of each segment.

use kernel_primitives::algorithms::{Run, Workspace, segmented_sort, segmented_sort_pairs};
use kernel_primitives::functor::Less;
use kernel_primitives::input::{counting, map};
use kernel_primitives::kernels::device::{merge_tile_items, segment_sort_short_items, segment_sort_tile_items};
use kernel_primitives::{Diagnosis, Error, Result, SortKey};

use crate::in_order;
use crate::kernels::hostile::Drift;
use crate::kernels::{ByFirst, Flagged, Order, Sixteen};
use crate::support::{stream, streams, values};

/// The number of items of a tile of four-byte keys.
const TILE: usize = segment_sort_tile_items(4, 0);
const SHORT: usize = segment_sort_short_items(4, 0);

/// Returns the offsets of segments with these lengths, starting at `first`.
fn offsets(first: usize, lengths: impl IntoIterator<Item = usize>) -> Vec<u32> {
    let mut end = first as u32;
    let ends = lengths.into_iter().map(|length| {
        end += length as u32;
        end
    });
    [first as u32].into_iter().chain(ends).collect()
}

/// Returns offsets of segments of many lengths: all equal, none, one huge among small ones, and borders at the borders of tiles and beside
/// them. For more than 64 short tiles, and for few segments that are long, the sorts have passes: up to five passes, an odd number.
fn shapes() -> Vec<Vec<u32>> {
    let random = |most: u32, count| values::<u32>(count, 7).into_iter().map(move |x| (x % most) as usize);
    let merge = merge_tile_items(4, 0);
    vec![
        offsets(0, []),
        offsets(0, [0; 100]),
        offsets(3, [1; 3000]),
        offsets(0, [100; 300]),
        offsets(0, [TILE, TILE, TILE]),
        offsets(0, [TILE; 20]),
        offsets(1, [TILE - 1, 0, 1, TILE - 1, 0, 1, 2 * TILE, 5]),
        offsets(1, [TILE - 1, 0, 1, TILE - 1, 0, 1, 2 * TILE, 5].repeat(5)),
        offsets(5, [TILE + 1, merge, merge, 3, 3 * TILE]),
        offsets(0, (0..300).chain([5 * TILE + 3]).chain(0..100)),
        offsets(0, random(10, 5000)),
        offsets(7, random(300, 500)),
        offsets(0, random(5000, 28)),
        offsets(0, random(20_000, 5)),
        offsets(100, [4 * TILE + 3]),
    ]
}

/// Returns the places of the items in order.
fn sorted<T: Copy, K: Ord>(x: &[T], offsets: &[u32], key: impl Fn(T) -> K) -> Vec<u32> {
    let mut places: Vec<u32> = (0..x.len() as u32).collect();
    for ends in offsets.windows(2) {
        let (first, segment) = (ends[0], &x[ends[0] as usize..ends[1] as usize]);
        let order = in_order(segment.len(), &|i, j| key(segment[i]).cmp(&key(segment[j])));
        places[first as usize..][..segment.len()].iter_mut().zip(order).for_each(|(place, i)| *place = first + i);
    }
    places
}

#[test]
fn segments_of_any_lengths_are_sorted_and_the_rest_stays() -> Result<()> {
    let stream = stream()?;
    for (k, offsets) in shapes().into_iter().enumerate() {
        let (skip, behind) = (k % 3, 5 * (k % 4));
        let len = offsets[offsets.len() - 1] as usize + behind;
        let x = values::<u32>(skip + len, k as u64);
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let x = &x[skip..];
        let mut out = stream.buffer_from(&vec![77; len + 2])?;
        segmented_sort(&stream, buffer.slice(skip..)?, &at, Less, &mut out)?;
        let mut expected: Vec<u32> = sorted(x, &offsets, |x| x).into_iter().map(|i| x[i as usize]).collect();
        expected.extend([77, 77]);
        assert!(out.to_vec()? == expected, "keys of shape {k}");
    }
    Ok(())
}

#[test]
fn equal_keys_stay_in_their_order() -> Result<()> {
    let stream = stream()?;
    for (k, offsets) in shapes().into_iter().enumerate() {
        let len = offsets[offsets.len() - 1] as usize;
        let x = values::<u32>(len, k as u64);
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let (mut out, mut places) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<u32>(len)?);
        segmented_sort_pairs(
            &stream,
            &buffer,
            counting(0u32, len),
            &at,
            Order::by_remainder(10),
            &mut out,
            &mut places,
        )?;
        let expected = sorted(&x, &offsets, |x| x % 10);
        assert!(places.to_vec()? == expected, "places of shape {k}");
        assert!(out.to_vec()? == expected.iter().map(|&i| x[i as usize]).collect::<Vec<_>>(), "keys of shape {k}");
    }
    Ok(())
}

/// The lengths are near those for one launch, for two, and for more.
#[test]
fn few_short_tiles_are_few_launches() -> Result<()> {
    let most = 64 * SHORT;
    let all = [
        (offsets(0, []), 0, 1),
        (offsets(2, [300, 0, 500]), SHORT, 1),
        (offsets(2, [300, 0, 500]), SHORT + 1, 2),
        (offsets(0, [SHORT + 1]), SHORT + 1, 2),
        (offsets(0, [4 * SHORT]), 4 * SHORT, 2),
        (offsets(1, [4 * SHORT - 1, 1]), 4 * SHORT + 1, 2),
        (offsets(1, [4 * SHORT]), 4 * SHORT + 1, 3),
        (offsets(0, [SHORT; 7]), 7 * SHORT, 2),
        // Tiles are over no border, one, two and many. They are in no segment, at the beginning and at the end.
        (offsets(3 * SHORT + 5, [7, SHORT, 2 * SHORT, 1, 0, 3 * SHORT - 9, 900, 900, 20]), 15 * SHORT, 2),
        (offsets(9, [3, 20 * SHORT, 5, 1, 1, 1]), 22 * SHORT, 2),
        (offsets(2 * SHORT, [0; 9]), 5 * SHORT, 2),
        (offsets(5, [4 * SHORT - 1; 16]), most, 2),
        (offsets(5, [4 * SHORT - 1; 16]), most + 1, 7),
        (offsets(5, [4 * SHORT; 15]), most, 6),
    ];
    for (n, (offsets, len, launches)) in all.into_iter().enumerate() {
        // Either side is on any boundary, but many items are at one.
        for (from, to) in [(0, 0), (1, 3)] {
            if len > 4 * SHORT + 1 && from != n % 2 {
                continue;
            }
            let stream = stream()?;
            let x = values::<u32>(len + from, len as u64);
            let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
            let (input, x) = (buffer.slice(from..)?, &x[from..]);
            let mut out = stream.buffer_from(&vec![77; to + len + 2])?;
            let before = stream.device().counters();
            segmented_sort(&stream, input, &at, Less, out.slice_mut(to..)?)?;
            let counted = stream.device().counters().since(before);
            if !stream.device().is_gpu() {
                assert_eq!(counted.launches, launches, "{len} of {offsets:?}");
            }
            let found = out.to_vec()?;
            let expected = sorted(x, &offsets, |x| x).into_iter().map(|i| x[i as usize]).collect::<Vec<_>>();
            assert!(found[to..to + len] == expected, "{len} keys of {offsets:?}");
            assert!(found[..to].iter().chain(&found[to + len..]).all(|&x| x == 77), "{len} keys of {offsets:?}");

            let mut places = stream.buffer_from(&vec![77; len + to])?;
            let (keys, places_out) = (out.slice_mut(to..)?, places.slice_mut(to..)?);
            segmented_sort_pairs(&stream, input, counting(0u32, len), &at, Order::by_remainder(10), keys, places_out)?;
            let expected = sorted(x, &offsets, |x| x % 10);
            assert!(places.to_vec()?[to..] == expected, "{len} places of {offsets:?}");
            let expected = expected.into_iter().map(|i| x[i as usize]).collect::<Vec<_>>();
            assert!(out.to_vec()?[to..to + len] == expected, "{len} pairs of {offsets:?}");
        }
    }
    Ok(())
}

#[test]
fn items_and_values_of_any_size() -> Result<()> {
    let stream = stream()?;
    // There are few segments in many tiles, and many segments in few tiles.
    for offsets in
        [offsets(3, [20_000, 10, 1, 25_000]), offsets(3, [700, 10, 1, 0, 300, 2000, 5, 1, 900, 90, 800, 400])]
    {
        let len = offsets[offsets.len() - 1] as usize + 9;
        let at = stream.buffer_from(&offsets)?;
        macro_rules! check {
            ($($t:ty, $order:expr, |$x:ident| $key:expr;)*) => {$({
                let x = values::<$t>(len, 1);
                let mut out = stream.buffer_zeroed(len)?;
                segmented_sort(&stream, &stream.buffer_from(&x)?, &at, $order, &mut out)?;
                let expected = sorted(&x, &offsets, |$x| $key).into_iter().map(|i| x[i as usize]);
                assert!(out.to_vec()? == expected.collect::<Vec<_>>(), stringify!($t));
            })*};
        }
        check! {
            u8, Less, |x| x;
            [u64; 5], ByFirst, |x| x[0];
        }
        macro_rules! check_pairs {
            ($($k:ty, $v:ty;)*) => {$({
                let (x, y) = (values::<$k>(len, 2), values::<$v>(len, 3));
                let (keys, values) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
                let (mut out, mut values_out) = (stream.buffer_zeroed(len)?, stream.buffer_zeroed(len)?);
                segmented_sort_pairs(&stream, &keys, &values, &at, Less, &mut out, &mut values_out)?;
                let places = sorted(&x, &offsets, |x| x.to_sort_bits());
                let (x, y) = (places.iter().map(|&i| x[i as usize]), places.iter().map(|&i| y[i as usize]));
                assert!(out.to_vec()? == x.collect::<Vec<_>>(), stringify!($k));
                assert!(values_out.to_vec()? == y.collect::<Vec<_>>(), stringify!($v));
            })*};
        }
        check_pairs! {
            u32, Flagged;
            f64, Sixteen;
        }
    }
    Ok(())
}

#[test]
fn a_few_segments_sanitize() -> Result<()> {
    for stream in streams()? {
        // The sorts take two launches, and more.
        for offsets in [offsets(2, [0, 3, 300, 20, 1, 0, TILE, 7]), offsets(2, [9, 2 * TILE])] {
            let len = offsets[offsets.len() - 1] as usize + 3;
            let x = values::<u32>(len, 1);
            let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
            let mut out = stream.buffer_zeroed::<u32>(len)?;
            segmented_sort(&stream, &buffer, &at, Less, &mut out)?;
            let expected = sorted(&x, &offsets, |x| x);
            assert!(out.to_vec()? == expected.iter().map(|&i| x[i as usize]).collect::<Vec<_>>());
            let mut values = stream.buffer_zeroed::<u32>(len)?;
            segmented_sort_pairs(&stream, &buffer, &buffer, &at, Less, &mut out, &mut values)?;
            assert!(out.to_vec()? == values.to_vec()?);
        }
    }
    Ok(())
}

#[test]
fn a_function_that_is_no_order_does_no_harm() -> Result<()> {
    let stream = stream()?;
    for tile in [TILE, SHORT] {
        let offsets = offsets(2, [5, 3 * tile, 20, tile]);
        let len = offsets[offsets.len() - 1] as usize;
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        let x = stream.buffer_from(&values::<u32>(len, 1))?;
        let offsets = stream.buffer_from(&offsets)?;
        segmented_sort(&stream, &x, map(&offsets, Drift::NONE), Order::NONE, &mut out)?;
        stream.synchronize()?;
    }
    Ok(())
}

#[test]
fn a_graph_sorts_again_and_a_workspace_is_enough() -> Result<()> {
    let stream = stream()?;
    for tile in [TILE, SHORT] {
        let offsets = offsets(0, [tile, 100, 2 * tile]);
        let len = offsets[3] as usize;
        let (mut x, at) = (stream.buffer_from(&values::<u32>(len, 1))?, stream.buffer_from(&offsets)?);
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        let mut workspace = Workspace::new();
        segmented_sort(Run::on(&stream).with(&mut workspace), &x, &at, Less, &mut out)?;
        let before = stream.device().counters();
        segmented_sort(Run::on(&stream).with(&mut workspace), &x, &at, Less, &mut out)?;
        let counted = stream.device().counters().since(before);
        // A GPU also counts the launches of other tests at the same time.
        if !stream.device().is_gpu() {
            assert_eq!((counted.allocations, counted.synchronizations), (0, 0));
        }
        let graph =
            stream.capture(|stream| segmented_sort(Run::on(stream).with(&mut workspace), &x, &at, Less, &mut out))?;
        for seed in 2..4 {
            let host = values::<u32>(len, seed);
            x.copy_from(&host)?;
            graph.launch(&stream)?;
            let expected = sorted(&host, &offsets, |x| x);
            assert!(out.to_vec()? == expected.iter().map(|&i| host[i as usize]).collect::<Vec<_>>());
        }
    }
    Ok(())
}

#[test]
fn offsets_that_decrease_or_leave_the_input_are_faults() -> Result<()> {
    for offsets in [vec![0u32, 5, 4, 9], vec![0, 9, 11], vec![11, 11], vec![3, 0, 10]] {
        let stream = stream()?;
        let x = stream.buffer_from(&values::<u32>(10, 1))?;
        let mut out = stream.buffer_zeroed::<u32>(10)?;
        let at = stream.buffer_from(&offsets)?;
        let result = segmented_sort(&stream, &x, &at, Less, &mut out).and_then(|()| stream.synchronize());
        assert!(
            matches!(&result, Err(Error::Fault(fault)) if matches!(fault.diagnosis, Diagnosis::Raised(_))),
            "{result:?}"
        );
    }
    Ok(())
}

#[test]
fn misuse_is_refused() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<u32>(9)?;
    let offsets = stream.buffer_from(&[0u32, 3, 9])?;
    let (mut out, mut short) = (stream.buffer_zeroed::<u32>(9)?, stream.buffer_zeroed::<u32>(8)?);
    let error = segmented_sort(&stream, &x, &offsets, Less, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 9, second_len: 8, .. }), "{error}");
    let error = segmented_sort(&stream, &x, offsets.slice(..0)?, Less, &mut out).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 1, second_len: 0, .. }), "{error}");
    let mut values = stream.buffer_zeroed::<u32>(9)?;
    let few = x.slice(1..)?;
    let error = segmented_sort_pairs(&stream, &x, few, &offsets, Less, &mut out, &mut values).unwrap_err();
    assert!(error.to_string().contains("`keys` has 9 elements, but `values` has 8"), "{error}");
    Ok(())
}
