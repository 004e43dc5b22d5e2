//! The nodes of a run, each in a numbered slot. They are killed, stopped and started again while clients keep calling
//! the running ones.

use crate::client::{Answer, Client};
use crate::setup::node::Node;
use crate::setup::place::Place;
use crate::tools::{HANG, below, eventually};
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use windlass::Random;
use windlass::low_level::clock::Stopwatch;

/// Flags of every node. Leases are short, so that lost jobs are found soon. Calls may reach the receiver on this
/// machine.
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
    slots: Vec<Mutex<Slot>>,
    /// The time from each start after a kill to the first useful answer.
    recoveries: Mutex<Vec<Duration>>,
    panics: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Slot {
    node: Node,
    since: Stopwatch,
    /// Whether it has not answered since it was killed.
    recovers: bool,
}

impl Fleet {
    pub fn start(place: Place, nodes: usize) -> Self {
        let slot = |index| {
            Mutex::new(Slot { node: Node::start(command(&place, index)), since: Stopwatch::start(), recovers: false })
        };
        let slots = (0..nodes).map(slot).collect();
        let fleet = Self { place, slots, recoveries: Mutex::default(), panics: Mutex::default() };
        (0..nodes).for_each(|index| fleet.wait_serving(index));
        fleet
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, index: usize) -> MutexGuard<'_, Slot> {
        self.slots[index].lock().unwrap()
    }

    /// Calls any node. `None` if the node does not run, fails during the call or answers 503.
    pub fn call(&self, random: &Random, method: &str, path: &str, body: &str) -> Option<Answer> {
        let index = below(random, self.len() as u64) as usize;
        let address = self.slot(index).node.address()?;
        let answer = Client { address, token: None }.send(method, path, body).ok()?;
        assert!(answer.status < 500 || answer.status == 503, "{method} {path}: {} {}", answer.status, answer.body);
        if answer.status == 503 {
            return None;
        }
        let mut slot = self.slot(index);
        // Only an answer of the current process shows that the node has recovered.
        if slot.recovers && slot.node.address() == Some(address) {
            slot.recovers = false;
            self.recoveries.lock().unwrap().push(slot.since.elapsed());
        }
        Some(answer)
    }

    /// Kills a node and starts it again at once.
    pub fn kill(&self, index: usize) {
        let mut slot = self.slot(index);
        slot.node.kill();
        self.restart(&mut slot, index);
        slot.recovers = true;
    }

    /// Asks a node to stop, waits until it has stopped, and starts another in its slot.
    pub fn replace(&self, index: usize) -> ExitStatus {
        self.slot(index).node.terminate();
        let mut status = None;
        eventually("a node stops when asked", || {
            status = self.slot(index).node.ended();
            status.is_some()
        });
        self.restart(&mut self.slot(index), index);
        self.wait_serving(index);
        status.expect("it has ended")
    }

    fn restart(&self, slot: &mut Slot, index: usize) {
        self.panics.lock().unwrap().extend(slot.node.panics());
        slot.node = Node::start(command(&self.place, index));
        slot.since = Stopwatch::start();
    }

    /// Waits until a node answers; fails if it ends instead.
    pub fn wait_serving(&self, index: usize) {
        eventually("a node serves", || {
            let mut slot = self.slot(index);
            let ended = slot.node.ended();
            assert!(ended.is_none(), "the node ended ({ended:?}):\n{}", slot.node.log());
            slot.node.address().is_some()
        });
    }

    /// Where a node listens.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.slot(index).node.address().expect("it serves")
    }

    /// The process ids of all nodes, to check that none was restarted.
    pub fn process_ids(&self) -> Vec<u32> {
        (0..self.len()).map(|index| self.slot(index).node.id()).collect()
    }

    pub fn recoveries(&self) -> Vec<Duration> {
        let mut all = self.recoveries.lock().unwrap().clone();
        all.sort_unstable();
        all
    }

    /// Stops all nodes; they must exit with success and without panics.
    pub fn stop(&self) {
        for index in 0..self.len() {
            self.slot(index).node.terminate();
        }
        for index in 0..self.len() {
            let mut slot = self.slot(index);
            let watch = Stopwatch::start();
            let status = loop {
                if let Some(status) = slot.node.ended() {
                    break status;
                }
                assert!(watch.elapsed() < HANG, "a node does not stop:\n{}", slot.node.log());
                std::thread::yield_now();
            };
            assert_eq!(status.code(), Some(0), "{}", slot.node.log());
            self.panics.lock().unwrap().extend(slot.node.panics());
        }
        assert_eq!(*self.panics.lock().unwrap(), Vec::<String>::new(), "no node panics");
    }
}

fn command(place: &Place, index: usize) -> std::process::Command {
    let mut command = place.node();
    command.args(FLAGS).args(["--worker", &format!("node{index}")]);
    command
}
