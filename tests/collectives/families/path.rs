//! Rows along a merge path.

use kernel_primitives::prelude::*;

/// Adds up each row's items in a given tile, and also the items after the last row.
#[kernel]
pub fn sums_of_rows(
    cx: Block,
    ends: Global<u32>,
    x: Global<u32>,
    rows: usize,
    items: usize,
    sums: GlobalMut<u32, Atomic>,
    mut shared: Shared<PathStorage<u32, 32, 2>>,
) {
    let tile = PathTile { first_row: 0, rows, first_item: 0, items };
    let mut own = init::<u32, 2>(0);
    load_striped(cx, &mut own, x);
    let end = |row: usize| ends[row] as usize;
    let rest = block_reduce_path(cx, &mut shared, tile, &own, end, Add, |row, _, total| sums.at(row).store(total));
    if cx.thread_rank() == 0 {
        sums.at(rows).store(rest);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::block::PathTile;
    use kernel_primitives::simt::{Fault, FaultKind};
    use kernel_primitives::thread::merge_path_rows;
    use kernel_primitives::{Diagnosis, Error, Result, Stream};

    use crate::families::path as kernels;
    use crate::support::{stream, streams};

    /// Returns the sums of one tile: of its rows, and of the items after the last row.
    fn sums(stream: &Stream, threads: u32, ends: &[u32], x: &[u32], items: usize) -> Result<Vec<u32>> {
        let mut sums = stream.buffer_from(&vec![77u32; ends.len() + 1])?;
        let (ends, x) = (stream.buffer_from(ends)?, stream.buffer_from(x)?);
        kernels::sums_of_rows::launch(stream, (1, threads), &ends, &x, ends.len(), items, &mut sums)?;
        stream.synchronize()?;
        sums.to_vec()
    }

    #[test]
    fn sanitize_a_tile_has_the_sums_of_its_rows_and_a_rest() -> Result<()> {
        for stream in streams()? {
            // Items after the tile's items do not matter.
            let x: Vec<u32> = (1..=64).collect();
            let sum = |items: std::ops::Range<u32>| items.map(|item| item + 1).sum::<u32>();
            assert_eq!(sums(&stream, 32, &[], &x, 64)?, [sum(0..64)]);
            assert_eq!(sums(&stream, 32, &[], &x, 5)?, [sum(0..5)]);
            assert_eq!(sums(&stream, 32, &[60], &x, 60)?, [sum(0..60), 0]);
            assert_eq!(sums(&stream, 32, &[0, 3, 3, 40], &x, 60)?, [0, sum(0..3), 0, sum(3..40), sum(40..60)]);
            assert_eq!(sums(&stream, 32, &[0; 64], &x, 0)?, [0; 65]);
        }
        Ok(())
    }

    #[test]
    fn a_tile_that_the_storage_has_no_room_for_is_a_fault() -> Result<()> {
        let x = [1; 64];
        for (threads, items, args) in [(32, 64, [65, 64]), (64, 20, [64, 32]), (16, 20, [16, 32])] {
            match sums(&stream()?, threads, &[3], &x, items) {
                Err(Error::Fault(fault)) => match fault.diagnosis {
                    Diagnosis::Raised(found) => assert_eq!(found, Fault { kind: FaultKind::BadShape, args }),
                    other => panic!("{threads} threads, {items} items: {other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }

    /// The test takes all paths of a few short rows, step by step.
    #[test]
    fn a_search_finds_how_many_rows_end_before_each_step() {
        for code in 0..256u32 {
            let lengths = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3];
            let ends: Vec<usize> = lengths
                .iter()
                .scan(0, |end, &length| {
                    *end += length as usize;
                    Some(*end)
                })
                .collect();
            // There are two items after the last row.
            let (rows, items) = (ends.len(), ends[3] + 2);
            let (mut row, mut item) = (0, 0);
            for step in 0..=rows + items {
                assert_eq!(merge_path_rows(step, rows, items, |row| ends[row]), row, "{lengths:?}, step {step}");
                if row < rows && item == ends[row] { row += 1 } else { item += 1 }
            }
            for (first, last) in [(0, 5), (3, 3), (2, 100), (50, 60)] {
                let tile = PathTile::between(first, last, rows, items, |row| ends[row]);
                let [first, last] = [first, last].map(|step: usize| step.min(rows + items));
                assert_eq!((tile.first_row + tile.first_item, tile.rows + tile.items), (first, last - first));
            }
            let none = PathTile::between(5, 3, rows, items, |row| ends[row]);
            assert_eq!((none.first_row + none.first_item, none.rows, none.items), (5, 0, 0));
        }
        assert!(merge_path_rows(usize::MAX, usize::MAX, usize::MAX, |_| usize::MAX) < usize::MAX);
    }
}
