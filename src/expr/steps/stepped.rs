//! Finds the stepped tensor in the graph of one step.

use std::sync::Arc;

use primitives_host::ExpressionErrorKind;

use crate::expr::dtype::DType;
use crate::expr::evaluate::overlaps;
use crate::expr::graph::{Frame, Inside, Kind, Node, Origin, View, rewritten, with_arguments};
use crate::expr::layout::shape::{Layout, MAX_RANK, Shape};
use crate::expr::neighbours::neighbour::{Rule, Shift};
use crate::expr::split::{Beside, SplitView};

/// A stencil that can be applied to its own result.
pub(super) struct Stepped {
    /// One step.
    value: Arc<Node>,
    /// The stepped tensor.
    pub(super) state: Arc<View>,
    /// For an interior stencil: the places that keep their elements.
    pub(super) frame: Option<Frame>,
}

pub(in crate::expr) type Refusal = (ExpressionErrorKind, String);

fn refusal<T>(reason: impl Into<String>) -> Result<T, Refusal> {
    Err((ExpressionErrorKind::BadStencil, reason.into()))
}

/// A tensor of one device, or a tensor that is split over devices.
#[derive(Clone)]
pub(in crate::expr) enum AnyView {
    Whole(Arc<View>),
    Split(Arc<SplitView>),
}

impl AnyView {
    pub(in crate::expr) fn shape(&self) -> Shape {
        match self {
            Self::Whole(view) => view.layout.shape,
            Self::Split(view) => view.shape,
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Self::Whole(view) => view.dtype,
            Self::Split(view) => view.dtype,
        }
    }

    pub(in crate::expr) fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.same_as(b),
            (Self::Split(a), Self::Split(b)) => a.same_as(b),
            _ => false,
        }
    }

    /// Returns whether both may have an element in common.
    pub(in crate::expr) fn overlaps(&self, other: &Self) -> bool {
        self.parts().iter().any(|a| other.parts().iter().any(|b| overlaps(a, b)))
    }

    fn parts(&self) -> &[Arc<View>] {
        match self {
            Self::Whole(view) => std::slice::from_ref(view),
            Self::Split(view) => &view.shards,
        }
    }
}

/// The tensors that the leaves of a graph read.
#[derive(Default)]
struct Reads {
    /// The tensors that are read beside the place.
    beside: Vec<AnyView>,
    /// The tensors that a stencil reads in the place.
    by_stencil: Vec<AnyView>,
    /// The tensors that are read in the place, without a stencil.
    own: Vec<AnyView>,
    gathered: Vec<AnyView>,
    frames: Vec<Frame>,
    refused: Option<Refusal>,
}

impl Reads {
    fn of(value: &Arc<Node>) -> Self {
        let mut reads = Self::default();
        rewritten(value, &mut |node, _| {
            reads.node(node);
            node.clone()
        });
        reads
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            Kind::View(view) => match view.origin.as_deref() {
                None => add(&mut self.own, AnyView::Whole(view.clone())),
                Some(Origin { view, inside }) => {
                    let beside = match (view, inside) {
                        (Some(view), Some(inside)) => self.interior(inside.frame, &view.layout.shape),
                        _ => false,
                    };
                    self.stencil(view.as_ref(), beside);
                }
            },
            Kind::Split(view) if view.by_stencil => add(&mut self.by_stencil, AnyView::Split(view.clone())),
            Kind::Split(view) => add(&mut self.own, AnyView::Split(view.clone())),
            Kind::SplitBeside(view, beside) => {
                let is_beside = match &**beside {
                    Beside::Inside(inside) => self.interior(inside.frame, &view.shape),
                    Beside::Neighbour(_) | Beside::Weighted(_) => true,
                };
                add(if is_beside { &mut self.beside } else { &mut self.by_stencil }, AnyView::Split(view.clone()));
            }
            Kind::Neighbour(view, _) | Kind::Weighted(view, _) => self.stencil(view.stencil_origin(), true),
            // A neighbour that is outside from every place has become a constant, with its source as an argument.
            Kind::Constant(_) => match node.arguments().next().map(|source| &source.kind) {
                Some(Kind::View(view)) => self.stencil(view.stencil_origin(), false),
                Some(Kind::Split(view)) => add(&mut self.by_stencil, AnyView::Split(view.clone())),
                _ => {}
            },
            Kind::Gather(view) => add(&mut self.gathered, AnyView::Whole(view.clone())),
            Kind::SplitGather(view) => add(&mut self.gathered, AnyView::Split(view.clone())),
            Kind::Steps(_) => self.refuse("steps of steps: assign the inner ones to a tensor first"),
            Kind::Wrong(kind, reason) => {
                self.refused.get_or_insert((*kind, reason.to_string()));
            }
            _ => {}
        }
    }

    fn refuse(&mut self, reason: &str) {
        self.refused.get_or_insert((ExpressionErrorKind::BadStencil, reason.into()));
    }

    /// Adds an interior stencil on a tensor of a shape. Returns whether it reads beside the place.
    fn interior(&mut self, frame: Frame, shape: &Shape) -> bool {
        if !self.frames.contains(&frame) {
            self.frames.push(frame);
        }
        frame.is_along(shape)
    }

    /// Adds a stencil on a view without an origin, or on an interior stencil.
    fn stencil(&mut self, view: Option<&Arc<View>>, beside: bool) {
        let Some(view) = view else {
            return self.refuse(
                "a stencil of an interior stencil, which has no elements beyond its interior, has no steps: assign the inner one to \
                 a tensor first",
            );
        };
        add(if beside { &mut self.beside } else { &mut self.by_stencil }, AnyView::Whole(view.clone()));
    }
}

