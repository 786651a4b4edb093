//! Element types of NumPy and of Rust.

use half::f16;
use primitives_gpu::{Complex, Element};

/// An element type that both NumPy's files and this library have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the types' names")]
#[non_exhaustive]
pub enum NpyType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    Complex64,
    Complex128,
}

impl NpyType {
    /// All element types.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::Complex64,
        Self::Complex128,
    ];

    /// Returns the name of the type in NumPy, such as `float32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
        }
    }

    /// Returns the name of the type in a file, in little endian, such as `<f4`.
    pub const fn descr(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::I8 => "|i1",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::F16 => "<f2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
            Self::Complex64 => "<c8",
            Self::Complex128 => "<c16",
        }
    }

    /// Returns the number of bytes of an element.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// Returns the type that a file names by `descr`, and whether it is in big endian.
    pub(super) fn parse(descr: &str) -> Option<(Self, bool)> {
        let (order, name) = (descr.chars().next()?, descr.get(1..)?);
        let element = Self::ALL.into_iter().find(|element| &element.descr()[1..] == name)?;
        match order {
            '<' => Some((element, false)),
            '>' => Some((element, true)),
            '=' => Some((element, cfg!(target_endian = "big"))),
            '|' => (element.size() == 1).then_some((element, false)),
            _ => None,
        }
    }
}

mod sealed {
    /// The conversion of elements to bytes and back.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Bytes: Sized {
        /// Appends the elements of `bytes`. If one of them is not valid, the error is its index.
        fn decode(bytes: &[u8], big_endian: bool, to: &mut Vec<Self>) -> Result<(), usize>;
        /// Appends the bytes of `elements` in little endian.
        fn encode(elements: &[Self], to: &mut Vec<u8>);
    }
}
pub(super) use sealed::Bytes;

/// A Rust type that NumPy's files can have: `bool`, integers, `f16`, `f32`, `f64`, and `Complex` of the last two.
///
/// `bf16` is not such a type, because NumPy does not have it:
///
/// ```compile_fail
/// # use kernel_primitives::{bf16, interop::npy::NpyArray};
/// let array = NpyArray::<bf16>::read("weights.npy");
/// ```
#[diagnostic::on_unimplemented(
    message = "NumPy's files have no element type for `{Self}`",
    label = "not `bool`, an integer of 8 to 64 bits, `f16`, `f32`, `f64` or `Complex` of the last two",
    note = "NumPy has no `bf16`: convert to `f32`, which holds all its values, with `.cast::<f32>()`"
)]
pub trait NpyElement: Element + Bytes {
    /// The type as a value.
    const TYPE: NpyType;
}

macro_rules! numbers {
    ($($t:ty: $npy:ident;)*) => {$(
        impl Bytes for $t {
            fn decode(bytes: &[u8], big_endian: bool, to: &mut Vec<Self>) -> Result<(), usize> {
                let (elements, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
                if big_endian {
                    to.extend(elements.iter().map(|&element| <$t>::from_be_bytes(element)));
                } else {
                    to.extend(elements.iter().map(|&element| <$t>::from_le_bytes(element)));
                }
                Ok(())
            }
            fn encode(elements: &[Self], to: &mut Vec<u8>) {
                to.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
            }
        }
        impl NpyElement for $t {
            const TYPE: NpyType = NpyType::$npy;
        }
    )*};
}
numbers! {
    i8: I8;
    i16: I16;
    i32: I32;
    i64: I64;
    u8: U8;
    u16: U16;
    u32: U32;
    u64: U64;
    f16: F16;
    f32: F32;
    f64: F64;
}

impl Bytes for bool {
    fn decode(bytes: &[u8], _: bool, to: &mut Vec<Self>) -> Result<(), usize> {
        if let Some(wrong) = bytes.iter().position(|byte| *byte > 1) {
            return Err(wrong);
        }
        to.extend(bytes.iter().map(|byte| *byte == 1));
        Ok(())
    }
    fn encode(elements: &[Self], to: &mut Vec<u8>) {
        to.extend(elements.iter().map(|&element| u8::from(element)));
    }
}
impl NpyElement for bool {
    const TYPE: NpyType = NpyType::Bool;
}

macro_rules! complex_numbers {
    ($($t:ty: $npy:ident;)*) => {$(
        impl Bytes for Complex<$t> {
            fn decode(bytes: &[u8], big_endian: bool, to: &mut Vec<Self>) -> Result<(), usize> {
                let (numbers, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
                let (pairs, _) = numbers.as_chunks::<2>();
                let of = |number| if big_endian { <$t>::from_be_bytes(number) } else { <$t>::from_le_bytes(number) };
                to.extend(pairs.iter().map(|&[re, im]| Self { re: of(re), im: of(im) }));
                Ok(())
            }
            fn encode(elements: &[Self], to: &mut Vec<u8>) {
                to.extend(elements.iter().flat_map(|element| [element.re, element.im]).flat_map(<$t>::to_le_bytes));
            }
        }
        impl NpyElement for Complex<$t> {
            const TYPE: NpyType = NpyType::$npy;
        }
    )*};
}
complex_numbers! {
    f32: Complex64;
    f64: Complex128;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_the_name_that_it_has_in_files() {
        for element in NpyType::ALL {
            let name = &element.descr()[1..];
            assert_eq!(NpyType::parse(element.descr()), Some((element, false)), "{}", element.name());
            assert_eq!(NpyType::parse(&format!(">{name}")), Some((element, true)));
            assert_eq!(NpyType::parse(&format!("<{name}")), Some((element, false)));
            assert_eq!(NpyType::parse(&format!("|{name}")).is_some(), element.size() == 1);
        }
        for none in ["", "<", "f4", "<f16", "<f", "<f44", "|V2", "é4", "<é", "|O", "<U5", "<M8[ns]", "?", "!f4"] {
            assert_eq!(NpyType::parse(none), None, "{none}");
        }
    }
}
