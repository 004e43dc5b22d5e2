//! `windlass tenants`: a tenant's default webhook, its quotas, and new webhook secrets.

use super::remote::target::Target;
use super::terminal::words::plain;
use super::{Error, pretty};
use clap::Subcommand;
use hyper::Method;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "\
Examples:
  windlass tenants show Acme
  windlass tenants set Acme --webhook https://acme.example/done --event failed --secret whsec_…
  windlass tenants set Acme --no-webhook            back to what the nodes' files say
  windlass tenants quotas Acme --waiting 100000 --enqueue-rate 100/s
  windlass tenants rotate-secret Acme               a new webhook secret; the old one signs too for 24 hours
  windlass tenants rotate-secret Acme --schedule 12 --overlap 3d

The webhook is for the tenant's jobs that name none. Jobs that are already stored keep theirs.
Exit codes: 0 done, 2 bad input, 3 no such tenant, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: TenantAction,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum TenantAction {
    /// Show a tenant's settings.
    Show { name: String },
    /// Set a tenant's webhook.
    Set {
        name: String,
        /// The URL that is called when a job finishes.
        #[arg(long, value_name = "URL", required_unless_present = "no_webhook")]
        webhook: Option<String>,
        /// Only this event: succeeded, failed or cancelled; may be repeated.
        #[arg(long, value_name = "EVENT", requires = "webhook")]
        event: Vec<String>,
        /// Signs the calls: whsec_…
        #[arg(long, requires = "webhook")]
        secret: Option<String>,
        /// The retry policy of the calls, by name or line.
        #[arg(long, requires = "webhook")]
        policy: Option<String>,
        /// Remove the webhook that was set here.
        #[arg(long, conflicts_with = "webhook")]
        no_webhook: bool,
    },
    /// Set a tenant's own quotas. Those that are not named are removed.
    Quotas {
        name: String,
        /// The most jobs that wait.
        #[arg(long, value_name = "COUNT")]
        waiting: Option<u64>,
        /// How many jobs a node stores per time, such as 100/s.
        #[arg(long, value_name = "RATE")]
        enqueue_rate: Option<String>,
        /// The most event streams at once on a node.
        #[arg(long, value_name = "COUNT")]
        streams: Option<u32>,
        /// The most long polls at once on a node.
        #[arg(long, value_name = "COUNT")]
        long_polls: Option<u32>,
        /// The most calls to URLs at once on a node.
        #[arg(long, value_name = "COUNT")]
        http_concurrency: Option<u32>,
        /// Remove all of them: back to what the nodes' files say.
        #[arg(long, conflicts_with_all = ["waiting", "enqueue_rate", "streams", "long_polls", "http_concurrency"],
            required_unless_present_any = ["waiting", "enqueue_rate", "streams", "long_polls", "http_concurrency"])]
        none: bool,
    },
    /// Replace a webhook secret. The old one signs too until the overlap ends.
    RotateSecret {
        name: String,
        /// The secret of this job's webhook, instead of the tenant's own.
        #[arg(long, value_name = "ID", conflicts_with_all = ["schedule", "old_secret"])]
        job: Option<i64>,
        /// The secret of this schedule's jobs, instead of the tenant's own.
        #[arg(long, value_name = "ID", conflicts_with = "old_secret")]
        schedule: Option<i64>,
        /// This secret, whsec_…, instead of the tenant's own.
        #[arg(long, value_name = "SECRET")]
        old_secret: Option<String>,
        /// The new secret, whsec_…; one is drawn if you give none.
        #[arg(long)]
        secret: Option<String>,
        /// How long the old secret signs too; 24h by default.
        #[arg(long, value_name = "DURATION")]
        overlap: Option<String>,
    },
}

pub(crate) async fn run(args: &Args) -> Result<String, Error> {
    let api = args.target.api().await?;
    let place = |name: &str| {
        format!("/api/v1/tenants/{}", url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>())
    };
    let answer = match &args.action {
        TenantAction::Show { name } => api.get(&place(name)).await?,
        TenantAction::Set { name, webhook, event, secret, policy, no_webhook: _ } => {
            let webhook = webhook.as_ref().map(|url| {
                let mut fields = Map::from_iter([("url".to_owned(), json!(url))]);
                if !event.is_empty() {
                    fields.insert("events".into(), json!(event));
                }
                fields.extend(secret.as_ref().map(|secret| ("secret".to_owned(), json!(secret))));
                fields.extend(policy.as_ref().map(|policy| ("policy".to_owned(), json!(policy))));
                Value::Object(fields)
            });
            api.send(Method::PUT, &place(name), Some(json!({ "webhook": webhook }).to_string())).await?
        }
        TenantAction::Quotas { name, waiting, enqueue_rate, streams, long_polls, http_concurrency, none: _ } => {
            let fields = [
                ("waiting", waiting.map(Value::from)),
                ("enqueueRate", enqueue_rate.clone().map(Value::from)),
                ("streams", streams.map(Value::from)),
                ("longPolls", long_polls.map(Value::from)),
                ("httpConcurrency", http_concurrency.map(Value::from)),
            ];
            let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            let body = Value::Object(given.collect()).to_string();
            api.send(Method::PUT, &format!("{}/quotas", place(name)), Some(body)).await?
        }
        TenantAction::RotateSecret { name, job, schedule, old_secret, secret, overlap } => {
            let fields = [
                ("jobId", job.map(Value::from)),
                ("scheduleId", schedule.map(Value::from)),
                ("from", old_secret.clone().map(Value::from)),
                ("secret", secret.clone().map(Value::from)),
                ("overlap", overlap.clone().map(Value::from)),
            ];
            let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            let body = Value::Object(given.collect());
            let rotated =
                api.send(Method::POST, &format!("{}/webhook/rotate", place(name)), Some(body.to_string())).await?;
            return Ok(if args.target.json { pretty(&rotated) } else { rotated_text(&rotated) });
        }
    };
    Ok(if args.target.json { pretty(&answer) } else { shown(&answer) })
}

/// One line, or nothing.
fn quotas_text(quotas: &Value) -> String {
    let fields = quotas.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let shown: Vec<String> = fields.map(|(name, value)| format!("{name} {}", plain(value))).collect();
    if shown.is_empty() { String::new() } else { format!("quotas: {}\n", shown.join(", ")) }
}

fn rotated_text(rotated: &Value) -> String {
    format!(
        "new secret: {}\nIt is shown this once. Give it to the receiver: until {} calls are signed with the old secret too.\n",
        plain(&rotated["secret"]),
        plain(&rotated["overlapUntil"]),
    )
}

fn shown(tenant: &Value) -> String {
    let (name, webhook) = (plain(&tenant["tenantId"]), &tenant["webhook"]);
    let quotas = quotas_text(&tenant["quotas"]);
    if webhook.is_null() {
        return format!("tenant {name}: no webhook\n{quotas}");
    }
    let events: Vec<String> = webhook["events"].as_array().into_iter().flatten().map(plain).collect();
    let signed = if webhook["signed"] == true { "signed" } else { "not signed" };
    let until = &tenant["overlapUntil"];
    let overlap =
        if until.is_null() { String::new() } else { format!(" (with replaced secrets until {})", plain(until)) };
    format!("tenant {name}: webhook {} on {}, {signed}{overlap}\n{quotas}", plain(&webhook["url"]), events.join(", "))
}
