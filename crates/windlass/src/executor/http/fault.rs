//! Fault: why a call got no response, and the failure it becomes. No message names an address that a name resolved to:
//! callers could map the operator's network with it.

use super::target::Denied;
use windlass_core::failure::TIMEOUT;
use windlass_core::{Advice, Failure, Millis};

/// Class of a call to an address that outgoing calls may not reach. Permanent, because a retry cannot help.
pub const EGRESS_DENIED: &str = "EgressDenied";
/// Class of a job whose call cannot be made as it is stored. Permanent.
pub const BAD_CALL: &str = "BadCall";
/// Class of a connection that could not be opened, or broke before an answer.
pub const CONNECT_ERROR: &str = "ConnectError";
/// Class of a name that has no address.
pub const DNS_ERROR: &str = "DnsError";
/// Class of a connection that could not be secured.
pub const TLS_ERROR: &str = "TlsError";
/// Class of an answer that is not HTTP.
pub const PROTOCOL_ERROR: &str = "ProtocolError";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the call cannot be made: {0}")]
    BadCall(String),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the name cannot be resolved")]
    Dns,
    #[error("{phase} took longer than {after}")]
    Timeout { phase: Phase, after: Millis },
    #[error("cannot connect: {0}")]
    Connect(String),
    #[error("the connection was lost before an answer came")]
    Lost,
    #[error("the connection cannot be secured: {0}")]
    Tls(String),
    #[error("the answer is not HTTP: {0}")]
    Protocol(String),
}

/// The phase of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Resolve,
    Connect,
    Secure,
    Whole,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolving the name",
            Self::Connect => "connecting",
            Self::Secure => "the TLS handshake",
            Self::Whole => "the call",
        })
    }
}

impl Fault {
    pub(super) fn bad_call(message: impl Into<String>) -> Self {
        Self::BadCall(message.into())
    }

    /// The failure that the retry policy decides on.
    pub(super) fn failure(&self) -> Failure {
        let (class, advice) = match self {
            Self::BadCall(_) => (BAD_CALL, Advice::Permanent),
            Self::Denied(_) => (EGRESS_DENIED, Advice::Permanent),
            Self::Dns => (DNS_ERROR, Advice::None),
            Self::Timeout { .. } => (TIMEOUT, Advice::None),
            Self::Connect(_) | Self::Lost => (CONNECT_ERROR, Advice::None),
            Self::Tls(_) => (TLS_ERROR, Advice::None),
            Self::Protocol(_) => (PROTOCOL_ERROR, Advice::None),
        };
        Failure { advice, ..Failure::new(self.to_string()).class(class) }
    }

    /// Finds the cause in the client's chain of errors: the connector's own fault, or a protocol error.
    pub(super) fn from_client(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(fault) = cause.downcast_ref::<Self>() {
                return fault.clone();
            }
            if let Some(error) = cause.downcast_ref::<hyper::Error>()
                && error.is_parse()
            {
                return Self::Protocol(error.to_string());
            }
            next = cause.source();
        }
        Self::Lost
    }
}
