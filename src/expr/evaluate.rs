//! Assignments: from expressions to a kernel, or to the CPU.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::{HostPass, Storage, StorageUse, host_fault, run_on_host, run_passes_on_host};
use primitives_host::{Error, ExpressionError, ExpressionErrorKind, Result, Stream};

use super::cpu::fold::FoldJob;
use super::cpu::{Job, Memory, Placement};
use super::describe::{describe, kernel_name};
use super::gpu::Operands;
use super::graph::{Kind, Node, View, arguments};
use super::layout::nest::Nest;
use super::layout::overlap::{overlap, repeats};
use super::layout::shape::{Layout, MAX_RANK, Shape};
use super::program::{Input, Lowered, Program, lower};
use super::reduce::Spec;
use super::steps::passes::{Options, Schedule, Tiles, steps_among};

/// Makes an error about an expression.
pub(crate) fn mistake(place: &Location<'_>, kind: ExpressionErrorKind, reason: String, roots: &[&Arc<Node>]) -> Error {
    let (texts, operands) = describe(roots);
    Error::from(Box::new(ExpressionError {
        kind,
        reason,
        expression: texts.join("; "),
        operands,
        file: place.file().into(),
        line: place.line(),
        column: place.column(),
    }))
}

/// Computes each root into its target, all in one kernel.
pub(crate) fn evaluate(place: &'static Location<'static>, targets: &[&Arc<View>], roots: &[Arc<Node>]) -> Result<()> {
    if targets.is_empty() {
        return Ok(());
    }
    if steps_among(roots).is_some() {
        let options = Options { fixed: false, tiles: Tiles::on(targets[0].stream.device().is_gpu()) };
        return Schedule::new(place, targets, roots, options)?.run();
    }
    let (lowered, all) = (lower(roots), || roots.iter().collect::<Vec<_>>());
    let nest = prepare(place, targets, &lowered, &all)?;
    launch(place, targets, &lowered, &nest, &|| kernel_name(&all(), targets[0]))
}

/// Launches a checked program whose operands have the layouts of `nest`.
pub(crate) fn launch(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    nest: &Nest,
    text: &dyn Fn() -> String,
) -> Result<()> {
    if nest.elements == 0 {
        return Ok(());
    }
    #[cfg(feature = "cuda")]
    if targets[0].stream.device().is_gpu() {
        return Operands::new(targets, lowered, nest).ready(text)?.launch(targets, lowered);
    }
    let name = text();
    let pass = CpuPass::new(place, targets, lowered, nest, &name);
    run_on_cpu(place, &targets[0].stream, &name, vec![pass], [0u32].into())
}

/// Returns the text of the kernel that [`evaluate`] launches on a device of an architecture.
pub(crate) fn kernel_text(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    roots: &[Arc<Node>],
    arch: u32,
) -> Result<String> {
    if steps_among(roots).is_some() {
        return Schedule::new(place, targets, roots, Options { fixed: false, tiles: Tiles::on(true) })?.text(arch);
    }
    let lowered = lower(roots);
    let nest = prepare(place, targets, &lowered, &|| roots.iter().collect())?;
    Operands::new(targets, &lowered, &nest).text(arch)
}

/// Checks the layouts of the targets and of the inputs, and builds their nest.
pub(crate) fn prepare<'a>(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    roots: &dyn Fn() -> Vec<&'a Arc<Node>>,
) -> Result<Nest> {
    let shape = targets.first().map_or(Shape::SCALAR, |first| first.layout.shape);
    let fail = |kind, reason| mistake(place, kind, reason, &roots());
    if let Some((kind, reason)) = &lowered.wrong {
        return Err(fail(*kind, reason.to_string()));
    }
    let layouts = layouts_of(&shape, targets, lowered, &fail)?;
    Nest::keeping(&shape, layouts.iter(), lowered.program.shifted())
        .ok_or_else(|| fail(ExpressionErrorKind::BadShape, format!("{shape} has more elements than can be counted")))
}

