//! Authentication: bearer tokens with scopes, for one tenant or all, stored as hashes. A handler states the scope it
//! needs in its signature, so that no check can be forgotten.

use super::app::{App, Tokens};
use super::connection::connections::ConnectionSlot;
use super::output::problem::{Kind, Problem};
use axum::extract::FromRequestParts;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;
use std::marker::PhantomData;
use std::time::Duration;
use windlass::client::Scope as Tenants;
use windlass::remote::WorkScope;
use windlass_core::Timestamp;
use windlass_core::job::{QueueName, Tenant};

use crate::token;

/// How often an open stream or long poll checks its token. With the age of the copy, it ends within 2 seconds.
const RECHECK: Duration = Duration::from_millis(500);

/// What a token may do. `Admin` may do everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Enqueue,
    Manage,
    Work,
    Read,
    Admin,
}

impl Scope {
    pub(crate) const ALL: [Self; 5] = [Self::Enqueue, Self::Manage, Self::Work, Self::Read, Self::Admin];
    /// The scopes of tokens that are limited to queues. Lists, statistics and bulk actions are about all queues.
    pub(crate) const BY_QUEUE: [Self; 2] = [Self::Enqueue, Self::Work];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Manage => "manage",
            Self::Work => "work",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// The sender of a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// For the audit: the token's name and id.
    pub(crate) by: String,
    scopes: Vec<Scope>,
    tenant: Option<Tenant>,
    queues: Option<Vec<QueueName>>,
    proof: Proof,
}

/// Why a caller is believed.
#[derive(Debug, Clone)]
enum Proof {
    /// There are no tokens yet.
    OpenDoor,
    /// It is this process.
    Process,
    /// The token with this id.
    Token(String),
}

impl Caller {
    /// Anyone on this machine, while no token exists.
    pub(crate) fn local() -> Self {
        Self { by: "local".into(), scopes: vec![Scope::Admin], tenant: None, queues: None, proof: Proof::OpenDoor }
    }

    /// The command line when it works directly on a store. It attaches this caller to its requests, which never cross a
    /// network.
    pub(crate) fn operator() -> Self {
        Self { by: "command line".into(), proof: Proof::Process, ..Self::local() }
    }

    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// The tenants whose data the caller may read and change.
    pub(crate) fn tenants(&self) -> Tenants {
        self.tenant.clone().map_or(Tenants::All, Tenants::Tenant)
    }

    /// The id of the caller's token.
    pub(crate) fn token(&self) -> Option<&str> {
        match &self.proof {
            Proof::Token(id) => Some(id),
            Proof::OpenDoor | Proof::Process => None,
        }
    }

    /// The only tenant that the caller may act for; none if for all.
    pub(crate) fn own_tenant(&self) -> Option<&Tenant> {
        self.tenant.as_ref()
    }

    /// The tenants whose jobs the caller's workers may run.
    pub(crate) fn work_scope(&self) -> WorkScope {
        WorkScope { tenant: self.tenant.clone(), queues: self.queues.clone() }
    }

    /// # Errors
    /// The token is for other queues.
    pub(crate) fn check_queue(&self, queue: &QueueName) -> Result<(), Problem> {
        let Some(own) = self.queues.as_ref().filter(|own| !own.contains(queue)) else { return Ok(()) };
        let own = own.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(Problem::new(Kind::Forbidden, format!("this token is only for the queues {own}, not for `{queue}`")))
    }

    /// Whether the caller's token is for every queue.
    pub(crate) fn for_all_queues(&self) -> Result<(), Problem> {
        match &self.queues {
            None => Ok(()),
            Some(_) => Err(Problem::new(Kind::Forbidden, "this token is only for some queues; name one of them")),
        }
    }

