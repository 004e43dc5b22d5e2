//! Secrets and payloads do not leak: neither in the real server's logs, as text and as JSON, nor in the output of the
//! command line.

use crate::servers::Server;
use crate::world::World;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

const PAYLOAD: &str = "canary-payload-5d1f";
const HEADER: &str = "canary-header-77ab";
const KEY: &str = "canary-api-key-19c2";
/// `canary-webhook-secret-e4!` in the form of a webhook secret.
const SIGNING: &str = "Y2FuYXJ5LXdlYmhvb2stc2VjcmV0LWU0IQ==";
const PASSWORD: &str = "canary-password-3b8e";

/// A receiver that refuses this many requests; under `/echo` it sends the request back.
fn receiver(requests: usize) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !String::from_utf8_lossy(&request).contains('}') {
                match stream.read(&mut piece) {
                    Ok(length @ 1..) => request.extend_from_slice(&piece[..length]),
                    Ok(0) | Err(_) => break,
                }
            }
            let body = if request.starts_with(b"POST /echo") { request } else { b"no".to_vec() };
            let head = format!("HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    (url, answering)
}

/// Runs a server with canaries and this log format. Returns its log, and what the command line showed of its jobs.
fn lived(format: &str) -> (String, Vec<String>, String) {
    let mut world = World::empty();
    let made = world.json(&["token", "create", "canary", "--scope", "admin", "--store", &world.store()]);
    let token = made["token"].as_str().unwrap().to_owned();
    world = world.with("WINDLASS_TOKEN", &token);
    let (url, answering) = receiver(2);
    let flags = ["--log-format", format, "--log-level", "trace", "--allow-private-targets"];
    let server = Server::with_flags(&world, &flags);
    let mut said = Vec::new();
    for path in ["echo", "plain"] {
        let (url, secret) = (format!("{url}/{path}"), format!("whsec_{SIGNING}"));
        let (authorization, key) = (format!("Authorization: Bearer {HEADER}"), format!("X-Api-Key: {KEY}"));
        let payload = format!("{{\"card\":\"{PAYLOAD}\"}}");
        // The webhook goes to a closed port: its delivery fails too.
        let call =
            ["enqueue", "--url", &url, &payload, "--header", &authorization, "--header", &key, "--retry", "once"];
        let rest = ["--webhook", "http://127.0.0.1:1/", "--webhook-secret", &secret, "--wait", "--server", &server.url];
        let output = world.run("100", &[&call[..], &rest[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    }
    answering.join().unwrap();
    let jobs = world.json(&["jobs", "--server", &server.url]);
    // The first job's receiver sent its headers back. They are kept only in the job's history.
    let plain = jobs["items"].as_array().unwrap().iter().filter(|job| job["http"]["url"] == format!("{url}/plain"));
    let id = plain.map(|job| job["id"].to_string()).next().unwrap();
    for args in [
        vec!["jobs", "show", &id],
        vec!["jobs", "show", &id, "--json"],
        vec!["history", &id],
        vec!["history", &id, "--json"],
        vec!["dead", "show", &id, "--json"],
        vec!["dead", "groups", "--json"],
        vec!["jobs", "--json"],
        vec!["doctor"],
    ] {
        let output = world.run("100", &[args, vec!["--server", &server.url]].concat());
        said.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    (server.stop(), said, token)
}

#[test]
fn the_servers_logs_and_the_command_line_keep_secrets() {
    for format in ["text", "json"] {
        let (logs, said, token) = lived(format);
        assert!(logs.contains("(exhausted), archived") && logs.contains("request"), "{format}: {logs}");
        let secret = token.rsplit('_').next().unwrap();
        for canary in [PAYLOAD, HEADER, KEY, SIGNING, secret] {
            let line = logs.lines().find(|line| line.contains(canary));
            assert_eq!(line, None, "{canary} is in the {format} log");
        }
        for text in &said {
            for canary in [HEADER, KEY, SIGNING, secret] {
                assert!(!text.contains(canary), "{canary} is shown: {text}");
            }
        }
        assert!(said[0].contains(PAYLOAD), "a reader of a job sees its payload: {}", said[0]);
    }
}

#[test]
fn the_stores_password_is_not_reported() {
    let world = World::empty();
    let url = format!("postgres://me:{PASSWORD}@127.0.0.1:1/jobs");
    for args in [
        vec!["jobs"],
        vec!["doctor"],
        vec!["migrate"],
        vec!["config"],
        vec!["serve", "--no-wait"],
        vec!["token", "list"],
    ] {
        let output = world.run("100", &[args.clone(), vec!["--store", &url]].concat());
        let reported = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(reported.contains("postgres://me:***@127.0.0.1:"), "{args:?}: {reported}");
        assert!(!reported.contains(PASSWORD), "{args:?}: {reported}");
    }
}
