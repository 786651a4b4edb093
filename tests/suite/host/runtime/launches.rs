//! Tests the checks before a launch, and its dimensions.

use kernel_primitives::functor::Add;
use kernel_primitives::kernels::map_binary;
use kernel_primitives::{Dim3, Dims, Error, Result};

use crate::kernels::{faults, io, simt};
use crate::support::{SHAPES, stream, streams, values};

#[test]
fn launches_of_nothing_do_nothing() -> Result<()> {
    let stream = stream()?;
    // The kernel faults in each thread that runs.
    for dims in [Dims::for_items(0), (0, 32).into(), ((3, 0), 32).into(), ((3, 1, 0), 32).into()] {
        faults::everyone_faults::launch(&stream, dims)?;
        stream.synchronize()?;
    }
    Ok(())
}

#[test]
fn a_block_without_threads_is_an_error() -> Result<()> {
    let stream = stream()?;
    for dims in [Dims::for_items(100).block(0), (3, 0).into(), (0, 0).into(), (3, (32, 0)).into()] {
        let error = faults::everyone_faults::launch(&stream, dims).unwrap_err();
        assert!(matches!(error, Error::EmptyBlock { .. }), "{error}");
        assert!(error.to_string().contains("everyone_faults"), "{error}");
    }
    Ok(())
}

#[test]
fn every_block_shape_is_launched() -> Result<()> {
    let stream = stream()?;
    for shape in SHAPES.into_iter().chain([(1024, 1, 1), (1, 1024, 1), (16, 1, 64)]) {
        simt::nothing::launch(&stream, (2, shape))?;
    }
    stream.synchronize()
}

#[test]
fn a_block_or_grid_beyond_the_limits_is_an_error() -> Result<()> {
    let stream = stream()?;
    type Shape = (u32, u32, u32);
    let cases: [(Shape, Shape, &str, u64, u64); 8] = [
        ((1, 1, 1), (1025, 1, 1), "threads in a block", 1025, 1024),
        ((1, 1, 1), (33, 32, 1), "threads in a block", 1056, 1024),
        ((1, 1, 1), (u32::MAX, u32::MAX, u32::MAX), "threads in a block", u64::MAX, 1024),
        ((1, 1, 1), (1, 1, 65), "block's z dimension", 65, 64),
        ((1, 1, 1), (2, 1, 128), "block's z dimension", 128, 64),
        ((1 << 31, 1, 1), (1, 1, 1), "grid's x dimension", 1 << 31, (1 << 31) - 1),
        ((1, 65536, 1), (1, 1, 1), "grid's y dimension", 65536, 65535),
        ((1, 1, 65536), (1, 1, 1), "grid's z dimension", 65536, 65535),
    ];
    for (grid, block, what, asked, limit) in cases {
        let error = simt::nothing::launch(&stream, (grid, block)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("suite::kernels::simt::nothing") && text.contains(what), "{text}");
        let Error::LaunchLimit { asked: found, limit: found_limit, .. } = error else { panic!("{error}") };
        assert_eq!(found_limit, limit, "{text}");
        // The product of the largest dimensions does not fit in 64 bits.
        assert!(found == asked || found > 1 << 60 && asked > 1 << 60, "{text}");
    }
    simt::nothing::launch(&stream, (1, 1))?;
    stream.synchronize()
}

#[test]
fn a_block_beyond_the_kernels_own_limit_is_an_error() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<u32>(300)?;
    assert_eq!(simt::bounded::<2>::info().max_threads(), Some(128));
    let error = simt::bounded::<2>::launch(&stream, (1, 129), &mut out).unwrap_err();
    assert!(matches!(error, Error::LaunchLimit { asked: 129, limit: 128, .. }), "{error}");
    assert!(error.to_string().contains("`max_threads`"), "{error}");
    simt::bounded::<2>::launch(&stream, (3, 128), &mut out)?;
    let expected: Vec<u32> = (0..300).map(|i| i / 128).collect();
    assert_eq!(out.to_vec()?, expected);
    // If the launch chooses the block's size, it obeys the kernel's limit.
    simt::bounded::<1>::launch(&stream, Dims::for_items(300), &mut out)?;
    assert!(out.to_vec()?.iter().max() >= Some(&4));
    Ok(())
}

