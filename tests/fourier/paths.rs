//! Tests generated and compiled kernels: which of them a plan takes, and that both give the same results. The emulator has only compiled
//! kernels, which are then compared with themselves.

use std::process::Command;

use kernel_primitives::algorithms::{FftKind, FftPath, FftPlan, Run, Workspace, fft, fft_in_place, ifft, irfft, rfft};
use kernel_primitives::functor::Add;
use kernel_primitives::kernels::map_binary;
use kernel_primitives::{Complex, ConvertTo, Device, Result, Stream};

use crate::reference::numbers;
use crate::support::stream;
use crate::transforms::Calls;

const KINDS: [FftKind; 4] = [FftKind::Forward, FftKind::Inverse, FftKind::RealForward, FftKind::RealInverse];

#[test]
fn a_plan_tells_which_kernels_it_takes() -> Result<()> {
    let stream = stream()?;
    for (shape, axes) in
        [(&[64, 1000][..], &[1][..]), (&[5, 1009], &[1]), (&[20, 30, 40], &[0, 1, 2]), (&[7, 250], &[1])]
    {
        let plan = FftPlan::<f32>::new(&stream, shape, axes)?;
        for kind in KINDS {
            let path = plan.path(kind);
            let is_odd = shape == [5, 1009] && matches!(kind, FftKind::RealForward | FftKind::RealInverse);
            match &path {
                FftPath::Generated { launches } => {
                    assert!(stream.device().is_gpu() && *launches >= axes.len() && !is_odd)
                }
                FftPath::Compiled { reason, .. } if is_odd && stream.device().is_gpu() => {
                    assert!(reason.contains("axis 1"), "{reason}");
                }
                FftPath::Compiled { reason, .. } => {
                    assert!(!stream.device().is_gpu() && reason.contains("emulator"), "{shape:?}: {path:?}");
                }
                _ => unreachable!("{path:?}"),
            }
        }
        assert!(matches!(plan.compiled().path(FftKind::Forward), FftPath::Compiled { .. }));
    }
    Ok(())
}

/// Returns the distance of two arrays, divided by the length of one.
fn distance<T: ConvertTo<f64> + Copy>(a: &[Complex<T>], b: &[Complex<T>]) -> f64 {
    let parts = |x: &Complex<T>| -> [f64; 2] { [x.re.convert(), x.im.convert()] };
    let (mut difference, mut all) = (0.0, 0.0);
    for (a, b) in a.iter().zip(b).flat_map(|(a, b)| std::iter::zip(parts(a), parts(b))) {
        (difference, all) = (difference + (a - b) * (a - b), all + b * b);
    }
    (difference / all).sqrt()
}

#[track_caller]
pub fn assert_same<T: Calls>(found: &[Complex<T>], expected: &[Complex<T>], what: &dyn std::fmt::Debug) {
    let (distance, epsilon) = (distance(found, expected), ConvertTo::<f64>::convert(T::EPSILON));
    assert!(distance < 8.0 * epsilon, "{distance:e}: {what:?}");
    assert_eq!(found.len(), expected.len());
}

/// Compares all kinds of transforms of an array by both kinds of kernels.
fn compare<T: Calls>(stream: &Stream, shape: &[usize], axes: &[usize]) -> Result<()> {
    let plans = [FftPlan::<T>::new(stream, shape, axes)?, FftPlan::<T>::new(stream, shape, axes)?.compiled()];
    let x = numbers::<T>(plans[0].items(), 7);
    let input = stream.buffer_from(&x)?;
    let mut results = Vec::new();
    for plan in &plans {
        let (mut forward, mut backward) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
        T::forward(stream, plan, &input, &mut forward)?;
        T::backward(stream, plan, &forward, &mut backward)?;
        let mut data = stream.buffer_from(&x)?;
        T::replace(stream, plan, &mut data, true)?;
        results.push([forward.to_vec()?, backward.to_vec()?, data.to_vec()?]);
    }
    for (found, expected) in results[0].iter().zip(&results[1]) {
        assert_same(found, expected, &(shape, axes));
    }
    Ok(())
}

