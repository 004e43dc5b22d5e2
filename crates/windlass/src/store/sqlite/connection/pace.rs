//! Sharing the file with other processes: SQLite has one write lock and no queue for it, so a process that holds it all
//! the time starves the others. A busy writer pauses briefly now and then.

use crate::clock::Clock;
use std::time::Duration;
use windlass_core::Millis;

/// After writing this long without a pause, the writer pauses for other processes.
const STRETCH: Millis = Millis::new(100);
/// How long that pause lasts: longer than the interval at which a waiting Windlass tries the lock.
const GAP: Duration = Duration::from_micros(1500);
/// While another process is writing too, the writer pauses after every transaction that took at least this long.
const SHARED_STRETCH: Millis = Millis::new(5);
/// How long another process counts as writing after its last commit.
const SHARED_FOR: Millis = Millis::from_secs(2);

/// How long this process has been writing, and whether others write too.
#[derive(Debug)]
pub(in crate::store::sqlite) struct Pace {
    /// The machine's clock, even if the store uses a test clock.
    watch: Clock,
    began: Millis,
    stretch_began: Option<Millis>,
    version: Option<i64>,
    others_seen: Option<Millis>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { watch: Clock::system(), began: Millis::ZERO, stretch_began: None, version: None, others_seen: None }
    }
}

impl Pace {
    pub(in crate::store::sqlite) fn begin(&mut self) {
        self.began = self.watch.monotonic();
        self.stretch_began.get_or_insert(self.began);
    }

    pub(in crate::store::sqlite) fn in_transaction(&self) -> Millis {
        self.watch.monotonic() - self.began
    }

    /// Whether another connection has committed since the last look.
    pub(in crate::store::sqlite) fn notice(&mut self, version: i64) -> bool {
        let is_news = self.version.is_some_and(|before| before != version);
        self.version = Some(version);
        if is_news {
            self.others_seen = Some(self.watch.monotonic());
        }
        is_news
    }

    /// Pauses briefly if other processes may be waiting for the lock.
    pub(in crate::store::sqlite) fn rest(&mut self, is_idle: bool) {
        if is_idle {
            // No command is waiting, so the lock is free anyway.
            self.stretch_began = None;
            return;
        }
        let now = self.watch.monotonic();
        let is_shared = self.others_seen.is_some_and(|seen| now - seen < SHARED_FOR);
        let stretch = if is_shared { SHARED_STRETCH } else { STRETCH };
        if self.stretch_began.is_some_and(|began| now - began >= stretch) {
            std::thread::sleep(GAP);
            self.stretch_began = None;
        }
    }
}
