//! `windlass stats`: what happened over 5 minutes, an hour, a day, or since the beginning.

use super::remote::target::Target;
use super::terminal::grid::{Grid, number, text};
use super::terminal::screen::Screen;
use super::terminal::words::{grouped, plain, rough};
use super::{Error, pretty};
use clap::ValueEnum;
use serde_json::Value;
use windlass_core::Millis;

const EXAMPLES: &str = "\
Examples:
  windlass stats                          the last hour, in total and per queue
  windlass stats --window 5m --by kind
  windlass stats --window 24h --by tenant
  windlass stats --window all             since the beginning
  windlass stats --json                   all windows, by queue, kind and tenant

Columns: retries are attempts that were retries; `paid off` is the share of them that led to
success. Times are means: in backoff before a retry, waiting for a worker once due (pickup), running.
Exit codes: 0 done, 2 bad input, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The time window.
    #[arg(long, short, value_enum, default_value = "1h")]
    window: Window,
    /// How to group the figures.
    #[arg(long, value_enum, default_value = "queue")]
    by: By,
    /// Only this tenant.
    #[arg(long)]
    tenant: Option<String>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Window {
    #[value(name = "5m")]
    FiveMinutes,
    #[value(name = "1h")]
    Hour,
    #[value(name = "24h")]
    Day,
    /// Since the store was created.
    #[value(name = "all")]
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    Queue,
    Kind,
    Tenant,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let api = args.target.api().await?;
    let found = api.get_with("/api/v1/stats", &[("tenant", args.tenant.clone())]).await?;
    if args.target.json {
        return Ok(pretty(&found));
    }
    let window = match args.window {
        Window::FiveMinutes => "5m",
        Window::Hour => "1h",
        Window::Day => "24h",
        Window::All => "all",
    };
    let (name, key) = match args.by {
        By::Queue => ("queue", "queues"),
        By::Kind => ("kind", "kinds"),
        By::Tenant => ("tenant", "tenants"),
    };
    let stats = &found["windows"][window];
    let title = match args.window {
        Window::All => "since the beginning".to_owned(),
        Window::FiveMinutes | Window::Hour | Window::Day => format!("the last {window}"),
    };
    let waiting = waiting(&found["waiting"]);
    Ok(format!("{}\n\n{}{waiting}", screen.ink.bold(&title), table(stats, name, key, screen)))
}

/// `waiting now: 120 later, 30 concurrency`; nothing if no job waits.
fn waiting(counts: &Value) -> String {
    let each = counts.as_object().into_iter().flatten();
    let words: Vec<String> =
        each.map(|(what, count)| format!("{} {what}", grouped(count.as_u64().unwrap_or_default()))).collect();
    if words.is_empty() { String::new() } else { format!("\nwaiting now: {}\n", words.join(", ")) }
}

/// Totals, and the figures of each group.
pub(crate) fn table(stats: &Value, name: &'static str, key: &str, screen: &Screen) -> String {
    let mut grid = Grid::new([
        text(name),
        number("enqueued").optional(),
        number("attempts"),
        number("succeeded"),
        number("failed"),
        number("retries"),
        number("paid off").optional(),
        number("exhausted").optional(),
        number("backoff").optional(),
        number("pickup").optional(),
        number("run").optional(),
        number("lost").optional(),
    ]);
    let parts = stats[key].as_object().into_iter().flatten();
    for (name, counts) in parts.map(|(name, counts)| (name.as_str(), counts)).chain([("all", &stats["total"])]) {
        let count = |field: &str| plain(&counts[field]).into();
        let mean = |field: &str| {
            let ms = counts["latency"][field].as_f64();
            ms.map_or_else(|| "–".to_owned(), |ms| rough(Millis::new(ms.round() as u64))).into()
        };
        let rate = counts["retrySuccessRate"].as_f64();
        grid.row([
            name.into(),
            count("enqueued"),
            count("attempts"),
            count("succeeded"),
            count("failed"),
            count("totalRetries"),
            rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.0}%", rate * 100.0)).into(),
            count("exhausted"),
            mean("backoffMs"),
            mean("pickupMs"),
            mean("runMs"),
            count("lost"),
        ]);
    }
    grid.render(screen)
}
