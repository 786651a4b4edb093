//! Tests DLPack: memory of other libraries here, and memory of this library elsewhere. The other library is `producer.rs`;
//! `scripts/dlpack/check.py` has real libraries.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::thread;

use kernel_primitives::algorithms::inclusive_scan;
use kernel_primitives::expr::{AxisSlice, Scalar, Tensor, scalar};
use kernel_primitives::functor::Add;
use kernel_primitives::interop::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, DlpackElement,
    DlpackExport, DlpackTensor, FLAG_IS_COPIED, FLAG_READ_ONLY,
};
use kernel_primitives::{Buffer, Complex, Device, Devices, Error, Result, Stream, bf16, f16};

use crate::producer::{Count, Produced, changed, produced};

fn emulator() -> Result<Stream> {
    Device::emulator().stream()
}

#[test]
fn an_array_of_others_is_a_tensor_in_its_memory() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    let other = produced(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3], FLAG_IS_COPIED, &count);
    let data = other.dl_tensor().data.cast::<f32>();
    assert!(other.is_copied() && !other.is_read_only());
    let x = Tensor::<f32>::from_dlpack(&stream, other)?;
    assert_eq!(*x.shape(), [2, 3]);
    x.mul_assign(scalar(2.0f32))?;
    // SAFETY: the memory exists as long as the tensor, and no work uses it now.
    assert_eq!(unsafe { [*data, *data.add(5)] }, [2.0, 12.0]);
    // SAFETY: as above.
    unsafe { *data.add(1) = -1.0 };
    assert_eq!(x.to_vec()?, [2.0, -1.0, 6.0, 8.0, 10.0, 12.0]);
    assert_eq!(x.t().to_vec()?, [2.0, 8.0, -1.0, 10.0, 6.0, 12.0]);
    #[cfg(feature = "ndarray")]
    assert_eq!(x.with_ndarray(|view| view.as_ptr())?, data.cast_const());
    assert_eq!(count.get(), 0);
    drop(x);
    assert_eq!(count.get(), 1);
    Ok(())
}

#[test]
fn every_element_type_is_imported_and_exported() -> Result<()> {
    fn check<T: Scalar + DlpackElement>(values: [T; 4]) -> Result<()> {
        let (stream, count) = (emulator()?, Count::default());
        let x = Tensor::<T>::from_dlpack(&stream, produced(&values, &[2, 2], 0, &count))?;
        assert_eq!(x.to_vec()?, values);
        // SAFETY: the tensor was just exported, and nobody else has it.
        let again = unsafe { DlpackTensor::from_raw(x.to_dlpack(&stream)?.into_raw())? };
        assert_eq!(again.dl_tensor().dtype, T::TYPE);
        let y = Tensor::<T>::from_dlpack(&stream, again)?;
        drop(x);
        assert_eq!((y.to_vec()?, count.get()), (values.to_vec(), 0));
        drop(y);
        assert_eq!(count.get(), 1);
        Ok(())
    }
    check([true, false, false, true])?;
    check([i8::MIN, -1, 0, i8::MAX])?;
    check([i16::MIN, -1, 0, i16::MAX])?;
    check([i32::MIN, -1, 0, i32::MAX])?;
    check([i64::MIN, -1, 0, i64::MAX])?;
    check([0, 1, 2, u8::MAX])?;
    check([0, 1, 2, u16::MAX])?;
    check([0, 1, 2, u32::MAX])?;
    check([0, 1, 2, u64::MAX])?;
    check([0.0, 1.5, -2.0, 3.0].map(f16::from_f32))?;
    check([0.0, 1.5, -2.0, 3.0].map(bf16::from_f32))?;
    check([0.0f32, 1.5, -2.0, f32::INFINITY])?;
    check([0.0f64, 1.5, -2.0, f64::INFINITY])
}

