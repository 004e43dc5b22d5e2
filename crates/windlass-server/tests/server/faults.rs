//! Servers that are killed, stopped, and stopped twice.

use super::node::{Place, eventually};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

crate::on_both_stores!(a_killed_server_loses_no_acknowledged_job, a_stopped_server_drains_and_exits_with_success);

fn a_killed_server_loses_no_acknowledged_job(place: &Place) {
    let mut node = place.serve(&[]);
    let acknowledged = Mutex::new(Vec::new());
    let killed = AtomicBool::new(false);
    let client = node.client.clone();
    std::thread::scope(|threads| {
        for thread in 0..8 {
            let (client, acknowledged, killed) = (&client, &acknowledged, &killed);
            threads.spawn(move || {
                for n in 0.. {
                    let body = format!(r#"{{"kind":"a","payload":"{thread}-{n}"}}"#);
                    match client.send("POST", "/api/v1/jobs", &body) {
                        Ok(answer) if answer.status == 201 => {
                            acknowledged.lock().unwrap().push(answer.json()["id"].as_i64().unwrap());
                        }
                        Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.body),
                        Err(_) if killed.load(Ordering::Acquire) => return,
                        Err(_) => {}
                    }
                }
            });
        }
        eventually("some jobs are stored", || acknowledged.lock().unwrap().len() > 200);
        killed.store(true, Ordering::Release);
        node.kill();
    });
    let node = place.serve(&[]);
    for id in acknowledged.into_inner().unwrap() {
        assert_eq!(node.client.state(id), "queued", "job {id} was acknowledged");
    }
}

fn a_stopped_server_drains_and_exits_with_success(place: &Place) {
    let mut node = place.serve(&["--grace", "5s"]);
    let client = node.client.clone();
    std::thread::scope(|threads| {
        // The poll of a worker that waits up to a minute is answered at once.
        let waiting = threads.spawn(|| client.post("/api/v1/leases", r#"{"worker":"w","waitMs":60000}"#));
        let silent = TcpStream::connect(client.address).unwrap();
        let mut stream = TcpStream::connect(client.address).unwrap();
        stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        eventually("the worker waits", || client.get("/api/v1/workers").body.contains("\"worker\":\"w\""));
        node.signal("-TERM");
        waiting.join().unwrap().is(503);
        drop(silent);
    });
    assert_eq!(node.ended().code(), Some(0));
    let mut stuck = place.serve(&["--grace", "1h"]);
    let mut stream = TcpStream::connect(stuck.client.address).unwrap();
    stream.write_all(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{").unwrap();
    stuck.client.get("/healthz").is(200);
    stuck.signal("-TERM");
    eventually("the listener is closed", || TcpStream::connect(stuck.client.address).is_err());
    stuck.signal("-TERM");
    assert_eq!(stuck.ended().code(), Some(130), "the second signal stops at once");
}
