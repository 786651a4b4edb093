//! Tests of chains: a machine for PTX runs their kernels, and the results are compared with separate calls on the emulator.

use std::ops::Range;
use std::panic::Location;

use ptx_machine::Machine;

use super::super::generated::launch::{WrittenLines, written_lines};
use super::*;
use crate::expr::{AxisSlice, Functions, axis_index, element_index, gather, scalar, select};
use crate::{Device, Stream};

fn stream() -> Stream {
    Device::emulator().stream().expect("a stream of the emulator")
}

trait Float: InPlace + Floating {
    const BOUND: f64;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
}
impl Float for f32 {
    const BOUND: f64 = 2e-6;
    fn of(x: f64) -> Self {
        x as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
}
impl Float for f64 {
    const BOUND: f64 = 1e-13;
    fn of(x: f64) -> Self {
        x
    }
    fn wide(self) -> f64 {
        self
    }
}

/// Returns numbers without a pattern.
fn some<T: Float>(len: usize, seed: u64) -> Vec<T> {
    let mut state = 2 * seed + 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        T::of((state >> 40) as f64 / f64::from(1 << 23) - 1.0)
    };
    (0..len).map(|_| next()).collect()
}

fn complex<T: Float>(stream: &Stream, shape: &[usize], seed: u64) -> Result<ComplexTensor<T>> {
    let parts: Vec<T> = some(2 * shape.iter().product::<usize>(), seed);
    let numbers: Vec<_> = parts.chunks(2).map(|pair| Complex::new(pair[0], pair[1])).collect();
    ComplexTensor::from_slice(stream, shape, &numbers)
}

/// Returns the text of a chain's kernel. The machine runs it into the targets.
#[track_caller]
fn run_kernel<T: Float>(chain: &FftChain<'_, T>, targets: &[&Arc<View>], roots: &[Arc<Node>]) -> Result<String> {
    let (shape, lowered) = chain.checked("FftChain::assign", Location::caller(), targets, roots)?;
    let scales: Vec<T> = chain.links.iter().map(|link| chain.plan.scale(link.kind)).collect();
    let length = shape[chain.plan.axes()[0]];
    let extents = [shape.elements().expect("few") / length, length].map(|extent| extent as u32);
    let kernel = written_lines(extents, &chain.lines(shape, targets, &lowered), &scales);
    let WrittenLines { mut text, blocks, threads, shared, roots, words } = kernel.expect("a kernel");
    if shared > 0 {
        text = text.replacen("\n{\n", &format!("\n{{\n    .shared .align 16 .b8 numbers[{shared}];\n"), 1);
    }
    let mut numbers: Vec<_> = roots.iter().map(|x| Complex::new(T::of(x.re), T::of(x.im))).collect();
    numbers.push(Complex::new(T::of(1.0), T::of(0.0)));
    let table = ComplexTensor::from_slice(&targets[0].stream, numbers.len(), &numbers)?;
    let bytes_of = |view: &View| -> Range<u64> {
        let start = view.storage.address();
        start..start + view.storage.len() as u64
    };
    let table = bytes_of(&table.re().view);
    let words: Vec<u64> = [table.start].into_iter().chain(words).chain([0]).collect();
    let reads: Vec<_> = lowered.inputs.iter().map(|view| bytes_of(view)).chain([table]).collect();
    let writes: Vec<_> = targets.iter().map(|view| bytes_of(view)).collect();
    // SAFETY: the memory is that of tensors of this thread, which are alive.
    unsafe { Machine::new(&text).run(blocks, threads, &words, &reads, &writes) };
    Ok(text)
}

/// Compares the kernel of a chain with separate calls.
#[track_caller]
fn check<'p, T: Float>(shape: &[usize], chain: impl Fn() -> FftChain<'p, T>) -> Result<String> {
    let (chain, separate) = (chain(), chain());
    let stream = stream_of(chain.plan);
    let (found, expected) = (ComplexTensor::<T>::zeros(&stream, shape)?, ComplexTensor::zeros(&stream, shape)?);
    let roots = [chain.value.re.node.clone(), chain.value.im.node.clone()];
    let text = run_kernel(&chain, &[&found.re().view, &found.im().view], &roots)?;
    separate.assign(&expected)?;
    let wide = |x: &Complex<T>| Complex::new(x.re.wide(), x.im.wide());
    let (found, expected) = (found.to_vec()?, expected.to_vec()?);
    let largest = expected.iter().map(|x| wide(x).l1_norm()).fold(0.0, f64::max);
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let error = (wide(found) - wide(expected)).l1_norm();
        assert!(error <= largest * T::BOUND, "{i}: {found:?} for {expected:?}: {shape:?}");
    }
    Ok(text)
}

fn stream_of<T: Float>(plan: &FftPlan<T>) -> Stream {
    plan.table.device().stream().expect("a stream of the emulator")
}