#[test]
fn strides_and_offsets_of_any_kind_are_imported() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    let values: Vec<i32> = (0..12).collect();
    let import = |shape: &[i64], strides: &[i64], offset: u64| {
        let other = changed(&values, shape, &count, |produced, tensor| {
            tensor.strides = produced.with_strides(strides);
            tensor.byte_offset = offset;
        });
        Tensor::<i32>::from_dlpack(&stream, other)
    };
    let transposed = import(&[4, 3], &[1, 4], 0)?;
    assert_eq!(transposed.to_vec()?, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
    let turned = import(&[2, 3], &[-4, -1], 4 * 7)?;
    assert_eq!(turned.to_vec()?, [7, 6, 5, 3, 2, 1]);
    turned.slice((0, AxisSlice::from(..)))?.fill(-1)?;
    assert_eq!(turned.to_vec()?, [-1, -1, -1, 3, 2, 1]);
    let mixed = import(&[2, 2], &[-6, 5], 4 * 6)?;
    assert_eq!(mixed.to_vec()?, [6, 11, 0, 5]);
    let repeated = import(&[3, 2], &[0, 1], 4 * 10)?;
    assert_eq!(repeated.to_vec()?, [10, 11, 10, 11, 10, 11]);
    assert!(matches!(repeated.fill(0), Err(Error::Expression(_))), "elements that repeat are not written");
    let single = import(&[1, 1], &[i64::MIN, i64::MAX], 4 * 3)?;
    assert_eq!(single.item()?, 3);
    assert_eq!(import(&[], &[], 4)?.item()?, 1);
    // The elements are contiguous again, by a stride of their own.
    assert!(import(&[3, 4], &[4, 1], 0)?.as_slice().is_some());
    drop((transposed, turned, mixed, repeated, single));
    assert_eq!(count.get(), 7);
    Ok(())
}

#[test]
fn arrays_without_elements_need_no_memory() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    for shape in [&[0i64][..], &[3, 0, 2], &[i64::MAX, 0, i64::MAX]] {
        let other = changed::<f64>(&[], shape, &count, |produced, tensor| {
            tensor.data = null_mut();
            tensor.byte_offset = 3;
            tensor.strides = produced.with_strides(&vec![i64::MIN; shape.len()]);
        });
        let x = Tensor::<f64>::from_dlpack(&stream, other)?;
        assert_eq!((x.len(), x.shape().rank()), (0, shape.len()));
        assert_eq!(x.to_vec()?, [0.0; 0]);
        x.fill(1.0)?;
        // SAFETY: the tensor was just exported, and nobody else has it.
        let again = unsafe { DlpackTensor::from_raw(x.to_dlpack(&stream)?.into_raw())? };
        assert!(again.dl_tensor().data.is_null());
        assert_eq!(again.into_buffer::<f64>(&stream)?.len(), 0);
    }
    assert_eq!(count.get(), 3);
    Ok(())
}

