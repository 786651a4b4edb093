//! Halos: the rows of other devices that stencils read. They are copied to each device.
//!
//! A device reads a source by a [`Piece`]: the rows that stencils read for the device's places, one after the other. If the source's own
//! shard has all these rows, it is the piece. Otherwise, if the source was made with room for rows around it, the piece is the shard with
//! the rows around it, and only these rows are copied. Otherwise, the piece is temporary memory, and the shard is copied to it, too.
//!
//! Rows outside of the tensor are filled by the rule of the boundary. So a kernel has no rule along the split axis, and all devices have
//! the same kernel.
//!
//! The rows around a shard are in the shard's memory, and uses are ordered by whole memories. If a device read its neighbours' shards while
//! these read its own shard, all copies of a step would wait for each other in a chain. So each device first copies the rows that others
//! need to an outbox, and the others read the outbox.
//!
//! A call takes the room of a tensor for as long as it enqueues work ([`Rooms`]). A call that comes meanwhile uses temporary memory, and
//! does not wait: the first call may wait for a kernel of the emulator, and this kernel may make the second call.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use primitives_host::storage::{self, Storage};
use primitives_host::{Result, Stream};

use super::assign::Reads;
use super::beside::{Beside, inside_rows};
use super::copy::copy;
use super::view::{Rows, SplitView, row_elements, with_rows};
use crate::expr::describe::kernel_name;
use crate::expr::dtype::{DType, with_type};
use crate::expr::evaluate::{launch, prepare};
use crate::expr::graph::{Kind, Node, View, arguments, node};
use crate::expr::layout::nest::Nest;
use crate::expr::layout::shape::{Layout, Shape};
use crate::expr::neighbours::neighbour::{Rule, Spare};
use crate::expr::program::{Lowered, lower};

/// The number of elements before and after rows. A kernel may load a vector of which it needs only a part. With this number, rows are
/// aligned like memory.
const PAD: usize = 128;

/// Room for rows around the shards of a split tensor.
pub(crate) struct Halo {
    /// The number of rows on each side of each shard.
    pub(super) rows: usize,
    /// The rows of each device that other devices read: room for the first rows of its shard, and for the last rows, which are at the end.
    outboxes: Vec<Arc<View>>,
    /// Whether a call copies rows to the room, and has not yet enqueued everything that reads them.
    is_taken: AtomicBool,
}

/// The room around shards that a call has taken. It is free again when this is dropped.
#[derive(Default)]
pub(super) struct Rooms(Vec<Arc<Halo>>);

impl Rooms {
    /// Takes the room around the shards of a tensor. Returns false if another call has it.
    fn take(&mut self, view: &SplitView) -> bool {
        let Some(halo) = &view.halo else { return false };
        if self.0.iter().any(|taken| Arc::ptr_eq(taken, halo)) {
            return true;
        }
        let was_free = !halo.is_taken.swap(true, Ordering::Acquire);
        if was_free {
            self.0.push(halo.clone());
        }
        was_free
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        self.0.iter().for_each(|halo| halo.is_taken.store(false, Ordering::Release));
    }
}

impl Halo {
    /// Makes the shards of a tensor with room for this number of rows around each. Also returns the halo.
    pub(super) fn new(
        streams: &[Stream],
        (shape, bounds): (Shape, &[usize]),
        dtype: DType,
        rows: usize,
    ) -> Result<(Vec<Arc<View>>, Self)> {
        let row = if shape.contains(&0) { 0 } else { row_elements(&shape) };
        let (mut shards, mut outboxes) = (Vec::new(), Vec::new());
        for (bounds, stream) in bounds.windows(2).zip(streams) {
            let own = bounds[1] - bounds[0];
            let before = rows.saturating_mul(row).div_ceil(PAD).saturating_add(1).saturating_mul(PAD);
            let all = own.saturating_add(rows).saturating_mul(row).saturating_add(before).saturating_add(PAD);
            let memory = memory(stream, dtype, all)?;
            shards.push(memory.with_layout(Layout { offset: before, ..Layout::contiguous(with_rows(shape, own)) }));
            outboxes.push(self::memory(stream, dtype, rows.saturating_mul(2).saturating_mul(row))?);
        }
        Ok((shards, Self { rows, outboxes, is_taken: AtomicBool::new(false) }))
    }
}

