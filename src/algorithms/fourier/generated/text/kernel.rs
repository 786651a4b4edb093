//! The text of a pass.
//!
//! Threads take the numbers of their first butterflies, `butterfly + k * apart`, so that neighbouring lanes access neighbouring numbers.
//! After each stage except the last one, numbers go through shared memory. The accesses of threads without a butterfly are predicated.
//! Arithmetic is not predicated, and there are no branches. Every offset from a thread's pointer is a constant.

use std::fmt::Write;

use super::butterfly;
use super::code::{Code, Number, Place, Real, SMALL};
use super::factors::{Factors, Levels, Roots, stage_roots};
use super::module::module;
use crate::Complex;
use crate::algorithms::fourier::generated::layout::{Layout, bytes, layouts, numbers};
use crate::algorithms::fourier::generated::pass::{Kind, Lanes, LinePass, Stage};
use crate::expr::ptx::emit::{Reg, op};
use crate::expr::ptx::target_of;

/// The parameter that is the [bound](LinePass::bound) of a pass. The addresses come before it.
pub(in super::super) const BOUND: usize = 4;

/// The parameter that is the factor of the results.
pub(in super::super) const SCALE: usize = 5;

/// The number of parameters of a pass.
pub(in super::super) const PARAMETERS: usize = 6;

/// A kernel, and the values that its launch needs. Its parameters are the addresses of the input, of the output, of [`roots`](Self::roots),
/// and of [`outer_roots`](Self::outer_roots); then the pass's [bound](LinePass::bound), and the factor of the results.
pub(in super::super::super) struct PassKernel {
    pub(in super::super) text: String,
    pub(in super::super) blocks: u64,
    pub(in super::super) threads: u32,
    /// The bytes of shared memory that the launch has to give, if the kernel declares none.
    pub(in super::super) shared: u32,
    /// The roots of all stages, and those of a half spectrum.
    pub(in super::super) roots: Vec<Complex<f64>>,
    /// The roots of the factors between passes.
    pub(in super::super) outer_roots: Vec<Complex<f64>>,
}

/// Returns the kernel of a pass.
pub(in super::super::super) fn kernel(pass: &LinePass, arch: u32) -> PassKernel {
    let (target, version) = target_of(arch);
    let mut code = Code::new(pass.real, target, version);
    let parameters = [0, 1, 2, 3].map(|number| code.pointer_parameter(number));
    let thread = code.integer("%tid.x");
    let tile = code.integer("%ctaid.x");
    let shared = code.integer("numbers");
    let bound = code.integer_parameter(BOUND);
    let scale = pass.scaled.then(|| code.real_parameter(SCALE));
    let frame = Frame { parameters, bound, scale, thread, tile, shared };
    let mut roots = Vec::new();
    let numbers = Writer::new(&mut code, pass, frame, &mut roots).write();
    op!(code.e, "ret;");
    let memory = bytes(numbers, pass.real);
    let (text, shared) = module(&code, PARAMETERS, (pass.block_threads(), pass.blocks), memory);
    let outer_roots = outer_roots(pass);
    PassKernel { text, blocks: pass.tiles(), threads: pass.block_threads(), shared, roots, outer_roots }
}

/// Returns the text of a kernel that does nothing and has no parameters of its own. Its PTX version, times ten, is `least` or later.
pub(in super::super) fn nothing(arch: u32, least: u32) -> String {
    let (target, version) = target_of(arch);
    let mut code = Code::new(Real::F32, target, version.max(least));
    op!(code.e, "ret;");
    module(&code, 0, (1, 1), 0).0
}

/// Returns the roots of a pass's factors between passes.
pub(in super::super) fn outer_roots(pass: &LinePass) -> Vec<Complex<f64>> {
    pass.factors.map_or(Vec::new(), |factors| Levels::new(factors.length).roots())
}

