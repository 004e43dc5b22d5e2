//! Each rule of the decision, and their order.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::json;
use windlass_core::decide::{Progress, Why};
use windlass_core::policy::{Partial, Policy, no_names};
use windlass_core::{
    Delivery, Effect, Failure, LiveRules, Millis, Next, Outcome, Reason, Roll, Running, State, Status, Timestamp,
    Transition, decide,
};

const START: Timestamp = Timestamp::from_millis(1_767_268_800_000);
const ROLL: Roll = Roll(u64::MAX);

fn policy(line: &str) -> Policy {
    Partial::resolve(&[Partial::parse_line(line).unwrap()], &[]).unwrap()
}

fn job(policy: &Policy) -> Running<'_> {
    Running {
        failures: 0,
        crashes: 0,
        first_attempt_at: START,
        previous_delay: Millis::ZERO,
        delivery: Delivery::AtLeastOnce,
        cancel_requested: false,
        is_probe: false,
        policy,
        rules: LiveRules::default(),
    }
}

fn failed(class: &str) -> Outcome {
    Outcome::Failed(Failure::new("no").class(class))
}

fn run(job: &Running<'_>, outcome: &Outcome) -> Transition {
    decide(job, outcome, START, ROLL)
}

fn every_outcome_but_success() -> [Outcome; 7] {
    [
        failed("Timeout"),
        Outcome::Failed(Failure::permanent("no")),
        Outcome::Snoozed(Millis::from_secs(5)),
        Outcome::Released(Progress::Started),
        Outcome::Released(Progress::NotStarted),
        Outcome::Cancelled,
        Outcome::Lost,
    ]
}

#[test]
fn success_is_success_whatever_else_was_requested() {
    let p = policy("once");
    let base = Running { failures: 9, crashes: 9, cancel_requested: true, delivery: Delivery::AtMostOnce, ..job(&p) };
    let step = run(&base, &Outcome::Succeeded);
    assert_eq!((step.next, step.status, step.why), (Next::Succeeded, Status::Succeeded, Why::Succeeded));
    assert_eq!((step.failures, step.crashes), (9, 0));
}

#[test]
fn a_requested_cancel_ends_everything_but_success() {
    let p = policy("http");
    for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
        let asked = Running { cancel_requested: true, delivery, failures: 99, crashes: 99, ..job(&p) };
        for outcome in every_outcome_but_success() {
            assert_eq!(run(&asked, &outcome).next, Next::Cancelled, "{outcome:?}");
        }
    }
}

#[test]
fn a_handler_can_end_its_job() {
    let p = policy("http");
    let step = run(&job(&p), &Outcome::Cancelled);
    assert_eq!((step.next, step.why, step.failures), (Next::Cancelled, Why::CancelledByHandler, 0));
}

#[test]
fn snooze_and_release_wait_and_count_nothing() {
    let p = policy("once");
    let tired = Running { failures: 5, crashes: 2, ..job(&p) };
    let span = Millis::from_secs(5);
    let step = run(&tired, &Outcome::Snoozed(span));
    assert_eq!(step.next, Next::Wait { state: State::Queued, due_at: START + span, delay: span });
    assert_eq!((step.status, step.failures, step.crashes), (Status::Snoozed, 5, 0));
    for progress in [Progress::Started, Progress::NotStarted] {
        let step = run(&tired, &Outcome::Released(progress));
        assert_eq!(step.next, Next::Wait { state: State::Queued, due_at: START, delay: Millis::ZERO });
        assert_eq!((step.status, step.failures, step.crashes), (Status::Released, 5, 0));
    }
}

#[test]
fn an_at_most_once_job_that_started_never_starts_again() {
    let p = policy("http");
    let once = Running { delivery: Delivery::AtMostOnce, ..job(&p) };
    for outcome in [
        failed("Timeout"),
        Outcome::Failed(Failure::permanent("no")),
        Outcome::Failed(Failure::new("no").retry_in(Millis::ZERO)),
        Outcome::Snoozed(Millis::ZERO),
        Outcome::Released(Progress::Started),
        Outcome::Lost,
    ] {
        assert_eq!(run(&once, &outcome).next, Next::Failed(Reason::AtMostOnce), "{outcome:?}");
    }
    assert_eq!(run(&once, &Outcome::Released(Progress::NotStarted)).next.state(), State::Queued);
}

