//! Tests the reader of Matrix Market files.

use kernel_primitives::algorithms::Coo;
use kernel_primitives::{Complex, Error};

use crate::allocation::largest;
use crate::damage::{Shown, try_all};

const VALID: [&[u8]; 4] = [
    b"%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 4\n1 1 1.5\n3 4 -2e10\n2 2 0\n1 4 1e-300\n",
    b"%%MatrixMarket matrix coordinate integer symmetric\r\n3 3 3\r\n1 1 7\r\n3 1 -9\r\n\r\n3 3 127\r\n",
    b"%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n2 1 1.5 -1\n2 2 4 0\n",
    b"%%MatrixMarket matrix coordinate pattern general\n5 5 3\n1 5\n5 1\n2 2\n",
];

const WORDS: [&str; 14] = [
    "%%MatrixMarket",
    "matrix",
    "coordinate",
    "array",
    "real",
    "integer",
    "complex",
    "pattern",
    "skew-symmetric",
    "general",
    "1 1 1\n",
    "inf",
    "nan",
    "1e999",
];

#[test]
fn damaged_files_have_errors_or_matrices_that_hold_what_they_say() {
    try_all(
        20_000,
        |damage| Shown(damage.damaged(&VALID, &WORDS)),
        |Shown(bytes)| {
            let (read, bytes_of_largest) = largest(|| Coo::<Complex<f64>>::read_matrix_market(&bytes[..]));
            // This is a line, whose memory doubles when it grows, or a triplet and its mirror image for every six bytes, doubled, too.
            let most = (1 << 18) + 2 * 2 * 16 * (bytes.len() / 3);
            if bytes_of_largest > most {
                return Err(format!("{bytes_of_largest} bytes were asked for"));
            }
            match read {
                Ok(triplets) => {
                    let inside = |(row, column, _)| row < triplets.rows() && column < triplets.columns();
                    triplets.iter().all(inside).then_some(()).ok_or("a triplet is outside".to_owned())
                }
                Err(Error::SparseMatrix { reason, .. }) => {
                    let printable = !reason.chars().any(char::is_control) && reason.len() < 400;
                    (reason.starts_with("line ") && printable).then_some(()).ok_or(reason)
                }
                Err(other) => Err(other.to_string()),
            }
        },
    );
}

#[test]
fn sizes_that_lie_take_no_memory() {
    let text = b"%%MatrixMarket matrix coordinate real general\n4294967296 4294967296 9223372036854775807\n1 1 1\n";
    let (read, bytes) = largest(|| Coo::<f64>::read_matrix_market(&text[..]));
    assert!(read.unwrap_err().to_string().ends_with("the file ends after 1 of 9223372036854775807 entries"));
    assert!(bytes < 1 << 17, "{bytes}");
}
