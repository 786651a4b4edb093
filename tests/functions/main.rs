//! Tests device functions: their information, the library's functions against references, and their PTX in modules that are written here.
//!
//! The name of this binary, `functions`, is a part of the names of its functions. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

#[path = "../suite/kernels/simt/elementary.rs"]
mod elementary;
mod kernels;
mod known;
#[cfg(feature = "cuda")]
mod ptx;
mod values;

use kernel_primitives::expr::{Tensor, call};
use kernel_primitives::kernels::functions;
use kernel_primitives::{Device, Diagnosis, Dims, Error, FunctionInfo, Result, ValueType};

use kernels::{Halve, entry, female, halve, mixed, quotient, square_f64};

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
    // The others have tests of their own.
    let others = "sin_pi cos_pi lgamma pow atan2 hypot fmod floor_div floor_rem powi uniform normal";
    let others = others.split(' ').map(|name| format!("{name}_f64"));
    let mut tested: Vec<_> = values::UNARY.iter().map(|(name, ..)| (*name).to_owned()).chain(others).collect();
    let mut doubles: Vec<_> =
        names.iter().filter(|name| name.ends_with("_f64")).map(|name| (*name).to_owned()).collect();
    tested.sort();
    doubles.sort();
    assert_eq!(doubles, tested, "`tests/suite/kernels/simt/elementary.rs` has a row for each elementary function");
    assert_eq!(names.len(), 2 * tested.len());
    for name in &names {
        let other = match name.strip_suffix("f32") {
            Some(base) => format!("{base}f64"),
            None => name.replace("f64", "f32"),
        };
        assert_eq!(names.iter().filter(|&&name| name == other).count(), 1, "{name} has its {other}");
    }
}

/// The panic is as in a kernel. On a GPU, a later call returns the fault.
#[test]
fn a_panic_of_a_function_in_an_expression_is_a_fault() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let (x, mut divisors) = (Tensor::from_slice(&stream, 5000, &[7u32; 5000])?, [3u32; 5000]);
    divisors[4321] = 100;
    let y = Tensor::from_slice(&stream, 5000, &divisors)?;
    let z = Tensor::<u32>::zeros(&stream, 5000)?;
    let done = z.assign(call(quotient::info(), (&x, &y))).and_then(|()| z.to_vec());
    let Err(Error::Fault(fault)) = done else { panic!("{done:?}") };
    let Diagnosis::Panicked { message } = &fault.diagnosis else { panic!("{fault}") };
    assert!(message == "too large" || stream.device().is_gpu(), "{fault}");
    // After that, the function works again.
    z.assign(call(quotient::info(), (&x, &x)))?;
    assert_eq!(z.to_vec()?, [1; 5000]);
    Ok(())
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

#[test]
fn an_index_outside_is_a_panic_outside_a_kernel() {
    let panic = std::panic::catch_unwind(|| functions::index_out_of_bounds(7, 3)).unwrap_err();
    let text = panic.downcast_ref::<String>().map(String::as_str);
    assert_eq!(text, Some("index 7 is out of bounds: the view has 3 elements"));
}

/// A build for a GPU compiles it, too.
#[test]
fn a_public_kernel_takes_a_functor_of_its_crate() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let mut y = stream.buffer_from(&[1.0f32, 3.0, -4.0])?;
    halve::launch(&stream, Dims::for_items(3), Halve, &mut y)?;
    assert_eq!(y.to_vec()?, [0.5, 1.5, -2.0]);
    Ok(())
}
