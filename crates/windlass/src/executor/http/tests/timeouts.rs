//! Timeouts at each phase, on a manual clock.

use super::stand_ins::{Script, Silence, Spy, Then};
use super::*;
use std::sync::atomic::Ordering;
use windlass_core::failure::TIMEOUT;

/// Starts a call, waits until it hangs where it should, and moves the clock to just before the limit and past it.
async fn times_out(
    executor: &HttpExecutor,
    clock: &Clock,
    job: Job,
    limit: Millis,
    hangs: impl FnMut() -> bool,
) -> Failure {
    let executor = executor.clone();
    let call = tokio::spawn(async move { executor.call(&job).await });
    until("the call hangs", hangs).await;
    clock.advance(limit - Millis::new(1));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!call.is_finished(), "gave up before its time");
    clock.advance(Millis::new(1));
    let failure = failure(call.await.unwrap());
    assert_eq!(failure.class, TIMEOUT);
    assert_eq!(failure.status, None);
    failure
}

#[tokio::test]
async fn a_name_server_that_never_answers_times_out() {
    let resolver = Arc::new(Silence::default());
    let (executor, clock) = executor(HttpOptions { resolver: resolver.clone(), ..HttpOptions::default() });
    let job = post("https://slow.example/");
    let asked = || resolver.0.load(Ordering::SeqCst) == 1;
    let failure = times_out(&executor, &clock, job, network::connect::RESOLVE_LIMIT, asked).await;
    assert_eq!(failure.message, "resolving the name took longer than 5s");
}

#[tokio::test]
async fn an_address_that_never_answers_times_out() {
    let dialer = Arc::new(Spy::new(Then::Stall));
    let (executor, clock) = executor(HttpOptions { dialer: dialer.clone(), ..HttpOptions::default() });
    let job = post("https://8.8.8.8/");
    let dialled = || dialer.dialled().len() == 1;
    let failure = times_out(&executor, &clock, job, network::connect::CONNECT_LIMIT, dialled).await;
    assert_eq!(failure.message, "connecting took longer than 5s");
}

#[tokio::test]
async fn a_dead_address_leaves_time_for_its_neighbours() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let resolver = Arc::new(Script::new(&[&["127.0.0.9", "127.0.0.1"]]));
    let dialer = Arc::new(Spy::new(Then::StallAt("127.0.0.9".parse().unwrap())));
    let (executor, clock) = executor(HttpOptions { resolver, dialer: dialer.clone(), ..private() });
    let job = post(format!("http://two.example:{}/", receiver.address.port()));
    let call = tokio::spawn(async move { executor.call(&job).await });
    until("the dead one is dialled", || dialer.dialled().len() == 1).await;
    clock.advance(Millis::new(network::connect::CONNECT_LIMIT.get() / 2));
    assert_eq!(call.await.unwrap().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_handshake_that_is_never_answered_times_out() {
    // A plain receiver waits for the end of a request, which a TLS handshake never sends.
    let receiver = Receiver::always(Reply::status(200)).await;
    let (executor, clock) = executor(private());
    let job = post(format!("https://{}/", receiver.address));
    let connected = || receiver.connections() == 1;
    let failure = times_out(&executor, &clock, job, network::connect::SECURE_LIMIT, connected).await;
    assert_eq!(failure.message, "the TLS handshake took longer than 5s");
}

#[tokio::test]
async fn a_receiver_that_never_answers_times_out_after_the_default() {
    let receiver = Receiver::always(Reply::Hold).await;
    let (executor, clock) = executor(private());
    let asked = || receiver.requests().len() == 1;
    let failure = times_out(&executor, &clock, post(receiver.url()), DEFAULT_TIMEOUT, asked).await;
    assert_eq!(failure.message, "the call took longer than 30s");
    until("the connection is dropped", || receiver.ended() == 1).await;
}

#[tokio::test]
async fn a_job_has_its_own_timeout() {
    let receiver = Receiver::always(Reply::SendAndStall(b"HTTP/1.1 200 OK\r\nContent-".to_vec())).await;
    let (executor, clock) = executor(private());
    let job = Job { timeout: Some(Millis::from_secs(90)), ..post(receiver.url()) };
    let asked = || receiver.requests().len() == 1;
    let failure = times_out(&executor, &clock, job, Millis::from_secs(90), asked).await;
    assert_eq!(failure.message, "the call took longer than 1m30s");
}

#[tokio::test]
async fn a_body_that_stalls_has_still_had_its_status() {
    for (status, succeeds) in [(200, true), (503, false)] {
        let half = format!("HTTP/1.1 {status} So\r\nContent-Length: 100\r\n\r\nhalf");
        let receiver = Receiver::always(Reply::SendAndStall(half.into_bytes())).await;
        let (executor, clock) = executor(private());
        let job = post(receiver.url());
        let call = tokio::spawn(async move { executor.call(&job).await });
        until("asked", || receiver.requests().len() == 1).await;
        // The body's timeout is shorter than the call's timeout: advancing by less than the call's timeout ends the
        // call.
        let mut advanced = 0;
        while !call.is_finished() && advanced < 29_000 {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            clock.advance(Millis::new(500));
            advanced += 500;
        }
        let called = call.await.unwrap();
        assert_eq!(called.note, Some(format!("HTTP {status}")));
        if succeeds {
            assert_eq!(called.outcome, Outcome::Succeeded);
        } else {
            assert_eq!(failure(called).message, "HTTP 503: half");
        }
        until("the connection is dropped", || receiver.ended() == 1).await;
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_has_still_had_its_status() {
    let half = b"HTTP/1.1 500 So\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let receiver = Receiver::always(Reply::SendAndClose(half)).await;
    let called = executor(private()).0.call(&post(receiver.url())).await;
    assert_eq!(failure(called).message, "HTTP 500: half");
}

#[tokio::test]
async fn the_machines_clock_times_out_too() {
    let receiver = Receiver::always(Reply::Hold).await;
    let executor = HttpExecutor::new(private(), Clock::system());
    let job = Job { timeout: Some(Millis::new(20)), ..post(receiver.url()) };
    assert_eq!(failure(executor.call(&job).await).class, TIMEOUT);
}

#[tokio::test]
async fn dropping_a_call_drops_its_connection() {
    let receiver = Receiver::always(Reply::Hold).await;
    let (executor, _) = executor(private());
    let (job, held) = (post(receiver.url()), executor.clone());
    let call = tokio::spawn(async move { held.call(&job).await });
    until("asked", || receiver.requests().len() == 1).await;
    call.abort();
    until("the connection is dropped", || receiver.ended() == 1).await;
    until("the slot is free", || executor.0.slots.hosts() == 0).await;
}
