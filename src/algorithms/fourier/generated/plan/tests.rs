//! Tests of plans: a machine for PTX runs their kernels one after the other, and the results are compared with sums by definition.

use super::{Area, Plan, Refusal, Step, Work, ahead, plan};
use crate::Complex;
use crate::algorithms::fourier::FftKind;
use crate::algorithms::fourier::generated::layout;
use crate::algorithms::fourier::generated::pass::{Kind, LinePass};
use crate::algorithms::fourier::generated::room::{Limits, Room};
use crate::algorithms::fourier::generated::tests::{
    Launch, Memory, NOTHING, Numbers, assert_near, launch, some, sums, sums_at,
};
use crate::algorithms::fourier::generated::text::ahead::ahead as ahead_kernel;
use crate::algorithms::fourier::generated::text::code::Real;
use crate::algorithms::fourier::generated::text::fused::{FusedKernel, fused};
use crate::algorithms::fourier::generated::text::kernel::{PassKernel, kernel};
use crate::algorithms::fourier::generated::text::spectrum::spectrum;
use crate::element::root_of_unity;

#[cfg(feature = "cuda")]
mod assembly;
mod measured;
mod scales;

const H100: Limits = Limits { room: Room::H100, cache: 50 << 20 };

/// A multiprocessor whose blocks hold a few hundred numbers, and a cache that is not used.
const LITTLE: Limits = Limits { room: Room { block_shared: 4 << 10, ..Room::H100 }, cache: 0 };

const ARCHITECTURES: [u32; 8] = [75, 80, 86, 87, 89, 90, 100, 120];

fn limits(arch: u32) -> Limits {
    Limits::new(arch, Room::of(arch).block_shared as usize, 40 << 20)
}

/// The memories of a plan's launches: the input, the output, two temporary arrays, and the ring.
struct Memories {
    all: Vec<Memory>,
    /// The addresses of the input and of the output.
    ends: [usize; 2],
}

fn place(memories: &Memories, area: Area) -> usize {
    match area {
        Area::Input => memories.ends[0],
        Area::Output => memories.ends[1],
        Area::Temporary(which) => 2 + which,
    }
}

fn run_step(step: &Step, scale: f64, memories: &mut Memories) {
    let (from, to, begin) = (place(memories, step.from), place(memories, step.to), memories.all.len());
    let real = match &step.work {
        Work::Pass(pass) => pass.real,
        Work::Pair(pair) => pair.passes[0].real,
        Work::Spectrum(pass) => pass.real,
        Work::Ahead(_) => unreachable!("passes that copy ahead have tests of their own"),
    };
    let words = step.work.words(real.bits(scale));
    let add = |memories: &mut Memories, tables: Vec<Vec<Complex<f64>>>| {
        memories.all.extend(tables.iter().map(|table| Memory::new(real, table)));
    };
    match &step.work {
        Work::Pass(_) | Work::Spectrum(_) => {
            let made = match &step.work {
                Work::Spectrum(pass) => spectrum(pass, 90),
                Work::Pass(pass) => kernel(pass, 90),
                Work::Pair(_) | Work::Ahead(_) => unreachable!("a pass"),
            };
            let PassKernel { text, blocks, threads, shared, roots, outer_roots } = made;
            add(memories, vec![roots, outer_roots]);
            let kernel = Launch { text, blocks, threads, shared, words, seed: 1 };
            launch(kernel, &mut memories.all, &[from, to, begin, begin + 1], &[to]);
        }
        Work::Ahead(_) => unreachable!("as above"),
        Work::Pair(pair) => {
            let FusedKernel { text, blocks, threads, shared, roots, outer_roots } = fused(pair, 90);
            let ([roots_1, roots_2], [outer_1, outer_2]) = (roots, outer_roots);
            add(memories, vec![roots_1, outer_1, roots_2, outer_2]);
            memories.all.push(Memory::counters(pair.counters()));
            let between = if pair.ring > 0 { 4 } else { to };
            let kernel = Launch { text, blocks, threads, shared, words, seed: 1 };
            let tables = [begin, begin + 1, begin + 2, begin + 3, begin + 4];
            let parameters: Vec<usize> = [from, between, to].into_iter().chain(tables).collect();
            launch(kernel, &mut memories.all, &parameters, &[between, to, begin + 4]);
        }
    }
    memories.all.truncate(begin);
}

