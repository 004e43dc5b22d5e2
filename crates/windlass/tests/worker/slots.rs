//! HTTP slots: calls that hang keep neither other tenants nor other destinations from being served.

use crate::world::{World, scenario};
use async_trait::async_trait;
use serde_json::json;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use windlass::core::Executor;
use windlass::core::job::Tenant;
use windlass::core::quota::Quotas;
use windlass::http::{Dial, Egress, HttpExecutor, HttpOptions, Resolve, TcpDial};
use windlass::low_level::job::HttpCall;
use windlass::low_level::stores::Scope;
use windlass::{JobId, Millis, State, Worker};

const SLOTS: u32 = 16;
/// More calls than there are slots on the node.
const CROWD: usize = 120;

/// Names of `lively.example` lead to a server on loopback, all others to addresses that never answer.
#[derive(Debug)]
struct Names;

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let address = if name == "lively.example" { [127, 0, 0, 1] } else { [10, 0, 0, 1] };
        Ok(vec![address.into()])
    }
}

/// Connections to `10.0.0.1` are never opened. Counts those under way.
#[derive(Debug, Default, Clone)]
struct Network {
    hanging: Arc<AtomicUsize>,
}

struct Hanging(Arc<AtomicUsize>);

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Dial for Network {
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        if address.ip().is_loopback() {
            return TcpDial.dial(address).await;
        }
        self.hanging.fetch_add(1, Ordering::SeqCst);
        let _hanging = Hanging(self.hanging.clone());
        std::future::pending().await
    }
}

impl Network {
    fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    fn worker(&self, w: &World) -> Worker {
        let options = HttpOptions {
            egress: Egress::AllowPrivate,
            resolver: Arc::new(Names),
            dialer: Arc::new(self.clone()),
            ..HttpOptions::default()
        };
        w.worker().http(HttpExecutor::new(options, w.clock.clone())).all_queues(Executor::Http, SLOTS)
    }
}

/// A server that answers every request with 200, and its port.
async fn lively() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                    if stream.write_all(answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

async fn call(w: &World, tenant: &str, queue: &str, url: &str) -> JobId {
    let call = HttpCall { method: "GET".into(), url: url.into(), headers: Vec::new(), secret: None, webhook_id: None };
    w.windlass.enqueue_kind("http", &json!({})).http(call).tenant(tenant).queue(queue).await.unwrap()
}

/// Calls of one tenant that hang: to as many hosts as there are calls, or to one.
async fn crowd(w: &World, tenant: &str, queue: &str, host: impl Fn(usize) -> String) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for n in 0..CROWD {
        jobs.push(call(w, tenant, queue, &format!("http://{}/", host(n))).await);
    }
    jobs
}

scenario! {
    async fn calls_to_silent_hosts_leave_room_for_other_tenants(w: World) {
        let (network, port) = (Network::default(), lively().await);
        crowd(&w, "loud", "http", |n| format!("silent{n}.example")).await;
        let worker = w.start(network.worker(&w));
        w.until("the tenant's calls are under way", async || network.hanging() == SLOTS as usize / 2).await;
        w.quiet().await;
        assert_eq!(network.hanging(), SLOTS as usize / 2, "half of the slots is the most that one tenant holds");
        for queue in ["http", "webhooks"] {
            let quiet = call(&w, "quiet", queue, &format!("http://lively.example:{port}/")).await;
            assert_eq!(w.finished(quiet).await.state, State::Succeeded);
        }
        assert_eq!(w.clock.monotonic(), Millis::ZERO, "nobody waited");
        let held = running(&w).await;
        assert_eq!(held, u64::from(SLOTS / 2), "what is over the share stays in the store");
        w.pass_until_stopped(stopping(worker)).await;
    }

    async fn a_quota_of_calls_narrows_its_tenants_share(w: World) {
        let (network, port) = (Network::default(), lively().await);
        let loud = Tenant::new("loud").unwrap();
        let quotas = Quotas { http_concurrency: Some(3), ..Quotas::default() };
        w.windlass.tenants().set_quotas(&loud, Some(quotas)).await.unwrap();
        crowd(&w, "loud", "http", |n| format!("silent{n}.example")).await;
        let worker = w.start(network.worker(&w));
        w.until("the tenant's calls are under way", async || network.hanging() == 3).await;
        w.quiet().await;
        assert_eq!((network.hanging(), running(&w).await), (3, 3), "what is over the quota stays in the store");
        let quiet = call(&w, "quiet", "http", &format!("http://lively.example:{port}/")).await;
        assert_eq!(w.finished(quiet).await.state, State::Succeeded);
        // Without its quota, the tenant has its share again.
        w.windlass.tenants().set_quotas(&loud, None).await.unwrap();
        w.advance(Millis::from_secs(1)).await;
        w.advance(Millis::from_secs(1)).await;
        w.until("its share is used", async || network.hanging() == SLOTS as usize / 2).await;
        w.pass_until_stopped(stopping(worker)).await;
    }

    async fn one_silent_destination_leaves_room_for_the_tenants_other_calls(w: World) {
        let (network, port) = (Network::default(), lively().await);
        crowd(&w, "acme", "http", |_| "silent.example".into()).await;
        let worker = w.start(network.worker(&w));
        w.until("calls are under way", async || network.hanging() == SLOTS as usize / 4).await;
        let other = call(&w, "acme", "other", &format!("http://lively.example:{port}/")).await;
        assert_eq!(w.finished(other).await.state, State::Succeeded);
        assert_eq!(network.hanging(), SLOTS as usize / 4, "a quarter of the slots is the most for one destination");
        // A call behind them in the same queue is reached as soon as they make way.
        let behind = call(&w, "acme", "http", &format!("http://lively.example:{port}/")).await;
        w.pass_until_finished(behind).await;
        assert_eq!(w.job(behind).await.state, State::Succeeded);
        w.pass_until_stopped(stopping(worker)).await;
    }

    async fn a_cancelled_call_is_dropped_at_once(w: World) {
        let network = Network::default();
        let id = call(&w, "acme", "http", "http://silent.example/").await;
        let worker = w.start(network.worker(&w));
        w.until("the call is under way", async || network.hanging() == 1).await;
        w.windlass.jobs().cancel(id).await.unwrap();
        assert_eq!(w.finished(id).await.state, State::Cancelled);
        assert_eq!((network.hanging(), w.clock.monotonic()), (0, Millis::ZERO));
        worker.stop().await;
    }

    async fn a_call_cancelled_on_another_node_is_dropped_within_a_second(w: World) {
        let network = Network::default();
        let id = call(&w, "acme", "http", "http://silent.example/").await;
        let worker = w.start(network.worker(&w));
        w.until("the call is under way", async || network.hanging() == 1).await;
        w.advance(Millis::from_secs(2)).await;
        w.other_process().windlass.jobs().cancel(id).await.unwrap();
        w.advance(Millis::from_secs(1)).await;
        assert_eq!((w.job(id).await.state, network.hanging()), (State::Cancelled, 0));
        worker.stop().await;
    }
}

fn stopping(mut worker: crate::world::Started) -> crate::world::Started {
    worker.ask_to_stop();
    worker
}

/// Jobs that run, by the store's count.
async fn running(w: &World) -> u64 {
    w.windlass.store().depths(&Scope::All).await.unwrap().iter().map(|depth| depth.running).sum()
}
