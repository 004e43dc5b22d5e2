//! `windlass doctor`: checks a store or a server, and says how to fix what is wrong.

use crate::cli::Error;
use crate::cli::pretty;
use crate::cli::remote::api::Api;
use crate::cli::remote::store::{self, Missing};
use crate::cli::remote::target::{Place, Target};
use crate::cli::terminal::screen::{Hue, Screen, wrap};
use crate::cli::terminal::words::{counted, plain, rough};
use serde_json::{Value, json};
use windlass::{Clock, StoreError, Windlass};
use windlass_core::{Millis, Timestamp};

const EXAMPLES: &str = "\
Examples:
  windlass doctor                                      the server on this machine
  windlass doctor --store sqlite:windlass.db
  windlass doctor --store postgres://localhost/jobs --json

Checks: whether the store answers and can be written to, its schema, how long a durable commit
takes, the clock's offset, settings that weaken durability (synchronous off, asynchronous
replication), leases that were not reaped, due jobs without workers, dead letters, firing alerts.
With --store sqlite:… it also reads the whole file and looks for damage.
Exit codes: 0 no problems, 1 something is wrong, 2 bad input, 3 no such store, 5 unavailable.";

/// Clocks further apart than this make displayed times confusing. Leases use only the store's clock.
const MAX_OFFSET: Millis = Millis::from_secs(2);
/// A durable commit slower than this makes everything slow.
const SLOW_COMMIT: Millis = Millis::new(250);
/// If due jobs have waited longer than this, there are no workers or too few.
const LONG_DUE: Millis = Millis::from_secs(60);

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
}

/// The result of one check.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    verdict: Verdict,
    reported: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    /// Nothing is broken, but the operator should know.
    Note,
    Wrong,
}

impl Verdict {
    const fn shown(self) -> (&'static str, Hue) {
        match self {
            Self::Fine => ("ok", Hue::Good),
            Self::Note => ("note", Hue::Warn),
            Self::Wrong => ("WRONG", Hue::Bad),
        }
    }
}

fn finding(what: &'static str, verdict: Verdict, reported: impl Into<String>) -> Finding {
    Finding { what, verdict, reported: reported.into() }
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let mut found = Vec::new();
    let (api, subject) = match args.target.place() {
        Place::Server { url, .. } => {
            let api = args.target.api().await?;
            look_at_server(&api, &mut found).await?;
            (Some(api), url)
        }
        Place::Store(url) => {
            let shown = store::without_password(&url);
            (look_at_store(&url, &shown, &mut found).await?, shown)
        }
    };
    if let Some(api) = api {
        look_at_work(&api, &mut found).await?;
    }
    let is_well = found.iter().all(|finding| finding.verdict != Verdict::Wrong);
    let text = if args.target.json {
        let shown = |finding: &Finding| json!({ "check": finding.what, "verdict": finding.verdict.shown().0.to_lowercase(), "detail": finding.reported });
        pretty(&json!({ "subject": subject, "well": is_well, "checks": found.iter().map(shown).collect::<Vec<_>>() }))
    } else {
        report(&subject, &found, is_well, screen)
    };
    if is_well { Ok(text) } else { Err(Error::Reported(text)) }
}

fn report(subject: &str, found: &[Finding], is_well: bool, screen: &Screen) -> String {
    let mut text = format!("{}\n\n", screen.ink.bold(subject));
    for Finding { what, verdict, reported } in found {
        let (word, hue) = verdict.shown();
        let reported = wrap(reported, screen.width.saturating_sub(20)).replace('\n', "\n                    ");
        text.push_str(&format!("{}  {what:<11}  {reported}\n", screen.ink.hued(hue, &format!("{word:<5}"))));
    }
    text.push_str(if is_well { "\nno problems found\n" } else { "\nsomething is wrong: see the lines above\n" });
    text
}

async fn look_at_server(api: &Api, found: &mut Vec<Finding>) -> Result<(), Error> {
    match api.get("/readyz").await {
        Ok(ready) => {
            let reported = format!("ready, version {}, on {}", plain(&ready["version"]), plain(&ready["store"]));
            found.push(finding("server", Verdict::Fine, reported));
            warnings(ready["warnings"].as_array().into_iter().flatten().map(plain), found);
        }
        Err(Error::Unavailable(why)) if why.starts_with("no server answers") => return Err(Error::Unavailable(why)),
        Err(error) => found.push(finding("server", Verdict::Wrong, format!("not ready: {error}"))),
    }
    Ok(())
}

fn warnings(all: impl Iterator<Item = String>, found: &mut Vec<Finding>) {
    let before = found.len();
    found.extend(all.map(|warning| finding("settings", Verdict::Wrong, warning)));
    if found.len() == before {
        found.push(finding("settings", Verdict::Fine, "every acknowledged job is on disk; no stray leases"));
    }
}

/// Whether values at rest are sealed.
async fn sealing(windlass: &Windlass) -> Result<Finding, StoreError> {
    let status = windlass.settings().sealing().await?;
    Ok(match status.ring.first() {
        Some(name) => finding("encryption", Verdict::Fine, format!("values at rest are sealed with the key {name}")),
        None => finding(
            "encryption",
            Verdict::Fine,
            "no key ring is set: values at rest are in clear, and masked on read only",
        ),
    })
}

