//! Messages between nodes and the store.

use windlass::core::Millis;
use windlass::low_level::job::{ClaimedJob, LeaseId};
use windlass::low_level::stores::{
    Claim, Claimed, Commit, Committed, Firing, Reap, Renewed, Schedule, Spared, Store, StoreError, WorkerId,
};

#[derive(Debug, Clone)]
pub enum Call {
    Claim(Claim, LeaseId),
    Held(LeaseId),
    Commit(Vec<Commit>, Vec<LeaseId>),
    Renew(WorkerId, Vec<LeaseId>, Millis),
    /// With the time of the request.
    Reap(Spared, Millis),
    Expire,
    Due,
    Fire(Firing),
    Prune,
}

#[derive(Debug)]
pub enum Answer {
    Claimed(LeaseId, Result<Claimed, Trouble>),
    Held(LeaseId, Result<Vec<ClaimedJob>, Trouble>),
    Committed(Result<Vec<Committed>, Trouble>),
    Renewed(Result<Renewed, Trouble>),
    Due(Result<Vec<Schedule>, Trouble>),
    /// Of a call whose answer nobody acts on.
    Answered(Result<(), Trouble>),
}

/// Why a call got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Unavailable,
    Unknown,
}

/// The most items of one upkeep call.
const BATCH: u32 = 500;

impl Call {
    pub async fn send(self, store: &dyn Store) -> Answer {
        match self {
            Self::Claim(claim, lease) => Answer::Claimed(lease, sorted(store.claim(claim).await)),
            Self::Held(lease) => Answer::Held(lease, sorted(store.held(vec![lease]).await)),
            Self::Commit(commits, ended) => Answer::Committed(sorted(store.commit(commits, ended).await)),
            Self::Renew(worker, leases, span) => Answer::Renewed(sorted(store.renew(&worker, leases, span).await)),
            Self::Reap(spared, _) => answered(store.reap(Reap::Expired { spared }, BATCH).await),
            Self::Expire => answered(store.expire(BATCH).await),
            Self::Due => Answer::Due(sorted(store.due_schedules(BATCH).await).map(|(due, _)| due)),
            Self::Fire(firing) => answered(store.fire(firing).await),
            Self::Prune => answered(store.prune().await),
        }
    }

    /// The same call, as the store sees it now.
    pub fn arriving(self, now: Millis) -> Self {
        match self {
            Self::Reap(mut spared, asked) => {
                spared.after(now - asked, Millis::ZERO, Millis::ZERO);
                Self::Reap(spared, asked)
            }
            Self::Claim(..) | Self::Held(_) | Self::Commit(..) | Self::Renew(..) | Self::Expire | Self::Due => self,
            Self::Fire(_) | Self::Prune => self,
        }
    }

    /// What its sender learns when the call takes too long.
    pub fn unknown(&self) -> Answer {
        let unknown = Trouble::Unknown;
        match self {
            Self::Claim(_, lease) => Answer::Claimed(*lease, Err(unknown)),
            Self::Held(lease) => Answer::Held(*lease, Err(unknown)),
            Self::Commit(..) => Answer::Committed(Err(unknown)),
            Self::Renew(..) => Answer::Renewed(Err(unknown)),
            Self::Due => Answer::Due(Err(unknown)),
            Self::Reap(..) | Self::Expire | Self::Fire(_) | Self::Prune => Answer::Answered(Err(unknown)),
        }
    }
}

impl Answer {
    /// What a node learns about its contact with the store.
    pub fn contact(&self) -> Result<(), StoreError> {
        let trouble = match self {
            Self::Claimed(_, answer) => answer.as_ref().err(),
            Self::Held(_, answer) => answer.as_ref().err(),
            Self::Committed(answer) => answer.as_ref().err(),
            Self::Renewed(answer) => answer.as_ref().err(),
            Self::Due(answer) => answer.as_ref().err(),
            Self::Answered(answer) => answer.as_ref().err(),
        };
        trouble.map_or(Ok(()), |_| Err(StoreError::unavailable("trouble")))
    }
}

fn answered<T>(result: Result<T, StoreError>) -> Answer {
    Answer::Answered(sorted(result).map(|_| ()))
}

pub fn sorted<T>(result: Result<T, StoreError>) -> Result<T, Trouble> {
    result.map_err(|error| match error {
        StoreError::Unavailable(_) => Trouble::Unavailable,
        StoreError::Unknown(_) => Trouble::Unknown,
        StoreError::Corrupt { .. } | StoreError::Schema(_) | StoreError::Invalid(_) | _ => {
            panic!("the store says: {error}")
        }
    })
}
