//! `windlass token`: create, list and revoke tokens, directly on a store.

use crate::cli::Error;
use crate::cli::operate::node::NodeArgs;
use crate::cli::pretty;
use crate::cli::terminal::grid::{Grid, text, wrapped};
use crate::cli::terminal::screen::Screen;
use crate::cli::work::history;
use crate::http::Scope;
use crate::{serve, token};
use clap::{Subcommand, builder::PossibleValuesParser};
use serde_json::{Value, json};
use windlass::Windlass;
use windlass::client::Token;
use windlass_core::Timestamp;
use windlass_core::job::Tenant;

const EXAMPLES: &str = "\
Examples:
  windlass token create ops --scope admin
  windlass token create shop --scope enqueue --scope read --tenant shop --store postgres://db/jobs
  windlass token list
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
    /// Revoke a token by its id. Servers refuse it within 5 seconds.
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
        TokenAction::Create { name, scope, tenant, node, json } => {
            let tenant = tenant.as_deref().map(Tenant::new).transpose();
            let tenant = tenant.map_err(|error| Error::BadInput(error.to_string()))?;
            let config = node.load()?;
            let made = runtime.block_on(async {
                let windlass = serve::open(&config).await?;
                create(&windlass, name, scope, tenant).await
            })?;
            Ok(created(&made.0, &made.1, *json))
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
                false => Err(Error::NotFound(format!("there is no token {id} to revoke; see `windlass token list`"))),
            }
        }
    }
}

async fn create(
    windlass: &Windlass,
    name: &str,
    scopes: &[String],
    tenant: Option<Tenant>,
) -> anyhow::Result<(Token, String)> {
    let (token, shown) = token::mint(windlass.random(), name, scopes.to_vec(), tenant, windlass.clock().now());
    windlass.tokens().add(&token).await?;
    Ok((token, shown))
}

fn created(token: &Token, shown: &str, as_json: bool) -> String {
    if as_json {
        let mut object = reported(token);
        object["token"] = json!(shown);
        return pretty(&object);
    }
    format!("{shown}\n\nThis is the only time it is shown. Send it as: Authorization: Bearer {shown}\n")
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
        text("created").optional(),
        text("revoked").optional(),
    ]);
    for token in tokens {
        grid.row([
            token.id.clone().into(),
            token.name.clone().into(),
            token.scopes.join(",").into(),
            token.tenant.as_ref().map_or("all", Tenant::as_str).into(),
            moment(token.created_at).into(),
            token.revoked_at.map_or_else(String::new, moment).into(),
        ]);
    }
    grid.or("no tokens", screen)
}

fn reported(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes,
        "tenant": token.tenant.as_ref().map(Tenant::as_str),
        "createdAt": token.created_at.to_string(),
        "revokedAt": token.revoked_at.map(|at| at.to_string()),
    })
}
