//! Launches generated kernels on a GPU. The text of a kernel is made when the kernel is first launched, and is kept as long as the program
//! runs. Plans have the tables.
//!
//! The driver compiles a text when its kernel is first launched in a context, while no lock is held.

mod computed;

use std::any::Any;
use std::ffi::c_void;
use std::hash::BuildHasherDefault;
use std::sync::{OnceLock, PoisonError, RwLock};

pub(in super::super) use computed::ComputedLines;
#[cfg(test)]
pub(in super::super) use computed::{WrittenLines, written_lines};

use super::choose::carveout;
use super::pass::LinePass;
use super::plan::{Area, Plan, Refusal, Step, Work, ahead as ahead_plan, plan};
use super::room::Limits;
use super::text::ahead::{Side, ahead};
use super::text::code::Real;
use super::text::fused::{FusedKernel, fused};
use super::text::kernel::{PassKernel, kernel, nothing};
use super::text::module::{ENTRY, LAYOUT};
use super::text::spectrum::spectrum;
use crate::__private::{Again, AgainMut, KernelInfo, Launch, TileMap};
use crate::algorithms::fourier::FftKind;
use crate::algorithms::run::{Memory, Run, bytes_of};
use crate::element::FftFloat;
use crate::expr::program::FastMap;
use crate::expr::ptx::target_of;
use crate::input::Source;
use crate::output::Sink;
use crate::simt::Block;
use crate::view::LaunchBounds;
use crate::{Buffer, BufferSliceMut, Complex, Device, Dims, Error, Image, InputArg, OutputArg, Result, Stream};

/// The text of a launch's kernel, and the values that the launch needs.
struct Written {
    text: String,
    blocks: u64,
    threads: u32,
    shared: u32,
    /// For each pass, the roots of its stages and the roots of its factors. Passes that copy ahead have theirs apart.
    tables: Vec<Vec<Complex<f64>>>,
}

fn written(work: &Work, arch: u32) -> Written {
    let PassKernel { text, blocks, threads, shared, roots, outer_roots } = match work {
        Work::Pass(pass) => kernel(pass, arch),
        Work::Spectrum(pass) => spectrum(pass, arch),
        Work::Ahead(pass) => ahead(pass, arch),
        Work::Pair(pair) => {
            let FusedKernel { text, blocks, threads, shared, roots, outer_roots } = fused(pair, arch);
            let ([roots_1, roots_2], [outer_1, outer_2]) = (roots, outer_roots);
            return Written { text, blocks, threads, shared, tables: vec![roots_1, outer_1, roots_2, outer_2] };
        }
    };
    Written { text, blocks, threads, shared, tables: vec![roots, outer_roots] }
}

/// Returns the tables of a launch.
fn tables_of(work: &Work, arch: u32) -> Vec<Vec<Complex<f64>>> {
    if let Work::Ahead(pass) = work { pass.tables() } else { written(work, arch).tables }
}

/// A kernel as it is launched.
#[derive(Clone, Copy)]
struct Kernel {
    info: &'static KernelInfo,
    dims: Dims,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.info.name())
    }
}

/// The kernels by text.
static KERNELS: RwLock<FastMap<&str, &KernelInfo>> = RwLock::new(FastMap::with_hasher(BuildHasherDefault::new()));

/// Returns the kernel of a launch, on a device with some multiprocessors. No lock is held while its text is written.
fn kernel_of(work: &Work, arch: u32, multiprocessors: u32) -> Kernel {
    let Written { text, blocks, threads, shared, .. } = written(work, arch);
    let blocks = match work {
        // Blocks that stay are as many as the device holds, in whole clusters.
        Work::Ahead(pass) => blocks.min(((multiprocessors / pass.cluster).max(1) * pass.cluster).into()),
        _ => blocks,
    };
    let dims = Dims::for_blocks(blocks as usize).block(threads).shared_bytes(shared as usize);
    let carveout = if let Work::Pass(pass) = work { carveout(pass) } else { None };
    Kernel { info: info_of(text, arch, carveout, || name(work)), dims }
}

