//! Which methods rows of several lengths get.

use super::*;
use crate::kernels::device::{CSR_LONG_ROW, CSR_SHARE};

/// The rows as the kernel measures them.
fn rows(lengths: &[u64]) -> RowLengths {
    let steps = |way: usize| {
        let lanes = 1u64 << way;
        let most = lengths.chunks(32 >> way).map(|chunk| chunk.iter().max().unwrap().div_ceil(lanes));
        most.sum()
    };
    let (short, share) = (CSR_SHORT as u64, CSR_SHARE as u64);
    let short_steps = |warp: &[u64]| warp.iter().copied().filter(|&len| len <= short).max().unwrap_or(0);
    let long_steps = |warp: &[u64]| -> u64 {
        let long = warp.iter().filter(|&&len| len > short && len <= share);
        long.map(|len| len.div_ceil(u64::from(WARP)) + u64::from(CSR_LONG_ROW)).sum()
    };
    let warps = || lengths.chunks(WARP as usize);
    RowLengths {
        rows: lengths.len(),
        entries: lengths.iter().sum::<u64>() as usize,
        longest: lengths.iter().copied().max().unwrap_or(0),
        steps: std::array::from_fn(steps),
        short_steps: warps().map(short_steps).sum(),
        long_steps: warps().map(long_steps).sum(),
        most_steps: warps().map(long_steps).max().unwrap_or(0),
        giant_entries: lengths.iter().filter(|&&len| len > share).sum(),
        windows: None,
    }
}

#[test]
fn longer_rows_get_more_lanes() {
    let lanes = |len| match rows(&vec![len; 1 << 20]).method() {
        SpmvMethod::Rows { lanes } => lanes,
        other => panic!("rows of {len} are alike, but it is {other:?}"),
    };
    assert_eq!(lanes(1), 1);
    assert_eq!(lanes(1000), 32);
    let chosen: Vec<u32> = [1, 3, 7, 16, 40, 100, 1000].into_iter().map(lanes).collect();
    assert!(chosen.is_sorted(), "{chosen:?}");
    for len in 0..=8 {
        assert_eq!(lanes(len), 1, "{len}");
    }
    assert_eq!((lanes(16), lanes(32)), (2, 8));
}

#[test]
fn rows_of_any_lengths_in_any_order_take_the_merge_path() {
    let lengths: Vec<u64> = (0..1 << 16).map(|row| 500_000 / (row * 0x9e37 % (1 << 16) + 1)).collect();
    assert_eq!(rows(&lengths).method(), SpmvMethod::MergePath);
}

#[test]
fn zipfs_rows_take_the_merge_path() {
    for (rows_log2, longest) in [(16, 500_000), (20, 7_700_000)] {
        let count = 1u64 << rows_log2;
        let scattered = (0..count).map(|row| (longest / (row * 0x9_e377 % count + 1)).min(count)).collect::<Vec<u64>>();
        assert_eq!(rows(&scattered).method(), SpmvMethod::MergePath);
        // The long ones are neighbours, and would be the work of few warps.
        let sorted = (0..count).map(|rank| (longest / (rank + 1)).min(count)).collect::<Vec<u64>>();
        assert_eq!(rows(&sorted).method(), SpmvMethod::MergePath);
    }
}

/// The lengths that R-MAT gives the rows on average, with the probabilities of a graph of the web.
#[test]
fn graphs_of_the_web_take_the_merge_path() {
    let length = |row: u32| 0.24f64.powi(row.count_ones() as i32) * 0.76f64.powi(20 - row.count_ones() as i32);
    let lengths: Vec<u64> = (0..1 << 20).map(|row| (length(row) * f64::from(1 << 24)) as u64).collect();
    assert_eq!(rows(&lengths).method(), SpmvMethod::MergePath);
}

#[test]
fn giant_rows_among_short_ones_are_shared() {
    let mut lengths = vec![5; 1 << 16];
    lengths[77] = 1 << 20;
    assert_eq!(rows(&lengths).method(), SpmvMethod::ByLength);
    // A circuit with 32 rows of the supply.
    let lengths = (0..1u64 << 20).map(|row| if row % (1 << 15) == 7 { 1 << 17 } else { 3 + row * 7 % 5 });
    assert_eq!(rows(&lengths.collect::<Vec<u64>>()).method(), SpmvMethod::ByLength);
}

#[test]
fn few_long_rows_among_short_ones_are_their_warps() {
    let lengths: Vec<u64> = (0..1 << 20).map(|row| if row % 1000 == 0 { 400 } else { 5 }).collect();
    assert_eq!(rows(&lengths).method(), SpmvMethod::ByLength);
}

/// The method of rows of which each has `len` columns in a band of so many, and of which some windows do not fit.
fn in_band(lengths: &[u64], band: u64, wide: u64) -> SpmvMethod {
    let mut rows = rows(lengths);
    if rows.may_suit_windows::<f64>() {
        let fitting = (rows.rows.div_ceil(CSR_WINDOW_ROWS) as u64).saturating_sub(wide);
        rows.measured((fitting, fitting * (band + CSR_WINDOW_ROWS as u64 - 1)));
    }
    rows.method()
}

#[test]
fn wide_bands_have_windows() {
    let lengths: Vec<u64> = (0..1u64 << 20).map(|row| 5 + row * 7919 % 40).collect();
    assert_eq!(in_band(&lengths, 4001, 0), SpmvMethod::Window);
    // Some blocks may have other rows.
    assert_eq!(in_band(&lengths, 4001, 200), SpmvMethod::Window);
    assert_ne!(in_band(&lengths, 4001, 210), SpmvMethod::Window);
    let mut banded = rows(&lengths);
    banded.measured((2048, 2048 * 4512));
    assert!(!banded.suit_slices(4096, u64::MAX));
    // More of the vector than entries use of it.
    assert_ne!(in_band(&vec![10; 1 << 20], 4001, 0), SpmvMethod::Window);
    assert_ne!(in_band(&lengths, 20_001, 0), SpmvMethod::Window);
}

