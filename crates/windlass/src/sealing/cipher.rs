//! One value, sealed: ChaCha20-Poly1305 with a data key of its own, which is wrapped by a key derived from the ring's
//! key and a random salt. Each of these keys seals one text, so no nonce is ever used twice. To change the ring's key,
//! only the wrapping is made again; neither the text nor its place is needed.

use super::ring::{Key, KeyRing};
use crate::random::Random;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;
use std::fmt::Write as _;
use windlass_core::sealed::{NO_MARK, PREFIX, Sealed};

const SALT: usize = 16;
const KEY: usize = 32;
const TAG: usize = 16;
const WRAPPED: usize = KEY + TAG;

/// Where a value belongs. A value opens only in the place it was sealed for, so that whoever can write to the database
/// cannot move values to other places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belongs<'a> {
    pub tenant: &'a str,
    /// The kind or the id of the job, or nothing.
    pub subject: &'a str,
    pub field: &'a str,
}

impl Belongs<'_> {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [self.tenant, self.subject, self.field] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part.as_bytes());
        }
        bytes
    }
}

/// Why a value cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OpenError {
    #[error("sealed with the key `{0}`, which is not in this node's key ring")]
    UnknownKey(String),
    #[error("sealed with the key `{0}`, but changed, moved, or sealed with another key of that name")]
    Damaged(String),
}

/// Seals and opens with a ring.
#[derive(Debug, Clone)]
pub(super) struct Cipher {
    pub ring: KeyRing,
    pub random: Random,
}

impl Cipher {
    /// The sealed value, or the text itself without a key.
    pub fn seal(&self, text: &str, belongs: Belongs<'_>, mark: Option<&str>) -> String {
        let Some(key) = self.ring.first() else { return text.to_owned() };
        let (salt, data) = (self.random.bytes::<SALT>(), self.random.bytes::<KEY>());
        let mut body = salt.to_vec();
        body.extend(seal_once(&wrapping(key, &salt), &data, &[]));
        body.extend(seal_once(&data, text.as_bytes(), &belongs.bytes()));
        token(mark.unwrap_or(NO_MARK), &key.id, &body)
    }

    /// The text of a sealed value.
    pub fn open(&self, sealed: Sealed<'_>, belongs: Belongs<'_>) -> Result<String, OpenError> {
        let key = self.ring.find(sealed.key).ok_or_else(|| OpenError::UnknownKey(sealed.key.to_owned()))?;
        let damaged = || OpenError::Damaged(sealed.key.to_owned());
        let body = URL_SAFE_NO_PAD.decode(sealed.body).map_err(|_| damaged())?;
        let (data, text) = unwrap(key, &body).ok_or_else(damaged)?;
        let text = open_once(&data, text, &belongs.bytes()).ok_or_else(damaged)?;
        String::from_utf8(text).map_err(|_| damaged())
    }

    /// The same value wrapped by the first key; `None` if it already is, or cannot be unwrapped.
    pub fn wrap_again(&self, sealed: Sealed<'_>) -> Result<Option<String>, OpenError> {
        let (Some(first), Some(key)) = (self.ring.first(), self.ring.find(sealed.key)) else {
            return Err(OpenError::UnknownKey(sealed.key.to_owned()));
        };
        if first.id == key.id {
            return Ok(None);
        }
        let damaged = || OpenError::Damaged(sealed.key.to_owned());
        let body = URL_SAFE_NO_PAD.decode(sealed.body).map_err(|_| damaged())?;
        let (data, text) = unwrap(key, &body).ok_or_else(damaged)?;
        let salt = self.random.bytes::<SALT>();
        let mut again = salt.to_vec();
        again.extend(seal_once(&wrapping(first, &salt), &data, &[]));
        again.extend(text);
        Ok(Some(token(sealed.mark, &first.id, &again)))
    }

    /// Names what is equal in equal texts, one name for each key of the ring, so that values sealed with different
    /// keys can be compared. Without the keys a name says nothing about the text.
    pub fn mark(&self, text: &str, tenant: &str) -> String {
        let name = |key: &Key| {
            let mac = hmac::Key::new(hmac::HMAC_SHA256, &key.bytes);
            let mut context = hmac::Context::with_key(&mac);
            for part in ["windlass mark 1", tenant, text] {
                context.update(&(part.len() as u64).to_be_bytes());
                context.update(part.as_bytes());
            }
            format!("{}={}", key.id, hex(&context.sign().as_ref()[..16]))
        };
        self.ring.keys().iter().map(name).collect::<Vec<_>>().join(",")
    }
}

fn token(mark: &str, key: &str, body: &[u8]) -> String {
    format!("{PREFIX}{mark}:{key}:{}", URL_SAFE_NO_PAD.encode(body))
}

/// The key that wraps one data key.
fn wrapping(key: &Key, salt: &[u8]) -> [u8; KEY] {
    let mac = hmac::Key::new(hmac::HMAC_SHA256, &key.bytes);
    let mut context = hmac::Context::with_key(&mac);
    context.update(b"windlass wrap 1");
    context.update(salt);
    let mut derived = [0; KEY];
    derived.copy_from_slice(context.sign().as_ref());
    derived
}

