//! The receiver of calls and webhooks. It is slow enough for faults to hit calls in progress, and records everything.

use crate::checks::history::History;
use crate::client::read_message;
use crate::tools::pause;
use serde_json::Value;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long every fourth call takes.
const SLOW: Duration = Duration::from_millis(30);

/// Starts a receiver and returns its base URL. It runs as long as the process.
pub fn receive(history: Arc<History>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    let url = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let history = history.clone();
            std::thread::spawn(move || drop(serve(&stream, &history)));
        }
    });
    url
}

fn serve(stream: &TcpStream, history: &History) -> std::io::Result<()> {
    let (head, body) = read_message(&mut BufReader::new(stream))?;
    let status = if head.starts_with("POST /hook") { hook(&head, &body, history) } else { call(&head, &body, history) };
    let mut stream = stream;
    stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes())
}

fn call(head: &str, body: &str, history: &History) -> u16 {
    let number = |name| header(head, name).and_then(|text| text.parse::<i64>().ok());
    let (Some(id), Some(attempt)) = (number("windlass-job-id"), number("windlass-attempt")) else { return 400 };
    history.started([(id, attempt as u32)]);
    if id % 4 == 0 {
        pause(SLOW);
    }
    let payload: Value = serde_json::from_str(body).unwrap_or_default();
    if payload["failsOnce"] == true && attempt == 1 { 503 } else { 200 }
}

fn hook(head: &str, body: &str, history: &History) -> u16 {
    let Some(id) = header(head, "webhook-id") else { return 400 };
    history.hooked(id, body);
    // The first attempt of some is refused, so that there is a second one.
    let is_first = history.record().hooks.get(id).is_some_and(|(_, count)| *count == 1);
    if is_first && body.len().is_multiple_of(3) { 503 } else { 204 }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let is_it = |line: &&'a str| line.split(':').next().is_some_and(|n| n.eq_ignore_ascii_case(name));
    head.lines().find(is_it).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
}
