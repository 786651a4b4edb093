//! What the calls of a group compute.

use std::fmt::Debug;

use primitives_gpu::{Element, bf16, f16};
use primitives_host::{Group, GroupNumber, ReduceOp, Result};

use crate::members;

/// Numbers of members.
const SIZES: [usize; 4] = [1, 2, 3, 5];

/// The number of an element of a member.
fn value(rank: usize, at: usize) -> i32 {
    ((rank * 31 + at * 7) % 11) as i32 - 3
}

/// Numbers from small integers.
trait Small: GroupNumber + Debug {
    fn of(value: i32) -> Self;
}

macro_rules! small {
    ($($t:ty: $of:expr;)*) => {$(
        impl Small for $t {
            fn of(value: i32) -> Self {
                ($of)(value)
            }
        }
    )*};
}
small! {
    i8: |value| value as i8;
    u8: |value| value as u8;
    i32: |value| value;
    u32: |value| value as u32;
    i64: i64::from;
    u64: |value| value as u64;
    f16: |value| f16::from_f32(value as f32);
    bf16: |value| bf16::from_f32(value as f32);
    f32: |value| value as f32;
    f64: f64::from;
}

/// What two numbers are combined to.
type Combine<T> = dyn Fn(T, T) -> T + Sync;

fn reductions_of<T: Small>() {
    let (sum, product) = (|a: T, b: T| a.add(b), |a: T, b: T| a.mul(b));
    let (min, max) = (|a: T, b: T| if b < a { b } else { a }, |a: T, b: T| if b > a { b } else { a });
    let operations: [(ReduceOp, &Combine<T>); 4] =
        [(ReduceOp::Sum, &sum), (ReduceOp::Product, &product), (ReduceOp::Min, &min), (ReduceOp::Max, &max)];
    for size in SIZES {
        for (op, combine) in operations {
            let expected =
                |at: usize| (1..size).fold(T::of(value(0, at)), |all, rank| combine(all, T::of(value(rank, at))));
            members(size, |group| -> Result<()> {
                let stream = group.device().stream()?;
                let own: Vec<T> = (0..2 * size).map(|at| T::of(value(group.rank(), at))).collect();
                let mut buffer = stream.buffer_from(&own)?;
                group.all_reduce(&stream, &mut buffer, op)?;
                assert_eq!(buffer.to_vec()?, (0..2 * size).map(expected).collect::<Vec<T>>(), "{op} {size}");

                let (input, mut output) = (stream.buffer_from(&own)?, stream.buffer_zeroed::<T>(2)?);
                group.reduce_scatter(&stream, &input, op, &mut output)?;
                let first = 2 * group.rank();
                assert_eq!(output.to_vec()?, [expected(first), expected(first + 1)], "{op} {size}");
                Ok(())
            })
            .into_iter()
            .for_each(|result| result.expect("reductions"));
        }
    }
}

#[test]
fn reductions_have_all_types_and_operations() {
    reductions_of::<i8>();
    reductions_of::<u8>();
    reductions_of::<i32>();
    reductions_of::<u32>();
    reductions_of::<i64>();
    reductions_of::<u64>();
    reductions_of::<f16>();
    reductions_of::<bf16>();
    reductions_of::<f32>();
    reductions_of::<f64>();
}

/// Elements that say where they are from.
fn own<T: Element>(group: &Group, len: usize, of: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..len).map(|at| of(group.rank(), at)).collect()
}

