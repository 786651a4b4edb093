//! Numbers between registers and memory: of the tile, of an exchange, and of the results.

use std::fmt::Write;

use super::{EXCHANGE, Side, THREADS, Tile, Writer};
use crate::algorithms::fourier::generated::text::code::{Code, Number, Place, Value};
use crate::expr::ptx::emit::{Reg, op};

/// The places of an exchange: the address of a thread's first place, and the places of its numbers after that.
pub(super) struct Places<'a> {
    pub(super) address: Reg,
    pub(super) of: &'a dyn Fn(u32) -> u32,
}

/// Results of a line. Their numbers in the line are counted from the thread's first one.
pub(super) struct Results {
    pub(super) first: u32,
    pub(super) apart: u32,
    pub(super) numbers: Vec<Number>,
}

impl Results {
    /// Returns the number of result `i` in the line.
    pub(super) fn element(&self, i: u32) -> u32 {
        self.first + i * self.apart
    }
}

impl Writer<'_> {
    /// Exchanges the parts of a number, if the transform is inverse.
    fn directed(&self, number: Number) -> Number {
        if self.pass.inverse { number.exchanged() } else { number }
    }

    /// Reads a number at an offset from an address in shared memory.
    pub(super) fn shared_number(&mut self, address: Reg, offset: u32) -> [Reg; 2] {
        self.code.load(Place { space: "shared", address, offset: offset.into(), guard: None })
    }

    /// Reads the thread's numbers of the tile. `first` is the place of the first one, and `places` are those of all, counted from there.
    pub(super) fn take(&mut self, first: Reg, places: impl Iterator<Item = u32>) -> Vec<Number> {
        let address = self.code.scaled_plus(first, self.shape.number, self.shared);
        places
            .map(|place| {
                let number = Number::of(self.shared_number(address, place * self.shape.number));
                self.directed(number)
            })
            .collect()
    }

    /// Returns the address of a place of the exchange.
    pub(super) fn exchange_address(&mut self, place: Reg) -> Reg {
        self.code.scaled_plus(place, self.shape.number / 2, self.shared)
    }

    /// Exchanges numbers among the threads of a warp, or of the block: first their real parts, and then their imaginary parts.
    pub(super) fn exchange(&mut self, x: &[Number], to: &Places<'_>, from: &Places<'_>, warp: bool) -> Vec<Number> {
        let (code, size) = (&mut *self.code, self.shape.number / 2);
        let (class, t) = (code.real.class(), code.real.ptx());
        let parts: [fn(&Number) -> Value; 2] = [|x| x.re, |x| x.im];
        let [re, im] = [0, 1].map(|part| {
            if part == 1 {
                code.barrier(warp);
            }
            for (i, number) in x.iter().enumerate() {
                let value = code.register(parts[part](number));
                let offset = EXCHANGE + (to.of)(i as u32) * size;
                op!(code.e, "st.shared.{t} [{}+{offset}], {value};", to.address);
            }
            code.barrier(warp);
            let part = |i: u32| {
                let offset = EXCHANGE + (from.of)(i) * size;
                code.e.op_with(class, &format!("ld.shared.{t}"), &[], format_args!("[{}+{offset}]", from.address))
            };
            (0..x.len() as u32).map(part).collect::<Vec<Reg>>()
        });
        re.into_iter().zip(im).map(|(re, im)| Number::of([re, im])).collect()
    }

    /// Returns the address of the result of the thread's line whose number is `row`.
    pub(super) fn results(&mut self, tile: &Tile) -> Reg {
        let (code, lines, of_tile) = (&mut *self.code, self.pass.lines, self.shape.lines());
        let begin = code.scaled(tile.matrix, self.pass.length() * lines);
        let line = code.scaled_plus(tile.group, of_tile, self.line);
        let index = match self.pass.side {
            // Some rows of the matrix are a tile of the second pass, in which the numbers of a column are neighbours. If two blocks share the
            // tile, each has half of the columns.
            Side::Columns => {
                let (tile, in_tile) = code.divided(self.row, of_tile, THREADS);
                let (column, rank) = code.divided(line, self.pass.cluster, u32::MAX);
                let part = code.scaled_plus(tile, self.pass.cluster, rank);
                let place = code.scaled_plus(part, lines / self.pass.cluster, column);
                let index = code.scaled_plus(place, of_tile, in_tile);
                self.turned(index, column)
            }
            Side::Rows => self.code.scaled_plus(self.row, lines, line),
        };
        let index = self.code.scaled_plus(begin, 1, index);
        self.code.address(self.output, index)
    }

    /// Writes results of the thread's line.
    pub(super) fn give_all(&mut self, address: Reg, results: &Results) {
        for (i, &number) in (0u32..).zip(&results.numbers) {
            self.give(address, results.element(i), number);
        }
    }

    /// Writes a result of the thread's line, whose number in the line is `element` after the one at the address.
    pub(super) fn give(&mut self, address: Reg, element: u32, number: Number) {
        let number = self.directed(number);
        let offset = i64::from(element) * i64::from(self.pass.lines * self.shape.number);
        self.code.store(Place { space: "global", address, offset, guard: None }, number);
    }
}

/// Multiplies the numbers by their factors. Number `k` has the product of `prefix` and of the powers for the bits of `k`. The products are
/// made along a binary tree, walked depth first, so that few of them are alive.
pub(super) fn multiply(code: &mut Code, x: &mut [Number], powers: &[[Reg; 2]], prefix: [Reg; 2], k: usize) {
    let Some((&power, lower)) = powers.split_last() else {
        x[k] = code.multiply(x[k], prefix);
        return;
    };
    multiply(code, x, lower, prefix, k);
    let product = product(code, prefix, power);
    multiply(code, x, lower, product, k + (1 << lower.len()));
}

/// Returns the product of two roots.
pub(super) fn product(code: &mut Code, a: [Reg; 2], b: [Reg; 2]) -> [Reg; 2] {
    let product = code.multiply(Number::of(a), b);
    [code.register(product.re), code.register(product.im)]
}
