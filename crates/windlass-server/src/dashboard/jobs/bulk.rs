//! Cancel, replay or reprioritize all jobs of a filter: the count first, then a typed confirmation, then progress.

use super::filter::Choice;
use crate::dashboard::error::PageError;
use crate::dashboard::form::Action;
use crate::dashboard::frame::{Frame, render};
use crate::dashboard::operations::{Started, Work};
use crate::dashboard::session::Visitor;
use crate::dashboard::show;
use crate::http::{App, Query};
use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use windlass::client::{Count, JobFilter};
use windlass_core::{Priority, State as JobState};

/// Counting stops here; beyond it the page says "more than".
const MOST_COUNTED: u64 = 10_000;

/// What is done to all jobs of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bulk {
    Cancel,
    Replay,
    Priority,
}

#[derive(Template)]
#[template(path = "jobs/confirm.html")]
struct Page {
    frame: Frame,
    bulk: Bulk,
    choice: Choice,
    count: Count,
    shown: String,
    words: String,
}

impl Bulk {
    fn parse(word: &str) -> Result<Self, PageError> {
        match word {
            "cancel" => Ok(Self::Cancel),
            "replay" => Ok(Self::Replay),
            "priority" => Ok(Self::Priority),
            _ => Err(PageError::not_found("action", word)),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Replay => "replay",
            Self::Priority => "priority",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Cancel => "Cancel",
            Self::Replay => "Replay",
            Self::Priority => "Change the priority of",
        }
    }

    fn effect(self) -> &'static str {
        match self {
            Self::Cancel => {
                "Waiting jobs end at once as cancelled. Running ones are asked to stop. Finished ones stay as they are. It can be undone."
            }
            Self::Replay => {
                "Finished jobs go back to their queue under their own id with a fresh allowance of retries. Waiting ones become due now. Running ones stay as they are."
            }
            Self::Priority => {
                "Among the due jobs of a queue, those with a higher priority start first. Running and finished jobs stay as they are."
            }
        }
    }

    /// The filter without jobs that the action cannot change.
    fn narrowed(self, filter: &JobFilter) -> JobFilter {
        let live = [JobState::Queued, JobState::Running, JobState::Retrying];
        let states = match (self, filter.states.is_empty()) {
            (Self::Cancel, true) => live.to_vec(),
            (Self::Cancel, false) => filter.states.iter().copied().filter(|state| live.contains(state)).collect(),
            (Self::Replay, true) => {
                vec![JobState::Queued, JobState::Retrying, JobState::Succeeded, JobState::Failed, JobState::Cancelled]
            }
            (Self::Priority, true) => vec![JobState::Queued, JobState::Retrying],
            (Self::Priority, false) => {
                let is_waiting = |state: &JobState| matches!(state, JobState::Queued | JobState::Retrying);
                filter.states.iter().copied().filter(is_waiting).collect()
            }
            (Self::Replay, false) => filter.states.iter().copied().filter(|s| *s != JobState::Running).collect(),
        };
        JobFilter { states, ..filter.clone() }
    }
}

impl Page {
    fn start(&self) -> String {
        format!("/jobs/bulk/{}/start", self.bulk.word())
    }
}

pub(super) async fn confirm(
    State(app): State<App>,
    visitor: Visitor,
    Path(action): Path<String>,
    query: Query,
) -> Result<Response, PageError> {
    let bulk = Bulk::parse(&action)?;
    let choice = Choice::read(&query, &visitor)?;
    let filter = bulk.narrowed(&choice.filter);
    let count = match filter.states.is_empty() {
        true => Count { count: 0, is_exact: true },
        false => app.windlass().jobs().within(&visitor.tenants()).count(&filter, MOST_COUNTED).await?,
    };
    let shown = show::number(count.count);
    let shown = if count.is_exact { shown } else { format!("more than {shown}") };
    let frame = Frame::new(&app, &visitor, "jobs", format!("{} jobs", bulk.word()));
    render(&Page { frame, bulk, words: choice.words(), choice, count, shown })
}

pub(super) async fn start(
    State(app): State<App>,
    Path(action): Path<String>,
    query: Query,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    let bulk = Bulk::parse(&action)?;
    if form.text("confirm") != Some(bulk.word()) {
        return Err(PageError::bad(format!("type `{}` to confirm", bulk.word())));
    }
    let choice = Choice::read(&query, &visitor)?;
    let filter = bulk.narrowed(&choice.filter);
    if filter.states.is_empty() {
        return Err(PageError::bad("no job of this filter can be changed"));
    }
    let expected = form.text("expected").and_then(|text| text.parse().ok());
    let mut words = choice.words();
    let work = match bulk {
        Bulk::Cancel => Work::Cancel { filter, words: words.clone(), cursor: None },
        Bulk::Replay => Work::Replay { filter, words: words.clone(), cursor: None },
        Bulk::Priority => {
            let priority = form.parsed("priority", |text| Priority::parse(text).ok_or_else(accepted))?;
            let priority = priority.ok_or_else(|| PageError::bad(format!("priority: {}", accepted())))?;
            words = format!("priority {} for {words}", priority.as_str());
            Work::Prioritize { filter, priority, words: words.clone(), cursor: None }
        }
    };
    let what = if bulk == Bulk::Priority { words } else { format!("{} {words}", bulk.word()) };
    let started = Started::new(what, &visitor, expected).back("/jobs", "To the jobs");
    let id = app.operations().start(&app, &visitor, started, work)?;
    Ok(Redirect::to(&format!("{}/operations/{id}", app.base_path())).into_response())
}

fn accepted() -> String {
    format!("must be one of {}", Priority::HIGHEST_FIRST.map(Priority::as_str).join(", "))
}
