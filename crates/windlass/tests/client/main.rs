//! The client's handles, on each store: every test here runs unchanged as `memory::…`, `sqlite::…` and `postgres::…`.

#![allow(clippy::unwrap_used)] // A test may panic.
#![allow(clippy::duplicate_mod)] // The cases are compiled once per backend on purpose.

#[allow(dead_code)] // Shared with the conformance suite, which uses more of it.
#[path = "../conformance/world.rs"]
mod world;

use windlass::Random;
use windlass::Windlass;
use windlass::core::job::QueueName;
use world::World;

/// A client on the store of a world.
fn client(world: &World) -> Windlass {
    Windlass::with_random(world.store.clone(), Random::seeded(5))
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

macro_rules! backend {
    ($name:ident) => {
        // The cases are in this folder, the same for every backend.
        #[path = "."]
        mod $name {
            async fn world() -> crate::world::World {
                crate::world::World::$name().await
            }

            mod bulk;
            mod dead_letters;
            mod fleet;
            mod jobs;
            mod levels;
            mod policies;
            mod queues;
            mod quotas;
            mod schedules;
            mod stats;
        }
    };
}

backend!(memory);
#[cfg(feature = "postgres")]
backend!(postgres);
#[cfg(feature = "sqlite")]
backend!(sqlite);
