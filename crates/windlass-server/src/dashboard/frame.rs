//! The frame around every page: navigation, search, who is signed in, and what a page's forms need.

use super::assets;
use super::error::PageError;
use super::session::Visitor;
use crate::http::App;
use askama::Template;
use axum::response::{Html, IntoResponse, Response};

/// The pages in the navigation: address, name, and the key that goes there after `g`.
const PLACES: [(&str, &str, char); 9] = [
    ("", "Overview", 'o'),
    ("queues", "Queues", 'q'),
    ("jobs", "Jobs", 'j'),
    ("dead-letters", "Dead letters", 'd'),
    ("schedules", "Schedules", 's'),
    ("policies", "Policies", 'p'),
    ("workers", "Workers", 'w'),
    ("alerts", "Alerts", 'a'),
    ("audit", "Audit", 'u'),
];

/// What every page shows around its own part.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Before every address.
    pub(crate) base: String,
    pub(crate) title: String,
    pub(crate) version: &'static str,
    /// The address of the current page in the navigation.
    here: Option<&'static str>,
    /// The address that the page's live view watches; empty if it has none.
    pub(crate) live: String,
    pub(crate) csrf: String,
    /// Who is signed in; `None` on pages without navigation.
    pub(crate) who: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) is_open: bool,
    pub(crate) can_act: bool,
    pub(crate) is_admin: bool,
    /// The result of the action that led here.
    pub(crate) done: Option<String>,
    sees_all: bool,
}

/// A place in the navigation.
pub(crate) struct Place {
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    pub(crate) key: char,
    pub(crate) is_here: bool,
}

impl Frame {
    /// The frame of a page at `here`, one of the places of the navigation.
    pub(crate) fn new(app: &App, visitor: &Visitor, here: &'static str, title: impl Into<String>) -> Self {
        let tenant = match visitor.tenants() {
            windlass::client::Scope::All => None,
            windlass::client::Scope::Tenant(tenant) => Some(tenant.to_string()),
        };
        Self {
            base: app.base_path().to_owned(),
            here: Some(here),
            csrf: visitor.csrf.clone(),
            who: Some(visitor.caller.by.clone()),
            tenant,
            is_open: visitor.is_open,
            can_act: visitor.can_act(),
            is_admin: visitor.is_admin(),
            sees_all: visitor.sees_all(),
            ..Self::bare(title)
        }
    }

    /// The page can be watched: `path` with its query, without the base path.
    pub(crate) fn live(self, path: impl Into<String>) -> Self {
        Self { live: path.into(), ..self }
    }

    /// Shows what an action did.
    pub(crate) fn done(self, done: Option<&str>) -> Self {
        Self { done: done.map(str::to_owned), ..self }
    }

    /// The frame of errors and of the sign-in.
    pub(super) fn without_places(app: &App, title: &str) -> Self {
        Self { base: app.base_path().to_owned(), ..Self::bare(title) }
    }

    fn bare(title: impl Into<String>) -> Self {
        Self {
            base: String::new(),
            title: title.into(),
            version: &assets::VERSION,
            here: None,
            live: String::new(),
            csrf: String::new(),
            who: None,
            tenant: None,
            is_open: false,
            can_act: false,
            is_admin: false,
            done: None,
            sees_all: false,
        }
    }

    /// The navigation. Workers, alerts and audit are of the whole installation.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        let shown = if self.sees_all { PLACES.len() } else { PLACES.len() - 3 };
        PLACES.into_iter().take(shown).map(|(path, name, key)| Place {
            path,
            name,
            key,
            is_here: self.here == Some(path),
        })
    }
}

/// A rendered page.
///
/// # Errors
/// None in practice: writing to memory does not fail.
pub(crate) fn render(page: &impl Template) -> Result<Response, PageError> {
    let text = page.render().map_err(|error| PageError::new(crate::http::ProblemKind::Internal, error.to_string()))?;
    Ok(Html(text).into_response())
}

/// Back to a page of the dashboard, with what an action did.
pub(crate) fn back(app: &App, path: &str, done: &str) -> Response {
    let done: String = url::form_urlencoded::byte_serialize(done.as_bytes()).collect();
    let mark = if path.contains('?') { '&' } else { '?' };
    axum::response::Redirect::to(&format!("{}{path}{mark}done={done}", app.base_path())).into_response()
}