#[test]
fn a_permanent_failure_or_a_listed_class_is_given_up_at_once() {
    let p = policy("http:giveUpOn=ValidationError|404|5xx");
    let with_status = |status| Outcome::Failed(Failure { status: Some(status), ..Failure::new("no") });
    for (outcome, reason) in [
        (Outcome::Failed(Failure::permanent("no")), Some(Reason::Permanent)),
        (failed("ValidationError"), Some(Reason::Permanent)),
        (failed("validationerror"), None),
        (with_status(404), Some(Reason::Permanent)),
        (with_status(403), None),
        (with_status(599), Some(Reason::Permanent)),
        (with_status(600), None),
        (failed("Timeout"), None),
    ] {
        let step = run(&job(&p), &outcome);
        let expected = reason.map_or(State::Retrying, |_| State::Failed);
        assert_eq!(step.next.state(), expected, "{outcome:?}");
        assert_eq!(matches!(step.next, Next::Failed(Reason::Permanent)), reason.is_some(), "{outcome:?}");
        assert_eq!(step.failures, 1);
    }
}

#[test]
fn with_retry_on_only_those_are_retried() {
    let p = policy("http:retryOn=Timeout|5xx,giveUpOn=504");
    let with_status = |status| Outcome::Failed(Failure { status: Some(status), ..Failure::new("no") });
    assert_eq!(run(&job(&p), &failed("Timeout")).next.state(), State::Retrying);
    assert_eq!(run(&job(&p), &with_status(503)).next.state(), State::Retrying);
    assert_eq!(run(&job(&p), &with_status(504)).next, Next::Failed(Reason::Permanent));
    assert_eq!(run(&job(&p), &failed("Error")).next, Next::Failed(Reason::Permanent));
    assert_eq!(run(&job(&p), &Outcome::Lost).next, Next::Failed(Reason::Permanent));
}

#[test]
fn a_job_that_loses_its_worker_too_often_in_a_row_is_quarantined() {
    let p = policy("http:retries=1000");
    let lost = |crashes| run(&Running { crashes, ..job(&p) }, &Outcome::Lost);
    assert_eq!((lost(0).next.state(), lost(0).crashes, lost(0).failures), (State::Retrying, 1, 1));
    assert_eq!((lost(1).next.state(), lost(1).crashes), (State::Retrying, 2));
    assert_eq!((lost(2).next, lost(2).crashes), (Next::Failed(Reason::CrashLoop), 3));
    // Any other outcome resets the count.
    assert_eq!(run(&Running { crashes: 2, ..job(&p) }, &failed("Error")).crashes, 0);
}

#[test]
fn retries_run_out() {
    let p = policy("http:retries=2");
    let at = |failures| run(&Running { failures, ..job(&p) }, &failed("Error")).next;
    assert_eq!((at(0).state(), at(1).state()), (State::Retrying, State::Retrying));
    assert_eq!(at(2), Next::Failed(Reason::Exhausted));
    assert_eq!(at(u32::MAX), Next::Failed(Reason::Exhausted));
}

#[test]
fn the_deadline_counts_from_the_first_attempt_to_the_start_of_the_next() {
    let p = policy("http:base=10s,maxElapsed=30s");
    let ended = |seconds| decide(&job(&p), &failed("Error"), START + Millis::from_secs(seconds), ROLL).next;
    assert_eq!(ended(20).state(), State::Retrying);
    let too_late = decide(&job(&p), &failed("Error"), START + Millis::new(20_001), ROLL).next;
    assert_eq!(too_late, Next::Failed(Reason::Deadline));
}

#[test]
fn a_retry_says_which_it_is_and_what_the_delay_was_before_jitter() {
    let p = policy("full-jitter");
    let step = decide(&Running { failures: 1, ..job(&p) }, &failed("Error"), START, Roll(0));
    let wait = Next::Wait { state: State::Retrying, due_at: START, delay: Millis::ZERO };
    assert_eq!(step.next, wait);
    assert_eq!(step.why, Why::Backoff { retry: 2, of: 3, base: Millis::from_secs(1) });
}

