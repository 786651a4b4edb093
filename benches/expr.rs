//! Benchmark of expressions on the CPU: `b + c * d + sin(e) * f + 10`, against `ndarray`'s `Zip` with rayon.
//!
//! ```text
//! cargo bench --bench expr
//! ```
//!
//! Medians over the rounds, in billions of elements a second, and how many times as long the expression takes.

use std::time::Instant;

use kernel_primitives::expr::{Tensor, sin};
use kernel_primitives::{Device, Result, Stream};
use ndarray::{ArrayView1, ArrayViewMut1, Zip};

/// Seconds of the median rounds of two computations that take turns, so that what else the machine does meets both.
fn medians(rounds: usize, mut first: impl FnMut(), mut second: impl FnMut()) -> (f64, f64) {
    let time = |body: &mut dyn FnMut()| {
        let start = Instant::now();
        body();
        start.elapsed().as_secs_f64()
    };
    first();
    second();
    let (mut a, mut b): (Vec<f64>, Vec<f64>) = (0..rounds).map(|_| (time(&mut first), time(&mut second))).unzip();
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    (a[rounds / 2], b[rounds / 2])
}

macro_rules! compare {
    ($name:ident $t:ident) => {
        fn $name(stream: &Stream, len: usize) -> Result<()> {
            let data = |k: usize| (0..len).map(|i| (i * (k + 3) % 1017) as $t * 0.01 - 5.0).collect::<Vec<_>>();
            let rounds = (1 << 27) / len.max(1 << 20);
            let (mut a, b, c, d, e, f) = (data(0), data(1), data(2), data(3), data(4), data(5));
            let make = |k| Tensor::from_slice(stream, len, &data(k));
            let tensors = (make(0)?, make(1)?, make(2)?, make(3)?, make(4)?, make(5)?);
            let (zip, expression) = medians(
                rounds,
                || {
                    let [b, c, d, e, f] = [&b, &c, &d, &e, &f].map(ArrayView1::from);
                    Zip::from(ArrayViewMut1::from(&mut a))
                        .and(b)
                        .and(c)
                        .and(d)
                        .and(e)
                        .and(f)
                        .par_for_each(|a, &b, &c, &d, &e, &f| *a = b + c * d + e.sin() * f + 10.0);
                },
                || {
                    let (a, b, c, d, e, f) = &tensors;
                    a.assign(b + c * d + sin(e) * f + 10.0).expect("an assignment");
                },
            );
            assert_eq!(tensors.0.to_vec()?, a);
            let rate = |seconds: f64| len as f64 / seconds * 1e-9;
            println!(
                "{:4} 2^{:<2} | ndarray {:7.3} | expression {:7.3} | {:5.2} times as long",
                stringify!($t),
                len.ilog2(),
                rate(zip),
                rate(expression),
                expression / zip
            );
            Ok(())
        }
    };
}
compare!(compare_f32 f32);
compare!(compare_f64 f64);

fn main() -> Result<()> {
    let stream = Device::emulator().stream()?;
    for len in [1 << 16, 1 << 20, 1 << 24] {
        compare_f32(&stream, len)?;
        compare_f64(&stream, len)?;
    }
    Ok(())
}
