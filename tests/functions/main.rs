//! Device functions: their information, the library's against references, and their PTX in modules that are written here.
//!
//! The name of this binary, `functions`, is a part of the names of its functions: the build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod kernels;
#[cfg(feature = "cuda")]
mod ptx;
mod values;

use kernel_primitives::kernels::functions;
use kernel_primitives::{FunctionInfo, ValueType};

use kernels::{entry, female, mixed, square_f64};

type Mixed = fn(bool, i8, u16, i32, u64, f32) -> f64;

#[test]
fn the_information_has_names_types_and_the_function() {
    let info: &'static FunctionInfo<Mixed> = mixed::info();
    assert_eq!(info.name(), "functions::kernels::mixed");
    assert_eq!(info.code().symbol(), "functions__kernels__mixed");
    use ValueType::{Bool, F32, F64, I8, I32, U16, U64};
    assert_eq!((info.code().params(), info.code().result()), (&[Bool, I8, U16, I32, U64, F32][..], F64));
    assert_eq!(info.function()(true, -1, 2, 3, 4, 0.0), 8.0);
    assert_eq!(format!("{info:?}"), "fn functions::kernels::mixed(bool, i8, u16, i32, u64, f32) -> f64");
    assert!(std::ptr::eq(info, mixed::info()), "one a program");

    assert_eq!(entry(3.0, f32::NAN, 1.0), entry::info().function()(3.0, f32::NAN, 1.0));
    assert_eq!(square_f64::info().code().params(), [F64]);
    assert!(female(12) && !female(10));
}

#[test]
fn the_library_has_every_function_in_two_types() {
    let all = functions::all();
    let names: Vec<_> = all.iter().map(|code| code.name().rsplit_once("::").unwrap().1).collect();
    assert_eq!(names.len(), 72);
    for name in &names {
        let other = match name.strip_suffix("f32") {
            Some(base) => format!("{base}f64"),
            None => name.replace("f64", "f32"),
        };
        assert_eq!(names.iter().filter(|&&name| name == other).count(), 1, "{name} has its {other}");
    }
}

#[test]
fn without_code_there_is_no_image() {
    let code = mixed::info().code();
    assert_eq!(code.image(20), None, "older than all that is built");
    assert_eq!(code.images().count() > 0, cfg!(feature = "cuda"));
    for image in code.images() {
        assert_eq!(code.image(image.arch), Some(image));
        assert_eq!(code.image(1000), code.images().last());
    }
}
