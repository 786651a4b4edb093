//! Lines whose length has a large prime factor are convolutions.
//!
//! The transform of a prime length `n` is a convolution of length `n - 1`, with the numbers in the order of the powers of a primitive root
//! (Rader, 1968). The transform of any length is a convolution with a chirp, of a length of at least `2 * n - 1` (Bluestein, 1970). A
//! convolution is a transform, a product, and the inverse transform with the same radices in reverse order. So the first stage of the
//! inverse transform has its numbers where the last stage before left them: in the registers of the thread.

use super::butterfly::{MOST_PRIME, least_factor};
use super::code::{Number, Place, Real};
use super::kernel::{Here, Writer};
use crate::Complex;
use crate::algorithms::fourier::generated::choose::{Beside, Choice, Search};
use crate::algorithms::fourier::generated::layout::{self, layouts};
use crate::algorithms::fourier::generated::pass::{Kind, LineAxis, LinePass};
use crate::algorithms::fourier::generated::room::Room;
use crate::element::root_of_unity;
use crate::expr::ptx::emit::{Class, Reg};
use crate::simt::WARP;

/// The largest prime factor of a convolution with a chirp.
const MOST_OF_CHIRP: u32 = 7;

/// Longer lines are not tried, because no block holds them.
const LONGEST: u32 = 1 << 14;

/// The numbers that a thread has in flight at once.
const AT_ONCE: u32 = 16;

fn largest_factor(mut n: u32) -> u32 {
    let mut largest = 1;
    while n > 1 {
        let factor = least_factor(n);
        largest = largest.max(factor);
        n /= factor;
    }
    largest
}

/// Returns whether lines of a length are transformed without a convolution.
pub(in super::super) fn is_smooth(n: u32) -> bool {
    largest_factor(n) <= MOST_PRIME
}

/// Returns a pass over lines of a length that has a large prime factor, if a block holds its convolution.
pub(in super::super) fn convolution(
    real: Real,
    n: u32,
    axes: &[LineAxis],
    elements: [u32; 2],
    room: Room,
) -> Option<LinePass> {
    if n > LONGEST {
        return None;
    }
    let search = |n| Search { real, n, beside: Beside::Elements, half: false, room };
    let (search, kind) = if least_factor(n) == n && is_smooth(n - 1) {
        (search(n - 1), Kind::Rader)
    } else {
        // The length is the one that takes the least time. It is only a little longer than necessary.
        let long = 2 * n - 1..=2 * n + n / 3 + 1;
        let all = long.filter(|&m| largest_factor(m) <= MOST_OF_CHIRP).filter_map(|m| Some((m, search(m).best()?)));
        let cost = |(m, choice): &(u32, Choice)| choice.cost * f64::from(*m);
        let (m, _) = all.reduce(|best, other| if cost(&other) < cost(&best) { other } else { best })?;
        (search(m), Kind::Chirp(n))
    };
    let mut pass = search.best_pass(axes, elements)?;
    (pass.kind, pass.staged) = (kind, false);
    if pass.threads >= WARP {
        pass.lines = 1;
    }
    (layout::memory(&pass) <= room.block_shared).then_some(pass)
}

impl LinePass {
    /// Returns the length of a line in memory.
    pub(in super::super) fn line_length(&self) -> u32 {
        match self.kind {
            Kind::Rader => self.length() + 1,
            Kind::Chirp(n) => n,
            _ => self.length(),
        }
    }

    pub(in super::super) fn is_convolution(&self) -> bool {
        matches!(self.kind, Kind::Rader | Kind::Chirp(_))
    }

    /// Returns the pass whose stages make the inverse transform of a convolution, if the pass is a convolution.
    pub(in super::super) fn back(&self) -> Option<Self> {
        let radices = || self.radices.iter().rev().copied().collect();
        self.is_convolution().then(|| Self { radices: radices(), ..self.clone() })
    }

    /// Returns the distance from a line to the next in shared memory, if elements are put in order there. It is odd, so that lines begin in
    /// different banks.
    pub(in super::super) fn ordered_pitch(&self) -> u32 {
        self.line_length() | 1
    }
}

