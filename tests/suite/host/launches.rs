//! Tests kernels whose launch is unsafe, or private to the module that prepares it.

use kernel_primitives::input::Span;
use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{Diagnosis, Error, Result};

use crate::kernels::launches::{as_sixty_four, ends, gather, sixty_four};
use crate::support::{stream, values};

#[test]
fn an_unsafe_launch_gathers() -> Result<()> {
    let stream = stream()?;
    let x = values::<f32>(500, 1);
    let at: Vec<u32> = values::<u32>(1000, 2).into_iter().map(|at| at % 500).collect();
    let mut out = stream.buffer_zeroed::<f32>(1000)?;
    let (input, places) = (stream.buffer_from(&x)?, stream.buffer_from(&at)?);
    // SAFETY: all places are less than 500.
    unsafe { gather::<Span<f32>>::launch(&stream, (2, 64), &input, &places, &mut out) }?;
    let expected: Vec<u32> = at.iter().map(|&at| x[at as usize].to_bits()).collect();
    assert_eq!(out.to_vec()?.into_iter().map(f32::to_bits).collect::<Vec<_>>(), expected);
    // A launch checks what it can.
    // SAFETY: nothing is read.
    let other = unsafe { gather::<Span<f32>>::launch(&stream, (2, 64), &input, &places, out.slice_mut(..999)?) };
    assert!(matches!(other, Err(Error::LengthMismatch { first_len: 1000, second_len: 999, .. })), "{other:?}");
    Ok(())
}

#[test]
fn a_private_launch_is_its_module_s() -> Result<()> {
    let stream = stream()?;
    let x: Vec<u32> = (0..60).collect();
    let buffer = stream.buffer_from(&x)?;
    let expected: Vec<u32> = x.chunks(12).flat_map(|row| row[9..].to_vec()).collect();
    assert_eq!(ends(&stream, buffer.slice(..)?, 5, 3)?.to_vec()?, expected);
    assert!(matches!(ends(&stream, buffer.slice(..)?, 5, 13), Err(Error::LengthMismatch { .. })));
    Ok(())
}

/// A kernel's declaration of its blocks holds for a launch. In another kernel, it may not hold.
#[test]
fn a_kernel_that_is_called_by_another_has_the_threads_it_says() -> Result<()> {
    let stream = stream()?;
    let mut counts = stream.buffer_zeroed::<u32>(1)?;
    sixty_four::launch(&stream, (3, 64), &mut counts)?;
    as_sixty_four::launch(&stream, (3, 64), &mut counts)?;
    assert_eq!(counts.to_vec()?, [6 * 64]);
    for block in [32, 65] {
        let launched = as_sixty_four::launch(&stream, (1, block), &mut counts).and_then(|()| stream.synchronize());
        let Err(Error::Fault(fault)) = launched else { panic!("{launched:?}") };
        let expected = Fault { kind: FaultKind::BadShape, args: [block as u64, 64] };
        assert_eq!(fault.diagnosis, Diagnosis::Raised(expected), "{fault}");
    }
    Ok(())
}
