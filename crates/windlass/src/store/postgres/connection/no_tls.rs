//! Connections of a program that was built without TLS.

use crate::store::StoreError;
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;

/// Never used: connections are plain.
pub(super) type Tls = NoTls;

/// `prefer` continues without TLS; a mode that requires TLS is refused.
pub(super) fn tls_for(mode: SslMode, _: Option<&str>) -> Result<Option<Tls>, StoreError> {
    if mode == SslMode::Disable || mode == SslMode::Prefer {
        return Ok(None);
    }
    let message = "sslmode=require needs the feature `tls`, which this program was built without";
    Err(StoreError::Invalid(message.into()))
}
