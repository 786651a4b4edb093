//! The numbers to work on, from a `.npy` file or from the one that comes with the example.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// See `DATA.md`. Part of the program, so that it runs anywhere.
const CO2: &[u8] = include_bytes!("co2.npy");

/// A series of finite values, at least one.
pub(crate) struct Series {
    /// Where it is from.
    pub(crate) name: String,
    pub(crate) values: Vec<f32>,
    /// What one of the values is called, in the plural.
    pub(crate) items: &'static str,
    /// The unit with a space before it, or nothing.
    pub(crate) unit: &'static str,
}

impl Series {
    /// The weekly CO2 record of Mauna Loa.
    pub(crate) fn co2() -> Result<Self, Box<dyn Error>> {
        let name = "CO2 at Mauna Loa, weekly, March 1958 to December 2001".to_owned();
        Ok(Self { name, values: values(CO2)?, items: "weeks", unit: " ppm" })
    }

    /// The array in a `.npy` file, of any shape.
    pub(crate) fn from_file(path: &Path) -> Result<Self, Box<dyn Error>> {
        let name = path.display().to_string();
        let values = File::open(path).map_err(Into::into).and_then(|file| values(BufReader::new(file)));
        let values = values.map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name, values, items: "values", unit: "" })
    }
}

/// Bytes of the longest header that is read. NumPy writes some 120 for an array of numbers.
const HEADER: usize = 1 << 16;

/// The elements in the order of the file; `float64` is rounded to `float32`.
///
/// Memory is taken for what the file has, not for what its header promises.
pub(crate) fn values(mut npy: impl Read) -> Result<Vec<f32>, Box<dyn Error>> {
    let header = header(&mut npy)?;
    let dtype = entry(&header, "descr")?;
    let (size, little) = match dtype.trim_matches(['\'', '"']) {
        "<f4" => (4, true),
        "<f8" => (8, true),
        ">f4" => (4, false),
        ">f8" => (8, false),
        _ => {
            let dtype: String = dtype.chars().take(40).collect();
            return Err(format!("its elements are {dtype}, not float32 ('<f4') or float64 ('<f8')").into());
        }
    };
    let shape = entry(&header, "shape")?;
    let bytes = elements(shape).and_then(|elements| elements.checked_mul(size));
    let bytes = bytes.ok_or_else(|| format!("its shape is {shape}, which no array has"))?;
    let mut data = Vec::new();
    npy.take(bytes).read_to_end(&mut data)?;
    if (data.len() as u64) < bytes {
        return Err(format!("the array is incomplete: it has {} of {bytes} bytes", data.len()).into());
    }
    let single = |bytes: &[u8]| {
        let bytes = bytes.try_into().expect("four bytes");
        if little { f32::from_le_bytes(bytes) } else { f32::from_be_bytes(bytes) }
    };
    let double = |bytes: &[u8]| {
        let bytes = bytes.try_into().expect("eight bytes");
        if little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) }
    };
    let values: Vec<f32> = match size {
        4 => data.chunks_exact(4).map(single).collect(),
        _ => data.chunks_exact(8).map(|bytes| double(bytes) as f32).collect(),
    };
    if values.is_empty() {
        return Err("the array is empty, and nothing has no mean".into());
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(i) => Err(format!("element {i} is {} as float32: remove it, or it would be the mean", values[i]).into()),
        None => Ok(values),
    }
}

/// The text between the magic bytes and the elements: a Python dictionary.
fn header(npy: &mut impl Read) -> Result<String, Box<dyn Error>> {
    let mut bytes = |count: usize, what: &str| -> Result<Vec<u8>, Box<dyn Error>> {
        let mut bytes = Vec::new();
        npy.by_ref().take(count as u64).read_to_end(&mut bytes)?;
        if bytes.len() < count { Err(what.into()) } else { Ok(bytes) }
    };
    let magic = bytes(8, "no .npy file")?;
    if !magic.starts_with(b"\x93NUMPY") {
        return Err("no .npy file".into());
    }
    let length = match magic[6] {
        1 => bytes(2, "the header is incomplete")?,
        2 | 3 => bytes(4, "the header is incomplete")?,
        version => return Err(format!("its format has version {version}: there are 1, 2 and 3").into()),
    };
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | byte as usize);
    if length > HEADER {
        return Err(format!("its header has {length} bytes, where some hundred are usual").into());
    }
    let text = String::from_utf8(bytes(length, "the header is incomplete")?);
    Ok(text.map_err(|error| format!("its header is no text: {error}"))?)
}

/// The value of a key: through the closing bracket of a tuple or a list, else up to the comma.
fn entry<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let after = |quote: char| header.split_once(&format!("{quote}{key}{quote}"))?.1.trim_start().strip_prefix(':');
    let value = after('\'').or_else(|| after('"')).ok_or_else(|| format!("its header has no '{key}'"))?.trim_start();
    let end = match value.chars().next() {
        Some('(') => value.find(')').map(|end| end + 1),
        Some('[') => value.rfind(']').map(|end| end + 1),
        _ => value.find([',', '}']),
    };
    Ok(value[..end.ok_or_else(|| format!("its header ends inside '{key}'"))?].trim_end())
}

/// The number of elements of a shape such as `(2, 3)`.
fn elements(shape: &str) -> Option<u64> {
    let extents = shape.strip_prefix('(')?.strip_suffix(')')?.trim();
    if extents.is_empty() {
        return Some(1);
    }
    // A tuple of one has a comma after it.
    let extents = extents.strip_suffix(',').unwrap_or(extents);
    extents.split(',').try_fold(1u64, |elements, extent| elements.checked_mul(extent.trim().parse().ok()?))
}