/// Returns the layouts in the targets' shape: of the targets, then of the inputs that are not gathered, then of the indices.
fn layouts_of(
    shape: &Shape,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    fail: &dyn Fn(ExpressionErrorKind, String) -> Error,
) -> Result<Vec<Layout>> {
    let mut layouts = Vec::with_capacity(targets.len() + lowered.inputs.len());
    for target in targets {
        if target.layout.shape != *shape {
            let reason = format!("targets of one kernel have one shape, not {shape} and {}", target.layout.shape);
            return Err(fail(ExpressionErrorKind::BadShape, reason));
        }
        if repeats(&target.layout) {
            let strides = &target.layout.strides[..shape.rank()];
            let reason =
                format!("a view of shape {shape} and strides {strides:?} repeats elements: it cannot be assigned to");
            return Err(fail(ExpressionErrorKind::BadStrides, reason));
        }
        layouts.push(target.layout);
    }
    for (input, view) in lowered.program.inputs.iter().zip(&lowered.inputs) {
        if !input.gathered {
            let Some(layout) = view.layout.broadcast_to(shape) else {
                let reason = format!("shape {} does not broadcast to that of the target, {shape}", view.layout.shape);
                return Err(fail(ExpressionErrorKind::BadShape, reason));
            };
            layouts.push(layout);
        }
    }
    layouts.extend(indices(shape, lowered, fail)?);
    for (at, target) in targets.iter().enumerate() {
        let mut loads = layouts[targets.len()..].iter();
        for (input, view) in lowered.program.inputs.iter().zip(&lowered.inputs) {
            let layout = if input.gathered { &view.layout } else { loads.next().expect("one for each") };
            let in_place = !input.gathered && !input.shifted && layout.same_places(&target.layout);
            if !in_place && overlaps(target, view) {
                let reason = if input.shifted {
                    "the target overlaps what a stencil reads beside each place: assign to another tensor, or read a copy"
                } else {
                    "the target overlaps what is read, and not element by element: assign to another tensor, or read a copy"
                };
                return Err(fail(ExpressionErrorKind::Overlap, reason.into()));
            }
        }
        for other in &targets[..at] {
            if overlaps(target, other) {
                return Err(fail(ExpressionErrorKind::Overlap, "two targets of one kernel overlap".into()));
            }
        }
    }
    Ok(layouts)
}

/// Returns whether two views may have an element in common.
pub(crate) fn overlaps(a: &View, b: &View) -> bool {
    a.storage.same_as(&b.storage) && overlap(&a.layout, &b.layout, [a.dtype.size(), b.dtype.size()])
}

/// Returns the layouts of the indices, or an error if an index is along an axis that does not exist, or if the input of a gather is not a
/// vector.
fn indices(
    shape: &Shape,
    lowered: &Lowered,
    fail: &dyn Fn(ExpressionErrorKind, String) -> Error,
) -> Result<Vec<Layout>> {
    if let Some(axis) = lowered.program.indices().flatten().find(|axis| *axis >= shape.rank()) {
        return Err(fail(ExpressionErrorKind::OutOfRange, format!("there is no axis {axis} in the shape {shape}")));
    }
    let inputs = lowered.program.inputs.iter().zip(&lowered.inputs);
    let mut gathered = inputs.filter(|(input, _)| input.gathered).map(|(_, view)| &view.layout.shape);
    if let Some(shape) = gathered.find(|shape| shape.rank() != 1) {
        let reason = format!("a gather takes a vector, not a tensor of shape {shape}");
        return Err(fail(ExpressionErrorKind::BadShape, reason));
    }
    Ok(lowered.program.index_layouts(shape).collect())
}

/// Reduces an expression of shape `shape` along `axes` into `target`, in one kernel. `lowered` is the program of `root`.
pub(crate) fn reduce(
    place: &'static Location<'static>,
    target: &Arc<View>,
    shape: &Shape,
    axes: &[usize],
    spec: Spec,
    (root, mut lowered): (&Arc<Node>, Lowered),
) -> Result<()> {
    let Some(reduced) = reduced(place, target, shape, axes, spec, (root, &lowered))? else {
        return evaluate(place, &[target], &[of_nothing(spec)]);
    };
    let text = || format!("{:?} of {}", spec.fold, kernel_name(&[root], target));
    #[cfg(feature = "cuda")]
    if target.stream.device().is_gpu() {
        return super::gpu::reduce(target, &lowered, &reduced, &text);
    }
    let (inputs, gathered) = (memories(&lowered, 1), gathered(&lowered));
    let result =
        Memory { address: target.storage.address(), size: target.dtype.size(), placement: Placement::Nested(0) };
    let uses = uses(&[target], &lowered.inputs, &lowered.program);
    let program = std::mem::take(&mut lowered.program);
    let Reduced { nest, ranks, spec } = reduced;
    let job = Job { program, nest, results: Vec::new(), inputs, gathered, scalars: lowered.scalars };
    let job = FoldJob { job, ranks, spec, result };
    let kernel = text();
    // SAFETY: the job accesses elements of the views, which are inside their memories. It writes elements of the targets, with values of
    // their types.
    unsafe {
        run_on_host(&target.stream, &kernel.clone(), place, uses, move || {
            job.run().map_err(|diagnosis| host_fault(&kernel, place, diagnosis))
        })
    }
}

