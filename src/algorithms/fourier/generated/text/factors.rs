//! Roots of unity: their tables, and the factors between the passes of a long transform.

use super::code::{Code, Number, Place};
use crate::Complex;
use crate::element::root_of_unity;
use crate::expr::ptx::emit::{Class, Reg};

/// A table of at most this length has all roots.
const ONE_LEVEL: u32 = 8192;

/// The roots of unity of a length, in one table or in two. Root `e` is `far[e / near] * near[e % near]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Levels {
    pub(in super::super) length: u32,
    /// The number of consecutive roots.
    pub(in super::super) near: u32,
    /// The number of roots whose distance is `near`.
    pub(in super::super) far: u32,
}

impl Levels {
    pub(in super::super) fn new(length: u32) -> Self {
        if length <= ONE_LEVEL {
            return Self { length, near: length, far: 1 };
        }
        let near = 1 << (u32::BITS - length.leading_zeros()).div_euclid(2);
        Self { length, near, far: length.div_ceil(near) }
    }

    /// Returns the tables. The far one comes first.
    pub(in super::super) fn roots(self) -> Vec<Complex<f64>> {
        let n = self.length as usize;
        let near = (0..self.near as usize).map(|i| root_of_unity(i, n));
        if self.far == 1 {
            return near.collect();
        }
        (0..self.far as usize).map(|i| root_of_unity(i * self.near as usize, n)).chain(near).collect()
    }
}

/// Returns the roots of a stage, `exp(-2πi * j * k / (done * radix))`. For each `k` from 1, they are in the order of `j`, which goes up to
/// `done - 1`.
pub(in super::super) fn stage_roots(radix: u32, done: u32) -> impl Iterator<Item = Complex<f64>> {
    let (radix, done) = (radix as usize, done as usize);
    (1..radix).flat_map(move |k| (0..done).map(move |j| root_of_unity(j * k, done * radix)))
}

/// The tables of the roots of a length, as a kernel reads them.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Roots {
    pub(in super::super) levels: Levels,
    /// The address of the tables.
    pub(in super::super) table: Reg,
    /// The predicate of threads that need roots. Other threads would read past the tables.
    pub(in super::super) guard: Option<Reg>,
}

impl Roots {
    /// Returns the root of an index.
    pub(in super::super) fn root(&self, code: &mut Code, index: Reg) -> [Reg; 2] {
        let Levels { length, near, far } = self.levels;
        let load = |code: &mut Code, index: Reg, after: u32| {
            let address = code.address(self.table, index);
            let offset = i64::from(after) * i64::from(code.real.number());
            code.load(Place { space: "global.nc", address, offset, guard: self.guard })
        };
        if far == 1 {
            return load(code, index, 0);
        }
        let (index_far, index_near) = code.divided(index, near, length);
        let (far_root, near_root) = (load(code, index_far, 0), load(code, index_near, far));
        let product = code.multiply(Number::of(far_root), near_root);
        [code.register(product.re), code.register(product.im)]
    }
}

/// The factors of a butterfly's numbers. Number `k` has the root `coordinate * (first + k * step)`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Factors {
    pub(in super::super) roots: Roots,
    pub(in super::super) coordinate: Reg,
    pub(in super::super) first: Reg,
    pub(in super::super) step: u32,
}

/// Multiplies a butterfly's numbers by their factors.
///
/// The roots of the first number and of `step * 1`, `step * 2`, `step * 4` and so on come from the tables. The other roots are products,
/// along a binary tree that is walked depth first. So the number of live roots is the depth of the tree.
pub(in super::super) fn apply(code: &mut Code, factors: &Factors, numbers: &mut [Number]) {
    let index = code.e.op(Class::B32, "mul.lo.u32", &[factors.coordinate, factors.first]);
    let first = factors.roots.root(code, index);
    let depth = usize::BITS - (numbers.len() - 1).leading_zeros();
    let mut powers = vec![None; depth as usize];
    walk(code, factors, numbers, &mut powers, (depth as usize, 0), first);
}

/// Multiplies the numbers from `k` whose bits above `depth` are those of `k`. Their root so far is `prefix`.
fn walk(
    code: &mut Code,
    factors: &Factors,
    numbers: &mut [Number],
    powers: &mut [Option<[Reg; 2]>],
    (depth, k): (usize, usize),
    prefix: [Reg; 2],
) {
    let Some(bit) = depth.checked_sub(1) else {
        numbers[k] = code.multiply(numbers[k], prefix);
        return;
    };
    walk(code, factors, numbers, powers, (bit, k), prefix);
    let next = k + (1 << bit);
    if next >= numbers.len() {
        return;
    }
    let power = match powers[bit] {
        Some(power) => power,
        None => {
            let index = code.scaled(factors.coordinate, factors.step << bit);
            *powers[bit].insert(factors.roots.root(code, index))
        }
    };
    let product = code.multiply(Number::of(prefix), power);
    let product = [code.register(product.re), code.register(product.im)];
    walk(code, factors, numbers, powers, (bit, next), product);
}
