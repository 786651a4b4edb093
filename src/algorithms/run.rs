//! Options of a call: where an algorithm runs, and which memory it uses.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use primitives_host::storage::{KeptWords, kept_words, temporary};

use super::tuning::{Parameter, Tuning};
use crate::input::Source;
use crate::simt::WARP;
use crate::{Buffer, BufferSliceMut, Device, Dims, Element, Error, InputArg, Result, Stream};

/// The largest number of items of an input. A computed input could have more. The limit leaves room for sums and products of places and
/// sizes, and no device would finish more items.
const MOST_ITEMS: usize = 1 << 48;

/// Where an algorithm runs: a stream, and options.
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
    /// Whether a graph keeps the temporary memory of a captured call without a workspace. If not, temporary memory in a capture is an
    /// error.
    kept_by_graph: bool,
}

impl<'a> Run<'a> {
    /// Runs on this stream.
    pub fn on(stream: &'a Stream) -> Self {
        Self { stream, workspace: None, tuning: None, kept_by_graph: false }
    }

    /// Uses the memory of a workspace, which is kept for the next call.
    pub fn with(self, workspace: &'a mut Workspace) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// Uses these tuning values instead of the device's.
    pub fn tuned(self, tuning: &'a Tuning) -> Self {
        Self { tuning: Some(tuning), ..self }
    }

    /// Lets a graph that captures the call keep the temporary memory, unless there is a workspace.
    pub(crate) fn kept_by_graph(self) -> Self {
        Self { kept_by_graph: true, ..self }
    }

    /// The stream.
    pub(crate) fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Returns the number of items of an input, or an error if it is larger than any device can process.
    pub(super) fn items<S: Source>(&self, algorithm: &str, x: &impl InputArg<S>) -> Result<usize> {
        let len = x.items();
        self.check_items(algorithm, len, MOST_ITEMS)?;
        Ok(len)
    }

    /// Returns an error if there are more items than the algorithm can process.
    pub(super) fn check_items(&self, algorithm: &str, len: usize, most: usize) -> Result<()> {
        if len <= most {
            return Ok(());
        }
        let (kernel, device) = (algorithm.into(), self.stream.device().to_string());
        let (what, asked, limit) = ("the number of items", len as u64, most as u64);
        Err(Error::LaunchLimit { kernel, device, what, asked, limit })
    }

    /// Converts a number that a kernel counts in 32 bits, or returns an error if it is larger.
    pub(super) fn counted(&self, algorithm: &str, what: &'static str, count: usize) -> Result<u32> {
        u32::try_from(count).map_err(|_| {
            let (kernel, device) = (algorithm.into(), self.stream.device().to_string());
            Error::LaunchLimit { kernel, device, what, asked: count as u64, limit: u32::MAX.into() }
        })
    }

    /// The number of bytes of shared memory that a block of the device can have.
    pub(super) fn shared_bytes(&self) -> usize {
        self.stream.device().properties().max_shared_bytes
    }

    /// The tuning value for items of `bytes` bytes.
    pub(super) fn tuning(&self, parameter: Parameter, bytes: usize) -> Result<usize> {
        let tuning = match self.tuning {
            Some(tuning) => tuning,
            None => Tuning::of(self.stream.device())?,
        };
        Ok(tuning.get(parameter, bytes) as usize)
    }

    /// The tuning value for items of `bytes` bytes, converted from blocks of a multiprocessor to blocks of the device.
    pub(super) fn blocks(&self, parameter: Parameter, bytes: usize) -> Result<usize> {
        Ok(self.tuning(parameter, bytes)? * self.stream.device().properties().multiprocessors.max(1) as usize)
    }

    /// The blocks of a kernel whose warps process `items` items each. A block has as many threads as the tuning value says. It has fewer if
    /// some multiprocessors would get no block otherwise.
    pub(super) fn dims_of_warps(&self, len: usize, items: usize, threads: Parameter, bytes: usize) -> Result<Dims> {
        let (all, most) = (len.div_ceil(items), self.tuning(threads, bytes)? / WARP as usize);
        let processors = self.stream.device().properties().multiprocessors.max(1) as usize;
        let warps = all.div_ceil(processors).clamp(1, most);
        Ok(grid(all.div_ceil(warps), warps * WARP as usize))
    }

    /// A run for a part of the algorithm that needs no temporary memory.
    pub(super) fn part(&self) -> Run<'a> {
        let Self { stream, tuning, kept_by_graph, .. } = *self;
        Run { stream, workspace: None, tuning, kept_by_graph }
    }

