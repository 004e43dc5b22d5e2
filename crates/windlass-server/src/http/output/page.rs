//! Pages: items and the cursor of the next page.

use serde::Serialize;
use utoipa::ToSchema;
use windlass::client::Page;
use windlass_core::JobId;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Listing<T> {
    items: Vec<T>,
    /// The `cursor` of the next page; null on the last one.
    next: Option<String>,
}

impl<T> Listing<T> {
    /// The page to ask the store for: one more than is shown tells whether there is another.
    pub(crate) const fn one_more(page: Page) -> Page {
        Page { limit: page.limit + 1, ..page }
    }

    pub(crate) fn new<R>(rows: &[R], page: Page, id: impl Fn(&R) -> JobId, view: impl Fn(&R) -> T) -> Self {
        let shown = &rows[..rows.len().min(page.limit as usize)];
        let next = (rows.len() > shown.len()).then(|| shown.last().map(|row| id(row).to_string())).flatten();
        Self { items: shown.iter().map(view).collect(), next }
    }

    /// A list that is complete.
    pub(crate) const fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}
