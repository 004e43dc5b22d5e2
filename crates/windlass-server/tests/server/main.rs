//! The real binary over real sockets, on both stores. Postgres comes from `WINDLASS_TEST_POSTGRES`; without it those
//! tests fail.
#![allow(clippy::unwrap_used)] // All of this is test code.

mod alerts;
mod client;
mod damage;
mod deliveries;
mod families;
mod faults;
mod node;
mod open_door;
mod schedules;
mod starvation;
mod telemetry;
mod upgrade;
mod waiting;

/// One test per store.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(&$crate::node::Place::sqlite()); })+
        }
        mod postgres {
            $(#[test] fn $name() { super::$name(&$crate::node::Place::postgres()); })+
        }
    };
}
pub(crate) use on_both_stores;
