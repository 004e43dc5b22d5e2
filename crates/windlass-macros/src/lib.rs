//! The derive macro of Windlass. Use it through the `windlass` crate: `use windlass::JobKind;`.

#![deny(missing_docs)]

mod attributes;
mod expand;
mod kebab;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `JobKind` for a struct or an enum that is the payload of a job.
///
/// ```ignore
/// #[derive(Serialize, Deserialize, JobKind)]
/// #[job(kind = "email", queue = "email", retry = "full-jitter")]
/// struct SendEmail { to: String }
/// ```
///
/// - `kind`: the name that chooses a handler. The default is the type's name in kebab-case: `SendEmail` becomes
///   `send-email`. Set the kind if jobs are stored in a database: then renaming the type does not affect stored jobs.
/// - `queue`: the queue of these jobs, unless the builder names another. The default is `default`.
/// - `retry`: their retry policy, unless the builder gives another. It is the name of a policy or a line, as in
///   `Enqueue::retry`.
/// - `crate`: the path of the `windlass` crate, if it has another name: `crate = "jobs::windlass"`.
///
/// Names are checked when the program is compiled.
#[proc_macro_derive(JobKind, attributes(job))]
pub fn derive_job_kind(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