/// The registers with which the work of a tile begins.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Frame {
    /// The addresses of the input, the output, the roots of stages, and the roots of outer factors.
    pub(in super::super) parameters: [Reg; 4],
    /// The pass's [bound](LinePass::bound).
    pub(in super::super) bound: Reg,
    /// The factor of the results, if it is not 1.
    pub(in super::super) scale: Option<Reg>,
    pub(in super::super) thread: Reg,
    pub(in super::super) tile: Reg,
    /// The address of shared memory.
    pub(in super::super) shared: Reg,
}

/// The place of a thread.
#[derive(Clone, Debug)]
pub(in super::super) struct Here {
    /// The thread's line of the block, or `None` if the block has one line.
    pub(in super::super) line: Option<Reg>,
    /// The thread's number among the threads of the line.
    pub(in super::super) thread: Reg,
    /// The beginnings of the line in the input and in the output, in numbers.
    pub(in super::super) begins: [Reg; 2],
    /// The coordinates of the line.
    pub(in super::super) coordinates: Vec<Reg>,
    /// The predicate of threads whose line exists, if some lines may not exist.
    pub(in super::super) there: Option<Reg>,
}

/// Writes the work of a tile.
pub(in super::super) struct Writer<'a> {
    pub(in super::super) code: &'a mut Code,
    pub(in super::super) pass: &'a LinePass,
    pub(in super::super) frame: Frame,
    /// All roots so far, which are the kernel's table.
    roots: &'a mut Vec<Complex<f64>>,
    pub(in super::super) stages: Vec<Stage>,
    pub(in super::super) layouts: Vec<Layout>,
    /// Whether other threads may still read shared memory.
    pub(in super::super) in_use: bool,
}

impl<'a> Writer<'a> {
    pub(in super::super) fn new(
        code: &'a mut Code,
        pass: &'a LinePass,
        frame: Frame,
        roots: &'a mut Vec<Complex<f64>>,
    ) -> Self {
        debug_assert!(pass.radices.len() > 1 || pass.lanes[0] == pass.lanes[1], "lanes change in an exchange");
        debug_assert!(pass.halved || pass.kind != Kind::RealForward, "a half spectrum has half of the sums");
        let (stages, layouts) = (pass.stages(), layouts(pass));
        (code.split, code.of_reals, code.halved) = (pass.split, pass.of_reals, pass.halved);
        code.scale = frame.scale;
        Self { code, pass, frame, roots, stages, layouts, in_use: false }
    }

    /// Writes the whole work. Returns the numbers of shared memory that it takes.
    pub(in super::super) fn write(mut self) -> u32 {
        let mut here = self.here(self.pass.lanes[0]);
        if self.pass.is_convolution() {
            self.convolve(&mut here);
            return numbers(self.pass);
        }
        let mut x = match self.pass.kind {
            _ if self.pass.staged => self.take_rows(&here),
            Kind::RealInverse => self.load_half(&here),
            _ => self.load(&here),
        };
        if self.pass.factors.is_some_and(|factors| factors.of_input) {
            let stage = self.stages[0];
            for i in 0..self.pass.butterflies(&stage) {
                self.apply_factors(&here, &stage, i, &mut x);
            }
        }
        self.transform(&mut here, &mut x);
        match self.pass.kind {
            _ if self.pass.staged => self.give_rows(&here, &x),
            Kind::RealForward => self.store_half(&here, &x),
            _ => self.store(&here, &x),
        }
        numbers(self.pass)
    }

    pub(in super::super) fn first_stage(&self) -> Stage {
        self.stages[0]
    }

    pub(in super::super) fn last_stage(&self) -> Stage {
        self.stages[self.stages.len() - 1]
    }

    /// Exchanges the parts of a number, if the transform is inverse.
    pub(in super::super) fn directed(&self, number: Number) -> Number {
        if self.pass.inverse { number.exchanged() } else { number }
    }

    /// Adds roots to the table. Returns their beginning.
    pub(in super::super) fn add_roots(&mut self, roots: impl Iterator<Item = Complex<f64>>) -> u32 {
        let begin = self.roots.len() as u32;
        self.roots.extend(roots);
        begin
    }

    pub(in super::super) fn barrier(&mut self) {
        self.code.barrier(self.pass.is_of_warps());
    }

