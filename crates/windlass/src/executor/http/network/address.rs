//! Addresses: which ones no call may reach unless the operator allows them. Pure tables. The connector checks every
//! address before it dials.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which networks outgoing calls may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Egress {
    /// Public addresses only.
    #[default]
    Public,
    /// Loopback and private networks as well; link-local and cloud metadata addresses stay out of reach.
    AllowPrivate,
    /// Public addresses and these networks, whatever they are.
    Allow(Vec<IpNet>),
}

impl Egress {
    /// Whether a connection to `address` may be opened.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self {
            Self::Public => is_public(address),
            Self::AllowPrivate => is_public(address) || (is_private(address) && !is_metadata(address)),
            Self::Allow(networks) => is_public(address) || is_listed(networks, address),
        }
    }

    /// Whether a name may be looked up at all. If private networks are allowed, only its addresses matter.
    pub(in crate::executor::http) fn permits_name(&self, name: &str) -> bool {
        match self {
            Self::Public => !is_internal_name(name),
            Self::AllowPrivate | Self::Allow(_) => true,
        }
    }
}

/// Never public: the host itself, private, link-local, shared, documentation, benchmark, multicast, reserved.
const DENIED_V4: &[Ipv4Net] = &[
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10), // among them one cloud's metadata service
    v4([127, 0, 0, 0], 8),
    v4([168, 63, 129, 16], 32), // one cloud's platform address: looks public, is not
    v4([169, 254, 0, 0], 16),   // most clouds' metadata services
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24), // another cloud's metadata service
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// The only public IPv6 range. It does not contain the unspecified address, loopback, `::a.b.c.d`, locally used NAT64,
/// discard-only, segment routing, private (`fc00::/7`), link-local, site-local and multicast addresses.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Not public, although inside the public range. Encodings of IPv4 that no public service uses are denied entirely,
/// whatever address they contain.
const DENIED_V6: &[Ipv6Net] = &[
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // Teredo and other protocol assignments
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), // 6to4
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// What [`Egress::AllowPrivate`] allows.
const PRIVATE_V4: &[Ipv4Net] = &[
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([172, 16, 0, 0], 12),
    v4([192, 168, 0, 0], 16),
];
const PRIVATE_V6: &[Ipv6Net] = &[v6([0, 0, 0, 0, 0, 0, 0, 1], 128), v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7)];

/// Metadata services inside private networks: they hand out the machine's credentials.
const METADATA_V4: &[Ipv4Addr] = &[Ipv4Addr::new(100, 100, 100, 200)];
const METADATA_V6: &[Ipv6Addr] =
    &[Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// NAT64: the last four bytes are the address that is actually reached.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

const INTERNAL_NAMES: &[&str] = &["localhost", "internal", "local", "localdomain", "metadata", "instance-data"];
const INTERNAL_HOSTS: &[&str] = &["metadata.goog"];

fn is_public(address: IpAddr) -> bool {
    match reached(address) {
        IpAddr::V4(v4) => !DENIED_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_V6.contains(&v6) && !DENIED_V6.iter().any(|net| net.contains(&v6)),
    }
}

fn is_private(address: IpAddr) -> bool {
    match reached(address) {
        IpAddr::V4(v4) => PRIVATE_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => PRIVATE_V6.iter().any(|net| net.contains(&v6)),
    }
}

fn is_metadata(address: IpAddr) -> bool {
    match reached(address) {
        IpAddr::V4(v4) => METADATA_V4.contains(&v4),
        IpAddr::V6(v6) => METADATA_V6.contains(&v6),
    }
}

/// An operator's list is matched with the address as dialled and with the one it leads to.
pub(in crate::executor::http) fn is_listed(networks: &[IpNet], address: IpAddr) -> bool {
    let (dialled, reached) = (address.to_canonical(), reached(address));
    networks.iter().any(|net| net.contains(&dialled) || net.contains(&reached))
}

/// The address that a connection ends at: the IPv4 address inside its mapped and NAT64 forms.
fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        plain @ (IpAddr::V4(_) | IpAddr::V6(_)) => plain,
    }
}

/// `name` is in lower case and has no trailing dot.
fn is_internal_name(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    INTERNAL_NAMES.contains(&last) || INTERNAL_HOSTS.contains(&name)
}

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]), prefix)
}

const fn v6(s: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]), prefix)
}
