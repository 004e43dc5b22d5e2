//! API tokens: `wl_<id>_<secret>`. The id is public and names the token. Only a hash of the secret is stored.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use subtle::ConstantTimeEq;
use windlass::Random;
use windlass::client::Token;
use windlass_core::Timestamp;
use windlass_core::job::{QueueName, Tenant};

/// Every token starts with this, so that leaked ones can be searched for.
const PREFIX: &str = "wl_";

/// What a new token may do, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) name: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) queues: Option<Vec<QueueName>>,
    pub(crate) expires_at: Option<Timestamp>,
}

impl From<&Token> for Grant {
    fn from(token: &Token) -> Self {
        let Token { name, scopes, tenant, queues, expires_at, .. } = token.clone();
        Self { name, scopes, tenant, queues, expires_at }
    }
}

/// A new token and its full text, which is shown only once.
pub(crate) fn mint(random: &Random, grant: Grant, now: Timestamp) -> (Token, String) {
    let id = hex(&random.bytes::<6>());
    let secret = hex(&random.bytes::<32>());
    let shown = format!("{PREFIX}{id}_{secret}");
    let hash = hash(&secret);
    let Grant { name, scopes, tenant, queues, expires_at } = grant;
    let token = Token { id, name, hash, scopes, tenant, queues, created_at: now, expires_at, revoked_at: None };
    (token, shown)
}

/// The id and secret in a token's text.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    (!id.is_empty() && !secret.is_empty()).then_some((id, secret))
}

/// Whether the secret matches the hash; takes the same time for every secret.
pub(crate) fn matches(secret: &str, kept: &[u8; 32]) -> bool {
    hash(secret).ct_eq(kept).into()
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
