//! The hosts of one URL: each gets its own time to answer, and a silent one does not keep the others from being tried.

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// A host that has not answered by then does not keep the next one from being tried.
const STAGGER: Duration = Duration::from_millis(500);

/// One configuration per host, in the order of the URL.
pub(in crate::store::postgres) fn each(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let mut each = Vec::with_capacity(count);
    for at in 0..count {
        let mut one = without_hosts(config);
        match hosts.get(at) {
            Some(Host::Tcp(name)) => drop(one.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(path)) => drop(one.host_path(path)),
            None => {}
        }
        if let Some(address) = addresses.get(at) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(at).or(ports.first()) {
            one.port(*port);
        }
        each.push(one);
    }
    each
}

fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    one
}

/// The first attempt that succeeds. The next one starts when the one before it has failed, or has taken a while.
pub(in crate::store::postgres) async fn first<T, E>(
    attempts: Vec<BoxFuture<'_, Result<T, E>>>,
) -> Option<Result<T, E>> {
    let mut waiting = attempts.into_iter();
    let mut running = FuturesUnordered::new();
    running.push(waiting.next()?);
    let mut failed = None;
    loop {
        tokio::select! {
            done = running.next() => match done {
                Some(Err(error)) => {
                    failed = failed.or(Some(Err(error)));
                    running.extend(waiting.next());
                }
                Some(done) => return Some(done),
                None => return failed,
            },
            () = tokio::time::sleep(STAGGER), if waiting.len() > 0 => running.extend(waiting.next()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn every_host_gets_its_own_port_and_the_common_settings() {
        let url = "postgres://ann:secret@a:1,b:2,c:3/jobs?target_session_attrs=read-write&application_name=x";
        let each = each(&url.parse().unwrap());
        let shown: Vec<_> = each.iter().map(|one| (one.get_hosts().to_vec(), one.get_ports().to_vec())).collect();
        let host = |name: &str| vec![Host::Tcp(name.into())];
        assert_eq!(shown, [(host("a"), vec![1]), (host("b"), vec![2]), (host("c"), vec![3])]);
        for one in &each {
            assert_eq!((one.get_user(), one.get_dbname()), (Some("ann"), Some("jobs")));
            assert_eq!(one.get_password(), Some(&b"secret"[..]));
            assert_eq!(one.get_target_session_attrs(), tokio_postgres::config::TargetSessionAttrs::ReadWrite);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_host_does_not_keep_the_next_one_from_being_tried() {
        let silent = || std::future::pending::<Result<u8, u8>>().boxed();
        let at = |answer| std::future::ready(answer).boxed();
        assert_eq!(first(vec![silent(), at(Err(1)), at(Ok(2))]).await, Some(Ok(2)));
        assert_eq!(first(vec![at(Err(1)), at(Err(2))]).await, Some(Err(1)));
        assert_eq!(first::<u8, u8>(vec![]).await, None);
    }
}
