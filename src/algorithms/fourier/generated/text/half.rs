//! Real arrays of even length are complex arrays of half the length.
//!
//! Let `Z` be the transform of the pairs of `2 * m` real numbers. The elements `o` and `m - o` of `Z` make the elements of the half
//! spectrum with these two numbers. In the last stage of a forward transform, and in the first stage of an inverse one, a thread has the
//! butterflies `u` and `apart - u`. So it has both elements: number `k` of one butterfly, and number `radix - 1 - k` of the other. For
//! `u = 0`, the two butterflies are 0 and `apart / 2`. In each of these, the elements are each other's partners.
//!
//! The half spectrum has half of the sums of these elements, and `Z` may be twice as large as the half spectrum. A forward transform halves
//! the pairs where it reads them. So `Z` is in the range of the type if the half spectrum is.

use super::code::{Code, Number, Place};
use super::kernel::{Here, Writer};
use crate::algorithms::fourier::generated::pass::Stage;
use crate::element::root_of_unity;
use crate::expr::ptx::emit::Reg;

/// The values with which a thread accesses a pair of butterflies: elements from `u` up, and from `m - u` down.
struct Unit {
    up: Reg,
    down: Reg,
    /// The address of root `u`.
    root: Reg,
    guard: Option<Reg>,
    /// The predicate that `u` is 0, if it may be 0.
    zero: Option<Reg>,
}

/// The elements `o` and `m - o`. `apart` is their distance from `u` and from `m - u`.
struct Pair {
    apart: i64,
    guard: Option<Reg>,
}

