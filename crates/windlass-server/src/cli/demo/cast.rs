//! The demo's jobs: one for each way a job can end. Real handlers, run by a real worker; only their failures are
//! simulated.

use super::scale;
use serde::{Deserialize, Serialize};
use windlass::client::WebhookDraft;
use windlass::{Attempt, Delivery, EnqueueError, Failure, JobId, JobKind, State, Windlass, Worker};
use windlass_core::policy::{Partial, Role};

/// The queue of the demo's jobs.
pub(super) const QUEUE: &str = "demo";
/// The message of the planned panic; the panic hook recognises it.
pub(super) const PANIC_TEXT: &str = "index out of bounds: the len is 3 but the index is 7";
/// Signs the webhook. Not a real secret.
const SECRET: &str = "whsec_ZGVtby1zZWNyZXQtb2Ytbm8tdmFsdWUtMDAwMDAw";

/// A job of the demo: its kind, and what its handler does on its k-th retry.
trait Part: JobKind {
    fn play(retry: u32) -> Result<&'static str, Failure>;
}

async fn play<P: Part>(_: P, attempt: Attempt) -> Result<(), Failure> {
    let note = P::play(attempt.retry())?;
    attempt.note(note);
    Ok(())
}

macro_rules! parts {
    ($($part:ident = $kind:literal, $retry:ident => $does:expr;)+) => {
        $(
            #[derive(Debug, Serialize, Deserialize)]
            struct $part {}
            impl JobKind for $part {
                const KIND: &'static str = $kind;
            }
            impl Part for $part {
                fn play($retry: u32) -> Result<&'static str, Failure> {
                    $does
                }
            }
        )+

        /// The worker with a handler for each kind.
        pub(super) fn handlers(worker: Worker) -> Worker {
            worker$(.handle(play::<$part>))+
        }
    };
}

parts! {
    WelcomeEmail = "welcome-email", _retry => Ok("sent to ann@example.com");
    ResizeImage = "resize-image", retry => match retry {
        0 | 1 => Err(Failure::new("the image service is overloaded").class("ServiceBusy")),
        _ => Ok("640×480, 31 KiB"),
    };
    ChargeCard = "charge-card", _retry => Err(Failure::new("the card has expired").class("ValidationError"));
    SyncCrm = "sync-crm", _retry => Err(Failure::new("no route to crm.internal").class("ConnectError"));
    ParseReport = "parse-report", retry => match retry {
        0 => panic!("{PANIC_TEXT}"),
        _ => Ok("on the second attempt"),
    };
    SendSms = "send-sms", _retry => Err(Failure::new("the gateway hung up after the text was sent").class("GatewayError"));
    PlaceOrder = "place-order", _retry => Ok("order 4711");
    Heartbeat = "heartbeat", _retry => Ok("alive");
}

/// A job of the demo, and the description shown before it runs.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) id: JobId,
    pub(super) kind: &'static str,
    pub(super) will: &'static str,
    pub(super) policy: String,
}

/// Stores the demo's jobs; `hook` is where the webhook of one of them goes.
pub(super) async fn enter(windlass: &Windlass, hook: &str) -> Result<Vec<Actor>, EnqueueError> {
    let scaled = |name| scale::preset(name, Role::Handler);
    let (exponential, fibonacci, fixed) = (scaled("exponential"), scaled("fibonacci"), scaled("fixed"));
    let stepped = scale::preset("stepped", Role::Delivery);
    let webhook = WebhookDraft {
        url: hook.to_owned(),
        events: vec![State::Succeeded, State::Failed],
        secret: Some(SECRET.into()),
        policy: Partial::from(&stepped),
    };
    let mut actors = Vec::new();
    let mut enter = |id, kind, will, policy: &str| actors.push(Actor { id, kind, will, policy: policy.into() });
    let id = windlass.enqueue(WelcomeEmail {}).queue(QUEUE).retry(&exponential).await?;
    enter(id, WelcomeEmail::KIND, "succeeds at once", "exponential");
    let id = windlass.enqueue(ResizeImage {}).queue(QUEUE).retry(&exponential).await?;
    enter(id, ResizeImage::KIND, "fails twice, then succeeds", "exponential");
    let id = windlass.enqueue(ChargeCard {}).queue(QUEUE).retry(&exponential).await?;
    enter(id, ChargeCard::KIND, "fails permanently: a retry would not help", "exponential");
    let id = windlass.enqueue(SyncCrm {}).queue(QUEUE).retry(&fibonacci).await?;
    enter(id, SyncCrm::KIND, "fails until its retries are used up", "fibonacci");
    let id = windlass.enqueue(ParseReport {}).queue(QUEUE).retry(&fixed).await?;
    enter(id, ParseReport::KIND, "panics; the worker keeps running", "fixed");
    let once = windlass.enqueue(SendSms {}).queue(QUEUE).retry(&exponential).delivery(Delivery::AtMostOnce);
    enter(once.await?, SendSms::KIND, "fails, and must never run twice", "at most once");
    let id = windlass.enqueue(PlaceOrder {}).queue(QUEUE).retry(&exponential).webhook_with(webhook).await?;
    enter(id, PlaceOrder::KIND, "succeeds, but its webhook's receiver is down", "webhook: stepped");
    Ok(actors)
}
