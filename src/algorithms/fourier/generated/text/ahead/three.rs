//! The transform of a tile of `f64`, in three stages of radix 16.
//!
//! Slice `c` of a tile has the numbers `c + 16 * j` of both lines. A warp has two slices, and a thread has 16 numbers of each: `c + 16 * b +
//! 256 * a` of one line, where `b` is the thread's place among the threads of the warp that have the line. The first two stages transform
//! the line of a slice, so that the exchange between them is within the warp. The third stage has a number of each slice.
//!
//! Two stages would need more registers than a thread has.

use super::numbers::{Places, Results, multiply, product};
use super::{COPIED_ROWS, LINE, PIECE, Shape, Side, THREADS, Tile, Writer};
use crate::Complex;
use crate::algorithms::fourier::generated::text::butterfly;
use crate::algorithms::fourier::generated::text::code::{Number, Real};
use crate::algorithms::fourier::generated::text::factors::stage_roots;
use crate::element::root_of_unity;
use crate::expr::ptx::emit::{Class, Reg};
use crate::simt::WARP;

/// The bytes of a number.
const NUMBER: u32 = 16;

/// The lines of a tile.
const LINES: u32 = PIECE / NUMBER;

/// The radix of all stages, and the number of slices.
const RADIX: u32 = 16;

/// The numbers of a thread: those of two slices.
const NUMBERS: u32 = 2 * RADIX;

/// The distance between the two slices of a thread.
const APART: u32 = THREADS / WARP;

/// The powers of two below the radix.
const BITS: u32 = RADIX.ilog2();

/// The places of parts in the first exchange from one of the 16 results of a thread to the next, and those of a slice in both exchanges. Two
/// are left out after each 32, so that the threads that read the numbers of one line access different banks.
const ROW: u32 = WARP + LINES;
const SLICE: u32 = RADIX * ROW;

/// The roots of a line's factors: of the first numbers of slices, of the places of threads, and of the powers of two of the distance
/// between the numbers of a thread. The lines begin in different banks.
const FACTORS: u32 = 2 * RADIX + BITS;

/// The numbers of the third stage whose roots are in shared memory. The roots of the rest are products of two of these.
const KEPT: [u32; 6] = [1, 2, 3, 4, 8, 12];

/// The number of roots of the second stage, and of one number of the third stage.
const SECOND: u32 = (RADIX - 1) * RADIX;
const THIRD: u32 = RADIX * RADIX;

pub(super) const SHAPE: Shape = Shape {
    number: NUMBER,
    exchanged: RADIX * SLICE * NUMBER / 2,
    roots: SECOND + KEPT.len() as u32 * THIRD,
    factors: FACTORS,
    slices: RADIX,
};

const _: () = assert!(RADIX * RADIX == COPIED_ROWS && RADIX == 2 * APART && LINES * RADIX == WARP, "whole slices");

/// Returns the roots of the second stage and those of the third one.
pub(super) fn roots() -> impl Iterator<Item = Complex<f64>> {
    let third = |k: u32| (0..THIRD).map(move |j| root_of_unity((j * k) as usize, LINE as usize));
    stage_roots(RADIX, RADIX).chain(KEPT.into_iter().flat_map(third))
}

/// Returns the exponents of the roots of a line's factors. The root of the line is to be raised to them.
pub(super) fn exponents() -> impl Iterator<Item = u32> {
    let of_places = (0..RADIX).map(|b| b * RADIX);
    (0..RADIX).chain(of_places).chain((0..BITS).map(|bit| (RADIX * RADIX) << bit))
}

/// Returns the slice of the thread's number `i`, and its number of the slice.
fn split(i: u32) -> (u32, u32) {
    (i / RADIX, i % RADIX)
}

