//! Tests kernels of several steps. A machine for PTX runs them, and the results are compared with assignments of one step each.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use half::{bf16, f16};
use primitives_host::{Device, Result, Stream};
use ptx_machine::Machine;

use super::passes::{Options, Schedule, StepsPass, Tiles, Work};
use super::stepped::Stepped;
use super::tile::{Choice, Tiling};
use crate::expr::graph::View;
use crate::expr::program::lower;
use crate::expr::ptx::steps::THREADS;
use crate::expr::{AxisSlice, Boundary, Expr, Neighbours, Numeric, Promote, Scalar, Tensor, stencil};

fn bytes_of(view: &View) -> Range<u64> {
    let start = view.storage.address();
    start..start + view.storage.len() as u64
}

/// Runs the kernel of a pass. Returns its number of steps.
fn run(pass: &StepsPass) -> Result<usize> {
    let Work::Tile(tile) = &pass.work else { panic!("a pass of one step") };
    let machine = Machine::new(&tile.text(90)?);
    let mut words = tile.words.clone();
    words.push(0);
    let writes = [bytes_of(&pass.target)];
    let reads: Vec<_> = tile.reads.iter().map(|view| bytes_of(view)).collect();
    // SAFETY: the memory is that of tensors of this thread, which are alive.
    unsafe { machine.run(tile.blocks, THREADS, &words, &reads, &writes) };
    Ok(tile.form.steps)
}

/// Assigns `count` steps by kernels of the given choice. Returns false if there are no such kernels.
#[track_caller]
fn assign_tiles<T: Scalar>(target: &Tensor<T>, step: Expr<T>, count: usize, choice: Choice) -> Result<bool> {
    let options = Options { fixed: false, tiles: Tiles::Always(choice) };
    let schedule = Schedule::new(Location::caller(), &[&target.view], &[step.steps(count).node], options)?;
    if schedule.passes().any(|pass| !matches!(pass.work, Work::Tile(_))) {
        return Ok(false);
    }
    let steps = schedule.passes().map(run).sum::<Result<usize>>()?;
    assert_eq!(steps, count);
    Ok(true)
}

/// Numbers that look random, by a fixed rule.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn of<X: Copy>(&mut self, all: &[X]) -> X {
        all[self.next(all.len())]
    }
}

trait Small: Numeric + Promote<Self, Output = Self> {
    fn small(number: usize) -> Self;
}
macro_rules! small {
    ($($t:ty: $x:ident => $value:expr;)*) => { $(impl Small for $t { fn small($x: usize) -> Self { $value } })* };
}
small! {
    f32: x => x as f32 * 0.37 - 1.5;
    f64: x => x as f64 * 0.37 - 1.5;
    f16: x => f16::from_f32(x as f32 * 0.37 - 1.5);
    bf16: x => bf16::from_f32(x as f32 * 0.37 - 1.5);
    i8: x => (x * 37) as i8;
    i32: x => (x as i32).wrapping_mul(0x3579_1357);
    u8: x => (x * 37) as u8;
    i64: x => (x as i64).wrapping_mul(0x1357_9135_7913_5791);
    u16: x => (x * 3571) as u16;
}

fn tensor<T: Small>(stream: &Stream, shape: &[usize], numbers: &mut Numbers) -> Result<Tensor<T>> {
    let data: Vec<T> = (0..shape.iter().product::<usize>()).map(|_| T::small(numbers.next(17))).collect();
    Tensor::from_slice(stream, shape, &data)
}

/// Computes the steps with one assignment for each.
fn one_by_one<T: Small>(
    u: &Tensor<T>,
    step: &dyn Fn(&Tensor<T>) -> Expr<T>,
    frame: &[[usize; 2]],
    count: usize,
) -> Result<Vec<T>> {
    let mut now = u.contiguous()?;
    for _ in 0..count {
        let next = Tensor::uninit(u.stream(), u.shape())?;
        next.assign(&now)?;
        let inside = |([before, after], &extent): (&[usize; 2], &usize)| -> AxisSlice {
            (*before as isize..(extent - after) as isize).into()
        };
        let inner: Vec<AxisSlice> = frame.iter().zip(u.shape().iter()).map(inside).collect();
        next.slice(&inner[..])?.assign(step(&now))?;
        now = next;
    }
    now.to_vec()
}

struct Case {
    shape: Vec<usize>,
    boundary: usize,
    offsets: Vec<Vec<isize>>,
    count: usize,
    choice: Choice,
    other: bool,
    strided: bool,
}

