//! Shares: how many streams and long polls one token and one tenant may keep open.

use super::app::App;
use super::auth::Caller;
use super::output::problem::{Kind, Problem};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_core::job::Tenant;
use windlass_core::quota::{Quota, Quotas};

/// Event streams: of one token, of one tenant, in all.
const STREAMS: [usize; 3] = [20, 64, 256];
/// Long polls: of one token, of one tenant, in all. A fleet of workers may share a token.
const POLLS: [usize; 3] = [1000, 2000, 10_000];

/// What is kept open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Open {
    Stream,
    LongPoll,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holder {
    Token(String),
    Tenant(Tenant),
    All,
}

/// Too many are open.
#[derive(Debug)]
pub(crate) struct OverShare {
    /// Whether a quota of the tenant says so.
    is_quota: bool,
    message: String,
}

/// The number of open streams and long polls of each token and tenant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shares(Arc<Mutex<HashMap<(Open, Holder), usize>>>);

/// An open stream or long poll; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    shares: Shares,
    keys: Vec<(Open, Holder)>,
}

impl Shares {
    /// # Errors
    /// The token or its tenant has too many open already.
    pub(crate) fn count(&self, open: Open, caller: &Caller, quotas: Quotas) -> Result<Counted, OverShare> {
        let (mut limits, what) = match open {
            Open::Stream => (STREAMS, "streams"),
            Open::LongPoll => (POLLS, "long polls"),
        };
        let quota = match open {
            Open::Stream => quotas.streams,
            Open::LongPoll => quotas.long_polls,
        };
        if let Some(quota) = quota {
            limits[1] = quota as usize;
        }
        let holders = [
            caller.token().map(|id| (Holder::Token(id.to_owned()), "this token")),
            caller.own_tenant().map(|tenant| (Holder::Tenant(tenant.clone()), "this tenant")),
            Some((Holder::All, "the server")),
        ];
        let mut counts = self.counts();
        for ((holder, who), limit) in holders.iter().zip(limits).filter_map(|(h, limit)| Some((h.as_ref()?, limit))) {
            if counts.get(&(open, holder.clone())).is_some_and(|count| *count >= limit) {
                let is_quota = quota.is_some() && matches!(holder, Holder::Tenant(_));
                return Err(OverShare { is_quota, message: format!("{who} already has {limit} {what} open") });
            }
        }
        let keys: Vec<_> = holders.into_iter().flatten().map(|(holder, _)| (open, holder)).collect();
        for key in &keys {
            *counts.entry(key.clone()).or_default() += 1;
        }
        Ok(Counted { shares: self.clone(), keys })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<(Open, Holder), usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a stream or long poll of the caller, within its tenant's quotas.
///
/// # Errors
/// The token or its tenant has too many open already, or the store cannot be read.
pub(crate) async fn open(app: &App, open: Open, caller: &Caller) -> Result<Counted, Problem> {
    let quotas = match caller.own_tenant() {
        Some(tenant) => app.windlass().tenants().quotas(tenant).await?,
        None => Quotas::default(),
    };
    app.shares().count(open, caller, quotas).map_err(|over| {
        if let Some(tenant) = caller.own_tenant().filter(|_| over.is_quota) {
            let quota = match open {
                Open::Stream => Quota::Streams,
                Open::LongPoll => Quota::LongPolls,
            };
            app.windlass().tenants().count_refusal(tenant, quota);
        }
        let kind = if over.is_quota { Kind::OverQuota } else { Kind::TooMany };
        Problem::new(kind, over.message)
    })
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.shares.counts();
        for key in &self.keys {
            if let Some(count) = counts.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(key);
                }
            }
        }
    }
}
