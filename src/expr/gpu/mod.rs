//! Kernels of programs: they are written at their first use, kept until the process ends, and launched.

mod choice;
mod reduce;
#[cfg(test)]
pub(crate) mod text;

use std::ffi::c_void;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::{Arc, PoisonError, RwLock};

use primitives_gpu::io::IndexInt;
use primitives_gpu::view::LaunchBounds;
use primitives_host::storage::{self, Storage};
use primitives_host::{Device, Dims, Error, KernelInfo, Result};

use super::graph::View;
use super::layout::nest::Nest;
use super::program::{FastHasher, FastMap, Lowered, Program};
use super::ptx::steps::StepsForm;
use super::ptx::{self, ENTRY, Kinds, NoKernel, Param, Variant};

#[cfg(feature = "cuda")]
pub(crate) use reduce::reduce;
pub(crate) use reduce::reduction_text;

/// A number by which the host checks that a kernel's text was written for its launch.
const LAYOUT: u64 = 0x6b70_6578_7072_0001;

struct Cached {
    arch: u32,
    program: Program,
    form: KernelForm,
    kernel: Kernel,
}

/// A kernel that was written at run time.
#[derive(Clone, Copy)]
struct Kernel {
    info: &'static KernelInfo,
    /// Whether its threads may report a fault, and end.
    can_fault: bool,
}

/// The form of a kernel, in addition to its program.
#[derive(Clone, PartialEq, Eq, Hash)]
enum KernelForm {
    Once(Variant),
    Steps(StepsForm),
}

impl KernelForm {
    fn text(&self, program: &Program, arch: u32) -> Result<String> {
        let text = match self {
            Self::Once(variant) => ptx::kernel(program, variant, arch, LAYOUT),
            Self::Steps(form) => ptx::steps::kernel(program, form, arch, LAYOUT),
        };
        text.map_err(|why| no_text(why, arch))
    }
}

/// All kernels, by hash.
static KERNELS: RwLock<FastMap<u64, Vec<Cached>>> = RwLock::new(FastMap::with_hasher(BuildHasherDefault::new()));

/// Returns the kernel of a program for one layout of operands. Its text and its loaded code are kept, because most expressions are computed
/// again.
fn kernel(program: &Program, form: &KernelForm, device: &Device, name: &dyn Fn() -> String) -> Result<Kernel> {
    let (major, minor) = device.compute_capability().unwrap_or((0, 0));
    let arch = 10 * major + minor;
    let hash = BuildHasherDefault::<FastHasher>::default().hash_one((arch, program, form));
    let find = |kernels: &FastMap<u64, Vec<Cached>>| {
        let all = kernels.get(&hash)?;
        let same = |known: &&Cached| known.arch == arch && known.form == *form && known.program == *program;
        all.iter().find(same).map(|known| known.kernel)
    };
    if let Some(kernel) = find(&KERNELS.read().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(kernel);
    }
    let text = form.text(program, arch).map_err(|error| match error {
        // All kernels of expressions have one entry.
        Error::LaunchLimit { what, asked, limit, .. } => {
            Error::LaunchLimit { kernel: name(), device: device.to_string(), what, asked, limit }
        }
        error => error,
    })?;
    let mut kernels = KERNELS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(kernel) = find(&kernels) {
        return Ok(kernel);
    }
    let can_fault = ptx::can_fault(&text);
    let images: &'static [primitives_host::Image] = vec![(arch, &*text.leak(), None)].leak();
    let name: &'static str = name().leak();
    let info: &'static KernelInfo =
        Box::leak(Box::new(KernelInfo::new(name, ENTRY, images, 0, LAYOUT, LaunchBounds::NONE)));
    let kernel = Kernel { info, can_fault };
    kernels.entry(hash).or_default().push(Cached { arch, program: program.clone(), form: form.clone(), kernel });
    Ok(kernel)
}

