//! Export: reads page by page and returns lines to write.

use super::Moved;
use super::record::{Header, Record};
use crate::client::windlass::Windlass;
use crate::leases::transition;
use crate::store::{IMPORT, JobCopy, Order, Page, Scope, SettingKey, SettingSource, StoreError};
use std::collections::HashMap;
use windlass_core::{Attempt, JobId, Outcome, Progress, Roll, State, Timestamp, decide};

/// Jobs in one page, at most. Pages begin small and grow while their jobs are small.
const PAGE: u32 = 200;
const FIRST_PAGE: u32 = 25;
/// A page should have about as many bytes.
const PAGE_BYTES: usize = 4 << 20;
/// The most holds that are exported.
const HOLDS: u32 = 10_000;
/// The worker of an attempt whose worker has gone.
const NOBODY: &str = "unknown";
const INTERRUPTED: &str = "exported while it ran";

/// Whether values that are sealed at rest may be written in clear text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clear {
    /// No: the export of a store with sealed values is refused.
    Refuse,
    /// Yes.
    Allow,
}

/// Why an export failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Values at rest are sealed, and the export would contain them in clear text.
    #[error("values in this store are sealed, and an export contains them in clear text")]
    Sealed,
    /// What was written before cannot be continued.
    #[error("{0}")]
    NotOurs(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Registry,
    Schedules,
    Jobs,
    End,
    Over,
}

/// An export that is under way. Made by [`Transfers::export`](super::Transfers::export).
#[derive(Debug)]
pub struct Export<'a> {
    windlass: &'a Windlass,
    header: Header,
    stage: Stage,
    after: Option<JobId>,
    page: u32,
    lines: u64,
    running: u64,
    moved: Moved,
}

impl<'a> Export<'a> {
    pub(super) async fn begin(windlass: &'a Windlass, clear: Clear) -> Result<Self, ExportError> {
        check_sealed(windlass, clear).await?;
        let store = windlass.store();
        let header = Header {
            export: format!("{:016x}", windlass.inner().random.number()),
            installation: store.installation().await?,
            exported_at: windlass.clock().now(),
            last_id: store.last_id().await?,
        };
        Ok(Self::at(windlass, header, Stage::Header))
    }

    pub(super) async fn resume(
        windlass: &'a Windlass,
        clear: Clear,
        (first, last): (&str, &str),
        lines: u64,
    ) -> Result<Option<Self>, ExportError> {
        check_sealed(windlass, clear).await?;
        let not_ours = |why: String| ExportError::NotOurs(why);
        let header = Header::read(first).map_err(|fault| not_ours(format!("{}: {}", fault.field, fault.why)))?;
        if header.installation != windlass.store().installation().await? {
            return Err(not_ours("it is the export of another store".into()));
        }
        let (stage, after) = match Record::read(last) {
            Ok(Record::Schedule(schedule)) => (Stage::Schedules, schedule.id),
            Ok(Record::Job(copy)) => (Stage::Jobs, copy.job.id),
            Ok(Record::End { .. }) => (Stage::Over, header.last_id),
            Ok(Record::Queue { .. } | Record::Setting { .. } | Record::Token(_) | Record::Hold { .. }) | Err(_) => {
                return Ok(None);
            }
        };
        Ok(Some(Self { after: Some(after), lines, ..Self::at(windlass, header, stage) }))
    }

    fn at(windlass: &'a Windlass, header: Header, stage: Stage) -> Self {
        Self { windlass, header, stage, after: None, page: FIRST_PAGE, lines: 0, running: 0, moved: Moved::default() }
    }

    /// The next lines, each with its line feed; `None` when all have been returned.
    ///
    /// # Errors
    /// The store cannot be read. The call can be repeated.
    pub async fn next(&mut self) -> Result<Option<String>, ExportError> {
        let lines = match self.stage {
            Stage::Header => {
                self.stage = Stage::Registry;
                vec![self.header.to_line()]
            }
            Stage::Registry => {
                let records = self.registry().await?;
                self.stage = Stage::Schedules;
                records.iter().map(Record::to_line).collect()
            }
            Stage::Schedules => self.schedules().await?,
            Stage::Jobs => self.jobs().await?,
            Stage::End => {
                self.stage = Stage::Over;
                vec![Record::End { lines: self.lines }.to_line()]
            }
            Stage::Over => return Ok(None),
        };
        self.lines += lines.len() as u64;
        let mut text = lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        Ok(Some(text))
    }

