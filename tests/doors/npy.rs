//! Tests the library's reader of `.npy` files.

use kernel_primitives::Error;
use kernel_primitives::interop::npy::{NpyArray, NpyHeader};

use crate::allocation::largest;
use crate::damage::{Shown, try_all};

#[path = "../../examples/quickstart/data.rs"]
#[allow(dead_code, reason = "of the example")]
mod data;

/// Makes a file with this header and these elements. The magic bytes and the length are right.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), data].concat()
}

fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
}

#[test]
fn a_file_that_is_wrong_says_what_is_and_takes_no_memory() {
    let data = [0; 12];
    let deep = format!("{{'descr': {}", "[".repeat(60_000));
    let axes = "1, ".repeat(65);
    for (bytes, what) in [
        (Vec::new(), "byte 0, magic: no .npy file"),
        (b"\x89PNG\r\n\x1A\n".to_vec(), "byte 0, magic: no .npy file"),
        (b"\x93NUMPY\x01".to_vec(), "byte 7, version: the file ends in it"),
        (b"\x93NUMPY\x09\x00\x10\x00".to_vec(), "byte 6, version: version 9.0"),
        (b"\x93NUMPY\x01\x00\x10".to_vec(), "byte 9, header length: the file ends in it"),
        (b"\x93NUMPY\x01\x00\x10\x00{".to_vec(), "byte 8, header length: the header has 16 bytes, but 1 follow"),
        (b"\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{".to_vec(), "byte 8, header length: the header has 4294967295 bytes"),
        (file("", &[]), "byte 10, header: the header ends where `{` is expected"),
        (file("{}", &[]), "byte 10, descr: the header has no such entry"),
        (file("{'descr': '<f4'}", &[]), "byte 10, fortran_order: the header has no such entry"),
        (file("{'descr': '<f4', 'fortran_order': False}", &[]), "byte 10, shape: the header has no such entry"),
        (file("{'descr': '<f4', 'descr': '<f4'}", &[]), "byte 27, descr: it is there twice"),
        (file("{'x': 1}", &[]), "byte 11, header: 'x' is none of 'descr', "),
        (file("{'descr': '<f4\\n'}", &[]), "byte 24, descr: a text with a backslash"),
        (file("{'descr': '<f4", &[]), "byte 20, descr: a text without an end"),
        (file("{\u{e9}", &[]), "byte 11, header: 'é' stands where a text is expected"),
        (b"\x93NUMPY\x01\x00\x02\x00{\xFF".to_vec(), "byte 11, header: "),
        (file(&deep, &[]), "byte 20, descr: the elements have fields"),
        (file(&header("[('x', '<f4'), ('y', '<f4')]", "(3,)"), &data), "the elements have fields"),
        (file(&header("'|V2'", "(3,)"), &data), "bf16 of other packages"),
        (file(&header("'|O'", "(3,)"), &data), "Python objects are not read"),
        (file(&header("'<f16'", "(3,)"), &data), "save `array.astype('float64')`"),
        (file(&header("'<U5'", "(3,)"), &data), "byte 20, descr: the elements are '<U5', not bool"),
        (file(&header("'<i4'", "(3,)"), &data), "byte 20, descr: the elements are int32 ('<i4'), not float32"),
        (file(&header("'>u2'", "(3,)"), &data), "the elements are uint16 ('>u2'), not float32"),
        (file(&header("'<f4'", "3"), &data), "shape: '3, }\\n' stands where `(` is expected"),
        (file(&header("'<f4'", "(3)"), &data), "shape: (3) is a number and no shape"),
        (file(&header("'<f4'", "(-3,)"), &data), "stands where an extent is expected"),
        (file(&header("'<f4'", "(,)"), &data), "stands where an extent is expected"),
        (file(&header("'<f4'", "(3x,)"), &data), "stands where an extent is expected"),
        (file(&header("'<f4'", &format!("({axes})")), &data), "shape: more than 64 axes"),
        (file(&header("'<f4'", "(99999999999999999999,)"), &data), "is more than can be counted"),
        (file(&header("'<f4'", "(4294967296, 4294967296)"), &data), "has more elements than can be counted"),
        (
            file(&header("'<f4'", "(4611686018427387904,)"), &data),
            "data: the file ends after 3 of the 4611686018427387904",
        ),
        (file(&header("'<f4'", "(4,)"), &data), "data: the file ends after 3 of the 4 elements of shape [4]"),
        (file("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", &data), "stands where True or False is expected"),
        (file("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", &data), "there is more after the dictionary"),
    ] {
        let (read, bytes_of_largest) = largest(|| NpyArray::<f32>::read_from(&bytes[..]));
        let error = read.expect_err(what).to_string();
        assert!(error.contains(what), "{error}: not {what}");
        assert!(bytes_of_largest <= 1 << 17, "{what}: {bytes_of_largest} bytes at once");
    }
}

