use super::world;
use crate::world::*;
use windlass::core::{Failure, Millis, Outcome, Progress, Reason, Roll, State, Status};
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{Commit, Committed, Scope, SettingKey};

#[tokio::test]
async fn a_success_moves_the_job_to_the_archive_with_its_result() {
    let w = world().await;
    let id = w.put(job()).await;
    let running = w.claim_one().await;
    w.advance(SECOND);
    let commit = Commit { result: Some(r#"{"sent":1}"#.into()), note: Some("ok".into()), ..w.commit_of(&running, &Outcome::Succeeded) };
    assert_applied(&w.store.commit(vec![commit], vec![running.lease]).await.unwrap()[0]);
    let done = w.get(id).await;
    assert_eq!((done.state, done.finished_at), (State::Succeeded, Some(START + SECOND)));
    assert_eq!(done.result.as_deref(), Some(r#"{"sent":1}"#));
    assert_eq!(&*done.payload, r#"{"to":"ann"}"#);
    let ledger = w.ledger(id).await;
    assert_eq!((ledger[0].status, ledger[0].note.as_deref()), (Status::Succeeded, Some("ok")));
    assert_eq!(ledger[0].duration(), SECOND);
    w.advance(LEASE + SECOND);
    assert!(w.reap().await.is_empty());
}

#[tokio::test]
async fn text_that_a_database_refuses_is_cleaned_before_it_is_stored() {
    let w = world().await;
    let ids = [w.put(job()).await, w.put(job()).await, w.put(job()).await];
    let jobs = w.claim(&["default"], 3).await.jobs;
    let outcomes =
        [Outcome::Succeeded, Outcome::Succeeded, Outcome::Failed(Failure::permanent("a\0b").class("Bad\0Class"))];
    // An escape is plain text in JSON; a NUL itself is not JSON.
    let results = [Some(r#"{"text":"a\u0000b"}"#), Some("\"a\0b\""), None];
    let commit = |((job, outcome), result): ((&ClaimedJob, &Outcome), Option<&str>)| {
        let trace = Trace {
            started_at: START,
            finished_at: START,
            worker: "w1".into(),
            note: Some("c\0d".into()),
            result: result.map(Into::into),
        };
        commit_of(job, outcome, trace, Roll(0))
    };
    let commits = jobs.iter().zip(&outcomes).zip(results).map(commit).collect();
    for committed in w.store.commit(commits, vec![]).await.unwrap() {
        assert_applied(&committed);
    }
    assert_eq!(w.ledger(ids[0]).await[0].note.as_deref(), Some("c\u{FFFD}d"));
    assert_eq!(w.get(ids[0]).await.result.as_deref(), results[0]);
    assert_eq!(w.get(ids[1]).await.result, None, "what is not JSON is not kept");
    assert!(w.ledger(ids[1]).await[0].note.as_deref().unwrap().contains("result"), "and the note says so");
    let failed = w.get(ids[2]).await;
    assert_eq!(
        (failed.error_class.as_deref(), failed.error.as_deref()),
        (Some("Bad\u{FFFD}Class"), Some("a\u{FFFD}b"))
    );
}

#[tokio::test]
async fn a_failure_waits_for_its_retry() {
    let w = world().await;
    let id = w.put(job()).await;
    let running = w.claim_one().await;
    assert_applied(&w.fail(&running).await);
    let waiting = w.get(id).await;
    assert_eq!((waiting.state, waiting.failures, waiting.attempt), (State::Retrying, 1, 1));
    assert_eq!(waiting.due_at, START + Millis::from_secs(10));
    assert_eq!(waiting.previous_delay, Millis::from_secs(10));
    assert_eq!(waiting.error.as_deref(), Some("boom"));
    assert!(w.store.held(vec![running.lease]).await.unwrap().is_empty());
    w.advance(Millis::new(9_999));
    assert!(w.claim(&["default"], 1).await.jobs.is_empty());
    w.advance(Millis::new(1));
    let again = w.claim_one().await;
    assert_eq!((again.attempt, again.failures, again.first_attempt_at), (2, 1, Some(START)));
}

#[tokio::test]
async fn a_stale_commit_changes_nothing_and_says_so() {
    let w = world().await;
    let id = w.put(job()).await;
    let slow = w.claim_one().await;
    w.advance(LEASE + SECOND);
    w.reap().await;
    let before = w.get(id).await;
    assert_eq!(w.succeed(&slow).await, Committed::Stale);
    let after = w.get(id).await;
    assert_eq!((after.state, after.failures, after.due_at), (before.state, before.failures, before.due_at));
    w.advance(Millis::from_secs(10));
    let current = w.claim_one().await;
    assert_eq!(w.succeed(&slow).await, Committed::Stale, "the attempt belongs to another worker now");
    assert_applied(&w.succeed(&current).await);
    assert_eq!(w.succeed(&slow).await, Committed::Stale);
    assert_eq!(w.ledger(id).await.len(), 2);
}

#[tokio::test]
async fn the_wrong_lease_or_attempt_is_stale() {
    let w = world().await;
    let later = Outcome::Failed(Failure::new("busy"));
    for outcome in [Outcome::Succeeded, Outcome::Failed(Failure::permanent("never")), later] {
        w.put(job()).await;
        let running = w.claim_one().await;
        let good = w.commit_of(&running, &outcome);
        let wrong_lease = Commit { lease: LeaseId(1), ..good.clone() };
        let wrong_attempt = Commit { attempt: 2, ..good.clone() };
        for wrong in [&wrong_lease, &wrong_attempt] {
            assert_eq!(w.store.commit(vec![wrong.clone()], vec![]).await.unwrap(), [Committed::Stale], "{outcome:?}");
        }
        assert_applied(&w.store.commit(vec![good], vec![]).await.unwrap()[0]);
        // The right one does not make them repetitions of it.
        for wrong in [wrong_lease, wrong_attempt] {
            assert_eq!(w.store.commit(vec![wrong], vec![]).await.unwrap(), [Committed::Stale], "{outcome:?}");
        }
    }
}

/// Stores apply large batches otherwise than single commits.
#[tokio::test]
async fn the_wrong_lease_or_attempt_is_stale_in_a_large_batch_too() {
    let w = world().await;
    for outcome in [Outcome::Succeeded, Outcome::Failed(Failure::permanent("never")), failed("busy")] {
        w.put_all((0..12).map(|_| job()).collect()).await;
        let jobs = w.claim(&["default"], 12).await.jobs;
        let good: Vec<Commit> = jobs.iter().map(|job| w.commit_of(job, &outcome)).collect();
        let mut batch = good.clone();
        batch[3].lease = LeaseId(1);
        batch[7].attempt = 2;
        for (n, answer) in w.store.commit(batch, vec![]).await.unwrap().iter().enumerate() {
            assert_eq!(*answer == Committed::Stale, n == 3 || n == 7, "{outcome:?}, commit {n}: {answer:?}");
        }
        for n in [3, 7] {
            assert_eq!(w.get(jobs[n].id).await.state, State::Running, "{outcome:?}, commit {n}");
            assert_applied(&w.store.commit(vec![good[n].clone()], vec![]).await.unwrap()[0]);
        }
    }
}

#[tokio::test]
async fn a_repeated_result_is_recognised_and_a_different_one_is_stale() {
    let w = world().await;
    let id = w.put(job()).await;
    let running = w.claim_one().await;
    let fail = w.commit_of(&running, &failed("boom"));
    assert_applied(&w.store.commit(vec![fail.clone()], vec![]).await.unwrap()[0]);
    assert_eq!(w.store.commit(vec![fail], vec![]).await.unwrap(), [Committed::Repeated]);
    assert_eq!(w.succeed(&running).await, Committed::Stale);
    assert_eq!(w.get(id).await.failures, 1);
    w.advance(Millis::from_secs(10));
    let running = w.claim_one().await;
    let done = w.commit_of(&running, &Outcome::Succeeded);
    assert_applied(&w.store.commit(vec![done.clone()], vec![]).await.unwrap()[0]);
    assert_eq!(w.store.commit(vec![done], vec![]).await.unwrap(), [Committed::Repeated]);
    assert_eq!(w.fail(&running).await, Committed::Stale);
    assert_eq!(w.ledger(id).await.len(), 2);
}

/// Stores end many plain successes of a lease at once, first attempts otherwise than later ones.
#[tokio::test]
async fn repeated_successes_are_recognised_in_a_large_batch_too() {
    let w = world().await;
    let stored = w.put_all((0..12).map(|_| job()).collect()).await;
    let (first, second) = stored.split_at(6);
    let firsts = w.claim(&["default"], 6).await.jobs;
    let fails = firsts.iter().map(|job| w.commit_of(job, &failed("boom"))).collect();
    w.store.commit(fails, vec![]).await.unwrap().iter().for_each(assert_applied);
    w.advance(Millis::from_secs(10));
    // One lease for second attempts, and one for first attempts.
    for (ids, attempts) in [(second, 1), (first, 2)] {
        let jobs = w.claim(&["default"], 6).await.jobs;
        let claimed: Vec<_> = jobs.iter().map(|job| (job.id, job.attempt)).collect();
        assert_eq!(claimed, ids.iter().map(|id| (*id, attempts)).collect::<Vec<_>>());
        let all: Vec<Commit> = jobs.iter().map(|job| w.commit_of(job, &Outcome::Succeeded)).collect();
        let follow = Commit { follow_ups: vec![job_in("after")], ..all[0].clone() };
        w.store.commit(all.clone(), vec![]).await.unwrap().iter().for_each(assert_applied);
        assert_eq!(w.store.commit(all, vec![]).await.unwrap(), vec![Committed::Repeated; 6], "attempt {attempts}");
        assert_eq!(w.store.commit(vec![follow], vec![]).await.unwrap(), [Committed::Repeated]);
        let fails = jobs.iter().map(|job| w.commit_of(job, &failed("boom"))).collect();
        assert_eq!(w.store.commit(fails, vec![]).await.unwrap(), vec![Committed::Stale; 6], "attempt {attempts}");
        for id in ids {
            assert_eq!(w.ledger(*id).await.len(), attempts as usize);
        }
    }
    let tallies = w.store.tallies(&Scope::All, None).await.unwrap();
    assert_eq!(tallies.iter().map(|(.., tally)| tally.succeeded).collect::<Vec<_>>(), [12], "each counted once");
}

#[tokio::test]
async fn a_large_batch_of_stale_successes_changes_nothing() {
    let w = world().await;
    let stored = w.put_all((0..6).map(|_| job()).collect()).await;
    let slow = w.claim(&["default"], 6).await.jobs;
    w.advance(LEASE + SECOND);
    assert_eq!(w.reap().await.len(), 6);
    let late: Vec<Commit> = slow.iter().map(|job| w.commit_of(job, &Outcome::Succeeded)).collect();
    assert_eq!(w.store.commit(late.clone(), vec![]).await.unwrap(), vec![Committed::Stale; 6], "they wait");
    w.advance(Millis::from_secs(10));
    assert_eq!(w.claim(&["default"], 6).await.jobs.len(), 6);
    assert_eq!(w.store.commit(late, vec![]).await.unwrap(), vec![Committed::Stale; 6], "others run them");
    for id in stored {
        assert_eq!((w.get(id).await.state, w.ledger(id).await.len()), (State::Running, 1));
    }
}

#[tokio::test]
async fn a_repeated_result_of_a_job_that_was_not_kept_makes_nothing_new() {
    let w = world().await;
    let key = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&key, Some(r#"{"retention":"0"}"#)).await.unwrap();
    for outcome in [Outcome::Succeeded, Outcome::Failed(Failure::permanent("never"))] {
        let id = w.put(job()).await;
        let running = w.claim_one().await;
        let commit = Commit { follow_ups: vec![job_in("after")], ..w.commit_of(&running, &outcome) };
        assert_applied(&w.store.commit(vec![commit.clone()], vec![]).await.unwrap()[0]);
        let again = w.store.commit(vec![commit], vec![]).await.unwrap().remove(0);
        assert!(!matches!(again, Committed::Applied(_)), "{outcome:?}: {again:?}");
        assert!(w.find(id).await.is_none() && w.ledger(id).await.is_empty());
        assert_eq!(w.claim(&["after"], 5).await.jobs.len(), 1, "{outcome:?}");
    }
}

#[tokio::test]
async fn one_stale_item_does_not_affect_the_others() {
    let w = world().await;
    w.put_all((0..3).map(|_| job()).collect()).await;
    let jobs = w.claim(&["default"], 3).await.jobs;
    let mut commits: Vec<_> = jobs.iter().map(|job| w.commit_of(job, &Outcome::Succeeded)).collect();
    commits[1].lease = LeaseId(5);
    let answers = w.store.commit(commits, vec![]).await.unwrap();
    assert_applied(&answers[0]);
    assert_eq!(answers[1], Committed::Stale);
    assert_applied(&answers[2]);
    assert_eq!(w.get(jobs[1].id).await.state, State::Running);
}

#[tokio::test]
async fn each_item_of_a_mixed_batch_is_applied() {
    let w = world().await;
    w.put_all((0..5).map(|_| job()).collect()).await;
    let jobs = w.claim(&["default"], 5).await.jobs;
    let lease = jobs[0].lease;
    let outcomes = [
        Outcome::Succeeded,
        failed("boom"),
        Outcome::Snoozed(Millis::from_secs(7)),
        Outcome::Released(Progress::NotStarted),
        Outcome::Cancelled,
    ];
    let commits = jobs.iter().zip(&outcomes).map(|(job, outcome)| w.commit_of(job, outcome)).collect();
    for answer in w.store.commit(commits, vec![lease]).await.unwrap() {
        assert_applied(&answer);
    }
    let mut states = Vec::new();
    for job in &jobs {
        let job = w.get(job.id).await;
        states.push((job.state, job.failures, job.due_at.since(START).get()));
    }
    let expected = [
        (State::Succeeded, 0, 0),
        (State::Retrying, 1, 10_000),
        (State::Queued, 0, 7000),
        (State::Queued, 0, 0),
        (State::Cancelled, 0, 0),
    ];
    assert_eq!(states, expected);
    let statuses: Vec<_> = [w.ledger(jobs[2].id).await, w.ledger(jobs[3].id).await].iter().map(|l| l[0].status).collect();
    assert_eq!(statuses, [Status::Snoozed, Status::Released]);
}

#[tokio::test]
async fn the_same_job_twice_in_one_batch_counts_once() {
    let w = world().await;
    let id = w.put(job()).await;
    let running = w.claim_one().await;
    let commit = w.commit_of(&running, &Outcome::Succeeded);
    let answers = w.store.commit(vec![commit.clone(), commit], vec![]).await.unwrap();
    assert_applied(&answers[0]);
    assert_eq!(answers[1], Committed::Repeated);
    assert_eq!(w.ledger(id).await.len(), 1);
}

#[tokio::test]
async fn follow_ups_exist_exactly_if_the_commit_happened() {
    let w = world().await;
    let id = w.put(job()).await;
    let running = w.claim_one().await;
    let follow = NewJob { parent: Some(id), ..job_in("after") };
    let commit = Commit { follow_ups: vec![follow.clone(), follow], ..w.commit_of(&running, &Outcome::Succeeded) };
    let stale = Commit { lease: LeaseId(9), ..commit.clone() };
    assert_eq!(w.store.commit(vec![stale], vec![]).await.unwrap(), [Committed::Stale]);
    assert_eq!(w.list(Default::default()).await, [id]);
    let Committed::Applied(made) = w.store.commit(vec![commit.clone()], vec![]).await.unwrap().remove(0) else { panic!() };
    assert_eq!(made.len(), 2);
    assert_eq!(w.get(made[1]).await.parent, Some(id));
    assert_eq!(w.store.commit(vec![commit], vec![]).await.unwrap(), [Committed::Repeated]);
    assert_eq!(ids(&w.claim(&["after"], 5).await), made);
}

#[tokio::test]
async fn exhausted_retries_end_in_failed_with_the_reason() {
    let w = world().await;
    let id = w.put(job()).await;
    for _ in 0..4 {
        assert_applied(&w.fail(&w.claim_one().await).await);
        w.advance(Millis::from_secs(10));
    }
    let dead = w.get(id).await;
    assert_eq!((dead.state, dead.reason.map(Reason::as_str), dead.failures), (State::Failed, Some("exhausted"), 4));
    assert_eq!((dead.error_class.as_deref(), dead.error.as_deref()), (Some("Error"), Some("boom")));
    assert!(w.claim(&["default"], 1).await.jobs.is_empty());
}
