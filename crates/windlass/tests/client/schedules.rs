//! Schedules made from Rust: the client computes their next firing.

use super::world;
use crate::client;
use crate::world::{START, tenant};
use serde_json::json;
use windlass::core::{Millis, Timestamp};
use windlass::client::{JobFilter, Missed, Overlap, Page, Recurrence, ScheduleError, Scope};
use windlass::{State};

fn later(seconds: u64) -> Timestamp {
    START + Millis::from_secs(seconds)
}

fn at(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text)
}

#[tokio::test]
async fn a_cron_schedule_is_made_without_computing_its_next_firing() {
    let w = world().await;
    let windlass = client(&w);
    let job = windlass.enqueue_kind("report", &json!({ "of": "sales" })).queue("reports").tenant("shop");
    let schedule = windlass
        .schedules()
        .cron("0  9 * * *")
        .time_zone("Europe/Berlin")
        .overlap(Overlap::Allow)
        .missed(Missed::Skip)
        .template(job)
        .await
        .unwrap();
    assert_eq!(schedule.next_at, at("2026-01-02T08:00:00Z"));
    let stored = windlass.schedules().get(schedule.id).await.unwrap().unwrap();
    assert_eq!((stored.next_at, stored.paused), (schedule.next_at, false));
    assert_eq!((stored.spec.cadence.as_str(), stored.spec.zone.as_str()), ("0 9 * * *", "Europe/Berlin"));
    assert_eq!((stored.spec.overlap, stored.spec.missed), (Overlap::Allow, Missed::Skip));
    assert_eq!((stored.spec.tenant, stored.spec.template.queue.as_str()), (tenant("shop"), "reports"));

    let days = windlass.schedules().preview(schedule.id, 2).await.unwrap().unwrap();
    assert_eq!(days, [at("2026-01-02T08:00:00Z").unwrap(), at("2026-01-03T08:00:00Z").unwrap()]);
    let others = windlass.schedules().within(&Scope::Tenant(tenant("other")));
    assert!(others.get(schedule.id).await.unwrap().is_none());
    assert!(others.list(Page::newest(10)).await.unwrap().is_empty());
    assert!(!others.remove(schedule.id).await.unwrap());
    assert!(windlass.schedules().remove(schedule.id).await.unwrap());
}

#[tokio::test]
async fn firings_missed_during_a_pause_are_skipped() {
    let w = world().await;
    let windlass = client(&w);
    let minute = std::time::Duration::from_secs(60);
    let schedule = windlass.schedules().every(minute).job_kind("beat", &json!({})).await.unwrap();
    assert_eq!(schedule.next_at, Some(later(60)));
    let paused = windlass.schedules().pause(schedule.id).await.unwrap().unwrap();
    assert_eq!((paused.paused, paused.next_at), (true, Some(later(60))));
    w.advance(Millis::from_secs(150));
    assert!(w.store.due_schedules(10).await.unwrap().0.is_empty());
    let resumed = windlass.schedules().resume(schedule.id).await.unwrap().unwrap();
    assert_eq!((resumed.paused, resumed.next_at), (false, Some(later(180))));
    w.advance(Millis::from_secs(100));
    let again = windlass.schedules().resume(schedule.id).await.unwrap().unwrap();
    assert_eq!(again.next_at, Some(later(180)), "it was not paused: a firing that is due stays due");
}

#[tokio::test]
async fn a_schedule_made_paused_fires_only_after_it_was_resumed() {
    let w = world().await;
    let windlass = client(&w);
    let minute = Millis::from_secs(60);
    let schedule = windlass.schedules().every(minute).job_kind("beat", &json!({})).paused().await.unwrap();
    assert_eq!((schedule.paused, schedule.next_at), (true, Some(later(60))));
    w.advance(Millis::from_secs(90));
    assert!(w.store.due_schedules(10).await.unwrap().0.is_empty());
    let resumed = windlass.schedules().resume(schedule.id).await.unwrap().unwrap();
    assert_eq!(resumed.next_at, Some(later(120)));
}

