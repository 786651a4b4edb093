//! Kernels in which a thread works with its own registers.

use kernel_primitives::functor::{Fill, Fold, Greater, LessThan, Select};
use kernel_primitives::prelude::*;
use kernel_primitives::thread::{
    NormalF32, NormalF64, Philox, UniformF32, UniformF64, compare_exchange_pairs, elementwise_random,
};

/// Writes the `i`th draw in the `i`th place: the random bits of a stream, and the numbers of each distribution from the
/// same draw.
#[kernel(equal_len(bits, uniform, uniform_double, normal, normal_double))]
pub fn random(
    cx: Block,
    seed: u64,
    stream: u64,
    mut bits: GlobalMut<[u32; 4]>,
    mut uniform: GlobalMut<[f32; 4]>,
    mut uniform_double: GlobalMut<[f64; 2]>,
    mut normal: GlobalMut<[f32; 4]>,
    mut normal_double: GlobalMut<[f64; 2]>,
) {
    for i in cx.items(bits.len()) {
        let start = Philox::new(seed, stream).skip(i.index() as u64);
        let random = || start;
        bits.set(i, random().draw());
        uniform.set(i, elementwise_random(&mut random(), UniformF32));
        uniform_double.set(i, elementwise_random(&mut random(), UniformF64));
        normal.set(i, elementwise_random(&mut random(), NormalF32));
        normal_double.set(i, elementwise_random(&mut random(), NormalF64));
    }
}

/// Takes three rows of four items. Writes into one array: the sums of rows, the sums of columns, all rows times a row,
/// and the first two rows sorted downwards by their first two items.
#[kernel(equal_len(x, out))]
pub fn rows(cx: Block, x: Global<[[i32; 4]; 3]>, mut out: GlobalMut<[i32; 32]>) {
    for i in cx.items(out.len()) {
        let items = x[i];
        let start = elementwise_constant::<_, 4>(Fill(100));
        let sums = thread_reduce_x([0; 3], &items, Add);
        let columns = thread_reduce_y(start, &items, Add);
        let cycled = cycle_binary(&start, &items, Mul);
        let (mut keys, mut values) = (items[0], items[1]);
        {
            let ([a, b, ..], [c, d, ..]) = (&mut keys, &mut values);
            compare_exchange_pairs(a, b, c, d, &Greater);
        }
        let mut all = [0; 32];
        let parts = [&sums[..], &columns, &cycled[0], &cycled[1], &cycled[2], &keys, &values];
        for (to, from) in all.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        all[31] = thread_reduce(1, &sums, Max);
        out.set(i, all);
    }
}

/// Divides by a divisor that may be zero.
#[kernel(equal_len(x, y, out))]
pub fn floor_divided(cx: Block, x: Global<i32>, y: Global<i32>, mut out: GlobalMut<i32>) {
    for i in cx.items(out.len()) {
        let [quotient] = elementwise_binary(&[x[i]], &[y[i]], kernel_primitives::functor::FloorDiv);
        out.set(i, quotient);
    }
}

/// Calls the elementwise primitives for rows of items. `[0]` has the larger items; the other results are by unary,
/// ternary, any and constant functions.
#[kernel(equal_len(x, y, out))]
pub fn of_rows(cx: Block, x: Global<[[f32; 3]; 2]>, y: Global<[[f32; 3]; 2]>, mut out: GlobalMut<[[[f32; 3]; 2]; 5]>) {
    for i in cx.items(out.len()) {
        let (x, y) = (x[i], y[i]);
        let less = elementwise_binary(&x, &y, Each(LessThan));
        out.set(
            i,
            [
                elementwise_binary(&x, &y, Each(Max)),
                elementwise_unary(&x, Each(|x: f32| x * 0.5)),
                elementwise_ternary(&less, &x, &y, Each(Select)),
                elementwise_any(&[x, y, x], Each(Fold(Add))),
                elementwise_constant(|| elementwise_constant(Fill(4.0))),
            ],
        );
    }
}

/// Numbers less than `end`. If the bits would favour some numbers, they are drawn again.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(transparent)]
pub struct Below {
    pub end: u32,
}

impl UnaryFn<&mut Philox> for Below {
    type Output = [u32; 2];
    #[inline(always)]
    fn apply(&self, random: &mut Philox) -> [u32; 2] {
        let whole = u32::MAX / self.end * self.end;
        loop {
            let [a, b, ..] = random.draw();
            if a < whole && b < whole {
                return [a % self.end, b % self.end];
            }
        }
    }
}

/// Writes three numbers less than an end for each thread.
#[kernel]
pub fn random_below(cx: Block, seed: u64, below: Below, mut out: GlobalMut<[u32; 3]>) {
    for i in cx.items(out.len()) {
        out.set(i, elementwise_random(&mut Philox::new(seed, i.index() as u64), below));
    }
}
