use super::world;
use crate::world::*;
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::{Executor, Failure, JobId, Millis, Outcome, State};
use windlass::low_level::job::{NewJob, RunAt};
use windlass::low_level::stores::{Discard, Holder, JobFilter, Order, Page, Scope, Share, Steps};

#[tokio::test]
async fn pages_are_stable_under_writes() {
    let w = world().await;
    let stored = w.put_all((0..10).map(|_| job()).collect()).await;
    let page = |after, order| Page { after, limit: 3, order };
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let jobs = w.store.jobs(&Scope::All, &JobFilter::default(), page(after, Order::NewestFirst)).await.unwrap();
        let Some(last) = jobs.last() else { break };
        after = Some(last.id);
        seen.extend(jobs.iter().map(|job| job.id));
        // Between pages jobs come, finish and move to the archive.
        w.put(job()).await;
        w.succeed(&w.claim_one().await).await;
    }
    let mut expected = stored.clone();
    expected.reverse();
    assert_eq!(seen, expected);
    let first = w.store.jobs(&Scope::All, &JobFilter::default(), page(None, Order::OldestFirst)).await.unwrap();
    assert_eq!(first.iter().map(|job| job.id).collect::<Vec<_>>(), stored[..3]);
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let w = world().await;
    let a = w.put(job_in("a")).await;
    let b = w.put(NewJob { kind: Kind::new("sms").unwrap(), schedule: Some(JobId(900)), ..job_in("b") }).await;
    let c = w.put(NewJob { tenant: tenant("acme"), parent: Some(a), ..job_in("a") }).await;
    let running = w.claim(&["a"], 1).await.jobs.remove(0);
    w.advance(SECOND);
    w.commit(&running, Outcome::Failed(Failure::new("slow").class("Timeout"))).await;
    let filter = JobFilter::default;
    assert_eq!(w.list(filter()).await, [a, b, c]);
    assert_eq!(w.list(JobFilter { states: vec![State::Retrying], ..filter() }).await, [a]);
    assert_eq!(w.list(JobFilter { states: vec![State::Retrying, State::Queued], ..filter() }).await, [a, b, c]);
    assert_eq!(w.list(JobFilter { queue: QueueName::new("a").ok(), ..filter() }).await, [a, c]);
    assert_eq!(w.list(JobFilter { tenant: Some(tenant("acme")), ..filter() }).await, [c]);
    assert_eq!(w.list(JobFilter { kind: Kind::new("sms").ok(), ..filter() }).await, [b]);
    assert_eq!(w.list(JobFilter { error_class: Some("Timeout".into()), ..filter() }).await, [a]);
    assert_eq!(w.list(JobFilter { schedule: Some(JobId(900)), ..filter() }).await, [b]);
    assert_eq!(w.list(JobFilter { parent: Some(a), ..filter() }).await, [c]);
    assert!(w.list(JobFilter { since: Some(START + SECOND), ..filter() }).await.is_empty());
    w.advance(Millis::from_secs(10));
    let running = w.claim(&["a"], 1).await.jobs.remove(0);
    w.succeed(&running).await;
    assert_eq!(w.list(JobFilter { since: Some(START + SECOND), ..filter() }).await, [a], "finished since");
    assert_eq!(w.list(JobFilter { states: vec![State::Succeeded], ..filter() }).await, [a]);
}

