//! Kernels that transpose tiles in shared memory. They are for inputs that are contiguous along another axis than the results, so that
//! accesses to these inputs are contiguous, too.
//!
//! A block takes a square tile of 32 or 64 elements along two axes: the results' innermost axis, x, and the axis along which the transposed
//! inputs are contiguous, y. Its eight warps load rows of the transposed inputs and store them to shared memory, in rows that are one
//! element longer than the tile. Then they read columns from there. All other operands are read and written in rows along x.

use std::fmt::Write;

use super::emit::{Class, Reg, op};
use super::{At, Kernel, Param, THREADS, Transpose, Way};

/// The number of lanes of a warp.
const LANES: usize = 32;
/// The number of warps of a block.
const WARPS: usize = THREADS / LANES;
/// The number of elements that a thread computes at once.
const AT_ONCE: usize = 8;

/// The addresses of a block's tile.
struct Tile {
    /// The addresses of the tile's first elements, by operand. They are `None` for single operands.
    addresses: Vec<Option<Reg>>,
    /// The addresses of the transposed operands' tiles in shared memory.
    shared: Vec<Option<Reg>>,
}

impl Kernel<'_> {
    /// Writes the body after the parameters.
    pub(super) fn write_transposing(&mut self, transpose: Transpose) {
        let edge = usize::from(transpose.edge);
        let block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let (x, y, rest) = self.tile_of(block, transpose);
        let (x, y) = (
            self.e.op_with(Class::B32, "mul.lo.u32", &[x], edge),
            self.e.op_with(Class::B32, "mul.lo.u32", &[y], edge),
        );
        let tile = self.tile_addresses(x, y, rest, transpose);
        let (width, height) = (self.argument(Param::Edge(0))[0], self.argument(Param::Edge(1))[0]);
        // These are the extents of the axes, counted from the tile's first element.
        let (width, height) =
            (self.e.op(Class::B32, "sub.u32", &[width, x]), self.e.op(Class::B32, "sub.u32", &[height, y]));
        let narrow = self.e.op_with(Class::Pred, "setp.lt.u32", &[width], edge);
        let low = self.e.op_with(Class::Pred, "setp.lt.u32", &[height], edge);
        let partial = self.e.op(Class::Pred, "or.pred", &[narrow, low]);
        let edges = self.e.label();
        op!(self.e, "@{partial} bra {edges};");
        self.whole(&tile, thread, transpose);
        op!(self.e, "ret;");
        self.e.place(&edges);
        self.partial(&tile, thread, (width, height), transpose);
        op!(self.e, "ret;");
    }

    /// Returns the tile's number along x and along y, and the rest of the block's number.
    fn tile_of(&mut self, block: Reg, transpose: Transpose) -> (Reg, Reg, Reg) {
        let (quotient, first) = self.divide(block, Param::Tiles(0));
        let (rest, second) = self.divide(quotient, Param::Tiles(1));
        if !transpose.paired {
            return (first, second, rest);
        }
        // Tiles are taken by diagonals: first the main diagonal, then the diagonals 1 and n - 1, 2 and n - 2, … beside it. Two successive
        // diagonals mirror each other.
        let count = self.argument(Param::Tiles(0))[0];
        let odd = self.e.op_with(Class::B32, "and.b32", &[second], 1);
        let odd = self.e.op_with(Class::Pred, "setp.ne.u32", &[odd], 0);
        let half = self.e.op_with(Class::B32, "add.u32", &[second], 1);
        let half = self.e.op_with(Class::B32, "shr.u32", &[half], 1);
        let other = self.e.op(Class::B32, "sub.u32", &[count, half]);
        let beside = self.e.op(Class::B32, "selp.b32", &[half, other, odd]);
        let sum = self.e.op(Class::B32, "add.u32", &[first, beside]);
        let over = self.e.op(Class::Pred, "setp.ge.u32", &[sum, count]);
        let back = self.e.op(Class::B32, "sub.u32", &[sum, count]);
        (self.e.op(Class::B32, "selp.b32", &[back, sum, over]), first, rest)
    }

    fn tile_addresses(&mut self, x: Reg, y: Reg, mut rest: Reg, transpose: Transpose) -> Tile {
        let inner = usize::from(self.variant.rank) - 1;
        let mut index = vec![None; inner + 1];
        for axis in (0..inner).rev().filter(|&axis| axis != usize::from(transpose.axis)) {
            let (quotient, remainder) = self.divide(rest, Param::Divisor(axis));
            index[axis] = Some(remainder);
            rest = quotient;
        }
        (index[inner], index[usize::from(transpose.axis)]) = (Some(x), Some(y));
        let edge = usize::from(transpose.edge);
        let mut tile = Tile { addresses: Vec::new(), shared: Vec::new() };
        for operand in 0..self.variant.operands.len() {
            let (way, size) = (self.variant.operands[operand], self.size(operand));
            let mut address = self.argument(Param::Operand(operand)).first().copied();
            if way == Way::Single {
                address = None;
            }
            for (axis, index) in index.iter().enumerate() {
                if let (Some(base), Some(index)) = (address, *index)
                    && let Some(stride) = self.step(operand, axis, transpose)
                {
                    address = Some(self.advance(base, index, stride));
                }
            }
            tile.addresses.push(address);
            tile.shared.push((way == Way::Transposed).then(|| {
                op!(self.e, ".shared .align 8 .b8 tile{operand}[{}];", edge * (edge + 1) * size);
                self.e.op_with(Class::B32, "mov.u32", &[], format_args!("tile{operand}"))
            }));
        }
        tile
    }

    /// Returns an operand's stride along an axis, in bytes, or `None` if it is 0.
    fn step(&self, operand: usize, axis: usize, transpose: Transpose) -> Option<Step> {
        let inner = usize::from(self.variant.rank) - 1;
        let size = self.size(operand);
        match self.variant.operands[operand] {
            Way::Transposed if axis == usize::from(transpose.axis) => Some(Step::Bytes(size)),
            Way::Row if axis == inner => Some(Step::Bytes(size)),
            Way::Repeated if axis == inner => None,
            _ => self.argument(Param::Stride(operand, axis)).first().map(|&stride| Step::Register(stride)),
        }
    }

    /// Returns `address + index * stride`.
    fn advance(&mut self, address: Reg, index: Reg, stride: Step) -> Reg {
        match stride {
            Step::Register(stride) => self.e.op(Class::B64, "mad.wide.s32", &[index, stride, address]),
            Step::Bytes(bytes) => {
                self.e.op_with(Class::B64, "mad.wide.s32", &[index], format_args!("{bytes}, {address}"))
            }
        }
    }

    /// Returns `times` strides in bytes, in a form that is ready to be added.
    fn leap(&mut self, stride: Option<Step>, times: usize) -> Leap {
        match stride {
            None => Leap::None,
            Some(Step::Bytes(bytes)) => Leap::Bytes(bytes * times),
            Some(Step::Register(stride)) => {
                Leap::Register(self.e.op_with(Class::B64, "mul.wide.s32", &[stride], times))
            }
        }
    }

    /// Returns the addresses of a thread's elements. The first is `first`. There are `slow_count` positions in the slow direction, and
    /// `fast_count` addresses for each of them.
    fn walk(
        &mut self,
        first: Reg,
        (slow, slow_count): (Leap, usize),
        (fast, fast_count): (Leap, usize),
    ) -> Vec<(Reg, usize)> {
        let mut all = Vec::new();
        let mut at = (first, 0);
        for i in 0..slow_count {
            if i > 0 {
                at = self.leaped(at, slow);
            }
            let mut place = at;
            for j in 0..fast_count {
                if j > 0 {
                    place = self.leaped(place, fast);
                }
                all.push(place);
            }
        }
        all
    }

    fn leaped(&mut self, (address, offset): (Reg, usize), leap: Leap) -> (Reg, usize) {
        match leap {
            Leap::None => (address, offset),
            Leap::Bytes(bytes) => (address, offset + bytes),
            Leap::Register(bytes) => (self.e.op(Class::B64, "add.s64", &[address, bytes]), offset),
        }
    }

    /// Computes a whole tile. The distances between elements are the same for every thread.
    fn whole(&mut self, tile: &Tile, thread: Reg, transpose: Transpose) {
        let edge = usize::from(transpose.edge);
        let inner = usize::from(self.variant.rank) - 1;
        let (lanes, warps) = (edge / LANES, edge / WARPS);
        let lane = self.e.op_with(Class::B32, "and.b32", &[thread], LANES - 1);
        let warp = self.e.op_with(Class::B32, "shr.u32", &[thread], LANES.ilog2());
        let row = edge + 1;
        let mut columns: Vec<Option<Reg>> = Vec::new();
        for operand in 0..tile.addresses.len() {
            let (Some(shared), Some(address)) = (tile.shared[operand], tile.addresses[operand]) else {
                columns.push(None);
                continue;
            };
            let dtype = self.dtype(operand);
            let size = dtype.size();
            // Lanes are along y, and warps along x.
            let across = self.step(operand, inner, transpose);
            let first = self.advance(address, lane, Step::Bytes(size));
            let first = match across {
                Some(stride) => self.advance(first, warp, stride),
                None => first,
            };
            let slow = self.leap(across, WARPS);
            let places = self.walk(first, (slow, warps), (Leap::Bytes(LANES * size), lanes));
            let values: Vec<Reg> =
                places.iter().map(|&(address, offset)| self.e.load("global", dtype, address, offset, 1)[0]).collect();
            let to = self.e.op_with(Class::B32, "mad.lo.u32", &[warp], format_args!("{}, {shared}", row * size));
            let to = self.e.op_with(Class::B32, "mad.lo.u32", &[lane], format_args!("{size}, {to}"));
            for (i, value) in values.into_iter().enumerate() {
                let offset = (i / lanes * WARPS * row + i % lanes * LANES) * size;
                self.e.store("shared", dtype, to, offset, &[value]);
            }
            let from = self.e.op_with(Class::B32, "mad.lo.u32", &[lane], format_args!("{}, {shared}", row * size));
            columns.push(Some(self.e.op_with(Class::B32, "mad.lo.u32", &[warp], format_args!("{size}, {from}"))));
        }
        op!(self.e, "bar.sync 0;");
        // Lanes are along x, and warps along y.
        let mut places: Vec<At> =
            (0..lanes * warps).map(|_| At { addresses: Vec::new(), offsets: Vec::new(), index: Vec::new() }).collect();
        for (operand, column) in columns.into_iter().enumerate() {
            let size = self.size(operand);
            if let Some(column) = column {
                for (i, place) in places.iter_mut().enumerate() {
                    place.addresses.push(Some(column));
                    place.offsets.push((i % lanes * LANES * row + i / lanes * WARPS) * size);
                }
                continue;
            }
            let Some(mut first) = tile.addresses[operand] else {
                for place in &mut places {
                    place.addresses.push(None);
                    place.offsets.push(0);
                }
                continue;
            };
            let (along, across) =
                (self.step(operand, inner, transpose), self.step(operand, transpose.axis.into(), transpose));
            if let Some(stride) = along {
                first = self.advance(first, lane, stride);
            }
            if let Some(stride) = across {
                first = self.advance(first, warp, stride);
            }
            let (slow, fast) = (self.leap(across, WARPS), self.leap(along, LANES));
            for (place, (address, offset)) in places.iter_mut().zip(self.walk(first, (slow, warps), (fast, lanes))) {
                place.addresses.push(Some(address));
                place.offsets.push(offset);
            }
        }
        for places in places.chunks(AT_ONCE) {
            self.compute(places, 1);
        }
    }

    /// Computes a tile at the end of an axis, element by element.
    fn partial(&mut self, tile: &Tile, thread: Reg, (width, height): (Reg, Reg), transpose: Transpose) {
        let edge = usize::from(transpose.edge);
        let inner = usize::from(self.variant.rank) - 1;
        let row = edge + 1;
        // The fast index is along y, and the slow one along x.
        self.each_element(thread, (height, width), edge, |kernel, y, x| {
            for operand in 0..tile.addresses.len() {
                let (Some(shared), Some(address)) = (tile.shared[operand], tile.addresses[operand]) else { continue };
                let dtype = kernel.dtype(operand);
                let size = dtype.size();
                let from = kernel.advance(address, y, Step::Bytes(size));
                let from = match kernel.step(operand, inner, transpose) {
                    Some(stride) => kernel.advance(from, x, stride),
                    None => from,
                };
                let value = kernel.e.load("global", dtype, from, 0, 1);
                let to = kernel.e.op_with(Class::B32, "mad.lo.u32", &[x], format_args!("{}, {shared}", row * size));
                let to = kernel.e.op_with(Class::B32, "mad.lo.u32", &[y], format_args!("{size}, {to}"));
                kernel.e.store("shared", dtype, to, 0, &value);
            }
        });
        op!(self.e, "bar.sync 0;");
        self.each_element(thread, (width, height), edge, |kernel, x, y| {
            let mut at = At { addresses: Vec::new(), offsets: vec![0; tile.addresses.len()], index: Vec::new() };
            for operand in 0..tile.addresses.len() {
                let size = kernel.size(operand);
                if let Some(shared) = tile.shared[operand] {
                    let from =
                        kernel.e.op_with(Class::B32, "mad.lo.u32", &[x], format_args!("{}, {shared}", row * size));
                    at.addresses.push(Some(kernel.e.op_with(
                        Class::B32,
                        "mad.lo.u32",
                        &[y],
                        format_args!("{size}, {from}"),
                    )));
                    continue;
                }
                let mut address = tile.addresses[operand];
                for (index, axis) in [(x, inner), (y, transpose.axis.into())] {
                    if let (Some(base), Some(stride)) = (address, kernel.step(operand, axis, transpose)) {
                        address = Some(kernel.advance(base, index, stride));
                    }
                }
                at.addresses.push(address);
            }
            kernel.compute(&[at], 1);
        });
    }

    /// Writes a loop of the block over the tile's elements that are inside. `body` gets the fast index and the slow one.
    fn each_element(
        &mut self,
        thread: Reg,
        (fast_end, slow_end): (Reg, Reg),
        edge: usize,
        body: impl FnOnce(&mut Self, Reg, Reg),
    ) {
        let (again, next, done) = (self.e.label(), self.e.label(), self.e.label());
        let place = self.e.op(Class::B32, "mov.b32", &[thread]);
        self.e.place(&again);
        let over = self.e.op_with(Class::Pred, "setp.ge.u32", &[place], edge * edge);
        op!(self.e, "@{over} bra {done};");
        let fast = self.e.op_with(Class::B32, "and.b32", &[place], edge - 1);
        let slow = self.e.op_with(Class::B32, "shr.u32", &[place], edge.ilog2());
        let (a, b) = (
            self.e.op(Class::Pred, "setp.ge.u32", &[fast, fast_end]),
            self.e.op(Class::Pred, "setp.ge.u32", &[slow, slow_end]),
        );
        let outside = self.e.op(Class::Pred, "or.pred", &[a, b]);
        op!(self.e, "@{outside} bra {next};");
        body(self, fast, slow);
        self.e.place(&next);
        op!(self.e, "add.u32 {place}, {place}, {THREADS};");
        op!(self.e, "bra {again};");
        self.e.place(&done);
    }
}

/// A stride in bytes.
#[derive(Clone, Copy)]
enum Step {
    Bytes(usize),
    Register(Reg),
}

/// Several strides at once.
#[derive(Clone, Copy)]
enum Leap {
    None,
    Bytes(usize),
    Register(Reg),
}
