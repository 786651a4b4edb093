//! Tests sorts over devices against plain Rust.

use std::any::type_name;
use std::cmp::Ordering;
use std::fmt::Debug;

use half::{bf16, f16};
use kernel_primitives::algorithms::{Gather, Merge, MergePairs, SortKeys, SortPairs};
use kernel_primitives::functor::{Comparator, Direction, Greater, Less};
use kernel_primitives::prelude::*;
use kernel_primitives::{Devices, EmulatorOptions, Error, Result, Split, SplitBuffer, split};

use crate::kernels::{ByRemainder, FewLarge, Flagged, Round, Twelve};
use crate::{all_splits, devices, is_whole, splits};

/// The numbers of keys: none, fewer than devices, and more than a tile on each device.
const LENGTHS: [usize; 9] = [0, 1, 2, 7, 8, 9, 100, 1003, 30_011];

fn hash(i: usize) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519)
}

/// Returns whether a split sorts keys of a kind. Each split sorts a quarter of the kinds of very few keys, one kind of many keys, and half of
/// the others.
fn sorts(split: usize, kind: usize, len: usize) -> bool {
    let every = match len {
        0..10 => 4,
        10..10_000 => 2,
        _ => 8,
    };
    // The last splits are over the most devices. They sort random keys, too.
    is_whole() || (split + split / 9 * 5 + kind).is_multiple_of(every)
}

/// Returns the splits that sort keys of each type: by equal weights, and by others.
fn splits_of_types() -> Result<Vec<Split>> {
    let (few, most) = (splits(3)?, splits(8)?);
    Ok(if is_whole() { [few, most].concat() } else { vec![few[0].clone(), most[1].clone()] })
}

/// Returns `len` keys of each kind. Some kinds are hard to share.
fn kinds(len: usize) -> Vec<(&'static str, Vec<u32>)> {
    let of = |key: &dyn Fn(usize) -> u32| (0..len).map(key).collect::<Vec<u32>>();
    vec![
        ("random", of(&hash)),
        ("few values", of(&|i| hash(i) % 3)),
        ("all equal", of(&|_| 7)),
        ("sorted", of(&|i| i as u32)),
        ("reversed", of(&|i| (len - i) as u32)),
        ("organ pipe", of(&|i| i.min(len - i) as u32)),
        ("the last third has the small keys", of(&|i| if 3 * i < 2 * len { hash(i) | 1 << 31 } else { hash(i) >> 8 })),
        ("all equal but one", of(&|i| if i == len / 2 { 6 } else { 7 })),
    ]
}

/// Returns the items in an order. Equal items keep their order.
fn sorted<T: Copy>(items: &[T], order: impl Comparator<T>) -> Vec<T> {
    at(items, &places_in_order(items, order))
}

/// Returns the places of the items in an order. Equal items keep their order.
fn places_in_order<T: Copy>(items: &[T], order: impl Comparator<T>) -> Vec<usize> {
    sorted_places(items.len(), &|a, b| order.before(items[b], items[a]).cmp(&order.before(items[a], items[b])))
}

/// One sort for all types, of which there are many.
fn sorted_places(len: usize, order: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|&a, &b| order(a, b));
    places
}

fn at<T: Copy>(items: &[T], places: &[usize]) -> Vec<T> {
    let mut found = Vec::with_capacity(places.len());
    for &place in places {
        found.push(items[place]);
    }
    found
}

fn bits<K: SortKey>(keys: &[K]) -> Vec<K::Bits> {
    let mut bits = Vec::with_capacity(keys.len());
    for key in keys {
        bits.push(key.to_sort_bits());
    }
    bits
}

/// Checks that each device has the items of its range.
#[track_caller]
fn assert_parts<T: Element + PartialEq + Debug>(out: &SplitBuffer<T>, expected: &[T], what: &str) -> Result<()> {
    let ranges: Vec<_> = out.split().ranges(expected.len()).collect();
    for (device, range) in ranges.into_iter().enumerate() {
        assert_eq!(out.range(device), range, "{what}");
        assert!(out.part(device).to_vec()? == expected[range], "{what}: device {device}");
    }
    Ok(())
}

