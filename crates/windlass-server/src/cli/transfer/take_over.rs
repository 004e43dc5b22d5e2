//! Takes over the waiting jobs of another job queue from a dump: first as a report of what would be stored, then for
//! good. Every job has an idempotency key made from its id there, so repeating it stores nothing twice.

use super::foreign::{Dumped, Foreign, System};
use super::lines::Lines;
use crate::cli::remote::store;
use crate::cli::terminal::grid::{Grid, Shown, cut, number, wrapped};
use crate::cli::terminal::screen::Screen;
use crate::cli::terminal::words::counted;
use crate::cli::{Error, pretty};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass::client::{Atomicity, Enqueued};
use windlass::protocol::NewJob;
use windlass::{RunAt, Windlass};
use windlass_core::Timestamp;

/// Jobs in one batch.
const BATCH: usize = 500;
/// The most different reasons and notes that are reported; others are counted together.
const REASONS: usize = 50;
/// The most characters of a reason.
const LONGEST_REASON: usize = 200;
const OTHERS: &str = "other reasons";

/// Whether the jobs are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    DryRun,
    Store,
}

/// What was found in a dump.
#[derive(Debug, Default)]
struct Report {
    /// Jobs by queue and kind: due now, and later.
    jobs: BTreeMap<(String, String), (u64, u64)>,
    /// Why jobs are not taken: how many, and the line of the first.
    refused: BTreeMap<String, (u64, u64)>,
    notes: BTreeMap<String, u64>,
    stored: u64,
    existing: u64,
    /// Jobs that fit, and that the store did not take.
    not_stored: u64,
}

/// Whether every job that fits was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Incomplete,
}

/// A line of a dump whose score may follow.
struct Waiting {
    line: u64,
    text: String,
}

/// The take-over that is under way.
struct TakeOver<'a> {
    windlass: &'a Windlass,
    system: System,
    mode: Mode,
    batch: Vec<(u64, NewJob)>,
    report: Report,
}

pub(super) async fn run(
    windlass: &Windlass,
    system: System,
    lines: &mut Lines,
    mode: Mode,
    url: &str,
) -> Result<(Ending, impl Fn(bool, &Screen) -> String), Error> {
    let mut under_way = TakeOver { windlass, system, mode, batch: Vec::new(), report: Report::default() };
    let mut waiting: Option<Waiting> = None;
    while let Some(line) = lines.next().map_err(Error::BadInput)? {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        // In a dump of a sorted set, the line after a job is its score: when it is due, in seconds.
        if let Ok(score) = text.parse::<f64>() {
            match waiting.take() {
                Some(job) => under_way.take(job, Some(score).filter(|score| score.is_finite())).await,
                None => {
                    under_way.report.refuse("it is a number, and no job comes before it", lines.number());
                    Ok(())
                }
            }
        } else {
            match waiting.replace(Waiting { line: lines.number(), text: text.to_owned() }) {
                Some(job) => under_way.take(job, None).await,
                None => Ok(()),
            }
        }
        .map_err(|error| store::reported(url, &error))?;
    }
    if let Some(job) = waiting {
        under_way.take(job, None).await.map_err(|error| store::reported(url, &error))?;
    }
    under_way.flush().await.map_err(|error| store::reported(url, &error))?;
    let report = under_way.report;
    let ending = if report.not_stored == 0 { Ending::Done } else { Ending::Incomplete };
    let shown =
        move |is_json: bool, screen: &Screen| if is_json { report.json(mode) } else { report.text(mode, screen) };
    Ok((ending, shown))
}

