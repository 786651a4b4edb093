//! Tests faults that only the emulator reports: barriers and warp operations that threads miss, and waits without an
//! end. In these kernels, a GPU would hang or do something unspecified.

use kernel_primitives::{Buffer, Device, Diagnosis, EmulatorOptions, Result, Stream};

use super::{check_place, run_expecting_fault, still_works};
use crate::kernels::faults as kernels;

/// Returns a stream on each kind of emulator.
fn emulators() -> Result<Vec<Stream>> {
    let mut streams = Vec::new();
    for (checked, seed) in [(true, None), (true, Some(3)), (false, None), (false, Some(4))] {
        let mut options = EmulatorOptions::default();
        (options.checked, options.seed) = (checked, seed);
        options.deadlock_after = std::time::Duration::from_millis(100);
        streams.push(Device::emulator_with(options).stream()?);
    }
    Ok(streams)
}

/// Checks a report of diverged lanes.
fn check_divergence(
    name: &str,
    parts: &[&str],
    launch: impl Fn(&Stream, &mut Buffer<u32>) -> Result<()>,
) -> Result<()> {
    for stream in emulators()? {
        let mut out = stream.buffer_zeroed(64)?;
        let fault = run_expecting_fault(&stream, |stream| launch(stream, &mut out));
        let Diagnosis::Divergence { message } = &fault.diagnosis else { panic!("{fault:?}") };
        for part in parts {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
        assert_eq!(fault.kernel, format!("suite::kernels::faults::{name}"));
        still_works(&stream)?;
    }
    Ok(())
}

#[test]
fn emulator_reports_a_barrier_that_some_threads_never_reach() -> Result<()> {
    for threads in [1, 31, 32, 63] {
        check_divergence("divergent_barrier", &["at a barrier", "finished"], |stream, _| {
            kernels::divergent_barrier::launch(stream, (2, 64), threads)
        })?;
    }
    // All threads or no threads may reach the barrier.
    for stream in emulators()? {
        kernels::divergent_barrier::launch(&stream, (2, 64), 64)?;
        kernels::divergent_barrier::launch(&stream, (2, 64), 0)?;
    }
    Ok(())
}

#[test]
fn emulator_reports_the_line_of_the_barrier() -> Result<()> {
    for stream in emulators()? {
        let fault = run_expecting_fault(&stream, |stream| kernels::divergent_barrier::launch(stream, (2, 64), 40));
        check_place(&stream, &fault, "divergent_barrier")?;
    }
    Ok(())
}

#[test]
fn emulator_reports_different_barriers() -> Result<()> {
    check_divergence("two_barriers", &["different barriers"], |stream, _| {
        kernels::two_barriers::launch(stream, (1, 64))
    })
}

#[test]
fn emulator_reports_a_lane_that_misses_a_shuffle() -> Result<()> {
    check_divergence("missing_lane", &["in a shuffle over lanes 0xffffffff", "thread (31, 0, 0)"], |stream, out| {
        kernels::missing_lane::launch(stream, (1, 32), out.slice_mut(..32)?)
    })
}

#[test]
fn emulator_reports_a_mask_without_its_own_lane() -> Result<()> {
    check_divergence(
        "own_lane_outside_mask",
        &["a shuffle over lanes 0x00000001", "do not contain it"],
        |stream, out| kernels::own_lane_outside_mask::launch(stream, (1, 64), out),
    )
}

#[test]
fn emulator_reports_a_mask_of_lanes_that_do_not_exist() -> Result<()> {
    check_divergence("full_mask_in_partial_warp", &["a ballot over lanes 0xffffffff", "do not exist"], |stream, out| {
        kernels::full_mask_in_partial_warp::launch(stream, (1, 40), out.slice_mut(..40)?)
    })
}

#[test]
fn emulator_reports_segments_that_do_not_divide_a_warp() -> Result<()> {
    for width in [0, 3, 33, 64] {
        check_divergence("odd_width", &[&format!("segments of {width} lanes"), "power of two"], |stream, out| {
            kernels::odd_width::launch(stream, (1, 64), width, out)
        })?;
    }
    Ok(())
}

#[test]
fn emulator_reports_a_wait_that_never_ends() -> Result<()> {
    for stream in emulators()? {
        let mut flag = stream.buffer_zeroed::<u32>(1)?;
        let fault = run_expecting_fault(&stream, |stream| kernels::endless_wait::launch(stream, (3, 32), &mut flag));
        assert!(matches!(&fault.diagnosis, Diagnosis::Deadlock { message } if message.contains("spin")), "{fault:?}");
        check_place(&stream, &fault, "endless_wait")?;
        let mut set = stream.buffer_from(&[1])?;
        kernels::endless_wait::launch(&stream, (3, 32), &mut set)?;
    }
    Ok(())
}
