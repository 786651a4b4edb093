//! Printing from kernels: [`device_println!`](crate::device_println) and the values that it prints.
//!
//! The compiler turns the format into a format of CUDA's `vprintf`, whose arguments are slots of eight bytes. The GPU calls `vprintf` with
//! them. The host reads the same slots with the same pieces of the format, so both print the same text.

use half::{bf16, f16};

use super::{Block, Dim3};
use crate::element::Accumulate;

#[cfg(test)]
mod tests;
/// What `vprintf` does, for the emulator.
#[cfg(not(target_arch = "nvptx64"))]
mod text;

/// Prints a line from a kernel, for debugging: `device_println!(cx, "thread {} has {:.3}", cx.thread_rank(), x)`.
///
/// The first argument is the [`Block`]. The second is the format, a literal in which each `{}` stands for a value after it. [`Print`] says
/// which values can be printed. A line is written as a whole. Lines of several threads have no particular order.
///
/// | in the format | prints | of |
/// |---|---|---|
/// | `{}` | the number, `true`, `(x, y, z)`; of a float six significant digits, as C's `%g` does | any value |
/// | `{:.3}` | three digits after the point | floats |
/// | `{:x}` `{:X}` `{:#x}` | hexadecimal, with `0x` where `#` is | integers |
/// | `{:8}` `{:<8}` `{:08}` | in at least eight columns: at their right, at their left, filled with zeros | numbers |
/// | `{{` `}}` | braces | |
///
/// These forms combine as in [`std::fmt`]: `{:<8.3}`, `{:#010x}`, `{:<#6x}`. The following are compile errors: any other format, a number
/// of values that differs from the number of `{}`, and a value that does not have the form.
///
/// The emulator prints at once, to the standard output. A GPU keeps the lines in a buffer of 1 MiB, in which later lines overwrite the
/// oldest. The driver writes them to the standard output of the process at the next synchronisation. The text is the same, except that the
/// sign of a NaN is unspecified.
///
/// A kernel that prints has a stack and is slower. A kernel that does not print is not affected.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn show(cx: Block, x: Global<f32>) {
///     for i in cx.items(x.len()) {
///         device_println!(cx, "block {}: x[{}] = {:.2}", cx.block_idx(), i.index(), x[i]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[0.5, 0.25])?;
/// show::launch(&stream, (1, 2), &x)?; // block (0, 0, 0): x[0] = 0.50
/// stream.synchronize()
/// # }
/// ```
#[macro_export]
macro_rules! device_println {
    ($cx:expr, $format:literal $(, $value:expr)* $(,)?) => {
        // The values stand outside the block, whose items they must not see.
        match ($cx, $crate::__print_list!($($value),*)) {
            (cx, values) => {
                struct Format;
                impl $crate::simt::print::Format for Format {
                    const TEXT: &'static str = $format;
                }
                const VALUES: usize = <[&str]>::len(&[$(::core::stringify!($value)),*]);
                const CAPACITY: usize = $crate::simt::print::capacity($format, VALUES);
                $crate::simt::print::line::<Format, _, CAPACITY>(cx, values)
            }
        }
    };
}

/// Values as a list of pairs.
#[doc(hidden)]
#[macro_export]
macro_rules! __print_list {
    () => { () };
    ($first:expr $(, $rest:expr)*) => { ($first, $crate::__print_list!($($rest),*)) };
}

/// A value that [`device_println!`](crate::device_println) prints: integers, floats (`f16` and `bf16` too), `bool` and
/// [`Dim3`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be printed from a kernel",
    label = "not printed by `device_println!`",
    note = "`device_println!` prints integers, floats, `bool` and `Dim3`: print a struct's fields, and text as a part of the \
            format"
)]
pub trait Print: sealed::Sealed {
    #[doc(hidden)]
    const KIND: Kind;
    /// A `u64`, or an array of them.
    #[doc(hidden)]
    type Slots: Copy;
    /// The value as an argument of `vprintf`.
    #[doc(hidden)]
    fn slots(self, hexadecimal: bool) -> Self::Slots;
}

