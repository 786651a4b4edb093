//! The transform of a tile of `f32`: a thread has 64 numbers of a line, so that two stages and one exchange make the transform.

use super::numbers::{Places, Results, multiply};
use super::{PIECE, Shape, Side, THREADS, Tile, Writer};
use crate::Complex;
use crate::algorithms::fourier::generated::text::butterfly;
use crate::algorithms::fourier::generated::text::factors::stage_roots;
use crate::expr::ptx::emit::Reg;

/// The bytes of a number.
const NUMBER: u32 = 8;

/// The lines of a tile.
const LINES: u32 = PIECE / NUMBER;

/// The numbers of a thread, and the radix of both stages.
const RADIX: u32 = 64;

/// The powers of two below the radix.
const BITS: u32 = RADIX.ilog2();

/// The places of parts from a number of a thread to the next, in the exchange. Four are left out, so that the threads that read the numbers
/// of one line access different banks.
const ROW: u32 = THREADS + LINES;

/// The roots of a line's factors: of its first numbers, of the powers of two of their distance, and some that are left out, so that lines
/// begin in different banks.
const FACTORS: u32 = RADIX + BITS + LEFT_OUT;
const LEFT_OUT: u32 = 6;

pub(super) const SHAPE: Shape = Shape {
    number: NUMBER,
    exchanged: RADIX * ROW * NUMBER / 2,
    roots: (RADIX - 1) * RADIX,
    factors: FACTORS,
    slices: 1,
};

/// Returns the roots of the second stage.
pub(super) fn roots() -> impl Iterator<Item = Complex<f64>> {
    stage_roots(RADIX, RADIX)
}

/// Returns the exponents of the roots of a line's factors, for one of the blocks that share it. The root of the line is to be raised to them.
pub(super) fn exponents(cluster: u32, rank: u32) -> impl Iterator<Item = u32> {
    let first = (0..RADIX).map(move |b| cluster * b + rank);
    first.chain((0..BITS).map(move |bit| (cluster * RADIX) << bit)).chain([0; LEFT_OUT as usize])
}

impl Writer<'_> {
    /// Transforms a tile. A later turn is counted after `last`.
    pub(super) fn two_stages(&mut self, tile: &Tile, last: Reg) {
        let mut x = self.take(self.thread, (0..RADIX).map(|k| k * THREADS));
        let factors = (self.pass.side == Side::Rows).then(|| self.take_line_factors());
        // With lines that two blocks share, a prototype of the second pass took less time on an H200 if it asked later.
        let is_late = self.peer.is_some() && factors.is_some();
        if !is_late {
            self.taken(last);
        }
        if let Some((first, powers)) = factors {
            multiply(self.code, &mut x, &powers, first, 0);
        }
        let x = butterfly::transform(self.code, &x);
        if is_late {
            self.taken(last);
        }

        let to = self.exchange_address(self.thread);
        let from = self.code.scaled_plus(self.row, ROW, self.line);
        let from = self.exchange_address(from);
        let to = Places { address: to, of: &|k| k * ROW };
        let from = Places { address: from, of: &|k| k * LINES };
        let mut x = self.exchange(&x, &to, &from, false);
        self.leave_exchange(last);
        let roots = self.code.scaled_plus(self.row, NUMBER, self.shared);
        for (k, number) in (0u32..).zip(&mut x).skip(1) {
            let root = self.shared_number(roots, self.shape.roots_at() + (k - 1) * RADIX * NUMBER);
            *number = self.code.multiply(*number, root);
        }
        let numbers = butterfly::transform(self.code, &x);
        let address = self.results(tile);
        let results = Results { first: 0, apart: RADIX, numbers };
        if self.peer.is_some() {
            self.send(&results);
            self.combine(address, &results, last);
        } else {
            self.give_all(address, &results);
        }
    }

    /// Reads the roots of the factors: that of the thread's first number, and those of the powers of two of the distance.
    fn take_line_factors(&mut self) -> ([Reg; 2], Vec<[Reg; 2]>) {
        let of_line = self.code.scaled_plus(self.line, FACTORS * NUMBER, self.shared);
        let of_thread = self.code.scaled_plus(self.row, NUMBER, of_line);
        let at = self.shape.factors_at();
        let first = self.shared_number(of_thread, at);
        (first, (0..BITS).map(|bit| self.shared_number(of_line, at + (RADIX + bit) * NUMBER)).collect())
    }
}
