//! Tests reductions with a step before and a step after, on the host and by a block.

use kernel_primitives::functor::{
    AbsMax, AbsMin, Add, All, Any, ArgMax, ArgMin, CountNonzero, FirstPass, Indexed, L1, L2, LastPass, LogSumExp,
    MaxOf, Mean, MinOf, NanSum, PNorm, Prod, ReduceBy, Reduction, Sum,
};
use kernel_primitives::{Buffer, Complex, Element, Result, Stream, f16};

use crate::kernels::reduction::reduced;
use crate::support::{Arbitrary, SHAPES, stream, threads, values};

#[test]
fn reductions_of_a_few_items() {
    let x = [3.0f32, -4.0, 0.0, 1.5];
    assert_eq!((Sum.of(&x), Prod.of(&x[..2]), Mean.of(&x)), (0.5, -12.0, 0.125));
    assert_eq!((MinOf.of(&x), MaxOf.of(&x), AbsMin.of(&x), AbsMax.of(&x)), (-4.0, 3.0, 0.0, 4.0));
    assert_eq!(
        (L1.of(&x), L2.of(&x[..2]), PNorm { p: 2.0f32 }.of(&x[..2]), PNorm { p: 1.0 }.of(&x)),
        (8.5, 5.0, 5.0, 8.5)
    );
    assert_eq!((Any.of(&x), All.of(&x), CountNonzero.of(&x)), (true, false, 3));
    assert_eq!((L1.of(&[-3i8, 100]), Mean.of(&[7u8, 8]), Sum.of(&[200u8, 100])), (103, 7, 44));
    assert_eq!(
        (Sum.of(&[true, true, false]), Mean.of(&[Complex::new(1.0f64, 3.0), Complex::new(3.0, 5.0)])),
        (2, Complex::new(2.0, 4.0))
    );
    assert_eq!(
        (L2.of(&[Complex::new(3.0f64, 4.0)]), AbsMax.of(&[Complex::new(3f32, 4.0), Complex::new(0.0, -6.0)])),
        (5.0, 6.0)
    );
    // Halves are summed in f32, because 2049 is not an f16.
    assert_eq!(Sum.of(&[f16::from_f32(2048.0), f16::ONE]), 2049.0f32);
}

/// The sum of the integers, or their number, is more than the type holds.
#[test]
fn means_of_small_integers_do_not_wrap() -> Result<()> {
    assert_eq!((Mean.of(&[1u8; 256]), Mean.of(&[200u8, 200]), Mean.of(&[255u8; 70_000])), (1, 200, 255));
    assert_eq!((Mean.of(&[-128i8; 300]), Mean.of(&[100i8, 120, 125]), Mean.of(&[-7i8, -8])), (-128, 115, -7));
    assert_eq!((Mean.of(&[60_000u16; 65_536]), Mean.of(&[i16::MIN; 5])), (60_000, i16::MIN));
    assert_eq!(
        (Mean.of(&[i32::MAX; 3]), Mean.of(&[i32::MIN, i32::MIN]), Mean.of(&[u32::MAX; 9])),
        (i32::MAX, i32::MIN, u32::MAX)
    );
    assert_eq!((Mean.of(&[true, true, false]), Mean.of(&[true; 2]), Mean.of(&[9u64, 12])), (0, 1, 10));
    assert_eq!(Mean.of(&[Complex::new(200u8, 1), Complex::new(200, 3)]), Complex::new(200, 2));
    // A block reduces more items than the type can count.
    let stream = stream()?;
    let mut out = stream.buffer_zeroed(1)?;
    reduced::<u8, Mean>::launch(&stream, (1, 300), &stream.buffer_from(&[200u8; 1000])?, &mut out, Mean)?;
    assert_eq!(out.to_vec()?, [200u8]);
    Ok(())
}

#[test]
fn reductions_of_nothing_are_their_identities() {
    let none: [f32; 0] = [];
    assert_eq!(
        (Sum.of(&none), NanSum.of(&none), Prod.of(&none), L1.of(&none), L2.of(&none)),
        (0.0, 0.0, 1.0, 0.0, 0.0)
    );
    assert_eq!((MinOf.of(&none), MaxOf.of(&none)), (f32::INFINITY, f32::NEG_INFINITY));
    assert_eq!((AbsMin.of(&none), AbsMax.of(&none)), (f32::INFINITY, 0.0));
    assert_eq!((Any.of(&none), All.of(&none), LogSumExp.of(&none)), (false, true, f32::NEG_INFINITY));
    assert!(Mean.of(&none).is_nan());
    assert_eq!((MinOf.of(&[] as &[u8]), MaxOf.of(&[] as &[i16])), (255, i16::MIN));
    assert_eq!((ArgMin.of(&none).index(), ArgMax.of(&none).index()), (u64::MAX, u64::MAX));
}

#[test]
fn a_sum_by_an_operator_of_no_items_is_a_positive_zero() {
    assert_eq!(ReduceBy(Add).of(&[] as &[f32]).to_bits(), 0);
    assert_eq!(ReduceBy(Add).of(&[-0.0f32]).to_bits(), (-0.0f32).to_bits());
    let parts = [FirstPass(ReduceBy(Add)).of(&[] as &[f32])];
    assert_eq!(LastPass::<_, f32>::new(ReduceBy(Add), 0).of(&parts).to_bits(), 0);
}