/// Returns the output of a plan's launches for an input. They write `outputs` numbers, or replace the input if this is 0.
fn run(plan: &Plan, real: Real, x: &[Complex<f64>], outputs: usize) -> Numbers {
    run_scaled(plan, 1.0, real, x, outputs)
}

/// Works as [`run`], for a plan whose last launch multiplies by a factor.
fn run_scaled(plan: &Plan, scale: f64, real: Real, x: &[Complex<f64>], outputs: usize) -> Numbers {
    let nothing = |len: usize| Memory::new(real, &vec![NOTHING; len]);
    let [first, second] = plan.temporary;
    let all = vec![Memory::new(real, x), nothing(outputs), nothing(first), nothing(second), nothing(plan.ring)];
    let ends = if outputs == 0 { [0, 0] } else { [0, 1] };
    let mut memories = Memories { all, ends };
    for step in &plan.steps {
        run_step(step, scale, &mut memories);
    }
    memories.all[ends[1]].numbers()
}

/// Computes the transforms of an array along one axis by their definition.
fn along(x: &[Complex<f64>], shape: &[usize], axis: usize, inverse: bool) -> Numbers {
    let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let mut y = x.to_vec();
    for begin in (0..x.len() / n).map(|line| line / inner * n * inner + line % inner) {
        let line: Numbers = (0..n).map(|e| x[begin + e * inner]).collect();
        for (e, number) in sums(&line, inverse).into_iter().enumerate() {
            y[begin + e * inner] = number;
        }
    }
    y
}

fn along_all(x: &[Complex<f64>], shape: &[usize], axes: &[usize], inverse: bool) -> Numbers {
    axes.iter().fold(x.to_vec(), |x, &axis| along(&x, shape, axis, inverse))
}

/// Returns the numbers as kernels store them.
fn rounded(real: Real, x: &[Complex<f64>]) -> Numbers {
    Memory::new(real, x).numbers()
}

/// Checks complex transforms, forward and inverse, also in place. Returns the plan.
#[track_caller]
fn check(real: Real, shape: &[usize], axes: &[usize], limits: Limits) -> Plan {
    let x = rounded(real, &some(shape.iter().product()));
    let forward = plan(real, shape, axes, FftKind::Forward, limits).expect("a plan");
    let what = format!("{shape:?} {axes:?} {forward:#?}");
    let expected = along_all(&x, shape, axes, false);
    assert_near(&run(&forward, real, &x, x.len()), &expected, real, &what);
    assert_near(&run(&forward, real, &x, 0), &expected, real, &what);
    // If numbers are accessed part by part, results have the same bits.
    let split = run(&forward.clone().split([true; 2]), real, &x, x.len());
    assert_eq!(split, run(&forward, real, &x, x.len()), "{what}");
    // This input has real numbers: each is a part of a complex number.
    let parts: Numbers = x.iter().flat_map(|x| [x.re, x.im]).map(|re| Complex { re, im: 0.0 }).take(x.len()).collect();
    let found = run(&forward.clone().of_reals(), real, &x, x.len());
    assert_near(&found, &along_all(&parts, shape, axes, false), real, &what);
    let inverse = plan(real, shape, axes, FftKind::Inverse, limits).expect("a plan");
    assert_eq!(inverse, forward.clone().inverse());
    let expected: Numbers = along_all(&x, shape, axes, true).into_iter().map(|x| x * 0.25).collect();
    assert_near(&run_scaled(&inverse.scaled(), 0.25, real, &x, x.len()), &expected, real, &what);
    forward
}

