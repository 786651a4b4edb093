//! Tests bad input. The error names the mistake.

use std::panic::Location;

use kernel_primitives::expr::*;
use kernel_primitives::{Device, Devices, Error, ExpressionErrorKind, Result, Split};

use crate::values;

/// Checks the kind of an expression error and parts of its text, and that it names the caller's file.
#[track_caller]
pub fn assert_error<T>(result: Result<T>, kind: ExpressionErrorKind, parts: &[&str]) {
    let Err(error) = result else { panic!("no error, where {kind:?} was expected") };
    let text = error.to_string();
    let Error::Expression(error) = error else { panic!("{text}") };
    assert_eq!(error.kind, kind, "{text}");
    for part in parts.iter().chain(&[Location::caller().file()]) {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

#[track_caller]
fn refused<T>(result: Result<T>, expected: &str) {
    let Err(error) = result else { panic!("no error: {expected}") };
    assert_eq!(error.to_string(), expected);
}

#[test]
fn weights_that_are_none() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let weighted = |weights: &[f64]| Split::weighted(&devices, weights);
    refused(weighted(&[1.0, 0.0]), "`Split::weighted`: weight 1 is 0, and not a positive number");
    refused(weighted(&[-0.5, 1.0]), "`Split::weighted`: weight 0 is -0.5, and not a positive number");
    refused(weighted(&[1.0, f64::NAN]), "`Split::weighted`: weight 1 is NaN, and not a positive number");
    refused(weighted(&[f64::INFINITY, 1.0]), "`Split::weighted`: weight 0 is inf, and not a positive number");
    refused(weighted(&[1.0]), "`Split::weighted`: there are 1 weights for 2 devices");
    refused(weighted(&[1.0; 3]), "`Split::weighted`: there are 3 weights for 2 devices");
    let streams = || devices.streams();
    refused(
        Split::of_streams(streams()?, &[1.0, -1.0]),
        "`Split::of_streams`: weight 1 is -1, and not a positive number",
    );
    Ok(())
}

#[test]
fn devices_that_are_listed_twice() -> Result<()> {
    let device = Device::emulator();
    let streams = [device.stream()?, device.stream()?];
    refused(Split::of_streams(streams, &[1.0, 1.0]), "`Split::of_streams`: the emulator is listed twice");
    refused(Split::of_streams([], &[]), "`Split::of_streams`: the list is empty");
    Ok(())
}

#[test]
fn tensors_of_different_splits() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let (x, y) = (SplitTensor::<f32>::zeros(&even, 8)?, SplitTensor::<f32>::zeros(&odd, 8)?);
    let both = [
        "split in two ways",
        "0..4 on device 0 of the emulator, 4..8 on device 1 of the emulator",
        "0..6 on device 0 of the emulator, 6..8 on device 1 of the emulator",
        "resplit",
    ];
    assert_error(x.assign(&x + &y), ExpressionErrorKind::BadSplit, &both);
    assert_error(x.assign(&y), ExpressionErrorKind::BadSplit, &both);
    assert_error((&x * &y).sum().item(), ExpressionErrorKind::BadSplit, &both);
    assert_error((&x * &y).sum().over_split(&even, 8).item(), ExpressionErrorKind::BadSplit, &both);
    // This split has the same bounds on other devices.
    let turned = Devices::new([devices[1].clone(), devices[0].clone()])?;
    let z = SplitTensor::<f32>::zeros(&Split::even(&turned)?, 8)?;
    assert_error(x.assign(&z), ExpressionErrorKind::BadSplit, &["0..4 on device 1 of the emulator"]);
    // Another split with the same rows on the same devices counts as the same split.
    let again = SplitTensor::from_slice(&Split::weighted(&devices, &[2.0, 2.0])?, 8, &[1.0f32; 8])?;
    x.assign(&again)?;
    x.add_assign(y.resplit(&even)? + 1.0)?;
    assert_eq!(x.to_vec()?, [2.0; 8]);
    Ok(())
}

