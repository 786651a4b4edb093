//! Passes: the kernels of steps. They take turns between the target and temporary memory.

use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use primitives_host::storage::{self, Storage};
use primitives_host::{ExpressionErrorKind, Result};

use super::stepped::{AnyView, Refusal, Stepped};
use super::tile::{StepsTile, Tiling};
use crate::expr::describe::kernel_name;
use crate::expr::dtype::with_type;
use crate::expr::evaluate::{CpuPass, launch, mistake, overlaps, prepare, run_on_cpu};
use crate::expr::gpu::Operands;
use crate::expr::graph::{Frame, Kind, Node, View, arguments, node};
use crate::expr::layout::nest::Nest;
use crate::expr::layout::shape::Layout;
use crate::expr::program::{Lowered, lower, lower_fixed};

/// Returns the steps among assignments, if there are any.
pub(crate) fn steps_among(roots: &[Arc<Node>]) -> Option<&Arc<Node>> {
    roots.iter().find(|root| matches!(root.kind, Kind::Steps(_)))
}

/// The passes of an assignment of steps.
pub(crate) struct Schedule {
    place: &'static Location<'static>,
    passes: Vec<StepsPass>,
    /// The numbers of the passes, in order.
    order: Arc<[u32]>,
    /// The first pass that computes steps.
    first: usize,
    text: String,
    /// The lock that is held while the passes are enqueued on a GPU, because they share memory. On the CPU, they are one launch.
    turn: Mutex<()>,
}

/// A pass from one memory to another.
pub(super) struct StepsPass {
    pub(super) target: Arc<View>,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// One step, or a copy.
    Step(Box<(Lowered, Nest)>),
    /// Several steps in one kernel.
    Tile(Box<StepsTile>),
}

/// The options for making schedules.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Whether scalars are constants.
    pub(crate) fixed: bool,
    /// Whether kernels take several steps, as on a GPU.
    pub(crate) tiles: Tiles,
}

/// Whether kernels take several steps.
#[derive(Clone, Copy)]
pub(crate) enum Tiles {
    Never,
    WherePaid,
    #[cfg(test)]
    Always(super::tile::Choice),
}

impl Tiles {
    /// Returns the choice for a GPU, or for another device.
    pub(crate) fn on(gpu: bool) -> Self {
        if gpu { Self::WherePaid } else { Self::Never }
    }
}

/// The most steps of one assignment.
const MOST: usize = 1 << 24;

/// Checks that this number of steps of a tensor, which leave a frame unchanged, may be assigned to a target.
pub(in crate::expr) fn check(count: usize, frame: Option<Frame>, [target, state]: [AnyView; 2]) -> Result<(), Refusal> {
    let (shape, to) = (state.shape(), target.shape());
    if to != shape {
        let reason =
            format!("steps of a tensor of shape {shape} give one of that shape, and not of the target's, {to}");
        return Err((ExpressionErrorKind::BadShape, reason));
    }
    let several = count > 1 || count == 1 && frame.is_some();
    if several && target.overlaps(&state) {
        let reason = "the target overlaps the stepped tensor: assign to another tensor".into();
        return Err((ExpressionErrorKind::Overlap, reason));
    }
    if count > MOST {
        let reason = format!("{count} steps, of which one assignment makes at most {MOST}");
        return Err((ExpressionErrorKind::BadStencil, reason));
    }
    Ok(())
}

impl Schedule {
    /// Makes the schedule that assigns `roots` to `targets`. There are steps among `roots`.
    pub(crate) fn new(
        place: &'static Location<'static>,
        targets: &[&Arc<View>],
        roots: &[Arc<Node>],
        options: Options,
    ) -> Result<Self> {
        let fail = |kind, reason: String| mistake(place, kind, reason, &roots.iter().collect::<Vec<_>>());
        let (&[target], [root]) = (targets, roots) else {
            let reason = "steps are an assignment of their own: make other assignments apart".into();
            return Err(fail(ExpressionErrorKind::BadStencil, reason));
        };
        let (&Kind::Steps(count), Some(value)) = (&root.kind, root.arguments().next()) else {
            unreachable!("steps are among the roots")
        };
        let stepped = Stepped::new(value).map_err(|(kind, reason)| fail(kind, reason))?;
        let state = &stepped.state;
        check(count, stepped.frame, [target, state].map(|view| AnyView::Whole(view.clone())))
            .map_err(|(kind, reason)| fail(kind, reason))?;
        let mut making = Making { place, root, options, passes: Vec::new(), order: Vec::new(), first: None };
        match count {
            0 => making.copy(state, target)?,
            _ if state.layout.shape.elements() == Some(0) => {
                // The assignment is checked, and there is nothing to compute.
                making.pass(&stepped.inner(target), stepped.step_of(state))?;
            }
            _ => making.steps(&stepped, target, count)?,
        }
        let Making { passes, mut order, first, .. } = making;
        order.retain(|&pass| passes[pass as usize].has_elements());
        let text = kernel_name(&[root], target);
        let (order, first) = (order.into(), first.unwrap_or(0) as usize);
        Ok(Self { place, passes, order, first, text, turn: Mutex::new(()) })
    }

