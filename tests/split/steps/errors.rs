//! Tests steps that are not possible. The error says why.

use kernel_primitives::expr::*;
use kernel_primitives::{Devices, Error, ExpressionErrorKind, Result, Split};

use super::{bits, numbers, tensor};

#[test]
fn steps_that_there_are_not() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let split = Split::even(&devices)?;
    let other = Split::weighted(&devices, &[1.0, 3.0, 1.0])?;
    let fails = |result: Result<()>, kind, part: &str| {
        let Err(Error::Expression(error)) = result else { panic!("{result:?}, not {kind:?} {part}") };
        assert_eq!(error.kind, kind, "{error}");
        let text = error.to_string();
        assert!(text.contains(part) && error.file.ends_with("errors.rs"), "no {part:?} in: {text}");
    };
    use ExpressionErrorKind::*;
    for room in [None, Some(1)] {
        let make = |shape: &[usize]| tensor::<f32>(&split, shape, &numbers(shape.iter().product()), room);
        let [u, v, y] = [make(&[6, 5])?, make(&[6, 5])?, make(&[6, 5])?];
        let before = bits(y.to_vec()?);
        let up = |x: &SplitTensor<f32>| stencil(x, Boundary::Clamp, |n| n.at([-1, 0]) * 0.5);
        fails(y.assign((up(&u) + up(&v)).steps(2)), BadStencil, "several tensors beside each place");
        fails(y.assign(stencil(&u * &v, Boundary::Clamp, |n| n.at(1)).steps(2)), BadStencil, "several tensors");
        fails(y.assign((&u * 2.0).steps(3)), BadStencil, "(x0 * 2.0).steps(3)");
        fails(y.assign((up(&u) + gather(&u, element_index::<u32>())).steps(2)), BadStencil, "otherwise");
        fails(y.assign((up(&u) + u.shard(0).to_expr()).steps(2)), BadStencil, "otherwise");
        fails(y.assign(up(&u).steps(2).steps(3)), BadStencil, "steps of steps");
        fails(y.assign(up(&u).steps(2) * 2.0), BadStencil, "assignment of their own");
        fails(y.assign(up(&u).steps((1 << 24) + 1)), BadStencil, "at most 16777216");
        fails(up(&u).steps(2).sum().item().map(|_: f32| ()), BadStencil, "assign them to a tensor");
        let inner = |by: isize| stencil(&u, Boundary::Interior, |n| n.at([by, 0]) + n.at([0, 0]));
        fails(y.assign((inner(1) + inner(-1)).steps(2)), BadStencil, "footprints");
        fails(y.assign((inner(1) + up(&u)).steps(2)), BadStencil, "different places");
        fails(y.assign((inner(1) + &u).steps(2)), BadStencil, "otherwise");
        fails(y.assign((inner(1) + &v).steps(2)), BadShape, "[6, 5]");
        fails(y.assign(inner(6).steps(2)), BadStencil, "no place");
        fails(y.assign(stencil(&u, Boundary::Mirror, |n| n.at([6, 0])).steps(2)), BadStencil, "mirror");
        let wide = SplitTensor::<f64>::zeros(&split, [6, 5])?;
        fails(wide.assign(up(&u).cast::<f64>().steps(2)), BadStencil, "f64 of f32");
        let (short, flat) = (make(&[5, 5])?, make(&[6])?);
        fails(short.assign(up(&u).steps(2)), BadShape, "[5, 5]");
        fails(y.assign(stencil(&flat, Boundary::Clamp, |n| n.at(1).clone()).steps(2)), BadShape, "[6]");
        fails(make(&[4, 3])?.assign(inner(1).steps(2)), BadShape, "[6, 5]");
        fails(y.assign((up(&u) + &short).steps(2)), BadShape, "[5, 5]");
        for count in [1, 2, 9] {
            fails(u.assign(up(&u).steps(count)), Overlap, "overlaps");
            fails(u.assign(inner(1).steps(count)), Overlap, "overlaps");
        }
        u.assign(up(&u).steps(0))?;
        // These rows are on other devices.
        let elsewhere = SplitTensor::<f32>::zeros(&other, [6, 5])?;
        for count in [0, 1, 4] {
            fails(elsewhere.assign(up(&u).steps(count)), BadSplit, "resplit");
            fails(elsewhere.assign(inner(1).steps(count)), BadSplit, "resplit");
        }
        fails(y.assign((up(&u) + &elsewhere).steps(2)), BadSplit, "resplit");
        let inside = SplitTensor::<f32>::zeros(&other, [5, 5])?;
        fails(y.assign((inner(1) + &inside).steps(2)), BadSplit, "resplit");
        let whole = Tensor::<f32>::zeros(&split.streams()[0], [6, 5])?;
        fails(whole.assign(up(&u).steps(2)), BadSplit, "to_tensor");
        let of_whole = || stencil(&whole, Boundary::Clamp, |n| n.at(1).clone());
        fails(y.assign(of_whole().steps(2)), BadSplit, "from_tensor");
        fails(y.assign((up(&u) + &whole).steps(2)), BadSplit, "from_tensor");
        fails(y.assign((up(&u) + of_whole()).steps(2)), BadStencil, "several tensors");
        assert_eq!(bits(y.to_vec()?), before, "what is refused writes nothing");
    }
    // A fault names the expression.
    let x = SplitTensor::from_slice(&split, 6, &[1, 2, 3, 4, 5, 6])?;
    let y = SplitTensor::<i32>::zeros(&split, 6)?;
    let divided = stencil(&x, Boundary::Clamp, |n| n.at(1) / (n.at(0) - n.at(0)));
    let fault = y.assign(divided.steps(3)).expect_err("a division by zero").to_string();
    assert!(fault.contains(".steps(3)") && fault.contains("errors.rs"), "{fault}");
    Ok(())
}