mod sealed {
    pub trait Sealed: Copy {}
}

/// What a value is to a format.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unsigned,
    Signed,
    Float,
    Bool,
    Dim3,
}

impl Kind {
    const fn slots(self) -> usize {
        if let Self::Dim3 = self { 3 } else { 1 }
    }
}

macro_rules! print {
    ($kind:ident: $($t:ty, $slots:ty, $self:ident, $hexadecimal:pat => $value:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Print for $t {
            const KIND: Kind = Kind::$kind;
            type Slots = $slots;
            #[inline(always)]
            fn slots($self, $hexadecimal: bool) -> $slots { $value }
        }
    )*};
    (Unsigned: $($t:ty),*) => { print! { Unsigned: $($t, u64, self, _ => self as u64;)* } };
    (Signed: $($t:ty as $bits:ty),*) => {
        print! { Signed: $($t, u64, self, hexadecimal => if hexadecimal { self as $bits as u64 } else { self as u64 };)* }
    };
}
print!(Unsigned: u8, u16, u32, u64, usize);
print!(Signed: i8 as u8, i16 as u16, i32 as u32, i64 as u64, isize as usize);
print! { Float:
    f32, u64, self, _ => (self as f64).to_bits();
    f64, u64, self, _ => self.to_bits();
    f16, u64, self, _ => (self.widen() as f64).to_bits();
    bf16, u64, self, _ => (self.widen() as f64).to_bits();
}
print! { Bool:
    // For `%s`, the address of a text.
    bool, u64, self, _ => if cfg!(target_arch = "nvptx64") {
        (if self { c"true" } else { c"false" }).as_ptr().expose_provenance() as u64
    } else {
        self as u64
    };
}
print! { Dim3: Dim3, [u64; 3], self, _ => [self.x as u64, self.y as u64, self.z as u64]; }

/// The values of a line: nested pairs, as [`__print_list!`](crate::__print_list) makes them.
#[doc(hidden)]
pub trait Values: sealed::Sealed {
    const KINDS: Kinds;
    /// Words and nothing else.
    type Slots: Copy;
    /// The arguments of `vprintf`, one after the other. Bit `i` says that value `i` is shown in hexadecimal.
    fn slots(self, hexadecimal: u32) -> Self::Slots;
}

/// The kinds of values, in order.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Kinds(Option<(Kind, &'static Kinds)>);

/// The slots of the first value, then those of the rest.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Slots<F, R>(F, R);

impl sealed::Sealed for () {}
impl Values for () {
    const KINDS: Kinds = Kinds(None);
    type Slots = [u64; 0];
    #[inline(always)]
    fn slots(self, _hexadecimal: u32) -> Self::Slots {
        []
    }
}

impl<F: Print, R: Values> sealed::Sealed for (F, R) {}
impl<F: Print, R: Values> Values for (F, R) {
    const KINDS: Kinds = Kinds(Some((F::KIND, &R::KINDS)));
    type Slots = Slots<F::Slots, R::Slots>;
    #[inline(always)]
    fn slots(self, hexadecimal: u32) -> Self::Slots {
        Slots(self.0.slots(hexadecimal & 1 != 0), self.1.slots(hexadecimal >> 1))
    }
}

/// A format as a type.
#[doc(hidden)]
pub trait Format {
    const TEXT: &'static str;
}

/// Prints a line; `N` is the [`capacity`] for its format.
#[doc(hidden)]
pub fn line<F: Format, V: Values, const N: usize>(cx: Block<'_>, values: V) {
    let format = const { &printf::<N>(F::TEXT, V::KINDS) };
    let slots = values.slots(const { hexadecimal(F::TEXT) });
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = cx;
        // SAFETY: the format is terminated and converts the slots of its values.
        unsafe { super::nvptx::print(format.as_ptr(), (&raw const slots).cast()) };
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        // The host makes it for the errors in it.
        let _ = format;
        let lane = cx.lane_state();
        lane.machine.print(lane, &text::render(F::TEXT, V::KINDS, text::words::<V>(&slots)));
    }
}

