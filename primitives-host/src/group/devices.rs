//! A group of the devices of one process.

use std::fmt;

use primitives_gpu::Element;

use super::collectives::{check_element, of_all};
#[cfg(feature = "cuda")]
use super::in_process::Engine;
#[cfg(feature = "cuda")]
use super::number::data_type;
use super::number::{GroupNumber, ReduceOp};
#[cfg(feature = "cuda")]
use crate::cuda::Work;
use crate::memory::buffer::Buffer;
use crate::memory::slice::check_lengths;
use crate::split::Split;
use crate::{Error, Result};

/// A group whose members are the devices of a [`Split`]. One thread makes the calls for all members, as with `ncclCommInitAll` of NCCL.
///
/// Member `i` is device `i` of the split, and works on the split's stream of this device. A call takes a buffer of each member, in this
/// order.
///
/// On GPUs, NCCL does the work if it can be opened and if the devices have their primary contexts ([`uses_nccl`](Self::uses_nccl)); calls
/// only enqueue it. Otherwise, elements are copied between the devices, and reductions go through the host, in the order of the members.
///
/// After an error of NCCL, each later call of the group returns the same error. Create a new group to go on.
///
/// ```
/// use kernel_primitives::{Devices, ReduceOp, Split, SplitGroup};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let split = Split::even(&Devices::emulated(2)?)?;
/// let group = SplitGroup::new(&split)?;
/// let [one, two] = split.streams() else { unreachable!() };
/// let mut buffers = [one.buffer_from(&[1.0, 2.0])?, two.buffer_from(&[10.0, 20.0])?];
/// group.all_reduce(&mut buffers, ReduceOp::Sum)?;
/// assert_eq!((buffers[0].to_vec()?, buffers[1].to_vec()?), (vec![11.0, 22.0], vec![11.0, 22.0]));
/// # Ok(())
/// # }
/// ```
pub struct SplitGroup {
    split: Split,
    /// NCCL for the GPUs, if it is used.
    #[cfg(feature = "cuda")]
    engine: Option<Engine>,
}

impl SplitGroup {
    /// Creates a group of the devices of a split.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if NCCL can be opened and does not connect the GPUs.
    pub fn new(split: &Split) -> Result<Self> {
        Ok(Self {
            #[cfg(feature = "cuda")]
            engine: Engine::new("`SplitGroup::new`", split)?,
            split: split.clone(),
        })
    }

    /// The number of members.
    pub fn size(&self) -> usize {
        self.split.streams().len()
    }

    /// The devices and their streams.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Whether NCCL does the work.
    pub fn uses_nccl(&self) -> bool {
        #[cfg(feature = "cuda")]
        return self.engine.is_some();
        #[cfg(not(feature = "cuda"))]
        false
    }