fn add(views: &mut Vec<AnyView>, view: AnyView) {
    if !views.iter().any(|known| known.same_as(&view)) {
        views.push(view);
    }
}

/// The stepped tensor, on one device or split, and the other tensors that a step reads.
pub(in crate::expr) struct Found {
    pub(in crate::expr) state: AnyView,
    /// For an interior stencil: the places that keep their elements.
    pub(in crate::expr) frame: Option<Frame>,
    reads: Reads,
}

impl Found {
    /// Finds them in the graph of one step.
    pub(in crate::expr) fn of(value: &Arc<Node>) -> Result<Self, Refusal> {
        let reads = Reads::of(value);
        if let Some(refused) = &reads.refused {
            return Err(refused.clone());
        }
        let state = match (&reads.beside[..], &reads.by_stencil[..]) {
            ([state], _) | ([], [state]) => state.clone(),
            ([], []) => return refusal("steps of what is no stencil"),
            ([first, second, ..], _) => {
                let (first, second) = (first.shape(), second.shape());
                return refusal(format!(
                    "steps of a stencil that reads several tensors beside each place, of shapes {first} and {second}: only the stepped \
                     tensor has neighbours, and others are read in their own places"
                ));
            }
            ([], [..]) => {
                return refusal("steps of stencils on several tensors, none of which is read beside each place");
            }
        };
        let (from, to) = (state.dtype(), value.dtype);
        if from != to {
            return refusal(format!("a step makes {to} of {from}: cast the value to the type of the stepped tensor"));
        }
        let frame = match reads.frames[..] {
            [] => None,
            [frame] => Some(frame),
            _ => return refusal("steps of interior stencils with several footprints: they have different places"),
        };
        let mixed = |node: &Node| match &node.kind {
            Kind::Neighbour(..) | Kind::Weighted(..) => true,
            Kind::SplitBeside(_, beside) => !matches!(**beside, Beside::Inside(_)),
            _ => false,
        };
        if frame.is_some() && any(value, mixed) {
            return refusal(
                "steps of an interior stencil beside one that reads elements outside: they have different places",
            );
        }
        Ok(Self { state, frame, reads })
    }

    /// Checks that only the stencil reads the stepped tensor, except for views for which `is_in_place` says that a step has them.
    pub(in crate::expr) fn check(&self, is_in_place: impl Fn(&AnyView) -> bool) -> Result<(), Refusal> {
        let Self { state, frame, reads } = self;
        let others = reads.own.iter().chain(&reads.by_stencil);
        let places = |view: &AnyView| view.same_as(state) && frame.is_none() || is_in_place(view);
        let mut others = others.filter(|view| !places(view)).chain(&reads.gathered);
        if let Some(view) = others.find(|view| view.overlaps(state)) {
            let (shape, state) = (view.shape(), state.shape());
            return refusal(format!(
                "elements of the stepped tensor of shape {state} are read otherwise than by the stencil, by a view of shape {shape}: a \
                 step has no such view of the step before"
            ));
        }
        Ok(())
    }

    /// Returns whether a step reads elements of a target by a tensor other than the stepped one.
    pub(in crate::expr) fn reads_of(&self, target: &AnyView) -> bool {
        let Reads { beside, by_stencil, own, gathered, .. } = &self.reads;
        let mut all = beside.iter().chain(by_stencil).chain(own).chain(gathered);
        all.any(|view| !view.same_as(&self.state) && view.overlaps(target))
    }
}

impl Stepped {
    /// Finds the tensor that `value` steps. It must be a tensor of one device.
    pub(super) fn new(value: &Arc<Node>) -> Result<Self, Refusal> {
        let found = Found::of(value)?;
        let AnyView::Whole(state) = &found.state else {
            let reason = "a tensor that is split over devices is stepped into a split one alone: assign to one, or collect it by \
                          `to_tensor` first";
            return Err((ExpressionErrorKind::BadSplit, reason.into()));
        };
        let stepped = Self { value: value.clone(), state: state.clone(), frame: found.frame };
        let inner = AnyView::Whole(stepped.inner(&stepped.state));
        found.check(|view| view.same_as(&inner))?;
        Ok(stepped)
    }

    /// Returns the places of `view` that are computed.
    pub(super) fn inner(&self, view: &Arc<View>) -> Arc<View> {
        self.frame.map_or_else(|| view.clone(), |frame| part(view, &frame, &[0; MAX_RANK]))
    }