#[test]
fn tensors_of_one_device_beside_split_ones() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let x = SplitTensor::<f32>::zeros(&split, 8)?;
    let whole = Tensor::<f32>::zeros(&split.streams()[0], 1)?;
    let mixed = x.to_expr() + whole.to_expr();
    let parts = ["x0 + x1", "on device 0 of the emulator, but is read on device 1 of the emulator", "from_tensor"];
    assert_error(x.assign(&mixed), ExpressionErrorKind::BadSplit, &parts);
    assert_error(mixed.sum().item(), ExpressionErrorKind::BadSplit, &parts);
    assert_error(x.assign(gather(&whole, x.cast::<u32>())), ExpressionErrorKind::BadSplit, &["from_tensor"]);
    let target = Tensor::<f32>::zeros(&split.streams()[0], 8)?;
    let parts = ["split over devices", "to_tensor", "x0 * 2.0", "x0: f32[8], split as 0..4 on device 0"];
    assert_error(target.assign(&x * 2.0), ExpressionErrorKind::BadSplit, &parts);
    assert_error(assign_all([target.to(&x * 2.0)]), ExpressionErrorKind::BadSplit, &parts);
    // If all rows are on one device, a tensor of this device may be an operand.
    let one = Split::even(&Devices::emulated(1)?)?;
    let (x, whole) =
        (SplitTensor::from_slice(&one, 3, &[1, 2, 3])?, Tensor::from_slice(&one.streams()[0], 3, &[10, 20, 30])?);
    x.assign(x.to_expr() + whole.to_expr())?;
    assert_eq!(x.to_vec()?, [11, 22, 33]);
    let few = SplitTensor::from_slice(&Split::even(&Devices::emulated(2)?)?, 1, &[1])?;
    let there = Tensor::from_slice(few.split().streams().last().expect("two"), 1, &[10])?;
    few.add_assign(&there)?;
    assert_eq!(few.to_vec()?, [11]);
    Ok(())
}

#[test]
fn shapes_that_do_not_fit() -> Result<()> {
    let split = Split::even(&Devices::emulated(3)?)?;
    let x = SplitTensor::<f32>::zeros(&split, [6, 4])?;
    let long = SplitTensor::<f32>::zeros(&split, [7, 4])?;
    let wide = SplitTensor::<f32>::zeros(&split, [6, 5])?;
    let row = SplitTensor::<f32>::zeros(&split, 4)?;
    let single = SplitTensor::<f32>::zeros(&split, [1, 4])?;
    assert_error(x.assign(&x + &long), ExpressionErrorKind::BadShape, &["[7, 4]", "[6, 4]", "broadcast"]);
    assert_error(x.assign(&wide), ExpressionErrorKind::BadShape, &["[6, 5]", "[6, 4]"]);
    assert_error(row.assign(&x), ExpressionErrorKind::BadShape, &["[6, 4]", "[4]"]);
    assert_error((&x + &long).sum().item(), ExpressionErrorKind::BadShape, &["[7, 4]", "[6, 4]"]);
    // These broadcast, but their rows are not the rows of the target.
    assert_error(x.assign(&x + &row), ExpressionErrorKind::BadSplit, &["shape [4]", "the rows of [6, 4]"]);
    assert_error(x.assign(&single), ExpressionErrorKind::BadSplit, &["shape [1, 4]", "the rows of [6, 4]"]);
    assert_error((&x + &row).max().item(), ExpressionErrorKind::BadSplit, &["shape [4]"]);
    assert_error(x.copy_from(&long), ExpressionErrorKind::BadShape, &["[7, 4]", "[6, 4]"]);
    // The same holds without rows.
    let (none, other) = (SplitTensor::<f32>::zeros(&split, [0, 4])?, SplitTensor::<f32>::zeros(&split, [0, 5])?);
    assert_error(none.assign(&other), ExpressionErrorKind::BadShape, &["[0, 5]", "[0, 4]"]);
    assert_error(none.assign(axis_index::<f32>(2)), ExpressionErrorKind::OutOfRange, &["axis 2"]);
    let far = || &none + axis_index::<f32>(5);
    assert_error(far().sum().item(), ExpressionErrorKind::OutOfRange, &["axis 5"]);
    assert_error(far().sum().axes(&[1]).split_tensor(), ExpressionErrorKind::OutOfRange, &["axis 5"]);
    // The same holds for rows without elements.
    let thin = SplitTensor::<f32>::zeros(&split, [6, 0])?;
    let far = || &thin + axis_index::<f32>(5);
    assert_error(far().sum().item(), ExpressionErrorKind::OutOfRange, &["axis 5"]);
    assert_error(far().sum().axes(&[1]).split_tensor(), ExpressionErrorKind::OutOfRange, &["axis 5"]);
    Ok(())
}

