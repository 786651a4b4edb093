//! The calls of a group.

use std::any::type_name;

use primitives_gpu::Element;

use super::Group;
use super::message::Route;
#[cfg(feature = "cuda")]
use super::nccl::{Call, address, uses};
#[cfg(feature = "cuda")]
use super::number::data_type;
use super::number::{GroupNumber, ReduceOp};
#[cfg(feature = "cuda")]
use crate::cuda::{Message, Work};
use crate::memory::allocation::Allocation;
use crate::memory::slice::{BufferSlice, BufferSliceMut, check_lengths};
use crate::memory::{bytes_of, bytes_of_mut, zeroed_vec};
use crate::stream::Stream;
use crate::{Error, Result};

/// `4 f32`.
fn items<T>(len: usize) -> String {
    let name = type_name::<T>();
    // The names of generic types and of arrays stay as they are.
    let last = name.rsplit_once("::").filter(|_| !name.contains(['<', '[']));
    format!("{len} {}", last.map_or(name, |(_, last)| last))
}

/// The description of a call in which all members send and receive the same kind of data.
fn same(what: String) -> [String; 2] {
    [what, String::new()]
}

/// Refuses element types for which some bytes are not valid, such as `bool`: another process may send any bytes.
pub(super) const fn check_element<T: Element>() {
    assert!(
        T::ANY_BITS,
        "the members of a group exchange elements of which all bytes are values: instead of `bool`, take `u8`"
    );
}

/// The number of elements of all members, of which each has `part`.
pub(super) fn of_all(call: &'static str, member: Option<usize>, part: usize, size: usize) -> Result<usize> {
    // Elements without bytes may be as many as `usize::MAX`.
    part.checked_mul(size).ok_or_else(|| {
        let reason = format!("{part} elements of each of {size} members are more than can be counted");
        Error::Group { call, member, reason }
    })
}

/// Converts bytes to elements.
fn elements<T: Element>(call: &'static str, bytes: &[u8], len: usize) -> Result<Vec<T>> {
    let mut elements = zeroed_vec::<T>(len)?;
    let target = bytes_of_mut(&mut elements);
    if target.len() != bytes.len() {
        let reason = format!("{} bytes came, and not {}", bytes.len(), target.len());
        return Err(Error::Group { call, member: None, reason });
    }
    target.copy_from_slice(bytes);
    Ok(elements)
}

/// The arguments of a call from one buffer to another.
fn between<'a, T>(input: &BufferSlice<'a, T>, output: &BufferSliceMut<'a, T>) -> [(&'static str, &'a Allocation); 2] {
    [("the input", input.0.allocation), ("the output", output.0.allocation)]
}

impl Group {
    /// Waits until the work on the stream has ended, and until all members have called this function.
    ///
    /// # Errors
    ///
    /// Returns the fault of a kernel on the stream, [`Error::Group`] for a [failure](Group#failures), [`Error::Capture`] if the stream
    /// captures, and [`Error::WrongDevice`] if the stream is on another device than the group.
    pub fn barrier(&self, stream: &Stream) -> Result<()> {
        let call = "`barrier`";
        self.begin(call, stream, &[])?;
        // In the emulator, it has waited.
        if self.device().is_gpu() {
            stream.synchronize()?;
        }
        self.request(call, Route::Gather, same(call.into()), &[]).map(drop)
    }

