//! Tests operands of several types in one memory, and adopted memory.

use kernel_primitives::expr::*;
use kernel_primitives::ops::{Memory, Operator, Plan, TensorDesc};
use kernel_primitives::{Buffer, ExpressionErrorKind, Result};

use crate::{assert_error, stream};

#[test]
fn operands_of_many_types_in_one_memory() -> Result<()> {
    let stream = stream()?;
    let mut bytes = vec![0u8; 64];
    bytes[..8].copy_from_slice(&[1.5f32, -2.0].map(f32::to_le_bytes).concat());
    bytes[8..12].copy_from_slice(&[3i16, 4].map(i16::to_le_bytes).concat());
    let arena = Memory::from_slice(&stream, &bytes)?;
    let desc = |dtype| TensorDesc::contiguous(dtype, 2);
    let add = Plan::new(&Operator::named("add")?, &desc(DType::F64)?, &[desc(DType::F32)?, desc(DType::I16)?])?;
    add.run(&stream, arena.at(16), &[arena.at(0), arena.at(8)])?;
    bytes[16..32].copy_from_slice(&[4.5f64, 2.0].map(f64::to_le_bytes).concat());
    assert_eq!(arena.to_vec::<u8>()?, bytes);
    let onto = add.run(&stream, arena.at(8), &[arena.at(0), arena.at(8)]);
    assert_error(onto, ExpressionErrorKind::Overlap, &["x1"]);
    assert_error(
        add.run(&stream, arena.at(20), &[arena.at(0), arena.at(8)]),
        ExpressionErrorKind::OutOfRange,
        &["byte 20"],
    );
    let not = Plan::new(&Operator::named("not")?, &desc(DType::Bool)?, &[desc(DType::Bool)?])?;
    assert_error(not.run(&stream, arena.at(0), &[arena.at(8)]), ExpressionErrorKind::BadDtype, &["bool", "u8"]);
    Ok(())
}

/// Memory of the library begins at multiples of 256 bytes. Adopted memory, which the emulator does not have, may begin anywhere.
#[test]
fn adopted_bytes_begin_between_two_elements() -> Result<()> {
    let stream = stream()?;
    if !stream.device().is_gpu() {
        return Ok(());
    }
    let owner = stream.buffer_from(&[1u8; 256])?;
    // SAFETY: the memory is inside memory that outlives it, and is used on this stream.
    let bytes = unsafe { Buffer::<u8>::from_raw_borrowed(&stream, owner.address() + 1, 64)? };
    let memory = Memory::from_buffer(bytes);
    let copy = |dtype| {
        Plan::new(&Operator::named("copy")?, &TensorDesc::contiguous(dtype, 4)?, &[TensorDesc::contiguous(dtype, 4)?])
    };
    let out = Memory::zeros(&stream, DType::F32, 4)?;
    assert_error(
        copy(DType::F32)?.run(&stream, &out, &[memory.at(0)]),
        ExpressionErrorKind::OutOfRange,
        &["x0", "boundary"],
    );
    assert_error(
        copy(DType::F32)?.run(&stream, memory.at(0), &[(&out).into()]),
        ExpressionErrorKind::OutOfRange,
        &["output"],
    );
    assert_error(copy(DType::F32)?.run(&stream, &out, &[memory.at(2)]), ExpressionErrorKind::OutOfRange, &["x0"]);
    let bytes = Memory::zeros(&stream, DType::U8, 4)?;
    copy(DType::U8)?.run(&stream, &bytes, &[memory.at(0)])?;
    assert_eq!(bytes.to_vec::<u8>()?, [1; 4]);
    stream.synchronize()
}

/// Operands of several types in one memory are apart if their bytes are apart. They are the same operand if they have the same size.
#[test]
fn records_in_one_memory() -> Result<()> {
    let stream = stream()?;
    let bytes: Vec<u8> = (0..6u8).flat_map(|i| [i, 0, 0, 0, 100 + i, 1, 2, 3]).collect();
    let memory = Memory::from_slice(&stream, &bytes)?;
    let words = TensorDesc::new(DType::I32, 6, &[2])?;
    let marks = TensorDesc::new(DType::U8, 6, &[8])?;
    let add = Plan::new(&Operator::named("add")?, &words, &[words, marks])?;
    add.run(&stream, memory.at_byte(0), &[memory.at_byte(0), memory.at_byte(4)])?;
    let expected: Vec<u8> = (0..6u8).flat_map(|i| [100 + 2 * i, 0, 0, 0, 100 + i, 1, 2, 3]).collect();
    assert_eq!(memory.to_vec::<u8>()?, expected);
    // Another type has the same size, in place.
    let floats = TensorDesc::new(DType::F32, 6, &[2])?;
    let cast = Plan::new(&Operator::named("cast")?, &floats, &[words])?;
    cast.run(&stream, memory.at_byte(0), &[memory.at_byte(0)])?;
    let of = |i: u8| f32::from(100 + 2 * i).to_le_bytes();
    let expected: Vec<u8> = (0..6u8).flat_map(|i| [of(i), [100 + i, 1, 2, 3]].concat()).collect();
    assert_eq!(memory.to_vec::<u8>()?, expected);
    let overlap = add.run(&stream, memory.at_byte(0), &[memory.at_byte(0), memory.at_byte(3)]);
    assert_error(overlap, ExpressionErrorKind::Overlap, &["x1"]);
    Ok(())
}
