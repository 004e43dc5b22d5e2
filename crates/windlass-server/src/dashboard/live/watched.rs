//! One watched page: rendered once a second by the same handler that serves it, and compared with the time before.

use super::regions::{regions, without_times};
use super::{Key, Live};
use crate::dashboard::session::Visitor;
use crate::http::App;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use hyper::{Request, StatusCode};
use std::sync::Arc;
use tower::ServiceExt as _;
use windlass_core::Millis;

/// How often a page is rendered.
const EVERY: Millis = Millis::from_secs(1);
/// The largest page that is watched.
const MAX_PAGE: usize = 1024 * 1024;

/// What a page looks like: its regions, each ready to be sent, with the number of the change that it is from.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) regions: Vec<Region>,
}

#[derive(Debug, Clone)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) change: u64,
    /// A server-sent event.
    pub(super) event: Bytes,
    content: String,
}

pub(super) struct Watched {
    app: App,
    live: Live,
    key: Key,
    visitor: Visitor,
    pages: Router,
}

impl Watched {
    pub(super) fn new(app: App, live: Live, key: Key, visitor: Visitor) -> Self {
        let pages = crate::dashboard::pages().with_state(app.clone());
        Self { app, live, key, visitor, pages }
    }

    pub(super) async fn run(self) {
        let (mut last, mut change) = (Arc::new(Snapshot::default()), 0);
        let clock = self.app.windlass().clock().clone();
        loop {
            match self.render().await {
                Rendered::Page(html) => {
                    change += 1;
                    let snapshot = Arc::new(next(&last, &html, change));
                    // Also without a change: a browser that came since the last time needs what it may have missed.
                    if !self.live.publish(&self.key, Some(snapshot.clone())) {
                        return;
                    }
                    last = snapshot;
                }
                Rendered::Failed => {
                    if !self.live.publish(&self.key, None) {
                        return;
                    }
                }
                Rendered::Gone => {
                    self.live.forget(&self.key);
                    return;
                }
            }
            tokio::select! {
                () = clock.sleep(EVERY) => {}
                () = self.app.draining().cancelled() => {
                    self.live.forget(&self.key);
                    return;
                }
            }
        }
    }

    async fn render(&self) -> Rendered {
        let request = Request::get(&self.key.address).extension(self.visitor.clone()).body(Body::empty());
        let Ok(request) = request else { return Rendered::Gone };
        let Ok(response) = self.pages.clone().oneshot(request).await;
        match response.status() {
            StatusCode::OK => match to_bytes(response.into_body(), MAX_PAGE).await {
                Ok(bytes) => Rendered::Page(String::from_utf8_lossy(&bytes).into_owned()),
                Err(_) => Rendered::Gone,
            },
            status if status.is_server_error() => Rendered::Failed,
            _ => Rendered::Gone,
        }
    }
}

enum Rendered {
    Page(String),
    /// The store cannot be read now.
    Failed,
    /// There is nothing to watch any more.
    Gone,
}

/// The regions of a page, those that did not change as they were.
fn next(last: &Snapshot, html: &str, change: u64) -> Snapshot {
    let region = |(name, body): (&str, &str)| {
        let content = without_times(body);
        let same = last.regions.iter().find(|region| region.name == name && region.content == content);
        same.cloned().unwrap_or_else(|| Region { name: name.to_owned(), change, event: event(name, body), content })
    };
    Snapshot { regions: regions(html).into_iter().map(region).collect() }
}

/// `event: region`, with the name on the first line of its data and the HTML on the others.
fn event(name: &str, body: &str) -> Bytes {
    let mut text = format!("event: region\ndata: {name}\n");
    for line in body.lines().filter(|line| !line.trim().is_empty()) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}
