//! Names of instantiations: as a person reads them, and as they appear in PTX.

use proc_macro2::{Delimiter, Ident, Spacing, TokenStream, TokenTree};
use syn::ext::IdentExt;

/// The identifier without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The tokens with the spaces that a person would write: `f32, Pair<f32, 2>, 4`.
pub(crate) fn shown(tokens: TokenStream) -> String {
    let mut pieces = Vec::new();
    collect(tokens, &mut pieces);
    let mut text = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 && spaced(&pieces[i - 1], piece) {
            text.push(' ');
        }
        text.push_str(piece);
    }
    text
}

/// The name that an instantiation's entry has in its module: `reduce__f32_Add_4`.
///
/// Runs of anything but ASCII letters and digits become one `_`; a minus stays visible, since `<-1>` and `<1>` differ.
pub(crate) fn entry(kernel: &str, arguments: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut inside = false;
    let mut chars = arguments.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_ascii_alphanumeric() {
            match words.last_mut() {
                Some(word) if inside => word.push(c),
                _ => words.push(c.into()),
            }
            inside = true;
        } else {
            inside = false;
            if c == '-' && chars.peek() != Some(&'>') {
                words.push("minus".into());
            }
        }
    }
    format!("{kernel}__{}", words.join("_"))
}

fn collect(tokens: TokenStream, pieces: &mut Vec<String>) {
    let mut joint = false;
    for token in tokens {
        let joined = std::mem::take(&mut joint);
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    // From a `macro_rules` fragment such as `$t:ty`: invisible.
                    Delimiter::None => ("", ""),
                };
                pieces.extend((!open.is_empty()).then(|| open.into()));
                collect(group.stream(), pieces);
                pieces.extend((!close.is_empty()).then(|| close.into()));
            }
            TokenTree::Punct(punct) => {
                joint = punct.spacing() == Spacing::Joint;
                match pieces.last_mut() {
                    Some(last)
                        if joined && matches!((last.as_str(), punct.as_char()), (":", ':') | ("-" | "=", '>')) =>
                    {
                        last.push(punct.as_char());
                    }
                    _ => pieces.push(punct.as_char().into()),
                }
            }
            TokenTree::Ident(ident) => match pieces.last_mut() {
                Some(last) if last == "'" => last.push_str(&ident.to_string()),
                _ => pieces.push(ident.to_string()),
            },
            TokenTree::Literal(literal) => pieces.push(literal.to_string()),
        }
    }
}

fn spaced(left: &str, right: &str) -> bool {
    let word = |piece: &str| piece.starts_with(|c: char| c.is_alphanumeric() || "_'\"".contains(c));
    match (left, right) {
        (_, "," | ";" | ")" | "]" | ">" | ":" | "::" | "?" | ".") => false,
        ("{", _) | (_, "{" | "}") | ("," | ";" | ":", _) => true,
        ("+" | "=" | "->" | "=>", _) | (_, "+" | "=" | "->" | "=>" | "-" | "*" | "/") => true,
        ("*" | "-" | "/", _) if !word(right) => false,
        _ => word(left) && word(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn tokens_are_shown_as_a_person_writes_them() {
        let check = |tokens: TokenStream, expected: &str| assert_eq!(shown(tokens), expected);
        check(quote!(f32, Add, 4), "f32, Add, 4");
        check(quote!(Pair<f32, crate::ops::Max>, [u8; 4]), "Pair<f32, crate::ops::Max>, [u8; 4]");
        check(quote!((f32, u8), { 2 + 2 }, fn(f32) -> f32), "(f32, u8), { 2 + 2 }, fn(f32) -> f32");
        check(quote!({ -1 }, Outer<Inner<f32>>, Global<'_, f32>), "{ -1 }, Outer<Inner<f32>>, Global<'_, f32>");
        let invisible = TokenTree::Group(proc_macro2::Group::new(Delimiter::None, quote!(f32)));
        check(quote!(#invisible, Add), "f32, Add");
    }

    #[test]
    fn entry_names_are_identifiers() {
        assert_eq!(entry("reduce", "f32, Add, 4"), "reduce__f32_Add_4");
        assert_eq!(entry("reduce", "Pair<f32, crate::ops::Max>, [u8; 4]"), "reduce__Pair_f32_crate_ops_Max_u8_4");
        assert_eq!(entry("scale", "{ 2 + 2 }, my_fn"), "scale__2_2_my_fn");
        assert_eq!(entry("shift", "{ -1 }"), "shift__minus_1");
        assert_ne!(entry("shift", "-1"), entry("shift", "1"));
        assert_eq!(entry("map", "fn(f32) -> f32"), "map__fn_f32_f32");
    }
}
