//! Reads files that are not trusted.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use primitives_host::{Error, Result};

use super::array::{NpyArray, NpyOrder, reordered};
use super::element::NpyElement;
use super::header::{NpyHeader, parse};
use super::{CHUNK, MAGIC, elements};

/// The largest number of bytes of a header that is read. By default NumPy reads 10,000, and writes about 120 for an array of numbers.
const LONGEST_HEADER: u64 = 1 << 16;

/// An input, and the number of bytes read so far.
pub(super) struct Input<R> {
    read: R,
    /// The name for messages.
    name: String,
    at: u64,
    /// The number of bytes of the input, if it is known.
    len: Option<u64>,
}

impl Input<File> {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| {
            let about = file.metadata()?;
            Ok((file, about.is_file().then_some(about.len())))
        });
        match opened {
            Ok((read, len)) => Ok(Self { read, name, at: 0, len }),
            Err(error) => Err(Error::Npy { file: name, at: 0, field: "file", reason: format!("not opened: {error}") }),
        }
    }
}

impl<R: Read> Input<R> {
    pub(super) fn new(read: R) -> Self {
        Self { read, name: "an array in NumPy's format".into(), at: 0, len: None }
    }

    fn error(&self, at: u64, field: &'static str, reason: String) -> Error {
        Error::Npy { file: self.name.clone(), at, field, reason }
    }

    /// Reads as many bytes as `to` has, or fewer at the end.
    fn fill(&mut self, to: &mut [u8], field: &'static str) -> Result<usize> {
        let mut count = 0;
        while count < to.len() {
            match self.read.read(&mut to[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(self.at + count as u64, field, format!("not read: {error}"))),
            }
        }
        self.at += count as u64;
        Ok(count)
    }

    fn all<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        if self.fill(&mut bytes, field)? < N {
            return Err(self.error(self.at, field, "the file ends in it".into()));
        }
        Ok(bytes)
    }

    pub(super) fn header(&mut self) -> Result<NpyHeader> {
        let mut magic = [0; 6];
        if self.fill(&mut magic, "magic")? < 6 || magic != *MAGIC {
            return Err(self.error(0, "magic", "no .npy file: it does not begin with \\x93NUMPY".into()));
        }
        let len: u64 = match self.all::<2>("version")? {
            [1, 0] => u16::from_le_bytes(self.all("header length")?).into(),
            [2 | 3, 0] => u32::from_le_bytes(self.all("header length")?).into(),
            [major, minor] => {
                let reason = format!("version {major}.{minor} of the format is not known: 1.0, 2.0 and 3.0 are");
                return Err(self.error(6, "version", reason));
            }
        };
        let left = self.len.map_or(u64::MAX, |all| all.saturating_sub(self.at));
        if len > left {
            let reason = format!("the header has {len} bytes, but {left} follow");
            return Err(self.error(8, "header length", reason));
        }
        if len > LONGEST_HEADER {
            let reason = format!("the header has {len} bytes; no array of numbers has more than {LONGEST_HEADER}");
            return Err(self.error(8, "header length", reason));
        }
        let base = self.at;
        let mut text = vec![0; len as usize];
        let count = self.fill(&mut text, "header")?;
        if count < text.len() {
            return Err(self.error(8, "header length", format!("the header has {len} bytes, but {count} follow")));
        }
        parse(&text, base).map_err(|mistake| self.error(base + mistake.at as u64, mistake.field, mistake.reason))
    }

    pub(super) fn array<T: NpyElement>(&mut self) -> Result<NpyArray<T>> {
        let header = self.header()?;
        if header.element != T::TYPE {
            let (name, wanted, descr) = (header.element.name(), T::TYPE.name(), header.element.descr());
            let order = if header.big_endian { '>' } else { '<' };
            let descr = descr.replace('<', &order.to_string());
            let reason =
                format!("the elements are {name} ('{descr}'), not {wanted}: read them as they are, or save others");
            return Err(self.error(header.descr_at, "descr", reason));
        }
        let count = elements(&header.shape).unwrap_or(usize::MAX);
        let bytes = count as u128 * T::TYPE.size() as u128;
        if let Some(left) = self.len.map(|all| all.saturating_sub(self.at))
            && bytes > u128::from(left)
        {
            let reason = format!("{:?} needs {bytes} bytes of {}, but {left} follow", header.shape, T::TYPE.name());
            return Err(self.error(header.shape_at, "shape", reason));
        }
        let values = self.values::<T>(&header, count)?;
        let ordered = if header.order == NpyOrder::Fortran { reordered(&values, &header.shape)? } else { None };
        Ok(NpyArray { shape: header.shape, values: ordered.unwrap_or(values) })
    }

    fn values<T: NpyElement>(&mut self, header: &NpyHeader, count: usize) -> Result<Vec<T>> {
        let size = T::TYPE.size();
        let mut values = Vec::new();
        if self.len.is_some() {
            reserve_exact(&mut values, count)?;
        }
        let mut chunk = vec![0; CHUNK.min(count.saturating_mul(size))];
        while values.len() < count {
            let elements = (count - values.len()).min(CHUNK / size);
            let (bytes, at) = (&mut chunk[..elements * size], self.at);
            let there = self.fill(bytes, "data")?;
            if there < bytes.len() {
                let reason = format!(
                    "the file ends after {} of the {count} elements of shape {:?}",
                    values.len() + there / size,
                    header.shape
                );
                return Err(self.error(self.at, "data", reason));
            }
            // Without a length, memory grows with the bytes that have arrived.
            values.try_reserve(elements).map_err(|error| no_room::<T>(values.len() + elements, &error))?;
            if let Err(wrong) = T::decode(bytes, header.big_endian, &mut values) {
                let reason = format!("{:#x} is no {}", bytes[wrong * size], T::TYPE.name());
                return Err(self.error(at + (wrong * size) as u64, "data", reason));
            }
        }
        Ok(values)
    }

    /// Returns an error if there are bytes after the array.
    pub(super) fn end(&mut self) -> Result<()> {
        let at = self.at;
        if self.fill(&mut [0], "end")? > 0 {
            let reason = "there is more after the array: read one array after another with `NpyArray::read_from`";
            return Err(self.error(at, "end", reason.into()));
        }
        Ok(())
    }
}

fn no_room<T>(elements: usize, error: &std::collections::TryReserveError) -> Error {
    Error::Allocation {
        bytes: elements as u128 * size_of::<T>() as u128,
        device: "the host".into(),
        reason: error.to_string(),
        driver: None,
    }
}

pub(super) fn reserve_exact<T>(values: &mut Vec<T>, elements: usize) -> Result<()> {
    values.try_reserve_exact(elements).map_err(|error| no_room::<T>(elements, &error))
}
