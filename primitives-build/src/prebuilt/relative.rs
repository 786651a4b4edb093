//! PTX in which equal code reads equally, whatever comes before it: what it takes in an archive is less than half.
//!
//! Kernels of one source for several types and architectures differ in few instructions. But LLVM numbers the registers of a function
//! in one row, so that one more instruction changes the text of all after it, and a compressor finds nothing of it again. Here,
//! a register that is named for the first time counts from the one before it that was, and one that was named shortly before counts back:
//!
//! | text | here | |
//! |---|---|---|
//! | `%rd17` | `%rd+` | new, and the next number of its class: one more than that of the last new one |
//! | `%rd20`, `%rd9` | `%rd+3`, `%rd-8` | new, after or before the next number |
//! | `%rd15` | `%rd2` | known, 2 before the next number |
//! | `%rd2` | `%rd=2` | known, [`NEAR`] or more before the next number, or after it |
//! | `$L__BB1_9` | `%:1_9` | a function's first label |
//! | `$L__BB1_12`, `$L__BB1_7` | `%:3`, `%:-2` | the number less that of the label named last |
//! | `}` | `%}` | at the beginning of a line, the end of a function; the next one counts anew |
//! | `crate__module__kernel` | `%@` | the kernel's own name |
//!
//! All else is as it is. The text comes back byte by byte.
//!
//! Users' build scripts read it, and cargo compiles those without optimisation. So [`class`] and [`number`], which each name takes, are
//! written with patterns and a loop: iterators take twice as long there.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Write;

/// What LLVM names registers, before their numbers: special registers such as `%envreg1` are not among them.
const CLASSES: [&str; 7] = ["p", "rs", "r", "rd", "rq", "f", "fd"];

/// What was named longer ago has low numbers, which stay the same when code comes in between.
const NEAR: u32 = 64;

/// What stands before a label's numbers, but for the `$`.
const LABEL: &str = "L__BB";

/// What is known at a place of a function.
struct Place {
    /// One more than the register that was new last, by its class.
    next: [u32; CLASSES.len()],
    /// The numbers of the label named last: of the function, and in it.
    label: Option<(u32, u32)>,
}

impl Place {
    const START: Self = Self { next: [1; CLASSES.len()], label: None };
}

/// The relative text of a file, or nothing if the file would not come back from it.
pub(super) fn encode(name: &str, ptx: &str) -> Option<String> {
    let symbol = symbol(name);
    if symbol.is_empty() {
        return None;
    }
    let text = ptx.replace(&symbol, "%@");
    let mut out = String::with_capacity(text.len());
    let mut writer = Writer { place: Place::START, known: HashSet::new() };
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['%', '$', '}']) {
        out.push_str(&rest[..at]);
        let (sign, tail) = rest[at..].split_at(1);
        let after = match sign {
            "%" => writer.register(tail, &mut out),
            "$" => writer.label(tail, &mut out),
            _ if out.is_empty() || out.ends_with('\n') => {
                writer = Writer { place: Place::START, known: HashSet::new() };
                out.push_str("%}");
                Some(tail)
            }
            _ => None,
        };
        rest = after.unwrap_or_else(|| {
            out.push_str(sign);
            tail
        });
    }
    out.push_str(rest);
    // A text that has `%@` or the like of itself.
    decode(name, &out).is_ok_and(|back| back == ptx).then_some(out)
}

/// The text of a file, of its relative text. The error says what is wrong with it.
pub(super) fn decode(name: &str, text: &str) -> Result<String, String> {
    let symbol = symbol(name);
    let mut place = Place::START;
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut pieces = text.split('%');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let rest = match piece.as_bytes().first() {
            Some(b'@') => {
                out.push_str(&symbol);
                Some(&piece[1..])
            }
            Some(b'}') => {
                place = Place::START;
                out.push('}');
                Some(&piece[1..])
            }
            Some(b':') => place.read_label(&piece[1..], &mut out),
            _ => place.read_register(piece, &mut out),
        };
        out.push_str(rest.ok_or_else(|| format!("`%{}` counts from nothing", shown(piece)))?);
    }
    Ok(out)
}

/// The beginning of a text, up to what may not be read.
fn shown(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_graphic()).take(20).collect()
}

/// The name that a file's kernel has in PTX: `a__b__kernel` for `a::b/kernel.sm_90.ptx`.
fn symbol(name: &str) -> String {
    let path = name.rsplit_once(".sm_").map_or(name, |(path, _)| path);
    path.replace("::", "__").replace('/', "__")
}

/// The class that a text begins with, and the rest.
fn class(text: &str) -> Option<(usize, &str)> {
    // The place in `CLASSES`.
    let class = match text.as_bytes() {
        [b'r', b's', ..] => 1,
        [b'r', b'd', ..] => 3,
        [b'r', b'q', ..] => 4,
        [b'r', ..] => 2,
        [b'p', ..] => 0,
        [b'f', b'd', ..] => 6,
        [b'f', ..] => 5,
        _ => return None,
    };
    let rest = &text[CLASSES[class].len()..];
    if rest.starts_with(|c: char| c.is_ascii_lowercase()) { None } else { Some((class, rest)) }
}

