//! Generates the implementation of the derive macro.

use crate::attributes::Attributes;
use crate::kebab::kebab;
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, LitStr, Result};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if let Data::Union(data) = &input.data {
        let message = "a union cannot be a job: derive JobKind for a struct or an enum";
        return Err(Error::new(data.union_token.span, message));
    }
    if let Some(parameter) = input.generics.params.first() {
        let message =
            "the type of a job cannot have parameters: a kind has one payload type, and its handler owns the value";
        return Err(Error::new(parameter.span(), message));
    }
    let attributes = Attributes::read(input)?;
    let name = &input.ident;
    let kind = match attributes.kind {
        Some(kind) => kind,
        None => kind_of(input)?,
    };
    let windlass = match attributes.crate_path {
        Some(path) => quote!(#path),
        None => quote!(::windlass),
    };
    let constant = |name: TokenStream, value: Option<LitStr>| {
        value.map(|value| {
            quote! { const #name: ::core::option::Option<&'static str> = ::core::option::Option::Some(#value); }
        })
    };
    let queue = constant(quote!(QUEUE), attributes.queue);
    let retry = constant(quote!(RETRY), attributes.retry);
    Ok(quote! {
        #[automatically_derived]
        impl #windlass::JobKind for #name {
            const KIND: &'static str = #kind;
            #queue
            #retry
        }
    })
}

/// The type's name in kebab-case, if that is a valid name.
fn kind_of(input: &DeriveInput) -> Result<LitStr> {
    let name = kebab(&input.ident.unraw().to_string());
    if name.is_ascii() && !name.is_empty() && name.len() <= 64 {
        return Ok(LitStr::new(&name, input.ident.span()));
    }
    let message = "this type's name cannot be the name of a kind; give one: #[job(kind = \"…\")]";
    Err(Error::new(input.ident.span(), message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn refused(input: &DeriveInput) -> String {
        expand(input).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_kind_without_a_name_is_the_types_name_in_kebab_case() {
        let code = expand(&parse_quote! { struct SendEmail { to: String } }).unwrap().to_string();
        assert!(code.contains("impl :: windlass :: JobKind for SendEmail"), "{code}");
        assert!(code.contains("\"send-email\""), "{code}");
        assert!(!code.contains("QUEUE") && !code.contains("RETRY"), "{code}");
    }

    #[test]
    fn kind_queue_and_retry_are_what_the_attribute_says() {
        let input = parse_quote! {
            #[job(kind = "Mail:send", queue = "email", retry = "full-jitter:retries=5")]
            #[job(crate = "jobs::windlass")]
            enum SendEmail { One, Two }
        };
        let code = expand(&input).unwrap().to_string();
        for part in
            ["jobs :: windlass :: JobKind", "\"Mail:send\"", "Some (\"email\")", "Some (\"full-jitter:retries=5\")"]
        {
            assert!(code.contains(part), "{part} in {code}");
        }
    }

    #[test]
    fn a_wrong_attribute_is_refused_with_what_would_be_accepted() {
        let error = refused(&parse_quote! { #[job(kind = " send")] struct A; });
        assert_eq!(
            error,
            "` send` is not the name of a kind; names have 1 to 128 printable characters and no space at either end"
        );
        let error = refused(&parse_quote! { #[job(queue = "Email")] struct A; });
        assert_eq!(error, "`Email` is not the name of a queue; names match [a-z0-9][a-z0-9._-]{0,63}");
        let error = refused(&parse_quote! { #[job(name = "email")] struct A; });
        assert_eq!(error, "not a job attribute; the job attributes are kind, queue, retry and crate");
        assert_eq!(refused(&parse_quote! { #[job(kind = "a", kind = "b")] struct A; }), "`kind` is given twice");
        assert!(refused(&parse_quote! { #[job(retry = "")] struct A; }).contains("full-jitter"));
        assert!(refused(&parse_quote! { #[job(kind = 1)] struct A; }).contains("string literal"));
    }

    #[test]
    fn only_a_type_without_parameters_that_is_no_union_can_be_a_job() {
        assert!(refused(&parse_quote! { struct A<T>(T); }).contains("cannot have parameters"));
        assert!(refused(&parse_quote! { struct A<'a>(&'a str); }).contains("cannot have parameters"));
        assert!(refused(&parse_quote! { union A { a: u8 } }).contains("union"));
        assert!(refused(&parse_quote! { struct Größe; }).contains("#[job(kind"));
    }
}
