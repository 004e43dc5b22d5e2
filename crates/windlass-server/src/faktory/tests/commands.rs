use super::world::World;
use crate::faktory::command::{glob, parse};
use windlass::Random;

#[test]
fn a_glob_fits_the_whole_text() {
    for (pattern, text, fits) in [
        ("*", "", true),
        ("", "", true),
        ("", "a", false),
        ("*uid:12*", r#"{"args":["uid:12"]}"#, true),
        ("a*b*c", "aXXbYYc", true),
        ("a*b*c", "aXXbYY", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("é*", "éa", true),
    ] {
        assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
    }
    // No pattern makes it slow.
    assert!(!glob(&"a*".repeat(50), &"b".repeat(10_000)));
}

/// Pieces that valid commands are made of.
const PIECES: &[&str] = &[
    "PUSH",
    "PUSHB",
    "FETCH",
    "ACK",
    "FAIL",
    "BEAT",
    "INFO",
    "FLUSH",
    "MUTATE",
    "QUEUE",
    "BATCH",
    "TRACK",
    "HELLO",
    " ",
    " ",
    "{",
    "}",
    "[",
    "]",
    "\"jid\"",
    "\"jobtype\"",
    "\"args\"",
    ":",
    ",",
    "\"a\"",
    "1",
    "-1",
    "1e999",
    "null",
    "true",
    "\\u0000",
    "\"\\ud800\"",
    "PAUSE",
    "REMOVE",
    "*",
    "é",
    "\u{0}",
    "\r",
    "$-1",
    "\"custom\":{",
    "\"unique_for\":1",
];

fn random_line(random: &Random) -> String {
    let count = random.number() % 24;
    (0..count).map(|_| PIECES[(random.number() % PIECES.len() as u64) as usize]).collect()
}

#[test]
fn no_line_breaks_the_parser() {
    let seed = std::env::var("WINDLASS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let random = Random::seeded(seed);
    for _ in 0..20_000 {
        let _ = parse(&random_line(&random));
    }
}

#[tokio::test]
async fn no_line_breaks_the_server() {
    let seed = std::env::var("WINDLASS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let random = Random::seeded(seed);
    let w = World::new();
    for _ in 0..30 {
        let mut client = w.producer().await;
        for _ in 0..50 {
            let line = random_line(&random).replace(['\r', '\n'], "");
            // A FETCH would wait, and MUTATE and FLUSH are tested elsewhere.
            if line.to_ascii_uppercase().starts_with("FETCH") {
                continue;
            }
            let answer = client.call(&line).await;
            assert!(answer.starts_with(['+', '-', '{', '[', '$']), "{line:?}: {answer}");
        }
    }
}

/// Commands as clients send them.
const SAID: &[&str] = &[
    r#"PUSH {"jid":"a1","jobtype":"email","args":[1,"two"],"queue":"mail","retry":3,"reserve_for":600,"custom":{"unique_for":9}}"#,
    r#"PUSHB [{"jid":"a2","jobtype":"sms","args":[],"at":"2026-01-02T00:00:00Z"},{"jid":"a3","jobtype":"sms","args":[{}]}]"#,
    "FETCH mail default",
    r#"ACK {"jid":"a1"}"#,
    r#"FAIL {"jid":"a2","errtype":"E","message":"m","backtrace":["x","y"]}"#,
    r#"BEAT {"wid":"w-1234567","rss_kb":1}"#,
    r#"MUTATE {"cmd":"requeue","target":"scheduled","filter":{"regexp":"*a*","jids":["a2"],"jobtype":"sms"}}"#,
    "QUEUE PAUSE mail",
    "QUEUE RESUME *",
    "QUEUE LATENCY mail",
    "INFO",
    "FLUSH",
    r#"TRACK SET {"jid":"a1","percent":5}"#,
    "END",
];

/// Valid commands with some bytes changed, added, removed or doubled. `WINDLASS_FUZZ_ROUNDS` makes it longer
/// (`scripts/test-more faktory`).
#[tokio::test]
async fn no_bytes_break_the_server() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("WINDLASS_TEST_SEED").unwrap_or(1);
    println!("seed {seed}");
    let random = Random::seeded(seed);
    let below = |bound: usize| (random.number() % bound.max(1) as u64) as usize;
    let w = World::with(None, true);
    for round in 0..number("WINDLASS_FUZZ_ROUNDS").unwrap_or(400) {
        let hello = if round % 8 == 0 { "" } else { "HELLO {\"wid\":\"w-1234567\",\"v\":2}\r\n" };
        let mut bytes = hello.as_bytes().to_vec();
        for _ in 0..1 + below(12) {
            let mut line = SAID[below(SAID.len())].as_bytes().to_vec();
            for _ in 0..below(5) {
                let at = below(line.len());
                match below(4) {
                    0 => line.insert(at, below(256) as u8),
                    1 if !line.is_empty() => drop(line.remove(at)),
                    2 => line.extend_from_within(at..),
                    _ => line.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << below(8)),
                }
            }
            bytes.extend(line);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.truncate(bytes.len() - below(3));
        let said = w.converse(&bytes).await;
        assert!(said.starts_with(b"+HI {"), "{round}");
    }
    let mut client = w.producer().await;
    assert_eq!(client.call(r#"PUSH {"jid":"last","jobtype":"email","args":[]}"#).await, "+OK");
}

#[tokio::test]
async fn lines_are_bounded_and_must_be_text() {
    let w = World::new();
    let mut client = w.producer().await;
    client.send_bytes(b"PUSH \xff\xfe\r\n").await;
    assert!(client.reply().await.starts_with("-ERR a line is not UTF-8"));
    let (mut client, _) = w.greeted().await;
    client.send_bytes(&[b'a'; 20 * 1024]).await;
    assert!(client.is_closed().await);
}
