//! Stores of earlier releases, kept in `stores/`, are opened and worked on: every later migration must carry them over.
//! Until 0.1 is released its schema may change; then make the copies anew, with
//! `WINDLASS_TEST_REWRITE=1 scripts/with-postgres cargo test -p windlass-server --all-features --test server upgrade`.
//! After the release they are never changed; a store of each later release is added.

use super::client::Client;
use super::node::{Node, Place, eventually};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

const RING: (&str, &str) = ("WINDLASS_KEY_RING", "kept:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
/// Otherwise the name of the machine would be kept.
const NAME: (&str, &str) = ("WINDLASS_WORKER", "kept");
/// The schema of the dump, replaced by the test's own.
const SCHEMA: &str = "windlass_store_of_0_1";
const QUEUES: [&str; 3] = ["work", "paused", "sealed"];
/// What changes by itself while a store rests, or when a node opens it.
const VOLATILE: [&str; 7] =
    ["nextRunAt", "nextFiringAt", "waitingFor", "until", "leaseExpiresAt", "worker", "updatedAt"];

fn kept(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server/stores/0.1").join(name)
}

fn name_of(place: &Place) -> &'static str {
    if place.is_postgres() { "postgres" } else { "sqlite" }
}

crate::on_both_stores!(a_store_of_0_1_is_as_it_was_and_works, nodes_work_beside_a_newer_schema_that_allows_them);

fn put(client: &Client, path: &str, body: &Value) {
    let answer = client.send("PUT", path, &body.to_string()).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
}

fn enqueue(client: &Client, queue: &str, more: &Value) -> i64 {
    let mut job = json!({"kind": "email", "queue": queue, "payload": {"to": "ann@example.com", "n": 1}});
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = client.post("/api/v1/jobs", &job.to_string());
    assert!(answer.status == 201 || answer.status == 200, "{}", answer.body);
    answer.json()["id"].as_i64().unwrap()
}

/// Leases due jobs of a queue.
fn lease(client: &Client, queue: &str) -> Vec<Value> {
    let take = json!({"worker": "w", "queues": [queue], "max": 100, "leaseMs": 2_000}).to_string();
    client.post("/api/v1/leases", &take).is(200)["jobs"].as_array().unwrap().clone()
}

fn end(client: &Client, action: &str, job: &Value, more: &Value) {
    let mut item = json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"], "note": "noted"});
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = json!({"worker": "w", "results": [item]}).to_string();
    let answer = client.post(&format!("/api/v1/leases/{action}"), &body).is(200);
    assert_eq!(answer["results"][0]["result"], "ok", "{answer}");
}