/// Returns why no kernel makes a chain over lines of `n` numbers.
#[track_caller]
fn refusal(chain: &FftChain<'_, f32>, out: &ComplexTensor<f32>, [count, length]: [u32; 2]) -> Result<String> {
    let targets = [&out.re().view, &out.im().view];
    let roots = [chain.value.re.node.clone(), chain.value.im.node.clone()];
    let (shape, lowered) = chain.checked("FftChain::separate_reason", Location::caller(), &targets, &roots)?;
    let kernel = written_lines::<f32>([count, length], &chain.lines(shape, &targets, &lowered), &[1.0]);
    Ok(kernel.err().expect("there is no kernel"))
}

/// Returns the text of a chain of a window, the transform, a product with a spectrum, and the inverse transform.
fn filtered<T: Float>(shape: &[usize]) -> Result<String> {
    let (stream, n) = (stream(), shape[shape.len() - 1]);
    let plan = FftPlan::<T>::new(&stream, shape, &[shape.len() - 1])?.scaled(T::of(1.0), T::of(1.0 / n as f64));
    let (x, response) = (complex::<T>(&stream, shape, 1)?, complex::<T>(&stream, &[n], 2)?);
    let window = Tensor::from_slice(&stream, n, &some::<T>(n, 3))?;
    check(shape, || {
        let windowed = x.complex().times(&window);
        FftChain::new(&plan, windowed).forward().map(|spectrum| spectrum * &response).inverse()
    })
}

#[test]
fn a_window_a_product_and_the_inverse_are_one_kernel() -> Result<()> {
    // The lines have one butterfly, or take a part of a warp, or several warps. Some lines of a block do not exist.
    for shape in [&[5, 4][..], &[3, 8], &[7, 12], &[5, 60], &[3, 128], &[2, 3, 100], &[3, 360], &[2, 1024], &[1, 4096]]
    {
        filtered::<f32>(shape)?;
    }
    for shape in [&[5, 4][..], &[7, 12], &[3, 343], &[2, 1024]] {
        filtered::<f64>(shape)?;
    }
    Ok(())
}

#[test]
fn parts_of_a_number_are_accessed_at_once() -> Result<()> {
    let text = filtered::<f32>(&[3, 64])?;
    let count = |what: &str| text.matches(what).count();
    // The input, the response and the output are accessed by pairs, and the window by itself.
    assert_eq!(count(" ld.global.v2.f32"), 2 * count(" st.global.v2.f32"), "{text}");
    assert_eq!(count(" ld.global.f32"), count(" st.global.v2.f32"), "{text}");
    assert_eq!(count(" st.global.f32"), 0, "{text}");
    Ok(())
}

#[test]
fn one_transform_may_have_computed_ends() -> Result<()> {
    let (stream, shape) = (stream(), [3, 48]);
    let plan = FftPlan::<f64>::new(&stream, &shape, &[1])?.scaled(0.25, 1.0);
    let (x, turned) = (complex::<f64>(&stream, &shape, 1)?, complex::<f64>(&stream, &shape, 2)?);
    let offset = Tensor::from_slice(&stream, [3, 1], &some::<f64>(3, 3))?;
    check(&shape, || {
        // These operands go backwards along lines, have one value for each line, or are a number.
        let back = turned.re().slice((.., AxisSlice::from(..).by(-1))).expect("a view");
        let sum = &x + ComplexExpr::new(back, &offset * 2.0);
        FftChain::new(&plan, sum).forward().map(|y| y.times(scalar(0.5)) + ComplexExpr::real(&offset))
    })?;
    check(&shape, || FftChain::new(&plan, &x).inverse())?;
    Ok(())
}

#[test]
fn indices_count_lines_and_elements() -> Result<()> {
    let (stream, shape) = (stream(), [4, 30]);
    let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?;
    let x = complex::<f32>(&stream, &shape, 1)?;
    check(&shape, || {
        let ramp = axis_index::<f32>(1) + axis_index::<f32>(0) * 100.0;
        FftChain::new(&plan, x.complex().times(ramp)).forward()
    })?;
    Ok(())
}

#[test]
fn a_target_may_be_what_is_transformed() -> Result<()> {
    let (stream, shape) = (stream(), [3, 64]);
    let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?;
    let (x, same) = (complex::<f32>(&stream, &shape, 1)?, complex::<f32>(&stream, &shape, 1)?);
    let chain = |x: &ComplexTensor<f32>| FftChain::new(&plan, x).forward().map(|y| y.conj()).inverse();
    let of_x = chain(&x);
    let roots = [of_x.value.re.node.clone(), of_x.value.im.node.clone()];
    run_kernel(&of_x, &[&x.re().view, &x.im().view], &roots)?;
    chain(&same).assign(&same)?;
    for (found, expected) in x.to_vec()?.iter().zip(same.to_vec()?) {
        assert!((found - expected).l1_norm() < 1e-4, "{found} for {expected}");
    }
    Ok(())
}