/// Checks the half spectrum of a real array, and the way back.
#[track_caller]
fn check_real(real: Real, shape: &[usize], axes: &[usize], limits: Limits) -> [Plan; 2] {
    let items = shape.iter().product::<usize>();
    let pairs = rounded(real, &some(items / 2));
    let x: Numbers = pairs.iter().flat_map(|pair| [pair.re, pair.im].map(|re| Complex { re, im: 0.0 })).collect();
    let (n, half) = (shape[shape.len() - 1], shape[shape.len() - 1] / 2 + 1);
    let whole = along_all(&x, shape, axes, false);
    let expected: Numbers = whole.chunks(n).flat_map(|row| row[..half].to_vec()).collect();
    let forward = plan(real, shape, axes, FftKind::RealForward, limits).expect("a plan");
    let found = run(&forward, real, &pairs, expected.len());
    assert_near(&found, &expected, real, &format!("{shape:?} {axes:?} {forward:#?}"));
    let all: usize = axes.iter().map(|&axis| shape[axis]).product();
    let back = plan(real, shape, axes, FftKind::RealInverse, limits).expect("a plan").scaled();
    let found = run_scaled(&back, 1.0 / all as f64, real, &expected, items / 2);
    assert_near(&found, &pairs, real, &format!("{shape:?} {axes:?} {back:#?}"));
    [forward, back]
}

fn passes(plan: &Plan) -> usize {
    plan.steps.len()
}

#[test]
fn an_axis_of_any_stride_is_transformed() {
    for (shape, axis) in [
        (&[3, 40][..], 1),
        (&[40, 3], 0),
        (&[2, 12, 7], 1),
        (&[2, 36, 40], 1),
        (&[1, 30, 1], 1),
        (&[5, 17, 2], 1),
        (&[64], 0),
    ] {
        for real in [Real::F32, Real::F64] {
            assert_eq!(passes(&check(real, shape, &[axis], H100)), 1, "{shape:?}");
        }
    }
}

#[test]
fn several_axes_need_no_temporary_memory() {
    for (shape, axes) in [
        (&[6, 10][..], &[0, 1][..]),
        (&[4, 6, 10], &[0, 1, 2]),
        (&[4, 6, 10], &[2, 0]),
        (&[4, 6, 10, 3], &[1, 2]),
        (&[1, 8, 1, 6], &[0, 1, 2, 3]),
    ] {
        let plan = check(Real::F64, shape, axes, H100);
        assert_eq!((plan.temporary, plan.ring), ([0; 2], 0), "{plan:?}");
    }
}

#[test]
fn lines_that_a_block_cannot_hold_take_two_passes() {
    for shape in [&[2, 1024][..], &[1, 1024, 3], &[2, 600, 1], &[1, 1024, 20]] {
        let plan = check(Real::F64, shape, &[1], LITTLE);
        assert_eq!(passes(&plan), 2, "{plan:#?}");
        assert_eq!(plan.temporary, [shape.iter().product(), 0]);
    }
    // Each of the two axes takes two passes.
    let plan = check(Real::F64, &[256, 256], &[0, 1], LITTLE);
    assert_eq!((passes(&plan), plan.temporary), (4, [1 << 16, 0]), "{plan:#?}");
}

#[test]
fn longer_lines_take_three_passes() {
    for shape in [&[1, 4096, 1][..], &[2, 4608, 1], &[1, 4096, 2]] {
        let little = Limits { room: Room { block_shared: 600, ..LITTLE.room }, ..LITTLE };
        let plan = check(Real::F64, shape, &[1], little);
        assert_eq!(passes(&plan), 3, "{plan:#?}");
    }
}

#[test]
fn lengths_with_large_prime_factors_are_convolutions() {
    for (shape, axis) in [
        (&[3, 37][..], 1),
        (&[2, 101], 1),
        (&[3, 74], 1),
        (&[2, 47, 3], 1),
        (&[1, 383], 1),
        (&[59, 4], 0),
        (&[5, 82], 1),
    ] {
        for real in [Real::F32, Real::F64] {
            assert_eq!(passes(&check(real, shape, &[axis], H100)), 1, "{shape:?}");
        }
    }
    let of = |n| plan(Real::F32, &[64, n], &[1], FftKind::Forward, H100).map(|plan| all_passes(&plan)[0].kind);
    assert_eq!(of(1009), Ok(Kind::Rader));
    assert_eq!(of(2 * 1009), Ok(Kind::Chirp(2018)));
    assert_eq!(of(1_000_003), Err(Refusal::Axis(1)));
}