impl Writer<'_> {
    /// Transforms a tile. A later turn is counted after `last`.
    pub(super) fn three_stages(&mut self, tile: &Tile, last: Reg) {
        let slice = self.code.quotient(self.thread, WARP, THREADS);
        let place = self.code.e.op_with(Class::B32, "and.b32", &[self.row], RADIX - 1);
        let mut x = self.take_slices(slice, place);
        if self.pass.side == Side::Rows {
            self.multiply_by_factors(slice, place, &mut x);
        }
        let x = self.transform_slices(&x);
        self.taken(last);

        let own = self.code.scaled_plus(slice, SLICE - WARP, self.thread);
        let own = self.exchange_address(own);
        let from = self.code.scaled_plus(place, ROW, self.line);
        let from = self.code.scaled_plus(slice, SLICE, from);
        let from = self.exchange_address(from);
        let of_slice = |i: u32, apart: u32| split(i).0 * APART * SLICE + split(i).1 * apart;
        let to = Places { address: own, of: &|i| of_slice(i, ROW) };
        let from = Places { address: from, of: &|i| of_slice(i, LINES) };
        let mut x = self.exchange(&x, &to, &from, true);
        self.multiply_by_second_roots(place, &mut x);
        let x = self.transform_slices(&x);

        // The warp has read its slices.
        self.code.barrier(true);
        let from = self.exchange_address(self.thread);
        let to = Places { address: own, of: &|i| of_slice(i, WARP) };
        let from = Places { address: from, of: &|i| split(i).0 * THREADS + split(i).1 * SLICE };
        let x = self.exchange(&x, &to, &from, false);
        let address = self.results(tile);
        for (half, x) in (0u32..).zip(x.chunks(RADIX as usize)) {
            let first = half * (THREADS / LINES);
            let mut x = x.to_vec();
            self.multiply_by_third_roots(first, &mut x);
            let numbers = butterfly::transform(self.code, &x);
            self.give_all(address, &Results { first, apart: THIRD, numbers });
        }
    }

    /// Returns where tiles of the second pass have a number that is `row` of its line, from its index in the plain order. Numbers of `f64`
    /// change places within 128 bytes, so that the threads that read a slice access different banks.
    pub(super) fn turned(&mut self, index: Reg, row: Reg) -> Reg {
        if self.pass.real == Real::F32 {
            return index;
        }
        let by = self.code.quotient(row, 8, u32::MAX);
        let by = self.code.e.op_with(Class::B32, "and.b32", &[by], 6);
        self.code.e.op(Class::B32, "xor.b32", &[index, by])
    }

    /// Reads the thread's numbers of the tile.
    fn take_slices(&mut self, slice: Reg, place: Reg) -> Vec<Number> {
        let (first, apart, step) = match self.pass.side {
            // Each copy is a slice.
            Side::Columns => {
                let first = self.code.scaled_plus(slice, COPIED_ROWS * LINES - WARP, self.thread);
                (first, APART * COPIED_ROWS * LINES, WARP)
            }
            Side::Rows => {
                let number = self.code.scaled_plus(place, RADIX, slice);
                let index = self.code.scaled_plus(number, LINES, self.line);
                (self.turned(index, number), APART * LINES, RADIX * RADIX * LINES)
            }
        };
        let of = |i: u32| split(i).0 * apart + split(i).1 * step;
        self.take(first, (0..NUMBERS).map(of))
    }

    /// Computes the butterfly of each slice.
    fn transform_slices(&mut self, x: &[Number]) -> Vec<Number> {
        x.chunks(RADIX as usize).flat_map(|x| butterfly::transform(self.code, x)).collect()
    }

    /// Multiplies by the factors between the passes, whose roots came with the tile.
    fn multiply_by_factors(&mut self, slice: Reg, place: Reg, x: &mut [Number]) {
        let at = self.shape.factors_at();
        let of_line = self.code.scaled_plus(self.line, FACTORS * NUMBER, self.shared);
        let of_slice = self.code.scaled_plus(slice, NUMBER, of_line);
        let of_place = self.code.scaled_plus(place, NUMBER, of_line);
        let by_place = self.shared_number(of_place, at + RADIX * NUMBER);
        let power = |bit: u32| self.shared_number(of_line, at + (2 * RADIX + bit) * NUMBER);
        let powers: Vec<[Reg; 2]> = (0..BITS).map(power).collect();
        for (half, x) in (0u32..).zip(x.chunks_mut(RADIX as usize)) {
            let by_slice = self.shared_number(of_slice, at + half * APART * NUMBER);
            let first = product(self.code, by_slice, by_place);
            multiply(self.code, x, &powers, first, 0);
        }
    }

    /// Multiplies by the roots of the second stage, which are the same for both slices.
    fn multiply_by_second_roots(&mut self, place: Reg, x: &mut [Number]) {
        let address = self.code.scaled_plus(place, NUMBER, self.shared);
        for k in 1..RADIX {
            let root = self.shared_number(address, self.shape.roots_at() + (k - 1) * RADIX * NUMBER);
            for number in x.iter_mut().skip(k as usize).step_by(RADIX as usize) {
                *number = self.code.multiply(*number, root);
            }
        }
    }

    /// Multiplies a butterfly by the roots of the third stage. The butterfly is `first` after the thread's number among those of the line.
    fn multiply_by_third_roots(&mut self, first: u32, x: &mut [Number]) {
        let address = self.code.scaled_plus(self.row, NUMBER, self.shared);
        let kept = |i: u32| {
            let number = SECOND + i * THIRD + first;
            self.shared_number(address, self.shape.roots_at() + number * NUMBER)
        };
        let kept: Vec<[Reg; 2]> = (0..KEPT.len() as u32).map(kept).collect();
        let root_of = |k: u32| KEPT.iter().position(|&kept| kept == k).map(|i| kept[i]);
        for (k, number) in (0u32..).zip(x).skip(1) {
            let root = root_of(k).unwrap_or_else(|| {
                let roots = [k & 12, k & 3].map(|k| root_of(k).expect("a root that is kept"));
                product(self.code, roots[0], roots[1])
            });
            *number = self.code.multiply(*number, root);
        }
    }
}
