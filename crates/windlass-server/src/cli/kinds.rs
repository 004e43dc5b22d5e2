//! `windlass kinds`: the policy and error rules of kinds.

use super::remote::target::Target;
use super::terminal::grid::{Grid, cut, wrapped};
use super::terminal::screen::Screen;
use super::terminal::words::plain;
use super::{Error, pretty};
use clap::Subcommand;
use hyper::Method;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "\
Examples:
  windlass kinds
  windlass kinds set charge --policy full-jitter
  windlass kinds set charge --rules '[{\"match\":{\"class\":\"Stripe*\"},\"then\":\"hold\",\"for\":\"30s\"}]'
  windlass kinds set charge --reset                 back to what the nodes' files say

Settings of a kind hold for every tenant and queue. Omitted settings stay.
Exit codes: 0 done, 2 bad input, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<KindAction>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum KindAction {
    /// List the kinds that have settings of their own.
    List,
    /// Set the policy and the error rules of a kind.
    Set {
        name: String,
        /// A policy's name or line; none removes it.
        #[arg(long)]
        policy: Option<String>,
        /// Error rules, as a JSON list; none removes them.
        #[arg(long, value_name = "JSON")]
        rules: Option<String>,
        /// Back to the defaults.
        #[arg(long, conflicts_with_all = ["policy", "rules"], required_unless_present_any = ["policy", "rules"])]
        reset: bool,
    },
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let api = args.target.api().await?;
    let found = api.get("/api/v1/kinds").await?;
    match &args.action {
        None | Some(KindAction::List) => Ok(if args.target.json { pretty(&found) } else { listed(&found, screen) }),
        Some(KindAction::Set { name, policy, rules, reset }) => {
            let is_it = |kind: &&Value| kind["name"] == *name && !reset;
            let old = found["items"].as_array().into_iter().flatten().find(is_it);
            let mut settings: Map<String, Value> =
                old.and_then(|kind| kind["settings"].as_object()).cloned().unwrap_or_default();
            put(&mut settings, "policy", policy.as_ref().map(|policy| json!(policy)));
            put(&mut settings, "rules", rules.as_deref().map(read_rules).transpose()?);
            // `+` for a space is for forms; in a path it is a plus.
            let path: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
            let path = format!("/api/v1/kinds/{}", path.replace('+', "%20"));
            let kind = api.send(Method::PUT, &path, Some(Value::Object(settings).to_string())).await?;
            Ok(if args.target.json { pretty(&kind) } else { format!("kind {name}: {}\n", kind["settings"]) })
        }
    }
}

fn read_rules(text: &str) -> Result<Value, Error> {
    if text == "none" {
        return Ok(json!("none"));
    }
    serde_json::from_str(text)
        .map_err(|error| Error::BadInput(format!("--rules: must be a JSON list of rules: {error}")))
}

fn put(settings: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        None => {}
        Some(value) if value == "none" => drop(settings.remove(name)),
        Some(value) => drop(settings.insert(name.to_owned(), value)),
    }
}

fn listed(found: &Value, screen: &Screen) -> String {
    let mut grid = Grid::new([cut("kind"), wrapped("policy"), wrapped("rules")]);
    for kind in found["items"].as_array().into_iter().flatten() {
        let shown = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
        };
        let settings = &kind["settings"];
        grid.row([plain(&kind["name"]).into(), shown(&settings["policy"]).into(), shown(&settings["rules"]).into()]);
    }
    grid.or("no kind has settings of its own: windlass kinds set KIND --policy POLICY", screen)
}