#[test]
fn keys_of_any_kind_and_number() -> Result<()> {
    for (number, devices) in all_splits()?.into_iter().enumerate() {
        for len in LENGTHS {
            for (i, (kind, keys)) in kinds(len).into_iter().enumerate() {
                if !sorts(number, i, len) {
                    continue;
                }
                let what = format!("{kind}, {len} keys, {devices:?}");
                let x = SplitBuffer::from_slice(&devices, &keys)?;
                let mut out = SplitBuffer::uninit(&devices, len)?;
                // Each split sorts every other of its kinds in falling order, and many keys in both.
                let many = len >= 10_000;
                let falls = !(number / 4 + i / 2).is_multiple_of(2);
                if many || !falls {
                    split::sort_keys(&x, &mut out, Less)?;
                    assert_parts(&out, &sorted(&keys, Less), &what)?;
                }
                if many || falls {
                    split::sort_keys(&x, &mut out, Greater)?;
                    assert_parts(&out, &sorted(&keys, Greater), &what)?;
                }
                assert_eq!(x.to_vec()?, keys, "{what}");
            }
        }
    }
    Ok(())
}

#[test]
fn pairs_of_equal_keys_stay_in_their_order() -> Result<()> {
    for (number, devices) in all_splits()?.into_iter().enumerate() {
        for len in LENGTHS {
            for (i, (kind, keys)) in kinds(len).into_iter().enumerate() {
                if !sorts(number, i, len) {
                    continue;
                }
                let what = format!("{kind}, {len} pairs, {devices:?}");
                let pairs: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
                let (keys, values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
                let mut expected = pairs;
                expected.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
                let (expected, places): (Vec<u32>, Vec<u32>) = expected.into_iter().unzip();
                let (x, v) = (SplitBuffer::from_slice(&devices, &keys)?, SplitBuffer::from_slice(&devices, &values)?);
                let (mut out, mut from) = (SplitBuffer::uninit(&devices, len)?, SplitBuffer::uninit(&devices, len)?);
                split::sort_pairs(&x, &v, &mut out, &mut from, Greater)?;
                assert_parts(&out, &expected, &what)?;
                assert_parts(&from, &places, &what)?;
            }
        }
    }
    Ok(())
}

/// Sorts keys with these bits: alone in both orders, in rising order with the first values, and in falling order with the others.
macro_rules! sorts_of {
    ($($name:ident: $t:ty, |$i:ident| $key:expr, [$($less:expr),*], [$($greater:expr),*];)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for devices in splits_of_types()? {
                for len in [5, 4001] {
                    let keys: Vec<$t> = (0..len).map(|$i: usize| $key).collect();
                    check_keys(&devices, &keys, Less)?;
                    check_keys(&devices, &keys, Greater)?;
                    $(check_pairs(&devices, &keys, $less, Less)?;)*
                    $(check_pairs(&devices, &keys, $greater, Greater)?;)*
                }
            }
            Ok(())
        }
    )*};
}

/// Checks a sort of keys by their bits, so that NaN and zeros are told apart.
fn check_keys<K, O, S, G, M>(devices: &Split, keys: &[K], order: O) -> Result<()>
where
    K: SortKey<Bits: Debug> + SortKeys<S> + Gather<u32, K, G> + Merge<K, O, M>,
    O: Direction + Comparator<K>,
{
    let x = SplitBuffer::from_slice(devices, keys)?;
    let mut out = SplitBuffer::uninit(devices, keys.len())?;
    split::sort_keys(&x, &mut out, order)?;
    assert_eq!(bits(&out.to_vec()?), bits(&sorted(keys, order)), "{devices:?} {}", type_name::<K>());
    Ok(())
}

