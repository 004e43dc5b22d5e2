//! Checks the promises: compares what was recorded outside with what is stored.

use crate::checks::checked_operators;
use crate::checks::history::Record;
use crate::checks::stored::{Row, Stored};
use crate::work::spec::Task;
use std::collections::{HashMap, HashSet};

/// What the faults of a run may cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// Processes were killed: attempts may be lost.
    LostAttempts,
    /// No process was killed: no attempt may be lost.
    NoLostAttempt,
}

/// All broken promises.
pub fn violations(record: &Record, stored: &Stored, allowed: Allowed) -> Vec<String> {
    let mut found = Vec::new();
    acknowledged(record, stored, &mut found);
    phantoms(record, stored, &mut found);
    at_most_once(record, stored, &mut found);
    ledger(record, stored, allowed, &mut found);
    endings(record, stored, allowed, &mut found);
    webhooks(record, stored, &mut found);
    checked_operators::violations(record, stored, &mut found);
    found.extend(record.leases.violations(|job| record.replays.contains_key(&job)));
    found
}

/// No acknowledged job is lost, and each job has the acknowledged id.
fn acknowledged(record: &Record, stored: &Stored, found: &mut Vec<String>) {
    for (tag, id) in &record.acknowledged {
        match stored.jobs.get(id) {
            None => found.push(format!("job {id} (tag {tag}) was acknowledged and is lost")),
            Some(row) if row.tag != Some(*tag) => found.push(format!("tag {tag} was given job {id}, which is {row:?}")),
            Some(_) => {}
        }
    }
}

/// Every stored job was sent, and is stored once. A job with a key is stored once even if it was sent repeatedly.
fn phantoms(record: &Record, stored: &Stored, found: &mut Vec<String>) {
    let mut seen: HashMap<u64, i64> = HashMap::new();
    for row in stored.jobs.values().filter(|row| row.kind == "torture") {
        let spec = row.tag.and_then(|tag| record.sent.get(&tag));
        let Some(spec) = spec else {
            found.push(format!("no producer sent {row:?}"));
            continue;
        };
        if let Some(other) = seen.insert(spec.tag, row.id) {
            found
                .push(format!("tag {} (key: {}) is stored twice: jobs {other} and {}", spec.tag, spec.has_key, row.id));
        }
        if spec.has_key != row.key.is_some() {
            found.push(format!("job {} has the key {:?}", row.id, row.key));
        }
    }
}

/// An at-most-once job never starts twice.
fn at_most_once(record: &Record, stored: &Stored, found: &mut Vec<String>) {
    for (id, starts) in &record.starts {
        let Some(row) = stored.jobs.get(id) else {
            found.push(format!("job {id} started and is not stored"));
            continue;
        };
        let spec = row.tag.and_then(|tag| record.sent.get(&tag));
        if spec.is_some_and(|spec| spec.at_most_once) && starts.len() > 1 + row.replays as usize {
            found.push(format!("at-most-once job {id} started {} times: {starts:?}", starts.len()));
        }
    }
}

/// Attempts are numbered from 1 without gaps, and each attempt that was seen to start is recorded once.
fn ledger(record: &Record, stored: &Stored, allowed: Allowed, found: &mut Vec<String>) {
    for row in stored.jobs.values() {
        let lines = stored.ledger.get(&row.id).map_or(&[][..], Vec::as_slice);
        if !lines.iter().map(|line| line.attempt).eq(1..=row.attempt) {
            found.push(format!("the ledger of {row:?} has gaps: {lines:?}"));
        }
        let lost = lines.iter().find(|line| line.class.as_deref() == Some("WorkerLost"));
        let is_excused = allowed == Allowed::LostAttempts || record.late.contains(&row.id);
        if let (false, Some(line)) = (is_excused, lost) {
            found.push(format!("{row:?} was charged an attempt: {line:?}"));
        }
        let mut starts: Vec<u32> =
            record.starts.get(&row.id).into_iter().flatten().map(|start| start.attempt).collect();
        let count = starts.len();
        starts.sort_unstable();
        starts.dedup();
        if starts.len() < count || starts.last().is_some_and(|last| *last > row.attempt) {
            found.push(format!("{row:?} was seen to start attempts {starts:?}, {count} times"));
        }
    }
    for (id, attempt) in &record.completed {
        let is_it = |line: &&crate::checks::stored::Line| line.attempt == *attempt;
        let line = stored.ledger.get(id).and_then(|lines| lines.iter().find(is_it));
        if line.is_none_or(|line| line.status != "SUCCESS") {
            found.push(format!("attempt {attempt} of job {id} was answered ok and is on record as {line:?}"));
        }
    }
}

