//! The overview: what happens now, how it went, and what needs someone.

mod view;

use super::error::PageError;
use super::frame::{Frame, render};
use super::plot;
use super::session::Visitor;
use crate::http::{App, Query};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use view::{Firing, Panel, QueueRow, Wait, Window};
use windlass::client::{AlertStatus, QueueStatus, Series};
use windlass_core::Millis;

/// Only workers that reported within this time count.
pub(super) const SEEN_WITHIN: Millis = Millis::from_secs(60);
/// The window of the retry rate.
const RECENT: Millis = Millis::from_secs(300);
/// The most queues on this page; the page of queues has all.
const MOST_QUEUES: usize = 12;

#[derive(Template)]
#[template(path = "overview/page.html")]
struct Page {
    frame: Frame,
    window: Window,
    figures: Vec<view::Figure>,
    panels: Vec<Panel>,
    waits: Vec<Wait>,
    queues: Vec<QueueRow>,
    more_queues: usize,
    firing: Vec<Firing>,
    is_empty: bool,
}

pub(super) async fn page(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    let window = Window::parse(query.text("span"));
    let scope = visitor.tenants();
    let windlass = app.windlass();
    let (span, step) = window.steps();
    let (queue_handle, stats) = (windlass.queues().within(&scope), windlass.stats().within(&scope));
    let (queues, series, recent, waiting) =
        tokio::try_join!(queue_handle.list(), stats.series(span, step), stats.over(RECENT), queue_handle.waiting())?;
    let (workers, alerts) = match visitor.sees_all() {
        true => {
            let (workers, alerts) = (windlass.workers(), windlass.alerts());
            let (workers, alerts) = tokio::try_join!(workers.seen_within(SEEN_WITHIN), alerts.list())?;
            (Some(workers), alerts)
        }
        false => (None, Vec::new()),
    };
    let now = app.now();
    let firing: Vec<Firing> = alerts
        .iter()
        .filter(|alert| alert.status == AlertStatus::Firing)
        .map(|alert| Firing::new(alert, now))
        .collect();
    let figures = view::figures(&queues, &recent.total, workers.as_deref(), &alerts, now);
    let address = if query.text("span").is_some() { format!("/?span={}", window.word()) } else { "/".into() };
    let page = Page {
        frame: Frame::new(&app, &visitor, "", "Overview").live(address).done(query.text("done")),
        window,
        figures,
        panels: panels(&series),
        waits: view::waits(&waiting),
        more_queues: queues.len().saturating_sub(MOST_QUEUES),
        is_empty: queues.is_empty(),
        queues: busiest(queues).iter().map(|queue| QueueRow::new(queue, now)).collect(),
        firing,
    };
    render(&page)
}

/// The queues with most to do, at most [`MOST_QUEUES`].
fn busiest(mut queues: Vec<QueueStatus>) -> Vec<QueueStatus> {
    queues.sort_by_key(|queue| std::cmp::Reverse((queue.dead > 0, queue.depth(), queue.dead)));
    queues.truncate(MOST_QUEUES);
    queues
}

fn panels(series: &Series) -> Vec<Panel> {
    let panel = |name: &'static str, class: &'static str, of: fn(&windlass::client::Tally) -> i64| {
        let counts: Vec<i64> = series.total.iter().map(of).collect();
        let total = counts.iter().sum::<i64>().max(0) as u64;
        Panel { name, total: super::show::number(total), plot: plot::bars(name, class, &counts, series.step) }
    };
    vec![
        panel("Enqueued", "info", |tally| tally.enqueued),
        panel("Succeeded", "ok", |tally| tally.succeeded),
        panel("Retried", "warn", |tally| tally.retried),
        panel("Failed", "bad", |tally| tally.failed),
    ]
}