/// Checks a sort of keys with the value of each place.
fn check_pairs<K, V, O, S, G, H, M>(devices: &Split, keys: &[K], value: fn(usize) -> V, order: O) -> Result<()>
where
    K: SortKey<Bits: Debug> + SortPairs<V, S> + Gather<u32, K, G> + MergePairs<K, u32, u32, O, M>,
    V: Element + Debug + Gather<u32, V, H>,
    O: Direction + Comparator<K>,
{
    let mut values = Vec::with_capacity(keys.len());
    for place in 0..keys.len() {
        values.push(value(place));
    }
    let (x, v) = (SplitBuffer::from_slice(devices, keys)?, SplitBuffer::from_slice(devices, &values)?);
    let (mut out, mut moved) = (SplitBuffer::uninit(devices, keys.len())?, SplitBuffer::uninit(devices, keys.len())?);
    split::sort_pairs(&x, &v, &mut out, &mut moved, order)?;
    let (what, places) = (format!("{devices:?} {}", type_name::<(K, V)>()), places_in_order(keys, order));
    assert_eq!(bits(&out.to_vec()?), bits(&at(keys, &places)), "{what}");
    assert_eq!(format!("{:?}", moved.to_vec()?), format!("{:?}", at(&values, &places)), "{what}");
    Ok(())
}

sorts_of! {
    sorts_of_i8: i8, |i| hash(i) as i8, [|i| i as u8, |i| -(i as f64)], [|i| i as i32];
    sorts_of_i16: i16, |i| hash(i) as i16, [|i| i as f32, |i| i as i64], [|i| bf16::from_bits(i as u16)];
    sorts_of_i32: i32, |i| hash(i) as i32, [|i| i as u64, |i| i as i16], [|i| i as u8];
    sorts_of_i64: i64, |i| i64::from(hash(i) as i32) << 20, [|i| i as u8, |i| i as f32], [|i| i as i64];
    sorts_of_u8: u8, |i| hash(i) as u8, [|i| i as i16, |i| i as u64], [|i| -(i as f64)];
    sorts_of_u16: u16, |i| hash(i) as u16, [|i| -(i as f64), |i| bf16::from_bits(i as u16)], [|i| i as i32];
    sorts_of_u32: u32, |i| hash(i) % 1000, [|i| i as u8, |i| i as u64], [|i| i as f32];
    sorts_of_u64: u64, |i| u64::from(hash(i)) << (i % 30),
        [|i| i as i16, |i| -(i as f64)], [|i| bf16::from_bits(i as u16)];
    sorts_of_f16: f16, |i| f16::from_bits(hash(i) as u16), [|i| i as f32, |i| i as i64], [|i| i as u8];
    sorts_of_bf16: bf16, |i| bf16::from_bits(hash(i) as u16), [|i| i as u64, |i| i as i32], [|i| i as i16];
    sorts_of_f32: f32, |i| [f32::NAN, -0.0, 0.0, f32::INFINITY, -f32::NAN, -1.5, f32::from_bits(hash(i))][i % 7],
        [|i| -(i as f64), |i| i as u8], [|i| i as i64];
    sorts_of_f64: f64, |i| [f64::NAN, -0.0, 0.0, f64::NEG_INFINITY, f64::from(hash(i) as i32)][i % 5],
        [|i| i as i32, |i| i as u64], [|i| bf16::from_bits(i as u16)];
}

