//! The nodes of a run, each in its seat: killed, stopped and started again while clients go on calling whoever is
//! there.

use crate::client::{Answer, Client};
use crate::setup::node::Node;
use crate::setup::place::Place;
use crate::tools::{HANG, below, eventually};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// Flags of every node: short leases, so that what is lost is found soon; calls may reach the receiver on this machine.
const FLAGS: &[&str] = &[
    "--listen",
    "127.0.0.1:0",
    "--log-format",
    "json",
    "--quiet-jobs",
    "--allow-private-targets",
    "--lease",
    "5s",
    "--grace",
    "10s",
];

#[derive(Debug)]
pub struct Fleet {
    pub place: Place,
    connections: Vec<Mutex<Connection>>,
    /// From each start after a kill to the first answer that did something.
    recoveries: Mutex<Vec<Duration>>,
    panics: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Connection {
    node: Node,
    since: Stopwatch,
    /// Whether it is yet to do something after it was killed.
    recovers: bool,
}

impl Fleet {
    pub fn start(place: Place, nodes: usize) -> Self {
        let connection = |index| {
            Mutex::new(Connection {
                node: Node::start(command(&place, index)),
                since: Stopwatch::start(),
                recovers: false,
            })
        };
        let connections = (0..nodes).map(connection).collect();
        let fleet = Self { place, connections, recoveries: Mutex::default(), panics: Mutex::default() };
        (0..nodes).for_each(|index| fleet.wait_serving(index));
        fleet
    }

    pub fn len(&self) -> usize {
        self.connections.len()
    }

    fn connection(&self, index: usize) -> MutexGuard<'_, Connection> {
        self.connections[index].lock().unwrap()
    }

    /// Calls any node: its answer, or nothing if it is not there, went away or can do nothing now (5xx).
    pub fn call(&self, random: &Random, method: &str, path: &str, body: &str) -> Option<Answer> {
        let index = below(random, self.len() as u64) as usize;
        let address = self.connection(index).node.address()?;
        let answer = Client { address, token: None }.send(method, path, body).ok()?;
        assert!(answer.status < 500 || answer.status == 503, "{method} {path}: {} {}", answer.status, answer.body);
        if answer.status == 503 {
            return None;
        }
        let mut connection = self.connection(index);
        // Only an answer of the process that sits there now tells that it is back.
        if connection.recovers && connection.node.address() == Some(address) {
            connection.recovers = false;
            self.recoveries.lock().unwrap().push(connection.since.elapsed());
        }
        Some(answer)
    }

    /// Kills a node and starts it again at once.
    pub fn kill(&self, index: usize) {
        let mut connection = self.connection(index);
        connection.node.kill();
        self.restart(&mut connection, index);
        connection.recovers = true;
    }

    /// Asks a node to stop, waits until it has, and starts another in its seat.
    pub fn replace(&self, index: usize) -> ExitStatus {
        self.connection(index).node.terminate();
        let mut status = None;
        eventually("a node that was asked to stop ends", || {
            status = self.connection(index).node.ended();
            status.is_some()
        });
        self.restart(&mut self.connection(index), index);
        self.wait_serving(index);
        status.expect("it has ended")
    }

    fn restart(&self, connection: &mut Connection, index: usize) {
        self.panics.lock().unwrap().extend(connection.node.panics());
        connection.node = Node::start(command(&self.place, index));
        connection.since = Stopwatch::start();
    }

    /// Waits until a node answers; fails if it ends instead.
    pub fn wait_serving(&self, index: usize) {
        eventually("a node serves", || {
            let mut connection = self.connection(index);
            let ended = connection.node.ended();
            assert!(ended.is_none(), "the node ended ({ended:?}):\n{}", connection.node.log());
            connection.node.address().is_some()
        });
    }

    /// Fails if a node is not the process it was.
    pub fn process_ids(&self) -> Vec<u32> {
        (0..self.len()).map(|index| self.connection(index).node.id()).collect()
    }

    pub fn recoveries(&self) -> Vec<Duration> {
        let mut all = self.recoveries.lock().unwrap().clone();
        all.sort_unstable();
        all
    }

    /// Stops all nodes; they must end well.
    pub fn stop(&self) {
        for index in 0..self.len() {
            self.connection(index).node.terminate();
        }
        for index in 0..self.len() {
            let mut connection = self.connection(index);
            let watch = Stopwatch::start();
            let status = loop {
                if let Some(status) = connection.node.ended() {
                    break status;
                }
                assert!(watch.elapsed() < HANG, "a node does not stop:\n{}", connection.node.log());
                std::thread::yield_now();
            };
            assert_eq!(status.code(), Some(0), "{}", connection.node.log());
            self.panics.lock().unwrap().extend(connection.node.panics());
        }
        assert_eq!(*self.panics.lock().unwrap(), Vec::<String>::new(), "no node panics");
    }
}

fn command(place: &Place, index: usize) -> std::process::Command {
    let mut command = place.node();
    command.args(FLAGS).args(["--worker", &format!("node{index}")]);
    command
}