/// Fills a store with something of everything. Returns the paths of the API that show it, and the ids of its jobs.
fn fill(client: &Client) -> (Vec<String>, Value) {
    let forever = json!({"succeeded": "forever", "failed": "forever", "cancelled": "forever"});
    for queue in QUEUES {
        let settings = json!({"retention": forever, "policy": "fixed:base=1s,retries=3"});
        put(client, &format!("/api/v1/queues/{queue}?tenant=*"), &settings);
    }
    put(client, "/api/v1/holds", &json!({"queue": "held", "for": "365d", "reason": "kept"}));
    put(client, "/api/v1/kinds/email", &json!({"policy": "fixed:base=2s,retries=4"}));
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    put(client, "/api/v1/tenants/acme", &json!({"webhook": {"url": "https://hook.invalid/kept", "secret": secret}}));
    put(client, "/api/v1/tenants/acme/quotas", &json!({"waiting": 1000}));
    put(client, "/api/v1/alerts/rules/kept", &json!({"measure": "exhausted", "threshold": 77}));

    let succeeded = enqueue(client, "work", &json!({"idempotencyKey": "kept", "idempotencyWindow": "36500d"}));
    end(client, "complete", &lease(client, "work")[0], &json!({"result": {"sent": true}}));
    let failed = enqueue(client, "work", &json!({"priority": "high"}));
    let failure =
        json!({"permanent": true, "class": "Bounced", "message": "no such user", "trace": "at send (a.js:1)"});
    end(client, "fail", &lease(client, "work")[0], &failure);
    let cancelled = enqueue(client, "work", &json!({"delay": "1h"}));
    assert_eq!(client.send("DELETE", &format!("/api/v1/jobs/{cancelled}"), "").unwrap().status, 200);
    let far = enqueue(client, "work", &json!({"runAt": "2999-01-01T00:00:00Z", "startBy": "2999-06-01T00:00:00Z"}));
    let retrying = enqueue(client, "work", &json!({"limitKey": "customer-7"}));
    end(client, "fail", &lease(client, "work")[0], &json!({"class": "Timeout", "message": "slow", "retryIn": "1h"}));
    client.post("/api/v1/queues/paused/pause", "");
    let waiting = enqueue(client, "paused", &json!({"timeout": "5m", "priority": "lowest"}));
    let once = enqueue(client, "paused", &json!({"delivery": "AT_MOST_ONCE", "tenantId": "acme"}));
    client.post("/api/v1/queues/paused/pause", "");
    client.post("/api/v1/queues/paused/pause?tenant=acme", "");
    let every = json!({"cron": "0 0 1 1 *", "timezone": "Europe/Berlin", "kind": "report", "queue": "work"});
    let schedule = client.post("/api/v1/schedules", &every.to_string()).is(201)["id"].as_i64().unwrap();
    client.post(&format!("/api/v1/schedules/{schedule}/pause"), "");

    let finished = [succeeded, failed, cancelled];
    let mut paths: Vec<String> =
        finished.iter().chain(&[far, retrying, waiting, once]).map(|id| format!("/api/v1/jobs/{id}")).collect();
    paths.extend(finished.iter().chain(&[retrying]).map(|id| format!("/api/v1/jobs/{id}/history?trace=true")));
    paths.push(format!("/api/v1/schedules/{schedule}"));
    paths.extend(["kinds", "tenants/acme"].map(|name| format!("/api/v1/{name}")));
    let ids = json!({"failed": failed, "far": far, "succeeded": succeeded, "schedule": schedule, "once": once});
    (paths, ids)
}

/// A store as it is written today, and what it shows.
fn make(place: &Place) -> Value {
    let mut node = place.serve_with(&[], &[NAME]);
    let (mut paths, mut ids) = fill(&node.client);
    node.signal("-TERM");
    node.ended();
    // From here on values are sealed.
    let mut node = place.serve_with(&[], &[NAME, RING]);
    let sealed = enqueue(&node.client, "sealed", &json!({"payload": {"secret": "kept"}}));
    end(&node.client, "complete", &lease(&node.client, "sealed")[0], &json!({"result": "sealed result"}));
    ids["sealed"] = json!(sealed);
    paths.push(format!("/api/v1/jobs/{sealed}"));
    let running = enqueue(&node.client, "work", &json!({"kind": "runs"}));
    assert_eq!(lease(&node.client, "work").len(), 1);
    ids["running"] = json!(running);
    let shown: serde_json::Map<String, Value> =
        paths.iter().map(|path| (path.clone(), node.client.get(path).is(200))).collect();
    node.signal("-TERM");
    node.ended();
    let token = place.command(&["token", "create", "kept", "--json", "--scope", "admin"]).output().unwrap();
    let token: Value = serde_json::from_slice(&token.stdout).unwrap();
    json!({"ids": ids, "token": token["token"], "shown": shown})
}

