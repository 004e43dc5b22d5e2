use super::world;
use crate::world::*;
use windlass::core::job::QueueName;
use windlass::core::{Executor, Failure, JobId, Millis, Outcome, Priority, State};
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::{
    Committed,
    Alert, AlertChange, AlertStatus, Amend, Amended, Audit, Discard, Discarded, JobFilter, Replay, ReplayOnly,
    Replayed, Scope, Session, Share, Spacing, Token, WorkerId, WorkerReport,
};

fn replay(ids: &[JobId], only: ReplayOnly) -> Replay {
    Replay::new(ids.to_vec(), only, "ann")
}

#[tokio::test]
async fn a_replayed_job_keeps_its_id_and_ledger_and_gets_a_fresh_allowance() {
    let w = world().await;
    let id = w.put(job()).await;
    for _ in 0..4 {
        w.fail(&w.claim_one().await).await;
        w.advance(Millis::from_secs(10));
    }
    assert_eq!(w.get(id).await.state, State::Failed);
    w.advance(Millis::from_secs(100));
    let answer = w.store.replay(&Scope::All, replay(&[id], ReplayOnly::Any)).await.unwrap();
    assert_eq!(answer, [Replayed::Queued]);
    let queued = w.get(id).await;
    assert_eq!((queued.state, queued.failures, queued.attempt, queued.replays), (State::Queued, 0, 4, 1));
    assert_eq!((queued.reason, queued.finished_at, queued.first_attempt_at), (None, None, None));
    assert_eq!(queued.due_at, w.now());
    assert_eq!(w.ledger(id).await.len(), 4);
    let again = w.claim_one().await;
    assert_eq!((again.attempt, again.previous_delay, again.first_attempt_at), (5, Millis::ZERO, Some(w.now())));
    w.fail(&again).await;
    assert_eq!(w.get(id).await.state, State::Retrying, "it has its retries back");
    w.advance(Millis::from_secs(10));
    w.succeed(&w.claim_one().await).await;
    let numbers: Vec<u32> = w.ledger(id).await.iter().map(|a| a.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_job_that_succeeded_can_be_replayed_and_keeps_the_attempt_that_did_it() {
    let w = world().await;
    let id = w.put(job()).await;
    let running = w.claim_one().await;
    w.advance(SECOND);
    w.succeed(&running).await;
    let before = w.ledger(id).await;
    assert_eq!(before.len(), 1);
    assert_eq!(before[0].finished_at, before[0].started_at + SECOND);
    let answer = w.store.replay(&Scope::All, replay(&[id], ReplayOnly::Any)).await.unwrap();
    assert_eq!(answer, [Replayed::Queued]);
    assert_eq!(w.ledger(id).await, before);
    w.succeed(&w.claim_one().await).await;
    assert_eq!(w.ledger(id).await.iter().map(|a| a.number).collect::<Vec<_>>(), [1, 2]);
    // A late repeat of the first attempt's commit changes nothing and is recognised.
    assert_eq!(w.commit(&running, Outcome::Succeeded).await, Committed::Repeated);
}

#[tokio::test]
async fn replaying_again_is_harmless_and_a_waiting_job_becomes_due() {
    let w = world().await;
    let id = w.put(job()).await;
    w.fail_for_good("broken").await;
    let again = || w.store.replay(&Scope::All, replay(&[id, id], ReplayOnly::Any));
    assert_eq!(again().await.unwrap(), [Replayed::Queued, Replayed::AlreadyLive]);
    assert_eq!(again().await.unwrap(), [Replayed::AlreadyLive, Replayed::AlreadyLive]);
    assert_eq!(w.get(id).await.replays, 1);
    let running = w.claim_one().await;
    assert_eq!(again().await.unwrap(), [Replayed::Running, Replayed::Running]);
    w.fail(&running).await;
    assert!(w.claim(&["default"], 1).await.jobs.is_empty());
    assert_eq!(again().await.unwrap()[0], Replayed::AlreadyLive);
    let due = w.claim_one().await;
    assert_eq!((due.id, due.failures), (id, 1), "due now, its failures still count");
    let missing = w.store.replay(&Scope::All, replay(&[JobId(999_999)], ReplayOnly::Any)).await.unwrap();
    assert_eq!(missing, [Replayed::NotFound]);
}

#[tokio::test]
async fn a_rated_replay_spaces_due_times_and_repeating_it_changes_nothing() {
    let w = world().await;
    let stored = w.put_all((0..4).map(|_| job()).collect()).await;
    for _ in 0..4 {
        w.fail_for_good("broken").await;
    }
    let rated = Replay { spacing: Spacing::every(Millis::from_secs(2)), ..replay(&stored, ReplayOnly::DeadLetters) };
    assert_eq!(w.store.replay(&Scope::All, rated.clone()).await.unwrap(), [Replayed::Queued; 4]);
    let due = async |id| w.get(id).await.due_at.since(START).get();
    for (position, id) in stored.iter().enumerate() {
        assert_eq!(due(*id).await, position as u64 * 2000);
    }
    w.advance(SECOND);
    assert_eq!(w.store.replay(&Scope::All, rated).await.unwrap(), [Replayed::AlreadyLive; 4]);
    assert_eq!(due(stored[3]).await, 6000);
    assert_eq!(w.get(stored[0]).await.replays, 1);
}

#[tokio::test]
async fn an_expired_start_by_no_longer_applies_after_a_replay() {
    let w = world().await;
    let id = w.put(NewJob { start_by: Some(START + SECOND), ..job() }).await;
    w.advance(SECOND);
    w.store.expire(10).await.unwrap();
    w.store.replay(&Scope::All, replay(&[id], ReplayOnly::Any)).await.unwrap();
    assert_eq!(w.claim_one().await.id, id);
}

#[tokio::test]
async fn discarding_takes_a_dead_letter_off_the_list_and_keeps_the_job() {
    let w = world().await;
    let id = w.put(job()).await;
    w.fail_for_good("broken").await;
    let waiting = w.put(job()).await;
    let discard = |reason: &str| Discard { ids: vec![id, waiting, JobId(99_999)], reason: reason.into(), by: "ann".into(), what: "class=\"Broken\"".into() };
    let expected = [Discarded::Done, Discarded::NotDead, Discarded::NotFound];
    assert_eq!(w.store.discard(&Scope::All, discard("known bug")).await.unwrap(), expected);
    w.advance(SECOND);
    assert_eq!(w.store.discard(&Scope::All, discard("again")).await.unwrap(), expected, "safe to repeat");
    let job = w.get(id).await;
    assert_eq!((job.state, job.discarded_at, job.discard_reason.as_deref()), (State::Failed, Some(START), Some("known bug")));
    assert!(w.list(JobFilter { dead_letters: true, ..Default::default() }).await.is_empty());
    let only_dead = w.store.replay(&Scope::All, replay(&[id], ReplayOnly::DeadLetters)).await.unwrap();
    assert_eq!(only_dead, [Replayed::NotDead]);
    assert_eq!(w.store.replay(&Scope::All, replay(&[id], ReplayOnly::Any)).await.unwrap(), [Replayed::Queued]);
    let audits = w.store.audits(10).await.unwrap();
    let lines: Vec<_> = audits.iter().map(|a| (a.action.as_str(), a.by.as_str(), a.count)).collect();
    assert_eq!(lines, [("replay", "ann", 1), ("discard", "ann", 1)]);
    assert_eq!(audits[1].detail, "class=\"Broken\": known bug");
}

#[tokio::test]
async fn a_dead_letter_with_several_attempts_is_discarded_as_a_whole() {
    let w = world().await;
    let id = w.put(job()).await;
    w.fail(&w.claim_one().await).await;
    w.advance(Millis::from_secs(10));
    w.fail_for_good("broken").await;
    let discard = Discard { ids: vec![id, id], reason: "known".into(), by: "ann".into(), what: String::new() };
    assert_eq!(w.store.discard(&Scope::All, discard).await.unwrap(), [Discarded::Done, Discarded::Done]);
    assert_eq!(w.get(id).await.discard_reason.as_deref(), Some("known"));
    assert_eq!(w.ledger(id).await.len(), 2);
    assert_eq!(w.store.depths(&Scope::All).await.unwrap()[0].dead, 0);
    assert_eq!(w.store.audits(1).await.unwrap()[0].count, 1);
}

#[tokio::test]
async fn a_waiting_job_can_be_amended_and_no_other() {
    let w = world().await;
    let first = w.put(job()).await;
    let second = w.put(job()).await;
    let later = START + Millis::from_secs(60);
    let change = Amend { priority: Some(Priority::High), run_at: None };
    assert_eq!(w.store.amend(&Scope::All, second, change).await.unwrap(), Amended::Done);
    assert_eq!(ids(&w.claim(&["default"], 1).await), [second]);
    assert_eq!(w.store.amend(&Scope::All, second, change).await.unwrap(), Amended::NotWaiting(State::Running));
    let change = Amend { priority: None, run_at: Some(later) };
    assert_eq!(w.store.amend(&Scope::All, first, change).await.unwrap(), Amended::Done);
    assert_eq!(w.claim(&["default"], 1).await.next_due, Some(later));
    let foreign = Scope::Tenant(tenant("acme"));
    assert_eq!(w.store.amend(&foreign, first, change).await.unwrap(), Amended::NotFound);
}

#[tokio::test]
async fn tokens_are_kept_by_hash_and_revoked_once() {
    let w = world().await;
    let token = Token {
        id: "abc".into(),
        name: "ci".into(),
        hash: [7; 32],
        scopes: vec!["enqueue".into(), "read".into()],
        tenant: Some(tenant("acme")),
        queues: Some(vec![QueueName::new("email").unwrap(), QueueName::new("reports").unwrap()]),
        created_at: START,
        expires_at: Some(START + SECOND),
        revoked_at: None,
    };
    w.store.put_token(&token).await.unwrap();
    assert_eq!(w.store.tokens().await.unwrap(), std::slice::from_ref(&token));
    let changed = Token { queues: None, expires_at: None, ..token };
    w.store.put_token(&changed).await.unwrap();
    assert_eq!(w.store.tokens().await.unwrap(), std::slice::from_ref(&changed));
    let other = Token { id: "def".into(), hash: [8; 32], created_at: START + SECOND, ..changed };
    w.store.put_token(&other).await.unwrap();
    assert!(w.store.revoke_token("abc").await.unwrap());
    w.advance(SECOND);
    assert!(!w.store.revoke_token("abc").await.unwrap());
    let revoked: Vec<_> = w.store.tokens().await.unwrap().iter().map(|token| token.revoked_at).collect();
    assert_eq!(revoked, [Some(START), None]);
}

#[tokio::test]
async fn sessions_end_at_their_time_or_when_they_are_removed() {
    let w = world().await;
    let session = |byte: u8, lasts: u64| Session {
        hash: [byte; 32],
        token: "abc".into(),
        created_at: w.now(),
        expires_at: w.now() + Millis::from_secs(lasts),
    };
    let (short, long, other) = (session(1, 5), session(2, 60), session(3, 60));
    for session in [&short, &long, &other] {
        w.store.put_session(session).await.unwrap();
    }
    assert_eq!(w.store.sessions().await.unwrap().len(), 3);
    w.advance(Millis::from_secs(5));
    let mut left = w.store.sessions().await.unwrap();
    left.sort_by_key(|session| session.hash);
    assert_eq!(left, [long, other.clone()]);
    assert!(w.store.remove_session(&[2; 32]).await.unwrap());
    assert!(!w.store.remove_session(&[2; 32]).await.unwrap());
    // One that has ended is removed with the next sign-in.
    w.store.put_session(&session(4, 60)).await.unwrap();
    assert!(!w.store.remove_session(&short.hash).await.unwrap());
    assert!(w.store.sessions().await.unwrap().contains(&other));
}

#[tokio::test]
async fn workers_report_themselves() {
    let w = world().await;
    let report = WorkerReport {
        worker: WorkerId::new("w1"),
        host: "box".into(),
        version: "1".into(),
        queues: vec![("email".into(), 5)],
        kinds: Some(vec!["email".into()]),
        running: 2,
        started_at: START,
        seen_at: START,
    };
    w.store.report_worker(&report).await.unwrap();
    let later = WorkerReport { running: 3, seen_at: START + SECOND, ..report };
    w.store.report_worker(&later).await.unwrap();
    assert_eq!(w.store.workers(START).await.unwrap(), [later]);
    assert!(w.store.workers(START + SECOND + SECOND).await.unwrap().is_empty());
}

fn alert() -> Alert {
    Alert {
        rule: "many dead".into(),
        measure: "dead_letters".into(),
        subject: String::new(),
        tenant: "acme".into(),
        queue: "email".into(),
        status: AlertStatus::Firing,
        incident: 1,
        since: START,
        fired_at: Some(START),
        resolved_at: None,
        notified_at: None,
        detail: "3 dead letters".into(),
    }
}

#[tokio::test]
async fn only_one_of_several_nodes_changes_an_alert_and_enqueues_its_notices() {
    let w = world().await;
    let other = w.reopened().await;
    let change = AlertChange {
        before: None,
        after: alert(),
        notices: vec![job_in("notices")],
    };
    let nodes = [w.store.clone(), other.clone(), w.store.clone(), other].map(|store| {
        let change = change.clone();
        tokio::spawn(async move { store.change_alert(change).await.unwrap() })
    });
    let mut made = 0;
    for node in nodes {
        made += usize::from(node.await.unwrap());
    }
    assert_eq!(made, 1);
    assert_eq!(w.store.alerts().await.unwrap(), std::slice::from_ref(&change.after));
    assert_eq!(w.claim(&["notices"], 5).await.jobs.len(), 1);
    // A reminder changes nothing but the time of the last notice; a second node's is refused.
    let reminded = Alert { notified_at: Some(START), ..change.after.clone() };
    let before = Some((AlertStatus::Firing, 1, None));
    let remind = AlertChange { before, after: reminded.clone(), notices: vec![job_in("notices")] };
    assert!(w.store.change_alert(remind.clone()).await.unwrap());
    assert!(!w.store.change_alert(remind).await.unwrap());
    assert_eq!(w.store.alerts().await.unwrap(), std::slice::from_ref(&reminded));
    assert_eq!(w.claim(&["notices"], 5).await.jobs.len(), 1);
    let resolved = Alert { status: AlertStatus::Resolved, resolved_at: Some(START), ..reminded };
    // Read before another node changed it: its status, its incident, or the time of the last notice.
    for before in [
        (AlertStatus::Resolved, 1, Some(START)),
        (AlertStatus::Firing, 2, Some(START)),
        (AlertStatus::Firing, 1, Some(START + SECOND)),
    ] {
        let stale = AlertChange { before: Some(before), after: resolved.clone(), notices: vec![] };
        assert!(!w.store.change_alert(stale).await.unwrap(), "{before:?}");
    }
    let before = Some((AlertStatus::Firing, 1, Some(START)));
    let resolve = AlertChange { before, after: resolved.clone(), notices: vec![] };
    assert!(w.store.change_alert(resolve.clone()).await.unwrap());
    assert!(!w.store.change_alert(resolve).await.unwrap());
    assert_eq!(w.store.alerts().await.unwrap(), [resolved]);
}

#[tokio::test]
async fn alerts_of_another_subject_or_rule_are_others() {
    let w = world().await;
    let of_queue = Alert { subject: "email".into(), ..alert() };
    let of_rule = Alert { rule: "no workers".into(), ..alert() };
    for new in [&alert(), &of_queue, &of_rule] {
        let new = AlertChange { before: None, after: new.clone(), notices: vec![] };
        assert!(w.store.change_alert(new).await.unwrap());
    }
    let resolved = Alert { status: AlertStatus::Resolved, ..alert() };
    for done in [true, false] {
        let before = Some((AlertStatus::Firing, 1, None));
        let resolve = AlertChange { before, after: resolved.clone(), notices: vec![] };
        assert_eq!(w.store.change_alert(resolve).await.unwrap(), done);
    }
    assert_eq!(w.store.alerts().await.unwrap(), [resolved, of_queue, of_rule]);
}

#[tokio::test]
async fn audits_are_listed_newest_first() {
    let w = world().await;
    for action in ["purge", "pause"] {
        let entry = Audit { at: w.now(), by: "ann".into(), action: action.into(), count: 2, detail: "q".into() };
        w.store.audit(&entry).await.unwrap();
        w.advance(SECOND);
    }
    let audits = w.store.audits(1).await.unwrap();
    assert_eq!((audits.len(), &*audits[0].action), (1, "pause"));
}

#[tokio::test]
async fn a_replay_with_a_rate_stays_spaced_after_a_pause() {
    let w = world().await;
    let stored = w.put_all((0..6).map(|_| job()).collect()).await;
    for _ in &stored {
        w.fail_for_good("broken").await;
    }
    let (name, owner) = (QueueName::new("default").unwrap(), tenant("default"));
    w.store.pause_queue(&owner, &name, true).await.unwrap();
    w.advance(SECOND);
    let spaced = Replay { spacing: Spacing::every(SECOND), ..replay(&stored, ReplayOnly::DeadLetters) };
    w.store.replay(&Scope::All, spaced).await.unwrap();
    w.advance(Millis::from_secs(100));
    // Pausing again changes nothing: the pause began before.
    w.store.pause_queue(&owner, &name, true).await.unwrap();
    w.store.pause_queue(&owner, &name, false).await.unwrap();
    for id in stored {
        let due = w.claim(&["default"], 10).await;
        assert_eq!(ids(&due), [id], "one each second, in their order");
        w.succeed(&due.jobs[0]).await;
        w.advance(SECOND);
    }
}

#[tokio::test]
async fn a_pause_delays_no_job_that_was_not_replayed_at_a_rate() {
    let w = world().await;
    let dead = w.put(job()).await;
    w.fail_for_good("broken").await;
    let (name, owner) = (QueueName::new("default").unwrap(), tenant("default"));
    w.store.pause_queue(&owner, &name, true).await.unwrap();
    let waiting = w.put(job()).await;
    w.advance(SECOND);
    w.store.replay(&Scope::All, replay(&[dead], ReplayOnly::Any)).await.unwrap();
    w.advance(Millis::from_secs(100));
    w.store.pause_queue(&owner, &name, false).await.unwrap();
    assert_eq!(ids(&w.claim(&["default"], 10).await), [waiting, dead]);
}

#[tokio::test]
async fn resuming_a_queue_moves_only_what_was_replayed_at_a_rate_while_it_was_paused() {
    let w = world().await;
    let named = |name: &str| QueueName::new(name).unwrap();
    let places = [("default", "default"), ("default", "other"), ("acme", "default"), ("default", "unrated")];
    let mut dead = Vec::new();
    for (owner, queue) in places {
        dead.push(w.put_all(vec![NewJob { tenant: tenant(owner), ..job_in(queue) }; 4]).await);
        let queue = w.store.register_queue(&tenant(owner), &named(queue), Executor::Worker).await.unwrap().id;
        let request = w.request_shares(vec![Share { queue, slots: 4, ahead: 0 }]);
        for job in w.store.claim(request).await.unwrap().jobs {
            assert_applied(&w.commit(&job, Outcome::Failed(Failure::permanent("broken"))).await);
        }
    }
    let again = async |ids: &[JobId], spacing| {
        let again = Replay { spacing, ..replay(ids, ReplayOnly::Any) };
        w.store.replay(&Scope::All, again).await.unwrap();
    };
    let rate = Spacing::every(SECOND);
    // Before the pause: one job is tried again later, one is due at a rate, one is in the queue whose rate is over.
    again(&dead[0][..1], Spacing::NONE).await;
    w.fail(&w.claim_one().await).await;
    again(&dead[0][1..2], rate).await;
    again(&dead[3][..1], rate).await;
    w.advance(SECOND);
    for (owner, queue) in places {
        w.store.pause_queue(&tenant(owner), &named(queue), true).await.unwrap();
    }
    let plain = w.put(job()).await;
    for ids in &dead[..3] {
        again(&ids[2..], rate).await;
    }
    again(&dead[3][2..3], Spacing::NONE).await;
    w.advance(Millis::from_secs(100));
    // Pausing again changes nothing: the pause began before.
    for is_paused in [true, false] {
        w.store.pause_queue(&tenant("default"), &named("default"), is_paused).await.unwrap();
    }
    w.store.pause_queue(&tenant("default"), &named("unrated"), false).await.unwrap();
    let due = async |ids: &[JobId]| {
        let mut due = Vec::new();
        for id in ids {
            due.push(w.get(*id).await.due_at.since(START).get() / 1000);
        }
        due
    };
    assert_eq!(due(&dead[0]).await, [10, 0, 101, 102], "the two that were replayed while it was paused");
    assert_eq!(due(&dead[1][2..]).await, [1, 2], "another queue");
    assert_eq!(due(&dead[2][2..]).await, [1, 2], "another tenant");
    assert_eq!(due(&[plain, dead[3][0], dead[3][2]]).await, [1, 0, 1]);
}

#[tokio::test]
async fn a_short_replay_with_a_rate_ends_no_longer_one() {
    let w = world().await;
    let stored = w.put_all(vec![job(); 4]).await;
    for _ in &stored {
        w.fail_for_good("broken").await;
    }
    let rate = Spacing::every(Millis::from_secs(10));
    for ids in [&stored[..3], &stored[3..]] {
        let again = Replay { spacing: rate, ..replay(ids, ReplayOnly::DeadLetters) };
        w.store.replay(&Scope::All, again).await.unwrap();
    }
    let (name, owner) = (QueueName::new("default").unwrap(), tenant("default"));
    w.advance(SECOND);
    w.store.pause_queue(&owner, &name, true).await.unwrap();
    w.advance(Millis::from_secs(100));
    w.store.pause_queue(&owner, &name, false).await.unwrap();
    let mut due = Vec::new();
    for id in &stored[1..3] {
        due.push(w.get(*id).await.due_at.since(START).get() / 1000);
    }
    assert_eq!(due, [101, 111], "they stay ten seconds apart");
}