#[test]
fn a_result_may_be_split_in_another_way() -> Result<()> {
    let (keys, values): (Vec<u32>, Vec<u64>) = (0..5003).map(|i| (hash(i) % 100, i as u64)).unzip();
    let mut expected: Vec<(u32, u64)> = keys.iter().copied().zip(values.iter().copied()).collect();
    expected.sort();
    let (sorted, places): (Vec<u32>, Vec<u64>) = expected.into_iter().unzip();
    for (number, from) in all_splits()?.into_iter().enumerate() {
        let (x, v) = (SplitBuffer::from_slice(&from, &keys)?, SplitBuffer::from_slice(&from, &values)?);
        // Unless all is tested, each split has every other one of the others.
        let (first, step) = if is_whole() { (0, 1) } else { (number % 2, 2) };
        for to in splits(2)?.into_iter().chain(splits(8)?).skip(first).step_by(step) {
            let what = format!("{from:?} {to:?}");
            let (mut out, mut moved) = (SplitBuffer::uninit(&to, 5003)?, SplitBuffer::uninit(&to, 5003)?);
            split::sort_keys(&x, &mut out, Less)?;
            assert_parts(&out, &sorted, &what)?;
            out.copy_from(&[0; 5003])?;
            split::sort_pairs(&x, &v, &mut out, &mut moved, Less)?;
            assert_parts(&out, &sorted, &what)?;
            assert_parts(&moved, &places, &what)?;
        }
    }
    // At one end, all keys are on one device, and at the other, they are on several.
    let (three, one) = (Split::even(&Devices::emulated(3)?)?, Split::even(&Devices::emulated(1)?)?);
    for (from, to) in [(&three, &one), (&one, &three)] {
        let (x, v) = (SplitBuffer::from_slice(from, &keys)?, SplitBuffer::from_slice(from, &values)?);
        let (mut out, mut moved) = (SplitBuffer::uninit(to, 5003)?, SplitBuffer::uninit(to, 5003)?);
        split::sort_pairs(&x, &v, &mut out, &mut moved, Less)?;
        assert_parts(&out, &sorted, "one and three")?;
        assert_parts(&moved, &places, "one and three")?;
    }
    // A selection leaves its items on few of the devices.
    let devices = Split::even(&devices(3)?)?;
    let ascending: Vec<u32> = (0..6000).collect();
    let few = kernel_primitives::functor::bind_second(kernel_primitives::functor::LessThan, 1500);
    let kept = split::select_if(&SplitBuffer::from_slice(&devices, &ascending)?, few)?;
    let mut out = SplitBuffer::uninit(&devices, kept.len())?;
    split::sort_keys(&kept, &mut out, Greater)?;
    assert_parts(&out, &(0..1500).rev().collect::<Vec<u32>>(), "kept")
}

/// The buffers of a selection are longer than its ranges.
#[test]
fn a_selection_may_be_the_result() -> Result<()> {
    for devices in splits(3)? {
        let keys: Vec<u32> = (0..6000).map(|i| i * 7919 % 6007).collect();
        let x = SplitBuffer::from_slice(&devices, &keys)?;
        let few = kernel_primitives::functor::bind_second(kernel_primitives::functor::LessThan, 1500);
        let (kept, mut out) = (split::select_if(&x, few)?, split::select_if(&x, few)?);
        let ranges =
            |x: &SplitBuffer<u32>| (0..devices.streams().len()).map(|device| x.range(device)).collect::<Vec<_>>();
        let before = ranges(&out);
        split::sort_keys(&kept, &mut out, Less)?;
        assert_eq!((out.to_vec()?, ranges(&out)), (sorted(&kept.to_vec()?, Less), before), "{devices:?}");
    }
    Ok(())
}

#[test]
fn keys_may_be_their_own_values() -> Result<()> {
    for devices in splits(3)? {
        let keys: Vec<u32> = (0..5003).map(hash).collect();
        let x = SplitBuffer::from_slice(&devices, &keys)?;
        let (mut out, mut moved) = (SplitBuffer::uninit(&devices, 5003)?, SplitBuffer::uninit(&devices, 5003)?);
        split::sort_pairs(&x, &x, &mut out, &mut moved, Less)?;
        assert_parts(&out, &sorted(&keys, Less), "keys")?;
        assert_parts(&moved, &sorted(&keys, Less), "values")?;
    }
    Ok(())
}