/// How a value is shown: what stands between its braces.
#[derive(Clone, Copy)]
struct Spec {
    left: bool,
    prefix: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// `x` or `X`.
    hexadecimal: Option<u8>,
}

/// A piece of a format.
enum Piece {
    End,
    Byte(u8),
    Value(Spec),
}

/// The byte at `at`, or 0, which no format contains.
const fn byte(text: &[u8], at: usize) -> u8 {
    if at < text.len() { text[at] } else { 0 }
}

/// The piece at `at`, and where the next one begins.
const fn piece(text: &[u8], at: usize) -> (Piece, usize) {
    if at == text.len() {
        return (Piece::End, at);
    }
    match text[at] {
        b'{' | b'}' if byte(text, at + 1) == text[at] => (Piece::Byte(text[at]), at + 2),
        b'{' => {
            let (spec, next) = spec(text, at + 1);
            (Piece::Value(spec), next)
        }
        b'}' => panic!("a `}}` without a `{{` before it: a brace is written twice"),
        0 => panic!("a format cannot contain a null byte"),
        other => (Piece::Byte(other), at + 1),
    }
}

/// What stands between the brace before `at` and the next one.
const fn spec(text: &[u8], mut at: usize) -> (Spec, usize) {
    let mut spec = Spec { left: false, prefix: false, zeros: false, width: 0, precision: None, hexadecimal: None };
    if byte(text, at) == b':' {
        at += 1;
        spec.left = byte(text, at) == b'<';
        at += spec.left as usize;
        spec.prefix = byte(text, at) == b'#';
        at += spec.prefix as usize;
        spec.zeros = byte(text, at) == b'0';
        at += spec.zeros as usize;
        (spec.width, at) = number(text, at);
        if byte(text, at) == b'.' {
            let (digits, next) = number(text, at + 1);
            assert!(next > at + 1, "a precision is a number: `{{:.3}}`");
            (spec.precision, at) = (Some(digits), next);
        }
        if matches!(byte(text, at), b'x' | b'X') {
            spec.hexadecimal = Some(text[at]);
            at += 1;
        }
    }
    assert!(
        byte(text, at) == b'}',
        "`device_println!` knows `{{}}`, `{{:x}}`, `{{:#x}}`, `{{:8}}`, `{{:<8}}`, `{{:08}}` and `{{:.3}}`, with the values \
         behind the format; a brace is written twice"
    );
    (spec, at + 1)
}

/// The number at `at`, 0 if there is none, and where it ends.
const fn number(text: &[u8], mut at: usize) -> (usize, usize) {
    let mut value = 0;
    while byte(text, at).is_ascii_digit() {
        value = value * 10 + (text[at] - b'0') as usize;
        assert!(value < 1000, "widths and precisions are less than 1000");
        at += 1;
    }
    (value, at)
}

/// Bytes that suffice for the format that [`printf`] makes of `text`, which has so many values.
#[doc(hidden)]
pub const fn capacity(text: &str, values: usize) -> usize {
    let text = text.as_bytes();
    let (mut at, mut count) = (0, 0);
    loop {
        let (piece, next) = piece(text, at);
        match piece {
            Piece::End => break,
            Piece::Byte(_) => {}
            Piece::Value(_) => count += 1,
        }
        at = next;
    }
    assert!(count <= values, "a `{{}}` of this format has no value behind the format");
    assert!(count >= values, "a value behind this format has no `{{}}` in it");
    // A percent sign is doubled. Widths stand in the text already, and no value takes more beside. The end is two bytes.
    2 * text.len() + 20 * count + 2
}

