//! Bits that flip in the files of a SQLite store. Damage that SQLite can see is reported: by the request that meets
//! it, by `/readyz` from then on, by `doctor` and `backup`. Values that are sealed are never shown changed. A bit of
//! another value may flip unnoticed (ADR 0043); the test counts that. `WINDLASS_TEST_FLIPS` sets how many bits flip.

use super::node::{Node, Place, eventually};
use serde_json::{Value, json};
use std::path::Path;
use windlass::Random;

const JOBS: usize = 24;
const RING: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// What a key ring seals of a job and its attempts.
const SEALED: [&str; 5] = ["payload", "result", "error", "note", "http"];

/// A number from the environment, or the short version's.
fn asked(name: &str, short: u64) -> u64 {
    std::env::var(name).map_or(short, |text| text.parse().expect("a number"))
}

fn try_serve(place: &Place, ring: Option<&str>) -> Result<Node, Vec<String>> {
    let ring: Vec<_> = ring.map(|ring| ("WINDLASS_KEY_RING", ring)).into_iter().collect();
    place.try_serve_with(&ring)
}

fn serve(place: &Place, ring: Option<&str>) -> Node {
    try_serve(place, ring).unwrap()
}

/// Stores jobs that rest: waiting for a day, succeeded with a result, failed for good. Returns their ids.
fn fill(node: &Node) -> Vec<i64> {
    let mut ids = Vec::new();
    for n in 0..JOBS {
        let payload = format!("{n} {}", "payload ".repeat(n * n * 4));
        let (queue, delay) = if n % 3 == 0 { ("rests", "24h") } else { ("runs", "0s") };
        let body = json!({"kind": format!("kind-{n}"), "queue": queue, "delay": delay, "payload": payload});
        ids.push(node.client.post("/api/v1/jobs", &body.to_string()).is(201)["id"].as_i64().unwrap());
    }
    let take = json!({"worker": "w", "queues": ["runs"], "max": JOBS}).to_string();
    let leased = node.client.post("/api/v1/leases", &take).is(200);
    for (n, job) in leased["jobs"].as_array().unwrap().iter().enumerate() {
        let mut item = json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"], "note": "noted"});
        let action = if n % 2 == 0 { "complete" } else { "fail" };
        if action == "complete" {
            item["result"] = json!({"text": "result ".repeat(n * 9)});
        } else {
            item["permanent"] = json!(true);
            item["message"] = json!("failed for good");
        }
        let body = json!({"worker": "w", "results": [item]}).to_string();
        node.client.post(&format!("/api/v1/leases/{action}"), &body).is(200);
    }
    ids
}

/// What the API shows of each job: an answer, or the error that it reports instead.
fn shown(node: &Node, ids: &[i64]) -> Vec<Result<Value, u16>> {
    let show = |path: String| {
        let answer = node.client.get(&path);
        if answer.status == 200 { Ok(answer.json()) } else { Err(answer.status) }
    };
    let one = |id: &i64| [show(format!("/api/v1/jobs/{id}")), show(format!("/api/v1/jobs/{id}/history"))];
    ids.iter().flat_map(one).collect()
}

/// What the doctor finds wrong with the store.
fn doctor(place: &Place, ring: Option<&str>) -> Vec<String> {
    let mut command = place.command(&["doctor", "--json"]);
    command.envs(ring.map(|ring| ("WINDLASS_KEY_RING", ring)));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let Ok(report) = serde_json::from_str::<Value>(&text) else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !said.contains("panicked"), "{said}");
        return vec![said];
    };
    let checks = report["checks"].as_array().cloned().unwrap_or_default();
    let wrong = checks.iter().filter(|check| check["verdict"] == "wrong" && check["check"] == "integrity");
    wrong.map(|check| check["detail"].to_string()).collect()
}

/// A stopped store with a sound file, and what it shows.
struct Stored {
    place: Place,
    ring: Option<&'static str>,
    ids: Vec<i64>,
    sound: Vec<Result<Value, u16>>,
}