/// A share has so many pieces that a device sorts keys of four bytes again, and merges other keys in five passes.
#[test]
fn a_share_of_many_pieces() -> Result<()> {
    let devices = Split::even(&Devices::emulated(17)?)?;
    let keys: Vec<u32> = (0..1700).map(hash).collect();
    let x = SplitBuffer::from_slice(&devices, &keys)?;
    let mut out = SplitBuffer::uninit(&devices, keys.len())?;
    split::sort_keys(&x, &mut out, Less)?;
    assert_parts(&out, &sorted(&keys, Less), "sorted again")?;
    split::sort_by(&x, ByRemainder(1000), &mut out)?;
    assert_parts(&out, &sorted(&keys, ByRemainder(1000)), "merged")
}

#[test]
fn a_comparator_that_panics_is_a_fault_on_any_number_of_devices() -> Result<()> {
    for count in [1, 2] {
        let devices = Split::even(&Devices::emulated(count)?)?;
        // Each of the two devices has one item, so only the host compares them.
        let x = SplitBuffer::from_slice(&devices, &[101u32, 100])?;
        let mut out = SplitBuffer::uninit(&devices, 2)?;
        let result = split::sort_by(&x, FewLarge, &mut out);
        assert!(matches!(result, Err(Error::Fault(_))), "{count}: {result:?}");
    }
    Ok(())
}

/// This holds on GPUs, too, although the call need not wait for the fault.
#[test]
fn a_fault_in_the_sort_of_a_device_is_returned() -> Result<()> {
    for devices in splits(2)? {
        let items = [vec![101u32, 100], vec![1; 20], vec![101, 100]].concat();
        let x = SplitBuffer::from_slice(&devices, &items)?;
        let mut out = SplitBuffer::uninit(&devices, items.len())?;
        let result = split::sort_by(&x, FewLarge, &mut out).and_then(|()| x.split().synchronize());
        assert!(matches!(result, Err(Error::Fault(_))), "{devices:?}: {result:?}");
    }
    Ok(())
}

#[test]
fn what_is_no_order_is_no_fault() -> Result<()> {
    for devices in splits(3)? {
        let items: Vec<u32> = (0..30_011).map(hash).collect();
        let values: Vec<Twelve> = items.iter().map(|&b| Twelve { a: 0.0, b, c: 0 }).collect();
        let (x, v) = (SplitBuffer::from_slice(&devices, &items)?, SplitBuffer::from_slice(&devices, &values)?);
        let (mut out, mut moved) = (SplitBuffer::uninit(&devices, 30_011)?, SplitBuffer::uninit(&devices, 30_011)?);
        split::sort_pairs_by(&x, &v, Round, &mut out, &mut moved)?;
        assert_eq!((out.to_vec()?.len(), moved.to_vec()?.len()), (30_011, 30_011));
    }
    Ok(())
}

#[test]
fn any_order_and_elements_of_the_program() -> Result<()> {
    for devices in all_splits()? {
        for len in [0, 3, 20, 6007] {
            let items: Vec<u32> = (0..len).map(hash).collect();
            let x = SplitBuffer::from_slice(&devices, &items)?;
            let mut out = SplitBuffer::uninit(&devices, len)?;
            split::sort_by(&x, ByRemainder(10), &mut out)?;
            assert_parts(&out, &sorted(&items, ByRemainder(10)), &format!("{devices:?} {len}"))?;
            split::sort_by(&x, Greater, &mut out)?;
            assert_parts(&out, &sorted(&items, Greater), &format!("{devices:?} {len}"))?;
            // Each value of twelve bytes has its key.
            let values: Vec<Twelve> = (0..).zip(&items).map(|(c, &b)| Twelve { a: 0.5, b, c }).collect();
            let v = SplitBuffer::from_slice(&devices, &values)?;
            let mut moved = SplitBuffer::uninit(&devices, len)?;
            split::sort_pairs_by(&x, &v, ByRemainder(10), &mut out, &mut moved)?;
            let by_key = |a: Twelve, b: Twelve| ByRemainder(10).before(a.b, b.b);
            assert_parts(&moved, &sorted(&values, by_key), &format!("{devices:?} {len}"))?;
            assert_parts(&out, &sorted(&items, ByRemainder(10)), &format!("{devices:?} {len}"))?;
        }
    }
    Ok(())
}