#[tokio::test]
async fn tenants_see_only_their_own() {
    let w = world().await;
    let mine = w.put(job()).await;
    let theirs = w.put(NewJob { tenant: tenant("acme"), ..job() }).await;
    let scope = Scope::Tenant(tenant("acme"));
    assert!(w.store.job(&scope, mine).await.unwrap().is_none());
    let jobs = w.store.jobs(&scope, &JobFilter::default(), all()).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [theirs]);
    let filter = JobFilter { tenant: Some(tenant("default")), ..Default::default() };
    assert!(w.store.jobs(&scope, &filter, all()).await.unwrap().is_empty());
    assert_eq!(w.store.depths(&scope).await.unwrap().len(), 1);
    assert_eq!(w.store.tallies(&scope, None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn tenants_see_only_their_own_in_every_state_order_and_list() {
    let w = world().await;
    let (schedule, parent) = (JobId(900), JobId(901));
    let mut theirs = Vec::new();
    for owner in [Tenant::default(), tenant("acme")] {
        let one = NewJob { tenant: owner.clone(), schedule: Some(schedule), parent: Some(parent), ..job() };
        theirs = w.put_all(vec![one; 5]).await;
        let queue = w.store.register_queue(&owner, &QueueName::default(), Executor::Worker).await.unwrap().id;
        let request = w.request_shares(vec![Share { queue, slots: 4, ahead: 0 }]);
        let jobs = w.store.claim(request).await.unwrap().jobs;
        assert_applied(&w.fail(&jobs[1]).await);
        assert_applied(&w.succeed(&jobs[2]).await);
        assert_applied(&w.commit(&jobs[3], Outcome::Failed(Failure::permanent("never"))).await);
    }
    let scope = Scope::Tenant(tenant("acme"));
    let filter = JobFilter::default;
    let dead = || JobFilter { dead_letters: true, ..filter() };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let listed = async |filter: JobFilter| {
            let jobs = w.store.jobs(&scope, &filter, Page { order, ..all() }).await.unwrap();
            let mut ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
            ids.sort();
            ids
        };
        assert_eq!(listed(filter()).await, theirs);
        assert_eq!(listed(JobFilter { schedule: Some(schedule), ..filter() }).await, theirs);
        assert_eq!(listed(JobFilter { parent: Some(parent), ..filter() }).await, theirs);
        assert_eq!(listed(dead()).await, theirs[3..4]);
    }
    let groups = w.store.dead_groups(&scope, &dead(), 10).await.unwrap();
    assert_eq!(groups.iter().map(|group| (group.count, group.example)).collect::<Vec<_>>(), [(1, theirs[3])]);
    let steps = Steps { from: START, length: SECOND, count: 1 };
    assert_eq!(w.store.dead_series(&scope, &dead(), steps).await.unwrap().len(), 1);
    let history = w.store.schedule_attempts(&scope, schedule, 10).await.unwrap();
    let mut runs: Vec<JobId> = history.iter().map(|(id, _)| *id).collect();
    runs.sort();
    assert_eq!(runs, theirs[1..4]);
    assert_eq!(w.store.depths(&scope).await.unwrap().len(), 1);
    assert_eq!(w.store.tallies(&scope, None).await.unwrap().len(), 1);
    assert_eq!(w.store.series(&scope, steps).await.unwrap().len(), 1);
}

#[tokio::test]
async fn discarded_jobs_are_in_no_group_of_dead_letters() {
    let w = world().await;
    w.put_all(vec![job(); 2]).await;
    let (discarded, dead) = (w.fail_for_good("broken").await, w.fail_for_good("broken").await);
    let discard = Discard { ids: vec![discarded], reason: "known".into(), by: "ann".into(), what: String::new() };
    w.store.discard(&Scope::All, discard).await.unwrap();
    w.put(job()).await;
    w.succeed(&w.claim_one().await).await;
    let groups = w.store.dead_groups(&Scope::All, &JobFilter::default(), 10).await.unwrap();
    assert_eq!(groups.iter().map(|group| (group.count, group.example)).collect::<Vec<_>>(), [(1, dead)]);
    let steps = Steps { from: START, length: SECOND, count: 1 };
    let counts = w.store.dead_series(&Scope::All, &JobFilter::default(), steps).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.count).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn dead_letters_are_grouped_by_what_they_have_in_common() {
    let w = world().await;
    w.put_all((0..4).map(|_| job()).collect()).await;
    let mut dead = Vec::new();
    for message in ["order 1 refused", "order 22 refused", "no such user", "order 333 refused"] {
        dead.push(w.fail_for_good(message).await);
        w.advance(SECOND);
    }
    let groups = w.store.dead_groups(&Scope::All, &JobFilter::default(), 10).await.unwrap();
    assert_eq!(groups.iter().map(|g| (g.count, g.example)).collect::<Vec<_>>(), [(3, dead[3]), (1, dead[2])]);
    assert_eq!((groups[0].first_seen, groups[0].last_seen), (START, START + Millis::from_secs(3)));
    assert_eq!((&*groups[0].error_class, &*groups[0].message), ("Broken", "order … refused"));
    let same = JobFilter { fingerprint: Some(groups[0].fingerprint.clone()), dead_letters: true, ..Default::default() };
    assert_eq!(w.list(same).await, [dead[0], dead[1], dead[3]]);
    let foreign = Scope::Tenant(tenant("acme"));
    assert!(w.store.dead_groups(&foreign, &JobFilter::default(), 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn dead_letters_with_a_trace_are_grouped_by_where_they_failed() {
    let w = world().await;
    w.put_all((0..3).map(|_| job()).collect()).await;
    let (here, there) = ("Error: x\n    at send (/a/mail.js:4:1)", "Error: x\n    at charge (/a/card.js:4:1)");
    let mut dead = Vec::new();
    for (message, trace) in [("ann is away", here), ("bob left", here), ("ann is away", there)] {
        let claimed = w.claim_one().await;
        let failure = Failure { trace: Some(trace.into()), ..Failure::permanent(message).class("Error") };
        assert_applied(&w.commit(&claimed, Outcome::Failed(failure)).await);
        dead.push(claimed.id);
        w.advance(SECOND);
    }
    let groups = w.store.dead_groups(&Scope::All, &JobFilter::default(), 10).await.unwrap();
    assert_eq!(groups.iter().map(|g| (g.count, g.example)).collect::<Vec<_>>(), [(2, dead[1]), (1, dead[2])]);
    let same = JobFilter { fingerprint: Some(groups[0].fingerprint.clone()), dead_letters: true, ..Default::default() };
    assert_eq!(w.list(same).await, [dead[0], dead[1]]);
}

#[tokio::test]
async fn dead_letters_are_counted_by_group_and_step() {
    let w = world().await;
    w.put_all((0..5).map(|_| job()).collect()).await;
    for message in ["order 1 refused", "order 22 refused", "no such user", "order 333 refused"] {
        w.fail_for_good(message).await;
        w.advance(Millis::from_secs(6));
    }
    // 0 s, 6 s, 12 s and 18 s; the first step is before all, the last step ends before the last failure.
    let steps = Steps { from: START - Millis::from_secs(10), length: Millis::from_secs(10), count: 3 };
    let mut counts = w.store.dead_series(&Scope::All, &JobFilter::default(), steps).await.unwrap();
    counts.sort_by_key(|count| (count.step, std::cmp::Reverse(count.count)));
    let groups = w.store.dead_groups(&Scope::All, &JobFilter::default(), 10).await.unwrap();
    let [orders, user] = [&groups[0].fingerprint, &groups[1].fingerprint];
    let found: Vec<_> = counts.iter().map(|c| (c.step, &c.fingerprint, c.count)).collect();
    assert_eq!(found[0], (1, orders, 2));
    assert!(found[1..].contains(&(2, user, 1)) && found[1..].contains(&(2, orders, 1)) && found.len() == 3);
    assert!(counts.iter().all(|count| count.tenant == tenant("default")));
    let one = JobFilter { fingerprint: Some(user.clone()), ..Default::default() };
    assert_eq!(w.store.dead_series(&Scope::All, &one, steps).await.unwrap().len(), 1);
    let foreign = Scope::Tenant(tenant("acme"));
    assert!(w.store.dead_series(&foreign, &JobFilter::default(), steps).await.unwrap().is_empty());
}

#[tokio::test]
async fn depth_counts_due_later_running_and_dead() {
    let w = world().await;
    w.put_all((0..5).map(|_| job()).collect()).await;
    w.put(NewJob { run_at: RunAt::After(Millis::from_secs(60)), ..job() }).await;
    w.fail_for_good("broken").await;
    w.succeed(&w.claim_one().await).await;
    w.claim_one().await;
    w.advance(SECOND);
    let queue = w.queue_id("default").await;
    let depths = w.store.depths(&Scope::All).await.unwrap();
    let depth = depths.iter().find(|d| d.queue == queue).unwrap();
    assert_eq!((depth.due, depth.later, depth.running, depth.dead), (2, 1, 1, 1));
    assert_eq!(depth.oldest_due, Some(START));
    w.put(NewJob { run_at: RunAt::After(SECOND), ..job_in("later") }).await;
    let queue = w.queue_id("later").await;
    let depths = w.store.depths(&Scope::All).await.unwrap();
    let depth = depths.iter().find(|d| d.queue == queue).unwrap();
    assert_eq!((depth.due, depth.later, depth.oldest_due), (0, 1, None));
}

#[tokio::test]
async fn depth_is_exact_with_many_jobs_due_and_many_later() {
    let w = world().await;
    let later = NewJob { run_at: RunAt::After(SECOND), ..job() };
    w.put_all(vec![job(); 1100]).await;
    w.put_all(vec![later; 1300]).await;
    let depth = async || w.store.depths(&Scope::All).await.unwrap().remove(0);
    let counts = async || {
        let depth = depth().await;
        (depth.due, depth.later, depth.running)
    };
    assert_eq!(counts().await, (1100, 1300, 0));
    w.claim(&["default"], 50).await;
    assert_eq!(counts().await, (1050, 1300, 50));
    assert_eq!(depth().await.oldest_due, Some(START));
    w.advance(SECOND);
    assert_eq!(counts().await, (2350, 0, 50));
}

#[tokio::test]
async fn a_queue_is_registered_once() {
    let w = world().await;
    let first = w.queue_id("email").await;
    w.put(job_in("email")).await;
    assert_eq!(w.queue_id("email").await, first);
    let other = w.reopened().await;
    let queues = other.queues().await.unwrap();
    assert_eq!(queues.len(), 1);
    assert_eq!((queues[0].id, queues[0].paused), (first, false));
}

#[tokio::test]
async fn a_running_job_says_who_runs_it_and_until_when() {
    let w = world().await;
    let ids = w.put_all(vec![job(), job()]).await;
    w.advance(SECOND);
    let running = w.claim_one().await;
    let holders = w.store.holders(&ids).await.unwrap();
    let since = START + SECOND;
    let expected = Holder { job: running.id, worker: "w1".into(), started_at: since, lease_until: since + LEASE };
    assert_eq!(holders, [expected]);
    w.succeed(&running).await;
    assert_eq!(w.store.holders(&ids).await.unwrap(), []);
}
