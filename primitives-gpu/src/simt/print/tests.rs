use super::*;

/// The format for `vprintf`, and the text in the emulator.
macro_rules! both {
    ($format:literal $(, $value:expr)*) => {{
        fn both<V: Values>(values: V) -> (String, String) {
            const CAPACITY: usize = capacity($format, <[&str]>::len(&[$(stringify!($value)),*]));
            let format = printf::<CAPACITY>($format, V::KINDS);
            let format = core::ffi::CStr::from_bytes_until_nul(&format).unwrap().to_str().unwrap().to_owned();
            let slots = values.slots(hexadecimal($format));
            (format, text::render($format, V::KINDS, text::words::<V>(&slots)))
        }
        both($crate::__print_list!($($value),*))
    }};
}

/// Expected texts are what C's `printf` makes of the format.
#[track_caller]
fn check((format, text): (String, String), expected_format: &str, expected_text: &str) {
    assert_eq!(format, format!("{expected_format}\n"));
    assert_eq!(text, expected_text);
}

#[test]
fn text_alone() {
    check(both!(""), "", "");
    check(both!("100 % of {{it}} – ß"), "100 %% of {it} – ß", "100 % of {it} – ß");
}

#[test]
fn integers() {
    check(both!("{} {}", u8::MAX, u64::MAX), "%llu %llu", "255 18446744073709551615");
    check(both!("{} {}", i8::MIN, i64::MIN), "%lld %lld", "-128 -9223372036854775808");
    check(both!("{:x} {:X}", -1i8, -2i32), "%llx %llX", "ff FFFFFFFE");
    check(both!("{:#x} {:#x}", 0u32, 255usize), "0x%llx 0x%llx", "0x0 0xff");
    check(both!("{:#06x} {:#01X}", 255u8, 255u8), "0x%04llx 0x%llX", "0x00ff 0xFF");
    check(both!("{:<#x} [{:<4x}]", 255u8, 255u8), "0x%-llx [%-4llx]", "0xff [ff  ]");
    check(both!("[{:<#6x}|{:<#8X}|{:<#2x}]", 255u8, -1i8, 0u8), "[0x%-4llx|0x%-6llX|0x%-llx]", "[0xff  |0xFF    |0x0]");
    check(both!("[{:5}|{:<5}|{:05}]", -42, 42, -42), "[%5lld|%-5lld|%05lld]", "[  -42|42   |-0042]");
    check(both!("{:3}", 12345), "%3lld", "12345");
}

#[test]
fn floats() {
    check(both!("{} {} {}", 0.0f32, -1.5f64, 100_000.0), "%g %g %g", "0 -1.5 100000");
    check(both!("{} {}", 1e6, 1_234_567.0), "%g %g", "1e+06 1.23457e+06");
    check(both!("{} {} {}", 0.1f32, 0.0001, 0.000_012_34), "%g %g %g", "0.1 0.0001 1.234e-05");
    check(both!("{} {}", 999_999.5, 1e-300), "%g %g", "1e+06 1e-300");
    check(both!("{} {}", f16::from_f32(0.5), bf16::from_f32(-3.0)), "%g %g", "0.5 -3");
    check(both!("{:.3} {:.0}", 2.0f32 / 3.0, 2.5), "%.3f %.0f", "0.667 2");
    check(both!("[{:8.2}|{:<8.2}|{:08.2}]", -1.5, 1.5, -1.5), "[%8.2f|%-8.2f|%08.2f]", "[   -1.50|1.50    |-0001.50]");
    check(both!("{} {:06} {:.1}", f32::INFINITY, f64::NEG_INFINITY, f32::NAN), "%g %06g %.1f", "inf   -inf nan");
}

#[test]
fn other_values_and_their_order() {
    let (format, text) = both!("{} {}: {} of {}", true, Dim3::new(1, 2, 3), false, 7u8);
    check((format, text), "%s (%llu, %llu, %llu): %s of %llu", "true (1, 2, 3): false of 7");
}

/// Where C's `printf` and Rust's `format!` agree, which is for all but floats without a precision.
#[test]
fn numbers_are_as_rusts_own_format_has_them() {
    macro_rules! same {
        ($($format:literal: $($value:expr),*;)*) => {$(
            $(assert_eq!(both!($format, $value).1, format!($format, $value), "{} of {}", $format, $value);)*
        )*};
    }
    same! {
        "[{}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:6}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:<6}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:06}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:x}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:6X}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:<6x}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:06X}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:#x}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:<#x}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:<#1x}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:<#6x}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:<#20X}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:#06x}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:#02X}]": 0u8, 200u8, u64::MAX, -7i8, i64::MIN;
        "[{:.3}]": 0.0f32, -1.0 / 3.0, 1e10, f64::INFINITY;
        "[{:9.3}]": 0.0f32, -1.0 / 3.0, 1e10, f64::INFINITY;
        "[{:<9.3}]": 0.0f32, -1.0 / 3.0, 1e10, f64::INFINITY;
        "[{:09.3}]": 0.0f32, -1.0 / 3.0, 1e10;
    }
}

/// The message with which evaluating a format fails.
fn error(evaluate: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let payload = std::panic::catch_unwind(evaluate).expect_err("a mistake");
    match payload.downcast::<&str>() {
        Ok(text) => (*text).to_owned(),
        Err(payload) => *payload.downcast::<String>().expect("a message"),
    }
}

#[test]
fn mistakes_say_what_is_wrong() {
    for (format, values, part) in [
        ("{} {}", 1, "has no value behind"),
        ("{}", 2, "has no `{}` in it"),
        ("{x}", 1, "with the values behind the format"),
        ("{0}", 1, "knows `{}`"),
        ("{:?}", 1, "knows `{}`"),
        ("{:^8}", 1, "knows `{}`"),
        ("{", 0, "a brace is written twice"),
        ("{:8", 1, "a brace is written twice"),
        ("}", 0, "a brace is written twice"),
        ("{:.}", 1, "a precision is a number"),
        ("{:1000}", 1, "less than 1000"),
        ("\0", 0, "null byte"),
    ] {
        let message = error(|| {
            capacity(format, values);
        });
        assert!(message.contains(part), "{format}: {message}");
    }
    for (format, kind, part) in [
        ("{:x}", Kind::Float, "is for integers"),
        ("{:.2}", Kind::Signed, "is for floats"),
        ("{:8}", Kind::Bool, "is for numbers"),
        ("{:8}", Kind::Dim3, "is for numbers"),
        ("{:#}", Kind::Unsigned, "is for `{:#x}`"),
        ("{:<08}", Kind::Unsigned, "zeros fill at the left"),
        ("{:#10x}", Kind::Unsigned, "goes with `{:#010x}`"),
    ] {
        let (spec, _) = spec(format.as_bytes(), 1);
        let message = error(move || spec.check(kind));
        assert!(message.contains(part), "{format}: {message}");
    }
}
