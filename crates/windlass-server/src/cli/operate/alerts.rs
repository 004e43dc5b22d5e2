//! `windlass alerts`: which alerts hold, the rules, and a test notice.

use crate::cli::remote::api::Api;
use crate::cli::remote::target::Target;
use crate::cli::terminal::grid::{Grid, Shown, cut, number, text, wrapped};
use crate::cli::terminal::input;
use crate::cli::terminal::screen::{Hue, Screen};
use crate::cli::terminal::words::{Now, plain};
use crate::cli::{Error, pretty};
use clap::Subcommand;
use hyper::Method;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "\
Examples:
  windlass alerts                                     what holds now, and what held before
  windlass alerts rules
  windlass alerts set dead_letters --threshold 10 --for 1m
  windlass alerts set slow-mail --measure oldest_due --threshold 2m --queue email
  windlass alerts set dead_letters --notify oncall --remind 4h --quiet '22:00-07:00 Europe/Berlin'
  windlass alerts off retry_rate                      no node judges it any more
  windlass alerts reset retry_rate                    back to the nodes' files, or the default
  windlass alerts test                                one notice to each of alerts.urls

All nodes follow a change within seconds, without a restart. Measures: dead_letters (a number of
jobs), retry_rate (percent), exhausted (a number of jobs), backoff and oldest_due (durations),
open_breakers (a number of circuit breakers), holds (how long the oldest one lasts).
Exit codes: 0 done, 2 bad input, 3 no such rule, 4 nobody to notify, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<AlertAction>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum AlertAction {
    /// Show the alerts: pending, firing and resolved.
    List,
    /// Show the rules, and who set each.
    Rules,
    /// Add a rule, or change the one of this name.
    Set(Box<SetArgs>),
    /// Turn off a rule, also a default one or one of a file.
    Off { name: String },
    /// Remove what was set here: the file's rule or the default one is judged again.
    #[command(alias = "remove")]
    Reset { name: String },
    /// Send one notice to each of the operators' URLs.
    Test,
}

/// The fields of a rule.
#[derive(Debug, clap::Args)]
struct SetArgs {
    name: String,
    /// What it measures; may be left out if the name says it.
    #[arg(long)]
    measure: Option<String>,
    /// From where on it holds: a number, or a duration such as 2m.
    #[arg(long)]
    threshold: Option<String>,
    /// How long it must hold before the alert fires.
    #[arg(long = "for", value_name = "SPAN", value_parser = input::span)]
    lasting: Option<String>,
    /// For rates: the least number of attempts that count.
    #[arg(long, value_name = "COUNT")]
    min_count: Option<u64>,
    /// Only this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// How far back rates and counts look: 1m to 24h [default: 5m].
    #[arg(long, value_name = "SPAN", value_parser = input::span)]
    window: Option<String>,
    /// Notify only this operator, by its name in alerts.urls; may be repeated.
    #[arg(long, value_name = "NAME")]
    notify: Vec<String>,
    /// Remind operators this often while it fires [default: never].
    #[arg(long, value_name = "SPAN", value_parser = input::span)]
    remind: Option<String>,
    /// When nobody is notified, such as '22:00-07:00 Europe/Berlin'.
    #[arg(long, value_name = "HOURS")]
    quiet: Option<String>,
}

