//! A node runs the API, HTTP jobs, schedules and upkeep on one store, or the same without the API. Any number of nodes
//! can share a store; none of them is special.

mod waiting;

pub(crate) use waiting::Wait;

use crate::announce::{announce, warn_of_notices};
use crate::config::{Config, write_to_store};
use crate::faktory::Faktory;
use crate::http::connection::listen::Limits;
use crate::http::{self, Access, App, Place};
use crate::logs;
use crate::notify;
use crate::telemetry;
use anyhow::{Context as _, bail};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windlass::AttemptLog;
use windlass::client::Presence;
use windlass::http::{Egress, HttpExecutor, HttpOptions, IpNet, SlotShares};
use windlass::{Metrics, TenantLabel};
use windlass::{Migrations, Options};
use windlass::{Windlass, Worker};
use windlass_core::{Executor, Millis};

/// Whether a node answers requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    On,
    Off,
}

/// The exit code of a process that received a second stop signal.
const STOPPED_AT_ONCE: i32 = 130;
/// How long what is left of traces and metrics may be sent, after everything else has ended.
const LAST_EXPORT: Millis = Millis::from_secs(5);
/// How often a node reports that it is alive.
const ALIVE_EVERY: Millis = Millis::from_secs(10);

/// Runs a node until it receives a stop signal.
///
/// # Errors
/// The store cannot be used, the address is taken, or the listener would be open to everyone.
pub(crate) async fn run(config: &Config, api: Api, wait: Wait) -> anyhow::Result<()> {
    logs::start(config)?;
    let stop = stop_on_signal()?;
    let (windlass, bound) = tokio::select! {
        opened = waiting::open_store(config, api, wait) => opened?,
        () = stop.cancelled() => {
            tracing::info!("stopped");
            return Ok(());
        }
    };
    let listener = match api {
        Api::On => Some(listen(config, &windlass, bound).await?),
        Api::Off => None,
    };
    let faktory = match api {
        Api::On => Faktory::bind(config)?,
        Api::Off => None,
    };
    let node = node_name(config, listener.as_ref().map(|(_, address)| *address));
    write_to_store(config, &windlass, &node).await.context("the settings could not be written to the store")?;
    let tenants = if config.flag("metrics.tenants") { TenantLabel::On } else { TenantLabel::Off };
    // Without an API and a collector, nobody would see them.
    let is_counted = listener.is_some() || config.telemetry().is_some_and(|settings| settings.metrics.is_some());
    let metrics = is_counted.then(|| Metrics::with_tenants(&windlass, tenants));
    let exporter = telemetry::start(config, &windlass, metrics.as_ref(), &node).await?;
    let executor = HttpExecutor::new(http_options(config)?, windlass.clock().clone());
    executor.guard(&windlass);
    warn_of_notices(config, &windlass, &executor).await;
    announce(config, listener.as_ref().map(|(_, address)| *address), &windlass).await;

    let worker = work(config, &windlass, executor, stop.clone());
    if let Some(faktory) = &faktory {
        tracing::info!("Faktory clients may connect to {}", faktory.address()?);
    }
    notify::ready();
    let served = answer(config, &windlass, metrics, listener, faktory, stop.clone());
    let alive = stay_alive(&windlass, &node, stop.clone());
    let ended = CancellationToken::new();
    let node = async {
        let (worked, (), ()) = tokio::join!(worker, served, alive);
        ended.cancel();
        worked
    };
    let last = LAST_EXPORT.min(config.duration("grace"));
    let (worked, ()) = tokio::join!(node, exporter.run(ended.clone(), last));
    tracing::info!("stopped");
    worked
}

/// The name under which a node's settings are kept: the same after a restart, another for every node.
fn node_name(config: &Config, address: Option<SocketAddr>) -> String {
    // Services that may not see `/proc/sys` may see the other.
    let read =
        ["/proc/sys/kernel/hostname", "/etc/hostname"].iter().find_map(|path| std::fs::read_to_string(path).ok());
    let host = read.unwrap_or_else(|| "host".into());
    let host = host.trim();
    match (config.text("worker"), address) {
        ("", Some(address)) => format!("{host} {address}"),
        ("", None) => format!("{host} {}", std::process::id()),
        (worker, _) => worker.to_owned(),
    }
}

/// Reports that the node is alive, so that its settings stay in force, until it stops.
async fn stay_alive(windlass: &Windlass, node: &str, stop: CancellationToken) {
    loop {
        let stopped = tokio::select! {
            () = windlass.clock().sleep(ALIVE_EVERY) => false,
            () = stop.cancelled() => true,
        };
        let presence = if stopped { Presence::Leaving } else { Presence::Alive };
        if let Err(error) = windlass.settings().touch_node(node, presence).await {
            tracing::debug!(%error, "the node could not report that it is alive");
        }
        if stopped {
            return;
        }
    }
}

/// Opens the configured store.
///
/// # Errors
/// The store cannot be used.
pub(crate) async fn open(config: &Config) -> anyhow::Result<Windlass> {
    open_with(config, Migrations::Run).await
}

/// The same for reading: nothing is migrated.
///
/// # Errors
/// The store cannot be used.
pub(crate) async fn open_as_is(config: &Config) -> anyhow::Result<Windlass> {
    open_with(config, Migrations::LeaveToOperator).await
}

