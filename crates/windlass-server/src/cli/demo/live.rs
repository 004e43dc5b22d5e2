//! Retries as they happen: one line for each attempt that ended.

use super::scale::for_real;
use crate::cli::terminal::screen::{Hue, Screen, width};
use crate::cli::terminal::words::rough;
use crate::cli::{Error, emit};
use windlass::{Event, EventKind};
use windlass_core::attempt::label;
use windlass_core::{Reason, Status, Timestamp};

/// Writes the lines.
#[derive(Debug)]
pub(super) struct Live<'a> {
    pub(super) screen: &'a Screen,
    pub(super) began_at: Timestamp,
    pub(super) voice: Voice,
}

/// Whether to print while it runs: with JSON there is one document at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Aloud,
    Silent,
}

impl Live<'_> {
    pub(super) fn say(&self, text: &str) -> Result<(), Error> {
        if self.voice == Voice::Aloud {
            emit(text)?;
        }
        Ok(())
    }

    pub(super) fn head(&self) -> Result<(), Error> {
        let head = format!("{:>7}  {:>3}  {:<13}  {:<8}  {}", "time", "job", "kind", "attempt", "what happened");
        self.say(&format!("{}\n", self.screen.ink.bold(&head)))
    }

    pub(super) fn print(&self, event: &Event) -> Result<(), Error> {
        let Some((hue, long, short)) = reported(event) else { return Ok(()) };
        let time = event.at.since(self.began_at).get();
        let time = format!("{:>3}.{:02}s", time / 1000, time % 1000 / 10);
        let job = format!("{:>3}  {:<13}", event.job.0, event.kind.as_str());
        let label = format!("{:<8}", label(0, event.retry, Status::Failed, ""));
        let room = self.screen.width.saturating_sub(width(&format!("{time}  {job}  {label}  ")));
        let text = if width(&long) <= room { long } else { short };
        let ink = self.screen.ink;
        self.say(&format!("{}  {job}  {label}  {}\n", ink.dim(&time), ink.hued(hue, &text)))
    }
}

/// What happened, in a long and a short form.
fn reported(event: &Event) -> Option<(Hue, String, String)> {
    let same = |hue, text: String| Some((hue, text.clone(), text));
    let of = event.max_attempts.saturating_sub(1);
    match &event.event_kind {
        EventKind::Succeeded { .. } => same(Hue::Good, "✓ succeeded".into()),
        EventKind::Retried { delay, error_class, .. } => {
            let (retry, real) = (event.retry + 1, for_real(*delay));
            let head = format!("↻ {error_class}: retry {retry}/{of} in {}", rough(*delay));
            Some((Hue::Warn, format!("{head} (for real: {})", rough(real)), format!("{head} ({})", rough(real))))
        }
        EventKind::GaveUp { reason, error_class, .. } => {
            let class = error_class.as_deref().map_or_else(String::new, |class| format!("{class}: "));
            let (long, short) = (because(*reason), reason.as_str());
            Some((Hue::Bad, format!("✗ {class}gave up, {long}"), format!("✗ {class}gave up: {short}")))
        }
        EventKind::Cancelled => same(Hue::Faint, "cancelled".into()),
        EventKind::Queued | EventKind::Started { .. } | EventKind::Postponed { .. } | _ => None,
    }
}

fn because(reason: Reason) -> &'static str {
    match reason {
        Reason::Permanent => "a permanent error",
        Reason::Exhausted => "retries used up",
        Reason::Deadline => "out of time",
        Reason::Expired => "not started in time",
        Reason::AtMostOnce => "it may run only once",
        Reason::CrashLoop => "it kills its workers",
    }
}
