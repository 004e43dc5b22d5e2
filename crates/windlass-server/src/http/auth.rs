//! Who is calling: bearer tokens with scopes, for one tenant or all, kept hashed. A handler states the scope it needs in its
//! signature, so none can be forgotten.

use super::app::App;
use super::output::problem::{Kind, Problem};
use axum::extract::FromRequestParts;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;
use std::marker::PhantomData;
use windlass::client::Scope as Tenants;
use windlass::remote::WorkScope;
use windlass_core::job::Tenant;

use crate::token;

/// What a token may do. `Admin` may do everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Enqueue,
    Work,
    Read,
    Admin,
}

impl Scope {
    pub(crate) const ALL: [Self; 4] = [Self::Enqueue, Self::Work, Self::Read, Self::Admin];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Work => "work",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// Whoever sent a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// For the audit: the token's name and id.
    pub(crate) by: String,
    scopes: Vec<Scope>,
    tenant: Option<Tenant>,
}

impl Caller {
    /// Anyone on this machine, while no token exists.
    pub(crate) fn local() -> Self {
        Self { by: "local".into(), scopes: vec![Scope::Admin], tenant: None }
    }

    /// Whoever works straight on a store: the command line puts it beside its requests, which never cross a network.
    pub(crate) fn operator() -> Self {
        Self { by: "command line".into(), ..Self::local() }
    }

    fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// Whose rows the caller may see and touch.
    pub(crate) fn tenants(&self) -> Tenants {
        self.tenant.clone().map_or(Tenants::All, Tenants::Tenant)
    }

    /// Whose jobs the caller's workers may run.
    pub(crate) fn work_scope(&self) -> WorkScope {
        WorkScope { tenant: self.tenant.clone(), queues: None }
    }

    /// The tenant of what the caller makes: the token's own; a caller for all tenants may name one.
    ///
    /// # Errors
    /// Another tenant than the token's.
    pub(crate) fn tenant(&self, named: Option<Tenant>) -> Result<Tenant, Problem> {
        match (&self.tenant, named) {
            (None, named) => Ok(named.unwrap_or_default()),
            (Some(own), None) => Ok(own.clone()),
            (Some(own), Some(named)) if *own == named => Ok(named),
            (Some(own), Some(_)) => {
                Err(Problem::new(Kind::WrongTenant, format!("this token is for the tenant `{own}` alone")))
            }
        }
    }

    /// The tenant a list is narrowed to, if any.
    ///
    /// # Errors
    /// Another tenant than the token's.
    pub(crate) fn narrowed(&self, named: Option<Tenant>) -> Result<Option<Tenant>, Problem> {
        named.map(|tenant| self.tenant(Some(tenant))).transpose()
    }

    /// # Errors
    /// The token is for one tenant, and this is about all of them.
    pub(crate) fn for_all_tenants(&self) -> Result<(), Problem> {
        match self.tenant {
            None => Ok(()),
            Some(_) => Err(Problem::new(Kind::Forbidden, "this needs a token for all tenants")),
        }
    }
}

/// A scope as a type, for signatures.
pub(crate) trait Need: Send + Sync {
    const SCOPE: Scope;
}

macro_rules! needs {
    ($($name:ident),+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $name;
            impl Need for $name {
                const SCOPE: Scope = Scope::$name;
            }
        )+
    };
}
needs!(Enqueue, Work, Read, Admin);

/// A caller who may do what `N` names.
#[derive(Debug)]
pub(crate) struct May<N>(pub(crate) Caller, PhantomData<N>);

impl<N> std::ops::Deref for May<N> {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl<N: Need> FromRequestParts<App> for May<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = identify(parts, app).await?;
        if caller.may(N::SCOPE) {
            return Ok(Self(caller, PhantomData));
        }
        let detail = format!("this needs a token with the scope `{}`", N::SCOPE.as_str());
        Err(Problem::new(Kind::Forbidden, detail))
    }
}

async fn identify(parts: &Parts, app: &App) -> Result<Caller, Problem> {
    if let Some(caller) = parts.extensions.get::<Caller>() {
        return Ok(caller.clone());
    }
    let known = app.tokens().await?;
    if known.is_open() {
        return Ok(Caller::local());
    }
    let refused =
        || Problem::new(Kind::Unauthorized, "send Authorization: Bearer wl_… with a token that is not revoked");
    let given = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(refused)?;
    let (scheme, given) = given.split_once(' ').ok_or_else(refused)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused());
    }
    let (id, secret) = token::split(given.trim()).ok_or_else(refused)?;
    // Made a moment ago, perhaps: whoever has just been given a token uses it at once.
    let known = if known.find(id).is_some() { known } else { app.newest_tokens().await? };
    let token = known.find(id).filter(|t| token::matches(secret, &t.hash) && t.revoked_at.is_none());
    let token = token.ok_or_else(refused)?;
    let scopes: Vec<Scope> = token.scopes.iter().filter_map(|word| Scope::parse(word)).collect();
    Ok(Caller { by: format!("{} ({})", token.name, token.id), scopes, tenant: token.tenant.clone() })
}
