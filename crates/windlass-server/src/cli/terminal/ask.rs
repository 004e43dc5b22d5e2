//! Confirmation before actions that cannot be undone.

use crate::cli::Error;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Whether the caller has already said yes.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Consent {
    /// Do it without asking.
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Consent {
    /// Asks the user. Without a terminal no one can answer, and nothing is done.
    ///
    /// # Errors
    /// The answer is not yes, or there is no terminal.
    pub(crate) fn get(self, question: &str) -> Result<(), Error> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            return Err(Error::BadInput(format!(
                "{question}\n  hint: there is no terminal to ask on; repeat with --yes"
            )));
        }
        eprint!("{question} [y/N] ");
        // If the prompt cannot be shown, the read below ends the command.
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        let is_yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        if read.is_ok() && is_yes { Ok(()) } else { Err(Error::BadInput("nothing was done".into())) }
    }
}
