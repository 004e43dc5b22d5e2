//! `windlass config`: the effective configuration and where each value came from, then what the store holds.

use crate::cli::Error;
use crate::cli::operate::node::NodeArgs;
use crate::cli::remote::store::is_missing_file;
use crate::cli::terminal::grid::{Grid, text, wrapped};
use crate::cli::terminal::screen::Screen;
use crate::config::{Config, masked, subject};
use serde_json::{Map, Value, json};
use windlass::client::{Setting, SettingSource};

const EXAMPLES: &str = "\
Examples:
  windlass config                              every value, and where it came from
  windlass config --config prod.toml --json
  WINDLASS_LISTEN=127.0.0.1:8080 windlass config

A flag overrides a WINDLASS_… variable, which overrides windlass.toml, which overrides the default.
The second table shows what the store holds for every producer, and who set it.
Secrets are not shown. Exit codes: 0 done, 2 bad input (the file, a variable or a flag is wrong).";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    node: NodeArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A setting in the store.
struct Stored {
    subject: String,
    value: Value,
    source: String,
    is_in_force: bool,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let config = args.node.load()?;
    let shown = config.shown();
    let stored = stored(&config).await;
    if args.json {
        let entry =
            |line: &crate::config::Shown| (line.key.clone(), json!({ "value": line.value, "source": line.source }));
        let mut object: Map<String, Value> = shown.iter().map(entry).collect();
        let entry = |line: &Stored| json!({ "setting": line.subject, "value": line.value, "source": line.source, "inForce": line.is_in_force });
        let listed = stored.as_ref().map(|lines| lines.iter().map(entry).collect::<Value>());
        object.insert("stored".into(), listed.unwrap_or_default());
        let object = Value::Object(object);
        return Ok(format!("{object:#}\n"));
    }
    let mut grid = Grid::new([text("key"), wrapped("value"), wrapped("from"), wrapped("what it is")]);
    for line in shown {
        let value = line.value.as_str().map_or_else(|| line.value.to_string(), str::to_owned);
        grid.row([line.key.into(), value.into(), line.source.into(), line.help.into()]);
    }
    let listed = match &stored {
        Ok(lines) if lines.is_empty() => "nothing is set in the store\n".to_owned(),
        Ok(lines) => table(lines, screen),
        Err(why) => format!("the settings in the store are not shown: {why}\n"),
    };
    Ok(format!("{}\nIn the store, for every producer:\n{listed}", grid.render(screen)))
}

fn table(lines: &[Stored], screen: &Screen) -> String {
    let mut grid = Grid::new([text("setting"), wrapped("value"), wrapped("set by"), text("in force")]);
    for line in lines {
        let in_force = if line.is_in_force { "yes" } else { "no" };
        grid.row([
            line.subject.clone().into(),
            line.value.to_string().into(),
            line.source.clone().into(),
            in_force.to_owned().into(),
        ]);
    }
    grid.render(screen)
}

/// Every setting in the store, or why there are none. Nothing is created.
async fn stored(config: &Config) -> Result<Vec<Stored>, String> {
    let url = config.text("store");
    if is_missing_file(url) {
        return Err("there is no such file yet".into());
    }
    let windlass = crate::serve::open_as_is(config).await.map_err(|error| format!("{error:#}"))?;
    let settings = windlass.settings().stored().await.map_err(|error| error.to_string())?;
    let first = |position: usize| position == 0 || settings[position - 1].key != settings[position].key;
    let line = |(position, setting): (usize, &Setting)| Stored {
        subject: subject(&setting.key),
        value: masked(serde_json::from_str(&setting.value).unwrap_or_default()),
        source: match &setting.source {
            SettingSource::Operator => "API or command line".into(),
            SettingSource::Node { node, origin } => format!("{origin} on node {node}"),
        },
        is_in_force: first(position),
    };
    Ok(settings.iter().enumerate().map(line).collect())
}
