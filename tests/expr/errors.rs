//! Tests the kinds and the texts of errors.

use kernel_primitives::expr::*;
use kernel_primitives::simt::FaultKind;
use kernel_primitives::{Device, Diagnosis, Error, ExpressionErrorKind, Result};

use crate::{assert_error, stream};

#[test]
fn shapes_that_do_not_broadcast() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, [3, 4], &[0.0f32; 12])?;
    let y = Tensor::from_slice(&stream, 5, &[0.0f32; 5])?;
    let parts = ["x0 + sin(x1) * 2.0", "x0: f32[3, 4]", "x1: f32[5]", "broadcast", "[5]", "[3, 4]"];
    assert_error(x.assign(&x + sin(&y) * 2.0), ExpressionErrorKind::BadShape, &parts);
    assert_error(y.assign(&x * 2.0), ExpressionErrorKind::BadShape, &["x0 * 2.0", "x0: f32[3, 4]"]);
    assert_error(x.broadcast_to([4, 4]), ExpressionErrorKind::BadShape, &["[3, 4]", "[4, 4]"]);
    assert_error(x.broadcast_to(4), ExpressionErrorKind::BadShape, &["[3, 4]", "[4]"]);
    Ok(())
}

#[test]
fn shapes_that_are_none() -> Result<()> {
    let stream = stream()?;
    assert_error(Tensor::from_slice(&stream, [2, 3], &[0u8; 5]), ExpressionErrorKind::BadShape, &["[2, 3]", "6", "5"]);
    assert_error(Tensor::<u8>::zeros(&stream, [1; 10]), ExpressionErrorKind::BadShape, &["10 axes", "9"]);
    assert_error(Tensor::<u8>::zeros(&stream, [usize::MAX, 2]), ExpressionErrorKind::BadShape, &["counted"]);
    let x = Tensor::from_slice(&stream, [2, 3], &[0u8; 6])?;
    assert_error(x.reshape([4, 2]), ExpressionErrorKind::BadShape, &["[4, 2]", "8", "6"]);
    assert_error(x.item(), ExpressionErrorKind::BadShape, &["[2, 3]", "6 elements"]);
    assert_error(x.t().reshape(6), ExpressionErrorKind::BadStrides, &["[3, 2]", "[1, 3]", "contiguous"]);
    let buffer = stream.buffer_from(&[1u8, 2])?;
    assert_error(Tensor::from_buffer(&stream, 3, buffer), ExpressionErrorKind::BadShape, &["[3]", "2"]);
    Ok(())
}

#[test]
fn a_shape_counts_its_elements_if_they_can_be_counted() {
    let elements = |extents: &[usize]| Shape::new(extents).expect("few axes").elements();
    for extents in [
        &[] as &[usize],
        &[7],
        &[3, 4, 5],
        &[1 << 31, 1 << 32],
        &[1 << 32, 1 << 32],
        &[usize::MAX],
        &[usize::MAX, 1],
        &[usize::MAX, 2],
        &[usize::MAX / 3, 3],
        &[4, usize::MAX / 3],
        &[usize::MAX; 2],
        &[usize::MAX, 0, usize::MAX],
        &[0, usize::MAX, usize::MAX],
        &[usize::MAX, usize::MAX, 0],
    ] {
        let product: u128 = extents.iter().map(|&extent| extent as u128).product();
        assert_eq!(elements(extents), usize::try_from(product).ok(), "{extents:?}");
    }
    assert_eq!((elements(&[usize::MAX; MAX_RANK]), elements(&[1; MAX_RANK])), (None, Some(1)));
}

#[test]
fn views_outside_their_memory() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, [2, 3], &[0i16; 6])?;
    assert_error(x.slice(2), ExpressionErrorKind::OutOfRange, &["axis 0", "[2, 3]"]);
    assert_error(x.slice((0, -4)), ExpressionErrorKind::OutOfRange, &["axis 1"]);
    assert_error(x.slice((0, 0, 0)), ExpressionErrorKind::OutOfRange, &["3 slices"]);
    assert_error(x.slice(AxisSlice::from(..).by(0)), ExpressionErrorKind::OutOfRange, &["axis 0"]);
    assert_error(x.slice((.., AxisSlice::from(1).by(0))), ExpressionErrorKind::OutOfRange, &["axis 1"]);
    assert_error(x.permute(&[0]), ExpressionErrorKind::OutOfRange, &["[0]"]);
    assert_error(x.permute(&[0, 0]), ExpressionErrorKind::OutOfRange, &["[0, 0]"]);
    assert_error(x.insert_axis(3), ExpressionErrorKind::OutOfRange, &["3", "[2, 3]"]);
    assert_error(x.as_strided(4, &[2]), ExpressionErrorKind::BadStrides, &["[4]", "[2]", "6 elements"]);
    assert_error(x.as_strided(2, &[-1]), ExpressionErrorKind::BadStrides, &["[2]", "[-1]"]);
    assert_error(x.as_strided(2, &[1, 1]), ExpressionErrorKind::BadStrides, &["[1, 1]"]);
    assert_error(x.as_strided([2, 2], &[isize::MAX, isize::MAX]), ExpressionErrorKind::BadStrides, &[]);
    let full = Tensor::<u8>::zeros(&stream, [1; 9])?;
    assert_error(full.insert_axis(0), ExpressionErrorKind::OutOfRange, &["0"]);
    Ok(())
}

