//! Tests arrays of the crate `ndarray`, with and without a copy.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ::ndarray::{
    Array0, Array1, Array2, Array3, ArrayD, ArrayView, ArrayView2, ArrayViewMut2, Axis, Ix0, Ix1, Ix2, IxDyn,
    ShapeBuilder, arr0, array, s,
};
use kernel_primitives::expr::{AxisSlice, Floating, Integral, Scalar, Tensor, scalar};
use kernel_primitives::interop::ndarray::{from_slice, to_buffer};
use kernel_primitives::{Complex, Device, Error, ExpressionErrorKind, Result, Stream, bf16, f16};

fn stream() -> Result<Stream> {
    Device::auto()?.stream()
}

fn emulator() -> Result<Stream> {
    Device::emulator().stream()
}

#[track_caller]
fn refused<T>(result: Result<T>, kind: ExpressionErrorKind, part: &str) {
    match result {
        Err(Error::Expression(error)) => {
            assert_eq!(error.kind, kind);
            assert!(error.reason.contains(part), "{}: not {part}", error.reason);
            assert!(error.file.ends_with("tests/interop/ndarray.rs"), "{}", error.file);
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error: {part}"),
    }
}

#[test]
fn arrays_of_any_strides_go_to_a_device_and_back() -> Result<()> {
    let stream = stream()?;
    let all = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (100 * i + 10 * j + k) as f32);
    let views = [
        all.view().into_dyn(),
        all.t().into_dyn(),
        all.slice(s![..;-1, 1..;2, ..;-3]).into_dyn(),
        all.slice(s![1, .., 2]).into_dyn(),
        all.slice(s![1..2, 3, ..;-1]).into_dyn(),
        all.slice(s![.., 4..4, ..]).into_dyn(),
        all.slice(s![2, 3, 4]).into_dyn(),
        all.slice(s![.., .., 1]).insert_axis(Axis(1)).into_dyn(),
    ];
    for view in views {
        let tensor = Tensor::from_ndarray(&stream, &view)?;
        assert_eq!(&*tensor.shape(), view.shape());
        assert!(tensor.is_contiguous());
        assert_eq!(tensor.to_ndarray::<IxDyn>()?, view);
        assert_eq!(tensor.t().to_ndarray::<IxDyn>()?, view.t());
        assert_eq!(from_slice::<_, IxDyn>(view.shape(), &to_buffer(&stream, &view)?)?, view);
    }
    // An axis repeats, in a Fortran array.
    let fortran = Array2::from_shape_fn((1, 3).f(), |(_, j)| j as i64);
    let wide = fortran.broadcast((4, 3)).expect("it broadcasts");
    assert_eq!(Tensor::from_ndarray(&stream, &wide)?.to_ndarray::<Ix2>()?, wide);
    assert_eq!(Tensor::from_ndarray(&stream, &arr0(3u8))?.to_ndarray::<Ix0>()?, arr0(3u8));
    Ok(())
}

#[test]
fn every_element_type_goes_there_and_back() -> Result<()> {
    fn check<T: Scalar>(values: [T; 4]) -> Result<()> {
        let host = Array2::from_shape_vec((2, 2), values.to_vec()).expect("four");
        let tensor = Tensor::from_ndarray(&stream()?, &host.t())?;
        assert_eq!(tensor.to_ndarray::<Ix2>()?, host.t());
        let tensor = tensor.on(&stream()?).t();
        if !tensor.device().is_gpu() {
            assert!(tensor.with_ndarray(|view| view == host.view().into_dyn())?);
        }
        Ok(())
    }
    fn integers<T: Integral + TryFrom<u8>>() -> Result<()> {
        check([1, 2, 3, 100].map(|value| T::try_from(value).ok().expect("small")))
    }
    fn floats<T: Floating>(of: impl Fn(f32) -> T) -> Result<()> {
        check([0.0, -1.5, 2.0, f32::INFINITY].map(of))
    }
    check([true, false, false, true])?;
    integers::<i8>()?;
    integers::<i16>()?;
    integers::<i32>()?;
    integers::<i64>()?;
    integers::<u8>()?;
    integers::<u16>()?;
    integers::<u32>()?;
    integers::<u64>()?;
    floats(f16::from_f32)?;
    floats(bf16::from_f32)?;
    floats(|x| x)?;
    floats(f64::from)
}

