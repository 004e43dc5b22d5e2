//! Errors as pages: what went wrong and what to do, in the frame.

use super::frame::Frame;
use crate::http::{App, Problem, ProblemKind};
use askama::Template;
use axum::response::{Html, IntoResponse, Redirect, Response};
use hyper::StatusCode;
use windlass::StoreError;
use windlass::client::{PolicyFault, ScheduleError};

/// Why a page or action was not answered.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The browser has to sign in first, and then continues at this address.
    SignIn(String),
    /// Anything else, as the API would say it.
    Problem(Box<Problem>),
}

#[derive(Template)]
#[template(path = "error.html")]
struct Page {
    frame: Frame,
    title: &'static str,
    detail: String,
    advice: &'static str,
}

impl PageError {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self::Problem(Box::new(Problem::new(kind, detail)))
    }

    pub(crate) fn not_found(what: &str, id: impl std::fmt::Display) -> Self {
        Self::Problem(Box::new(Problem::not_found(what, id)))
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Invalid, detail)
    }
}

/// The layer around the dashboard renders the page, because it knows the base path.
impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            Self::SignIn(to) => Redirect::to(&to).into_response(),
            Self::Problem(problem) => {
                let mut response = problem.described().0.into_response();
                response.extensions_mut().insert(Unrendered(problem));
                response
            }
        }
    }
}

/// A problem on its way to the layer that renders it.
#[derive(Debug, Clone)]
struct Unrendered(Box<Problem>);

/// Renders a problem that a page answered.
pub(super) fn rendered(app: &App, mut response: Response) -> Response {
    let Some(Unrendered(problem)) = response.extensions_mut().remove() else { return response };
    let (status, title, detail) = problem.described();
    let page = Page { frame: Frame::without_places(app, title), title, detail, advice: advice(status) };
    (status, Html(page.render().unwrap_or_default())).into_response()
}

fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "It may have been removed by retention, or belong to another tenant.",
        StatusCode::FORBIDDEN => "Sign in with a token that has the needed scope, or ask an operator who has one.",
        StatusCode::SERVICE_UNAVAILABLE => "Nothing was changed. Reload this page in a moment.",
        StatusCode::INTERNAL_SERVER_ERROR => "The server's log has the details.",
        _ => "Go back, change what is named above, and try again.",
    }
}

impl<E: Into<Problem>> From<E> for PageError
where
    E: PageCause,
{
    fn from(error: E) -> Self {
        Self::Problem(Box::new(error.into()))
    }
}

/// Errors that become a page.
pub(crate) trait PageCause {}
impl PageCause for StoreError {}
impl PageCause for PolicyFault {}
impl PageCause for ScheduleError {}
impl PageCause for Problem {}
