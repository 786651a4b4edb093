//! Parts of collectives that check nothing are unsafe.

use kernel_primitives::block::{PathPlaces, path_share};
use kernel_primitives::prelude::*;

#[kernel]
fn shares_of_a_path_of_any_length(cx: Block, shared: Shared<PathStorage<u32, 32, 1>>) {
    let places = PathPlaces { ends: shared.array(0, 1), items: shared.array(16, 1) };
    path_share(cx, places, (1, 1), (&[7u32; 1], 1), |_| 0, &Add, |_, _, _| ()); //~ is unsafe
}

fn main() {}