async fn open_with(config: &Config, migrations: Migrations) -> anyhow::Result<Windlass> {
    let url = config.text("store");
    let options = Options {
        schema: config.text("schema").to_owned(),
        connections: config.whole("connections") as usize,
        key_ring: crate::config::key_ring(config.text("keyRing"), config.text("keyRingFile"))?,
        migrations,
        ..Options::default()
    };
    let shown = crate::config::without_password(url);
    Windlass::open_with(url, options).await.with_context(|| format!("the store {shown} cannot be opened"))
}

async fn work(
    config: &Config,
    windlass: &Windlass,
    executor: HttpExecutor,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let log = if config.flag("logs.jobs") { AttemptLog::On } else { AttemptLog::Off };
    let concurrency = u32::try_from(config.whole("concurrency")).unwrap_or(u32::MAX);
    let mut worker = Worker::new(windlass)
        .all_queues(Executor::Http, concurrency)
        .http(executor)
        .lease(config.duration("lease"))
        .grace(config.duration("grace"))
        .alerts(config.alerts())
        .attempt_log(log);
    if !config.text("worker").is_empty() {
        worker = worker.id(config.text("worker"));
    }
    let worked = worker.run(stop.clone().cancelled_owned()).await;
    // A node without its worker is useless. The whole process stops, so that its supervisor restarts it.
    stop.cancel();
    worked.context("the worker stopped")
}

async fn answer(
    config: &Config,
    windlass: &Windlass,
    metrics: Option<Metrics>,
    listener: Option<(TcpListener, SocketAddr)>,
    faktory: Option<Faktory>,
    stop: CancellationToken,
) {
    let (Some((listener, address)), Some(metrics)) = (listener, metrics) else { return };
    let access = if address.ip().is_loopback() { Access::OpenUntilFirstToken } else { Access::TokensOnly };
    let hosts = config.list("allowedHosts").iter().map(|host| host.to_ascii_lowercase()).collect();
    let base_path = config.text("basePath").to_owned();
    let place = Place { access, allowed_hosts: hosts, base_path, operators: config.alerts().operators };
    let app = App::with_metrics(windlass.clone(), place, metrics);
    let draining = app.draining().clone();
    let drain = async {
        stop.cancelled().await;
        draining.cancel();
        app.remote().stop();
    };
    let grace = config.duration("grace").to_std();
    let limits = Limits {
        connections: config.whole("maxConnections") as usize,
        of_address: config.percent("addressShare"),
        of_token: config.percent("tokenShare"),
    };
    let router = http::router(app.clone());
    let serve =
        http::connection::listen::serve(listener, router, windlass.clock().clone(), limits, stop.clone(), grace);
    let faktory = async {
        if let Some(faktory) = faktory {
            let (remote, workers) = (app.remote().clone(), app.faktory().clone());
            faktory.serve(windlass.clone(), remote, workers, stop.clone(), grace).await;
        }
    };
    tokio::join!(drain, serve, faktory);
    app.remote().drained().await;
}

/// Binds the address, unless that would give access to everyone.
async fn listen(
    config: &Config,
    windlass: &Windlass,
    bound: Option<TcpListener>,
) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let address: SocketAddr = config.text("listen").parse().context("listen")?;
    if !address.ip().is_loopback() && windlass.tokens().list().await?.is_empty() {
        bail!(
            "{address} can be reached from other machines and there is no token yet, so anyone could use the server. \
             Create one first (windlass token create NAME --scope admin --store …), or listen on 127.0.0.1"
        );
    }
    let bind = || http::connection::listen::bind(address).with_context(|| format!("cannot listen on {address}"));
    let listener = bound.map_or_else(bind, Ok)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn http_options(config: &Config) -> anyhow::Result<HttpOptions> {
    let networks = |key: &str| -> anyhow::Result<Vec<IpNet>> {
        let parse = |text: String| text.parse::<IpNet>().or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
        let read = config.list(key).into_iter().map(|text| {
            parse(text.clone()).with_context(|| format!("{key}: `{text}` is not a network such as 10.0.0.0/8"))
        });
        read.collect()
    };
    let allowed = networks("egress.allow")?;
    let egress = match (config.flag("egress.allowPrivateTargets"), allowed.is_empty()) {
        (true, true) => Egress::AllowPrivate,
        (true, false) => bail!("egress: give allowPrivateTargets or a list of networks to allow, not both"),
        (false, false) => Egress::Allow(allowed),
        (false, true) => Egress::Public,
    };
    let calls_per_host = config.whole("egress.callsPerHost") as usize;
    let shares =
        SlotShares { tenant: config.percent("egress.tenantShare"), destination: config.percent("egress.hostShare") };
    Ok(HttpOptions { egress, deny: networks("egress.deny")?, calls_per_host, shares, ..HttpOptions::default() })
}

/// A token that the first signal cancels. The second signal ends the process at once.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    // Runs as long as the process: a second signal must work even if everything else hangs.
    tokio::spawn(async move {
        let mut next = async || tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} };
        next().await;
        tracing::info!(
            "stopping: no new work starts; running jobs and requests may finish (a second signal stops at once)"
        );
        notify::stopping();
        signalled.cancel();
        next().await;
        std::process::exit(STOPPED_AT_ONCE);
    });
    Ok(stop)
}
