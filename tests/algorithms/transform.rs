//! Tests functions of each item against iterators.

use kernel_primitives::algorithms::{fill, gather, generate, scatter, transform};
use kernel_primitives::functor::{Identity, Mul, Square, of_pair};
use kernel_primitives::input::{counting, reversed, zip};
use kernel_primitives::output::{discard, permutation, strided};
use kernel_primitives::simt::FaultKind;
use kernel_primitives::{Device, Diagnosis, EmulatorOptions, Error, Result};

use crate::LENGTHS;
use crate::kernels::{ByTen, Digits, Spread, Twelve};
use crate::support::{stream, values};

#[test]
fn every_item_is_transformed_at_any_offset_sanitize() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let x = values::<u8>(len + 7, k as u64);
        let buffer = stream.buffer_from(&x)?;
        let (from, to) = (k % 5, k % 3);
        let mut out = stream.buffer_from(&vec![77u8; len + 5])?;
        transform(&stream, buffer.slice(from..from + len)?, Square, &mut out.slice_mut(to..)?)?;
        let mut expected = vec![77u8; len + 5];
        for (out, x) in expected[to..].iter_mut().zip(&x[from..from + len]) {
            *out = x.wrapping_mul(*x);
        }
        assert_eq!(out.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn several_inputs_are_zipped() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (values::<f32>(10_001, 1), values::<f32>(10_001, 2));
    let mut out = stream.buffer_zeroed::<f32>(10_001)?;
    let (a, b) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
    transform(&stream, zip(&a, &b), of_pair(Mul), &mut out)?;
    let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let expected = x.iter().zip(&y).map(|(x, y)| x * y).collect();
    assert_eq!(bits(out.to_vec()?), bits(expected));
    Ok(())
}

#[test]
fn a_buffer_is_filled_and_copied() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let mut x = stream.buffer_uninit::<f32>(len)?;
        fill(&stream, 1.5, &mut x)?;
        let mut out = stream.buffer_zeroed::<f32>(len)?;
        transform(&stream, &x, Identity, &mut out)?;
        assert_eq!(out.to_vec()?, vec![1.5; len]);
    }
    Ok(())
}

#[test]
fn a_function_with_two_results_has_two_outputs_sanitize() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let x = values::<u32>(len + 1, 5);
        let buffer = stream.buffer_from(&x)?;
        let (mut a, mut b) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_from(&vec![77u8; len + 2])?);
        transform(&stream, buffer.slice(1..)?, ByTen, zip(&mut a, &mut b))?;
        assert!(a.to_vec()?.iter().eq(x[1..].iter().map(|x| x / 10).collect::<Vec<_>>().iter()));
        assert!(b.to_vec()? == x[1..].iter().map(|x| (x % 10) as u8).chain([77; 2]).collect::<Vec<_>>());
    }
    let x = stream.buffer_from(&[1u32, 2])?;
    let (mut a, mut b) = (stream.buffer_zeroed::<u32>(2)?, stream.buffer_zeroed::<u8>(1)?);
    assert!(matches!(transform(&stream, &x, ByTen, zip(&mut a, &mut b)), Err(Error::LengthMismatch { .. })));
    Ok(())
}

#[test]
fn outputs_are_ordered_paired_and_discarded_sanitize() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let x = values::<u32>(len, 5);
        let buffer = stream.buffer_from(&x)?;
        // The places are a permutation of the first places of `a`, which has one place more.
        let at = (0..len as u32).map(|i| if i % 2 == 1 { i - 1 } else { (i + 1).min(len as u32) }).collect::<Vec<_>>();
        let places = stream.buffer_from(&at)?;
        let mut a = stream.buffer_from(&vec![77u32; len + 1])?;
        let mut b = stream.buffer_from(&vec![77u8; len])?;
        let mut c = stream.buffer_from(&vec![77u64; 3 * len])?;
        let order = zip(permutation(&mut a, &places), zip(reversed(&mut b), zip(strided(&mut c, 3), discard(len))));
        transform(&stream, &buffer, Spread, order)?;

        let mut expected = (vec![77u32; len + 1], vec![77u8; len], vec![77u64; 3 * len]);
        for (i, &x) in x.iter().enumerate() {
            expected.0[at[i] as usize] = !x;
            expected.1[len - 1 - i] = (x % 251) as u8;
            expected.2[3 * i] = u64::from(x) << 20;
        }
        assert!((a.to_vec()?, b.to_vec()?, c.to_vec()?) == expected, "{len}");
    }
    let mut out = stream.buffer_zeroed::<u32>(4)?;
    generate(&stream, Digits, zip(discard(5), reversed(out.slice_mut(1..)?)))?;
    assert_eq!(out.to_vec()?, [0, 20, 10, 0]);
    Ok(())
}

#[test]
fn a_place_of_an_output_that_is_outside_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<f32>(3)?;
    let x = stream.buffer_from(&[1.0f32, 2.0])?;
    let places = stream.buffer_from(&[1u32, 3])?;
    let error = transform(&stream, &x, Identity, permutation(&mut out, &places)).and_then(|()| stream.synchronize());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("index 3") && error.contains('3'), "{error}");
    Ok(())
}

#[test]
fn two_items_for_one_place_of_an_output_race() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.checked = true;
    let stream = Device::emulator_with(options).stream()?;
    let mut out = stream.buffer_zeroed::<f32>(200)?;
    let x = stream.buffer_from(&[1.5f32; 200])?;
    // Two threads have the same place, and one of them writes its own in turn.
    let places = stream.buffer_from(&(0..200).map(|i| if i == 150 { 0 } else { i }).collect::<Vec<u32>>())?;
    let error = transform(&stream, &x, Identity, permutation(&mut out, &places)).unwrap_err();
    let Error::Fault(fault) = &error else { panic!("{error}") };
    assert!(matches!(fault.diagnosis, Diagnosis::DataRace { .. }), "{error}");
    Ok(())
}