    /// Combines the elements of all members at each index, and writes the result to the buffers of all members.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] for a [failure](Group#failures), also if the length, the type or the operation differs between members,
    /// [`Error::WrongDevice`] if the stream or the buffer is on another device than the group, and [`Error::Capture`] if the stream
    /// captures.
    pub fn all_reduce<'a, T: GroupNumber>(
        &self,
        stream: &Stream,
        buffer: impl Into<BufferSliceMut<'a, T>>,
        op: ReduceOp,
    ) -> Result<()> {
        let (call, mut buffer) = ("`all_reduce`", buffer.into());
        let len = buffer.len();
        self.check::<T>(call, stream, &[], &[("the buffer", buffer.0.allocation)])?;
        let what = || same(format!("{call} by {op} of {}", items::<T>(len)));
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let work = Work::AllReduce { at: address(&buffer.0), count: len, of: data_type::<T>(), op: op.of_nccl() };
            let uses = uses(&[], &[buffer.0.allocation]);
            return engine.run(&Call { name: call, stream, route: Route::Gather, work, uses }, what);
        }
        let bytes = self.request(call, Route::Gather, what(), bytes_of(&buffer.as_slice().to_vec()?))?;
        let mut all = elements::<T>(call, &bytes, len * self.size())?;
        op.combine(&mut all, len);
        buffer.copy_from(&all[..len])
    }

    /// Copies the elements of all members to all members, in the order of the ranks. All inputs must have the same length, and the output
    /// must be as long as all inputs together.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the output has another length, and the errors of [`all_reduce`](Self::all_reduce).
    pub fn all_gather<'a, 'b, T: Element>(
        &self,
        stream: &Stream,
        input: impl Into<BufferSlice<'a, T>>,
        output: impl Into<BufferSliceMut<'b, T>>,
    ) -> Result<()> {
        let (call, input, mut output) = ("`all_gather`", input.into(), output.into());
        self.check_length(call, "the output", output.len(), "the input of all members", input.len())?;
        self.check::<T>(call, stream, &[], &between(&input, &output))?;
        let what = || same(format!("{call} of {}", items::<T>(input.len())));
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let (from, to, bytes) = (address(&input.0), address(&output.0), input.len() * size_of::<T>());
            let work = Work::AllGather { from, to, bytes };
            let uses = uses(&[input.0.allocation], &[output.0.allocation]);
            return engine.run(&Call { name: call, stream, route: Route::Gather, work, uses }, what);
        }
        let bytes = self.request(call, Route::Gather, what(), bytes_of(&input.to_vec()?))?;
        output.copy_from(&elements(call, &bytes, output.len())?)
    }

    /// Combines the inputs of all members as [`all_reduce`](Self::all_reduce) does, and gives each member one part of the result. The parts
    /// have the length of the output, and are in the order of the ranks. The input must be as long as all outputs together.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the input has another length, and the errors of [`all_reduce`](Self::all_reduce).
    pub fn reduce_scatter<'a, 'b, T: GroupNumber>(
        &self,
        stream: &Stream,
        input: impl Into<BufferSlice<'a, T>>,
        op: ReduceOp,
        output: impl Into<BufferSliceMut<'b, T>>,
    ) -> Result<()> {
        let (call, input, mut output) = ("`reduce_scatter`", input.into(), output.into());
        self.check_length(call, "the input", input.len(), "the output of all members", output.len())?;
        self.check::<T>(call, stream, &[], &between(&input, &output))?;
        let what = || same(format!("{call} by {op} of {}", items::<T>(input.len())));
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let (from, to, count) = (address(&input.0), address(&output.0), output.len());
            let work = Work::ReduceScatter { from, to, count, of: data_type::<T>(), op: op.of_nccl() };
            let uses = uses(&[input.0.allocation], &[output.0.allocation]);
            return engine.run(&Call { name: call, stream, route: Route::Transpose, work, uses }, what);
        }
        let bytes = self.request(call, Route::Transpose, what(), bytes_of(&input.to_vec()?))?;
        let mut all = elements::<T>(call, &bytes, input.len())?;
        op.combine(&mut all, output.len());
        output.copy_from(&all[..output.len()])
    }

    /// Copies the elements of member `root` to all members.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if there is no such rank, and the errors of [`all_reduce`](Self::all_reduce).
    pub fn broadcast<'a, T: Element>(
        &self,
        stream: &Stream,
        buffer: impl Into<BufferSliceMut<'a, T>>,
        root: usize,
    ) -> Result<()> {
        let (call, mut buffer) = ("`broadcast`", buffer.into());
        self.check::<T>(call, stream, &[root], &[("the buffer", buffer.0.allocation)])?;
        let (route, len) = (Route::Broadcast { root }, buffer.len());
        let what = || same(format!("{call} from rank {root} of {}", items::<T>(len)));
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let work = Work::Broadcast { at: address(&buffer.0), bytes: len * size_of::<T>(), root };
            let uses = uses(&[], &[buffer.0.allocation]);
            return engine.run(&Call { name: call, stream, route, work, uses }, what);
        }
        let sent = if self.rank() == root { buffer.as_slice().to_vec()? } else { Vec::new() };
        let bytes = self.request(call, route, what(), bytes_of(&sent))?;
        buffer.copy_from(&elements(call, &bytes, len)?)
    }

    /// Gives each member one part of each member's input: part `i` of member `j` becomes part `j` of member `i`. The output must be as long
    /// as the input, and this length must be a multiple of the size of the group.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the two lengths differ, [`Error::Group`] if they are not a multiple of the size, and the errors
    /// of [`all_reduce`](Self::all_reduce).
    pub fn all_to_all<'a, 'b, T: Element>(
        &self,
        stream: &Stream,
        input: impl Into<BufferSlice<'a, T>>,
        output: impl Into<BufferSliceMut<'b, T>>,
    ) -> Result<()> {
        let (call, input, mut output) = ("`all_to_all`", input.into(), output.into());
        if !input.len().is_multiple_of(self.size()) {
            let reason = format!("{} elements are no multiple of the {} members", input.len(), self.size());
            return Err(Error::Group { call, member: Some(self.rank()), reason });
        }
        self.check_length(call, "the output", output.len(), "the input", input.len() / self.size())?;
        self.check::<T>(call, stream, &[], &between(&input, &output))?;
        let what = || same(format!("{call} of {}", items::<T>(input.len())));
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let (from, to) = (address(&input.0), address(&output.0));
            let work = Work::AllToAll { from, to, bytes: input.len() / self.size() * size_of::<T>() };
            let uses = uses(&[input.0.allocation], &[output.0.allocation]);
            return engine.run(&Call { name: call, stream, route: Route::Transpose, work, uses }, what);
        }
        let bytes = self.request(call, Route::Transpose, what(), bytes_of(&input.to_vec()?))?;
        output.copy_from(&elements(call, &bytes, output.len())?)
    }

    /// Sends the elements to member `to`, which must receive the same number. The call waits for that member. So two members that send to
    /// each other before they receive wait for ever, which the emulator reports; use [`send_recv`](Self::send_recv) for this.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if there is no such rank, or if it is the member's own rank, and the errors of
    /// [`all_reduce`](Self::all_reduce).
    pub fn send<'a, T: Element>(&self, stream: &Stream, input: impl Into<BufferSlice<'a, T>>, to: usize) -> Result<()> {
        let (call, input) = ("`send`", input.into());
        self.check_other(call, to)?;
        self.check::<T>(call, stream, &[to], &[("the input", input.0.allocation)])?;
        let (route, what) = (Route::Exchange { to: Some(to), from: None }, || same(items::<T>(input.len())));
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let send = Message::new(address(&input.0), input.len() * size_of::<T>(), to);
            let work = Work::Exchange { send, receive: None };
            let uses = uses(&[input.0.allocation], &[]);
            return engine.run(&Call { name: call, stream, route, work, uses }, what);
        }
        self.request(call, route, what(), bytes_of(&input.to_vec()?)).map(drop)
    }

    /// Receives the elements that member `from` sends. They must have the same number and type.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`send`](Self::send).
    pub fn recv<'a, T: Element>(
        &self,
        stream: &Stream,
        output: impl Into<BufferSliceMut<'a, T>>,
        from: usize,
    ) -> Result<()> {
        let (call, mut output) = ("`recv`", output.into());
        self.check_other(call, from)?;
        self.check::<T>(call, stream, &[from], &[("the output", output.0.allocation)])?;
        let (route, len) = (Route::Exchange { to: None, from: Some(from) }, output.len());
        let what = || [String::new(), items::<T>(len)];
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let receive = Message::new(address(&output.0), len * size_of::<T>(), from);
            let work = Work::Exchange { send: None, receive };
            let uses = uses(&[], &[output.0.allocation]);
            return engine.run(&Call { name: call, stream, route, work, uses }, what);
        }
        let bytes = self.request(call, route, what(), &[])?;
        output.copy_from(&elements(call, &bytes, len)?)
    }

    /// Sends to member `to` and receives from member `from` at the same time, for example round a ring, or between neighbours. `to` and
    /// `from` may be the same member. These members call `send_recv` too, or [`recv`](Self::recv) and [`send`](Self::send). If both are the
    /// calling member, the call copies the input to the output.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Group`] if there is no such rank, or if only one of the two is the calling member. Returns [`Error::LengthMismatch`] if
    /// both are the calling member and the lengths differ. Also returns the errors of [`all_reduce`](Self::all_reduce).
    pub fn send_recv<'a, 'b, T: Element>(
        &self,
        stream: &Stream,
        input: impl Into<BufferSlice<'a, T>>,
        to: usize,
        output: impl Into<BufferSliceMut<'b, T>>,
        from: usize,
    ) -> Result<()> {
        let (call, input, mut output) = ("`send_recv`", input.into(), output.into());
        self.check::<T>(call, stream, &[to, from], &between(&input, &output))?;
        let rank = self.rank();
        // Nobody else comes to the side on which the member meets itself.
        if (to == rank) != (from == rank) {
            let reason = format!("rank {rank} is to send to itself and to receive from itself, or neither");
            return Err(Error::Group { call, member: Some(rank), reason });
        }
        if to == rank {
            check_lengths(call, "the output", output.len(), "the input", input.len())?;
        }
        let (route, len) = (Route::Exchange { to: Some(to), from: Some(from) }, output.len());
        let what = || [items::<T>(input.len()), items::<T>(len)];
        #[cfg(feature = "cuda")]
        if let Some(engine) = &self.engine {
            let send = Message::new(address(&input.0), input.len() * size_of::<T>(), to);
            let receive = Message::new(address(&output.0), len * size_of::<T>(), from);
            let work = Work::Exchange { send, receive };
            let uses = uses(&[input.0.allocation], &[output.0.allocation]);
            return engine.run(&Call { name: call, stream, route, work, uses }, what);
        }
        let bytes = self.request(call, route, what(), bytes_of(&input.to_vec()?))?;
        output.copy_from(&elements(call, &bytes, output.len())?)
    }

    /// Checks the ranks and the arguments of a call.
    fn check<T: Element>(
        &self,
        call: &'static str,
        stream: &Stream,
        ranks: &[usize],
        arguments: &[(&str, &Allocation)],
    ) -> Result<()> {
        const { check_element::<T>() };
        ranks.iter().try_for_each(|rank| self.check_rank(call, *rank))?;
        self.begin(call, stream, arguments)
    }

    /// Refuses a buffer that is not as long as the parts of all members together.
    fn check_length(&self, call: &'static str, first: &str, len: usize, second: &str, part: usize) -> Result<()> {
        check_lengths(call, first, len, second, of_all(call, Some(self.rank()), part, self.size())?)
    }

    /// Refuses the member's own rank.
    fn check_other(&self, call: &'static str, rank: usize) -> Result<()> {
        if rank != self.rank() {
            return Ok(());
        }
        let reason = format!("rank {rank} sends to itself: use `send_recv`, or a copy on the device");
        Err(Error::Group { call, member: Some(rank), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::items;

    #[test]
    fn names_of_elements_are_whole() {
        assert_eq!([items::<f32>(4), items::<primitives_gpu::f16>(4)], ["4 f32", "4 f16"]);
        let of_arrays = items::<[primitives_gpu::f16; 2]>(4);
        assert!(of_arrays.starts_with("4 [") && of_arrays.ends_with("f16; 2]"), "{of_arrays}");
    }
}