fn no_text(why: NoKernel, arch: u32) -> Error {
    match why {
        NoKernel::NoCode(function) => Error::NoImage {
            kernel: function.into(),
            reason: format!("for sm_{arch}: device functions are compiled with the feature `cuda`"),
        },
        NoKernel::Parameters(bytes) => Error::LaunchLimit {
            kernel: ENTRY.into(),
            device: format!("sm_{arch}"),
            what: "the number of bytes of its operands' places and scalars",
            asked: bytes as u64,
            limit: ptx::PARAM_BYTES as u64,
        },
    }
}

/// The operands of a launch.
pub(crate) struct Operands<'a> {
    targets: &'a [&'a Arc<View>],
    lowered: &'a Lowered,
    nest: &'a Nest,
    /// The addresses of the first elements: of the targets, then of the inputs that are not gathered. The indices come after them. The
    /// address of an index is its first value, and its elements have one byte.
    addresses: Vec<u64>,
    sizes: Vec<usize>,
    /// The addresses of the operands' memories.
    memories: Vec<u64>,
}

impl<'a> Operands<'a> {
    pub(crate) fn new(targets: &'a [&'a Arc<View>], lowered: &'a Lowered, nest: &'a Nest) -> Self {
        let loaded = lowered.program.inputs.iter().zip(&lowered.inputs).filter(|(input, _)| !input.gathered);
        let views = targets.iter().copied().chain(loaded.map(|(_, view)| view));
        let (mut addresses, mut sizes, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        for (view, operand) in views.zip(&nest.operands) {
            let size = view.dtype.size();
            addresses.push(view.storage.address() + (operand.offset * size) as u64);
            sizes.push(size);
            memories.push(view.storage.address());
        }
        for operand in &nest.operands[sizes.len()..] {
            addresses.push(operand.offset as u64);
            sizes.push(1);
        }
        Self { targets, lowered, nest, addresses, sizes, memories }
    }

    fn kinds(&self) -> Kinds {
        Kinds { results: self.targets.len(), memories: self.memories.len() }
    }

    /// Returns the number of blocks of a kernel.
    fn blocks(&self, variant: &Variant, count: usize) -> usize {
        if let Some(patch) = variant.patch {
            return (0..self.nest.rank).map(|axis| patch.blocks(axis, self.vectors(variant, axis))).product();
        }
        if let Some(tile) = variant.row {
            return tile.blocks(count);
        }
        let Some(transpose) = variant.transpose else { return count.div_ceil(variant.tile()) };
        let (inner, edge) = (self.nest.rank - 1, usize::from(transpose.edge));
        (0..=inner)
            .map(|axis| {
                let along = axis == inner || axis == usize::from(transpose.axis);
                if along { self.nest.extents[axis].div_ceil(edge) } else { self.nest.extents[axis] }
            })
            .product()
    }

    /// Returns the text of the kernel for an architecture.
    pub(crate) fn text(&self, arch: u32) -> Result<String> {
        KernelForm::Once(self.variant()).text(&self.lowered.program, arch)
    }

    /// Returns the kernel, which its first launch loads, and its launch arguments.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "there is no GPU"))]
    pub(crate) fn ready(&self, name: &dyn Fn() -> String) -> Result<Ready> {
        let device = self.targets[0].stream.device();
        let variant = self.variant();
        let info = kernel(&self.lowered.program, &KernelForm::Once(variant.clone()), device, name)?.info;
        let count = self.count(&variant);
        let blocks = self.extent("the number of blocks", self.blocks(&variant, count), name)?;
        let dims = Dims::new(blocks, variant.threads() as u32);
        Ok(Ready { info, words: self.words(&variant, count), dims })
    }

    /// Returns the number of units that a kernel computes: elements if all operands are linear, and tiles of rows or vectors otherwise.
    fn count(&self, variant: &Variant) -> usize {
        match variant.row {
            Some(tile) => self.nest.elements / self.along(variant, 0) * tile.tiles(self.along(variant, 0)),
            None if variant.rank == 0 => self.nest.elements,
            None => self.nest.elements / usize::from(variant.width),
        }
    }

    /// Returns an extent of a grid.
    fn extent(&self, what: &'static str, asked: usize, name: &dyn Fn() -> String) -> Result<u32> {
        u32::try_from(asked).map_err(|_| Error::LaunchLimit {
            kernel: name(),
            device: self.targets[0].stream.device().to_string(),
            what,
            asked: asked as u64,
            limit: u32::MAX.into(),
        })
    }

    /// Returns the extent along the innermost axis, or along the axis of the transposed inputs.
    fn along(&self, variant: &Variant, which: u8) -> usize {
        let transposed = || variant.transpose.map_or(0, |transpose| transpose.axis.into());
        let axis = if which == 0 { self.nest.rank - 1 } else { transposed() };
        self.nest.extents[axis]
    }

    /// Returns the extent along an axis. Along the innermost axis, it is in vectors.
    fn vectors(&self, variant: &Variant, axis: usize) -> usize {
        let inner = axis + 1 == self.nest.rank;
        self.nest.extents[axis] / if inner { usize::from(variant.width) } else { 1 }
    }

    /// Returns the parameters without the control, one word each.
    fn words(&self, variant: &Variant, count: usize) -> Vec<u64> {
        let mut words = Vec::with_capacity(32);
        for param in variant.params(&self.lowered.program) {
            self.word(param, variant, count, &mut words);
        }
        words
    }

    fn word(&self, param: Param, variant: &Variant, count: usize, words: &mut Vec<u64>) {
        match param {
            Param::Operand(operand) => words.push(self.addresses[operand]),
            Param::Gathered(input) => {
                let view = &self.lowered.inputs[input];
                let size = view.dtype.size();
                words.push(view.storage.address() + (view.layout.offset * size) as u64);
                // If there is only one element, any stride is right.
                words.push(view.layout.strides[0].wrapping_mul(size as isize) as u64);
                words.push(view.layout.shape[0] as u64);
            }
            Param::Scalar(scalar) => words.push(self.lowered.scalars[scalar]),
            Param::Count => words.push(count as u64),
            Param::Divisor(axis) => {
                let vectors = self.vectors(variant, axis);
                let extent = match (variant.patch, variant.row) {
                    (Some(patch), _) => patch.blocks(axis, vectors),
                    (None, Some(tile)) if axis + 1 == self.nest.rank => tile.tiles(self.nest.extents[axis]),
                    _ => vectors,
                };
                if variant.wide {
                    words.push(extent as u64);
                } else {
                    words.extend(divisor(extent.max(1)));
                }
            }
            Param::Tiles(which) => {
                let edge = variant.transpose.map_or(1, |transpose| transpose.edge.into());
                words.extend(divisor(self.along(variant, which).div_ceil(edge)));
            }
            Param::Extent(axis) => words.push(self.nest.extents[axis] as u64),
            Param::Edge(which) => words.push(self.along(variant, which) as u64),
            Param::Stride(operand, axis) => {
                words.push((self.nest.operands[operand].strides[axis] * self.sizes[operand] as isize) as u64);
            }
            // These are parameters of reductions only.
            Param::Rows
            | Param::Depth
            | Param::Elements
            | Param::Size
            | Param::Columns
            | Param::Partials
            | Param::Counters
            | Param::Control => {}
        }
    }
}

