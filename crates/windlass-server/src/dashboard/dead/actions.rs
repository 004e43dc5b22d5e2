//! Replay and discard: the dead letters of one cause at once, all of a filter after a typed confirmation.

use super::filter::Choice;
use crate::dashboard::error::PageError;
use crate::dashboard::form::Action;
use crate::dashboard::frame::{Frame, render};
use crate::dashboard::job::MAX_REASON;
use crate::dashboard::operations::{Started, Work};
use crate::dashboard::session::Visitor;
use crate::dashboard::show;
use crate::http::{App, Query};
use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use std::num::NonZeroU32;
use windlass::client::Spacing;

/// The highest rate of a replay, in jobs per second.
const MAX_RATE: u32 = 1000;
/// More groups than any installation has.
const ALL_GROUPS: u32 = 10_000;

#[derive(Template)]
#[template(path = "dead/confirm.html")]
struct Page {
    frame: Frame,
    action: String,
    choice: Choice,
    count: u64,
    shown: String,
    words: String,
}

impl Page {
    fn path(&self) -> String {
        format!("/dead-letters/{}", self.action)
    }

    fn count_text(&self) -> String {
        self.count.to_string()
    }
}

/// The count of all dead letters of a filter, and a form that acts on them.
pub(super) async fn confirm(
    State(app): State<App>,
    visitor: Visitor,
    Path(action): Path<String>,
    query: Query,
) -> Result<Response, PageError> {
    if !["replay", "discard"].contains(&action.as_str()) {
        return Err(PageError::not_found("action", action));
    }
    let choice = Choice::read(&query, &visitor)?;
    let dead = app.windlass().dead_letters().within(&visitor.tenants());
    let count = dead.groups(&choice.filter, ALL_GROUPS).await?.iter().map(|group| group.count).sum();
    let frame = Frame::new(&app, &visitor, "dead-letters", format!("{action} dead letters"));
    render(&Page { frame, action, count, shown: show::number(count), words: choice.words(), choice })
}

/// One cause needs no confirmation: it can be seen, and undone by a discard or a replay.
fn check_confirmed(choice: &Choice, action: &Action, word: &str) -> Result<(), PageError> {
    let is_one = choice.filter.fingerprint.is_some();
    match is_one || action.form.text("confirm") == Some(word) {
        true => Ok(()),
        false => Err(PageError::bad(format!("type `{word}` to confirm"))),
    }
}

pub(super) async fn replay(State(app): State<App>, query: Query, action: Action) -> Result<Response, PageError> {
    let choice = Choice::read(&query, &action.visitor)?;
    check_confirmed(&choice, &action, "replay")?;
    let rate = action.form.parsed("rate", |text| {
        let rate = text.parse::<u32>().ok().filter(|rate| *rate <= MAX_RATE);
        rate.ok_or_else(|| format!("must be a whole number up to {MAX_RATE}"))
    })?;
    let rate = rate.and_then(NonZeroU32::new);
    let spacing = rate.map_or(Spacing::NONE, Spacing::per_second);
    let pace = rate.map_or_else(|| ", all at once".to_owned(), |rate| format!(", {rate} a second"));
    let started = started(format!("replay {}{pace}", choice.words()), &query, &action.visitor);
    let work = Work::ReplayDead { filter: choice.filter, spacing };
    let id = app.operations().start(&app, &action.visitor, started, work)?;
    Ok(Redirect::to(&format!("{}/operations/{id}", app.base_path())).into_response())
}

pub(super) async fn discard(State(app): State<App>, query: Query, action: Action) -> Result<Response, PageError> {
    let choice = Choice::read(&query, &action.visitor)?;
    check_confirmed(&choice, &action, "discard")?;
    let Some(reason) = action.form.text("reason") else {
        return Err(PageError::bad("a discard needs a reason: those who look later want to know why"));
    };
    if reason.len() > MAX_REASON {
        return Err(PageError::bad(format!("reason: must be at most {MAX_REASON} bytes")));
    }
    let started = started(format!("discard {}: {reason}", choice.words()), &query, &action.visitor);
    let work = Work::DiscardDead { filter: choice.filter, reason: reason.to_owned() };
    let id = app.operations().start(&app, &action.visitor, started, work)?;
    Ok(Redirect::to(&format!("{}/operations/{id}", app.base_path())).into_response())
}

fn started(what: String, query: &Query, visitor: &Visitor) -> Started {
    let expected = query.text("expected").and_then(|text| text.parse().ok());
    Started::new(what, visitor, expected).back("/dead-letters", "To the dead letters")
}