    /// Combines the elements of all members at each index, and writes the result to all buffers, as
    /// [`Group::all_reduce`](crate::Group::all_reduce) does.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if the number of buffers is not the number of members, or if NCCL fails, [`Error::LengthMismatch`] if the
    /// lengths differ, [`Error::WrongDevice`] if a buffer is on another device than its member, and [`Error::Capture`] if a stream of the
    /// split captures.
    pub fn all_reduce<T: GroupNumber>(&self, buffers: &mut [Buffer<T>], op: ReduceOp) -> Result<()> {
        let call = "`all_reduce`";
        let len = self.check(call, "the buffers", buffers)?;
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            return engine.in_place(call, buffers, |at| Work::AllReduce {
                at,
                count: len,
                of: data_type::<T>(),
                op: op.of_nccl(),
            });
        }
        let mut all = gather(buffers)?;
        op.combine(&mut all, len);
        buffers.iter_mut().try_for_each(|buffer| buffer.copy_from(&all[..len]))
    }

    /// Copies the elements of all members to all members, in their order, as [`Group::all_gather`](crate::Group::all_gather) does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`all_reduce`](Self::all_reduce). Each output must be as long as all inputs together.
    pub fn all_gather<T: Element>(&self, inputs: &[Buffer<T>], outputs: &mut [Buffer<T>]) -> Result<()> {
        const { check_element::<T>() };
        let call = "`all_gather`";
        let len = self.check(call, "the inputs", inputs)?;
        self.check_output(call, outputs, "the input of all members", of_all(call, None, len, self.size())?)?;
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let bytes = len * size_of::<T>();
            return engine.between(call, inputs, outputs, |from, to| Work::AllGather { from, to, bytes });
        }
        self.copy(call, inputs, outputs, |from, _| (0..len, from * len))
    }

    /// Combines the inputs, and gives each member one part of the result, as [`Group::reduce_scatter`](crate::Group::reduce_scatter) does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`all_reduce`](Self::all_reduce). Each input must be as long as all outputs together.
    pub fn reduce_scatter<T: GroupNumber>(
        &self,
        inputs: &[Buffer<T>],
        op: ReduceOp,
        outputs: &mut [Buffer<T>],
    ) -> Result<()> {
        let call = "`reduce_scatter`";
        let (len, part) = (self.check(call, "the inputs", inputs)?, self.check(call, "the outputs", outputs)?);
        check_lengths(call, "an input", len, "the output of all members", of_all(call, None, part, self.size())?)?;
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let (of, op) = (data_type::<T>(), op.of_nccl());
            let work = |from, to| Work::ReduceScatter { from, to, count: part, of, op };
            return engine.between(call, inputs, outputs, work);
        }
        let mut all = gather(inputs)?;
        op.combine(&mut all, len);
        outputs.iter_mut().zip(0..).try_for_each(|(output, member)| output.copy_from(&all[member * part..][..part]))
    }

    /// Copies the elements of member `root` to all members, as [`Group::broadcast`](crate::Group::broadcast) does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`all_reduce`](Self::all_reduce), and [`Error::Group`] if there is no such member.
    pub fn broadcast<T: Element>(&self, buffers: &mut [Buffer<T>], root: usize) -> Result<()> {
        const { check_element::<T>() };
        let call = "`broadcast`";
        let len = self.check(call, "the buffers", buffers)?;
        if root >= self.size() {
            let reason = format!("there is no member {root} in a group of {}", self.size());
            return Err(Error::Group { call, member: None, reason });
        }
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let bytes = len * size_of::<T>();
            return engine.in_place(call, buffers, |at| Work::Broadcast { at, bytes, root });
        }
        let _ = len;
        let (before, rest) = buffers.split_at_mut(root);
        let Some((source, after)) = rest.split_first_mut() else { return Ok(()) };
        let streams = self.split.streams();
        let targets = before.iter_mut().zip(streams).chain(after.iter_mut().zip(&streams[root + 1..]));
        for (target, stream) in targets {
            target.as_mut_slice().copy_from_peer_by(call, stream, source.as_slice())?;
        }
        Ok(())
    }

    /// Gives each member one part of each member's input, as [`Group::all_to_all`](crate::Group::all_to_all) does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`all_reduce`](Self::all_reduce), and [`Error::Group`] if the length is not a multiple of the size. Each
    /// output must be as long as each input.
    pub fn all_to_all<T: Element>(&self, inputs: &[Buffer<T>], outputs: &mut [Buffer<T>]) -> Result<()> {
        const { check_element::<T>() };
        let call = "`all_to_all`";
        let len = self.check(call, "the inputs", inputs)?;
        self.check_output(call, outputs, "an input", len)?;
        if !len.is_multiple_of(self.size()) {
            let reason = format!("{len} elements are no multiple of the {} members", self.size());
            return Err(Error::Group { call, member: None, reason });
        }
        let part = len / self.size();
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let bytes = part * size_of::<T>();
            return engine.between(call, inputs, outputs, |from, to| Work::AllToAll { from, to, bytes });
        }
        self.copy(call, inputs, outputs, |from, to| (to * part..(to + 1) * part, from * part))
    }

    /// Copies between all members. `place` returns the range of one member's input for another member, and where this range begins in the
    /// output.
    fn copy<T: Element>(
        &self,
        call: &'static str,
        inputs: &[Buffer<T>],
        outputs: &mut [Buffer<T>],
        place: impl Fn(usize, usize) -> (std::ops::Range<usize>, usize),
    ) -> Result<()> {
        for ((to, output), stream) in outputs.iter_mut().enumerate().zip(self.split.streams()) {
            for (from, input) in inputs.iter().enumerate() {
                let (range, first) = place(from, to);
                let len = range.len();
                output.slice_mut(first..first + len)?.copy_from_peer_by(call, stream, input.slice(range)?)?;
            }
        }
        Ok(())
    }

    /// Checks that there is a buffer for each member, and that all buffers have the same length. Returns this length.
    fn check<T: Element>(&self, call: &'static str, what: &str, buffers: &[Buffer<T>]) -> Result<usize> {
        let streams = self.split.streams();
        if buffers.len() != streams.len() {
            let reason = format!("{what} are {}, and the members {}", buffers.len(), streams.len());
            return Err(Error::Group { call, member: None, reason });
        }
        let len = buffers[0].len();
        for ((member, buffer), stream) in buffers.iter().enumerate().zip(streams) {
            check_lengths(call, "the buffer of member 0", len, &format!("that of member {member}"), buffer.len())?;
            if !buffer.device().same_as(stream.device()) {
                return Err(Error::WrongDevice {
                    kernel: call.trim_matches('`').into(),
                    argument: format!("the buffer of member {member}"),
                    stream: stream.device().to_string(),
                    buffer: buffer.device().to_string(),
                });
            }
            if stream.is_capturing() {
                let advice = "a graph is of one device: call it before its launch, or after it";
                return Err(Error::Capture { call, advice });
            }
        }
        Ok(len)
    }

    /// Refuses outputs that do not have the expected length.
    fn check_output<T: Element>(
        &self,
        call: &'static str,
        outputs: &[Buffer<T>],
        what: &str,
        expected: usize,
    ) -> Result<()> {
        let len = self.check(call, "the outputs", outputs)?;
        check_lengths(call, "an output", len, what, expected)
    }
}

/// The elements of all members, on the host.
fn gather<T: Element>(buffers: &[Buffer<T>]) -> Result<Vec<T>> {
    let parts = buffers.iter().map(Buffer::to_vec).collect::<Result<Vec<_>>>()?;
    Ok(parts.concat())
}

/// `SplitGroup(2 members: Split(…))`.
impl fmt::Debug for SplitGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SplitGroup({} members: {:?})", self.size(), self.split)
    }
}
