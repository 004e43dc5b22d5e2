use super::world;
use crate::world::*;
use windlass::core::{Failure, JobId, Millis, Outcome, State, Timestamp};
use windlass::low_level::job::{ClaimedJob, HttpCall, NewJob};
use windlass::low_level::stores::{
    DeadRuns, Discard, Fired, Firing, JobFilter, Missed, Order, Overlap, Page, Recurrence, Schedule, ScheduleChange,
    ScheduleSpec, Scope, Trigger,
};

const MINUTE: Millis = Millis::from_secs(60);

fn spec() -> ScheduleSpec {
    ScheduleSpec {
        tenant: Default::default(),
        cadence: "* * * * *".into(),
        zone: "UTC".into(),
        recurrence: Recurrence::Recurring,
        overlap: Overlap::Skip,
        missed: Missed::One,
        dead_letters: DeadRuns::Latest,
        template: job(),
    }
}

fn firing(schedule: &Schedule, nominal: Timestamp, next_at: Option<Timestamp>) -> Firing {
    let job = NewJob { schedule: Some(schedule.id), ..schedule.spec.template.clone() };
    Firing { schedule: schedule.id, trigger: Trigger::Due { nominal, next_at }, job: Some(job) }
}

#[tokio::test]
async fn a_schedule_reads_back_and_shares_ids_with_jobs() {
    let w = world().await;
    let call = HttpCall {
        method: "POST".into(),
        url: "https://example.com".into(),
        headers: vec![("x".into(), "y".into())],
        secret: None,
        webhook_id: None,
    };
    let template = NewJob { http: Some(call.into()), timeout: Some(SECOND), ..job() };
    let spec = ScheduleSpec { recurrence: Recurrence::OneShot, overlap: Overlap::Allow, missed: Missed::Skip, template, ..spec() };
    let made = w.store.add_schedule(spec.clone(), Some(START + MINUTE)).await.unwrap();
    let id = w.put(job()).await;
    assert!(id > made.id);
    let found = w.store.schedule(&Scope::All, made.id).await.unwrap().unwrap();
    assert_eq!((found.next_at, found.paused, found.last_job), (Some(START + MINUTE), false, None));
    assert_eq!((&found.spec.cadence, &found.spec.zone), (&spec.cadence, &spec.zone));
    assert_eq!((found.spec.recurrence, found.spec.overlap, found.spec.missed), (spec.recurrence, spec.overlap, spec.missed));
    let template = &found.spec.template;
    assert_eq!((&template.payload, &template.policy, &template.http), (&spec.template.payload, &spec.template.policy, &spec.template.http));
    assert_eq!(template.timeout, Some(SECOND));
    assert_eq!(w.store.schedules(&Scope::All, all()).await.unwrap().len(), 1);
    assert!(w.store.schedule(&Scope::Tenant(tenant("acme")), made.id).await.unwrap().is_none());
}

#[tokio::test]
async fn due_schedules_are_listed_and_the_next_moment_is_known() {
    let w = world().await;
    let soon = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let later = w.store.add_schedule(spec(), Some(START + MINUTE + MINUTE)).await.unwrap();
    assert_eq!(w.store.due_schedules(10).await.unwrap().1, Some(START + MINUTE));
    w.advance(MINUTE);
    let (due, next) = w.store.due_schedules(10).await.unwrap();
    assert_eq!(due.iter().map(|s| s.id).collect::<Vec<_>>(), [soon.id]);
    assert_eq!(next, Some(START + MINUTE + MINUTE));
    let pause = ScheduleChange { paused: Some(true), ..Default::default() };
    w.store.change_schedule(&Scope::All, soon.id, pause).await.unwrap().unwrap();
    assert!(w.store.due_schedules(10).await.unwrap().0.is_empty());
    assert!(w.store.remove_schedule(&Scope::All, later.id).await.unwrap());
    assert!(!w.store.remove_schedule(&Scope::All, later.id).await.unwrap());
    assert_eq!(w.store.due_schedules(10).await.unwrap().1, None);
}

#[tokio::test]
async fn a_schedule_is_due_to_the_millisecond_and_a_paused_one_never() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let due = async || {
        let (due, next) = w.store.due_schedules(10).await.unwrap();
        (due.iter().map(|schedule| schedule.id).collect::<Vec<_>>(), next)
    };
    let pause = async |paused| {
        let change = ScheduleChange { paused: Some(paused), ..Default::default() };
        w.store.change_schedule(&Scope::All, schedule.id, change).await.unwrap().unwrap();
    };
    w.advance(MINUTE - Millis::new(1));
    assert_eq!(due().await, (vec![], Some(START + MINUTE)));
    pause(true).await;
    assert_eq!(due().await, (vec![], None));
    w.advance(Millis::new(1));
    assert_eq!(due().await, (vec![], None));
    pause(false).await;
    assert_eq!(due().await, (vec![schedule.id], None));
}

