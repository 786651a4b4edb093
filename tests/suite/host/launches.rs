//! Tests kernels whose launch is unsafe, or private to the module that prepares it.

use kernel_primitives::input::Span;
use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{Diagnosis, Dims, Error, Result};

use crate::kernels::launches::{along_x, as_along_x, as_sixty_four, ends, gather, sixty_four};
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
    for (block, extent, says) in [((32, 1), 32, 64), ((65, 1), 65, 64), ((64, 2), 2, 1)] {
        let launched = as_sixty_four::launch(&stream, (1, block), &mut counts).and_then(|()| stream.synchronize());
        let Err(Error::Fault(fault)) = launched else { panic!("{launched:?}") };
        let expected = Fault { kind: FaultKind::OtherShape, args: [extent, says] };
        assert_eq!(fault.diagnosis, Diagnosis::Raised(expected), "{fault}");
        assert!(fault.to_string().contains("a kernel was called in a launch with an extent of"), "{fault}");
    }
    Ok(())
}

/// A kernel of one dimension has launches of this shape alone, whoever chooses it, and whether it is launched or called.
#[test]
fn a_kernel_of_one_dimension_is_launched_in_one() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<[u32; 4]>(100)?;
    assert!(along_x::info().one_dimensional() && !as_along_x::info().one_dimensional());
    for (grid, block, what) in [
        ((2, 2, 1), (32, 1, 1), "grid's y"),
        ((2, 1, 3), (32, 1, 1), "grid's z"),
        ((2, 1, 1), (32, 4, 1), "block's y"),
        ((2, 1, 1), (32, 1, 5), "block's z"),
    ] {
        let error = along_x::launch(&stream, (grid, block), &mut out).unwrap_err();
        assert!(matches!(error, Error::LaunchLimit { limit: 1, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(what) && text.contains("`one_dimensional`") && text.contains("along_x"), "{text}");
    }
    assert_eq!(out.to_vec()?, [[0; 4]; 100]);
    // A build in which the kernel of the host has any shape and that of the device has one dimension must not go unseen.
    assert_ne!(along_x::info().layout(), as_along_x::info().layout());
    let expected: Vec<_> = (0..100).map(|i| [i % 32, i / 32, 0, 1]).collect();
    along_x::launch(&stream, (4, 32), &mut out)?;
    assert_eq!(out.to_vec()?, expected);
    let mut out = stream.buffer_zeroed::<[u32; 4]>(100)?;
    as_along_x::launch(&stream, (4, 32), &mut out)?;
    assert_eq!(out.to_vec()?, expected);
    along_x::launch(&stream, Dims::for_items(100), &mut out)?;
    assert!(out.to_vec()?.iter().enumerate().all(|(i, of)| of[2..] == [0, 1] && (i > 0 || of[..2] == [0, 0])));
    for (dims, extent) in [(Dims::new((2, 2), 32), 2), (Dims::new(2, (8, 1, 3)), 3)] {
        let launched = as_along_x::launch(&stream, dims, &mut out).and_then(|()| stream.synchronize());
        let Err(Error::Fault(fault)) = launched else { panic!("{launched:?}") };
        let expected = Fault { kind: FaultKind::OtherShape, args: [extent, 1] };
        assert_eq!(fault.diagnosis, Diagnosis::Raised(expected), "{fault}");
    }
    Ok(())
}
