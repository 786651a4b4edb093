//! The quickstart's reader of `.npy` files.

use crate::allocation::largest;
use crate::damage::{Shown, try_all};

#[path = "../../examples/quickstart/data.rs"]
#[allow(dead_code)]
mod data;

/// A file with this header, for which the magic bytes and the length are right, and these elements.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), data].concat()
}

fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
}

fn read(bytes: &[u8]) -> Result<Vec<f32>, String> {
    data::values(bytes).map_err(|error| error.to_string())
}

#[test]
fn arrays_are_read_in_both_types_and_byte_orders() {
    let values = [1.5f32, -2.0, 3.25];
    let little: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let big: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    let double: Vec<u8> = values.iter().flat_map(|&value| (value as f64).to_le_bytes()).collect();
    let big_double: Vec<u8> = values.iter().flat_map(|&value| (value as f64).to_be_bytes()).collect();
    for (descr, data) in
        [("'<f4'", &little), ("'>f4'", &big), ("'<f8'", &double), ("\"<f8\"", &double), ("'>f8'", &big_double)]
    {
        for shape in ["(3,)", "(1, 3)", "( 3 , 1, 1 )"] {
            assert_eq!(read(&file(&header(descr, shape), data)).as_deref(), Ok(&values[..]), "{descr} {shape}");
        }
    }
    assert_eq!(read(&file(&header("'<f4'", "()"), &little)).as_deref(), Ok(&values[..1]));
    // Version 2 has a longer length.
    let text = header("'<f4'", "(3,)");
    let long = [&b"\x93NUMPY\x02\x00"[..], &(text.len() as u32).to_le_bytes(), text.as_bytes(), &little].concat();
    assert_eq!(read(&long).as_deref(), Ok(&values[..]));
}

#[test]
fn a_file_that_is_wrong_says_what_is() {
    let data = [0; 12];
    let deep = format!("{{'descr': {}", "[".repeat(60_000));
    for (bytes, what) in [
        (Vec::new(), "no .npy file"),
        (b"\x89PNG\r\n\x1A\n".to_vec(), "no .npy file"),
        (b"\x93NUMPY\x09\x00\x10\x00".to_vec(), "version 9"),
        (b"\x93NUMPY\x01\x00\x10\x00{".to_vec(), "the header is incomplete"),
        (b"\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{".to_vec(), "its header has 4294967295 bytes"),
        (file("{\u{e9}", &[]), "no 'descr'"),
        (b"\x93NUMPY\x01\x00\x02\x00{\xFF".to_vec(), "its header is no text"),
        (file(&deep, &[]), "its header ends inside 'descr'"),
        (file(&header("'<i4'", "(3,)"), &data), "its elements are '<i4', not float32"),
        (file(&header("[('x', '<f4'), ('y', '<f4')]", "(3,)"), &data), "its elements are [('x', '<f4'), ('y', '<f4')]"),
        (file(&header("'<f4'", "3"), &data), "its shape is 3, which no array has"),
        (file(&header("'<f4'", "(-3,)"), &data), "its shape is (-3,)"),
        (file(&header("'<f4'", "(,)"), &data), "its shape is (,)"),
        // More bytes than can be counted, and more elements.
        (file(&header("'<f4'", "(4611686018427387904,)"), &data), "its shape is (4611686018427387904,)"),
        (file(&header("'<f8'", "(4294967296, 4294967296)"), &data), "its shape is (4294967296, 4294967296)"),
        (file(&header("'<f4'", "(1000000000000000000,)"), &data), "12 of 4000000000000000000 bytes"),
        (file(&header("'<f4'", "(4,)"), &data), "the array is incomplete: it has 12 of 16 bytes"),
        (file(&header("'<f4'", "(0, 7)"), &data), "the array is empty"),
        (file(&header("'<f4'", "(1,)"), &f32::NAN.to_le_bytes()), "element 0 is NaN"),
        (file(&header("'<f8'", "(1,)"), &1e39f64.to_le_bytes()), "element 0 is inf as float32"),
    ] {
        let (result, bytes) = largest(|| read(&bytes));
        let error = result.expect_err(what);
        assert!(error.contains(what), "{error}: not {what}");
        assert!(bytes <= 1 << 17, "{what}: {bytes} bytes at once");
    }
}

#[test]
fn damaged_files_are_an_error_or_finite_values() {
    let data: Vec<u8> = (0..24).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let valid = [
        file(&header("'<f4'", "(24,)"), &data),
        file(&header("'<f8'", "(2, 3, 2)"), &data),
        file(&header("'>f4'", "()"), &data),
        [&b"\x93NUMPY\x03\x00"[..], &39u32.to_le_bytes(), b"{'descr': '<f4', 'shape': (4,), 'x': 0}\n", &data].concat(),
    ];
    let valid: Vec<&[u8]> = valid.iter().map(Vec::as_slice).collect();
    let words = [
        "'descr': ",
        "'shape': ",
        "(",
        ")",
        ",",
        "'<f4'",
        "'<f8'",
        "'|O'",
        "True",
        "1000000000000000000",
        "-",
        "L",
        "1e9",
    ];
    try_all(
        3000,
        |damage| Shown(damage.damaged(&valid, &words)),
        |Shown(bytes)| {
            let (result, request) = largest(|| read(bytes));
            if request > 8 * bytes.len() + (1 << 17) {
                return Err(format!("{request} bytes at once"));
            }
            match result {
                Ok(values) if values.is_empty() => Err("no values".into()),
                Ok(values) if values.iter().any(|value| !value.is_finite()) => Err("values that are not finite".into()),
                Ok(values) if values.len() * 4 > bytes.len() => Err("more values than the file has".into()),
                Ok(_) => Ok(()),
                Err(error) if error.is_empty() || error.len() > 70_000 => Err(format!("no message: {error}")),
                Err(_) => Ok(()),
            }
        },
    );
}
