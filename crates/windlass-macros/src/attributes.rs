//! Reads the attribute `#[job(…)]`.

use syn::spanned::Spanned;
use syn::{DeriveInput, LitStr, Path, Result};

/// The accepted keys, for errors.
const KEYS: &str = "kind, queue, retry and crate";

/// The attributes of a job's type.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) kind: Option<LitStr>,
    pub(crate) queue: Option<LitStr>,
    pub(crate) retry: Option<LitStr>,
    pub(crate) crate_path: Option<Path>,
}

impl Attributes {
    pub(crate) fn read(input: &DeriveInput) -> Result<Self> {
        let mut attributes = Self::default();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("job")) {
            attribute.parse_nested_meta(|meta| {
                let value = |meta: &syn::meta::ParseNestedMeta<'_>| meta.value()?.parse::<LitStr>();
                if meta.path.is_ident("kind") {
                    let kind = value(&meta)?;
                    check_name(&kind, "a kind", "[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", &|c| {
                        c.is_ascii_uppercase() || c == ':'
                    })?;
                    set(&mut attributes.kind, kind, "kind")
                } else if meta.path.is_ident("queue") {
                    let queue = value(&meta)?;
                    check_name(&queue, "a queue", "[a-z0-9][a-z0-9._-]{0,63}", &|_| false)?;
                    set(&mut attributes.queue, queue, "queue")
                } else if meta.path.is_ident("retry") {
                    let retry = value(&meta)?;
                    if retry.value().trim().is_empty() {
                        return Err(syn::Error::new(
                            retry.span(),
                            "a retry policy is a name or a line: \"full-jitter\"",
                        ));
                    }
                    set(&mut attributes.retry, retry, "retry")
                } else if meta.path.is_ident("crate") {
                    set(&mut attributes.crate_path, value(&meta)?.parse()?, "crate")
                } else {
                    Err(meta.error(format!("not a job attribute; the job attributes are {KEYS}")))
                }
            })?;
        }
        Ok(attributes)
    }
}

fn set<T: Spanned>(place: &mut Option<T>, value: T, key: &str) -> Result<()> {
    if place.is_some() {
        return Err(syn::Error::new(value.span(), format!("`{key}` is given twice")));
    }
    *place = Some(value);
    Ok(())
}

/// Checks a name by the rule of `windlass-core`, so that a wrong name is a compile error.
pub(crate) fn check_name(text: &LitStr, what: &str, form: &str, also: &dyn Fn(char) -> bool) -> Result<()> {
    let name = text.value();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let starts_well = name.chars().next().is_some_and(|c| is_plain(c) || (c.is_ascii_uppercase() && also(c)));
    let goes_on_well = name.chars().all(|c| is_plain(c) || "._-".contains(c) || also(c));
    if starts_well && goes_on_well && name.len() <= 64 {
        return Ok(());
    }
    Err(syn::Error::new(text.span(), format!("`{name}` is not the name of {what}; names match {form}")))
}
