//! Tests the first few items of all devices, and functions of each item, against plain Rust.

use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::prelude::SortKey;
use kernel_primitives::{Devices, Error, Result, Split, SplitBuffer, split};

use crate::kernels::ByTwo;
use crate::{all_splits, is_whole, splits, values};

#[test]
fn the_first_few_of_all_devices() -> Result<()> {
    for (number, devices) in all_splits()?.into_iter().enumerate() {
        for (i, len) in [0, 1, 2, 7, 9, 1000, 5000].into_iter().enumerate() {
            // Unless all is tested, each split has one of the two largest numbers of items.
            if len >= 1000 && (number + i) % 2 == 1 && !is_whole() {
                continue;
            }
            let host = values(len);
            let x = SplitBuffer::from_slice(&devices, &host)?;
            let mut sorted = host;
            sorted.sort_unstable();
            // The values of `k` are 0, less and more than the items of a device, and more than a block finds.
            for k in [0, 1, 2, 10, 700, 1500, len].into_iter().filter(|&k| k <= len) {
                let (least, most) = (split::top_k(&x, k, Less)?, split::top_k(&x, k, Greater)?);
                assert_eq!(least.to_vec()?, sorted[..k], "{devices:?} {len} {k}");
                let largest: Vec<i32> = sorted.iter().rev().take(k).copied().collect();
                assert_eq!(most.to_vec()?, largest, "{devices:?} {len} {k}");
                assert!(most.device().same_as(devices.streams()[0].device()));
            }
        }
    }
    Ok(())
}

#[test]
fn nan_and_zeros_have_the_order_of_sort_keys() -> Result<()> {
    for devices in splits(3)? {
        let host = [0.0f32, f32::NAN, -0.0, 5.0, -f32::NAN, f32::NEG_INFINITY, -0.0, 0.0, f32::INFINITY];
        let x = SplitBuffer::from_slice(&devices, &host)?;
        let bits = |items: Vec<f32>| items.into_iter().map(SortKey::to_sort_bits).collect::<Vec<u32>>();
        let mut sorted = bits(host.to_vec());
        sorted.sort_unstable();
        assert_eq!(bits(split::top_k(&x, 5, Less)?.to_vec()?), sorted[..5]);
        sorted.reverse();
        assert_eq!(bits(split::top_k(&x, 3, Greater)?.to_vec()?), sorted[..3]);
    }
    Ok(())
}

#[test]
fn more_than_there_are() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let x = SplitBuffer::from_slice(&devices, &[1, 2, 3])?;
    let wrong = split::top_k(&x, 4, Less).expect_err("too few");
    assert!(matches!(wrong, Error::TooFew { algorithm: "split::top_k", wanted: 4, len: 3 }), "{wrong}");
    Ok(())
}

#[test]
fn functions_of_each_item() -> Result<()> {
    for devices in all_splits()? {
        for len in [0, 1, 7, 5000] {
            let host: Vec<u32> = (0..len).map(|i| i * 7919 + (1 << 31)).collect();
            let x = SplitBuffer::from_slice(&devices, &host)?;
            let mut out = SplitBuffer::uninit(&devices, len as usize)?;
            split::transform(&x, ByTwo, &mut out)?;
            assert_eq!(out.to_vec()?, host.iter().map(|&x| 2 * u64::from(x)).collect::<Vec<_>>(), "{devices:?} {len}");
        }
    }
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let x = SplitBuffer::from_slice(&even, &[1u32, 2, 3, 4])?;
    let wrong = split::transform(&x, ByTwo, &mut SplitBuffer::zeroed(&odd, 4)?).expect_err("two splits").to_string();
    assert!(wrong.starts_with("`split::transform`: the input is split in another way than the result: "), "{wrong}");
    Ok(())
}