#[tokio::test]
async fn tenants_list_change_and_remove_only_their_own_schedules() {
    let w = world().await;
    let mine = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let theirs = ScheduleSpec { tenant: tenant("acme"), ..spec() };
    let theirs = w.store.add_schedule(theirs, Some(START + MINUTE)).await.unwrap();
    let scope = Scope::Tenant(tenant("acme"));
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let listed = w.store.schedules(&scope, Page { order, ..all() }).await.unwrap();
        assert_eq!(listed.iter().map(|schedule| schedule.id).collect::<Vec<_>>(), [theirs.id]);
    }
    let pause = ScheduleChange { paused: Some(true), ..Default::default() };
    assert!(w.store.change_schedule(&scope, mine.id, pause.clone()).await.unwrap().is_none());
    assert!(!w.store.remove_schedule(&scope, mine.id).await.unwrap());
    assert!(!w.store.schedule(&Scope::All, mine.id).await.unwrap().unwrap().paused);
    assert!(w.store.change_schedule(&scope, theirs.id, pause).await.unwrap().unwrap().paused);
    assert!(w.store.remove_schedule(&scope, theirs.id).await.unwrap());
}

#[tokio::test]
async fn one_job_per_firing_with_several_nodes_racing() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START)).await.unwrap();
    let other = w.reopened().await;
    let nodes: Vec<_> = (0..8)
        .map(|i| {
            let store = if i % 2 == 0 { w.store.clone() } else { other.clone() };
            let firing = firing(&schedule, START, Some(START + MINUTE));
            tokio::spawn(async move { store.fire(firing).await.unwrap() })
        })
        .collect();
    let mut enqueued = Vec::new();
    for node in nodes {
        match node.await.unwrap() {
            Fired::Enqueued(id) => enqueued.push(id),
            Fired::NotOurs => {}
            Fired::Skipped => panic!("nothing to skip"),
        }
    }
    assert_eq!(enqueued.len(), 1);
    let after = w.store.schedule(&Scope::All, schedule.id).await.unwrap().unwrap();
    assert_eq!((after.next_at, after.last_at, after.last_job), (Some(START + MINUTE), Some(START), Some(enqueued[0])));
    assert_eq!(w.list(JobFilter { schedule: Some(schedule.id), ..Default::default() }).await, enqueued);
}

#[tokio::test]
async fn a_live_run_is_not_overlapped_unless_allowed() {
    let w = world().await;
    let skip = w.store.add_schedule(spec(), Some(START)).await.unwrap();
    let allow = w.store.add_schedule(ScheduleSpec { overlap: Overlap::Allow, ..spec() }, Some(START)).await.unwrap();
    let fire = async |schedule: &Schedule, k: u64| {
        let at = |k: u64| START + Millis::from_secs(60 * k);
        w.store.fire(firing(schedule, at(k), Some(at(k + 1)))).await.unwrap()
    };
    assert!(matches!(fire(&skip, 0).await, Fired::Enqueued(_)));
    assert!(matches!(fire(&allow, 0).await, Fired::Enqueued(_)));
    assert_eq!(fire(&skip, 1).await, Fired::Skipped);
    assert!(matches!(fire(&allow, 1).await, Fired::Enqueued(_)));
    for job in w.claim(&["default"], 10).await.jobs {
        assert_eq!(fire(&skip, 1).await, Fired::NotOurs, "that firing is used up");
        w.succeed(&job).await;
    }
    assert!(matches!(fire(&skip, 2).await, Fired::Enqueued(_)));
}

#[tokio::test]
async fn an_operator_can_trigger_a_paused_schedule_without_moving_it() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let pause = ScheduleChange { paused: Some(true), ..Default::default() };
    w.store.change_schedule(&Scope::All, schedule.id, pause).await.unwrap();
    let due = firing(&schedule, START + MINUTE, None);
    assert_eq!(w.store.fire(due.clone()).await.unwrap(), Fired::NotOurs);
    let by_hand = Firing { trigger: Trigger::Operator, ..due };
    assert!(matches!(w.store.fire(by_hand.clone()).await.unwrap(), Fired::Enqueued(_)));
    assert!(matches!(w.store.fire(by_hand).await.unwrap(), Fired::Enqueued(_)));
    let after = w.store.schedule(&Scope::All, schedule.id).await.unwrap().unwrap();
    assert_eq!((after.next_at, after.last_at), (Some(START + MINUTE), None));
    let missing = Firing { schedule: JobId(999_999), trigger: Trigger::Operator, job: Some(job()) };
    assert_eq!(w.store.fire(missing).await.unwrap(), Fired::NotOurs);
}