#[test]
fn real_arrays_are_transformed_and_back() {
    for (shape, axes) in
        [(&[3, 16][..], &[1][..]), (&[1, 8], &[1]), (&[2, 120], &[1]), (&[6, 20], &[0, 1]), (&[4, 3, 24], &[1, 0, 2])]
    {
        for real in [Real::F32, Real::F64] {
            let [forward, back] = check_real(real, shape, axes, H100);
            assert_eq!(forward.temporary, [0; 2], "{forward:#?}");
            assert_eq!(passes(&forward), axes.len());
            assert_eq!(back.temporary[1], 0, "{back:#?}");
        }
    }
    // For these pairs, the transform does not make the half spectrum.
    for shape in [[3, 10], [1, 2], [5, 6], [2, 74], [1, 2048], [2, 1200], [2, 26]] {
        for real in [Real::F32, Real::F64] {
            let plans = check_real(real, &shape, &[1], LITTLE);
            assert!(plans.iter().all(|plan| plan.steps.iter().any(|step| matches!(step.work, Work::Spectrum(_)))));
        }
    }
    // The roots of this length are in two tables.
    check_real(Real::F32, &[1, 8400], &[1], LITTLE);
    check_real(Real::F64, &[4, 6, 10], &[0, 1, 2], H100);
    // A strided axis of two passes comes before the real axis, or after it.
    check_real(Real::F64, &[1024, 8], &[0, 1], LITTLE);
}

/// The pairs turn once, so one number of their transform is too large for the type. The numbers of the half spectrum are not.
#[test]
fn half_spectra_are_finite_where_transforms_of_pairs_are_not() {
    for (real, most) in [(Real::F32, f64::from(f32::MAX)), (Real::F64, f64::MAX)] {
        // The half spectrum is made by the only pass, by itself, and after passes of each kind.
        for n in [8, 2, 10, 74, 1200] {
            let m = n / 2;
            // Numbers are in units of the largest one. A single pair is its own transform, and only sums of it are too large.
            let whole = if m == 1 { 0.7 } else { 1.02 };
            let pairs: Numbers = (0..m).map(|j| root_of_unity((m - j) % m, m) * (whole / m as f64)).collect();
            let x: Numbers =
                pairs.iter().flat_map(|pair| [pair.re, pair.im].map(|re| Complex { re, im: 0.0 })).collect();
            let plan = plan(real, &[1, n], &[1], FftKind::RealForward, LITTLE).expect("a plan");
            let large: Numbers = pairs.iter().map(|pair| *pair * most).collect();
            let found: Numbers = run(&plan, real, &large, m + 1).into_iter().map(|x| x / most).collect();
            assert_near(&found, &sums(&x, false)[..=m], real, &format!("{n}: {plan:#?}"));
        }
    }
}

#[test]
fn half_spectra_of_long_arrays_have_short_tables() {
    for kind in [FftKind::RealForward, FftKind::RealInverse] {
        let plan = plan(Real::F32, &[1 << 26], &[0], kind, H100).expect("a plan");
        let table = |step: &Step| match &step.work {
            Work::Spectrum(pass) => Some(spectrum(pass, 90).roots.len()),
            _ => None,
        };
        let tables: Vec<usize> = plan.steps.iter().filter_map(table).collect();
        assert!(tables.len() == 1 && tables[0] <= 1 << 15, "{tables:?}");
    }
}