/// The number that a text begins with, and the rest; nothing if it is written in another way than it would be here.
fn number(text: &str) -> Option<(u32, &str)> {
    let bytes = text.as_bytes();
    let (mut number, mut digits) = (0, 0);
    while digits < bytes.len() && bytes[digits].is_ascii_digit() {
        // Nine digits and sums of two such numbers fit.
        if digits == 9 {
            return None;
        }
        number = number * 10 + u32::from(bytes[digits] - b'0');
        digits += 1;
    }
    let is_canonical = digits == 1 || (digits > 1 && bytes[0] != b'0');
    if is_canonical { Some((number, &text[digits..])) } else { None }
}

/// Whether a name that ends before this text does end there.
fn ends(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

/// Makes relative text of one function. Its functions take what comes after a `%` or `$`, and return what comes after the name: nothing,
/// without writing, if it is no name that they know.
struct Writer {
    place: Place,
    /// Registers that were named, by class and number.
    known: HashSet<(usize, u32)>,
}

impl Writer {
    fn register<'a>(&mut self, text: &'a str, out: &mut String) -> Option<&'a str> {
        let (class, rest) = class(text)?;
        let (register, rest) = number(rest).filter(|(_, rest)| ends(rest))?;
        let next = self.place.next[class];
        let name = CLASSES[class];
        let written = if self.known.insert((class, register)) {
            self.place.next[class] = register + 1;
            match register.cmp(&next) {
                Ordering::Equal => write!(out, "%{name}+"),
                Ordering::Greater => write!(out, "%{name}+{}", register - next),
                Ordering::Less => write!(out, "%{name}-{}", next - register),
            }
        } else {
            match next.checked_sub(register) {
                Some(back) if back < NEAR => write!(out, "%{name}{back}"),
                _ => write!(out, "%{name}={register}"),
            }
        };
        written.expect("writing to a string");
        Some(rest)
    }

    fn label<'a>(&mut self, text: &'a str, out: &mut String) -> Option<&'a str> {
        let (function, rest) = number(text.strip_prefix(LABEL)?)?;
        let (label, rest) = number(rest.strip_prefix('_')?).filter(|(_, rest)| ends(rest))?;
        let written = match self.place.label.replace((function, label)) {
            Some((same, last)) if same == function => write!(out, "%:{}", i64::from(label) - i64::from(last)),
            _ => write!(out, "%:{function}_{label}"),
        };
        written.expect("writing to a string");
        Some(rest)
    }
}

/// The other way: what comes after the `%` is taken. Nothing is returned if that means no number.
impl Place {
    fn read_register<'a>(&mut self, text: &'a str, out: &mut String) -> Option<&'a str> {
        let Some((class, rest)) = class(text).filter(|(_, rest)| rest.starts_with(is_of_register)) else {
            out.push('%');
            return Some(text);
        };
        let next = self.next[class];
        let (register, rest) = match rest.split_at(1) {
            ("+", rest) => {
                let (after, rest) = number(rest).unwrap_or((0, rest));
                (self.add(class, next.checked_add(after)?)?, rest)
            }
            ("-", rest) => {
                let (before, rest) = number(rest)?;
                (self.add(class, next.checked_sub(before)?)?, rest)
            }
            ("=", rest) => number(rest)?,
            _ => {
                let (back, rest) = number(rest)?;
                (next.checked_sub(back)?, rest)
            }
        };
        write!(out, "%{}{register}", CLASSES[class]).expect("writing to a string");
        Some(rest)
    }

    /// Takes note of a new register.
    fn add(&mut self, class: usize, register: u32) -> Option<u32> {
        self.next[class] = register.checked_add(1)?;
        Some(register)
    }

    fn read_label<'a>(&mut self, text: &'a str, out: &mut String) -> Option<&'a str> {
        let (is_before, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (first, rest) = number(text)?;
        let ((function, label), rest) = match rest.strip_prefix('_') {
            Some(rest) if !is_before => {
                let (label, rest) = number(rest)?;
                ((first, label), rest)
            }
            _ => {
                let (function, last) = self.label?;
                let label = if is_before { last.checked_sub(first)? } else { last.checked_add(first)? };
                ((function, label), rest)
            }
        };
        self.label = Some((function, label));
        write!(out, "${LABEL}{function}_{label}").expect("writing to a string");
        Some(rest)
    }
}