    /// Returns memory of the workspace for a [`Chain`](crate::grid::Chain) of `words` words, which need not be cleared, and the number of
    /// the launch in it. Returns the run itself if it has no workspace, if it captures, if it needs no chain, or if the chain is too long
    /// for the workspace.
    pub(super) fn chain(self, words: usize) -> Result<std::result::Result<(BufferSliceMut<'a, u64>, u32), Self>> {
        let stream = self.stream;
        match self.workspace {
            // Each launch of a graph would have the same number.
            Some(workspace) if 0 < words && words <= Workspace::CHAIN && !stream.is_capturing() => {
                workspace.check_device(stream)?;
                // A capture will need this memory. A capture with fewer items may need more of it, because it may have more tiles.
                workspace.at_least(stream, Workspace::CHAIN * size_of::<u64>())?;
                workspace.chain(stream, words).map(Ok)
            }
            _ => Ok(Err(self)),
        }
    }

    /// Returns the memory that the stream keeps for a chain of `words` words, and the number of the launch in it. Returns `None` if there is a
    /// workspace, if the chain is too long, if another thread launches with this memory, and if there is none: on the emulator, and in captures.
    pub(super) fn kept_chain(&self, words: usize) -> Result<Option<KeptWords<'a>>> {
        if self.workspace.is_some() || !(1..=Workspace::CHAIN).contains(&words) {
            return Ok(None);
        }
        kept_words(self.stream, Workspace::CHAIN)
    }

    /// Takes temporary memory, with one part for each of `sizes`, in bytes.
    pub(super) fn memory(self, sizes: &[usize]) -> Result<Memory<'a>> {
        let (stream, kept_by_graph) = (self.stream, self.kept_by_graph);
        // Sizes may be larger than the memory, and their sum may overflow.
        let all = sizes.iter().map(|&bytes| (bytes as u128).next_multiple_of(ALIGN as u128)).sum::<u128>();
        let bytes = usize::try_from(all).map_err(|_| Error::Allocation {
            driver: None,
            bytes: all,
            device: stream.device().to_string(),
            reason: "more than can be addressed".into(),
        })?;
        let Some(workspace) = self.workspace else {
            let own = if kept_by_graph { temporary(stream, bytes)? } else { stream.buffer_uninit(bytes)? };
            return Ok(Memory { stream, bytes: Bytes::Own(own), typed: None });
        };
        workspace.check_device(stream)?;
        workspace.at_least(stream, bytes)?;
        let Workspace { buffer, typed, .. } = workspace;
        let bytes = Bytes::Kept(buffer.as_mut().expect("it was just looked at"));
        Ok(Memory { stream, bytes, typed: Some(typed) })
    }
}

/// A grid of `blocks` blocks of `threads` threads. If a grid cannot have so many blocks, the launch returns the error.
pub(super) fn grid(blocks: usize, threads: usize) -> Dims {
    Dims::for_blocks(blocks).block(threads as u32)
}

/// The number of bytes of `len` elements, or `usize::MAX` if it overflows.
pub(super) fn bytes_of<T>(len: usize) -> usize {
    len.saturating_mul(size_of::<T>())
}

impl<'a> From<&'a Stream> for Run<'a> {
    fn from(stream: &'a Stream) -> Self {
        Self::on(stream)
    }
}

/// The alignment of each part of temporary memory, in bytes.
const ALIGN: usize = 256;

/// An algorithm's temporary memory.
pub(super) struct Memory<'a> {
    stream: &'a Stream,
    bytes: Bytes<'a>,
    typed: Option<&'a Typed>,
}

enum Bytes<'a> {
    Own(Buffer<u8>),
    Kept(&'a mut Buffer<u8>),
}

