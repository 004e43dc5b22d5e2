//! MUTATE: changes many jobs at once: those that wait for their time, for a retry, or as dead letters.

use super::command::{Filter, Mutation, MutationAction, Target, glob};
use super::reply::Reply;
use super::session::Session;
use super::wire;
use windlass::client::{JobFilter, Page, Spacing};
use windlass::{Job, StoreError};
use windlass_core::job::Kind;
use windlass_core::{JobId, State};

/// Jobs read and changed at once.
const PAGE: u32 = 500;

impl Session {
    pub(super) async fn mutate(&self, mutation: Mutation) -> Result<Reply, Reply> {
        let target =
            mutation.target.ok_or_else(|| Reply::Error("MUTATE needs a target: scheduled, retries or dead".into()))?;
        let filter = match mutation.cmd {
            // `clear` takes no filter: it means everything.
            MutationAction::Clear => Filter::default(),
            MutationAction::Discard | MutationAction::Kill | MutationAction::Requeue => {
                mutation.filter.unwrap_or_default()
            }
        };
        let kind =
            filter.jobtype.as_deref().map(Kind::new).transpose().map_err(|error| Reply::Error(error.to_string()))?;
        let listed = listed(target, kind);
        let mut page = Page::oldest(PAGE);
        loop {
            let jobs = match target {
                Target::Dead => self.windlass().dead_letters().list(&listed, page).await?,
                Target::Scheduled | Target::Retries => self.windlass().jobs().list(&listed, page).await?,
            };
            page.after = jobs.last().map(|job| job.id);
            let now = self.windlass().clock().now();
            let is_target = |job: &&Job| target != Target::Scheduled || job.due_at > now;
            let chosen: Vec<JobId> =
                jobs.iter().filter(is_target).filter(|job| matches(job, &filter)).map(|job| job.id).collect();
            if !chosen.is_empty() {
                self.apply(mutation.cmd, target, chosen).await?;
            }
            if (jobs.len() as u32) < PAGE {
                return Ok(Reply::Ok);
            }
        }
    }

    async fn apply(&self, action: MutationAction, target: Target, ids: Vec<JobId>) -> Result<(), StoreError> {
        let (jobs, dead) = (self.windlass().jobs().by("faktory"), self.windlass().dead_letters().by("faktory"));
        match (action, target) {
            (MutationAction::Requeue, Target::Dead) => drop(dead.replay_ids(ids, Spacing::NONE).await?),
            (MutationAction::Requeue, Target::Scheduled | Target::Retries) => drop(jobs.replay_many(ids).await?),
            // What is dead already stays a dead letter.
            (MutationAction::Kill, Target::Dead) => {}
            (MutationAction::Clear | MutationAction::Discard, Target::Dead) => {
                drop(dead.discard_ids(ids, "MUTATE").await?);
            }
            // A job that never failed cannot become a dead letter: it is cancelled, and can be replayed.
            (
                MutationAction::Kill | MutationAction::Clear | MutationAction::Discard,
                Target::Scheduled | Target::Retries,
            ) => {
                drop(jobs.cancel_many(ids).await?);
            }
        }
        Ok(())
    }
}

fn listed(target: Target, kind: Option<Kind>) -> JobFilter {
    let states = match target {
        Target::Scheduled => vec![State::Queued],
        Target::Retries => vec![State::Retrying],
        Target::Dead => Vec::new(),
    };
    JobFilter { states, kind, ..JobFilter::default() }
}

fn matches(job: &Job, filter: &Filter) -> bool {
    let is_named = filter.jids.as_ref().is_none_or(|jids| wire::of(job).jid().is_some_and(|jid| jids.contains(&jid)));
    is_named && filter.regexp.as_deref().is_none_or(|pattern| glob(pattern, &wire::compact(job)))
}
