//! Commands: one line of text each, a word and its argument. Parsing is pure.

use serde::Deserialize;
use serde_json::value::RawValue;

/// What a client asks for.
#[derive(Debug, Clone)]
pub(super) enum Command<'a> {
    Push(&'a RawValue),
    PushMany(Vec<&'a RawValue>),
    /// Queues, in the order they are asked.
    Fetch(Vec<&'a str>),
    Ack(String),
    Fail(Fail),
    Beat(Beat),
    Info,
    Flush,
    End,
    Mutate(Mutation),
    Queue(QueueAction, Vec<&'a str>),
    /// A command of the protocol that Windlass does not offer.
    NotSupported(&'static str),
}

/// The report of a failed job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Fail {
    pub(super) jid: String,
    #[serde(default)]
    pub(super) errtype: Option<String>,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) backtrace: Option<Vec<String>>,
}

/// A sign of life of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Beat {
    pub(super) wid: String,
}

/// A change to many jobs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Mutation {
    pub(super) cmd: MutationAction,
    #[serde(default)]
    pub(super) target: Option<Target>,
    #[serde(default)]
    pub(super) filter: Option<Filter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MutationAction {
    Clear,
    Discard,
    Kill,
    Requeue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    Scheduled,
    Retries,
    Dead,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Filter {
    #[serde(default)]
    pub(super) jobtype: Option<String>,
    #[serde(default)]
    pub(super) jids: Option<Vec<String>>,
    /// A glob over the job's compact JSON.
    #[serde(default)]
    pub(super) regexp: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueAction {
    Pause,
    Resume,
    Remove,
    List,
    Latency,
}

#[derive(Deserialize)]
struct Jid {
    jid: String,
}

/// Reads a line without its end.
///
/// # Errors
/// What is wrong with it, for the client.
pub(super) fn parse(line: &str) -> Result<Command<'_>, String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let words = || rest.split_ascii_whitespace().collect::<Vec<_>>();
    match word.to_ascii_uppercase().as_str() {
        "PUSH" => Ok(Command::Push(json("PUSH", rest)?)),
        "PUSHB" => Ok(Command::PushMany(json("PUSHB", rest)?)),
        "FETCH" => Ok(Command::Fetch(words())),
        "ACK" => Ok(Command::Ack(json::<Jid>("ACK", rest)?.jid)),
        "FAIL" => Ok(Command::Fail(json("FAIL", rest)?)),
        "BEAT" => Ok(Command::Beat(json("BEAT", rest)?)),
        "INFO" => Ok(Command::Info),
        "FLUSH" => Ok(Command::Flush),
        "END" => Ok(Command::End),
        "MUTATE" => Ok(Command::Mutate(json("MUTATE", rest)?)),
        "QUEUE" => queue(&words()),
        "BATCH" => Ok(Command::NotSupported("BATCH")),
        "TRACK" => Ok(Command::NotSupported("TRACK")),
        _ => Err(format!("unknown command {}", word.chars().take(20).collect::<String>())),
    }
}

fn json<'a, T: Deserialize<'a>>(command: &str, text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{command} takes JSON that fits the protocol: {error}"))
}

fn queue<'a>(words: &[&'a str]) -> Result<Command<'a>, String> {
    let (action, names) = words.split_first().unwrap_or((&"", &[]));
    let action = match action.to_ascii_uppercase().as_str() {
        "PAUSE" => QueueAction::Pause,
        "RESUME" | "UNPAUSE" => QueueAction::Resume,
        "REMOVE" => QueueAction::Remove,
        "LIST" => QueueAction::List,
        "LATENCY" => QueueAction::Latency,
        _ => return Err("QUEUE takes PAUSE, RESUME, REMOVE, LIST or LATENCY, and names of queues".into()),
    };
    Ok(Command::Queue(action, names.to_vec()))
}

/// Whether a text fits a glob: `*` stands for any text, `?` for one character. Linear in time for each star.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star, mut mark) = (0, 0, None, 0);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                (star, mark) = (Some(p), t);
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            Some(_) | None => match star {
                // The last star takes one character more.
                Some(at) => {
                    mark += 1;
                    (p, t) = (at + 1, mark);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
