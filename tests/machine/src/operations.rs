//! The operations that instructions compute with a lane's operands.

use std::cmp::Ordering;

use half::{bf16, f16};

use super::memory::WINDOW;

/// The function that a lane computes with its operands.
pub(super) type Operation = Box<dyn Fn(&[u64; 4]) -> u64>;

/// Returns the low bits of a value.
pub(super) fn cut(value: u64, bits: u32) -> u64 {
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

pub(super) fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// Returns the number of bits of a type, such as `s32`.
pub(super) fn bits(name: &str) -> u32 {
    name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1)
}

fn single(word: u64) -> f32 {
    f32::from_bits(word as u32)
}

fn half(word: u64) -> f32 {
    f16::from_bits(word as u16).to_f32()
}

/// A comparison of the first two operands.
type Comparison = Box<dyn Fn(&[u64; 4]) -> Option<Ordering>>;

/// Returns a comparison of the first two operands, of a type.
fn comparison(dtype: &str) -> Comparison {
    let width = bits(dtype);
    match dtype {
        "f32" => Box::new(|x| single(x[0]).partial_cmp(&single(x[1]))),
        "f64" => Box::new(|x| f64::from_bits(x[0]).partial_cmp(&f64::from_bits(x[1]))),
        _ if dtype.starts_with('s') => Box::new(move |x| Some(signed(x[0], width).cmp(&signed(x[1], width)))),
        _ => Box::new(move |x| Some(cut(x[0], width).cmp(&cut(x[1], width)))),
    }
}