fn case(numbers: &mut Numbers) -> Case {
    let rank = numbers.of(&[1, 2, 2, 2, 3]);
    let extents = [1, 2, 3, 5, 8, 12, 16, 31, 40, 64];
    let mut shape: Vec<usize> =
        (0..rank).map(|axis| if axis + 1 < rank { numbers.of(&extents[..8]) } else { numbers.of(&extents) }).collect();
    if rank == 3 {
        shape[0] = numbers.of(&[1, 2, 3]);
    }
    let along = numbers.of(&[1usize, 2, 2]).min(rank);
    let reach = numbers.of(&[1, 1, 2, 3]) as isize;
    let offsets = (0..1 + numbers.next(4))
        .map(|_| (0..along).map(|_| numbers.next(2 * reach as usize + 1) as isize - reach).collect())
        .collect();
    Case {
        shape,
        boundary: numbers.next(6),
        offsets,
        count: 1 + numbers.next(7),
        choice: Choice {
            width: numbers.of(&[1, 2, 4, 4, 8]),
            steps: 1 + numbers.next(5),
            rows: numbers.of(&[2, 5, 8, 16, 64]),
        },
        other: numbers.next(3) == 0,
        strided: numbers.next(4) == 0,
    }
}

/// Compares a case's kernel with single steps. Returns whether a kernel was run.
fn holds<T: Small + std::fmt::Debug>(case: &Case, numbers: &mut Numbers) -> Result<bool> {
    let stream = Device::emulator().stream()?;
    let Case { shape, offsets, count, choice, .. } = case;
    let rank = shape.len();
    let boundary = [
        Boundary::Clamp,
        Boundary::Periodic,
        Boundary::Mirror,
        Boundary::Symmetric,
        Boundary::Constant(T::small(11)),
        Boundary::Interior,
    ][case.boundary];
    let mut u = tensor::<T>(&stream, shape, numbers)?;
    if case.strided {
        let mut wide = shape.clone();
        wide[rank - 1] = 2 * shape[rank - 1] + 1;
        let slices: Vec<AxisSlice> =
            (0..rank).map(|axis| if axis + 1 == rank { AxisSlice::from(1..).by(2) } else { (..).into() }).collect();
        u = tensor::<T>(&stream, &wide, numbers)?.slice(&slices[..])?;
    }
    let mut frame = vec![[0, 0]; rank];
    if case.boundary == 5 {
        for by in offsets {
            for (frame, &by) in frame.iter_mut().rev().zip(by.iter().rev()) {
                let side = &mut frame[usize::from(by > 0)];
                *side = (*side).max(by.unsigned_abs());
            }
        }
        if frame.iter().zip(shape).any(|([before, after], &extent)| before + after >= extent) {
            return Ok(false);
        }
    }
    let inner: Vec<usize> = shape.iter().zip(&frame).map(|(extent, [before, after])| extent - before - after).collect();
    let f = tensor::<T>(&stream, &inner, numbers)?;
    let f_row = tensor::<T>(&stream, &inner[rank - 1..], numbers)?;
    let step = |now: &Tensor<T>| {
        let terms = |n: &Neighbours<T>| {
            let terms = offsets.iter().enumerate().map(|(at, by)| n.at(by.clone()) * T::small(at + 3));
            terms.reduce(|sum, term| sum - term).unwrap()
        };
        // A single offset makes a pure shift, whose result is a register of the step before.
        let value = if offsets.len() == 1 {
            stencil(now, boundary, |n| n.at(offsets[0].clone()))
        } else {
            stencil(now, boundary, terms)
        };
        if case.other { value * &f_row + &f } else { value }
    };
    let target = Tensor::<T>::zeros(&stream, &shape[..])?;
    let Ok(ran) = assign_tiles(&target, step(&u), *count, *choice) else {
        // A single step is a mistake, too.
        assert!(Tensor::<T>::uninit(&stream, &shape[..])?.assign(step(&u)).is_err());
        return Ok(false);
    };
    if ran {
        let (got, expected) = (target.to_vec()?, one_by_one(&u, &step, &frame, *count)?);
        #[allow(clippy::eq_op, reason = "NaN is not itself")]
        let same = |a: &T, b: &T| a == b || a != a && b != b;
        if let Some(at) = (0..got.len()).find(|&at| !same(&got[at], &expected[at])) {
            panic!(
                "element {at}: {:?}, not {:?}; shape {shape:?}, {boundary:?}, {offsets:?}, {count} steps, {choice:?}, other {}, strided {}",
                got[at], expected[at], case.other, case.strided
            );
        }
    }
    Ok(ran)
}

#[test]
fn kernels_compute_what_single_steps_do() -> Result<()> {
    let mut ran = 0;
    for seed in 0..150 {
        let mut numbers = Numbers(seed * 7919 + 1);
        numbers.next(2);
        let case = case(&mut numbers);
        ran += usize::from(match seed % 10 {
            0 | 1 => holds::<f32>(&case, &mut numbers)?,
            2 => holds::<i32>(&case, &mut numbers)?,
            3 => holds::<u8>(&case, &mut numbers)?,
            4 => holds::<f64>(&case, &mut numbers)?,
            5 => holds::<i64>(&case, &mut numbers)?,
            6 => holds::<f16>(&case, &mut numbers)?,
            7 => holds::<bf16>(&case, &mut numbers)?,
            8 => holds::<i8>(&case, &mut numbers)?,
            _ => holds::<u16>(&case, &mut numbers)?,
        });
    }
    assert!(ran > 60, "{ran} kernels");
    Ok(())
}

