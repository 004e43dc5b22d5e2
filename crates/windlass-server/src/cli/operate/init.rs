//! `windlass init`: writes a configuration with every setting explained, and says what to do next.

use crate::announce::reachable;
use crate::cli::Error;
use crate::config::{Config, DEFAULT_FILE, Inputs, template};
use serde_json::{Value, json};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  windlass init                                writes windlass.toml
  windlass init --store postgres://windlass@db/jobs
  windlass init -                              prints it instead

The file has every setting with its default, commented out. Only you can read it, because it may
hold secrets. Exit codes: 0 done, 1 failed, 2 bad input, 4 the file exists (--force replaces it).";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to write; `-` prints it.
    #[arg(default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Where jobs are kept: sqlite:PATH or postgres://…
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Where the API listens.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Replace an existing file.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args) -> Result<String, Error> {
    let given = [("store", "--store", &args.store), ("listen", "--listen", &args.listen)];
    let given: Vec<(&str, &str, Value)> =
        given.into_iter().filter_map(|(key, flag, value)| Some((key, flag, json!(value.as_ref()?)))).collect();
    let config = Config::load_without_file(&Inputs { flags: given.clone(), ..Inputs::default() })
        .map_err(|error| Error::BadInput(error.to_string()))?;
    let set: Vec<(&str, Value)> = given.into_iter().map(|(key, _, value)| (key, value)).collect();
    let text = template(&set);
    if args.file.as_os_str() == "-" {
        return Ok(text);
    }
    write(&args.file, &text, args.force)?;
    Ok(next_steps(&args.file, &config))
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).mode(0o600);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Error::Conflict(format!(
                "{} exists; name another file, or replace it with --force",
                path.display()
            ));
        }
        Error::Failed(anyhow::anyhow!("{} cannot be written: {error}", path.display()))
    })
}

fn next_steps(path: &Path, config: &Config) -> String {
    let shown = path.display();
    let flag = if path == Path::new(DEFAULT_FILE) { String::new() } else { format!(" --config {shown}") };
    let address = config
        .text("listen")
        .parse()
        .map_or_else(|_| config.text("listen").to_owned(), |address| reachable(address).to_string());
    format!(
        "wrote {shown}: every setting with its default, commented out\n\n\
         Next:\n  \
         windlass serve{flag}\n      starts a node; its dashboard is at http://{address}/\n  \
         windlass enqueue --url https://example.com/ --wait\n      runs a first job\n  \
         windlass token create ops --scope admin{flag}\n      before anyone else may reach the node\n"
    )
}
