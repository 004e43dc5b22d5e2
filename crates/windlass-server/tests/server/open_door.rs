//! Access to a server: listeners, tokens, half-open connections.

use super::node::{HANG, Place, eventually};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

crate::on_both_stores!(tokens_grant_and_end_access, workers_of_one_tenant_leave_the_jobs_of_others_alone,);

fn tokens_grant_and_end_access(place: &Place) {
    let refused = place.command(&["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    let reported = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && reported.contains("windlass token create"), "{reported}");

    let create = |args: &[&str]| {
        let made = place.command(&["token", "create", "test", "--json"]).args(args).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        serde_json::from_slice::<serde_json::Value>(&made.stdout).unwrap()
    };
    let (node, other) = (place.serve(&[]), place.serve(&[]));
    for open in [&node, &other] {
        open.client.get("/api/v1/jobs").is(200);
    }
    let made = create(&["--scope", "read", "--tenant", "acme"]);
    for open in [&node, &other] {
        eventually("calls without a token are refused", || open.client.get("/api/v1/jobs").status == 401);
    }
    let mut reader = node.client.clone();
    reader.token = Some(made["token"].as_str().unwrap().to_owned());
    reader.get("/api/v1/jobs").is(200);
    reader.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(403);
    let revoked = place.command(&["token", "revoke", made["id"].as_str().unwrap()]).output().unwrap();
    assert!(revoked.status.success());
    eventually("the token is refused", || reader.get("/api/v1/jobs").status == 401);
    let list = place.command(&["token", "list"]).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("acme") && !list.contains(made["token"].as_str().unwrap()), "{list}");
}

fn workers_of_one_tenant_leave_the_jobs_of_others_alone(place: &Place) {
    let token = |scope: &str, tenant: &str| {
        let made = place.command(&["token", "create", "t", "--json", "--scope", scope, "--tenant", tenant]).output();
        let made: serde_json::Value = serde_json::from_slice(&made.unwrap().stdout).unwrap();
        made["token"].as_str().unwrap().to_owned()
    };
    let tokens = [("enqueue", "acme"), ("work", "acme"), ("work", "beta")].map(|(scope, tenant)| token(scope, tenant));
    let node = place.serve(&[]);
    let [producer, own, foreign] = tokens.map(|token| {
        let mut client = node.client.clone();
        client.token = Some(token);
        client
    });
    producer.post("/api/v1/jobs", r#"{"kind":"a","payload":{"secret":1}}"#).is(201);
    let take = r#"{"worker":"w","queues":["default"],"max":5}"#;
    assert_eq!(foreign.post("/api/v1/leases", take).is(200)["jobs"], serde_json::json!([]));
    let job = own.post("/api/v1/leases", take).is(200)["jobs"][0].clone();
    let result = serde_json::json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]});
    let results = serde_json::json!({"worker": "w", "results": [result]}).to_string();
    for action in ["extend", "complete", "fail"] {
        let answer = foreign.post(&format!("/api/v1/leases/{action}"), &results).is(200);
        assert_eq!(answer["results"][0]["result"], "stale", "{action}");
    }
    assert_eq!(own.post("/api/v1/leases/complete", &results).is(200)["results"][0]["result"], "ok");
}

#[test]
fn two_thousand_silent_connections_do_not_keep_a_client_out() {
    let node = Place::sqlite().serve(&[]);
    let mut silent: Vec<TcpStream> = Vec::new();
    for n in 0..2000 {
        let mut stream = TcpStream::connect_timeout(&node.client.address, HANG).unwrap();
        if n % 2 == 0 {
            // Some begin a header and never complete it.
            stream.write_all(b"GET /api/v1/jobs HTTP/1.1\r\nHost: lo").unwrap();
        }
        silent.push(stream);
    }
    for _ in 0..5 {
        node.client.get("/readyz").is(200);
        node.client.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(201);
    }
    // The first of them is closed by now, or will be soon: a header must be complete within ten seconds.
    silent[0].set_read_timeout(Some(HANG)).unwrap();
    let mut rest = Vec::new();
    let ended = silent[0].read_to_end(&mut rest);
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
}

#[test]
fn input_that_is_not_http_is_answered_or_closed() {
    let node = Place::sqlite().serve(&[]);
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxx",
    ] {
        let mut stream = TcpStream::connect(node.client.address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || text.starts_with("HTTP/1.1 4") || answer[3] <= 7, "{bytes:?}: {text}");
    }
    let long = format!("/{}", "x".repeat(200_000));
    assert!(node.client.send("GET", &long, "").is_ok_and(|answer| (400..500).contains(&answer.status)));
    node.client.get("/healthz").is(200);
}