/// Keeps a stopped store in the repository.
fn keep(place: &Place, expected: &Value) {
    std::fs::create_dir_all(kept("")).unwrap();
    let text = serde_json::to_string_pretty(expected).unwrap() + "\n";
    std::fs::write(kept(&format!("{}.json", name_of(place))), text).unwrap();
    if place.is_postgres() {
        let mut dump = Command::new("pg_dump");
        dump.args(["--inserts", "--no-owner", "--no-privileges", "--schema", place.schema(), place.url()]);
        let dumped = dump.output().expect("pg_dump is there");
        assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
        let text = String::from_utf8(dumped.stdout).unwrap().replace(place.schema(), SCHEMA);
        // Lines for psql alone, and comments with the version of the server.
        let is_sql = |line: &&str| !line.starts_with('\\') && !line.starts_with("--");
        let lines: Vec<&str> = text.lines().filter(is_sql).collect();
        std::fs::write(kept("postgres.store"), lines.join("\n") + "\n").unwrap();
    } else {
        let file = rusqlite::Connection::open(place.file()).unwrap();
        let target = kept("sqlite.store");
        let _ = std::fs::remove_file(&target);
        file.execute("VACUUM INTO ?1", [target.to_str().unwrap()]).unwrap();
    }
}

/// Puts the kept store into a place of the test.
fn restore(place: &Place) {
    if place.is_postgres() {
        let text = std::fs::read_to_string(kept("postgres.store")).unwrap().replace(SCHEMA, place.schema());
        place.sql(&text);
    } else {
        std::fs::copy(kept("sqlite.store"), place.file()).unwrap();
    }
}

/// Everything that was shown is shown; new fields may be there too.
fn compare(at: &str, before: &Value, now: &Value) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (name, value) in before.iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str())) {
                compare(&format!("{at}/{name}"), value, now.get(name).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(before), Value::Array(now)) => {
            assert_eq!(before.len(), now.len(), "{at}: {before:?} and {now:?}");
            before
                .iter()
                .zip(now)
                .enumerate()
                .for_each(|(n, (before, now))| compare(&format!("{at}/{n}"), before, now));
        }
        _ => assert_eq!(before, now, "{at}"),
    }
}

fn open(place: &Place) -> Node {
    place.try_serve_with(&[RING]).unwrap_or_else(|log| {
        panic!("the kept store of 0.1 does not open. If its schema was changed before the release, make it anew; this file says how.\n{log:#?}")
    })
}

fn a_store_of_0_1_is_as_it_was_and_works(place: &Place) {
    if std::env::var_os("WINDLASS_TEST_REWRITE").is_some() {
        let made = if place.is_postgres() { Place::postgres() } else { Place::sqlite() };
        let expected = make(&made);
        keep(&made, &expected);
    }
    restore(place);
    let text = std::fs::read_to_string(kept(&format!("{}.json", name_of(place)))).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let id = |name: &str| expected["ids"][name].as_i64().unwrap();
    let node = open(place);
    assert_eq!(node.client.get("/api/v1/jobs").status, 401, "its token is there");
    let client = Client { token: expected["token"].as_str().map(str::to_owned), ..node.client.clone() };
    for (path, before) in expected["shown"].as_object().unwrap() {
        compare(path, before, &client.get(path).is(200));
    }
    let rules = client.get("/api/v1/alerts/rules").body;
    assert!(rules.contains("\"kept\"") && rules.contains("77"), "{rules}");
    works(&client, &id);
}

