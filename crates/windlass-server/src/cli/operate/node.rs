//! Flags of a node, which override the environment and the file.

use crate::cli::Error;
use crate::config::{Config, Inputs};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct NodeArgs {
    /// The configuration file [default: windlass.toml if it exists].
    #[arg(long, value_name = "FILE", env = "WINDLASS_CONFIG")]
    config: Option<PathBuf>,
    /// A .env file with variables (NAME=value on each line); the environment overrides it.
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Where jobs are kept: sqlite:PATH or postgres://… [default: sqlite:windlass.db].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Where the API listens [default: 127.0.0.1:9463].
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// How many HTTP jobs run at once [default: 64].
    #[arg(long, value_name = "N")]
    concurrency: Option<u64>,
    /// How long a lease lasts without renewal [default: 30s].
    #[arg(long, value_name = "DURATION")]
    lease: Option<String>,
    /// How long running jobs may continue after a stop [default: 25s].
    #[arg(long, value_name = "DURATION")]
    grace: Option<String>,
    /// The worker's name; after a restart under the same name, its old leases are freed at once.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// Allow calls to loopback and private networks.
    #[arg(long)]
    allow_private_targets: bool,
    /// Allow calls to this network in addition to public ones; may be repeated.
    #[arg(long, value_name = "NETWORK")]
    allow_target: Vec<String>,
    /// A host name that browsers may use for the server, in addition to localhost; may be repeated.
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// The path under which a proxy serves the dashboard and the API, such as /windlass.
    #[arg(long, value_name = "PATH")]
    base_path: Option<String>,
    /// The most connections at once [default: 1024].
    #[arg(long, value_name = "N")]
    max_connections: Option<u64>,
    /// Where the Faktory protocol is offered, such as 127.0.0.1:7419 [default: nowhere].
    #[arg(long, value_name = "ADDRESS:PORT")]
    faktory: Option<String>,
    /// Let Faktory clients FLUSH: cancel every waiting job.
    #[arg(long)]
    faktory_allow_flush: bool,
    /// Faktory with TLS: the certificate chain, a PEM file.
    #[arg(long, value_name = "FILE", requires = "faktory_tls_key")]
    faktory_tls_certificate: Option<String>,
    /// Faktory with TLS: the key, a PEM file.
    #[arg(long, value_name = "FILE", requires = "faktory_tls_certificate")]
    faktory_tls_key: Option<String>,
    /// The OpenTelemetry collector for traces and metrics: http://HOST:4318 [default: none].
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// The log format: auto, text or json.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// The log level: error, warn, info, debug, or a filter.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Do not log each start and success of an attempt.
    #[arg(long)]
    quiet_jobs: bool,
}

impl NodeArgs {
    /// The effective configuration.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(crate) fn load(&self) -> Result<Config, Error> {
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let (file, env_file) = (self.config.clone(), self.env_file.clone());
        let inputs = Inputs { file, env_file, environment: environment.collect(), flags: self.flags() };
        Config::load(&inputs).map_err(|error| Error::BadInput(error.to_string()))
    }

    fn flags(&self) -> Vec<(&'static str, &'static str, Value)> {
        let text = |value: &Option<String>| value.as_ref().map(|text| json!(text));
        let list = |items: &[String]| (!items.is_empty()).then(|| json!(items));
        let given = [
            ("store", "--store", text(&self.store)),
            ("listen", "--listen", text(&self.listen)),
            ("concurrency", "--concurrency", self.concurrency.map(|n| json!(n))),
            ("lease", "--lease", text(&self.lease)),
            ("grace", "--grace", text(&self.grace)),
            ("worker", "--worker", text(&self.worker)),
            (
                "egress.allowPrivateTargets",
                "--allow-private-targets",
                self.allow_private_targets.then_some(json!(true)),
            ),
            ("egress.allow", "--allow-target", list(&self.allow_target)),
            ("allowedHosts", "--allowed-host", list(&self.allowed_host)),
            ("basePath", "--base-path", text(&self.base_path)),
            ("maxConnections", "--max-connections", self.max_connections.map(|n| json!(n))),
            ("faktory.listen", "--faktory", text(&self.faktory)),
            ("faktory.allowFlush", "--faktory-allow-flush", self.faktory_allow_flush.then_some(json!(true))),
            ("faktory.tlsCertificate", "--faktory-tls-certificate", text(&self.faktory_tls_certificate)),
            ("faktory.tlsKey", "--faktory-tls-key", text(&self.faktory_tls_key)),
            ("telemetry.endpoint", "--otlp-endpoint", text(&self.otlp_endpoint)),
            ("logs.format", "--log-format", text(&self.log_format)),
            ("logs.level", "--log-level", text(&self.log_level)),
            ("logs.jobs", "--quiet-jobs", self.quiet_jobs.then_some(json!(false))),
        ];
        given.into_iter().filter_map(|(name, flag, value)| value.map(|value| (name, flag, value))).collect()
    }
}
