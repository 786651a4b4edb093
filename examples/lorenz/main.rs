//! An ensemble of Lorenz systems, each with its own parameter, which is integrated in four ways.
//!
//! ```text
//! cargo run --release --example lorenz [systems] [steps] [picture.png]
//! ```
//!
//! The equations are ẋ = σ (y − x), ẏ = R x − y − x z, ż = x y − b z, with σ = 10, b = 8/3 and R from 0.1 to 50. Each system starts at (10,
//! 10, 10). The integrator is the fourth-order method of Runge and Kutta with steps of 0.01. The ways differ in how much one kernel does:
//!
//! 1. one operation, as in libraries of array operations,
//! 2. operations that a person has fused by hand: the derivatives of a stage, the argument of a stage, the sum of the stages,
//! 3. the expressions of a stage,
//! 4. the whole step: the integrator, a generic function, is called once with symbolic values, which record its operations.
//!
//! The first and the last way call the same function, [`step`], with different types.
//!
//! The PNG shows which heights `z` the systems visit: `R` grows from left to right, and `z` from bottom to top. A system with a small `R`
//! comes to rest at one height. Above about 24, chaos begins.

mod kernels;
#[path = "../common/picture.rs"]
mod picture;

use std::error::Error;
use std::ffi::OsString;
use std::ops::{Add, Mul, Sub};
use std::time::Instant;

use kernel_primitives::expr::{Expr, Operand, Prepared, Tensor, assign_all};
use kernel_primitives::{Buffer, Device, Dims, Result, Stream};

use picture::{Picture, heat_colour};

/// The length of a step.
const DT: f64 = 0.01;

/// The largest number of systems, and of steps.
const MOST: usize = 1 << 24;

/// The type of the integrator's numbers.
trait Number: Clone + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Mul<f64, Output = Self> {}
impl<T: Clone + Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Mul<f64, Output = T>> Number for T {}

/// The derivatives.
fn system<T: Number>(r: &T, [x, y, z]: &[T; 3]) -> [T; 3] {
    let [x, y, z] = [x, y, z].map(|value| || value.clone());
    [(y() - x()) * 10.0, r.clone() * x() - y() - x() * z(), x() * y() - z() * (8.0 / 3.0)]
}

/// The state after a step.
fn step<T: Number>(r: &T, state: [T; 3]) -> [T; 3] {
    let along = |k: &[T; 3], h: f64| std::array::from_fn(|i| state[i].clone() + k[i].clone() * h);
    let a = system(r, &state);
    let b = system(r, &along(&a, DT / 2.0));
    let c = system(r, &along(&b, DT / 2.0));
    let d = system(r, &along(&c, DT));
    std::array::from_fn(|i| {
        let [a, b, c, d] = [&a[i], &b[i], &c[i], &d[i]].map(T::clone);
        state[i].clone() + (a + b * 2.0 + c * 2.0 + d) * (DT / 6.0)
    })
}

/// A tensor whose operations are kernels of their own. Each makes a new tensor.
#[derive(Clone)]
struct Eager(Tensor<f64>);

impl Eager {
    fn of(value: Expr<f64>, like: &Self) -> Self {
        let make = || -> Result<Self> {
            let result = Tensor::uninit(like.0.stream(), like.0.shape())?;
            result.assign(value)?;
            Ok(Self(result))
        };
        make().expect("the operands have one shape, and the result needs memory")
    }
}

impl Add for Eager {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::of(&self.0 + &other.0, &self)
    }
}
impl Sub for Eager {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::of(&self.0 - &other.0, &self)
    }
}
impl Mul for Eager {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::of(&self.0 * &other.0, &self)
    }
}
impl Mul<f64> for Eager {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self::of(&self.0 * factor, &self)
    }
}

/// The parameters of the systems, and their initial states.
struct Ensemble {
    stream: Stream,
    r: Vec<f64>,
    steps: usize,
}

type States = [Vec<f64>; 3];

/// Computes the states after all steps.
type Way = fn(&Ensemble) -> Result<States>;

impl Ensemble {
    fn start(&self) -> States {
        std::array::from_fn(|_| vec![10.0; self.r.len()])
    }

    fn tensor(&self, data: &[f64]) -> Result<Tensor<f64>> {
        Tensor::from_slice(&self.stream, data.len(), data)
    }

    fn tensors(&self) -> Result<[Tensor<f64>; 3]> {
        let [x, y, z] = self.start();
        Ok([self.tensor(&x)?, self.tensor(&y)?, self.tensor(&z)?])
    }

