//! Writes files as NumPy does.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use primitives_host::{Error, Result};

use super::array::NpyOrder;
use super::element::{Bytes, NpyElement};
use super::{CHUNK, MAGIC, MAX_AXES};

/// Elements begin at a multiple of this in the file, so that the file can be mapped into memory.
const ALIGN: usize = 64;

/// An output, and the number of bytes written so far.
pub(super) struct Output<W> {
    write: W,
    /// The name for messages.
    name: String,
    at: u64,
}

impl Output<File> {
    /// Creates a file for an array of this shape.
    pub(super) fn create(path: &Path, shape: &[usize]) -> Result<Self> {
        let name = path.display().to_string();
        // Check the shape before a file that exists is lost.
        check_axes(&name, shape)?;
        match File::create(path) {
            Ok(write) => Ok(Self { write, name, at: 0 }),
            Err(error) => Err(Error::Npy { file: name, at: 0, field: "file", reason: format!("not created: {error}") }),
        }
    }
}

impl<W: Write> Output<W> {
    pub(super) fn new(write: W) -> Self {
        Self { write, name: "an array in NumPy's format".into(), at: 0 }
    }

    fn error(&self, field: &'static str, reason: String) -> Error {
        Error::Npy { file: self.name.clone(), at: self.at, field, reason }
    }

    fn put(&mut self, bytes: &[u8], field: &'static str) -> Result<()> {
        match self.write.write_all(bytes) {
            Ok(()) => {
                self.at += bytes.len() as u64;
                Ok(())
            }
            Err(error) => Err(self.error(field, format!("not written: {error}"))),
        }
    }

    /// Writes an array whose values are in the given order.
    pub(super) fn array<T: NpyElement>(&mut self, shape: &[usize], values: &[T], order: NpyOrder) -> Result<()> {
        check_axes(&self.name, shape)?;
        self.put(&header(T::TYPE.descr(), shape, order), "header")?;
        let mut bytes = Vec::new();
        for elements in values.chunks(CHUNK / T::TYPE.size()) {
            bytes.clear();
            Bytes::encode(elements, &mut bytes);
            self.put(&bytes, "data")?;
        }
        self.write.flush().map_err(|error| self.error("data", format!("not written: {error}")))
    }
}

fn check_axes(file: &str, shape: &[usize]) -> Result<()> {
    if shape.len() <= MAX_AXES {
        return Ok(());
    }
    let reason = format!("{} axes; NumPy has {MAX_AXES}", shape.len());
    Err(Error::Npy { file: file.into(), at: 0, field: "shape", reason })
}

/// Makes the part of a file before its elements. With 64 axes it has about 1500 bytes, so version 1 is enough.
fn header(descr: &str, shape: &[usize], order: NpyOrder) -> Vec<u8> {
    let order = if order == NpyOrder::Fortran { "True" } else { "False" };
    let shape = match shape {
        [extent] => format!("({extent},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let start = MAGIC.len() + 4;
    // A line feed is the last byte before the elements.
    let len = (start + text.len() + 1).next_multiple_of(ALIGN) - start;
    let mut bytes = Vec::with_capacity(start + len);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(len as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(start + len - 1, b' ');
    bytes.push(b'\n');
    bytes
}
