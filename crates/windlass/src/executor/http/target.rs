//! Target: a URL parsed once, the way browsers parse it, so that every spelling of an address is normalised before it
//! is checked.

use super::network::address::{Egress, is_listed};
use ipnet::IpNet;
use std::net::IpAddr;
use url::{Host, Url};

/// Longest URL that a job may call.
pub const MAX_URL_BYTES: usize = 8 * 1024;
/// Longest name in the domain name system.
const MAX_NAME_BYTES: usize = 253;

/// Where a call goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uri: http::Uri,
    pub(super) scheme: Scheme,
    pub(super) host: TargetHost,
    pub(super) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// A normalised host: an address, or a name in lower case without its trailing dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetHost {
    Address(IpAddr),
    Name(String),
}

impl Target {
    /// Parses a URL.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it. The URL is left out, because it may contain secrets.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_URL_BYTES {
            return Err("the URL is longer than 8 KiB");
        }
        // The parser would silently drop these, and a reader would not see where the call goes.
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("the URL holds control characters");
        }
        let mut url = Url::parse(text).map_err(|_| "not a URL; write https://host/path or http://host/path")?;
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err("the URL's scheme is neither http nor https"),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL holds a user name or password; use an Authorization header");
        }
        let host = host(&url)?;
        if let TargetHost::Name(name) = &host {
            url.set_host(Some(name)).map_err(|_| "the URL's host is not a name")?;
        }
        url.set_fragment(None);
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or("the URL's port is 0")?;
        let uri = url.as_str().parse().map_err(|_| "the URL holds characters that must be percent-encoded")?;
        Ok(Self { uri, scheme, host, port })
    }

    /// Whether the egress rules allow this call, as far as can be known without resolving a name.
    pub(super) fn check(&self, egress: &Egress, deny: &[IpNet]) -> Result<(), Denied> {
        let permitted = match &self.host {
            TargetHost::Address(address) => permits(egress, deny, *address),
            TargetHost::Name(name) => egress.permits_name(name),
        };
        if permitted { Ok(()) } else { Err(Denied) }
    }

    /// The key by which calls per host are counted.
    pub(super) fn host_key(&self) -> String {
        match &self.host {
            TargetHost::Address(address) => address.to_string(),
            TargetHost::Name(name) => name.clone(),
        }
    }
}

/// Outgoing calls may not reach this target. The message does not say what it resolved to: callers could map the
/// operator's network with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the target is not a public address, and the operator has not allowed it")]
pub(super) struct Denied;

pub(super) fn permits(egress: &Egress, deny: &[IpNet], address: IpAddr) -> bool {
    egress.permits(address) && !is_listed(deny, address)
}

fn host(url: &Url) -> Result<TargetHost, &'static str> {
    let name = match url.host().ok_or("the URL names no host")? {
        Host::Ipv4(address) => return Ok(TargetHost::Address(address.into())),
        Host::Ipv6(address) => return Ok(TargetHost::Address(IpAddr::V6(address).to_canonical())),
        Host::Domain(name) => name.strip_suffix('.').unwrap_or(name),
    };
    if name.len() > MAX_NAME_BYTES {
        return Err("the URL's host is longer than 253 bytes");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if !name.split('.').all(is_label) {
        return Err("the URL's host is not a name");
    }
    Ok(TargetHost::Name(name.to_ascii_lowercase()))
}
