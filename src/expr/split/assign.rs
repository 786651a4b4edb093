//! Assignments to split tensors. An expression becomes one expression for each device.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Error, ExpressionErrorKind, Result, Split};

use super::beside::Beside;
use super::gathers::Gathers;
use super::halo::{Halos, Rooms};
use super::packed::packed;
use super::slices::repeats_rows;
use super::steps;
use super::view::{Rows, SplitView, row_elements};
use crate::expr::describe::kernel_name;
use crate::expr::dtype::DType;
use crate::expr::evaluate::{launch, mistake, overlaps, prepare};
use crate::expr::graph::{Kind, Node, Op, View, arguments, function_of_two, node, rewritten, with_arguments};
use crate::expr::layout::nest::Nest;
use crate::expr::layout::shape::{Layout, Shape};
use crate::expr::program::{Lowered, lower};

/// Computes an expression into a split tensor.
pub(super) fn assign(place: &'static Location<'static>, target: &Arc<SplitView>, root: &Arc<Node>) -> Result<()> {
    if let Kind::Steps(count) = root.kind {
        return steps::assign(place, target, root, count);
    }
    let mut rooms = Rooms::default();
    Pass::new(place, target, root, root, &mut rooms)?.run(&[root])
}

/// An expression that is computed into a split tensor. It is checked and prepared once, and can run again and again, as long as the call
/// has its rooms.
pub(super) struct Pass {
    place: &'static Location<'static>,
    target: Arc<SplitView>,
    value: Arc<Node>,
    /// The expression that errors describe.
    root: Arc<Node>,
    /// The copies of views to contiguous memory.
    copies: Vec<Self>,
    halos: Halos,
    gathers: Gathers,
    kernels: Vec<Kernel>,
}

/// The number of a device, and the program and the nest of its kernel.
type Kernel = (usize, Lowered, Nest);

impl Pass {
    /// Makes a pass that computes `value`, which is the assignment `root` or a step of it. Takes memory for the elements that stencils
    /// read, and copies nothing.
    pub(super) fn new(
        place: &'static Location<'static>,
        target: &Arc<SplitView>,
        value: &Arc<Node>,
        root: &Arc<Node>,
        rooms: &mut Rooms,
    ) -> Result<Self> {
        let rows = target.rows();
        let reads = Reads::of(value);
        reads.check(place, root, &target.shape, rows)?;
        // If a device reads a copy in place of its shard, the copy has other memory.
        let overlap = |source: &SplitView| target.shards.iter().zip(&source.shards).any(|(a, b)| overlaps(a, b));
        if reads.beside.iter().any(|(source, _)| overlap(source)) {
            let reason =
                "the target overlaps what a stencil reads beside each place: assign to another tensor, or read a copy";
            return Err(mistake(place, ExpressionErrorKind::Overlap, reason.into(), &[root]));
        }
        if reads.gathered_split.iter().any(|source| overlap(source)) {
            let reason = "the target overlaps what a gather reads: assign to another tensor, or read a copy";
            return Err(mistake(place, ExpressionErrorKind::Overlap, reason.into(), &[root]));
        }
        let (value, copies) = packed(place, value, rows)?;
        let gathers = Gathers::new(place, &value, rows)?;
        let halos = Halos::new(place, &Reads::of(&value), rows, rooms)?;
        let kernels = kernels_of(place, target, [&value, root], Brought { halos: &halos, gathers: &gathers })?;
        let (target, root) = (target.clone(), root.clone());
        Ok(Self { place, target, value, root, copies, halos, gathers, kernels })
    }

    /// Enqueues the copies and the kernels. They have the name of this expression.
    pub(super) fn run(&mut self, named: &[&Arc<Node>]) -> Result<()> {
        let (place, Self { target, value, root, copies, halos, gathers, kernels, .. }) = (self.place, self);
        for copy in copies {
            copy.run(named)?;
        }
        halos.bring(place)?;
        if !gathers.is_empty() {
            gathers.bring(place, &target.shape, target.rows(), halos)?;
            *kernels = kernels_of(place, target, [value, root], Brought { halos, gathers })?;
        }
        let name = || kernel_name(named, &target.shards[0]);
        for (device, lowered, nest) in kernels {
            launch(place, &[&target.shards[*device]], lowered, nest, &name)?;
        }
        Ok(())
    }
}

/// Returns the kernels of the devices that have rows. Errors describe `root`.
fn kernels_of(
    place: &'static Location<'static>,
    target: &SplitView,
    [value, root]: [&Arc<Node>; 2],
    brought: Brought<'_>,
) -> Result<Vec<Kernel>> {
    let row = row_elements(&target.shape);
    let one = |(device, first, count)| {
        let lowered = lower([&on_device(value, device, (first, count), row, brought)]);
        let nest = prepare(place, &[&target.shards[device]], &lowered, &|| vec![root])?;
        Ok((device, lowered, nest))
    };
    target.rows().shards_or_first().into_iter().map(one).collect()
}

/// The tensors that an expression reads.
#[derive(Default)]
pub(super) struct Reads {
    pub(super) split: Vec<Arc<SplitView>>,
    /// Split tensors that stencils read.
    pub(super) beside: Vec<(Arc<SplitView>, Arc<Beside>)>,
    /// Tensors of one device that are read at the computed place, or beside it.
    pub(super) whole: Vec<Arc<View>>,
    /// Tensors of one device that are read at computed indices. Their shapes do not matter for the results' shape.
    gathered: Vec<Arc<View>>,
    /// Split tensors that are gathered from. Their shapes do not matter, either.
    pub(super) gathered_split: Vec<Arc<SplitView>>,
}

