//! Tests transforms of expressions, with expressions between them.

use kernel_primitives::algorithms::{FftChain, FftKind, FftPath, FftPlan};
use kernel_primitives::expr::{AxisSlice, ComplexExpr, ComplexOperand, ComplexTensor, Tensor, axis_index, cos};
use kernel_primitives::{Complex, Device, Error, ExpressionErrorKind, Result};

use crate::reference::{assert_near, inverse, numbers, transform, wide};
use crate::support::stream;

#[test]
fn sanitize_a_window_a_product_and_the_inverse_follow_each_other() -> Result<()> {
    let stream = stream()?;
    // There are lines that a block holds, lines with a large prime factor, lines along another axis than the last, and lines of one number.
    for (shape, axis) in [([5, 48], 1), ([3, 37], 1), ([16, 6], 0), ([30, 1], 0), ([1, 1], 1), ([4, 1], 1)] {
        let n = shape[axis];
        let plan = FftPlan::<f32>::new(&stream, &shape, &[axis])?.scaled(1.0, 1.0 / n as f32);
        let (x, response) = (numbers::<f32>(plan.items(), 1), numbers::<f32>(n, 2));
        let along = if axis == 1 { vec![n] } else { vec![n, 1] };
        let window: Vec<f32> = (0..n).map(|i| 1.0 / (1 + i) as f32).collect();
        let input = ComplexTensor::from_slice(&stream, shape, &x)?;
        let filter = ComplexTensor::from_slice(&stream, &along, &response)?;
        let weights = Tensor::from_slice(&stream, &along, &window)?;
        let out = ComplexTensor::zeros(&stream, shape)?;
        let windowed = input.complex().times(&weights);
        FftChain::new(&plan, windowed).forward().map(|spectrum| spectrum * &filter).inverse().assign(&out)?;

        let at = |i: usize| if axis == 1 { i % n } else { i / shape[1] };
        let windowed: Vec<_> = wide(&x).iter().enumerate().map(|(i, x)| x * f64::from(window[at(i)])).collect();
        let mut spectra = transform(&windowed, &shape, &[axis]);
        let response = wide(&response);
        spectra.iter_mut().enumerate().for_each(|(i, x)| *x *= response[at(i)]);
        let expected: Vec<_> = inverse(&spectra, &shape, &[axis]).iter().map(|x| x / n as f64).collect();
        // The chain has a product between two transforms.
        assert_near(&wide(&out.to_vec()?), &expected, 3.0 * f64::from(f32::EPSILON), &(shape, axis));
    }
    Ok(())
}

/// There are lines that a block holds, lines of several passes, and lines along another axis than the last.
#[test]
fn expressions_may_read_the_target() -> Result<()> {
    let stream = stream()?;
    for (shape, axis) in [([4, 20], 1), ([3, 41], 1), ([20, 4], 0), ([2, 1000], 1)] {
        let n = shape[axis] as f64;
        let plan = FftPlan::<f64>::new(&stream, &shape, &[axis])?.scaled(1.0, 1.0 / n);
        let x = numbers::<f64>(plan.items(), 3);
        let same = ComplexTensor::from_slice(&stream, shape, &x)?;
        FftChain::new(&plan, &same).forward().assign(&same)?;
        let spectra = transform(&x, &shape, &[axis]);
        assert_near(&same.to_vec()?, &spectra, f64::EPSILON, &(shape, axis));

        let same = ComplexTensor::from_slice(&stream, shape, &x)?;
        let chain = FftChain::new(&plan, &same).forward().map(|y| y * &same).inverse();
        chain.map(|y| y + &same).assign(&same)?;
        let products: Vec<_> = spectra.iter().zip(&x).map(|(y, x)| y * x).collect();
        let back = inverse(&products, &shape, &[axis]);
        let expected: Vec<_> = back.iter().zip(&x).map(|(y, x)| y / n + x).collect();
        assert_near(&same.to_vec()?, &expected, 3.0 * f64::EPSILON, &(shape, axis, "filtered"));
    }
    Ok(())
}

#[test]
fn lines_of_arrays_of_several_axes_have_indices() -> Result<()> {
    let stream = stream()?;
    for (shape, axis) in [(&[2, 3, 40][..], 2), (&[3, 40, 2], 1), (&[2, 40, 1], 1), (&[40], 0)] {
        let plan = FftPlan::<f32>::new(&stream, shape, &[axis])?;
        let x = numbers::<f32>(plan.items(), 4);
        let input = ComplexTensor::from_slice(&stream, shape, &x)?;
        let out = ComplexTensor::zeros(&stream, shape)?;
        let tapered = input.complex().times(cos(axis_index::<f32>(axis) * 0.03));
        FftChain::new(&plan, tapered).forward().map(|y| y.times(axis_index::<f32>(0) + 1.0)).assign(&out)?;

        let inner = |axis: usize| shape[axis + 1..].iter().product::<usize>();
        let index = |i: usize, axis: usize| (i / inner(axis) % shape[axis]) as f64;
        let tapered = wide(&x).into_iter().enumerate().map(|(i, x)| x * (0.03 * index(i, axis)).cos());
        let spectra = transform(&tapered.collect::<Vec<_>>(), shape, &[axis]);
        let expected: Vec<_> = spectra.into_iter().enumerate().map(|(i, x)| x * (index(i, 0) + 1.0)).collect();
        assert_near(&wide(&out.to_vec()?), &expected, 2.0 * f64::from(f32::EPSILON), &(shape, axis));
    }
    Ok(())
}

