//! Sealing: values at rest are encrypted with a key ring. One layer around any store seals what goes in and opens what
//! comes out, so every store has it, and none knows of it.
//!
//! | file | what |
//! |---|---|
//! | `ring` | the keys: the first seals, all of them open |
//! | `cipher` | one value: sealed, opened, wrapped again with another key |
//! | `values` | which parts of jobs, attempts, schedules and settings are sealed |
//! | `copies` | jobs with their history, for moving them to another store |
//! | `in_use` | which keys something stored may be sealed with, and whether this node has them |
//! | `unopened` | what cannot be opened: logged once, and given back if it was claimed, shown without its values |
//! | `store` | the layer around a store |
//! | `rotate` | brings everything stored to the first key, while nodes run |

mod cipher;
mod copies;
mod in_use;
mod ring;
mod rotate;
mod store;
mod unopened;
mod values;

pub use ring::{KeyRing, KeyRingError};
pub use rotate::{Progress, SealingStatus};
pub(crate) use store::SealedStore;
