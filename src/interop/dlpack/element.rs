//! Element types of DLPack and of Rust.

use half::{bf16, f16};
use primitives_gpu::{Complex, Element};

use super::abi::DLDataType;

mod sealed {
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Sealed {}
}

/// A Rust type that DLPack has, too: `bool`, integers, `f16`, `bf16`, `f32`, `f64`, and `Complex` of the last two.
#[diagnostic::on_unimplemented(
    message = "DLPack has no element type for `{Self}`",
    label = "not `bool`, an integer of 8 to 64 bits, `f16`, `bf16`, `f32`, `f64` or `Complex` of the last two"
)]
pub trait DlpackElement: Element + sealed::Sealed {
    /// The type as a value.
    const TYPE: DLDataType;
}

macro_rules! elements {
    ($($t:ty: $code:ident;)*) => {$(
        impl sealed::Sealed for $t {}
        impl DlpackElement for $t {
            const TYPE: DLDataType = DLDataType { code: DLDataType::$code, bits: 8 * size_of::<$t>() as u8, lanes: 1 };
        }
    )*};
}
elements! {
    bool: BOOL;
    i8: INT;
    i16: INT;
    i32: INT;
    i64: INT;
    u8: UINT;
    u16: UINT;
    u32: UINT;
    u64: UINT;
    f16: FLOAT;
    bf16: BFLOAT;
    f32: FLOAT;
    f64: FLOAT;
    Complex<f32>: COMPLEX;
    Complex<f64>: COMPLEX;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_that_python_gives_them() {
        let names = [bool::TYPE, u8::TYPE, i64::TYPE, f16::TYPE, bf16::TYPE, f32::TYPE].map(|t| t.to_string());
        assert_eq!(names, ["bool", "uint8", "int64", "float16", "bfloat16", "float32"]);
        assert_eq!(Complex::<f32>::TYPE.to_string(), "complex64");
        assert_eq!(Complex::<f64>::TYPE.bits, 128);
        assert_eq!(DLDataType { lanes: 4, ..f32::TYPE }.to_string(), "float32x4");
        assert_eq!(DLDataType { code: 10, bits: 8, lanes: 1 }.to_string(), "type code 10 of 8 bits");
    }
}
