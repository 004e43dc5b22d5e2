//! Query strings. As in bodies, unknown parameters and wrong values are refused by name.

use crate::http::output::problem::Problem;
use axum::extract::FromRequestParts;
use hyper::http::request::Parts;
use std::fmt::Display;
use windlass::client::{Order, Page};
use windlass_core::nearest::nearest;
use windlass_core::{JobId, Timestamp};

/// The default page size.
const DEFAULT_LIMIT: u32 = 50;
/// The largest page size.
pub(crate) const MAX_LIMIT: u32 = 1000;
/// The most parameters in one query.
const MAX_PARAMETERS: usize = 100;

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let text = parts.uri.query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(text.as_bytes());
        if pairs.clone().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
            return Err(Problem::query("", "contains a NUL character"));
        }
        if pairs.clone().nth(MAX_PARAMETERS).is_some() {
            return Err(Problem::query("", format!("has more than {MAX_PARAMETERS} parameters")));
        }
        Ok(Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()))
    }
}

impl Query {
    /// # Errors
    /// The first parameter that is not in `known`, with the nearest known name, or that is empty: `?queue=$QUEUE` with
    /// an unset variable must not mean every queue.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        if let Some((name, _)) = self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let hint = nearest(name, known).map_or_else(String::new, |k| format!("; did you mean `{k}`?"));
            let name: String = name.chars().take(60).collect();
            return Err(Problem::query(&name, format!("is not a known parameter{hint}")));
        }
        if let Some((name, _)) = self.0.iter().find(|(_, value)| value.is_empty()) {
            return Err(Problem::query(name, "is empty; give a value or leave the parameter out"));
        }
        Ok(())
    }

    /// The parameter, unless it is absent or empty. Forms of the dashboard send empty ones; the API refuses them in
    /// [`Query::only`].
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, v)| n == name && !v.is_empty()).map(|(_, value)| value.as_str())
    }

    /// # Errors
    /// The error of `parse`.
    pub(crate) fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Problem> {
        self.text(name).map(parse).transpose().map_err(|error| Problem::query(name, error.to_string()))
    }

    /// # Errors
    /// The value is neither true nor false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(Problem::query(name, "must be true or false")),
        }
    }

    /// # Errors
    /// The value is not a moment.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        self.parsed(name, |text| {
            let ms = text.parse::<i64>().ok().filter(|ms| *ms >= 0).map(Timestamp::from_millis);
            ms.or_else(|| Timestamp::parse(text)).ok_or("must be a moment such as 2026-01-01T12:00:00Z")
        })
    }

    /// # Errors
    /// The value is not a whole number from 1 to `most`.
    pub(crate) fn limit(&self, default: u32, most: u32) -> Result<u32, Problem> {
        let read = |text: &str| text.parse().ok().filter(|n| (1..=most).contains(n));
        let limit =
            self.parsed("limit", |text| read(text).ok_or_else(|| format!("must be a whole number from 1 to {most}")))?;
        Ok(limit.unwrap_or(default))
    }

    /// # Errors
    /// The value is not a cursor of an earlier page.
    pub(crate) fn cursor(&self) -> Result<Option<JobId>, Problem> {
        self.parsed("cursor", |text| text.parse().map(JobId).map_err(|_| "must be the `next` of an earlier page"))
    }

    /// `limit` and `cursor`: a page by keyset.
    ///
    /// # Errors
    /// The limit is out of range, or the cursor is not one of an earlier page.
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        let after = self.cursor()?;
        let order = self.parsed("order", |word| match word {
            "newest" => Ok(Order::NewestFirst),
            "oldest" => Ok(Order::OldestFirst),
            _ => Err("must be newest or oldest"),
        })?;
        Ok(Page { after, limit: self.limit(DEFAULT_LIMIT, MAX_LIMIT)?, order: order.unwrap_or_default() })
    }
}
