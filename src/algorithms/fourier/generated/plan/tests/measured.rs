//! Plans that were measured on an H200, and found to be the fastest of those that were tried.

use super::{H100, Work, plan};
use crate::algorithms::fourier::FftKind;
use crate::algorithms::fourier::generated::text::code::Real;

#[test]
fn a_long_row_is_two_columns_in_one_launch_and_a_row() {
    let plan = plan(Real::F64, &[1 << 26], &[0], FftKind::Forward, H100).expect("a plan");
    let [columns, rows] = &plan.steps[..] else { panic!("{plan:#?}") };
    let (Work::Pair(pair), Work::Pass(rows)) = (&columns.work, &rows.work) else { panic!("{plan:#?}") };
    assert_eq!(pair.passes.each_ref().map(|pass| pass.length()), [256, 256]);
    assert_eq!((rows.length(), rows.lines), (1024, 4));
}
