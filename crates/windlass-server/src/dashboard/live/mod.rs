//! Live pages. A page that browsers watch is rendered once a second for all of them, and each gets the regions that
//! changed. The store is read once per page and second, however many browsers watch it.

mod regions;
mod stream;
mod watched;

pub(super) use stream::stream;

use super::session::Visitor;
use crate::http::App;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use watched::{Snapshot, Watched};

/// The most pages that are watched at once, each by any number of browsers.
const MAX_PAGES: usize = 64;
/// The most browsers that watch.
const MAX_VIEWERS: usize = 600;

/// The pages that browsers watch. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pages: Mutex<HashMap<Key, watch::Sender<Arc<Snapshot>>>>,
    viewers: AtomicUsize,
}

/// Who sees the same page in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    address: String,
    tenant: Option<String>,
    can_act: bool,
    is_admin: bool,
}

/// One browser that watches; counted until it is dropped.
#[derive(Debug)]
struct Viewer {
    live: Live,
    snapshots: watch::Receiver<Arc<Snapshot>>,
}

impl Live {
    /// Watches a page. `None` if too many do already.
    fn watch(&self, app: &App, visitor: &Visitor, address: &str) -> Option<Viewer> {
        if self.0.viewers.fetch_add(1, Ordering::AcqRel) >= MAX_VIEWERS {
            self.0.viewers.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        let tenant = match visitor.tenants() {
            windlass::client::Scope::All => None,
            windlass::client::Scope::Tenant(tenant) => Some(tenant.to_string()),
        };
        let (can_act, is_admin) = (visitor.can_act(), visitor.is_admin());
        let key = Key { address: address.to_owned(), tenant, can_act, is_admin };
        let mut pages = self.0.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pages.get(&key).map(watch::Sender::subscribe);
        let snapshots = match known {
            Some(snapshots) => Some(snapshots),
            None if pages.len() < MAX_PAGES => {
                let (sender, receiver) = watch::channel(Arc::default());
                pages.insert(key.clone(), sender);
                let watched = Watched::new(app.clone(), self.clone(), key, visitor.clone());
                // It ends with its last viewer, or when the server stops.
                tokio::spawn(watched.run());
                Some(receiver)
            }
            None => None,
        };
        drop(pages);
        let Some(snapshots) = snapshots else {
            self.0.viewers.fetch_sub(1, Ordering::AcqRel);
            return None;
        };
        Some(Viewer { live: self.clone(), snapshots })
    }

    /// Publishes what a page looks like now. Returns false, and forgets the page, if nobody watches it.
    fn publish(&self, key: &Key, snapshot: Option<Arc<Snapshot>>) -> bool {
        let mut pages = self.0.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = pages.get(key) else { return false };
        if sender.receiver_count() == 0 {
            pages.remove(key);
            return false;
        }
        if let Some(snapshot) = snapshot {
            sender.send_replace(snapshot);
        }
        true
    }

    fn forget(&self, key: &Key) {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.live.0.viewers.fetch_sub(1, Ordering::AcqRel);
    }
}
