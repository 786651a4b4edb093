//! Launches of transforms of computed lines.

use std::ffi::c_void;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, PoisonError, RwLock};

use primitives_host::storage::{self, Storage};

use super::super::choose::carveout;
use super::super::pass::{Kind, Lanes, LinePass};
use super::super::plan::{Plan, Step, Work};
use super::super::text::code::Real;
use super::super::text::computed::{ComputedKernel, ComputedOperand, ComputedPass, ComputedTransform, computed};
use super::{Generated, info_of, real, to_f64};
use crate::element::FftFloat;
use crate::expr::dtype::DType;
use crate::expr::graph::View;
use crate::expr::layout::shape::{Layout, Shape};
use crate::expr::program::{FastMap, Lowered, What};
use crate::expr::ptx::PARAM_BYTES;
use crate::{Buffer, Complex, Dims, KernelInfo, Result, Stream};

/// Lines that a program computes, and the transforms of these lines.
pub(in super::super::super) struct ComputedLines<'a> {
    pub(in super::super::super) shape: Shape,
    pub(in super::super::super) targets: &'a [&'a Arc<View>],
    /// The results of the program, in this order: the scalars that stand for the results of each transform; then the real and the imaginary
    /// part that each transform takes; then the values that are assigned to the targets.
    pub(in super::super::super) lowered: &'a Lowered,
    /// Whether each transform is inverse, and whether its results are scaled.
    pub(in super::super::super) transforms: Vec<(bool, bool)>,
}

/// Returns the pass over lines in a row that one block holds, if the plan has no other pass.
fn row_pass(plan: &Plan) -> std::result::Result<LinePass, String> {
    match &plan.steps[..] {
        [Step { work: Work::Pass(pass), .. }] => of_rows(pass),
        _ => Err("the transforms take more than one pass: they are of several axes, or of a long one".into()),
    }
}

/// Returns the same pass with computed ends, if its lines are in a row.
fn of_rows(pass: &LinePass) -> std::result::Result<LinePass, String> {
    if pass.is_convolution() {
        return Err("the length of the axis has a large prime factor".into());
    }
    let in_a_row = pass.axes.len() == 1 && pass.elements == [1; 2] && pass.lanes == [Lanes::Along; 2];
    if !in_a_row || pass.kind != Kind::Complex || pass.factors.is_some() {
        return Err("the axis is not the last one".into());
    }
    Ok(LinePass { staged: false, ..pass.clone() })
}

/// Returns the pass for any number of lines. Either all blocks have all their lines, or the last block may lack some.
fn of_any_count(pass: &LinePass) -> LinePass {
    let mut any = pass.clone();
    let lacks_some = !pass.axes[0].extent.is_multiple_of(pass.lines);
    any.axes[0].extent = if lacks_some { pass.lines + 1 } else { pass.lines };
    any
}

/// Returns the strides from a line to the next and from an element to the next, if all lines have the same distance. Lines go along the
/// last axis of several elements.
fn strides(layout: &Layout) -> Option<[isize; 2]> {
    let mut axes = (0..layout.shape.rank()).rev().filter(|&axis| layout.shape[axis] > 1);
    let element = layout.strides[axes.next()?];
    let (mut line, mut count) = (None, 1);
    for axis in axes {
        let stride = layout.strides[axis];
        if *line.get_or_insert(stride) * count != stride {
            return None;
        }
        count *= layout.shape[axis] as isize;
    }
    Some([line.unwrap_or(0), element])
}

