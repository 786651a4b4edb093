//! After which of the driver's codes a context is lost: shown by a driver that returns them. Apart from `fake_driver/`, because the
//! process loses its contexts here.

#[allow(dead_code, reason = "each test binary uses a part")]
mod fake;

use fake::fake;
use primitives_host::{Device, Error, Result};

/// Codes after which CUDA's documentation wants the process to end, and uncorrectable errors of memory and links; some are newer than
/// the bindings that the driver's names were first taken from.
const FATAL: [i32; 15] = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911];

/// Codes after which the context goes on, the neighbours of the others among them, and numbers that nobody has named.
const OTHERS: [i32; 16] = [1, 2, 201, 218, 219, 221, 222, 225, 701, 709, 720, 801, 809, 812, 999, 5000];

#[test]
fn the_drivers_own_number_tells_whether_the_context_is_lost() -> Result<()> {
    let (fake, _turn) = fake();
    for code in FATAL {
        let device = Device::gpu()?;
        let stream = device.stream()?;
        let mut x = stream.buffer_zeroed::<u32>(10)?;
        fake.set("fake_next_fill", code);
        let first = x.as_mut_slice().set_zero(&stream);
        // Every call says so from then on.
        for result in [first, x.as_mut_slice().set_zero(&stream), stream.synchronize(), x.to_vec().map(drop)] {
            match result {
                Err(error @ Error::ContextLost { .. }) => assert_eq!(error.driver_code(), Some(code as u32), "{error}"),
                other => panic!("{code}: {other:?}"),
            }
        }
    }
    let device = Device::gpu()?;
    let stream = device.stream()?;
    let mut x = stream.buffer_zeroed::<u32>(10)?;
    for code in OTHERS {
        fake.set("fake_next_fill", code);
        match x.as_mut_slice().set_zero(&stream) {
            Err(error @ Error::Driver { .. }) => assert_eq!(error.driver_code(), Some(code as u32), "{error}"),
            other => panic!("{code}: {other:?}"),
        }
        x.as_mut_slice().set_zero(&stream)?;
    }
    fake.no_mistakes();
    Ok(())
}