#[test]
fn nan_propagates_but_where_it_is_skipped() {
    let x = [1.0f64, f64::NAN, -3.0];
    assert!(Sum.of(&x).is_nan() && MinOf.of(&x).is_nan() && MaxOf.of(&x).is_nan() && AbsMax.of(&x).is_nan());
    assert!(L2.of(&x).is_nan() && LogSumExp.of(&x).is_nan() && AbsMin.of(&x).is_nan() && Mean.of(&x).is_nan());
    assert_eq!(NanSum.of(&x), -2.0);
    assert!(Any.of(&[f32::NAN]) && All.of(&[f32::NAN]));
}

/// The first extreme item or the first NaN wins, in every order of combination.
#[test]
fn the_first_extreme_item_or_nan_wins() {
    fn place<R: Reduction<f32, Accum = Indexed<f32>, Output = Indexed<f32>>>(op: R, x: &[f32]) -> u64 {
        let items: Vec<_> = x.iter().enumerate().map(|(i, &x)| op.pre(x, i as u64)).collect();
        let fold = |total, &item: &Indexed<f32>| op.combine(total, item);
        let forwards = items.iter().fold(op.identity(), fold).index();
        // No collective would combine in this order, but the result does not depend on the order.
        assert_eq!(items.iter().rev().fold(op.identity(), fold).index(), forwards);
        forwards
    }
    assert_eq!((place(ArgMin, &[3.0, 1.0, 1.0, 2.0]), place(ArgMax, &[3.0, 1.0, 3.0])), (1, 0));
    assert_eq!((place(ArgMin, &[3.0, f32::NAN, -9.0, f32::NAN]), place(ArgMax, &[3.0, 9.0, f32::NAN])), (1, 2));
    assert_eq!((place(ArgMin, &[0.0, -0.0]), place(ArgMax, &[-0.0, 0.0])), (0, 0));
    assert_eq!((place(ArgMin, &[f32::INFINITY; 3]), place(ArgMax, &[f32::NEG_INFINITY; 3])), (0, 0));
    assert_eq!(ArgMax.of(&[false, true, true]).index(), 1);
}

#[test]
fn log_sum_exp_does_not_overflow() {
    assert_eq!(LogSumExp.of(&[1000.0f32, 1000.0]), 1000.0 + 2f32.ln());
    assert_eq!(LogSumExp.of(&[-1000.0f32, -1000.0]), -1000.0 + 2f32.ln());
    assert_eq!(LogSumExp.of(&[f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
    assert_eq!(LogSumExp.of(&[f64::INFINITY, 1.0, f64::INFINITY]), f64::INFINITY);
    assert_eq!(LogSumExp.of(&[f64::NEG_INFINITY, 0.0]), 0.0);
}

/// Reduces by one block of every shape, and compares with a fold.
fn blocks_reduce<T: Arbitrary, R: Reduction<T, Output: Element>>(
    op: R,
    input: impl Fn(T) -> T,
    close: impl Fn(R::Output, R::Output) -> bool,
    launch: impl Fn(&Stream, (u32, u32, u32), &Buffer<T>, &mut Buffer<R::Output>) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    for (k, shape) in SHAPES.into_iter().enumerate() {
        for len in [0, 1, threads(shape) - 1, 3 * threads(shape) + 5] {
            let x: Vec<T> = values::<T>(len, k as u64).into_iter().map(&input).collect();
            let mut out = stream.buffer_zeroed(1)?;
            launch(&stream, shape, &stream.buffer_from(&x)?, &mut out)?;
            assert!(close(out.to_vec()?[0], op.of(&x)), "{shape:?}, {len} items");
        }
    }
    Ok(())
}

macro_rules! reductions {
    ($($name:ident: $op:ident, $t:ty, $input:expr, $close:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            blocks_reduce::<$t, _>($op, $input, $close, |stream, shape, x, out| {
                reduced::<$t, $op>::launch(stream, (1, shape), x, out, $op)
            })
        }
    )*};
}
reductions! {
    sanitize_block_argmax_of_f32: ArgMax, f32, |v| v, |a, b| a == b;
    block_argmin_of_i16: ArgMin, i16, |v| v % 100, |a, b| a == b;
    block_log_sum_exp_of_f64: LogSumExp, f64, |v| v / 100.0, |a, b| a == b || (a - b).abs() < 1e-12;
    sanitize_block_mean_of_f16: Mean, f16, |v| v, |a, b| a == b || a.is_nan() && b.is_nan();
    block_norm_of_f32: L2, f32, |v| v % 8.0, |a, b| a == b;
    block_sum_of_f32_without_nan: NanSum, f32, |v| if v > 900.0 { f32::NAN } else { v }, |a, b| a == b;
    block_count_of_true: CountNonzero, bool, |v| v, |a, b| a == b;
    block_maximum_of_u32: MaxOf, u32, |v| v, |a, b| a == b;
    block_sum_of_complex_numbers: Sum, Complex<f32>, |v| v, |a, b| a == b;
}