#[test]
fn arrays_are_assigned_and_filled() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<i32>::zeros(&stream, [2, 3])?;
    x.assign_ndarray(&array![1, 2, 3].slice(s![..;-1]))?;
    x.slice((1, ..))?.assign_ndarray(&array![7, 8, 9])?;
    let mut to = Array2::zeros((2, 3));
    x.copy_to_ndarray(&mut to)?;
    assert_eq!(to, array![[3, 2, 1], [7, 8, 9]]);
    let mut all = Array2::zeros((6, 4));
    x.t().copy_to_ndarray(&mut all.slice_mut(s![..;-2, 1..3]))?;
    assert_eq!(all, array![[0, 0, 0, 0], [0, 1, 9, 0], [0, 0, 0, 0], [0, 2, 8, 0], [0, 0, 0, 0], [0, 3, 7, 0]]);

    refused(
        x.copy_to_ndarray(&mut all),
        ExpressionErrorKind::BadShape,
        "a tensor of shape [2, 3] is to be copied to [6, 4]",
    );
    refused(x.to_ndarray::<Ix1>(), ExpressionErrorKind::BadShape, "has 2 axes, but the array has 1");
    let buffer = stream.buffer_from(&[1, 2, 3])?;
    refused(from_slice::<i32, Ix1>(&[4], &buffer), ExpressionErrorKind::BadShape, "there are 3 elements");
    refused(
        from_slice::<i32, IxDyn>(&[usize::MAX, 3], &buffer),
        ExpressionErrorKind::BadShape,
        "more than can be counted",
    );
    let deep = ArrayD::<u8>::zeros(vec![1; 10]);
    refused(Tensor::from_ndarray(&stream, &deep), ExpressionErrorKind::BadShape, "an array of 10 axes");
    Ok(())
}

#[test]
fn arrays_that_are_larger_than_memory_are_an_error() -> Result<()> {
    let one = Array1::from_elem(1, 0u64);
    let wide = one.broadcast(1usize << 50).expect("it broadcasts");
    assert!(matches!(Tensor::from_ndarray(&stream()?, &wide), Err(Error::Allocation { .. })));
    Ok(())
}

#[test]
fn views_show_the_tensors_own_memory() -> Result<()> {
    let stream = emulator()?;
    let x = Tensor::from_slice(&stream, [3, 4], &Vec::from_iter(0..12))?;
    let address = x.as_slice().map(|_| x.with_ndarray(|view| view.as_ptr().addr())).expect("in a row")?;
    let host = array![[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]];
    assert!(x.with_ndarray(|view| view == host.view().into_dyn() && view.is_standard_layout())?);
    assert!(x.t().with_ndarray(|view| view == host.t().into_dyn() && view.as_ptr().addr() == address)?);
    let turned = x.slice((AxisSlice::from(..).by(-1), AxisSlice::from(1..).by(2)))?;
    turned.with_ndarray(|view| {
        assert_eq!(view, host.slice(s![..;-1, 1..;2]).into_dyn());
        assert_eq!(view.strides(), [-4, 2]);
        assert_eq!(view.as_ptr().addr(), address + 9 * 4);
    })?;
    // An axis that repeats can be read, but not written.
    let wide = x.slice((1, ..))?.broadcast_to([5, 4])?;
    assert_eq!(wide.with_ndarray(|view| (view.strides()[0], view.sum()))?, (0, 5 * 22));
    refused(wide.with_ndarray_mut(|_| ()), ExpressionErrorKind::BadStrides, "repeats elements");
    refused(
        x.as_strided([2, 3], &[1, 1])?.with_ndarray_mut(|_| ()),
        ExpressionErrorKind::BadStrides,
        "repeats elements",
    );
    // No element occurs twice, but `ndarray` cannot see this.
    let woven = Tensor::<i32>::zeros(&stream, 8)?.as_strided([3, 2], &[2, 3])?;
    refused(woven.with_ndarray_mut(|_| ()), ExpressionErrorKind::BadStrides, "interleave");
    woven.fill(1)?;
    assert_eq!(woven.with_ndarray(|view| view.sum())?, 6);
    // A single index may have any stride.
    let row = x.slice((AxisSlice::from(2..).by(isize::MIN), ..))?;
    assert_eq!(*row.shape(), [1, 4]);
    row.with_ndarray_mut(|mut view| view += 100)?;
    x.insert_axis(1)?.with_ndarray_mut(|mut view| view[[0, 0, 0]] = -1)?;
    assert_eq!(x.to_vec()?, [-1, 1, 2, 3, 4, 5, 6, 7, 108, 109, 110, 111]);
    turned.with_ndarray_mut(|mut view| view.fill(0))?;
    assert_eq!(x.to_vec()?, [-1, 0, 2, 0, 4, 0, 6, 0, 108, 0, 110, 0]);
    let value = Tensor::from_slice(&stream, [], &[2.5f64])?;
    assert_eq!(value.with_ndarray(|view| (view.ndim(), view.sum()))?, (0, 2.5));
    let same: Array0<f64> = value.to_ndarray()?;
    assert_eq!(same, arr0(2.5));
    Ok(())
}

