//! Leases: what every worker does with claimed jobs, wherever their handlers run. `claim` takes jobs, `doubt` finds the
//! jobs of a claim of unknown outcome, `renew` extends leases, `transition` and `commit` write outcomes, `held` and
//! `held_leases` track what the worker of this process holds. `worker` and `remote` build on them.

pub(crate) mod claim;
pub(crate) mod commit;
pub(crate) mod doubt;
pub(crate) mod fair_share;
pub(crate) mod held;
pub(crate) mod held_leases;
pub mod limits;
pub(crate) mod outage;
pub(crate) mod reconnect;
pub(crate) mod renew;
pub(crate) mod store_contact;
pub mod text;
pub mod transition;