#[test]
fn retry_after_raises_the_delay_up_to_its_bound_and_keeps_the_jitters_width() {
    let p = policy("queue-worker:maxRetryAfter=10m");
    let after = |asked: u64, roll| {
        let outcome = Outcome::Failed(Failure::new("no").retry_after(Millis::from_secs(asked)));
        decide(&job(&p), &outcome, START, roll)
    };
    let delay = |t: Transition| t.next.wait().map(|(_, d)| d.get());
    // The policy alone would wait 1000 to 1300 ms; the cap is 60 s.
    assert_eq!((delay(after(90, Roll(0))), delay(after(90, ROLL))), (Some(90_000), Some(90_300)));
    assert_eq!((delay(after(3600, Roll(0))), delay(after(3600, ROLL))), (Some(600_000), Some(600_300)));
    assert_eq!((delay(after(0, Roll(0))), delay(after(0, ROLL))), (Some(1000), Some(1300)));
    for (asked, bounded) in [(0, 1000), (90, 90_000), (3600, 600_000)] {
        assert_eq!(p.window_after(1, Millis::ZERO, Millis::from_secs(asked)).min.get(), bounded);
    }
    assert_eq!(after(90, ROLL).why, Why::RetryAfter { retry: 1, of: 4, asked: Millis::from_secs(90) });
    assert_eq!(after(1, ROLL).why, Why::Backoff { retry: 1, of: 4, base: Millis::from_secs(1) });
}

#[test]
fn a_retry_after_that_is_ignored_is_not_named_as_the_reason() {
    let p = policy("http:maxRetryAfter=0");
    let step = run(&job(&p), &Outcome::Failed(Failure::new("no").retry_after(Millis::from_secs(90))));
    assert_eq!(step.why, Why::Backoff { retry: 1, of: 3, base: Millis::from_secs(1) });
}

#[test]
fn retry_in_is_followed_exactly_and_still_counts() {
    let p = policy("queue-worker");
    for asked in [Millis::ZERO, Millis::new(7), Millis::from_secs(86_400)] {
        let step = run(&job(&p), &Outcome::Failed(Failure::new("no").retry_in(asked)));
        assert_eq!(step.next, Next::Wait { state: State::Retrying, due_at: START + asked, delay: asked });
        assert_eq!((step.failures, step.why), (1, Why::RetryIn { retry: 1, of: 4 }));
    }
    let spent = Running { failures: 4, ..job(&p) };
    assert_eq!(
        run(&spent, &Outcome::Failed(Failure::new("no").retry_in(Millis::ZERO))).next,
        Next::Failed(Reason::Exhausted)
    );
}

/// A job to which every rule applies at once; without the first rule, the next one decides.
#[test]
fn the_rules_apply_in_their_order() {
    let p = policy("http:retries=0,maxCrashes=1,maxElapsed=0,giveUpOn=WorkerLost");
    let all = Running { cancel_requested: true, delivery: Delivery::AtMostOnce, ..job(&p) };
    let next = |job: &Running<'_>| run(job, &Outcome::Lost).next;
    assert_eq!(next(&all), Next::Cancelled);
    let job = Running { cancel_requested: false, ..all };
    assert_eq!(next(&job), Next::Failed(Reason::AtMostOnce));
    let job = Running { delivery: Delivery::AtLeastOnce, ..job };
    assert_eq!(next(&job), Next::Failed(Reason::Permanent));
    let p = Policy { give_up_on: vec![], ..p.clone() };
    let job = Running { policy: &p, ..job };
    assert_eq!(next(&job), Next::Failed(Reason::CrashLoop));
    let p = Policy { max_crashes: 2, ..p.clone() };
    let job = Running { policy: &p, ..job };
    assert_eq!(next(&job), Next::Failed(Reason::Exhausted));
    let p = Policy { max_retries: 1, ..p.clone() };
    let job = Running { policy: &p, ..job };
    assert_eq!(next(&job), Next::Failed(Reason::Deadline));
    let p = Policy { max_elapsed: None, ..p.clone() };
    let job = Running { policy: &p, ..job };
    assert_eq!(next(&job).state(), State::Retrying);
}

fn ruled(rules: &serde_json::Value) -> Policy {
    let level = Partial::from_json(&json!({"policy": "http:giveUpOn=Fatal", "rules": rules}), &no_names).unwrap();
    Partial::resolve(&[level], &[]).unwrap()
}