/// The data key, and the sealed text.
fn unwrap<'b>(key: &Key, body: &'b [u8]) -> Option<([u8; KEY], &'b [u8])> {
    let (salt, rest) = body.split_at_checked(SALT)?;
    let (wrapped, text) = rest.split_at_checked(WRAPPED)?;
    let data = open_once(&wrapping(key, salt), wrapped, &[])?;
    Some((data.try_into().ok()?, text))
}

/// With a key that seals nothing else, so the nonce may be constant.
fn seal_once(key: &[u8; KEY], text: &[u8], belongs: &[u8]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    aead(key)
        .seal_in_place_append_tag(once(), Aad::from(belongs), &mut bytes)
        .expect("texts are shorter than the cipher's limit of 256 GiB");
    bytes
}

fn open_once(key: &[u8; KEY], sealed: &[u8], belongs: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = sealed.to_vec();
    let length = aead(key).open_in_place(once(), Aad::from(belongs), &mut bytes).ok()?.len();
    bytes.truncate(length);
    Some(bytes)
}

fn aead(key: &[u8; KEY]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("the key has the cipher's length"))
}

fn once() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cipher(names: &[&str]) -> Cipher {
        let lines: Vec<String> = names.iter().map(|name| KeyRing::generate(name, &seeded(name))).collect();
        Cipher { ring: KeyRing::parse(&lines.join("\n")).unwrap(), random: Random::seeded(7) }
    }

    fn seeded(name: &str) -> Random {
        Random::seeded(name.bytes().map(u64::from).sum())
    }

    const HERE: Belongs<'static> = Belongs { tenant: "acme", subject: "email", field: "payload" };

    fn open(cipher: &Cipher, text: &str, belongs: Belongs<'_>) -> Result<String, OpenError> {
        cipher.open(Sealed::parse(text).unwrap(), belongs)
    }

    #[test]
    fn a_value_opens_in_its_place_with_its_key_and_nowhere_else() {
        let (one, other) = (cipher(&["a", "b"]), cipher(&["c"]));
        let sealed = one.seal("s3cret", HERE, None);
        assert!(!sealed.contains("s3cret"));
        assert_ne!(sealed, one.seal("s3cret", HERE, None), "two values of the same text differ");
        assert_eq!(open(&one, &sealed, HERE).unwrap(), "s3cret");
        for there in [
            Belongs { tenant: "other", ..HERE },
            Belongs { subject: "report", ..HERE },
            Belongs { field: "error", ..HERE },
            Belongs { tenant: "acmee", subject: "mail", ..HERE },
        ] {
            assert_eq!(open(&one, &sealed, there), Err(OpenError::Damaged("a".into())));
        }
        assert_eq!(open(&other, &sealed, HERE), Err(OpenError::UnknownKey("a".into())));
        let mut changed = sealed.clone().into_bytes();
        let last = changed.len() - 3;
        changed[last] = if changed[last] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(open(&one, &changed, HERE), Err(OpenError::Damaged("a".into())));
    }

    #[test]
    fn a_value_is_wrapped_again_without_its_place() {
        let (old, both, new) = (cipher(&["a"]), cipher(&["b", "a"]), cipher(&["b"]));
        let sealed = old.seal("s3cret", HERE, Some("m=1"));
        let again = both.wrap_again(Sealed::parse(&sealed).unwrap()).unwrap().unwrap();
        assert_eq!(open(&new, &again, HERE).unwrap(), "s3cret");
        assert_eq!(Sealed::parse(&again).unwrap().mark, "m=1");
        assert_eq!(both.wrap_again(Sealed::parse(&again).unwrap()), Ok(None));
        assert!(new.wrap_again(Sealed::parse(&sealed).unwrap()).is_err());
    }

    #[test]
    fn marks_of_rings_that_share_a_key_meet() {
        let (old, both) = (cipher(&["a"]), cipher(&["b", "a"]));
        let seal = |cipher: &Cipher, text: &str| cipher.seal(text, HERE, Some(&cipher.mark(text, "acme")));
        let (first, second, third) = (seal(&old, "1"), seal(&both, "1"), seal(&both, "2"));
        assert!(Sealed::parse(&first).unwrap().is_same(Sealed::parse(&second).unwrap()));
        assert!(!Sealed::parse(&first).unwrap().is_same(Sealed::parse(&third).unwrap()));
    }

    #[test]
    fn any_bytes_in_place_of_a_value_are_refused_without_a_panic() {
        let cipher = cipher(&["a"]);
        let random = Random::seeded(11);
        for length in 0..200_usize {
            let bytes: Vec<u8> = (0..length).map(|_| random.bytes::<1>()[0]).collect();
            let text = token(NO_MARK, "a", &bytes);
            let sealed = Sealed::parse(&text).unwrap();
            assert!(cipher.open(sealed, HERE).is_err());
        }
    }
}
