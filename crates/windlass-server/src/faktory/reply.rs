//! Replies, in the form of Redis (RESP).

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Ok,
    /// A text, such as JSON.
    Text(String),
    /// Nothing to fetch.
    Nothing,
    /// Refused, and why.
    Error(String),
    /// The store cannot be used now, and why.
    Outage(String),
}

impl Reply {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ok => b"+OK\r\n".to_vec(),
            Self::Text(text) => format!("${}\r\n{text}\r\n", text.len()).into_bytes(),
            Self::Nothing => b"$-1\r\n".to_vec(),
            // A line break would end the reply early.
            Self::Error(why) | Self::Outage(why) => format!("-ERR {}\r\n", why.replace(['\r', '\n'], " ")).into_bytes(),
        }
    }
}

impl From<windlass::StoreError> for Reply {
    fn from(error: windlass::StoreError) -> Self {
        if error.is_outage() {
            // Outages are logged once for all commands.
            return Self::Outage(error.to_string());
        }
        tracing::warn!(%error, "a Faktory client could not be served");
        Self::Error(error.to_string())
    }
}