    fn on_the_cpu(&self) -> States {
        let mut states = self.start();
        for (i, r) in self.r.iter().enumerate() {
            let mut state = [states[0][i], states[1][i], states[2][i]];
            for _ in 0..self.steps {
                state = step(r, state);
            }
            (0..3).for_each(|axis| states[axis][i] = state[axis]);
        }
        states
    }

    fn by_operations(&self) -> Result<States> {
        let r = Eager(self.tensor(&self.r)?);
        let mut state = self.tensors()?.map(Eager);
        for _ in 0..self.steps {
            state = step(&r, state);
        }
        read(&state.map(|value| value.0))
    }

    fn by_hand(&self) -> Result<States> {
        let (stream, n) = (&self.stream, self.r.len());
        let dims = Dims::for_items(n);
        let zeros = || -> Result<[Buffer<f64>; 3]> {
            Ok([stream.buffer_zeroed(n)?, stream.buffer_zeroed(n)?, stream.buffer_zeroed(n)?])
        };
        let r = stream.buffer_from(&self.r)?;
        let [x, y, z] = self.start();
        let mut state = [stream.buffer_from(&x)?, stream.buffer_from(&y)?, stream.buffer_from(&z)?];
        let mut argument = zeros()?;
        let mut stages = [zeros()?, zeros()?, zeros()?, zeros()?];
        for _ in 0..self.steps {
            for (stage, h) in [0.0, DT / 2.0, DT / 2.0, DT].into_iter().enumerate() {
                if stage > 0 {
                    for ((x, k), out) in state.iter().zip(&stages[stage - 1]).zip(&mut argument) {
                        kernels::along::launch(stream, dims, x, k, h, out)?;
                    }
                }
                let [x, y, z] = if stage == 0 { &state } else { &argument };
                let [dx, dy, dz] = &mut stages[stage];
                kernels::derivatives::launch(stream, dims, &r, x, y, z, dx, dy, dz)?;
            }
            let [a, b, c, d] = &stages;
            for (axis, x) in state.iter_mut().enumerate() {
                kernels::advance::launch(stream, dims, &a[axis], &b[axis], &c[axis], &d[axis], DT, x)?;
            }
        }
        let [x, y, z] = &state;
        Ok([x.to_vec()?, y.to_vec()?, z.to_vec()?])
    }

    fn by_expressions(&self) -> Result<States> {
        let r = self.tensor(&self.r)?;
        let state = self.tensors()?;
        let stages = [self.tensors()?, self.tensors()?, self.tensors()?, self.tensors()?];
        for _ in 0..self.steps {
            for (stage, h) in [0.0, DT / 2.0, DT / 2.0, DT].into_iter().enumerate() {
                let argument = std::array::from_fn(|axis| match stage {
                    0 => state[axis].clone().expr(),
                    _ => &state[axis] + &stages[stage - 1][axis] * h,
                });
                let values = system(&r.clone().expr(), &argument);
                assign_all(stages[stage].iter().zip(values).map(|(k, value)| k.to(value)))?;
            }
            let [a, b, c, d] = &stages;
            let sum = |i: usize| (&a[i] + &b[i] * 2.0 + &c[i] * 2.0 + &d[i]) * (DT / 6.0);
            assign_all(state.iter().enumerate().map(|(axis, x)| x.to(x + sum(axis))))?;
        }
        read(&state)
    }

    fn by_one_kernel(&self) -> Result<States> {
        let (state, kernel) = self.kernel()?;
        for _ in 0..self.steps {
            kernel.run()?;
        }
        read(&state)
    }

    /// Returns the states, and the kernel that advances them by a step.
    fn kernel(&self) -> Result<([Tensor<f64>; 3], Prepared)> {
        let r = self.tensor(&self.r)?.expr();
        let state = self.tensors()?;
        // The integrator runs here, once. The kernel computes its result, with contracted multiplications and additions.
        let next = step(&r, state.clone().map(Operand::expr)).map(Expr::contract);
        let kernel = Prepared::new(state.iter().zip(&next).map(|(x, next)| x.to(next)))?;
        Ok((state, kernel))
    }

