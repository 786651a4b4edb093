//! Prefixes over tiles, by kernels of a block a tile.

use kernel_primitives::Result;
use kernel_primitives::functor::BinaryFn;
use kernel_primitives::grid::Chain;

use crate::kernels::{Compose, Map, prefixes_of_tiles};
use crate::support::stream;

/// Around one group of tiles, around what a warp looks at in groups, and beyond.
const TILES: [usize; 10] = [1, 2, 31, 32, 33, 65, 1024, 1025, 1057, 2500];

#[test]
fn every_tile_gets_what_is_before_it_in_order() -> Result<()> {
    tiles_get_their_prefixes(&TILES, &[32, 96, 5])
}

#[test]
fn tiles_of_some_groups_get_their_prefixes_sanitize() -> Result<()> {
    tiles_get_their_prefixes(&[70], &[64])
}

fn tiles_get_their_prefixes(counts: &[usize], blocks: &[u32]) -> Result<()> {
    let stream = stream()?;
    for (k, &tiles) in counts.iter().enumerate() {
        let x: Vec<Map<u32>> = (0..tiles as u32).map(|i| Map { a: 2 * (i % 5) + 1, b: i }).collect();
        let mut expected = Vec::new();
        let mut before = Map { a: 1, b: 0 };
        for &x in &x {
            expected.push(before);
            before = Compose.apply(before, x);
        }
        let mut out = stream.buffer_zeroed::<Map<u32>>(tiles)?;
        let mut chain = stream.buffer_zeroed::<u64>(Chain::<Map<u32>>::words(tiles))?;
        let threads = blocks[k % blocks.len()];
        prefixes_of_tiles::launch(&stream, (tiles as u32, threads), &stream.buffer_from(&x)?, &mut out, &mut chain)?;
        assert!(out.to_vec()? == expected, "{tiles} tiles, {threads} threads");
    }
    Ok(())
}
