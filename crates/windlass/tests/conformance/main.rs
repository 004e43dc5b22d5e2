//! One suite, three stores: every test here runs unchanged as `memory::…`, `sqlite::…` and `postgres::…`, as
//! `pooled::…` behind a pgbouncer, as `shared::…` on a caller's own pool, and as `sealed::…` on SQLite with sealed
//! values. What all stores share is tested only here. Moving data has no statements that a pooler or a caller's pool
//! could treat differently, so it runs on the four stores alone. Nodes with different keys share a plain store, so that
//! runs on the other three.

#![allow(clippy::unwrap_used)] // A test may panic.
#![allow(clippy::duplicate_mod)] // The cases are compiled once per backend on purpose.

mod model;
mod world;

macro_rules! backend {
    ($name:ident $(, $more:ident)*) => {
        // The cases are in this folder, the same for every backend.
        #[path = "."]
        mod $name {
            async fn world() -> crate::world::World {
                crate::world::World::$name().await
            }

            mod attempts;
            mod cancel;
            mod claim;
            mod commit;
            mod enqueue;
            mod fairness;
            mod gates;
            mod keep;
            mod keys;
            mod kinds;
            mod lease;
            mod operations;
            mod parked;
            mod reads;
            mod replays;
            mod schedules;
            mod settings;
            mod slots;
            mod texts;
            mod webhooks;
            $(mod $more;)*
        }
    };
}

backend!(memory, sealing, transfer);
#[cfg(feature = "postgres")]
backend!(pooled);
#[cfg(feature = "postgres")]
backend!(postgres, sealing, transfer);
#[cfg(all(feature = "sealing", feature = "sqlite"))]
backend!(sealed, transfer);
#[cfg(feature = "deadpool")]
backend!(shared);
#[cfg(feature = "sqlite")]
backend!(sqlite, sealing, transfer);
