//! The flags that describe a job, shared by `enqueue` and `schedules add`; they become the API's body.

use crate::cli::Error;
use crate::cli::terminal::input;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::io::Read as _;

/// Largest payload that is read; the API refuses more than 256 KiB and says so.
const MAX_READ: u64 = 8 * 1024 * 1024;

/// A job in the API's form. The payload is sent byte for byte, so its numbers and the order of its fields do not
/// change.
#[derive(Debug, Serialize)]
pub(crate) struct JobBody {
    #[serde(flatten)]
    pub(crate) fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
}

/// The description of a job.
#[derive(Debug, clap::Args)]
pub(crate) struct JobFlags {
    /// The job's kind: which handler runs it. May be omitted with --url.
    kind: Option<String>,
    /// The payload: JSON, @FILE, or - for standard input.
    payload: Option<String>,
    /// The queue [default: default].
    #[arg(long, short)]
    queue: Option<String>,
    /// The tenant [default: the token's, or default].
    #[arg(long)]
    tenant: Option<String>,
    /// The priority: lowest, low, normal, high, highest, or -2 to 2.
    #[arg(long, short, allow_hyphen_values = true)]
    priority: Option<String>,
    /// A policy's name or line, such as full-jitter or 'steps:30s/60s/120s' (see `windlass policy`).
    #[arg(long, short, value_name = "POLICY")]
    retry: Option<String>,
    /// Never start it twice: any failure is final.
    #[arg(long)]
    at_most_once: bool,
    /// The longest an attempt may take.
    #[arg(long, value_name = "SPAN", value_parser = input::span)]
    timeout: Option<String>,
    /// What per-key limits, holds and breakers apply to, such as a customer.
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    /// Make it a call to this URL, executed by Windlass itself; the payload is its body.
    #[arg(long)]
    url: Option<String>,
    /// The method of the call [default: POST].
    #[arg(long, requires = "url")]
    method: Option<String>,
    /// A header of the call; may be repeated.
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    header: Vec<String>,
    /// Send a webhook to this URL when the job has finished.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// The secret that signs the webhook: whsec_….
    #[arg(long, value_name = "SECRET", requires = "webhook")]
    webhook_secret: Option<String>,
}

impl JobFlags {
    /// The job in the API's form.
    pub(crate) fn body(&self) -> Result<JobBody, Error> {
        // A call needs no kind: a single argument is its payload.
        let (kind, payload) = match (&self.kind, &self.payload, &self.url) {
            (Some(alone), None, Some(_)) => (&None, Some(alone)),
            (kind, payload, _) => (kind, payload.as_ref()),
        };
        if kind.is_none() && self.url.is_none() {
            return Err(Error::BadInput("give a KIND for your workers, or --url URL for a call".into()));
        }
        let mut body = Map::new();
        let mut put = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                body.insert(name.into(), json!(value));
            }
        };
        put("kind", kind);
        put("queue", &self.queue);
        put("tenantId", &self.tenant);
        put("retry", &self.retry);
        put("limitKey", &self.limit_key);
        put("timeout", &self.timeout);
        if let Some(priority) = &self.priority {
            let rank = priority.parse::<i64>().map_or_else(|_| json!(priority), |rank| json!(rank));
            body.insert("priority".into(), rank);
        }
        if self.at_most_once {
            body.insert("delivery".into(), json!("AT_MOST_ONCE"));
        }
        if let Some(url) = &self.url {
            body.insert("http".into(), self.call(url)?);
        }
        if let Some(url) = &self.webhook {
            let mut webhook = Map::from_iter([("url".to_owned(), json!(url))]);
            webhook.extend(self.webhook_secret.iter().map(|secret| ("secret".to_owned(), json!(secret))));
            body.insert("webhook".into(), Value::Object(webhook));
        }
        let payload = payload.map(|given| read_payload(given)).transpose()?;
        Ok(JobBody { fields: body, payload })
    }

    fn call(&self, url: &str) -> Result<Value, Error> {
        let mut call = Map::from_iter([("url".to_owned(), json!(url))]);
        call.extend(self.method.iter().map(|method| ("method".to_owned(), json!(method))));
        let mut headers = Map::new();
        for header in &self.header {
            let (name, value) = header
                .split_once(':')
                .ok_or_else(|| Error::BadInput(format!("--header `{header}` is not NAME: VALUE")))?;
            headers.insert(name.trim().to_owned(), json!(value.trim()));
        }
        if !headers.is_empty() {
            call.insert("headers".into(), Value::Object(headers));
        }
        Ok(Value::Object(call))
    }
}

/// JSON given on the command line, in a file, or on standard input.
fn read_payload(given: &str) -> Result<Box<RawValue>, Error> {
    let (text, source) = if given == "-" {
        (read_text(std::io::stdin().lock(), "standard input")?, "standard input".to_owned())
    } else if let Some(path) = given.strip_prefix('@') {
        let file =
            std::fs::File::open(path).map_err(|error| Error::BadInput(format!("cannot read {path}: {error}")))?;
        (read_text(file, path)?, path.to_owned())
    } else {
        (given.to_owned(), "the payload".to_owned())
    };
    serde_json::from_str(&text).map_err(|error| {
        let hint = "a payload is JSON such as '{\"to\":\"ann@example.com\"}'; a text needs quotes: '\"hello\"'; or give @FILE, or -";
        Error::BadInput(format!("{source} is not JSON: {error}\n  hint: {hint}"))
    })
}

pub(crate) fn read_text(from: impl std::io::Read, name: &str) -> Result<String, Error> {
    let mut text = String::new();
    let read = from.take(MAX_READ).read_to_string(&mut text);
    read.map_err(|error| Error::BadInput(format!("cannot read {name}: {error}")))?;
    Ok(text)
}
