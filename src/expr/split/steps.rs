//! Steps of a stencil on split tensors: passes of one step each. Before each pass, devices get the rows of other devices again.
//!
//! Passes take turns between the target and memory that has room around its shards, so that no pass copies a shard. A stepped tensor
//! without such room is copied once to memory that has it. A target without such room gets only the last step.
//!
//! The places of an interior stencil are computed where they are in the target. A tensor beside them has the shape of the interior, and is
//! split like any tensor of that shape. It is copied once to the devices that have the places.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::{ExpressionErrorKind, Result};

use super::assign::{Pass, Reads};
use super::copy::copy_rows;
use super::halo::Rooms;
use super::packed::{memory, rows_of};
use super::view::{SplitView, with_rows};
use crate::expr::dtype::with_type;
use crate::expr::evaluate::{evaluate, mistake};
use crate::expr::graph::{Frame, Kind, Node};
use crate::expr::layout::shape::MAX_RANK;
use crate::expr::steps::passes::{between, check, element_of, memories, turns};
use crate::expr::steps::stepped::{AnyView, Found, Refusal, part, with_leaves};

/// Computes `root`, which are `count` steps, into a split tensor.
pub(super) fn assign(
    place: &'static Location<'static>,
    target: &Arc<SplitView>,
    root: &Arc<Node>,
    count: usize,
) -> Result<()> {
    let fail = |(kind, reason): Refusal| mistake(place, kind, reason, &[root]);
    let value = root.arguments().next().expect("steps are of a value");
    let mut stepped = SplitStepped::new(value).map_err(fail)?;
    let both = [target, &stepped.state].map(|view| AnyView::Split(view.clone()));
    check(count, stepped.found.frame, both).map_err(fail)?;
    if !target.rows().are_those_of(stepped.state.rows()) {
        return Err(fail((ExpressionErrorKind::BadSplit, target.rows().differ_from(&stepped.state))));
    }
    let mut rooms = Rooms::default();
    if stepped.found.frame.is_some() {
        // Only the whole target shows whether it can be assigned to.
        Pass::new(place, target, &rows_of(&stepped.state), root, &mut rooms)?;
    }
    if count == 0 {
        return Pass::new(place, target, &rows_of(&stepped.state), root, &mut rooms)?.run(&[root]);
    }
    stepped.bring_others(place, target)?;
    // All mistakes are found before memory is taken for the passes.
    let mut single = Pass::new(place, &stepped.inner(target), &stepped.step_of(&stepped.state), root, &mut rooms)?;
    if target.shape.elements() == Some(0) {
        return Ok(());
    }
    if count == 1 {
        single.run(&[root])?;
        return stepped.copy_around(place, target);
    }
    drop(single);

    let room = stepped.room();
    // A view that is not contiguous would be copied before each pass that reads it.
    let has_room = |view: &SplitView| view.room() >= room && (view.is_contiguous() || view.is_on_one());
    // The tensors that are read beside the stepped tensor must not be in the memory of steps in between.
    let free = has_room(target) && !stepped.found.reads_of(&AnyView::Split(target.clone()));
    let copies = !has_room(&stepped.state);
    let passes = count + usize::from(copies);
    let like_target = || memory(&target.split, (target.shape, &target.bounds), target.dtype, room);
    let own: Vec<Arc<SplitView>> = (0..memories(passes, free)).map(|_| like_target()).collect::<Result<_>>()?;
    let buffers = turns(&own, target, passes, free);
    let steps: Vec<usize> = (0..passes).map(|pass| usize::from(pass > 0 || !copies)).collect();
    let mut made = Vec::new();
    let order = between(&stepped.state, &buffers, &steps, |source, to, steps| {
        made.push(match steps {
            0 => Pass::new(place, to, &rows_of(source), root, &mut rooms)?,
            _ => Pass::new(place, &stepped.inner(to), &stepped.step_of(source), root, &mut rooms)?,
        });
        Ok(made.len() as u32 - 1)
    })?;
    for memory in own.iter().chain(free.then_some(target)) {
        stepped.copy_around(place, memory)?;
    }
    for pass in order {
        made[pass as usize].run(&[root])?;
    }
    if !free {
        stepped.copy_around(place, target)?;
    }
    Ok(())
}

/// A stencil on a split tensor that can be applied to its own result.
struct SplitStepped {
    /// One step.
    value: Arc<Node>,
    /// The stepped tensor.
    state: Arc<SplitView>,
    found: Found,
}

impl SplitStepped {
    /// Finds the tensor that `value` steps.
    fn new(value: &Arc<Node>) -> Result<Self, Refusal> {
        let found = Found::of(value)?;
        let AnyView::Split(state) = &found.state else {
            let reason = "steps of a tensor of one device are not assigned to a split one: split it, by `SplitTensor::from_tensor`";
            return Err((ExpressionErrorKind::BadSplit, reason.into()));
        };
        let stepped = Self { value: value.clone(), state: state.clone(), found };
        let inner = AnyView::Split(stepped.inner(&stepped.state));
        stepped.found.check(|view| view.same_as(&inner))?;
        Ok(stepped)
    }

