//! The egress guard: whatever a URL looks like and whatever a name server answers, no denied address is dialled.
//! Asserted where connections are opened, not where URLs are checked.

use super::stand_ins::{Script, Spy, Then};
use super::*;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// More than 150 spellings of targets that no call may reach. Every name in it resolves to loopback.
const DENIED_URLS: &str = include_str!("denied_urls.txt");

/// An executor with the default rules on a recorded network where no connection is accepted.
fn watched(answers: &[&[&str]]) -> (HttpExecutor, Arc<Spy>, Arc<Script>) {
    watched_with(HttpOptions::default(), answers)
}

fn watched_with(options: HttpOptions, answers: &[&[&str]]) -> (HttpExecutor, Arc<Spy>, Arc<Script>) {
    let (dialer, resolver) = (Arc::new(Spy::new(Then::Refuse)), Arc::new(Script::new(answers)));
    let options = HttpOptions { dialer: dialer.clone(), resolver: resolver.clone(), ..options };
    (executor(options).0, dialer, resolver)
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect(text)
}

#[tokio::test]
async fn no_spelling_reaches_a_denied_address() {
    let (executor, dialer, _) = watched(&[&["127.0.0.1"]]);
    let urls: Vec<_> = DENIED_URLS.lines().filter(|line| !line.starts_with("# ")).collect();
    assert!(urls.len() >= 150, "{}", urls.len());
    for url in urls {
        let failure = failure(executor.call(&post(url)).await);
        assert_eq!(dialer.dialled(), [], "{url}");
        assert!([EGRESS_DENIED, BAD_CALL].contains(&failure.class.as_str()), "{url}: {failure:?}");
        assert_eq!(failure.advice, Advice::Permanent, "{url}");
        assert!(!failure.message.contains("127.0.0.1"), "{url}: {}", failure.message);
    }
}

#[tokio::test]
async fn the_same_spellings_of_public_addresses_are_dialled() {
    for url in [
        "http://8.8.8.8/",
        "http://8.8.8.8./",
        "http://134744072/",
        "http://0x08080808/",
        "http://010.010.010.010/",
        "http://8.526344/",
        "http://８。８。８。８/",
        "http://[::ffff:8.8.8.8]/",
        "http://public.example/",
        "http://PUBLIC.example./",
    ] {
        let (executor, dialer, _) = watched(&[&["8.8.8.8"]]);
        assert_eq!(failure(executor.call(&post(url)).await).class, CONNECT_ERROR, "{url}");
        assert_eq!(dialer.dialled(), ["8.8.8.8:80".parse::<SocketAddr>().unwrap()], "{url}");
    }
}