/// A kernel and all its launch arguments, except the control.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "there is no GPU"))]
pub(crate) struct Ready {
    info: &'static KernelInfo,
    /// The parameters, one word each.
    words: Vec<u64>,
    dims: Dims,
}

impl Ready {
    /// Launches the kernel on the operands that it was made ready for.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "there is no GPU"))]
    pub(crate) fn launch(&self, targets: &[&Arc<View>], lowered: &Lowered) -> Result<()> {
        self.launch_with(targets, &lowered.inputs, None)
    }

    /// Works as [`launch`](Self::launch), with temporary memory for the kernel.
    fn launch_with(&self, targets: &[&Arc<View>], reads: &[Arc<View>], own: Option<&Storage>) -> Result<()> {
        // The parameters are on the stack, unless there are many.
        const FEW: usize = 32;
        let (mut few, mut many) = ([std::ptr::null_mut(); FEW], Vec::new());
        let count = self.words.len() + 1;
        let params: &mut [*mut c_void] = if count <= FEW {
            &mut few[..count]
        } else {
            many.resize(count, std::ptr::null_mut());
            &mut many
        };
        for (param, word) in params.iter_mut().zip(&self.words) {
            *param = std::ptr::from_ref(word).cast_mut().cast();
        }
        // A memory that is written counts as one use, even if it is also read.
        let read = reads.iter().filter(|view| !targets.iter().any(|target| target.storage.same_as(&view.storage)));
        let written = targets.iter().map(|view| (&*view.storage, true));
        let uses = written.chain(read.map(|view| (&*view.storage, false))).chain(own.map(|own| (own, true)));
        // SAFETY: the words are the kernel's parameters, in order. The kernel accesses only elements of the views, which were checked when
        // they were made.
        unsafe { storage::launch(&targets[0].stream, self.info, self.dims, uses, params) }
            .map_err(|error| with_lines(error, self.info))
    }
}

