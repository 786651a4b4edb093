//! Tests NumPy's files. Tests of damaged files are in `tests/doors/npy.rs`.

use kernel_primitives::expr::{AxisSlice, DType, Tensor};
use kernel_primitives::interop::npy::{NpyArray, NpyElement, NpyHeader, NpyOrder, NpyType};
use kernel_primitives::{Complex, Device, Element, Error, Result, Stream, f16};

fn stream() -> Result<Stream> {
    Device::auto()?.stream()
}

/// Makes a file with this header, padded as NumPy does.
fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let length = header.len() as u32;
    let length = if version == 1 { (length as u16).to_le_bytes().to_vec() } else { length.to_le_bytes().to_vec() };
    [&b"\x93NUMPY"[..], &[version, 0], &length, header.as_bytes(), data].concat()
}

fn written<T: NpyElement>(array: &NpyArray<T>, order: NpyOrder) -> Vec<u8> {
    let mut bytes = Vec::new();
    array.write_to(&mut bytes, order).unwrap();
    bytes
}

/// Reverses the bytes of each number in a file, and changes its header to match.
fn in_big_endian(mut bytes: Vec<u8>, element: NpyType) -> Vec<u8> {
    let at = bytes.windows(3).position(|window| window == &element.descr().as_bytes()[..3]).unwrap();
    bytes[at] = b'>';
    let start = NpyHeader::read_from(&bytes[..]).unwrap().data_offset() as usize;
    let number = if element.name().starts_with("complex") { element.size() / 2 } else { element.size() };
    bytes[start..].chunks_exact_mut(number).for_each(<[u8]>::reverse);
    bytes
}

/// Writes an array and reads it back, in either byte order and either order of elements.
fn check<T: NpyElement + PartialEq + std::fmt::Debug>(values: [T; 6]) {
    for shape in [&[6][..], &[2, 3], &[3, 1, 2], &[1, 6], &[2, 3, 1]] {
        let array = NpyArray::new(shape, values.to_vec()).unwrap();
        for order in [NpyOrder::C, NpyOrder::Fortran] {
            let little = written(&array, order);
            let header = NpyHeader::read_from(&little[..]).unwrap();
            assert_eq!((header.element(), header.order(), header.shape()), (T::TYPE, order, shape));
            assert_eq!(header.data_offset() % 64, 0);
            assert_eq!(little.len() as u64, header.data_offset() + 6 * size_of::<T>() as u64);
            for (bytes, is_big) in [(little.clone(), false), (in_big_endian(little, T::TYPE), true)] {
                // Single bytes have no order.
                if size_of::<T>() > 1 || !is_big {
                    assert_eq!(NpyHeader::read_from(&bytes[..]).unwrap().is_big_endian(), is_big);
                }
                let read = NpyArray::<T>::read_from(&bytes[..]).unwrap();
                assert_eq!(read, array, "{} {shape:?}", T::TYPE.name());
                assert_eq!(read.into_values(), values);
            }
        }
    }
}

#[test]
fn every_element_type_goes_out_and_comes_back() {
    check([true, false, false, true, true, false]);
    check([i8::MIN, -1, 0, 1, 2, i8::MAX]);
    check([i16::MIN, -1, 0, 1, 258, i16::MAX]);
    check([i32::MIN, -1, 0, 1, 0x01020304, i32::MAX]);
    check([i64::MIN, -1, 0, 1, 0x0102030405060708, i64::MAX]);
    check([0, 1, 2, 3, 254, u8::MAX]);
    check([0, 1, 2, 3, 258, u16::MAX]);
    check([0, 1, 2, 3, 0x01020304, u32::MAX]);
    check([0, 1, 2, 3, 0x0102030405060708, u64::MAX]);
    check([0.0, -0.0, 1.5, -2.0, 65504.0, f32::INFINITY].map(f16::from_f32));
    check([0.0f32, -0.0, 1.5, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY]);
    check([0.0f64, -0.0, 1.5, f64::MIN_POSITIVE, f64::MAX, f64::NEG_INFINITY]);
    check([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(|x| Complex { re: x, im: -x }));
    check([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].map(|x| Complex { re: x, im: 0.5 * x }));
    // NumPy has every type of expressions except one.
    for dtype in DType::ALL {
        let numpys = NpyType::ALL.iter().any(|element| format!("{element:?}") == format!("{dtype:?}"));
        assert_eq!(numpys, dtype != DType::BF16, "{dtype}");
    }
}

#[test]
fn bytes_are_those_that_numpy_writes() {
    // This is np.save of np.array([[1, 2, 3], [4, 5, 6]], dtype='<i2', order='F') by NumPy 1.16 and 2.3, except for the padding.
    let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }";
    let data: Vec<u8> = [1i16, 4, 2, 5, 3, 6].iter().flat_map(|x| x.to_le_bytes()).collect();
    let array = NpyArray::new(&[2, 3], vec![1i16, 2, 3, 4, 5, 6]).unwrap();
    let bytes = written(&array, NpyOrder::Fortran);
    assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
    assert_eq!(&bytes[10..10 + header.len()], header.as_bytes());
    assert!(bytes[10 + header.len()..127].iter().all(|byte| *byte == b' '));
    assert_eq!((bytes[127], &bytes[128..]), (b'\n', &data[..]));
}