/// Returns the operation of an instruction with that name, or `None` if it is not known.
pub(super) fn operation(name: &[&str]) -> Option<Operation> {
    let last = *name.last()?;
    let width = bits(last);
    let of_single = |f: fn(&[u64; 4]) -> f32| -> Operation { Box::new(move |x| f(x).to_bits().into()) };
    let of_double = |f: fn(&[u64; 4]) -> f64| -> Operation { Box::new(move |x| f(x).to_bits()) };
    let of_half = |f: fn(&[u64; 4]) -> f32| -> Operation { Box::new(move |x| f16::from_f32(f(x)).to_bits().into()) };
    let operation: Operation = match name {
        ["ld", "param", ..] | ["mov", ..] => Box::new(move |x| cut(x[0], width)),
        ["cvta", ..] => Box::new(|x| x[0]),
        ["mapa", "shared::cluster", "u32"] => Box::new(|x| x[0] + (x[1] + 1) * WINDOW),
        ["selp", ..] => Box::new(|x| if x[2] != 0 { x[0] } else { x[1] }),
        ["setp", compare, rest @ ..] => {
            let is: fn(Option<Ordering>) -> bool = match *compare {
                "eq" => |order| order == Some(Ordering::Equal),
                "ne" | "neu" => |order| order != Some(Ordering::Equal),
                "lt" => |order| order == Some(Ordering::Less),
                "le" => |order| order.is_some_and(Ordering::is_le),
                "gt" => |order| order == Some(Ordering::Greater),
                "ge" => |order| order.is_some_and(Ordering::is_ge),
                "nan" => |order| order.is_none(),
                _ => return None,
            };
            let (compared, and) = (comparison(last), rest[0] == "and");
            Box::new(move |x| u64::from(is(compared(x)) && (!and || x[2] != 0)))
        }
        ["not", "pred"] => Box::new(|x| u64::from(x[0] == 0)),
        ["and", _] => Box::new(|x| x[0] & x[1]),
        ["or", _] => Box::new(|x| x[0] | x[1]),
        ["xor", _] => Box::new(|x| x[0] ^ x[1]),
        ["not", _] => Box::new(move |x| cut(!x[0], width)),
        ["shl", _] => Box::new(move |x| cut(x[0] << x[1], width)),
        ["shr", t] if t.starts_with('s') => Box::new(move |x| cut((signed(x[0], width) >> x[1]) as u64, width)),
        ["shr", _] => Box::new(move |x| cut(x[0], width) >> x[1]),
        ["bfe", "u32"] => Box::new(|x| cut(x[0] >> x[1], x[2] as u32)),
        ["bfe", "s32"] => Box::new(|x| cut(signed(x[0] >> x[1], x[2] as u32) as u64, 32)),
        ["bfi", _] => Box::new(|x| {
            let mask = ((1u64 << x[3]) - 1) << x[2];
            (x[1] & !mask) | ((x[0] << x[2]) & mask)
        }),
        ["cvt", "f32", "f16"] => of_single(|x| half(x[0])),
        ["cvt", "rn", "f16", "f32"] => of_half(|x| single(x[0])),
        ["cvt", "rn", "f32", "u64"] => of_single(|x| x[0] as f32),
        ["cvt", "rzi", "u32", "f32"] => Box::new(|x| (single(x[0]) as u32).into()),
        ["cvt", "rzi", "u32", "f64"] => Box::new(|x| (f64::from_bits(x[0]) as u32).into()),
        ["max", "NaN", "f32"] => of_single(|x| {
            let (a, b) = (single(x[0]), single(x[1]));
            if a.is_nan() || a > b { a } else { b }
        }),
        ["cvt", "rn", "bf16", "f32"] => Box::new(|x| bf16::from_f32(single(x[0])).to_bits().into()),
        ["cvt", to, from] if !to.starts_with('f') && !from.starts_with('f') => {
            let (from_bits, to_bits, is_signed) = (bits(from), bits(to).max(32), from.starts_with('s'));
            Box::new(move |x| {
                let value = if is_signed { signed(x[0], from_bits) as u64 } else { cut(x[0], from_bits) };
                cut(value, to_bits)
            })
        }
        ["add", "rn", "f32"] => of_single(|x| single(x[0]) + single(x[1])),
        ["sub", "rn", "f32"] => of_single(|x| single(x[0]) - single(x[1])),
        ["mul", "rn", "f32"] => of_single(|x| single(x[0]) * single(x[1])),
        ["add", "rn", "f64"] => of_double(|x| f64::from_bits(x[0]) + f64::from_bits(x[1])),
        ["sub", "rn", "f64"] => of_double(|x| f64::from_bits(x[0]) - f64::from_bits(x[1])),
        ["mul", "rn", "f64"] => of_double(|x| f64::from_bits(x[0]) * f64::from_bits(x[1])),
        ["add", "rn", "f16"] => of_half(|x| half(x[0]) + half(x[1])),
        ["sub", "rn", "f16"] => of_half(|x| half(x[0]) - half(x[1])),
        ["mul", "rn", "f16"] => of_half(|x| half(x[0]) * half(x[1])),
        ["add", _] => Box::new(move |x| cut(x[0].wrapping_add(x[1]), width)),
        ["sub", _] => Box::new(move |x| cut(x[0].wrapping_sub(x[1]), width)),
        ["fma", "rn", "f32"] => of_single(|x| single(x[0]).mul_add(single(x[1]), single(x[2]))),
        ["fma", "rn", "f64"] => of_double(|x| f64::from_bits(x[0]).mul_add(f64::from_bits(x[1]), f64::from_bits(x[2]))),
        ["mul", "hi", "u32"] => Box::new(|x| (cut(x[0], 32) * cut(x[1], 32)) >> 32),
        ["mul", "wide", "u32"] => Box::new(|x| cut(x[0], 32) * cut(x[1], 32)),
        ["mad", "wide", "s32"] => {
            Box::new(|x| (signed(x[0], 32).wrapping_mul(signed(x[1], 32)) as u64).wrapping_add(x[2]))
        }
        ["mul", "lo", _] => Box::new(move |x| cut(x[0].wrapping_mul(x[1]), width)),
        ["mad", "lo", _] => Box::new(move |x| cut(x[0].wrapping_mul(x[1]).wrapping_add(x[2]), width)),
        ["div", "u32"] => Box::new(|x| cut(x[0], 32) / cut(x[1], 32)),
        ["rem", "s32"] => Box::new(|x| cut((signed(x[0], 32) % signed(x[1], 32)) as u64, 32)),
        ["neg", "f32"] => of_single(|x| -single(x[0])),
        ["neg", "f64"] => of_double(|x| -f64::from_bits(x[0])),
        ["neg", "s32"] => Box::new(|x| cut(x[0].wrapping_neg(), 32)),
        ["min", "u32"] => Box::new(|x| cut(x[0], 32).min(cut(x[1], 32))),
        ["max", "s32"] => Box::new(|x| cut(signed(x[0], 32).max(signed(x[1], 32)) as u64, 32)),
        ["min", "s32"] => Box::new(|x| cut(signed(x[0], 32).min(signed(x[1], 32)) as u64, 32)),
        _ => return None,
    };
    Some(operation)
}
