//! `enqueue` and the views, as psql and any driver see them.

use crate::world::{World, job, url};
use std::process::{Command, Output};
use std::time::Duration;
use windlass::core::job::QueueName;
use windlass::core::{Delivery, Executor, JobId, Millis, Outcome, Priority, Roll};
use windlass::low_level::job::{ClaimedJob, NewJob};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Reads;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::{Atomicity, Discard, JobFilter, Order, Page, Scope, SettingKey};

/// A wait for the open transaction would never end.
const SOON: Duration = Duration::from_secs(60);

fn psql(script: &str) -> Output {
    Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", script, &url()])
        .output()
        .expect("psql is installed with the Postgres client tools")
}

fn answer(script: &str) -> String {
    let output = psql(script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn refusal(script: &str) -> String {
    let output = psql(script);
    assert!(!output.status.success(), "{script} should be refused");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_job_enqueued_by_psql_is_claimed_with_its_policy() {
    let w = World::new().await;
    let s = &w.schema;
    let id: i64 = answer(&format!(
        r#"SELECT {s}.enqueue('email', '{{"to": "ann"}}', priority => 2, retry => 'full-jitter:retries=7',
           delivery => 'AT_MOST_ONCE', timeout => '5 seconds', traceparent => 'tp', limit_key => 'customer-7')"#
    ))
    .parse()
    .unwrap();
    let jobs = w.claim(10).await;
    let job = &jobs[0];
    assert_eq!((jobs.len(), job.id), (1, JobId(id)));
    assert_eq!(&*job.payload, r#"{"to": "ann"}"#);
    assert_eq!((job.priority, job.delivery), (Priority::Highest, Delivery::AtMostOnce));
    assert_eq!(job.limit_key.as_deref(), Some("customer-7"));
    assert_eq!((job.timeout, job.traceparent.as_deref()), (Some(Millis::from_secs(5)), Some("tp")));
    assert_eq!(job.policy.max_retries, 7);
    let frozen = format!("SELECT count(*) FROM {s}.jobs WHERE policy_id IS NOT NULL");
    assert_eq!(w.count(&frozen).await, 1);
    w.end().await;
}

#[tokio::test]
async fn payloads_are_taken_as_json_jsonb_and_text() {
    let w = World::new().await;
    let s = &w.schema;
    for call in [
        r#"('a', '{"n": 1}')"#,
        r#"('a', '{"n": 1}'::text, queue => 'default')"#,
        r#"('a', '{"n": 1}'::varchar)"#,
        r#"('a', '{"n": 1}'::json, delay => interval '0')"#,
        r#"('a', '{"n": 1}'::jsonb, priority => 0, idempotency_key => 'once')"#,
        r#"(payload => jsonb_build_object('n', 1), kind => 'a', idempotency_key => 'once')"#,
        r#"(kind => 'a', payload => json_build_object('n', 1))"#,
    ] {
        answer(&format!("SELECT {s}.enqueue{call}"));
    }
    answer(&format!("SELECT {s}.enqueue('a'), {s}.enqueue('a', queue => 'default')"));
    answer(&format!("PREPARE p AS SELECT {s}.enqueue('a', $1); EXECUTE p ('[2]')"));
    let mut payloads: Vec<String> = w.claim(20).await.iter().map(|job| job.payload.replace(' ', "")).collect();
    payloads.sort();
    // The second job with the key is the first.
    let expected =
        ["[2]", "null", "null", r#"{"n":1}"#, r#"{"n":1}"#, r#"{"n":1}"#, r#"{"n":1}"#, r#"{"n":1}"#, r#"{"n":1}"#];
    assert_eq!(payloads, expected);
    for wrong in ["'{oops'", "'{oops'::text", "NULL", "NULL::jsonb"] {
        let said = refusal(&format!("SELECT {s}.enqueue('a', {wrong})"));
        assert!(said.contains("json") || said.contains("NULL"), "{said}");
    }
    w.end().await;
}

#[tokio::test]
async fn a_tenants_webhook_applies_to_jobs_of_sql_callers_too() {
    let w = World::new().await;
    let s = &w.schema;
    let tenant = SettingKey::Tenant { name: Default::default() };
    let webhook = r#"{"webhook":{"url":"https://example.com/done"}}"#;
    w.store.put_setting(&tenant, Some(webhook)).await.unwrap();
    for _ in 0..2 {
        answer(&format!("SELECT {s}.enqueue('email', retry => 'fixed:base=0ms,jitter=none,retries=3')"));
    }
    let reported = async |id| {
        let page = Page { after: None, limit: 10, order: Order::OldestFirst };
        let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
        w.store.jobs(&Scope::All, &filter, page).await.unwrap().len()
    };
    // Neither has been claimed. One is cancelled while it waits, the other fails once and then succeeds.
    w.store.cancel(&Scope::All, vec![JobId(1)]).await.unwrap();
    assert_eq!(reported(JobId(1)).await, 1);
    let first = w.claim(1).await.remove(0);
    w.store.put_setting(&tenant, None).await.unwrap();
    let failure = Outcome::Failed(windlass::core::Failure::new("no"));
    w.store.commit(vec![ended(&first, &failure)], vec![]).await.unwrap();
    let again = w.claim(1).await.remove(0);
    assert_eq!((again.id, again.attempt, reported(again.id).await), (first.id, 2, 0));
    assert_eq!(again.webhook.as_ref().unwrap().url, "https://example.com/done", "frozen at the first claim");
    w.store.commit(vec![ended(&again, &Outcome::Succeeded)], vec![]).await.unwrap();
    assert_eq!(reported(again.id).await, 1);
    w.end().await;
}

#[tokio::test]
async fn a_job_exists_exactly_if_its_transaction_commits() {
    let w = World::new().await;
    let s = &w.schema;
    answer(&format!("BEGIN; SELECT {s}.enqueue('email'); ROLLBACK"));
    assert!(w.claim(10).await.is_empty());
    answer(&format!("BEGIN; SELECT {s}.enqueue('email'); SELECT {s}.enqueue('email', delay => '1 hour'); COMMIT"));
    assert_eq!(w.claim(10).await.len(), 1);
    assert_eq!(w.count("SELECT count(*) FROM {s}.jobs").await, 2);
    w.end().await;
}

#[tokio::test]
async fn a_repeated_key_returns_the_first_job_and_another_payload_is_refused() {
    let w = World::new().await;
    let s = &w.schema;
    let first = answer(&format!(r#"SELECT {s}.enqueue('email', '{{"a": 1, "b": 2}}', idempotency_key => 'k')"#));
    let again = answer(&format!(r#"SELECT {s}.enqueue('email', '{{"b": 2, "a": 1}}', idempotency_key => 'k')"#));
    assert_eq!(first, again);
    let conflict = refusal(&format!("SELECT {s}.enqueue('email', '3', idempotency_key => 'k')"));
    assert!(conflict.contains(&format!("stands for job {first}")), "{conflict}");
    w.end().await;
}

#[tokio::test]
async fn a_key_counts_for_its_tenant_its_kind_and_its_window() {
    let w = World::new().await;
    let s = &w.schema;
    let put = |more: &str| answer(&format!("SELECT {s}.enqueue('email', {more})"));
    let first = put("idempotency_key => 'k'");
    assert_ne!(put("idempotency_key => 'k', tenant => 'acme'"), first);
    assert_ne!(put("idempotency_key => 'K'"), first);
    let conflict = refusal(&format!("SELECT {s}.enqueue('sms', idempotency_key => 'k')"));
    assert!(conflict.contains(&format!("stands for job {first}")), "{conflict}");
    let over = put("idempotency_key => 'over', key_window => interval '0'");
    assert_ne!(put("idempotency_key => 'over', key_window => interval '0'"), over);
    let live = put("idempotency_key => 'live', key_window => NULL");
    assert_eq!(put("idempotency_key => 'live', key_window => NULL"), live);
    w.store.cancel(&Scope::All, vec![JobId(live.parse().unwrap())]).await.unwrap();
    assert_ne!(put("idempotency_key => 'live', key_window => NULL"), live);
    assert_eq!(put("idempotency_key => 'k'"), first);
    w.end().await;
}

#[tokio::test]
async fn a_queue_belongs_to_its_tenant_and_to_workers() {
    let w = World::new().await;
    let s = &w.schema;
    let name = QueueName::new("calls").unwrap();
    w.store.register_queue(&Default::default(), &name, Executor::Http).await.unwrap();
    let both =
        format!("SELECT {s}.enqueue('a', queue => 'calls', tenant => t) FROM unnest(ARRAY['default', 'acme']) t");
    let listed = |each: u32| format!("acme|worker|{each}\ndefault|worker|{each}");
    // At first the queues are registered at the commit, then they are found.
    for each in 1..=2 {
        answer(&both);
        let jobs = "SELECT tenant, executor, count(*) FROM {s}.all_jobs GROUP BY 1, 2 ORDER BY 1".replace("{s}", s);
        assert_eq!(answer(&jobs), listed(each));
        assert_eq!(w.count("SELECT count(DISTINCT queue_id) FROM {s}.waiting").await, 2);
        let counted =
            "SELECT count(*) FROM (SELECT queue_id FROM {s}.tally_deltas GROUP BY 1 HAVING sum(enqueued) = {n}) t";
        assert_eq!(w.count(&counted.replace("{n}", &each.to_string())).await, 2, "each for its own queue");
    }
    w.end().await;
}

#[tokio::test]
async fn bad_input_is_refused_with_the_accepted_form() {
    let w = World::new().await;
    let s = &w.schema;
    // The name of a setting that is no policy.
    w.store.put_setting(&SettingKey::Server { name: "defaults".into() }, Some("{}")).await.unwrap();
    for (call, expected) in [
        ("enqueue(' mail')", "kind ` mail` is not a name"),
        ("enqueue('')", "kind `` is not a name"),
        ("enqueue(NULL)", "is not a name"),
        ("enqueue(repeat('k', 129))", "is not a name"),
        ("enqueue(E'a\\tb')", "is not a name"),
        ("enqueue(U&'a\\202Eb')", "is not a name"),
        ("enqueue(U&'a\\00A0')", "is not a name"),
        ("enqueue(U&'a\\0085b')", "is not a name"),
        ("enqueue(U&'a\\+0E0041')", "is not a name"),
        ("enqueue('email', queue => 'Upper')", "queue `Upper` is not a name"),
        ("enqueue('email', queue => NULL)", "is not a name; names match"),
        ("enqueue('email', priority => 3)", "priority 3 is not one of -2..2"),
        ("enqueue('email', priority => -3)", "priority -3 is not one of -2..2"),
        ("enqueue('email', priority => NULL)", "is not one of -2..2"),
        ("enqueue('email', retry => 'nonsense')", "retry `nonsense` names no policy"),
        ("enqueue('email', retry => 'defaults')", "retry `defaults` names no policy"),
        ("enqueue('email', delivery => 'MAYBE')", "delivery `MAYBE`"),
        ("enqueue('email', delivery => NULL)", "is neither AT_LEAST_ONCE nor AT_MOST_ONCE"),
        ("enqueue('email', NULL)", "payload is NULL"),
        ("enqueue('email', to_json(repeat('x', 262143))::text)", "payload is 262145 bytes"),
        ("enqueue('email', tenant => 'a b')", "tenant `a b` is not a name"),
        ("enqueue('email', tenant => NULL)", "is not a name; names match"),
        ("enqueue('email', limit_key => '')", "limit_key must be"),
        ("enqueue('email', limit_key => repeat('k', 129))", "limit_key must be"),
        ("enqueue('email', limit_key => E'a\\tb')", "limit_key must be"),
        ("enqueue('email', run_at => now(), delay => '1s')", "not both"),
    ] {
        let said = refusal(&format!("SELECT {s}.{call}"));
        assert!(said.contains(expected), "{call}: {said}");
    }
    assert_eq!(w.count("SELECT count(*) FROM {s}.jobs").await, 0);
    w.end().await;
}

#[tokio::test]
async fn the_longest_names_and_every_form_of_a_policy_are_accepted() {
    let w = World::new().await;
    let s = &w.schema;
    let named = SettingKey::Policy { name: "mine".into() };
    w.store.put_setting(&named, Some(r#"{"policy":"fixed:base=5s"}"#)).await.unwrap();
    for call in [
        "enqueue(repeat('k', 128), limit_key => repeat('k', 128))",
        "enqueue('email', retry => 'steps:1s/5s')",
        "enqueue('email', retry => 'once')",
        "enqueue('email', retry => 'mine')",
        "enqueue('email', priority => -2)",
    ] {
        answer(&format!("SELECT {s}.{call}"));
    }
    assert_eq!(w.count("SELECT count(*) FROM {s}.jobs").await, 5);
    w.end().await;
}

#[tokio::test]
async fn a_key_in_an_open_transaction_stands_for_its_job_once_that_commits() {
    let w = World::new().await;
    let s = w.schema.clone();
    let enqueue = format!("SELECT {s}.enqueue('email', idempotency_key => 'k')");
    w.client.batch_execute("BEGIN").await.unwrap();
    let first = w.client.query_one(&enqueue, &[]).await.unwrap().get::<_, i64>(0);
    let second = tokio::task::spawn_blocking(move || answer(&enqueue));
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    while !second.is_finished() && w.count(waiting).await == 0 {}
    w.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(second.await.unwrap(), first.to_string());
    assert_eq!(w.count("SELECT count(*) FROM {s}.jobs").await, 1);
    w.end().await;
}

#[tokio::test]
async fn a_key_without_a_window_refers_to_no_job_that_is_gone() {
    let w = World::new().await;
    let s = &w.schema;
    let enqueue = format!("SELECT {s}.enqueue('email', idempotency_key => 'k', key_window => NULL)");
    let first = answer(&enqueue);
    answer(&format!("DELETE FROM {s}.waiting; DELETE FROM {s}.jobs"));
    assert_ne!(answer(&enqueue), first);
    w.end().await;
}

/// The transaction cannot see the queue, and its job would have none.
#[tokio::test]
async fn a_queue_that_another_transaction_registers_unseen_makes_the_caller_try_again() {
    let w = World::new().await;
    let s = &w.schema;
    let enqueue = format!("SELECT {s}.enqueue('email', queue => 'fresh')");
    w.client.batch_execute(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ; {enqueue}")).await.unwrap();
    answer(&enqueue);
    let error = w.client.batch_execute("COMMIT").await.unwrap_err();
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("40001"), "{error:?}");
    assert_eq!(w.count("SELECT count(*) FROM {s}.jobs").await, 1);
    w.end().await;
}

#[tokio::test]
async fn a_queue_first_used_in_an_open_transaction_blocks_nobody() {
    let w = World::new().await;
    let s = &w.schema;
    w.client.batch_execute(&format!("BEGIN; SELECT {s}.enqueue('email', queue => 'fresh')")).await.unwrap();
    let fresh = || NewJob { queue: QueueName::new("fresh").unwrap(), ..job() };
    let stored = tokio::time::timeout(SOON, w.store.enqueue(vec![fresh()], Atomicity::Each)).await;
    let first = stored.expect("the library does not wait for the open transaction").unwrap()[0].id().unwrap();
    let second: i64 =
        answer(&format!("SET lock_timeout = '1s'; SELECT {s}.enqueue('email', queue => 'fresh')")).parse().unwrap();
    answer(&format!("SET lock_timeout = '1s'; SELECT {s}.enqueue('email', queue => 'newer')"));
    w.client.batch_execute(&format!("SELECT {s}.enqueue('email', queue => 'newer'); COMMIT")).await.unwrap();
    let reported =
        answer(&format!("SELECT queue, count(*), min(id) <> 0 FROM {s}.all_jobs GROUP BY queue ORDER BY queue"));
    assert_eq!(reported, "fresh|3|t\nnewer|2|t");
    assert!(second > first.0);
    assert_eq!(w.count("SELECT count(*) FROM {s}.unregistered").await, 0);
    assert_eq!(w.count("SELECT sum(enqueued)::bigint FROM {s}.tally_deltas").await, 5);
    assert_eq!(w.store.queues().await.unwrap().len(), 2);
    w.end().await;
}

#[tokio::test]
async fn a_queue_whose_first_job_is_rolled_back_does_not_exist() {
    let w = World::new().await;
    let s = &w.schema;
    answer(&format!("BEGIN; SELECT {s}.enqueue('email', queue => 'fresh'); ROLLBACK"));
    assert!(w.store.queues().await.unwrap().is_empty());
    answer(&format!(
        "BEGIN; SELECT count({s}.enqueue('email', queue => 'fresh')) FROM generate_series(1, 300); COMMIT"
    ));
    let queue = w.store.queues().await.unwrap().remove(0);
    let share = windlass::low_level::stores::Share { queue: queue.id, slots: 1000, ahead: 0 };
    assert_eq!(w.store.claim(crate::world::claim(share)).await.unwrap().jobs.len(), 300);
    w.end().await;
}

#[tokio::test]
async fn a_line_that_cannot_be_read_falls_back_to_the_default() {
    let w = World::new().await;
    answer(&format!("SELECT {}.enqueue('email', retry => 'fixed:nonsense=1')", w.schema));
    let jobs = w.claim(1).await;
    assert_eq!(jobs[0].policy.max_retries, 3);
    w.end().await;
}

#[tokio::test]
async fn views_show_jobs_attempts_and_dead_letters() {
    let w = World::new().await;
    let s = &w.schema;
    for kind in ["good", "bad", "later"] {
        answer(&format!("SELECT {s}.enqueue('{kind}', retry => 'once')"));
    }
    for job in &w.claim(2).await {
        let outcome = match job.kind.as_str() {
            "good" => Outcome::Succeeded,
            _ => Outcome::Failed(windlass::core::Failure::new("boom 7")),
        };
        w.store.commit(vec![ended(job, &outcome)], vec![]).await.unwrap();
    }
    let jobs = answer(&format!("SELECT kind, state, coalesce(reason, '-'), attempt FROM {s}.all_jobs ORDER BY id"));
    assert_eq!(jobs, "good|succeeded|-|1\nbad|failed|exhausted|1\nlater|queued|-|0");
    let attempts = answer(&format!("SELECT label, status FROM {s}.all_attempts ORDER BY job_id"));
    assert_eq!(attempts, "Initial|SUCCESS\nInitial|FAILED");
    let dead = format!("SELECT kind, error FROM {s}.dead_letters");
    assert_eq!(answer(&dead), "bad|boom 7");
    let messages = answer(&format!("SELECT queue, read_ct, vt <= now() FROM {s}.messages"));
    assert_eq!(messages, "default|0|t");
    let many = answer(&format!("SELECT count(*) FROM {s}.all_jobs WHERE attempt > 3"));
    assert_eq!(many, "0");
    assert!(w.store.job(&Scope::All, JobId(1)).await.unwrap().is_some());
    let discard = Discard { ids: vec![JobId(2)], reason: "known".into(), by: "ann".into(), what: String::new() };
    w.store.discard(&Scope::All, discard).await.unwrap();
    assert_eq!(answer(&dead), "");
    w.end().await;
}

fn ended(job: &ClaimedJob, outcome: &Outcome) -> windlass::low_level::stores::Commit {
    let now = job.claimed_at.unwrap();
    let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
    commit_of(job, outcome, trace, Roll(0))
}

#[tokio::test]
async fn every_policy_at_every_level_applies_to_jobs_of_sql_callers() {
    use windlass::core::policy::{PRESETS, Partial, Role};
    let w = World::new().await;
    let s = &w.schema;
    let lines = ["steps:1s/5s/30s", "linear:base=5s,jitter=none", "fibonacci:base=5s", "exponential:base=5s,factor=3"];
    for line in PRESETS.iter().map(|preset| preset.name).chain(lines) {
        let meant =
            Partial::resolve(&[Partial::parse_line(line).unwrap()], &Role::Handler.default_give_up_on()).unwrap();
        let levels = [
            SettingKey::Server { name: "defaults".into() },
            SettingKey::Queue { tenant: None, name: "default".into() },
            SettingKey::Queue { tenant: Some(Default::default()), name: "default".into() },
            SettingKey::Kind { name: "work".into() },
        ];
        for key in levels {
            w.store.put_setting(&key, Some(&format!(r#"{{"policy":"{line}"}}"#))).await.unwrap();
            w.client.execute(&format!("SELECT {s}.enqueue('work')"), &[]).await.unwrap();
            let claimed = w.claim(1).await;
            assert_eq!(*claimed[0].policy, meant, "{line} at {key:?}");
            w.store.put_setting(&key, None).await.unwrap();
        }
    }
    w.end().await;
}
