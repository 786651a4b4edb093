//! Tests plans of named operators, with any types, shapes, strides and places.

use std::collections::HashSet;

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::ops::{Memory, OperandStart, Operator, Plan, TensorDesc};
use kernel_primitives::{Diagnosis, Error, ExpressionErrorKind, Result, Stream};
use proptest::prelude::*;

use super::reference::{self, COMPARE, Compare, One, Two, convert};
use super::{check, dtype, hash, indices, with};
use crate::{Sample, Wide, stream};

/// The number of bytes of a memory.
const BYTES: usize = 640;

#[derive(Clone, Debug)]
struct Desc {
    dtype: u8,
    shape: Vec<usize>,
    /// The strides, or none if the elements are contiguous.
    strides: Option<Vec<isize>>,
    /// Whether the operand is in the first memory, which has bytes, or in one of its own type.
    shared: bool,
    /// The byte of the first element, before it is aligned.
    byte: usize,
}

#[derive(Clone, Debug)]
struct Case {
    name: &'static str,
    /// Whether all inputs have the type of the first one.
    alike: bool,
    output: Desc,
    inputs: Vec<Desc>,
    /// The input that is also the output, if there is one.
    same: Option<usize>,
    seed: u64,
}

fn desc(shape: Vec<usize>, narrow: bool) -> impl Strategy<Value = Desc> {
    let rank = shape.len();
    let strides = prop::option::of(prop::collection::vec(prop_oneof![8 => -6..12isize, 1 => Just(0isize)], rank));
    let ones = prop::collection::vec(prop_oneof![3 => Just(false), 1 => Just(narrow)], rank);
    (any::<u8>(), ones, strides, any::<bool>(), 0..BYTES, 0..6usize).prop_map(
        move |(dtype, ones, strides, shared, byte, missing)| {
            let own: Vec<usize> = shape.iter().zip(&ones).map(|(&extent, &one)| if one { 1 } else { extent }).collect();
            let missing = if narrow && missing < 2 { missing.min(rank) } else { 0 };
            let strides = strides.map(|strides| strides[missing..].to_vec());
            Desc { dtype, shape: own[missing..].to_vec(), strides, shared, byte: if byte % 3 == 0 { 0 } else { byte } }
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let names: Vec<&'static str> = Operator::names().filter(|name| operator(name).is_some()).collect();
    let shape = prop::collection::vec(prop_oneof![1 => Just(0usize), 2 => Just(1usize), 8 => 2..7usize], 0..4);
    (shape, prop::sample::select(names)).prop_flat_map(|(shape, name)| {
        let inputs = prop::collection::vec(desc(shape.clone(), true), operator(name).map_or(0, Named::arity));
        let same = prop_oneof![2 => Just(None), 1 => (0..4usize).prop_map(Some)];
        (desc(shape, false), inputs, same, prop::bool::weighted(0.7), any::<u64>())
            .prop_map(move |(output, inputs, same, alike, seed)| Case { name, alike, output, inputs, same, seed })
    })
}

/// The operator that a name stands for.
#[derive(Clone, Copy)]
enum Named {
    Copy,
    Cast,
    One(One),
    IsNan,
    Two(Two),
    Compare(Compare),
    Select,
    MulAdd,
    Clamp,
}

impl Named {
    fn arity(self) -> usize {
        match self {
            Self::Copy | Self::Cast | Self::One(_) | Self::IsNan => 1,
            Self::Two(_) | Self::Compare(_) => 2,
            Self::Select | Self::MulAdd | Self::Clamp => 3,
        }
    }

    /// Returns whether it takes values of a type.
    fn takes(self, dtype: DType) -> bool {
        match self {
            Self::One(One::Neg | One::Abs | One::Square) => dtype != DType::Bool,
            Self::One(One::Not) | Self::Two(Two::And | Two::Or | Two::Xor) => !dtype.is_float(),
            Self::Two(Two::Shl | Two::Shr) => dtype.is_integer(),
            Self::Two(Two::Min | Two::Max)
            | Self::Compare(_)
            | Self::Select
            | Self::Clamp
            | Self::Copy
            | Self::Cast => true,
            Self::One(One::Relu) => true,
            Self::Two(Two::Pow | Two::Atan2 | Two::Hypot) | Self::One(_) | Self::IsNan | Self::MulAdd => {
                dtype.is_float()
            }
            Self::Two(_) => dtype != DType::Bool,
        }
    }
}

fn operator(name: &str) -> Option<Named> {
    let compare = ["eq", "ne", "lt", "le", "gt", "ge"].iter().position(|known| *known == name);
    if let Some(at) = compare {
        return Some(Named::Compare(COMPARE[at]));
    }
    Some(match name {
        "copy" => Named::Copy,
        "cast" => Named::Cast,
        "is_nan" => Named::IsNan,
        "select" => Named::Select,
        "mul_add" => Named::MulAdd,
        "clamp" => Named::Clamp,
        "neg" => Named::One(One::Neg),
        "abs" => Named::One(One::Abs),
        "square" => Named::One(One::Square),
        "relu" => Named::One(One::Relu),
        "not" => Named::One(One::Not),
        "recip" => Named::One(One::Recip),
        "sqrt" => Named::One(One::Sqrt),
        "floor" => Named::One(One::Floor),
        "round" => Named::One(One::Round),
        "add" => Named::Two(Two::Add),
        "sub" => Named::Two(Two::Sub),
        "mul" => Named::Two(Two::Mul),
        "div" => Named::Two(Two::Div),
        "rem" => Named::Two(Two::Rem),
        "floor_rem" => Named::Two(Two::FloorRem),
        "minimum" => Named::Two(Two::Min),
        "maximum" => Named::Two(Two::Max),
        "and" => Named::Two(Two::And),
        "or" => Named::Two(Two::Or),
        "xor" => Named::Two(Two::Xor),
        "shl" => Named::Two(Two::Shl),
        "shr" => Named::Two(Two::Shr),
        _ => return None,
    })
}

/// Returns the common type, by the table of `DType`.
fn common(a: DType, b: DType) -> Option<DType> {
    use DType::*;
    if a == b || b == Bool {
        return Some(a);
    }
    if a == Bool {
        return Some(b);
    }
    let wide = |a: DType, b: DType| if a.size() < b.size() { b } else { a };
    match (a.is_float(), b.is_float()) {
        (true, true) if a.size() == b.size() => Some(F32),
        (true, true) => Some(wide(a, b)),
        (true, false) => Some(a),
        (false, true) => Some(b),
        (false, false) if a.is_signed() == b.is_signed() => Some(wide(a, b)),
        (false, false) => {
            let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
            [I16, I32, I64].into_iter().find(|to| to.size() > unsigned.size() && to.size() >= signed.size())
        }
    }
}

/// An operand in the form of the interpreter.
struct Operand {
    dtype: DType,
    memory: usize,
    /// The byte of each element, over the output's shape.
    places: Vec<isize>,
    desc: TensorDesc,
    byte: usize,
}

fn operand(case: &Desc, dtype: DType, shape: &[usize], memory: usize, bytes: usize) -> Result<Operand> {
    let size = dtype.size() as isize;
    let dense =
        || (0..case.shape.len()).map(|axis| case.shape[axis + 1..].iter().product::<usize>() as isize).collect();
    let strides: Vec<isize> = case.strides.clone().unwrap_or_else(dense);
    let desc = TensorDesc::new(dtype, &case.shape[..], &strides)?;
    let byte = case.byte.min(bytes) / dtype.size() * dtype.size();
    let ahead = shape.len() - case.shape.len();
    let at = |index: &[usize]| -> isize {
        let axes = case.shape.iter().zip(&strides).enumerate();
        axes.map(|(axis, (&extent, &stride))| if extent == 1 { 0 } else { index[ahead + axis] as isize * stride }).sum()
    };
    let places = indices(shape).map(|index| byte as isize + size * at(&index)).collect();
    Ok(Operand { dtype, memory, places, desc, byte })
}

impl Operand {
    fn bytes(&self) -> HashSet<isize> {
        self.places.iter().flat_map(|&place| place..place + self.dtype.size() as isize).collect()
    }
}

fn read(bytes: &[u8], dtype: DType, at: usize) -> Wide {
    let mut word = [0; 8];
    word[..dtype.size()].copy_from_slice(&bytes[at..at + dtype.size()]);
    let word = u64::from_le_bytes(word);
    match dtype {
        DType::F16 => Wide::Float(f16::from_bits(word as u16).into()),
        DType::BF16 => Wide::Float(bf16::from_bits(word as u16).into()),
        DType::F32 => Wide::Float(f32::from_bits(word as u32).into()),
        DType::F64 => Wide::Float(f64::from_bits(word)),
        dtype if dtype.is_signed() => {
            let shift = 64 - 8 * dtype.size();
            Wide::Int(((word << shift) as i64 >> shift).into())
        }
        _ => Wide::Int(word.into()),
    }
}

fn memory(stream: &Stream, dtype: DType, bytes: &[u8]) -> Result<Memory> {
    with!(dtype, T => {
        let values: Vec<T> = (0..bytes.len() / dtype.size()).map(|i| T::of(read(bytes, dtype, i * dtype.size()))).collect();
        Memory::from_slice(stream, &values)
    })
}

fn holds(mut case: Case) -> Result<(), TestCaseError> {
    let stream = stream()?;
    let named = operator(case.name).expect("of the list");
    if let Some(at) = case.same.filter(|&at| at < case.inputs.len()) {
        let dtype = case.output.dtype;
        case.output = Desc { shape: case.output.shape.clone(), ..case.inputs[at].clone() };
        case.output.strides.iter_mut().for_each(|strides| strides.resize(case.output.shape.len(), 1));
        if case.seed.is_multiple_of(5) {
            case.output.dtype = dtype;
        }
    }
    let shape = case.output.shape.clone();
    if case.alike {
        let first = case.inputs[case.inputs.len() - 1].dtype;
        case.inputs.iter_mut().for_each(|input| input.dtype = first);
        if matches!(named, Named::Select) {
            case.inputs[0].dtype = 0;
        }
        if !matches!(named, Named::Compare(_) | Named::IsNan) && !case.seed.is_multiple_of(4) {
            case.output.dtype = first;
        }
    }
    // The first memory has bytes, for all operands that share it. The others are for one operand each.
    let mut contents: Vec<Vec<u8>> = vec![(0..BYTES as u64).map(|at| hash(case.seed, at) as u8).collect()];
    let mut types = vec![DType::U8];
    let mut operands = Vec::new();
    for desc in std::iter::once(&case.output).chain(&case.inputs) {
        let dtype = dtype(desc.dtype);
        let at = if desc.shared && dtype != DType::Bool {
            0
        } else {
            let most = if dtype == DType::Bool { 1 } else { 255 };
            let seed = case.seed ^ contents.len() as u64;
            contents.push((0..BYTES as u64).map(|at| hash(seed, at) as u8 & most).collect());
            types.push(dtype);
            contents.len() - 1
        };
        operands.push(operand(desc, dtype, &shape, at, BYTES)?);
    }
    let memories =
        contents.iter().zip(&types).map(|(bytes, &dtype)| memory(&stream, dtype, bytes)).collect::<Result<Vec<_>>>()?;
    let (output, inputs) = operands.split_first().expect("an output");

    // These are the mistakes of the plan.
    let mut mistakes = HashSet::new();
    let set = output.bytes();
    if output.places.len() > output.places.iter().collect::<HashSet<_>>().len() {
        mistakes.insert(ExpressionErrorKind::BadStrides as u8);
    }
    let whole = |operand: &Operand, desc: &Desc| {
        // These are mistakes of the operand itself, even if nothing of it is read.
        let own = self::operand(desc, operand.dtype, &desc.shape, 0, BYTES);
        own.is_ok_and(|own| own.bytes().iter().all(|byte| (0..BYTES as isize).contains(byte)))
    };
    if !operands
        .iter()
        .zip(std::iter::once(&case.output).chain(&case.inputs))
        .all(|(operand, desc)| whole(operand, desc))
    {
        mistakes.insert(ExpressionErrorKind::OutOfRange as u8);
    }
    for input in inputs {
        let in_place = input.dtype.size() == output.dtype.size() && input.places == output.places;
        if input.memory == output.memory && !in_place && !input.bytes().is_disjoint(&set) {
            mistakes.insert(ExpressionErrorKind::Overlap as u8);
        }
    }
    let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    let of_values = match named {
        Named::Select => &dtypes[1..],
        _ => &dtypes[..],
    };
    let shifts = matches!(named, Named::Two(Two::Shl | Two::Shr));
    let working = match shifts {
        true => Some(dtypes[0]).filter(|_| dtypes.iter().all(|dtype| dtype.is_integer())),
        // The common type is found two by two, from the left.
        false => of_values[1..].iter().try_fold(of_values[0], |a, &b| common(a, b)),
    };
    let working = working
        .filter(|&dtype| named.takes(dtype))
        .filter(|_| !matches!(named, Named::Select) || dtypes[0] == DType::Bool);
    let result = working.map(|dtype| match named {
        Named::Compare(_) | Named::IsNan => DType::Bool,
        Named::Cast => output.dtype,
        _ => dtype,
    });
    let rank = |dtype: DType| match dtype {
        DType::Bool => 0,
        dtype if dtype.is_float() => 3,
        dtype => 1 + i32::from(dtype.is_signed()),
    };
    let (working, result) = match (working, result) {
        (Some(working), Some(result)) if rank(result) <= rank(output.dtype) => (working, result),
        _ => {
            mistakes.insert(ExpressionErrorKind::BadDtype as u8);
            (DType::I32, DType::I32)
        }
    };

    // These are the expected contents.
    let mut expected = Vec::new();
    let mut divided_by_zero = false;
    if mistakes.is_empty() {
        for i in 0..output.places.len() {
            let given: Vec<Wide> = inputs
                .iter()
                .map(|input| read(&contents[input.memory], input.dtype, input.places[i] as usize))
                .collect();
            let mut x: Vec<Wide> = given.iter().map(|&value| convert(value, working)).collect();
            if shifts {
                // A count keeps its value, even if the type of the shifted value cannot hold it.
                x[1] = given[1];
            }
            let divides = matches!(named, Named::Two(Two::Div | Two::Rem | Two::FloorRem)) && working.is_integer();
            if divides && matches!(x[1], Wide::Int(0)) {
                divided_by_zero = true;
                break;
            }
            let value = match named {
                Named::Copy => x[0],
                Named::Cast => convert(given[0], output.dtype),
                Named::One(One::Relu) if working == DType::Bool => x[0],
                Named::One(op) => reference::apply_one(op, working, x[0]),
                Named::IsNan => reference::compare(Compare::Ne, x[0], x[0]),
                Named::Two(op) if working == DType::Bool && matches!(op, Two::Min | Two::Max) => {
                    reference::apply_two(op, working, x[0], x[1])
                }
                Named::Two(op) => reference::apply_two(op, working, x[0], x[1]),
                Named::Compare(op) => reference::compare(op, x[0], x[1]),
                Named::Select => {
                    if reference::truth(given[0]) {
                        x[1]
                    } else {
                        x[2]
                    }
                }
                Named::MulAdd => reference::mul_add(working, x[0], x[1], x[2]),
                Named::Clamp => {
                    let low = reference::apply_two(Two::Max, working, x[0], x[1]);
                    reference::apply_two(Two::Min, working, low, x[2])
                }
            };
            expected.push(convert(convert(value, result), output.dtype));
        }
    }
    if divided_by_zero && stream.device().is_gpu() {
        return Ok(());
    }

    let descs: Vec<TensorDesc> = inputs.iter().map(|input| input.desc).collect();
    let places: Vec<OperandStart<'_>> = inputs.iter().map(|input| memories[input.memory].at_byte(input.byte)).collect();
    let done = Plan::new(&Operator::named(case.name)?, &output.desc, &descs)
        .and_then(|plan| plan.run(&stream, memories[output.memory].at_byte(output.byte), &places));
    let wrote = match done {
        Ok(()) => {
            prop_assert!(mistakes.is_empty() && !divided_by_zero, "no error, but {mistakes:?} {divided_by_zero}");
            true
        }
        Err(Error::Expression(error)) => {
            prop_assert!(mistakes.contains(&(error.kind as u8)), "{error}");
            false
        }
        Err(Error::Fault(fault)) => {
            prop_assert!(divided_by_zero && matches!(fault.diagnosis, Diagnosis::Raised(_)), "{fault}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    for (at, (memory, bytes)) in memories.iter().zip(&contents).enumerate() {
        let dtype = memory.dtype();
        let got: Vec<u8> = with!(dtype, T => {
            memory.to_vec::<T>()?.into_iter().flat_map(|value| bytes_of(value.wide(), dtype)).collect()
        });
        let mut known: HashSet<usize> = HashSet::new();
        if wrote && at == output.memory {
            for (&place, &expected) in output.places.iter().zip(&expected) {
                let place = place as usize;
                known.extend(place..place + output.dtype.size());
                let value = read(&got, output.dtype, place);
                let same = with!(output.dtype, T => T::of(value).distance(T::of(expected)) == 0);
                prop_assert!(same, "at byte {place}: {value:?}, not {expected:?}");
            }
        }
        // Operands in a memory of a type have that type, so all bytes of an element are known, or none.
        for place in (0..bytes.len()).step_by(dtype.size()).filter(|place| !known.contains(place)) {
            let [got, expected] = [&got[..], &bytes[..]].map(|bytes| read(bytes, dtype, place));
            let same = with!(dtype, T => T::of(got).distance(T::of(expected)) == 0);
            prop_assert!(same, "at byte {place} of memory {at}, beside the output: {got:?}, not {expected:?}");
        }
    }
    Ok(())
}

/// Returns the bytes of a value. Those of a NaN may be other bytes than in memory.
fn bytes_of(value: Wide, dtype: DType) -> Vec<u8> {
    let word = match (value, dtype) {
        (Wide::Int(x), _) => x as u64,
        (Wide::Float(x), DType::F16) => f16::from_f64(x).to_bits().into(),
        (Wide::Float(x), DType::BF16) => bf16::from_f64(x).to_bits().into(),
        (Wide::Float(x), DType::F32) => (x as f32).to_bits().into(),
        (Wide::Float(x), _) => x.to_bits(),
    };
    word.to_le_bytes()[..dtype.size()].to_vec()
}

#[test]
fn plans_of_named_operators() {
    check(case(), holds);
}