/// Returns the form of a kernel, the addresses of its operands and its scalars, or why there is no kernel.
fn form(pass: &LinePass, lines: &ComputedLines<'_>) -> std::result::Result<(ComputedPass, Vec<u64>), String> {
    let ComputedLines { shape, targets, lowered, transforms } = lines;
    let program = &lowered.program;
    let dtype = match pass.real {
        Real::F32 => DType::F32,
        Real::F64 => DType::F64,
    };
    for instruction in &program.code {
        match instruction.what {
            What::Load(_) | What::Scalar(_) | What::Constant(_) | What::Index(_) => {}
            What::Op(op) if !op.divides_integers(instruction.dtype) => {}
            What::Op(_) => return Err("an expression divides integers".into()),
            What::Gather(_) => return Err("an expression gathers".into()),
            What::Neighbour(..) | What::Weighted(..) => return Err("an expression reads neighbours".into()),
            What::Random(_) => return Err("an expression has random numbers".into()),
            What::Call(_) => return Err("an expression calls a device function".into()),
        }
    }
    let (pairs, results) = program.results.split_at(4 * transforms.len());
    let pair = |number: usize| [pairs[2 * number], pairs[2 * number + 1]];
    let of = |(at, &(inverse, scaled)): (usize, &(bool, bool))| ComputedTransform {
        inverse,
        scaled,
        gives: pair(at),
        takes: pair(transforms.len() + at),
    };
    let transforms = transforms.iter().enumerate().map(of).collect();
    let mut operands: Vec<ComputedOperand> = Vec::new();
    let mut addresses: Vec<u64> = Vec::new();
    let views: Vec<&Arc<View>> = targets.iter().copied().chain(&lowered.inputs).collect();
    let layouts = views.iter().map(|view| view.layout.broadcast_to(shape).expect("it was checked"));
    for (number, layout) in layouts.chain(program.index_layouts(shape)).enumerate() {
        let size = views.get(number).map_or(1, |view| view.dtype.size());
        let Some(strides) = strides(&layout) else {
            return Err("lines of an operand are not at one distance".into());
        };
        let [line, element] = strides.map(|stride| stride as i64 * size as i64);
        let reach = i128::from(element) * i128::from(pass.length());
        if i32::try_from(reach).is_err() {
            return Err("elements of an operand are far apart".into());
        }
        addresses.push(views.get(number).map_or(0, |view| view.storage.address()) + (layout.offset * size) as u64);
        operands.push(ComputedOperand { line, element, beside: None });
    }
    let size = dtype.size();
    for first in 0..views.len() {
        let ComputedOperand { line, element, .. } = operands[first];
        let steps = [addresses[first] as i64, line, element];
        let whole = steps.iter().all(|step| step % (2 * size as i64) == 0) && (line, element) != (0, 0);
        let is_beside = |&second: &usize| {
            (first < targets.len()) == (second < targets.len())
                && (operands[second].line, operands[second].element) == (line, element)
                && [first, second].iter().all(|&one| views[one].dtype == dtype)
                && addresses[second] == addresses[first] + size as u64
                && views[first].storage.same_as(&views[second].storage)
        };
        if let Some(second) = (0..views.len()).find(is_beside).filter(|_| whole) {
            operands[first].beside = Some(second as u32);
        }
    }
    let (program, results) = (program.clone(), results.to_vec());
    let form = ComputedPass { pass: of_any_count(pass), transforms, program, results, operands };
    if 8 * (form.parameters() + 1) > PARAM_BYTES {
        return Err("there are too many operands".into());
    }
    addresses.extend(&lowered.scalars);
    Ok((form, addresses))
}

/// A kernel for any number of lines.
struct ComputedLaunch {
    info: &'static KernelInfo,
    /// The threads of a block.
    threads: u32,
    /// The bytes of shared memory that a launch has to give.
    shared: usize,
    roots: Vec<Complex<f64>>,
}

/// The kernels by architecture and form, or why there is none.
type Kernels = FastMap<(u32, ComputedPass), std::result::Result<Arc<ComputedLaunch>, String>>;

static KERNELS: RwLock<Kernels> = RwLock::new(FastMap::with_hasher(BuildHasherDefault::new()));

/// Returns the kernel of a form. No lock is held while its text is written.
fn kernel_of_form(form: ComputedPass, arch: u32) -> std::result::Result<Arc<ComputedLaunch>, String> {
    let key = (arch, form);
    if let Some(known) = KERNELS.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return known.clone();
    }
    let (pass, count) = (&key.1.pass, key.1.transforms.len());
    let made = match computed(&key.1, arch) {
        Ok(ComputedKernel { text, shared, roots }) => {
            let real = pass.real.ptx();
            let name = || format!("{count} generated transforms of {} computed numbers of {real}", pass.length());
            let (info, threads) = (info_of(text, arch, carveout(pass), name), pass.block_threads());
            Ok(Arc::new(ComputedLaunch { info, threads, shared: shared as usize, roots }))
        }
        Err(function) => Err(format!("the function {function} has no code for sm_{arch}")),
    };
    let mut kernels = KERNELS.write().unwrap_or_else(PoisonError::into_inner);
    kernels.entry(key).or_insert(made).clone()
}

/// A kernel, and the values that its launch needs.
struct ReadyLines {
    kernel: Arc<ComputedLaunch>,
    blocks: usize,
    /// The [bound](LinePass::bound) of the pass.
    bound: u32,
    /// The addresses of the operands, and the scalars.
    words: Vec<u64>,
}

