//! The server on a port of its own, and plain calls to it.

use crate::http::connection::listen::Limits;
use crate::http::{self, Access, App, Place};
use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::net::SocketAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass::Windlass;
use windlass::http::Percent;

/// The server's default limit of connections.
const MAX_CONNECTIONS: usize = 1024;
const GRACE: Duration = Duration::from_secs(5);

pub(super) type Caller = Client<HttpConnector, Full<Bytes>>;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(super) fn start(windlass: &Windlass) -> Result<Self> {
        let limits = Limits { connections: MAX_CONNECTIONS, of_address: Percent::ALL, of_token: Percent::ALL };
        let listener = http::connection::listen::bind(([127, 0, 0, 1], 0).into())?;
        let address = listener.local_addr()?;
        let app = App::new(windlass.clone(), Place::new(Access::OpenUntilFirstToken));
        let (router, clock, stop) = (http::router(app.clone()), windlass.clock().clone(), CancellationToken::new());
        let stopped = stop.clone();
        let serve = async move {
            let drain = async {
                stopped.cancelled().await;
                app.draining().cancel();
            };
            let serve = http::connection::listen::serve(listener, router, clock, limits, stopped.clone(), GRACE);
            tokio::join!(drain, serve);
        };
        Ok(Self { address, stop, task: tokio::spawn(serve) })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) async fn stop(self) -> Result<()> {
        self.stop.cancel();
        Ok(self.task.await?)
    }
}

pub(super) fn caller() -> Caller {
    Client::builder(TokioExecutor::new()).build_http()
}

pub(super) async fn post(caller: &Caller, url: &str, body: String) -> Result<Bytes> {
    let request = Request::post(url).header(CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body)))?;
    let answer = caller.request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{url} answered {status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}