    /// Enqueues all passes. On the CPU, nothing is held while they wait for memory: a kernel that has it may need these passes.
    pub(crate) fn run(&self) -> Result<()> {
        let Self { passes, order, text, turn, .. } = self;
        if order.is_empty() {
            return Ok(());
        }
        let (place, stream) = (self.place, &passes[0].target.stream);
        if stream.device().is_gpu() {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            return order.iter().try_for_each(|&pass| passes[pass as usize].run(place, text));
        }
        let on_cpu = passes.iter().map(|pass| pass.on_cpu(place, text)).collect();
        run_on_cpu(place, stream, text, on_cpu, order.clone())
    }

    /// Returns the text of the first kernel that computes a step.
    pub(crate) fn text(&self, arch: u32) -> Result<String> {
        self.passes[self.first].text(arch)
    }

    /// Returns the passes in order.
    #[cfg(test)]
    pub(super) fn passes(&self) -> impl Iterator<Item = &StepsPass> {
        self.order.iter().map(|&pass| &self.passes[pass as usize])
    }
}

impl StepsPass {
    fn has_elements(&self) -> bool {
        match &self.work {
            Work::Step(step) => step.1.elements > 0,
            Work::Tile(_) => true,
        }
    }

    fn on_cpu(&self, place: &'static Location<'static>, text: &str) -> CpuPass<'_> {
        match &self.work {
            Work::Step(step) => CpuPass::new(place, &[&self.target], &step.0, &step.1, text),
            Work::Tile(_) => unreachable!("only a GPU takes several steps in one kernel"),
        }
    }

    fn run(&self, place: &'static Location<'static>, text: &str) -> Result<()> {
        match &self.work {
            Work::Step(step) => launch(place, &[&self.target], &step.0, &step.1, &|| text.into()),
            Work::Tile(tile) => tile.launch(&self.target, text),
        }
    }

    fn text(&self, arch: u32) -> Result<String> {
        match &self.work {
            Work::Step(step) => Operands::new(&[&self.target], &step.0, &step.1).text(arch),
            Work::Tile(tile) => tile.text(arch),
        }
    }
}

struct Making<'a> {
    place: &'static Location<'static>,
    root: &'a Arc<Node>,
    options: Options,
    passes: Vec<StepsPass>,
    order: Vec<u32>,
    first: Option<u32>,
}

impl Making<'_> {
    fn lower(&self, value: &Arc<Node>) -> Lowered {
        if self.options.fixed { lower_fixed([value]) } else { lower([value]) }
    }

    /// Adds a pass of one step, or a copy, and returns its number.
    fn pass(&mut self, target: &Arc<View>, value: Arc<Node>) -> Result<u32> {
        let lowered = self.lower(&value);
        let nest = prepare(self.place, &[target], &lowered, &|| vec![self.root])?;
        Ok(self.add(StepsPass { target: target.clone(), work: Work::Step(Box::new((lowered, nest))) }))
    }

    fn add(&mut self, pass: StepsPass) -> u32 {
        self.passes.push(pass);
        self.passes.len() as u32 - 1
    }

    /// Appends a copy.
    fn copy(&mut self, from: &Arc<View>, to: &Arc<View>) -> Result<()> {
        let number = self.pass(to, element_of(from))?;
        self.order.push(number);
        Ok(())
    }

    /// Appends passes of steps.
    fn then(&mut self, order: &[u32]) {
        self.first = self.first.or(order.first().copied());
        self.order.extend(order);
    }

    /// Copies the elements that no step changes.
    fn copy_around(&mut self, stepped: &Stepped, to: &Arc<View>) -> Result<()> {
        let parts = stepped.around(&stepped.state).into_iter().zip(stepped.around(to));
        for (from, part) in parts.collect::<Vec<(Layout, Layout)>>() {
            self.copy(&stepped.state.with_layout(from), &to.with_layout(part))?;
        }
        Ok(())
    }

    fn steps(&mut self, stepped: &Stepped, target: &Arc<View>, count: usize) -> Result<()> {
        // The tensors that are read beside the stepped tensor must not be in the memory of steps in between.
        let step = self.lower(&stepped.step_of(&stepped.state));
        let free = !step.inputs.iter().any(|view| overlaps(view, target));
        // All mistakes are found before memory is taken.
        prepare(self.place, &[&stepped.inner(target)], &step, &|| vec![self.root])?;
        if stepped.frame.is_some() {
            // The target is written around the interior, too.
            prepare(self.place, &[target], &self.lower(&element_of(&stepped.state)), &|| vec![self.root])?;
        }
        if free && count > 1 {
            let lowered = self.lower(&stepped.shifted());
            let form = match self.options.tiles {
                Tiles::Never => None,
                Tiles::WherePaid => Tiling::new(&lowered, stepped, count, multiprocessors(target)),
                #[cfg(test)]
                Tiles::Always(choice) => Tiling::chosen(&lowered, stepped, choice),
            };
            if let Some(form) = form {
                return self.tiles(stepped, target, count, lowered, form);
            }
        }
        let own: Vec<Arc<View>> = (0..memories(count, free)).map(|_| temporary(target)).collect::<Result<_>>()?;
        for memory in own.iter().chain(free.then_some(target)) {
            self.copy_around(stepped, memory)?;
        }
        let buffers = turns(&own, target, count, free);
        let order = between(&stepped.state, &buffers, &vec![1; count], |source, to, _| {
            self.pass(&stepped.inner(to), stepped.step_of(source))
        })?;
        self.then(&order);
        if !free {
            self.copy_around(stepped, target)?;
        }
        Ok(())
    }

    fn tiles(
        &mut self,
        stepped: &Stepped,
        target: &Arc<View>,
        count: usize,
        lowered: Lowered,
        form: Tiling,
    ) -> Result<()> {
        let each = form.steps_each(count);
        let own: Vec<Arc<View>> = (0..memories(each.len(), true)).map(|_| temporary(target)).collect::<Result<_>>()?;
        let buffers = turns(&own, target, each.len(), true);
        let lowered = Arc::new(lowered);
        let order = between(&stepped.state, &buffers, &each, |source, to, steps| {
            let tile = StepsTile::new(&lowered, &form, stepped, steps, [source, to]);
            Ok(self.add(StepsPass { target: to.clone(), work: Work::Tile(Box::new(tile)) }))
        })?;
        self.then(&order);
        Ok(())
    }
}

