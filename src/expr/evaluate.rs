//! Assignments: from expressions to a kernel, or to the CPU.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::{StorageUse, host_fault, run_on_host};
use primitives_host::{Diagnosis, Error, ExpressionError, ExpressionErrorKind, Result};

use super::cpu::{Job, Memory, Placement};
use super::fold::FoldJob;
use super::gpu::Operands;
use super::graph::{Node, View, describe};
use super::nest::Nest;
use super::program::{Input, Lowered, lower};
use super::reduce::Spec;
use super::shape::{Layout, MAX_RANK, Shape};

/// An error about an expression.
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
    let (lowered, all) = (lower(roots), || roots.iter().collect::<Vec<_>>());
    let nest = prepare(place, targets, &lowered, &all)?;
    launch(place, targets, &lowered, &nest, &|| describe(&all()).0.join("; "))
}

/// Launches what lies as `nest` says, and was checked.
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
    on_cpu(place, targets, lowered, nest.clone(), text())
}

/// The text of the kernel that [`evaluate`] launches on a device of an architecture.
pub(crate) fn kernel_text(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    roots: &[Arc<Node>],
    arch: u32,
) -> Result<String> {
    let lowered = lower(roots);
    let nest = prepare(place, targets, &lowered, &|| roots.iter().collect())?;
    Operands::new(targets, &lowered, &nest).text(arch)
}

/// How the targets and what is read lie.
pub(crate) fn prepare<'a>(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    roots: &dyn Fn() -> Vec<&'a Arc<Node>>,
) -> Result<Nest> {
    let shape = targets.first().map_or(Shape::SCALAR, |first| first.layout.shape);
    let fail = |kind, reason| mistake(place, kind, reason, &roots());
    let layouts = lie(&shape, targets, lowered, &fail)?;
    Nest::new(&shape, layouts.iter())
        .ok_or_else(|| fail(ExpressionErrorKind::BadShape, format!("{shape} has more elements than can be counted")))
}

/// The layouts of the targets, then of the inputs that are not gathered, then of the indices, in the targets' shape.
fn lie(
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
        if target.layout.repeats() {
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
            let in_place = !input.gathered && *layout == target.layout;
            if view.storage.same_as(&target.storage) && !in_place && overlap(&target.layout, layout) {
                let reason =
                    "the target overlaps what is read, and not element by element: assign to another tensor, or read \
                              a copy"
                        .to_string();
                return Err(fail(ExpressionErrorKind::Overlap, reason));
            }
        }
        for other in &targets[..at] {
            if other.storage.same_as(&target.storage) && overlap(&target.layout, &other.layout) {
                return Err(fail(ExpressionErrorKind::Overlap, "two targets of one kernel overlap".into()));
            }
        }
    }
    Ok(layouts)
}

/// The layouts of the indices.
fn indices(
    shape: &Shape,
    lowered: &Lowered,
    fail: &dyn Fn(ExpressionErrorKind, String) -> Error,
) -> Result<Vec<Layout>> {
    if let Some(axis) = lowered.program.indices().flatten().find(|axis| usize::from(*axis) >= shape.rank()) {
        return Err(fail(ExpressionErrorKind::OutOfRange, format!("there is no axis {axis} in the shape {shape}")));
    }
    Ok(lowered.program.index_layouts(shape).collect())
}

/// Computes the reduction of an expression, of `shape`, along `axes` into `target`, in one kernel. `lowered` is what `root` lowers to.
pub(crate) fn reduce(
    place: &'static Location<'static>,
    target: &Arc<View>,
    shape: &Shape,
    axes: &[usize],
    spec: Spec,
    (root, mut lowered): (&Arc<Node>, Lowered),
) -> Result<()> {
    let reduced = reduced(place, target, shape, axes, spec, (root, &lowered))?;
    if target.layout.shape.contains(&0) {
        return Ok(());
    }
    let text = || format!("{:?} of {}", spec.fold, describe(&[root]).0.join(""));
    #[cfg(feature = "cuda")]
    if target.stream.device().is_gpu() {
        return super::gpu::reduce(target, &lowered, &reduced, &text);
    }
    let inputs = memories(&lowered, 1);
    let result = Memory { address: target.storage.address(), size: target.dtype.size(), lie: Placement::Nested(0) };
    let views = std::iter::once((target, true)).chain(lowered.inputs.iter().map(|view| (view, false)));
    let uses = views.map(|(view, write)| storage_use(view, write)).collect();
    let program = std::mem::take(&mut lowered.program);
    let Reduced { nest, ranks, spec } = reduced;
    let job = Job { program, nest, results: Vec::new(), inputs, scalars: lowered.scalars };
    let job = FoldJob { job, ranks, spec, result };
    let kernel = text();
    run_on_host(&target.stream, &kernel.clone(), place, uses, move || {
        job.run().map_err(|fault| host_fault(&kernel, place, Diagnosis::Raised(fault)))
    })
}

