//! GET /live: the regions of a page as server-sent events, when they change.

use super::Viewer;
use crate::dashboard::error::PageError;
use crate::dashboard::session::Visitor;
use crate::http::{App, ProblemKind, Query};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use std::collections::HashMap;
use std::convert::Infallible;
use windlass_core::Millis;

/// How often a silent stream shows that it is there, and checks that its session is.
const PULSE: Millis = Millis::from_secs(2);
/// Pages that are not live: searches and simulations cost too much to be repeated every second.
const STILL: [&str; 5] = ["q=", "/policies", "/search", "/bulk/", "/all/"];
/// The longest address of a page.
const MAX_ADDRESS: usize = 2000;

struct Stream {
    app: App,
    parts: Parts,
    viewer: Viewer,
    sent: HashMap<String, u64>,
    waiting: Vec<Bytes>,
    checked: Millis,
}

pub(crate) async fn stream(
    State(app): State<App>,
    visitor: Visitor,
    query: Query,
    request: Request,
) -> Result<Response, PageError> {
    let address = query.text("page").unwrap_or("/");
    let is_still = STILL.iter().any(|part| address.contains(part));
    if !address.starts_with('/') || address.len() > MAX_ADDRESS || is_still {
        return Err(PageError::bad("page: must be an address of the dashboard"));
    }
    let Some(viewer) = app.live().watch(&app, &visitor, address) else {
        return Err(PageError::new(ProblemKind::TooMany, "too many pages are watched; this one is not live"));
    };
    let (parts, _) = request.into_parts();
    let waiting = vec![Bytes::from_static(b"retry: 3000\nevent: open\ndata: live\n\n")];
    let checked = app.windlass().clock().monotonic();
    let state = Stream { app, parts, viewer, sent: HashMap::new(), waiting, checked };
    let events = stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok::<Bytes, Infallible>(bytes), state))
    });
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response())
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.waiting.pop() {
                return Some(bytes);
            }
            let clock = self.app.windlass().clock().clone();
            if clock.monotonic() - self.checked >= PULSE {
                // A session that has ended, or whose token was revoked, sees no more.
                Visitor::from_request_parts(&mut self.parts, &self.app).await.ok()?;
                self.checked = clock.monotonic();
            }
            tokio::select! {
                changed = self.viewer.snapshots.changed() => {
                    changed.ok()?;
                    self.collect();
                }
                () = clock.sleep(PULSE) => return Some(Bytes::from_static(b": pulse\n\n")),
                () = self.app.draining().cancelled() => return None,
            }
        }
    }

    /// The regions that this browser has not got yet.
    fn collect(&mut self) {
        let snapshot = self.viewer.snapshots.borrow_and_update().clone();
        for region in &snapshot.regions {
            let sent = self.sent.entry(region.name.clone()).or_default();
            if *sent < region.change {
                *sent = region.change;
                self.waiting.push(region.event.clone());
            }
        }
    }
}
