//! Limits and circuit breakers under faults, checked by the receiver of the calls: it counts how many are open at once
//! over all nodes, and how many reach it while it is down.

use crate::client::read_message;
use crate::proxy::{Cut, Proxy};
use crate::setup::fleet::Fleet;
use crate::setup::place::Place;
use crate::tools::{asked, below, eventually, millis, pause, progress, seed};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass::Random;

/// Calls at once, in all and for each key.
const MOST: usize = 5;
const MOST_OF_KEY: usize = 3;
const KEYS: u64 = 4;
/// How long a call takes, in milliseconds.
const CALL: std::ops::Range<u64> = 5..60;
/// The most calls that a receiver that is down may get, whatever the number of jobs.
const WASTED: usize = 50;
/// Jobs stored per request.
const BATCH: u64 = 500;

/// A receiver that counts. Keys are the paths of the calls.
#[derive(Debug, Default)]
struct Receiver {
    calls: Mutex<Calls>,
    is_down: AtomicBool,
}

#[derive(Debug, Default)]
struct Calls {
    open: Vec<Call>,
    most: usize,
    most_of_key: usize,
    total: usize,
    /// Calls that came while it was down.
    wasted: usize,
}

#[derive(Debug)]
struct Call {
    nth: usize,
    key: String,
    stream: Arc<TcpStream>,
}

impl Call {
    /// The call of a node that was killed is over: the node that follows it may use its place at once.
    fn is_over(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        !matches!(rustix::net::recv(&self.stream, &mut [0], flags), Err(Errno::AGAIN))
    }
}

impl Receiver {
    /// Starts it and returns its base URL. It runs as long as the process.
    fn start() -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let url = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
        let receiver = Arc::new(Self::default());
        let serving = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = serving.clone();
                std::thread::spawn(move || drop(receiver.serve(&Arc::new(stream))));
            }
        });
        (receiver, url)
    }

    fn serve(&self, stream: &Arc<TcpStream>) -> std::io::Result<()> {
        let (head, _) = read_message(&mut BufReader::new(&**stream))?;
        let key = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_down = self.is_down.load(Ordering::Acquire);
        let nth = self.begin(&key, is_down, stream.clone());
        if !is_down {
            pause(Duration::from_millis(CALL.start + nth as u64 % (CALL.end - CALL.start)));
        }
        // The call is over for the node when it has read the answer, so it ends here before that.
        self.calls.lock().unwrap().open.retain(|call| call.nth != nth);
        let status = if is_down { 503 } else { 200 };
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        (&**stream).write_all(answer.as_bytes())
    }

    fn begin(&self, key: &str, is_down: bool, stream: Arc<TcpStream>) -> usize {
        let mut calls = self.calls.lock().unwrap();
        calls.total += 1;
        calls.wasted += usize::from(is_down);
        let nth = calls.total;
        calls.open.push(Call { nth, key: key.to_owned(), stream });
        calls.open.retain(|call| !call.is_over());
        let of_key = calls.open.iter().filter(|call| call.key == key).count();
        calls.most_of_key = calls.most_of_key.max(of_key);
        calls.most = calls.most.max(calls.open.len());
        nth
    }

    fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Release);
    }

    fn total(&self) -> usize {
        self.calls.lock().unwrap().total
    }
}

/// A fleet whose queue `calls` has these settings, and jobs that call the receiver.
struct Scene {
    fleet: Fleet,
    random: Random,
    receiver: Arc<Receiver>,
    url: String,
}

impl Scene {
    fn start(place: Place, nodes: usize, settings: &Value) -> Self {
        let seed = seed();
        println!("limits on {} ({nodes} nodes): repeat with WINDLASS_TEST_SEED={seed}", place.name());
        let (receiver, url) = Receiver::start();
        let scene = Self { fleet: Fleet::start(place, nodes), random: Random::seeded(seed), receiver, url };
        scene.ask("PUT", "/api/v1/queues/calls", &settings.to_string());
        // A new limit reaches every node within two seconds.
        pause(Duration::from_secs(2));
        scene
    }

    /// Asks until a node answers.
    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut found = None;
        eventually(path, || {
            found = self.fleet.call(&self.random, method, path, body);
            found.is_some()
        });
        let answer = found.expect("a node has answered");
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.body);
        answer.json()
    }

    fn enqueue(&self, jobs: u64, keys: u64) {
        for first in (0..jobs).step_by(BATCH as usize) {
            let job = |n: u64| {
                let key = format!("k{}", n % keys);
                json!({"queue": "calls", "limitKey": key, "http": {"url": format!("{}/{key}", self.url)},
                    "idempotencyKey": format!("call {n}"), "retry": {"policy": "http", "maxRetries": 20}})
            };
            let jobs: Vec<Value> = (first..jobs.min(first + BATCH)).map(job).collect();
            self.ask("POST", "/api/v1/jobs/batch", &json!({ "jobs": jobs }).to_string());
        }
    }

    fn left(&self) -> u64 {
        let Some(answer) = self.fleet.call(&self.random, "GET", "/api/v1/queues", "") else { return u64::MAX - 1 };
        let queues = answer.json()["items"].as_array().cloned().unwrap_or_default();
        queues.iter().filter_map(|queue| queue["depth"].as_u64()).sum()
    }

    /// All jobs, which must have succeeded.
    fn finished(&self) -> Vec<Value> {
        let (mut jobs, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.ask("GET", &format!("/api/v1/jobs?queue=calls&limit=500{cursor}"), "");
            jobs.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return jobs,
            }
        }
    }
}

