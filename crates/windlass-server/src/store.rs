//! Opens the store a URL names.

use windlass::store::Options;
use windlass::{OpenError, Windlass};

/// Opens a store: `sqlite:PATH`, `postgres://…`, or `memory:` for trying things out.
///
/// # Errors
/// Not a store, or one that cannot be used.
pub(crate) async fn open(url: &str, options: Options) -> Result<Windlass, OpenError> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let dice = options.dice.clone();
        let store = windlass::store::sqlite::SqliteStore::open(path, options).await?;
        return Ok(Windlass::with_dice(store, dice));
    }
    Windlass::open_with(url, options).await
}