#[test]
fn shapes_that_are_none() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let scalar: [usize; 0] = [];
    assert_error(SplitTensor::<f32>::zeros(&split, scalar), ExpressionErrorKind::BadShape, &["nothing to split"]);
    assert_error(
        SplitTensor::from_slice(&split, [2, 3], &[0u8; 5]),
        ExpressionErrorKind::BadShape,
        &["[2, 3]", "6", "5"],
    );
    assert_error(SplitTensor::<u8>::zeros(&split, [1; 10]), ExpressionErrorKind::BadShape, &["10 axes"]);
    assert_error(SplitTensor::<u8>::zeros(&split, [usize::MAX, 2]), ExpressionErrorKind::BadShape, &["counted"]);
    let value = Tensor::from_slice(&split.streams()[0], scalar, &[1.0f32])?;
    assert_error(SplitTensor::from_tensor(&split, &value), ExpressionErrorKind::BadShape, &["nothing to split"]);
    assert!(matches!(SplitTensor::<f64>::zeros(&split, usize::MAX), Err(Error::Allocation { .. })));
    // There may be as many rows without elements as can be counted. There are no rows with more elements than can be counted.
    assert_eq!(SplitTensor::<u8>::zeros(&split, [usize::MAX, 0])?.to_vec()?, []);
    let empty = SplitTensor::<u8>::zeros(&split, [0, usize::MAX, usize::MAX])?;
    empty.assign(element_index::<u8>())?;
    assert_eq!((empty.sum().item()?, empty.to_vec()?), (0, vec![]));
    Ok(())
}

#[test]
fn reductions_that_do_not_fit_their_call() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let x = SplitTensor::from_slice(&split, [4, 3], &values(12))?;
    let whole = Tensor::from_slice(&split.streams()[0], [4, 3], &values(12))?;
    assert_error(x.sum().axes(&[1]).tensor(), ExpressionErrorKind::BadSplit, &["use `split_tensor`"]);
    assert_error(x.sum().axes(&[1]).item(), ExpressionErrorKind::BadSplit, &["use `split_tensor`"]);
    assert_error(x.sum().axes(&[0]).split_tensor(), ExpressionErrorKind::BadSplit, &["use `tensor`"]);
    assert_error(whole.sum().axes(&[1]).split_tensor(), ExpressionErrorKind::BadSplit, &["nothing", "use `tensor`"]);
    assert_error(x.sum().axes(&[2]).tensor(), ExpressionErrorKind::OutOfRange, &["axis 2", "[4, 3]"]);
    assert_error(x.sum().axes(&[0, -2]).tensor(), ExpressionErrorKind::OutOfRange, &["axis -2", "twice"]);
    assert_error(x.sum().axes(&[0]).item(), ExpressionErrorKind::BadShape, &["3 elements"]);
    let over = x.sum().over(&split.streams()[0], [4, 3]);
    assert_error(over.item(), ExpressionErrorKind::BadSplit, &["over_split"]);
    let none: [usize; 0] = [];
    assert_error(uniform::<f32>(1).sum().over_split(&split, none).item(), ExpressionErrorKind::BadShape, &["no axis"]);
    let target = Tensor::<i32>::zeros(&split.streams()[0], 4)?;
    assert_error(x.sum().axes(&[0]).assign_to(&target), ExpressionErrorKind::BadShape, &["[3]", "[4]"]);
    let elsewhere = Tensor::<i32>::zeros(&split.streams()[1], 3)?;
    let wrong = x.sum().axes(&[0]).assign_to(&elsewhere);
    assert!(matches!(wrong, Err(Error::WrongDevice { .. })), "{wrong:?}");
    Ok(())
}

#[test]
fn what_is_not_for_several_devices() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let x = SplitTensor::<f32>::zeros(&split, 8)?;
    let u = Tensor::<f32>::zeros(&split.streams()[0], 8)?;
    let smooth = || stencil(&u, Boundary::Clamp, |n| n.at(-1) + n.at(1));
    assert_error(x.assign(smooth().steps(3)), ExpressionErrorKind::BadSplit, &["from_tensor", ".steps(3)"]);
    assert_error(x.assign(smooth()), ExpressionErrorKind::BadSplit, &["from_tensor"]);
    Ok(())
}

#[test]
fn a_fault_names_the_expression_and_leaves_no_lock() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let (x, y) =
        (SplitTensor::from_slice(&split, 4, &[8, 8, 8, 8])?, SplitTensor::from_slice(&split, 4, &[2, 1, 4, 0])?);
    let fault = x.assign(&x / &y).expect_err("a division by zero").to_string();
    assert!(fault.contains("x0 / x1") && fault.contains(file!()), "{fault}");
    x.assign(&y)?;
    assert_eq!(x.to_vec()?, [2, 1, 4, 0]);
    // Nothing has written these elements.
    let z = SplitTensor::<i32>::uninit(&split, 4)?;
    assert!(matches!(x.assign(&z), Err(Error::Fault(_))));
    Ok(())
}