#[tokio::test]
async fn a_firing_can_be_skipped() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START)).await.unwrap();
    let skipped = Firing { job: None, ..firing(&schedule, START, Some(START + MINUTE)) };
    assert_eq!(w.store.fire(skipped).await.unwrap(), Fired::Skipped);
    assert!(w.list(JobFilter::default()).await.is_empty());
}

#[tokio::test]
async fn a_one_shot_schedule_is_removed_when_its_run_ends_and_history_stays() {
    let w = world().await;
    let one_shot = ScheduleSpec { recurrence: Recurrence::OneShot, ..spec() };
    let schedule = w.store.add_schedule(one_shot, Some(START)).await.unwrap();
    w.store.fire(firing(&schedule, START, None)).await.unwrap();
    w.fail(&w.claim_one().await).await;
    assert!(w.store.schedule(&Scope::All, schedule.id).await.unwrap().is_some(), "its run is still live");
    w.advance(Millis::from_secs(10));
    let run = w.claim_one().await;
    w.succeed(&run).await;
    assert!(w.store.schedule(&Scope::All, schedule.id).await.unwrap().is_none());
    assert_eq!(w.get(run.id).await.state, State::Succeeded);
    let history = w.store.schedule_attempts(&Scope::All, schedule.id, 10).await.unwrap();
    assert_eq!(history.iter().map(|(id, a)| (*id, a.number)).collect::<Vec<_>>(), [(run.id, 1), (run.id, 2)]);
}

#[tokio::test]
async fn only_a_spent_one_shot_schedule_ends_and_only_with_its_own_run() {
    let w = world().await;
    let one_shot = || ScheduleSpec { recurrence: Recurrence::OneShot, ..spec() };
    let spent = w.store.add_schedule(one_shot(), Some(START)).await.unwrap();
    let waiting = w.store.add_schedule(one_shot(), Some(START + MINUTE)).await.unwrap();
    let recurring = w.store.add_schedule(spec(), None).await.unwrap();
    w.store.fire(firing(&spent, START, None)).await.unwrap();
    for schedule in [&waiting, &recurring] {
        let by_hand = Firing { trigger: Trigger::Operator, ..firing(schedule, START, None) };
        w.store.fire(by_hand).await.unwrap();
    }
    let runs = w.claim(&["default"], 3).await.jobs;
    let left = async || {
        let all = w.store.schedules(&Scope::All, all()).await.unwrap();
        all.iter().map(|schedule| schedule.id).collect::<Vec<_>>()
    };
    w.succeed(&runs[1]).await;
    w.succeed(&runs[2]).await;
    assert_eq!(left().await, [spent.id, waiting.id, recurring.id]);
    w.succeed(&runs[0]).await;
    assert_eq!(left().await, [waiting.id, recurring.id]);
}

#[tokio::test]
async fn a_schedules_history_is_that_of_all_its_runs() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START)).await.unwrap();
    let mut runs = Vec::new();
    for k in 0..3 {
        let at = |k: u64| START + Millis::from_secs(60 * k);
        let Fired::Enqueued(id) = w.store.fire(firing(&schedule, at(k), Some(at(k + 1)))).await.unwrap() else { panic!() };
        w.succeed(&w.claim_one().await).await;
        w.advance(MINUTE);
        runs.push(id);
    }
    let history = w.store.schedule_attempts(&Scope::All, schedule.id, 2).await.unwrap();
    assert_eq!(history.iter().map(|(id, _)| *id).collect::<Vec<_>>(), runs[1..]);
    assert!(w.store.schedule(&Scope::All, schedule.id).await.unwrap().is_some(), "a recurring one stays");
}

/// A run that fails for good.
async fn failed_run(w: &World, schedule: &Schedule) -> JobId {
    let job = NewJob { schedule: Some(schedule.id), ..schedule.spec.template.clone() };
    let fired = w.store.fire(Firing { schedule: schedule.id, trigger: Trigger::Operator, job: Some(job) }).await.unwrap();
    let run = w.claim_one().await;
    assert_eq!(fired, Fired::Enqueued(run.id));
    fail_for_good(w, &run).await;
    run.id
}

async fn fail_for_good(w: &World, run: &ClaimedJob) {
    assert_applied(&w.commit(run, Outcome::Failed(Failure::permanent("down"))).await);
}