impl SetArgs {
    /// The fields that were given.
    fn fields(&self) -> Map<String, Value> {
        let texts = [
            ("measure", &self.measure),
            ("for", &self.lasting),
            ("queue", &self.queue),
            ("tenant", &self.tenant),
            ("window", &self.window),
            ("remind", &self.remind),
            ("quiet", &self.quiet),
        ];
        let given = texts.into_iter().filter_map(|(field, value)| Some((field.to_owned(), json!(value.as_ref()?))));
        let mut fields: Map<String, Value> = given.collect();
        fields.extend(self.threshold.iter().map(|text| ("threshold".to_owned(), number_or_text(text))));
        fields.extend(self.min_count.map(|count| ("minCount".to_owned(), json!(count))));
        if !self.notify.is_empty() {
            fields.insert("notify".into(), json!(self.notify));
        }
        fields
    }
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let (api, json) = (args.target.api().await?, args.target.json);
    match &args.action {
        None | Some(AlertAction::List) => list(&api, json, screen).await,
        Some(AlertAction::Rules) => rules(&api, json, screen).await,
        Some(AlertAction::Set(set)) => {
            let fields = Value::Object(set.fields()).to_string();
            let rule = api.send(Method::PUT, &path(&set.name), Some(fields)).await?;
            Ok(if json { pretty(&rule) } else { line(&rule) })
        }
        Some(AlertAction::Off { name }) => {
            let rule = api.send(Method::PUT, &path(name), Some(json!({ "off": true }).to_string())).await?;
            Ok(if json { pretty(&rule) } else { line(&rule) })
        }
        Some(AlertAction::Reset { name }) => {
            api.ask(Method::DELETE, &path(name)).await?;
            Ok(if json { pretty(&json!({ "reset": name })) } else { format!("rule {name}: reset\n") })
        }
        Some(AlertAction::Test) => {
            let sent = api.ask(Method::POST, "/api/v1/alerts/test").await?;
            let each = sent["items"].as_array().into_iter().flatten();
            let lines = each.map(|one| {
                format!("sent to {} ({}): job {}\n", plain(&one["name"]), plain(&one["form"]), one["jobId"])
            });
            Ok(if json { pretty(&sent) } else { lines.collect() })
        }
    }
}

fn path(name: &str) -> String {
    // `+` for a space is for forms; in a path it is a plus.
    let name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    format!("/api/v1/alerts/rules/{}", name.replace('+', "%20"))
}

fn number_or_text(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
}

async fn list(api: &Api, json: bool, screen: &Screen) -> Result<String, Error> {
    let found = api.get("/api/v1/alerts").await?;
    if json {
        return Ok(pretty(&found));
    }
    let now = Now::read();
    let mut grid = Grid::new([
        cut("rule"),
        text("status"),
        text("queue").optional(),
        text("tenant").optional(),
        text("since"),
        wrapped("detail"),
    ]);
    for alert in found["items"].as_array().into_iter().flatten() {
        let status = plain(&alert["status"]);
        let shown = match status.as_str() {
            "firing" => Shown::hued(&status, Hue::Bad),
            "pending" => Shown::hued(&status, Hue::Warn),
            _ => status.as_str().into(),
        };
        grid.row([
            plain(&alert["rule"]).into(),
            shown,
            plain(&alert["queue"]).into(),
            plain(&alert["tenantId"]).into(),
            now.distance(&alert["since"]).into(),
            plain(&alert["detail"]).into(),
        ]);
    }
    Ok(grid.or("no alerts", screen))
}

async fn rules(api: &Api, json: bool, screen: &Screen) -> Result<String, Error> {
    let found = api.get("/api/v1/alerts/rules").await?;
    if json {
        return Ok(pretty(&found));
    }
    let mut grid = Grid::new([
        cut("rule"),
        text("measure"),
        number("threshold"),
        text("for"),
        number("min count").optional(),
        text("queue").optional(),
        text("tenant").optional(),
        cut("notifies").optional(),
        text("remind").optional(),
        cut("quiet").optional(),
        cut("set by"),
    ]);
    for rule in found["items"].as_array().into_iter().flatten() {
        let source = if rule["off"] == true { Shown::hued("off", Hue::Warn) } else { plain(&rule["source"]).into() };
        grid.row([
            plain(&rule["name"]).into(),
            plain(&rule["measure"]).into(),
            plain(&rule["threshold"]).into(),
            plain(&rule["for"]).into(),
            plain(&rule["minCount"]).into(),
            plain(&rule["queue"]).into(),
            plain(&rule["tenant"]).into(),
            names(&rule["notify"]).into(),
            plain(&rule["remind"]).into(),
            plain(&rule["quiet"]).into(),
            source,
        ]);
    }
    Ok(grid.or("no alert rules", screen))
}

fn names(list: &Value) -> String {
    list.as_array().into_iter().flatten().map(plain).collect::<Vec<_>>().join(", ")
}

fn line(rule: &Value) -> String {
    let (name, measure) = (plain(&rule["name"]), plain(&rule["measure"]));
    if rule["off"] == true {
        return format!("rule {name}: off\n");
    }
    let queue = rule["queue"].as_str().map_or_else(String::new, |queue| format!(" of queue {queue}"));
    format!("rule {name}: {measure}{queue} from {} for {}\n", plain(&rule["threshold"]), plain(&rule["for"]))
}
