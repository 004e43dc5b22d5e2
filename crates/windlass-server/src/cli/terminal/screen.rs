//! The output device: how wide it is and whether to use colour.

use std::io::IsTerminal as _;
use unicode_width::UnicodeWidthStr as _;

/// The default width: a file or pipe is usually read in an editor.
const DEFAULT_WIDTH: usize = 100;
/// The smallest width for the layout; a narrower terminal may wrap.
const MIN_WIDTH: usize = 40;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: usize,
    pub(crate) ink: Ink,
}

/// Whether to write escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Colour,
}

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    Good,
    Warn,
    Bad,
    Live,
    Faint,
}

impl Screen {
    /// `COLUMNS`, else the terminal's width; colour on a terminal that supports it, unless `NO_COLOR` is set.
    pub(crate) fn of_this_process() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let columns = set("COLUMNS").and_then(|v| v.parse().ok());
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let on_terminal = std::io::stdout().is_terminal();
        let width = columns.or_else(|| terminal().filter(|_| on_terminal)).unwrap_or(DEFAULT_WIDTH);
        let colour = on_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|t| t != "dumb");
        Self { width: width.max(MIN_WIDTH), ink: if colour { Ink::Colour } else { Ink::Plain } }
    }
}

impl Ink {
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// The text in the colour of its meaning.
    pub(crate) fn hued(self, hue: Hue, text: &str) -> String {
        match hue {
            Hue::Good => self.paint("32", text),
            Hue::Warn => self.paint("33", text),
            Hue::Bad => self.paint("31", text),
            Hue::Live => self.paint("36", text),
            Hue::Faint => self.paint("2", text),
        }
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Colour if text.is_empty() => String::new(),
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// How many columns a text takes on a terminal: some letters take two.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Breaks a text at blanks so that no line is wider than `columns`, if possible.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if self::width(line) + 1 + self::width(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}
