//! What each response means, and each way of getting none.

use super::receiver::AUTHORITY;
use super::stand_ins::Script;
use super::*;
use futures_util::future::join_all;

async fn call(reply: Reply) -> Called {
    let receiver = Receiver::always(reply).await;
    executor(private()).0.call(&post(receiver.url())).await
}

#[tokio::test]
async fn every_2xx_is_a_success_that_notes_its_status() {
    for status in [200, 201, 202, 204, 226, 299] {
        let called = call(Reply::status(status)).await;
        assert_eq!(called, Called { outcome: Outcome::Succeeded, note: Some(format!("HTTP {status}")) });
    }
}

#[tokio::test]
async fn every_other_status_is_a_failure_of_its_class() {
    for (status, class) in [
        (300, "Redirect"),
        (301, "Redirect"),
        (304, "Redirect"),
        (308, "Redirect"),
        (400, "ValidationError"),
        (401, "UnauthorizedError"),
        (402, "ClientError"),
        (403, "ForbiddenError"),
        (404, "NotFoundError"),
        (405, "ClientError"),
        (407, "ClientError"),
        (408, "Timeout"),
        (409, "ClientError"),
        (410, "NotFoundError"),
        (418, "ClientError"),
        (422, "ValidationError"),
        (425, "ClientError"),
        (429, "RateLimited"),
        (499, "ClientError"),
        (500, "ServerError"),
        (503, "ServerError"),
        (599, "ServerError"),
        (600, "ProtocolError"),
        (999, "ProtocolError"),
    ] {
        let called = call(Reply::with(status, "", "why")).await;
        assert_eq!(called.note, Some(format!("HTTP {status}")));
        let failure = failure(called);
        assert_eq!((failure.class.as_str(), failure.status), (class, Some(status)));
        assert_eq!(failure.advice, Advice::None, "{status}: only the policy gives up on statuses");
    }
}

#[tokio::test]
async fn a_failing_bodys_beginning_is_kept_clean() {
    let body = "one\r\ntwo\0three\u{1b}[31m \u{202e}four\tfive";
    let kept = failure(call(Reply::with(500, "", body)).await);
    assert_eq!(kept.message, "HTTP 500: one two three [31m four five");

    let kept = failure(call(Reply::with(502, "", "")).await);
    assert_eq!(kept.message, "HTTP 502 Bad Gateway");

    let kept = failure(call(Reply::with(500, "", &"x".repeat(20_000))).await);
    assert_eq!(kept.message.len(), "HTTP 500: ".len() + KEPT_BYTES);

    let mut bytes = b"HTTP/1.1 500 So\r\nContent-Length: 4\r\n\r\n".to_vec();
    bytes.extend([b'a', 0xff, 0xfe, b'b']);
    assert_eq!(failure(call(Reply::Send(bytes)).await).message, "HTTP 500: a\u{fffd}\u{fffd}b");
}