/// Takes memory for this number of elements with unspecified values, as a vector.
fn memory(stream: &Stream, dtype: DType, len: usize) -> Result<Arc<View>> {
    let storage = with_type!(dtype, T => Storage::of(storage::temporary::<T>(stream, len)?));
    let (storage, stream, layout) =
        (Arc::new(storage), stream.clone(), Layout::contiguous(Shape::new(&[len]).unwrap_or(Shape::SCALAR)));
    Ok(Arc::new(View { storage, stream, layout, dtype, spare: None, origin: None }))
}

/// The rows of split tensors that the devices read.
pub(super) struct Halos {
    sources: Vec<Source>,
}

/// A split tensor that stencils read by one rule, or without a rule.
struct Source {
    view: Arc<SplitView>,
    rule: Option<Rule>,
    /// The numbers of rows that are read before and after the rows of a device's places.
    reach: [usize; 2],
    /// The pieces, by the number of the device.
    pieces: BTreeMap<usize, Piece>,
    /// The numbers of first and of last rows of each device that others read from its outbox.
    posted: Vec<[usize; 2]>,
    /// Whether the room around the shards has rows of this source.
    uses_room: bool,
}

/// The part of a source that a device reads.
struct Piece {
    /// The rows of the piece, one after the other.
    rows: Arc<View>,
    /// The number of the first row. Rows before row 0 are outside.
    first: isize,
    /// The rows of the device's places, with spare rows around them. `None` for interior stencils, and if the piece is the whole tensor, so
    /// that rules hold.
    own: Option<Arc<View>>,
    copies: Vec<Transfer>,
    outside: Vec<Fill>,
}

/// Rows outside: their place, and their values.
struct Fill {
    to: Arc<View>,
    value: Arc<Node>,
    prepared: Box<(Lowered, Nest)>,
}

/// Contiguous elements of one view that are copied to another view.
struct Transfer {
    from: (Arc<View>, usize),
    to: (Arc<View>, usize),
    len: usize,
}

impl Halos {
    /// Finds the rows that are needed to compute `rows`. They can be copied again and again, until `rooms` is dropped. Takes memory, and
    /// copies nothing.
    pub(super) fn new(
        place: &'static Location<'static>,
        reads: &Reads,
        rows: Rows<'_>,
        rooms: &mut Rooms,
    ) -> Result<Self> {
        let mut sources: Vec<Source> = Vec::new();
        for (view, beside) in &reads.beside {
            let (rule, reach) = (beside.rule(), beside.reach(view.shape));
            match sources.iter_mut().find(|known| known.rule == rule && known.view.same_as(view)) {
                Some(known) => known.reach = [0, 1].map(|side| known.reach[side].max(reach[side])),
                None => {
                    let (view, posted) = (view.clone(), vec![[0; 2]; view.shards.len()]);
                    sources.push(Source { view, rule, reach, pieces: BTreeMap::new(), posted, uses_room: false });
                }
            }
        }
        for number in 0..sources.len() {
            let (before, rest) = sources.split_at_mut(number);
            let source = &mut rest[0];
            // The room around shards holds the rows of one rule.
            let has_room = !before.iter().any(|known| known.uses_room && known.view.same_as(&source.view));
            for (device, first, count) in rows.shards_or_first() {
                let rooms = has_room.then_some(&mut *rooms);
                let piece = source.piece(place, device, first..first + count, rooms)?;
                source.pieces.insert(device, piece);
            }
        }
        Ok(Self { sources })
    }

