//! After the clock was set back: jobs that a faster clock made due would wait until it is that late again.

use crate::client::windlass::Windlass;
use crate::job::Job;
use crate::leases::outage::store_failed;
use crate::store::{Amend, Amended, JobFilter, Order, Page, Scope, StoreError};
use windlass_core::timekeeping::Waiting;
use windlass_core::{JobId, State, Timestamp};

/// Jobs per page. Few, because they are read with their payloads.
const PAGE: u32 = 50;

/// A walk over the jobs that wait, one page at a time, so that other upkeep goes on in between.
#[derive(Debug)]
pub(super) enum Walk {
    /// Over jobs before their first attempt, the newest first, as long as they were stored in the future.
    Stored(Option<JobId>),
    /// Over jobs after an attempt.
    Retrying(Option<JobId>),
    Over,
}

impl Walk {
    pub(super) const START: Self = Self::Stored(None);

    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Gives the jobs of the next page the times they should have. Returns whether to go on at once. After an outage
    /// the same page is looked at again: a retry that was moved before it is left as it is.
    pub(super) async fn go_on(&mut self, windlass: &Windlass) -> bool {
        let result = self.page(windlass).await;
        windlass.inner().record_contact(&result);
        match result {
            Ok((moved, next)) => {
                if moved > 0 {
                    tracing::warn!(jobs = moved, "the clock was set back; jobs that it had made late are due earlier");
                }
                *self = next;
                !self.is_over()
            }
            Err(error) => {
                store_failed!(error, "due times could not be compared with the clock");
                if !error.is_outage() {
                    // What is left runs late, but it runs.
                    *self = Self::Over;
                }
                false
            }
        }
    }

    /// How many jobs of the next page were moved, and where to go on.
    async fn page(&self, windlass: &Windlass) -> Result<(usize, Self), StoreError> {
        let now = windlass.clock().now();
        match *self {
            Self::Stored(after) => {
                let found = page(windlass, State::Queued, after, Order::NewestFirst).await?;
                let ahead: Vec<&Job> = found.iter().take_while(|job| job.created_at > now).collect();
                let next = if ahead.len() < PAGE as usize { None } else { ahead.last().map(|job| job.id) };
                let next = next.map_or(Self::Retrying(None), |last| Self::Stored(Some(last)));
                Ok((move_back(windlass, &ahead, now).await?, next))
            }
            Self::Retrying(after) => {
                let found = page(windlass, State::Retrying, after, Order::OldestFirst).await?;
                let is_ahead = |job: &&Job| job.due_at > now && job.claimed_at.is_some_and(|at| at > now);
                let ahead: Vec<&Job> = found.iter().filter(is_ahead).collect();
                let next = if found.len() < PAGE as usize { None } else { found.last().map(|job| job.id) };
                let next = next.map_or(Self::Over, |last| Self::Retrying(Some(last)));
                Ok((move_back(windlass, &ahead, now).await?, next))
            }
            Self::Over => Ok((0, Self::Over)),
        }
    }
}

async fn page(windlass: &Windlass, state: State, after: Option<JobId>, order: Order) -> Result<Vec<Job>, StoreError> {
    let filter = JobFilter { states: vec![state], ..JobFilter::default() };
    windlass.store().jobs(&Scope::All, &filter, Page { after, limit: PAGE, order }).await
}

/// Moves those whose time a faster clock gave. Returns how many.
async fn move_back(windlass: &Windlass, jobs: &[&Job], now: Timestamp) -> Result<usize, StoreError> {
    let mut moved = 0;
    for job in jobs {
        let last = match job.attempt {
            0 => None,
            _ => windlass.store().attempts(&Scope::All, job.id, 1).await?.pop(),
        };
        let ended = last.map(|attempt| (attempt.finished_at, attempt.next_run_at));
        let waiting = Waiting { created_at: job.created_at, due_at: job.due_at, ended };
        if let Some(due_at) = waiting.due_after_set_back(now) {
            let change = Amend { run_at: Some(due_at), ..Amend::default() };
            let amended = windlass.store().amend(&Scope::All, job.id, change).await?;
            moved += usize::from(matches!(amended, Amended::Done));
        }
    }
    Ok(moved)
}
