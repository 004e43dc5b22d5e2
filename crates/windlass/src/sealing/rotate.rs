//! Rotation: everything stored is brought to the first key of the ring, and what is in clear is sealed, while nodes
//! run. Each row is changed only if it still is as it was read, so nothing that happens meanwhile is lost.

use super::cipher::{Belongs, Cipher, OpenError};
use super::store::{SealedStore, of_row};
use super::values::{output, sealed};
use crate::client::fleet::Settings;
use crate::store::json::{
    call_from_text, call_to_text, template_from_text, template_to_text, webhook_from_text, webhook_to_text,
};
use crate::store::{JobFilter, Page as StorePage, Scope, StoreError, StoredText, TextChange, TextPlace};
use std::collections::BTreeMap;
use windlass_core::job::{Kind, Tenant};
use windlass_core::sealed::PREFIX;
use windlass_core::{JobId, Millis};

/// Rows that are read and changed at once.
const PAGE: u32 = 200;

/// How far a rotation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Rows that were looked at.
    pub rows: u64,
    /// Rows that were sealed anew.
    pub changed: u64,
    /// Rows that changed while they were sealed, and are still to be done.
    pub missed: u64,
}

/// The keys of a node and of its store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SealingStatus {
    /// The keys of this node's ring, the one that seals first.
    pub ring: Vec<String>,
    /// The keys that something in the store may be sealed with.
    pub in_use: Vec<String>,
}

impl Settings<'_> {
    /// The keys of this node's ring, and those in use in the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sealing(&self) -> Result<SealingStatus, StoreError> {
        let Some(store) = self.windlass.inner().sealed() else { return Ok(SealingStatus::default()) };
        let ring = store.ring().names().map(str::to_owned).collect();
        Ok(SealingStatus { ring, in_use: store.keys_in_use().await? })
    }

    /// Seals everything stored with the first key of the ring, and calls `report` after each step. Nodes may run
    /// meanwhile, if they have the keys. When it returns, other keys are no longer needed. It takes at least two passes
    /// if there is something to do: the last one finds nothing.
    ///
    /// # Errors
    /// There is no ring, a value cannot be opened (nothing is lost: it stays as it is), or the store cannot be used.
    pub async fn rotate_keys(&self, mut report: impl FnMut(Progress)) -> Result<Progress, StoreError> {
        let none = || StoreError::Invalid("there is no key ring; set keyRing or keyRingFile".into());
        let store = self.windlass.inner().sealed().filter(|store| !store.ring().is_empty()).ok_or_else(none)?;
        if !store.is_registered().await? {
            store.ready().await?;
            self.windlass.clock().sleep(NAMES_EXPIRE).await;
        }
        let mut total = Progress::default();
        for _ in 0..MAX_PASSES {
            // A key that comes into use from now on may seal values behind the pass.
            let names = store.keys_in_use().await?;
            let pass = store.seal_all(total, &mut report).await?;
            total = pass.done;
            if let Some(error) = pass.unopened {
                return Err(error);
            }
            if pass.had_other_keys == 0 && total.missed == 0 {
                store.forget_keys(&names).await?;
                return Ok(total);
            }
            // Stores copy values from row to row, also behind the pass, so one must find nothing to do.
            total.missed = 0;
            self.windlass.clock().sleep(NAMES_EXPIRE).await;
        }
        Err(StoreError::unavailable("values change faster than they can be sealed; run it again"))
    }
}

/// Passes over everything before a rotation gives up.
const MAX_PASSES: usize = 10;
/// Longer than any node uses settings, and the names of keys, that it has read.
const NAMES_EXPIRE: Millis = Millis::from_secs(2);

/// What was done to one page of rows.
#[derive(Debug)]
pub(crate) struct SealedPage {
    /// The last row.
    pub last: TextPlace,
    pub progress: Progress,
    /// Rows with a value that was sealed with another key than the first.
    had_other_keys: u64,
    /// Why a row stays as it is.
    unopened: Option<StoreError>,
}

/// What was done to all rows.
#[derive(Debug, Default)]
struct Pass {
    done: Progress,
    had_other_keys: u64,
    unopened: Option<StoreError>,
}

impl SealedStore {
    /// One pass over everything.
    async fn seal_all(&self, done: Progress, report: &mut impl FnMut(Progress)) -> Result<Pass, StoreError> {
        let mut pass = Pass { done, ..Pass::default() };
        let mut after = None;
        while let Some(page) = self.seal_page(after.as_ref()).await? {
            after = Some(page.last);
            pass.done.rows += page.progress.rows;
            pass.done.changed += page.progress.changed;
            pass.done.missed += page.progress.missed;
            pass.had_other_keys += page.had_other_keys;
            pass.unopened = pass.unopened.or(page.unopened);
            report(pass.done);
        }
        Ok(pass)
    }