    /// Returns the place of a thread, if the lanes of its warp have this order.
    pub(in super::super) fn here(&mut self, lanes: Lanes) -> Here {
        let (pass, thread) = (self.pass, self.frame.thread);
        let (line, thread) = match lanes {
            _ if pass.lines == 1 => (None, thread),
            Lanes::Along => {
                let (line, thread) = self.code.divided(thread, pass.threads, SMALL);
                (Some(line), thread)
            }
            Lanes::Across => {
                let (thread, line) = self.code.divided(thread, pass.lines, SMALL);
                (Some(line), thread)
            }
        };
        let (mut rest, mut there) = (self.frame.tile, None);
        if pass.goes_on() {
            rest = self.line_of_tile(rest, line);
            there = Some(self.code.below(rest, self.frame.bound));
        }
        let mut begins: Option<[Reg; 2]> = None;
        let mut coordinates = Vec::with_capacity(pass.axes.len());
        for (i, axis) in pass.axes.iter().enumerate() {
            let by_tile = i == 0 && !pass.goes_on();
            let extent = if by_tile { axis.extent.div_ceil(pass.lines) } else { axis.extent };
            let mut coordinate = rest;
            if i + 1 < pass.axes.len() {
                (rest, coordinate) = self.code.divided(rest, extent, u32::MAX);
            }
            if by_tile {
                coordinate = self.line_of_tile(coordinate, line);
                if !axis.extent.is_multiple_of(pass.lines) {
                    there = Some(self.code.below(coordinate, self.frame.bound));
                }
            }
            coordinates.push(coordinate);
            let places = axis.rings.map(|ring| match ring {
                0 => coordinate,
                _ => self.code.divided(coordinate, ring, u32::MAX).1,
            });
            begins = Some([0, 1].map(|side| match begins {
                None => self.code.scaled(places[side], axis.strides[side]),
                Some(begins) => self.code.scaled_plus(places[side], axis.strides[side], begins[side]),
            }));
        }
        Here { line, thread, begins: begins.expect("an axis"), coordinates, there }
    }

    fn line_of_tile(&mut self, tile: Reg, line: Option<Reg>) -> Reg {
        match line {
            Some(line) => self.code.scaled_plus(tile, self.pass.lines, line),
            None => tile,
        }
    }

    /// Returns a thread's butterfly `i` of a stage, and which threads have it, if not all do.
    pub(in super::super) fn butterfly(&mut self, here: &Here, stage: &Stage, i: u32) -> (Reg, Option<Reg>) {
        let (threads, code) = (self.pass.threads, &mut *self.code);
        if !stage.paired {
            let b = code.plus(here.thread, i * threads);
            let guard = ((i + 1) * threads > stage.apart).then(|| code.below(b, stage.apart));
            return (b, guard);
        }
        let (unit, half) = (i / 2, stage.apart / 2);
        let u = code.plus(here.thread, unit * threads);
        let guard = ((unit + 1) * threads > half).then(|| code.below(u, half));
        if i.is_multiple_of(2) {
            return (u, guard);
        }
        let mut b = code.less(stage.apart, u);
        if unit == 0 {
            let zero = code.is_zero(u);
            b = code.chosen(zero, half, b);
        }
        (b, guard)
    }

    /// Returns the address of an element of a line.
    pub(in super::super) fn pointer(&mut self, side: usize, here: &Here, element: Reg) -> Reg {
        let index = self.code.scaled_plus(element, self.pass.elements[side], here.begins[side]);
        self.code.end_address(side, self.frame.parameters[side], index)
    }

    /// Returns the offset of a number, in bytes.
    pub(in super::super) fn offset(&self, numbers: i64) -> i64 {
        numbers * i64::from(self.pass.real.number())
    }

    /// Returns the distance from a thread's first number of a stage to number `k` of its butterfly `i`, in elements.
    pub(in super::super) fn element(&self, stage: &Stage, i: u32, k: u32) -> i64 {
        i64::from(i * self.pass.threads + k * stage.apart)
    }

