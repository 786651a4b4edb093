//! Where an algorithm runs, and on what memory.

use super::tuning::{Parameter, Tuning};
use crate::simt::WARP;
use crate::{Buffer, BufferSliceMut, Dims, Element, Error, Result, Stream};

/// Where an algorithm runs: a stream, and what is to be other than usual.
///
/// ```
/// use kernel_primitives::algorithms::{Run, Workspace, reduce};
/// use kernel_primitives::functor::Sum;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let device = Device::auto()?;
/// let stream = device.stream()?;
/// let x = stream.buffer_from(&vec![1i32; 100_000])?;
/// let mut sum = stream.buffer_zeroed::<i32>(1)?;
/// let mut workspace = Workspace::new();
/// reduce(Run::on(&stream).with(&mut workspace), &x, Sum, &mut sum)?;
/// // The second call finds the memory of the first one, and allocates nothing.
/// let before = device.counters();
/// reduce(Run::on(&stream).with(&mut workspace), &x, Sum, &mut sum)?;
/// assert_eq!(device.counters().since(before).allocations, 0);
/// assert_eq!(sum.to_vec()?, [100_000]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Run<'a> {
    pub(super) stream: &'a Stream,
    workspace: Option<&'a mut Workspace>,
    tuning: Option<&'a Tuning>,
}

impl<'a> Run<'a> {
    /// On a stream.
    pub fn on(stream: &'a Stream) -> Self {
        Self { stream, workspace: None, tuning: None }
    }

    /// With memory that stays for the next call.
    pub fn with(self, workspace: &'a mut Workspace) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// With these tuning values in place of the device's.
    pub fn tuned(self, tuning: &'a Tuning) -> Self {
        Self { tuning: Some(tuning), ..self }
    }

    /// A tuning value for items of so many bytes.
    pub(super) fn tuning(&self, parameter: Parameter, bytes: usize) -> Result<usize> {
        let tuning = match self.tuning {
            Some(tuning) => tuning,
            None => Tuning::of(self.stream.device())?,
        };
        Ok(tuning.get(parameter, bytes) as usize)
    }

    /// A tuning value that counts blocks of a multiprocessor, as blocks of the device.
    pub(super) fn blocks(&self, parameter: Parameter, bytes: usize) -> Result<usize> {
        Ok(self.tuning(parameter, bytes)? * self.stream.device().properties().multiprocessors.max(1) as usize)
    }

    /// The blocks of a kernel whose warps have so many items each: of as many threads as a tuning value says, or of fewer as long as
    /// there are multiprocessors without a block.
    pub(super) fn dims_of_warps(&self, len: usize, items: usize, threads: Parameter, bytes: usize) -> Result<Dims> {
        let (all, most) = (len.div_ceil(items), self.tuning(threads, bytes)? / WARP as usize);
        let processors = self.stream.device().properties().multiprocessors.max(1) as usize;
        let warps = all.div_ceil(processors).clamp(1, most);
        Ok(Dims::new(all.div_ceil(warps).try_into().unwrap_or(u32::MAX), warps as u32 * WARP))
    }

    /// For a part of the algorithm that needs no memory.
    pub(super) fn part(&self) -> Run<'a> {
        Run { stream: self.stream, workspace: None, tuning: self.tuning }
    }

    /// Memory of a [`Chain`](crate::grid::Chain) of so many words that need not be cleared, and the launch's number in it; the
    /// run itself if it has no workspace, captures, or needs no chain or a longer one.
    pub(super) fn chain(self, words: usize) -> Result<std::result::Result<(BufferSliceMut<'a, u64>, u32), Self>> {
        let stream = self.stream;
        match self.workspace {
            // Each launch of a graph would have the same number.
            Some(workspace) if 0 < words && words <= Workspace::CHAIN && !stream.is_capturing() => {
                // What a capture will need.
                workspace.at_least(stream, (words * size_of::<u64>()).next_multiple_of(ALIGN))?;
                workspace.chain(stream, words).map(Ok)
            }
            _ => Ok(Err(self)),
        }
    }

    /// Memory for as many bytes as `sizes` say, in parts.
    pub(super) fn memory(self, sizes: &[usize]) -> Result<Memory<'a>> {
        let bytes = sizes.iter().map(|bytes| bytes.next_multiple_of(ALIGN)).sum::<usize>();
        Ok(match self.workspace {
            Some(workspace) => Memory::Kept(workspace.at_least(self.stream, bytes)?),
            None => Memory::Own(self.stream.buffer_uninit(bytes)?),
        })
    }
}

impl<'a> From<&'a Stream> for Run<'a> {
    fn from(stream: &'a Stream) -> Self {
        Self::on(stream)
    }
}

/// Where each part of temporary memory starts.
const ALIGN: usize = 256;

/// An algorithm's temporary memory.
pub(super) enum Memory<'a> {
    Own(Buffer<u8>),
    Kept(&'a mut Buffer<u8>),
}

impl Memory<'_> {
    /// The parts, to be taken one after the other.
    pub(super) fn parts(&mut self) -> Parts<'_> {
        Parts(Some(match self {
            Self::Own(buffer) => buffer.as_mut_slice(),
            Self::Kept(buffer) => buffer.as_mut_slice(),
        }))
    }
}

