//! The power fails: at any moment, on a disk that keeps what was synced and any part of the rest. The disks that could
//! be left are rebuilt and opened with the real binary. Whatever was answered before the cut must be there.

use crate::client::Client;
use crate::power::disk::{self, Syncs};
use crate::power::recorder::{Event, Recorder};
use crate::setup::node::Node;
use crate::setup::place::Place;
use crate::tools::{asked, below, eventually, seed};
use serde_json::Value;
use std::collections::HashMap;
use windlass::Random;

/// Rounds of requests.
const ROUNDS: usize = 25;

/// What a client was answered, and how long the record was then.
#[derive(Debug)]
struct Answered {
    job: i64,
    what: What,
    at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Stored,
    /// A worker got it, to run it at most once.
    Started,
    Succeeded,
}

struct Run {
    events: Vec<Event>,
    answered: Vec<Answered>,
}

/// A node that works, stops and works again, recorded.
fn run() -> Run {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("disk");
    std::fs::create_dir(&dir).unwrap();
    let (recorder, place) =
        (Recorder::new(home.path(), &dir), Place::sqlite_at(&dir.canonicalize().unwrap().join("jobs.db")));
    let mut answered = Vec::new();
    for life in 0..2 {
        let mut command = place.node();
        recorder.on(command.args(["--listen", "127.0.0.1:0", "--log-format", "json"]));
        let mut node = Node::start(command);
        eventually("the node serves", || node.address().is_some());
        let client = Client { address: node.address().unwrap(), token: None };
        for round in 0..ROUNDS {
            work(&client, &recorder, life * ROUNDS + round, &mut answered);
        }
        node.terminate();
        eventually("the node stops", || node.ended().is_some());
    }
    Run { events: recorder.events(), answered }
}

fn work(client: &Client, recorder: &Recorder, round: usize, answered: &mut Vec<Answered>) {
    let mut note =
        |job: &Value, what| answered.push(Answered { job: job.as_i64().unwrap(), what, at: recorder.length() });
    for delivery in ["AT_LEAST_ONCE", "AT_MOST_ONCE"] {
        let payload = "x".repeat(200 * (round % 7));
        let body = format!(r#"{{"kind":"a","payload":"{payload}","delivery":"{delivery}"}}"#);
        let stored = client.post("/api/v1/jobs", &body).is(201);
        note(&stored["id"], What::Stored);
    }
    let leased = client.post("/api/v1/leases", r#"{"worker":"w","max":2,"leaseMs":600000}"#).is(200);
    for job in leased["jobs"].as_array().unwrap() {
        note(&job["id"], What::Started);
        if !round.is_multiple_of(3) {
            let body = serde_json::json!({"worker": "w", "results": [
                {"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]}]});
            let answer = client.post("/api/v1/leases/complete", &body.to_string()).is(200);
            assert!(answer.to_string().contains("\"ok\""), "{answer}");
            note(&job["id"], What::Succeeded);
        }
    }
}

/// Rebuilds one disk of a cut after `count` events. Returns what is missing on it.
fn cut(run: &Run, count: usize, syncs: Syncs, random: &Random) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    disk::write(&run.events[..count], syncs, random, dir.path());
    let place = Place::sqlite_at(&dir.path().join("jobs.db"));
    let before = count.checked_sub(1).map_or(0, |last| run.events[last].end);
    let answered: Vec<&Answered> = run.answered.iter().filter(|answered| answered.at <= before).collect();
    if answered.is_empty() && !place.file().exists() {
        return Vec::new();
    }
    // Opens the file as a node would, so that it is recovered and, if need be, migrated.
    let opened = place.command(&["migrate"]).output().unwrap();
    if !opened.status.success() {
        return vec![format!("the file cannot be opened: {}", String::from_utf8_lossy(&opened.stderr))];
    }
    let (mut missing, jobs) = match contents(&place) {
        Ok((whole, jobs)) => ((whole != "ok").then_some(whole).into_iter().collect::<Vec<_>>(), jobs),
        // Reads that meet damage fail; a disk that ignored syncs may leave a file like that.
        Err(damage) => return vec![format!("the file cannot be read: {damage}")],
    };
    for answered in answered {
        let is_there = jobs.get(&answered.job).is_some_and(|(state, attempt)| match answered.what {
            What::Stored => true,
            What::Started => state != "queued" && *attempt >= 1,
            What::Succeeded => state == "succeeded",
        });
        if !is_there {
            missing.push(format!("{answered:?} is {:?}", jobs.get(&answered.job)));
        }
    }
    missing
}

/// State and attempt of each job, by id.
type Jobs = HashMap<i64, (String, i64)>;

/// What SQLite says about the file as a whole, and the jobs in it.
fn contents(place: &Place) -> rusqlite::Result<(String, Jobs)> {
    let file = rusqlite::Connection::open(place.file())?;
    let whole = file.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    let mut select = file.prepare("SELECT id, state, attempt FROM windlass_all_jobs")?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok((whole, rows.collect::<rusqlite::Result<_>>()?))
}

fn cuts(run: &Run, cuts: u64, syncs: Syncs, random: &Random) -> (usize, Vec<String>) {
    let (mut lossy, mut missing) = (0, Vec::new());
    for _ in 0..cuts {
        let count = below(random, run.events.len() as u64 + 1) as usize;
        let found = cut(run, count, syncs, random);
        lossy += usize::from(!found.is_empty());
        missing.extend(found.into_iter().map(|one| format!("cut after {count} events: {one}")));
    }
    (lossy, missing)
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_and_a_disk_that_ignores_syncs_is_found_out() {
    let (seed, count) = (seed(), asked("CUTS", 40));
    println!("power cuts: repeat with WINDLASS_TEST_SEED={seed}");
    let (run, random) = (run(), Random::seeded(seed));
    let (_, missing) = cuts(&run, count, Syncs::Count, &random);
    let (lossy, _) = cuts(&run, count.min(20), Syncs::Ignored, &random);
    println!(
        "power cuts: {count} in {} writes and syncs, {} answers checked, {} broken promises; of {} disks that ignore syncs \
         {lossy} were found out; seed {seed}",
        run.events.len(),
        run.answered.len(),
        missing.len(),
        count.min(20)
    );
    assert!(missing.is_empty(), "{:#?}", &missing[..missing.len().min(10)]);
    assert!(lossy > 0, "a test that sees no loss on a bad disk proves nothing");
}