    /// Enqueues all copies.
    pub(super) fn bring(&self, place: &'static Location<'static>) -> Result<()> {
        for source in &self.sources {
            source.post()?;
        }
        for source in &self.sources {
            for piece in source.pieces.values() {
                for one in &piece.copies {
                    copy_elements(&source.view, one)?;
                }
                for Fill { to, value, prepared } in &piece.outside {
                    launch(place, &[to], &prepared.0, &prepared.1, &|| kernel_name(&[value], to))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the rows of a device's places of a split tensor.
    pub(super) fn own(&self, view: &SplitView, device: usize) -> Arc<View> {
        let mut known = self.sources.iter().filter(|source| source.rule.is_some() && source.view.same_as(view));
        let own = known.find_map(|source| source.pieces.get(&device)?.own.clone());
        own.unwrap_or_else(|| view.shards[device].clone())
    }

    /// Returns the leaf that a stencil reads on a device with `count` places, starting at row `first`.
    pub(super) fn beside(&self, view: &SplitView, beside: &Beside, device: usize, first: usize, count: usize) -> Kind {
        let mut sources = self.sources.iter();
        let source = sources.find(|source| source.rule == beside.rule() && source.view.same_as(view));
        let piece = source.and_then(|source| source.pieces.get(&device)).expect("each device has what it reads");
        let own = || piece.own.as_ref().unwrap_or(&piece.rows).clone();
        match beside {
            Beside::Neighbour(shift) => Kind::Neighbour(own(), shift.clone()),
            Beside::Weighted(taps) => Kind::Weighted(own(), taps.clone()),
            Beside::Inside(inside) => {
                let k = view.shape.rank() - 1;
                let by =
                    if view.shape[0] == 1 { 0 } else { (inside.frame.before[k] as isize).wrapping_add(inside.by[k]) };
                let first = first.wrapping_add_signed(by);
                let rows = piece.rows.layout.rows(first.wrapping_add_signed(piece.first.wrapping_neg()), count);
                Kind::View(piece.rows.with_layout(inside_rows(rows, inside)))
            }
        }
    }
}

impl Source {
    /// Returns the piece that a device with these places reads. It uses the room around the shards if `rooms` is given.
    fn piece(
        &mut self,
        place: &'static Location<'static>,
        device: usize,
        places: Range<usize>,
        rooms: Option<&mut Rooms>,
    ) -> Result<Piece> {
        let view = self.view.clone();
        let (all, shard) = (view.shape[0], &view.shards[device]);
        let held = view.bounds[device]..view.bounds[device + 1];
        let row = row_elements(&view.shape);
        if self.rule.is_some() && held == (0..all) || row == 0 {
            return Ok(Piece { rows: shard.clone(), first: 0, own: None, copies: Vec::new(), outside: Vec::new() });
        }
        let first = places.start as isize - self.reach[0] as isize;
        let needed = first..first + (self.reach[0] + places.len() + self.reach[1]) as isize;
        let (start, end) = (held.start as isize, held.end as isize);
        let room = view.room() as isize;
        let mut missing = Vec::new();
        let (rows, first) = if start <= needed.start && needed.end <= end {
            (shard.clone(), start)
        } else if start - room <= needed.start
            && needed.end <= end + room
            && rooms.is_some_and(|rooms| rooms.take(&view))
        {
            self.uses_room = true;
            let (low, high) = (needed.start.min(start), needed.end.max(end));
            missing.extend([low..start, end..high]);
            let Layout { shape, strides, offset } = shard.layout;
            let offset = offset - (start - low) as usize * row;
            let shape = with_rows(shape, (high - low) as usize);
            (shard.with_layout(Layout { shape, strides, offset }), low)
        } else {
            missing.push(needed.clone());
            let shape = with_rows(view.shape, (needed.end - needed.start) as usize);
            // The rows of the device's places begin at a multiple of `PAD`.
            let before = self.reach[0].saturating_mul(row);
            let offset = before.saturating_add(PAD).next_multiple_of(PAD) - before;
            let len = shape.elements().unwrap_or(usize::MAX).saturating_add(offset + PAD);
            let memory = memory(&view.split.streams()[device], view.dtype, len)?;
            (memory.with_layout(Layout { offset, ..Layout::contiguous(shape) }), needed.start)
        };
        let spare = Spare { axis: view.shape.rank() as u8 - 1, before: self.reach[0], after: self.reach[1] };
        let own = self.rule.map(|_| {
            let layout = rows.layout.rows((places.start as isize - first) as usize, places.len());
            let spare = (self.reach != [0; 2]).then_some(spare);
            let (storage, stream) = (rows.storage.clone(), rows.stream.clone());
            Arc::new(View { storage, stream, layout, dtype: rows.dtype, spare, origin: None })
        });
        let mut piece = Piece { rows, first, own, copies: Vec::new(), outside: Vec::new() };
        for missing in missing.into_iter().filter(|missing| !missing.is_empty()) {
            self.fill(place, &mut piece, device, missing)?;
        }
        Ok(piece)
    }

    /// Finds the sources of the missing rows of a piece.
    fn fill(
        &mut self,
        place: &'static Location<'static>,
        piece: &mut Piece,
        device: usize,
        missing: Range<isize>,
    ) -> Result<()> {
        let all = self.view.shape[0] as isize;
        let has = |rows: &Range<isize>| !rows.is_empty();
        let inside = missing.start.max(0)..missing.end.min(all);
        if has(&inside) {
            self.copy_rows(piece, device, inside.clone(), inside.start);
        }
        for outside in [missing.start..missing.end.min(0), missing.start.max(all)..missing.end].into_iter().filter(has)
        {
            let is_low = outside.start < 0;
            // This has the range of the rows that are read, and their direction.
            let (from, step) = match self.rule.expect("interior stencils have no rows outside") {
                Rule::Periodic => {
                    let by = if is_low { all } else { -all };
                    self.copy_rows(piece, device, outside.start + by..outside.end + by, outside.start);
                    continue;
                }
                Rule::Constant(word) => {
                    let value = node(Kind::Scalar(word), self.view.dtype, arguments([]));
                    piece.outside.push(Fill::new(place, piece.part(&outside), value)?);
                    continue;
                }
                Rule::Clamp => (if is_low { 0..1 } else { all - 1..all }, 0),
                Rule::Mirror if is_low => (1 - outside.end..1 - outside.start, -1),
                Rule::Mirror => (2 * all - 1 - outside.end..2 * all - 1 - outside.start, -1),
                Rule::Symmetric if is_low => (-outside.end..-outside.start, -1),
                Rule::Symmetric => (2 * all - outside.end..2 * all - outside.start, -1),
            };
            let (value, to) = (self.rows(piece, device, from)?, piece.part(&outside));
            let Layout { strides: mut read, offset, .. } = value.layout;
            let last = value.layout.shape[0] - 1;
            let offset = if step < 0 { offset + last * row_elements(&self.view.shape) } else { offset };
            read[0] *= step;
            let value = value.with_layout(Layout { shape: to.layout.shape, strides: read, offset });
            let value = node(Kind::View(value), self.view.dtype, arguments([]));
            piece.outside.push(Fill::new(place, to, value)?);
        }
        Ok(())
    }

    /// Returns rows of the tensor on a device. They are rows of the piece, if it has them.
    fn rows(&mut self, piece: &mut Piece, device: usize, rows: Range<isize>) -> Result<Arc<View>> {
        if piece.first <= rows.start && rows.end <= piece.first + piece.rows.layout.shape[0] as isize {
            return Ok(piece.part(&rows));
        }
        let shape = with_rows(self.view.shape, (rows.end - rows.start) as usize);
        let len = shape.elements().unwrap_or(usize::MAX);
        let memory = memory(&self.view.split.streams()[device], self.view.dtype, len)?;
        let some = memory.with_layout(Layout::contiguous(shape));
        for (owner, range) in self.owners(rows.clone()) {
            let from = (self.view.shards[owner].clone(), self.element_of(owner, range.start));
            let row = row_elements(&shape);
            let to = (some.clone(), (range.start - rows.start) as usize * row);
            piece.copies.push(Transfer { from, to, len: (range.end - range.start) as usize * row });
        }
        Ok(some)
    }

    /// Copies rows of the tensor to the rows of a piece, starting at row `at`.
    fn copy_rows(&mut self, piece: &mut Piece, device: usize, rows: Range<isize>, at: isize) {
        let row = row_elements(&self.view.shape);
        // Memory that is not a shard's is not in a chain.
        let in_shard = piece.rows.storage.same_as(&self.view.shards[device].storage);
        for (owner, range) in self.owners(rows.clone()) {
            let shard = &self.view.shards[owner];
            let (first, last) = (self.view.bounds[owner] as isize, self.view.bounds[owner + 1] as isize);
            let from = match &self.view.halo {
                Some(halo) if in_shard && owner != device => {
                    // The rows that are missing around a shard are the last rows of a device before it, or the first rows of a device after
                    // it.
                    let (posted, outbox) = (&mut self.posted[owner], halo.outboxes[owner].clone());
                    if range.start == first && range.end - first <= halo.rows as isize {
                        posted[0] = posted[0].max((range.end - first) as usize);
                        (outbox, 0)
                    } else {
                        let count = (last - range.start) as usize;
                        posted[1] = posted[1].max(count);
                        let end = outbox.layout.shape[0];
                        (outbox, end - count * row)
                    }
                }
                _ => (shard.clone(), self.element_of(owner, range.start)),
            };
            let to = (piece.rows.clone(), (at + range.start - rows.start - piece.first) as usize * row);
            piece.copies.push(Transfer { from, to, len: (range.end - range.start) as usize * row });
        }
    }

    /// Returns the devices that have rows of the tensor, with the rows of each.
    fn owners(&self, rows: Range<isize>) -> Vec<(usize, Range<isize>)> {
        let bounds = self.view.bounds.windows(2).enumerate();
        let parts =
            bounds.map(|(owner, bounds)| (owner, rows.start.max(bounds[0] as isize)..rows.end.min(bounds[1] as isize)));
        parts.filter(|(_, range)| !range.is_empty()).collect()
    }

    /// Returns the number of a row's first element in the shard of its device.
    fn element_of(&self, owner: usize, row: isize) -> usize {
        (row as usize - self.view.bounds[owner]) * row_elements(&self.view.shape)
    }

    /// Copies the rows that others read of each device to its outbox.
    fn post(&self) -> Result<()> {
        let Some(halo) = &self.view.halo else { return Ok(()) };
        let row = row_elements(&self.view.shape);
        for (owner, &[first, last]) in self.posted.iter().enumerate() {
            let (shard, outbox) = (&self.view.shards[owner], &halo.outboxes[owner]);
            let (held, end) = (self.view.bounds[owner + 1] - self.view.bounds[owner], outbox.layout.shape[0]);
            for (from, to, count) in [(0, 0, first), (held - last, end - last * row, last)] {
                let (from, to) = ((shard.clone(), from * row), (outbox.clone(), to));
                copy_elements(&self.view, &Transfer { from, to, len: count * row })?;
            }
        }
        Ok(())
    }
}

impl Fill {
    fn new(place: &'static Location<'static>, to: Arc<View>, value: Arc<Node>) -> Result<Self> {
        let lowered = lower([&value]);
        let nest = prepare(place, &[&to], &lowered, &|| vec![&value])?;
        Ok(Self { to, value, prepared: Box::new((lowered, nest)) })
    }
}

impl Piece {
    /// Returns some of the piece's rows.
    fn part(&self, rows: &Range<isize>) -> Arc<View> {
        let count = (rows.end - rows.start) as usize;
        self.rows.with_layout(self.rows.layout.rows((rows.start - self.first) as usize, count))
    }
}

fn copy_elements(view: &SplitView, Transfer { from, to, len }: &Transfer) -> Result<()> {
    let call = "a stencil of a `SplitTensor`";
    with_type!(view.dtype, T => copy::<T>(call, (&to.0, to.1), (&from.0, from.1), *len))
}
