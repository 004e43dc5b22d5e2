//! Forms: reads what a browser posts, and lets only the dashboard's own pages post, for a caller that may act.

use super::error::PageError;
use super::session::Visitor;
use crate::http::connection::guard;
use crate::http::{App, ProblemKind};
use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use std::fmt::Display;
use subtle::ConstantTimeEq;

/// The largest form.
const MAX_FORM: usize = 64 * 1024;

/// The fields of a form.
#[derive(Debug)]
pub(crate) struct Form(Vec<(String, String)>);

/// A form of the dashboard's own pages, from any visitor.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) visitor: Visitor,
    pub(crate) form: Form,
}

/// A change that an operator who may act asked for.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) visitor: Visitor,
    pub(crate) form: Form,
}

impl Form {
    pub(crate) fn parse(text: &[u8]) -> Self {
        let clean = |text: std::borrow::Cow<'_, str>| text.replace('\0', "");
        Self(url::form_urlencoded::parse(text).map(|(name, value)| (clean(name), clean(value))).collect())
    }

    /// The field without surrounding space, unless it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// # Errors
    /// The error of `parse`, with the field's name.
    pub(crate) fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, PageError> {
        let read = self.text(name).map(parse).transpose();
        read.map_err(|error| PageError::bad(format!("{name}: {error}")))
    }
}

impl FromRequest<App> for Form {
    type Rejection = PageError;

    async fn from_request(request: Request, _: &App) -> Result<Self, PageError> {
        let read = to_bytes(request.into_body(), MAX_FORM).await;
        let bytes = read.map_err(|_| PageError::new(ProblemKind::TooLarge, "the form is too large"))?;
        Ok(Self::parse(&bytes))
    }
}

impl FromRequest<App> for Posted {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &App) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, app).await?;
        if !guard::is_from_own_page(&parts.headers) {
            let detail = "a page of another site may not change anything here";
            return Err(PageError::new(ProblemKind::UntrustedOrigin, detail));
        }
        let form = Form::from_request(Request::from_parts(parts, body), app).await?;
        let given = form.text("csrf").unwrap_or_default();
        if !bool::from(given.as_bytes().ct_eq(visitor.csrf.as_bytes())) {
            let detail = "this form is from an earlier session; open the page again and repeat the action";
            return Err(PageError::new(ProblemKind::UntrustedOrigin, detail));
        }
        Ok(Self { visitor, form })
    }
}

impl FromRequest<App> for Action {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &App) -> Result<Self, PageError> {
        let Posted { visitor, form } = Posted::from_request(request, app).await?;
        if !visitor.can_act() {
            let detail = "this session is read-only; changes need a token with the scope `manage` or `admin`";
            return Err(PageError::new(ProblemKind::Forbidden, detail));
        }
        Ok(Self { visitor, form })
    }
}
