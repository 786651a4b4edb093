//! Sparse matrices in Matrix Market files.

use std::cmp::Ordering;
use std::io::{BufRead, BufReader, Read, Write};

use super::coo::Coo;
use super::csr::CsrIndex;
use super::wrong;
use crate::{Arithmetic, Complex, Element, Result, bf16, f16};

/// The largest number of bytes of a line that is read. The format allows 1024.
const LINE: usize = 1 << 16;

/// The type in which a file has its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(unreachable_pub, reason = "sealed")]
pub enum Field {
    Real,
    Integer,
    Complex,
    Pattern,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::Complex => "complex",
            Self::Pattern => "pattern",
        }
    }

    /// The number of numbers that a value has.
    fn numbers(self) -> usize {
        match self {
            Self::Real | Self::Integer => 1,
            Self::Complex => 2,
            Self::Pattern => 0,
        }
    }
}

/// What an entry says about the entry across the diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(unreachable_pub, reason = "sealed")]
pub enum Symmetry {
    General,
    Symmetric,
    SkewSymmetric,
    Hermitian,
}

impl Symmetry {
    fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::SkewSymmetric => "skew-symmetric",
            Self::Hermitian => "Hermitian",
        }
    }
}

mod sealed {
    use super::{Field, Symmetry};

    /// How values are read and written.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Text: Sized {
        /// The fields that can be read. The first one is written.
        const FIELDS: &'static [Field];
        /// Makes a value of as many numbers as the field has.
        fn read(numbers: &[&str]) -> Option<Self>;
        /// Appends the numbers, each after a space. Returns `None` if the field has no such value.
        fn write(self, line: &mut String) -> Option<()>;
        /// The value across the diagonal, if there is one.
        fn across(self, symmetry: Symmetry) -> Option<Self>;
        /// Returns whether the value can be on the diagonal.
        fn on_diagonal(self, symmetry: Symmetry) -> bool;
    }
}
use sealed::Text;

/// Values that [`Coo::read_matrix_market`] reads.
///
/// | values | fields that are read | written as |
/// |---|---|---|
/// | `f16`, `bf16`, `f32`, `f64` | real, integer, pattern | real |
/// | `i8` to `u64` | integer, pattern | integer |
/// | `Complex<f32>`, `Complex<f64>` | complex, real, integer, pattern | complex |
/// | `bool` | pattern | pattern |
///
/// The entries of a pattern are 1, or `true`.
pub trait MatrixMarketValue: Element + Text {}

impl<T: Element + Text> MatrixMarketValue for T {}

/// Parses a number. The result is infinite only if the text says so.
fn float<T: Into<f64> + Copy>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let number = parse(text)?;
    let finite = number.into().abs() != f64::INFINITY;
    (finite || !text.bytes().any(|byte| byte.is_ascii_digit())).then_some(number)
}

/// Parses a number that will be rounded to a half. If the text lies between two numbers, the last bit of the result is odd, so that the
/// half is the one nearest to the text.
fn odd(text: &str) -> Option<f32> {
    let exact: f64 = text.parse().ok()?;
    let near = exact as f32;
    if exact == 0.0 || !exact.is_finite() {
        return Some(near);
    }
    let (order, bits) = (f64::from(near).abs().total_cmp(&exact.abs()), near.to_bits());
    // These are midpoints between two numbers of f16, of bf16, and of small numbers of f16. The text may differ from them by less than 64
    // bits show.
    let middle = matches!(bits.trailing_zeros(), 12 | 15) || near.abs() < 6.2e-5;
    let order = if order.is_eq() && middle { digits(&format!("{near:.150e}")).cmp(&digits(text)) } else { order };
    Some(match order {
        Ordering::Less => f32::from_bits(bits | 1),
        Ordering::Equal => near,
        Ordering::Greater => f32::from_bits((bits - 1) | 1),
    })
}

/// Returns the digits of a number other than 0, without zeros at either end, and the place of the point, as a number of digits after their
/// beginning. The results order as the magnitudes of the numbers do.
fn digits(number: &str) -> (i64, String) {
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let number = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    let zeros = (all.len() - digits.len()) as i64;
    // An exponent of more bits belongs to no number that is finite and not 0.
    let point = exponent.parse::<i64>().unwrap_or(0) + whole.len() as i64 - zeros;
    (point, digits.trim_end_matches('0').to_owned())
}