impl Stored {
    fn new(ring: Option<&'static str>) -> Self {
        let place = Place::sqlite();
        let mut node = serve(&place, ring);
        let ids = fill(&node);
        node.signal("-TERM");
        node.ended();
        let node = serve(&place, ring);
        let sound = shown(&node, &ids);
        assert!(sound.iter().all(Result::is_ok), "{sound:?}");
        drop(node);
        let stored = Self { place, ring, ids, sound };
        let copy = Place::sqlite();
        std::fs::copy(stored.place.file(), copy.file()).unwrap();
        assert_eq!(look(&stored, &copy, "a sound copy"), Seen::Nothing);
        stored
    }

    /// A copy with one flipped bit.
    fn flipped(&self, random: &Random) -> (Place, String) {
        let copy = Place::sqlite();
        let mut bytes = std::fs::read(self.place.file()).unwrap();
        let (at, bit) = (random.number() as usize % bytes.len(), random.number() % 8);
        bytes[at] ^= 1 << bit;
        std::fs::write(copy.file(), bytes).unwrap();
        (copy, format!("bit {bit} of byte {at} (page {}, {} in it)", at / 4096 + 1, at % 4096))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Reported,
    Unnoticed,
}

/// Opens a damaged copy, reads everything, and says what came of it.
fn look(stored: &Stored, copy: &Place, what: &str) -> Seen {
    let said = doctor(copy, stored.ring);
    let node = match try_serve(copy, stored.ring) {
        Ok(node) => node,
        Err(log) => {
            assert!(!log.is_empty() && !log.iter().any(|line| line.contains("panicked")), "{what}: {log:?}");
            return Seen::Reported;
        }
    };
    let now = shown(&node, &stored.ids);
    let mut seen = if said.is_empty() { Seen::Nothing } else { Seen::Reported };
    for (before, after) in stored.sound.iter().zip(&now) {
        let (Ok(before), Ok(after)) = (before, after) else {
            let status = *after.as_ref().unwrap_err();
            // 503: the name of a value's key changed, and the ring has no such key.
            assert!([404, 500, 503].contains(&status), "{what}: {status}");
            // A job that is not found: another table still has it, which the doctor says.
            assert!(status != 404 || !said.is_empty(), "{what}: a job is gone, and nothing is reported");
            seen = Seen::Reported;
            continue;
        };
        if before != after && stored.ring.is_some() {
            let items = |shown: &Value| shown["items"].as_array().cloned().unwrap_or_else(|| vec![shown.clone()]);
            for (old, new) in items(before).iter().zip(items(after)) {
                SEALED.iter().for_each(|name| assert_eq!(old[name], new[*name], "{what}: {name} is shown changed"));
            }
        }
        if before != after && seen == Seen::Nothing {
            seen = Seen::Unnoticed;
        }
    }
    if now.contains(&Err(500)) && node.logged("malformed") > 0 {
        eventually("a node that met damage is not ready", || node.client.get("/readyz").status == 503);
    }
    assert_eq!(node.logged("panicked"), 0, "{what}");
    seen
}

fn flips(ring: Option<&'static str>, count: u64) {
    let seed = asked("WINDLASS_TEST_SEED", Random::system().number() >> 32);
    println!("flipped bits: repeat with WINDLASS_TEST_SEED={seed}");
    let (stored, random) = (Stored::new(ring), Random::seeded(seed));
    let (mut harmless, mut reported, mut unnoticed) = (0, 0, 0);
    for _ in 0..count {
        let (copy, what) = stored.flipped(&random);
        match look(&stored, &copy, &format!("seed {seed}, {what}")) {
            Seen::Nothing => harmless += 1,
            Seen::Reported => reported += 1,
            Seen::Unnoticed => unnoticed += 1,
        }
    }
    let kind = if ring.is_some() { "sealed" } else { "in clear" };
    println!(
        "{count} flipped bits, values {kind}: {reported} reported, {harmless} without effect, {unnoticed} unnoticed; seed {seed}"
    );
}

#[test]
fn a_flipped_bit_is_reported_or_changes_no_sealed_value() {
    flips(Some(RING), asked("WINDLASS_TEST_FLIPS", 8));
}

#[test]
fn a_flipped_bit_in_a_store_without_keys_stops_no_node() {
    flips(None, asked("WINDLASS_TEST_FLIPS", 6));
}

/// The header of a page of jobs: SQLite cannot read the page any more.
#[test]
fn a_damaged_page_is_reported_everywhere_and_the_rest_works() {
    let stored = Stored::new(None);
    let copy = Place::sqlite();
    let mut bytes = std::fs::read(stored.place.file()).unwrap();
    let marker = b"\"1 payload ";
    let found = bytes.windows(marker.len()).position(|window| window == marker).expect("a payload is there");
    bytes[found / 4096 * 4096] ^= 0xFF;
    std::fs::write(copy.file(), bytes).unwrap();
    let wrong = doctor(&copy, None);
    assert!(!wrong.is_empty(), "the doctor reports it");
    let backup = copy.command(&["backup", "copy.db"]).output().unwrap();
    assert!(!backup.status.success(), "a damaged copy is no backup");
    assert!(!Path::new(&copy.file()).with_file_name("copy.db").exists());

    let node = serve(&copy, None);
    let broken = stored.ids.iter().filter(|id| node.client.get(&format!("/api/v1/jobs/{id}")).status == 500).count();
    assert!(broken > 0, "jobs of that page cannot be shown");
    eventually("a node that met damage is not ready", || node.client.get("/readyz").status == 503);
    let refused = node.client.get("/readyz").is(503);
    assert!(refused["detail"].as_str().unwrap().contains("damaged"), "{refused}");
    node.client.get("/healthz").is(200);
    assert!(node.client.get("/api/v1/queues").status == 200, "what the page does not have is shown");
    assert_eq!(node.logged("panicked"), 0);
}

/// Frames of the log have checksums: those before the flipped bit count, and what is shown is never changed.
#[test]
fn a_flipped_bit_in_the_log_changes_no_value() {
    let seed = asked("WINDLASS_TEST_SEED", Random::system().number() >> 32);
    println!("flipped bits of the log: repeat with WINDLASS_TEST_SEED={seed}");
    let place = Place::sqlite();
    let mut node = serve(&place, None);
    let ids = fill(&node);
    let sound = shown(&node, &ids);
    node.kill();
    let random = Random::seeded(seed);
    let log = |place: &Place| place.file().with_file_name("jobs.db-wal");
    let (base, whole) = (std::fs::read(place.file()).unwrap(), std::fs::read(log(&place)).unwrap());
    assert!(!whole.is_empty(), "a killed node leaves its log");
    let (count, mut kept) = (asked("WINDLASS_TEST_FLIPS", 3), 0);
    for _ in 0..count {
        let copy = Place::sqlite();
        let mut bytes = whole.clone();
        let (at, bit) = (random.number() as usize % bytes.len(), random.number() % 8);
        bytes[at] ^= 1 << bit;
        std::fs::write(copy.file(), &base).unwrap();
        std::fs::write(log(&copy), bytes).unwrap();
        let what = format!("seed {seed}, bit {bit} of byte {at} of the log");
        let node = serve(&copy, None);
        for (before, after) in sound.iter().zip(shown(&node, &ids)) {
            let (Ok(before), Ok(after)) = (before, after) else { continue };
            // An earlier state is what an earlier moment had; what a job is does not change.
            for name in ["id", "kind", "queue", "payload", "createdAt", "priority"] {
                assert_eq!(before[name], after[name], "{what}");
            }
            kept += 1;
        }
        drop(node);
        assert_eq!(doctor(&copy, None), Vec::<String>::new(), "{what}: what is left is sound");
    }
    println!("{count} flipped bits of the log: {kept} of {} answers kept; seed {seed}", count as usize * sound.len());
}