/// Every job has ended as expected.
fn endings(record: &Record, stored: &Stored, allowed: Allowed, found: &mut Vec<String>) {
    for row in stored.jobs.values() {
        let spec = row.tag.and_then(|tag| record.sent.get(&tag));
        let may_fail = spec.is_some_and(|spec| {
            let fails = matches!(spec.task, Task::FailsOnce | Task::CallFailsOnce);
            spec.at_most_once && (fails || allowed == Allowed::LostAttempts || record.late.contains(&row.id))
        });
        let ends_well = match row.state.as_str() {
            "succeeded" => true,
            "failed" => may_fail && row.reason.as_deref() == Some("at_most_once"),
            "cancelled" => record.cancels.contains_key(&row.id) || record.purges > 0,
            _ => false,
        };
        if !ends_well {
            found.push(format!("{row:?} has not ended as it should: {:?}", stored.ledger.get(&row.id)));
        }
    }
}

/// Each finished job with a webhook is reported at least once, always with the same body. No other webhook is sent.
fn webhooks(record: &Record, stored: &Stored, found: &mut Vec<String>) {
    // Every id has the installation's own id in front of the numbers.
    let numbers = |id: &str| {
        let (installation, rest) = id.strip_prefix("msg_")?.split_once('_')?;
        let numbers: Vec<i64> = rest.split('_').filter_map(|part| part.parse().ok()).collect();
        <[i64; 3]>::try_from(numbers).ok().map(|numbers| (installation.to_owned(), numbers))
    };
    let reported: HashMap<[i64; 3], String> = record
        .hooks
        .keys()
        .filter_map(|id| numbers(id))
        .map(|(installation, numbers)| (numbers, installation))
        .collect();
    let installations: HashSet<&String> = reported.values().collect();
    if installations.len() > 1 {
        found.push(format!("webhooks name several installations: {installations:?}"));
    }
    for row in stored.jobs.values().filter(|row| has_webhook(record, row)) {
        if !reported.contains_key(&[row.id, row.replays.into(), row.attempt.into()]) {
            found.push(format!("no webhook reported that {row:?} has finished"));
        }
    }
    for (id, (bodies, count)) in &record.hooks {
        if bodies.len() > 1 {
            found.push(format!("{id} was delivered {count} times in {} ways: {bodies:?}", bodies.len()));
        }
        let Some((_, [job, replays, attempt])) = numbers(id) else {
            found.push(format!("{id} is not an id of a webhook of this run"));
            continue;
        };
        let Some(row) = stored.jobs.get(&job).filter(|row| has_webhook(record, row)) else {
            found.push(format!("{id} reports on a job that has no webhook"));
            continue;
        };
        let is_last = i64::from(row.replays) == replays;
        let names_end = bodies.iter().all(|body| body.contains(&format!("\"type\":\"job.{}\"", row.state)));
        if is_last && (i64::from(row.attempt) != attempt || !names_end) {
            found.push(format!("{id} reported an end that is not that of {row:?}: {bodies:?}"));
        }
    }
    let mut deliveries: HashMap<i64, u32> = HashMap::new();
    for parent in stored.jobs.values().filter_map(|row| row.parent) {
        *deliveries.entry(parent).or_default() += 1;
    }
    for (parent, count) in deliveries {
        let row = &stored.jobs[&parent];
        if count > 1 + row.replays {
            found.push(format!("{row:?} has {count} deliveries"));
        }
    }
}

fn has_webhook(record: &Record, row: &Row) -> bool {
    row.tag.and_then(|tag| record.sent.get(&tag)).is_some_and(|spec| spec.has_webhook)
}