#[test]
fn fields_that_make_no_sense_are_errors_that_name_them() -> Result<()> {
    let stream = emulator()?;
    let refused = |part: &str, shape: &[i64], change: &dyn Fn(&mut Produced, &mut DLTensor)| {
        let count = Count::default();
        let other = changed(&[1.0f32; 8], shape, &count, change);
        match Tensor::<f32>::from_dlpack(&stream, other) {
            Err(error @ Error::Dlpack { .. }) => {
                let error = error.to_string();
                assert!(error.starts_with("`Tensor::from_dlpack`: ") && error.contains(part), "{error}: not {part}");
            }
            Err(other) => panic!("{part}: {other}"),
            Ok(x) => panic!("{part}: {x:?}"),
        }
        assert_eq!(count.get(), 1, "{part}: given back");
    };
    let dtype = |code, bits, lanes| {
        move |_: &mut Produced, tensor: &mut DLTensor| tensor.dtype = DLDataType { code, bits, lanes }
    };
    refused("`dtype` is float64, not float32", &[4], &dtype(DLDataType::FLOAT, 64, 1));
    refused("`dtype` is int32, not float32", &[4], &dtype(DLDataType::INT, 32, 1));
    refused("`dtype` is float32x4, not float32", &[2], &dtype(DLDataType::FLOAT, 32, 4));
    refused("`dtype` is float32x0, not float32", &[2], &dtype(DLDataType::FLOAT, 32, 0));
    refused("`dtype` is type code 77 of 32 bits", &[2], &dtype(77, 32, 1));
    let device = |device_type, device_id| {
        move |_: &mut Produced, tensor: &mut DLTensor| tensor.device = DLDevice { device_type, device_id }
    };
    refused(
        "type 2 (CUDA), number 0, but the stream is on the emulator: use a stream of `Device::gpu_at`",
        &[4],
        &device(2, 0),
    );
    refused("type 13 (CUDA)", &[4], &device(13, 0));
    refused("type 1 (the CPU), number 1", &[4], &device(1, 1));
    refused("type 10 (a kind that this library has not)", &[4], &device(10, 0));
    refused("type -1 (a kind", &[4], &device(-1, 0));
    refused("`ndim` is -1", &[4], &|_, tensor| tensor.ndim = -1);
    refused("`ndim` is 10; a tensor can have 9 axes", &[1; 10], &|_, _| ());
    refused("`ndim` is 2147483647", &[4], &|_, tensor| tensor.ndim = i32::MAX);
    refused("`shape` is null, but `ndim` is 1", &[4], &|_, tensor| tensor.shape = null_mut());
    refused("`shape[1]` is -4", &[2, -4], &|_, _| ());
    refused("`shape[0]` is -9223372036854775808", &[i64::MIN, 0], &|_, _| ());
    refused("more elements than can be counted", &[1 << 32, 1 << 32], &|_, _| ());
    refused("more elements than can be counted", &[1 << 62, 2], &|_, _| ());
    refused("lead out of the addresses", &[i64::MAX], &|_, _| ());
    refused("lead out of the addresses", &[2], &|produced, tensor| tensor.strides = produced.with_strides(&[i64::MIN]));
    refused("lead out of the addresses", &[2, 2], &|produced, tensor| {
        tensor.strides = produced.with_strides(&[i64::MAX, i64::MAX]);
    });
    refused("lead out of the addresses", &[2], &|produced, tensor| tensor.strides = produced.with_strides(&[1 << 62]));
    // There are so many bytes that 128 bits cannot count them.
    for stride in [i64::MIN, i64::MAX] {
        refused("lead out of the addresses", &[i64::MAX], &move |produced: &mut Produced, tensor: &mut DLTensor| {
            tensor.strides = produced.with_strides(&[stride]);
        });
    }
    refused("`data` is null", &[4], &|_, tensor| tensor.data = null_mut());
    refused("`byte_offset`, 18446744073709551615, leads out", &[1], &|_, tensor| tensor.byte_offset = u64::MAX);
    refused("is not aligned to the 4 bytes of float32", &[1], &|_, tensor| tensor.byte_offset = 2);

    let old_bool = produced(&[1u8, 0], &[2], 0, &Count::default());
    let error = Tensor::<bool>::from_dlpack(&stream, old_bool).unwrap_err().to_string();
    assert!(error.ends_with("`dtype` is uint8, not bool; older producers say so of bool: import it as u8"), "{error}");
    Ok(())
}

#[test]
fn pointers_that_are_null_and_other_versions_are_errors() {
    // SAFETY: the pointers are null, or the structs were just made.
    unsafe {
        assert!(matches!(DlpackTensor::from_raw(null_mut()), Err(Error::Dlpack { .. })));
        assert!(matches!(DlpackTensor::from_raw_unversioned(null_mut()), Err(Error::Dlpack { .. })));
        let count = Count::default();
        let (produced, tensor) = Produced::new(&[1.0f32], &[1], &count);
        let managed = produced.managed(tensor, 0);
        (*managed).version = DLPackVersion { major: 2, minor: 3 };
        let error = DlpackTensor::from_raw(managed).unwrap_err().to_string();
        assert!(error.contains("version 2.3, not 1"), "{error}");
        assert_eq!(count.get(), 1);
    }
}

#[test]
fn an_owner_that_needs_nothing_back_has_no_deleter() -> Result<()> {
    static mut VALUES: [i32; 3] = [1, 2, 3];
    static mut SHAPE: [i64; 1] = [3];
    let mut managed = DLManagedTensor {
        dl_tensor: DLTensor {
            data: (&raw mut VALUES).cast::<c_void>(),
            device: DLDevice { device_type: DLDevice::CUDA_HOST, device_id: 0 },
            ndim: 1,
            dtype: i32::TYPE,
            shape: (&raw mut SHAPE).cast(),
            strides: null_mut(),
            byte_offset: 0,
        },
        manager_ctx: null_mut(),
        deleter: None,
    };
    let stream = emulator()?;
    // SAFETY: all of it exists until the tensor is dropped, and nobody else uses it.
    let other = unsafe { DlpackTensor::from_raw_unversioned(&raw mut managed)? };
    let x = Tensor::<i32>::from_dlpack(&stream, other)?;
    assert_eq!(x.to_vec()?, [1, 2, 3]);
    Ok(())
}