/// Works as [`compare`], for real arrays.
fn compare_real(stream: &Stream, shape: &[usize], axes: &[usize]) -> Result<()> {
    let plans = [FftPlan::<f32>::new(stream, shape, axes)?, FftPlan::<f32>::new(stream, shape, axes)?.compiled()];
    let x: Vec<f32> = numbers::<f32>(plans[0].items(), 8).into_iter().map(|x| x.re).collect();
    let input = stream.buffer_from(&x)?;
    let mut results = Vec::new();
    for plan in &plans {
        let mut half = stream.buffer_zeroed(plan.half_items())?;
        rfft(stream, plan, &input, &mut half)?;
        let mut back = stream.buffer_zeroed::<f32>(plan.items())?;
        irfft(stream, plan, &half, &mut back)?;
        let back = back.to_vec()?.into_iter().map(Complex::from).collect::<Vec<_>>();
        results.push([half.to_vec()?, back]);
    }
    for (found, expected) in results[0].iter().zip(&results[1]) {
        assert_same(found, expected, &(shape, axes, "real"));
    }
    Ok(())
}

#[test]
fn both_paths_give_the_same() -> Result<()> {
    let stream = stream()?;
    for (shape, axes) in [(&[3, 120][..], &[1][..]), (&[4, 6, 8], &[0, 2]), (&[2, 37], &[1]), (&[12, 5], &[0])] {
        compare::<f32>(&stream, shape, axes)?;
        compare::<f64>(&stream, shape, axes)?;
    }
    for (shape, axes) in [(&[3, 120][..], &[1][..]), (&[4, 6, 8], &[0, 1, 2]), (&[2, 74], &[1]), (&[12, 5], &[0])] {
        compare_real(&stream, shape, axes)?;
    }
    if !stream.device().is_gpu() {
        return Ok(());
    }
    // There are one pass, several passes and fused passes, along rows, columns and planes.
    for (shape, axes) in [
        (&[500, 8192][..], &[1][..]),
        (&[70, 1 << 14], &[1]),
        (&[300, 1 << 16], &[1]),
        (&[24, 1 << 20], &[1]),
        (&[3, 1 << 21], &[1]),
        (&[1, 1 << 24], &[1]),
        (&[2, 1 << 24], &[1]),
        (&[1, 1 << 25], &[1]),
        (&[1, 1 << 26], &[1]),
        (&[3, 30_030], &[1]),
        (&[100, 1009], &[1]),
        (&[100, 2018], &[1]),
        (&[2048, 1000], &[0]),
        (&[1000, 100, 9], &[1]),
        (&[1 << 15, 40], &[0]),
        (&[128, 256, 256], &[0, 1, 2]),
        (&[200, 100, 60], &[0, 1, 2]),
        (&[32, 512, 512], &[1, 2]),
    ] {
        compare::<f32>(&stream, shape, axes)?;
        compare::<f64>(&stream, shape, axes)?;
    }
    for (shape, axes) in [
        (&[1000, 1024][..], &[1][..]),
        (&[100, 1000], &[1]),
        (&[100, 2 * 1009], &[1]),
        (&[3, 1 << 20], &[1]),
        (&[128, 256, 512], &[0, 1, 2]),
        (&[64, 100, 60], &[0, 1, 2]),
        (&[32, 1024, 1024], &[1, 2]),
    ] {
        compare_real(&stream, shape, axes)?;
    }
    Ok(())
}

/// Returns whether the library has compiled kernels for a device, so that its driver need not compile them.
fn has_machine_code(device: &Device) -> bool {
    let Some((major, minor)) = device.properties().compute_capability else { return false };
    let images = map_binary::<f32, f32, Add, 4>::info().images();
    images.iter().any(|(arch, _, code)| code.is_some() && arch / 10 == major && *arch <= 10 * major + minor)
}

