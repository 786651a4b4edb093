//! Windows: the elements around a thread's own, which the thread reads from shared memory, and the values that it computes from them.
//!
//! Few terms become code without a loop, in their order: each vector of the window is read when it is first needed, and its registers are
//! free soon after. Many weights become a loop. A ring of registers holds the vectors of the window. A step takes a vector of weights,
//! which is the same for all threads, and the window's next vector, and adds a product for each weight to each sum. The loop's body goes
//! once around the ring, so that no register is copied.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::emit::{Class, Reg, op};
use super::super::{At, Kernel};
use super::stage::TileMemory;
use super::{RowTile, Split, TileThread, VECTOR};
use crate::expr::dtype::DType;
use crate::expr::program::What;

/// The vectors of its window that a thread has read, by tile and number.
#[derive(Default)]
struct Window {
    /// The address of the thread's first element, by tile.
    bases: Vec<Reg>,
    vectors: BTreeMap<(usize, usize), Vec<Reg>>,
}

/// A weighted sum that is not finished.
struct Sliding {
    /// The type of the elements that are read, and the type of the sum.
    from: DType,
    dtype: DType,
    contracted: bool,
    /// The number of elements of a vector.
    vector: usize,
    /// The number of elements before the window's first element in its first vector.
    pad: usize,
    /// The address of the window's first vector, and the address of the weights.
    window: Reg,
    weights: Reg,
    space: &'static str,
    sums: Vec<Reg>,
}

impl Sliding {
    /// Returns the number of vectors that are multiplied by this number of weights.
    fn vectors(&self, weights: usize) -> usize {
        (self.pad + weights + self.sums.len() - 2) / self.vector + 1
    }
}