#[test]
fn an_axis_that_the_target_lacks() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<f32>::zeros(&stream, [2, 3])?;
    assert_error(x.assign(axis_index::<f32>(2) * 2.0), ExpressionErrorKind::OutOfRange, &["index(2)", "[2, 3]"]);
    assert_error(x.assign(axis_index::<f32>(256)), ExpressionErrorKind::OutOfRange, &["index(256)"]);
    Ok(())
}

#[test]
fn targets_that_overlap_what_is_read() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, [4, 4], &(0..16).collect::<Vec<i32>>())?;
    let overlaps = |result| assert_error(result, ExpressionErrorKind::Overlap, &["overlaps"]);
    overlaps(x.slice((.., 1..))?.assign(x.slice((.., ..3))?));
    overlaps(x.assign(x.t() + 1));
    overlaps(x.assign(x.slice(0)? + 1));
    overlaps(x.slice(AxisSlice::from(..).by(-1))?.assign(&x + 1));
    let row = x.reshape(16)?;
    overlaps(row.assign(gather(&row, element_index::<u32>())));
    // It is right to read the target's own elements, or elements apart from it.
    x.assign(&x + 1)?;
    x.slice(0)?.assign(x.slice(1)? * 2)?;
    x.slice((2.., AxisSlice::from(..).by(2)))?.assign(x.slice((2.., AxisSlice::from(1..).by(2)))?)?;
    assert_eq!(x.to_vec()?, [10, 12, 14, 16, 5, 6, 7, 8, 10, 10, 12, 12, 14, 14, 16, 16]);
    Ok(())
}

#[test]
fn targets_that_repeat_elements() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, [1, 4], &[1.0f64; 4])?;
    assert_error(
        x.broadcast_to([3, 4])?.fill(0.0),
        ExpressionErrorKind::BadStrides,
        &["repeats", "[3, 4]", "[0, 1]", "0.0"],
    );
    assert_error(x.as_strided([2, 3], &[1, 1])?.fill(0.0), ExpressionErrorKind::BadStrides, &["[1, 1]"]);
    Ok(())
}

#[test]
fn tensors_of_two_devices() -> Result<()> {
    let (stream, other) = (stream()?, Device::emulator().stream()?);
    if !stream.device().is_gpu() {
        return Ok(());
    }
    let (x, y) = (Tensor::<f32>::zeros(&stream, 3)?, Tensor::<f32>::zeros(&other, 3)?);
    let error = x.assign(&x + &y).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    let error = y.on(&stream).assign(&y * 2.0).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    let error = Tensor::from_buffer(&stream, 2, other.buffer_from(&[1u8, 2])?).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    Ok(())
}

/// Checks the fault that an assignment to `y` raises. On the emulator, the call returns it; on a GPU, a later call does.
#[track_caller]
fn assert_fault<T: Scalar>(y: &Tensor<T>, value: Expr<T>, kind: FaultKind) {
    let error = y.assign(value).and_then(|()| y.stream().synchronize()).and_then(|()| y.to_vec()).unwrap_err();
    let text = error.to_string();
    let Error::Fault(fault) = error else { panic!("{text}") };
    assert!(matches!(fault.diagnosis, Diagnosis::Raised(fault) if fault.kind == kind), "{text}");
    if !y.device().is_gpu() {
        assert!(fault.file.ends_with("errors.rs") && fault.line > 0, "{text}");
    }
}