/// Whether this comes between a register's class and its number here, or begins the number.
fn is_of_register(c: char) -> bool {
    c.is_ascii_digit() || ['+', '-', '='].contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::{Shown, try_all};

    const NAME: &str = "a::b/k.sm_90.ptx";

    /// All that has a form of its own, in two functions.
    const PTX: &str = "// layout 00\n.version 8.0\n.visible .entry a__b__k(\n\t.param .u64 a__b__k_param_0\n)\n{\n\
        \t.reg .b64 \t%rd<99>;\n\tld.param.b64 \t%rd1, [a__b__k_param_0];\n\tadd.s64 \t%rd2, %rd1, 8;\n\
        \tadd.s64 \t%rd90, %rd2, %rd1;\n\tld.v2.b32 \t{%r4, %r2}, [%rd90+-8];\n$L__BB0_9:\n\t@%p1 bra \t$L__BB0_12;\n\
        \tmov.u32 \t%r3, %tid.x;\n\tadd.s64 \t%rd3, %rd90, %rd2;\n\tmov.u32 \t%r5, %envreg3;\n\tbra.uni \t$L__BB0_7;\n}\n\n\
        .func f()\n{\n\tmov.b64 \t%rd1, %clock64;\n\tbra.uni \t$L__BB1_1;\n}\n";

    const RELATIVE: &str = "// layout 00\n.version 8.0\n.visible .entry %@(\n\t.param .u64 %@_param_0\n)\n{\n\
        \t.reg .b64 \t%rd<99>;\n\tld.param.b64 \t%rd+, [%@_param_0];\n\tadd.s64 \t%rd+, %rd2, 8;\n\
        \tadd.s64 \t%rd+87, %rd=2, %rd=1;\n\tld.v2.b32 \t{%r+3, %r-3}, [%rd1+-8];\n%:0_9:\n\t@%p+ bra \t%:3;\n\
        \tmov.u32 \t%r+, %tid.x;\n\tadd.s64 \t%rd-88, %rd=90, %rd2;\n\tmov.u32 \t%r+1, %envreg3;\n\tbra.uni \t%:-5;\n%}\n\n\
        .func f()\n{\n\tmov.b64 \t%rd+, %clock64;\n\tbra.uni \t%:1_1;\n%}\n";

    #[test]
    fn numbers_are_relative_and_come_back() {
        assert_eq!(encode(NAME, PTX).as_deref(), Some(RELATIVE));
        assert_eq!(decode(NAME, RELATIVE).as_deref(), Ok(PTX));
    }

    #[test]
    fn each_class_is_told_from_longer_names() {
        for (i, name) in CLASSES.iter().enumerate() {
            assert_eq!(class(&format!("{name}7")), Some((i, "7")), "{name}");
            assert_eq!(class(&format!("{name}x7")), None, "{name}");
        }
    }

    #[test]
    fn code_reads_equally_after_one_more_instruction() {
        let body = |first: u32| {
            let [a, b, c] = [first, first + 1, first + 2];
            format!("\tadd.s64 \t%rd{b}, %rd{a}, 8;\n\tshl.b64 \t%rd{c}, %rd{b}, 3;\n")
        };
        let short = encode(NAME, &format!("\tmov.b64 \t%rd1, 0;\n{}", body(1))).unwrap();
        let long = encode(NAME, &format!("\tmov.b64 \t%rd1, 0;\n\tmov.b64 \t%rd2, %rd1;\n{}", body(2))).unwrap();
        let equal = "\tadd.s64 \t%rd+, %rd2, 8;\n\tshl.b64 \t%rd+, %rd2, 3;\n";
        assert!(short.ends_with(equal) && long.ends_with(equal), "{short}\n{long}");
    }

    #[test]
    fn a_text_comes_back_or_is_left_as_it_is() {
        // Other names and numbers than LLVM's.
        for ptx in ["", "%", "%x1 %r %envreg1 $L__BB1 $L__BB1_ $L__BB1_2x } \n}", "%r0, %r999999999, %r0-1", "é%é$é"]
        {
            let relative = encode(NAME, ptx).unwrap();
            assert_eq!(decode(NAME, &relative).as_deref(), Ok(ptx), "{relative}");
        }
        for ptx in ["%@", "%}", "%:1", "%r+1", "%rd-1", "%p=1", "%r07", "%r9999999999", "%rd1a"] {
            assert_eq!(encode(NAME, ptx), None, "{ptx}");
        }
        assert_eq!(encode(".sm_90.ptx", PTX), None);
    }

    #[test]
    fn what_counts_from_nothing_is_an_error() {
        for text in
            ["%:1", "%:1_", "%:", "%:-1_2", "%:1_2 %:-3", "%r2", "%r-2", "%r-", "%r=", "%r=01", "%:9999999999_1"]
        {
            let error = decode(NAME, text).unwrap_err();
            assert!(error.contains("counts from nothing"), "{text}: {error}");
        }
        // Each adds to a number, until it is none.
        let error = decode(NAME, &"%r+999999999".repeat(5)).unwrap_err();
        assert!(error.contains("`%r+999999999`"), "{error}");
    }

    #[test]
    fn damaged_text_is_an_error_or_other_text() {
        let valid = [RELATIVE.as_bytes()];
        try_all(
            3000,
            |damage| Shown(damage.damaged(&valid, &["%", "%@", "%:", "%r+", "%rd=", "%}", "-", "_"])),
            |Shown(bytes)| {
                // That it returns is what is asked.
                let _ = decode(NAME, &String::from_utf8_lossy(bytes));
                Ok(())
            },
        );
    }
}
