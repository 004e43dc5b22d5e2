//! Traces and metrics of the real binary, sent to a collector that decodes them. `scripts/test-otlp` does the same with
//! OpenTelemetry's own types, in every protocol.

use super::client::{Client, Receiver, header};
use super::node::{Node, Place, eventually};
use serde_json::{Value, json};
use std::net::TcpListener;

crate::on_both_stores!(
    a_trace_runs_from_the_request_through_each_attempt_to_the_call,
    a_worker_elsewhere_is_handed_the_context_of_its_attempt,
    a_node_sends_what_is_left_before_it_ends,
    collectors_that_fail_or_say_nothing_change_nothing_for_jobs,
    metrics_are_sent_and_once_more_before_a_node_ends,
);

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const POLICY: &str = "fixed:base=50ms,jitter=none,retries=5";

/// A node that sends its traces to a receiver.
fn traced(place: &Place, collector: &Receiver) -> Node {
    let base = collector.url.strip_suffix("/hook").unwrap();
    let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret"), ("OTEL_SERVICE_NAME", "orders")];
    place.serve_with(&["--allow-private-targets", "--otlp-endpoint", base], &variables)
}

/// Every span that a collector has received.
fn spans(collector: &Receiver) -> Vec<Value> {
    let got = collector.got.lock().unwrap();
    let spans = |body: &str| {
        let body: Value = serde_json::from_str(body).unwrap();
        body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    };
    let traces = got.iter().filter(|(head, _)| head.starts_with("POST /v1/traces "));
    traces.flat_map(|(_, body)| spans(body)).collect()
}

/// The counter of a metric in the last reading that a collector has received, all label sets together; none before.
fn counted(collector: &Receiver, name: &str) -> Option<i64> {
    let got = collector.got.lock().unwrap();
    let (_, body) = got.iter().rfind(|(head, _)| head.starts_with("POST /v1/metrics "))?;
    let body: Value = serde_json::from_str(body).unwrap();
    let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone();
    let metric = metrics.iter().find(|metric| metric["name"] == name)?;
    let points = metric["sum"]["dataPoints"].as_array().unwrap();
    Some(points.iter().map(|point| point["asInt"].as_str().unwrap().parse::<i64>().unwrap()).sum())
}

fn named(spans: &[Value], name: &str) -> Vec<Value> {
    spans.iter().filter(|span| span["name"] == name).cloned().collect()
}

fn fact(span: &Value, name: &str) -> String {
    let found = span["attributes"].as_array().unwrap().iter().find(|fact| fact["key"] == name);
    let value = found.map(|fact| fact["value"].as_object().unwrap().values().next().unwrap().as_str().unwrap());
    value.unwrap_or_default().to_owned()
}

fn enqueue(client: &Client, job: &Value) -> i64 {
    let given = format!("traceparent: 00-{TRACE}-{CALLER}-01\r\n");
    let stored = client.send_with("POST", "/api/v1/jobs", &given, &job.to_string()).unwrap().is(201);
    stored["id"].as_i64().unwrap()
}

