//! Expressions beside CUB's transformations with the same functor, a kernel written by hand, and PyTorch and CuPy, whose times come
//! from `benches/peers/torch_peers.py`.

use std::cell::Cell;
use std::ops::{Add, Mul, Sub};
use std::time::Instant;

use kernel_primitives::expr::{
    AxisSlice, Expr, Functions, Operand, PairFunctions, Prepared, Reductions, Tensor, axis_index, constant, dot,
    element_index, normal, normal_at, scalar, sin, uniform, uniform_at,
};
use kernel_primitives::functor;
use kernel_primitives::kernels::map_binary;
use kernel_primitives::{Device, Dims, Result, Stream};

use crate::harness::{Options, Report, compare, median};
use crate::peers::Peers;

struct Bench<'a> {
    stream: Stream,
    peers: Option<Peers>,
    report: &'a mut Report,
}

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let peers = options.peers.as_deref().map(Peers::open);
    let mut bench = Bench { stream: device.stream()?, peers, report };
    bench.operands(options.log2.min(28))?;
    bench.matrices()?;
    bench.lorenz()?;
    bench.host_time()
}

impl Bench<'_> {
    /// A row of what moves so many bytes, beside a function of some libraries on these addresses. `clear` leaves nothing of a result, and
    /// `agree` says whether what was computed last is right.
    fn row(
        &mut self,
        name: &str,
        bytes: usize,
        clear: impl Fn() -> Result<()>,
        mut ours: impl FnMut() -> Result<()>,
        peer: Option<(&str, usize, &[u64])>,
        agree: impl Fn() -> Result<bool>,
    ) -> Result<()> {
        let stream = self.stream.clone();
        let mut peers = Vec::new();
        if let (Some(library), Some((function, n, buffers))) = (&self.peers, peer) {
            for (prefix, ms, ratio) in [
                ("cub", "CUB ms", "ratio to CUB"),
                ("cuda", "CUDA ms", "ratio to CUDA"),
                ("thrust", "Thrust ms", "ratio to Thrust"),
            ] {
                let call = library.algorithm(prefix, function, &stream, n, buffers)?;
                peers.extend(call.map(|call| (ms, ratio, call)));
            }
        }
        clear()?;
        ours()?;
        if !agree()? {
            self.report.failure(format!("{name}, ours"));
            return Ok(());
        }
        let mut theirs: Vec<_> = peers
            .iter()
            .map(|(ms, _, call)| {
                move || {
                    assert_eq!(call(), 0, "{name}: {ms} failed");
                    Ok(())
                }
            })
            .collect();
        for (run, (ms, ..)) in theirs.iter_mut().zip(&peers) {
            clear()?;
            run()?;
            if !agree()? {
                self.report.failure(format!("{name}, the peer of {ms}"));
            }
        }
        let mut contenders: Vec<&mut dyn FnMut() -> Result<()>> = vec![&mut ours];
        contenders.extend(theirs.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>));
        let times = compare(&stream, &mut contenders)?;
        let mut values = vec![("ms", times[0]), ("GB/s", bytes as f64 / times[0] / 1e6)];
        for ((ms, ratio, _), time) in peers.iter().zip(&times[1..]) {
            values.extend([(*ms, *time), (*ratio, time / times[0])]);
        }
        self.report.row(name, &values);
        Ok(())
    }

    fn operands(&mut self, log2: u32) -> Result<()> {
        let (n, stream) = (1usize << log2, self.stream.clone());
        let buffer = || stream.buffer_uninit::<f32>(n);
        let mut addresses = Vec::new();
        let mut tensors = Vec::new();
        for seed in 0..9 {
            let buffer = buffer()?;
            addresses.push(buffer.address());
            let tensor = Tensor::from_buffer(&stream, n, buffer)?;
            tensor.assign(uniform::<f32>(seed) * 2.0 - 1.0 + if seed == 7 { 2.0 } else { 0.0 })?;
            tensors.push(tensor);
        }
        let [b, c, d, e, f, g, h, k, a] = &tensors[..] else { unreachable!("nine tensors") };
        // Three parts, by the CPU: the first elements, some in the middle, and the last ones.
        let part = n.min(1 << 16);
        let begins = [0, (n - part) / 2, n - part];
        let parts = |tensor: &Tensor<f32>| -> Result<Vec<f32>> {
            let part = |begin: usize| tensor.slice(begin as isize..(begin + part) as isize)?.to_vec();
            Ok(begins.map(part).into_iter().collect::<Result<Vec<_>>>()?.concat())
        };
        let inputs: Vec<Vec<f32>> = tensors.iter().map(parts).collect::<Result<_>>()?;
        let like = |expected: &dyn Fn(usize) -> f32| -> Result<bool> {
            let near = |(i, a): (usize, &f32)| (a - expected(i)).abs() <= 2e-6 * (1.0 + expected(i).abs());
            Ok(parts(a)?.iter().enumerate().all(near))
        };
        let x = |input: usize, i: usize| inputs[input][i];
        let clear = || a.fill(f32::NAN);
        let five = |i: usize| x(0, i) + x(1, i) * x(2, i) + x(3, i).sin() * x(4, i) + 10.0;
        let nine = |i: usize| five(i) - x(5, i) * x(6, i) / (x(7, i) + 1.0);

        let buffers = |count: usize| [&addresses[..count], &addresses[8..]].concat();
        self.row(
            &format!("expression, 2 operands, f32 2^{log2}"),
            12 * n,
            clear,
            || a.assign(b + c),
            Some(("expression_2", n, &buffers(2))),
            || like(&|i| x(0, i) + x(1, i)),
        )?;
        self.row(
            &format!("expression, 5 operands, f32 2^{log2}"),
            24 * n,
            clear,
            || a.assign(b + c * d + sin(e) * f + 10.0),
            Some(("expression_5", n, &buffers(5))),
            || like(&five),
        )?;
        self.row(
            &format!("expression, 9 operands, f32 2^{log2}"),
            36 * n,
            clear,
            || a.assign((b + c * d + sin(e) * f + 10.0) - g * h / (k + 1.0)),
            Some(("expression_9", n, &buffers(8))),
            || like(&nine),
        )?;
        let expected: f64 = b.to_vec()?.iter().zip(c.to_vec()?).map(|(&b, c)| f64::from(b) * f64::from(c)).sum();
        let total = stream.buffer_uninit::<f32>(1)?;
        let address = total.address();
        let total = Tensor::from_buffer(&stream, [], total)?;
        let product = dot(b, c);
        self.row(
            &format!("expression, sum of a * b, f32 2^{log2}"),
            8 * n,
            || total.fill(f32::NAN),
            || product.assign_to(&total),
            Some(("dot_f32", n, &[addresses[0], addresses[1], address])),
            || Ok((f64::from(total.item()?) - expected).abs() < 1e-4 * (n as f64).sqrt()),
        )?;
        // As on the CPU, whose numbers the tests compare with the published generator.
        let cpu = Device::emulator().stream()?;
        let parts_by_cpu = |numbers: &dyn Fn(Expr<u64>) -> Expr<f32>| -> Result<Vec<f32>> {
            let numbers_from = |begin: usize| -> Result<Vec<f32>> {
                let out = Tensor::<f32>::uninit(&cpu, part)?;
                out.assign(numbers(element_index::<u64>() + begin as u64))?;
                out.to_vec()
            };
            Ok(begins.map(numbers_from).into_iter().collect::<Result<Vec<_>>>()?.concat())
        };
        let uniforms = parts_by_cpu(&|index| uniform_at(scalar(5u64), index))?;
        let normals = parts_by_cpu(&|index| normal_at(scalar(5u64), index))?;
        self.row(
            &format!("expression, uniform, f32 2^{log2}"),
            4 * n,
            clear,
            || a.assign(uniform::<f32>(5)),
            None,
            || like(&|i| uniforms[i]),
        )?;
        self.row(
            &format!("expression, normal, f32 2^{log2}"),
            4 * n,
            clear,
            || a.assign(normal::<f32>(5)),
            None,
            || like(&|i| normals[i]),
        )
    }

    fn matrices(&mut self) -> Result<()> {
        const N: usize = 8192;
        let stream = self.stream.clone();
        // Small whole numbers: every result is exact.
        let m = Tensor::<f32>::uninit(&stream, [N, N])?;
        m.assign((axis_index::<u64>(0) * 7 + axis_index::<u64>(1) * 3).floor_rem(scalar(31u64)).cast::<f32>())?;
        let at = |i: usize, j: usize| ((i * 7 + j * 3) % 31) as f32;
        let row = Tensor::from_slice(&stream, N, &(0..N).map(|j| (j % 13) as f32).collect::<Vec<_>>())?;
        let column = row.reshape([N, 1])?;
        let out = Tensor::<f32>::zeros(&stream, [N, N])?;
        let clear = || out.fill(f32::NAN);
        let check = |expected: &dyn Fn(usize, usize) -> f32| -> Result<bool> {
            let rows = |begin: usize| -> Result<bool> {
                let part = out.slice((begin as isize..(begin + 100) as isize, ..))?.to_vec()?;
                Ok(part.iter().enumerate().all(|(i, &x)| x == expected(begin + i / N, i % N)))
            };
            Ok(rows(0)? && rows(N / 2)? && rows(N - 100)?)
        };
        let bytes = 4 * N * N;
        let named = |what: &str| format!("expression, {what}, f32 {N}x{N}");
        self.row(&named("transpose"), 2 * bytes, clear, || out.assign(m.t()), None, || check(&|i, j| at(j, i)))?;
        self.row(
            &named("m * transposed m"),
            2 * bytes,
            clear,
            || out.assign(&m * m.t()),
            None,
            || check(&|i, j| at(i, j) * at(j, i)),
        )?;
        self.row(
            &named("plus a row"),
            2 * bytes,
            clear,
            || out.assign(&m + &row),
            None,
            || check(&|i, j| at(i, j) + (j % 13) as f32),
        )?;
        self.row(
            &named("plus a column"),
            2 * bytes,
            clear,
            || out.assign(&m + &column),
            None,
            || check(&|i, j| at(i, j) + (i % 13) as f32),
        )?;
        let (half, even) = (out.slice((.., ..N as isize / 2))?, m.slice((.., AxisSlice::from(..).by(2)))?);
        self.row(
            &named("every second column times 2"),
            bytes,
            clear,
            || half.assign(&even * 2.0),
            None,
            || {
                let all = half.to_vec()?;
                Ok(all.iter().enumerate().all(|(i, &x)| x == 2.0 * at(i / (N / 2), i % (N / 2) * 2)))
            },
        )?;
        let sums = Tensor::<f32>::zeros(&stream, N)?;
        for (axis, what) in [(0, "sum of columns of m * m"), (1, "sum of rows of m * m")] {
            let reduction = (&m * &m).sum().axes(&[axis]);
            self.row(
                &named(what),
                bytes,
                || sums.fill(f32::NAN),
                || reduction.assign_to(&sums),
                None,
                || {
                    let expected = |i: usize| {
                        (0..N).map(|j| if axis == 0 { at(j, i) } else { at(i, j) }).map(|x| x * x).sum::<f32>()
                    };
                    Ok(sums.to_vec()?.iter().enumerate().all(|(i, &sum)| sum == expected(i)))
                },
            )?;
        }
        Ok(())
    }

    fn lorenz(&mut self) -> Result<()> {
        let stream = self.stream.clone();
        for log2 in [10, 12, 14, 16, 18, 20, 22, 23, 24] {
            let n = 1usize << log2;
            let mut addresses = Vec::new();
            let mut make = || {
                let buffer = stream.buffer_uninit::<f64>(n)?;
                addresses.push(buffer.address());
                Tensor::from_buffer(&stream, n, buffer)
            };
            let (r, state) = (make()?, [make()?, make()?, make()?]);
            r.assign(element_index::<f64>() * (49.9 / n as f64) + 0.1)?;
            let start = |value: f64| state.iter().try_for_each(|x| x.fill(value));
            start(10.0)?;
            // As nvcc contracts what it compiles.
            let next = step(&r.clone().expr(), state.clone().map(Operand::expr)).map(Expr::contract);
            let prepared = Prepared::new(state.iter().zip(&next).map(|(x, next)| x.to(next)))?;
            // Each run so far is a step of all of them. The first ones are looked at, some in the middle, and the last ones.
            let steps = Cell::new(0);
            let part = n.min(1000);
            let right_from = |begin: usize| -> Result<bool> {
                let part = |axis: &Tensor<f64>| axis.slice(begin as isize..(begin + part) as isize)?.to_vec();
                let found = state.iter().map(part).collect::<Result<Vec<_>>>()?;
                Ok((0..found[0].len()).all(|i| {
                    let r = (begin + i) as f64 * (49.9 / n as f64) + 0.1;
                    let expected = (0..steps.get()).fold([10.0; 3], |state, _| step(&r, state));
                    found.iter().zip(expected).all(|(axis, x)| (axis[i] - x).abs() < 1e-10 * x.abs())
                }))
            };
            let agree = || {
                steps.set(steps.get() + 1);
                Ok(right_from(0)? && right_from((n - part) / 2)? && right_from(n - part)?)
            };
            let name = format!("expression, Lorenz step of one kernel, f64 2^{log2}");
            // A step that is not made is seen by its result.
            let clear = || Ok(());
            self.row(&name, 56 * n, clear, || prepared.run(), Some(("lorenz", n, &addresses)), agree)?;
        }
        Ok(())
    }

    /// The host's time for an evaluation, and for the first one of a form, which makes and compiles its kernel.
    fn host_time(&mut self) -> Result<()> {
        let (stream, n) = (self.stream.clone(), 1024);
        let tensors: Vec<Tensor<f32>> = (0..6).map(|_| Tensor::zeros(&stream, n)).collect::<Result<_>>()?;
        let [a, b, c, d, e, f] = &tensors[..] else { unreachable!("six tensors") };
        let five = || b + c * d + sin(e) * f + 10.0;
        let prepared = Prepared::new([a.to(five())])?;
        let x = stream.buffer_zeroed::<f32>(n)?;
        let mut y = stream.buffer_zeroed::<f32>(n)?;
        let micros = |run: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
            let mut samples = Vec::new();
            for _ in 0..50 {
                stream.synchronize()?;
                let start = Instant::now();
                for _ in 0..50 {
                    run()?;
                }
                samples.push(start.elapsed().as_secs_f64() * 1e6 / 50.0);
            }
            Ok(median(samples))
        };
        let dims = Dims::new(1, 256);
        let launch = micros(&mut || {
            map_binary::<f32, f32, functor::Add, 4>::launch(&stream, dims, &x, &x, &mut y, functor::Add)
        })?;
        let two = micros(&mut || a.assign(b + c))?;
        let five_each = micros(&mut || a.assign(five()))?;
        let again = micros(&mut || prepared.run())?;
        let values = [
            ("µs of 2 operands", two),
            ("µs of 5 operands", five_each),
            ("µs prepared", again),
            ("µs of a launch", launch),
        ];
        self.report.row("expression, host time", &values);
        // Forms that nothing else has.
        let mut times = Vec::new();
        for i in 0..8 {
            let value = constant(i as f32 + 0.125);
            let start = Instant::now();
            a.assign(five() * value)?;
            stream.synchronize()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        self.report.row("expression, first evaluation of a form", &[("ms", median(times))]);
        Ok(())
    }
}

/// What the integrator calculates with.
trait Value: Clone + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Mul<f64, Output = Self> {}
impl Value for f64 {}
impl Value for Expr<f64> {}

/// A step of the Lorenz system by the fourth-order method of Runge and Kutta.
fn step<T: Value>(r: &T, state: [T; 3]) -> [T; 3] {
    const DT: f64 = 0.01;
    let system = |[x, y, z]: &[T; 3]| {
        let [x, y, z] = [x, y, z].map(|value| || value.clone());
        [(y() - x()) * 10.0, r.clone() * x() - y() - x() * z(), x() * y() - z() * (8.0 / 3.0)]
    };
    let along = |k: &[T; 3], h: f64| std::array::from_fn(|i| state[i].clone() + k[i].clone() * h);
    let a = system(&state);
    let b = system(&along(&a, DT / 2.0));
    let c = system(&along(&b, DT / 2.0));
    let d = system(&along(&c, DT));
    std::array::from_fn(|i| {
        let [a, b, c, d] = [&a[i], &b[i], &c[i], &d[i]].map(T::clone);
        state[i].clone() + (a + b * 2.0 + c * 2.0 + d) * (DT / 6.0)
    })
}
