//! The kernels of plans whose results are multiplied by a scale.

use super::{H100, Plan, Work, kernel, plan};
use crate::algorithms::fourier::FftKind;
use crate::algorithms::fourier::generated::text::code::Real;

/// A scale of 1 takes no multiplication. Other scales share a kernel, because the launch gives them.
#[test]
fn a_scale_of_one_has_a_kernel_of_its_own() {
    let plan = plan(Real::F32, &[8, 64], &[1], FftKind::Forward, H100).expect("a plan");
    let text = |plan: &Plan| match &plan.steps[0].work {
        Work::Pass(pass) => kernel(pass, 90).text,
        other => panic!("{other:?}"),
    };
    let without = text(&plan);
    assert!(without != text(&plan.scaled()));
}