#[test]
fn rows_whose_columns_lie_side_by_side_have_no_windows() {
    for len in [0, 1, 3, 7, 9, 27, 81, 300] {
        assert_ne!(in_band(&vec![len; 1 << 20], len, 0), SpmvMethod::Window, "{len}");
    }
}

#[test]
fn rows_whose_columns_lie_all_over_have_several_lanes() {
    let lengths = vec![9; 1 << 22];
    let mut mesh = rows(&lengths);
    assert!(mesh.may_suit_windows::<f64>() && mesh.may_suit_windows::<f32>());
    assert_eq!(mesh.method(), SpmvMethod::Rows { lanes: 1 });
    mesh.measured((0, 0));
    assert_eq!(mesh.method(), SpmvMethod::Rows { lanes: 2 });
    // Those of a stencil in two dimensions have windows.
    let mut stencil = rows(&lengths);
    let blocks = 1 << 13;
    stencil.measured((blocks, 4700 * blocks));
    assert_eq!(stencil.method(), SpmvMethod::Rows { lanes: 1 });
}

#[test]
fn windows_are_looked_for_only_where_they_may_be_worth_it() {
    for len in 0..8 {
        assert!(!rows(&vec![len; 1 << 20]).may_suit_windows::<f64>(), "{len}");
    }
    // Four lanes would have a long row to themselves.
    let mut lengths = vec![24; 1 << 16];
    lengths[77] = 1 << 20;
    assert!(!rows(&lengths).may_suit_windows::<f64>());
    let rows = rows(&vec![24; 1 << 20]);
    assert!(rows.may_suit_windows::<f32>() && rows.may_suit_windows::<f64>() && !rows.may_suit_windows::<u16>());
}

#[test]
fn a_longer_row_does_not_change_how_many_lanes_others_have_for_several_vectors() {
    let mut lengths = vec![3; 1 << 20];
    lengths[0] = 17;
    let few = rows(&lengths);
    assert_eq!((few.method(), few.lanes()), (SpmvMethod::ByLength, 1));
    // A giant one has a warp, as others then have.
    lengths[0] = 1 << 20;
    assert_eq!(rows(&lengths).lanes(), WARP);
}

#[test]
fn rows_of_some_length_are_sliced_unless_their_lengths_differ_much() {
    let suit = |lengths: &[u64]| rows(lengths).suit_slices(4096, u64::MAX);
    for (len, expected) in [(0, false), (7, true), (16, true), (30, true), (81, true), (1000, false)] {
        assert_eq!(suit(&vec![len; 1 << 20]), expected, "{len}");
    }
    // Columns that lie all over, as those of a mesh whose points are numbered at random, or of blocks in three dimensions.
    for (len, count) in [(9, 1 << 22), (16, 1 << 22), (81, 3 << 18)] {
        let mut far = rows(&vec![len; count]);
        far.measured((0, 0));
        assert!(far.suit_slices(4096, u64::MAX), "{len}");
    }
    assert!(suit(&(0..1 << 20).map(|row| 5 + row * 7 % 40).collect::<Vec<u64>>()));
    let mut lengths = vec![16; 1 << 16];
    lengths[77] = 1 << 18;
    assert!(!suit(&lengths) && !suit(&[]) && !suit(&[16]));
}

#[test]
fn slices_have_no_more_slots_than_indices_count() {
    let rows = 1usize << 27;
    let steps = |way: usize| ((rows << way) / 32) as u64 * 31u64.div_ceil(1 << way);
    let rows = RowLengths {
        rows,
        entries: 31 * rows,
        longest: 200,
        steps: std::array::from_fn(steps),
        short_steps: 0,
        long_steps: (1 + u64::from(CSR_LONG_ROW)) * rows as u64,
        most_steps: u64::from(WARP) * (1 + u64::from(CSR_LONG_ROW)),
        giant_entries: 0,
        windows: None,
    };
    assert!(rows.suit_slices(4096, u64::MAX));
    // A row of 200 in each window may take more slots than there are entries, which could be counted.
    assert!(rows.entries < u32::MAX as usize && !rows.suit_slices(4096, u32::MAX.into()));
}

#[test]
fn products_of_large_results_are_not_staged() {
    use crate::kernels::device::csr_stages;
    for lanes in [2, 4] {
        assert!(csr_stages::<bool>(lanes) && csr_stages::<f64>(lanes) && csr_stages::<[f64; 32]>(lanes));
        assert!(!csr_stages::<[f64; 33]>(lanes));
    }
    assert!(!csr_stages::<f32>(1) && !csr_stages::<f32>(8));
}

#[test]
fn wide_results_are_not_combined_along_the_merge_path() {
    use crate::kernels::device::csr_path_fits;
    assert!(csr_path_fits::<bool>() && csr_path_fits::<f64>() && csr_path_fits::<[f64; 14]>());
    assert!(!csr_path_fits::<[f64; 15]>() && !csr_path_fits::<[f64; 33]>());
}

#[test]
fn very_wide_results_are_not_combined_by_length() {
    use crate::kernels::device::csr_by_length_fits;
    assert!(csr_by_length_fits::<bool>() && csr_by_length_fits::<f64>() && csr_by_length_fits::<[f64; 61]>());
    assert!(!csr_by_length_fits::<[f64; 63]>());
}

#[test]
fn a_matrix_without_rows_has_a_method() {
    assert!(matches!(rows(&[]).method(), SpmvMethod::Rows { .. }));
}
