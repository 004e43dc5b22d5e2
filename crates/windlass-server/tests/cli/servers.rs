//! The same commands against a running server, and its live events.

use crate::world::World;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

/// A server on its own port; stopped by its process id when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    log: Option<JoinHandle<String>>,
}

impl Server {
    pub(crate) fn start(world: &World) -> Self {
        Self::with_flags(world, &["--log-format", "text"])
    }

    pub(crate) fn with_flags(world: &World, flags: &[&str]) -> Self {
        let mut command = world.command("100", &[&["serve", "--listen", "127.0.0.1:0"], flags].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(|line| line.unwrap());
        let mut log = String::new();
        let url = lines
            .by_ref()
            .inspect(|line| log.push_str(&format!("{line}\n")))
            .find_map(|line| line.split_once("serves http://").map(|(_, rest)| rest.to_owned()))
            .expect("the server says where it listens");
        let address = url.split(|c: char| !c.is_ascii_digit() && !".:".contains(c)).next().unwrap().to_owned();
        // Keep reading, so that the server can keep writing.
        let log = std::thread::spawn(move || lines.fold(log, |log, line| log + &line + "\n"));
        Self { child, url: format!("http://{address}"), log: Some(log) }
    }

    /// Asks it to stop, as an operator would, and returns its log.
    pub(crate) fn stop(mut self) -> String {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success(), "it stops without an error");
        self.log.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_was_stopped_leaves_one_file() {
    let world = World::empty();
    let server = Server::start(&world);
    world.out("100", &["enqueue", "email", "--server", &server.url]);
    assert!(server.stop().contains("stopped"));
    world.out("100", &["jobs"]);
    let mut left: Vec<_> = world.files();
    left.retain(|name| !name.ends_with(".lock"));
    assert_eq!(left, ["jobs.db"]);
}

#[test]
fn a_new_token_works_at_once() {
    let world = World::empty();
    let server = Server::start(&world);
    for name in ["one", "two", "three"] {
        let made = world.json(&["token", "create", name, "--scope", "admin"]);
        world.out("100", &["jobs", "--server", &server.url, "--token", made["token"].as_str().unwrap()]);
    }
    let output = world.run("100", &["jobs", "--server", &server.url, "--token", "wl_0123_4567"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_answer_that_cannot_be_read_is_an_error_and_no_empty_list() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = r#"{"items":[{"id":1,"payload":1e400}],"next":null}"#;
    let server = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut request = BufReader::new(peer.try_clone().unwrap()).lines();
        assert!(request.any(|line| line.unwrap().is_empty()), "the head of a request");
        write!(peer, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).unwrap();
    });
    let refusal = World::empty().refusal(1, &["jobs", "--server", &url]);
    assert!(refusal.contains("cannot be read: number out of range"), "{refusal}");
    server.join().unwrap();
}

#[test]
fn a_server_and_its_store_show_the_same() {
    let world = World::of_2026();
    let server = Server::start(&world);
    for args in [vec!["jobs"], vec!["history", "2"], vec!["dead"], vec!["dead", "groups"], vec!["jobs", "show", "3"]] {
        let remote = world.json(&[args.clone(), vec!["--server", &server.url]].concat());
        assert_eq!(remote, world.json(&args), "{args:?}");
    }
    let reported = world.out("100", &["doctor", "--server", &server.url]);
    assert!(reported.contains("ready, version"), "{reported}");
}

#[test]
fn tail_follows_a_server() {
    let world = World::empty();
    let server = Server::start(&world);
    let mut tail = world.command("100", &["tail", "--count", "2", "--json", "--server", &server.url]);
    let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    // It is not visible from outside whether `tail` is already connected, so jobs are enqueued until it has shown two.
    let feeding = std::thread::scope(|scope| {
        let ended = scope.spawn(|| {
            let reported: Vec<String> = lines.by_ref().map(|line| line.unwrap()).collect();
            reported
        });
        while !ended.is_finished() {
            world.out("100", &["enqueue", "email", "--server", &server.url]);
        }
        ended.join().unwrap()
    });
    assert!(tail.wait().unwrap().success());
    assert_eq!(feeding.len(), 2);
    let event: serde_json::Value = serde_json::from_str(&feeding[0]).unwrap();
    assert_eq!((&event["event"], &event["kind"]), (&"queued".into(), &"email".into()));
}

#[test]
fn tail_follows_a_store_without_a_server() {
    let world = World::empty();
    world.out("100", &["migrate"]);
    let mut tail = world.command("100", &["tail", "--count", "1"]);
    let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = BufReader::new(tail.stdout.take().unwrap());
    let reported = std::thread::scope(|scope| {
        let ended = scope.spawn(|| out.lines().map(|line| line.unwrap()).collect::<Vec<_>>());
        while !ended.is_finished() {
            world.out("100", &["enqueue", "email", "--queue", "mail"]);
        }
        ended.join().unwrap()
    });
    assert!(tail.wait().unwrap().success());
    assert!(reported[0].contains("queued") && reported[0].contains("mail/email"), "{reported:?}");
}
