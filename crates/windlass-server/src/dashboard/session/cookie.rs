//! The cookie of a session.

use crate::http::App;
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderValue, ORIGIN};
use windlass_core::Millis;

const NAME: &str = "windlass_session";
/// The longest secret that is read.
const MAX: usize = 128;

/// Where and how long the cookie is kept.
pub(crate) struct Cookie;

impl Cookie {
    /// The secret that the browser sent.
    pub(crate) fn read(headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let secret = pairs.find(|(name, _)| *name == NAME).map(|(_, value)| value)?;
        let is_plain = !secret.is_empty() && secret.len() <= MAX && secret.bytes().all(|b| b.is_ascii_alphanumeric());
        is_plain.then(|| secret.to_owned())
    }

    /// Tells the browser to keep a secret for so long; zero removes it.
    pub(crate) fn set(app: &App, headers: &HeaderMap, secret: &str, lasts: Millis) -> HeaderValue {
        let path = if app.base_path().is_empty() { "/" } else { app.base_path() };
        let seconds = lasts.get() / 1000;
        let secure = if is_secure(headers) { "; Secure" } else { "" };
        let text = format!("{NAME}={secret}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::from_str(&text).expect("a cookie has plain characters")
    }
}

/// Whether the browser reached the server by HTTPS, through a proxy that ends it. A cookie marked as secure would be
/// dropped on a plain connection. Browsers send the origin with every form.
fn is_secure(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(ORIGIN).and_then(|origin| origin.strip_prefix("https://"));
    origin.is_some() && origin == text(HOST) || headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https")
}
