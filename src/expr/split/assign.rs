//! Assignments to split tensors: an expression as one of each device.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Error, ExpressionErrorKind, Result};

use super::view::{Rows, SplitView, row_elements};
use crate::expr::dtype::DType;
use crate::expr::evaluate::{launch, mistake, prepare};
use crate::expr::graph::{Kind, Node, Op, View, arguments, describe, function_of_two, node, rewritten, with_arguments};
use crate::expr::layout::shape::{Layout, Shape};
use crate::expr::program::lower;

/// Computes an expression into a split tensor.
pub(super) fn assign(place: &'static Location<'static>, target: &Arc<SplitView>, root: &Arc<Node>) -> Result<()> {
    if matches!(root.kind, Kind::Steps(_)) {
        let reason = "steps of a stencil are for tensors of one device".into();
        return Err(mistake(place, ExpressionErrorKind::BadSplit, reason, &[root]));
    }
    let (rows, row) = (target.rows(), row_elements(&target.shape));
    let reads = Reads::of(root);
    reads.check(place, root, &target.shape, rows)?;
    let shards = rows.shards_or_first();
    let mut ready = Vec::with_capacity(shards.len());
    for (device, first, _) in shards {
        let lowered = lower([&on_device(root, device, first, row)]);
        let nest = prepare(place, &[&target.shards[device]], &lowered, &|| vec![root])?;
        ready.push((device, lowered, nest));
    }
    for (device, lowered, nest) in &ready {
        launch(place, &[&target.shards[*device]], lowered, nest, &|| describe(&[root]).0.join("; "))?;
    }
    Ok(())
}

/// The tensors that an expression reads.
#[derive(Default)]
pub(super) struct Reads {
    pub(super) split: Vec<Arc<SplitView>>,
    /// Of one device, read at the place that is computed or beside it.
    pub(super) whole: Vec<Arc<View>>,
    /// Of one device, read at places that are computed: their shapes say nothing of the results'.
    gathered: Vec<Arc<View>>,
}

impl Reads {
    pub(super) fn of(root: &Arc<Node>) -> Self {
        let mut reads = Self::default();
        rewritten(root, |node, _| {
            match &node.kind {
                Kind::Split(view) => reads.split.push(view.clone()),
                Kind::View(view) | Kind::Neighbour(view, _) | Kind::Weighted(view, _) => reads.whole.push(view.clone()),
                Kind::Gather(view) => reads.gathered.push(view.clone()),
                _ => {}
            }
            node.clone()
        });
        reads
    }

    /// Checks that all that is read for these rows of `shape` is where they are.
    pub(super) fn check(
        &self,
        place: &'static Location<'static>,
        root: &Arc<Node>,
        shape: &Shape,
        rows: Rows<'_>,
    ) -> Result<()> {
        let fail = |kind, reason| -> Result<(), Error> { Err(mistake(place, kind, reason, &[root])) };
        for view in &self.split {
            let whole = view.shape;
            if Layout::contiguous(whole).broadcast_to(shape).is_none() {
                let reason = format!("shape {whole} does not broadcast to that of the target, {shape}");
                return fail(ExpressionErrorKind::BadShape, reason);
            }
            if whole.rank() != shape.rank() || whole[0] != shape[0] {
                let reason = format!(
                    "a tensor of shape {whole} that is split along its outermost axis cannot be repeated over the rows of {shape}"
                );
                return fail(ExpressionErrorKind::BadSplit, reason);
            }
            if !rows.are_those_of(view.rows()) {
                let reason = format!(
                    "tensors are split in two ways, as {} and as {}: copy one by `resplit`",
                    rows.describe(),
                    view.describe()
                );
                return fail(ExpressionErrorKind::BadSplit, reason);
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

/// The expression on one device, whose rows begin at `first`: of split tensors its rows, and with indices that count over the whole.
///
/// The numbers of the first row and element are scalars, so that devices have one kernel. That of the first row has its own, in which
/// random numbers cost less: those of neighbours are of one draw if they are by an index as it is.
pub(super) fn on_device(root: &Arc<Node>, device: usize, first: usize, row: usize) -> Arc<Node> {
    let (first_row, first_element) = (number(first as u64), number(first.saturating_mul(row) as u64));
    let after = |index: &Arc<Node>, before: &Arc<Node>| function_of_two(Op::Add, index.clone(), before.clone());
    rewritten(root, |old, new| match &old.kind {
        Kind::Split(view) => node(Kind::View(view.shards[device].clone()), old.dtype, new),
        Kind::Index(None) if first > 0 => after(old, &first_element),
        Kind::Index(Some(0)) if first > 0 => after(old, &first_row),
        _ => with_arguments(old, new),
    })
}

/// A number that is no part of the kernel.
pub(super) fn number(number: u64) -> Arc<Node> {
    node(Kind::Scalar(number), DType::U64, arguments([]))
}