/// Faults hit the fleet while calls are made; never more calls than the limits allow are open at once.
fn limits_hold(scene: &Scene, jobs: u64, mut fault: impl FnMut(&Scene)) {
    scene.enqueue(jobs, KEYS);
    let faults = 6 * asked("CYCLES", 1);
    for nth in 1..=faults {
        // The fleet has recovered from the fault before.
        let wanted = jobs * nth / (faults + 2);
        progress("calls are made", || wanted.saturating_sub(scene.receiver.total() as u64));
        fault(scene);
    }
    progress("all calls are made", || scene.left());
    let found = scene.finished();
    let calls = scene.receiver.calls.lock().unwrap();
    println!(
        "{faults} faults, {} calls for {jobs} jobs, {} at once, {} of a key",
        calls.total, calls.most, calls.most_of_key
    );
    assert_eq!(found.len() as u64, jobs);
    assert!(found.iter().all(|job| job["state"] == "succeeded"), "every job succeeds in the end");
    assert!(calls.most <= MOST, "{} calls at once, and at most {MOST} are allowed", calls.most);
    assert!(calls.most_of_key <= MOST_OF_KEY, "{} calls of a key at once", calls.most_of_key);
    assert_eq!(calls.most, MOST, "the limit is used");
    drop(calls);
    scene.fleet.stop();
}

fn settings() -> Value {
    json!({"limits": {"concurrency": MOST, "perKey": {"concurrency": MOST_OF_KEY}}})
}

fn kills(place: Place) {
    let scene = Scene::start(place, 2, &settings());
    limits_hold(&scene, asked("LIMITED", 300), |scene| {
        let index = below(&scene.random, 2) as usize;
        scene.fleet.wait_serving(index);
        pause(millis(&scene.random, 0..300));
        scene.fleet.kill(index);
    });
}

#[test]
fn limits_hold_while_nodes_on_one_sqlite_file_are_killed() {
    kills(Place::sqlite());
}

#[test]
fn limits_hold_while_nodes_on_postgres_are_killed() {
    kills(Place::postgres());
}

#[test]
fn limits_hold_while_the_database_is_cut_off() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut place = Place::postgres();
    let proxy = runtime.block_on(Proxy::start(&place.direct, "COMMIT", Cut::BeforeServer));
    place.store.clone_from(&proxy.url);
    let scene = Scene::start(place, 2, &settings());
    limits_hold(&scene, asked("LIMITED", 300), |scene| {
        proxy.arm_for(if below(&scene.random, 2) == 0 { Cut::BeforeServer } else { Cut::AfterServer });
        pause(millis(&scene.random, 100..300));
        proxy.shut();
        pause(millis(&scene.random, 10..1500));
        proxy.open();
    });
}

/// The receiver goes down while jobs wait and comes back: few calls are wasted, and no job that waits is charged.
fn breaker(place: Place, nodes: usize) {
    // In the long version the outage lasts as long as the default settings are made for.
    let (jobs, outage) = (asked("BROKEN", 200), Duration::from_secs(asked("OUTAGE", 3)));
    let is_short = outage < Duration::from_secs(30);
    let breaker = if is_short { json!({"openFor": "1s", "maxOpenFor": "4s"}) } else { json!("on") };
    let scene = Scene::start(place, nodes, &json!({"limits": {"perKey": {"concurrency": 10}}, "breaker": breaker}));
    scene.receiver.set_down(true);
    scene.enqueue(jobs, 1);
    pause(outage);
    scene.receiver.set_down(false);
    progress("all calls are made", || scene.left());
    let found = scene.finished();
    let calls = scene.receiver.calls.lock().unwrap();
    let attempts: u64 = found.iter().filter_map(|job| job["attempt"].as_u64()).sum();
    let charged: u64 = found.iter().filter_map(|job| job["failures"].as_u64()).sum();
    println!("{jobs} jobs, down for {outage:?}: {} calls wasted, {charged} failures counted", calls.wasted);
    assert!(found.len() as u64 == jobs && found.iter().all(|job| job["state"] == "succeeded"));
    assert!(calls.wasted > 0 && calls.wasted <= WASTED, "{} calls reached a receiver that was down", calls.wasted);
    assert_eq!(attempts, calls.total as u64, "only jobs that called were charged an attempt");
    assert!(charged < calls.wasted as u64 || calls.wasted < 12, "probes count no failure: {charged} failures");
    assert!(calls.most <= 10, "{} calls at once", calls.most);
    drop(calls);
    scene.fleet.stop();
}

#[test]
fn a_breaker_spares_a_receiver_that_is_down_sqlite() {
    breaker(Place::sqlite(), 1);
}

#[test]
fn a_breaker_spares_a_receiver_that_is_down_postgres() {
    breaker(Place::postgres(), 2);
}