impl Writer<'_> {
    /// Adds the roots of twice the length, up to half of them. Returns their beginning.
    fn half_roots(&mut self) -> u32 {
        let n = self.pass.length() as usize;
        self.add_roots((0..n).map(|o| root_of_unity(o, 2 * n)))
    }

    fn unit(&mut self, side: usize, here: &Here, stage: &Stage, unit: u32) -> Unit {
        let (u, guard) = self.butterfly(here, stage, 2 * unit);
        let up = self.pointer(side, here, u);
        let back = self.code.less(self.pass.length(), u);
        let down = self.pointer(side, here, back);
        let root = self.code.address(self.frame.parameters[2], u);
        let guard = self.code.both(guard, here.there);
        let zero = (unit == 0).then(|| self.code.is_zero(u));
        Unit { up, down, root, guard, zero }
    }

    /// Returns the accesses to the elements of a pair.
    fn pair_places(&self, side: usize, unit: &Unit, pair: &Pair) -> [Place; 2] {
        let apart = pair.apart * i64::from(self.pass.elements[side]);
        let place = |address, offset| Place { space: "global", address, offset, guard: pair.guard };
        [place(unit.up, self.offset(apart)), place(unit.down, self.offset(-apart))]
    }

    fn pair_root(&mut self, roots: u32, unit: &Unit, pair: &Pair) -> [Reg; 2] {
        let offset = self.offset(i64::from(roots) + pair.apart);
        self.code.load(Place { space: "global.nc", address: unit.root, offset, guard: pair.guard })
    }

    /// Writes the half spectrum from the results of the last stage.
    pub(in super::super) fn store_half(&mut self, here: &Here, x: &[Number]) {
        let stage = self.last_stage();
        let roots = self.half_roots();
        let Stage { radix, apart, .. } = stage;
        for number in 0..self.pass.butterflies(&stage) / 2 {
            let unit = self.unit(1, here, &stage, number);
            let (a, b) = ((2 * number * radix) as usize, ((2 * number + 1) * radix) as usize);
            let last = radix as usize - 1;
            for k in 0..radix as usize {
                let mut other = x[b + last - k];
                if let Some(zero) = unit.zero {
                    // If `u` is 0, the other element is in the same butterfly.
                    other = self.code.choose_number(zero, x[a + (radix as usize - k) % radix as usize], other);
                }
                let pair = Pair { apart: k as i64 * i64::from(apart), guard: unit.guard };
                self.store_pair(roots, &unit, &pair, [x[a + k], other]);
            }
            if let Some(zero) = unit.zero {
                let guard = self.code.both(Some(zero), here.there);
                for k in 0..(radix as usize).div_ceil(2) {
                    let pair = Pair { apart: i64::from(apart / 2) + k as i64 * i64::from(apart), guard };
                    self.store_pair(roots, &unit, &pair, [x[b + k], x[b + last - k]]);
                }
            }
        }
    }

    fn store_pair(&mut self, roots: u32, unit: &Unit, pair: &Pair, [z, other]: [Number; 2]) {
        let root = self.pair_root(roots, unit, pair);
        let results = to_half(self.code, [z, other], root);
        for (place, result) in self.pair_places(1, unit, pair).into_iter().zip(results) {
            self.code.store(place, result);
        }
    }

    /// Reads the numbers of the first stage from a half spectrum.
    pub(in super::super) fn load_half(&mut self, here: &Here) -> Vec<Number> {
        let stage = self.first_stage();
        let roots = self.half_roots();
        let Stage { radix, apart, .. } = stage;
        let (radix, last) = (radix as usize, radix as usize - 1);
        let mut x: Vec<Number> = Vec::new();
        for number in 0..self.pass.butterflies(&stage) / 2 {
            let unit = self.unit(0, here, &stage, number);
            let mut pairs: Vec<[Number; 2]> = (0..radix)
                .map(|k| {
                    let pair = Pair { apart: k as i64 * i64::from(apart), guard: unit.guard };
                    // Elements 0 and m are real.
                    self.load_pair(roots, &unit, &pair, unit.zero.filter(|_| k == 0))
                })
                .collect();
            if let Some(zero) = unit.zero {
                let guard = self.code.both(Some(zero), here.there);
                for k in 0..radix.div_ceil(2) {
                    let pair = Pair { apart: i64::from(apart / 2) + k as i64 * i64::from(apart), guard };
                    let [z, other] = self.load_pair(roots, &unit, &pair, None);
                    // Number `k` of the second butterfly comes with number `last - k` of the first.
                    pairs[last - k][1] = self.code.choose_number(zero, z, pairs[last - k][1]);
                    if k != last - k {
                        pairs[k][1] = self.code.choose_number(zero, other, pairs[k][1]);
                    }
                }
            }
            x.extend(pairs.iter().map(|pair| pair[0]));
            x.extend(pairs.iter().rev().map(|pair| pair[1]));
        }
        x.into_iter().map(|number| self.directed(number)).collect()
    }

    fn load_pair(&mut self, roots: u32, unit: &Unit, pair: &Pair, real: Option<Reg>) -> [Number; 2] {
        let root = self.pair_root(roots, unit, pair);
        let numbers = self.pair_places(0, unit, pair).map(|place| {
            let number = self.code.load(place);
            Number::of(real.map_or(number, |real| self.code.real_where(real, number)))
        });
        from_half(self.code, numbers, root)
    }
}

/// Computes the elements of the half spectrum from the elements `o` and `m - o` of a transform: `X[o] = e + q` and
/// `X[m - o] = conj(e - q)`. Here `e` is the sum of `conj(Z[m - o])` and `Z[o]`, `f` is their difference, and `q = i * root * f`. `Z` is
/// the transform of pairs that were halved.
pub(in super::super) fn to_half(code: &mut Code, [z, other]: [Number; 2], root: [Reg; 2]) -> [Number; 2] {
    let other = other.conjugate();
    let (e, f) = (code.add_number(other, z), code.sub_number(other, z));
    let q = code.multiply(f.turned().negated(), root);
    // A conjugate of the difference would take one more instruction.
    [code.add_number(e, q), code.sub_number(e.conjugate(), q.conjugate())]
}

/// Computes the way back: `Z[o] = e + q` and `Z[m - o] = conj(e - q)`. Here `e` and `f` are the sum and the difference of `X[o]` and
/// `conj(X[m - o])`, and `q = i * conj(root) * f`.
pub(in super::super) fn from_half(code: &mut Code, [x, other]: [Number; 2], root: [Reg; 2]) -> [Number; 2] {
    let other = other.conjugate();
    let (e, f) = (code.add_number(x, other), code.sub_number(x, other));
    // The number conj(root) * f is the conjugate of root * conj(f).
    let mirrored = code.multiply(f.conjugate(), root);
    let q = mirrored.conjugate().turned().negated();
    [code.add_number(e, q), code.sub_number(e, q).conjugate()]
}