/// The values that a block has for a line of prime length.
struct Ordered {
    /// The address in shared memory of the line's first number.
    line: Reg,
    /// The beginning in the table of the orders of numbers. For each place in the convolution, the table has two distances from the line's
    /// first number, in bytes: that of the number that comes there, and that of the result.
    orders: u32,
    /// The line's first number.
    first: Number,
    /// The sum of all other numbers, in thread 0.
    sum: Option<Number>,
    /// Whether the thread is 0.
    leader: Reg,
}

impl Writer<'_> {
    /// Writes a convolution.
    pub(in super::super) fn convolve(&mut self, here: &mut Here) {
        let mut ordered = (self.pass.kind == Kind::Rader).then(|| self.put_in_order(here));
        let (mut x, chirp) = match &ordered {
            Some(ordered) => (self.gather(here, ordered), 0),
            None => {
                let n = self.pass.line_length() as usize;
                let begin = self.add_roots(chirp(n).into_iter());
                (self.load_chirped(here, begin), begin)
            }
        };
        self.transform(here, &mut x);
        self.filter(here, &mut x, ordered.as_mut());
        let back = self.pass.back().expect("a convolution");
        (self.stages, self.layouts) = (back.stages(), layouts(&back));
        let mut x: Vec<Number> = x.into_iter().map(Number::exchanged).collect();
        self.transform(here, &mut x);
        let x: Vec<Number> = x.into_iter().map(Number::exchanged).collect();
        match &ordered {
            Some(ordered) => self.scatter(here, ordered, &x),
            None => self.store_chirped(here, &x, chirp),
        }
    }

    /// Copies lines between memory and shared memory, in the order of their elements.
    fn copy_lines(&mut self, here: &Here, line: Reg, out: bool) {
        let (n, threads, number) = (self.pass.line_length(), self.pass.threads, self.pass.real.number());
        let side = usize::from(out);
        let global = self.pointer(side, here, here.thread);
        let shared = self.code.scaled_plus(here.thread, number, line);
        let rounds: Vec<u32> = (0..n.div_ceil(threads)).collect();
        for rounds in rounds.chunks(AT_ONCE as usize) {
            let places: Vec<[Place; 2]> = rounds
                .iter()
                .map(|round| {
                    let first = round * threads;
                    let guard = (first + threads > n).then(|| {
                        let element = self.code.plus(here.thread, first);
                        self.code.below(element, n)
                    });
                    let guard = self.code.both(guard, here.there);
                    let distance = i64::from(first) * i64::from(self.pass.elements[side]);
                    let space = if self.pass.fresh && !out { "global.cg" } else { "global" };
                    let global = Place { space, address: global, offset: self.offset(distance), guard };
                    let offset = self.offset(first.into());
                    [global, Place { space: "shared", address: shared, offset, guard }]
                })
                .collect();
            let numbers: Vec<[Reg; 2]> = places.iter().map(|place| self.code.load(place[side])).collect();
            for (place, number) in places.iter().zip(numbers) {
                self.code.store(place[1 - side], Number::of(number));
            }
        }
    }

    /// Puts a line of prime length into shared memory.
    fn put_in_order(&mut self, here: &Here) -> Ordered {
        let (number, n) = (self.pass.real.number(), self.pass.line_length());
        let line = match here.line {
            None => self.frame.shared,
            Some(line) => self.code.scaled_plus(line, self.pass.ordered_pitch() * number, self.frame.shared),
        };
        self.copy_lines(here, line, false);
        self.barrier();
        self.in_use = true;
        let powers = powers(n);
        let m = n as usize - 1;
        let bytes = |element: u32| f64::from(element * number);
        let orders = (0..m).map(|at| Complex { re: bytes(powers[at]), im: bytes(powers[(m - at) % m]) });
        let orders = self.add_roots(orders);
        let first = self.code.load(Place { space: "shared", address: line, offset: 0, guard: here.there });
        let first = self.directed(Number::of(first));
        let leader = self.code.is_zero(here.thread);
        Ordered { line, orders, first, sum: None, leader }
    }

    /// Returns the address in shared memory of a number that an order names. `table` is the place of this entry in the table.
    fn in_order(&mut self, ordered: &Ordered, table: Place, which: usize) -> Reg {
        let order = self.code.load(table)[which];
        let name = format!("cvt.rzi.u32.{}", self.pass.real.ptx());
        let bytes = self.code.e.op(Class::B32, &name, &[order]);
        self.code.e.op(Class::B32, "add.u32", &[ordered.line, bytes])
    }

    /// Returns the place of a thread's element in the part of the table that begins at `begin`.
    fn of_table(&self, table: Reg, begin: u32, element: i64, guard: Option<Reg>) -> Place {
        Place { space: "global.nc", address: table, offset: self.offset(i64::from(begin) + element), guard }
    }

    /// Returns the address of the thread's number in the table.
    fn table(&mut self, here: &Here) -> Reg {
        self.code.address(self.frame.parameters[2], here.thread)
    }

    /// Reads the numbers of the first stage, in the order of the powers.
    fn gather(&mut self, here: &Here, ordered: &Ordered) -> Vec<Number> {
        let (stage, table) = (self.first_stage(), self.table(here));
        let mut x = Vec::new();
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            let both = self.code.both(guard, here.there);
            for k in 0..stage.radix {
                let place = self.of_table(table, ordered.orders, self.element(&stage, i, k), guard);
                let address = self.in_order(ordered, place, 0);
                let number = self.code.load(Place { space: "shared", address, offset: 0, guard: both });
                x.push(self.directed(Number::of(number)));
            }
        }
        x
    }

    /// Puts the results in order, which is that of the powers' inverses, and writes them to memory.
    fn scatter(&mut self, here: &Here, ordered: &Ordered, x: &[Number]) {
        self.barrier();
        let (stage, table) = (self.last_stage(), self.table(here));
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            for k in 0..stage.radix {
                let place = self.of_table(table, ordered.orders, self.element(&stage, i, k), guard);
                let address = self.in_order(ordered, place, 1);
                let number = self.directed(x[(i * stage.radix + k) as usize]);
                self.code.store(Place { space: "shared", address, offset: 0, guard }, number);
            }
        }
        let sum = ordered.sum.expect("a sum");
        let all = self.code.add_number(ordered.first, sum);
        let all = self.directed(all);
        self.code.store(Place { space: "shared", address: ordered.line, offset: 0, guard: Some(ordered.leader) }, all);
        self.barrier();
        self.copy_lines(here, ordered.line, true);
    }

    /// Multiplies the transform by the transform of the filter.
    fn filter(&mut self, here: &Here, x: &mut [Number], mut ordered: Option<&mut Ordered>) {
        let filter = match self.pass.kind {
            Kind::Chirp(n) => filter_of_chirp(n as usize, self.pass.length() as usize),
            _ => filter_of_powers(self.pass.line_length()),
        };
        let begin = self.add_roots(filter.into_iter());
        let (stage, table) = (self.last_stage(), self.table(here));
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            for k in 0..stage.radix {
                let number = &mut x[(i * stage.radix + k) as usize];
                let place = self.of_table(table, begin, self.element(&stage, i, k), guard);
                let factor = self.code.load(place);
                let product = self.code.multiply(*number, factor);
                *number = match &mut ordered {
                    // Thread 0 has result 0, which is the sum. The line's first number is added to all results of the convolution.
                    Some(ordered) if (i, k) == (0, 0) => {
                        ordered.sum = Some(*number);
                        let more = self.code.add_number(product, ordered.first);
                        self.code.choose_number(ordered.leader, more, product)
                    }
                    _ => product,
                };
            }
        }
    }

    /// Returns which threads have an element of a line that is shorter than its convolution, or `None` if no thread has it.
    fn of_line(&mut self, here: &Here, element: u32, guard: Option<Reg>) -> Option<(Option<Reg>, Option<Reg>)> {
        let n = self.pass.line_length();
        if element >= n {
            return None;
        }
        let inside = (element + self.pass.threads > n).then(|| {
            let at = self.code.plus(here.thread, element);
            self.code.below(at, n)
        });
        let guard = self.code.both(guard, here.there);
        Some((self.code.both(guard, inside), inside))
    }

    /// Reads the numbers of the first stage, and multiplies them by the chirp. After the line, there are zeros.
    fn load_chirped(&mut self, here: &Here, begin: u32) -> Vec<Number> {
        let (stage, table) = (self.first_stage(), self.table(here));
        let address = self.pointer(0, here, here.thread);
        let zero = Number::of([self.code.zero(); 2]);
        let mut x = Vec::new();
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            for k in 0..stage.radix {
                let element = self.element(&stage, i, k);
                let Some((guard, inside)) = self.of_line(here, element as u32, guard) else {
                    x.push(zero);
                    continue;
                };
                let offset = self.offset(element * i64::from(self.pass.elements[0]));
                let number = Number::of(self.code.load(Place { space: "global", address, offset, guard }));
                let place = self.of_table(table, begin, element, guard);
                let factor = self.code.load(place);
                let directed = self.directed(number);
                let product = self.code.multiply(directed, factor);
                x.push(match inside {
                    Some(inside) => self.code.choose_number(inside, product, zero),
                    None => product,
                });
            }
        }
        x
    }

    /// Multiplies the results of the last stage by the chirp, and writes them.
    fn store_chirped(&mut self, here: &Here, x: &[Number], begin: u32) {
        let (stage, table) = (self.last_stage(), self.table(here));
        let address = self.pointer(1, here, here.thread);
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            for k in 0..stage.radix {
                let element = self.element(&stage, i, k);
                let Some((guard, _)) = self.of_line(here, element as u32, guard) else { continue };
                let place = self.of_table(table, begin, element, guard);
                let factor = self.code.load(place);
                let product = self.code.multiply(x[(i * stage.radix + k) as usize], factor);
                let number = self.directed(product);
                let offset = self.offset(element * i64::from(self.pass.elements[1]));
                self.code.store(Place { space: "global", address, offset, guard }, number);
            }
        }
    }
}