#[test]
fn passes_are_fused_where_the_cache_holds_what_lies_between() {
    // The planes have 4 KiB, and the cache holds 24 of them.
    let small = Limits { cache: 24 << 12, ..H100 };
    let plan = check(Real::F64, &[24, 16, 16], &[1, 2], small);
    assert!(matches!(&plan.steps[..], [Step { work: Work::Pair(pair), .. }] if pair.ring == 0), "{plan:#?}");
    let plan = check(Real::F64, &[16, 16, 16], &[1, 2], Limits { cache: 6 << 12, ..H100 });
    assert!(all_passes(&plan)[0].streamed[0] && all_passes(&plan)[1].streamed[1], "{plan:#?}");
    let plan = check(Real::F64, &[24, 16, 16], &[0, 1, 2], small);
    assert_eq!((passes(&plan), plan.temporary), (2, [0; 2]));
    let [forward, back] = check_real(Real::F64, &[24, 16, 24], &[1, 2], small);
    assert_eq!((passes(&forward), passes(&back)), (1, 2));
    // The rows take two passes.
    let little = Limits { cache: 24 << 14, ..LITTLE };
    let plan = check(Real::F64, &[24, 1024], &[1], little);
    assert!(matches!(&plan.steps[..], [Step { work: Work::Pair(pair), .. }] if pair.ring > 0), "{plan:#?}");
    assert_eq!(plan.temporary, [0; 2]);
    // These rows are longer, and are streamed.
    let plan = check(Real::F64, &[8, 1024], &[1], Limits { cache: 6 << 14, ..LITTLE });
    assert!(all_passes(&plan)[1].streamed[1], "{plan:#?}");
    // There are too few rows.
    assert_eq!(passes(&check(Real::F64, &[4, 1024], &[1], little)), 2);
}

#[test]
fn long_columns_are_fused() {
    // A block does not hold 256 numbers, so the row takes three passes. The cache holds six chunks of eight columns of 320 numbers.
    let (limits, real, n) = (Limits { cache: 6 * 40960, ..LITTLE }, Real::F64, 40960);
    let x = rounded(real, &some(n));
    let places = || (0..n).step_by(61);
    let at_places = |y: Numbers| -> Numbers { places().map(|k| y[k]).collect() };
    let forward = plan(real, &[n], &[0], FftKind::Forward, limits).expect("a plan");
    let is_pair = |step: &Step| matches!(&step.work, Work::Pair(pair) if pair.ring > 0);
    assert_eq!(forward.steps.iter().map(is_pair).collect::<Vec<_>>(), [true, false], "{forward:#?}");
    let found = run(&forward, real, &x, n);
    assert_near(&at_places(found.clone()), &sums_at(&x, false, places()), real, &forward);
    assert_eq!(run(&forward.clone().split([true; 2]), real, &x, n), found, "{forward:#?}");
    let inverse = run(&forward.inverse(), real, &x, 0);
    assert_near(&at_places(inverse), &sums_at(&x, true, places()), real, &"the way back, in place");
    // Each of several rows has the same bits.
    let rows = plan(real, &[2, n], &[1], FftKind::Forward, limits).expect("a plan");
    let zeros = vec![Complex { re: 0.0, im: 0.0 }; n];
    let both = run(&rows, real, &[&zeros[..], &x].concat(), 2 * n);
    assert!(both[..n] == zeros && both[n..] == found, "{rows:#?}");
    let pairs = plan(real, &[2 * n], &[0], FftKind::RealForward, limits).expect("a plan");
    assert!(matches!(pairs.steps[0].work, Work::Pair(_)), "{pairs:#?}");
    let reals: Numbers = x.iter().flat_map(|x| [x.re, x.im]).map(|re| Complex { re, im: 0.0 }).collect();
    assert_near(&at_places(run(&pairs, real, &x, n + 1)), &sums_at(&reals, false, places()), real, &pairs);
    // The cache is too small, or there are numbers after the row.
    for (shape, cache) in [([n, 1], 6 << 14), ([n, 2], limits.cache)] {
        let plan = plan(real, &shape, &[0], FftKind::Forward, Limits { cache, ..limits }).expect("a plan");
        assert!(plan.steps.iter().all(|step| matches!(step.work, Work::Pass(_))), "{plan:#?}");
    }
}