#[test]
fn a_rule_decides_before_the_lists_and_says_so() {
    let p = ruled(&json!([
        {"match": {"class": "Fatal"}, "then": "retry", "for": "5s"},
        {"match": {"class": "Busy"}, "then": "snooze", "for": "30s"},
        {"match": {"class": "Limit"}, "then": "hold", "for": "1m"},
        {"match": {"class": "Gone"}, "then": "discard"},
        {"match": {"class": "Bad"}, "then": "giveUp"},
        {"match": {"class": "Fast"}, "then": "retry", "policy": "fixed:base=100ms,jitter=none"},
    ]));
    let decided = |class| {
        let step = run(&Running { failures: 1, ..job(&p) }, &failed(class));
        (step.next.wait().map(|(_, delay)| delay.get()), step.failures, step.status, step.effect, step.why.to_string())
    };
    let (fail, snooze) = (Status::Failed, Status::Snoozed);
    let text = str::to_owned;
    assert_eq!(decided("Fatal"), (Some(5000), 2, fail, Effect::None, text("retry 2/3: rule 1 of the policy, 5s")));
    assert_eq!(decided("Busy"), (Some(30_000), 1, snooze, Effect::None, text("snoozed by rule 2 of the policy")));
    let hold = Effect::HoldKey(Millis::from_secs(60));
    let why = text("snoozed by rule 3 of the policy, which holds its key");
    assert_eq!(decided("Limit"), (Some(60_000), 1, snooze, hold, why));
    let why = text("gave up and discarded by rule 4 of the policy");
    assert_eq!(decided("Gone"), (None, 2, fail, Effect::Discard, why));
    assert_eq!(decided("Bad"), (None, 2, fail, Effect::None, text("gave up: permanent, by rule 5 of the policy")));
    assert_eq!(decided("Fast"), (Some(100), 2, fail, Effect::None, text("retry 2/3: rule 6 of the policy, 100ms")));
    assert_eq!(decided("Else"), (Some(2000), 2, fail, Effect::None, text("retry 2/3: backoff 2s")));
}

#[test]
fn cancel_at_most_once_and_permanent_come_before_rules_and_lost_attempts_match_none() {
    let p = ruled(&json!([{"match": {"class": "*"}, "then": "snooze", "for": "1s"}]));
    let cancelled = run(&Running { cancel_requested: true, ..job(&p) }, &failed("Error"));
    assert_eq!(cancelled.next, Next::Cancelled);
    let once = run(&Running { delivery: Delivery::AtMostOnce, ..job(&p) }, &failed("Error"));
    assert_eq!(once.next, Next::Failed(Reason::AtMostOnce));
    let permanent = run(&job(&p), &Outcome::Failed(Failure::permanent("no")));
    assert_eq!(permanent.next, Next::Failed(Reason::Permanent));
    assert_eq!(run(&job(&p), &Outcome::Lost).why, Why::Backoff { retry: 1, of: 3, base: Millis::from_secs(1) });
    assert_eq!(run(&job(&p), &failed("Error")).status, Status::Snoozed);
}

#[test]
fn a_retry_by_rule_still_ends_when_the_retries_are_used_up_or_the_time_is() {
    let p = ruled(&json!([{"match": {"class": "*"}, "then": "retry", "for": "5s"}]));
    let spent = Running { failures: 3, ..job(&p) };
    assert_eq!(run(&spent, &failed("Error")).next, Next::Failed(Reason::Exhausted));
    for then in ["retry", "snooze"] {
        let p = Policy {
            max_elapsed: Some(Millis::from_secs(4)),
            ..ruled(&json!([{"match": {"class": "*"}, "then": then, "for": "5s"}]))
        };
        assert_eq!(run(&job(&p), &failed("Error")).next, Next::Failed(Reason::Deadline), "{then}");
    }
}

#[test]
fn a_failed_probe_counts_nothing_unless_the_destination_answered() {
    let p = policy("http:retries=1,giveUpOn=404");
    let probe = Running { is_probe: true, failures: 1, ..job(&p) };
    let answer = |status| Outcome::Failed(Failure { status: Some(status), ..Failure::new("no") });
    let excused = run(&probe, &answer(503));
    assert_eq!((excused.next.wait(), excused.failures), (Some((START, Millis::ZERO)), 1));
    assert_eq!((excused.status, excused.why), (Status::Failed, Why::Probe));
    assert_eq!(windlass_core::attempt::label(0, 1, excused.status, &excused.why.to_string()), "Probe");
    assert_eq!(run(&probe, &answer(400)).next, Next::Failed(Reason::Exhausted));
    assert_eq!(run(&probe, &answer(404)).next, Next::Failed(Reason::Permanent));
    assert_eq!(run(&probe, &failed("Panic")).next, Next::Failed(Reason::Exhausted));
    let once = Running { delivery: Delivery::AtMostOnce, ..probe };
    assert_eq!(run(&once, &answer(503)).next, Next::Failed(Reason::AtMostOnce));
    let lost = run(&Running { failures: 0, ..probe }, &Outcome::Lost);
    assert_eq!((lost.crashes, lost.failures), (1, 1));
}
