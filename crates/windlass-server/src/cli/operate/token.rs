//! `windlass token`: create, list and revoke tokens, directly on a store.

use crate::announce::place_of;
use crate::cli::Error;
use crate::cli::operate::node::NodeArgs;
use crate::cli::pretty;
use crate::cli::terminal::grid::{Grid, text, wrapped};
use crate::cli::terminal::screen::Screen;
use crate::cli::work::history;
use crate::config::{Config, without_password};
use crate::http::Scope;
use crate::serve;
use crate::token::{self, Grant};
use clap::{Subcommand, builder::PossibleValuesParser};
use serde_json::{Value, json};
use windlass::Windlass;
use windlass::client::Token;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Millis, Timestamp};

const EXAMPLES: &str = "\
Examples:
  windlass token create ops --scope admin
  windlass token create shop --scope enqueue --scope read --tenant shop --store postgres://db/jobs
  windlass token list
  windlass token create mailer --scope work --queue email --expires 90d
  windlass token rotate 7347d1e71ddc --overlap 24h
  windlass token revoke 7347d1e71ddc

Tokens are kept in the store, as hashes, so these commands work directly on it: the configured store
(sqlite:windlass.db by default), or --store. A running server accepts a new token at once.
Exit codes: 0 done, 1 failed, 2 bad input, 3 no such token, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: TokenAction,
}

