//! Tests graphs of each transform of a line: their results for other numbers, and allocations.

use kernel_primitives::algorithms::{
    FftKind, FftPlan, Run, Workspace, fft, fft_by, fft_in_place, ifft, ifft_in_place, irfft, rfft,
};
use kernel_primitives::functor::{Mul, NormSquared, of_pair};
use kernel_primitives::input::{map, zip};
use kernel_primitives::{Buffer, Complex, Device, Result, Stream};

use crate::reference::{assert_near, conjugates, numbers, results, some_places, wide};
use crate::support::stream;
use crate::transforms::with_little_memory;

/// The numbers of a line.
struct Numbers {
    complex: Vec<Complex<f32>>,
    real: Vec<f32>,
    window: Vec<f32>,
    /// The half spectrum of a real line.
    half: Vec<Complex<f32>>,
}

impl Numbers {
    fn new(n: usize, seed: u64) -> Self {
        let real = |seed| numbers::<f32>(n, seed).into_iter().map(|x| x.re).collect();
        let mut half = numbers::<f32>(n / 2 + 1, seed + 1);
        assert!(n.is_multiple_of(2));
        (half[0].im, half[n / 2].im) = (0.0, 0.0);
        Self { complex: numbers(n, seed), real: real(seed + 2), window: real(seed + 3), half }
    }

    /// Returns the whole spectrum of the half.
    fn spectrum(&self) -> Vec<Complex<f64>> {
        let (n, half) = (self.complex.len(), wide(&self.half));
        (0..n).map(|k| if k <= n / 2 { half[k] } else { half[n - k].conj() }).collect()
    }

    /// Returns the real line times the window.
    fn windowed(&self) -> Vec<Complex<f64>> {
        self.real.iter().zip(&self.window).map(|(x, w)| Complex::new(f64::from(x * w), 0.0)).collect()
    }
}

/// A line and its results in buffers.
struct Line {
    plan: FftPlan<f32>,
    complex: Buffer<Complex<f32>>,
    real: Buffer<f32>,
    window: Buffer<f32>,
    half: Buffer<Complex<f32>>,
    /// Complex results. Transforms in place find the line here.
    out: Buffer<Complex<f32>>,
    half_out: Buffer<Complex<f32>>,
    real_out: Buffer<f32>,
    powers: Buffer<f32>,
}

impl Line {
    fn new(stream: &Stream, n: usize) -> Result<Self> {
        let plan = FftPlan::<f32>::new(stream, &[n], &[0])?;
        Ok(Self {
            complex: stream.buffer_zeroed(n)?,
            real: stream.buffer_zeroed(n)?,
            window: stream.buffer_zeroed(n)?,
            half: stream.buffer_zeroed(plan.half_items())?,
            out: stream.buffer_zeroed(n)?,
            half_out: stream.buffer_zeroed(plan.half_items())?,
            real_out: stream.buffer_zeroed(n)?,
            powers: stream.buffer_zeroed(plan.half_items())?,
            plan,
        })
    }

    /// Sets other numbers, and clears the results.
    fn set(&mut self, numbers: &Numbers) -> Result<()> {
        self.complex.copy_from(&numbers.complex)?;
        self.real.copy_from(&numbers.real)?;
        self.window.copy_from(&numbers.window)?;
        self.half.copy_from(&numbers.half)?;
        self.out.copy_from(&numbers.complex)?;
        self.half_out.copy_from(&vec![Complex::ZERO; numbers.half.len()])?;
        self.real_out.copy_from(&vec![0.0; numbers.real.len()])?;
        self.powers.copy_from(&vec![0.0; numbers.half.len()])
    }
}