/// The text of the kernel that [`reduce`] launches on a device of an architecture.
pub(crate) fn reduction_text(
    place: &'static Location<'static>,
    target: &Arc<View>,
    shape: &Shape,
    axes: &[usize],
    spec: Spec,
    (root, lowered): (&Arc<Node>, &Lowered),
    arch: u32,
) -> Result<String> {
    let reduced = reduced(place, target, shape, axes, spec, (root, lowered))?;
    super::gpu::reduction_text(target, lowered, &reduced, arch)
}

/// How a reduction's result and what is reduced lie.
fn reduced(
    place: &'static Location<'static>,
    target: &Arc<View>,
    shape: &Shape,
    axes: &[usize],
    spec: Spec,
    (root, lowered): (&Arc<Node>, &Lowered),
) -> Result<Reduced> {
    let fail = |kind, reason| mistake(place, kind, reason, &[root]);
    let kept: Vec<usize> = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
    if target.layout.repeats() {
        return Err(fail(
            ExpressionErrorKind::BadStrides,
            "the target repeats elements: it cannot be assigned to".into(),
        ));
    }
    let mut layouts = vec![spread(&target.layout, shape, &kept)];
    for (input, view) in lowered.program.inputs.iter().zip(&lowered.inputs) {
        if view.storage.same_as(&target.storage) && overlap(&target.layout, &view.layout) {
            let reason = "the target overlaps what is reduced: reduce into another tensor".into();
            return Err(fail(ExpressionErrorKind::Overlap, reason));
        }
        if !input.gathered {
            layouts.push(view.layout.broadcast_to(shape).expect("the shape that all broadcast to"));
        }
    }
    // Where neighbours in memory go to different results, the innermost axes come last in the nest.
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
    layouts.extend(indices(shape, lowered, &fail)?);
    let groups = [&outer[..], axes, &columns[..]];
    let Some((nest, ranks)) = Nest::grouped(shape, layouts.iter(), groups) else {
        return Err(fail(ExpressionErrorKind::BadShape, format!("{shape} has more elements than can be counted")));
    };
    Ok(Reduced { nest, ranks, spec })
}

/// What is reduced, and how: the nest of the result and of the inputs that are not gathered, in which come the outer axes of the
/// results, those that are reduced, and the inner ones of the results.
pub(crate) struct Reduced {
    pub(crate) nest: Nest,
    /// How many axes of each kind there are.
    pub(crate) ranks: [usize; 3],
    pub(crate) spec: Spec,
}

/// The layout of results over the shape of what is reduced: those axes repeat them.
fn spread(layout: &Layout, shape: &Shape, kept: &[usize]) -> Layout {
    let mut strides = [0; MAX_RANK];
    // Axes of extent 1 may stand for those that are reduced.
    let of_target: Vec<usize> =
        if layout.shape.rank() == kept.len() { (0..kept.len()).collect() } else { kept.to_vec() };
    for (&axis, &at) in kept.iter().zip(&of_target) {
        strides[axis] = layout.strides[at];
    }
    Layout { shape: *shape, strides, offset: layout.offset }
}

/// Where the inputs are, with the first of those that are not gathered at `operand` in the nest.
fn memories(lowered: &Lowered, mut operand: usize) -> Vec<Memory> {
    let place = |(input, view): (&Input, &Arc<View>)| {
        let Layout { shape, strides, offset } = view.layout;
        let lie = if input.gathered {
            Placement::Gathered { offset, stride: strides[0], extent: shape.first().copied().unwrap_or(1) }
        } else {
            operand += 1;
            Placement::Nested(operand - 1)
        };
        Memory { address: view.storage.address(), size: view.dtype.size(), lie }
    };
    lowered.program.inputs.iter().zip(&lowered.inputs).map(place).collect()
}