impl Memory<'_> {
    /// The parts, which are taken in order.
    pub(super) fn parts(&mut self) -> Parts<'_> {
        let rest = match &mut self.bytes {
            Bytes::Own(buffer) => buffer.as_mut_slice(),
            Bytes::Kept(buffer) => buffer.as_mut_slice(),
        };
        Parts { stream: self.stream, rest: Some(rest), typed: self.typed }
    }
}

/// The rest of the temporary memory.
pub(super) struct Parts<'a> {
    stream: &'a Stream,
    rest: Option<BufferSliceMut<'a, u8>>,
    typed: Option<&'a Typed>,
}

impl<'a> Parts<'a> {
    /// The next part.
    pub(super) fn take<T: Element>(&mut self, len: usize) -> Result<BufferSliceMut<'a, T>> {
        let rest = self.rest.take().expect("the parts end with the first error");
        let bytes = bytes_of::<T>(len);
        let (part, rest) = rest.split_at(bytes.next_multiple_of(ALIGN))?;
        self.rest = Some(rest);
        part.into_slice(..bytes)?.reinterpret()
    }
}

/// Buffers of elements that do not allow all bit patterns, such as `bool`. They are kept for the next call that needs such elements.
#[derive(Default)]
struct Typed(Mutex<Vec<Box<dyn Any + Send + Sync>>>);

impl Typed {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<dyn Any + Send + Sync>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the smallest buffer of at least `len` elements. If there is none, drops the largest buffer of this type, which makes room for
    /// a larger one.
    fn take<T: Element>(&self, len: usize) -> Option<Buffer<T>> {
        let mut buffers = self.lock();
        let len_of = |buffer: &Box<dyn Any + Send + Sync>| buffer.downcast_ref::<Buffer<T>>().map(Buffer::len);
        let lens = buffers.iter().enumerate().filter_map(|(at, buffer)| Some((len_of(buffer)?, at)));
        let (found, at) = lens.clone().filter(|&(found, _)| found >= len).min().or_else(|| lens.max())?;
        let buffer = buffers.swap_remove(at).downcast().ok()?;
        (found >= len).then_some(*buffer)
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} buffers", self.lock().len())
    }
}

/// Temporary elements. They are a part of the temporary memory if all bit patterns are values of the type. Otherwise they have a buffer of
/// their own, which goes back to the workspace in the end.
pub(super) enum Scratch<'m, T: Element> {
    Part(BufferSliceMut<'m, T>),
    Own(OwnScratch<'m, T>),
}

/// See [`Scratch`].
pub(super) struct OwnScratch<'m, T: Element> {
    buffer: Option<Buffer<T>>,
    len: usize,
    home: Option<&'m Typed>,
}

impl<'m, T: Element> Scratch<'m, T> {
    const IN_PART: bool = T::ANY_BITS && size_of::<T>() > 0;

    /// The number of bytes of temporary memory that `len` elements take.
    pub(super) fn bytes(len: usize) -> usize {
        if Self::IN_PART { bytes_of::<T>(len) } else { 0 }
    }

    /// Takes the next part, of [`bytes`](Self::bytes), or a buffer of its own.
    pub(super) fn take(parts: &mut Parts<'m>, len: usize) -> Result<Self> {
        if Self::IN_PART {
            return Ok(Self::Part(parts.take(len)?));
        }
        let (stream, home) = (parts.stream, parts.typed.filter(|_| len > 0));
        let buffer = match home.and_then(|typed| typed.take(len)) {
            Some(kept) => kept,
            None => stream.buffer_uninit(len)?,
        };
        Ok(Self::Own(OwnScratch { buffer: Some(buffer), len, home }))
    }

    pub(super) fn as_mut_slice(&mut self) -> Result<BufferSliceMut<'_, T>> {
        match self {
            Self::Part(part) => Ok(part.into()),
            Self::Own(own) => own.buffer.as_mut().expect("it is there until the end").slice_mut(..own.len),
        }
    }
}

impl<T: Element> Drop for OwnScratch<'_, T> {
    fn drop(&mut self) {
        if let (Some(home), Some(buffer)) = (self.home, self.buffer.take()) {
            home.lock().push(Box::new(buffer));
        }
    }
}

