//! The header: a Python dictionary of three entries, read as text.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use primitives_host::Result;

use super::array::NpyOrder;
use super::element::NpyType;
use super::read::Input;
use super::{MAX_AXES, elements};

/// The description of an array in a file: the element type, the shape and the order.
///
/// ```
/// use kernel_primitives::interop::npy::{NpyHeader, NpyType};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let file = b"\x93NUMPY\x01\x00\x3c\x00{'descr': '>c16', 'fortran_order': True, 'shape': (0, 7)}  \n";
/// let header = NpyHeader::read_from(&file[..])?;
/// assert_eq!((header.element(), header.shape(), header.is_big_endian()), (NpyType::Complex128, &[0, 7][..], true));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    pub(super) element: NpyType,
    pub(super) big_endian: bool,
    pub(super) order: NpyOrder,
    pub(super) shape: Vec<usize>,
    /// The place of the entry's value in the file.
    pub(super) descr_at: u64,
    pub(super) shape_at: u64,
    pub(super) data_at: u64,
}

impl NpyHeader {
    /// Reads the header of a file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Npy`](crate::Error::Npy) with the byte and the field if the file cannot be read, if it is not a `.npy` file, or if
    /// it has another version. Also returns it if the header is not one that NumPy writes, if it is longer than the file, or if it has an
    /// element type that [`NpyType`] does not have.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Input::<File>::open(path.as_ref())?.header()
    }

    /// Reads a header, and nothing after it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read).
    pub fn read_from(input: impl Read) -> Result<Self> {
        Input::new(input).header()
    }

    /// Returns the element type.
    pub fn element(&self) -> NpyType {
        self.element
    }

    /// Returns whether the bytes of an element are in big endian.
    pub fn is_big_endian(&self) -> bool {
        self.big_endian
    }

    /// Returns the order of the elements in the file.
    pub fn order(&self) -> NpyOrder {
        self.order
    }

    /// Returns the extents, outermost first. A single value has none.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the byte of the file at which the elements begin.
    pub fn data_offset(&self) -> u64 {
        self.data_at
    }
}

/// A mistake, with the byte of the text and the entry.
pub(super) struct Mistake {
    pub(super) at: usize,
    pub(super) field: &'static str,
    pub(super) reason: String,
}

/// Reads the text of a header. It begins in the file at byte `base`.
pub(super) fn parse(text: &[u8], base: u64) -> Result<NpyHeader, Mistake> {
    let mut text = Text { bytes: text, at: 0, field: "header" };
    let (mut descr, mut order, mut shape) = (None, None, None);
    text.expect(b'{')?;
    while !text.takes(b'}') {
        text.field = "header";
        let key_at = text.at;
        let key = text.string()?;
        text.expect(b':')?;
        text.skip_space();
        let at = text.at;
        let again = match key.as_str() {
            "descr" => {
                text.field = "descr";
                descr.replace((text.descr()?, at)).is_some()
            }
            "fortran_order" => {
                text.field = "fortran_order";
                order.replace(text.order()?).is_some()
            }
            "shape" => {
                text.field = "shape";
                shape.replace((text.shape()?, at)).is_some()
            }
            _ => {
                let reason = format!("{} is none of 'descr', 'fortran_order' and 'shape'", shown(&key));
                return Err(text.mistake(key_at, reason));
            }
        };
        if again {
            return Err(text.mistake(key_at, "it is there twice".into()));
        }
        text.field = "header";
        if !text.takes(b',') {
            text.expect(b'}')?;
            break;
        }
    }
    text.field = "header";
    text.skip_space();
    if text.at < text.bytes.len() {
        return Err(text.mistake(text.at, "there is more after the dictionary".into()));
    }
    let missing = |field| Mistake { at: 0, field, reason: "the header has no such entry".into() };
    let ((element, big_endian), descr_at) = descr.ok_or_else(|| missing("descr"))?;
    let order = order.ok_or_else(|| missing("fortran_order"))?;
    let (shape, shape_at) = shape.ok_or_else(|| missing("shape"))?;
    let (descr_at, shape_at) = (base + descr_at as u64, base + shape_at as u64);
    let data_at = base + text.bytes.len() as u64;
    Ok(NpyHeader { element, big_endian, order, shape, descr_at, shape_at, data_at })
}

/// Returns text of the file in the form for messages: short, and without characters that control a terminal.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("'{}{}'", short.escape_debug(), if short.len() < text.len() { "…" } else { "" })
}

struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The field that is being read.
    field: &'static str,
}

impl Text<'_> {
    fn mistake(&self, at: usize, reason: String) -> Mistake {
        Mistake { at, field: self.field, reason }
    }

    fn skip_space(&mut self) {
        let space = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += space;
    }

    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let there = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), Mistake> {
        if self.takes(byte) { Ok(()) } else { Err(self.other_than(&format!("`{}`", byte as char))) }
    }

    fn other_than(&self, expected: &str) -> Mistake {
        let rest = &self.bytes[self.at..];
        let reason = if rest.is_empty() {
            format!("the header ends where {expected} is expected")
        } else {
            // The bytes are UTF-8, or Latin-1 in old versions. For Latin-1, bytes that are not ASCII are not shown.
            format!(
                "{} stands where {expected} is expected",
                shown(&String::from_utf8_lossy(&rest[..rest.len().min(164)]))
            )
        };
        self.mistake(self.at, reason)
    }

    /// Reads a string literal without escapes.
    fn string(&mut self) -> Result<String, Mistake> {
        self.skip_space();
        let quote = match self.bytes.get(self.at) {
            Some(&quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.other_than("a text")),
        };
        let rest = &self.bytes[self.at + 1..];
        match rest.iter().position(|&byte| byte == quote || byte == b'\\') {
            Some(end) if rest[end] == quote => {
                self.at += end + 2;
                Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
            }
            Some(end) => Err(self.mistake(self.at + 1 + end, "a text with a backslash".into())),
            None => Err(self.mistake(self.at, "a text without an end".into())),
        }
    }

    /// Reads a word or a number.
    fn word(&mut self) -> &str {
        let bytes = &self.bytes[self.at..];
        let word = &bytes[..bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()];
        self.at += word.len();
        str::from_utf8(word).unwrap_or_default()
    }

    fn descr(&mut self) -> Result<(NpyType, bool), Mistake> {
        let at = self.at;
        if self.bytes.get(at) == Some(&b'[') {
            let advice = "the elements have fields: save one of them, `np.save(file, array['name'])`";
            return Err(self.mistake(at, advice.into()));
        }
        let descr = self.string()?;
        NpyType::parse(&descr).ok_or_else(|| {
            let advice = match descr.as_bytes() {
                [_, b'V', b'2'] => {
                    "; raw bytes are what NumPy writes for a bf16 of other packages: save `array.astype('float32')`"
                }
                [_, b'O'] => "; Python objects are not read",
                [_, b'f', ..] | [_, b'c', ..] => "; save `array.astype('float64')`, or 'complex128'",
                _ => "",
            };
            let all = "bool, int8 to uint64, float16 to float64, complex64 and complex128";
            self.mistake(at, format!("the elements are {}, not {all}{advice}", shown(&descr)))
        })
    }

    fn order(&mut self) -> Result<NpyOrder, Mistake> {
        let at = self.at;
        match self.word() {
            "True" => Ok(NpyOrder::Fortran),
            "False" => Ok(NpyOrder::C),
            _ => {
                self.at = at;
                Err(self.other_than("True or False"))
            }
        }
    }

    fn shape(&mut self) -> Result<Vec<usize>, Mistake> {
        let at = self.at;
        self.expect(b'(')?;
        let (mut shape, mut has_comma) = (Vec::new(), false);
        while !self.takes(b')') {
            if shape.len() == MAX_AXES {
                return Err(self.mistake(at, format!("more than {MAX_AXES} axes")));
            }
            shape.push(self.extent()?);
            has_comma = self.takes(b',');
            if !has_comma {
                self.expect(b')')?;
                break;
            }
        }
        if shape.len() == 1 && !has_comma {
            let reason = format!("({}) is a number and no shape, which is written ({0},)", shape[0]);
            return Err(self.mistake(at, reason));
        }
        if elements(&shape).is_none() {
            return Err(self.mistake(at, format!("{shape:?} has more elements than can be counted")));
        }
        Ok(shape)
    }

    fn extent(&mut self) -> Result<usize, Mistake> {
        self.skip_space();
        let at = self.at;
        // Python 2 writes `3L`.
        let word = self.word();
        let digits = word.strip_suffix('L').unwrap_or(word);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(extent) if is_number => Ok(extent),
            _ if is_number => {
                let reason = format!("an extent of {} is more than can be counted", shown(digits));
                Err(self.mistake(at, reason))
            }
            _ => {
                self.at = at;
                Err(self.other_than("an extent"))
            }
        }
    }
}
