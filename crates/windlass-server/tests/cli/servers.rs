//! The same verbs against a running server, and its live events.

use crate::world::World;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

/// A server on a port of its own; stopped by its id when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(world: &World) -> Self {
        let mut command = world.command("100", &["serve", "--listen", "127.0.0.1:0", "--log-format", "text"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map(|line| line.unwrap())
            .find_map(|line| {
                line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")).map(str::to_owned)
            })
            .expect("the server says where it listens");
        // Read on, so that the server can go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_and_its_store_tell_the_same() {
    let world = World::of_2026();
    let server = Server::start(&world);
    for args in [vec!["jobs"], vec!["history", "2"], vec!["dead"], vec!["dead", "groups"], vec!["jobs", "show", "3"]] {
        let remote = world.json(&[args.clone(), vec!["--server", &server.url]].concat());
        assert_eq!(remote, world.json(&args), "{args:?}");
    }
    let told = world.out("100", &["doctor", "--server", &server.url]);
    assert!(told.contains("ready, version"), "{told}");
}

#[test]
fn tail_follows_a_server() {
    let world = World::empty();
    let server = Server::start(&world);
    let mut tail = world.command("100", &["tail", "--count", "2", "--json", "--server", &server.url]);
    let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    // Whether it listens already nobody can see from outside: jobs go in until it has told of two.
    let feeding = std::thread::scope(|scope| {
        let ended = scope.spawn(|| {
            let told: Vec<String> = lines.by_ref().map(|line| line.unwrap()).collect();
            told
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
fn tail_follows_a_bare_store() {
    let world = World::empty();
    world.out("100", &["migrate"]);
    let mut tail = world.command("100", &["tail", "--count", "1"]);
    let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = BufReader::new(tail.stdout.take().unwrap());
    let told = std::thread::scope(|scope| {
        let ended = scope.spawn(|| out.lines().map(|line| line.unwrap()).collect::<Vec<_>>());
        while !ended.is_finished() {
            world.out("100", &["enqueue", "email", "--queue", "mail"]);
        }
        ended.join().unwrap()
    });
    assert!(tail.wait().unwrap().success());
    assert!(told[0].contains("queued") && told[0].contains("mail/email"), "{told:?}");
}
