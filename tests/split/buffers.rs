//! Tests split buffers.

use kernel_primitives::{Devices, Error, Result, Split, SplitBuffer};

use crate::{all_splits, splits, values};

#[test]
fn what_goes_in_comes_out() -> Result<()> {
    for split in all_splits()? {
        for len in [0, 1, 2, 7, 1000] {
            let host = values(len);
            let mut x = SplitBuffer::from_slice(&split, &host)?;
            assert_eq!((x.len(), x.is_empty(), x.to_vec()?), (len, len == 0, host.clone()));
            for (device, range) in split.ranges(len).enumerate() {
                assert_eq!((x.part(device).to_vec()?, x.range(device)), (host[range.clone()].to_vec(), range));
            }
            let turned: Vec<i32> = host.iter().rev().copied().collect();
            x.copy_from(&turned)?;
            let mut back = vec![0; len];
            x.copy_to(&mut back)?;
            assert_eq!(back, turned);
            assert_eq!(SplitBuffer::<i32>::zeroed(&split, len)?.to_vec()?, vec![0; len]);
            let parts = x.into_parts();
            let all: Vec<i32> = parts.iter().map(|(part, _)| part.to_vec()).collect::<Result<Vec<_>>>()?.concat();
            assert_eq!(all, turned);
        }
    }
    Ok(())
}

#[test]
fn parts_are_written_where_they_are() -> Result<()> {
    for split in splits(3)? {
        let mut x = SplitBuffer::<u8>::uninit(&split, 10)?;
        for (device, mut part) in x.parts_mut().enumerate() {
            let host = vec![device as u8; part.len()];
            part.copy_from(&host)?;
        }
        let expected: Vec<u8> =
            split.ranges(10).enumerate().flat_map(|(at, range)| range.map(move |_| at as u8)).collect();
        assert_eq!(x.to_vec()?, expected);
        let last = split.streams().len() - 1;
        let host = vec![9; x.range(last).len()];
        x.part_mut(last).copy_from(&host)?;
        assert_eq!(x.to_vec()?.iter().filter(|&&x| x == 9).count(), host.len());
    }
    Ok(())
}

#[test]
fn any_split_is_copied_to_any_other() -> Result<()> {
    let all = all_splits()?;
    let host = values(101);
    for from in &all {
        let x = SplitBuffer::from_slice(from, &host)?;
        for to in &all {
            let mut y = SplitBuffer::zeroed(to, 101)?;
            y.copy_from_split(&x)?;
            assert_eq!(y.to_vec()?, host, "{from:?} {to:?}");
        }
    }
    Ok(())
}

#[test]
fn other_lengths_are_errors() -> Result<()> {
    let split = &splits(2)?[0];
    let mut x = SplitBuffer::<u32>::zeroed(split, 5)?;
    let y = SplitBuffer::<u32>::zeroed(split, 4)?;
    assert!(matches!(x.copy_from(&[0; 4]), Err(Error::LengthMismatch { first_len: 5, second_len: 4, .. })));
    assert!(matches!(x.copy_to(&mut [0; 6]), Err(Error::LengthMismatch { first_len: 5, second_len: 6, .. })));
    let error = x.copy_from_split(&y).expect_err("5 and 4").to_string();
    assert_eq!(error, "kernel `copy_from_split`: the target has 5 elements, but the source has 4");
    let huge = SplitBuffer::<u64>::zeroed(split, usize::MAX).expect_err("too many").to_string();
    assert!(huge.contains("cannot be allocated"), "{huge}");
    Ok(())
}

#[test]
fn an_error_of_a_copy_names_the_call() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let x = SplitBuffer::from_slice(&Split::of_streams([streams[0].clone()], &[1.0])?, &[1, 2])?;
    let part = streams[1].buffer_zeroed::<i32>(2)?;
    // A graph is for one device.
    let captured = streams[1].capture(|stream| {
        let split = Split::of_streams([stream.clone()], &[1.0])?;
        SplitBuffer::of_parts(&split, vec![(part, 2)])?.copy_from_split(&x)
    });
    assert!(matches!(captured, Err(Error::Capture { call: "`copy_from_split`", .. })), "{:?}", captured.err());
    Ok(())
}
