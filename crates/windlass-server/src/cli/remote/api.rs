//! The API as commands use it: the same requests, over the network or directly to the router on a store.

use crate::cli::Error;
use crate::cli::remote::wire::{Server, WireError};
use crate::http::{self, Access, App, Caller, Place};
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use serde::Serialize;
use serde_json::Value;
use tower::ServiceExt as _;
use url::form_urlencoded::Serializer;
use windlass::Windlass;

/// Access to a server or a store.
#[derive(Debug)]
pub(crate) struct Api(Door);

#[derive(Debug)]
enum Door {
    Server(Server),
    Store { router: Router },
}

/// A query string of the parameters that were given.
pub(crate) type Query<'a> = &'a [(&'a str, Option<String>)];

impl Api {
    pub(crate) fn server(url: &str, token: Option<&str>) -> Result<Self, Error> {
        Server::new(url, token).map(Door::Server).map(Self).map_err(Error::BadInput)
    }

    pub(crate) fn store(windlass: Windlass) -> Self {
        let app = App::new(windlass, Place::new(Access::TokensOnly));
        Self(Door::Store { router: http::router(app) })
    }

    /// The server, if there is one.
    pub(crate) fn as_server(&self) -> Option<&Server> {
        match &self.0 {
            Door::Server(server) => Some(server),
            Door::Store { .. } => None,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Error> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn get_with(&self, path: &str, query: Query<'_>) -> Result<Value, Error> {
        self.get(&with_query(path, query)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, Error> {
        let text = serde_json::to_string(body).map_err(anyhow::Error::from)?;
        self.send(Method::POST, path, Some(text)).await
    }

    /// A request without a body.
    pub(crate) async fn ask(&self, method: Method, path: &str) -> Result<Value, Error> {
        self.send(method, path, None).await
    }

    /// Items of a list, following pages until there are `limit`, and the cursor of the rest.
    pub(crate) async fn list(&self, path: &str, query: Query<'_>, limit: usize) -> Result<(Vec<Value>, Value), Error> {
        let mut items: Vec<Value> = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let page = (limit - items.len()).min(MAX_PAGE);
            let mut query = query.to_vec();
            query.push(("limit", Some(page.to_string())));
            query.push(("cursor", cursor.as_str().map(str::to_owned)));
            let mut answer = self.get_with(path, &query).await?;
            if let Value::Array(more) = answer["items"].take() {
                items.extend(more);
            }
            cursor = answer["next"].take();
            if cursor.is_null() || items.len() >= limit {
                return Ok((items, cursor));
            }
        }
    }

    /// Sends a request and reads its answer; a problem becomes an error with its exit code.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<String>) -> Result<Value, Error> {
        let (status, bytes) = match &self.0 {
            Door::Server(server) => server.send(method, path, body).await.map_err(Error::from)?,
            Door::Store { router } => call(router, method, path, body).await,
        };
        if bytes.is_empty() && status.is_success() {
            return Ok(Value::Null);
        }
        match serde_json::from_slice(&bytes) {
            Ok(answer) if status.is_success() => Ok(answer),
            Err(error) if status.is_success() => {
                Err(Error::Failed(anyhow::anyhow!("the answer to {path} cannot be read: {error}")))
            }
            answer => Err(problem(status, &answer.unwrap_or_default())),
        }
    }
}

/// The largest page of the API.
const MAX_PAGE: usize = 1000;

pub(crate) fn with_query(path: &str, query: Query<'_>) -> String {
    let mut pairs = Serializer::new(String::new());
    pairs.extend_pairs(query.iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value))));
    let text = pairs.finish();
    if text.is_empty() { path.to_owned() } else { format!("{path}?{text}") }
}

/// A caller who can open the store may do everything in it.
async fn call(router: &Router, method: Method, path: &str, body: Option<String>) -> (StatusCode, Vec<u8>) {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    let body = body.map_or_else(Body::empty, Body::from);
    let request = request.extension(Caller::operator()).body(body).expect("commands make well-formed requests");
    let Ok(response) = router.clone().oneshot(request).await;
    let status = response.status();
    let body = response.into_body().collect().await.map_or_else(|_| Vec::new(), |body| body.to_bytes().to_vec());
    (status, body)
}

/// A problem as text: what is wrong, field by field.
fn problem(status: StatusCode, answer: &Value) -> Error {
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let faults: Vec<String> = answer["errors"].as_array().into_iter().flatten().map(fault).collect();
    let detail = text("detail").or_else(|| text("title")).unwrap_or_else(|| format!("the server answered {status}"));
    let reported = if faults.is_empty() { detail } else { faults.join("\n  ") };
    match status.as_u16() {
        400 | 405 | 413 | 415 | 422 => Error::BadInput(reported),
        401 => Error::Failed(anyhow::anyhow!(
            "{reported}\n  hint: give --token or WINDLASS_TOKEN; `windlass token create` creates one"
        )),
        404 => Error::NotFound(reported),
        409 => Error::Conflict(reported),
        408 | 429 | 502..=504 => Error::Unavailable(reported),
        _ => Error::Failed(anyhow::anyhow!(reported)),
    }
}

fn fault(fault: &Value) -> String {
    let pointer = fault["pointer"].as_str().unwrap_or_default().trim_start_matches(['/', '?']);
    let detail = fault["detail"].as_str().unwrap_or_default();
    if pointer.is_empty() { detail.to_owned() } else { format!("{pointer}: {detail}") }
}

impl From<WireError> for Error {
    fn from(error: WireError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