/// Returns the text of the kernel that [`reduce`] launches on a device of an architecture.
pub(crate) fn reduction_text(
    place: &'static Location<'static>,
    target: &Arc<View>,
    shape: &Shape,
    axes: &[usize],
    spec: Spec,
    (root, lowered): (&Arc<Node>, &Lowered),
    arch: u32,
) -> Result<String> {
    match reduced(place, target, shape, axes, spec, (root, lowered))? {
        Some(reduced) => super::gpu::reduction_text(target, lowered, &reduced, arch),
        None => kernel_text(place, &[target], &[of_nothing(spec)], arch),
    }
}

/// Returns the result of a reduction of no elements.
pub(super) fn of_nothing(spec: Spec) -> Arc<Node> {
    Arc::new(Node { kind: Kind::Scalar(spec.of_nothing()), dtype: spec.to, arguments: arguments([]) })
}

/// Returns the layouts of a reduction's result and inputs, or `None` if there is nothing to reduce.
fn reduced(
    place: &'static Location<'static>,
    target: &Arc<View>,
    shape: &Shape,
    axes: &[usize],
    spec: Spec,
    (root, lowered): (&Arc<Node>, &Lowered),
) -> Result<Option<Reduced>> {
    let fail = |kind, reason| mistake(place, kind, reason, &[root]);
    let kept: Vec<usize> = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
    if repeats(&target.layout) {
        return Err(fail(
            ExpressionErrorKind::BadStrides,
            "the target repeats elements: it cannot be assigned to".into(),
        ));
    }
    let mut layouts = vec![spread(&target.layout, shape, &kept)];
    for (input, view) in lowered.program.inputs.iter().zip(&lowered.inputs) {
        if overlaps(target, view) {
            let reason = "the target overlaps what is reduced: reduce into another tensor".into();
            return Err(fail(ExpressionErrorKind::Overlap, reason));
        }
        if !input.gathered {
            layouts.push(view.layout.broadcast_to(shape).expect("the shape that all broadcast to"));
        }
    }
    let indices = indices(shape, lowered, &fail)?;
    if shape.contains(&0) {
        return Ok(None);
    }
    // If neighbours in memory belong to different results, the innermost axes come last in the nest.
    let inner = layouts[1..].iter().find_map(|layout| {
        let unit = (0..shape.rank()).filter(|&axis| shape[axis] > 1).find(|&axis| layout.strides[axis].abs() == 1);
        unit.filter(|axis| kept.contains(axis))
    });
    let (outer, columns): (Vec<usize>, Vec<usize>) = match inner {
        None => (kept, Vec::new()),
        Some(inner) => {
            let after = axes.iter().rev().find(|&&axis| axis < inner).map_or(0, |axis| axis + 1);
            kept.into_iter().partition(|&axis| axis < after || axis > inner)
        }
    };
    layouts.extend(indices);
    let groups = [&outer[..], axes, &columns[..]];
    let Some((nest, ranks)) = Nest::grouped(shape, layouts.iter(), groups, lowered.program.shifted()) else {
        return Err(fail(ExpressionErrorKind::BadShape, format!("{shape} has more elements than can be counted")));
    };
    Ok(Some(Reduced { nest, ranks, spec }))
}

/// A reduction's nest: of the result and of the inputs that are not gathered. Its axes are the outer axes of the results, then the axes
/// that are reduced, then the inner axes of the results.
pub(crate) struct Reduced {
    pub(crate) nest: Nest,
    /// The numbers of axes of each kind.
    pub(crate) ranks: [usize; 3],
    pub(crate) spec: Spec,
}

/// Returns the layout of the results over the shape of the input. The reduced axes repeat the results.
fn spread(layout: &Layout, shape: &Shape, kept: &[usize]) -> Layout {
    let mut strides = [0; MAX_RANK];
    // Axes of extent 1 may stand for the reduced axes.
    let of_target: Vec<usize> =
        if layout.shape.rank() == kept.len() { (0..kept.len()).collect() } else { kept.to_vec() };
    for (&axis, &at) in kept.iter().zip(&of_target) {
        strides[axis] = layout.strides[at];
    }
    Layout { shape: *shape, strides, offset: layout.offset }
}