#[test]
fn files_that_are_shorter_than_their_shape_take_no_memory() {
    let path = std::env::temp_dir().join(format!("kernel-primitives-doors-{}.npy", std::process::id()));
    std::fs::write(&path, file(&header("'<f4'", "(1000000000000, 7)"), &[0; 12])).unwrap();
    let (read, bytes) = largest(|| NpyArray::<f32>::read(&path));
    let _ = std::fs::remove_file(&path);
    let error = read.unwrap_err().to_string();
    assert!(
        error.ends_with("shape: [1000000000000, 7] needs 28000000000000 bytes of float32, but 12 follow"),
        "{error}"
    );
    assert!(bytes < 1 << 17, "{bytes}");
}

#[test]
fn damaged_files_are_an_error_or_an_array_of_its_shape() {
    let data: Vec<u8> = (0..24).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 3, 2), }\n";
    let valid = [
        file(&header("'<f4'", "(24,)"), &data),
        file(&header("'>f4'", "()"), &data[..4]),
        file(fortran, &data),
        [
            &b"\x93NUMPY\x03\x00"[..],
            &53u32.to_le_bytes(),
            b"{'shape': (4,), 'fortran_order': False,'descr':'<f4'}",
            &data,
        ]
        .concat(),
    ];
    for bytes in &valid {
        NpyArray::<f32>::read_from(&bytes[..]).expect("it is whole");
    }
    let valid: Vec<&[u8]> = valid.iter().map(Vec::as_slice).collect();
    let words = [
        "'descr': ",
        "'shape': ",
        "(",
        ")",
        ",",
        "'<f4'",
        "'>f4'",
        "True",
        "False",
        "1000000000000000000",
        "-",
        "L",
        "0",
    ];
    try_all(
        10_000,
        |damage| Shown(damage.damaged(&valid, &words)),
        |Shown(bytes)| {
            let (read, request) = largest(|| NpyArray::<f32>::read_from(&bytes[..]));
            if request > 4 * bytes.len() + (1 << 17) {
                return Err(format!("{request} bytes at once"));
            }
            match (read, NpyHeader::read_from(&bytes[..])) {
                (Ok(array), Ok(header)) => {
                    let elements: usize = if header.shape().contains(&0) { 0 } else { header.shape().iter().product() };
                    if array.shape() != header.shape() || array.values().len() != elements {
                        return Err("not the elements of its shape".into());
                    }
                    (4 * elements <= bytes.len()).then_some(()).ok_or("more values than the file has".into())
                }
                (Err(Error::Npy { at, reason, .. }), _) => {
                    let fits = at <= bytes.len() as u64 && !reason.is_empty() && reason.len() < 2000;
                    (fits && !reason.chars().any(char::is_control)).then_some(()).ok_or(format!("byte {at}: {reason}"))
                }
                (read, _) => Err(format!("{read:?}")),
            }
        },
    );
}

/// The test uses the quickstart's files, which have a mean.
#[test]
fn a_series_is_of_finite_floats() {
    let read = |descr: &str, shape: &str, data: &[u8]| {
        let bytes = file(&header(descr, shape), data);
        data::values(&bytes).map_err(|error| error.to_string())
    };
    let values = [1.5f32, -2.0];
    let double: Vec<u8> = values.iter().flat_map(|&value| f64::from(value).to_be_bytes()).collect();
    assert_eq!(read("'>f8'", "(1, 2)", &double).as_deref(), Ok(&values[..]));
    assert_eq!(read("'<f4'", "(1,)", &1.5f32.to_le_bytes()).as_deref(), Ok(&values[..1]));
    for (descr, shape, data, what) in [
        ("'<f4'", "(0, 7)", &[][..], "the array is empty"),
        ("'<f4'", "(1,)", &f32::NAN.to_le_bytes(), "element 0 is NaN"),
        ("'<f8'", "(1,)", &1e39f64.to_le_bytes(), "element 0 is inf as float32"),
        ("'<i4'", "(1,)", &[0; 4], "the elements are int32"),
    ] {
        let error = read(descr, shape, data).expect_err(what);
        assert!(error.contains(what), "{error}: not {what}");
    }
}

/// A shell passes the output of a command so: `quickstart <(zcat series.npy.gz)`.
#[cfg(target_os = "linux")]
#[test]
fn a_series_is_read_from_a_pipe() {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(&file(&header("'<f4'", "(1,)"), &1.5f32.to_le_bytes())).expect("room in the pipe");
    drop(writer);
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let series = data::Series::from_file(path.as_ref()).expect("a series");
    assert_eq!(series.values, [1.5]);
}