/// The operands are a line of a part of another tensor, backwards, and a number for each line.
#[test]
fn operands_may_be_views_that_broadcast() -> Result<()> {
    let (stream, shape) = (stream()?, [3, 50]);
    let plan = FftPlan::<f64>::new(&stream, &shape, &[1])?;
    let x = numbers::<f64>(150, 5);
    let input = ComplexTensor::from_slice(&stream, shape, &x)?;
    let back = input.im().slice((1, AxisSlice::from(..).by(-1)))?;
    let of_line = Tensor::from_slice(&stream, [3, 1], &[1.0f64, 2.0, 3.0])?;
    let out = ComplexTensor::zeros(&stream, shape)?;
    let start = ComplexExpr::new(input.re(), &back * &of_line);
    FftChain::new(&plan, start).inverse().map(ComplexExpr::conj).assign(&out)?;
    let start: Vec<_> = (0..150).map(|i| Complex::new(x[i].re, x[99 - i % 50].im * (1 + i / 50) as f64)).collect();
    let expected: Vec<_> = inverse(&start, &shape, &[1]).iter().map(Complex::conj).collect();
    assert_near(&out.to_vec()?, &expected, f64::EPSILON, &shape);
    Ok(())
}

#[test]
fn chains_may_have_any_number_of_transforms() -> Result<()> {
    let (stream, shape) = (stream()?, [4, 18]);
    let plan = FftPlan::<f64>::new(&stream, &shape, &[1])?.scaled(1.0, 1.0 / 18.0);
    let x = numbers::<f64>(72, 7);
    let (input, out) = (ComplexTensor::from_slice(&stream, shape, &x)?, ComplexTensor::zeros(&stream, shape)?);
    FftChain::new(&plan, &input).map(|x| &x + &x).assign(&out)?;
    assert_eq!(out.to_vec()?, x.iter().map(|x| x + x).collect::<Vec<_>>());
    let chain = FftChain::new(&plan, &input).forward().inverse().forward().inverse();
    let reason = chain.separate_reason(&out)?;
    assert_eq!(reason.as_deref(), Some("there are more than 2 transforms"));
    chain.assign(&out)?;
    assert_near(&out.to_vec()?, &x, 4.0 * f64::EPSILON, &shape);

    let plan = FftPlan::<f32>::new(&stream, &[0, 12], &[1])?;
    let nothing = ComplexTensor::<f32>::zeros(&stream, [0, 12])?;
    FftChain::new(&plan, &nothing).forward().inverse().assign(&nothing)?;
    assert!(nothing.to_vec()?.is_empty());
    Ok(())
}

#[test]
fn a_chain_says_whether_it_is_one_kernel() -> Result<()> {
    let stream = stream()?;
    for (shape, axis, reason) in [
        ([5, 48], 1, None),
        ([48, 1], 0, None),
        ([5, 37], 1, Some("the length of the axis has a large prime factor")),
        ([16, 6], 0, Some("the axis is not the last one")),
    ] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[axis])?;
        let x = ComplexTensor::zeros(&stream, shape)?;
        for chain in [FftChain::new(&plan, &x).forward(), FftChain::new(&plan, &x).forward().inverse()] {
            let found = chain.separate_reason(&x)?;
            match plan.path(FftKind::Forward) {
                FftPath::Generated { .. } => assert_eq!(found.as_deref(), reason, "{shape:?}"),
                FftPath::Compiled { reason, .. } => assert_eq!(found, Some(reason), "{shape:?}"),
                path => panic!("{path:?}"),
            }
        }
        let compiled = plan.compiled();
        let found = FftChain::new(&compiled, &x).forward().separate_reason(&x)?;
        assert_eq!(found.as_deref(), Some("the plan asks for compiled kernels"));
    }
    Ok(())
}

/// The test compares the kernels of a chain with the calls that do the same.
#[test]
fn a_chain_has_the_same_bits_on_every_run() -> Result<()> {
    let stream = stream()?;
    for shape in [[5, 48], [3, 37], [2, 1000]] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?;
        let x = ComplexTensor::from_slice(&stream, shape, &numbers::<f32>(plan.items(), 8))?;
        let run = |plan: &FftPlan<f32>| {
            let out = ComplexTensor::zeros(&stream, shape)?;
            FftChain::new(plan, &x).forward().map(|y| y * &x).inverse().assign(&out)?;
            out.to_vec()
        };
        let first = run(&plan)?;
        assert!((0..3).all(|_| run(&plan).is_ok_and(|found| found == first)), "{shape:?}");
        let separate = run(&plan.compiled())?;
        assert_near(&wide(&separate), &wide(&first), 3.0 * f64::from(f32::EPSILON), &shape);
    }
    Ok(())
}