/// Nothing to ask further if the store is damaged.
async fn look_at_store(url: &str, shown: &str, found: &mut Vec<Finding>) -> Result<Option<Api>, Error> {
    let opened = store::open(url, Missing::Refuse).await?;
    let damage = opened.transfer().verify().await.map_err(|error| store::reported(shown, &error))?;
    if !damage.is_empty() {
        let reported = |damage: &String| format!("{damage}: stop the servers, check the disk, restore a backup");
        found.extend(damage.iter().map(|damage| finding("integrity", Verdict::Wrong, reported(damage))));
        return Ok(None);
    }
    if store::sqlite_path(url).is_some() {
        found.push(finding("integrity", Verdict::Fine, "every page, index and table of the file fits the others"));
    }
    let clock = Clock::system();
    // The first call includes connecting; the second shows the time of a commit.
    let health = opened.health().await.map_err(|error| store::reported(shown, &error))?;
    found.push(sealing(&opened).await.map_err(|error| store::reported(shown, &error))?);
    let started = clock.monotonic();
    opened.health().await.map_err(|error| store::reported(shown, &error))?;
    let took = clock.monotonic() - started;
    found.push(finding("store", Verdict::Fine, format!("{} answers and can be written to", health.engine)));
    found.push(finding("schema", Verdict::Fine, format!("{}, up to date", health.schema)));
    let is_slow = took > SLOW_COMMIT;
    let hint = if is_slow { ": slow; is the disk busy or remote?" } else { "" };
    let verdict = if is_slow { Verdict::Note } else { Verdict::Fine };
    found.push(finding("commit", verdict, format!("a durable commit takes {}{hint}", rough(took))));
    warnings(health.warnings.into_iter(), found);
    if let Err(error) = opened.settings().check().await {
        found.push(finding("settings", Verdict::Wrong, format!("{error}; see `windlass config`")));
    }
    found.push(offset(opened.clock().now(), clock.now()));
    Ok(Some(Api::store(opened)))
}

fn offset(theirs: Timestamp, ours: Timestamp) -> Finding {
    let (ahead, behind) = (theirs.since(ours), ours.since(theirs));
    let (apart, word) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
    if apart <= MAX_OFFSET {
        return finding(
            "clock",
            Verdict::Fine,
            format!("within {} of this machine's", rough(apart.max(Millis::new(1)))),
        );
    }
    let reported = format!("the store's clock is {} {word} this machine's: synchronize both by NTP", rough(apart));
    finding("clock", Verdict::Wrong, reported)
}

/// What the API says about workers, queues, dead letters and alerts.
async fn look_at_work(api: &Api, found: &mut Vec<Finding>) -> Result<(), Error> {
    let workers = api.get("/api/v1/workers").await?;
    let workers = workers["items"].as_array().map_or(0, Vec::len) as u64;
    let queues = api.get("/api/v1/queues").await?;
    let queues = queues["items"].as_array().cloned().unwrap_or_default();
    let sum = |name: &str| queues.iter().filter_map(|queue| queue[name].as_u64()).sum::<u64>();
    let oldest = queues.iter().filter(|q| q["paused"] != true).filter_map(|q| q["oldestDueMs"].as_u64()).max();
    let late = oldest.map(Millis::new).filter(|age| *age > LONG_DUE);
    found.push(match (workers, late) {
        (0, Some(age)) => {
            let reported = format!("{} due, the oldest for {}, and no worker was seen for a minute: start `windlass serve` or your workers", counted(sum("due"), "job"), rough(age));
            finding("workers", Verdict::Wrong, reported)
        }
        (n, Some(age)) => {
            let reported = format!("{}, but a job has been due for {}: add workers, or check `windlass queues`", counted(n, "worker"), rough(age));
            finding("workers", Verdict::Wrong, reported)
        }
        (0, None) => finding("workers", Verdict::Note, "none seen in the last minute, and no job is overdue"),
        (n, None) => finding("workers", Verdict::Fine, format!("{} seen in the last minute", counted(n, "worker"))),
    });
    let paused: Vec<String> =
        queues.iter().filter(|queue| queue["paused"] == true).map(|queue| plain(&queue["name"])).collect();
    if !paused.is_empty() {
        found.push(finding(
            "queues",
            Verdict::Note,
            format!("paused: {}; `windlass queues resume NAME` resumes one", paused.join(", ")),
        ));
    }
    let dead = sum("dead");
    found.push(if dead == 0 {
        finding("dead", Verdict::Fine, "no dead letters")
    } else {
        finding("dead", Verdict::Note, format!("{}: `windlass dead groups` shows why", counted(dead, "dead letter")))
    });
    let alerts = api.get("/api/v1/alerts").await?;
    let firing = alerts["items"].as_array().into_iter().flatten().filter(|alert| alert["status"] == "firing");
    found.extend(firing.map(|alert: &Value| {
        finding("alert", Verdict::Wrong, format!("{}: {}", plain(&alert["rule"]), plain(&alert["detail"])))
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_apart_are_wrong_whichever_is_ahead() {
        let ours = Timestamp::from_millis(1_767_268_800_000);
        let (late, early) = (ours + Millis::from_secs(90), ours - Millis::from_secs(90));
        for (theirs, word) in [(late, "1m30s ahead of"), (early, "1m30s behind")] {
            let found = offset(theirs, ours);
            assert_eq!(found.verdict, Verdict::Wrong);
            assert!(found.reported.contains(word) && found.reported.contains("NTP"), "{}", found.reported);
        }
        assert_eq!(offset(ours + Millis::from_secs(1), ours).verdict, Verdict::Fine);
    }
}
