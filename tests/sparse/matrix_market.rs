//! Tests Matrix Market files: their contents, their mistakes, and triplets that are written and read back.

use kernel_primitives::algorithms::{Coo, Csr, CsrIndex, MatrixMarketValue, spmv};
use kernel_primitives::functor::Add;
use kernel_primitives::{Complex, Error, Result, bf16, f16};

use crate::support::{Random, stream};

fn read<V: MatrixMarketValue>(text: &str) -> Result<Coo<V>> {
    Coo::read_matrix_market(text.as_bytes())
}

fn triplets<V: MatrixMarketValue>(text: &str) -> Vec<(usize, usize, V)> {
    read(text).unwrap().iter().collect()
}

#[track_caller]
fn reason<T: std::fmt::Debug>(made: Result<T>) -> String {
    match made {
        Err(Error::SparseMatrix { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_symmetry_says_what_is_across_the_diagonal() {
    let text = |header: &str, entries: &str| format!("%%MatrixMarket matrix coordinate {header}\n3 3 2\n{entries}");
    let [general, real] = ["real general", "real symmetric"].map(|header| text(header, "2 1 5\n3 3 -0.5\n"));
    assert_eq!(triplets::<f64>(&general), [(1, 0, 5.0), (2, 2, -0.5)]);
    assert_eq!(triplets::<f64>(&real), [(1, 0, 5.0), (0, 1, 5.0), (2, 2, -0.5)]);
    let skew = text("integer skew-symmetric", "2 1 5\n3 1 -7\n");
    assert_eq!(triplets::<i8>(&skew), [(1, 0, 5), (0, 1, -5), (2, 0, -7), (0, 2, 7)]);
    let pattern = text("pattern symmetric", "2 1\n3 3\n");
    assert_eq!(triplets::<bool>(&pattern), [(1, 0, true), (0, 1, true), (2, 2, true)]);
    assert_eq!(triplets::<u16>(&pattern), [(1, 0, 1), (0, 1, 1), (2, 2, 1)]);
    let c = Complex::<f32>::new;
    let entries = "2 1 5 -1\n3 2 0.5 2\n";
    assert_eq!(
        triplets::<Complex<f32>>(&text("complex symmetric", entries)),
        [(1, 0, c(5.0, -1.0)), (0, 1, c(5.0, -1.0)), (2, 1, c(0.5, 2.0)), (1, 2, c(0.5, 2.0))]
    );
    assert_eq!(
        triplets::<Complex<f32>>(&text("complex skew-symmetric", entries)),
        [(1, 0, c(5.0, -1.0)), (0, 1, c(-5.0, 1.0)), (2, 1, c(0.5, 2.0)), (1, 2, c(-0.5, -2.0))]
    );
    assert_eq!(
        triplets::<Complex<f32>>(&text("complex hermitian", "2 1 5 -1\n3 3 4 0\n")),
        [(1, 0, c(5.0, -1.0)), (0, 1, c(5.0, 1.0)), (2, 2, c(4.0, 0.0))]
    );
    // Values are converted to wider types.
    assert_eq!(triplets::<Complex<f32>>(&general), [(1, 0, c(5.0, 0.0)), (2, 2, c(-0.5, 0.0))]);
    assert_eq!(triplets::<f16>(&general), [(1, 0, f16::from_f32(5.0)), (2, 2, f16::from_f32(-0.5))]);
}

#[test]
fn comments_blank_lines_and_line_ends_of_others_are_read_over() {
    let text = "%%matrixmarket MATRIX Coordinate Double General\r\n% a comment\r\n\r\n%\r\n  2\t3   2 \r\n\r\n 1 3 1.5e0\r\n% more\n+2 1 -0\n\n%";
    assert_eq!(triplets::<f32>(text), [(0, 2, 1.5), (1, 0, -0.0)]);
    // A comment may have any encoding, but numbers may not.
    let latin = b"%%MatrixMarket matrix coordinate integer general\n% caf\xE9\n1 1 1\n1 1 3";
    assert_eq!(Coo::<i32>::read_matrix_market(&latin[..]).unwrap().values(), [3]);
    let wrong = b"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 \xB3";
    assert_eq!(reason(Coo::<i32>::read_matrix_market(&wrong[..])), "line 3: it is no text");
    for end in ["\n", "\r\n"] {
        let comment = |len: usize| format!("%{}", "x".repeat(len - 1));
        let text = |len| format!("%%MatrixMarket matrix coordinate real general\n{}{end}1 1 1\n1 1 2\n", comment(len));
        assert_eq!(triplets::<f32>(&text(1 << 16)), [(0, 0, 2.0)]);
        assert_eq!(reason(read::<f32>(&text((1 << 16) + 1))), "line 2: it has more than 65536 bytes");
    }
}

#[test]
fn infinities_and_nan_are_read_only_where_the_file_has_them() {
    let text = |value: &str| format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n");
    assert_eq!(read::<f32>(&text("inf")).unwrap().values(), [f32::INFINITY]);
    assert_eq!(read::<f64>(&text("-Infinity")).unwrap().values(), [f64::NEG_INFINITY]);
    assert!(read::<f32>(&text("NaN")).unwrap().values()[0].is_nan());
    assert_eq!(reason(read::<f32>(&text("1e39"))), "line 3: `1e39` is no value of f32");
    assert_eq!(read::<f64>(&text("1e39")).unwrap().values(), [1e39]);
    assert!(reason(read::<f16>(&text("65520"))).starts_with("line 3: `65520` is no value of "));
    assert_eq!(read::<f32>(&text("1e-99")).unwrap().values(), [0.0]);
}

#[test]
fn files_that_are_wrong_say_what_is_and_in_which_line() {
    let real = |rest: &str| reason(read::<f32>(&format!("%%MatrixMarket matrix coordinate real general\n{rest}")));
    let of = |header: &str, rest: &str| reason(read::<f32>(&format!("%%MatrixMarket {header}\n{rest}")));
    let cases = [
        (reason(read::<f32>("")), "line 1: a Matrix Market file begins with `%%MatrixMarket`"),
        (reason(read::<f32>("\n%%MatrixMarket")), "line 1: a Matrix Market file begins with `%%MatrixMarket`"),
        (of("matrix", ""), "line 1: it has `matrix` in the format nothing; sparse matrices are `matrix` `coordinate`"),
        (
            of("matrix array real general", "1 1\n1\n"),
            "line 1: it has `matrix` in the format `array`; sparse matrices are `matrix` `coordinate`",
        ),
        (
            of("matrix coordinate real", ""),
            "line 1: nothing is none of `general`, `symmetric`, `skew-symmetric` and `hermitian`",
        ),
        (
            of("matrix coordinate \x1B[2J general", ""),
            "line 1: `\\u{1b}[2J` is none of `real`, `integer`, `complex` and `pattern`",
        ),
        (of("matrix coordinate real general x", ""), "line 1: the first line goes on with `x`"),
        (of("matrix coordinate real hermitian", ""), "line 1: a real matrix cannot be Hermitian"),
        (of("matrix coordinate pattern skew-symmetric", ""), "line 1: a pattern matrix cannot be skew-symmetric"),
        (of("matrix coordinate complex general", ""), "line 1: values of f32 cannot be complex"),
        (real(""), "line 2: the file ends before its size line"),
        (real("% 1 1 1\n\n"), "line 4: the file ends before its size line"),
        (real("1 1\n"), "line 2: the size line has 2 numbers, not 3: rows, columns and entries"),
        (real("-1 1 1\n"), "line 2: `-1` is no size of a matrix"),
        (real("18446744073709551616 1 0\n"), "line 2: `18446744073709551616` is no size of a matrix"),
        (real("1 4294967297 0\n"), "line 2: indices of 32 bits cannot number 4294967297 columns"),
        (real("1 1 18446744073709551615\n1 1 1\n"), "line 4: the file ends after 1 of 18446744073709551615 entries"),
        (real("9 9 1\n1 1 1\n2 2 2"), "line 4: it is one entry more than the 1 of the size line"),
        (real("9 9 2\n1 1 1\n%\n10 1 2"), "line 5: row 10 is not one of 1 to 9"),
        (real("9 9 1\n1 0 1\n"), "line 3: column 0 is not one of 1 to 9"),
        (real("0 9 1\n1 1 1\n"), "line 3: row 1 is not one of 1 to 0"),
        (real("9 9 1\n1.5 1 1\n"), "line 3: `1.5` is no number of a row"),
        (real("9 9 1\n1 1\n"), "line 3: it has 2 numbers, and an entry of a real matrix has 3"),
        (real("9 9 1\n1 1 1 1\n"), "line 3: it has 4 numbers, and an entry of a real matrix has 3"),
        (real("9 9 1\n1 1 one\n"), "line 3: `one` is no value of f32"),
        (of("matrix coordinate real symmetric", "2 3 0\n"), "line 2: a matrix of 2 × 3 cannot be symmetric"),
        (
            of("matrix coordinate real symmetric", "2 2 1\n1 2 3\n"),
            "line 3: entry (1, 2) is above the diagonal of a symmetric matrix",
        ),
        (
            of("matrix coordinate real skew-symmetric", "2 2 1\n2 2 3\n"),
            "line 3: entry (2, 2) is on the diagonal of a skew-symmetric matrix, which has no such value",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let complex = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 2 3 1\n";
    assert_eq!(
        reason(read::<Complex<f64>>(complex)),
        "line 3: entry (2, 2) is on the diagonal of a Hermitian matrix, which has no such value"
    );
    let skew = |value: &str| format!("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 {value}\n");
    assert_eq!(reason(read::<i8>(&skew("-128"))), "line 3: entry (2, 1) and its negative are not both values of i8");
    assert_eq!(reason(read::<u8>(&skew("3"))), "line 3: entry (2, 1) and its negative are not both values of u8");
    assert_eq!(reason(read::<i8>(&skew("128"))), "line 3: `128` is no value of i8");
    assert_eq!(reason(read::<u8>(&skew("-3"))), "line 3: `-3` is no value of u8");
}

/// There is a reader that fails, and a line without an end.
#[test]
fn what_cannot_be_read_is_an_error() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let found = reason(Coo::<f32>::read_matrix_market(Failing));
    assert_eq!(found, "line 1: the file cannot be read: the disk is gone");
    let found = reason(Coo::<f32>::read_matrix_market(std::io::repeat(b'%')));
    assert_eq!(found, "line 1: it has more than 65536 bytes");
}

fn comes_back<V: MatrixMarketValue + PartialEq + std::fmt::Debug, I: CsrIndex + PartialEq + std::fmt::Debug>(
    value: impl Fn(u64) -> V,
) -> Result<()> {
    let mut random = Random::new(31);
    for (rows, columns, len) in [(0, 0, 0), (1, 1, 1), (7, 900, 50), (1 << 32, 3, 40)] {
        let mut triplets = Coo::<V, I>::new((rows, columns))?;
        for _ in 0..len {
            let (row, column) = (random.below(rows as u64) as usize, random.below(columns as u64) as usize);
            triplets.push(row, column, value(random.bits()))?;
        }
        let mut file = Vec::new();
        triplets.write_matrix_market(&mut file)?;
        assert_eq!(Coo::read_matrix_market(&file[..])?, triplets);
    }
    Ok(())
}

#[test]
fn what_is_written_is_read_again_as_it_was() -> Result<()> {
    comes_back::<f64, u32>(|bits| f64::from_bits(bits & !(1 << 62)))?;
    comes_back::<f32, u64>(|bits| f32::from_bits(bits as u32 & !(1 << 30)))?;
    comes_back::<f16, u32>(|bits| f16::from_bits(bits as u16 & !(1 << 14)))?;
    comes_back::<bf16, u32>(|bits| bf16::from_bits(bits as u16 & !(1 << 14)))?;
    comes_back::<i64, u32>(|bits| bits as i64)?;
    comes_back::<u8, u32>(|bits| bits as u8)?;
    comes_back::<bool, u64>(|_| true)?;
    comes_back::<Complex<f64>, u32>(|bits| {
        Complex::new(f64::from_bits(bits & !(1 << 62)), f64::from_bits(bits.rotate_left(9) & !(1 << 62)))
    })?;
    let mut edges = Coo::<bool>::new((2, 2))?;
    edges.push(1, 0, false)?;
    let found = reason(edges.write_matrix_market(Vec::new()));
    assert_eq!(found, "the value at (1, 0) is false, which a pattern cannot say");
    Ok(())
}

#[test]
fn triplets_keep_their_order() -> Result<()> {
    let triplets = [(2, 7, 1.5f32), (0, 3, -2.0), (2, 7, 0.5), (1, 0, 4.0)];
    let mut narrow = Coo::<f32>::new((3, 8))?;
    let mut wide = Coo::<f32, u64>::new((3, 1 << 40))?;
    for (row, column, value) in triplets {
        narrow.push(row, column, value)?;
        wide.push(row, column << 32, value)?;
    }
    assert_eq!((narrow.row_indices(), narrow.column_indices()), (&[2, 0, 2, 1][..], &[7, 3, 7, 0][..]));
    assert_eq!(wide.row_indices(), [2, 0, 2, 1]);
    assert_eq!(wide.column_indices(), [7u64 << 32, 3 << 32, 7 << 32, 0]);
    assert_eq!((narrow.values(), wide.values()), (&[1.5, -2.0, 0.5, 4.0][..], &[1.5, -2.0, 0.5, 4.0][..]));
    assert!(narrow.iter().eq(triplets));
    assert!(wide.iter().eq(triplets.map(|(row, column, value)| (row, column << 32, value))));
    Ok(())
}

#[test]
fn triplets_outside_are_not_taken() {
    let mut triplets = Coo::<f32>::new((2, 3)).unwrap();
    triplets.push(1, 2, 1.0).unwrap();
    assert_eq!(reason(triplets.push(2, 0, 1.0)), "(2, 0) is outside 2 × 3");
    assert_eq!(reason(triplets.push(0, 3, 1.0)), "(0, 3) is outside 2 × 3");
    assert_eq!(triplets.len(), 1);
    assert_eq!(reason(Coo::<f32>::new((1 << 33, 1))), "indices of 32 bits cannot number 8589934592 rows");
}

#[test]
fn a_file_becomes_a_matrix_and_the_matrix_its_triplets_sanitize() -> Result<()> {
    let stream = stream()?;
    // The diagonal has 2, in two parts in one place, and the places beside it have -1.
    let text = "%%MatrixMarket matrix coordinate real symmetric\n4 4 8\n\
        1 1 2\n2 1 -1\n2 2 2\n3 2 -1\n4 3 -1\n3 3 1.5\n3 3 0.5\n4 4 2\n";
    let a = Csr::from_coo(&stream, &read::<f64>(text)?, Add)?;
    assert_eq!(a.offsets().to_vec()?, [0, 2, 5, 8, 10]);
    let (x, mut y) = (stream.buffer_from(&[1.0, 2.0, 4.0, 8.0])?, stream.buffer_zeroed::<f64>(4)?);
    spmv(&stream, &a, &x, &mut y)?;
    assert_eq!(y.to_vec()?, [0.0, -1.0, -2.0, 12.0]);
    let expected = [(0, 0, 2.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 2.0), (1, 2, -1.0)];
    let expected = expected.into_iter().chain([(2, 1, -1.0), (2, 2, 2.0), (2, 3, -1.0), (3, 2, -1.0), (3, 3, 2.0)]);
    assert!(a.to_coo()?.iter().eq(expected));
    Ok(())
}

/// The matrix of the example `poisson` is the matrix that its comment describes.
#[test]
fn the_matrix_of_the_example_is_a_laplacian() -> Result<()> {
    let file = include_bytes!("../../examples/poisson/l_shape.mtx");
    let found: Coo<f64> = Coo::read_matrix_market(&file[..])?;
    let is_point = |i: i32, j: i32| (0..24).contains(&i) && (0..24).contains(&j) && (i < 12 || j < 12);
    let points: Vec<(i32, i32)> = (0..24 * 24).map(|at| (at / 24, at % 24)).filter(|&(i, j)| is_point(i, j)).collect();
    let mut expected = std::collections::BTreeSet::new();
    for (number, &(i, j)) in points.iter().enumerate() {
        expected.insert((number, number, 4));
        for neighbour in [(i - 1, j), (i, j - 1), (i, j + 1), (i + 1, j)] {
            if let Some(other) = points.iter().position(|&point| point == neighbour) {
                expected.insert((number, other, -1));
            }
        }
    }
    assert_eq!((found.rows(), found.columns(), found.len()), (points.len(), points.len(), expected.len()));
    let found: std::collections::BTreeSet<_> =
        found.iter().map(|(row, column, value)| (row, column, value as i32)).collect();
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn halves_are_rounded_once() {
    let text = |value: &str| format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n");
    let value = |text: String| read::<f16>(&text).unwrap().iter().next().unwrap().2.to_f32();
    // This is just above the middle of two numbers, by less than an f32 can show.
    assert_eq!(value(text("1.000488281250001")), 1.0 + f16::EPSILON.to_f32());
    assert_eq!(value(text("-1.000488281250001")), -1.0 - f16::EPSILON.to_f32());
    // This is above by less than an f64 can show. Another number is just below a middle.
    assert_eq!(value(text("1.00048828125000000000000001")), 1.0 + f16::EPSILON.to_f32());
    assert_eq!(value(text("-100.14648437499999999999999E-2")), -1.0 - f16::EPSILON.to_f32());
    assert_eq!(value(text("1.00146484375")), 1.0 + 2.0 * f16::EPSILON.to_f32());
    for exact in ["1.00048828125", "+001.000488281250", "100048828125e-11", ".100048828125E+1", "0.0100048828125e02"] {
        assert_eq!(value(text(exact)), 1.0);
    }
    assert_eq!(value(text("65519.999")), 65504.0);
    assert!(read::<f16>(&text("65520")).is_err());
    assert_eq!(value(text("inf")), f32::INFINITY);
    assert_eq!(value(text("0")), 0.0);
    assert_eq!(value(text("0e99999999999999999999")), 0.0);
    // This is half of the smallest number, and the next is a little more.
    assert_eq!(value(text("2.98023223876953125e-8")), 0.0);
    assert_eq!(value(text("2.98023223876953125000000000001e-8")), 2.0f32.powi(-24));
    assert_eq!(value(text("1e-400")), 0.0);
    let finer = read::<bf16>(&text("1.00390625000000000000000001")).unwrap();
    assert_eq!(finer.values()[0].to_f32(), 1.0078125);
    assert_eq!(read::<bf16>(&text("1.00390625000001")).unwrap().iter().next().unwrap().2.to_f32(), 1.0078125);
}
