//! Import: takes lines and stores them in batches. Each batch notes in its own commit how far the import is, so one
//! that was interrupted goes on where it stopped, and nothing is stored twice.

use super::Moved;
use super::fields::Fault;
use super::record::{Header, Record};
use crate::client::windlass::Windlass;
use crate::store::{IMPORT, Import, Imported, JobCopy, Origin, Schedule, SettingKey, SettingSource, StoreError};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::mem::take;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Executor, JobId};

/// Records in one batch, at most.
const BATCH: usize = 500;
/// Bytes of lines in one batch, about.
const BATCH_BYTES: usize = 4 << 20;

/// Why an import stopped. What was stored before is kept; the import can be run again.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A line is wrong.
    #[error("line {line}, {field}: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// Which field.
        field: String,
        /// What is wrong and what is accepted.
        why: String,
    },
    /// The database refused a batch.
    #[error("lines {first} to {last} are refused by the store: {why}")]
    Refused {
        /// The first line of the batch.
        first: u64,
        /// The last line of the batch.
        last: u64,
        /// The database's words.
        why: String,
    },
    /// The store has jobs or schedules of its own.
    #[error("the store has jobs or schedules already; an import keeps ids, so it needs a store without any")]
    NotEmpty,
    /// The store was filled from another export.
    #[error("the store was filled from another export; import this one into an empty store")]
    OtherExport,
    /// Another import into the store is under way.
    #[error("another import into this store is under way")]
    Overtaken,
    /// The lines end before the last one of the export.
    #[error("the file ends after line {lines} without the line `end`: it is cut off. What it has is imported")]
    CutOff {
        /// How many lines there are.
        lines: u64,
    },
    /// There is no line.
    #[error("the file is empty")]
    Empty,
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// What was stored now.
    pub moved: Moved,
    /// Lines that a former import of the same export had stored.
    pub skipped: u64,
    /// Records that the store had already, and that were left as they are there.
    pub existing: u64,
    /// Lines that the export had and this file has not.
    pub missing: u64,
}

/// An import that is under way. Made by [`Transfers::import`](super::Transfers::import).
#[derive(Debug)]
pub struct Importing<'a> {
    windlass: &'a Windlass,
    header: Option<Header>,
    /// How far the import is, as the store has it.
    mark: String,
    /// The number of the current line.
    line: u64,
    /// The last line that is stored.
    stored: u64,
    bytes: usize,
    schedules: Vec<Schedule>,
    jobs: Vec<JobCopy>,
    /// The highest id of a job so far: they come in the order of ids.
    last_job: Option<JobId>,
    /// The operator's settings and the tokens that the store has.
    known: Option<(HashSet<SettingKey>, HashSet<String>)>,
    has_ended: bool,
    report: ImportReport,
}

impl<'a> Importing<'a> {
    pub(super) fn new(windlass: &'a Windlass) -> Self {
        Self {
            windlass,
            header: None,
            mark: String::new(),
            line: 0,
            stored: 0,
            bytes: 0,
            schedules: Vec::new(),
            jobs: Vec::new(),
            last_job: None,
            known: None,
            has_ended: false,
            report: ImportReport::default(),
        }
    }