#[derive(Debug, Subcommand)]
enum TokenAction {
    /// Create a token and print it, once.
    Create {
        /// What it is for.
        name: String,
        /// What it may do; may be repeated. `admin` may do everything.
        #[arg(long, required = true, value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::as_str)))]
        scope: Vec<String>,
        /// Only for this tenant [default: all tenants].
        #[arg(long)]
        tenant: Option<String>,
        /// Only for this queue; may be repeated. For the scopes `enqueue` and `work` [default: all queues].
        #[arg(long, value_name = "NAME")]
        queue: Vec<String>,
        /// How long it lasts, such as 90d [default: until it is revoked].
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<Millis>,
        #[command(flatten)]
        node: Box<NodeArgs>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List tokens.
    List {
        #[command(flatten)]
        node: Box<NodeArgs>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Create a token with the same rights, and let the old one expire.
    Rotate {
        /// The old token's id.
        id: String,
        /// How long both are accepted.
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
        overlap: Millis,
        /// How long the new one lasts [default: until it is revoked].
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<Millis>,
        #[command(flatten)]
        node: Box<NodeArgs>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token by its id. Servers refuse it within 5 seconds; its open streams end within 2 seconds.
    Revoke {
        id: String,
        #[command(flatten)]
        node: Box<NodeArgs>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let runtime = crate::cli::runtime()?;
    match &args.action {
        TokenAction::Create { name, scope, tenant, queue, expires, node, json } => {
            let grant = read_grant(name, scope, tenant.as_deref(), queue)?;
            let config = node.load()?;
            let made = runtime.block_on(async {
                let windlass = serve::open(&config).await?;
                create(&windlass, grant, *expires).await
            })?;
            Ok(created(&made.0, &made.1, *json, &config))
        }
        TokenAction::Rotate { id, overlap, expires, node, json } => {
            let config = node.load()?;
            let made = runtime.block_on(async {
                let windlass = serve::open(&config).await?;
                rotate(&windlass, id, *overlap, *expires).await
            })?;
            let made = made.ok_or_else(|| no_such(id))?;
            Ok(created(&made.0, &made.1, *json, &config))
        }
        TokenAction::List { node, json } => {
            let config = node.load()?;
            let tokens = runtime.block_on(async {
                let windlass = serve::open(&config).await?;
                Ok::<_, anyhow::Error>(windlass.tokens().list().await?)
            })?;
            Ok(listed(&tokens, *json, screen))
        }
        TokenAction::Revoke { id, node, json } => {
            let config = node.load()?;
            let revoked = runtime.block_on(async {
                let windlass = serve::open(&config).await?;
                Ok::<_, anyhow::Error>(windlass.tokens().revoke(id).await?)
            })?;
            match revoked {
                true if *json => Ok(pretty(&json!({ "id": id, "revoked": true }))),
                true => Ok(format!("{id} is revoked\n")),
                false => Err(no_such(id)),
            }
        }
    }
}

fn no_such(id: &str) -> Error {
    Error::NotFound(format!("there is no valid token {id}; see `windlass token list`"))
}

fn duration(text: &str) -> Result<Millis, String> {
    Millis::parse(text).map_err(|error| error.to_string())
}

fn read_grant(name: &str, scopes: &[String], tenant: Option<&str>, queues: &[String]) -> Result<Grant, Error> {
    let bad = |error: windlass_core::NameError| Error::BadInput(error.to_string());
    let by_queue = Scope::BY_QUEUE.map(Scope::as_str);
    if let Some(scope) = scopes.iter().find(|scope| !queues.is_empty() && !by_queue.contains(&scope.as_str())) {
        let what = format!("a token for some queues cannot have the scope `{scope}`, which is about all queues");
        return Err(Error::BadInput(format!("{what}; with --queue, choose {}", by_queue.join(" or "))));
    }
    let queues = queues.iter().map(|name| QueueName::new(name)).collect::<Result<Vec<_>, _>>().map_err(bad)?;
    Ok(Grant {
        name: name.into(),
        scopes: scopes.to_vec(),
        tenant: tenant.map(Tenant::new).transpose().map_err(bad)?,
        queues: (!queues.is_empty()).then_some(queues),
        expires_at: None,
    })
}

async fn create(windlass: &Windlass, grant: Grant, lasts: Option<Millis>) -> anyhow::Result<(Token, String)> {
    let now = windlass.clock().now();
    let grant = Grant { expires_at: lasts.map(|lasts| now + lasts), ..grant };
    let (token, shown) = token::mint(windlass.random(), grant, now);
    windlass.tokens().add(&token).await?;
    Ok((token, shown))
}

/// The new token is stored first: if this is interrupted, both are accepted.
async fn rotate(
    windlass: &Windlass,
    id: &str,
    overlap: Millis,
    lasts: Option<Millis>,
) -> anyhow::Result<Option<(Token, String)>> {
    let now = windlass.clock().now();
    let known = windlass.tokens().list().await?;
    let Some(old) = known.into_iter().find(|token| token.id == id && token.is_valid(now)) else { return Ok(None) };
    let made = create(windlass, Grant::from(&old), lasts).await?;
    let end = now + overlap;
    let expires_at = Some(old.expires_at.map_or(end, |at| at.min(end)));
    windlass.tokens().add(&Token { expires_at, ..old }).await?;
    Ok(Some(made))
}

fn created(token: &Token, shown: &str, as_json: bool, config: &Config) -> String {
    if as_json {
        let mut object = reported(token);
        object["token"] = json!(shown);
        return pretty(&object);
    }
    let place = place_of(&without_password(config.text("store")));
    format!(
        "{shown}\n\nThis is the only time it is shown. Send it as: Authorization: Bearer {shown}\n\
         It opens the nodes whose store is {place}.\n"
    )
}

fn listed(tokens: &[Token], as_json: bool, screen: &Screen) -> String {
    if as_json {
        return pretty(&json!({ "items": tokens.iter().map(reported).collect::<Vec<_>>() }));
    }
    let moment = |at: Timestamp| history::clock(&json!(at.to_string()));
    let mut grid = Grid::new([
        text("id"),
        wrapped("name"),
        text("scopes"),
        text("tenant"),
        wrapped("queues").optional(),
        text("created").optional(),
        text("expires").optional(),
        text("revoked").optional(),
    ]);
    for token in tokens {
        grid.row([
            token.id.clone().into(),
            token.name.clone().into(),
            token.scopes.join(",").into(),
            token.tenant.as_ref().map_or("all", Tenant::as_str).into(),
            queue_names(token).map_or_else(String::new, |names| names.join(",")).into(),
            moment(token.created_at).into(),
            token.expires_at.map_or_else(String::new, moment).into(),
            token.revoked_at.map_or_else(String::new, moment).into(),
        ]);
    }
    grid.or("no tokens", screen)
}

fn queue_names(token: &Token) -> Option<Vec<&str>> {
    token.queues.as_ref().map(|names| names.iter().map(QueueName::as_str).collect())
}

fn reported(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes,
        "tenant": token.tenant.as_ref().map(Tenant::as_str),
        "queues": queue_names(token),
        "createdAt": token.created_at.to_string(),
        "expiresAt": token.expires_at.map(|at| at.to_string()),
        "revokedAt": token.revoked_at.map(|at| at.to_string()),
    })
}