fn storage_use(view: &Arc<View>, write: bool) -> StorageUse<'_> {
    let (layout, size) = (view.layout, view.dtype.size());
    let ranges = move |each: &mut dyn FnMut(Range<usize>)| byte_ranges(&layout, size, each);
    let name = if write { "the target" } else { "a tensor" };
    StorageUse { storage: &view.storage, write, ranges: Box::new(ranges), name }
}

/// Whether two views of one memory may have an element in common: exactly for what costs little to decide, else yes.
pub(crate) fn overlap(a: &Layout, b: &Layout) -> bool {
    let (Some(x), Some(y)) = (a.span(), b.span()) else { return true };
    if x.start.max(y.start) >= x.end.min(y.end) {
        return false;
    }
    // Is there a sum of steps, each as often as its axis allows, that leads from one to the other?
    let steps = |layout: &Layout, sign: i128| {
        let axes = layout.shape.iter().zip(layout.strides);
        axes.map(|(&extent, stride)| (sign * stride as i128, extent as i128 - 1)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> =
        steps(a, 1).into_iter().chain(steps(b, -1)).filter(|step| step.0 != 0 && step.1 > 0).collect();
    all.sort_by_key(|step| std::cmp::Reverse(step.0.abs()));
    meets(b.offset as i128 - a.offset as i128, &all, &mut 10_000)
}

/// Whether `distance` is a sum of the steps, each 0 to `most` times. Yes as well if that is too much to find out.
fn meets(distance: i128, steps: &[(i128, i128)], budget: &mut usize) -> bool {
    let Some((&(step, most), rest)) = steps.split_first() else { return distance == 0 };
    if *budget == 0 {
        return true;
    }
    *budget -= 1;
    let (low, high) = rest
        .iter()
        .fold((0, 0), |(low, high), &(step, most)| (low + (step * most).min(0), high + (step * most).max(0)));
    // Those counts after which the rest can still reach the distance.
    let (first, last) = if step > 0 { (distance - high, distance - low) } else { (low - distance, high - distance) };
    let size = step.abs();
    let from = (first.div_euclid(size) + i128::from(first.rem_euclid(size) != 0)).max(0);
    let to = last.div_euclid(size).min(most);
    (from..=to).any(|count| meets(distance - step * count, rest, budget))
}

fn on_cpu(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    nest: Nest,
    expression: String,
) -> Result<()> {
    let result = |(i, view): (usize, &&Arc<View>)| Memory {
        address: view.storage.address(),
        size: view.dtype.size(),
        lie: Placement::Nested(i),
    };
    let results = targets.iter().enumerate().map(result).collect();
    let inputs = memories(lowered, targets.len());
    let views = targets.iter().map(|view| (*view, true)).chain(lowered.inputs.iter().map(|view| (view, false)));
    let uses = views.map(|(view, write)| storage_use(view, write)).collect();
    let job = Job { program: lowered.program.clone(), nest, results, inputs, scalars: lowered.scalars.clone() };
    let kernel = expression.clone();
    run_on_host(&targets[0].stream, &expression, place, uses, move || {
        job.run().map_err(|fault| host_fault(&kernel, place, Diagnosis::Raised(fault)))
    })
}

/// The bytes of a view's elements.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_decided_by_elements() {
        let layout = |extents: &[usize], strides: &[isize], offset| {
            let mut all = [0; MAX_RANK];
            all[..strides.len()].copy_from_slice(strides);
            Layout { shape: Shape::new(extents).unwrap(), strides: all, offset }
        };
        // Even and odd places; left and right columns; a matrix and its transpose.
        assert!(!overlap(&layout(&[5], &[2], 0), &layout(&[5], &[2], 1)));
        assert!(!overlap(&layout(&[4, 3], &[6, 1], 0), &layout(&[4, 3], &[6, 1], 3)));
        assert!(overlap(&layout(&[4, 3], &[6, 1], 0), &layout(&[4, 3], &[6, 1], 2)));
        assert!(overlap(&layout(&[4, 4], &[4, 1], 0), &layout(&[4, 4], &[1, 4], 0)));
        assert!(!overlap(&layout(&[4], &[-1], 3), &layout(&[4], &[1], 4)));
    }
}
