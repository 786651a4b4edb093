//! Contexts of a GPU are given back when something fails, and the thread's stack of contexts stays as it was: shown by a driver that
//! watches. Apart from `fake_driver/`, because the process loses its context here.

#[allow(dead_code, reason = "each test binary uses a part")]
mod fake;

use std::ffi::c_int;

use fake::fake;
use primitives_host::{Device, Error, Result};

#[test]
fn contexts_are_given_back_and_the_stack_of_contexts_is_left_alone() -> Result<()> {
    let (fake, _turn) = fake();
    let on_stack = || fake.call::<c_int>("fake_contexts_on_stack", None);

    // There is a GPU, and it has no memory left.
    fake.set("fake_next_retain", 2);
    let full = Device::gpu();
    assert!(matches!(full, Err(Error::Driver { call: "cuDevicePrimaryCtxRetain", .. })), "{full:?}");
    assert_eq!(full.err().and_then(|error| error.driver_code()), Some(2));

    // What comes after the context fails.
    fake.set("fake_next_pool", 2);
    assert!(Device::gpu().is_err());
    assert_eq!(fake.log(), ["release"]);

    // An illegal address: the primary context is lost, and another one is made.
    let device = Device::gpu()?;
    let primary = device.as_raw_context();
    let mut buffer = device.stream()?.buffer_zeroed::<u32>(100)?;
    fake.set("fake_next_fill", 700);
    let lost = buffer.as_mut_slice().set_zero(&device.stream()?);
    assert!(matches!(lost, Err(Error::ContextLost { .. })), "{lost:?}");
    let again = Device::gpu()?;
    assert_eq!(on_stack(), 0);
    again.stream()?.buffer_zeroed::<u32>(100)?;

    // The handle of the lost one is adopted, not that of the one in its place. The driver may still refuse it.
    // SAFETY: the driver's contexts are there as long as the process.
    let adopt = || unsafe { Device::from_raw_context(primary) };
    fake.set("fake_next_pool", 700);
    let adopted = adopt();
    assert!(matches!(adopted, Err(Error::ContextLost { .. })), "{adopted:?}");
    let adopted = adopt()?;
    assert_eq!(adopted.as_raw_context(), primary);
    assert_ne!(again.as_raw_context(), primary);
    assert_eq!(on_stack(), 0);
    drop(adopted);
    fake.log();
    drop(again);
    assert_eq!(fake.log().last().map(String::as_str), Some("destroy"));

    // That one, too, if something after it fails.
    fake.set("fake_next_pool", 2);
    assert!(Device::gpu().is_err());
    assert_eq!((fake.log(), on_stack()), (vec!["destroy".to_owned()], 0));
    fake.no_mistakes();
    Ok(())
}
