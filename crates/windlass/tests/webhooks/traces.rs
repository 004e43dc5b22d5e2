//! Traces: from the request that enqueued a job through each attempt to the call, on every store.

use crate::receiver::{Receiver, Reply};
use crate::world::{Do, World, scenario};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use windlass::alert::Operator;
use windlass::core::trace_context::TraceContext;
use windlass::protocol::{ClaimedJob, HttpCall};
use windlass::remote::{AttemptResult, HeldAttempt, RemoteWorker, TakeRequest, WorkScope};
use windlass::telemetry::{SampleShare, Span, SpanKind, SpanSink, SpanStatus, SpanValue, Tracer};
use windlass::testing::START;
use windlass::{Failure, Millis, Outcome};

const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Keeps every span.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Span>>);

impl SpanSink for Kept {
    fn record(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

impl Kept {
    async fn of(world: &World, share: &str) -> Arc<Self> {
        let kept = Arc::new(Self::default());
        Tracer::start(world.windlass(), kept.clone(), SampleShare::parse(share).unwrap()).await.unwrap();
        kept
    }

    /// The spans of a kind, in their order.
    fn spans(&self, kind: SpanKind) -> Vec<Span> {
        self.0.lock().unwrap().iter().filter(|span| span.kind == kind).cloned().collect()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn fact(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|(known, _)| *known == name);
    match found.map(|(_, value)| value) {
        Some(SpanValue::Text(text)) => text.clone(),
        Some(SpanValue::Whole(number)) => number.to_string(),
        None => String::new(),
    }
}

/// Fails once, with an answer that must not be in a trace.
async fn fails_once() -> Receiver {
    let calls = AtomicUsize::new(0);
    Receiver::start(move |_| {
        let is_first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        if is_first { Reply::with(503, "", "the s3cret answer") } else { Reply::status(200) }
    })
    .await
}

fn call(url: &str) -> HttpCall {
    let headers = vec![("authorization".into(), "s3cret".into())];
    HttpCall { method: "POST".into(), url: url.into(), headers, secret: None, webhook_id: None }
}

async fn take(w: &World) -> ClaimedJob {
    let request = TakeRequest {
        worker: RemoteWorker::new("far", WorkScope::all()),
        queues: vec![],
        kinds: None,
        max: 1,
        wait: Millis::new(0),
        lease_for: Millis::from_secs(30),
    };
    w.windlass().remote().take(request).await.unwrap().remove(0)
}

scenario! {
    async fn a_trace_runs_through_each_attempt_to_the_call_that_the_receiver_sees(w: World) {
        let (kept, receiver) = (Kept::of(&w, "0").await, fails_once().await);
        let url = format!("{}?order=7&token=s3cret#s3cret", receiver.url());
        let job = w.windlass().enqueue_kind("http", &json!({"card": "s3cret"})).http(call(&url));
        let id = job.retry("fixed:base=10s,jitter=none,retries=3").traceparent(GIVEN).await.unwrap();
        w.kit.run_until_idle().await;

        let (attempts, calls) = (kept.spans(SpanKind::Consumer), kept.spans(SpanKind::Client));
        assert_eq!((attempts.len(), calls.len(), kept.count()), (2, 2, 4));
        let given = TraceContext::parse(GIVEN).unwrap();
        for (attempt, call) in attempts.iter().zip(&calls) {
            assert_eq!((attempt.context.trace, attempt.parent), (given.trace, Some(given.span)));
            assert_eq!((call.context.trace, call.parent), (given.trace, Some(attempt.context.span)));
        }
        assert_ne!(attempts[0].context.span, attempts[1].context.span);
        let seen: Vec<String> = receiver.requests().iter().map(|r| r.header("traceparent").unwrap().to_owned()).collect();
        assert_eq!(seen, calls.iter().map(|call| call.context.to_string()).collect::<Vec<_>>());

        assert_eq!(attempts[0].status, SpanStatus::Error("HTTP 503".into()));
        assert_eq!((&attempts[1].status, &calls[1].status), (&SpanStatus::Ok, &SpanStatus::Ok));
        let facts = |span: &Span| ["jobId", "attempt", "kind", "outcome", "errorClass", "delayMs"].map(|name| fact(span, name));
        let id = id.to_string();
        assert_eq!(facts(&attempts[0]), [&*id, "1", "http", "failed", "ServerError", "10000"]);
        assert_eq!(facts(&attempts[1]), [&*id, "2", "http", "succeeded", "", ""]);
        assert_eq!(fact(&calls[0], "http.response.status_code"), "503");
        assert_eq!(fact(&calls[0], "url.full"), receiver.url());
        assert!(!format!("{:?}", kept.0.lock().unwrap()).contains("s3cret"));
    }

    async fn the_trace_of_a_notice_does_not_have_the_path_which_is_a_secret_of_chat_services(w: World) {
        let (kept, receiver) = (Kept::of(&w, "1").await, Receiver::always(Reply::status(200)).await);
        let operator = Operator::parse(&format!("slack+{}/s3cret?s3cret", receiver.url()), None).unwrap();
        w.windlass().alerts().test(&[operator]).await.unwrap();
        assert_eq!(w.kit.run_due().await, 1);
        let calls = kept.spans(SpanKind::Client);
        assert_eq!(fact(&calls[0], "url.full"), receiver.url().replace("/hook", "/***"));
        assert!(!format!("{:?}", kept.0.lock().unwrap()).contains("s3cret"));
    }

    async fn a_job_without_a_context_shares_one_trace_with_its_attempts_and_its_delivery(w: World) {
        let (kept, receiver) = (Kept::of(&w, "1").await, Receiver::always(Reply::status(200)).await);
        w.enqueue(Do::Fail, &receiver.url()).await;
        w.enqueue(Do::Succeed, &receiver.url()).await;
        w.kit.run_until_idle().await;
        let attempts = kept.spans(SpanKind::Consumer);
        let of = |kind: &str, job: &str| -> Vec<_> {
            attempts.iter().filter(|span| fact(span, "kind") == kind && [fact(span, "jobId"), fact(span, "parentId")].contains(&job.to_owned())).collect()
        };
        let (first, second) = (fact(&attempts[0], "jobId"), fact(&attempts[1], "jobId"));
        assert_ne!(first, second);
        for (job, count) in [(&first, [1, 4]), (&second, [1, 4])] {
            let (own, delivery) = (of("do", job), of("webhook", job));
            assert!(count.contains(&own.len()) && delivery.len() == 1, "{own:?} {delivery:?}");
            let trace = own[0].context.trace;
            assert!(own.iter().chain(&delivery).all(|span| span.context.trace == trace && span.parent.is_none()));
        }
        assert_ne!(of("do", &first)[0].context.trace, of("do", &second)[0].context.trace);
        let call = kept.spans(SpanKind::Client).remove(0);
        assert_eq!(receiver.requests()[0].header("traceparent"), Some(&*call.context.to_string()));
    }

    async fn an_attempt_elsewhere_has_the_span_that_was_handed_out(w: World) {
        let kept = Kept::of(&w, "1").await;
        let tracer = Tracer::of(w.windlass()).unwrap().clone();
        w.windlass().enqueue(Do::Succeed).queue("far").retry("fixed:base=1s,jitter=none,retries=3").traceparent(GIVEN).await.unwrap();
        let lost = take(&w).await;
        let handed_out = vec![tracer.traceparent_of(&lost)];
        // In small steps: a process that was out of contact reaps nothing at first.
        for _ in 0..60 {
            w.kit.advance(Millis::from_secs(1)).await;
        }

        let held = take(&w).await;
        let handed_out = [handed_out, vec![tracer.traceparent_of(&held)]].concat();
        let attempt = HeldAttempt { job: held.id, attempt: held.attempt, lease: held.lease };
        let outcome = Outcome::Failed(Failure::new("bad\0ly").class("Odd"));
        let result = AttemptResult { held: attempt, outcome, note: None, result: None };
        // Another process takes the result: it knows nothing but the store.
        let elsewhere = w.windlass().remote();
        elsewhere.finish(&RemoteWorker::new("far", WorkScope::all()), &[result]).await.unwrap();

        let attempts = kept.spans(SpanKind::Consumer);
        assert_eq!(attempts.iter().map(|span| span.context.to_string()).collect::<Vec<_>>(), handed_out);
        assert_eq!(attempts[0].status, SpanStatus::Error("WorkerLost".into()));
        assert_eq!(attempts[1].status, SpanStatus::Error("bad\u{FFFD}ly".into()));
        assert_eq!(["outcome", "worker"].map(|name| fact(&attempts[1], name)), ["failed", "far"]);
        assert_eq!(fact(&attempts[0], "outcome"), "lost");
    }

    async fn a_trace_that_is_not_recorded_is_passed_on_and_costs_no_span(w: World) {
        let (kept, receiver) = (Kept::of(&w, "0").await, Receiver::always(Reply::status(200)).await);
        let unsampled = GIVEN.replace("-01", "-00");
        w.windlass().enqueue_kind("http", &json!(1)).http(call(&receiver.url())).traceparent(&unsampled).await.unwrap();
        w.windlass().enqueue_kind("http", &json!(1)).http(call(&receiver.url())).await.unwrap();
        w.kit.run_until_idle().await;
        assert_eq!(kept.count(), 0);
        let seen: Vec<TraceContext> = receiver.requests().iter().map(|r| TraceContext::parse(r.header("traceparent").unwrap()).unwrap()).collect();
        assert!(seen.iter().all(|context| !context.is_sampled), "{seen:?}");
        let given = TraceContext::parse(&unsampled).unwrap().trace;
        assert_eq!(seen.iter().filter(|context| context.trace == given).count(), 1);
    }

    async fn a_request_that_is_not_recorded_decides_for_its_jobs_and_their_deliveries(w: World) {
        let (kept, receiver) = (Kept::of(&w, "1").await, Receiver::always(Reply::status(200)).await);
        let tracer = Tracer::of(w.windlass()).unwrap();
        let request = TraceContext { is_sampled: false, ..tracer.context(None) };
        let carried = tracer.carried(request, None);
        assert!(carried.len() == 1, "it costs a byte, not a context: {carried}");
        w.windlass().enqueue(Do::Fail).webhook(&receiver.url()).traceparent(&*carried).await.unwrap();
        w.kit.run_until_idle().await;
        assert_eq!(kept.count(), 0);
        let seen = TraceContext::parse(receiver.requests()[0].header("traceparent").unwrap()).unwrap();
        assert!(!seen.is_sampled, "what comes after it is not recorded either");
        // A caller has decided about its own trace, so its context is kept.
        let given = TraceContext::parse(&GIVEN.replace("-01", "-00")).unwrap();
        let request = tracer.context(Some(given));
        assert_eq!(*tracer.carried(request, Some(given)), request.to_string());
    }

    async fn jobs_that_did_not_run_have_no_span(w: World) {
        let kept = Kept::of(&w, "1").await;
        w.windlass().enqueue(Do::Succeed).queue("far").start_by(START + Millis::from_secs(5)).await.unwrap();
        let cancelled = w.windlass().enqueue(Do::Succeed).queue("far").await.unwrap();
        w.windlass().jobs().cancel(cancelled).await.unwrap();
        w.kit.advance(Millis::from_secs(60)).await;
        assert_eq!(kept.count(), 0);
    }
}
