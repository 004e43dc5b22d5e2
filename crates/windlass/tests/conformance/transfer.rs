//! Moving everything to another store: what is read there is what was read here.

use super::world;
use crate::world::*;
use std::sync::Arc;
use windlass::Windlass;
use windlass::client::{Clear, ImportError, ImportReport};
use windlass::core::gate::{Hold, HoldOrigin};
use windlass::core::job::{QueueName, Tenant};
use windlass::core::{Delivery, Executor, Failure, JobId, Millis, Outcome, State};
use windlass::low_level::job::{HttpCall, Idempotency, KeyWindow, NewJob, QueueId, RunAt, Webhook};
use windlass::low_level::stores::*;

/// A store with jobs in every state, and with everything else that is moved.
async fn filled() -> World {
    let w = world().await;
    let store = &w.store;
    let ids = w.put_all((0..4).map(|_| job()).collect()).await;
    let done = w.claim_one().await;
    assert_applied(&w.succeed(&done).await);
    w.fail_for_good("no such user 17").await;
    let tried = w.claim_one().await;
    assert_applied(&w.fail(&tried).await);
    let discard = Discard { ids: vec![w.fail_for_good("x").await], reason: "known".into(), by: "ann".into(), what: "".into() };
    store.discard(&Scope::All, discard).await.unwrap();
    w.advance(SECOND);
    let later = NewJob { run_at: RunAt::After(Millis::from_secs(3600)), start_by: Some(w.now() + Millis::from_secs(7200)), ..job_in("later") };
    let keyed = |key: &str, window| NewJob { idempotency: Some(Idempotency { key: key.into(), window }), ..job_in("keys") };
    let http = NewJob {
        executor: Executor::Http,
        http: Some(Arc::new(HttpCall {
            method: "POST".into(),
            url: "https://example.org/?token=s3cret".into(),
            headers: vec![("x-a".into(), "b".into())],
            secret: None,
            webhook_id: None,
        })),
        webhook: Some(Arc::new(Webhook { url: "https://example.org/h".into(), events: vec![State::Failed], secret: Some("whsec_c2VjcmV0".into()), policy: policy() })),
        limit_key: Some("example".into()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        ..job_in("calls")
    };
    w.put_all(vec![later, keyed("window", KeyWindow::For(Millis::from_secs(86_400))), keyed("live", KeyWindow::Live), http]).await;
    let cancelled = w.put(job_in("later")).await;
    store.cancel(&Scope::All, vec![cancelled]).await.unwrap();
    w.replay(ids[0]).await;
    let spec = ScheduleSpec {
        tenant: Tenant::default(),
        cadence: "0 9 * * *".into(),
        zone: "Europe/Berlin".into(),
        recurrence: Recurrence::Recurring,
        overlap: Overlap::Skip,
        missed: Missed::One,
        dead_letters: DeadRuns::Latest,
        template: job_in("reports"),
    };
    let schedule = store.add_schedule(spec, Some(w.now() + Millis::from_secs(60))).await.unwrap();
    store.change_schedule(&Scope::All, schedule.id, ScheduleChange { paused: Some(true), ..Default::default() }).await.unwrap();
    store.put_setting(&SettingKey::Queue { tenant: None, name: "later".into() }, Some(r#"{"policy":"stepped"}"#)).await.unwrap();
    store.pause_queue(&Tenant::default(), &QueueName::new("later").unwrap(), true).await.unwrap();
    store.put_token(&token()).await.unwrap();
    let gate = GateName { tenant: Some(Tenant::default()), queue: QueueName::new("calls").unwrap(), key: None };
    let hold = Hold { since: w.now(), until: w.now() + Millis::from_secs(600), origin: HoldOrigin::Operator("ann".into()), reason: "maintenance".into() };
    store.put_hold(&gate, Some(&hold)).await.unwrap();
    w
}

fn token() -> Token {
    Token {
        id: "7347d1e71ddc".into(),
        name: "ci".into(),
        hash: [7; 32],
        scopes: vec!["enqueue".into()],
        tenant: Some(Tenant::default()),
        queues: Some(vec![QueueName::new("later").unwrap()]),
        created_at: START,
        expires_at: None,
        revoked_at: None,
    }
}

async fn exported(store: &Arc<dyn Store>) -> Vec<String> {
    let windlass = Windlass::from_store(store.clone());
    let mut export = windlass.transfer().export(Clear::Allow).await.unwrap();
    let mut text = String::new();
    while let Some(lines) = export.next().await.unwrap() {
        text += &lines;
    }
    text.lines().map(str::to_owned).collect()
}

async fn imported(store: &Arc<dyn Store>, lines: &[String]) -> Result<ImportReport, ImportError> {
    let windlass = Windlass::from_store(store.clone());
    let mut import = windlass.transfer().import();
    for line in lines {
        import.line(line).await?;
    }
    import.finish().await
}

/// Everything that reads show, without the queues' numbers.
async fn seen(store: &dyn Store) -> Vec<String> {
    let mut seen = Vec::new();
    for mut job in store.jobs(&Scope::All, &JobFilter::default(), all()).await.unwrap() {
        job.queue_id = QueueId(0);
        let attempts = store.attempts(&Scope::All, job.id, 1000).await.unwrap();
        let http = job.http.as_ref().map(|call| (call.url.clone(), call.headers.clone()));
        let secret = job.webhook.as_ref().and_then(|webhook| webhook.secret.clone());
        let shown = format!("{job:?} {http:?} {secret:?} {attempts:?}");
        seen.push(shown);
    }
    let dead = JobFilter { dead_letters: true, ..JobFilter::default() };
    let letters = store.jobs(&Scope::All, &dead, all()).await.unwrap();
    seen.push(format!("{:?}", letters.iter().map(|job| job.id).collect::<Vec<_>>()));
    for group in groups(store).await {
        seen.push(format!("{:?} {:?} {}", group.message, group.example, group.count));
    }
    for mut schedule in store.schedules(&Scope::All, all()).await.unwrap() {
        // Set by its firings.
        schedule.spec.template.schedule = None;
        seen.push(format!("{schedule:?}"));
    }
    let settings = store.settings().await.unwrap();
    let is_own = |key: &SettingKey| !matches!(key, SettingKey::Server { .. });
    seen.extend(settings.into_iter().filter(|(key, _)| is_own(key)).map(|setting| format!("{setting:?}")));
    seen.push(format!("{:?}", store.tokens().await.unwrap()));
    let queues = store.queues().await.unwrap();
    let depths = store.depths(&Scope::All).await.unwrap();
    let mut queues: Vec<String> = queues
        .into_iter()
        .map(|queue| {
            let depth = depths.iter().find(|depth| depth.queue == queue.id).cloned();
            let depth = depth.map(|d| (d.due, d.later, d.running, d.dead, d.oldest_due));
            format!("{} {:?} {} {depth:?}", queue.name, queue.executor, queue.paused)
        })
        .collect();
    queues.sort();
    seen.extend(queues);
    for status in store.gates(&Scope::All, None, 100).await.unwrap() {
        seen.push(format!("{:?} {:?}", status.name, status.gate.held(START + SECOND + SECOND)));
    }
    seen
}

#[tokio::test]
async fn what_is_read_from_a_copy_is_what_was_read_before() {
    let (from, to) = (filled().await, World::memory().await);
    to.advance(SECOND);
    let lines = exported(&from.store).await;
    let report = imported(&to.store, &lines).await.unwrap();
    assert_eq!((report.existing, report.skipped, report.missing), (0, 0, 0));
    assert_eq!(report.moved.jobs, 9);
    assert_eq!(seen(&*to.store).await, seen(&*from.store).await);
    assert_eq!(to.store.installation().await.unwrap(), from.store.installation().await.unwrap());
    // And back into a store of this kind.
    let back = world().await;
    back.advance(SECOND);
    imported(&back.store, &exported(&to.store).await).await.unwrap();
    assert_eq!(seen(&*back.store).await, seen(&*from.store).await);
    // Fingerprints are the store's own: two stores of one kind group alike.
    assert_eq!(groups(&*back.store).await, groups(&*from.store).await);
}

async fn groups(store: &dyn Store) -> Vec<DeadGroup> {
    let dead = JobFilter { dead_letters: true, ..JobFilter::default() };
    store.dead_groups(&Scope::All, &dead, 100).await.unwrap()
}

#[tokio::test]
async fn a_second_import_changes_nothing_and_new_jobs_get_higher_ids() {
    let lines = exported(&filled().await.store).await;
    let w = world().await;
    w.advance(SECOND);
    imported(&w.store, &lines).await.unwrap();
    let before = seen(&*w.store).await;
    let report = imported(&w.store, &lines).await.unwrap();
    assert_eq!(report.skipped, lines.len() as u64);
    assert_eq!(report.moved.jobs, 0);
    assert_eq!(seen(&*w.store).await, before);
    let highest = w.list(JobFilter::default()).await.into_iter().max().unwrap();
    assert!(w.put(job()).await > highest, "ids go on above the imported ones");
}

/// Receivers have seen the ids of jobs that are gone: no other job may get one of them.
#[tokio::test]
async fn ids_of_jobs_that_are_gone_are_not_used_again_after_an_import() {
    let from = world().await;
    let none = SettingKey::Queue { tenant: None, name: "default".into() };
    from.store.put_setting(&none, Some(r#"{"retention":"0"}"#)).await.unwrap();
    from.put_all((0..5).map(|_| job()).collect()).await;
    let jobs = from.claim(&["default"], 5).await.jobs;
    let last = jobs.iter().map(|job| job.id).max().unwrap();
    for job in &jobs {
        assert_applied(&from.succeed(job).await);
    }
    assert!(from.list(JobFilter::default()).await.is_empty());
    let w = world().await;
    imported(&w.store, &exported(&from.store).await).await.unwrap();
    assert!(w.put(job()).await > last);
}

#[tokio::test]
async fn a_job_that_ran_and_was_pruned_is_not_imported_again() {
    let from = world().await;
    let id = from.put(job()).await;
    let lines = exported(&from.store).await;
    let w = world().await;
    let none = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&none, Some(r#"{"retention":"0"}"#)).await.unwrap();
    imported(&w.store, &lines).await.unwrap();
    let job = w.claim_one().await;
    assert_eq!(job.id, id);
    assert_applied(&w.succeed(&job).await);
    assert!(w.find(id).await.is_none());
    imported(&w.store, &lines).await.unwrap();
    assert!(w.find(id).await.is_none(), "it would run twice");
}

#[tokio::test]
async fn an_interrupted_import_goes_on_where_it_stopped() {
    let from = filled().await;
    let lines = exported(&from.store).await;
    let whole = world().await;
    whole.advance(SECOND);
    imported(&whole.store, &lines).await.unwrap();
    for cut in [5, lines.len() - 3] {
        let w = world().await;
        w.advance(SECOND);
        let error = imported(&w.store, &lines[..cut]).await.unwrap_err();
        assert!(matches!(error, ImportError::CutOff { .. }), "{error}");
        imported(&w.store, &lines).await.unwrap();
        assert_eq!(seen(&*w.store).await, seen(&*whole.store).await, "cut after line {cut}");
    }
}

#[tokio::test]
async fn a_wrong_line_names_itself_and_keeps_what_came_before() {
    let from = world().await;
    from.put_all((0..3).map(|_| job()).collect()).await;
    let mut lines = exported(&from.store).await;
    let last = lines.len() - 2;
    let good = lines[last].replace("\"kind\":\"email\"", "\"kind\":\" \"");
    let good = std::mem::replace(&mut lines[last], good);
    let w = world().await;
    let error = imported(&w.store, &lines).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("line {}, job.kind: ", last + 1)), "{error}");
    assert_eq!(w.list(JobFilter::default()).await.len(), 2);
    lines[last] = good[..good.len() / 2].to_owned();
    let error = imported(&w.store, &lines).await.unwrap_err().to_string();
    assert!(error.contains("cut off"), "{error}");
    lines[last] = good;
    let report = imported(&w.store, &lines).await.unwrap();
    assert_eq!((report.moved.jobs, w.list(JobFilter::default()).await.len()), (1, 3));
}

#[tokio::test]
async fn a_store_with_jobs_of_its_own_and_other_exports_are_refused() {
    let from = world().await;
    from.put(job()).await;
    let lines = exported(&from.store).await;
    let used = world().await;
    used.put(job()).await;
    let installation = used.store.installation().await.unwrap();
    assert!(matches!(imported(&used.store, &lines).await, Err(ImportError::NotEmpty)));
    assert_eq!(used.store.installation().await.unwrap(), installation, "nothing changed");
    let w = world().await;
    imported(&w.store, &lines).await.unwrap();
    let again = exported(&from.store).await;
    assert!(matches!(imported(&w.store, &again).await, Err(ImportError::OtherExport)));
    let newer = lines[0].replace("\"version\":1", "\"version\":2");
    let error = imported(&world().await.store, &[newer]).await.unwrap_err().to_string();
    assert!(error.contains("version 2"), "{error}");
}

#[tokio::test]
async fn idempotency_keys_refer_to_the_copies() {
    let lines = exported(&filled().await.store).await;
    let w = world().await;
    w.advance(SECOND);
    imported(&w.store, &lines).await.unwrap();
    for (key, window) in [("window", KeyWindow::For(SECOND)), ("live", KeyWindow::Live)] {
        let again = NewJob { idempotency: Some(Idempotency { key: key.into(), window }), ..job_in("keys") };
        assert!(matches!(w.try_put(again).await, Enqueued::Existing(_)), "{key}");
    }
}

#[tokio::test]
async fn running_jobs_wait_in_the_copy_and_at_most_once_ones_have_failed() {
    let from = world().await;
    let often = from.put(job()).await;
    let once = from.put(NewJob { delivery: Delivery::AtMostOnce, ..job() }).await;
    assert_eq!(from.claim(&["default"], 2).await.jobs.len(), 2);
    let lines = exported(&from.store).await;
    assert_eq!(from.get(often).await.state, State::Running, "the export changed nothing");
    let w = world().await;
    imported(&w.store, &lines).await.unwrap();
    assert_eq!(w.get(once).await.reason, Some(windlass::core::Reason::AtMostOnce));
    let job = w.claim_one().await;
    assert_eq!((job.id, job.attempt, job.failures), (often, 2, 0));
    assert_eq!(w.ledger(often).await[0].status.as_str(), "RELEASED");
    assert_applied(&w.succeed(&job).await);
    let attempts = w.ledger(often).await;
    assert_eq!(attempts.len(), 2);
    // A late result of the attempt in the old store changes nothing here.
    let outcome = Outcome::Failed(Failure::new("late"));
    assert_eq!(w.commit(&job, outcome).await, Committed::Stale);
}

#[tokio::test]
async fn a_key_is_copied_while_it_is_valid_and_with_the_job_that_it_refers_to() {
    let from = world().await;
    let window = KeyWindow::For(SECOND);
    let keyed = |key: &str| NewJob { idempotency: Some(Idempotency { key: key.into(), window }), ..job() };
    from.put_all(vec![keyed("used again"), keyed("over")]).await;
    from.advance(SECOND);
    let second = from.put(keyed("used again")).await;
    let lines = exported(&from.store).await;
    let is_held = |line: &&String| line.contains("\"keyHeld\":") && !line.contains("\"keyHeld\":null");
    assert_eq!(lines.iter().filter(is_held).count(), 1, "{lines:?}");
    let w = world().await;
    w.advance(SECOND);
    imported(&w.store, &lines).await.unwrap();
    assert_eq!(w.try_put(keyed("used again")).await, Enqueued::Existing(second));
    assert!(matches!(w.try_put(keyed("over")).await, Enqueued::Created { .. }));
}

/// Copies of everything in a store, as an import stores it.
async fn copies(store: &dyn Store) -> (Vec<Schedule>, Vec<JobCopy>) {
    let schedules = store.schedules(&Scope::All, all()).await.unwrap();
    (schedules, store.copies(None, 1000).await.unwrap())
}

#[tokio::test]
async fn an_import_changes_nothing_that_is_there() {
    let from = filled().await;
    let (schedules, jobs) = copies(&*from.store).await;
    let w = world().await;
    w.advance(SECOND);
    // A setting of the server is no mark of an import.
    w.store.put_setting(&SettingKey::Server { name: "defaults".into() }, Some("{}")).await.unwrap();
    let origin = Origin { installation: "other".into(), last_id: JobId(1000) };
    let batch = |after: &str, before: Option<&str>| Import {
        origin: before.is_none().then(|| origin.clone()),
        before: before.map(Into::into),
        after: after.into(),
        schedules: schedules.clone(),
        jobs: jobs.clone(),
    };
    let first = w.store.import(batch("1", None)).await.unwrap();
    assert_eq!(first, Imported::Done { existing: 0 });
    let before = seen(&*w.store).await;
    let count = (schedules.len() + jobs.len()) as u64;
    // The same ids with other contents, and a key that another job has.
    let mut changed = batch("2", Some("1"));
    for schedule in &mut changed.schedules {
        schedule.next_at = None;
    }
    for copy in &mut changed.jobs {
        copy.job.kind = windlass::core::job::Kind::new("changed").unwrap();
    }
    assert_eq!(w.store.import(changed).await.unwrap(), Imported::Done { existing: count });
    assert_eq!(seen(&*w.store).await, before);
    let keyed = jobs.iter().find(|copy| copy.key.is_some()).unwrap();
    let mut another = keyed.clone();
    another.job.id = JobId(900);
    let more = Import { schedules: vec![], jobs: vec![another], ..batch("3", Some("2")) };
    assert_eq!(w.store.import(more).await.unwrap(), Imported::Done { existing: 0 });
    let key = keyed.job.idempotency_key.as_deref().unwrap();
    let held = w.store.keyed(&keyed.job.tenant, key).await.unwrap().unwrap();
    assert_eq!(held.job, keyed.job.id, "the key stays with the job that has it");
    assert_eq!(w.store.import(batch("5", Some("1"))).await.unwrap(), Imported::Overtaken);
}

#[tokio::test]
async fn a_store_with_a_schedule_of_its_own_is_refused() {
    let lines = exported(&world().await.store).await;
    let from = filled().await;
    let used = world().await;
    let spec = from.store.schedules(&Scope::All, all()).await.unwrap().remove(0).spec;
    used.store.add_schedule(spec, None).await.unwrap();
    assert!(matches!(imported(&used.store, &lines).await, Err(ImportError::NotEmpty)));
}

/// The store is empty, but its jobs had ids, which receivers have seen.
#[tokio::test]
async fn an_import_gives_no_id_a_second_time() {
    let from = world().await;
    from.put(job()).await;
    let lines = exported(&from.store).await;
    let w = world().await;
    let none = SettingKey::Queue { tenant: None, name: "default".into() };
    w.store.put_setting(&none, Some(r#"{"retention":"0"}"#)).await.unwrap();
    let last = w.put_all(vec![job(); 5]).await[4];
    for job in w.claim(&["default"], 5).await.jobs {
        assert_applied(&w.succeed(&job).await);
    }
    imported(&w.store, &lines).await.unwrap();
    assert!(w.put(job()).await > last);
}

#[tokio::test]
async fn batches_add_up_and_a_job_with_several_attempts_is_listed_once() {
    let from = world().await;
    let tried = from.put(job()).await;
    assert_applied(&from.fail(&from.claim_one().await).await);
    from.advance(Millis::from_secs(10));
    assert_applied(&from.succeed(&from.claim_one().await).await);
    from.put_all(vec![job(), job()]).await;
    let dead = [from.fail_for_good("broken").await, from.fail_for_good("broken").await];
    let (_, jobs) = copies(&*from.store).await;
    let w = world().await;
    let origin = Origin { installation: "other".into(), last_id: JobId(1000) };
    let mut before = None;
    for (place, copy) in jobs.into_iter().enumerate() {
        let origin = before.is_none().then(|| origin.clone());
        let after = place.to_string();
        let batch = Import { origin, before, after: after.clone(), schedules: vec![], jobs: vec![copy] };
        assert_eq!(w.store.import(batch).await.unwrap(), Imported::Done { existing: 0 });
        before = Some(after);
    }
    assert_eq!(w.list(JobFilter::default()).await, [tried, dead[0], dead[1]]);
    assert_eq!(w.store.depths(&Scope::All).await.unwrap()[0].dead, 2);
}