/// Values are merged by their places, although they have four bytes, or have one bit to sort by.
#[test]
fn elements_of_which_not_all_bits_are_values() -> Result<()> {
    for devices in splits(3)?.into_iter().chain(splits(8)?) {
        let keys: Vec<u32> = (0..3001).map(|i| hash(i) % 50).collect();
        let flagged = |i: u16| Flagged { flags: [i.is_multiple_of(3), i.is_multiple_of(2)], value: i };
        let values: Vec<Flagged> = (0..3001).map(flagged).collect();
        let (x, v) = (SplitBuffer::from_slice(&devices, &keys)?, SplitBuffer::from_slice(&devices, &values)?);
        let (mut out, mut moved) = (SplitBuffer::uninit(&devices, 3001)?, SplitBuffer::uninit(&devices, 3001)?);
        split::sort_pairs(&x, &v, &mut out, &mut moved, Less)?;
        let by_key = |a: Flagged, b: Flagged| keys[usize::from(a.value)] < keys[usize::from(b.value)];
        assert_parts(&moved, &sorted(&values, by_key), &format!("{devices:?}"))?;
        let bools: Vec<bool> = (0..3001).map(|i| hash(i).is_multiple_of(3)).collect();
        let mut out = SplitBuffer::uninit(&devices, 3001)?;
        split::sort_keys(&SplitBuffer::from_slice(&devices, &bools)?, &mut out, Less)?;
        assert_parts(&out, &sorted(&bools, Less), &format!("{devices:?}"))?;
    }
    Ok(())
}

#[test]
fn each_key_goes_between_devices_once() -> Result<()> {
    let devices = Devices::emulated(4)?;
    let split = Split::even(&devices)?;
    let keys: Vec<u32> = (0..40_000).map(|i| 40_000 - i).collect();
    let x = SplitBuffer::from_slice(&split, &keys)?;
    let mut out = SplitBuffer::uninit(&split, keys.len())?;
    let counters = || devices.iter().map(|device| device.counters()).collect::<Vec<_>>();
    let before = counters();
    split::sort_keys(&x, &mut out, Less)?;
    let cost: Vec<_> = counters().into_iter().zip(before).map(|(after, before)| after.since(before)).collect();
    // The last device has the keys of the first device, and so on.
    assert!(cost.iter().all(|cost| (cost.peer_copies, cost.peer_bytes) == (1, 40_000)));
    assert_eq!(out.to_vec()?, sorted(&keys, Less));
    // Nothing moves if the keys are sorted, and a single device asks no other device.
    let before = counters();
    split::sort_keys(&out, &mut SplitBuffer::uninit(&split, keys.len())?, Less)?;
    let cost: Vec<_> = counters().into_iter().zip(before).map(|(after, before)| after.since(before)).collect();
    assert!(cost.iter().all(|cost| cost.peer_copies == 0 && cost.device_to_host_copies <= 3));
    let one = Split::even(&devices.filter(kernel_primitives::devices::count(1))?)?;
    let x = SplitBuffer::from_slice(&one, &keys)?;
    let mut out = SplitBuffer::uninit(&one, keys.len())?;
    let before = devices[0].counters();
    split::sort_keys(&x, &mut out, Less)?;
    assert_eq!(devices[0].counters().since(before).device_to_host_copies, 0);
    Ok(())
}