    /// How far it is: the id of the last job that was returned, and the highest.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let last = self.header.last_id.0;
        let done = match self.stage {
            Stage::Header | Stage::Registry | Stage::Schedules => 0,
            Stage::Jobs => self.after.map_or(0, |id| id.0.min(last)),
            Stage::End | Stage::Over => last,
        };
        (done.unsigned_abs(), last.unsigned_abs())
    }

    /// What was returned so far.
    #[must_use]
    pub const fn moved(&self) -> Moved {
        self.moved
    }

    /// How many of the jobs ran when they were read. They are exported as given back by their worker.
    #[must_use]
    pub const fn running(&self) -> u64 {
        self.running
    }

    async fn registry(&mut self) -> Result<Vec<Record>, StoreError> {
        let store = self.windlass.store();
        self.moved = Moved::default();
        let mut records = Vec::new();
        for queue in store.queues().await? {
            let (tenant, name, executor, paused) = (queue.tenant, queue.name, queue.executor, queue.paused);
            records.push(Record::Queue { tenant, name, executor, paused });
        }
        self.moved.queues = records.len() as u64;
        for setting in store.stored_settings().await? {
            // Those of files and environments belong to the nodes that have them.
            let is_moved = setting.source == SettingSource::Operator && is_moved(&setting.key);
            if is_moved {
                records.push(Record::Setting { key: setting.key, value: setting.value });
                self.moved.settings += 1;
            }
        }
        for token in store.tokens().await? {
            records.push(Record::Token(token));
            self.moved.tokens += 1;
        }
        let now = self.windlass.clock().now();
        for status in store.gates(&Scope::All, None, HOLDS).await? {
            if let Some(hold) = status.gate.held(now) {
                records.push(Record::Hold { gate: status.name, hold: hold.clone() });
                self.moved.holds += 1;
            }
        }
        Ok(records)
    }

    async fn schedules(&mut self) -> Result<Vec<String>, StoreError> {
        let page = Page { after: self.after, limit: PAGE, order: Order::OldestFirst };
        let mut found = self.windlass.store().schedules(&Scope::All, page).await?;
        // Those that were added after the export began have ids that the importing store gives to others.
        found.retain(|schedule| schedule.id <= self.header.last_id);
        self.moved.schedules += found.len() as u64;
        match found.last() {
            Some(last) => self.after = Some(last.id),
            None => (self.stage, self.after) = (Stage::Jobs, None),
        }
        Ok(found.into_iter().map(|schedule| Record::Schedule(Box::new(schedule)).to_line()).collect())
    }

    async fn jobs(&mut self) -> Result<Vec<String>, StoreError> {
        let store = self.windlass.store();
        let mut found = store.copies(self.after, self.page).await?;
        found.retain(|copy| copy.job.id <= self.header.last_id);
        let running: Vec<JobId> =
            found.iter().filter(|copy| copy.job.state == State::Running).map(|copy| copy.job.id).collect();
        let holders: HashMap<JobId, String> = match running.as_slice() {
            [] => HashMap::new(),
            ids => store.holders(ids).await?.into_iter().map(|holder| (holder.job, holder.worker)).collect(),
        };
        let now = self.windlass.clock().now();
        let mut lines = Vec::with_capacity(found.len());
        match found.last() {
            Some(last) => self.after = Some(last.job.id),
            None => self.stage = Stage::End,
        }
        for copy in found {
            let copy = if copy.job.state == State::Running {
                let worker = holders.get(&copy.job.id).map_or(NOBODY, String::as_str);
                given_back(copy, worker, now)
            } else {
                copy
            };
            self.moved.jobs += 1;
            self.moved.attempts += copy.attempts.len() as u64;
            lines.push(Record::Job(Box::new(copy)).to_line());
        }
        self.running += running.len() as u64;
        let bytes: usize = lines.iter().map(String::len).sum();
        if bytes > PAGE_BYTES {
            self.page = (self.page / 4).max(1);
        } else if bytes * 2 < PAGE_BYTES {
            self.page = (self.page * 2).min(PAGE);
        }
        Ok(lines)
    }
}

async fn check_sealed(windlass: &Windlass, clear: Clear) -> Result<(), ExportError> {
    let settings = windlass.store().settings().await?;
    let is_sealed = settings.iter().any(|(key, _)| names_sealing_key(key));
    if is_sealed && clear == Clear::Refuse { Err(ExportError::Sealed) } else { Ok(()) }
}

/// Some server settings belong to one store and are not moved.
fn is_moved(key: &SettingKey) -> bool {
    let is_own = matches!(key, SettingKey::Server { name } if name == IMPORT);
    !is_own && !names_sealing_key(key)
}

/// Whether a setting says with which keys values are sealed.
fn names_sealing_key(key: &SettingKey) -> bool {
    matches!(key, SettingKey::Server { name } if name == "sealing" || name.starts_with("sealing:"))
}

/// A running job as if its worker had given it back: it waits for its next attempt and no failure counts; an
/// at-most-once job ends, because it must not start twice.
fn given_back(copy: JobCopy, worker: &str, now: Timestamp) -> JobCopy {
    let JobCopy { mut job, mut attempts, key } = copy;
    let transition = decide(&job.running(), &Outcome::Released(Progress::Started), now, Roll(0));
    let wait = transition.next.wait();
    attempts.push(Attempt {
        number: job.attempt,
        retry: job.failures,
        status: transition.status,
        started_at: job.claimed_at.unwrap_or(now),
        finished_at: now,
        error_class: None,
        error: None,
        note: Some(INTERRUPTED.into()),
        trace: None,
        replay: job.replays,
        worker: worker.into(),
        next_run_at: wait.map(|(due_at, _)| due_at),
        delay: wait.map(|(_, delay)| delay),
        why: transition.why.to_string(),
    });
    transition::apply(&mut job, &transition, now);
    // Its key refers to it while it is live.
    let key = key.filter(|held| held.until().is_some() || job.state.is_live());
    JobCopy { job, attempts, key }
}