    /// Draws how often each system visits each height. The picture has one column for each system.
    fn picture(&self) -> Result<Picture> {
        const HEIGHT: usize = 360;
        const HIGHEST: f64 = 90.0;
        const BEFORE: usize = 2000;
        const SHOWN: usize = 6000;
        let width = self.r.len();
        let ([_, _, z], kernel) = self.kernel()?;
        for _ in 0..BEFORE {
            kernel.run()?;
        }
        let mut visits = vec![0u32; width * HEIGHT];
        for _ in 0..SHOWN {
            kernel.run()?;
            for (column, z) in z.to_vec()?.into_iter().enumerate() {
                let height = (z / HIGHEST * HEIGHT as f64) as usize;
                assert!(height < HEIGHT, "R = {}: z = {z}", self.r[column]);
                visits[(HEIGHT - 1 - height) * width + column] += 1;
            }
        }
        let most = f64::from(SHOWN as u32).ln_1p();
        Ok(Picture::from_fn(width, HEIGHT, |column, row| {
            heat_colour(f64::from(visits[row * width + column]).ln_1p() / most * 1.4)
        }))
    }
}

/// The largest relative error after some steps. A contracted step does not round as the CPU's step does. Chaos doubles such a difference
/// about every 50 steps: of 20,000 systems on an x86-64 CPU, the largest was 2e-14 after 50 steps, 3e-9 after 500 and 1e-7 after 1000. The
/// bound grows as fast. It is 2e-10 after 50 steps. After about 1700 steps it is larger than the states, and any result passes.
fn largest_error(steps: usize) -> f64 {
    1e-10 * 2f64.powf(steps as f64 / 50.0)
}

/// `R` of each system, from 0.1 to 50.
fn parameters(systems: usize) -> Vec<f64> {
    (0..systems).map(|i| 0.1 + 49.9 * i as f64 / systems.max(2).saturating_sub(1) as f64).collect()
}

fn read(state: &[Tensor<f64>; 3]) -> Result<States> {
    let [x, y, z] = state;
    Ok([x.to_vec()?, y.to_vec()?, z.to_vec()?])
}

/// Parses an argument that says how many systems or steps there are.
fn number(argument: Option<OsString>, what: &str, default: usize) -> std::result::Result<usize, String> {
    let Some(text) = argument else { return Ok(default) };
    let number = text.to_str().and_then(|text| text.parse::<usize>().ok()).filter(|number| (1..=MOST).contains(number));
    number.ok_or_else(|| format!("`{}` is no number of {what} from 1 to {MOST}", text.display()))
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let systems = number(arguments.next(), "systems", 4096)?;
    let steps = number(arguments.next(), "steps", 50)?;

    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let ensemble = Ensemble { stream: device.stream()?, r: parameters(systems), steps };
    println!("{systems} systems, {steps} steps\n");
    let expected = ensemble.on_the_cpu();
    let ways: [(&str, Way); 4] = [
        ("one operation a kernel", Ensemble::by_operations),
        ("kernels fused by hand", Ensemble::by_hand),
        ("expressions", Ensemble::by_expressions),
        ("one traced kernel", Ensemble::by_one_kernel),
    ];
    for (name, way) in ways {
        way(&Ensemble { stream: ensemble.stream.clone(), r: ensemble.r.clone(), steps: 1 })?;
        let before = device.counters();
        let start = Instant::now();
        let states = way(&ensemble)?;
        let time = start.elapsed() / steps as u32;
        let launches = device.counters().since(before).launches as usize / steps;
        println!("{name:24} {launches:4} launches a step, {time:8.1?} a step");
        for (states, expected) in states.iter().zip(&expected) {
            for (i, (state, expected)) in states.iter().zip(expected).enumerate() {
                let error = (state - expected).abs() / expected.abs().max(1.0);
                assert!(error < largest_error(steps), "{name}, system {i}: {state}, not {expected}");
            }
        }
    }
    println!("\nall agree with the CPU");
    let shown = Ensemble { stream: ensemble.stream, r: parameters(720), steps: 0 };
    shown.picture()?.write(arguments.next(), "lorenz.png")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MOST, number};

    #[test]
    fn numbers_without_systems_or_with_too_many_are_an_error() {
        let asked = |text: &str| number(Some(text.into()), "systems", 4096);
        assert_eq!((number(None, "systems", 4096), asked("1"), asked(&MOST.to_string())), (Ok(4096), Ok(1), Ok(MOST)));
        for text in ["0", "-1", "many", "99999999999999", "99999999999999999999"] {
            assert!(asked(text).is_err(), "{text}");
        }
    }
}
