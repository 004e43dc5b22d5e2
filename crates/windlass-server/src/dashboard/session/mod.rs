//! Sessions: a browser signs in with a token and then keeps a random secret in a cookie. Only its hash is stored, so
//! any node can check it, and it ends with its token.

mod cookie;
pub(super) mod sign_in;

pub(super) use cookie::Cookie;

use super::error::PageError;
use crate::http::{App, Caller, ProblemKind, Scope};
use crate::token;
use axum::extract::FromRequestParts;
use hyper::http::request::Parts;
use sha2::{Digest, Sha256};
use windlass::client::{Scope as Tenants, Session};
use windlass_core::Millis;

/// How long a session lasts.
pub(super) const LASTS: Millis = Millis::from_secs(12 * 3600);

/// Whoever looks at a page.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    /// What every form of this session carries.
    pub(crate) csrf: String,
    /// Whether anyone on this machine may use the server, because there is no token yet.
    pub(crate) is_open: bool,
}

impl Visitor {
    pub(crate) fn tenants(&self) -> Tenants {
        self.caller.tenants()
    }

    /// Whether the visitor may cancel, replay, discard and change jobs and schedules.
    pub(crate) fn can_act(&self) -> bool {
        self.caller.may(Scope::Manage)
    }

    /// Whether the visitor may change queues and see payloads unmasked.
    pub(crate) fn is_admin(&self) -> bool {
        self.caller.may(Scope::Admin)
    }

    /// # Errors
    /// The visitor is no admin.
    pub(crate) fn need_admin(&self) -> Result<(), PageError> {
        match self.is_admin() {
            true => Ok(()),
            false => Err(PageError::new(ProblemKind::Forbidden, "this needs a token with the scope `admin`")),
        }
    }

    /// # Errors
    /// The visitor's token is for one tenant.
    pub(crate) fn for_all_tenants(&self) -> Result<(), PageError> {
        Ok(self.caller.for_all_tenants()?)
    }

    pub(crate) fn sees_all(&self) -> bool {
        self.caller.for_all_tenants().is_ok()
    }
}

impl FromRequestParts<App> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, PageError> {
        if let Some(visitor) = parts.extensions.get::<Self>() {
            return Ok(visitor.clone());
        }
        let secret = Cookie::read(&parts.headers);
        let tokens = app.tokens().await?;
        if tokens.is_open() {
            let csrf = csrf(secret.as_deref().unwrap_or_default());
            return Ok(Self { caller: Caller::local(), csrf, is_open: true });
        }
        let found = match &secret {
            Some(secret) => caller_of(app, secret).await?,
            None => None,
        };
        match (found, secret) {
            (Some(caller), Some(secret)) if caller.may(Scope::Read) => {
                Ok(Self { caller, csrf: csrf(&secret), is_open: false })
            }
            _ => Err(PageError::SignIn(sign_in::address(app, parts.uri.path_and_query()))),
        }
    }
}

/// The caller whose session has this secret, if it has not ended.
async fn caller_of(app: &App, secret: &str) -> Result<Option<Caller>, PageError> {
    let hash = hash(secret);
    let now = app.now();
    let is_it = |session: &&Session| session.hash == hash && session.expires_at > now;
    let mut tokens = app.tokens().await?;
    if !tokens.sessions().iter().any(|session| is_it(&session)) {
        // Another node may have signed it in a moment ago.
        tokens = app.newest_tokens().await?;
    }
    let session = tokens.sessions().iter().find(is_it);
    Ok(session.and_then(|session| tokens.caller(&session.token, now)))
}

pub(super) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// Known to the browser's own pages only: other sites cannot read it, and cannot compute it without the cookie.
fn csrf(secret: &str) -> String {
    token::hex(&Sha256::new().chain_update("windlass csrf ").chain_update(secret).finalize())
}
