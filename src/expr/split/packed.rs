//! Contiguous copies of views that are copied between devices. Each row of a copy is on the device that has the row.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Result, Split};

use super::assign::Pass;
use super::halo::{Halo, Rooms};
use super::view::{Rows, SplitView};
use crate::expr::dtype::DType;
use crate::expr::graph::{Kind, Node, arguments, node, rewritten, with_arguments};
use crate::expr::layout::shape::Shape;

/// Returns the same view if the rows of each device are contiguous, and a contiguous copy otherwise.
pub(super) fn contiguous(place: &'static Location<'static>, view: &Arc<SplitView>) -> Result<Arc<SplitView>> {
    if view.is_contiguous() {
        return Ok(view.clone());
    }
    let (copy, mut pass) = copied(place, view)?;
    pass.run(&[&rows_of(view)])?;
    Ok(copy)
}

/// Takes memory for contiguous copies of views that are not contiguous. These are the views that stencils and gathers read of other devices
/// in an expression of these rows. Returns the expression that reads the copies, and the passes that fill them.
pub(super) fn packed(
    place: &'static Location<'static>,
    root: &Arc<Node>,
    rows: Rows<'_>,
) -> Result<(Arc<Node>, Vec<Pass>)> {
    let mut views: Vec<Arc<SplitView>> = Vec::new();
    let mut add = |view: &Arc<SplitView>| {
        if !view.is_contiguous() && !views.iter().any(|known| known.same_as(view)) {
            views.push(view.clone());
        }
    };
    rewritten(root, &mut |node, _| {
        match &node.kind {
            // A device that reads only its own rows reads them without a copy.
            Kind::SplitBeside(view, beside)
                if view.bounds == rows.bounds && (view.is_on_one() || beside.reach(view.shape) == [0; 2]) => {}
            Kind::SplitBeside(view, _) | Kind::SplitGather(view) => add(view),
            _ => {}
        }
        node.clone()
    });
    if views.is_empty() {
        return Ok((root.clone(), Vec::new()));
    }
    let copies = views.iter().map(|view| copied(place, view)).collect::<Result<Vec<_>>>()?;
    let copy_of = |view: &SplitView| {
        let mut known = views.iter().zip(&copies).filter(|(known, _)| known.same_as(view));
        known.next().map(|(_, (copy, _))| copy.clone())
    };
    let value = rewritten(root, &mut |old, new| {
        let kind = match &old.kind {
            Kind::SplitBeside(view, beside) => copy_of(view).map(|copy| Kind::SplitBeside(copy, beside.clone())),
            Kind::SplitGather(view) => copy_of(view).map(Kind::SplitGather),
            _ => None,
        };
        match kind {
            Some(kind) => node(kind, old.dtype, new),
            None => with_arguments(old, new),
        }
    });
    Ok((value, copies.into_iter().map(|(_, pass)| pass).collect()))
}

/// Takes memory for a copy of a view. Also returns the pass that fills it.
fn copied(place: &'static Location<'static>, view: &Arc<SplitView>) -> Result<(Arc<SplitView>, Pass)> {
    let copy = memory(&view.split, (view.shape, &view.bounds), view.dtype, 0)?;
    let value = rows_of(view);
    // It reads no rows of other devices, and so takes no room.
    let pass = Pass::new(place, &copy, &value, &value, &mut Rooms::default())?;
    Ok((copy, pass))
}

/// Returns the element of a split tensor at the computed place.
pub(super) fn rows_of(view: &Arc<SplitView>) -> Arc<Node> {
    node(Kind::Split(view.clone()), view.dtype, arguments([]))
}

/// Makes a tensor with this split, and with room for `room` rows around the rows of each device.
pub(super) fn memory(
    split: &Split,
    (shape, bounds): (Shape, &[usize]),
    dtype: DType,
    room: usize,
) -> Result<Arc<SplitView>> {
    let (shards, halo) = Halo::new(split.streams(), (shape, bounds), dtype, room)?;
    let (split, bounds, halo) = (split.clone(), bounds.to_vec(), Some(Arc::new(halo)));
    Ok(Arc::new(SplitView { split, shape, bounds, shards, dtype, halo, by_stencil: false }))
}