fn a_trace_runs_from_the_request_through_each_attempt_to_the_call(place: &Place) {
    let collector = Receiver::new(|_| 200);
    let target = Receiver::new(|n| if n == 1 { 503 } else { 200 });
    let node = traced(place, &collector);
    let url = format!("{}?token=s3cret", target.url);
    let id = enqueue(&node.client, &json!({"http": {"url": url}, "payload": {"card": "s3cret"}, "retry": POLICY}));
    eventually("all spans arrive", || spans(&collector).len() == 5);

    let all = spans(&collector);
    let (requests, attempts, calls) =
        (named(&all, "POST /api/v1/jobs"), named(&all, "attempt http"), named(&all, "POST"));
    assert_eq!((requests.len(), attempts.len(), calls.len()), (1, 2, 2), "{all:#?}");
    assert!(all.iter().all(|span| span["traceId"] == TRACE));
    assert_eq!((&requests[0]["parentSpanId"], &requests[0]["kind"]), (&json!(CALLER), &json!(2)));
    for (attempt, call) in attempts.iter().zip(&calls) {
        assert_eq!((&attempt["parentSpanId"], &attempt["kind"]), (&requests[0]["spanId"], &json!(5)));
        assert_eq!((&call["parentSpanId"], &call["kind"]), (&attempt["spanId"], &json!(3)));
    }
    let seen: Vec<_> =
        target.got.lock().unwrap().iter().map(|(head, _)| header(head, "traceparent").unwrap()).collect();
    let sent: Vec<_> = calls.iter().map(|call| format!("00-{TRACE}-{}-01", call["spanId"].as_str().unwrap())).collect();
    assert_eq!(seen, sent);
    let ends = |spans: &[Value]| spans.iter().map(|span| span["status"]["code"].as_i64().unwrap()).collect::<Vec<_>>();
    assert_eq!((ends(&attempts), ends(&calls)), (vec![2, 1], vec![2, 1]));
    assert_eq!(attempts[0]["status"]["message"], "HTTP 503 Service Unavailable");
    let facts = ["jobId", "attempt", "queue", "outcome", "errorClass"].map(|name| fact(&attempts[0], name));
    assert_eq!(facts, [&*id.to_string(), "1", "default", "failed", "ServerError"]);

    let got = collector.got.lock().unwrap().clone();
    assert!(
        got.iter().all(|(head, body)| header(head, "api-key").as_deref() == Some("s3cret") && !body.contains("s3cret"))
    );
    assert!(got[0].0.starts_with("POST /v1/traces HTTP/1.1") && got[0].1.contains(r#""stringValue":"orders""#));
    let metrics = node.client.get("/metrics").body;
    assert!(metrics.contains("windlass_spans_total{outcome=\"exported\"} 5"), "{metrics}");
    assert_eq!(node.logged("s3cret"), 0);
}

fn a_worker_elsewhere_is_handed_the_context_of_its_attempt(place: &Place) {
    let collector = Receiver::new(|_| 200);
    let node = traced(place, &collector);
    let batch = json!({"jobs": [{"kind": "far"}]}).to_string();
    node.client.post("/api/v1/jobs/batch", &batch).is(201);
    let job = node.client.post("/api/v1/leases", r#"{"worker": "w1", "waitMs": 5000}"#).is(200)["jobs"][0].clone();
    let result = json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"], "class": "Odd", "message": "no", "permanent": true});
    node.client.post("/api/v1/leases/fail", &json!({"worker": "w1", "results": [result]}).to_string()).is(200);
    eventually("both spans arrive", || spans(&collector).len() == 2);
    let all = spans(&collector);
    let (request, attempt) = (&named(&all, "POST /api/v1/jobs/batch")[0], &named(&all, "attempt far")[0]);
    let ids = ["traceId", "spanId"].map(|name| attempt[name].as_str().unwrap().to_owned());
    assert_eq!(job["traceparent"], format!("00-{}-{}-01", ids[0], ids[1]));
    assert_eq!((&attempt["parentSpanId"], &attempt["traceId"]), (&request["spanId"], &request["traceId"]));
    assert_eq!(request["parentSpanId"], Value::Null, "the request began the trace");
    assert_eq!(["verdict", "worker"].map(|name| fact(attempt, name)), ["permanent", "w1"]);
}

fn a_node_sends_what_is_left_before_it_ends(place: &Place) {
    let collector = Receiver::new(|n| if n == 1 { 503 } else { 200 });
    let mut node = traced(place, &collector);
    for _ in 0..3 {
        enqueue(&node.client, &json!({"kind": "nobody"}));
    }
    node.signal("-TERM");
    assert!(node.ended().success());
    let got = collector.count();
    let requests = named(&spans(&collector), "POST /api/v1/jobs").len();
    assert!(got >= 2 && requests >= 4, "the refused request and the repeated one: {got} with {requests} spans");
}

fn metrics_are_sent_and_once_more_before_a_node_ends(place: &Place) {
    let collector = Receiver::new(|n| if n == 1 { 503 } else { 200 });
    let base = collector.url.strip_suffix("/hook").unwrap();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", base),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
    ];
    let node = place.serve_with(&[], &variables);
    let cancel = |node: &Node| {
        let id = enqueue(&node.client, &json!({"kind": "nobody"}));
        node.client.send("DELETE", &format!("/api/v1/jobs/{id}"), "").unwrap().is(200);
    };
    cancel(&node);
    eventually("a reading has the job", || counted(&collector, "windlass_jobs_total") == Some(1));
    drop(node);

    let variables = [variables[0], variables[1], ("OTEL_METRIC_EXPORT_INTERVAL", "3600000")];
    let mut node = place.serve_with(&[], &variables);
    (0..2).for_each(|_| cancel(&node));
    node.signal("-TERM");
    assert!(node.ended().success());
    assert_eq!(counted(&collector, "windlass_jobs_total"), Some(2), "of this process");
    assert!(spans(&collector).is_empty());
}

fn collectors_that_fail_or_say_nothing_change_nothing_for_jobs(place: &Place) {
    let target = Receiver::new(|_| 200);
    let run = |node: &Node| {
        let id = enqueue(&node.client, &json!({"http": {"url": target.url}, "retry": POLICY}));
        eventually("the job succeeds", || node.client.state(id) == "succeeded");
    };
    let failing = Receiver::new(|n| if n <= 2 { 503 } else { 200 });
    let node = traced(place, &failing);
    run(&node);
    eventually("the spans arrive in the end", || node.logged("traces are exported again") == 1);
    assert_eq!(node.logged("traces cannot be exported"), 1, "one line when it begins to fail");
    drop(node);

    // It accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let mut node = place.serve(&["--allow-private-targets", "--otlp-endpoint", &url, "--grace", "1s"]);
    run(&node);
    node.signal("-TERM");
    assert!(node.ended().success());
    eventually("the loss is on record", || node.logged("3 spans were dropped") == 1);
}