impl<T: FftFloat> Generated<T> {
    /// Returns the kernel of computed lines, or why there is none.
    fn ready(&self, lines: &ComputedLines<'_>) -> std::result::Result<ReadyLines, String> {
        let own = self.kinds[0].as_ref().map_err(|refusal| refusal.to_string())?;
        let pass = row_pass(&own.plan)?;
        let (form, words) = form(&pass, lines)?;
        let kernel = kernel_of_form(form, self.arch)?;
        if kernel.shared > lines.targets[0].stream.device().properties().max_shared_bytes {
            return Err("a block has no room for the exchanges of both transforms".into());
        }
        Ok(ReadyLines { kernel, blocks: pass.tiles() as usize, bound: pass.bound(), words })
    }

    /// Returns why no single kernel makes the transforms of computed lines, or `None` if one does.
    pub(in super::super::super) fn refuses(&self, lines: &ComputedLines<'_>) -> Option<String> {
        self.ready(lines).err()
    }

    /// Launches the one kernel of computed lines. Returns `false` if there is none.
    pub(in super::super::super) fn run_computed(
        &self,
        stream: &Stream,
        lines: &ComputedLines<'_>,
        scales: &[T],
    ) -> Result<bool> {
        let Ok(ReadyLines { kernel, blocks, bound, words: operands }) = self.ready(lines) else {
            return Ok(false);
        };
        let table = Storage::shared(self.table_of_chain(stream, scales.len(), &kernel.roots)?);
        let mut words = vec![table.address(), bound.into()];
        words.extend(scales.iter().map(|&scale| real::<T>().bits(to_f64(scale))));
        words.extend(operands);
        let mut params: Vec<*mut c_void> =
            words.iter().map(|word| std::ptr::from_ref(word).cast_mut().cast()).collect();
        // This parameter is the runtime's own.
        params.push(std::ptr::null_mut());
        let dims = Dims::for_blocks(blocks).block(kernel.threads).shared_bytes(kernel.shared);
        let (targets, inputs) = (lines.targets, &lines.lowered.inputs);
        // Memory that is both read and written is listed as written only.
        let read = inputs.iter().filter(|view| !targets.iter().any(|target| target.storage.same_as(&view.storage)));
        let written = targets.iter().map(|view| (&*view.storage, true));
        let uses = written.chain(read.map(|view| (&*view.storage, false))).chain([(&table, false)]);
        // SAFETY: the words are the kernel's parameters in order; it accesses elements of the views, which were checked, and the table.
        unsafe { storage::launch(stream, kernel.info, dims, uses, &mut params)? };
        Ok(true)
    }

    /// Returns the roots of a chain's transforms, on the device. They depend only on the plan.
    fn table_of_chain(
        &self,
        stream: &Stream,
        transforms: usize,
        roots: &[Complex<f64>],
    ) -> Result<&Buffer<Complex<T>>> {
        let table = &self.chains[transforms - 1];
        if let Some(known) = table.get() {
            return Ok(known);
        }
        let number = |x: &Complex<f64>| Complex { re: T::from_f64(x.re), im: T::from_f64(x.im) };
        let mut numbers: Vec<Complex<T>> = roots.iter().map(number).collect();
        if numbers.is_empty() {
            numbers.push(Complex { re: T::ONE, im: T::ZERO });
        }
        // This uses another stream, because the given one may capture.
        let made = stream.device().stream()?.buffer_from(&numbers)?;
        Ok(table.get_or_init(|| made))
    }
}

/// A kernel, in the form that tests run.
#[cfg(test)]
pub(in super::super::super) struct WrittenLines {
    pub(in super::super::super) text: String,
    pub(in super::super::super) blocks: usize,
    pub(in super::super::super) threads: usize,
    /// The bytes of shared memory that its launch gives.
    pub(in super::super::super) shared: u32,
    pub(in super::super::super) roots: Vec<Complex<f64>>,
    /// The parameters after the address of the roots.
    pub(in super::super::super) words: Vec<u64>,
}

/// Returns the kernel of `count` computed lines of `length` numbers, for sm_90.
#[cfg(test)]
pub(in super::super::super) fn written_lines<T: FftFloat>(
    [count, length]: [u32; 2],
    lines: &ComputedLines<'_>,
    scales: &[T],
) -> std::result::Result<WrittenLines, String> {
    use super::super::choose::rows;
    use super::super::room::Room;
    let pass = of_rows(&rows(real::<T>(), length, count, Room::H100).ok_or("no block holds a line")?)?;
    let (form, operands) = form(&pass, lines)?;
    let ComputedKernel { text, shared, roots } = computed(&form, 90)?;
    let mut words = vec![u64::from(pass.bound())];
    words.extend(scales.iter().map(|&scale| real::<T>().bits(to_f64(scale))));
    words.extend(operands);
    let (blocks, threads) = (pass.tiles() as usize, pass.block_threads() as usize);
    Ok(WrittenLines { text, blocks, threads, shared, roots, words })
}
