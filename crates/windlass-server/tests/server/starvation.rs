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

/// A connection from another address of this machine.
fn connect_from(node: &Node, source: [u8; 4]) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        socket.connect(node.client.address).await.unwrap()
    });
    let stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

/// The first line of the answer to a request.
fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default().to_owned()
}

/// Sends a byte of a body on every connection again and again, so that all of them make progress, until it is dropped.
struct Busy {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn keep(mut crowd: Vec<TcpStream>) -> Self {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                for stream in &mut crowd {
                    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
                    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
                    let _ = stream.read(&mut [0; 8192]);
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn busy_connections_of_one_address_leave_room_for_other_addresses() {
    let node = small_node();
    let crowd: Vec<TcpStream> = (0..SLOTS + 8).map(|_| connect_from(&node, [127, 0, 0, 2])).collect();
    let _busy = Busy::keep(crowd);
    others_are_served(&node);
}

#[test]
fn health_checks_get_in_when_every_slot_is_busy() {
    let node = Place::sqlite().serve(&["--max-connections", "4"]);
    let crowd = [2, 2, 3, 3].map(|last| connect_from(&node, [127, 0, 0, last]));
    let _busy = Busy::keep(crowd.into());
    for path in ["/healthz", "/readyz"] {
        let mut stream = connect_from(&node, [127, 0, 0, 9]);
        let answer = ask(&mut stream, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(answer, "HTTP/1.1 200 OK", "{path}");
    }
}

#[test]
fn two_hosts_and_strange_ones_are_refused() {
    let node = Place::sqlite().serve(&[]);
    for (hosts, status) in [
        ("Host: localhost\r\n", "200 OK"),
        ("Host: [::1]:9463\r\n", "200 OK"),
        ("Host: localhost\r\nHost: evil.example\r\n", "403 Forbidden"),
        ("Host: [::1].evil.example\r\n", "403 Forbidden"),
        ("Host: [::1]:80.evil.example\r\n", "403 Forbidden"),
        ("Host: evil.example\r\n", "403 Forbidden"),
    ] {
        let answer = ask(&mut connect(&node), &format!("GET /api/v1/stats HTTP/1.1\r\n{hosts}\r\n"));
        assert_eq!(answer, format!("HTTP/1.1 {status}"), "{hosts}");
    }
}

#[test]
fn a_password_in_the_arguments_does_not_stay_in_the_list_of_processes() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me:s3cret@{}/jobs", silent.local_addr().unwrap());
    let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["serve", "--listen", "127.0.0.1:0", "--store", &url])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // It connects after it has started again, with the password it was given.
    silent.set_nonblocking(true).unwrap();
    let mut stream = loop {
        if let Ok((stream, _)) = silent.accept() {
            break stream;
        }
        assert!(process.try_wait().unwrap().is_none(), "it stopped before it connected");
        std::thread::yield_now();
    };
    stream.set_nonblocking(false).unwrap();
    let shown = std::fs::read_to_string(format!("/proc/{}/cmdline", process.id())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let asked = stream.read(&mut [0; 256]);
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(shown.contains("postgres://me:***@") && !shown.contains("s3cret"), "{shown}");
    assert!(asked.is_ok_and(|length| length > 0), "it asked the server");
}
