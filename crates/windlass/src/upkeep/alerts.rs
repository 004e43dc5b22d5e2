//! Alerts: every node judges the rules. The store ensures that only one of them makes each change.

use crate::alert::Judge;
use crate::client::windlass::Windlass;
use crate::leases::outage::store_failed;

pub(super) async fn judge(windlass: &Windlass, judge: &mut Judge) {
    let result = judge.look(&**windlass.store()).await;
    windlass.inner().record_contact(&result);
    if let Err(error) = result {
        store_failed!(error, "alert rules could not be judged");
    }
}
