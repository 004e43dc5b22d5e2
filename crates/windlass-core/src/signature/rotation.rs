//! Rotation: a secret is replaced while its receivers still know the old one. Until the overlap ends, calls carry a
//! signature of each. Jobs keep the secret they were stored with, so the rule looks replacements up when a call is
//! signed.

use super::{Secret, SecretError};
use crate::time::{Millis, Timestamp};
use std::fmt;

/// How long the replaced secret signs too, unless the caller says otherwise.
pub const DEFAULT_OVERLAP: Millis = Millis::from_secs(86_400);
/// The longest overlap: a secret that never ends was not replaced.
pub const MAX_OVERLAP: Millis = Millis::from_secs(90 * 86_400);
/// The most signatures of one call: receivers limit the length of headers.
pub const MAX_SIGNATURES: usize = 5;

/// One replaced secret. Both are `whsec_…`. Debug output contains neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The replaced secret.
    pub from: String,
    /// What replaces it.
    pub to: String,
    /// Until when the replaced one signs too.
    pub until: Timestamp,
}

/// Why a secret cannot be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RotationError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("is the secret in use; give another one, or none to have one drawn")]
    Same,
    #[error("was replaced before, and a replaced secret cannot come back; give another one")]
    Old,
}

/// The secret that stands in the place of `secret` now.
#[must_use]
pub fn successor<'a>(secret: &'a str, rotations: &'a [Rotation]) -> &'a str {
    let mut current = secret;
    // Each step uses up a rotation, so that damaged data cannot lead in a circle.
    for _ in 0..rotations.len() {
        match rotations.iter().find(|rotation| rotation.from == current) {
            Some(rotation) => current = &rotation.to,
            None => break,
        }
    }
    current
}

/// The secrets that sign a call stored with `secret`: the one in use first, then those it replaced whose overlap has
/// not ended, the newest first.
#[must_use]
pub fn signers<'a>(secret: &'a str, rotations: &'a [Rotation], now: Timestamp) -> Vec<&'a str> {
    let current = successor(secret, rotations);
    let is_meant = |rotation: &&Rotation| now < rotation.until && successor(&rotation.from, rotations) == current;
    let mut replaced: Vec<&Rotation> = rotations.iter().filter(is_meant).collect();
    replaced.sort_by_key(|rotation| std::cmp::Reverse(rotation.until));
    let replaced = replaced.into_iter().map(|rotation| rotation.from.as_str());
    std::iter::once(current).chain(replaced).take(MAX_SIGNATURES).collect()
}

/// The rotation that replaces what stands in the place of `secret` by `to`, from `now` on.
///
/// # Errors
/// `to` is no secret, is already in use, or was replaced before.
pub fn rotate(
    secret: &str,
    to: &str,
    overlap: Millis,
    rotations: &[Rotation],
    now: Timestamp,
) -> Result<Rotation, RotationError> {
    Secret::parse(to)?;
    let from = successor(secret, rotations);
    if from == to {
        return Err(RotationError::Same);
    }
    if to == secret || rotations.iter().any(|rotation| rotation.from == to) {
        return Err(RotationError::Old);
    }
    Ok(Rotation { from: from.to_owned(), to: to.to_owned(), until: now + overlap.min(MAX_OVERLAP) })
}

impl fmt::Debug for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rotation").field("until", &self.until).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(number: u8) -> String {
        Secret::from_bytes(&[number; 32]).unwrap().to_text()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// Secret 0 became 1 at second 0, and 1 became 2 at second 50; each overlap takes 100 s.
    fn twice() -> Vec<Rotation> {
        let first = rotate(&secret(0), &secret(1), Millis::from_secs(100), &[], at(0)).unwrap();
        let second =
            rotate(&secret(0), &secret(2), Millis::from_secs(100), std::slice::from_ref(&first), at(50)).unwrap();
        vec![first, second]
    }

    #[test]
    fn a_replaced_secret_signs_until_its_overlap_ends() {
        let rotations = twice();
        for of in 0..3 {
            let stored = secret(of);
            assert_eq!(signers(&stored, &rotations, at(60)), [secret(2), secret(1), secret(0)], "stored with {of}");
            assert_eq!(signers(&stored, &rotations, at(100)), [secret(2), secret(1)], "stored with {of}");
            assert_eq!(signers(&stored, &rotations, at(150)), [secret(2)], "stored with {of}");
        }
        assert_eq!(signers(&secret(9), &rotations, at(60)), [secret(9)], "another secret");
        assert_eq!(signers(&secret(9), &[], at(60)), [secret(9)]);
    }

    #[test]
    fn a_secret_in_use_and_a_replaced_one_are_refused() {
        let rotations = twice();
        let replace = |to: &str| rotate(&secret(1), to, DEFAULT_OVERLAP, &rotations, at(60)).map(|_| ());
        assert_eq!(replace(&secret(2)), Err(RotationError::Same));
        assert_eq!(replace(&secret(0)), Err(RotationError::Old));
        assert_eq!(replace(&secret(1)), Err(RotationError::Old));
        assert_eq!(replace("whsec_"), Err(RotationError::Secret(SecretError::Length(0))));
        assert_eq!(replace(&secret(3)), Ok(()));
        let long = rotate(&secret(1), &secret(3), Millis::from_secs(u64::MAX / 2000), &rotations, at(0)).unwrap();
        assert_eq!(long.until, at(0) + MAX_OVERLAP);
    }

    #[test]
    fn damaged_data_ends_and_signatures_are_bounded() {
        let step = |from, to| Rotation { from: secret(from), to: secret(to), until: at(10) };
        assert!(!signers(&secret(0), &[step(0, 1), step(1, 0)], at(0)).is_empty());
        let many: Vec<Rotation> = (1..20).map(|from| step(from, from + 1)).collect();
        assert_eq!(signers(&secret(1), &many, at(0)).len(), MAX_SIGNATURES);
    }
}
