//! Tests descriptors and plans of operators, in which any number may be wrong.

use kernel_primitives::expr::{DType, MAX_RANK};
use kernel_primitives::ops::{Memory, Operator, Plan, TensorDesc};
use kernel_primitives::{Device, Error, Result};

use crate::damage::{Damage, try_all};

/// The number of bytes of the memory that plans run in.
const BYTES: usize = 1 << 12;

#[derive(Clone, Debug)]
struct Operand {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    byte: usize,
}

impl Operand {
    fn desc(&self) -> Result<TensorDesc> {
        TensorDesc::new(self.dtype, &*self.shape, &self.strides)
    }
}

/// Makes an operand of mostly small numbers, and sometimes any numbers.
fn operand(damage: &mut Damage, shape: &[usize], dtype: DType) -> Operand {
    let mut shape = shape.to_vec();
    let mut strides = vec![0isize; shape.len()];
    let mut stride = 1;
    for (axis, extent) in shape.iter().enumerate().rev() {
        strides[axis] = stride;
        stride = stride.wrapping_mul(*extent as isize);
    }
    let mut byte = dtype.size() * damage.below(8);
    for _ in 0..damage.below(4) {
        let any = damage.number();
        let axis = damage.below(shape.len().max(1));
        match damage.below(9) {
            0 => byte = any as usize,
            1 => strides.push(any as isize),
            2 => drop(strides.pop()),
            3 => shape.push(any as usize),
            4 if axis < shape.len() => shape[axis] = any as usize,
            5 if axis < strides.len() => strides[axis] = any as isize,
            6 if axis < strides.len() => strides[axis] = strides[axis].wrapping_neg(),
            7 if axis < shape.len() => shape[axis] = 1,
            8 if axis < strides.len() => strides[axis] = 0,
            _ => {}
        }
    }
    Operand { dtype, shape, strides, byte }
}

#[test]
fn damaged_descriptors_are_an_error_or_a_plan_that_stays_in_its_memory() {
    let names: Vec<&str> = Operator::names().collect();
    let name_bytes: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let stream = Device::auto().and_then(|device| device.stream()).expect("a device");
    let memories: Vec<Memory> =
        DType::ALL.iter().map(|&dtype| Memory::zeros(&stream, dtype, BYTES / dtype.size()).expect("memory")).collect();
    let memory = |dtype: DType| &memories[DType::ALL.iter().position(|&other| other == dtype).expect("one of them")];
    let property = |(name, output, inputs): &(String, Operand, Vec<Operand>)| -> Result<(), String> {
        let said = |error: Error| match &error {
            Error::Expression(_) if error.to_string().len() > 10 => Ok(()),
            // Whole numbers are divided by the zeros in the memory.
            Error::Fault(_) => Ok(()),
            other => Err(format!("another error: {other}")),
        };
        let operator = match Operator::named(name) {
            Ok(operator) => operator,
            Err(error) => return said(error),
        };
        let descs = inputs.iter().map(Operand::desc).collect::<Result<Vec<_>>>();
        let (output_desc, descs) = match (output.desc(), descs) {
            (Ok(output), Ok(inputs)) => (output, inputs),
            (Err(error), _) | (_, Err(error)) => return said(error),
        };
        let plan = match Plan::new(&operator, &output_desc, &descs) {
            Ok(plan) => plan,
            Err(error) => return said(error),
        };
        let _ = format!("{plan:?}");
        let places: Vec<_> = inputs.iter().map(|input| memory(input.dtype).at_byte(input.byte)).collect();
        plan.run(&stream, memory(output.dtype).at_byte(output.byte), &places)
            .and_then(|()| stream.synchronize())
            .or_else(said)
    };
    let input = |damage: &mut Damage| {
        let name = match damage.below(8) {
            0 => String::from_utf8_lossy(&damage.damaged(&name_bytes, &names)).into_owned(),
            _ => damage.one_of(&names).to_owned(),
        };
        let most = if damage.below(8) == 0 { 12 } else { 4 };
        let rank = damage.below(most);
        let shape: Vec<usize> = (0..rank).map(|_| damage.below(4) + (rank < 4) as usize).collect();
        let dtype = damage.one_of(&DType::ALL);
        let arity = Operator::named(&name).map_or(1, |operator| operator.arity());
        let arity = if damage.below(20) == 0 { damage.below(5) } else { arity };
        let inputs = (0..arity)
            .map(|_| {
                let dtype = if damage.below(8) == 0 { damage.one_of(&DType::ALL) } else { dtype };
                operand(damage, &shape, dtype)
            })
            .collect();
        let dtype = if damage.below(4) == 0 { damage.one_of(&DType::ALL) } else { dtype };
        let output = operand(damage, &shape, dtype);
        (name, output, inputs)
    };
    try_all(3000, input, property);
    const { assert!(MAX_RANK < 12, "some shapes have too many axes") };
}

#[test]
fn memory_of_any_length_is_an_error_or_there() {
    let stream = Device::auto().and_then(|device| device.stream()).expect("a device");
    for dtype in DType::ALL {
        for len in [usize::MAX, usize::MAX / 2, usize::MAX / 4 + 1, usize::MAX / 8 + 1, 1 << 60, 1 << 50, 0, 1] {
            for memory in [Memory::zeros(&stream, dtype, len), Memory::uninit(&stream, dtype, len)] {
                match memory {
                    Ok(memory) => assert!(len < 1 << 50 && memory.len() == len, "{dtype} {len}"),
                    Err(error) => assert!(matches!(error, Error::Allocation { .. }), "{dtype} {len}: {error}"),
                }
            }
        }
    }
}
