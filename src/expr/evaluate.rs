//! Assignments: from expressions to a kernel, or to the CPU.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use primitives_gpu::Dim3;
use primitives_gpu::simt::Fault;
use primitives_host::storage::{StorageUse, run_on_host};
use primitives_host::{Diagnosis, Error, ExpressionError, ExpressionErrorKind, KernelFault, Result};

use super::cpu::{Job, Memory, Placement};
use super::gpu::Operands;
use super::graph::{Node, View, describe};
use super::nest::Nest;
use super::program::{Lowered, What, lower};
use super::shape::{Layout, Shape};

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
    run(place, targets, &lower(roots), &|| roots.iter().collect())
}

/// As [`evaluate`], of what was lowered. `roots` are for errors.
pub(crate) fn run<'a>(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    roots: &dyn Fn() -> Vec<&'a Arc<Node>>,
) -> Result<()> {
    let Some(first) = targets.first() else { return Ok(()) };
    let shape = first.layout.shape;
    let nest = nest(place, targets, lowered, roots)?;
    launch(place, targets, lowered, shape, nest, &|| describe(&roots()).0.join("; "))
}

/// Launches what lies as `nest` says, and was checked.
pub(crate) fn launch(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    shape: Shape,
    nest: Nest,
    text: &dyn Fn() -> String,
) -> Result<()> {
    if nest.elements == 0 {
        return Ok(());
    }
    #[cfg(feature = "cuda")]
    if targets[0].stream.device().is_gpu() {
        return Operands::new(targets, lowered, &nest).launch(shape, text);
    }
    on_cpu(place, targets, lowered, shape, nest, text())
}

/// The text of the kernel that [`evaluate`] launches on a device of an architecture.
pub(crate) fn kernel_text(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    roots: &[Arc<Node>],
    arch: u32,
) -> Result<String> {
    let lowered = lower(roots);
    let nest = nest(place, targets, &lowered, &|| roots.iter().collect())?;
    Operands::new(targets, &lowered, &nest).text(arch)
}

/// How the targets and what is read lie.
fn nest<'a>(
    place: &'static Location<'static>,
    targets: &[&Arc<View>],
    lowered: &Lowered,
    roots: &dyn Fn() -> Vec<&'a Arc<Node>>,
) -> Result<Nest> {
    let shape = targets.first().map_or(Shape::SCALAR, |first| first.layout.shape);
    let fail = |kind, reason| mistake(place, kind, reason, &roots());
    let layouts = lie(&shape, targets, lowered, &fail)?;
    Nest::new(&shape, layouts.iter(), lowered.program.uses_index())
        .ok_or_else(|| fail(ExpressionErrorKind::BadShape, format!("{shape} has more elements than can be counted")))
}

/// The layouts of the targets, then of the inputs that are not gathered, in the targets' shape.
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
    for instruction in &lowered.program.code {
        if let What::Index(Some(axis)) = instruction.what
            && usize::from(axis) >= shape.rank()
        {
            let reason = format!("the target, of shape {shape}, has no axis {axis}");
            return Err(fail(ExpressionErrorKind::OutOfRange, reason));
        }
    }
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
    shape: Shape,
    nest: Nest,
    expression: String,
) -> Result<()> {
    let memory = |view: &View, lie| Memory { address: view.storage.address(), size: view.dtype.size(), lie };
    let results = targets.iter().enumerate().map(|(i, view)| memory(view, Placement::Nested(i))).collect();
    let mut operand = targets.len();
    let mut inputs = Vec::with_capacity(lowered.inputs.len());
    for (input, view) in lowered.program.inputs.iter().zip(&lowered.inputs) {
        let Layout { shape, strides, offset } = view.layout;
        inputs.push(memory(
            view,
            if input.gathered {
                Placement::Gathered { offset, stride: strides[0], extent: shape.first().copied().unwrap_or(1) }
            } else {
                operand += 1;
                Placement::Nested(operand - 1)
            },
        ));
    }
    let views = targets.iter().map(|view| (*view, true)).chain(lowered.inputs.iter().map(|view| (view, false)));
    let uses = views
        .map(|(view, write)| {
            let (layout, size) = (view.layout, view.dtype.size());
            let ranges = move |each: &mut dyn FnMut(Range<usize>)| byte_ranges(&layout, size, each);
            let name = if write { "the target" } else { "a tensor" };
            StorageUse { storage: &view.storage, write, ranges: Box::new(ranges), name }
        })
        .collect();
    let job = Job { program: lowered.program.clone(), shape, nest, results, inputs, scalars: lowered.scalars.clone() };
    let kernel = expression.clone();
    run_on_host(&targets[0].stream, &expression, place, uses, move || {
        job.run().map_err(|fault| cpu_fault(&kernel, place, fault))
    })
}

fn cpu_fault(kernel: &str, place: &Location<'_>, fault: Fault) -> Error {
    Error::Fault(Box::new(KernelFault {
        kernel: kernel.into(),
        block: Dim3::new(0, 0, 0),
        thread: Dim3::new(0, 0, 0),
        file: place.file().into(),
        line: place.line(),
        column: place.column(),
        diagnosis: Diagnosis::Raised(fault),
        help: None,
        seed: None,
    }))
}

/// The bytes of a view's elements.
fn byte_ranges(layout: &Layout, size: usize, each: &mut dyn FnMut(Range<usize>)) {
    let Some(nest) = Nest::new(&layout.shape, [layout].into_iter(), false) else { return };
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
    use crate::expr::shape::MAX_RANK;

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