/// A kernel of several steps, and its launch arguments.
pub(crate) struct StepsLaunch<'a> {
    pub(crate) program: &'a Program,
    pub(crate) form: &'a StepsForm,
    pub(crate) target: &'a Arc<View>,
    pub(crate) reads: &'a [Arc<View>],
    /// The parameters without the control, one word each.
    pub(crate) words: &'a [u64],
    pub(crate) blocks: usize,
}

/// Launches a kernel of several steps.
pub(crate) fn launch_steps(launch: StepsLaunch<'_>, name: &str) -> Result<()> {
    let StepsLaunch { program, form, target, reads, words, blocks } = launch;
    let device = target.stream.device();
    let info = kernel(program, &KernelForm::Steps(form.clone()), device, &|| name.into())?.info;
    let blocks = u32::try_from(blocks).map_err(|_| Error::LaunchLimit {
        kernel: name.into(),
        device: device.to_string(),
        what: "the number of blocks",
        asked: blocks as u64,
        limit: u32::MAX.into(),
    })?;
    let dims = Dims::new(blocks, ptx::steps::THREADS as u32);
    Ready { info, words: words.to_vec(), dims }.launch_with(&[target], reads, None)
}

/// Returns the text of a kernel of several steps for an architecture.
pub(crate) fn steps_text(program: &Program, form: &StepsForm, arch: u32) -> Result<String> {
    KernelForm::Steps(form.clone()).text(program, arch)
}

/// Returns the words of a divisor. A kernel divides by multiplication.
fn divisor(extent: usize) -> [u64; 3] {
    let (multiplier, shift) = u32::reciprocal(extent as u32);
    [extent as u64, multiplier.into(), shift.into()]
}

/// Adds the lines of the kernel's text that the driver's message names, because the user cannot see this text.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "there is no GPU"))]
fn with_lines(error: Error, info: &KernelInfo) -> Error {
    let Error::Load { kernel, device, mut reason, driver } = error else { return error };
    let text = info.images().first().map_or("", |image| image.1);
    let numbers: Vec<usize> = reason
        .match_indices("line ")
        .filter_map(|(at, word)| {
            let digits = &reason[at + word.len()..];
            digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
        })
        .collect();
    for number in numbers {
        if let Some(line) = text.lines().nth(number.wrapping_sub(1)) {
            reason += &format!("\n{number:6} | {line}");
        }
    }
    Error::Load { kernel, device, reason, driver }
}
