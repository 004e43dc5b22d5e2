//! The basic types of a job: ids, names, priority, delivery, states and reasons. Closed sets are enums.
//! Names are parsed once, on input, into types that cannot hold an invalid name.

use crate::time::Millis;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// The number of a job or schedule. Assigned by the store, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is not a valid name, and the form of a valid one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{text}` is not a name; names {form}")]
pub struct NameError {
    what: &'static str,
    text: String,
    form: &'static str,
}

/// The longest timeout of a call. A call that hangs holds its slot for this long.
pub const MAX_CALL_TIMEOUT: Millis = Millis::from_secs(3600);

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $form:literal, $is_valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks a text and makes it a name.
            ///
            /// # Errors
            /// The form of a valid name.
            pub fn new(text: &str) -> Result<Self, NameError> {
                if ($is_valid)(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(NameError { what: $what, text: text.chars().take(80).collect(), form: $form })
                }
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name!(
    /// The owner of jobs; the boundary of isolation. Case matters.
    Tenant, "tenant", "match [A-Za-z0-9][A-Za-z0-9._-]{0,63}", |text| is_name(text, |b| b.is_ascii_uppercase())
);
name!(
    /// A queue's name, unique within a tenant and executor.
    QueueName, "queue", "match [a-z0-9][a-z0-9._-]{0,63}", |text| is_name(text, |_| false)
);
name!(
    /// The name that chooses a job's handler: 1 to 128 printable characters, such as `email` or `Critical Task`.
    Kind, "kind", "have 1 to 128 printable characters and no space at either end", is_kind);

/// Shared by all jobs that name no tenant or no queue.
static DEFAULT: LazyLock<Arc<str>> = LazyLock::new(|| "default".into());

impl Default for Tenant {
    /// The tenant of callers that name none: `default`.
    fn default() -> Self {
        Self(DEFAULT.clone())
    }
}

impl Default for QueueName {
    /// The queue of jobs that name none: `default`.
    fn default() -> Self {
        Self(DEFAULT.clone())
    }
}

/// The most characters of a kind.
const MAX_KIND: usize = 128;

fn is_kind(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_KIND && text.trim() == text && text.chars().all(is_printable)
}

/// Whether a character can be seen: no control characters, and none that only change how others are shown, which would
/// let a name look like another one.
fn is_printable(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    !c.is_control() && !is_invisible
}

fn is_name(text: &str, also: fn(u8) -> bool) -> bool {
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || (also(b) && b.is_ascii_alphanumeric());
    let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b) || also(b);
    text.len() <= 64 && text.bytes().next().is_some_and(first) && text.bytes().all(rest)
}

/// Defines an enum whose variants each have one word, the same in SQL, JSON, logs and on the command line.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$vdoc])* $variant),+ }

        impl $type {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word back.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The state of a job.
    State {
        /// Waiting for its time, now or later.
        Queued = "queued",
        /// Claimed; an attempt is in progress.
        Running = "running",
        /// An attempt failed; waiting for the next one.
        Retrying = "retrying",
        /// Done.
        Succeeded = "succeeded",
        /// Given up; a dead letter until an operator replays or discards it.
        Failed = "failed",
        /// Ended by an operator, the caller or the handler.
        Cancelled = "cancelled",
    }
}

impl State {
    /// Live jobs have not finished; the others are in the archive.
    #[must_use]
    pub const fn is_live(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Retrying => true,
            Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }
}

words! {
    /// Why a job was given up.
    Reason {
        /// The failure was marked permanent, or the policy gives up on its class.
        Permanent = "permanent",
        /// The policy's retries are used up.
        Exhausted = "exhausted",
        /// The next attempt would start later than `maxElapsed` allows.
        Deadline = "deadline",
        /// Not started by its `startBy`.
        Expired = "expired",
        /// An at-most-once job whose one attempt did not succeed.
        AtMostOnce = "at_most_once",
        /// Its worker was lost too many times in a row.
        CrashLoop = "crash_loop",
    }
}

words! {
    /// How often a job may start.
    Delivery {
        /// It runs until it succeeds or the policy gives up; a crash may repeat an effect.
        AtLeastOnce = "AT_LEAST_ONCE",
        /// It starts at most once; only an operator's replay starts it again.
        AtMostOnce = "AT_MOST_ONCE",
    }
}

words! {
    /// Who carries out a queue's attempts.
    Executor {
        /// A worker of the queue: an in-process handler or a remote worker.
        Worker = "worker",
        /// Windlass itself, by calling a URL.
        Http = "http",
    }
}

/// A small closed scale ordering due jobs inside one queue; higher runs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    Lowest = -2,
    Low = -1,
    #[default]
    Normal = 0,
    High = 1,
    Highest = 2,
}

impl Priority {
    /// All priorities, in the order they are served.
    pub const HIGHEST_FIRST: [Self; 5] = [Self::Highest, Self::High, Self::Normal, Self::Low, Self::Lowest];

    /// The number stored: -2..=2.
    #[must_use]
    pub const fn rank(self) -> i16 {
        self as i16
    }

    #[must_use]
    pub fn from_rank(rank: i64) -> Option<Self> {
        Self::HIGHEST_FIRST.into_iter().find(|p| i64::from(p.rank()) == rank)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lowest => "lowest",
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Highest => "highest",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::HIGHEST_FIRST.into_iter().find(|p| p.as_str() == word)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_kinds_may_have_capitals_and_colons() {
        for good in ["email", "0", "a.b-c_d", &"x".repeat(64)] {
            assert!(QueueName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "Email", ".a", "-a", "_a", "a b", "a/b", "é", &"x".repeat(65)] {
            assert!(QueueName::new(bad).is_err(), "{bad}");
        }
        for kind in ["Billing::Invoice", ":Invoice", "Critical Task", "e", "Überweisung", "送信", &"k".repeat(128)] {
            assert_eq!(Kind::new(kind).unwrap().as_str(), kind);
        }
        for wrong in
            ["", " ", " a", "a ", "a\tb", "a\nb", "a\0b", "a\u{7f}", "a\u{202e}b", "a\u{200b}", &"k".repeat(129)]
        {
            assert!(Kind::new(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn words_read_back() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(*state));
        }
        for priority in Priority::HIGHEST_FIRST {
            assert_eq!(Priority::parse(priority.as_str()), Some(priority));
            assert_eq!(Priority::from_rank(priority.rank().into()), Some(priority));
        }
        assert_eq!(Priority::from_rank(3), None);
    }
}
