//! Groups of the devices of one process.

use primitives_gpu::Element;
use primitives_host::{Buffer, Devices, Error, ReduceOp, Result, Split, SplitGroup};

use crate::assert_failure;

/// Numbers of members.
const SIZES: [usize; 4] = [1, 2, 3, 5];

fn group(size: usize) -> Result<SplitGroup> {
    SplitGroup::new(&Split::even(&Devices::emulated(size)?)?)
}

/// A buffer of each member, whose elements are functions of its number and their places.
fn buffers<T: Element>(group: &SplitGroup, len: usize, of: impl Fn(usize, usize) -> T) -> Result<Vec<Buffer<T>>> {
    let streams = group.split().streams().iter().enumerate();
    streams.map(|(member, stream)| stream.buffer_from(&(0..len).map(|at| of(member, at)).collect::<Vec<T>>())).collect()
}

fn values<T: Element>(buffers: &[Buffer<T>]) -> Result<Vec<Vec<T>>> {
    buffers.iter().map(Buffer::to_vec).collect()
}

#[test]
fn each_call_has_the_result_of_that_of_processes() -> Result<()> {
    let of = |member: usize, at: usize| (member * 100 + at) as u32;
    for size in SIZES {
        let group = group(size)?;
        assert_eq!((group.size(), group.uses_nccl()), (size, false));
        let each = |result: &dyn Fn(usize) -> Vec<u32>| (0..size).map(result).collect::<Vec<_>>();

        let mut in_place = buffers(&group, 4, of)?;
        group.all_reduce(&mut in_place, ReduceOp::Sum)?;
        let sum = |at: usize| (0..size).map(|member| of(member, at)).sum::<u32>();
        assert_eq!(values(&in_place)?, each(&|_| (0..4).map(sum).collect()));

        let (inputs, mut outputs) = (buffers(&group, 2 * size, of)?, buffers(&group, 2, |_, _| 0)?);
        group.reduce_scatter(&inputs, ReduceOp::Max, &mut outputs)?;
        assert_eq!(values(&outputs)?, each(&|to| (0..2).map(|at| of(size - 1, 2 * to + at)).collect()));

        let mut all = buffers(&group, 2 * size, |_, _| 0)?;
        group.all_to_all(&inputs, &mut all)?;
        assert_eq!(values(&all)?, each(&|to| (0..2 * size).map(|at| of(at / 2, 2 * to + at % 2)).collect()));

        let parts = buffers(&group, 2, of)?;
        group.all_gather(&parts, &mut all)?;
        assert_eq!(values(&all)?, each(&|_| (0..2 * size).map(|at| of(at / 2, at % 2)).collect()));

        for root in 0..size {
            let mut in_place = buffers(&group, 3, of)?;
            group.broadcast(&mut in_place, root)?;
            assert_eq!(values(&in_place)?, each(&|_| (0..3).map(|at| of(root, at)).collect()));
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error() -> Result<()> {
    let group = group(2)?;
    let (small, mut large) = (buffers(&group, 3, |_, _| 0u8)?, buffers(&group, 5, |_, _| 0u8)?);
    let gathered = group.all_gather(&small, &mut large);
    assert!(matches!(gathered, Err(Error::LengthMismatch { first_len: 5, second_len: 6, .. })), "{gathered:?}");
    let scattered = group.reduce_scatter(&large, ReduceOp::Sum, &mut buffers(&group, 3, |_, _| 0u8)?);
    assert!(matches!(scattered, Err(Error::LengthMismatch { first_len: 5, second_len: 6, .. })), "{scattered:?}");
    assert_failure(group.all_to_all(&small, &mut buffers(&group, 3, |_, _| 0u8)?), None, "3 elements are no multiple");
    assert_failure(group.broadcast(&mut large, 2), None, "there is no member 2 in a group of 2");
    assert_failure(group.broadcast(&mut large[..1], 0), None, "the buffers are 1, and the members 2");

    let mut turned = buffers(&group, 3, |_, _| 0u8)?;
    turned.reverse();
    let wrong = group.all_reduce(&mut turned, ReduceOp::Sum);
    assert!(matches!(wrong, Err(Error::WrongDevice { .. })), "{wrong:?}");
    let mut uneven = buffers(&group, 3, |_, _| 0u8)?;
    uneven[1] = group.split().streams()[1].buffer_zeroed(4)?;
    let uneven = group.broadcast(&mut uneven, 0);
    assert!(matches!(uneven, Err(Error::LengthMismatch { first_len: 3, second_len: 4, .. })), "{uneven:?}");
    Ok(())
}

#[test]
fn more_elements_than_can_be_counted_are_an_error() -> Result<()> {
    let group = group(2)?;
    let buffers = |len| -> Result<Vec<Buffer<[u8; 0]>>> {
        group.split().streams().iter().map(|stream| stream.buffer_uninit(len)).collect()
    };
    let (inputs, mut outputs) = (buffers(usize::MAX / 2 + 1)?, buffers(usize::MAX)?);
    assert_failure(group.all_gather(&inputs, &mut outputs), None, "are more than can be counted");
    Ok(())
}

#[test]
fn no_elements_are_no_work() -> Result<()> {
    let group = group(3)?;
    let (inputs, mut outputs) = (buffers(&group, 0, |_, _| 0.0)?, buffers(&group, 0, |_, _| 0.0)?);
    group.all_reduce(&mut outputs, ReduceOp::Sum)?;
    group.reduce_scatter(&inputs, ReduceOp::Sum, &mut outputs)?;
    group.all_gather(&inputs, &mut outputs)?;
    group.all_to_all(&inputs, &mut outputs)?;
    group.broadcast(&mut outputs, 1)
}