impl TakeOver<'_> {
    async fn take(&mut self, waiting: Waiting, due: Option<f64>) -> Result<(), windlass::StoreError> {
        let Waiting { line, text } = waiting;
        let catalogue = self.windlass.catalogue().await?;
        let read = Dumped::parse(self.system, text, due).and_then(|dumped| self.system.read(&dumped, &catalogue));
        let completed = read.and_then(|Foreign { draft, notes, .. }| {
            catalogue.complete(draft).map(|job| (job, notes)).map_err(|error| error.to_string())
        });
        match completed {
            Err(why) => self.report.refuse(&why, line),
            Ok((job, notes)) => {
                self.report.count(&job, self.windlass.clock().now());
                for note in notes {
                    *bounded(&mut self.report.notes, &note) += 1;
                }
                self.batch.push((line, job));
            }
        }
        if self.batch.len() >= BATCH { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), windlass::StoreError> {
        let (lines, jobs): (Vec<u64>, Vec<NewJob>) = std::mem::take(&mut self.batch).into_iter().unzip();
        if self.mode == Mode::DryRun {
            return Ok(());
        }
        for (line, stored) in lines.into_iter().zip(self.windlass.enqueue_jobs(jobs, Atomicity::Each).await?) {
            let why = match stored {
                Enqueued::Created { .. } => {
                    self.report.stored += 1;
                    continue;
                }
                Enqueued::Existing(_) => {
                    self.report.existing += 1;
                    continue;
                }
                Enqueued::KeyConflict(id) => format!("job {id} has the same id there and another payload"),
                Enqueued::Refused(why) => why,
                Enqueued::OverQuota(_) => "a quota of the tenant refuses it".to_owned(),
                Enqueued::NotStored => "it was not stored".to_owned(),
            };
            self.report.refuse(&why, line);
            self.report.not_stored += 1;
        }
        Ok(())
    }
}

/// The entry of a reason, or of all others if there are too many.
fn bounded<'a, T: Default>(map: &'a mut BTreeMap<String, T>, reason: &str) -> &'a mut T {
    // Parts of it come from the dump.
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
    let is_full = map.len() >= REASONS && !map.contains_key(&reason);
    map.entry(if is_full { OTHERS.to_owned() } else { reason }).or_default()
}

impl Report {
    fn refuse(&mut self, why: &str, line: u64) {
        let entry = bounded(&mut self.refused, why);
        if entry.0 == 0 {
            entry.1 = line;
        }
        entry.0 += 1;
    }

    fn count(&mut self, job: &NewJob, now: Timestamp) {
        let name = (job.queue.as_str().to_owned(), job.kind.as_str().to_owned());
        let entry = self.jobs.entry(name).or_default();
        match job.run_at {
            RunAt::At(moment) if moment > now => entry.1 += 1,
            RunAt::Now | RunAt::At(_) | RunAt::After(_) => entry.0 += 1,
        }
    }

    fn json(&self, mode: Mode) -> String {
        let jobs: Vec<Value> = self
            .jobs
            .iter()
            .map(|((queue, kind), (now, later))| json!({ "queue": queue, "kind": kind, "now": now, "later": later }))
            .collect();
        let refused: Vec<Value> = self
            .refused
            .iter()
            .map(|(why, (count, line))| json!({ "why": why, "count": count, "firstLine": line }))
            .collect();
        let notes: Vec<Value> =
            self.notes.iter().map(|(note, count)| json!({ "note": note, "count": count })).collect();
        pretty(&json!({
            "dryRun": mode == Mode::DryRun,
            "jobs": jobs,
            "notTaken": refused,
            "notes": notes,
            "stored": self.stored,
            "existing": self.existing,
            "notStored": self.not_stored,
        }))
    }

    fn text(&self, mode: Mode, screen: &Screen) -> String {
        let mut grid = Grid::new([cut("queue"), cut("kind"), number("due now"), number("later")]);
        for ((queue, kind), (now, later)) in &self.jobs {
            grid.row([queue.into(), kind.into(), now.to_string().into(), later.to_string().into()]);
        }
        let mut text = grid.or("no jobs fit", screen);
        if !self.refused.is_empty() {
            let mut grid = Grid::new([number("not taken"), number("first in line"), wrapped("why")]);
            for (why, (count, line)) in &self.refused {
                grid.row([count.to_string().into(), line.to_string().into(), Shown::from(why)]);
            }
            text += &format!("\n{}", grid.render(screen));
        }
        if !self.notes.is_empty() {
            let mut grid = Grid::new([number("jobs"), wrapped("note")]);
            for (note, count) in &self.notes {
                grid.row([count.to_string().into(), Shown::from(note)]);
            }
            text += &format!("\n{}", grid.render(screen));
        }
        text += "\n";
        if self.not_stored > 0 {
            let left = counted(self.not_stored, "job");
            text += &format!("{left} could not be stored, for the reasons above; correct them and run it again\n");
        }
        text += &match mode {
            Mode::DryRun => "nothing was stored: this was a dry run. Store the jobs with --apply\n".to_owned(),
            Mode::Store if self.existing == 0 => format!("stored {}\n", counted(self.stored, "job")),
            Mode::Store => {
                let before = counted(self.existing, "job");
                format!("stored {}; {before} had been stored before\n", counted(self.stored, "job"))
            }
        };
        text
    }
}
