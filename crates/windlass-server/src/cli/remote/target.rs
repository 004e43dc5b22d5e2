//! The target of a command: a server, or a store opened directly.

use crate::cli::Error;
use crate::cli::remote::api::Api;
use crate::cli::remote::store::{self, Missing};

/// Where `serve` listens by default.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:9463";

/// The flags shared by all commands that talk to Windlass.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Target {
    /// Talk to this server [env: WINDLASS_SERVER; default: http://127.0.0.1:9463].
    #[arg(long, global = true, value_name = "URL", help_heading = "Where", conflicts_with = "store")]
    server: Option<String>,
    /// Work directly on this store, sqlite:PATH or postgres://… (in the schema WINDLASS_SCHEMA); no server is needed
    /// [env: WINDLASS_STORE].
    #[arg(long, global = true, value_name = "STORE", help_heading = "Where")]
    store: Option<String>,
    /// The server's token [env: WINDLASS_TOKEN].
    #[arg(long, global = true, value_name = "TOKEN", help_heading = "Where")]
    token: Option<String>,
    /// Print JSON.
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
}

/// The target that flags and environment name. A flag overrides the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Server { url: String, token: Option<String> },
    Store(String),
}

impl Target {
    pub(crate) fn place(&self) -> Place {
        self.place_in(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn place_in(&self, env: impl Fn(&str) -> Option<String>) -> Place {
        let server = |url| Place::Server { url, token: self.token.clone().or_else(|| env("WINDLASS_TOKEN")) };
        match (&self.server, &self.store) {
            (Some(url), _) => server(url.clone()),
            (None, Some(store)) => Place::Store(store.clone()),
            (None, None) => match (env("WINDLASS_SERVER"), env("WINDLASS_STORE")) {
                (Some(url), _) => server(url),
                (None, Some(store)) => Place::Store(store),
                (None, None) => server(DEFAULT_SERVER.to_owned()),
            },
        }
    }

    /// Access for commands that read or change existing data.
    pub(crate) async fn api(&self) -> Result<Api, Error> {
        self.open(Missing::Refuse).await
    }

    /// Access for commands that may be the first to write to a SQLite file.
    pub(crate) async fn api_or_new(&self) -> Result<Api, Error> {
        self.open(Missing::Make).await
    }

    async fn open(&self, missing: Missing) -> Result<Api, Error> {
        match self.place() {
            Place::Server { url, token } => Api::server(&url, token.as_deref()),
            Place::Store(url) => Ok(Api::store(store::open(&url, missing).await?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(server: Option<&str>, store: Option<&str>) -> Target {
        Target { server: server.map(str::to_owned), store: store.map(str::to_owned), token: None, json: false }
    }

    #[test]
    fn a_flag_beats_the_environment_which_beats_the_default() {
        let both = |name: &str| Some(if name == "WINDLASS_SERVER" { "http://env" } else { "sqlite:env" }.to_owned());
        let store_only = |name: &str| (name == "WINDLASS_STORE").then(|| "sqlite:env".to_owned());
        assert_eq!(target(None, Some("sqlite:flag")).place_in(both), Place::Store("sqlite:flag".into()));
        assert_eq!(target(None, None).place_in(store_only), Place::Store("sqlite:env".into()));
        let Place::Server { url, .. } = target(Some("http://flag"), None).place_in(store_only) else { panic!() };
        assert_eq!(url, "http://flag");
        let Place::Server { url, token } = target(None, None).place_in(|_| None) else { panic!() };
        assert_eq!((url.as_str(), token), (DEFAULT_SERVER, None));
    }
}