#[test]
fn views_without_elements_have_their_shape_and_no_memory() -> Result<()> {
    let stream = emulator()?;
    for shape in [&[0][..], &[0, 7], &[3, 0, 2]] {
        let x = Tensor::<f32>::zeros(&stream, shape)?;
        x.with_ndarray(|view| assert_eq!((view.shape(), view.iter().count()), (shape, 0)))?;
        x.with_ndarray_mut(|mut view| view.fill(1.0))?;
        x.t().with_ndarray(|view| assert_eq!(view.ndim(), shape.len()))?;
        assert_eq!(x.to_ndarray::<IxDyn>()?.shape(), shape);
    }
    // This is the end of a memory, reversed.
    let x = Tensor::from_slice(&stream, 4, &[1u16, 2, 3, 4])?;
    let none = x.slice(AxisSlice::from(4..).by(-1))?;
    let none = if none.is_empty() { none } else { x.slice(4..)? };
    none.with_ndarray(|view| assert_eq!(view.len(), 0))?;
    // `ndarray` cannot count these extents, although there are no elements.
    let huge = Tensor::<u8>::zeros(&stream, [1 << 40, 0, 1 << 40])?;
    refused(huge.with_ndarray(|_| ()), ExpressionErrorKind::BadShape, "multiply to more than can be counted");
    refused(huge.with_ndarray_mut(|_| ()), ExpressionErrorKind::BadShape, "multiply to more than can be counted");
    refused(huge.to_ndarray::<IxDyn>(), ExpressionErrorKind::BadShape, "multiply to more than can be counted");
    // Their bytes cannot be counted, but there are none.
    let wide = Tensor::<f64>::zeros(&stream, [0, 1 << 61])?;
    wide.with_ndarray(|view| assert_eq!(view.slice(s![.., ..;-1]).shape(), [0, 1 << 61]))?;
    wide.with_ndarray_mut(|view| assert_eq!(view.len(), 0))?;
    wide.t().with_ndarray_mut(|view| assert_eq!(view.shape(), [1 << 61, 0]))?;
    // There are more repeated elements than an `isize` counts.
    let wide = Tensor::from_slice(&stream, 1, &[1u8])?.broadcast_to([1 << 32, (1 << 31) + 1])?;
    refused(wide.with_ndarray(|_| ()), ExpressionErrorKind::BadShape, "multiply to more than can be counted");
    let most = Tensor::from_slice(&stream, 1, &[1u8])?.broadcast_to([1 << 31, 1 << 31])?;
    assert_eq!(most.with_ndarray(|view| view[[5, 1 << 30]])?, 1);
    Ok(())
}

#[test]
fn what_was_not_written_is_reported_and_what_is_written_counts() -> Result<()> {
    let stream = emulator()?;
    let x = Tensor::<f32>::uninit(&stream, [2, 3])?;
    assert!(matches!(x.with_ndarray(|_| ()), Err(Error::Fault(_))));
    x.slice((.., 1))?.with_ndarray_mut(|mut view| view.fill(4.0))?;
    assert_eq!(x.slice((.., 1))?.with_ndarray(|view| view.sum())?, 8.0);
    assert!(matches!(x.slice((0, ..))?.with_ndarray(|_| ()), Err(Error::Fault(_))));
    x.slice((0, AxisSlice::from(..).by(2)))?.with_ndarray_mut(|mut view| view.fill(1.0))?;
    assert_eq!(x.slice((0, ..))?.with_ndarray(|view| view.sum())?, 6.0);
    match x.t().to_ndarray::<Ix2>() {
        Err(Error::Fault(fault)) => assert!(fault.file.ends_with("tests/interop/ndarray.rs"), "{}", fault.file),
        other => panic!("{other:?}"),
    }
    Ok(())
}