#[tokio::test]
async fn secrets_that_a_receiver_echoes_are_not_kept() {
    let receiver =
        Receiver::always(Reply::with(500, "", "you sent Bearer s3cr3t-t0ken and x-api-key=k3y-k3y-k3y")).await;
    let mut job = post(receiver.url());
    let call = job.http.as_deref().expect("the job calls a URL").clone();
    let headers = [("Authorization", "Bearer s3cr3t-t0ken"), ("X-Api-Key", "k3y-k3y-k3y"), ("X-Plain", "sent")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    job.http = Some(HttpCall { headers, ..call }.into());
    let kept = failure(executor(private()).0.call(&job).await).message;
    assert_eq!(kept, "HTTP 500: you sent *** and x-api-key=***");
}

#[tokio::test]
async fn retry_after_is_read_in_both_forms() {
    for (value, advice) in [
        ("120", Advice::RetryAfter(Millis::from_secs(120))),
        (" 7 ", Advice::RetryAfter(Millis::from_secs(7))),
        ("Thu, 01 Jan 2026 12:01:30 GMT", Advice::RetryAfter(Millis::from_secs(90))),
        ("Thursday, 01-Jan-26 12:01:30 GMT", Advice::RetryAfter(Millis::from_secs(90))),
        ("Thu Jan  1 12:01:30 2026", Advice::RetryAfter(Millis::from_secs(90))),
        ("99999999999999999999999", Advice::RetryAfter(Millis::MAX)),
        ("Thu, 01 Jan 2026 11:59:59 GMT", Advice::None),
        ("0", Advice::None),
        ("-5", Advice::None),
        ("+5", Advice::None),
        ("1.5", Advice::None),
        ("soon", Advice::None),
        ("", Advice::None),
        ("Thu, 99 Jan 2026 12:01:30 GMT", Advice::None),
    ] {
        for status in [429, 503, 301] {
            let failed = failure(call(Reply::with(status, &format!("Retry-After: {value}\r\n"), "")).await);
            assert_eq!(failed.advice, advice, "{status} {value}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let elsewhere = Receiver::always(Reply::status(200)).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("Location: {}\r\n", elsewhere.url());
        assert_eq!(failure(call(Reply::with(status, &location, "")).await).class, "Redirect");
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_receiver_that_hangs_up_is_a_connect_error() {
    for reply in
        [Reply::Reset, Reply::SendAndClose(Vec::new()), Reply::SendAndClose(b"HTTP/1.1 200 OK\r\nContent-Le".to_vec())]
    {
        let failure = failure(call(reply.clone()).await);
        assert_eq!(failure.class, CONNECT_ERROR, "{reply:?}");
        assert_eq!(failure.advice, Advice::None);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_a_protocol_error() {
    let many = "A: b\r\n".repeat(1000);
    let long = format!("A: {}\r\n", "x".repeat(200_000));
    for answer in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        format!("HTTP/1.1 200 OK\r\n{long}\r\n"),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
    ] {
        let failure = failure(call(Reply::SendAndClose(answer.clone().into_bytes())).await);
        assert_eq!(failure.class, PROTOCOL_ERROR, "{} … {}", &answer[..20], failure.message);
    }
}

#[tokio::test]
async fn nobody_listening_is_a_connect_error_without_an_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let failed = failure(executor(private()).0.call(&post(format!("http://127.0.0.1:{port}/"))).await);
    assert_eq!((failed.class.as_str(), failed.advice), (CONNECT_ERROR, Advice::None));
    assert_eq!(failed.message, "cannot connect: connection refused");
}

#[tokio::test]
async fn a_name_without_addresses_is_a_dns_error() {
    for answers in [&[][..], &[&[][..]]] {
        let resolver = Arc::new(Script::new(answers));
        let (executor, _) = executor(HttpOptions { resolver, ..HttpOptions::default() });
        assert_eq!(failure(executor.call(&post("https://nowhere.example/")).await).class, DNS_ERROR);
    }
}

#[tokio::test]
async fn a_secured_receiver_is_reached_if_its_authority_is_trusted() {
    let receiver = Receiver::secured(Reply::status(200)).await;
    let port = receiver.address.port();
    let resolver = Arc::new(Script::new(&[&["127.0.0.1"]]));
    let mut options = HttpOptions { resolver, ..private() };
    let (distrustful, _) = executor(options.clone());
    assert_eq!(options.trust(AUTHORITY), Ok(1));
    let (trusting, _) = executor(options);

    for host in ["hooks.example", "HOOKS.example.", "127.0.0.1"] {
        let url = format!("https://{host}:{port}/");
        assert_eq!(trusting.call(&post(&url)).await.outcome, Outcome::Succeeded, "{host}");
        assert_eq!(failure(distrustful.call(&post(&url)).await).class, TLS_ERROR, "{host}: unknown authority");
    }
    let other_name = failure(trusting.call(&post(format!("https://other.example:{port}/"))).await);
    assert_eq!(other_name.class, TLS_ERROR);
    // A TLS receiver called without TLS, and a plain receiver called with TLS.
    let plain = Receiver::always(Reply::status(200)).await;
    let url = format!("https://127.0.0.1:{}/", plain.address.port());
    let handshake = tokio::spawn(async move { trusting.call(&post(url)).await });
    until("the handshake has begun", || plain.connections() == 1).await;
    drop(plain);
    assert_eq!(failure(handshake.await.unwrap()).class, TLS_ERROR);
}

#[test]
fn roots_that_are_no_certificates_are_refused() {
    let mut options = HttpOptions::default();
    assert_eq!(options.trust(b""), Err(RootsError::Empty));
    assert_eq!(options.trust(b"-----BEGIN CERTIFICATE-----\n%%\n"), Err(RootsError::NotPem));
}

#[tokio::test]
async fn a_huge_body_is_read_a_little_and_the_connection_dropped() {
    for status in [200, 500] {
        let mut answer = format!("HTTP/1.1 {status} So\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
        for _ in 0..200 {
            answer.extend(b"10000\r\n");
            answer.extend([b'x'; 0x10000]);
            answer.extend(b"\r\n");
        }
        let receiver = Receiver::always(Reply::SendAndStall(answer)).await;
        let called = executor(private()).0.call(&post(receiver.url())).await;
        assert_eq!(called.outcome == Outcome::Succeeded, status == 200);
        until("the connection is dropped", || receiver.ended() == 1).await;
    }
}

#[tokio::test]
async fn compressed_answers_are_neither_asked_for_nor_unpacked() {
    let receiver = Receiver::always(Reply::with(500, "Content-Encoding: gzip\r\n", "\u{1f}bomb")).await;
    let failed = failure(executor(private()).0.call(&post(receiver.url())).await);
    assert_eq!(failed.message, "HTTP 500: bomb");
    assert_eq!(receiver.requests()[0].header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn calls_one_after_another_share_a_connection() {
    let receiver = Receiver::start(|request| {
        if request.line.contains("bad") { Reply::with(500, "", "no") } else { Reply::with(200, "", "fine") }
    })
    .await;
    let (executor, _) = executor(private());
    for path in ["a", "bad", "b", "bad", "c"] {
        executor.call(&post(format!("{}/{path}", receiver.url()))).await;
    }
    assert_eq!((receiver.requests().len(), receiver.connections()), (5, 1));
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_calls_are_allowed() {
    let receivers = join_all((0..4).map(|_| Receiver::always(Reply::status(200)))).await;
    let (executor, _) = executor(HttpOptions { calls: 2, ..private() });
    for receiver in &receivers {
        assert_eq!(executor.call(&post(receiver.url())).await.outcome, Outcome::Succeeded);
    }
    until("the others were closed", || executor.0.open.count() <= 2).await;
    assert_eq!(receivers[3].requests()[0].header("connection"), Some("close"));
}
