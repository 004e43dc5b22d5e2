//! `windlass import`: reads the lines of an export into another store.

use super::export::{in_words, to_json};
use super::foreign::System;
use super::lines::Lines;
use super::take_over::{self, Ending, Mode};
use crate::cli::remote::store::{self, Missing};
use crate::cli::remote::target::{Place, Target};
use crate::cli::terminal::progress::{self, Unit};
use crate::cli::terminal::screen::Screen;
use crate::cli::terminal::words::counted;
use crate::cli::{Error, pretty};
use windlass::Windlass;
use windlass::client::{ImportError, ImportReport, Importing};

const EXAMPLES: &str = "\
Examples:
  windlass export jobs.jsonl --store sqlite:windlass.db
  windlass import jobs.jsonl --store postgres://me@db/jobs
  windlass import sidekiq.jsonl --from sidekiq --store sqlite:windlass.db            a report only
  windlass import sidekiq.jsonl --from sidekiq --store sqlite:windlass.db --apply

The store must have no jobs and no schedules: ids are kept, and new jobs get higher ones. An import that
was interrupted, or that found a wrong line, is run again with the same file: it continues where it
stopped. Jobs may start as soon as they are stored. A SQLite file is made if it does not exist; a
database needs `windlass migrate` first.

With --from, the file is a dump of another job queue's waiting jobs (docs/guides/moving.md has a command
that makes one for each system). They are stored as new jobs, in a store with any number of jobs.
Repeating it within 30 days stores nothing twice. A job that fits and could not be stored is a failure (1);
lines that do not fit are only reported.
Exit codes: 0 done, 1 failed, 2 bad input, 4 the store is in use, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to read; - is standard input.
    file: String,
    /// The file is a dump of this system's waiting jobs.
    #[arg(long, value_enum, value_name = "SYSTEM")]
    from: Option<System>,
    /// With --from: report what would be stored, and store nothing. This is the default.
    #[arg(long, requires = "from", conflicts_with = "apply")]
    dry_run: bool,
    /// With --from: store the jobs.
    #[arg(long, requires = "from")]
    apply: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let Place::Store(url) = args.target.place() else {
        let why = "import works directly on a store: give --store sqlite:PATH or postgres://…";
        return Err(Error::BadInput(why.into()));
    };
    let (mut lines, size) = Lines::open(&args.file).map_err(Error::BadInput)?;
    if let Some(system) = args.from {
        return take_over(args, system, &mut lines, &url, screen).await;
    }
    let shown = store::without_password(&url);
    let mut line = lines.next().map_err(Error::BadInput)?;
    // A file that is no export must not make a store.
    let first = line.as_ref().map_or(Err(ImportError::Empty), |line| Importing::check_first(&line.text));
    first.map_err(|error| failed(&shown, &error, ImportReport::default()))?;
    let opened = store::open(&url, Missing::Make).await?;
    let bar = progress::bar(size, "importing", Unit::Bytes);
    let mut import = opened.transfer().import();
    while let Some(read) = line {
        let taken = import.line(&read.text).await;
        taken.map_err(|error| failed(&shown, &error, import.report()))?;
        bar.set_position(lines.bytes);
        line = lines.next().map_err(Error::BadInput)?;
    }
    let report = import.report();
    let report = import.finish().await.map_err(|error| failed(&shown, &error, report))?;
    bar.finish_and_clear();
    Ok(summary(&report, args))
}

async fn take_over(
    args: &Args,
    system: System,
    lines: &mut Lines,
    url: &str,
    screen: &Screen,
) -> Result<String, Error> {
    let mode = if args.apply { Mode::Store } else { Mode::DryRun };
    let opened = match mode {
        // A dry run makes no file.
        Mode::DryRun if store::is_missing_file(url) => {
            Windlass::open("memory:").await.map_err(|error| Error::Failed(error.into()))?
        }
        Mode::DryRun | Mode::Store => store::open(url, Missing::Make).await?,
    };
    let shown = store::without_password(url);
    let (ending, report) = take_over::run(&opened, system, lines, mode, &shown).await?;
    let text = report(args.target.json, screen);
    match ending {
        Ending::Done => Ok(text),
        Ending::Incomplete => Err(Error::Reported(text)),
    }
}

fn failed(url: &str, error: &ImportError, report: ImportReport) -> Error {
    let again = |error: &ImportError| {
        let hint = "lines before it are stored; correct the file and run the command again: it continues there";
        let is_begun = report.moved.jobs + report.moved.schedules + report.skipped > 0;
        if is_begun { format!("{error}\n  hint: {hint}") } else { error.to_string() }
    };
    match error {
        ImportError::Line { .. } | ImportError::Refused { .. } => Error::BadInput(again(error)),
        ImportError::Empty => Error::BadInput(error.to_string()),
        ImportError::CutOff { .. } => Error::BadInput(error.to_string()),
        ImportError::NotEmpty | ImportError::OtherExport | ImportError::Overtaken => {
            Error::Conflict(format!("{url}: {error}"))
        }
        ImportError::Store(error) => store::reported(url, error),
        error => Error::Failed(anyhow::anyhow!(error.to_string())),
    }
}

fn summary(report: &ImportReport, args: &Args) -> String {
    if args.target.json {
        let mut value = to_json(&report.moved);
        value["skippedLines"] = report.skipped.into();
        value["existing"] = report.existing.into();
        value["missingLines"] = report.missing.into();
        return pretty(&value);
    }
    let mut text = format!("imported {}\n", in_words(&report.moved));
    if report.skipped > 0 {
        text += &format!("{} had been imported before\n", counted(report.skipped, "line"));
    }
    if report.existing > 0 {
        text += &format!("{} existed and stayed as they are\n", counted(report.existing, "record"));
    }
    if report.missing > 0 {
        text += &format!("{} of the export are not in this file\n", counted(report.missing, "line"));
    }
    text
}