#[test]
fn a_driver_without_a_compiler_runs_compiled_kernels() -> Result<()> {
    const CHILD: &str = "FOURIER_CHILD";
    let stream = stream()?;
    if std::env::var_os(CHILD).is_some() {
        let plan = FftPlan::<f32>::new(&stream, &[3, 60], &[1])?;
        let path = plan.path(FftKind::Forward);
        assert!(matches!(&path, FftPath::Compiled { reason, .. } if reason.contains("CUDA_ERROR")), "{path:?}");
        return compare::<f32>(&stream, &[3, 60], &[1]);
    }
    if !has_machine_code(stream.device()) {
        return Ok(());
    }
    // The driver reads its environment once. Kernels that it has compiled before count as compiled.
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "paths::a_driver_without_a_compiler_runs_compiled_kernels", "--nocapture"])
        .envs([(CHILD, "1"), ("CUDA_DISABLE_PTX_JIT", "1"), ("CUDA_CACHE_DISABLE", "1")])
        .output()
        .expect("this test runs again");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{}\n{said}\n{errors}", output.status);
    Ok(())
}

#[test]
fn several_threads_make_the_first_calls_of_a_plan() -> Result<()> {
    let stream = stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[50, 250], &[1])?;
    let x = numbers::<f32>(plan.items(), 5);
    let call = || -> Result<Vec<Complex<f32>>> {
        let stream = stream.device().stream()?;
        let (input, mut out) = (stream.buffer_from(&x)?, stream.buffer_zeroed(x.len())?);
        fft(&stream, &plan, &input, &mut out)?;
        out.to_vec()
    };
    let results = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(call));
        threads.map(|thread| thread.join().expect("a thread"))
    });
    for result in results {
        assert!(result? == call()?);
    }
    Ok(())
}

#[test]
fn the_first_call_of_a_plan_can_be_captured() -> Result<()> {
    let stream = stream()?;
    let [plan, other] =
        [FftPlan::<f32>::new(&stream, &[9, 350], &[1])?, FftPlan::<f32>::new(&stream, &[9, 350], &[1])?];
    let x = numbers::<f32>(plan.items(), 6);
    let input = stream.buffer_from(&x)?;
    let [mut out, mut expected] = [stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?];
    let graph = stream.capture(|stream| fft(stream, &plan, &input, &mut out))?;
    graph.launch(&stream)?;
    fft(&stream, &other, &input, &mut expected)?;
    assert!(out.to_vec()? == expected.to_vec()?);
    Ok(())
}

#[test]
fn compiled_kernels_replace_lines_without_memory() -> Result<()> {
    let stream = stream()?;
    for shape in [[64, 1024], [60, 1000]] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?.compiled();
        let mut data = stream.buffer_zeroed::<Complex<f32>>(plan.items())?;
        let mut workspace = Workspace::new();
        fft_in_place(Run::on(&stream).with(&mut workspace), &plan, &mut data)?;
        assert_eq!(workspace.capacity(), 0, "{shape:?}");
    }
    Ok(())
}

/// A plan's scale may change, and its kernels are captured like other kernels.
#[test]
fn generated_kernels_are_scaled_and_captured() -> Result<()> {
    let stream = stream()?;
    let plan = FftPlan::<f64>::new(&stream, &[6, 60, 4], &[1, 0])?;
    let x = numbers::<f64>(plan.items(), 3);
    let input = stream.buffer_from(&x)?;
    let mut plain = stream.buffer_zeroed(x.len())?;
    fft(&stream, &plan, &input, &mut plain)?;
    let plan = plan.scaled(0.5, 1.0 / 360.0);
    let (mut halved, mut same) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
    fft(&stream, &plan, &input, &mut halved)?;
    ifft(&stream, &plan, &plain, &mut same)?;
    let twice: Vec<_> = halved.to_vec()?.into_iter().map(|x| x * 2.0).collect();
    assert_same(&twice, &plain.to_vec()?, &"halved");
    assert_same(&same.to_vec()?, &x, &"back");

    let (mut data, mut workspace) = (stream.buffer_from(&x)?, Workspace::new());
    fft_in_place(Run::on(&stream).with(&mut workspace), &plan, &mut data)?;
    data.copy_from(&x)?;
    let graph = stream.capture(|stream| fft_in_place(Run::on(stream).with(&mut workspace), &plan, &mut data))?;
    graph.launch(&stream)?;
    assert_same(&data.to_vec()?, &halved.to_vec()?, &"captured");
    Ok(())
}