/// Otherwise, a view that repeats an element more often than a loop can count would take forever.
#[test]
fn elements_that_repeat_are_checked_once() -> Result<()> {
    let stream = emulator()?;
    let x = Tensor::<f32>::uninit(&stream, 4)?;
    x.slice(1..2)?.fill(5.0)?;
    let wide = x.slice(1..2)?.broadcast_to([1 << 45])?;
    assert_eq!(wide.with_ndarray(|view| view[[1 << 44]])?, 5.0);
    assert!(matches!(x.slice(..1)?.broadcast_to([1 << 45])?.with_ndarray(|_| ()), Err(Error::Fault(_))));
    let wide = Tensor::from_slice(&stream, [1, 2], &[true, false])?.broadcast_to([1 << 45, 2])?;
    assert_eq!(wide.with_ndarray(|view| [view[[1 << 44, 0]], view[[7, 1]]])?, [true, false]);
    // Windows repeat elements without a stride of 0: there are 2^54 indices, and 568 elements.
    let windows = Tensor::from_slice(&stream, 568, &[true; 568])?.as_strided([64; 9], &[1; 9])?;
    assert!(windows.with_ndarray(|view| view[[63; 9]])?);
    let x = Tensor::<f32>::uninit(&stream, 600)?;
    x.slice(..568)?.fill(5.0)?;
    assert_eq!(x.as_strided([64; 9], &[1; 9])?.with_ndarray(|view| view[[63; 9]])?, 5.0);
    assert!(matches!(x.slice(1..)?.as_strided([64; 9], &[1; 9])?.with_ndarray(|_| ()), Err(Error::Fault(_))));
    // Only the elements of the view count.
    let x = Tensor::<f32>::uninit(&stream, 7)?;
    x.slice(AxisSlice::from(..).by(2))?.fill(1.0)?;
    assert_eq!(x.as_strided([2, 2, 2], &[2, 2, 2])?.with_ndarray(|view| view.sum())?, 8.0);
    assert!(matches!(x.as_strided([2, 2, 2], &[2, 2, 1])?.with_ndarray(|_| ()), Err(Error::Fault(_))));
    Ok(())
}

/// The index is the element's number in the view. There are fewer elements of memory than indices, or more.
#[cfg(feature = "dlpack")]
#[test]
fn a_byte_that_is_no_bool_is_reported_with_an_index_in_the_view() -> Result<()> {
    use crate::producer::{Count, changed};
    use kernel_primitives::interop::dlpack::DlpackElement;

    let stream = emulator()?;
    let bytes = changed(&[1u8, 0, 1, 2, 1], &[5], &Count::default(), |_, tensor| tensor.dtype = bool::TYPE);
    let x = Tensor::<bool>::from_dlpack(&stream, bytes)?;
    let turned = x.slice(AxisSlice::from(..).by(-1))?;
    let views = [
        (x.clone(), 3),
        (x.slice(AxisSlice::from(1..).by(2))?, 1),
        (turned.clone(), 1),
        (x.as_strided([3, 3], &[1, 1])?, 5),
        (x.as_strided([2, 2, 2], &[2, 1, 1])?, 5),
        (turned.as_strided([2, 3, 2, 3], &[0, -1, 0, -1])?, 6),
    ];
    for (view, at) in views {
        match view.with_ndarray(|_| ()) {
            Err(Error::InvalidBits { index, bits, .. }) => assert_eq!((index, bits), (at, 2)),
            other => panic!("{other:?}"),
        }
    }
    assert!(!x.slice(..3)?.as_strided([2, 2], &[1, 1])?.with_ndarray(|view| view[[1, 0]])?);
    Ok(())
}

#[test]
fn a_call_that_would_wait_for_the_view_is_an_error() -> Result<()> {
    let stream = emulator()?;
    let x = Tensor::<f32>::zeros(&stream, 4)?;
    x.with_ndarray(|_| {
        assert_eq!(x.to_vec()?, [0.0; 4]); // a read beside a read
        assert!(matches!(x.fill(1.0), Err(Error::InKernel { .. })));
        assert!(matches!(x.with_ndarray_mut(|_| ()), Err(Error::InKernel { .. })));
        x.with_ndarray(|_| ())
    })??;
    x.with_ndarray_mut(|_| {
        assert!(matches!(x.to_vec(), Err(Error::InKernel { .. })));
        assert!(matches!(x.with_ndarray(|_| ()), Err(Error::InKernel { .. })));
    })?;
    // After a panic, the memory is free again.
    let panics =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| x.with_ndarray_mut(|_| panic!("as it should"))));
    assert!(panics.is_err());
    x.fill(2.0)?;
    assert_eq!(x.with_ndarray(|view| view.sum())?, 8.0);
    Ok(())
}

