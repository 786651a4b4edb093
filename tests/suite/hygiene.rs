//! Tests that names of generated items hide none of a user's.

use kernel_primitives::Result;

use crate::kernels::launches::names::{BOUNDS, INFO, LAYOUT, Tag, images, sum_of_names};
use crate::support::stream;

#[test]
fn generated_items_hide_none_of_a_users() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<u32>(1)?;
    sum_of_names::<Tag, INFO, images>::launch(&stream, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [111]);
    sum_of_names::<Tag, LAYOUT, BOUNDS>::launch(&stream, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [61]);
    sum_of_names::<Tag, BOUNDS, images>::launch(&stream, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [141]);
    Ok(())
}