#[test]
fn results_may_be_real() -> Result<()> {
    let (stream, shape) = (stream(), [3, 20]);
    let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?;
    let x = Tensor::from_slice(&stream, shape, &some::<f32>(60, 1))?;
    let [found, expected] = [Tensor::<f32>::zeros(&stream, shape)?, Tensor::zeros(&stream, shape)?];
    let chain = || FftChain::new(&plan, ComplexExpr::real(&x)).forward();
    let powers = chain();
    let root = powers.value.clone().norm_squared().node;
    run_kernel(&powers, &[&found.view], &[root])?;
    chain().assign_by(&expected, ComplexExpr::norm_squared)?;
    for (found, expected) in found.to_vec()?.iter().zip(expected.to_vec()?) {
        assert!((found - expected).abs() < 1e-3, "{found} for {expected}");
    }
    Ok(())
}

/// Lines go along the last axis of several elements, even if axes of one element come after it.
#[test]
fn axes_of_one_element_are_no_lines() -> Result<()> {
    let stream = stream();
    for (shape, axis) in [(&[48, 1][..], 0), (&[1, 48, 1], 1), (&[5, 1, 48, 1, 1], 2), (&[1, 48], 1)] {
        let plan = FftPlan::<f32>::new(&stream, shape, &[axis])?;
        let x = complex::<f32>(&stream, shape, 1)?;
        // These operands have elements that are not in a row, and one number.
        let apart = Tensor::from_slice(&stream, [48, 3], &some::<f32>(3 * 48, 2))?.slice((.., 1))?;
        let along = vec![1; shape.len() - axis - 1];
        let apart = apart.reshape([vec![48], along].concat())?;
        let one = Tensor::from_slice(&stream, [1, 1], &[0.75f32])?;
        check(shape, || {
            let ramp = axis_index::<f32>(axis) * &one + element_index::<f32>() * 0.01;
            FftChain::new(&plan, x.complex().times(ramp)).forward().map(|y| y.times(&apart)).inverse()
        })?;
    }
    Ok(())
}

#[test]
fn the_middle_and_the_end_may_read_the_target() -> Result<()> {
    let (stream, shape) = (stream(), [5, 60]);
    let plan = FftPlan::<f64>::new(&stream, &shape, &[1])?;
    let (x, same) = (complex::<f64>(&stream, &shape, 1)?, complex::<f64>(&stream, &shape, 1)?);
    let chain = |x: &ComplexTensor<f64>| {
        FftChain::new(&plan, x).forward().map(|y| y * x).inverse().map(|y| y.times(scalar(1.0 / 60.0)) - x)
    };
    let of_x = chain(&x);
    let roots = [of_x.value.re.node.clone(), of_x.value.im.node.clone()];
    run_kernel(&of_x, &[&x.re().view, &x.im().view], &roots)?;
    chain(&same).assign(&same)?;
    for (found, expected) in x.to_vec()?.iter().zip(same.to_vec()?) {
        assert!((found - expected).l1_norm() < 1e-12, "{found} for {expected}");
    }
    Ok(())
}

/// Tests elements of other types, values that are the same for all elements, and comparisons.
#[test]
fn operands_may_have_other_types() -> Result<()> {
    let (stream, shape) = (stream(), [4, 30]);
    let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?;
    let x = complex::<f32>(&stream, &shape, 1)?;
    let counts: Vec<u32> = (0..30).map(|i| i * 7 % 5).collect();
    let flags: Vec<bool> = (0..120).map(|i| i % 3 == 0).collect();
    let counts = Tensor::from_slice(&stream, 30, &counts)?;
    let flags = Tensor::from_slice(&stream, shape, &flags)?;
    let one = Tensor::from_slice(&stream, 1, &[0.5f32])?;
    check(&shape, || {
        let factor = select(&flags, counts.cast::<u64>().cast::<f32>(), (&one + 1.0) * scalar(3.0f32));
        FftChain::new(&plan, x.complex().times(factor)).forward()
    })?;
    Ok(())
}

#[test]
fn what_takes_several_calls_has_a_reason() -> Result<()> {
    let (stream, shape) = (stream(), [4, 3, 8]);
    let plan = FftPlan::<f32>::new(&stream, &shape, &[2])?;
    let out = ComplexTensor::<f32>::zeros(&stream, shape)?;
    let numbers = Tensor::<f32>::zeros(&stream, [3, 4, 8])?;
    // The planes and rows are in another order.
    let turned = numbers.permute(&[1, 0, 2])?;
    let chain = FftChain::new(&plan, ComplexExpr::real(&turned)).forward();
    assert_eq!(refusal(&chain, &out, [12, 8])?, "lines of an operand are not at one distance");
    let whole = axis_index::<i32>(2) / 3;
    let chain = FftChain::new(&plan, ComplexExpr::real(whole.cast::<f32>())).forward();
    assert_eq!(refusal(&chain, &out, [12, 8])?, "an expression divides integers");
    let places = axis_index::<u32>(2);
    let table = Tensor::<f32>::zeros(&stream, 8)?;
    let chain = FftChain::new(&plan, ComplexExpr::real(gather(&table, places))).forward();
    assert_eq!(refusal(&chain, &out, [12, 8])?, "an expression gathers");
    Ok(())
}