#[test]
fn planes_are_fused_in_long_chunks_alone() {
    let is_fused = |planes: usize| {
        let plan = plan(Real::F32, &[planes, 16, 16], &[1, 2], FftKind::Forward, H100).expect("a plan");
        matches!(plan.steps[0].work, Work::Pair(_))
    };
    // The second number is a prime, so a chunk would have one plane.
    assert!(is_fused(50_020) && !is_fused(50_021));
}

#[test]
fn what_no_kernel_can_do_is_refused() {
    let of = |shape: &[usize], axes: &[usize], kind| plan(Real::F32, shape, axes, kind, H100).map(|_| ());
    assert_eq!(of(&[1 << 16, 1 << 15], &[1], FftKind::Forward), Err(Refusal::Numbers));
    assert_eq!(of(&[usize::MAX, 2], &[1], FftKind::Forward), Err(Refusal::Numbers));
    assert_eq!(of(&[0, 8], &[1], FftKind::Forward), Err(Refusal::Nothing));
    assert_eq!(of(&[5, 1], &[1], FftKind::Forward), Err(Refusal::Nothing));
    assert_eq!(of(&[8, 4], &[0], FftKind::RealForward), Err(Refusal::RealAxis(0)));
    assert_eq!(of(&[4, 11], &[1], FftKind::RealInverse), Err(Refusal::RealAxis(1)));
    assert_eq!(of(&[4, 2 * 1_000_003], &[1], FftKind::RealForward), Err(Refusal::RealAxis(1)));
}

/// Returns the texts of a plan's kernels.
fn texts(plan: &Plan, arch: u32) -> Vec<String> {
    let text = |step: &Step| match &step.work {
        Work::Pass(pass) => kernel(pass, arch).text,
        Work::Pair(pair) => fused(pair, arch).text,
        Work::Spectrum(pass) => spectrum(pass, arch).text,
        Work::Ahead(pass) => ahead_kernel(pass, arch).text,
    };
    plan.steps.iter().map(text).collect()
}

#[test]
fn batches_have_the_same_kernels() {
    let of =
        |shape: &[usize], axes: &[usize], kind| texts(&plan(Real::F32, shape, axes, kind, H100).expect("a plan"), 90);
    for kind in [FftKind::Forward, FftKind::RealForward, FftKind::RealInverse] {
        // Lines are in a row. Some are short, and blocks are whole or not. Long lines follow.
        for (some, more) in [(67, 71), (64, 128)] {
            assert_eq!(of(&[some, 256], &[1], kind), of(&[more, 256], &[1], kind), "{some}");
            assert_eq!(of(&[some, 60], &[1], kind), of(&[more, 60], &[1], kind), "{some}");
        }
        assert_eq!(of(&[3, 1 << 20], &[1], kind), of(&[7, 1 << 20], &[1], kind));
    }
    let of = |count| of(&[count, 1000, 24], &[1], FftKind::Forward);
    assert_eq!(of(67), of(71));
}

/// Returns all passes of a plan, including fused ones.
fn all_passes(plan: &Plan) -> Vec<LinePass> {
    plan.clone().steps.iter_mut().flat_map(|step| step.work.passes_mut().to_vec()).collect()
}

