//! Filters as the text of an environment variable.

use super::filter::{self, DeviceFilter};
use crate::device::{environment, whole_number};
use crate::{Error, Result};

/// The most terms and values of a variable. Filters nest as deep as there are terms and values.
const MOST: usize = 256;

/// The filter that a variable describes; `None` if it is not set.
pub(super) fn filter(variable: &'static str) -> Result<Option<DeviceFilter>> {
    let value = environment(variable)?;
    parse(&value).map_err(|expected| Error::Environment { variable, value, expected })
}

/// The filter that a text describes. An error says what is wrong.
fn parse(text: &str) -> Result<Option<DeviceFilter>, String> {
    let mut all: Option<DeviceFilter> = None;
    if text.trim().is_empty() {
        return Ok(None);
    }
    if text.split([',', '|']).count() > MOST {
        return Err(format!("it has at most {MOST} terms and values"));
    }
    for part in text.split(',') {
        let term = term(part.trim())?;
        all = Some(match all {
            Some(before) => before & term,
            None => term,
        });
    }
    Ok(all)
}

fn term(text: &str) -> Result<DeviceFilter, String> {
    let (key, values) = match text.split_once('=') {
        Some((key, values)) => (key.trim(), Some(values.split('|').map(str::trim).collect::<Vec<_>>())),
        None => (text, None),
    };
    let one = |values: Option<Vec<&str>>| match values.as_deref() {
        Some([value]) => Ok((*value).to_owned()),
        _ => Err(format!("`{key}` takes one value, as in `{key}=2`")),
    };
    let number = |value: &str| whole_number(value).ok_or_else(|| format!("`{value}` of `{key}` is no number"));
    Ok(match (key, values) {
        ("name", Some(names)) => {
            // Every name contains the empty text.
            if names.iter().any(|name| name.is_empty()) {
                return Err("`name` takes a part of a name, as in `name=H200`".into());
            }
            let mut any = names.iter().map(|part| filter::name(part));
            let first = any.next().ok_or("`name` takes a value")?;
            any.fold(first, |any, one| any | one)
        }
        ("position", Some(positions)) => DeviceFilter::at(positions.into_iter().map(number).collect::<Result<_, _>>()?),
        ("memory", values) => filter::memory(bytes(&one(values)?)?),
        ("count", values) => filter::count(number(&one(values)?)?),
        ("capability", values) => {
            let value = one(values)?;
            let (major, minor) = value.split_once('.').unwrap_or((&value, "0"));
            let number = |text: &str| whole_number(text).and_then(|number| u32::try_from(number).ok());
            match (number(major), number(minor)) {
                (Some(major), Some(minor)) => filter::compute_capability(major, minor),
                _ => return Err(format!("`{value}` is no compute capability, such as 9.0")),
            }
        }
        ("double", None) => filter::double_precision(),
        ("gpu", None) => filter::gpu(),
        ("emulator", None) => filter::emulated(),
        _ => {
            return Err(format!(
                "`{text}` is no term: there are `name=…`, `memory=…`, `capability=…`, `position=…`, `count=…`, `double`, `gpu` \
                 and `emulator`"
            ));
        }
    })
}

/// A number of bytes, with its unit.
fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number = whole_number(digits.trim()).and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| format!("`{text}` is no number of bytes, such as 512M or 16G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("16G"), Ok(16 << 30));
        assert_eq!(bytes("3k"), Ok(3072));
        assert_eq!(bytes("2 M"), Ok(2 << 20));
        for wrong in ["", "G", "-1", "1.5G", "1P", "99999999999999T", "18446744073709551616"] {
            assert!(bytes(wrong).is_err_and(|text| text.contains(wrong)), "{wrong}");
        }
    }

    #[test]
    fn a_value_with_too_many_parts_is_an_error() {
        for part in ["gpu,", "name=a,", "name=a|a,name=", "position=0|"] {
            let error = parse(&format!("{}1", part.repeat(100_000))).expect_err("it is too long");
            assert!(error.contains("at most 256"), "{error}");
        }
        let names = format!("{}a", "a|".repeat(MOST - 1));
        assert!(parse(&format!("name={names}")).is_ok_and(|filter| filter.is_some()));
        assert!(parse(&format!("name=a|{names}")).is_err());
    }

    #[test]
    fn terms_are_filters() {
        let text = |value| parse(value).map(|filter| filter.map(|filter| filter.to_string()));
        assert_eq!(text(" "), Ok(None));
        assert_eq!(text("name=H200").unwrap().as_deref(), Some("name(\"H200\")"));
        let several = text("name=a|b, memory=1K,capability=8.6,count=2").unwrap();
        let expected = "((((name(\"a\") | name(\"b\")) & memory(1024)) & compute_capability(8, 6)) & count(2))";
        assert_eq!(several.as_deref(), Some(expected));
        assert_eq!(
            text("capability=9,double").unwrap().as_deref(),
            Some("(compute_capability(9, 0) & double_precision())")
        );
        for (wrong, part) in [
            ("H200", "`H200` is no term"),
            ("gpu,", "`` is no term"),
            ("gpu=1", "`gpu=1` is no term"),
            ("name=", "`name` takes a part"),
            ("name=H200|", "`name` takes a part"),
            ("name", "`name` is no term"),
            ("count", "`count` takes one value"),
            ("count=1|2", "`count` takes one value"),
            ("count=two", "`two` of `count` is no number"),
            ("count=+2", "`+2` of `count` is no number"),
            ("count=", "`` of `count` is no number"),
            ("capability=+9", "`+9` is no compute capability"),
            ("memory=+1G", "`+1G` is no number of bytes"),
            ("position=0|-1", "`-1` of `position`"),
            ("capability=9.x", "`9.x` is no compute capability"),
            ("memory=much", "`much` is no number of bytes"),
        ] {
            assert!(text(wrong).as_ref().is_err_and(|error| error.contains(part)), "{wrong}: {:?}", text(wrong));
        }
    }
}
