//! Tests copies between splits, and from and to tensors of one device.

use kernel_primitives::expr::*;
use kernel_primitives::{Devices, Result, Split};

use crate::{all_splits, devices, values};

#[test]
fn any_split_is_copied_to_any_other() -> Result<()> {
    let all = all_splits()?;
    for rows in [0, 1, 2, 7, 64, 1001] {
        let host = values(rows * 3);
        for from in &all {
            let x = SplitTensor::from_slice(from, [rows, 3], &host)?;
            for to in &all {
                let y = x.resplit(to)?;
                assert_eq!(y.to_vec()?, host, "{from:?} {to:?}");
                let shards: Vec<i32> = y.shards().map(|shard| shard.to_vec()).collect::<Result<Vec<_>>>()?.concat();
                assert_eq!(shards, host);
                let ranges: Vec<_> = (0..to.streams().len()).map(|device| y.range(device)).collect();
                assert_eq!(ranges, to.ranges(rows).collect::<Vec<_>>());
            }
        }
    }
    Ok(())
}

#[test]
fn only_rows_that_move_go_between_devices() -> Result<()> {
    let devices = devices(2)?;
    if devices.len() < 2 {
        return Ok(());
    }
    let (even, left) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let x = SplitTensor::from_slice(&even, [100, 5], &vec![1u16; 500])?;
    let counters = || devices.iter().map(|device| device.counters()).collect::<Vec<_>>();
    let before = counters();
    let y = x.resplit(&left)?;
    let cost: Vec<_> = counters().into_iter().zip(before).map(|(after, before)| after.since(before)).collect();
    // 25 rows of 5 elements of 2 bytes go from the second device to the first, and none go back.
    assert_eq!((cost[0].peer_copies, cost[0].peer_bytes), (1, 250));
    assert_eq!(cost[1].peer_copies, 0);
    assert_eq!(cost.iter().map(|cost| cost.host_to_device_copies + cost.device_to_host_copies).sum::<u64>(), 0);
    assert_eq!(y.to_vec()?, [1; 500]);
    Ok(())
}

#[test]
fn a_tensor_is_distributed_and_collected() -> Result<()> {
    for split in all_splits()? {
        let stream = split.streams()[split.streams().len() - 1].device().stream()?;
        for shape in [[0, 3], [1, 1], [2, 5], [40, 7], [6, 0]] {
            let host = values(shape[0] * shape[1]);
            let whole = Tensor::from_slice(&stream, shape, &host)?;
            let x = SplitTensor::from_tensor(&split, &whole)?;
            assert_eq!((x.to_vec()?, x.shape()), (host.clone(), whole.shape()), "{split:?}");
            // The copy has memory of its own.
            x.add_assign(scalar(1))?;
            assert_eq!(whole.to_vec()?, host);
            let back = x.to_tensor(&stream)?;
            assert_eq!(back.to_vec()?, host.iter().map(|x| x + 1).collect::<Vec<_>>());
            // The elements of this view are not contiguous.
            let turned = SplitTensor::from_tensor(&split, &whole.t())?;
            assert_eq!(turned.to_vec()?, whole.t().to_vec()?);
        }
    }
    Ok(())
}

#[test]
fn a_copy_comes_after_what_was_assigned_before() -> Result<()> {
    // The emulator copies at once. Only GPUs have an order to keep.
    for from in all_splits()? {
        let to = Split::even(&devices(2)?)?;
        let (x, y) = (SplitTensor::<f32>::zeros(&from, 50_000)?, SplitTensor::<f32>::zeros(&to, 50_000)?);
        for round in 0..5 {
            x.assign(element_index::<f32>() + round as f32)?;
            y.copy_from(&x)?;
            x.fill(-1.0)?;
            let y = y.to_vec()?;
            assert!((0..50_000).all(|i| y[i] == (i + round) as f32), "{from:?} {round}");
        }
    }
    Ok(())
}

#[test]
fn a_copy_to_itself_changes_nothing() -> Result<()> {
    for split in all_splits()? {
        let x = SplitTensor::from_slice(&split, 20, &values(20))?;
        x.copy_from(&x)?;
        x.copy_from(&x.clone())?;
        assert_eq!(x.to_vec()?, values(20));
    }
    Ok(())
}

#[test]
fn elements_that_are_not_any_bits_are_copied() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let (a, b) = (Split::even(&devices)?, Split::weighted(&devices, &[1.0, 5.0, 1.0])?);
    let host: Vec<bool> = (0..77).map(|i| i % 3 == 0).collect();
    assert_eq!(SplitTensor::from_slice(&a, 77, &host)?.resplit(&b)?.to_vec()?, host);
    Ok(())
}
