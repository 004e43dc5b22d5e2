//! What is sent: headers, body, signature. And that it is the same on every attempt.

use super::*;
use windlass_core::signature::Secret;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn sent(job: &Job) -> receiver::Received {
    let receiver = Receiver::always(Reply::status(200)).await;
    let call = HttpCall { url: receiver.url(), ..(**job.http.as_ref().unwrap()).clone() };
    let job = Job { http: Some(Arc::new(call)), ..job.clone() };
    let called = executor(private()).0.call(&job).await;
    assert_eq!(called.outcome, Outcome::Succeeded, "{called:?}");
    receiver.requests().remove(0)
}

#[tokio::test]
async fn a_call_says_which_job_and_attempt_it_is() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = sent(&Job { traceparent: Some(trace.into()), ..post("") }).await;
    assert_eq!(request.line, "POST /hook HTTP/1.1");
    for (name, value) in [
        ("windlass-job-id", "7"),
        ("windlass-attempt", "2"),
        ("windlass-queue", "hooks"),
        ("windlass-kind", "http"),
        ("idempotency-key", "windlass-7"),
        ("traceparent", trace),
        ("content-type", "application/json"),
        ("user-agent", concat!("windlass/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert!(request.header("host").unwrap().starts_with("127.0.0.1:"));
    assert_eq!(request.header("webhook-id"), None);
    assert_eq!(request.header("webhook-signature"), None);
    assert_eq!(request.body, r#"{ "b":1,  "a":"é" }"#.as_bytes());
}

#[tokio::test]
async fn a_jobs_own_headers_win_where_they_may() {
    let headers = [
        ("Content-Type", "application/cloudevents+json"),
        ("Idempotency-Key", "mine"),
        ("User-Agent", "me"),
        ("X-Two", "1"),
        ("Authorization", "Bearer x"),
    ];
    let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let request = sent(&job(HttpCall { headers: headers.clone(), ..http_call("") })).await;
    for (name, value) in headers {
        assert_eq!(request.header(&name), Some(value.as_str()));
    }
}

#[tokio::test]
async fn methods_without_a_body_send_one_only_if_there_is_something_to_say() {
    for method in ["GET", "HEAD", "DELETE", "get"] {
        let call = HttpCall { method: method.into(), ..http_call("") };
        let request = sent(&Job { payload: "null".into(), ..job(call.clone()) }).await;
        assert!(request.line.starts_with(&method.to_uppercase()));
        assert_eq!((request.body.len(), request.header("content-type")), (0, None));
        assert_eq!(sent(&Job { payload: "[1]".into(), ..job(call) }).await.body, b"[1]");
    }
    assert_eq!(sent(&Job { payload: "null".into(), ..post("") }).await.body, b"null");
}

#[tokio::test]
async fn a_trace_context_that_is_none_is_not_forwarded() {
    for context in [
        "",
        "garbage",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nX-Evil: 1",
    ] {
        let request = sent(&Job { traceparent: Some(context.into()), ..post("") }).await;
        assert_eq!((request.header("traceparent"), request.header("x-evil")), (None, None), "{context}");
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_hold_is_encoded_and_smuggles_nothing() {
    for (key, value) in
        [("order-1 a", "order-1 a"), ("a\r\nX-Evil: 1", "a%0D%0AX-Evil%3A+1"), ("é", "%C3%A9"), (" padded", "+padded")]
    {
        let request = sent(&Job { idempotency_key: Some(key.into()), ..post("") }).await;
        assert_eq!((request.header("idempotency-key"), request.header("x-evil")), (Some(value), None));
    }
}

#[tokio::test]
async fn a_signed_call_is_verified_and_only_time_and_signature_change_between_tries() {
    let receiver = Receiver::always(Reply::status(503)).await;
    let call =
        HttpCall { secret: Some(SECRET.into()), webhook_id: Some("msg_7_0_1".into()), ..http_call(receiver.url()) };
    let (executor, clock) = executor(private());
    for attempt in 1..=4 {
        let called = executor.call(&Job { attempt, ..job(call.clone()) }).await;
        assert_eq!(failure(called).status, Some(503));
        clock.advance(Millis::from_secs(60));
    }
    let requests = receiver.requests();
    let secret = Secret::parse(SECRET).unwrap();
    for (n, request) in requests.iter().enumerate() {
        let at = NOON.as_millis() / 1000 + 60 * n as i64;
        assert_eq!(request.header("webhook-id"), Some("msg_7_0_1"));
        assert_eq!(request.header("webhook-timestamp"), Some(at.to_string().as_str()));
        assert_eq!(request.header("idempotency-key"), requests[0].header("idempotency-key"));
        assert_eq!(request.body, requests[0].body);
        let signature = request.header("webhook-signature").unwrap();
        assert_eq!(secret.verify("msg_7_0_1", at, &request.body, signature, at), Ok(()));
        assert!(secret.verify("msg_7_0_1", at, b"{}", signature, at).is_err());
    }
    assert_ne!(requests[0].header("webhook-signature"), requests[1].header("webhook-signature"));
}

#[tokio::test]
async fn an_unsigned_webhook_still_has_its_id_and_a_signed_job_gets_one() {
    let request = sent(&job(HttpCall { webhook_id: Some("msg_1".into()), ..http_call("") })).await;
    assert_eq!((request.header("webhook-id"), request.header("webhook-signature")), (Some("msg_1"), None));
    let request = sent(&job(HttpCall { secret: Some(SECRET.into()), ..http_call("") })).await;
    assert_eq!(request.header("webhook-id"), Some("msg_7"));
    assert!(request.header("webhook-signature").unwrap().starts_with("v1,"));
}

#[tokio::test]
async fn a_secret_of_the_body_is_put_in_when_it_is_sent_and_signs_nothing() {
    let call = HttpCall { secret: Some("body:R0".into()), webhook_id: Some("msg_1".into()), ..http_call("") };
    let stored = Job { payload: r#"{"dedup_key":"***","routing_key":"***","z":"***"}"#.into(), ..job(call) };
    let request = sent(&stored).await;
    // A tenant may call a limit key `***`, which notices repeat.
    assert_eq!(request.body, br#"{"dedup_key":"***","routing_key":"R0","z":"***"}"#);
    assert_eq!((request.header("webhook-id"), request.header("webhook-signature")), (Some("msg_1"), None));
}

#[tokio::test]
async fn a_call_that_cannot_be_made_is_permanent_and_sends_nothing() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let good = http_call(receiver.url());
    let header = |name: &str, value: &str| HttpCall { headers: vec![(name.into(), value.into())], ..good.clone() };
    let calls = [
        HttpCall { method: "CONNECT".into(), ..good.clone() },
        HttpCall { url: "ftp://127.0.0.1/".into(), ..good.clone() },
        HttpCall { secret: Some("whsec_TUYSECRET".into()), ..good.clone() },
        HttpCall { webhook_id: Some("a\nb".into()), ..good.clone() },
        header("Host", "other"),
        header("webhook-signature", "v1,forged"),
        header("X", "a\r\nY: b"),
    ];
    let (executor, _) = executor(private());
    for call in calls {
        let failure = failure(executor.call(&job(call.clone())).await);
        assert_eq!((failure.class.as_str(), failure.advice), (BAD_CALL, Advice::Permanent), "{call:?}");
        assert!(!failure.message.contains("TUYSECRET"));
    }
    let nothing = Job { http: None, ..post("") };
    assert_eq!(failure(executor.call(&nothing).await).class, BAD_CALL);
    assert_eq!(receiver.connections(), 0);
}