#[test]
fn the_older_form_is_imported_and_exported() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    let (produced, tensor) = Produced::new(&[1u16, 2, 3], &[3], &count);
    // SAFETY: the struct was just made, and nobody else has it.
    let other = unsafe { DlpackTensor::from_raw_unversioned(produced.unversioned(tensor))? };
    assert!(!other.is_read_only() && !other.is_copied());
    let x = Tensor::<u16>::from_dlpack(&stream, other)?;
    let managed = x.slice(AxisSlice::from(1..))?.to_dlpack(&stream)?.into_raw_unversioned()?;
    drop(x);
    // SAFETY: a consumer uses exported memory in this way.
    unsafe {
        let tensor = (*managed).dl_tensor;
        assert_eq!((tensor.ndim, *tensor.shape, *tensor.strides), (1, 2, 1));
        assert_eq!((*tensor.data.cast::<u16>(), count.get()), (2, 0));
        (*managed).deleter.expect("one")(managed);
    }
    assert_eq!(count.get(), 1);
    Ok(())
}

#[test]
fn memory_is_given_back_once_after_the_last_view_and_the_last_graph() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    let x = Tensor::<i32>::from_dlpack(&stream, produced(&[1, 2, 3], &[3], 0, &count))?;
    let out = Tensor::<i32>::zeros(&stream, 3)?;
    let graph = stream.capture(|stream| {
        assert!(matches!(x.to_dlpack(stream), Err(Error::Capture { .. })));
        out.on(stream).assign(x.on(stream) * 2)
    })?;
    let row = x.slice(AxisSlice::from(1..))?;
    drop(x);
    assert_eq!(row.to_vec()?, [2, 3]);
    drop(row);
    assert_eq!(count.get(), 0, "the graph has it");
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?, [2, 4, 6]);
    drop(graph);
    assert_eq!(count.get(), 1);
    // The tensor is not used.
    drop(produced(&[1, 2, 3], &[3], 0, &count));
    assert_eq!(count.get(), 2);
    // A stream that captures has no order for an import.
    let graph = stream.capture(|stream| {
        let imported = Tensor::<i32>::from_dlpack(stream, produced(&[1], &[1], 0, &count));
        assert!(matches!(imported, Err(Error::Adoption { .. })));
        Ok(())
    });
    assert!(graph.is_ok());
    assert_eq!(count.get(), 3);
    Ok(())
}

#[test]
fn memory_is_given_back_on_another_thread() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    let tensors: Vec<_> = (0..8)
        .map(|_| Tensor::<f32>::from_dlpack(&stream, produced(&[1.0f32; 64], &[64], 0, &count)))
        .collect::<Result<_>>()?;
    let exports: Vec<_> = tensors
        .iter()
        .map(|tensor| Ok(tensor.to_dlpack(&stream)?.into_raw().expose_provenance()))
        .collect::<Result<_>>()?;
    thread::scope(|scope| {
        for (tensor, export) in tensors.into_iter().zip(exports) {
            scope.spawn(move || {
                for _ in 0..20 {
                    tensor.add_assign(scalar(1.0f32)).expect("it adds");
                }
                assert_eq!(tensor.to_vec().expect("it is there")[63], 21.0);
            });
            scope.spawn(move || {
                let managed = std::ptr::with_exposed_provenance_mut::<DLManagedTensorVersioned>(export);
                // SAFETY: a consumer uses exported memory in this way: it gives it back on any thread, while work is enqueued.
                unsafe { (*managed).deleter.expect("one")(managed) };
            });
        }
    });
    assert_eq!(count.get(), 8);
    Ok(())
}