#[test]
fn indices_are_generated_gathered_and_scattered_sanitize() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let mut indices = stream.buffer_zeroed::<u64>(len)?;
        generate(&stream, Identity, &mut indices)?;
        assert!(indices.to_vec()?.into_iter().eq(0..len as u64));

        let x = values::<u16>(len, 9);
        let backwards = || reversed(counting(0i64, len));
        let mut out = stream.buffer_from(&vec![7u16; len + 1])?;
        gather(&stream, &stream.buffer_from(&x)?, backwards(), &mut out)?;
        assert!(out.to_vec()?.iter().eq(x.iter().rev().chain(&[7])));

        let x = values::<u8>(len, 9);
        let mut out = stream.buffer_from(&vec![7u8; len + 1])?;
        scatter(&stream, &stream.buffer_from(&x)?, backwards(), &mut out)?;
        assert!(out.to_vec()?.iter().eq(x.iter().rev().chain(&[7])));
    }
    Ok(())
}

#[test]
fn a_place_outside_is_a_fault_and_too_few_places_are_an_error() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32, 2.0])?;
    let mut out = stream.buffer_zeroed::<f32>(3)?;
    let error = scatter(&stream, &x, &stream.buffer_from(&[0u32])?, &mut out).unwrap_err().to_string();
    assert!(error.contains("`x`") && error.contains("`at`"), "{error}");
    let error = scatter(&stream, &x, &stream.buffer_from(&[0u32, 3])?, &mut out).and_then(|()| stream.synchronize());
    assert!(error.unwrap_err().to_string().contains('3'));
    let error = gather(&stream, &x, &stream.buffer_from(&[0u32, 2])?, &mut out).and_then(|()| stream.synchronize());
    assert!(error.unwrap_err().to_string().contains('2'));
    Ok(())
}

/// No index is dropped, not even the largest.
#[test]
fn no_index_stands_for_no_place() -> Result<()> {
    let x = [1u16; 9];
    for index in [-1i64, -2, i64::MIN, i64::MAX, 9] {
        let stream = stream()?;
        let x = stream.buffer_from(&x)?;
        let mut at: Vec<i64> = (0..9).collect();
        at[4] = index;
        let (at, mut out) = (stream.buffer_from(&at)?, stream.buffer_zeroed::<u16>(9)?);
        for scatters in [true, false] {
            // A GPU returns one fault for all work that is launched before it is asked.
            let result =
                if scatters { scatter(&stream, &x, &at, &mut out) } else { gather(&stream, &x, &at, &mut out) };
            let error = result.and_then(|()| stream.synchronize()).unwrap_err();
            let Error::Fault(fault) = &error else { panic!("{error}") };
            let Diagnosis::Raised(raised) = &fault.diagnosis else { panic!("{error}") };
            assert_eq!((raised.kind, raised.args), (FaultKind::OutOfBounds, [index as u64, 9]), "{error}");
        }
    }
    Ok(())
}

/// If two items go to one place, there is one of the two numbers. For a struct, each member is from one of the two.
#[test]
fn places_that_are_named_twice_hold_what_goes_there() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.checked = false;
    let device = Device::auto()?;
    let stream = if device.is_gpu() { device.stream()? } else { Device::emulator_with(options).stream()? };
    let (len, places) = (50_000, 37);
    let at: Vec<u32> = values::<u32>(len, 1).into_iter().map(|x| x % places).collect();
    let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let structs: Vec<Twelve> = (0..len as u32).map(|i| Twelve { a: i as f32, b: i, c: i as i32 }).collect();
    let indices = stream.buffer_from(&at)?;
    let mut out = stream.buffer_from(&vec![-1.0f32; places as usize])?;
    scatter(&stream, &stream.buffer_from(&numbers)?, &indices, &mut out)?;
    let goes_to = |number: f32, place: usize| number >= 0.0 && at[number as usize] as usize == place;
    assert!(out.to_vec()?.into_iter().enumerate().all(|(place, number)| goes_to(number, place)));
    transform(&stream, &stream.buffer_from(&numbers)?, Identity, permutation(&mut out, &indices))?;
    assert!(out.to_vec()?.into_iter().enumerate().all(|(place, number)| goes_to(number, place)));
    let mut out = stream.buffer_zeroed::<Twelve>(places as usize)?;
    scatter(&stream, &stream.buffer_from(&structs)?, &indices, &mut out)?;
    for (place, Twelve { a, b, c }) in out.to_vec()?.into_iter().enumerate() {
        assert!([a, b as f32, c as f32].into_iter().all(|number| goes_to(number, place)));
    }
    Ok(())
}

#[test]
fn two_items_for_one_place_race_in_a_checked_emulator() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.checked = true;
    let stream = Device::emulator_with(options).stream()?;
    let mut out = stream.buffer_zeroed::<f32>(200)?;
    let x = stream.buffer_from(&[1.5f32; 200])?;
    let places = stream.buffer_from(&(0..200).map(|i| if i == 150 { 0 } else { i }).collect::<Vec<u32>>())?;
    let error = scatter(&stream, &x, &places, &mut out).unwrap_err();
    let Error::Fault(fault) = &error else { panic!("{error}") };
    assert!(matches!(fault.diagnosis, Diagnosis::DataRace { .. }), "{error}");
    Ok(())
}
