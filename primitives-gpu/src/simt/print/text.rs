//! What the host prints: the values in the slots, by the pieces of the format.

use super::*;

pub(super) fn words<V: Values>(slots: &V::Slots) -> &[u64] {
    // SAFETY: slots are words and nothing else.
    unsafe { core::slice::from_raw_parts((&raw const *slots).cast(), size_of::<V::Slots>() / size_of::<u64>()) }
}

/// The line, without its end.
pub(super) fn render(text: &str, mut kinds: Kinds, mut slots: &[u64]) -> String {
    let text = text.as_bytes();
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        let (piece, next) = piece(text, at);
        match piece {
            Piece::End => break,
            Piece::Byte(byte) => line.push(byte),
            Piece::Value(spec) => {
                let (kind, rest) = kinds.0.expect("counted by `capacity`");
                let (value, others) = slots.split_at(kind.slots());
                line.extend(show(spec, kind, value).bytes());
                (kinds, slots) = (*rest, others);
            }
        }
        at = next;
    }
    String::from_utf8(line).expect("the braces of a text are no parts of its other characters")
}

fn show(spec: Spec, kind: Kind, slots: &[u64]) -> String {
    let value = slots[0];
    let shown = match (kind, spec.hexadecimal) {
        (Kind::Bool, _) => (value != 0).to_string(),
        (Kind::Dim3, _) => format!("({}, {}, {})", slots[0], slots[1], slots[2]),
        (Kind::Float, _) => float(f64::from_bits(value), spec.precision),
        (_, Some(b'X')) => format!("{value:X}"),
        (_, Some(_)) => format!("{value:x}"),
        (Kind::Signed, None) => value.cast_signed().to_string(),
        (Kind::Unsigned, None) => value.to_string(),
    };
    let prefix = if spec.prefix { "0x" } else { "" };
    let width = spec.width_without_prefix();
    let finite = kind != Kind::Float || f64::from_bits(value).is_finite();
    if spec.zeros && finite {
        let (sign, digits) = shown.split_at(shown.starts_with('-').into());
        format!("{prefix}{sign}{digits:0>0$}", width.saturating_sub(sign.len()))
    } else if spec.left {
        format!("{prefix}{shown:<width$}")
    } else {
        format!("{prefix}{shown:>width$}")
    }
}

/// C's `%f` with a precision and `%g` without one.
fn float(value: f64, precision: Option<usize>) -> String {
    /// Significant digits of `%g`.
    const DIGITS: i32 = 6;
    if !value.is_finite() {
        return if value.is_nan() { "nan".into() } else { value.to_string() };
    }
    if let Some(digits) = precision {
        return format!("{value:.digits$}");
    }
    let scientific = format!("{value:.0$e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').expect("a number in scientific notation");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        without_zeros(&format!("{value:.0$}", (DIGITS - 1 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
    }
}