macro_rules! floats {
    ($($t:ty, $parse:expr;)*) => {$(
        impl Text for $t {
            const FIELDS: &'static [Field] = &[Field::Real, Field::Integer, Field::Pattern];

            fn read(numbers: &[&str]) -> Option<Self> {
                numbers.first().map_or(Some(Self::ONE), |text| float(text, $parse))
            }

            fn write(self, line: &mut String) -> Option<()> {
                line.push_str(&format!(" {self:e}"));
                Some(())
            }

            fn across(self, symmetry: Symmetry) -> Option<Self> {
                Some(if symmetry == Symmetry::SkewSymmetric { -self } else { self })
            }

            fn on_diagonal(self, symmetry: Symmetry) -> bool {
                symmetry != Symmetry::SkewSymmetric
            }
        }
    )*};
}
floats! {
    f16, |text| odd(text).map(f16::from_f32);
    bf16, |text| odd(text).map(bf16::from_f32);
    f32, |text| text.parse().ok();
    f64, |text| text.parse().ok();
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Text for $t {
            const FIELDS: &'static [Field] = &[Field::Integer, Field::Pattern];

            fn read(numbers: &[&str]) -> Option<Self> {
                numbers.first().map_or(Some(1), |text| text.parse().ok())
            }

            fn write(self, line: &mut String) -> Option<()> {
                line.push_str(&format!(" {self}"));
                Some(())
            }

            fn across(self, symmetry: Symmetry) -> Option<Self> {
                if symmetry == Symmetry::SkewSymmetric { self.checked_neg() } else { Some(self) }
            }

            fn on_diagonal(self, symmetry: Symmetry) -> bool {
                symmetry != Symmetry::SkewSymmetric
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Text for Complex<$t> {
            const FIELDS: &'static [Field] = &[Field::Complex, Field::Real, Field::Integer, Field::Pattern];

            fn read(numbers: &[&str]) -> Option<Self> {
                let part = |text: &&str| float(text, |text| text.parse().ok());
                let re = numbers.first().map_or(Some(1.0), part)?;
                let im = numbers.get(1).map_or(Some(0.0), part)?;
                Some(Self { re, im })
            }

            fn write(self, line: &mut String) -> Option<()> {
                line.push_str(&format!(" {:e} {:e}", self.re, self.im));
                Some(())
            }

            fn across(self, symmetry: Symmetry) -> Option<Self> {
                Some(match symmetry {
                    Symmetry::General | Symmetry::Symmetric => self,
                    Symmetry::SkewSymmetric => -self,
                    Symmetry::Hermitian => self.conj(),
                })
            }

            fn on_diagonal(self, symmetry: Symmetry) -> bool {
                match symmetry {
                    Symmetry::General | Symmetry::Symmetric => true,
                    Symmetry::SkewSymmetric => false,
                    Symmetry::Hermitian => self.im == 0.0,
                }
            }
        }
    )*};
}
complex!(f32, f64);

impl Text for bool {
    const FIELDS: &'static [Field] = &[Field::Pattern];

    fn read(_: &[&str]) -> Option<Self> {
        Some(true)
    }

    fn write(self, _: &mut String) -> Option<()> {
        self.then_some(())
    }

    fn across(self, _: Symmetry) -> Option<Self> {
        Some(self)
    }

    fn on_diagonal(self, symmetry: Symmetry) -> bool {
        symmetry != Symmetry::SkewSymmetric
    }
}

impl<V: MatrixMarketValue, I: CsrIndex> Coo<V, I> {
    /// Reads a matrix in Matrix Market's coordinate format, to the end of the file.
    ///
    /// The matrix may be general, symmetric, skew-symmetric or Hermitian. Unless it is general, the file has the lower triangle, and the
    /// reader adds after each entry off the diagonal the entry across it. Triplets keep the order of the file. Rows and columns count from
    /// 0. [`MatrixMarketValue`] says which values can be read.
    ///
    /// Lines end with LF or CRLF, and have up to 65,536 bytes. Comments and blank lines may be anywhere after the first line. The memory
    /// that is taken depends on the lines of the file, not on the sizes that the file declares.
    ///
    /// Reference: Boisvert, Pozo and Remington, *The Matrix Market exchange formats*, 1996.
    ///
    /// ```
    /// use kernel_primitives::algorithms::Coo;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 2.0\n2 1 -1.0\n";
    /// let triplets = Coo::<f32>::read_matrix_market(text.as_bytes())?;
    /// assert_eq!(triplets.iter().collect::<Vec<_>>(), [(0, 0, 2.0), (1, 0, -1.0), (0, 1, -1.0)]);
    ///
    /// let text = "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 2.0\n";
    /// let error = Coo::<f32>::read_matrix_market(text.as_bytes()).unwrap_err();
    /// assert_eq!(error.to_string(), "Coo::read_matrix_market: line 3: row 3 is not one of 1 to 2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) with the line if the file cannot be read, if it has another format, if
    /// it has values that are no `V`, if it has entries outside the matrix, if it has more or fewer entries than its size line says, or if
    /// `I` cannot number the rows and columns. Unless the matrix is general, also returns it if the matrix is not square, if an entry is
    /// above the diagonal, if the symmetry excludes a value on the diagonal, or if the value across the diagonal is no `V`.
    pub fn read_matrix_market(reader: impl Read) -> Result<Self> {
        let mut lines = Lines { reader: BufReader::new(reader), number: 0, bytes: Vec::new() };
        read(&mut lines).map_err(|reason| {
            let line = lines.number;
            wrong("Coo::read_matrix_market", format!("line {line}: {reason}"))
        })
    }

