//! Texts as they are stored, for sealing them with another key. Only the layer that seals reads and changes them.

use std::collections::BTreeMap;

/// Where a row of texts is. Rows are walked in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPlace {
    /// Which table, in the store's own order.
    pub table: usize,
    /// The row: an id, or the parts of its key.
    pub key: (i64, i64),
    /// The rest of the key, if it is text.
    pub name: Vec<String>,
}

/// The texts of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredText {
    /// Where they are.
    pub place: TextPlace,
    /// The table's name: jobs, attempts, schedules, settings; `live` and `outcomes` where a store has them.
    pub table: &'static str,
    /// Whose they are, if that is in the row.
    pub tenant: String,
    /// The kind of the job, if that is in the row.
    pub kind: String,
    /// The texts by column.
    pub columns: BTreeMap<String, String>,
}

/// A row to be changed, if it still is as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// As it was read.
    pub before: StoredText,
    /// The new texts: every column of `before`.
    pub after: BTreeMap<String, String>,
}

impl TextChange {
    /// The old and new text of a column.
    #[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code))]
    pub(crate) fn column(&self, name: &str) -> (Option<&str>, Option<&str>) {
        (self.before.columns.get(name).map(String::as_str), self.after.get(name).map(String::as_str))
    }
}

/// The columns of a row, from the JSON object that a store's statement makes of them.
#[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code))]
pub(crate) fn columns_of(json: &str) -> BTreeMap<String, String> {
    let columns: BTreeMap<String, Option<String>> = serde_json::from_str(json).unwrap_or_default();
    columns.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}
