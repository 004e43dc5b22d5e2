//! Long actions: they run in this process a batch at a time, and a page shows their progress. What they did is in the
//! audit, written with each batch, so nothing is lost with the process.

pub(super) mod page;
mod work;

pub(super) use work::Work;

use super::error::PageError;
use super::session::Visitor;
use crate::http::{App, ProblemKind};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use windlass::client::Scope;
use windlass::{JobId, StoreError};
use windlass_core::Timestamp;

/// The most operations that run at once.
const MAX_RUNNING: usize = 8;
/// Ended operations are remembered until there are so many.
const KEPT: usize = 200;
/// The most jobs, of all operations together, that are remembered for an undo.
const MOST_REMEMBERED: usize = 200_000;

/// The long actions of this process. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations(Arc<Mutex<VecDeque<Operation>>>);

/// What one batch did.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) done: u64,
    /// The jobs it changed, if an undo may need them.
    pub(crate) changed: Vec<JobId>,
    pub(crate) skipped: u64,
    pub(crate) more: bool,
    /// When the last job that it sent again is due.
    pub(crate) last_due: Option<Timestamp>,
}

/// An action that is about to start.
#[derive(Debug)]
pub(crate) struct Started {
    what: String,
    scope: Scope,
    /// How many jobs there were, if counted.
    expected: Option<u64>,
    /// Where to go when it is done.
    back: Option<(String, &'static str)>,
}

/// One long action.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) what: String,
    scope: Scope,
    pub(crate) expected: Option<u64>,
    pub(crate) done: u64,
    pub(crate) skipped: u64,
    pub(crate) started_at: Timestamp,
    pub(crate) last_due: Option<Timestamp>,
    pub(crate) status: Status,
    pub(crate) undo: Undo,
    pub(crate) back: Option<(String, &'static str)>,
}

/// Whether an operation can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undo {
    /// Nothing to undo, or it has begun.
    No,
    /// By sending exactly these jobs again.
    Jobs(Vec<JobId>),
    /// It changed more jobs than are remembered.
    TooMany,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    Done,
    Failed(String),
}

impl Undo {
    fn len(&self) -> usize {
        match self {
            Self::Jobs(ids) => ids.len(),
            Self::No | Self::TooMany => 0,
        }
    }

    fn remember(&mut self, changed: Vec<JobId>, room: usize) {
        match self {
            Self::Jobs(ids) if changed.len() <= room => ids.extend(changed),
            Self::Jobs(_) => *self = Self::TooMany,
            Self::No | Self::TooMany => {}
        }
    }
}

impl Step {
    fn new(done: u64, more: bool) -> Self {
        Self { done, changed: Vec::new(), skipped: 0, more, last_due: None }
    }
}

impl Started {
    pub(crate) fn new(what: String, visitor: &Visitor, expected: Option<u64>) -> Self {
        Self { what, scope: visitor.tenants(), expected, back: None }
    }

    pub(crate) fn back(self, path: impl Into<String>, name: &'static str) -> Self {
        Self { back: Some((path.into(), name)), ..self }
    }
}

impl Operations {
    /// Works in batches until there is no more. Returns the id of the operation.
    ///
    /// # Errors
    /// Too many operations run already.
    pub(crate) fn start(
        &self,
        app: &App,
        visitor: &Visitor,
        started: Started,
        mut work: Work,
    ) -> Result<String, PageError> {
        let id = format!("{:016x}", app.random().number());
        let undo = if work.ends_jobs() { Undo::Jobs(Vec::new()) } else { Undo::No };
        self.add(&id, started, undo, app.now())?;
        let (operations, app, task) = (self.clone(), app.clone(), id.clone());
        let (scope, by) = (visitor.tenants(), visitor.caller.by.clone());
        // It outlives the request that started it, and ends with its last batch or when the server stops.
        tokio::spawn(async move {
            loop {
                let result = work.step(app.windlass(), &scope, &by).await;
                if operations.record(&task, result) || app.draining().is_cancelled() {
                    break;
                }
            }
        });
        Ok(id)
    }

    fn add(&self, id: &str, started: Started, undo: Undo, now: Timestamp) -> Result<(), PageError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().filter(|operation| operation.status == Status::Running).count() >= MAX_RUNNING {
            let detail = format!("{MAX_RUNNING} operations run already; wait until one has ended");
            return Err(PageError::new(ProblemKind::TooMany, detail));
        }
        while all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back(Operation {
            id: id.to_owned(),
            what: started.what,
            scope: started.scope,
            expected: started.expected,
            done: 0,
            skipped: 0,
            started_at: now,
            last_due: None,
            status: Status::Running,
            undo,
            back: started.back,
        });
        Ok(())
    }

    /// Records a batch. Returns whether it was the last.
    fn record(&self, id: &str, result: Result<Step, StoreError>) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered: usize = all.iter().map(|operation| operation.undo.len()).sum();
        let Some(operation) = all.iter_mut().find(|operation| operation.id == id) else { return true };
        match result {
            Ok(step) => {
                operation.undo.remember(step.changed, MOST_REMEMBERED.saturating_sub(remembered));
                operation.done += step.done;
                operation.skipped += step.skipped;
                operation.last_due = operation.last_due.max(step.last_due);
                operation.status = if step.more { Status::Running } else { Status::Done };
            }
            Err(error) => {
                tracing::warn!(%error, "an operation of the dashboard stopped");
                operation.status = Status::Failed("the store could not be used; what was done until then stays".into());
            }
        }
        operation.status != Status::Running
    }

    /// Takes what an ended operation did, so that it is undone once: its words and its jobs.
    ///
    /// # Errors
    /// It is not known, still runs, or cannot be undone (any more).
    pub(crate) fn take_undo(&self, id: &str, scope: &Scope) -> Result<(String, Vec<JobId>), PageError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |operation: &&mut Operation| {
            operation.id == id
                && operation.status != Status::Running
                && (*scope == Scope::All || operation.scope == *scope)
        };
        let undone = all.iter_mut().find(is_meant).map(|found| {
            let undo = std::mem::replace(&mut found.undo, Undo::No);
            (found.what.clone(), undo)
        });
        match undone {
            Some((what, Undo::Jobs(ids))) if !ids.is_empty() => Ok((what, ids)),
            Some((_, Undo::Jobs(_) | Undo::No | Undo::TooMany)) | None => {
                let detail = "there is nothing to undo: it was undone already, still runs, or this node forgot it";
                Err(PageError::bad(detail))
            }
        }
    }

    /// An operation, for those who may see what it changes.
    pub(crate) fn get(&self, id: &str, scope: &Scope) -> Option<Operation> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_seen = |operation: &&Operation| *scope == Scope::All || operation.scope == *scope;
        all.iter().find(|operation| operation.id == id).filter(is_seen).cloned()
    }
}
