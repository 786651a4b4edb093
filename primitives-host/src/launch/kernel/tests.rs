use super::*;
use primitives_gpu::view::LaunchBounds;

#[test]
fn the_ptx_of_an_architecture_is_that_of_the_newest_one_up_to_it() {
    const IMAGES: Images = &[(75, "older", None), (90, "newer", None)];
    let info = KernelInfo::new("app::saxpy", "app::saxpy", IMAGES, 0, 0, LaunchBounds::NONE);
    let emulated = KernelInfo::new("app::saxpy", "app::saxpy", &[], 0, 0, LaunchBounds::NONE);
    assert_eq!(emulated.ptx_for(90), None);
    for info in [info, emulated.with_images(|| IMAGES)] {
        let found = [70, 75, 89, 90, 120].map(|arch| info.ptx_for(arch));
        assert_eq!(found, [None, Some("older"), Some("older"), Some("newer"), Some("newer")]);
        assert_eq!(info.ptx(&Device::emulator()), None);
    }
}

#[test]
fn a_kernel_tells_the_division_of_memory_that_it_prefers() {
    let info = || KernelInfo::new("app::saxpy", "app::saxpy", &[], 0, 0, LaunchBounds::NONE);
    assert_eq!([info().carveout(), info().with_carveout(Some(4096)).carveout()], [None, Some(4096)]);
}

#[test]
fn code_with_another_layout_is_refused() {
    const LAYOUT: u64 = 0x0123_4567_89ab_cdef;
    let info = KernelInfo::new("app::saxpy", "app::saxpy", &[], 0, LAYOUT, LaunchBounds::NONE);
    info.check_layout("// layout 0123456789abcdef\n.version 8.0\n").unwrap();
    let other = info.check_layout("// layout 0123456789abcdee\n.version 8.0\n").unwrap_err();
    assert!(
        matches!(&other, Error::LayoutMismatch { kernel, host: LAYOUT, device } if kernel == "app::saxpy" && *device == LAYOUT - 1),
        "{other}"
    );
    for part in ["`app::saxpy`", "0x0123456789abcdef", "0x0123456789abcdee", "rebuild"] {
        assert!(other.to_string().contains(part), "{other}");
    }
    let none = info.check_layout(".version 8.0\n").unwrap_err();
    assert!(matches!(none, Error::LayoutMismatch { device: 0, .. }), "{none}");
}
