//! Replay and discard: by ids, or all that match a filter, a page at a time.

use super::grouped_by_cause;
use crate::cli::remote::api::Api;
use crate::cli::terminal::ask::Consent;
use crate::cli::terminal::progress::{self, Unit};
use crate::cli::terminal::words::{Now, counted};
use crate::cli::work::jobs::Filter;
use crate::cli::{Error, pretty};
use serde_json::{Map, Value, json};

/// The most requests in a row for which another client was faster with all matches.
const MAX_IN_VAIN: u32 = 5;
/// The most groups that are counted before an action on many asks for confirmation.
const MAX_GROUPS: usize = 1000;

/// Which dead letters an action applies to.
#[derive(Debug, clap::Args)]
pub(super) struct Choice {
    /// Ids of dead letters.
    #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
    ids: Vec<u64>,
    #[command(flatten)]
    filter: Filter,
    /// Only this group (see `windlass dead groups`).
    #[arg(long)]
    fingerprint: Option<String>,
    /// All dead letters.
    #[arg(long)]
    all: bool,
}

/// An action on many dead letters.
pub(super) struct Bulk<'a> {
    pub(super) action: &'static str,
    pub(super) done: &'static str,
    pub(super) choice: &'a Choice,
    pub(super) extra: Option<(&'static str, Value)>,
}

/// The sum over all pages of a filter.
#[derive(Default)]
struct Sum {
    done: u64,
    last_due: Value,
    /// Whether more match that another client is working on.
    more: bool,
}

impl Bulk<'_> {
    pub(super) async fn run(&self, api: &Api, consent: Consent, json: bool) -> Result<String, Error> {
        let choice = self.choice;
        let is_filtered = choice.filter != Filter::default() || choice.fingerprint.is_some();
        match (choice.ids.is_empty(), is_filtered || choice.all) {
            (true, false) => Err(Error::BadInput(
                "which dead letters? give ids, a filter such as --queue or --class, or --all".into(),
            )),
            (false, true) => Err(Error::BadInput("give ids, or filters and --all, not both".into())),
            (false, false) => self.by_ids(api, consent, json).await,
            (true, true) => self.by_filter(api, consent, json).await,
        }
    }

    async fn by_ids(&self, api: &Api, consent: Consent, json: bool) -> Result<String, Error> {
        let ids = &self.choice.ids;
        if self.action == "discard" {
            consent.get(&format!("Discard {}?", counted(ids.len() as u64, "dead letter")))?;
        }
        let answer = api.post(&self.path(), &self.body("ids", json!(ids))).await?;
        if json {
            return Ok(pretty(&answer));
        }
        let (mut text, mut is_done) = (String::new(), true);
        for result in answer["results"].as_array().into_iter().flatten() {
            let (word, is_well) = self.outcome(result["result"].as_str().unwrap_or_default());
            is_done &= is_well;
            text.push_str(&format!("job {}: {word}\n", result["id"]));
        }
        text.push_str(&last_due(&answer));
        if is_done { Ok(text) } else { Err(Error::Reported(text)) }
    }

    /// The result for one id, and whether it counts as success: repeating an action is not a failure.
    fn outcome<'w>(&self, word: &'w str) -> (&'w str, bool) {
        match word {
            "queued" | "discarded" => (self.done, true),
            "already_live" => ("is already waiting to run", true),
            "running" => ("is already running", true),
            "not_dead" => ("is not a dead letter", false),
            "not_found" => ("not found", false),
            other => (other, false),
        }
    }

    async fn by_filter(&self, api: &Api, consent: Consent, json: bool) -> Result<String, Error> {
        let choice = self.choice;
        let found = grouped_by_cause(api, &choice.filter, choice.fingerprint.clone(), MAX_GROUPS as u32).await?;
        let groups = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let total: u64 = groups.iter().filter_map(|group| group["count"].as_u64()).sum();
        if total == 0 {
            let none = json!({ "done": 0, "more": false });
            return Ok(if json { pretty(&none) } else { "no dead letters match\n".into() });
        }
        let mut action = self.action.to_owned();
        action[..1].make_ascii_uppercase();
        // If there are more groups than are counted, the number is a lower bound.
        let at_least = if groups.len() < MAX_GROUPS { "" } else { "at least " };
        consent.get(&format!("{action} {at_least}{}?", counted(total, "dead letter")))?;
        let mut sum = Sum::default();
        let bar = progress::bar(total, self.action, Unit::Jobs);
        let result = self.pages(api, &mut sum, |done| bar.set_position(done)).await;
        bar.finish_and_clear();
        let so_far = format!("{} {}", counted(sum.done, "dead letter"), self.done);
        if let Err(error) = result {
            if sum.done > 0 {
                eprintln!("{so_far} before this error; the same command continues with the rest");
            }
            return Err(error);
        }
        let mut reported = json!({ "done": sum.done, "more": sum.more });
        if sum.last_due.is_string() {
            reported["lastDueAt"] = sum.last_due;
        }
        if json {
            return Ok(pretty(&reported));
        }
        let rest = if sum.more { "more match; another client is working on them\n" } else { "" };
        Ok(format!("{so_far}\n{}{rest}", last_due(&reported)))
    }

    /// Repeats the request until nothing is left.
    async fn pages(&self, api: &Api, sum: &mut Sum, progress: impl Fn(u64)) -> Result<(), Error> {
        let choice = self.choice;
        let mut filter = Map::new();
        for (name, value) in choice.filter.pairs().into_iter().chain([("fingerprint", choice.fingerprint.clone())]) {
            filter.extend(value.map(|value| (name.to_owned(), json!(value))));
        }
        let mut body = self.body("filter", Value::Object(filter));
        if choice.all {
            body["all"] = json!(true);
        }
        let mut in_vain = 0;
        loop {
            let answer = api.post(&self.path(), &body).await?;
            let now = answer["done"].as_u64().unwrap_or(0);
            sum.done += now;
            progress(sum.done);
            if now > 0 {
                sum.last_due = answer["lastDueAt"].clone();
            }
            // Nothing done although some matched: another client was faster with these. Others may be left.
            in_vain = if now == 0 { in_vain + 1 } else { 0 };
            sum.more = answer["more"] == true;
            if !sum.more || in_vain == MAX_IN_VAIN {
                return Ok(());
            }
        }
    }

    fn path(&self) -> String {
        format!("/api/v1/dead-letters/{}", self.action)
    }

    fn body(&self, name: &str, which: Value) -> Value {
        let mut body = Map::from_iter([(name.to_owned(), which)]);
        body.extend(self.extra.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        Value::Object(body)
    }
}

/// When the last of a rated replay is due.
fn last_due(answer: &Value) -> String {
    match answer["lastDueAt"].as_str() {
        Some(at) => format!("the last one is due {} ({at})\n", Now::read().distance(&answer["lastDueAt"])),
        None => String::new(),
    }
}
