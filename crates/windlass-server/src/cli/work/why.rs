//! `windlass why`: why a job is where it is, in two sentences.

use crate::cli::remote::target::Target;
use crate::cli::terminal::screen::{Screen, wrap};
use crate::cli::terminal::words::plain;
use crate::cli::{Error, pretty};

const EXAMPLES: &str = "\
Examples:
  windlass why 42
  windlass why 42 --json

Says what the job waits for and until when, who runs it, or why it gave up.
Exit codes: 0 done, 2 bad input, 3 no such job, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The job's id.
    id: i64,
    #[command(flatten)]
    target: Target,
}

/// What follows for the job while the server or its database does not answer.
fn unreachable_store(id: i64, error: Error) -> Error {
    match error {
        Error::Unavailable(cause) => Error::Unavailable(format!(
            "job {id} cannot be looked up. While its database cannot be reached, nothing starts and no job is charged \
             an attempt; work resumes by itself. {cause}"
        )),
        other @ (Error::Reported(_)
        | Error::Failed(_)
        | Error::BadInput(_)
        | Error::NotFound(_)
        | Error::Conflict(_)) => other,
    }
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let asked = async { args.target.api().await?.get(&format!("/api/v1/jobs/{}/why", args.id)).await };
    let why = asked.await.map_err(|error| unreachable_store(args.id, error))?;
    if args.target.json {
        return Ok(pretty(&why));
    }
    let sentences: Vec<String> = why["sentences"].as_array().into_iter().flatten().map(plain).collect();
    let text = format!("job {} is {}. {}", args.id, plain(&why["state"]), sentences.join(" "));
    Ok(format!("{}\n", wrap(&text, screen.width)))
}