    /// Whether the caller would still be let in. While the store cannot be read, nothing is known against it.
    pub(crate) async fn is_valid(&self, app: &App) -> bool {
        let Ok(known) = app.tokens().await else { return true };
        match &self.proof {
            Proof::Process => true,
            Proof::OpenDoor => known.is_open(),
            Proof::Token(id) => known.find(id).is_none_or(|token| token.is_valid(app.now())),
        }
    }

    /// Returns when the caller's token has been revoked or has expired: what it keeps open must end.
    pub(crate) async fn is_shut_out(&self, app: &App) {
        while self.is_valid(app).await {
            tokio::time::sleep(RECHECK).await;
        }
    }

    /// # Errors
    /// The token does not have the scope.
    pub(crate) fn check(&self, scope: Scope) -> Result<(), Problem> {
        if self.may(scope) {
            return Ok(());
        }
        Err(Problem::new(Kind::Forbidden, format!("this needs a token with the scope `{}`", scope.as_str())))
    }

    /// The tenant of what the caller creates: the token's tenant. A caller for all tenants may name one.
    ///
    /// # Errors
    /// The tenant is not the token's.
    pub(crate) fn tenant(&self, named: Option<Tenant>) -> Result<Tenant, Problem> {
        match (&self.tenant, named) {
            (None, named) => Ok(named.unwrap_or_default()),
            (Some(own), None) => Ok(own.clone()),
            (Some(own), Some(named)) if *own == named => Ok(named),
            (Some(own), Some(_)) => {
                Err(Problem::new(Kind::WrongTenant, format!("this token is only for the tenant `{own}`")))
            }
        }
    }

    /// The tenant a list is narrowed to, if any.
    ///
    /// # Errors
    /// The tenant is not the token's.
    pub(crate) fn narrowed(&self, named: Option<Tenant>) -> Result<Option<Tenant>, Problem> {
        named.map(|tenant| self.tenant(Some(tenant))).transpose()
    }

    /// The same caller, for one tenant only.
    pub(crate) fn narrowed_to(self, tenant: Tenant) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// # Errors
    /// The token is for one tenant, and this needs a token for all tenants.
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
needs!(Enqueue, Manage, Work, Read, Admin);

/// A caller who has the scope `N`.
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
        caller.check(N::SCOPE)?;
        Ok(Self(caller, PhantomData))
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
    let refused = || {
        Problem::new(
            Kind::Unauthorized,
            "send Authorization: Bearer wl_… with a token that is neither revoked nor expired",
        )
    };
    let given = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(refused)?;
    let (scheme, given) = given.split_once(' ').ok_or_else(refused)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused());
    }
    let (id, secret) = token::split(given.trim()).ok_or_else(refused)?;
    // The token may be newer than the copy: clients use a new token at once.
    let known = if known.find(id).is_some() { known } else { app.newest_tokens().await? };
    let caller = known.check(id, secret, app.now()).ok_or_else(refused)?;
    if let Some(slot) = parts.extensions.get::<ConnectionSlot>() {
        slot.belong_to(id)
            .map_err(|most| Problem::new(Kind::TooMany, format!("this token already has {most} connections open")))?;
    }
    Ok(caller)
}

impl Tokens {
    /// The caller with this token, if the secret is the token's.
    pub(crate) fn check(&self, id: &str, secret: &str, now: Timestamp) -> Option<Caller> {
        self.find(id).filter(|token| token::matches(secret, &token.hash))?;
        self.caller(id, now)
    }

    /// The caller with this token, unless it was revoked or has expired. Only for those who have proved that they hold
    /// it.
    pub(crate) fn caller(&self, id: &str, now: Timestamp) -> Option<Caller> {
        let token = self.find(id).filter(|token| token.is_valid(now))?;
        let scopes: Vec<Scope> = token.scopes.iter().filter_map(|word| Scope::parse(word)).collect();
        Some(Caller {
            by: format!("{} ({})", token.name, token.id),
            scopes,
            tenant: token.tenant.clone(),
            queues: token.queues.clone(),
            proof: Proof::Token(token.id.clone()),
        })
    }
}