/// What is left of temporary memory.
pub(super) struct Parts<'a>(Option<BufferSliceMut<'a, u8>>);

impl<'a> Parts<'a> {
    /// The next part.
    pub(super) fn take<T: Element>(&mut self, len: usize) -> Result<BufferSliceMut<'a, T>> {
        let rest = self.0.take().expect("the parts end with the first error");
        let bytes = len * size_of::<T>();
        let (part, rest) = rest.split_at(bytes.next_multiple_of(ALIGN))?;
        self.0 = Some(rest);
        part.into_slice(..bytes)?.reinterpret()
    }
}

/// Temporary elements: a part of the memory, or, where not all bytes are values of them, a buffer of their own.
pub(super) enum Scratch<'m, T> {
    Part(BufferSliceMut<'m, T>),
    Own(Buffer<T>),
}

impl<'m, T: Element> Scratch<'m, T> {
    /// Bytes of the memory that so many take.
    pub(super) fn bytes(len: usize) -> usize {
        if T::ANY_BITS { len * size_of::<T>() } else { 0 }
    }

    /// The next part, of [`bytes`](Self::bytes), or a buffer.
    pub(super) fn take(stream: &Stream, parts: &mut Parts<'m>, len: usize) -> Result<Self> {
        Ok(if T::ANY_BITS { Self::Part(parts.take(len)?) } else { Self::Own(stream.buffer_uninit(len)?) })
    }

    pub(super) fn as_mut_slice(&mut self) -> BufferSliceMut<'_, T> {
        match self {
            Self::Part(part) => part.into(),
            Self::Own(buffer) => buffer.into(),
        }
    }
}

/// Temporary memory of algorithms that is kept from call to call, and grows where a call needs more.
///
/// Reductions, scans, selections, and what else chains its blocks' tiles ([`grid`](crate::grid)) have 36 KiB of it to
/// themselves, for all blocks of a reduction, 4000 tiles of a scan of four-byte items or 1000 of a reduction by key, which
/// are cleared once and not for each call outside of captures: the smaller the input, the more of a call's time that is.
///
/// Calls on several streams may share one: the later then waits for the earlier.
#[derive(Debug, Default)]
pub struct Workspace {
    buffer: Option<Buffer<u8>>,
    /// Of [`CHAIN`](Self::CHAIN) words, and how many launches had it since it was zero.
    chain: Option<Buffer<u64>>,
    launches: u32,
}

impl Workspace {
    /// Without memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Words for chains of few tiles, whose clearing would take longer than some of their work.
    const CHAIN: usize = 4608;

    /// With `bytes` of memory, and 36 KiB for algorithms that chain few tiles.
    pub fn with_capacity(stream: &Stream, bytes: usize) -> Result<Self> {
        let chain = stream.buffer_zeroed(Self::CHAIN)?;
        Ok(Self { buffer: Some(stream.buffer_uninit(bytes)?), chain: Some(chain), launches: 0 })
    }

    /// Bytes that it has, without those for chains.
    pub fn capacity(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::len)
    }

    /// Words of the chain, and the number of its next launch.
    fn chain(&mut self, stream: &Stream, words: usize) -> Result<(BufferSliceMut<'_, u64>, u32)> {
        if self.launches == u32::MAX {
            self.chain = None;
        }
        let chain = match &mut self.chain {
            Some(chain) => chain,
            none => {
                self.launches = 0;
                none.insert(stream.buffer_zeroed(Self::CHAIN)?)
            }
        };
        self.launches += 1;
        let words = BufferSliceMut::from(chain).into_slice(..words)?;
        Ok((words, self.launches))
    }

    fn at_least(&mut self, stream: &Stream, bytes: usize) -> Result<&mut Buffer<u8>> {
        match &mut self.buffer {
            Some(buffer) if buffer.len() >= bytes => {}
            buffer => *buffer = Some(stream.buffer_uninit(bytes)?),
        }
        Ok(self.buffer.as_mut().expect("just made"))
    }
}

/// An error unless the output has a place for each of `needed` items.
pub(super) fn check_output(algorithm: &str, output: usize, needed: usize) -> Result<()> {
    if output >= needed {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        kernel: algorithm.into(),
        first: "the result".into(),
        first_len: needed,
        second: "`out`".into(),
        second_len: output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::algorithms::inclusive_scan;
    use crate::functor::Add;

    /// After its last number a chain's memory is cleared, and numbers begin anew.
    #[test]
    fn launches_are_numbered_anew_after_the_last_number() -> Result<()> {
        let stream = Device::emulator().stream()?;
        let x = stream.buffer_from(&vec![1u32; 40_000])?;
        let mut out = stream.buffer_zeroed::<u32>(40_000)?;
        let mut workspace = Workspace::new();
        inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut out)?;
        assert_eq!(workspace.launches, 1);
        workspace.launches = u32::MAX - 1;
        for launches in [u32::MAX, 1, 2] {
            out.as_mut_slice().set_zero(&stream)?;
            inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut out)?;
            assert_eq!(workspace.launches, launches);
            assert!(out.to_vec()?.into_iter().eq(1..=40_000));
        }
        Ok(())
    }
}