    /// Returns the parts of a view around the computed places.
    pub(super) fn around(&self, view: &Arc<View>) -> Vec<Layout> {
        self.frame.map_or_else(Vec::new, |frame| frame.around(&view.layout))
    }

    /// Returns one step of the elements in `source`, which has the shape of the stepped tensor.
    pub(super) fn step_of(&self, source: &Arc<View>) -> Arc<Node> {
        let inner = self.inner(&self.state);
        with_leaves(&self.value, |kind| match kind {
            Kind::View(view) => match self.inside(view) {
                Some(inside) => Some(Kind::View(part(source, &inside.frame, &inside.by))),
                None if view.same_as(&inner) => Some(Kind::View(self.inner(source))),
                None => None,
            },
            Kind::Neighbour(view, shift) if view.same_as(&self.state) => {
                Some(Kind::Neighbour(source.clone(), shift.clone()))
            }
            Kind::Weighted(view, taps) if view.same_as(&self.state) => {
                Some(Kind::Weighted(source.clone(), taps.clone()))
            }
            _ => None,
        })
    }

    /// Returns one step at a place of the stepped tensor. Shifts read all neighbours of the place.
    pub(super) fn shifted(&self) -> Arc<Node> {
        let inner = self.inner(&self.state);
        let read = |by: [isize; MAX_RANK]| match by {
            _ if by == [0; MAX_RANK] => Kind::View(self.state.clone()),
            by => Kind::Neighbour(self.state.clone(), Arc::new(Shift { by, rule: Rule::Clamp })),
        };
        with_leaves(&self.value, |kind| match kind {
            Kind::View(view) => match self.inside(view) {
                Some(inside) => Some(read(inside.by)),
                None if view.same_as(&inner) => Some(Kind::View(self.state.clone())),
                None => None,
            },
            _ => None,
        })
    }

    /// Returns the part of the stepped tensor that an interior stencil reads by this view, if it reads one.
    fn inside(&self, view: &View) -> Option<Inside> {
        let Origin { view: Some(view), inside } = view.origin.as_deref()? else { return None };
        inside.filter(|_| view.same_as(&self.state))
    }
}

/// Returns the graph of a step with other leaves.
pub(in crate::expr) fn with_leaves(value: &Arc<Node>, leaf: impl Fn(&Kind) -> Option<Kind>) -> Arc<Node> {
    rewritten(value, &mut |node, new| match leaf(&node.kind) {
        Some(kind) => Arc::new(Node { kind, dtype: node.dtype, arguments: new }),
        None => with_arguments(node, new),
    })
}

impl Frame {
    /// Returns whether the frame is empty, so that all places are inside.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self { before: [0; MAX_RANK], after: [0; MAX_RANK] }
    }

    /// Returns whether a tensor of a shape has several indices along an axis that has places outside. Otherwise, all places read the only
    /// index of that axis.
    fn is_along(&self, shape: &Shape) -> bool {
        let around = self.before.iter().zip(&self.after).map(|(before, after)| before + after);
        shape.iter().rev().zip(around).any(|(&extent, around)| extent > 1 && around > 0)
    }

    /// Returns the parts of a tensor that are not inside: slabs at the ends of each axis. A slab has only the indices along earlier axes
    /// that are inside.
    pub(crate) fn around(&self, whole: &Layout) -> Vec<Layout> {
        let (mut parts, rank) = (Vec::new(), whole.shape.rank());
        let mut rest = *whole;
        for axis in 0..rank {
            let (before, after) = (self.before[rank - 1 - axis], self.after[rank - 1 - axis]);
            let extent = rest.shape[axis];
            let slab = |start: usize, len: usize| {
                let shape = rest.shape.map(|extents| extents[axis] = len).expect("as many axes");
                let offset = rest.offset.wrapping_add_signed(rest.strides[axis].wrapping_mul(start as isize));
                Layout { shape, offset, ..rest }
            };
            let ends = [slab(0, before), slab(extent - after, after)];
            parts.extend(ends.into_iter().filter(|slab| !slab.shape.contains(&0)));
            rest = slab(before, extent - before - after);
        }
        parts
    }
}

/// Returns the inside of a frame, moved by a distance.
pub(in crate::expr) fn part(view: &Arc<View>, frame: &Frame, by: &[isize; MAX_RANK]) -> Arc<View> {
    let Layout { shape, strides, mut offset } = view.layout;
    let rank = shape.rank();
    let shape = shape.map(|extents| {
        for (axis, extent) in extents.iter_mut().enumerate() {
            let k = rank - 1 - axis;
            let first = (frame.before[k] as isize).wrapping_add(by[k]);
            offset = offset.wrapping_add_signed(strides[axis].wrapping_mul(first));
            *extent = extent.saturating_sub(frame.before[k].saturating_add(frame.after[k]));
        }
    });
    view.with_layout(Layout { shape: shape.expect("as many axes"), strides, offset })
}

fn any(value: &Arc<Node>, is: impl Fn(&Node) -> bool) -> bool {
    let mut found = false;
    rewritten(value, &mut |node, _| {
        found |= is(node);
        node.clone()
    });
    found
}
