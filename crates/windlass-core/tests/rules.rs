//! Properties of the rules that stores apply: verdicts on operators' actions, picking, retention and keys.

use proptest::prelude::*;
use windlass_core::job::Kind;
use windlass_core::key::{KeyHolder, KeyVerdict, Request, judge};
use windlass_core::pick::{Candidate, Pick, Picker, order};
use windlass_core::slots::{InUse, Percent, SlotShares, SlotVerdict};
use windlass_core::verdict::{
    self, Amend, AmendVerdict, CancelVerdict, DiscardVerdict, ReplayOnly, ReplayVerdict, Standing,
};
use windlass_core::{Delivery, JobId, Keep, Millis, Priority, Retention, RetentionLevel, State, Timestamp};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// So few that two of them are often the same, which is where rules about time change their answer.
fn moments() -> impl Strategy<Value = Timestamp> {
    (0..16_i64).prop_map(at)
}

fn states() -> impl Strategy<Value = State> {
    proptest::sample::select(State::ALL)
}

fn priorities() -> impl Strategy<Value = Priority> {
    proptest::sample::select(&Priority::HIGHEST_FIRST[..])
}

fn standings() -> impl Strategy<Value = Standing> {
    (states(), any::<bool>(), priorities(), moments(), proptest::option::of(moments()), any::<bool>()).prop_map(
        |(state, is_discarded, priority, due_at, start_by, has_started)| Standing {
            state,
            is_discarded: is_discarded && state == State::Failed,
            priority,
            due_at,
            start_by,
            has_started,
        },
    )
}

fn keeps() -> impl Strategy<Value = Keep> {
    prop_oneof![Just(Keep::Drop), Just(Keep::Forever), (1..16_u64).prop_map(|n| Keep::For(Millis::new(n)))]
}

fn levels() -> impl Strategy<Value = RetentionLevel> {
    let keep = || proptest::option::of(keeps());
    (keep(), keep(), keep()).prop_map(|(succeeded, cancelled, failed)| RetentionLevel { succeeded, cancelled, failed })
}