/// Everything that waits is run, and the operations of every day do what they should.
fn works(client: &Client, id: &impl Fn(&str) -> i64) {
    for path in ["/api/v1/queues/paused/resume", "/api/v1/queues/paused/resume?tenant=acme"] {
        assert_eq!(client.post(path, "").status, 200, "{path}");
    }
    assert_eq!(client.post(&format!("/api/v1/jobs/{}/retry", id("failed")), "").status, 200);
    assert_eq!(client.post(&format!("/api/v1/schedules/{}/resume", id("schedule")), "").status, 200);
    assert_eq!(client.post(&format!("/api/v1/schedules/{}/trigger", id("schedule")), "").status, 201);
    let again = json!({"idempotencyKey": "kept", "idempotencyWindow": "36500d"});
    assert_eq!(enqueue(client, "work", &again), id("succeeded"), "its key is still taken");
    let fresh = enqueue(client, "work", &json!({"payload": "new"}));
    assert!(fresh > id("running"), "ids go on");
    let unfinished = || {
        let list = client.get("/api/v1/jobs?state=queued,retrying,running&executor=worker&limit=100").is(200);
        list["items"].as_array().unwrap().iter().map(|job| job["id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let retrying = client.get("/api/v1/jobs?state=retrying").is(200);
    for job in retrying["items"].as_array().unwrap() {
        // Not in an hour.
        assert_eq!(client.post(&format!("/api/v1/jobs/{}/retry", job["id"]), "").status, 200);
    }
    eventually("everything that is due is run", || {
        for queue in QUEUES {
            lease(client, queue).iter().for_each(|job| end(client, "complete", job, &json!({})));
        }
        unfinished() == [id("far")]
    });
    for name in ["failed", "once", "running"] {
        assert_eq!(client.state(id(name)), "succeeded", "{name}");
        let history = client.get(&format!("/api/v1/jobs/{}/history", id(name))).is(200);
        let mut attempts: Vec<_> = history["items"].as_array().unwrap().iter().map(|a| a["attempt"].as_u64()).collect();
        attempts.sort_unstable();
        assert_eq!(attempts, (1..=attempts.len() as u64).map(Some).collect::<Vec<_>>(), "{name}");
    }
}

/// What a later release does to the schema: it adds, and says that this program can still work with it.
fn migrate_by_hand(place: &Place, min_reader: u32) {
    if place.is_postgres() {
        let schema = place.schema();
        place.sql(&format!(
            "ALTER TABLE {schema}.jobs ADD COLUMN later text; CREATE TABLE {schema}.later (id bigint PRIMARY KEY);
             INSERT INTO {schema}.migrations (number, name, checksum, min_reader) VALUES (2, 'test', 'x', {min_reader})"
        ));
    } else {
        let file = rusqlite::Connection::open(place.file()).unwrap();
        file.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        file.execute_batch(&format!(
            "BEGIN IMMEDIATE; ALTER TABLE windlass_jobs ADD COLUMN later TEXT; CREATE TABLE windlass_later (id INTEGER PRIMARY KEY);
             INSERT INTO windlass_migrations VALUES (2, 'test', 'x', {min_reader}, 0); COMMIT"
        ))
        .unwrap();
    }
}

/// A rolling upgrade, as the old nodes see it: another node migrates the store while they work.
fn nodes_work_beside_a_newer_schema_that_allows_them(place: &Place) {
    let old = place.serve(&[]);
    for n in 0..20 {
        enqueue(&old.client, "work", &json!({"payload": n}));
    }
    let held = lease(&old.client, "work");
    migrate_by_hand(place, 1);
    for job in &held {
        end(&old.client, "complete", job, &json!({}));
    }
    let new = place.serve(&[]);
    for n in 0..20 {
        let client = if n % 2 == 0 { &old.client } else { &new.client };
        enqueue(client, "work", &json!({"payload": n}));
    }
    eventually("both nodes run everything", || {
        for client in [&old.client, &new.client] {
            lease(client, "work").iter().for_each(|job| end(client, "complete", job, &json!({})));
        }
        let left = new.client.get("/api/v1/jobs?state=queued,retrying,running").is(200);
        left["items"].as_array().unwrap().is_empty()
    });
    let done = new.client.get("/api/v1/jobs?state=succeeded&limit=100").is(200);
    assert_eq!(done["items"].as_array().unwrap().len(), 40);
    assert!(done["items"].as_array().unwrap().iter().all(|job| job["attempt"] == 1), "{done}");
}

#[test]
fn a_node_that_is_too_old_for_a_schema_says_so_and_ends() {
    for place in [Place::sqlite(), Place::postgres()] {
        drop(place.serve(&[]));
        migrate_by_hand(&place, 2);
        let log = place.try_serve_with(&[]).unwrap_err().join("\n");
        assert!(log.contains("upgrade") && log.contains('2'), "{log}");
    }
}
