//! What is stepped: found in the graph of one step.

use std::sync::Arc;

use primitives_host::ExpressionErrorKind;

use crate::expr::evaluate::overlaps;
use crate::expr::graph::{Frame, Inside, Kind, Node, View, rewritten, with_arguments};
use crate::expr::layout::shape::{Layout, MAX_RANK};
use crate::expr::neighbours::neighbour::{Rule, Shift};

/// A stencil that can be applied to its own result.
pub(super) struct Stepped {
    /// One step.
    value: Arc<Node>,
    /// What is stepped.
    pub(super) state: Arc<View>,
    /// Of an interior stencil: the places that keep their elements.
    pub(super) frame: Option<Frame>,
}

pub(super) type Refusal = (ExpressionErrorKind, String);

fn refusal<T>(reason: impl Into<String>) -> Result<T, Refusal> {
    Err((ExpressionErrorKind::BadStencil, reason.into()))
}

/// What the leaves of a graph read.
#[derive(Default)]
struct Reads {
    /// Beside the place.
    beside: Vec<Arc<View>>,
    /// In the place, by a stencil.
    by_stencil: Vec<Arc<View>>,
    /// In the place.
    own: Vec<Arc<View>>,
    gathered: Vec<Arc<View>>,
    frames: Vec<Frame>,
    refused: Option<Refusal>,
}

impl Reads {
    fn of(value: &Arc<Node>) -> Self {
        let mut reads = Self::default();
        rewritten(value, |node, _| {
            reads.node(node);
            node.clone()
        });
        reads
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            Kind::View(view) => match &view.origin {
                None => add(&mut self.own, view),
                Some(origin) => {
                    let frame = origin.inside.map(|inside| inside.frame).filter(|frame| !frame.is_empty());
                    if let Some(frame) = frame.filter(|frame| !self.frames.contains(frame)) {
                        self.frames.push(frame);
                    }
                    self.stencil(&origin.view, frame.is_some_and(|frame| frame.is_along(&origin.view.layout)));
                }
            },
            Kind::Neighbour(view, _) | Kind::Weighted(view, _) => self.stencil(view, true),
            // A neighbour that is outside wherever it starts has its source as an argument.
            Kind::Constant(_) => {
                if let Some(Kind::View(view)) = node.arguments().next().map(|source| &source.kind) {
                    self.stencil(view, false);
                }
            }
            Kind::Gather(view) => add(&mut self.gathered, view),
            Kind::Split(_) | Kind::SplitBeside(..) | Kind::SplitGather(_) => {
                let reason = "steps of a stencil are for tensors of one device: assign the stencil as often";
                self.refused.get_or_insert((ExpressionErrorKind::BadSplit, reason.into()));
            }
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

    /// A stencil on `view`.
    fn stencil(&mut self, view: &Arc<View>, beside: bool) {
        let mut view = view;
        while let Some(origin) = &view.origin {
            if origin.inside.is_some_and(|inside| !inside.frame.is_empty()) {
                return self.refuse(
                    "a stencil of an interior stencil, which has no elements beyond its interior, has no steps: assign the inner \
                     one to a tensor first",
                );
            }
            view = &origin.view;
        }
        add(if beside { &mut self.beside } else { &mut self.by_stencil }, view);
    }
}

fn add(views: &mut Vec<Arc<View>>, view: &Arc<View>) {
    if !views.iter().any(|known| known.same_as(view)) {
        views.push(view.clone());
    }
}

impl Stepped {
    /// What is stepped by `value`.
    pub(super) fn new(value: &Arc<Node>) -> Result<Self, Refusal> {
        let reads = Reads::of(value);
        if let Some(refused) = reads.refused {
            return Err(refused);
        }
        let state = match (&reads.beside[..], &reads.by_stencil[..]) {
            ([state], _) | ([], [state]) => state.clone(),
            ([], []) => return refusal("steps of what is no stencil"),
            ([first, second, ..], _) => {
                let (first, second) = (first.layout.shape, second.layout.shape);
                return refusal(format!(
                    "steps of a stencil that reads several tensors beside each place, of shapes {first} and {second}: only the stepped \
                     tensor has neighbours, and others are read in their own places"
                ));
            }
            ([], [..]) => {
                return refusal("steps of stencils on several tensors, none of which is read beside each place");
            }
        };
        if value.dtype != state.dtype {
            let (from, to) = (state.dtype, value.dtype);
            return refusal(format!("a step makes {to} of {from}: cast the value to the type of the stepped tensor"));
        }
        let frame = match reads.frames[..] {
            [] => None,
            [frame] => Some(frame),
            _ => return refusal("steps of interior stencils with several footprints: they have different places"),
        };
        let mixed = |node: &Node| matches!(node.kind, Kind::Neighbour(..) | Kind::Weighted(..));
        if frame.is_some() && any(value, mixed) {
            return refusal(
                "steps of an interior stencil beside one that reads elements outside: they have different places",
            );
        }
        let stepped = Self { value: value.clone(), state, frame };
        let inner = stepped.inner(&stepped.state);
        let others = reads.own.iter().chain(&reads.by_stencil);
        let places = |view: &Arc<View>| view.same_as(&stepped.state) && frame.is_none() || view.same_as(&inner);
        if let Some(view) =
            others.filter(|view| !places(view)).chain(&reads.gathered).find(|view| overlaps(view, &stepped.state))
        {
            let (shape, state) = (view.layout.shape, stepped.state.layout.shape);
            return refusal(format!(
                "elements of the stepped tensor of shape {state} are read otherwise than by the stencil, by a view of shape {shape}: a \
                 step has no such view of the step before"
            ));
        }
        Ok(stepped)
    }

