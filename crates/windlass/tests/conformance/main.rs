//! One suite, three stores: every test here runs unchanged as `memory::…`, `sqlite::…` and `postgres::…`, and as `pooled::…`
//! behind a pgbouncer. Behaviour of stores is tested here and nowhere for one backend alone.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.
#![allow(clippy::duplicate_mod)] // The cases are compiled once per backend on purpose.

mod model;
mod world;

macro_rules! backend {
    ($name:ident) => {
        // The cases lie beside this file, for every backend alike.
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
            mod keep;
            mod keys;
            mod lease;
            mod operations;
            mod reads;
            mod schedules;
            mod webhooks;
        }
    };
}

backend!(memory);
#[cfg(feature = "postgres")]
backend!(pooled);
#[cfg(feature = "postgres")]
backend!(postgres);
#[cfg(feature = "sqlite")]
backend!(sqlite);