fn candidates() -> impl Strategy<Value = Candidate> {
    (any::<bool>(), any::<bool>()).prop_map(|(once, is_suspect)| Candidate {
        delivery: if once { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
        is_suspect,
    })
}

proptest! {
    #[test]
    fn a_cancel_ends_waiting_jobs_asks_running_jobs_and_leaves_finished_jobs(state in states()) {
        match verdict::cancel(state) {
            CancelVerdict::EndNow => prop_assert!(state.is_live() && state != State::Running),
            CancelVerdict::AskToStop => prop_assert_eq!(state, State::Running),
            CancelVerdict::Finished(was) => prop_assert!(was == state && !state.is_live()),
        }
    }

    #[test]
    fn a_replay_never_touches_a_running_job_and_never_delays_a_waiting_one(
        job in standings(), due_at in moments(), now in moments(), dead_only in any::<bool>(),
    ) {
        let only = if dead_only { ReplayOnly::DeadLetters } else { ReplayOnly::Any };
        match verdict::replay(&job, only, due_at, now) {
            ReplayVerdict::Running => prop_assert_eq!(job.state, State::Running),
            ReplayVerdict::RunNow(at) => prop_assert!(at <= job.due_at && at <= now && !dead_only),
            ReplayVerdict::LeaveWaiting => prop_assert!(job.state.is_live() && dead_only),
            ReplayVerdict::NotDead => prop_assert!(!job.state.is_live() && dead_only),
            ReplayVerdict::Requeue(allowance) => {
                prop_assert!(!job.state.is_live());
                prop_assert!(!dead_only || job.state == State::Failed && !job.is_discarded);
                prop_assert_eq!((allowance.due_at, allowance.failures, allowance.crashes), (due_at, 0, 0));
                // A replayed job can start: a time to start by that has passed no longer applies.
                prop_assert!(!verdict::is_late(allowance.start_by, false, now));
            }
        }
    }

    #[test]
    fn only_failed_jobs_are_discarded_and_only_once(state in states(), is_discarded in any::<bool>()) {
        match verdict::discard(state, is_discarded) {
            DiscardVerdict::Discard => prop_assert!(state == State::Failed && !is_discarded),
            DiscardVerdict::AlreadyDiscarded => prop_assert!(state == State::Failed && is_discarded),
            DiscardVerdict::NotDead => prop_assert!(state != State::Failed),
        }
    }

    #[test]
    fn an_amend_changes_only_the_named_fields_of_waiting_jobs(
        job in standings(), priority in proptest::option::of(priorities()), run_at in proptest::option::of(moments()),
    ) {
        let waits = job.state.is_live() && job.state != State::Running;
        match verdict::amend(&job, Amend { priority, run_at }) {
            AmendVerdict::Change { priority: new, due_at } => {
                prop_assert!(waits);
                prop_assert_eq!(new, priority.unwrap_or(job.priority));
                prop_assert_eq!(due_at, run_at.unwrap_or(job.due_at));
            }
            AmendVerdict::NotWaiting(state) => prop_assert!(!waits && state == job.state),
        }
    }

    #[test]
    fn only_waiting_jobs_that_have_not_started_in_time_expire(job in standings(), now in moments()) {
        if verdict::expires(&job, now) {
            prop_assert!(job.state.is_live() && job.state != State::Running && !job.has_started);
            prop_assert!(job.start_by.is_some_and(|by| by <= now));
        }
    }

    #[test]
    fn a_claim_keeps_its_limits_and_takes_all_it_can(
        limit in 0..20_u32, suspects in 0..3_u32,
        queues in proptest::collection::vec((0..5_u32, 0..5_u32, proptest::collection::vec(candidates(), 0..12)), 0..4),
    ) {
        let mut picker = Picker::new(limit, suspects);
        let (mut taken, mut taken_suspects) = (0, 0);
        for (slots, ahead, jobs) in queues {
            picker.next_queue(slots, ahead);
            let mut here = 0;
            for job in &jobs {
                match picker.pick(*job) {
                    Pick::Take => {
                        prop_assert!(job.delivery == Delivery::AtLeastOnce || here < slots, "into a free slot only");
                        here += 1;
                        taken_suspects += u32::from(job.is_suspect);
                    }
                    Pick::PassOver => prop_assert!(job.is_suspect || job.delivery == Delivery::AtMostOnce),
                    Pick::Full => prop_assert!(picker.is_full()),
                }
            }
            taken += here;
            prop_assert!(here <= slots + ahead);
            let plain = jobs.iter().filter(|job| !job.is_suspect && job.delivery == Delivery::AtLeastOnce).count() as u32;
            prop_assert!(picker.is_full() || here >= plain, "no plain job is left while there is room");
        }
        prop_assert!(taken <= limit && taken_suspects <= suspects);
    }

    #[test]
    fn a_queues_order_is_priority_then_due_time_then_insertion(
        a in (priorities(), moments(), 0..9_i64), b in (priorities(), moments(), 0..9_i64),
    ) {
        let is_first = order(a.0, a.1, JobId(a.2)) < order(b.0, b.1, JobId(b.2));
        prop_assert_eq!(is_first, a.0 > b.0 || (a.0 == b.0 && (a.1, a.2) < (b.1, b.2)));
    }

    #[test]
    fn the_nearest_setting_that_names_a_retention_decides(own in levels(), shared in levels()) {
        let base = Retention::default();
        let retention = Retention::resolve(own, shared);
        for (kept, own, shared, base) in [
            (retention.of(State::Succeeded), own.succeeded, shared.succeeded, base.succeeded),
            (retention.of(State::Cancelled), own.cancelled, shared.cancelled, base.cancelled),
            (retention.of(State::Failed), own.failed, shared.failed, base.failed),
        ] {
            prop_assert_eq!(kept, own.or(shared).unwrap_or(base));
        }
    }

    #[test]
    fn retention_ends_after_its_time_and_reads_back(keep in keeps(), at in moments(), now in moments()) {
        prop_assert_eq!(Keep::parse(&keep.to_string()), Some(keep));
        match keep {
            Keep::Drop => prop_assert!(keep.is_past(at, now)),
            Keep::Forever => prop_assert!(!keep.is_past(at, now)),
            Keep::For(span) => prop_assert_eq!(keep.is_past(at, now), at + span <= now),
        }
    }

    #[test]
    fn a_key_is_valid_for_its_window_or_as_long_as_its_job_is_live(
        until in proptest::option::of(moments()), is_live in any::<bool>(), now in moments(),
    ) {
        let holder = KeyHolder { job: JobId(1), until, is_live };
        let stands = match until {
            Some(until) => now < until,
            None => is_live,
        };
        let kind = Kind::new("email").unwrap();
        let request = Request::new(&kind, "{}");
        prop_assert_eq!(holder.verdict(None, request, now), stands.then_some(KeyVerdict::Existing(JobId(1))));
    }

    #[test]
    fn no_tenant_and_no_destination_holds_more_than_its_part_of_the_slots(
        slots in 2..200_u32,
        percents in (1..=100_u32, 1..=100_u32),
        calls in proptest::collection::vec((0..4_usize, 0..6_usize, any::<bool>()), 0..400),
    ) {
        let shares = SlotShares {
            tenant: Percent::new(percents.0).unwrap(),
            destination: Percent::new(percents.1).unwrap(),
        };
        let limits = shares.of(slots);
        let (mut tenants, mut destinations) = ([0_u32; 4], [0_u32; 6]);
        let mut under_way = Vec::new();
        for (tenant, destination, is_end) in calls {
            if is_end && let Some((tenant, destination)) = under_way.pop() {
                tenants[tenant] -= 1;
                destinations[destination] -= 1;
            }
            let in_use = InUse { tenant: tenants[tenant], destination: destinations[destination] };
            match limits.judge(in_use) {
                SlotVerdict::Start => {
                    tenants[tenant] += 1;
                    destinations[destination] += 1;
                    under_way.push((tenant, destination));
                }
                SlotVerdict::TenantFull => prop_assert_eq!(tenants[tenant], limits.tenant),
                SlotVerdict::DestinationFull => prop_assert_eq!(destinations[destination], limits.destination),
            }
            prop_assert!(tenants.iter().all(|count| u64::from(*count) <= u64::from(slots * percents.0 / 100).max(1)));
            prop_assert!(destinations.iter().all(|count| *count <= (slots * percents.1 / 100).max(1)));
        }
    }
}

#[test]
fn requests_are_compared_by_kind_and_json_value() {
    let first = Request { kind: "email", payload: r#"{"a":1,"b":[2]}"# };
    for (kind, payload, verdict) in [
        ("email", r#"{"a":1,"b":[2]}"#, KeyVerdict::Existing(JobId(7))),
        ("email", r#"{ "b": [2], "a": 1 }"#, KeyVerdict::Existing(JobId(7))),
        ("email", r#"{"a":2,"b":[2]}"#, KeyVerdict::Conflict(JobId(7))),
        ("report", r#"{"a":1,"b":[2]}"#, KeyVerdict::Conflict(JobId(7))),
    ] {
        assert_eq!(judge(JobId(7), Some(first), Request { kind, payload }), verdict, "{kind} {payload}");
    }
    // A job that is no longer kept was accepted once, and must not be accepted again.
    assert_eq!(judge(JobId(7), None, Request { kind: "report", payload: "1" }), KeyVerdict::Existing(JobId(7)));
}

#[test]
fn by_default_a_tenant_holds_half_of_the_slots_and_a_destination_half_of_that() {
    let limits = |slots| (SlotShares::default().of(slots).tenant, SlotShares::default().of(slots).destination);
    assert_eq!([64, 10, 4, 2, 1].map(limits), [(32, 16), (5, 2), (2, 1), (1, 1), (1, 1)]);
    assert_eq!((Percent::new(0), Percent::new(101), Percent::ALL.of(7)), (None, None, 7));
}