#[test]
fn other_threads_wait_for_the_view() -> Result<()> {
    let x = Tensor::<i32>::zeros(&emulator()?, 3)?;
    let other = x.on(&emulator()?);
    let (started, has_started) = mpsc::channel();
    let (done, has_ended) = mpsc::channel();
    thread::scope(|scope| {
        x.with_ndarray_mut(|mut view| {
            scope.spawn(move || {
                started.send(()).expect("the test waits for it");
                done.send(other.add_assign(scalar(1)))
            });
            has_started.recv().expect("it starts");
            let early = has_ended.recv_timeout(Duration::from_millis(200));
            assert!(early.is_err(), "the other thread has not waited");
            view.fill(10);
        })?;
        has_ended.recv().expect("it ends")
    })?;
    assert_eq!(x.to_vec()?, [11; 3]);
    Ok(())
}

#[test]
fn a_capture_and_a_graph_are_in_order() -> Result<()> {
    let stream = emulator()?;
    let x = Tensor::<i32>::zeros(&stream, 3)?;
    let graph = stream.capture(|stream| {
        let x = x.on(stream);
        x.add_assign(scalar(1))?;
        assert!(matches!(x.with_ndarray(|_| ()), Err(Error::Capture { .. })));
        Ok(())
    })?;
    graph.launch(&stream)?;
    assert_eq!(x.with_ndarray(|view| view.sum())?, 3);
    x.with_ndarray(|_| assert!(matches!(graph.launch(&stream), Err(Error::InKernel { .. }))))?;
    Ok(())
}

#[test]
fn complex_numbers_go_by_buffers() -> Result<()> {
    let stream = stream()?;
    let host = Array2::from_shape_fn((2, 3), |(i, j)| Complex { re: i as f64, im: j as f64 });
    let buffer = to_buffer(&stream, &host.slice(s![.., ..;-1]))?;
    assert_eq!(from_slice::<_, Ix2>(&[2, 3], &buffer)?, host.slice(s![.., ..;-1]));
    assert_eq!(from_slice::<_, Ix1>(&[2], buffer.slice(1..3)?)?.to_vec(), [host[[0, 1]], host[[0, 0]]]);
    Ok(())
}

/// The memory decides, and not the stream of the tensor.
#[test]
fn memory_of_a_gpu_is_not_the_hosts() -> Result<()> {
    let Ok(gpu) = Device::gpu() else { return Ok(()) };
    let x = Tensor::<f32>::zeros(&gpu.stream()?, 3)?;
    for x in [x.clone(), x.on(&emulator()?)] {
        assert!(matches!(x.with_ndarray(|_| ()), Err(Error::NotOnHost { .. })));
        assert!(matches!(x.with_ndarray_mut(|_| ()), Err(Error::NotOnHost { .. })));
    }
    let on_gpu = Tensor::<f32>::zeros(&emulator()?, 3)?.on(&gpu.stream()?);
    assert_eq!(on_gpu.with_ndarray(|view| view.len())?, 3);
    Ok(())
}

/// Views of others may have any strides.
#[test]
fn views_that_others_have_made_are_read_and_written() -> Result<()> {
    let stream = stream()?;
    let values = [1i16, 2, 3, 4, 5, 6];
    let view: ArrayView2<'_, i16> = ArrayView::from_shape((2, 2).strides((1, 3)), &values).expect("inside");
    assert_eq!(Tensor::from_ndarray(&stream, &view)?.to_vec()?, [1, 4, 2, 5]);
    let mut to = [0i16; 6];
    let mut view = ArrayViewMut2::from_shape((2, 2).strides((1, 3)), &mut to).expect("inside");
    Tensor::from_slice(&stream, [2, 2], &[1, 2, 3, 4])?.copy_to_ndarray(&mut view)?;
    assert_eq!(to, [1, 3, 0, 2, 4, 0]);
    Ok(())
}
