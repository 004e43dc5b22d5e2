//! Passes: the gates that the jobs of one lease went through, in one text per lease. An attempt ends once, and only
//! under its lease, so what it used comes back once although its pass stays until the lease ends.

use super::claim_gates::MOST_GATES;
use std::collections::HashMap;
use std::fmt::Write;
use windlass_core::JobId;

/// The gates that one job passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    rows: [i64; MOST_GATES],
    count: usize,
    pub is_probe: bool,
}

impl Passed {
    pub(crate) fn new(rows: impl Iterator<Item = i64>, is_probe: bool) -> Self {
        let mut passed = Self { rows: [0; MOST_GATES], count: 0, is_probe };
        for (place, row) in passed.rows.iter_mut().zip(rows) {
            *place = row;
            passed.count += 1;
        }
        passed
    }

    /// The rows of the gates.
    pub(crate) fn rows(&self) -> &[i64] {
        &self.rows[..self.count]
    }
}

/// What the jobs of a lease passed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Passes(HashMap<JobId, Passed>);

impl Passes {
    /// Adds a job to the text of a lease: `12:3,4;13:3!` means that job 12 passed the gates 3 and 4, and that job 13
    /// passed gate 3 as a probe.
    pub(crate) fn add(text: &mut String, job: JobId, passed: &Passed) {
        let separator = if text.is_empty() { "" } else { ";" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{}:", job.0);
        for (nth, row) in passed.rows().iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{row}");
        }
        if passed.is_probe {
            text.push('!');
        }
    }

    /// Reads a text back; `None` if it is not one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let job = |part: &str| {
            let (job, rows) = part.split_once(':')?;
            let (rows, is_probe) = rows.strip_suffix('!').map_or((rows, false), |rows| (rows, true));
            let listed = || rows.split(',').filter(|row| !row.is_empty());
            if listed().count() > MOST_GATES || listed().any(|row| row.parse::<i64>().is_err()) {
                return None;
            }
            let passed = Passed::new(listed().filter_map(|row| row.parse().ok()), is_probe);
            Some((JobId(job.parse().ok()?), passed))
        };
        text.split(';').map(job).collect::<Option<_>>().map(Self)
    }

    pub(crate) fn of(&self, job: JobId) -> Option<&Passed> {
        self.0.get(&job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_reads_back() {
        let mut text = String::new();
        let jobs: [(i64, &[i64], bool); 4] =
            [(12, &[3, 4], false), (13, &[5], true), (14, &[], false), (15, &[1, 2, 3, 4], true)];
        for (job, rows, is_probe) in jobs {
            Passes::add(&mut text, JobId(job), &Passed::new(rows.iter().copied(), is_probe));
        }
        assert_eq!(text, "12:3,4;13:5!;14:;15:1,2,3,4!");
        let passes = Passes::read(&text).unwrap();
        for (job, rows, is_probe) in jobs {
            let passed = passes.of(JobId(job)).unwrap();
            assert_eq!((passed.rows(), passed.is_probe), (rows, is_probe));
        }
        assert_eq!(passes.of(JobId(16)), None);
    }

    #[test]
    fn nonsense_is_no_text() {
        for text in ["", "x", "1", "1:x", "x:1", "1:1,2,3,4,5", "1:2;"] {
            assert_eq!(Passes::read(text), None, "{text}");
        }
    }
}
