//! The agenda: which job calls when. One heap of a million jobs is slow, because each step misses the cache.
//! Here later seconds are plain lists that are sorted when their second begins.

use crate::time::Millis;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Ordered by time and then by job: on a tie the earlier job is first, as in a queue.
type Entry = (Millis, u32);

#[derive(Default)]
pub(super) struct Agenda {
    later: BTreeMap<u64, Vec<Entry>>,
    /// The current second, latest first: the next entry is at its end.
    now: Vec<Entry>,
    /// Calls added to the current second since it began.
    added: BinaryHeap<Reverse<Entry>>,
    second: Option<u64>,
    len: usize,
}

impl Agenda {
    /// Adds a call. It must not be earlier than the last one taken.
    pub(super) fn add(&mut self, at: Millis, job: u32) {
        self.len += 1;
        let second = at.get() / 1000;
        if self.second == Some(second) {
            self.added.push(Reverse((at, job)));
        } else {
            self.later.entry(second).or_default().push((at, job));
        }
    }

    /// Takes the next call.
    pub(super) fn next(&mut self) -> Option<Entry> {
        if self.now.is_empty() && self.added.is_empty() {
            let (second, mut entries) = self.later.pop_first()?;
            entries.sort_unstable_by(|a, b| b.cmp(a));
            self.second = Some(second);
            self.now = entries;
        }
        self.len -= 1;
        match (self.now.last(), self.added.peek()) {
            (Some(entry), Some(Reverse(added))) if added < entry => self.added.pop().map(|Reverse(entry)| entry),
            (Some(_), _) => self.now.pop(),
            (None, _) => self.added.pop().map(|Reverse(entry)| entry),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_order_of_time_and_then_of_job_even_when_added_late() {
        let mut agenda = Agenda::default();
        for (at, job) in [(2500, 1), (100, 7), (100, 3), (900, 2)] {
            agenda.add(Millis::new(at), job);
        }
        assert_eq!(agenda.next(), Some((Millis::new(100), 3)));
        agenda.add(Millis::new(100), 1);
        agenda.add(Millis::new(950), 4);
        agenda.add(Millis::new(1200), 5);
        assert_eq!(agenda.len(), 6);
        let rest: Vec<_> = std::iter::from_fn(|| agenda.next()).map(|(at, job)| (at.get(), job)).collect();
        assert_eq!(rest, [(100, 1), (100, 7), (900, 2), (950, 4), (1200, 5), (2500, 1)]);
        assert_eq!(agenda.len(), 0);
    }
}