#[test]
fn memory_that_is_only_read_is_not_written() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    let mut x = Tensor::<f32>::from_dlpack(&stream, produced(&[1.0f32, 2.0, 3.0], &[3], FLAG_READ_ONLY, &count))?;
    let out = Tensor::<f32>::zeros(&stream, 3)?;
    out.assign(&x + 1.0f32)?;
    assert_eq!(out.to_vec()?, [2.0, 3.0, 4.0]);
    let mut sums = stream.buffer_zeroed::<f32>(3)?;
    inclusive_scan(&stream, x.as_slice().expect("in a row"), Add, &mut sums)?;
    assert_eq!(sums.to_vec()?, [1.0, 3.0, 6.0]);

    let refused = |result: Result<()>| match result {
        Err(error @ Error::ReadOnly { .. }) => assert!(error.to_string().contains("write to a copy"), "{error}"),
        other => panic!("{other:?}"),
    };
    refused(x.fill(0.0));
    refused(x.assign(&out * 2.0f32));
    refused(x.slice(AxisSlice::from(..).by(-1))?.add_assign(scalar(1.0f32)));
    refused(x.on(&emulator()?).fill(0.0));
    refused(stream.capture(|stream| x.on(stream).fill(0.0)).and_then(|graph| graph.launch(&stream)));
    assert!(x.as_slice_mut().is_none());
    #[cfg(feature = "ndarray")]
    {
        assert_eq!(x.with_ndarray(|view| view.sum())?, 6.0);
        refused(x.with_ndarray_mut(|mut view| view.fill(0.0)));
    }
    assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0]);

    // The memory stays read-only if it is exported again.
    let refuse = x.to_dlpack(&stream)?.into_raw_unversioned().unwrap_err().to_string();
    assert!(refuse.contains("use `into_raw`"), "{refuse}");
    // SAFETY: the tensor was just exported, and nobody writes it.
    let again = unsafe { DlpackTensor::from_raw(x.to_dlpack(&stream)?.into_raw())? };
    assert!(again.is_read_only());
    assert!(matches!(again.into_buffer::<f32>(&stream), Err(Error::Dlpack { .. })));
    drop(x);
    assert_eq!(count.get(), 1);
    // A view that repeats elements is exported as read-only.
    let wide = out.slice(0)?.broadcast_to([5])?.to_dlpack(&stream)?.into_raw();
    // SAFETY: the tensor was just exported.
    assert!(unsafe { DlpackTensor::from_raw(wide)? }.is_read_only());
    Ok(())
}

#[test]
fn buffers_of_complex_numbers_come_and_go() -> Result<()> {
    let (stream, count) = (emulator()?, Count::default());
    let values = [Complex { re: 1.0f64, im: 2.0 }, Complex { re: 3.0, im: 4.0 }, Complex { re: 5.0, im: 6.0 }];
    let other = produced(&values, &[3], 0, &count);
    let data = other.dl_tensor().data.addr() as u64;
    let mut buffer = other.into_buffer::<Complex<f64>>(&stream)?;
    assert_eq!((buffer.address(), buffer.to_vec()?), (data, values.to_vec()));
    buffer.copy_from(&[values[2], values[1], values[0]])?;
    let export = DlpackExport::of_buffer(buffer, &[1, 3], &stream)?;
    assert_eq!(format!("{export:?}"), "DlpackExport<complex128>([1, 3])");
    drop(export);
    assert_eq!(count.get(), 1);

    let buffer = stream.buffer_from(&values)?;
    let refused = DlpackExport::of_buffer(buffer, &[2, 2], &stream).unwrap_err().to_string();
    assert!(refused.contains("does not have the 3 elements"), "{refused}");
    let strided = changed(&values, &[2], &count, |produced, tensor| tensor.strides = produced.with_strides(&[2]));
    let refused = strided.into_buffer::<Complex<f64>>(&stream).unwrap_err().to_string();
    assert!(refused.contains("do not lie in a row"), "{refused}");
    Ok(())
}

#[test]
fn what_is_exported_is_this_memory_with_its_layout() -> Result<()> {
    let stream = emulator()?;
    let x = Tensor::<i64>::uninit(&stream, [3, 4])?;
    let view = x.slice((AxisSlice::from(..).by(-1), AxisSlice::from(1..)))?.t();
    let managed = view.to_dlpack(&stream)?.into_raw();
    drop(view);
    // SAFETY: a consumer uses exported memory in this way.
    unsafe {
        let DLManagedTensorVersioned { version, flags, dl_tensor: tensor, .. } = &*managed;
        assert_eq!((version.major, *flags, tensor.byte_offset), (1, 0, 0));
        assert_eq!(tensor.device, DLDevice { device_type: DLDevice::CPU, device_id: 0 });
        assert_eq!((tensor.ndim, tensor.dtype), (2, i64::TYPE));
        assert_eq!([*tensor.shape, *tensor.shape.add(1)], [3, 3]);
        assert_eq!([*tensor.strides, *tensor.strides.add(1)], [1, -4]);
        // Elements that others have written count as written.
        for at in [-8, -7, -6, -4, -3, -2, 0, 1, 2] {
            *tensor.data.cast::<i64>().offset(at) = at as i64;
        }
        assert_eq!(x.slice((.., AxisSlice::from(1..)))?.to_vec()?, [-8, -7, -6, -4, -3, -2, 0, 1, 2]);
        (*managed).deleter.expect("one")(managed);
    }
    // As long as others have the memory, this tensor does not have it alone.
    let mut x = Tensor::<i64>::zeros(&stream, 2)?;
    let export = x.to_dlpack(&stream)?;
    assert!(x.as_slice_mut().is_none());
    drop(export);
    assert!(x.as_slice_mut().is_some());
    Ok(())
}