    /// The places of `view` that are computed.
    pub(super) fn inner(&self, view: &Arc<View>) -> Arc<View> {
        self.frame.map_or_else(|| view.clone(), |frame| part(view, &frame, &[0; MAX_RANK]))
    }

    /// The parts of a view around those places.
    pub(super) fn around(&self, view: &Arc<View>) -> Vec<Layout> {
        let mut parts = Vec::new();
        let (Some(frame), rank) = (self.frame, view.layout.shape.rank()) else { return parts };
        // Slabs at the ends of each axis, of what is inside along the axes before.
        let mut rest = view.layout;
        for axis in 0..rank {
            let (before, after) = (frame.before[rank - 1 - axis], frame.after[rank - 1 - axis]);
            let extent = rest.shape[axis];
            for (start, len) in [(0, before), (extent - after, after), (before, extent - before - after)] {
                let shape = rest.shape.map(|extents| extents[axis] = len).expect("as many axes");
                let offset = rest.offset.wrapping_add_signed(rest.strides[axis].wrapping_mul(start as isize));
                let slab = Layout { shape, offset, ..rest };
                if start == before && len == extent - before - after {
                    rest = slab;
                } else if !shape.contains(&0) {
                    parts.push(slab);
                }
            }
        }
        parts
    }

    /// One step of what is in `source`, which has the shape of the stepped tensor.
    pub(super) fn step_of(&self, source: &Arc<View>) -> Arc<Node> {
        let inner = self.inner(&self.state);
        self.with_leaves(|kind| match kind {
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

    /// One step at a place of the stepped tensor, whose neighbours are all read by shifts.
    pub(super) fn shifted(&self) -> Arc<Node> {
        let inner = self.inner(&self.state);
        let read = |by: [isize; MAX_RANK]| match by {
            _ if by == [0; MAX_RANK] => Kind::View(self.state.clone()),
            by => Kind::Neighbour(self.state.clone(), Arc::new(Shift { by, rule: Rule::Clamp })),
        };
        self.with_leaves(|kind| match kind {
            Kind::View(view) => match self.inside(view) {
                Some(inside) => Some(read(inside.by)),
                None if view.same_as(&inner) => Some(Kind::View(self.state.clone())),
                None => None,
            },
            _ => None,
        })
    }

    /// Which part of the stepped tensor an interior stencil reads by this view, if it is one.
    fn inside(&self, view: &View) -> Option<Inside> {
        let origin = view.origin.as_ref().filter(|origin| origin.view.same_as(&self.state))?;
        origin.inside.filter(|inside| !inside.frame.is_empty())
    }

    fn with_leaves(&self, leaf: impl Fn(&Kind) -> Option<Kind>) -> Arc<Node> {
        rewritten(&self.value, |node, new| match leaf(&node.kind) {
            Some(kind) => Arc::new(Node { kind, dtype: node.dtype, arguments: new }),
            None => with_arguments(node, new),
        })
    }
}

impl Frame {
    /// Whether all places are inside.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self { before: [0; MAX_RANK], after: [0; MAX_RANK] }
    }

    /// Whether a view has several indices along an axis that has places outside; else all places read its one index.
    fn is_along(&self, view: &Layout) -> bool {
        let around = self.before.iter().zip(&self.after).map(|(before, after)| before + after);
        view.shape.iter().rev().zip(around).any(|(&extent, around)| extent > 1 && around > 0)
    }
}

/// What is inside of a frame, at a distance.
fn part(view: &Arc<View>, frame: &Frame, by: &[isize; MAX_RANK]) -> Arc<View> {
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
    rewritten(value, |node, _| {
        found |= is(node);
        node.clone()
    });
    found
}
