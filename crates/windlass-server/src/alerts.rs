//! Judges the alert rules now and then. Every node does; the store lets one of them make a change.

use tokio_util::sync::CancellationToken;
use windlass::Windlass;
use windlass::alert::{Operator, Rule, check};
use windlass_core::Millis;

/// How often the rules are judged.
const EVERY: Millis = Millis::from_secs(10);

#[derive(Debug)]
pub(crate) struct Alerter {
    windlass: Windlass,
    rules: Vec<Rule>,
    operators: Vec<Operator>,
}

impl Alerter {
    pub(crate) const fn new(windlass: Windlass, rules: Vec<Rule>, operators: Vec<Operator>) -> Self {
        Self { windlass, rules, operators }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.windlass.clock().sleep(EVERY) => {}
            }
            if let Err(error) = check(&**self.windlass.store(), &self.rules, &self.operators).await {
                tracing::warn!(%error, "the alert rules could not be judged");
            }
        }
    }
}