/// Returns the powers of a primitive root of a prime, from power 0.
fn powers(n: u32) -> Vec<u32> {
    let m = n as usize - 1;
    let of = |root: u32| {
        let next = move |&power: &u32| Some((u64::from(power) * u64::from(root) % u64::from(n)) as u32);
        std::iter::successors(Some(1u32), next).take(m).collect::<Vec<u32>>()
    };
    // The powers of other numbers reach 1 earlier.
    (1..n).map(of).find(|powers| powers[1..].iter().all(|&power| power != 1)).expect("a primitive root")
}

/// Returns the transform of the filter for lines of prime length, divided by its length.
fn filter_of_powers(n: u32) -> Vec<Complex<f64>> {
    let (m, powers) = (n as usize - 1, powers(n));
    let roots: Vec<_> = (0..m).map(|at| root_of_unity(powers[(m - at) % m] as usize, n as usize) / m as f64).collect();
    transform(&roots)
}

/// Returns `exp(-πi j² / n)` for all `j` below `n`.
fn chirp(n: usize) -> Vec<Complex<f64>> {
    let square = |j: usize| (j as u64 * j as u64 % (2 * n as u64)) as usize;
    (0..n).map(|j| root_of_unity(square(j), 2 * n)).collect()
}

/// Returns the transform of the chirp's conjugate in `m` numbers, divided by `m`.
fn filter_of_chirp(n: usize, m: usize) -> Vec<Complex<f64>> {
    let mut filter = vec![Complex::ZERO; m];
    for (j, x) in chirp(n).into_iter().enumerate() {
        let x = x.conj() / m as f64;
        (filter[j], filter[(m - j) % m]) = (x, x);
    }
    transform(&filter)
}

/// Computes the discrete Fourier transform of a length with small factors.
fn transform(x: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let n = x.len();
    if n == 1 {
        return x.to_vec();
    }
    let p = least_factor(n as u32) as usize;
    let m = n / p;
    let parts: Vec<_> = (0..p).map(|j| transform(&x.iter().skip(j).step_by(p).copied().collect::<Vec<_>>())).collect();
    let term = |k: usize, j: usize| parts[j][k % m] * root_of_unity(j * k % n, n);
    (0..n).map(|k| (0..p).map(|j| term(k, j)).sum()).collect()
}