    /// Seals the next rows after a place. `None` at the end. A row that cannot be opened stays as it is.
    pub(crate) async fn seal_page(&self, after: Option<&TextPlace>) -> Result<Option<SealedPage>, StoreError> {
        self.ready().await?;
        let rows = self.inner.texts(after, PAGE).await?;
        let Some(last) = rows.last().map(|row| row.place.clone()) else { return Ok(None) };
        let progress = Progress { rows: rows.len() as u64, ..Progress::default() };
        let mut page = SealedPage { last, progress, had_other_keys: 0, unopened: None };
        let mut changes = Vec::new();
        for row in rows {
            match self.cipher.renewed(&row) {
                Ok(after) if after == row.columns => {}
                Ok(after) => {
                    page.had_other_keys += u64::from(has_sealed_change(&row.columns, &after));
                    changes.push(TextChange { before: row, after });
                }
                Err(error) => {
                    let named = named(&row);
                    if self.logged.is_new(&named) {
                        tracing::warn!(row = named, %error, "a stored value cannot be opened and stays as it is");
                    }
                    page.unopened.get_or_insert(of_row(&error, named));
                }
            }
        }
        let wanted = changes.len() as u64;
        page.progress.changed = if changes.is_empty() { 0 } else { self.inner.replace_texts(changes).await? };
        page.progress.missed = wanted - page.progress.changed;
        Ok(Some(page))
    }

    /// The newest job, whether it can be opened or not.
    pub(crate) async fn newest_job(&self) -> Result<Option<JobId>, StoreError> {
        let jobs = self.inner.jobs(&Scope::All, &JobFilter::default(), StorePage::newest(1)).await?;
        Ok(jobs.first().map(|job| job.id))
    }
}

/// Whether a text that is changed had a sealed value in it.
fn has_sealed_change(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> bool {
    before.iter().any(|(column, text)| text.contains(PREFIX) && after.get(column) != Some(text))
}

fn named(row: &StoredText) -> String {
    match row.place.name.as_slice() {
        [] => format!("{} {}", row.table, row.place.key.0),
        parts => format!("{} {}", row.table, parts.join(" ")),
    }
}

type Result<T, E = OpenError> = std::result::Result<T, E>;

impl Cipher {
    /// The texts of a row, sealed with the first key.
    fn renewed(&self, row: &StoredText) -> Result<BTreeMap<String, String>> {
        let id = row.place.key.0.to_string();
        let renew = |(column, text): (&String, &String)| Ok((column.clone(), self.renew(row, &id, column, text)?));
        row.columns.iter().map(renew).collect()
    }

    fn renew(&self, row: &StoredText, id: &str, column: &str, text: &str) -> Result<String> {
        let tenant = Tenant::new(&row.tenant).unwrap_or_default();
        match (row.table, column) {
            ("jobs", "payload") => match (sealed(text)?, Kind::new(&row.kind)) {
                (Some(sealed), _) => {
                    Ok(self.wrap_again(sealed)?.map_or_else(|| text.to_owned(), |text| format!("\"{text}\"")))
                }
                (None, Ok(kind)) => {
                    // What is sealed inside would not be reached by the next rotation.
                    let report = self.open_report(&kind, text)?;
                    Ok(self.seal_payload(report.as_deref().unwrap_or(text), &tenant, &kind, true).to_string())
                }
                (None, Err(_)) => Ok(text.to_owned()),
            },
            ("jobs", "http") => {
                let Ok(call) = call_from_text(text) else { return Ok(text.to_owned()) };
                let renewed = self.renew_call(&call, &tenant)?;
                Ok(if renewed == call { text.to_owned() } else { call_to_text(&renewed) })
            }
            ("jobs", "webhook") => {
                let Ok(webhook) = webhook_from_text(text) else { return Ok(text.to_owned()) };
                let renewed = self.renew_webhook(&webhook, &tenant)?;
                Ok(if renewed == webhook { text.to_owned() } else { webhook_to_text(&renewed) })
            }
            ("schedules", "template") => {
                let Ok(template) = template_from_text(text, JobId(row.place.key.0)) else { return Ok(text.to_owned()) };
                Ok(template_to_text(&self.renew_new(template)?))
            }
            ("settings", _) => self.renew_setting(row, text),
            (_, "result") => {
                let renewed = self.renew_text(text, output(id, "result"))?;
                // A result is JSON, and so is a sealed one.
                Ok(renewed.map_or_else(|| text.to_owned(), |text| format!("\"{text}\"")))
            }
            // A normalised message is the sealed error itself.
            (_, "message") => Ok(self.renew_text(text, output(id, "error"))?.unwrap_or_else(|| text.to_owned())),
            (_, field) => Ok(self.renew_text(text, output(id, field))?.unwrap_or_else(|| text.to_owned())),
        }
    }

    /// Sealed with the first key; `None` if it already is.
    pub(super) fn renew_text(&self, text: &str, belongs: Belongs<'_>) -> Result<Option<String>> {
        match sealed(text)? {
            Some(sealed) => self.wrap_again(sealed),
            None => Ok(Some(self.seal(text, belongs, None))),
        }
    }
}
