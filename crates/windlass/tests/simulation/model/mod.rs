//! The model: nodes as steps, producers, operators and faults, one event after another in virtual time.

pub mod agenda;
pub mod handler;
pub mod message;
pub mod node;
pub mod operator;
pub mod producer;
pub mod sim;
pub mod steps;
pub mod swarm;
pub mod troubles;