    /// Writes a general matrix in Matrix Market's coordinate format, triplet by triplet.
    ///
    /// Floats are written with enough digits to tell them from their neighbours, so that a reader finds the same values.
    ///
    /// ```
    /// use kernel_primitives::algorithms::Coo;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let mut triplets = Coo::<f32>::new((2, 3))?;
    /// triplets.push(1, 2, 0.5)?;
    /// let mut text = Vec::new();
    /// triplets.write_matrix_market(&mut text)?;
    /// assert_eq!(text, b"%%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 5e-1\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if the writer fails, or if a value is `false`, which a pattern cannot
    /// express.
    pub fn write_matrix_market(&self, mut writer: impl Write) -> Result<()> {
        let call = "Coo::write_matrix_market";
        let mut write = |text: &str| writer.write_all(text.as_bytes()).map_err(|error| wrong(call, error.to_string()));
        let field = V::FIELDS[0].name();
        write(&format!("%%MatrixMarket matrix coordinate {field} general\n"))?;
        write(&format!("{} {} {}\n", self.rows(), self.columns(), self.len()))?;
        for (row, column, value) in self.iter() {
            let mut line = format!("{} {}", row + 1, column + 1);
            if value.write(&mut line).is_none() {
                return Err(wrong(
                    call,
                    format!("the value at ({row}, {column}) is false, which a pattern cannot say"),
                ));
            }
            line.push('\n');
            write(&line)?;
        }
        writer.flush().map_err(|error| wrong(call, error.to_string()))
    }
}

/// The lines of a file.
struct Lines<R> {
    reader: BufReader<R>,
    /// The number of lines read.
    number: u64,
    bytes: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Returns the next line of any kind, or `None` at the end of the file.
    fn any(&mut self) -> Result<Option<&[u8]>, String> {
        self.bytes.clear();
        self.number += 1;
        // A line has up to two bytes more at its end.
        let most = self.reader.by_ref().take(LINE as u64 + 2);
        { most }.read_until(b'\n', &mut self.bytes).map_err(|error| format!("the file cannot be read: {error}"))?;
        let line = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        if line.strip_suffix(b"\r").unwrap_or(line).len() > LINE {
            return Err(format!("it has more than {LINE} bytes"));
        }
        Ok(Some(&self.bytes[..]).filter(|bytes| !bytes.is_empty()))
    }

    /// Returns the words of the next line that is neither blank nor a comment, or `None` at the end of the file.
    fn words(&mut self) -> Result<Option<Vec<&str>>, String> {
        loop {
            match self.any()? {
                None => return Ok(None),
                Some(bytes) if bytes.starts_with(b"%") || bytes.trim_ascii().is_empty() => {}
                Some(_) => break,
            }
        }
        words(&self.bytes).map(Some)
    }
}

fn words(line: &[u8]) -> Result<Vec<&str>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is no text".to_owned())?;
    Ok(text.split_ascii_whitespace().collect())
}

/// A part of the file, as an error shows it.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    format!("`{}{}`", start.escape_debug(), if start.len() < text.len() { "…" } else { "" })
}

