//! Confirmation before what cannot be taken back.

use crate::cli::Error;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Whether the caller has said yes already.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Consent {
    /// Do it without asking.
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Consent {
    /// Asks a person. Without a terminal nobody can answer: then nothing is done.
    ///
    /// # Errors
    /// The answer is not yes, or nobody is there to give one.
    pub(crate) fn get(self, question: &str) -> Result<(), Error> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            return Err(Error::BadInput(format!("{question}\n  hint: nobody is here to answer; repeat with --yes")));
        }
        eprint!("{question} [y/N] ");
        // A prompt that cannot be shown is answered by no one: the read below ends it.
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        let is_yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        if read.is_ok() && is_yes { Ok(()) } else { Err(Error::BadInput("nothing was done".into())) }
    }
}