impl Kernel<'_> {
    /// Computes the values that windows pass on, and stores them to shared memory.
    pub(super) fn pass_windows(&mut self, split: &Split, memory: &TileMemory, tile: RowTile, place: &TileThread) {
        let each = usize::from(tile.each);
        let mut window = Window::default();
        for staged in &memory.staged {
            let bytes = each * staged.dtype.size();
            let base =
                self.e.op_with(Class::B32, "mad.lo.u32", &[place.thread], format_args!("{bytes}, {}", place.shared));
            window.bases.push(self.e.op_with(Class::B32, "add.u32", &[base], staged.offset));
        }
        let mut values: Vec<Vec<Reg>> = self.uniform.iter().map(|value| value.iter().copied().collect()).collect();
        let nowhere = At { addresses: Vec::new(), offsets: Vec::new(), index: Vec::new() };
        for at in (0..values.len()).filter(|&at| split.window[at]) {
            let one = self.program.code[at];
            // Elements are read where the first operator takes them.
            for &value in one.takes() {
                self.read_window(&mut values, value as usize, &mut window, memory, tile);
            }
            values[at] = match one.what {
                What::Load(_) | What::Neighbour(..) => continue,
                What::Weighted(input, number) => {
                    let staged = memory.of(input, Some(self.program.taps[number as usize].rule));
                    self.slide(number, one.dtype, memory, tile, (staged, window.bases[staged]))
                }
                _ => self.value(at, &values, &nowhere, each),
            };
        }
        for passed in &memory.passed {
            self.read_window(&mut values, passed.at, &mut window, memory, tile);
            let bytes = each * passed.dtype.size();
            let to =
                self.e.op_with(Class::B32, "mad.lo.u32", &[place.thread], format_args!("{bytes}, {}", place.shared));
            let vector = tile.vector(passed.dtype.size());
            for (number, some) in values[passed.at].chunks(vector).enumerate() {
                let offset = passed.offset + number * vector * passed.dtype.size();
                self.e.store("shared", passed.dtype, to, offset, some);
            }
        }
    }

    /// Reads the elements of a value from the window, if the value is elements that are not read yet.
    fn read_window(
        &mut self,
        values: &mut [Vec<Reg>],
        at: usize,
        window: &mut Window,
        memory: &TileMemory,
        tile: RowTile,
    ) {
        let (staged, by) = match self.program.code[at].what {
            _ if !values[at].is_empty() => return,
            What::Load(input) => (memory.of(input, None), 0),
            What::Neighbour(input, shift) => {
                let shift = self.program.shifts[shift as usize];
                // The innermost axis of the tensor is the innermost axis of the nest, in the same direction.
                (memory.of(input, Some(shift.rule)), shift.by[0])
            }
            _ => return,
        };
        values[at] = self.window_at(window, memory, tile, staged, by);
    }

    /// Returns the elements at a distance from the thread's own elements.
    fn window_at(
        &mut self,
        window: &mut Window,
        memory: &TileMemory,
        tile: RowTile,
        number: usize,
        by: isize,
    ) -> Vec<Reg> {
        let staged = &memory.staged[number];
        let (vector, size) = (tile.vector(staged.dtype.size()), staged.dtype.size());
        let first = by.abs_diff(staged.low);
        (first..first + usize::from(tile.each))
            .map(|at| {
                let read = window.vectors.entry((number, at / vector)).or_insert_with(|| {
                    let offset = at / vector * vector * size;
                    self.e.load("shared", staged.dtype, window.bases[number], offset, vector)
                });
                read[at % vector]
            })
            .collect()
    }

    /// Returns the weighted sums at the thread's elements. In the staged row, these elements begin at an address.
    fn slide(
        &mut self,
        number: u32,
        dtype: DType,
        memory: &TileMemory,
        tile: RowTile,
        (staged, base): (usize, Reg),
    ) -> Vec<Reg> {
        let (program, staged) = (self.program, &memory.staged[staged]);
        let taps = &program.taps[number as usize];
        let (from, vector) = (staged.dtype, tile.vector(staged.dtype.size()));
        let first = taps.first.abs_diff(staged.low);
        let (table, space) = self.table(number, (0, taps.weights.len().next_multiple_of(VECTOR)), dtype);
        let begin = first / vector * vector * from.size();
        let window = self.e.op_with(Class::B32, "add.u32", &[base], begin);
        let weights = self.e.op_with(Class::B64, "mov.u64", &[], &table);
        let sums = (0..tile.each).map(|_| self.zero_of_sum(dtype)).collect();
        let (contracted, pad) = (taps.contracted, first % vector);
        let sliding = Sliding { from, dtype, contracted, vector, pad, window, weights, space, sums };
        self.slide_over(&sliding, taps.weights.len());
        sliding.sums
    }

    /// Adds the products of all weights.
    fn slide_over(&mut self, sliding: &Sliding, count: usize) {
        let (vector, ring) = (sliding.vector, sliding.vectors(sliding.vector));
        let (steps, left) = (count / vector, count % vector);
        let mut window: Vec<Vec<Reg>> = (0..ring - 1).map(|number| self.next_vector(sliding, number)).collect();
        window.push(Vec::new());
        let rounds = steps / ring;
        if rounds > 0 {
            self.slide_around(sliding, &mut window, rounds);
        }
        // The rest is less than once around the ring.
        for step in 0..steps % ring {
            window[(step + ring - 1) % ring] = self.next_vector(sliding, step + ring - 1);
            self.add_step(sliding, &window, step, vector);
        }
        if left > 0 {
            let step = steps % ring;
            if sliding.vectors(left) == ring {
                window[(step + ring - 1) % ring] = self.next_vector(sliding, step + ring - 1);
            }
            self.add_step(sliding, &window, step, left);
        }
    }

    /// Writes the loop, which goes around the ring `rounds` times.
    fn slide_around(&mut self, sliding: &Sliding, window: &mut [Vec<Reg>], rounds: usize) {
        let (ring, elements) = (window.len(), window.len() * sliding.vector);
        let bytes = elements * sliding.from.size();
        let end = self.e.op_with(Class::B32, "add.u32", &[sliding.window], rounds * bytes);
        let again = self.e.label();
        self.e.place(&again);
        let before = window.to_vec();
        for step in 0..ring {
            window[(step + ring - 1) % ring] = self.next_vector(sliding, step + ring - 1);
            self.add_step(sliding, window, step, sliding.vector);
        }
        for (&to, from) in before.iter().flatten().zip(window.iter().flatten()) {
            op!(self.e, "mov.{} {to}, {from};", to.class.ptx());
        }
        window.clone_from_slice(&before);
        op!(self.e, "add.u32 {0}, {0}, {bytes};", sliding.window);
        op!(self.e, "add.s64 {0}, {0}, {1};", sliding.weights, elements * sliding.dtype.size());
        let more = self.e.op(Class::Pred, "setp.ne.u32", &[sliding.window, end]);
        op!(self.e, "@{more} bra {again};");
    }

    /// Reads a vector of the window, in the type of the sum.
    fn next_vector(&mut self, sliding: &Sliding, number: usize) -> Vec<Reg> {
        let offset = number * sliding.vector * sliding.from.size();
        let values = self.e.load("shared", sliding.from, sliding.window, offset, sliding.vector);
        if sliding.from == sliding.dtype {
            return values;
        }
        values.into_iter().map(|value| self.e.cast(sliding.from, sliding.dtype, value)).collect()
    }

    /// Adds the products of some weights of a vector, in their order.
    fn add_step(&mut self, sliding: &Sliding, window: &[Vec<Reg>], step: usize, count: usize) {
        let vector = sliding.vector;
        let offset = step * vector * sliding.dtype.size();
        let weights = self.e.load(sliding.space, sliding.dtype, sliding.weights, offset, vector);
        for (k, &weight) in weights.iter().enumerate().take(count) {
            for (element, &sum) in sliding.sums.iter().enumerate() {
                let at = sliding.pad + k + element;
                let value = window[(step + at / vector) % window.len()][at % vector];
                self.add_product((sliding.contracted, sliding.dtype), sum, value, weight);
            }
        }
    }
}
