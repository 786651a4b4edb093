//! The note of the error of a call without kernels: the line that makes them.

use proc_macro2::{Group, Ident, Literal, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Result, Token, braced, bracketed};

use crate::names;

/// Takes the docs of a trait and the row of its algorithm: `{ { docs } name } Trait [V, R] …`. Gives them to the macro that declares the
/// trait, with the note. The attribute takes only a literal, which a macro by rules cannot make from the parameters.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let parse = |input: ParseStream<'_>| {
        let given;
        braced!(given in input);
        let (docs, algorithm) = (given.parse::<Group>()?, given.parse()?);
        let implemented: Ident = input.parse()?;
        let inside;
        bracketed!(inside in input);
        let params = Punctuated::<Ident, Token![,]>::parse_terminated(&inside)?.into_iter().collect::<Vec<_>>();
        let note = Literal::string(&note(&algorithm, &params));
        let rest: TokenStream = input.parse()?;
        Ok(quote!(crate::__algorithm_trait! { { #docs #note } #implemented [#(#params),*] #rest }))
    };
    parse.parse2(input)
}

/// The compiler puts the types of the call in place of the names in braces.
fn note(algorithm: &Ident, params: &[Ident]) -> String {
    let params: String = params.iter().map(|param| format!(", {{{param}}}")).collect();
    let algorithm = names::unraw(algorithm);
    format!("write `instantiate!(kernel_primitives::algorithms::{algorithm}<{{Self}}{params}>);` in your kernel module")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_has_the_parameters_of_the_row() {
        let text = |row| expand(row).unwrap().to_string();
        let copy = text(quote!({ { #[doc = "Types."] } copy } Copy [] [] [copy_tiles<Self>,]));
        let note = "write `instantiate!(kernel_primitives::algorithms::copy<{Self}>);` in your kernel module";
        assert_eq!(
            copy,
            quote!(crate::__algorithm_trait! { { { #[doc = "Types."] } #note } Copy [] [] [copy_tiles<Self>,] })
                .to_string()
        );
        let scan =
            text(quote!({ {} scan } Scan [V, R] [Self: AsSource, V: AsSource] [scan_tiles<Of<Self>, Of<V>, R>,]));
        assert!(scan.contains("algorithms::scan<{Self}, {V}, {R}>);`"), "{scan}");
        assert!(scan.contains("Scan [V , R] [Self : AsSource , V : AsSource] [scan_tiles"), "{scan}");
    }

    #[test]
    fn a_row_without_a_name_is_an_error() {
        assert!(expand(quote!({ {} } Scan [] [] [])).is_err());
    }
}