    /// Returns one step of the elements in `source`, which has the shape of the stepped tensor.
    fn step_of(&self, source: &Arc<SplitView>) -> Arc<Node> {
        let inner = self.inner(&self.state);
        with_leaves(&self.value, |kind| match kind {
            Kind::Split(view) if view.same_as(&self.state) => Some(Kind::Split(source.clone())),
            Kind::Split(view) if view.same_as(&inner) => Some(Kind::Split(self.inner(source))),
            Kind::SplitBeside(view, beside) if view.same_as(&self.state) => {
                Some(Kind::SplitBeside(source.clone(), beside.clone()))
            }
            _ => None,
        })
    }

    /// Returns the number of rows around the rows of a device that a step reads.
    fn room(&self) -> usize {
        if self.state.is_on_one() {
            return 0;
        }
        let shape = &self.state.shape;
        if let Some(Frame { before, after }) = self.found.frame {
            let k = shape.rank() - 1;
            return before[k].max(after[k]);
        }
        let beside = Reads::of(&self.value).beside;
        let own = beside.iter().filter(|(view, _)| view.same_as(&self.state));
        own.flat_map(|(view, beside)| beside.reach(view.shape)).max().unwrap_or(0)
    }

    /// Returns the places of `view` that are computed, each on its device.
    fn inner(&self, view: &Arc<SplitView>) -> Arc<SplitView> {
        let Some(frame) = &self.found.frame else { return view.clone() };
        let (k, rows) = (view.shape.rank() - 1, view.shape[0]);
        let (first, end) = (frame.before[k], rows - frame.after[k]);
        let shards = view.shards.iter().enumerate();
        let shards: Vec<_> =
            shards.map(|(device, shard)| part(shard, &frame_on(frame, view, device), &[0; MAX_RANK])).collect();
        let shape = with_rows(shards[0].layout.shape, end - first);
        let bounds = view.bounds.iter().map(|&row| row.clamp(first, end) - first).collect();
        let (split, dtype) = (view.split.clone(), view.dtype);
        Arc::new(SplitView { split, shape, bounds, shards, dtype, halo: None, by_stencil: false })
    }

    /// Copies the elements that no step changes.
    fn copy_around(&self, place: &'static Location<'static>, to: &Arc<SplitView>) -> Result<()> {
        let Some(frame) = &self.found.frame else { return Ok(()) };
        for (device, ..) in to.rows().shards() {
            let (from, to, frame) = (&self.state.shards[device], &to.shards[device], frame_on(frame, to, device));
            for (here, there) in frame.around(&from.layout).into_iter().zip(frame.around(&to.layout)) {
                evaluate(place, &[&to.with_layout(there)], &[element_of(&from.with_layout(here))])?;
            }
        }
        Ok(())
    }

    /// Copies the tensors beside an interior stencil to the devices of its places.
    fn bring_others(&mut self, place: &'static Location<'static>, target: &SplitView) -> Result<()> {
        if self.found.frame.is_none() {
            return Ok(());
        }
        let places = self.inner(&self.state).bounds.clone();
        let count = places[places.len() - 1];
        let usual = target.split.bounds(count);
        if places == usual || count == target.shape[0] {
            return Ok(());
        }
        let mut brought: Vec<[Arc<SplitView>; 2]> = Vec::new();
        for view in Reads::of(&self.value).split {
            let is_known = brought.iter().any(|[known, _]| known.same_as(&view));
            if view.bounds == usual && view.split.has_devices_of(&target.split) && !is_known {
                let copy = memory(&target.split, (view.shape, &places), view.dtype, 0)?;
                with_type!(view.dtype, T => copy_rows::<T>((place, "steps of a `SplitTensor`"), &copy, &view)?);
                brought.push([view, copy]);
            }
        }
        self.value = with_leaves(&self.value, |kind| {
            let Kind::Split(view) = kind else { return None };
            let [_, copy] = brought.iter().find(|[known, _]| known.same_as(view))?;
            Some(Kind::Split(copy.clone()))
        });
        Ok(())
    }
}

/// Returns the part of a frame that is in the rows of a device.
fn frame_on(frame: &Frame, view: &SplitView, device: usize) -> Frame {
    let (k, rows) = (view.shape.rank() - 1, view.shape[0]);
    let (first, end) = (view.bounds[device], view.bounds[device + 1]);
    let mut own = *frame;
    own.before[k] = frame.before[k].clamp(first, end) - first;
    own.after[k] = end - (rows - frame.after[k]).clamp(first, end);
    own
}
