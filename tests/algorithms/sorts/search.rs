//! Tests binary searches against `partition_point`.

use kernel_primitives::Result;
use kernel_primitives::algorithms::{lower_bound, upper_bound};
use kernel_primitives::input::{Span, counting};
use kernel_primitives::kernels::device::search_tiles;

use crate::support::{stream, values};
use crate::{at, in_order};

macro_rules! searches {
    ($($name:ident: $t:ty, |$x:ident| $of:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            for (k, len) in [0, 1, 2, 3, 31, 1000, 4097].into_iter().enumerate() {
                // There are so few values that many occur several times.
                let numbers = |len, seed| values::<u32>(len, seed).iter().map(|&$x| $of).collect::<Vec<$t>>();
                let (all, queries) = (numbers(len, k as u64), numbers(3000, 100));
                let sorted = at(&all, &in_order(len, &|i, j| all[i].partial_cmp(&all[j]).expect("no NaN")));
                let (x, q) = (stream.buffer_from(&sorted)?, stream.buffer_from(&queries)?);
                let mut positions = stream.buffer_from(&[77u64; 3001])?;
                let expected = |f: &dyn Fn($t) -> usize| {
                    queries.iter().map(|&query| f(query) as u64).chain([77]).collect::<Vec<_>>()
                };
                lower_bound(&stream, &x, &q, &mut positions)?;
                let lower = expected(&|query| sorted.partition_point(|&item| item < query));
                assert!(positions.to_vec()? == lower, "{len}");
                upper_bound(&stream, &x, &q, &mut positions)?;
                let upper = expected(&|query| sorted.partition_point(|&item| item <= query));
                assert!(positions.to_vec()? == upper, "{len}");
            }
            Ok(())
        }
    )*};
}
searches! {
    u32_are_found: u32, |x| x >> 20;
    i32_are_found_sanitize: i32, |x| x as i32 >> 20;
    f32_are_found: f32, |x| (x as i32 >> 20) as f32 * 0.5;
    u64_are_found: u64, |x| (x as u64 >> 20) << 40;
    f64_are_found: f64, |x| (x as i32 >> 20) as f64 * 1e100;
}

#[test]
fn inputs_of_any_length_are_searched_on_any_boundary() -> Result<()> {
    let stream = stream()?;
    let sorted: Vec<u32> = (0..1000).map(|i| i / 3 * 2).collect();
    let queries: Vec<u32> = (0..700).collect();
    let (x, q) = (stream.buffer_from(&sorted)?, stream.buffer_from(&queries)?);
    for skip in 0..5 {
        for len in [0, 1, 3, 4, 5, 63, 64, 65, 127, 128, 129, 159, 160, 161, 990] {
            let part = &sorted[skip..skip + len];
            let mut positions = stream.buffer_zeroed::<u64>(queries.len())?;
            lower_bound(&stream, x.slice(skip..skip + len)?, &q, &mut positions)?;
            let place = |query: u32| part.partition_point(|&item| item < query) as u64;
            assert!(
                positions.to_vec()? == queries.iter().map(|&query| place(query)).collect::<Vec<_>>(),
                "{skip}, {len}"
            );
        }
    }
    Ok(())
}

#[test]
fn nan_is_before_all_and_behind_all() -> Result<()> {
    let stream = stream()?;
    let (x, q) = (stream.buffer_from(&[1.0f32, 2.0, 3.0])?, stream.buffer_from(&[f32::NAN])?);
    let mut position = stream.buffer_zeroed::<u64>(1)?;
    lower_bound(&stream, &x, &q, &mut position)?;
    assert_eq!(position.to_vec()?, [0]);
    upper_bound(&stream, &x, &q, &mut position)?;
    assert_eq!(position.to_vec()?, [3]);
    let many = stream.buffer_from(&(0..1000).map(|i| i as f32).collect::<Vec<_>>())?;
    lower_bound(&stream, &many, &q, &mut position)?;
    assert_eq!(position.to_vec()?, [0]);
    upper_bound(&stream, &many, &q, &mut position)?;
    assert_eq!(position.to_vec()?, [1000]);
    Ok(())
}

/// NaN may be where sorts put it: after all numbers.
#[test]
fn sorted_items_may_end_with_nan() -> Result<()> {
    let stream = stream()?;
    for (numbers, nans) in [(2usize, 6usize), (3, 1), (0, 5), (100, 900), (900, 124)] {
        let sorted: Vec<f32> = (1..=numbers).map(|i| i as f32).chain((0..nans).map(|_| f32::NAN)).collect();
        let queries: Vec<f32> = vec![0.5, 1.0, 1.5, 2.0, numbers as f32, f32::INFINITY];
        let expected = |before: &dyn Fn(f32, f32) -> bool| -> Vec<u64> {
            let place = |query: f32| sorted[..numbers].partition_point(|&item| before(item, query)) as u64;
            queries.iter().map(|&query| place(query)).collect()
        };
        let (x, q) = (stream.buffer_from(&sorted)?, stream.buffer_from(&queries)?);
        let mut positions = stream.buffer_zeroed::<u64>(queries.len())?;
        lower_bound(&stream, &x, &q, &mut positions)?;
        assert_eq!(positions.to_vec()?, expected(&|item, query| item < query), "{numbers}, {nans}");
        upper_bound(&stream, &x, &q, &mut positions)?;
        assert_eq!(positions.to_vec()?, expected(&|item, query| item <= query), "{numbers}, {nans}");
    }
    Ok(())
}

/// Blocks of any shape search, with fewer threads than queries and with more, and with warps that lack lanes.
#[test]
fn blocks_of_any_shape_search() -> Result<()> {
    let stream = stream()?;
    let sorted: Vec<u32> = (0..1000).map(|i| i / 3 * 2).collect();
    let x = stream.buffer_from(&sorted)?;
    for count in [1, 31, 33, 200] {
        let queries: Vec<u32> = (0..count).map(|i| i * 7 % 690).collect();
        let expected: Vec<u64> = queries.iter().map(|q| sorted.partition_point(|item| item <= q) as u64).collect();
        let q = stream.buffer_from(&queries)?;
        for dims in [(1, 1), (1, 32), (2, 33), (3, 20), (1, 96), (4, 100), (20, 64)] {
            let mut positions = stream.buffer_zeroed::<u64>(queries.len())?;
            search_tiles::<Span<u32>, Span<u32>, true>::launch(&stream, dims, &x, &q, &mut positions)?;
            assert!(positions.to_vec()? == expected, "{count}, {dims:?}");
        }
    }
    Ok(())
}

#[test]
fn queries_may_be_computed() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[2u64, 3, 3, 5])?;
    let mut positions = stream.buffer_zeroed::<u64>(7)?;
    lower_bound(&stream, &x, counting(0u64, 7), &mut positions)?;
    assert_eq!(positions.to_vec()?, [0, 0, 0, 1, 3, 3, 4]);
    Ok(())
}
