//! Device functions: for the expansion of `#[device_function]`, and for kernels that are written at run time.

use std::fmt;

/// A type of the parameters and of the result of device functions, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "Rust's names")]
pub enum ValueType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl ValueType {
    /// Rust's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The type of the function's `.param` in PTX: `.b32` or `.b64`. Values narrower than 32 bits are passed and returned in 32 bits:
    /// `bool` and unsigned integers are extended with zeros, and signed integers with their sign.
    pub const fn param(self) -> &'static str {
        match self {
            Self::I64 | Self::U64 | Self::F64 => ".b64",
            _ => ".b32",
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that device functions take and return.
#[diagnostic::on_unimplemented(
    message = "a device function takes and returns no `{Self}`",
    label = "not `f32`, `f64`, `bool` or an integer of 8 to 64 bits",
    note = "pass and return `f32`, `f64`, `bool` and integers of 8 to 64 bits by value"
)]
pub trait FunctionValue: Copy + sealed::Sealed + 'static {
    /// The type as a value.
    const TYPE: ValueType;
}

macro_rules! values {
    ($($t:ident: $variant:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl FunctionValue for $t {
            const TYPE: ValueType = ValueType::$variant;
        }
    )*};
}
values! {
    bool: Bool, i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64
}

/// A device function's code as the builder writes it: architecture, PTX version, and items.
type RawImage = (u32, u32, &'static [&'static str]);

/// A device function's code for an architecture: text to put into your own module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionImage {
    /// Compute capability times ten. For 90, a module with this code needs the `.target` `sm_90`, or a later one.
    pub arch: u32,
    /// PTX version times ten. For 80, a module with this code needs the `.version` `8.0`, or a later one.
    pub version: u32,
    /// Items at module level. The function itself comes last; its tables and the functions that it calls come before the items that need
    /// them. Items with equal text are the same item. So a module that takes each text once, at its first place, can have the code of
    /// several functions from any crates.
    pub items: &'static [&'static str],
}

impl FunctionImage {
    /// Whether the function can panic. It then reports to the launch's fault control, whose address the kernel that calls it
    /// stores in the shared variable `kp_control`, which is among the items, before the call:
    ///
    /// ```text
    /// ld.param.b64    %control, [the kernel's last parameter];
    /// st.shared.b64   [kp_control], %control;
    /// ```
    pub fn can_panic(&self) -> bool {
        self.items.iter().any(|item| item.starts_with(".shared") && item.contains(CONTROL))
    }
}

/// The variable of the runtime module through which a panic finds its stream.
const CONTROL: &str = " kp_control;";

/// A device function without its Rust type, as the host knows it: see [`FunctionInfo`].
pub struct FunctionCode {
    name: &'static str,
    symbol: &'static str,
    params: &'static [ValueType],
    result: ValueType,
    images: &'static [RawImage],
}

impl FunctionCode {
    /// Describes a function by its path, its symbol, its types and its code.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        symbol: &'static str,
        params: &'static [ValueType],
        result: ValueType,
        images: &'static [RawImage],
    ) -> Self {
        Self { name, symbol, params, result, images }
    }

    /// The function's path: `my_crate::kernels::smooth`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The function's name in PTX: `my_crate__kernels__smooth`.
    pub fn symbol(&self) -> &'static str {
        self.symbol
    }

    /// The parameters' types.
    pub fn params(&self) -> &'static [ValueType] {
        self.params
    }

    /// The result's type.
    pub fn result(&self) -> ValueType {
        self.result
    }

    /// The code for a device of an architecture, given as compute capability times ten: the code of the newest architecture that is not
    /// newer. `None` if the function was built only for the host, or only for newer architectures.
    pub fn image(&self, arch: u32) -> Option<FunctionImage> {
        self.images().filter(|image| image.arch <= arch).last()
    }

    /// The code, by ascending architecture. It is empty if the function was built only for the host.
    pub fn images(&self) -> impl Iterator<Item = FunctionImage> {
        self.images.iter().map(|&(arch, version, items)| FunctionImage { arch, version, items })
    }
}

impl fmt::Debug for FunctionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params = self.params.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
        write!(f, "fn {}({params}) -> {}", self.name, self.result)
    }
}

/// A device function with Rust type `F`, such as `fn(f32) -> f32`, as the host knows it: its names, its code for the GPU, and the function
/// itself.
///
/// A program has one for each function with `#[device_function]`: `smooth::info()`:
///
/// ```
/// use kernel_primitives::kernels::functions::hypot_f32;
/// use kernel_primitives::{FunctionInfo, ValueType};
///
/// let info: &FunctionInfo<fn(f32, f32) -> f32> = hypot_f32::info();
/// // On the host.
/// assert_eq!(info.function()(3.0, 4.0), 5.0);
/// // For a GPU.
/// let code = info.code();
/// assert_eq!(code.symbol(), "kernel_primitives__kernels__functions__hypot_f32");
/// assert_eq!((code.params(), code.result()), (&[ValueType::F32; 2][..], ValueType::F32));
/// if let Some(image) = code.image(90) {
///     println!(".version {}.{}\n.target sm_{}", image.version / 10, image.version % 10, image.arch);
///     println!(".address_size 64\n{}", image.items.join("\n"));
/// }
/// ```
pub struct FunctionInfo<F> {
    function: F,
    code: FunctionCode,
}

impl<F: Copy> FunctionInfo<F> {
    /// A function with its code.
    #[doc(hidden)]
    pub const fn new(function: F, code: FunctionCode) -> Self {
        Self { function, code }
    }

    /// The function's path: `my_crate::kernels::smooth`.
    pub fn name(&self) -> &'static str {
        self.code.name
    }

    /// The function, for the host.
    pub fn function(&self) -> F {
        self.function
    }

    /// The function without its Rust type: its names and its code for the GPU.
    pub fn code(&self) -> &FunctionCode {
        &self.code
    }
}

impl<F> fmt::Debug for FunctionInfo<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)
    }
}

/// The path as a PTX symbol, of the same length: `__` for `::`.
pub const fn symbol<const N: usize>(path: &str) -> [u8; N] {
    let path = path.as_bytes();
    let mut symbol = [0; N];
    let mut i = 0;
    while i < N {
        symbol[i] = if path[i] == b':' { b'_' } else { path[i] };
        i += 1;
    }
    symbol
}
