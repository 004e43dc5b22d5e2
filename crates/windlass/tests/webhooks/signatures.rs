//! Our signatures, verified by the reference package of the Standard Webhooks scheme: independent of our own verifier.

use crate::receiver::{Received, Receiver, Reply};
use crate::world::{Do, SECRET, act, caller};
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use windlass::Random;
use windlass::client::{SecretOf, WebhookDraft};
use windlass::core::job::Tenant;
use windlass::core::policy::Partial;
use windlass::low_level::stores::Options;
use windlass::low_level::stores::memory::MemoryStore;
use windlass::testing::TestKit;
use windlass::{Millis, State};

/// Where `scripts/need-python-packages` puts them.
const PACKAGES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/../python");

/// What the reference package says about a request: `ok`, or why not.
fn judged(request: &Received, secret: &str, body: &[u8]) -> String {
    let packages = Path::new(PACKAGES);
    assert!(
        packages.join("standardwebhooks").is_dir(),
        "the Python package standardwebhooks is missing from {PACKAGES}: run scripts/need-python-packages"
    );
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: serde_json::Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), request.header(name).unwrap().into())).collect();
    let input = json!({"secret": secret, "headers": headers, "body": String::from_utf8(body.to_vec()).unwrap()});
    let mut python = Command::new("python3")
        .arg("-c")
        .arg(include_str!("verify.py"))
        .env("PYTHONPATH", packages)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is missing: run scripts/need-python-packages");
    python.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_package_accepts_what_we_send_and_nothing_else() {
    let receiver = Receiver::always(Reply::status(200)).await;
    // The machine's clock: the package refuses signatures that are too old or too new.
    let store = MemoryStore::new(Options::default());
    let clock = windlass::low_level::stores::Registry::clock(&*store).clone();
    let kit = TestKit::with_store(store, Random::seeded(7)).handle(act).http(caller(&clock));
    let webhook = WebhookDraft {
        url: receiver.url(),
        events: vec![State::Succeeded],
        secret: Some(SECRET.into()),
        policy: Partial::default(),
    };
    kit.windlass().enqueue(Do::Succeed).webhook_with(webhook).await.unwrap();
    assert_eq!(kit.run_due().await, 2, "the job and its delivery");
    let request = receiver.requests().remove(0);
    assert_eq!(judged(&request, SECRET, &request.body), "ok");
    assert_ne!(judged(&request, SECRET, b"{}"), "ok", "another body");
    assert_ne!(judged(&request, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", &request.body), "ok", "another secret");
}

/// One key of the test's receivers.
const NEW: &str = "whsec_bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldw==";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_of_either_secret_accepts_calls_during_the_overlap() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let store = MemoryStore::new(Options::default());
    let clock = windlass::low_level::stores::Registry::clock(&*store).clone();
    let kit = TestKit::with_store(store, Random::seeded(7)).handle(act).http(caller(&clock));
    let (windlass, tenant) = (kit.windlass(), Tenant::default());
    let webhook = WebhookDraft {
        url: receiver.url(),
        events: vec![State::Succeeded],
        secret: Some(SECRET.into()),
        policy: Partial::default(),
    };
    let waiting = windlass.enqueue(Do::Succeed).webhook_with(webhook.clone()).await.unwrap();
    // The job was stored before its secret was replaced, and follows.
    let of = SecretOf::Job(waiting);
    windlass.tenants().rotate_secret(&tenant, of, Some(NEW), None).await.unwrap();
    assert_eq!(kit.run_due().await, 2, "the job and its delivery");
    let request = receiver.requests().remove(0);
    assert_eq!(request.header("webhook-signature").unwrap().split(' ').count(), 2);
    assert_eq!(judged(&request, SECRET, &request.body), "ok");
    assert_eq!(judged(&request, NEW, &request.body), "ok");

    // An overlap of no length: only the newest secret signs, also for jobs that name the first one.
    let of = SecretOf::Text(NEW.into());
    let newest = windlass.tenants().rotate_secret(&tenant, of, None, Some(Millis::ZERO)).await.unwrap().secret;
    windlass.enqueue(Do::Succeed).webhook_with(webhook).await.unwrap();
    assert_eq!(kit.run_due().await, 2);
    let request = receiver.requests().pop().unwrap();
    assert_eq!(judged(&request, &newest, &request.body), "ok");
    assert_ne!(judged(&request, NEW, &request.body), "ok", "its overlap has ended");
    assert_eq!(judged(&request, SECRET, &request.body), "ok", "its overlap has not ended");
}
