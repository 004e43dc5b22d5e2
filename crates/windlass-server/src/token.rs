//! API tokens: `wl_<id>_<secret>`. The id is public and names the token; of the secret only a hash is kept.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use subtle::ConstantTimeEq;
use windlass::Random;
use windlass::client::Token;
use windlass_core::Timestamp;
use windlass_core::job::Tenant;

/// Every token starts with this, so that leaked ones can be searched for.
const PREFIX: &str = "wl_";

/// A new token and the one text that proves it, to be shown once.
pub(crate) fn mint(
    random: &Random,
    name: &str,
    scopes: Vec<String>,
    tenant: Option<Tenant>,
    now: Timestamp,
) -> (Token, String) {
    let id = hex(&random.bytes::<6>());
    let secret = hex(&random.bytes::<32>());
    let shown = format!("{PREFIX}{id}_{secret}");
    let hash = hash(&secret);
    (Token { id, name: name.into(), hash, scopes, tenant, created_at: now, revoked_at: None }, shown)
}

/// Id and secret of a token's text.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    (!id.is_empty() && !secret.is_empty()).then_some((id, secret))
}

/// Whether the secret is the hashed one; takes the same time whatever it is.
pub(crate) fn matches(secret: &str, kept: &[u8; 32]) -> bool {
    hash(secret).ct_eq(kept).into()
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