#[test]
fn headers_of_other_writers_are_read() {
    let data: Vec<u8> = [1.5f32, -2.0, 3.25].iter().flat_map(|x| x.to_le_bytes()).collect();
    for version in 1..=3 {
        for header in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   \n",
            "{\"shape\":(3,),\"descr\":\"<f4\",\"fortran_order\":False}",
            " { 'fortran_order' : True , 'shape' : ( 3L , ) , 'descr' : '<f4' }\r\n\t\n",
            "{'descr':'=f4','fortran_order':False,'shape':(3,)}",
        ] {
            let bytes = file(version, header, &data);
            let array = NpyArray::<f32>::read_from(&bytes[..]).unwrap_or_else(|error| panic!("{header}: {error}"));
            assert_eq!((array.shape(), array.values()), (&[3][..], &[1.5, -2.0, 3.25][..]));
        }
    }
}

#[test]
fn single_values_and_arrays_without_elements_keep_their_shape() -> Result<()> {
    for shape in [&[0][..], &[0, 7], &[3, 0, 2], &[usize::MAX, 0, usize::MAX]] {
        for order in [NpyOrder::C, NpyOrder::Fortran] {
            let array = NpyArray::<f64>::new(shape, Vec::new())?;
            assert_eq!(NpyArray::read_from(&written(&array, order)[..])?, array);
        }
    }
    let value = NpyArray::new(&[], vec![7u8])?;
    assert_eq!(NpyArray::read_from(&written(&value, NpyOrder::Fortran)[..])?, value);
    assert_eq!(value.to_tensor(&stream()?)?.item()?, 7);
    Ok(())
}

#[test]
fn large_arrays_go_in_parts() -> Result<()> {
    let values: Vec<Complex<f64>> = (0..30_000).map(|i| Complex { re: f64::from(i), im: -f64::from(i) }).collect();
    let array = NpyArray::new(&[100, 3, 100], values)?;
    for order in [NpyOrder::C, NpyOrder::Fortran] {
        assert!(NpyArray::read_from(&written(&array, order)[..])? == array);
    }
    // A reader that gives a few bytes at a time, and is interrupted.
    struct Slow<'a>(&'a [u8], usize);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let few = to.len().min(997);
            std::io::Read::read(&mut self.0, &mut to[..few])
        }
    }
    assert!(NpyArray::read_from(Slow(&written(&array, NpyOrder::C), 0))? == array);
    Ok(())
}

#[test]
fn several_arrays_follow_each_other_in_a_stream() -> Result<()> {
    let (first, second) = (NpyArray::new(&[2], vec![1u8, 2])?, NpyArray::new(&[1, 1], vec![0.5f32])?);
    let mut bytes = Vec::new();
    first.write_to(&mut bytes, NpyOrder::C)?;
    second.write_to(&mut bytes, NpyOrder::C)?;
    let mut rest = &bytes[..];
    assert_eq!(NpyArray::<u8>::read_from(&mut rest)?, first);
    assert_eq!(NpyArray::<f32>::read_from(&mut rest)?, second);
    assert!(rest.is_empty());
    Ok(())
}

struct Path(std::path::PathBuf);

