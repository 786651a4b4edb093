//! An element is aligned to more than device memory and page-locked memory are.

use kernel_primitives::prelude::*;

#[derive(Clone, Copy, Element)]
#[repr(C, align(512))]
struct Page([u64; 64]);

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let pages = stream.buffer_zeroed::<Page>(1)?;
    assert_eq!(pages.to_vec()?[0].0, [0; 64]);
    let page_locked = stream.device().pinned::<Page>(1)?;
    assert_eq!(page_locked[0].0, [0; 64]);
    Ok(())
}
//~? device memory is aligned to 256 bytes
//~? page-locked memory is aligned to 256 bytes