/// Returns the one kernel that has this text, for an architecture that runs it. Launches that differ in the number of lines share it.
fn info_of(text: String, arch: u32, carveout: Option<usize>, name: impl FnOnce() -> String) -> &'static KernelInfo {
    if let Some(known) = KERNELS.read().unwrap_or_else(PoisonError::into_inner).get(&*text).copied() {
        return known;
    }
    let mut kernels = KERNELS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kernels.get(&*text).copied() {
        return known;
    }
    let text: &'static str = text.leak();
    // This is the architecture that the text is for. Other architectures run it, too.
    let (target, _) = target_of(arch);
    let images: &'static [Image] = vec![(target, text, None)].leak();
    let info = KernelInfo::new(name().leak(), ENTRY, images, 0, LAYOUT, LaunchBounds::NONE).with_carveout(carveout);
    let info: &'static KernelInfo = Box::leak(Box::new(info));
    kernels.insert(text, info);
    info
}

/// Returns the reason if the driver compiles no kernels of a PTX version, times ten, for a device: it is too old, or its compiler is missing
/// or turned off.
fn no_compiler(stream: &Stream, arch: u32, version: u32) -> Result<Option<String>> {
    let info = info_of(nothing(arch, version), arch, None, || "a generated kernel that does nothing".into());
    // A launch of no blocks loads its kernel, and leaves the stream as it is.
    let launch = Launch::new(stream, info, Dims::for_blocks(0).block(1u32));
    // SAFETY: nothing runs; the kernel has no parameters but the control.
    match unsafe { launch.run(&mut [std::ptr::null_mut()], |_: Block<'_>| unreachable!("a kernel of a GPU")) } {
        Ok(()) => Ok(None),
        Err(why @ (Error::Load { .. } | Error::DriverTooOld { .. } | Error::NoImage { .. })) => {
            Ok(Some(why.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Returns the name of a kernel in errors and traces.
fn name(work: &Work) -> String {
    let line = |pass: &LinePass| {
        let real = pass.real.ptx();
        format!("{} numbers of {real} by {:?}", pass.length(), pass.radices)
    };
    match work {
        Work::Pass(pass) => format!("the generated transform of {}", line(pass)),
        Work::Spectrum(pass) => format!("the generated half spectrum of {} numbers", 2 * pass.pairs),
        Work::Ahead(pass) => {
            let (length, real, side) = (pass.length(), pass.real.ptx(), pass.side);
            format!("the generated transform of {length} numbers of {real} that copies {side:?} ahead")
        }
        Work::Pair(pair) => {
            format!("the generated transforms of {}, then of {}", line(&pair.passes[0]), line(&pair.passes[1]))
        }
    }
}

/// The launches of a kind, and the beginnings of their tables, in numbers.
#[derive(Debug)]
struct Prepared {
    plan: Plan,
    tables: Vec<Vec<u64>>,
}

/// The generated kernels of a plan, on a GPU.
#[derive(Debug)]
pub(in super::super) struct Generated<T> {
    arch: u32,
    /// The launches for complex numbers, for real numbers to the half spectrum, and for the way back.
    kinds: [std::result::Result<Prepared, Refusal>; 3],
    /// The launches that copy ahead, for complex numbers from a multiple of 16 bytes.
    ahead: Option<Prepared>,
    /// The kernels of the launches of each kind, in order, after the first use. The last two kinds are transforms of real numbers as
    /// complex numbers, forward and inverse. Each kind has four lists: the numbers of the input may be whole or split, and so may those of
    /// the output. The fifth list is for the launches that copy ahead.
    kernels: [[OnceLock<Vec<Kernel>>; 5]; 6],
    /// All tables.
    table: Buffer<Complex<T>>,
    /// The roots for one transform of computed lines, and those for two transforms, after the first use.
    chains: [OnceLock<Buffer<Complex<T>>>; 2],
}

fn index(kind: FftKind) -> usize {
    match kind {
        FftKind::Forward | FftKind::Inverse => 0,
        FftKind::RealForward => 1,
        FftKind::RealInverse => 2,
    }
}

/// Returns the properties of a device that a plan uses. There are none for the emulator, which runs no generated kernels.
fn limits(device: &Device) -> Option<(u32, Limits)> {
    let properties = device.properties();
    let (major, minor) = properties.compute_capability.filter(|_| device.is_gpu())?;
    let arch = 10 * major + minor;
    Some((arch, Limits::new(arch, properties.max_shared_bytes, properties.l2_bytes)))
}

impl<T: FftFloat> Generated<T> {
    /// Makes the kernels for an array, or returns why no array has any.
    pub(in super::super) fn new(
        stream: &Stream,
        shape: &[usize],
        axes: &[usize],
    ) -> Result<std::result::Result<Self, String>> {
        let Some((arch, limits)) = limits(stream.device()) else {
            return Ok(Err("the emulator runs compiled kernels".into()));
        };
        if let Some(reason) = no_compiler(stream, arch, 0)? {
            return Ok(Err(reason));
        }
        let mut numbers: Vec<Complex<T>> = Vec::new();
        let mut known: Vec<(Vec<Complex<f64>>, u64)> = Vec::new();
        let mut place = |table: Vec<Complex<f64>>| {
            if let Some((_, begin)) = known.iter().find(|(other, _)| *other == table) {
                return *begin;
            }
            // Copies of a table begin at a multiple of 16 bytes.
            if !numbers.len().is_multiple_of(2) {
                numbers.push(Complex { re: T::ONE, im: T::ZERO });
            }
            let begin = numbers.len() as u64;
            numbers.extend(table.iter().map(|x| Complex { re: T::from_f64(x.re), im: T::from_f64(x.im) }));
            known.push((table, begin));
            begin
        };
        let mut prepared = |plan: Plan| {
            let tables = |step: &Step| tables_of(&step.work, arch).into_iter().map(&mut place).collect::<Vec<u64>>();
            let tables = plan.steps.iter().map(tables).collect();
            Prepared { plan, tables }
        };
        let kinds = [FftKind::Forward, FftKind::RealForward, FftKind::RealInverse]
            .map(|kind| plan(real::<T>(), shape, axes, kind, limits).map(&mut prepared));
        let ahead = match ahead_plan(real::<T>(), shape, axes, limits) {
            // The address is not accessed.
            Some(plan)
                if plan.cluster() <= stream.device().properties().multiprocessors
                    && map_of(stream.device(), &plan, 1 << 20)?.is_some()
                    && no_compiler(stream, arch, plan.ptx())?.is_none() =>
            {
                Some(prepared(plan))
            }
            _ => None,
        };
        if numbers.is_empty() {
            numbers.push(Complex { re: T::ONE, im: T::ZERO });
        }
        let table = stream.buffer_from(&numbers)?;
        Ok(Ok(Self { arch, kinds, ahead, kernels: Default::default(), table, chains: Default::default() }))
    }

    /// Drops the kernels of the launches so far, because these depend on whether results are multiplied by a scale.
    pub(in super::super) fn rescaled(self) -> Self {
        Self { kernels: Default::default(), ..self }
    }

    /// Returns the number of launches that a kind takes, or why it has none.
    pub(in super::super) fn launches(&self, kind: FftKind) -> std::result::Result<usize, Refusal> {
        self.kinds[index(kind)].as_ref().map(|prepared| prepared.plan.steps.len()).map_err(|refusal| *refusal)
    }

    /// Returns whether there are kernels of a kind.
    pub(in super::super) fn has(&self, kind: FftKind) -> bool {
        self.kinds[index(kind)].is_ok()
    }

    /// Launches the transform of a kind that [has](Self::has) kernels. The input and the output are at these addresses. With `of_reals`,
    /// the input has real numbers, and the kind is one for complex numbers.
    ///
    /// # Safety
    /// The ends have as many numbers as the plan's kind reads and writes.
    pub(in super::super) unsafe fn run(
        &self,
        run: Run<'_>,
        kind: FftKind,
        scale: T,
        of_reals: bool,
        addresses: [usize; 2],
        mut ends: impl Ends,
    ) -> Result<()> {
        let stream = run.stream;
        let mut split = addresses.map(|address| !address.is_multiple_of(size_of::<Complex<T>>()));
        split[0] &= !of_reals;
        let is_complex = matches!(kind, FftKind::Forward | FftKind::Inverse) && !of_reals;
        let is_aligned = addresses[0].is_multiple_of(16) && split == [false; 2];
        let ahead = self.ahead.as_ref().filter(|_| is_complex && is_aligned);
        let map = match ahead {
            Some(prepared) => map_of(stream.device(), &prepared.plan, addresses[0] as u64)?,
            None => None,
        };
        let ahead = ahead.filter(|_| map.is_some());
        let Prepared { plan, tables } =
            ahead.unwrap_or_else(|| self.kinds[index(kind)].as_ref().expect("the kind has kernels"));
        let make = || -> Vec<Kernel> {
            let plan = plan.clone().split(split);
            let plan = if scale == T::ONE { plan } else { plan.scaled() };
            let plan = if kind == FftKind::Inverse { plan.inverse() } else { plan };
            let plan = if of_reals { plan.of_reals() } else { plan };
            let multiprocessors = stream.device().properties().multiprocessors;
            plan.steps.iter().map(|step| kernel_of(&step.work, self.arch, multiprocessors)).collect()
        };
        let which = kind as usize + if of_reals { FftKind::RealInverse as usize + 1 } else { 0 };
        let list = if ahead.is_some() { 4 } else { usize::from(split[0]) + 2 * usize::from(split[1]) };
        let kernels = self.kernels[which][list].get_or_init(make);
        let scale = real::<T>().bits(to_f64(scale));
        let [first, second] = plan.temporary;
        let numbers = [first, second, plan.ring].map(bytes_of::<Complex<T>>);
        let sizes = [numbers[0], numbers[1], numbers[2], bytes_of::<u32>(plan.counters)];
        let mut memory = if sizes == [0; 4] { None } else { Some(run.memory(&sizes)?) };
        let mut areas = Areas::<T>::new(memory.as_mut(), plan)?;
        for ((step, tables), kernel) in plan.steps.iter().zip(tables).zip(kernels) {
            if step.work.begins_to_count() {
                areas.clear(stream)?;
            }
            let mut launch = Launch::new(stream, kernel.info, kernel.dims);
            let table = launch.input("table", &self.table)?.address().addr() as u64;
            let tables: Vec<u64> = tables.iter().map(|begin| table + begin * size_of::<Complex<T>>() as u64).collect();
            let [from, to] = areas.ends(&mut launch, step, &mut ends)?;
            let mut words = vec![from];
            if let Work::Pair(pair) = &step.work {
                words.push(if pair.ring > 0 { areas.ring(&mut launch)? } else { to });
            }
            words.push(to);
            words.extend(tables);
            if step.work.counters() > 0 {
                words.push(areas.counters(&mut launch)?);
            }
            words.extend(step.work.words(scale));
            let mut params: Vec<*mut c_void> =
                words.iter().map(|word| std::ptr::from_ref(word).cast_mut().cast()).collect();
            if let (Work::Ahead(pass), Some(map)) = (&step.work, &map)
                && pass.side == Side::Columns
            {
                debug_assert_eq!(from, addresses[0] as u64, "the matrices of the map");
                params[0] = std::ptr::from_ref(map).cast_mut().cast();
            }
            // This parameter is the runtime's own.
            params.push(std::ptr::null_mut());
            // SAFETY: the words are the kernel's parameters in order; it accesses the numbers of the plan's shape and its tables, which
            // are all there by the caller's contract.
            unsafe { launch.run(&mut params, |_: Block<'_>| unreachable!("a kernel of a GPU"))? };
        }
        Ok(())
    }
}

/// Returns the description of the matrices that a plan copies, at an address, if the device copies tiles of such matrices.
fn map_of(device: &Device, plan: &Plan, address: u64) -> Result<Option<TileMap>> {
    let columns = plan.steps.iter().find_map(|step| match &step.work {
        Work::Ahead(pass) if pass.side == Side::Columns => Some(pass),
        _ => None,
    });
    columns.map_or(Ok(None), |pass| TileMap::of_words(device, address, &pass.axes()))
}

fn real<T>() -> Real {
    if size_of::<T>() == 4 { Real::F32 } else { Real::F64 }
}

/// Converts a float that kernels can have.
fn to_f64<T: FftFloat>(x: T) -> f64 {
    let x: &dyn Any = &x;
    let single = || x.downcast_ref::<f32>().map(|&x| f64::from(x));
    x.downcast_ref::<f64>().copied().or_else(single).expect("`f32` and `f64` have transforms")
}

/// The temporary memory.
struct Areas<'m, T> {
    arrays: [Option<BufferSliceMut<'m, Complex<T>>>; 2],
    ring: Option<BufferSliceMut<'m, Complex<T>>>,
    counters: Option<BufferSliceMut<'m, u32>>,
}

impl<'m, T: FftFloat> Areas<'m, T> {
    fn new(memory: Option<&'m mut Memory<'_>>, plan: &Plan) -> Result<Self> {
        let Some(memory) = memory else {
            return Ok(Self { arrays: [None, None], ring: None, counters: None });
        };
        let mut parts = memory.parts();
        let [first, second] = plan.temporary;
        let arrays = [Some(parts.take(first)?), Some(parts.take(second)?)];
        let ring = Some(parts.take(plan.ring)?);
        let counters = Some(parts.take(plan.counters)?);
        Ok(Self { arrays, ring, counters })
    }

    /// Sets the counters to zero.
    fn clear(&mut self, stream: &Stream) -> Result<()> {
        self.counters.as_mut().expect("a plan's counters").set_zero(stream)
    }

    fn ring(&mut self, launch: &mut Launch<'_>) -> Result<u64> {
        let ring = self.ring.as_mut().expect("a pair has a ring");
        Ok(launch.output("ring", ring)?.address().addr() as u64)
    }

    fn counters(&mut self, launch: &mut Launch<'_>) -> Result<u64> {
        let counters = self.counters.as_mut().expect("a plan's counters");
        Ok(launch.output("counters", counters)?.address().addr() as u64)
    }

    /// Returns the addresses that a step reads and writes.
    fn ends(&mut self, launch: &mut Launch<'_>, step: &Step, ends: &mut impl Ends) -> Result<[u64; 2]> {
        let mut array = |launch: &mut Launch<'_>, which: usize| -> Result<u64> {
            let array = self.arrays[which].as_mut().expect("a plan's temporary array");
            Ok(launch.output("temporary", array)?.address().addr() as u64)
        };
        let to = match step.to {
            Area::Temporary(which) => array(launch, which)?,
            _ => ends.output(launch)?,
        };
        let from = match step.from {
            area if area == step.to => to,
            Area::Temporary(which) => array(launch, which)?,
            Area::Output => ends.output(launch)?,
            Area::Input if step.to == Area::Output => ends.input_beside_output(launch, to)?,
            Area::Input => ends.input(launch)?,
        };
        Ok([from, to])
    }
}

/// The input and the output of a transform.
pub(in super::super) trait Ends {
    /// Returns the address of the input, for a launch that reads it.
    fn input(&mut self, launch: &mut Launch<'_>) -> Result<u64>;

    /// Returns the address of the output, for a launch that writes it.
    fn output(&mut self, launch: &mut Launch<'_>) -> Result<u64>;

    /// Returns the address of the input, for a launch that writes the output, which is at the given address.
    fn input_beside_output(&mut self, launch: &mut Launch<'_>, output: u64) -> Result<u64>;
}

/// An input and an output in different memory.
pub(in super::super) struct Apart<X, A, S, O> {
    x: X,
    out: A,
    kinds: std::marker::PhantomData<(S, O)>,
}

impl<X: InputArg<S>, A: OutputArg<O>, S: Source, O: Sink> Apart<X, A, S, O> {
    pub(in super::super) fn new(x: X, out: A) -> Self {
        Self { x, out, kinds: std::marker::PhantomData }
    }
}

impl<X: InputArg<S>, A: OutputArg<O>, S: Source, O: Sink> Ends for Apart<X, A, S, O> {
    fn input(&mut self, launch: &mut Launch<'_>) -> Result<u64> {
        Ok(launch.input("x", Again(&self.x))?.address().addr() as u64)
    }

    fn output(&mut self, launch: &mut Launch<'_>) -> Result<u64> {
        Ok(launch.output("out", AgainMut(&mut self.out))?.address().addr() as u64)
    }

    fn input_beside_output(&mut self, launch: &mut Launch<'_>, _: u64) -> Result<u64> {
        self.input(launch)
    }
}

/// An array that its transforms replace.
impl<T: FftFloat> Ends for &mut BufferSliceMut<'_, Complex<T>> {
    fn input(&mut self, launch: &mut Launch<'_>) -> Result<u64> {
        Ok(launch.input("data", &**self)?.address().addr() as u64)
    }

    fn output(&mut self, launch: &mut Launch<'_>) -> Result<u64> {
        Ok(launch.output("data", &mut **self)?.address().addr() as u64)
    }

    fn input_beside_output(&mut self, _: &mut Launch<'_>, output: u64) -> Result<u64> {
        Ok(output)
    }
}
