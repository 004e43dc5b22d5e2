//! `windlass config`: the effective configuration and where each value came from.

use super::Error;
use super::node::NodeArgs;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    node: NodeArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<String, Error> {
    let shown = args.node.load()?.shown();
    if args.json {
        let entry =
            |line: &crate::config::Shown| (line.key.clone(), json!({ "value": line.value, "source": line.source }));
        let object: Value = Value::Object(shown.iter().map(entry).collect());
        return Ok(format!("{object:#}\n"));
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["KEY", "VALUE", "FROM", ""]);
    for line in shown {
        let value = line.value.as_str().map_or_else(|| line.value.to_string(), str::to_owned);
        table.add_row([line.key, value, line.source, line.help.to_owned()]);
    }
    Ok(format!("{}\n", table.trim_fmt()))
}