/// The first call makes a plan's table for chains. Calls that are not a single kernel take memory. The graph keeps both.
#[test]
fn the_first_chain_of_a_plan_can_be_captured() -> Result<()> {
    let stream = stream()?;
    for shape in [[3, 60], [3, 101], [1, 1 << 15]] {
        let x = numbers::<f32>(shape[0] * shape[1], 6);
        let input = ComplexTensor::from_slice(&stream, shape, &x)?;
        let [out, expected] = [ComplexTensor::zeros(&stream, shape)?, ComplexTensor::zeros(&stream, shape)?];
        let [plan, other] = [FftPlan::<f32>::new(&stream, &shape, &[1])?, FftPlan::new(&stream, &shape, &[1])?];
        let run = |plan: &FftPlan<f32>, out: &ComplexTensor<f32>| {
            FftChain::new(plan, &input).forward().map(|y| y * &input).inverse().assign(out)
        };
        let graph = stream.capture(|captured| run(&plan, &out.on(captured)))?;
        drop(plan);
        graph.launch(&stream)?;
        graph.launch(&stream)?;
        run(&other, &expected)?;
        assert!(out.to_vec()? == expected.to_vec()?, "{shape:?}");
    }
    Ok(())
}

#[test]
fn real_functions_of_results_are_assigned() -> Result<()> {
    let stream = stream()?;
    let shape = [4, 20];
    let plan = FftPlan::<f64>::new(&stream, &shape, &[1])?;
    let x = numbers::<f64>(plan.items(), 3);
    let (input, powers) = (ComplexTensor::from_slice(&stream, shape, &x)?, Tensor::<f64>::zeros(&stream, shape)?);
    FftChain::new(&plan, &input).forward().assign_by(&powers, ComplexExpr::norm_squared)?;
    let real = |x: f64| Complex::new(x, 0.0);
    let found: Vec<_> = powers.to_vec()?.into_iter().map(real).collect();
    let expected: Vec<_> = transform(&x, &shape, &[1]).iter().map(|x| real(x.norm_sqr())).collect();
    // The square of a number has twice its relative error.
    assert_near(&found, &expected, 2.0 * f64::EPSILON, &shape);
    Ok(())
}

#[test]
fn errors_say_what_does_not_fit() -> Result<()> {
    let stream = stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[4, 8], &[1])?;
    let [x, short] = [ComplexTensor::<f32>::zeros(&stream, [4, 8])?, ComplexTensor::zeros(&stream, 8)?];
    let Err(Error::Fft { call, reason }) = FftChain::new(&plan, &x).forward().assign(&short) else { panic!("a shape") };
    assert_eq!((call, &*reason), ("FftChain::assign", "the target has the shape [8], and the plan [4, 8]"));
    let real = Tensor::<f32>::zeros(&stream, 8)?;
    let errors = [
        (FftChain::new(&plan, &x).forward().assign_by(&real, |y| y.re), "FftChain::assign_by"),
        (FftChain::new(&plan, &x).forward().separate_reason(&short).map(|_| ()), "FftChain::separate_reason"),
    ];
    for (error, name) in errors {
        let Err(Error::Fft { call, .. }) = error else { panic!("{name}") };
        assert_eq!(call, name);
    }

    let wrong = ComplexTensor::<f32>::zeros(&stream, [4, 7])?;
    let error = FftChain::new(&plan, &wrong).forward().assign(&x);
    assert!(matches!(error, Err(Error::Expression(_))), "{error:?}");

    // These are elements of the target at other places.
    let back = x.re().slice((.., AxisSlice::from(..).by(-1)))?;
    let error = FftChain::new(&plan, ComplexExpr::real(&back)).forward().assign(&x);
    let kind = |error: Result<()>| match error {
        Err(Error::Expression(error)) => error.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(error), ExpressionErrorKind::Overlap);

    let mut kept = None;
    let chain = FftChain::new(&plan, &x).forward().map(|y| {
        kept = Some(y.clone());
        y
    });
    let out = Tensor::<f32>::zeros(&stream, [4, 8])?;
    let re = kept.clone().expect("a spectrum").re;
    assert_eq!(kind(out.assign(re)), ExpressionErrorKind::BadTransform);
    let error = chain.inverse().map(|y| y + kept.expect("a spectrum")).assign(&x);
    let Err(Error::Fft { reason, .. }) = error else { panic!("a number of an earlier call") };
    assert_eq!(reason, "a function uses a number from before a later transform: each has that which it gets alone");

    // All emulators are one device.
    if stream.device().is_gpu() {
        let plan = FftPlan::<f32>::new(&Device::emulator().stream()?, &[4, 8], &[1])?;
        let error = FftChain::new(&plan, &x).forward().assign(&x).expect_err("the plan is of another device");
        assert!(matches!(&error, Error::WrongDevice { argument, .. } if argument == "`plan`"), "{error}");
    }
    Ok(())
}