#[test]
fn a_block_other_than_the_kernels_own_is_an_error() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<[u32; 4]>(96)?;
    assert_eq!(simt::exact::<4>::info().threads(), Some(Dim3::new(8, 4, 1)));
    assert_eq!(simt::exact::<4>::info().max_threads(), Some(32));
    for block in [(32, 1), (8, 3), (4, 8)] {
        let error = simt::exact::<4>::launch(&stream, (3, block), &mut out).unwrap_err();
        assert!(matches!(error, Error::OtherBlock { .. }), "{error}");
        assert!(error.to_string().contains("a block has (8, 4, 1)"), "{error}");
    }
    for dims in [Dims::new(3, (8, 4)), Dims::for_items(96)] {
        simt::exact::<4>::launch(&stream, dims, &mut out)?;
        let expected: Vec<_> = (0..96).map(|i| [8, 4, 1, i % 32]).collect();
        assert_eq!(out.to_vec()?, expected);
    }
    simt::exact::<3>::launch(&stream, (4, (8, 3)), &mut out)?;
    assert_eq!(out.to_vec()?, (0..96).map(|i| [8, 3, 1, i % 24]).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn more_shared_memory_than_there_is_is_an_error() -> Result<()> {
    let stream = stream()?;
    let limit = stream.device().properties().max_shared_bytes;
    assert!(limit >= 48 * 1024);
    let mut out = stream.buffer_zeroed(1)?;
    // The kernel's own storages take 32 bytes: five bytes, and three aligned words.
    for bytes in [limit - 31, limit + 1, usize::MAX / 2] {
        let dims = Dims::new(1, 32).shared_bytes(bytes);
        let error = simt::storage_lengths::launch(&stream, dims, &mut out).unwrap_err();
        assert!(matches!(error, Error::LaunchLimit { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("shared memory") && text.contains(&limit.to_string()), "{text}");
    }
    let dims = Dims::new(1, 32).shared_bytes(limit - 32);
    simt::storage_lengths::launch(&stream, dims, &mut out)?;
    assert_eq!(out.to_vec()?[0][2] as usize, (limit - 32) / 4);
    Ok(())
}

#[test]
fn an_absurd_amount_of_shared_memory_is_an_error_too() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed(1)?;
    let dims = Dims::new(1, 32).shared_bytes(usize::MAX);
    let error = simt::storage_lengths::launch(&stream, dims, &mut out).unwrap_err();
    assert!(matches!(error, Error::LaunchLimit { .. }), "{error}");
    Ok(())
}

#[test]
fn lengths_that_must_be_equal_are_named_with_their_parameters() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (stream.buffer_zeroed::<f32>(100)?, stream.buffer_zeroed::<f32>(99)?);
    let mut out = stream.buffer_zeroed::<f32>(100)?;
    let error = map_binary::<f32, f32, Add, 4>::launch(&stream, (1, 32), &x, &y, &mut out, Add).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`x` has 100 elements, but `y` has 99"), "{text}");
    assert!(text.contains("map_binary::<f32, f32, Add, 4>"), "{text}");
    let target = out.slice_mut(..50)?;
    let error = map_binary::<f32, f32, Add, 4>::launch(&stream, (1, 32), &x, &x, target, Add).unwrap_err();
    assert!(error.to_string().contains("`x` has 100 elements, but `out` has 50"), "{error}");
    Ok(())
}

#[test]
fn one_buffer_is_read_by_several_parameters() -> Result<()> {
    let stream = stream()?;
    let x = values::<f32>(100, 1);
    let input = stream.buffer_from(&x)?;
    let mut out = stream.buffer_zeroed(50)?;
    let dims = Dims::for_items(50).items_per_thread(4);
    map_binary::<f32, f32, Add, 4>::launch(&stream, dims, input.slice(..50)?, input.slice(25..75)?, &mut out, Add)?;
    assert_eq!(out.to_vec()?, (0..50).map(|i| x[i] + x[i + 25]).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn dimensions_by_items_cover_them_in_any_block() -> Result<()> {
    for stream in streams()? {
        for (k, shape) in SHAPES.into_iter().enumerate() {
            let len = [0, 1, 100, 4097, 100_003][k % 5];
            let mut visits = stream.buffer_zeroed(len)?;
            io::visit_items::launch(&stream, Dims::for_items(len).block(shape), &mut visits)?;
            io::visit_tiles::<4>::launch(&stream, Dims::for_items(len).items_per_thread(4).block(shape), &mut visits)?;
            // If the number of items for each thread is 0, the launch uses 1.
            io::visit_tiles::<1>::launch(&stream, Dims::for_items(len).items_per_thread(0), &mut visits)?;
            // If a launch has too few threads, each thread has several items.
            io::visit_items::launch(&stream, Dims::for_items(len / 3 + 1).block(shape), &mut visits)?;
            assert!(visits.to_vec()?.iter().all(|&times| times == 4), "{shape:?}");
        }
    }
    Ok(())
}

#[test]
fn the_number_of_blocks_follows_from_items_and_block() -> Result<()> {
    let stream = stream()?;
    for (items, per_thread, block, blocks) in [(1, 1, 32, 1), (32, 1, 32, 1), (33, 1, 32, 2), (1000, 4, 100, 3)] {
        let mut ranks = stream.buffer_zeroed::<u64>(blocks)?;
        let dims = Dims::for_items(items).items_per_thread(per_thread).block(block);
        io::store_block_ranks::launch(&stream, dims, &mut ranks)?;
        assert_eq!(ranks.to_vec()?, (0..blocks as u64).collect::<Vec<_>>());
    }
    Ok(())
}