#[test]
fn memory_of_one_emulated_device_is_not_imported_on_another() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let x = Tensor::from_slice(&streams[1], 4, &[1i32, 2, 3, 4])?;
    let export = || -> Result<DlpackTensor> {
        let raw = x.to_dlpack(&streams[1])?.into_raw();
        // SAFETY: the tensor was just exported, and nobody else has it.
        unsafe { DlpackTensor::from_raw(raw) }
    };
    let refused = [
        Tensor::<i32>::from_dlpack(&streams[0], export()?).map(drop),
        export()?.into_buffer::<i32>(&emulator()?).map(drop),
    ];
    for refused in refused {
        match refused {
            Err(Error::Dlpack { reason, .. }) => assert!(reason.contains("is memory of device 1"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(Tensor::<i32>::from_dlpack(&streams[1], export()?)?.to_vec()?, [1, 2, 3, 4]);
    let error = DlpackExport::of_buffer(streams[0].buffer_from(&[1u8, 2])?, &[2], &streams[1]).unwrap_err();
    assert!(matches!(&error, Error::WrongDevice { argument, .. } if argument == "`buffer`"), "{error}");
    Ok(())
}

#[test]
fn memory_with_an_owner_is_a_buffer_on_the_emulator() -> Result<()> {
    struct Owner(Vec<u32>, Count);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (stream, count) = (emulator()?, Count::default());
    let adopt = |offset: u64, len: usize| {
        let mut owner = Owner(vec![1, 2, 3, 4], count.clone());
        let address = owner.0.as_mut_ptr().expose_provenance() as u64 + offset;
        // SAFETY: the memory is the vector's, which the buffer owns. Memory that is not aligned is refused.
        unsafe { Buffer::<u32>::from_raw_owned(&stream, address, len, owner) }
    };
    let mut buffer = adopt(4, 3)?;
    assert_eq!(buffer.to_vec()?, [2, 3, 4]);
    let x = stream.buffer_from(&[1u32, 1, 1])?;
    inclusive_scan(&stream, &x, Add, &mut buffer)?;
    assert_eq!(buffer.to_vec()?, [1, 2, 3]);
    drop(buffer);
    assert_eq!(count.get(), 1);
    assert!(matches!(adopt(2, 1), Err(Error::Adoption { .. })));
    assert_eq!(count.get(), 2);
    // SAFETY: there is no memory, and nothing is used.
    let none = unsafe { Buffer::<u32>::from_raw_owned(&stream, 0, 0, Owner(Vec::new(), count.clone()))? };
    assert_eq!(none.to_vec()?, [0; 0]);
    drop(none);
    // SAFETY: the call is refused.
    assert!(unsafe { Buffer::<u32>::from_raw_owned(&stream, 0, 1, Owner(Vec::new(), count.clone())) }.is_err());
    assert_eq!(count.get(), 4);
    Ok(())
}

#[test]
fn memory_of_a_gpu_comes_and_goes_in_the_order_of_the_consumers_stream() -> Result<()> {
    let Ok(gpu) = Device::gpu() else { return Ok(()) };
    let (own, others) = (gpu.stream()?, gpu.stream()?);
    let x = Tensor::from_slice(&own, [2, 3], &[1.0f32; 6])?;
    x.mul_assign(scalar(2.0f32))?;
    assert!(matches!(x.to_dlpack(&emulator()?), Err(Error::WrongDevice { .. })));
    // SAFETY: the tensor was just exported, and is consumed once.
    let other = unsafe { DlpackTensor::from_raw(x.t().to_dlpack(&others)?.into_raw())? };
    let DLDevice { device_type, device_id } = other.dl_tensor().device;
    assert_eq!((device_type, usize::try_from(device_id).ok()), (DLDevice::CUDA, gpu.ordinal()));
    assert!(matches!(Tensor::<f32>::from_dlpack(&emulator()?, other), Err(Error::Dlpack { .. })));
    // SAFETY: as above; both libraries use one stream.
    let other = unsafe { DlpackTensor::from_raw(x.to_dlpack(&others)?.into_raw())? };
    let y = Tensor::<f32>::from_dlpack(&others, other)?;
    y.add_assign(scalar(1.0f32))?;
    drop(y);
    x.add_assign(scalar(1.0f32))?;
    assert_eq!(x.to_vec()?, [4.0; 6]);
    Ok(())
}
