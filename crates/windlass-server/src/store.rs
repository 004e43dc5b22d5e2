//! Opens the store a URL names.

use windlass::store::Options;
use windlass::store::postgres::PostgresStore;
use windlass::{OpenError, Windlass};

/// Opens a store: `sqlite:PATH`, `postgres://…`, or `memory:` for trying things out.
///
/// # Errors
/// Not a store, or one that cannot be used.
pub(crate) async fn open(url: &str, options: Options) -> Result<Windlass, OpenError> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let random = options.random.clone();
        let store = PostgresStore::open(url, options).await?;
        return Ok(Windlass::with_random(store, random));
    }
    Windlass::open_with(url, options).await
}