#[tokio::test]
async fn internal_names_are_not_even_looked_up() {
    for name in ["localhost", "a.localhost", "x.internal", "x.local", "metadata", "metadata.google.internal."] {
        let (executor, dialer, resolver) = watched(&[&["8.8.8.8"]]);
        assert_eq!(failure(executor.call(&post(format!("http://{name}/"))).await).class, EGRESS_DENIED);
        assert_eq!((resolver.asked(), dialer.dialled().len()), (0, 0), "{name}");
    }
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_judged_by_what_is_dialled() {
    let (executor, dialer, resolver) = watched(&[&["8.8.8.8"], &["127.0.0.1"]]);
    let job = post("http://rebinding.example/");
    assert_eq!(failure(executor.call(&job).await).class, CONNECT_ERROR);
    assert_eq!(resolver.asked(), 1, "looked up once for each connection: check and dial see the same answer");
    for _ in 0..3 {
        assert_eq!(failure(executor.call(&job).await).class, EGRESS_DENIED);
    }
    assert_eq!(dialer.dialled(), ["8.8.8.8:80".parse::<SocketAddr>().unwrap()]);
}

#[tokio::test]
async fn one_denied_answer_among_public_ones_denies_them_all() {
    for denied in ["10.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "fe80::1", "2002:7f00:1::"] {
        for answers in [["8.8.8.8", denied], [denied, "8.8.8.8"]] {
            let (executor, dialer, _) = watched(&[&answers]);
            let failure = failure(executor.call(&post("http://mixed.example/")).await);
            assert_eq!((failure.class.as_str(), failure.advice), (EGRESS_DENIED, Advice::Permanent));
            assert!(!failure.message.contains(denied) && !failure.message.contains("8.8.8.8"));
            assert_eq!(dialer.dialled(), [], "{answers:?}");
        }
    }
}

#[tokio::test]
async fn a_denied_answer_past_those_that_would_be_dialled_counts_too() {
    let answers = ["8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4", "8.8.8.5", "8.8.8.6", "127.0.0.1"];
    let (executor, dialer, _) = watched(&[&answers]);
    assert_eq!(failure(executor.call(&post("http://long.example/")).await).class, EGRESS_DENIED);
    assert_eq!(dialer.dialled(), []);
    let (executor, dialer, _) = watched(&[&answers[..6]]);
    assert_eq!(failure(executor.call(&post("http://long.example/")).await).class, CONNECT_ERROR);
    assert_eq!(dialer.dialled().len(), 4, "as many as are tried");
}

#[tokio::test]
async fn a_connection_that_ends_elsewhere_is_not_spoken_to() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let dialer = Arc::new(Spy::new(Then::Detour(receiver.address)));
    let (executor, _) = executor(HttpOptions { dialer, ..HttpOptions::default() });
    let failure = failure(executor.call(&post("http://8.8.8.8/")).await);
    assert_eq!(failure.class, EGRESS_DENIED);
    until("hung up", || receiver.ended() == 1).await;
    assert_eq!(receiver.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_leads_to_no_other_connection() {
    let locations: Vec<_> = DENIED_URLS.lines().filter(|line| line.is_ascii() && !line.starts_with("# ")).collect();
    for (n, location) in locations.into_iter().enumerate() {
        let status = [301, 302, 303, 307, 308][n % 5];
        let receiver = Receiver::always(Reply::with(status, &format!("Location: {location}\r\n"), "")).await;
        let dialer = Arc::new(Spy::new(Then::Connect));
        let (executor, _) = executor(HttpOptions { dialer: dialer.clone(), ..private() });
        assert_eq!(failure(executor.call(&post(receiver.url())).await).class, "Redirect");
        assert_eq!(dialer.dialled(), [receiver.address], "{location}");
    }
}

#[tokio::test]
async fn an_operators_list_opens_what_it_lists_and_nothing_else() {
    let egress = Egress::Allow(vec!["10.20.0.0/16".parse().unwrap(), "fd00:1::/32".parse().unwrap()]);
    for (address, open) in [
        ("10.20.0.1", true),
        ("10.20.255.255", true),
        ("::ffff:10.20.0.1", true),
        ("64:ff9b::10.20.0.1", true),
        ("fd00:1::5", true),
        ("8.8.8.8", true),
        ("10.21.0.1", false),
        ("10.19.255.255", false),
        ("127.0.0.1", false),
        ("169.254.169.254", false),
        ("fd00:2::5", false),
        ("2002:0a14:0001::1", false),
    ] {
        assert_eq!(egress.permits(ip(address)), open, "{address}");
        let (executor, dialer, _) =
            watched_with(HttpOptions { egress: egress.clone(), ..HttpOptions::default() }, &[&[address]]);
        executor.call(&post("http://db.internal/")).await;
        assert_eq!(dialer.dialled().len(), usize::from(open), "{address}");
    }
}

#[tokio::test]
async fn an_operators_deny_list_wins_over_everything() {
    let deny = vec!["127.0.0.1/32".parse().unwrap(), "8.8.8.8/32".parse().unwrap()];
    let (executor, dialer, _) = watched_with(HttpOptions { deny, ..private() }, &[&["127.0.0.1"]]);
    for url in ["http://127.0.0.1/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::8.8.8.8]/", "http://own.example/"] {
        assert_eq!(failure(executor.call(&post(url)).await).class, EGRESS_DENIED, "{url}");
    }
    assert_eq!(dialer.dialled(), []);
    executor.call(&post("http://127.0.0.2/")).await;
    assert_eq!(dialer.dialled().len(), 1);
}

#[test]
fn open_private_networks_keep_metadata_and_nonsense_out() {
    let open = ["127.0.0.1", "::1", "10.1.2.3", "172.20.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "8.8.8.8"];
    let shut = [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
        "64:ff9b::100.100.100.200",
        "::ffff:169.254.169.254",
        "fe80::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
        "ff02::1",
        "2002:7f00:1::",
    ];
    assert!(open.iter().all(|address| Egress::AllowPrivate.permits(ip(address))));
    for address in shut {
        assert!(!Egress::AllowPrivate.permits(ip(address)), "{address}");
    }
}

#[test]
fn the_table_is_tight_at_both_ends_of_every_range() {
    // First and last denied address of each range, and the public addresses right before and after it.
    for (before, first, last, after) in [
        ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
        ("168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
        ("223.255.255.255", "224.0.0.0", "255.255.255.255", ""),
        ("", "::", "::ffff:ffff", ""),
        ("64:ff9b::808:808", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", ""),
        ("", "100::", "1fff:ffff::", "2000::"),
        ("2000:ffff::", "2001::", "2001:1ff:ffff::", "2001:200::"),
        ("2001:db7:ffff::", "2001:db8::", "2001:db8:ffff::", "2001:db9::"),
        ("2001:ffff::", "2002::", "2002:ffff:ffff::", "2003::"),
        ("3ffe:ffff::", "3fff::", "3fff:fff:ffff::", "3fff:1000::"),
        ("3fff:ffff::", "4000::", "5eff::", ""),
        ("", "5f00::", "5f00:ffff::", ""),
        ("", "fc00::", "fdff:ffff::", ""),
        ("", "fe80::", "feff:ffff::", ""),
        ("", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ] {
        for denied in [first, last] {
            assert!(!Egress::Public.permits(ip(denied)), "{denied}");
        }
        for public in [before, after].into_iter().filter(|text| !text.is_empty()) {
            assert!(Egress::Public.permits(ip(public)), "{public}");
        }
    }
}

/// An independent check of public IPv4, written as arithmetic instead of a table.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    !(a == 0
        || a == 10
        || a == 127
        || a >= 224
        || (a == 100 && b & 0xc0 == 64)
        || (a == 168 && b == 63 && c == 129 && d == 16)
        || (a == 169 && b == 254)
        || (a == 172 && b & 0xf0 == 16)
        || (a == 192 && b == 168)
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && b & 0xfe == 18)
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113))
}

fn spelt(address: Ipv4Addr, way: usize) -> String {
    let [a, b, c, d] = address.octets();
    let number = u32::from(address);
    match way {
        0 => address.to_string(),
        1 => number.to_string(),
        2 => format!("{number:#x}"),
        3 => format!("0{number:o}"),
        4 => format!("{a:#x}.0{b:o}.{}", u16::from_be_bytes([c, d])),
        5 => format!("{a}.{b}.{c}.{d}."),
        6 => format!("[::ffff:{address}]"),
        _ => format!("[64:ff9b::{address}]"),
    }
}

proptest! {
    #[test]
    fn any_address_in_any_spelling_is_dialled_exactly_if_it_is_public(
        bits in prop_oneof![any::<u32>(), (0_usize..12, any::<u32>()).prop_map(|(n, low)| near(n, low))],
        way in 0_usize..8,
    ) {
        let address = Ipv4Addr::from(bits);
        let url = format!("http://{}/", spelt(address, way));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (dialled, failed) = runtime.block_on(async {
            let (executor, dialer, _) = watched(&[]);
            let failed = failure(executor.call(&post(&url)).await);
            (dialer.dialled(), failed)
        });
        let expected = if way == 7 {
            let [hi, lo] = [(bits >> 16) as u16, bits as u16];
            IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, hi, lo))
        } else {
            IpAddr::V4(address)
        };
        if is_public_v4(address) {
            prop_assert_eq!(dialled, [SocketAddr::new(expected, 80)], "{}", url);
        } else {
            prop_assert_eq!(dialled, [], "{}", url);
            prop_assert_eq!(failed.class, EGRESS_DENIED, "{}", url);
        }
    }
}

/// An address in or next to a denied range.
fn near(n: usize, low: u32) -> u32 {
    let starts = [
        0,
        0x0a00_0000,
        0x6440_0000,
        0x7f00_0000,
        0xa83f_8110,
        0xa9fe_0000,
        0xac10_0000,
        0xc000_0000,
        0xc0a8_0000,
        0xc612_0000,
        0xcb00_7100,
        0xe000_0000_u32,
    ];
    let width = [8, 16, 24, 32][(low >> 30) as usize];
    starts[n].wrapping_add(low & (u32::MAX >> (32 - width))).wrapping_sub(low >> 29 & 1)
}