/// Which values are shown in hexadecimal, one bit each.
const fn hexadecimal(text: &str) -> u32 {
    let text = text.as_bytes();
    let (mut at, mut bit, mut bits) = (0, 1u32, 0);
    loop {
        let (piece, next) = piece(text, at);
        match piece {
            Piece::End => return bits,
            Piece::Byte(_) => {}
            Piece::Value(spec) => {
                if spec.hexadecimal.is_some() {
                    bits |= bit;
                }
                bit <<= 1;
            }
        }
        at = next;
    }
}

/// The format of `vprintf` that prints `text` with values of `kinds`: a line, terminated.
const fn printf<const N: usize>(text: &str, mut kinds: Kinds) -> [u8; N] {
    let text = text.as_bytes();
    let mut format = Bytes { bytes: [0; N], len: 0 };
    let (mut at, mut slots) = (0, 0);
    loop {
        let (piece, next) = piece(text, at);
        match piece {
            Piece::End => break,
            Piece::Byte(b'%') => format.push(b"%%"),
            Piece::Byte(byte) => format.push(&[byte]),
            Piece::Value(spec) => {
                let Some((kind, rest)) = kinds.0 else { unreachable!() };
                format.conversion(spec, kind);
                slots += kind.slots();
                kinds = *rest;
            }
        }
        at = next;
    }
    assert!(slots <= 32, "a line has at most 32 values, where a `Dim3` counts three times");
    format.push(b"\n\0");
    format.bytes
}

/// A text in the making.
struct Bytes<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Bytes<N> {
    const fn push(&mut self, text: &[u8]) {
        let mut i = 0;
        while i < text.len() {
            self.bytes[self.len] = text[i];
            self.len += 1;
            i += 1;
        }
    }

    const fn number(&mut self, value: usize) {
        if value >= 10 {
            self.number(value / 10);
        }
        self.push(&[b'0' + (value % 10) as u8]);
    }

    /// What converts a value.
    const fn conversion(&mut self, spec: Spec, kind: Kind) {
        spec.check(kind);
        match kind {
            Kind::Bool => return self.push(b"%s"),
            Kind::Dim3 => return self.push(b"(%llu, %llu, %llu)"),
            Kind::Unsigned | Kind::Signed | Kind::Float => {}
        }
        // C's `#` leaves the prefix of a zero out.
        if spec.prefix {
            self.push(b"0x");
        }
        self.push(b"%");
        if spec.left {
            self.push(b"-");
        }
        let width = spec.width_without_prefix();
        if width > 0 {
            if spec.zeros {
                self.push(b"0");
            }
            self.number(width);
        }
        if let Some(digits) = spec.precision {
            self.push(b".");
            self.number(digits);
        }
        match (kind, spec.hexadecimal, spec.precision) {
            (Kind::Float, _, None) => self.push(b"g"),
            (Kind::Float, ..) => self.push(b"f"),
            (_, Some(letter), _) => self.push(&[b'l', b'l', letter]),
            (Kind::Signed, ..) => self.push(b"lld"),
            (..) => self.push(b"llu"),
        }
    }
}

impl Spec {
    /// Whether values of this kind can be shown so.
    const fn check(&self, kind: Kind) {
        let integer = matches!(kind, Kind::Unsigned | Kind::Signed);
        assert!(integer || matches!(kind, Kind::Float) || self.width == 0, "a width is for numbers");
        assert!(integer || self.hexadecimal.is_none(), "`{{:x}}` is for integers");
        assert!(matches!(kind, Kind::Float) || self.precision.is_none(), "a precision is for floats");
        assert!(self.hexadecimal.is_some() || !self.prefix, "`#` is for `{{:#x}}`");
        assert!(!(self.left && self.zeros), "zeros fill at the left: write `{{:<8}}` or `{{:08}}`");
        assert!(
            !self.prefix || self.zeros || self.left || self.width == 0,
            "a width goes with `{{:#010x}}` and `{{:<#10x}}`, and not with `{{:#10x}}`"
        );
    }

    const fn width_without_prefix(&self) -> usize {
        if self.prefix { self.width.saturating_sub(2) } else { self.width }
    }
}
