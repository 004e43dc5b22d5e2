//! Signature: proves to a webhook's receiver who sent it and that it was not changed. The Standard Webhooks
//! scheme: HMAC-SHA256 over `id.timestamp.body`, in base64, after `v1,`.

pub mod rotation;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// How far a signature's time may differ from the receiver's, in both directions: limits replays, allows wrong clocks.
pub const TOLERANCE_SECS: i64 = 300;

const PREFIX: &str = "whsec_";
const VERSION: &str = "v1,";
/// Shorter keys are guessable; keys longer than the hash's block add no security.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A webhook's signing key. Debug output never contains it; only [`Secret::to_text`] returns it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Not a signing key. The message does not repeat the text: it may be a real key with a typo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("a secret is `whsec_` followed by base64")]
    Form,
    #[error("a secret has 24 to 64 bytes, this one has {0}")]
    Length(usize),
}

/// Why a signature is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the timestamp is more than 5 minutes from now")]
    Timestamp,
    #[error("no signature matches")]
    Mismatch,
}

impl Secret {
    /// Reads `whsec_…`.
    ///
    /// # Errors
    /// Not of that form, or of the wrong length.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::Form)?;
        Self::from_bytes(&STANDARD.decode(encoded).map_err(|_| SecretError::Form)?)
    }

    /// Takes the bytes of a key.
    ///
    /// # Errors
    /// Fewer than 24 or more than 64 of them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SecretError> {
        if KEY_BYTES.contains(&bytes.len()) { Ok(Self(bytes.to_vec())) } else { Err(SecretError::Length(bytes.len())) }
    }

    /// The key as `whsec_…`, to store it or to give it to a receiver.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The value of the `webhook-signature` header.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp_secs: i64, body: &[u8]) -> String {
        format!("{VERSION}{}", STANDARD.encode(self.mac(id, timestamp_secs, body)))
    }

    /// Checks a `webhook-signature` header, which may hold several signatures separated by blanks.
    ///
    /// # Errors
    /// The time is too far from `now_secs`, or none of the signatures is this key's.
    pub fn verify(
        &self,
        id: &str,
        timestamp_secs: i64,
        body: &[u8],
        header: &str,
        now_secs: i64,
    ) -> Result<(), SignatureError> {
        if now_secs.abs_diff(timestamp_secs) > TOLERANCE_SECS.unsigned_abs() {
            return Err(SignatureError::Timestamp);
        }
        let expected = self.mac(id, timestamp_secs, body);
        let fits = |signature: &str| {
            let given = signature.strip_prefix(VERSION).and_then(|text| STANDARD.decode(text).ok());
            given.is_some_and(|given| given.ct_eq(&expected).into())
        };
        // All are compared, so that the time taken does not reveal which one was close.
        let any = header.split(' ').fold(false, |found, signature| fits(signature) | found);
        if any { Ok(()) } else { Err(SignatureError::Mismatch) }
    }

    fn mac(&self, id: &str, timestamp_secs: i64, body: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{timestamp_secs}.").as_bytes());
        mac.update(body);
        mac.finalize().into_bytes().to_vec()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests;
