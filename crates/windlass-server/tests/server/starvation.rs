//! Clients that hold connections and do not read: other clients are still served.

use super::node::{Node, Place};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Few slots, so that a test can use them all.
const SLOTS: usize = 32;

fn small_node() -> Node {
    Place::sqlite().serve(&["--max-connections", &SLOTS.to_string()])
}

fn connect(node: &Node) -> TcpStream {
    TcpStream::connect_timeout(&node.client.address, Duration::from_secs(20)).unwrap()
}

/// More connections than there are slots, each having sent `bytes`.
fn crowd(node: &Node, bytes: &[u8]) -> Vec<TcpStream> {
    let crowd: Vec<TcpStream> = (0..SLOTS + 8).map(|_| connect(node)).collect();
    for mut stream in &crowd {
        // The server may have already closed it.
        let _ = stream.write_all(bytes);
    }
    crowd
}

fn others_are_served(node: &Node) {
    for _ in 0..3 {
        assert_eq!(node.client.get("/healthz").status, 200);
        node.client.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(201);
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An HTTP/2 client that allows no byte of a body to be sent, and requests a page on each of `streams` streams.
fn closed_window(streams: u32) -> Vec<u8> {
    const SETTINGS: u8 = 4;
    const HEADERS: u8 = 1;
    const END_STREAM_AND_HEADERS: u8 = 5;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // INITIAL_WINDOW_SIZE = 0.
    bytes.extend(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
    // GET http://localhost/docs
    let mut header = vec![0x82, 0x86, 0x04, 5];
    header.extend(b"/docs");
    header.extend([0x01, 9]);
    header.extend(b"localhost");
    for stream in 0..streams {
        bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, 1 + 2 * stream, &header));
    }
    bytes
}

#[test]
fn http2_clients_that_open_no_window_do_not_keep_others_out() {
    let node = small_node();
    let _crowd = crowd(&node, &closed_window(1));
    others_are_served(&node);
}

#[test]
fn pipelined_requests_that_are_never_read_do_not_keep_others_out() {
    let node = small_node();
    let _crowd = crowd(&node, "GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100).as_bytes());
    others_are_served(&node);
}

#[test]
fn long_polls_do_not_keep_others_out() {
    let node = small_node();
    let body = r#"{"worker":"w","queues":["empty"],"max":1,"waitMs":30000}"#;
    let request = format!(
        "POST /api/v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut crowd = crowd(&node, request.as_bytes());
    others_are_served(&node);
    // The polls that had to free their slots got an ordinary, empty answer.
    let answered = crowd.iter_mut().any(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).unwrap_or(0);
        String::from_utf8_lossy(&answer[..length]).contains(r#"{"jobs":[]}"#)
    });
    assert!(answered, "no poll was answered early");
}

/// Resident memory of a process, in MiB.
fn memory(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn unread_pages_are_kept_once() {
    let node = Place::sqlite().serve(&[]);
    node.client.get("/docs");
    let before = memory(&node);
    let crowd: Vec<TcpStream> = (0..10).map(|_| connect(&node)).collect();
    for mut stream in &crowd {
        let _ = stream.write_all(&closed_window(256));
    }
    node.client.get("/docs");
    let after = memory(&node);
    assert!(after < before + 100, "memory grew from {before} to {after} MiB");
}