#[test]
fn integers_divided_by_zero() -> Result<()> {
    macro_rules! check {
        ($($t:ty)*) => {$({
            let stream = stream()?;
            let mut data = vec![1 as $t; 3000];
            data[2047] = 0;
            let x = Tensor::from_slice(&stream, 3000, &data)?;
            assert_fault(&Tensor::zeros(&stream, 3000)?, (7 as $t) / &x, FaultKind::DivisionByZero);
            assert_fault(&Tensor::zeros(&stream, 3000)?, &x % &x, FaultKind::DivisionByZero);
            assert_fault(&Tensor::zeros(&stream, 3000)?, floor_div(&x, &x), FaultKind::DivisionByZero);
            assert_fault(&Tensor::zeros(&stream, 3000)?, floor_rem(&x, scalar(0 as $t)), FaultKind::DivisionByZero);
            assert_fault(&Tensor::zeros(&stream, 3000)?, scalar(1 as $t) / scalar(0 as $t), FaultKind::DivisionByZero);
        })*};
    }
    check!(i8 u16 i32 u64);
    Ok(())
}

#[test]
fn gathers_outside() -> Result<()> {
    let stream = stream()?;
    let table = Tensor::from_slice(&stream, 4, &[1.0f32, 2.0, 3.0, 4.0])?;
    let y = Tensor::zeros(&stream, 3)?;
    for index in [[0i32, 4, 1], [0, -1, 2], [i32::MIN, 0, 0], [i32::MAX, 0, 0]] {
        let index = Tensor::from_slice(&stream, 3, &index)?;
        assert_fault(&y, gather(&table, &index), FaultKind::OutOfBounds);
    }
    let index = Tensor::from_slice(&stream, 3, &[u64::MAX, 0, 0])?;
    assert_fault(&y, gather(&table, &index), FaultKind::OutOfBounds);
    let index = Tensor::from_slice(&stream, 3, &[3u8, 0, 3])?;
    y.assign(gather(&table.slice(AxisSlice::from(..).by(-1))?, &index))?;
    assert_eq!(y.to_vec()?, [1.0, 4.0, 1.0]);
    let nothing = Tensor::<f32>::zeros(&stream, 0)?;
    assert_fault(&y, gather(&nothing, &index), FaultKind::OutOfBounds);
    Ok(())
}

#[test]
fn elements_read_before_they_are_written() -> Result<()> {
    let stream = stream()?;
    if stream.device().is_gpu() {
        return Ok(());
    }
    let x = Tensor::<f32>::uninit(&stream, [3, 4])?;
    let y = Tensor::<f32>::zeros(&stream, [3, 4])?;
    let error = y.assign(&x + 1.0).unwrap_err();
    assert!(
        matches!(&error, Error::Fault(fault) if matches!(fault.diagnosis, Diagnosis::Unwritten { .. })
            && fault.file.ends_with("errors.rs")),
        "{error}"
    );
    // Rows that are written can be read; the other rows cannot.
    x.slice(1)?.fill(2.0)?;
    y.slice(1)?.assign(x.slice(1)? * 2.0)?;
    assert_eq!(y.slice(1)?.to_vec()?, [4.0; 4]);
    assert!(y.slice(0)?.assign(x.slice(0)?).is_err());
    x.slice((AxisSlice::from(..).by(2), ..))?.fill(1.0)?;
    y.assign(&x)?;
    assert_eq!(y.slice((.., 0))?.to_vec()?, [1.0, 2.0, 1.0]);
    Ok(())
}

/// A gather reads the elements that its indices name, and no others.
#[test]
fn elements_that_no_index_names_may_be_unwritten() -> Result<()> {
    let stream = stream()?;
    let table = Tensor::<f32>::uninit(&stream, 4)?;
    table.slice(1..3)?.assign(&Tensor::from_slice(&stream, 2, &[1.0f32, 2.0])?)?;
    let index = Tensor::from_slice(&stream, 3, &[2u32, 1, 2])?;
    let y = Tensor::zeros(&stream, 3)?;
    y.assign(gather(&table, &index))?;
    assert_eq!(y.to_vec()?, [2.0, 1.0, 2.0]);
    assert_eq!(gather(&table, &index).sum().item()?, 5.0);
    if stream.device().is_gpu() {
        return Ok(());
    }
    // The first and the last element, also of a view that runs backwards.
    for at in [3u32, 0] {
        let beyond = Tensor::from_slice(&stream, 3, &[2u32, at, 1])?;
        let back = table.slice(AxisSlice::from(..).by(-1))?;
        for value in [gather(&table, &beyond), gather(&back, &beyond)] {
            for error in [y.assign(&value).unwrap_err(), value.sum().item().unwrap_err()] {
                let Error::Fault(fault) = &error else { panic!("{error}") };
                assert!(matches!(fault.diagnosis, Diagnosis::Unwritten { .. }), "{error}");
            }
        }
    }
    Ok(())
}