/// Reads the matrix, or returns what is wrong in the last line that was read.
fn read<V: MatrixMarketValue, I: CsrIndex>(lines: &mut Lines<impl Read>) -> Result<Coo<V, I>, String> {
    let (field, symmetry) = header(words(lines.any()?.unwrap_or_default())?)?;
    if !V::FIELDS.contains(&field) {
        return Err(format!("values of {} cannot be {}", std::any::type_name::<V>(), field.name()));
    }

    let sizes = lines.words()?.ok_or("the file ends before its size line")?;
    if sizes.len() != 3 {
        return Err(format!("the size line has {} numbers, not 3: rows, columns and entries", sizes.len()));
    }
    let size = |word: &str| word.parse::<usize>().map_err(|_| format!("{} is no size of a matrix", shown(word)));
    let [rows, columns, entries] = [size(sizes[0])?, size(sizes[1])?, size(sizes[2])?];
    if symmetry != Symmetry::General && rows != columns {
        return Err(format!("a matrix of {rows} × {columns} cannot be {}", symmetry.name()));
    }
    let mut triplets = Coo::shaped(rows, columns)?;

    let mut count = 0;
    while let Some(words) = lines.words()? {
        if count == entries {
            return Err(format!("it is one entry more than the {entries} of the size line"));
        }
        count += 1;
        let (row, column, value) = entry::<V>(&words, (rows, columns), field, symmetry)?;
        triplets.put(row, column, value)?;
        if symmetry != Symmetry::General && row != column {
            let across = value.across(symmetry).ok_or_else(|| {
                let name = std::any::type_name::<V>();
                format!("{} and its negative are not both values of {name}", named(row, column))
            })?;
            triplets.put(column, row, across)?;
        }
    }
    if count < entries {
        return Err(format!("the file ends after {count} of {entries} entries"));
    }
    Ok(triplets)
}

/// Reads the row and the column of an entry, which count from 0, and its value, or returns what is wrong in its line.
fn entry<V: MatrixMarketValue>(
    words: &[&str],
    (rows, columns): (usize, usize),
    field: Field,
    symmetry: Symmetry,
) -> Result<(usize, usize, V), String> {
    let numbers = 2 + field.numbers();
    if words.len() != numbers {
        let name = field.name();
        return Err(format!("it has {} numbers, and an entry of a {name} matrix has {numbers}", words.len()));
    }
    let place = |what: &str, word: &str, most: usize| match word.parse::<usize>() {
        Ok(place) if (1..=most).contains(&place) => Ok(place - 1),
        Ok(place) => Err(format!("{what} {place} is not one of 1 to {most}")),
        Err(_) => Err(format!("{} is no number of a {what}", shown(word))),
    };
    let (row, column) = (place("row", words[0], rows)?, place("column", words[1], columns)?);
    let value = V::read(&words[2..])
        .ok_or_else(|| format!("{} is no value of {}", shown(&words[2..].join(" ")), std::any::type_name::<V>()))?;
    if symmetry != Symmetry::General && row < column {
        let name = symmetry.name();
        return Err(format!("{} is above the diagonal of a {name} matrix", named(row, column)));
    }
    if row == column && !value.on_diagonal(symmetry) {
        let name = symmetry.name();
        return Err(format!("{} is on the diagonal of a {name} matrix, which has no such value", named(row, column)));
    }
    Ok((row, column, value))
}

/// The name of an entry in errors.
fn named(row: usize, column: usize) -> String {
    format!("entry ({}, {})", row + 1, column + 1)
}

/// Reads the first line.
fn header(words: Vec<&str>) -> Result<(Field, Symmetry), String> {
    let is = |place: usize, word: &str| words.get(place).is_some_and(|found| found.eq_ignore_ascii_case(word));
    let found = |place: usize| words.get(place).map_or("nothing".to_owned(), |word| shown(word));
    if !is(0, "%%MatrixMarket") {
        return Err("a Matrix Market file begins with `%%MatrixMarket`".to_owned());
    }
    if !is(1, "matrix") || !is(2, "coordinate") {
        let (object, format) = (found(1), found(2));
        return Err(format!("it has {object} in the format {format}; sparse matrices are `matrix` `coordinate`"));
    }
    let fields = [Field::Real, Field::Integer, Field::Complex, Field::Pattern];
    let field = fields.into_iter().find(|field| is(3, field.name()));
    let field = field.or_else(|| is(3, "double").then_some(Field::Real));
    let field = field.ok_or_else(|| format!("{} is none of `real`, `integer`, `complex` and `pattern`", found(3)))?;
    let symmetries = [Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric, Symmetry::Hermitian];
    let symmetry = symmetries.into_iter().find(|symmetry| is(4, symmetry.name()));
    let symmetry = symmetry
        .ok_or_else(|| format!("{} is none of `general`, `symmetric`, `skew-symmetric` and `hermitian`", found(4)))?;
    if words.len() > 5 {
        return Err(format!("the first line goes on with {}", found(5)));
    }
    let fits = match symmetry {
        Symmetry::General | Symmetry::Symmetric => true,
        Symmetry::SkewSymmetric => field != Field::Pattern,
        Symmetry::Hermitian => field == Field::Complex,
    };
    if !fits {
        return Err(format!("a {} matrix cannot be {}", field.name(), symmetry.name()));
    }
    Ok((field, symmetry))
}