/// A transform: its call, its results in buffers, and the expected results at places.
struct Transform {
    name: &'static str,
    call: fn(Run<'_>, &mut Line) -> Result<()>,
    found: fn(&Line) -> Result<Vec<Complex<f64>>>,
    expected: fn(&Numbers, &[usize]) -> Vec<Complex<f64>>,
}

fn reals(x: &Buffer<f32>) -> Result<Vec<Complex<f64>>> {
    Ok(x.to_vec()?.into_iter().map(|x| Complex::new(f64::from(x), 0.0)).collect())
}

fn forward(x: &Numbers, places: &[usize]) -> Vec<Complex<f64>> {
    results(&wide(&x.complex), places)
}

fn inverse(x: &Numbers, places: &[usize]) -> Vec<Complex<f64>> {
    conjugates(&results(&conjugates(&wide(&x.complex)), places))
}

fn complex_results(line: &Line) -> Result<Vec<Complex<f64>>> {
    Ok(wide(&line.out.to_vec()?))
}

const ALL: [Transform; 7] = [
    Transform {
        name: "fft",
        call: |run, line| fft(run, &line.plan, &line.complex, &mut line.out),
        found: complex_results,
        expected: forward,
    },
    Transform {
        name: "ifft",
        call: |run, line| ifft(run, &line.plan, &line.complex, &mut line.out),
        found: complex_results,
        expected: inverse,
    },
    Transform {
        name: "fft_in_place",
        call: |run, line| fft_in_place(run, &line.plan, &mut line.out),
        found: complex_results,
        expected: forward,
    },
    Transform {
        name: "ifft_in_place",
        call: |run, line| ifft_in_place(run, &line.plan, &mut line.out),
        found: complex_results,
        expected: inverse,
    },
    Transform {
        name: "rfft",
        call: |run, line| rfft(run, &line.plan, &line.real, &mut line.half_out),
        found: |line| Ok(wide(&line.half_out.to_vec()?)),
        expected: |x, places| {
            let line: Vec<_> = x.real.iter().map(|&x| Complex::new(f64::from(x), 0.0)).collect();
            results(&line, places)
        },
    },
    Transform {
        name: "irfft",
        call: |run, line| irfft(run, &line.plan, &line.half, &mut line.real_out),
        found: |line| reals(&line.real_out),
        expected: |x, places| conjugates(&results(&conjugates(&x.spectrum()), places)),
    },
    Transform {
        name: "fft_by",
        call: |run, line| {
            let windowed = map(zip(&line.real, &line.window), of_pair(Mul));
            fft_by(run, &line.plan, FftKind::RealForward, windowed, NormSquared, &mut line.powers)
        },
        found: |line| reals(&line.powers),
        expected: |x, places| {
            let powers = results(&x.windowed(), places).into_iter().map(|x| Complex::new(x.norm_sqr(), 0.0));
            powers.collect()
        },
    },
];

impl Transform {
    /// Checks the results of these numbers at some places.
    fn check(&self, line: &Line, numbers: &Numbers, what: &str) -> Result<()> {
        let found = (self.found)(line)?;
        let places = some_places(found.len());
        let some: Vec<_> = places.iter().map(|&k| found[k]).collect();
        // The square of a number has twice its relative error.
        let epsilon = f64::from(f32::EPSILON) * if self.name == "fft_by" { 2.0 } else { 1.0 };
        assert_near(&some, &(self.expected)(numbers, &places), epsilon, &(self.name, line.plan.items(), what));
        Ok(())
    }

    /// Checks a call, and then its graph, which is launched for other numbers. The capture allocates nothing. Without a workspace, the call
    /// allocates nothing either. Returns the number of launches.
    fn replay(&self, stream: &Stream, n: usize, mut workspace: Option<Workspace>) -> Result<usize> {
        let numbers = [1, 11].map(|seed| Numbers::new(n, seed));
        let mut line = Line::new(stream, n)?;
        line.set(&numbers[0])?;
        let has_workspace = workspace.is_some();
        let mut call = |stream: &Stream, line: &mut Line| match &mut workspace {
            Some(workspace) => (self.call)(Run::on(stream).with(workspace), line),
            None => (self.call)(Run::on(stream), line),
        };
        // A GPU counts what other tests allocate, too.
        let is_counted = !stream.device().is_gpu();
        let before = stream.device().counters();
        call(stream, &mut line)?;
        let of_call = stream.device().counters().since(before).allocations;
        assert!(has_workspace || !is_counted || of_call == 0, "{}: a call allocates {of_call} times", self.name);
        self.check(&line, &numbers[0], "a call")?;

        let before = stream.device().counters();
        let graph = stream.capture(|stream| call(stream, &mut line))?;
        let of_capture = stream.device().counters().since(before).allocations;
        assert!(!is_counted || of_capture == 0, "{}: the capture allocates {of_capture} times", self.name);
        line.set(&numbers[1])?;
        graph.launch(stream)?;
        self.check(&line, &numbers[1], "a graph")?;
        Ok(graph.launches())
    }
}

#[test]
fn a_transform_of_one_pass_needs_no_workspace() -> Result<()> {
    let stream = Device::emulator().stream()?;
    for transform in ALL {
        assert_eq!(transform.replay(&stream, 900, None)?, 1, "{}", transform.name);
    }
    Ok(())
}

/// A kernel has 16 bytes of the shared memory for itself. The line takes two passes. A line of real pairs takes one, unless blocks have 64
/// KiB.
#[test]
fn a_long_line_is_captured_with_the_shared_memory_of_any_architecture() -> Result<()> {
    for kib in [64, 99, 227] {
        let stream = with_little_memory((kib << 10) - 16)?;
        for transform in ALL {
            let launches = transform.replay(&stream, 20_160, Some(Workspace::new()))?;
            let is_real = ["rfft", "irfft", "fft_by"].contains(&transform.name);
            assert!(launches > 1 || is_real && kib > 64, "{} with {kib} KiB: {launches} launches", transform.name);
        }
    }
    let stream = stream()?;
    if stream.device().is_gpu() {
        for transform in ALL {
            transform.replay(&stream, 20_160, Some(Workspace::new()))?;
        }
    }
    Ok(())
}