    /// Whether a line can be the first of an export that this program reads.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_first(text: &str) -> Result<(), ImportError> {
        let wrong = |fault: Fault| ImportError::Line { line: 1, field: fault.field, why: fault.why };
        Header::read(text).map(drop).map_err(wrong)
    }

    /// Takes the next line. It is stored with its batch.
    ///
    /// # Errors
    /// The line is wrong, or the store does not take it. Lines before it are stored; after an error, give up.
    pub async fn line(&mut self, text: &str) -> Result<(), ImportError> {
        self.line += 1;
        if self.header.is_none() {
            return self.begin(text).await;
        }
        if self.line <= self.stored {
            self.report.skipped += 1;
            self.has_ended = text.starts_with("{\"end\"");
            return Ok(());
        }
        if text.trim().is_empty() {
            return Ok(());
        }
        match self.take(text).await {
            Err(error @ ImportError::Line { .. }) => {
                self.store(self.line - 1).await?;
                Err(error)
            }
            taken => taken,
        }
    }

    /// Stores what is left.
    ///
    /// # Errors
    /// The store does not take it, or the last line is missing.
    pub async fn finish(mut self) -> Result<ImportReport, ImportError> {
        if self.header.is_none() {
            return Err(ImportError::Empty);
        }
        self.store(self.line).await?;
        if self.has_ended { Ok(self.report) } else { Err(ImportError::CutOff { lines: self.line }) }
    }

    /// What was done so far.
    #[must_use]
    pub const fn report(&self) -> ImportReport {
        self.report
    }

    async fn begin(&mut self, text: &str) -> Result<(), ImportError> {
        let header = Header::read(text).map_err(|fault| self.wrong(fault))?;
        let settings = self.windlass.store().settings().await?;
        let mark = settings.into_iter().find(|(key, _)| *key == key_of_mark()).map(|(_, value)| value);
        match mark {
            Some(mark) => {
                let value: Value = serde_json::from_str(&mark).unwrap_or_default();
                if value.get("export").and_then(Value::as_str) != Some(&header.export) {
                    return Err(ImportError::OtherExport);
                }
                self.stored = value.get("line").and_then(Value::as_u64).unwrap_or(1);
                self.mark = mark;
                self.report.skipped = 1;
            }
            None => {
                let origin = Origin { installation: header.installation.clone(), last_id: header.last_id };
                let after = mark_at(&header, 1);
                let first = Import {
                    origin: Some(origin),
                    before: None,
                    after: after.clone(),
                    schedules: Vec::new(),
                    jobs: Vec::new(),
                };
                self.imported(first).await?;
                (self.stored, self.mark) = (1, after);
            }
        }
        self.header = Some(header);
        Ok(())
    }

    async fn take(&mut self, text: &str) -> Result<(), ImportError> {
        if self.has_ended {
            let why = "there is a line after the line `end`".into();
            return Err(self.wrong(Fault { field: "record".into(), why }));
        }
        let record = Record::read(text).map_err(|fault| self.wrong(fault))?;
        match record {
            Record::Queue { tenant, name, executor, paused } => self.queue(&tenant, &name, executor, paused).await?,
            Record::Setting { key, value } => self.setting(key, &value).await?,
            Record::Token(token) => {
                if self.known().await?.1.contains(&token.id) {
                    self.report.existing += 1;
                } else {
                    self.windlass.store().put_token(&token).await?;
                    self.report.moved.tokens += 1;
                }
            }
            Record::Hold { gate, hold } => {
                if hold.until > self.windlass.clock().now() {
                    self.windlass.store().put_hold(&gate, Some(&hold)).await?;
                    self.report.moved.holds += 1;
                }
            }
            Record::Schedule(schedule) => {
                self.check_id("schedule.id", schedule.id)?;
                self.report.moved.schedules += 1;
                self.schedules.push(*schedule);
            }
            Record::Job(copy) => {
                self.check_id("job.id", copy.job.id)?;
                self.check_order(copy.job.id)?;
                self.report.moved.jobs += 1;
                self.report.moved.attempts += copy.attempts.len() as u64;
                self.jobs.push(*copy);
            }
            Record::End { lines } => {
                self.has_ended = true;
                self.report.missing = (lines + 1).saturating_sub(self.line);
            }
        }
        self.bytes += text.len();
        if self.schedules.len() + self.jobs.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.store(self.line).await?;
        }
        Ok(())
    }

    /// Ids above the header's are given to new jobs.
    fn check_id(&self, field: &str, id: JobId) -> Result<(), ImportError> {
        let last = self.header.as_ref().map_or(JobId(0), |header| header.last_id);
        if id <= last {
            return Ok(());
        }
        let why = format!("{id} is greater than the header's lastId {last}");
        Err(self.wrong(Fault { field: field.into(), why }))
    }

    fn check_order(&mut self, id: JobId) -> Result<(), ImportError> {
        if self.last_job >= Some(id) {
            let why = format!("{id} comes after a job with the same or a greater id");
            return Err(self.wrong(Fault { field: "job.id".into(), why }));
        }
        self.last_job = Some(id);
        Ok(())
    }

    async fn queue(
        &mut self,
        tenant: &Tenant,
        name: &QueueName,
        executor: Executor,
        paused: bool,
    ) -> Result<(), ImportError> {
        let store = self.windlass.store();
        store.register_queue(tenant, name, executor).await?;
        if paused {
            store.pause_queue(tenant, name, true).await?;
        }
        self.report.moved.queues += 1;
        Ok(())
    }

    async fn setting(&mut self, key: SettingKey, value: &str) -> Result<(), ImportError> {
        if self.known().await?.0.contains(&key) {
            self.report.existing += 1;
        } else {
            self.windlass.store().put_setting(&key, Some(value)).await?;
            self.report.moved.settings += 1;
        }
        Ok(())
    }

    async fn known(&mut self) -> Result<&(HashSet<SettingKey>, HashSet<String>), ImportError> {
        if self.known.is_none() {
            let store = self.windlass.store();
            let settings = store.stored_settings().await?.into_iter();
            let settings = settings.filter(|setting| setting.source == SettingSource::Operator);
            let tokens = store.tokens().await?.into_iter().map(|token| token.id);
            self.known = Some((settings.map(|setting| setting.key).collect(), tokens.collect()));
        }
        Ok(self.known.as_ref().expect("they were just read"))
    }

    /// Stores the batch, which ends with this line.
    async fn store(&mut self, last: u64) -> Result<(), ImportError> {
        let Some(header) = self.header.as_ref().filter(|_| last > self.stored) else { return Ok(()) };
        let (first, after) = (self.stored + 1, mark_at(header, last));
        let batch = Import {
            origin: None,
            before: Some(self.mark.clone()),
            after: after.clone(),
            schedules: take(&mut self.schedules),
            jobs: take(&mut self.jobs),
        };
        match self.imported(batch).await {
            Err(ImportError::Store(StoreError::Invalid(why))) => Err(ImportError::Refused { first, last, why }),
            Err(error) => Err(error),
            Ok(()) => {
                (self.stored, self.mark, self.bytes) = (last, after, 0);
                Ok(())
            }
        }
    }

    async fn imported(&mut self, batch: Import) -> Result<(), ImportError> {
        match self.windlass.store().import(batch).await? {
            Imported::Done { existing } => {
                self.report.existing += existing;
                Ok(())
            }
            Imported::NotEmpty => Err(ImportError::NotEmpty),
            Imported::Overtaken => Err(ImportError::Overtaken),
        }
    }

    fn wrong(&self, fault: Fault) -> ImportError {
        ImportError::Line { line: self.line, field: fault.field, why: fault.why }
    }
}

fn key_of_mark() -> SettingKey {
    SettingKey::Server { name: IMPORT.into() }
}

fn mark_at(header: &Header, line: u64) -> String {
    json!({ "export": header.export, "line": line }).to_string()
}