#[test]
fn more_scalars_than_a_kernel_takes() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<f64>::zeros(&stream, 3)?;
    let sum = |count: usize| (0..count).fold(x.clone().expr(), |sum, i| sum + i as f64);
    assert!(x.ptx(sum(500), 90)?.contains(".param .f64 a499"));
    let error = x.ptx(sum(600), 90).unwrap_err();
    assert!(matches!(error, Error::LaunchLimit { asked: 4824, limit: 4096, .. }), "{error}");
    // The CPU takes all operands.
    match x.assign(sum(600)) {
        Err(Error::LaunchLimit { asked: 4824, .. }) => assert!(stream.device().is_gpu()),
        other => {
            other?;
            assert_eq!(x.to_vec()?, [179_700.0; 3]);
        }
    }
    // A number of 4 bytes takes 4.
    let narrow = Tensor::<f32>::zeros(&stream, 3)?;
    let sum = (0..600).fold(narrow.clone().expr(), |sum, i| sum + i as f32);
    assert!(narrow.ptx(sum, 90)?.contains(".param .f32 a599"));
    Ok(())
}

/// Kernels with tiles and patches take strides of tensors. Other kernels take only the addresses of these tensors. If there are too many
/// strides, such another kernel is used.
#[test]
fn more_strides_than_a_kernel_takes() -> Result<()> {
    const MANY: usize = 180;
    let stream = stream()?;
    let agrees = |shape: [usize; 5],
                  step: &dyn Fn(&Tensor<u8>) -> Result<Expr<u8>>,
                  has_strides: fn(&str) -> bool,
                  value: u8|
     -> Result<()> {
        // This is a view whose axes stay apart.
        let whole = [shape[0] + 1, shape[1] + 1, shape[2] + 1, shape[3] + 1, shape[4]];
        let [a, b, c, d] = [0, 1, 2, 3].map(|axis| 0..shape[axis] as isize);
        let x = Tensor::<u8>::zeros(&stream, whole)?.slice((a, b, c, d))?;
        let y = Tensor::<u8>::zeros(&stream, shape)?;
        let all = Tensor::<u8>::zeros(&stream, [MANY, y.len()])?;
        x.fill(1)?;
        all.fill(1)?;
        let other = |i: usize| all.slice(i as isize)?.reshape(shape);
        let others: Vec<Tensor<u8>> = (0..MANY).map(other).collect::<Result<_>>()?;
        let plus =
            |count: usize| -> Result<Expr<u8>> { Ok(others[..count].iter().fold(step(&x)?, |sum, other| sum + other)) };
        assert!(has_strides(&y.ptx(plus(MANY - 30)?, 90)?), "{shape:?}");
        assert!(!has_strides(&y.ptx(plus(MANY)?, 90)?), "{shape:?}");
        y.assign(plus(MANY)?)?;
        assert_eq!(y.to_vec()?, vec![value + MANY as u8; y.len()], "{shape:?}");
        Ok(())
    };
    // These are for row tiles, for patches, and for transposed tiles.
    let wide = |x: &Tensor<u8>| -> Result<Expr<u8>> {
        Ok(stencil(x, Boundary::Clamp, |n| (1..9isize).fold(n.at(0), |sum, by| sum + n.at(by))))
    };
    agrees([2, 2, 2, 2, 320], &wide, |text| text.contains(" row_tiles["), 9)?;
    let tall = |x: &Tensor<u8>| -> Result<Expr<u8>> { Ok(stencil(x, Boundary::Clamp, |n| n.at([-1, 0]) + n.at(0))) };
    agrees([2, 2, 2, 2, 320], &tall, |text| !text.contains("setp.ge.u64"), 2)?;
    let turned = |x: &Tensor<u8>| -> Result<Expr<u8>> { Ok(x.permute(&[0, 1, 2, 4, 3])?.expr()) };
    agrees([2, 2, 2, 32, 32], &turned, |text| text.contains(" tile1["), 1)
}

#[test]
fn a_gather_from_what_is_no_vector() -> Result<()> {
    let stream = stream()?;
    let y = Tensor::<f32>::zeros(&stream, 3)?;
    for (shape, shown) in [(&[2usize, 2][..], "[2, 2]"), (&[], "[]"), (&[0, 3], "[0, 3]")] {
        let x = Tensor::<f32>::zeros(&stream, shape)?;
        let gathered = || gather(&x, element_index::<u32>());
        assert_error(y.assign(gathered() * 2.0), ExpressionErrorKind::BadShape, &["gather", shown]);
        let read = Tensor::<u32>::zeros(&stream, 3)?;
        assert_error(gather(&x, &read).sum().item(), ExpressionErrorKind::BadShape, &["gather", shown]);
    }
    Ok(())
}