/// The tensor has rows of several strips and chunks, as on a GPU.
#[test]
fn the_heat_equation_over_several_strips() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let mut numbers = Numbers(5);
    let shape = [37, 260];
    let u = tensor::<f32>(&stream, &shape, &mut numbers)?;
    let step = |u: &Tensor<f32>| {
        u + 0.2 * stencil(u, Boundary::Mirror, |n| n.at([-1, 0]) + n.at([1, 0]) + n.at(-1) + n.at(1) - 4.0 * n.at(0))
    };
    let target = Tensor::zeros(&stream, shape)?;
    let choice = Choice { width: 4, steps: 8, rows: 16 };
    assert!(assign_tiles(&target, step(&u), 8, choice)?);
    assert_eq!(target.to_vec()?, one_by_one(&u, &step, &[[0; 2]; 2], 8)?);
    Ok(())
}

/// Registers hold elements of `bool` as numbers.
#[test]
fn steps_of_bool() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let (width, count) = (77, 9);
    let data: Vec<bool> = (0..width).map(|i| i * i % 7 < 3).collect();
    let u = Tensor::from_slice(&stream, width, &data)?;
    let target = Tensor::zeros(&stream, width)?;
    let step = stencil(&u, Boundary::Constant(true), |n| n.at(-1) ^ (n.at(0) | n.at(1)));
    assert!(assign_tiles(&target, step, count, Choice { width: 4, steps: 4, rows: 16 })?);
    let mut row = data;
    for _ in 0..count {
        let at = |i: isize| usize::try_from(i).ok().and_then(|i| row.get(i).copied()).unwrap_or(true);
        row = (0..width as isize).map(|i| at(i - 1) ^ (at(i) | at(i + 1))).collect();
    }
    assert_eq!(target.to_vec()?, row);
    Ok(())
}

/// Checks the choice of the cost model for the heat equation, for one large and one small tensor.
#[test]
fn steps_of_a_kernel_are_chosen() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let [x, y] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, [1024, 2048]).unwrap());
    let five = stencil(&x, Boundary::Clamp, |n| 0.25 * (n.at([-1, 0]) + n.at([1, 0]) + n.at(-1) + n.at(1)));
    let options = Options { fixed: false, tiles: Tiles::WherePaid };
    let steps = |step: &Expr<f32>, count| -> Result<Vec<usize>> {
        let schedule = Schedule::new(Location::caller(), &[&y.view], &[step.clone().steps(count).node], options)?;
        Ok(schedule.passes().map(|pass| if let Work::Tile(tile) = &pass.work { tile.form.steps } else { 0 }).collect())
    };
    assert_eq!(steps(&five, 8)?, [8]);
    assert_eq!(steps(&five, 1)?, [0]);
    assert_eq!(steps(&five, 19)?.iter().sum::<usize>(), 19);
    // Stencils along three axes are passes of one step.
    let [x, y] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, [16, 16, 16]).unwrap());
    let seven = stencil(&x, Boundary::Clamp, |n| n.at([-1, 0, 0]) + n.at([0, 1, 0]) + n.at(1));
    let targets: [&Arc<View>; 1] = [&y.view];
    let schedule = Schedule::new(Location::caller(), &targets, &[seven.steps(3).node], options)?;
    assert!(schedule.passes().all(|pass| matches!(pass.work, Work::Step(_))));
    Ok(())
}

/// A large batch has more warps than 32 bits can count.
#[test]
fn kernels_have_no_more_warps_than_they_count() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let one = Tensor::<u8>::zeros(&stream, 1)?;
    let has_kernel = |shape: [usize; 4]| -> Result<bool> {
        let many = one.broadcast_to(shape)?;
        let step = stencil(&many, Boundary::Clamp, |n| n.at(-1) + n.at(1));
        let Ok(stepped) = Stepped::new(&step.node) else { panic!("it has steps") };
        Ok(Tiling::new(&lower([&stepped.shifted()]), &stepped, 8, 132).is_some())
    };
    assert!(has_kernel([1 << 10, 1 << 10, 64, 64])?);
    assert!(!has_kernel([1 << 20, 1 << 20, 1, 64])?);
    Ok(())
}

/// The strides of many tensors take more parameters than a kernel has. Passes of one step merge axes, and have fewer strides.
#[test]
fn kernels_take_no_more_parameters_than_there_may_be() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let shape = [8, 8, 64];
    let [x, y] = [0; 2].map(|_| Tensor::<u8>::zeros(&stream, shape).unwrap());
    let has_kernel = |others: usize| -> Result<bool> {
        let others: Vec<Tensor<u8>> = (0..others).map(|_| Tensor::zeros(&stream, shape)).collect::<Result<_>>()?;
        let left = stencil(&x, Boundary::Clamp, |n| n.at(-1));
        let step = others.iter().fold(left, |sum, other| sum + other);
        let options = Options { fixed: false, tiles: Tiles::WherePaid };
        let schedule = Schedule::new(Location::caller(), &[&y.view], &[step.steps(8).node], options)?;
        Ok(schedule.passes().all(|pass| matches!(pass.work, Work::Tile(_))))
    };
    assert!(has_kernel(100)?);
    assert!(!has_kernel(140)?);
    Ok(())
}