/// Returns the memories of the inputs. In the nest, the inputs that are not gathered begin at number `operand`.
fn memories(lowered: &Lowered, mut operand: usize) -> Vec<Memory> {
    let place = |(input, view): (&Input, &Arc<View>)| {
        let Layout { shape, strides, offset } = view.layout;
        let placement = if input.gathered {
            Placement::Gathered { offset, stride: strides[0], extent: shape.first().copied().unwrap_or(1) }
        } else {
            operand += 1;
            Placement::Nested(operand - 1)
        };
        Memory { address: view.storage.address(), size: view.dtype.size(), placement }
    };
    lowered.program.inputs.iter().zip(&lowered.inputs).map(place).collect()
}

/// Returns the memory that a program writes and reads.
fn uses<'a>(targets: &[&'a Arc<View>], inputs: &'a [Arc<View>], program: &Program) -> Vec<StorageUse<'a>> {
    let written = targets.iter().map(|&view| (view, true, vec![view.layout]));
    let inputs = inputs.iter().enumerate();
    let read = inputs.map(|(number, view)| (view, false, program.parts(number, &view.layout)));
    written.chain(read).map(|(view, write, parts)| storage_use(view, write, parts)).collect()
}

/// Returns the memories of the inputs that are gathered.
fn gathered(lowered: &Lowered) -> Vec<Option<Storage>> {
    let inputs = lowered.program.inputs.iter().zip(&lowered.inputs);
    inputs.map(|(input, view)| input.gathered.then(|| Storage::clone(&view.storage))).collect()
}

fn storage_use(view: &Arc<View>, write: bool, parts: Vec<Layout>) -> StorageUse<'_> {
    let size = view.dtype.size();
    let ranges = move |each: &mut dyn FnMut(Range<usize>)| parts.iter().for_each(|part| byte_ranges(part, size, each));
    let name = if write { "the target" } else { "a tensor" };
    StorageUse { storage: &view.storage, write, ranges: Box::new(ranges), name }
}

/// The computation of a checked program on the CPU.
pub(crate) struct CpuPass<'a>(HostPass<'a>);

impl<'a> CpuPass<'a> {
    /// Makes the computation. Its faults have this name.
    pub(crate) fn new(
        place: &'static Location<'static>,
        targets: &[&'a Arc<View>],
        lowered: &'a Lowered,
        nest: &Nest,
        name: &str,
    ) -> Self {
        let result = |(i, view): (usize, &&Arc<View>)| Memory {
            address: view.storage.address(),
            size: view.dtype.size(),
            placement: Placement::Nested(i),
        };
        let results = targets.iter().enumerate().map(result).collect();
        let (inputs, gathered) = (memories(lowered, targets.len()), gathered(lowered));
        let uses = uses(targets, &lowered.inputs, &lowered.program);
        let (program, nest, scalars) = (lowered.program.clone(), nest.clone(), lowered.scalars.clone());
        let job = Job { program, nest, results, inputs, gathered, scalars };
        let name = name.to_owned();
        let body = move || job.run().map_err(|diagnosis| host_fault(&name, place, diagnosis));
        Self(HostPass { uses, body: Box::new(body) })
    }
}

/// Runs computations on the CPU in the order of these numbers, as one launch with this name.
pub(crate) fn run_on_cpu(
    place: &'static Location<'static>,
    stream: &Stream,
    name: &str,
    passes: Vec<CpuPass<'_>>,
    order: Arc<[u32]>,
) -> Result<()> {
    let passes = passes.into_iter().map(|pass| pass.0).collect();
    // SAFETY: the jobs access elements of the views, which are inside their memories. They write elements of the targets, with values of
    // their types.
    unsafe { run_passes_on_host(stream, name, place, passes, order) }
}

/// Calls `each` with ranges of bytes that together are the bytes of a view's elements.
fn byte_ranges(layout: &Layout, size: usize, each: &mut dyn FnMut(Range<usize>)) {
    let Some(nest) = Nest::new(&layout.shape, [layout].into_iter()) else { return };
    nest.runs(0, 0..nest.elements, |_, element, stride, len| {
        if stride == 1 {
            each(element * size..(element + len) * size);
        } else {
            let len = if stride == 0 { 1 } else { len };
            for i in 0..len as isize {
                let at = element.wrapping_add_signed(stride * i) * size;
                each(at..at + size);
            }
        }
    });
}
