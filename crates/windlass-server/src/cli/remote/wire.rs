//! A small HTTP client for the command line: one connection per request, http or https.

use crate::dial::{Authorities, Version, dial};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// The longest that connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The longest wait for an answer to begin: a purge of millions answers only when it is done.
const ANSWER_LIMIT: Duration = Duration::from_secs(600);

/// A server by its URL.
#[derive(Debug)]
pub(crate) struct Server {
    base: Url,
    authorization: Option<HeaderValue>,
}

/// No answer came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error(
        "no server answers at {url}: {why}\n  hint: start one with `windlass serve`, name another with --server URL,\n        or work directly on a store with --store sqlite:PATH"
    )]
    Unreachable { url: String, why: String },
    #[error(
        "the connection to {url} broke: {why}\n  hint: it is unknown whether the request was carried out; check before you repeat it"
    )]
    Broken { url: String, why: String },
}

/// An answer and its connection, which is closed with it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<Incoming>,
    _connection: AbortOnDropHandle<()>,
}

impl Server {
    /// # Errors
    /// What is wrong with the URL or the token.
    pub(crate) fn new(url: &str, token: Option<&str>) -> Result<Self, String> {
        let form = "write http://HOST:PORT or https://HOST";
        let base = Url::parse(url).map_err(|error| format!("`{url}` is not a server's URL ({error}); {form}"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(format!("`{url}` is not a server's URL; {form}"));
        }
        if base.host().is_none() {
            return Err(format!("`{url}` names no host; {form}"));
        }
        let authorization = token.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
                .map_err(|_| "the token contains characters that no token has".to_owned())?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        Ok(Self { authorization: authorization.transpose()?, base })
    }

    /// The URL, as it was given.
    pub(crate) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<(StatusCode, Vec<u8>), WireError> {
        let mut answer = self.open(method, path, body).await?;
        let status = answer.response.status();
        let body = answer.response.body_mut().collect().await.map_err(|error| self.broken(error))?;
        Ok((status, body.to_bytes().to_vec()))
    }

    /// Sends a request; the caller reads the answer's body as it arrives.
    pub(crate) async fn open(&self, method: Method, path: &str, body: Option<String>) -> Result<Answer, WireError> {
        let wire = tokio::time::timeout(CONNECT_LIMIT, dial(&self.base, Version::Http1, &Authorities::public())).await;
        let wire =
            wire.unwrap_or_else(|_| Err("it does not accept connections".into())).map_err(|e| self.unreachable(e))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(wire)).await.map_err(|e| self.unreachable(e))?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }));
        let request = self.request(method, path, body).map_err(|error| self.unreachable(error))?;
        let answer = tokio::time::timeout(ANSWER_LIMIT, sender.send_request(request)).await;
        let response = answer.map_err(|_| self.broken("no answer in time"))?.map_err(|error| self.broken(error))?;
        Ok(Answer { response, _connection: connection })
    }

    fn request(&self, method: Method, path: &str, body: Option<String>) -> hyper::http::Result<Request<Full<Bytes>>> {
        let prefix = self.base.path().trim_end_matches('/');
        let authority = &self.base[url::Position::BeforeHost..url::Position::AfterPort];
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{prefix}{path}"))
            .header(HOST, authority)
            .header(USER_AGENT, concat!("windlass-cli/", env!("CARGO_PKG_VERSION")));
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::from(body.unwrap_or_default()))
    }

    fn unreachable(&self, why: impl std::fmt::Display) -> WireError {
        WireError::Unreachable { url: self.url().to_owned(), why: why.to_string() }
    }

    fn broken(&self, why: impl std::fmt::Display) -> WireError {
        WireError::Broken { url: self.url().to_owned(), why: why.to_string() }
    }
}
