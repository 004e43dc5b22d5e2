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
