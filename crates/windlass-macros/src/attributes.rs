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
                    check_kind(&kind)?;
                    set(&mut attributes.kind, kind, "kind")
                } else if meta.path.is_ident("queue") {
                    let queue = value(&meta)?;
                    check_queue(&queue)?;
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

/// The rough form: the library checks the rest when a job is stored.
fn check_kind(text: &LitStr) -> Result<()> {
    let name = text.value();
    let is_printable = name.chars().all(|c| !c.is_control());
    if (1..=128).contains(&name.chars().count()) && name.trim() == name && is_printable {
        return Ok(());
    }
    let form = "names have 1 to 128 printable characters and no space at either end";
    Err(syn::Error::new(text.span(), format!("`{name}` is not the name of a kind; {form}")))
}

fn check_queue(text: &LitStr) -> Result<()> {
    let name = text.value();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let starts_well = name.chars().next().is_some_and(is_plain);
    if starts_well && name.chars().all(|c| is_plain(c) || "._-".contains(c)) && name.len() <= 64 {
        return Ok(());
    }
    let form = "names match [a-z0-9][a-z0-9._-]{0,63}";
    Err(syn::Error::new(text.span(), format!("`{name}` is not the name of a queue; {form}")))
}