/// Temporary memory of algorithms, which is kept from call to call. It grows if a call needs more.
///
/// 36 KiB of it are for algorithms that chain the tiles of their blocks ([`grid`](crate::grid)): reductions, scans, selections and others.
/// That is enough for all blocks of a reduction, for 4000 tiles of a scan of four-byte items, or for 1000 tiles of a reduction by key.
/// Outside captures, this memory is cleared once instead of once a call. The smaller the input, the larger the share of the time that this
/// saves. Captures cannot use it. So the first of these calls also makes room for the chains of captures, which is 36 KiB of the
/// [capacity](Self::capacity). On a GPU, calls without a workspace use 36 KiB of the same kind, which the first of them makes, and which the
/// stream keeps until it is dropped.
///
/// Calls on several streams of one device may share a workspace: the later call then waits for the earlier one. A workspace stays usable
/// after a call that fails. A graph that was captured with a workspace also uses its memory, but does not borrow it. Do not launch such a
/// graph while another thread makes a call with the workspace: the results of both would be unspecified.
///
/// A call on a different device than the earlier calls returns [`Error::WrongDevice`].
#[derive(Debug, Default)]
pub struct Workspace {
    buffer: Option<Buffer<u8>>,
    typed: Typed,
    /// A chain of [`CHAIN`](Self::CHAIN) words. `launches` counts the launches that used it since it was cleared.
    chain: Option<Buffer<u64>>,
    launches: u32,
}

impl Workspace {
    /// Makes a workspace without memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// The words for chains of few tiles. To clear a chain for each call would take longer than some of these calls work.
    const CHAIN: usize = 4608;

    /// Makes a workspace with `bytes` of memory, at least 36 KiB, and 36 KiB more for algorithms that chain few tiles.
    ///
    /// # Errors
    /// Returns the errors of an allocation, as [`Stream::buffer_zeroed`] does.
    pub fn with_capacity(stream: &Stream, bytes: usize) -> Result<Self> {
        let chain = stream.buffer_zeroed(Self::CHAIN)?;
        Ok(Self {
            // With room for the chains of captures, as after the first call.
            buffer: Some(stream.buffer_uninit(bytes.max(Self::CHAIN * size_of::<u64>()))?),
            typed: Typed::default(),
            chain: Some(chain),
            launches: 0,
        })
    }

    /// The number of bytes of the workspace, without the memory for chains and for elements that are or contain `bool`.
    pub fn capacity(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::len)
    }

    /// Returns the words of the chain, and the number of its next launch.
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

    fn at_least(&mut self, stream: &Stream, bytes: usize) -> Result<()> {
        match &mut self.buffer {
            Some(buffer) if buffer.len() >= bytes => {}
            buffer => *buffer = Some(stream.buffer_uninit(bytes)?),
        }
        Ok(())
    }

    /// Returns an error if the memory is on another device than the stream.
    fn check_device(&self, stream: &Stream) -> Result<()> {
        let device = match (&self.buffer, &self.chain) {
            (Some(buffer), _) => buffer.device(),
            (None, Some(chain)) => chain.device(),
            (None, None) => return Ok(()),
        };
        check_device("an algorithm", "the workspace", stream, device)
    }
}

/// Returns an error if the memory of an argument is not on the stream's device.
pub(super) fn check_device(algorithm: &str, argument: &str, stream: &Stream, device: &Device) -> Result<()> {
    if device.same_as(stream.device()) {
        return Ok(());
    }
    Err(Error::WrongDevice {
        kernel: algorithm.into(),
        argument: argument.into(),
        stream: stream.device().to_string(),
        buffer: device.to_string(),
    })
}

/// Returns an error if the output with this name has fewer than `needed` places.
pub(super) fn check_output(algorithm: &str, name: &str, output: usize, needed: usize) -> Result<()> {
    if output >= needed {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        kernel: algorithm.into(),
        first: "the result".into(),
        first_len: needed,
        second: format!("`{name}`"),
        second_len: output,
    })
}

/// Returns an error if there are not as many values as keys.
pub(super) fn check_values(algorithm: &str, keys: usize, values: usize) -> Result<()> {
    if keys == values {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        kernel: algorithm.into(),
        first: "`keys`".into(),
        first_len: keys,
        second: "`values`".into(),
        second_len: values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::inclusive_scan;
    use crate::functor::Add;

    /// After the last number, the memory of the chain is cleared, and the numbers start again.
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