    fn load(&mut self, here: &Here) -> Vec<Number> {
        let stage = self.first_stage();
        let address = self.pointer(0, here, here.thread);
        let space = match (self.pass.fresh, self.pass.streamed[0]) {
            (true, _) => "global.cg",
            (false, true) => "global.cs",
            (false, false) => "global",
        };
        let mut x = Vec::new();
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            let guard = self.code.both(guard, here.there);
            for k in 0..stage.radix {
                let offset = self.offset(self.element(&stage, i, k) * i64::from(self.pass.elements[0]));
                let number = Number::of(self.code.load(Place { space, address, offset, guard }));
                x.push(self.directed(number));
            }
        }
        x
    }

    fn store(&mut self, here: &Here, x: &[Number]) {
        let stage = self.last_stage();
        let address = self.pointer(1, here, here.thread);
        let space = if self.pass.streamed[1] { "global.cs" } else { "global" };
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            let guard = self.code.both(guard, here.there);
            for k in 0..stage.radix {
                let offset = self.offset(self.element(&stage, i, k) * i64::from(self.pass.elements[1]));
                let number = self.directed(x[(i * stage.radix + k) as usize]);
                self.code.store(Place { space, address, offset, guard }, number);
            }
        }
    }

    /// Writes all stages, from the numbers of the first stage's butterflies to the results of the last stage's.
    pub(in super::super) fn transform(&mut self, here: &mut Here, x: &mut Vec<Number>) {
        for s in 0..self.stages.len() {
            let stage = self.stages[s];
            self.stage(here, &stage, x, s + 1 == self.stages.len());
            if let Some(&next) = self.stages.get(s + 1) {
                let layout = self.layouts[s];
                self.give(here, &stage, &layout, x);
                self.barrier();
                if s == 0 && self.pass.lanes[1] != self.pass.lanes[0] {
                    *here = self.here(self.pass.lanes[1]);
                }
                self.take(here, &next, &layout, x);
            }
        }
    }

    /// Writes the butterflies of a stage, after the multiplications by its roots.
    fn stage(&mut self, here: &Here, stage: &Stage, x: &mut [Number], last: bool) {
        let Stage { radix, done, apart, paired } = *stage;
        let begin = if done > 1 { self.add_roots(stage_roots(radix, done)) } else { 0 };
        // Roots at one place of the table are loaded once.
        let mut loaded: Vec<(u32, Vec<[Reg; 2]>)> = Vec::new();
        let threads = self.pass.threads;
        let repeats = !paired && (done.is_multiple_of(threads) || threads.is_multiple_of(done));
        for i in 0..self.pass.butterflies(stage) {
            let numbers = (i * radix) as usize..((i + 1) * radix) as usize;
            if done > 1 {
                let key = if repeats { i * threads % done } else { i };
                let known = loaded.iter().position(|(place, _)| *place == key);
                let known = known.unwrap_or_else(|| {
                    let (b, guard) = self.butterfly(here, stage, i);
                    let at = if done == apart { b } else { self.code.divided(b, done, SMALL).1 };
                    let address = self.code.address(self.frame.parameters[2], at);
                    loaded.push((key, self.roots_of([radix, begin, done], address, guard)));
                    loaded.len() - 1
                });
                for (number, &root) in x[numbers.clone()][1..].iter_mut().zip(&loaded[known].1) {
                    *number = self.code.multiply(*number, root);
                }
            }
            let results = butterfly::transform(self.code, &x[numbers.clone()]);
            x[numbers].copy_from_slice(&results);
            if last && self.pass.factors.is_some_and(|factors| !factors.of_input) {
                self.apply_factors(here, stage, i, x);
            }
        }
    }

    /// Multiplies the numbers of a butterfly by the factors between passes.
    fn apply_factors(&mut self, here: &Here, stage: &Stage, i: u32, x: &mut [Number]) {
        let Some(factors) = self.pass.factors else { return };
        let (first, guard) = self.butterfly(here, stage, i);
        let guard = self.code.both(guard, here.there);
        let roots = Roots { levels: Levels::new(factors.length), table: self.frame.parameters[3], guard };
        let coordinate = here.coordinates[usize::from(factors.axis)];
        let factors = Factors { roots, coordinate, first, step: stage.apart };
        let numbers = (i * stage.radix) as usize..((i + 1) * stage.radix) as usize;
        super::factors::apply(self.code, &factors, &mut x[numbers]);
    }

    /// Returns the address in shared memory of a place of the thread's line.
    fn shared_place(&mut self, here: &Here, layout: &Layout, place: Reg) -> Reg {
        let index = match here.line {
            None => place,
            Some(line) if layout.across => self.code.scaled_plus(place, self.pass.lines, line),
            Some(line) => self.code.scaled_plus(line, layout.pitch, place),
        };
        self.code.scaled_plus(index, self.pass.real.number(), self.frame.shared)
    }

    /// Returns the distance from a place of a line to the next in shared memory, in numbers.
    fn spread(&self, layout: &Layout) -> i64 {
        if layout.across { self.pass.lines.into() } else { 1 }
    }

    /// Writes the results of a stage to shared memory.
    fn give(&mut self, here: &Here, stage: &Stage, layout: &Layout, x: &[Number]) {
        if self.in_use {
            self.barrier();
        }
        let (threads, spread) = (self.pass.threads, self.spread(layout));
        let run = stage.radix * stage.done;
        let mut first = None;
        for i in 0..self.pass.butterflies(stage) {
            let (b, guard) = self.butterfly(here, stage, i);
            // If there are whole runs between a thread's butterflies, offsets are constants. Otherwise, each butterfly has an address of
            // its own.
            let (address, begin) = match first {
                Some(first) if !stage.paired && threads.is_multiple_of(stage.done) => {
                    (first, i64::from(i * (threads / stage.done) * (run + layout.left_out)))
                }
                _ => {
                    let quotient = self.code.quotient(b, stage.done, SMALL);
                    let place = self.code.scaled_plus(quotient, run - stage.done + layout.left_out, b);
                    (self.shared_place(here, layout, place), 0)
                }
            };
            first.get_or_insert(address);
            for k in 0..stage.radix {
                let offset = self.offset((begin + i64::from(k * stage.done)) * spread);
                let number = x[(i * stage.radix + k) as usize];
                self.code.store(Place { space: "shared", address, offset, guard }, number);
            }
        }
    }

    /// Reads the numbers of a stage from shared memory, after a barrier.
    fn take(&mut self, here: &Here, stage: &Stage, layout: &Layout, x: &mut Vec<Number>) {
        let (threads, spread, left_out) = (self.pass.threads, self.spread(layout), layout.left_out);
        let mut first = None;
        x.clear();
        for i in 0..self.pass.butterflies(stage) {
            let (b, guard) = self.butterfly(here, stage, i);
            let (address, begin) = match first {
                Some(first) if !stage.paired && (left_out == 0 || threads.is_multiple_of(stage.done)) => {
                    (first, i64::from(i * (threads + threads / stage.done * left_out)))
                }
                _ => {
                    let place = if left_out == 0 {
                        b
                    } else {
                        let quotient = self.code.quotient(b, stage.done, SMALL);
                        self.code.scaled_plus(quotient, left_out, b)
                    };
                    (self.shared_place(here, layout, place), 0)
                }
            };
            first.get_or_insert(address);
            let step = i64::from(stage.apart + stage.apart / stage.done * left_out);
            for k in 0..stage.radix {
                let offset = self.offset((begin + i64::from(k) * step) * spread);
                x.push(Number::of(self.code.load(Place { space: "shared", address, offset, guard })));
            }
        }
        self.in_use = true;
    }

    /// Loads the roots for all numbers of a butterfly except the first one, in threads that have the butterfly.
    fn roots_of(&mut self, [radix, begin, done]: [u32; 3], address: Reg, guard: Option<Reg>) -> Vec<[Reg; 2]> {
        (1..radix)
            .map(|k| {
                let offset = self.offset(i64::from(begin + (k - 1) * done));
                self.code.load(Place { space: "global.nc", address, offset, guard })
            })
            .collect()
    }
}