#[test]
fn elements_move_where_they_belong() {
    let of = |rank: usize, at: usize| [rank as u32, at as u32, 7];
    for size in SIZES {
        let moves = members(size, |group| -> Result<()> {
            let (rank, stream) = (group.rank(), group.device().stream()?);
            let input = stream.buffer_from(&own(group, 3, of))?;
            let mut all = stream.buffer_zeroed::<[u32; 3]>(3 * size)?;
            group.all_gather(&stream, &input, &mut all)?;
            assert_eq!(all.to_vec()?, (0..3 * size).map(|at| of(at / 3, at % 3)).collect::<Vec<_>>());

            let input = stream.buffer_from(&own(group, 2 * size, of))?;
            let mut output = stream.buffer_zeroed::<[u32; 3]>(2 * size)?;
            group.all_to_all(&stream, &input, &mut output)?;
            let expected: Vec<_> = (0..2 * size).map(|at| of(at / 2, 2 * rank + at % 2)).collect();
            assert_eq!(output.to_vec()?, expected);

            for root in 0..size {
                let mut buffer = stream.buffer_from(&own(group, 4, of))?;
                group.broadcast(&stream, &mut buffer, root)?;
                assert_eq!(buffer.to_vec()?, (0..4).map(|at| of(root, at)).collect::<Vec<_>>());
            }

            // Round a ring.
            let (input, mut output) = (stream.buffer_from(&own(group, 3, of))?, stream.buffer_zeroed(3)?);
            let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
            group.send_recv(&stream, &input, next, &mut output, previous)?;
            assert_eq!(output.to_vec()?, (0..3).map(|at| of(previous, at)).collect::<Vec<_>>());
            Ok(())
        });
        moves.into_iter().for_each(|result| result.expect("moves"));
    }
}

#[test]
fn messages_pass_from_one_to_the_next_in_parts_of_buffers() {
    let results = members(4, |group| -> Result<Vec<f64>> {
        let (rank, stream) = (group.rank(), group.device().stream()?);
        let mut buffer = stream.buffer_from(&[rank as f64; 4])?;
        if rank > 0 {
            group.recv(&stream, buffer.slice_mut(..rank)?, rank - 1)?;
        }
        if rank < 3 {
            group.send(&stream, buffer.slice(..rank + 1)?, rank + 1)?;
        }
        buffer.to_vec()
    });
    let results: Vec<_> = results.into_iter().map(|result| result.expect("messages")).collect();
    assert_eq!(results[3], [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(results[1], [0.0, 1.0, 1.0, 1.0]);
}

#[test]
fn nothing_is_a_length_too() {
    let results = members(2, |group| -> Result<()> {
        let stream = group.device().stream()?;
        let (input, mut output) = (stream.buffer_zeroed::<f32>(0)?, stream.buffer_zeroed::<f32>(0)?);
        group.all_reduce(&stream, &mut output, ReduceOp::Sum)?;
        group.all_gather(&stream, &input, &mut output)?;
        group.reduce_scatter(&stream, &input, ReduceOp::Max, &mut output)?;
        group.all_to_all(&stream, &input, &mut output)?;
        group.broadcast(&stream, &mut output, 1)
    });
    results.into_iter().for_each(|result| result.expect("calls of nothing"));
}

#[test]
fn large_buffers_go_whole() {
    const LEN: usize = 1 << 20;
    let results = members(3, |group| -> Result<()> {
        let stream = group.device().stream()?;
        let own: Vec<u64> = (0..LEN as u64).map(|at| at * 3 + group.rank() as u64).collect();
        let mut buffer = stream.buffer_from(&own)?;
        group.all_reduce(&stream, &mut buffer, ReduceOp::Sum)?;
        assert!(buffer.to_vec()?.into_iter().zip(0..).all(|(sum, at)| sum == at * 9 + 3));
        group.barrier(&stream)
    });
    results.into_iter().for_each(|result| result.expect("sums"));
}

#[test]
fn a_group_may_be_called_by_several_threads_of_a_member() {
    let results = members(2, |group| -> Result<Vec<f32>> {
        let stream = group.device().stream()?;
        let mut buffer = stream.buffer_from(&[1.0])?;
        for _ in 0..3 {
            std::thread::scope(|scope| {
                let call = || group.all_reduce(&stream, &mut buffer, ReduceOp::Sum);
                scope.spawn(call).join().expect("no panic")
            })?;
        }
        buffer.to_vec()
    });
    results.into_iter().for_each(|result| assert_eq!(result.expect("sums"), [8.0]));
    assert_eq!(members(1, |group| format!("{group:?}")), ["Group(rank 0 of 1 on the emulator)"]);
}
