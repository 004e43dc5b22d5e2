//! Lines of a connection, bounded in length and in the time that one may take.

use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The longest line of a client that has not said HELLO.
pub(super) const MAX_HELLO: usize = 16 * 1024;
/// The longest line: a PUSHB of many jobs.
pub(super) const MAX_LINE: usize = 8 * 1024 * 1024;
/// The longest time from the first byte of a line to its last.
const LINE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why no line was read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("the connection ended")]
    End,
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    #[error("a line is not UTF-8")]
    NotText,
    #[error("a line did not arrive in time")]
    TooSlow,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The next line without its end. Waits for its first byte as long as the client keeps silent.
pub(super) async fn next(reader: &mut (impl AsyncBufRead + Unpin), max: usize) -> Result<String, LineError> {
    if reader.fill_buf().await?.is_empty() {
        return Err(LineError::End);
    }
    let line = tokio::time::timeout(LINE_TIMEOUT, whole(reader, max)).await.map_err(|_| LineError::TooSlow)??;
    String::from_utf8(line).map_err(|_| LineError::NotText)
}

async fn whole(reader: &mut (impl AsyncBufRead + Unpin), max: usize) -> Result<Vec<u8>, LineError> {
    let mut line = Vec::new();
    loop {
        let arrived = reader.fill_buf().await?;
        if arrived.is_empty() {
            return Err(LineError::End);
        }
        let end = arrived.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(arrived.len(), |at| at + 1);
        line.extend_from_slice(&arrived[..taken]);
        reader.consume(taken);
        if end.is_some() {
            let bare = line.strip_suffix(b"\n").unwrap_or(&line);
            let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
            if bare.len() > max {
                return Err(LineError::TooLong(max));
            }
            return Ok(bare.to_vec());
        }
        if line.len() > max {
            return Err(LineError::TooLong(max));
        }
    }
}
