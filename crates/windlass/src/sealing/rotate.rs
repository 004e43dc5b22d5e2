//! Rotation: everything stored is brought to the first key of the ring, and what is in clear is sealed, while nodes
//! run. Each row is changed only if it still is as it was read, so nothing that happens meanwhile is lost.

use super::cipher::{Belongs, Cipher, OpenError};
use super::store::{SealedStore, of_row};
use super::values::{output, sealed};
use crate::client::fleet::Settings;
use crate::store::json::{
    call_from_text, call_to_text, template_from_text, template_to_text, webhook_from_text, webhook_to_text,
};
use crate::store::{StoreError, StoredText, TextChange, TextPlace};
use std::collections::BTreeMap;
use windlass_core::JobId;
use windlass_core::job::{Kind, Tenant};

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
    /// meanwhile, if they have the keys. When it returns, other keys are no longer needed.
    ///
    /// # Errors
    /// There is no ring, a value cannot be opened (nothing is lost: it stays as it is), or the store cannot be used.
    pub async fn rotate_keys(&self, mut report: impl FnMut(Progress)) -> Result<Progress, StoreError> {
        let none = || StoreError::Invalid("there is no key ring; set keyRing or keyRingFile".into());
        let store = self.windlass.inner().sealed().filter(|store| !store.ring().is_empty()).ok_or_else(none)?;
        let mut total = Progress::default();
        // A row that was missed is found by the next pass.
        for _ in 0..MAX_PASSES {
            // A key that comes into use from now on may seal values behind the pass.
            let names = store.keys_in_use().await?;
            let pass = store.seal_all(total, &mut report).await?;
            total = pass;
            if pass.missed == 0 {
                store.forget_keys(&names).await?;
                return Ok(total);
            }
            total.missed = 0;
        }
        Err(StoreError::unavailable("values change faster than they can be sealed; run it again"))
    }
}

/// Passes over everything before a rotation gives up.
const MAX_PASSES: usize = 10;

impl SealedStore {
    /// One pass over everything.
    async fn seal_all(&self, mut done: Progress, report: &mut impl FnMut(Progress)) -> Result<Progress, StoreError> {
        let mut after = None;
        while let Some((place, page)) = self.seal_page(after.as_ref()).await? {
            after = Some(place);
            done.rows += page.rows;
            done.changed += page.changed;
            done.missed += page.missed;
            report(done);
        }
        Ok(done)
    }

    /// Seals the next rows after a place. `None` at the end.
    pub(crate) async fn seal_page(
        &self,
        after: Option<&TextPlace>,
    ) -> Result<Option<(TextPlace, Progress)>, StoreError> {
        self.ready().await?;
        let rows = self.inner.texts(after, PAGE).await?;
        let Some(last) = rows.last().map(|row| row.place.clone()) else { return Ok(None) };
        let mut page = Progress { rows: rows.len() as u64, ..Progress::default() };
        let mut changes = Vec::new();
        for row in rows {
            let named = format!("{} {}", row.table, row.place.key.0);
            let after = self.cipher.renewed(&row).map_err(|error| of_row(&error, named))?;
            if after != row.columns {
                changes.push(TextChange { before: row, after });
            }
        }
        let wanted = changes.len() as u64;
        page.changed = if changes.is_empty() { 0 } else { self.inner.replace_texts(changes).await? };
        page.missed = wanted - page.changed;
        Ok(Some((last, page)))
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
            ("jobs", "http") => Ok(call_from_text(text)
                .map_or_else(|_| Ok(text.to_owned()), |call| Ok(call_to_text(&self.renew_call(&call, &tenant)?)))?),
            ("jobs", "webhook") => Ok(webhook_from_text(text).map_or_else(
                |_| Ok(text.to_owned()),
                |webhook| Ok(webhook_to_text(&self.renew_webhook(&webhook, &tenant)?)),
            )?),
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