impl Reads {
    pub(super) fn of(root: &Arc<Node>) -> Self {
        let mut reads = Self::default();
        rewritten(root, &mut |node, _| {
            match &node.kind {
                Kind::Split(view) => reads.split.push(view.clone()),
                Kind::SplitBeside(view, beside) => reads.beside.push((view.clone(), beside.clone())),
                Kind::View(view) | Kind::Neighbour(view, _) | Kind::Weighted(view, _) => reads.whole.push(view.clone()),
                Kind::Gather(view) => reads.gathered.push(view.clone()),
                Kind::SplitGather(view) => reads.gathered_split.push(view.clone()),
                _ => {}
            }
            node.clone()
        });
        reads
    }

    /// Returns the split of the results, the first row of each device, and their shape. The first split tensor decides them.
    pub(super) fn first(&self) -> Option<(Split, Vec<usize>, Shape)> {
        let of = |view: &SplitView, shape: Shape| {
            // An interior stencil has places for only a part of the rows.
            let bounds = if shape[0] == view.shape[0] { view.bounds.clone() } else { view.split.bounds(shape[0]) };
            (view.split.clone(), bounds, shape)
        };
        let split = self.split.first().map(|view| of(view, view.shape));
        // The rows of an interior stencil are split like the rows of other tensors.
        let beside = self.beside.iter().find(|(_, beside)| beside.rule().is_some()).or(self.beside.first());
        split.or_else(|| beside.map(|(view, beside)| of(view, beside.shape(view.shape))))
    }

    /// Checks that all tensors that are read for these rows of `shape` are on the devices of the rows.
    pub(super) fn check(
        &self,
        place: &'static Location<'static>,
        root: &Arc<Node>,
        shape: &Shape,
        rows: Rows<'_>,
    ) -> Result<()> {
        let fail = |kind, reason| -> Result<(), Error> { Err(mistake(place, kind, reason, &[root])) };
        let split = self.split.iter().map(|view| (view, view.shape, true));
        let beside = self.beside.iter().map(|(view, beside)| (view, beside.shape(view.shape), beside.rule().is_some()));
        for (view, whole, in_place) in split.chain(beside) {
            if Layout::contiguous(whole).broadcast_to(shape).is_none() {
                let reason = format!("shape {whole} does not broadcast to that of the target, {shape}");
                return fail(ExpressionErrorKind::BadShape, reason);
            }
            if whole.rank() != shape.rank() || whole[0] != shape[0] {
                return fail(ExpressionErrorKind::BadSplit, repeats_rows(&whole, shape));
            }
            // The rows of an interior stencil are split like its places.
            if !(if in_place { rows.are_those_of(view.rows()) } else { rows.split.has_devices_of(&view.split) }) {
                return fail(ExpressionErrorKind::BadSplit, rows.differ_from(view));
            }
        }
        for view in self.whole.iter().chain(&self.gathered) {
            for (device, ..) in rows.shards() {
                let stream = &rows.split.streams()[device];
                if !view.storage.is_on(stream.device()) {
                    let reason = format!(
                        "a tensor of shape {} is on {}, but is read on {}: split it, by `SplitTensor::from_tensor`",
                        view.layout.shape,
                        view.storage.device(),
                        stream.device()
                    );
                    return fail(ExpressionErrorKind::BadSplit, reason);
                }
            }
        }
        Ok(())
    }
}

/// The elements that devices get from other devices before they compute an expression.
#[derive(Clone, Copy)]
pub(super) struct Brought<'a> {
    pub(super) halos: &'a Halos,
    pub(super) gathers: &'a Gathers,
}

/// Returns the expression on one device, which has `count` rows starting at row `first`. It reads the device's rows of split tensors, and
/// the rows around them that stencils read. Its indices count over the whole tensor.
///
/// The numbers of the first row and of the first element are scalars, so that the devices share one kernel. The device with row 0 has a
/// kernel of its own. Random numbers cost less in this kernel: neighbouring numbers share a draw only if they depend on the unchanged
/// index.
pub(super) fn on_device(
    root: &Arc<Node>,
    device: usize,
    (first, count): (usize, usize),
    row: usize,
    Brought { halos, gathers }: Brought<'_>,
) -> Arc<Node> {
    let (first_row, first_element) = (number(first as u64), number(first.saturating_mul(row) as u64));
    let after = |index: &Arc<Node>, before: &Arc<Node>| function_of_two(Op::Add, index.clone(), before.clone());
    rewritten(root, &mut |old, new| match &old.kind {
        Kind::Split(view) => node(Kind::View(halos.own(view, device)), old.dtype, new),
        Kind::SplitBeside(view, beside) => node(halos.beside(view, beside, device, first, count), old.dtype, new),
        Kind::SplitGather(_) => gathers.on(old, device, new),
        Kind::Index(None) if first > 0 => after(old, &first_element),
        Kind::Index(Some(0)) if first > 0 => after(old, &first_row),
        _ => with_arguments(old, new),
    })
}

/// Makes a number that is not a part of the kernel.
pub(super) fn number(number: u64) -> Arc<Node> {
    node(Kind::Scalar(number), DType::U64, arguments([]))
}
