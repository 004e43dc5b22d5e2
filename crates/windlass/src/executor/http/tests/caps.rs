//! How many calls may be under way, and how the others wait.

use super::stand_ins::Script;
use super::*;
use tokio::task::JoinSet;

/// Starts `count` calls to each of `urls`.
fn start(executor: &HttpExecutor, job: &Job, urls: &[String], count: usize) -> JoinSet<Called> {
    let mut calls = JoinSet::new();
    for url in urls.iter().flat_map(|url| std::iter::repeat_n(url, count)) {
        let (executor, job) = (executor.clone(), Job { http: Some(Arc::new(http_call(url))), ..job.clone() });
        calls.spawn(async move { executor.call(&job).await });
    }
    calls
}

fn count(calls: &[Called], outcome: &Outcome) -> usize {
    calls.iter().filter(|called| called.outcome == *outcome).count()
}

#[tokio::test]
async fn a_host_gets_no_more_calls_than_its_slots_and_the_rest_is_snoozed() {
    let receiver = Receiver::always(Reply::Hold).await;
    let options = HttpOptions { calls_per_host: 2, slot_wait: Millis::from_secs(10), ..private() };
    let (executor, clock) = executor(options);
    let mut calls = start(&executor, &post(""), &[receiver.url()], 5);
    until("all have come", || executor.0.slots.callers() == 5 && receiver.requests().len() == 2).await;
    clock.advance(Millis::from_secs(10));
    let mut called = Vec::new();
    while called.len() < 3 {
        called.push(calls.join_next().await.unwrap().unwrap());
    }
    assert_eq!(count(&called, &Outcome::Snoozed(BUSY_SNOOZE)), 3);
    receiver.release(2);
    let called = calls.join_all().await;
    assert_eq!(count(&called, &Outcome::Succeeded), 2);
    assert_eq!(receiver.requests().len(), 2);
    assert_eq!(executor.0.slots.hosts(), 0, "an idle host takes no room");
}

#[tokio::test]
async fn waiting_for_a_slot_is_not_part_of_the_timeout() {
    let receiver = Receiver::always(Reply::Hold).await;
    let options = HttpOptions { calls_per_host: 1, slot_wait: Millis::from_secs(3600), ..private() };
    let (executor, clock) = executor(options);
    let mut calls = start(&executor, &post(""), &[receiver.url()], 2);
    until("one is under way", || executor.0.slots.callers() == 2 && receiver.requests().len() == 1).await;
    clock.advance(Millis::from_secs(20));
    receiver.release(1);
    assert_eq!(calls.join_next().await.unwrap().unwrap().outcome, Outcome::Succeeded);
    until("the other is under way", || receiver.requests().len() == 2).await;
    clock.advance(Millis::from_secs(20));
    receiver.release(1);
    assert_eq!(calls.join_next().await.unwrap().unwrap().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_busy_host_leaves_room_for_the_others() {
    let (busy, idle) = (Receiver::always(Reply::Hold).await, Receiver::always(Reply::status(200)).await);
    let resolver = Arc::new(Script::new(&[&["127.0.0.1"]]));
    let (executor, _) = executor(HttpOptions { calls_per_host: 1, calls: 2, resolver, ..private() });
    let calls = start(&executor, &post(""), &[busy.url()], 8);
    until("all have come", || executor.0.slots.callers() == 8 && busy.requests().len() == 1).await;
    let elsewhere = format!("http://idle.example:{}/", idle.address.port());
    assert_eq!(executor.call(&post(elsewhere)).await.outcome, Outcome::Succeeded);
    drop(calls);
    until("nobody waits any more", || executor.0.slots.hosts() == 0).await;
}

#[tokio::test]
async fn all_calls_together_have_a_cap() {
    let receivers = [Receiver::always(Reply::Hold).await, Receiver::always(Reply::Hold).await];
    let resolver = Arc::new(Script::new(&[&["127.0.0.1"]]));
    let (executor, _) = executor(HttpOptions { calls: 3, calls_per_host: 2, resolver, ..private() });
    let urls: Vec<_> = ["a", "b"]
        .iter()
        .zip(&receivers)
        .map(|(name, r)| format!("http://{name}.example:{}/", r.address.port()))
        .collect();
    let calls = start(&executor, &post(""), &urls, 4);
    let under_way = || receivers.iter().map(|r| r.requests().len()).sum::<usize>();
    until("all have come", || executor.0.slots.callers() == 8 && under_way() == 3).await;
    receivers.iter().for_each(|r| r.release(4));
    assert_eq!(count(&calls.join_all().await, &Outcome::Succeeded), 8);
}

#[tokio::test]
async fn an_at_most_once_job_that_got_no_slot_goes_back_unstarted() {
    let receiver = Receiver::always(Reply::Hold).await;
    let (executor, clock) = executor(HttpOptions { calls_per_host: 1, slot_wait: Millis::from_secs(1), ..private() });
    let job = Job { delivery: Delivery::AtMostOnce, ..post("") };
    let mut calls = start(&executor, &job, &[receiver.url()], 2);
    until("both have come", || executor.0.slots.callers() == 2 && receiver.requests().len() == 1).await;
    clock.advance(Millis::from_secs(1));
    let called = calls.join_next().await.unwrap().unwrap();
    assert_eq!(called.outcome, Outcome::Released(Progress::NotStarted));
}
