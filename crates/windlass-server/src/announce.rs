//! What a node says when it starts: where things are, and what is missing before it should be used in production.

use crate::config::{Config, Source, check_notified, without_password};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use windlass::Windlass;
use windlass::alert::{NoticeForm, Operator, Rule};
use windlass::client::SettingSource;
use windlass::http::HttpExecutor;

/// Logs what the node does, where, and what is missing.
pub(crate) async fn announce(config: &Config, address: Option<SocketAddr>, windlass: &Windlass) {
    let store = without_password(config.text("store"));
    let (version, concurrency) = (env!("CARGO_PKG_VERSION"), config.whole("concurrency"));
    match address {
        Some(address) => {
            let url = format!("http://{}{}", reachable(address), config.text("basePath"));
            tracing::info!(
                version,
                store,
                concurrency,
                "windlass serves {url} (dashboard at /, API at /api/v1, reference at /docs, metrics at /metrics) and runs HTTP \
                 jobs, schedules and upkeep"
            );
        }
        None => tracing::info!(
            version,
            store,
            concurrency,
            "windlass works without an API: it runs HTTP jobs, schedules and upkeep"
        ),
    }
    tracing::info!("jobs are kept in {}", place_of(&store));
    match config.file() {
        Some(path) => tracing::info!("settings come from {}; `windlass config` shows them", path.display()),
        None => tracing::info!("settings are the defaults; `windlass init` writes a windlass.toml to change them"),
    }
    let has_token = windlass.tokens().list().await.is_ok_and(|tokens| !tokens.is_empty());
    let missing = missing(config, address, has_token);
    if !missing.is_empty() {
        tracing::warn!("before production: {}", missing.join("; "));
    }
    if config.flag("egress.allowPrivateTargets") {
        let from = config.source("egress.allowPrivateTargets");
        let from = if *from == Source::Default { String::new() } else { format!(" ({from})") };
        tracing::warn!("calls may reach loopback and private networks{from}");
    }
    if let Ok(health) = windlass.health().await {
        for warning in health.warnings {
            tracing::warn!("{}: {warning}", health.engine);
        }
    }
}

/// An address that a program on this machine can connect to: a node that listens on all addresses also listens on
/// loopback.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The store's URL; a relative path also in full, because it depends on where the node was started.
pub(crate) fn place_of(store: &str) -> String {
    match relative_path(store).and_then(|path| std::path::absolute(path).ok()) {
        Some(path) => format!("{store} ({})", path.display()),
        None => store.to_owned(),
    }
}

fn relative_path(store: &str) -> Option<&str> {
    let path = store.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    (!path.starts_with('/')).then_some(path)
}

/// What an operator should do before others depend on this node, each with how.
fn missing(config: &Config, address: Option<SocketAddr>, has_token: bool) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if address.is_some() && !has_token {
        missing.push(
            "anyone on this machine may use the API, because there is no token (`windlass token create ops --scope admin`, with the node's --config or --store)",
        );
    }
    if address.is_some_and(|address| !address.ip().is_loopback()) {
        missing.push("the API is plain HTTP: put TLS in front of it");
    }
    if config.list("alerts.urls").is_empty() {
        missing.push("alerts notify nobody (set alerts.urls)");
    }
    if relative_path(config.text("store")).is_some() {
        missing.push("the store's path is relative: a start in another directory would use another file");
    }
    missing
}

/// Warns at start about settings that would keep alert notices from arriving or from being trusted.
pub(crate) async fn warn_of_notices(config: &Config, windlass: &Windlass, executor: &HttpExecutor) {
    let operators = config.alerts().operators;
    // Rules of the file were checked; the others may name an operator of an earlier configuration.
    let stored = windlass.alerts().rules().await.unwrap_or_default();
    let stored = stored.into_iter().filter(|(_, source)| *source == Some(SettingSource::Operator));
    for reported in unknown_operators(stored.map(|(rule, _)| rule), &operators) {
        tracing::warn!("{reported}");
    }
    if operators.iter().any(|operator| operator.form == NoticeForm::Json && operator.secret.is_none()) {
        tracing::warn!("alert notices to alerts.urls are not signed; set alerts.secret to sign them");
    }
    for operator in operators {
        if let Err(error) = executor.check_target(&operator.url) {
            let (name, hint) = (&operator.name, "see egress.allow and --allow-private-targets");
            tracing::warn!("alerts.urls: {name} cannot be reached: {}; {hint}", error.message);
        }
    }
}

/// Rules that notify somebody whom `alerts.urls` does not name.
fn unknown_operators(rules: impl Iterator<Item = Rule>, operators: &[Operator]) -> Vec<String> {
    let check = |rule: &Rule| check_notified(rule.notify.iter().map(String::as_str), operators).err();
    let reported = |rule: Rule| check(&rule).map(|why| format!("the alert rule {}: notify: {why}", rule.name));
    rules.filter_map(reported).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Inputs;
    use serde_json::json;

    #[test]
    fn what_is_missing_for_production_is_named_with_how() {
        let (open, local) = ("0.0.0.0:9463".parse().ok(), "127.0.0.1:9463".parse().ok());
        let fresh = Config::load_without_file(&Inputs { file: None, ..Inputs::default() }).unwrap();
        let shown = missing(&fresh, local, false).join("; ");
        for part in ["windlass token create", "alerts.urls", "relative"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("TLS") && missing(&fresh, open, true).join(";").contains("TLS"));
        let flags = vec![
            ("store", "--store", json!("postgres://db/jobs")),
            ("alerts.urls", "--alerts", json!(["https://ops.example/hook"])),
        ];
        let whole = Config::load_without_file(&Inputs { flags, ..Inputs::default() }).unwrap();
        assert_eq!(missing(&whole, local, true), Vec::<&str>::new());
        assert_eq!(missing(&whole, None, false), Vec::<&str>::new());
    }

    #[test]
    fn rules_that_name_an_operator_who_is_gone_are_reported() {
        let rule = |notify: &[&str]| {
            let notify = notify.iter().map(ToString::to_string).collect();
            Rule { notify, ..windlass::alert::default_rules().remove(0) }
        };
        let operators = [Operator::parse("oncall=https://a.example/x", None).unwrap()];
        let rules = [rule(&[]), rule(&["oncall"]), rule(&["oncall", "ann"])];
        let reported = unknown_operators(rules.into_iter(), &operators);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains("`ann` is nobody") && reported[0].contains("it names oncall"), "{reported:?}");
    }

    #[test]
    fn a_node_on_all_addresses_is_asked_on_loopback() {
        for (listen, asked) in [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:2", "[::1]:2"), ("10.0.0.1:3", "10.0.0.1:3")] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), asked);
        }
    }
}
