//! Leases as the workers that hold them know them. From outside, a lease surely holds from the answer that granted it
//! until its length after the request was sent, or until a result is sent. No two leases of a job may hold at once, on
//! whatever nodes, and nothing may be granted after the job's end.

use std::collections::HashMap;
use std::time::Duration;

/// A lease of one attempt. Times are those of the test's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub attempt: u32,
    /// When the request for it was sent.
    pub asked: Duration,
    /// When the answer arrived: it holds from then on at the latest.
    pub from: Duration,
    /// Until when it surely holds.
    pub until: Duration,
}

/// All leases and results of a run, by job.
#[derive(Debug, Default)]
pub struct Leases {
    granted: HashMap<i64, Vec<Lease>>,
    /// When the success of a job was acknowledged.
    succeeded: HashMap<i64, Vec<Duration>>,
}

impl Leases {
    pub fn granted(&mut self, job: i64, lease: Lease) {
        self.granted.entry(job).or_default().push(lease);
    }

    /// A lease was extended: it surely holds until then.
    pub fn extended(&mut self, (job, attempt): (i64, u32), until: Duration) {
        if let Some(lease) = self.lease(job, attempt) {
            lease.until = lease.until.max(until);
        }
    }

    /// A result is sent: from now on the lease may be over.
    pub fn reported(&mut self, (job, attempt): (i64, u32), now: Duration) {
        if let Some(lease) = self.lease(job, attempt) {
            lease.until = lease.until.min(now);
        }
    }

    pub fn succeeded(&mut self, job: i64, now: Duration) {
        self.succeeded.entry(job).or_default().push(now);
    }

    pub fn count(&self) -> usize {
        self.granted.values().map(Vec::len).sum()
    }

    fn lease(&mut self, job: i64, attempt: u32) -> Option<&mut Lease> {
        self.granted.get_mut(&job)?.iter_mut().find(|lease| lease.attempt == attempt)
    }

    /// Leases of one job that held at once, attempts granted or acknowledged twice, and grants after the end.
    pub fn violations(&self, may_run_again: impl Fn(i64) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        for (job, leases) in &self.granted {
            let mut leases = leases.clone();
            leases.sort_by_key(|lease| lease.from);
            for (nth, lease) in leases.iter().enumerate() {
                let after = &leases[nth + 1..];
                for other in after.iter().take_while(|other| other.from < lease.until) {
                    found.push(format!("job {job} was held twice at once: {lease:?} and {other:?}"));
                }
                for other in after.iter().filter(|other| other.attempt <= lease.attempt && other.asked > lease.from) {
                    found.push(format!("attempt {} of job {job} was granted after {lease:?}", other.attempt));
                }
            }
            if may_run_again(*job) {
                continue;
            }
            let ends = self.succeeded.get(job).map_or(&[][..], Vec::as_slice);
            if ends.len() > 1 {
                found.push(format!("job {job} succeeded {} times", ends.len()));
            }
            let is_after = |lease: &&Lease| ends.iter().any(|end| lease.asked > *end);
            if let Some(lease) = leases.iter().find(is_after) {
                found.push(format!("job {job} was granted after it had succeeded: {lease:?}"));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(attempt: u32, asked: u64, from: u64, until: u64) -> Lease {
        let at = Duration::from_millis;
        Lease { attempt, asked: at(asked), from: at(from), until: at(until) }
    }

    fn violations(leases: &[Lease], succeeded: &[u64]) -> usize {
        let mut all = Leases::default();
        leases.iter().for_each(|lease| all.granted(1, *lease));
        succeeded.iter().for_each(|at| all.succeeded(1, Duration::from_millis(*at)));
        all.violations(|_| false).len()
    }

    #[test]
    fn one_lease_after_the_other_is_fine() {
        assert_eq!(violations(&[lease(1, 0, 5, 100), lease(2, 90, 100, 200)], &[150]), 0);
        // The request was sent while the first held, and answered later.
        assert_eq!(violations(&[lease(2, 50, 101, 200), lease(1, 0, 5, 100)], &[]), 0);
    }

    #[test]
    fn every_broken_promise_is_found() {
        assert_eq!(violations(&[lease(1, 0, 5, 100), lease(2, 20, 99, 200)], &[]), 1, "both hold at once");
        assert_eq!(violations(&[lease(1, 0, 5, 100), lease(1, 120, 130, 200)], &[]), 1, "an attempt is granted twice");
        assert_eq!(violations(&[lease(1, 0, 5, 100), lease(2, 120, 130, 200)], &[110]), 1, "granted after its end");
        assert_eq!(violations(&[lease(1, 0, 5, 100)], &[90, 110]), 1, "succeeded twice");
    }

    #[test]
    fn a_result_shortens_a_lease_and_an_extension_lengthens_it() {
        let mut all = Leases::default();
        all.granted(1, lease(1, 0, 5, 100));
        all.extended((1, 1), Duration::from_millis(150));
        all.granted(1, lease(2, 100, 120, 200));
        assert_eq!(all.violations(|_| false).len(), 1);
        all.reported((1, 1), Duration::from_millis(110));
        assert_eq!(all.violations(|_| false).len(), 0);
    }
}
