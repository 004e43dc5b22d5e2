//! `windlass export`: writes everything in a store as JSON lines.

use super::lines::Lines;
use crate::cli::remote::store::{self, Missing};
use crate::cli::remote::target::{Place, Target};
use crate::cli::terminal::progress::{self, Unit};
use crate::cli::terminal::words::counted;
use crate::cli::{Error, pretty};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use windlass::Windlass;
use windlass::client::{Clear, Export, ExportError, Moved};

const EXAMPLES: &str = "\
Examples:
  windlass export jobs.jsonl --store sqlite:windlass.db
  windlass import jobs.jsonl --store postgres://me@db/jobs
  windlass export - --store sqlite:windlass.db | zstd > jobs.jsonl.zst

Exported are jobs of every state with their history, schedules, queues, tokens (as hashes), holds, and
the settings that operators made. Stop servers and workers first: what changes meanwhile may be exported
as it was before or after. A job that runs is exported as if its worker had given it back. The file
contains payloads and secrets in clear text; it is made readable for its owner only.
Exit codes: 0 done, 1 failed, 2 bad input (also: the file exists), 3 no such store, 4 values are sealed,
5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to write; - is standard output.
    file: String,
    /// Write values that are sealed in the store in clear text.
    #[arg(long)]
    unsealed: bool,
    /// Continue a file that an interrupted export left.
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: &Args) -> Result<String, Error> {
    let Place::Store(url) = args.target.place() else {
        let why = "export works directly on a store: give --store sqlite:PATH or postgres://…";
        return Err(Error::BadInput(why.into()));
    };
    let opened = store::open(&url, Missing::Refuse).await?;
    let reported = |error: ExportError| failed(&store::without_password(&url), &error);
    let clear = if args.unsealed { Clear::Allow } else { Clear::Refuse };
    if args.file == "-" {
        if args.resume {
            return Err(Error::BadInput("--resume needs a file".into()));
        }
        let mut export = opened.transfer().export(clear).await.map_err(reported)?;
        write(&mut export, &mut std::io::stdout().lock(), &url).await?;
        eprint!("{}", summary(&export, args));
        return Ok(String::new());
    }
    let (mut file, export) = begin(args, &opened, clear, &url).await?;
    let mut export = match export {
        Some(export) => export,
        None => opened.transfer().export(clear).await.map_err(reported)?,
    };
    write(&mut export, &mut file, &url).await?;
    file.sync_all().map_err(|error| cannot_write(&args.file, &error))?;
    Ok(summary(&export, args))
}

/// The file, and the export that it is to continue.
async fn begin<'a>(
    args: &Args,
    windlass: &'a Windlass,
    clear: Clear,
    url: &str,
) -> Result<(File, Option<Export<'a>>), Error> {
    if !args.resume {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.file);
        let file = file.map_err(|error| {
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                let why = format!("the file {} exists; name another, or continue it with --resume", args.file);
                return Error::BadInput(why);
            }
            cannot_write(&args.file, &error)
        })?;
        return Ok((file, None));
    }
    let open = OpenOptions::new().read(true).write(true).open(&args.file);
    let mut file = open.map_err(|error| Error::BadInput(format!("cannot open {}: {error}", args.file)))?;
    let written = written(&file).map_err(|error| Error::BadInput(format!("{}: {error}", args.file)))?;
    let continued = match &written {
        Some(Written { first, last, lines, .. }) => {
            let resumed = windlass.transfer().continue_export(clear, first, last, *lines).await;
            resumed.map_err(|error| failed(&store::without_password(url), &error))?
        }
        None => None,
    };
    let end = written.filter(|_| continued.is_some()).map_or(0, |written| written.bytes);
    file.set_len(end).map_err(|error| cannot_write(&args.file, &error))?;
    file.seek(std::io::SeekFrom::End(0)).map_err(|error| cannot_write(&args.file, &error))?;
    Ok((file, continued))
}

/// The complete lines of a file.
struct Written {
    first: String,
    last: String,
    lines: u64,
    bytes: u64,
}

fn written(file: &File) -> Result<Option<Written>, String> {
    let file = file.try_clone().map_err(|error| error.to_string())?;
    let mut lines = Lines::of(BufReader::new(file));
    let mut found: Option<Written> = None;
    while let Some(line) = lines.next()?.filter(|line| line.is_complete) {
        match &mut found {
            None => found = Some(Written { last: line.text.clone(), first: line.text, lines: 1, bytes: lines.bytes }),
            Some(written) => {
                (written.last, written.lines, written.bytes) = (line.text, written.lines + 1, lines.bytes);
            }
        }
    }
    Ok(found)
}

async fn write(export: &mut Export<'_>, out: &mut impl Write, url: &str) -> Result<(), Error> {
    let bar = progress::bar(export.progress().1, "exporting", Unit::Jobs);
    loop {
        let lines = export.next().await.map_err(|error| failed(&store::without_password(url), &error))?;
        let Some(lines) = lines else { break };
        out.write_all(lines.as_bytes()).map_err(|error| cannot_write("the export", &error))?;
        bar.set_position(export.progress().0);
    }
    out.flush().map_err(|error| cannot_write("the export", &error))?;
    bar.finish_and_clear();
    Ok(())
}

fn cannot_write(what: &str, error: &std::io::Error) -> Error {
    Error::Failed(anyhow::anyhow!("cannot write {what}: {error}"))
}

fn failed(url: &str, error: &ExportError) -> Error {
    match error {
        ExportError::Sealed => Error::Conflict(format!(
            "{error}\n  hint: allow that with --unsealed, and keep the file where the keys would be kept"
        )),
        ExportError::Store(error) => store::reported(url, error),
        ExportError::NotOurs(why) => Error::BadInput(format!("the file cannot be continued: {why}")),
        error => Error::Failed(anyhow::anyhow!(error.to_string())),
    }
}

fn summary(export: &Export<'_>, args: &Args) -> String {
    let (moved, running) = (export.moved(), export.running());
    if args.target.json {
        let mut value = to_json(&moved);
        value["running"] = running.into();
        return pretty(&value);
    }
    let ran = match running {
        0 => String::new(),
        count => format!("{} ran and are exported as given back by their workers\n", counted(count, "job")),
    };
    format!("exported {}\n{ran}", in_words(&moved))
}

/// What was moved, as a list in words.
pub(crate) fn in_words(moved: &Moved) -> String {
    let parts = [
        (moved.jobs, "job"),
        (moved.attempts, "attempt"),
        (moved.schedules, "schedule"),
        (moved.queues, "queue"),
        (moved.settings, "setting"),
        (moved.tokens, "token"),
        (moved.holds, "hold"),
    ];
    let some = parts.iter().enumerate().filter(|(place, (count, _))| *place == 0 || *count > 0);
    some.map(|(_, (count, what))| counted(*count, what)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn to_json(moved: &Moved) -> Value {
    json!({
        "jobs": moved.jobs,
        "attempts": moved.attempts,
        "schedules": moved.schedules,
        "queues": moved.queues,
        "settings": moved.settings,
        "tokens": moved.tokens,
        "holds": moved.holds,
    })
}