/// Makes passes from `state` through all buffers. Each pass has its number of steps. Returns the numbers of the passes, in order. A pass
/// that was made before is used again.
pub(in crate::expr) fn between<V>(
    state: &Arc<V>,
    buffers: &[&Arc<V>],
    steps: &[usize],
    mut make: impl FnMut(&Arc<V>, &Arc<V>, usize) -> Result<u32>,
) -> Result<Vec<u32>> {
    let mut known = Vec::new();
    let mut order = Vec::with_capacity(buffers.len());
    let mut source = state;
    for (&to, &steps) in buffers.iter().zip(steps) {
        let key = (Arc::as_ptr(source), Arc::as_ptr(to), steps);
        let number = match known.iter().find(|(other, _)| *other == key) {
            Some(&(_, number)) => number,
            None => {
                let number = make(source, to, steps)?;
                known.push((key, number));
                number
            }
        };
        order.push(number);
        source = to;
    }
    Ok(order)
}

/// Returns the expression of a view's element at the computed place.
pub(in crate::expr) fn element_of(view: &Arc<View>) -> Arc<Node> {
    node(Kind::View(view.clone()), view.dtype, arguments([]))
}

/// Returns the number of temporary memories that this number of passes needs. Each is as large as the target.
pub(in crate::expr) fn memories(passes: usize, free: bool) -> usize {
    passes.saturating_sub(1).min(if free { 1 } else { 2 })
}

/// Returns the memory that each pass writes to. The last pass writes to the target. If the target is `free`, every second pass before it
/// also does.
pub(in crate::expr) fn turns<'a, V>(own: &'a [V], target: &'a V, passes: usize, free: bool) -> Vec<&'a V> {
    (1..=passes)
        .map(|pass| match passes - pass {
            0 => target,
            left if !free => &own[left % own.len()],
            left if left % 2 == 0 => target,
            _ => &own[0],
        })
        .collect()
}

/// Takes temporary memory with the shape and type of `like`.
fn temporary(like: &View) -> Result<Arc<View>> {
    let (stream, layout) = (&like.stream, Layout::contiguous(like.layout.shape));
    let elements = layout.shape.elements().unwrap_or(usize::MAX);
    let storage = with_type!(like.dtype, T => Storage::of(storage::temporary::<T>(stream, elements)?));
    let (storage, stream) = (Arc::new(storage), stream.clone());
    Ok(Arc::new(View { storage, stream, layout, dtype: like.dtype, spare: None, origin: None }))
}

/// Returns the number of multiprocessors of the device, or a common number for the emulator.
fn multiprocessors(view: &View) -> usize {
    const COMMON: usize = 132;
    let device = view.stream.device();
    if device.is_gpu() { device.properties().multiprocessors as usize } else { COMMON }
}
