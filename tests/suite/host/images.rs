//! Tests the code that the builder has put into the host's program. These tests read it, but run none of it.

use kernel_primitives::functor::Add;
use kernel_primitives::kernels::{block_reduce, map_binary};
use kernel_primitives::{KernelInfo, f16};

use crate::kernels::{Sixteen, Twelve, printing, simt};

/// Returns kernels that have values, structs, views, shared memory and functors as parameters.
fn kernels() -> Vec<&'static KernelInfo> {
    vec![
        map_binary::<f16, f16, Add, 8>::info(),
        block_reduce::<f32, Add, 4>::info(),
        printing::print_kinds::info(),
        printing::print_elements::info(),
        simt::parameters::info(),
        simt::indices::info(),
        simt::two_storages::info(),
        simt::reverse_blocks::<Sixteen>::info(),
        simt::reverse_blocks::<Twelve>::info(),
        simt::reverse_rest::<Twelve>::info(),
    ]
}

#[test]
fn host_and_device_agree_on_the_layout_of_the_parameters() {
    let mut layouts = Vec::new();
    for info in kernels() {
        assert!(!info.images().is_empty(), "{} was not built for the GPU", info.name());
        for (arch, ptx, _) in info.images() {
            let first = ptx.lines().next();
            assert_eq!(first, Some(&*format!("// layout {:016x}", info.layout())), "{} for sm_{arch}", info.name());
        }
        layouts.push(info.layout());
    }
    layouts.sort();
    layouts.dedup();
    assert_eq!(layouts.len(), kernels().len(), "kernels with different parameters have different layouts");
}

#[test]
fn an_image_is_the_kernel_for_its_architecture() {
    for info in kernels() {
        for (arch, ptx, _) in info.images() {
            assert!(ptx.contains(&format!(".target sm_{arch}\n")), "{} for sm_{arch}", info.name());
            let entry = format!(".entry {}(", info.entry().replace("::", "__"));
            assert_eq!(ptx.matches(".entry").count(), ptx.matches(&entry).count(), "{} for sm_{arch}", info.name());
        }
    }
}
