//! `windlass tenants`: a tenant's default webhook.

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
    };
    Ok(if args.target.json { pretty(&answer) } else { shown(&answer) })
}

fn shown(tenant: &Value) -> String {
    let (name, webhook) = (plain(&tenant["tenantId"]), &tenant["webhook"]);
    if webhook.is_null() {
        return format!("tenant {name}: no webhook\n");
    }
    let events: Vec<String> = webhook["events"].as_array().into_iter().flatten().map(plain).collect();
    let signed = if webhook["signed"] == true { "signed" } else { "not signed" };
    format!("tenant {name}: webhook {} on {}, {signed}\n", plain(&webhook["url"]), events.join(", "))
}