#[tokio::test]
async fn a_change_keeps_fields_it_does_not_name() {
    let w = world().await;
    let windlass = client(&w);
    let schedule = windlass.schedules().cron("@hourly").job_kind("beat", &json!({})).await.unwrap();
    w.advance(Millis::from_secs(30));
    let changed = windlass.schedules().change(schedule.id).overlap(Overlap::Allow).await.unwrap();
    assert_eq!((changed.spec.overlap, changed.next_at), (Overlap::Allow, schedule.next_at));
    assert_eq!(changed.spec.template.kind.as_str(), "beat");
    let zoned = windlass.schedules().change(schedule.id).cron("0 9 * * *").time_zone("Asia/Kolkata").await.unwrap();
    assert_eq!(zoned.next_at, at("2026-01-02T03:30:00Z"));
    let later_in_the_day = windlass.schedules().change(schedule.id).cron("0 10 * * *").await.unwrap();
    assert_eq!(later_in_the_day.next_at, at("2026-01-02T04:30:00Z"), "its time zone stays");
    let every = windlass.schedules().change(schedule.id).every(Millis::from_secs(45)).set_paused(true).await.unwrap();
    assert_eq!((every.next_at, every.paused), (Some(later(45)), true), "counted from when it was made");
}

#[tokio::test]
async fn a_triggered_run_is_a_job_of_its_schedule() {
    let w = world().await;
    let windlass = client(&w);
    let schedule = windlass.schedules().cron("@daily").job_kind("beat", &json!({})).paused().await.unwrap();
    let run = windlass.schedules().trigger(schedule.id).await.unwrap().unwrap();
    assert_eq!((run.schedule, run.state), (Some(schedule.id), State::Queued));
    let job = w.claim_one().await;
    w.fail(&job).await;
    let schedule = windlass.schedules().get(schedule.id).await.unwrap().unwrap();
    let retry_at = windlass.schedules().retry_at(&schedule).await.unwrap();
    assert_eq!(retry_at, Some(windlass.jobs().get(run.id).await.unwrap().unwrap().due_at));
    let history = windlass.schedules().history(schedule.id, 10).await.unwrap();
    assert_eq!(history.iter().map(|(job, attempt)| (*job, attempt.number)).collect::<Vec<_>>(), [(run.id, 1)]);
    let runs = JobFilter { schedule: Some(schedule.id), ..JobFilter::default() };
    assert_eq!(windlass.jobs().list(&runs, Page::newest(10)).await.unwrap().len(), 1);
    assert!(windlass.schedules().trigger(windlass::JobId(999)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_fired_one_shot_schedule_does_not_fire_again() {
    let w = world().await;
    let windlass = client(&w);
    let once = windlass.schedules().cron("* * * * *").once().job_kind("beat", &json!({})).await.unwrap();
    assert_eq!(once.spec.recurrence, Recurrence::OneShot);
    w.advance(Millis::from_secs(60));
    let (due, _) = w.store.due_schedules(10).await.unwrap();
    let firing = windlass::low_level::upkeep::schedules::firing(&due[0], w.now()).unwrap().unwrap();
    w.store.fire(firing).await.unwrap();
    windlass.schedules().pause(once.id).await.unwrap();
    let resumed = windlass.schedules().resume(once.id).await.unwrap().unwrap();
    assert_eq!(resumed.next_at, None);
}

#[tokio::test]
async fn an_invalid_schedule_is_refused_and_not_stored() {
    let w = world().await;
    let windlass = client(&w);
    let schedules = windlass.schedules();
    let job = || windlass.enqueue_kind("beat", &json!({}));
    let error = schedules.cron("0 9 * *").template(job()).await.unwrap_err();
    assert!(matches!(error, ScheduleError::Cadence(_)), "{error}");
    let error = schedules.cron("@daily").time_zone("Mars/Olympus").template(job()).await.unwrap_err();
    assert!(matches!(error, ScheduleError::Cadence(_)), "{error}");
    let error = schedules.every(Millis::new(10)).template(job()).await.unwrap_err();
    assert!(matches!(error, ScheduleError::Cadence(_)), "{error}");
    for (error, field) in [
        (schedules.every(Millis::from_secs(9)).time_zone("UTC").template(job()).await.unwrap_err(), "timezone"),
        (schedules.cron("@daily").await.unwrap_err(), "job"),
        (schedules.create().template(job()).await.unwrap_err(), "cron"),
        (schedules.cron("@daily").template(job().delay(Millis::from_secs(1))).await.unwrap_err(), "job/runAt"),
        (schedules.cron("@daily").template(job().idempotency_key("k")).await.unwrap_err(), "job/idempotencyKey"),
    ] {
        assert!(matches!(&error, ScheduleError::Draft(error) if error.field == field), "{field}: {error}");
    }
    let error = schedules.change(windlass::JobId(7)).cron("@daily").await.unwrap_err();
    assert!(matches!(error, ScheduleError::NotFound(_)), "{error}");
    assert!(schedules.list(Page::newest(10)).await.unwrap().is_empty());
}
