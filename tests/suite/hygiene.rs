//! Tests that names of generated items hide none of a user's.

use kernel_primitives::{Device, Result};

/// Kernels whose generic arguments have names that an expansion might choose. They are only for the emulator.
mod kernels {
    use kernel_primitives::prelude::*;

    pub trait Named {
        const NUMBER: u32;
    }

    pub struct Tag;

    impl Named for Tag {
        const NUMBER: u32 = 1;
    }

    pub const INFO: u32 = 10;
    #[allow(non_upper_case_globals, reason = "the name of a function")]
    pub const images: u32 = 100;

    #[kernel(instantiate(<Tag, INFO, images>))]
    pub fn sum_of_names<N: Named, const A: u32, const B: u32>(cx: Block, mut out: GlobalMut<u32>) {
        for i in cx.items(out.len()) {
            out.set(i, N::NUMBER + A + B);
        }
    }

    instantiate!(sum_of_names::<Tag, images, INFO>);
}

#[test]
fn generated_items_hide_none_of_a_users() -> Result<()> {
    use kernels::{INFO, Tag, images, sum_of_names};
    let stream = Device::emulator().stream()?;
    let mut out = stream.buffer_zeroed::<u32>(1)?;
    sum_of_names::<Tag, INFO, images>::launch(&stream, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [111]);
    out.as_mut_slice().set_zero(&stream)?;
    sum_of_names::<Tag, images, INFO>::launch(&stream, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [111]);
    Ok(())
}
