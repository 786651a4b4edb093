//! Loads and stores of elements, one or several at a time.

use std::fmt::Write;

use super::emit::{Class, Emitter, Reg, op};
use crate::expr::dtype::DType;

impl Emitter {
    /// Loads `count` contiguous elements. The address is a multiple of their bytes, up to 16.
    pub(super) fn load(&mut self, space: &str, dtype: DType, address: Reg, offset: usize, count: usize) -> Vec<Reg> {
        if count == 1 {
            return vec![self.load_one(space, dtype, address, offset)];
        }
        let (size, bytes) = (dtype.size(), dtype.size() * count);
        let mut values = Vec::with_capacity(count);
        for at in (0..bytes).step_by(16) {
            let part = (bytes - at).min(16);
            let words = self.load_words(space, part, size, address, offset + at);
            self.unpack(dtype, &words, part / size, &mut values);
        }
        values
    }

    fn load_one(&mut self, space: &str, dtype: DType, address: Reg, offset: usize) -> Reg {
        let class = Class::of(dtype);
        let at = format!("[{address}+{offset}]");
        match dtype {
            DType::Bool => {
                let byte = self.op_with(Class::B32, &format!("ld.{space}.u8"), &[], at);
                self.op_with(Class::Pred, "setp.ne.u32", &[byte], 0)
            }
            DType::I8 | DType::I16 | DType::U8 | DType::U16 => {
                let t = format!("{}{}", if dtype.is_signed() { 's' } else { 'u' }, 8 * dtype.size());
                self.op_with(class, &format!("ld.{space}.{t}"), &[], at)
            }
            _ => self.op_with(class, &format!("ld.{space}.{}", class.ptx()), &[], at),
        }
    }

    /// Loads words: of 8 bytes for elements of 8 bytes, and of 4 bytes or fewer for other elements.
    fn load_words(&mut self, space: &str, bytes: usize, size: usize, address: Reg, offset: usize) -> Vec<Reg> {
        let (class, count) = words(bytes, size);
        let words: Vec<Reg> = (0..count).map(|_| self.reg(class)).collect();
        let (vector, list) = list(&words);
        op!(self, "ld.{space}{vector}.{} {list}, [{address}+{offset}];", class.ptx());
        words
    }

    fn unpack(&mut self, dtype: DType, words: &[Reg], count: usize, values: &mut Vec<Reg>) {
        match dtype.size() {
            8 | 4 => {
                let class = Class::of(dtype);
                for &word in words {
                    let same = word.class == class;
                    values.push(if same {
                        word
                    } else {
                        self.op(class, &format!("mov.{}", word.class.ptx()), &[word])
                    });
                }
            }
            2 => {
                for &word in words {
                    let halves = if word.class == Class::B16 {
                        vec![word]
                    } else {
                        let (low, high) = (self.reg(Class::B16), self.reg(Class::B16));
                        op!(self, "mov.b32 {{{low}, {high}}}, {word};");
                        vec![low, high]
                    };
                    for half in halves {
                        values.push(match dtype {
                            DType::I16 => self.op(Class::B32, "cvt.s32.s16", &[half]),
                            DType::U16 => self.op(Class::B32, "cvt.u32.u16", &[half]),
                            _ => half,
                        });
                    }
                }
            }
            _ => {
                for i in 0..count {
                    let word = words[i / 4];
                    let word =
                        if word.class == Class::B16 { self.op(Class::B32, "cvt.u32.u16", &[word]) } else { word };
                    let name = if dtype == DType::I8 { "bfe.s32" } else { "bfe.u32" };
                    let byte = self.op_with(Class::B32, name, &[word], format_args!("{}, 8", i % 4 * 8));
                    let is_bool = dtype == DType::Bool;
                    values.push(if is_bool { self.op_with(Class::Pred, "setp.ne.u32", &[byte], 0) } else { byte });
                }
            }
        }
    }

    /// Stores contiguous elements. The address is a multiple of their bytes, up to 16.
    pub(super) fn store(&mut self, space: &str, dtype: DType, address: Reg, offset: usize, values: &[Reg]) {
        if let [value] = *values {
            return self.store_one(space, dtype, address, offset, value);
        }
        let (size, bytes) = (dtype.size(), dtype.size() * values.len());
        for at in (0..bytes).step_by(16) {
            let part = (bytes - at).min(16);
            let words = self.pack(dtype, &values[at / size..(at + part) / size]);
            let (vector, list) = list(&words);
            op!(self, "st.{space}{vector}.{} [{address}+{}], {list};", words[0].class.ptx(), offset + at);
        }
    }

    fn store_one(&mut self, space: &str, dtype: DType, address: Reg, offset: usize, value: Reg) {
        let value = self.bits(dtype, value);
        let t = match dtype.size() {
            1 => "u8",
            2 if value.class == Class::B32 => "u16",
            _ => value.class.ptx(),
        };
        op!(self, "st.{space}.{t} [{address}+{offset}], {value};");
    }

    /// Returns a `bool` as 0 or 1, and other values unchanged.
    fn bits(&mut self, dtype: DType, value: Reg) -> Reg {
        if dtype == DType::Bool {
            self.op_with(Class::B32, "selp.b32", &[], format_args!("1, 0, {value}"))
        } else {
            value
        }
    }

    fn pack(&mut self, dtype: DType, values: &[Reg]) -> Vec<Reg> {
        match dtype.size() {
            8 | 4 => values.to_vec(),
            2 => {
                let halves: Vec<Reg> =
                    values
                        .iter()
                        .map(|&value| {
                            if value.class == Class::B16 { value } else { self.op(Class::B16, "cvt.u16.u32", &[value]) }
                        })
                        .collect();
                let pair = |pair: &[Reg], e: &mut Self| {
                    let word = e.reg(Class::B32);
                    op!(e, "mov.b32 {word}, {{{}, {}}};", pair[0], pair[1]);
                    word
                };
                halves.chunks(2).map(|two| pair(two, self)).collect()
            }
            _ => {
                let bytes: Vec<Reg> = values.iter().map(|&value| self.bits(dtype, value)).collect();
                let word = |four: &[Reg], e: &mut Self| {
                    let mut word = e.op_with(Class::B32, "and.b32", &[four[0]], 0xff);
                    for (i, &byte) in four.iter().enumerate().skip(1) {
                        word = e.op_with(Class::B32, "bfi.b32", &[byte, word], format_args!("{}, 8", 8 * i));
                    }
                    // Two bytes fill half of the word.
                    if four.len() == 2 { e.op(Class::B16, "cvt.u16.u32", &[word]) } else { word }
                };
                bytes.chunks(4).map(|four| word(four, self)).collect()
            }
        }
    }
}

/// Returns the class and the number of the registers for this number of bytes.
fn words(bytes: usize, size: usize) -> (Class, usize) {
    match (bytes, size) {
        (_, 8) => (Class::B64, bytes / 8),
        (2, _) => (Class::B16, 1),
        _ => (Class::B32, bytes / 4),
    }
}

/// Returns `.v4` and `{a, b, c, d}` for several words, or an empty text and `a` for one.
fn list(words: &[Reg]) -> (&'static str, String) {
    if let [word] = words {
        return ("", word.to_string());
    }
    let mut text = String::from("{");
    for (i, word) in words.iter().enumerate() {
        let _ = write!(text, "{}{word}", if i > 0 { ", " } else { "" });
    }
    text.push('}');
    (if words.len() == 2 { ".v2" } else { ".v4" }, text)
}
