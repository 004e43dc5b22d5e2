//! `windlass demo`: shows retries in a few seconds and without any service. Engine, SQLite store, worker, HTTP
//! executor, upkeep and API are the real ones; only the time scale is changed.

mod cast;
mod live;
mod receiver;
mod report;
mod scale;

use super::remote::api::Api;
use super::terminal::screen::{Screen, wrap};
use super::{Error, pretty};
use cast::Actor;
use live::{Live, Voice};
use receiver::Receiver;
use serde_json::json;
use std::path::Path;
use tokio::sync::broadcast::Receiver as Listener;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use windlass::client::{JobFilter, Page};
use windlass::http::{Egress, HttpExecutor, HttpOptions};
use windlass::{Event, JobId, Millis, Windlass, Worker};
use windlass_core::Executor;

const EXAMPLES: &str = "\
Examples:
  windlass demo
  windlass demo --keep demo.db           then: windlass history 2 --store sqlite:demo.db
  windlass demo --json | jq '.jobs[] | {kind, state, reason}'

Runs on a SQLite file in a temporary directory and a receiver on a loopback port; nothing else is
touched. Takes about ten seconds. Exit codes: 0 done, 1 failed, 2 bad input.";

/// Fires every two seconds; cron does not need scaling.
const CRON: &str = "*/2 * * * * *";
/// Runs of the schedule to wait for.
const RUNS: usize = 2;
/// How often the worker polls for jobs; a second would be a minute of the demo's time.
const POLL: Millis = Millis::new(50);
/// How often the demo checks whether the schedule has run.
const LOOK_EVERY: Millis = Millis::new(100);
/// The most jobs the demo reads.
const LIMIT: u32 = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Keep the store in this new file, to explore it afterwards.
    #[arg(long, value_name = "PATH")]
    keep: Option<String>,
    /// Print only JSON, at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    hide_the_planned_panic();
    let temporary = tempfile::Builder::new().prefix("windlass-demo-").tempdir().map_err(anyhow::Error::from)?;
    let path = place(args, &temporary.path().join("demo.db"))?;
    let windlass = Windlass::open(&format!("sqlite:{path}")).await.map_err(anyhow::Error::from)?;
    let (api, stop) = (Api::store(windlass.clone()), CancellationToken::new());
    let worker = worker(&windlass).run(stop.clone().cancelled_owned());
    let show = async {
        let shown = show(args, screen, &windlass, &api).await;
        stop.cancel();
        shown
    };
    let (worked, shown) = tokio::join!(worker, show);
    worked.map_err(anyhow::Error::from)?;
    shown
}

fn place(args: &Args, temporary: &Path) -> Result<String, Error> {
    match &args.keep {
        Some(path) if Path::new(path).exists() => {
            Err(Error::BadInput(format!("the file {path} already exists; name another")))
        }
        Some(path) => Ok(path.clone()),
        None => Ok(temporary.to_string_lossy().into_owned()),
    }
}

fn worker(windlass: &Windlass) -> Worker {
    let options = HttpOptions { egress: Egress::AllowPrivate, ..HttpOptions::default() };
    let executor = HttpExecutor::new(options, windlass.clock().clone());
    cast::handlers(Worker::new(windlass))
        .queue(cast::QUEUE, 8)
        .all_queues(Executor::Http, 4)
        .http(executor)
        .poll(POLL)
        .id("demo")
}

/// Hides the planned panic of the demo; all others are printed as usual.
fn hide_the_planned_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str().is_none_or(|text| text != cast::PANIC_TEXT) {
            usual(info);
        }
    }));
}

async fn show(args: &Args, screen: &Screen, windlass: &Windlass, api: &Api) -> Result<String, Error> {
    let voice = if args.json { Voice::Silent } else { Voice::Aloud };
    let live = Live { screen, began_at: windlass.clock().now(), voice };
    let mut events = windlass.events().subscribe();
    let receiver = Receiver::open().await.map_err(anyhow::Error::from)?;
    let actors = cast::enter(windlass, &receiver.url()).await.map_err(anyhow::Error::from)?;
    let schedule = json!({ "cron": CRON, "job": { "kind": "heartbeat", "queue": cast::QUEUE, "payload": {} } });
    let schedule = api.post("/api/v1/schedules", &schedule).await?;
    live.say(&opening(&actors, screen))?;

    live.head()?;
    let delivery = follow(&live, &mut events, first_act(windlass, &actors, &schedule["id"])).await?;
    live.say(&format!(
        "\n{}\n",
        wrap(
            &format!(
                "The webhook is a dead letter now. Its receiver is repaired, and someone replays it: \
                 `windlass dead replay {delivery}`."
            ),
            screen.width
        )
    ))?;
    receiver.repair();
    let replay = async {
        api.post("/api/v1/dead-letters/replay", &json!({ "ids": [delivery.0] })).await?;
        windlass.wait(delivery).await.map_err(|error| Error::Failed(error.into()))
    };
    follow(&live, &mut events, replay).await?;
    match voice {
        Voice::Silent => report::document(api).await.map(|document| pretty(&document)),
        Voice::Aloud => report::closing(api, &actors, delivery, args.keep.as_deref(), screen).await,
    }
}

fn opening(actors: &[Actor], screen: &Screen) -> String {
    let factor = scale::FACTOR;
    let intro = format!(
        "Seven jobs and a schedule, each with a different end. The engine, the SQLite store, the worker, the HTTP calls and \
         the schedule are real; only the time is scaled: a minute of backoff takes a second here (÷{factor}), and \
         both are shown."
    );
    format!("{}\n\n{}\n", wrap(&intro, screen.width), report::overview(actors, CRON, screen))
}

/// Waits until every job has finished, the webhook has given up and the schedule has run.
async fn first_act(windlass: &Windlass, actors: &[Actor], schedule: &serde_json::Value) -> Result<JobId, Error> {
    let failed = |error: windlass::StoreError| Error::Failed(error.into());
    for actor in actors {
        windlass.wait(actor.id).await.map_err(failed)?;
    }
    let page = Page::oldest(LIMIT);
    let deliveries = JobFilter { parent: actors.last().map(|actor| actor.id), ..JobFilter::default() };
    let found = windlass.jobs().list(&deliveries, page).await.map_err(failed)?;
    let delivery = found.first().map(|job| job.id).ok_or_else(|| anyhow::anyhow!("the webhook was not created"))?;
    windlass.wait(delivery).await.map_err(failed)?;
    let runs = JobFilter { schedule: schedule.as_i64().map(JobId), ..JobFilter::default() };
    loop {
        let found = windlass.jobs().list(&runs, page).await.map_err(failed)?;
        if found.iter().filter(|run| !run.state.is_live()).count() >= RUNS {
            return Ok(delivery);
        }
        windlass.clock().sleep(LOOK_EVERY).await;
    }
}

/// Prints events until `act` has ended, including those that came before its end.
async fn follow<T>(
    live: &Live<'_>,
    events: &mut Listener<Event>,
    act: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::pin!(act);
    let ended = loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Ok(event) => live.print(&event)?,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break act.await?,
            },
            ended = &mut act => break ended?,
        }
    };
    while let Ok(event) = events.try_recv() {
        live.print(&event)?;
    }
    Ok(ended)
}