#[test]
fn blocks_fit_in_every_architecture() {
    let shapes: [(&[usize], &[usize]); 12] = [
        (&[4096, 256], &[1]),
        (&[1024, 1000], &[1]),
        (&[64, 8192], &[1]),
        (&[64, 1 << 14], &[1]),
        (&[1024, 1 << 16], &[1]),
        (&[64, 1 << 20], &[1]),
        (&[1, 1 << 24], &[1]),
        (&[1, 1 << 26], &[1]),
        (&[4096, 4096], &[0, 1]),
        (&[256, 256, 256], &[0, 1, 2]),
        (&[512, 512, 512], &[0, 1, 2]),
        (&[9, 2187, 10], &[1]),
    ];
    for arch in ARCHITECTURES {
        let limits = limits(arch);
        for (shape, axes) in shapes {
            for real in [Real::F32, Real::F64] {
                for kind in [FftKind::Forward, FftKind::RealForward, FftKind::RealInverse] {
                    let plan = match plan(real, shape, axes, kind, limits) {
                        // For a real array, the last axis must be transformed.
                        Err(Refusal::RealAxis(1)) if shape == [9, 2187, 10] => continue,
                        plan => plan.unwrap_or_else(|why| panic!("sm_{arch}: {shape:?}: {why}")),
                    };
                    for pass in all_passes(&plan) {
                        let (threads, warps) = (pass.block_threads(), pass.block_threads().next_multiple_of(32));
                        assert!(layout::memory(&pass) <= limits.room.block_shared, "sm_{arch}: {pass:?}");
                        assert!(threads <= 1024 && warps * pass.blocks <= limits.room.threads, "sm_{arch}: {pass:?}");
                        assert!(pass.blocks >= 1 && pass.blocks <= limits.room.blocks, "sm_{arch}: {pass:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_h100_has_the_plans_that_were_measured() {
    let of = |shape: &[usize], axes: &[usize]| plan(Real::F32, shape, axes, FftKind::Forward, H100).expect("a plan");
    let rows = of(&[1 << 16, 1000], &[1]);
    assert_eq!(all_passes(&rows)[0].radices, [10, 10, 10]);
    let is_pair = |step: &Step| matches!(step.work, Work::Pair(_));
    // These are planes in the cache, and then a pass along the last axis.
    let cube = of(&[256, 256, 256], &[0, 1, 2]);
    assert_eq!(cube.steps.iter().map(is_pair).collect::<Vec<_>>(), [true, false], "{cube:#?}");
    assert!(all_passes(&cube)[2].lines >= 16, "{cube:#?}");
    // These are two passes, and the first one is a chunk ahead.
    assert!(of(&[1024, 1 << 16], &[1]).steps.iter().all(is_pair));
    let long = of(&[64, 1 << 20], &[1]);
    assert!(long.steps.iter().all(is_pair) && all_passes(&long)[0].streamed[0], "{long:#?}");
    assert_eq!(passes(&of(&[4, 1 << 20], &[1])), 2);
    assert_eq!(passes(&of(&[1, 1 << 24], &[1])), 2);
    let longer = of(&[1, 1 << 26], &[1]);
    assert_eq!(longer.steps.iter().map(is_pair).collect::<Vec<_>>(), [true, false], "{longer:#?}");
    assert!(all_passes(&longer).iter().all(|pass| pass.length() <= 1024 && pass.lines >= 8), "{longer:#?}");
    assert_eq!(passes(&of(&[4096, 4096], &[0, 1])), 2);
}

#[test]
fn passes_copy_ahead_where_blocks_are_large() {
    let n = 1 << 24;
    let has = |real, shape: &[usize], axes: &[usize], arch| ahead(real, shape, axes, limits(arch)).is_some();
    // The blocks of the passes of `f64` draw tickets.
    let counters = |real| ahead(real, &[n], &[0], limits(90)).map(|plan| plan.counters);
    assert_eq!([Real::F32, Real::F64].map(counters), [Some(0), Some(2)]);
    // So do the blocks that share lines.
    let plan = ahead(Real::F32, &[2, 4 * n], &[1], limits(90)).expect("a plan");
    assert_eq!((plan.counters, plan.temporary, plan.ptx(), plan.cluster()), (2, [8 * n, 0], 81, 2));
    assert!(!has(Real::F64, &[4 * n], &[0], 90));
    for real in [Real::F32, Real::F64] {
        assert!(has(real, &[n], &[0], 90) && has(real, &[3, 2, n], &[2], 100));
        for arch in [75, 80, 86, 87, 89, 120] {
            assert!(!has(real, &[n], &[0], arch), "sm_{arch}");
        }
        assert!(!has(real, &[n, 1], &[0], 90) && !has(real, &[n / 2], &[0], 90) && !has(real, &[0, n], &[1], 90));
        assert!(!has(real, &[128, n], &[1], 90) && !has(real, &[n, n], &[0, 1], 90));
    }
}