impl Path {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("kernel-primitives-{}-{name}.npy", std::process::id())))
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn buffers_and_tensors_go_to_files_and_back() -> Result<()> {
    fn values<T: Element>(count: usize, of: impl Fn(usize) -> T) -> Vec<T> {
        (0..count).map(of).collect()
    }
    let (stream, path) = (stream()?, Path::new("tensors"));
    let buffer = stream.buffer_from(&values(10, |i| Complex { re: i as f32, im: 1.0 }))?;
    NpyArray::from_slice(&[2, 2], buffer.slice(3..7)?)?.write(&path.0)?;
    let array = NpyArray::<Complex<f32>>::read(&path.0)?;
    assert_eq!(array.shape(), [2, 2]);
    assert_eq!(array.to_buffer(&stream)?.to_vec()?, buffer.slice(3..7)?.to_vec()?);

    // A view is written in its own shape.
    let x = Tensor::from_slice(&stream, [4, 6], &values(24, |i| i as u16))?;
    let view = x.slice((AxisSlice::from(..).by(-2), 1..4))?.t();
    view.write_npy(&path.0)?;
    let again = Tensor::<u16>::read_npy(&stream, &path.0)?;
    assert_eq!((*again.shape()).to_vec(), [3, 2]);
    assert_eq!(again.to_vec()?, [19, 7, 20, 8, 21, 9]);
    assert!(again.is_contiguous());
    assert_eq!(NpyArray::from_tensor(&again)?, NpyArray::read(&path.0)?);

    // The array has more axes than tensors can have.
    let deep = NpyArray::new(&[1; 10], vec![1u16])?;
    assert!(matches!(deep.to_tensor(&stream), Err(Error::Expression(_))));
    assert!(
        NpyArray::new(&[1; 65], vec![1u16])?.write(&path.0).is_err_and(|error| error.to_string().contains("65 axes"))
    );
    assert_eq!(NpyArray::<u16>::read(&path.0)?.shape(), [3, 2], "the file is as it was");
    Ok(())
}

#[test]
fn errors_name_the_file_the_byte_and_the_field() -> Result<()> {
    let path = Path::new("errors");
    let name = path.0.display().to_string();
    let read = || NpyArray::<f32>::read(&path.0).unwrap_err().to_string();
    assert!(read().starts_with(&format!("{name}, byte 0, file: not opened: ")));
    NpyArray::new(&[3], vec![1.0f32; 3])?.write(&path.0)?;
    let mut bytes = std::fs::read(&path.0).unwrap();
    bytes.push(0);
    std::fs::write(&path.0, &bytes).unwrap();
    assert!(read().starts_with(&format!("{name}, byte 140, end: there is more after the array")));
    std::fs::write(&path.0, &bytes[..139]).unwrap();
    assert_eq!(read(), format!("{name}, byte 60, shape: [3] needs 12 bytes of float32, but 11 follow"));
    let other = NpyArray::<Complex<f64>>::read(&path.0).unwrap_err().to_string();
    assert!(other.contains("byte 20, descr: the elements are float32 ('<f4'), not complex128"), "{other}");
    std::fs::write(&path.0, &bytes[..100]).unwrap();
    assert_eq!(read(), format!("{name}, byte 8, header length: the header has 118 bytes, but 90 follow"));

    let Err(Error::Npy { at: 130, field: "data", reason, .. }) = NpyArray::<bool>::read_from(
        &[&written(&NpyArray::new(&[4], vec![true; 4])?, NpyOrder::C)[..130], &[2, 1]].concat()[..],
    ) else {
        panic!("a bool of 2")
    };
    assert_eq!(reason, "0x2 is no bool");

    assert!(matches!(
        NpyArray::new(&[2, 2], vec![1.0f32; 3]),
        Err(Error::LengthMismatch { first_len: 4, second_len: 3, .. })
    ));
    assert!(matches!(NpyArray::new(&[usize::MAX, 2], vec![1u8]), Err(Error::LengthMismatch { .. })));

    /// An output that has no room left.
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let full = NpyArray::new(&[2], vec![1u8; 2])?.write_to(Full, NpyOrder::C).unwrap_err();
    assert!(full.to_string().contains("byte 0, header: not written: "), "{full}");
    Ok(())
}