#[test]
fn splits_that_do_not_fit() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let x = SplitBuffer::from_slice(&even, &[4u32, 2, 3, 1])?;
    let v = SplitBuffer::from_slice(&odd, &[4u32, 2, 3, 1])?;
    let zeroed = |split: &Split, len: usize| SplitBuffer::<u32>::zeroed(split, len);
    let text = |result: Result<()>| match result {
        Err(error @ Error::Split { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let (first, second) = ("device 0 of the emulator", "device 1 of the emulator");
    assert_eq!(
        text(split::sort_keys(&x, &mut zeroed(&odd, 5)?, Less)),
        format!(
            "`split::sort_keys`: there are not as many places as items: SplitBuffer<u32>(0..2 on {first}, 2..4 on {second}) and \
             SplitBuffer<u32>(0..3 on {first}, 3..5 on {second})"
        )
    );
    let ways = format!(
        "SplitBuffer<u32>(0..2 on {first}, 2..4 on {second}) and SplitBuffer<u32>(0..3 on {first}, 3..4 on {second})"
    );
    assert_eq!(
        text(split::sort_pairs(&x, &v, &mut zeroed(&even, 4)?, &mut zeroed(&even, 4)?, Less)),
        format!("`split::sort_pairs`: the keys are split in another way than the values: {ways}")
    );
    let wrong = text(split::sort_pairs_by(&x, &x, Less, &mut zeroed(&even, 4)?, &mut zeroed(&odd, 4)?));
    assert_eq!(wrong, format!("`split::sort_pairs_by`: the keys are split in another way than the values: {ways}"));
    text(split::sort_pairs(&x, &x, &mut zeroed(&even, 3)?, &mut zeroed(&even, 3)?, Less));
    text(split::sort_by(&x, Less, &mut zeroed(&even, 0)?));
    Ok(())
}

#[test]
fn together_devices_sort_what_one_does_not_hold() -> Result<()> {
    const LEN: usize = 100_000;
    let keys: Vec<u32> = (0..LEN).map(hash).collect();
    let mut options = EmulatorOptions::default();
    options.memory_bytes = Some(LEN / 8 * 7 * size_of::<u32>());
    let one = Split::even(&Devices::emulated_with(1, options.clone())?)?;
    let refused = SplitBuffer::from_slice(&one, &keys);
    assert!(matches!(&refused, Err(Error::Allocation { bytes, .. }) if *bytes == (LEN * 4) as u128), "{refused:?}");
    let eight = Split::even(&Devices::emulated_with(8, options)?)?;
    for (kind, keys) in kinds(LEN) {
        let x = SplitBuffer::from_slice(&eight, &keys)?;
        let mut out = SplitBuffer::uninit(&eight, LEN)?;
        split::sort_keys(&x, &mut out, Less)?;
        assert_parts(&out, &sorted(&keys, Less), kind)?;
    }
    Ok(())
}

#[test]
fn a_sort_over_devices_is_in_no_graph() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let split = Split::of_streams(streams.clone(), &[1.0, 1.0])?;
    let x = SplitBuffer::from_slice(&split, &[1u32, 2, 3, 4])?;
    let values = SplitBuffer::from_slice(&split, &[5u32, 6, 7, 8])?;
    let two = || -> Result<Vec<_>> { streams.iter().map(|s| Ok((s.buffer_from(&[0u32, 0])?, 2))).collect() };
    // The keys are sorted: each device keeps its own run and merges nothing.
    let of_keys = two()?;
    let captured = streams[0].capture(|stream| {
        let split = Split::of_streams([stream.clone(), streams[1].clone()], &[1.0, 1.0])?;
        split::sort_keys(&x, &mut SplitBuffer::of_parts(&split, of_keys)?, Less)
    });
    assert!(matches!(captured, Err(Error::Capture { call: "`split::sort_keys`", .. })), "{:?}", captured.err());
    let (of_keys, of_values) = (two()?, two()?);
    let captured = streams[0].capture(|stream| {
        let split = Split::of_streams([stream.clone(), streams[1].clone()], &[1.0, 1.0])?;
        let (mut keys, mut out) = (SplitBuffer::of_parts(&split, of_keys)?, SplitBuffer::of_parts(&split, of_values)?);
        split::sort_pairs(&x, &values, &mut keys, &mut out, Less)
    });
    assert!(matches!(captured, Err(Error::Capture { call: "`split::sort_pairs`", .. })), "{:?}", captured.err());
    Ok(())
}
