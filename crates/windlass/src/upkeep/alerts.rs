//! Alerts: every node judges the rules; the store sees to it that one of them makes each change.

use crate::alert::{Alerts, check};
use crate::windlass::Windlass;

pub(super) async fn judge(windlass: &Windlass, alerts: &Alerts) {
    let result = check(&**windlass.store(), &alerts.rules, &alerts.operators).await;
    windlass.heard(&result);
    if let Err(error) = result {
        tracing::warn!(%error, "alert rules could not be judged");
    }
}