async fn dead(w: &World) -> Vec<JobId> {
    let dead = w.list(JobFilter { dead_letters: true, ..JobFilter::default() }).await;
    let depths = w.store.depths(&Scope::All).await.unwrap();
    assert_eq!(depths.iter().map(|depth| depth.dead).sum::<u64>(), dead.len() as u64, "the count of dead letters");
    dead
}

#[tokio::test]
async fn a_recurring_schedule_keeps_its_latest_dead_letter_only() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let other = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    w.put(job()).await;
    let unrelated = w.fail_for_good("something else").await;
    let others = failed_run(&w, &other).await;
    let first = failed_run(&w, &schedule).await;
    w.advance(MINUTE);
    let second = failed_run(&w, &schedule).await;
    let third = failed_run(&w, &schedule).await;
    assert_eq!(dead(&w).await, [unrelated, others, third]);
    for run in [first, second] {
        let job = w.get(run).await;
        assert_eq!((job.state, job.discard_reason.as_deref()), (State::Failed, Some("superseded")));
        assert_eq!(job.discarded_at, Some(w.now()));
        assert_eq!(w.ledger(run).await.len(), 1, "it stays in history");
    }
    assert_eq!(w.store.schedule(&Scope::All, schedule.id).await.unwrap().unwrap().last_dead, Some(third));
}

#[tokio::test]
async fn a_schedule_may_keep_all_its_dead_letters() {
    let w = world().await;
    let all = ScheduleSpec { dead_letters: DeadRuns::All, ..spec() };
    let schedule = w.store.add_schedule(all, Some(START + MINUTE)).await.unwrap();
    let runs = [failed_run(&w, &schedule).await, failed_run(&w, &schedule).await];
    assert_eq!(dead(&w).await, runs);
    let change = ScheduleChange { spec: Some(spec()), ..ScheduleChange::default() };
    w.store.change_schedule(&Scope::All, schedule.id, change).await.unwrap();
    let third = failed_run(&w, &schedule).await;
    assert_eq!(dead(&w).await, [runs[0], third], "from then on the latest takes the place of the one before");
}

#[tokio::test]
async fn a_replayed_run_is_not_discarded_by_a_later_failure() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let first = failed_run(&w, &schedule).await;
    w.replay(first).await;
    let replayed = w.claim_one().await;
    let second = failed_run(&w, &schedule).await;
    assert_eq!(w.get(first).await.state, State::Running);
    assert_eq!(dead(&w).await, [second]);
    fail_for_good(&w, &replayed).await;
    assert_eq!(dead(&w).await, [first], "the one that failed last stays");
    assert_eq!(w.get(second).await.discard_reason.as_deref(), Some("superseded"));
}

#[tokio::test]
async fn a_replayed_run_that_succeeded_is_not_discarded_by_a_later_failure() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let first = failed_run(&w, &schedule).await;
    w.replay(first).await;
    w.succeed(&w.claim_one().await).await;
    let second = failed_run(&w, &schedule).await;
    assert_eq!(dead(&w).await, [second]);
    let job = w.get(first).await;
    assert_eq!((job.state, job.discarded_at), (State::Succeeded, None));
}

#[tokio::test]
async fn a_run_that_an_operator_discarded_keeps_its_reason() {
    let w = world().await;
    let schedule = w.store.add_schedule(spec(), Some(START + MINUTE)).await.unwrap();
    let first = failed_run(&w, &schedule).await;
    let discard = Discard { ids: vec![first], reason: "known".into(), by: "ann".into(), what: String::new() };
    w.store.discard(&Scope::All, discard).await.unwrap();
    w.advance(SECOND);
    let second = failed_run(&w, &schedule).await;
    assert_eq!(dead(&w).await, [second]);
    let job = w.get(first).await;
    assert_eq!((job.discarded_at, job.discard_reason.as_deref()), (Some(START), Some("known")));
}

#[tokio::test]
async fn runs_that_fail_in_one_commit_leave_one_dead_letter() {
    let w = world().await;
    let allow = ScheduleSpec { overlap: Overlap::Allow, ..spec() };
    let schedule = w.store.add_schedule(allow, Some(START + MINUTE)).await.unwrap();
    for _ in 0..3 {
        let job = NewJob { schedule: Some(schedule.id), ..schedule.spec.template.clone() };
        let firing = Firing { schedule: schedule.id, trigger: Trigger::Operator, job: Some(job) };
        w.store.fire(firing).await.unwrap();
    }
    let runs = w.claim(&["default"], 3).await.jobs;
    let failed = Outcome::Failed(Failure::permanent("down"));
    let commits = runs.iter().map(|run| w.commit_of(run, &failed)).collect();
    w.store.commit(commits, vec![runs[0].lease]).await.unwrap();
    assert_eq!(dead(&w).await, [runs[2].id]);
}
