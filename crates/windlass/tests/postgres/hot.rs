//! A job's row is written once: the statistics show that claims, retries and finishes neither update nor delete it.
//! Other statements write and lock no more rows than they mean.

use crate::world::{World, job};
use windlass::Clock;
use windlass::core::{Failure, JobId, Millis, Outcome, Progress, Roll};
use windlass::low_level::job::{ClaimedJob, NewJob};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{Atomicity, Discard, Discarded, JobLife, Scope};

const JOBS: usize = 2000;
/// What the statistics counted on a table.
const COUNTED: &str = "SELECT {column} FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = '{table}'";

async fn counted(w: &World, table: &str, column: &str) -> i64 {
    w.count(&COUNTED.replace("{column}", column).replace("{table}", table)).await
}

async fn end(w: &World, jobs: &[ClaimedJob], outcome: &Outcome) {
    let commit = |job: &ClaimedJob| {
        let now = job.claimed_at.unwrap();
        let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), ..Trace::default() };
        commit_of(job, outcome, trace, Roll(0))
    };
    w.store.commit(jobs.iter().map(commit).collect(), vec![]).await.unwrap();
}

#[tokio::test]
async fn a_job_is_written_once_whatever_becomes_of_it() {
    let w = World::new().await;
    w.store.enqueue(vec![job(); JOBS], Atomicity::Each).await.unwrap();
    let first = w.claim(JOBS as u32 / 2).await;
    let second = w.claim(JOBS as u32).await;
    assert_eq!((first.len(), second.len()), (JOBS / 2, JOBS / 2));
    end(&w, &first, &Outcome::Succeeded).await;
    end(&w, &second, &Outcome::Failed(Failure::new("took too long"))).await;
    // Statistics arrive late: each connection reports them when it has been idle for a moment.
    let reported = async {
        while counted(&w, "jobs", "n_tup_ins").await < JOBS as i64
            || counted(&w, "waiting", "n_tup_del").await < JOBS as i64
            || counted(&w, "attempts", "n_tup_ins").await < JOBS as i64
        {
            // Any statement of the same connections makes them report.
            w.claim(1).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), reported).await.expect("statistics arrive");
    assert_eq!(counted(&w, "jobs", "n_tup_ins").await, JOBS as i64);
    assert_eq!(counted(&w, "jobs", "n_tup_upd + n_tup_del").await, 0, "a job is written once");
    assert_eq!(counted(&w, "attempts", "n_tup_upd + n_tup_del").await, 0, "so is an attempt");
    assert_eq!(counted(&w, "waiting", "n_tup_upd").await, 0);
    assert!(counted(&w, "waiting", "n_tup_del").await >= JOBS as i64, "a claim removes");
    w.end().await;
}

#[tokio::test]
async fn a_discard_changes_only_the_attempt_that_ended_the_job() {
    let w = World::new().await;
    w.store.enqueue(vec![job()], Atomicity::Each).await.unwrap();
    for outcome in [Outcome::Released(Progress::NotStarted), Outcome::Failed(Failure::permanent("never"))] {
        let claimed = w.claim(1).await;
        assert_eq!(claimed.len(), 1);
        end(&w, &claimed, &outcome).await;
    }
    let discard = Discard { ids: vec![JobId(1)], reason: "known".into(), by: "ann".into(), what: String::new() };
    assert_eq!(w.store.discard(&Scope::All, discard).await.unwrap(), [Discarded::Done]);
    assert_eq!(w.count("SELECT count(*) FROM {s}.attempts").await, 2);
    assert_eq!(w.count("SELECT count(*) FROM {s}.attempts WHERE discarded_at IS NOT NULL").await, 1);
    w.end().await;
}

/// A lock would keep claims from taking the job meanwhile.
#[tokio::test]
async fn expiring_locks_no_job_that_may_still_start() {
    let w = World::new().await;
    let start_by = Clock::system().now() + Millis::from_secs(3600);
    w.store.enqueue(vec![NewJob { start_by: Some(start_by), ..job() }], Atomicity::Each).await.unwrap();
    assert!(w.store.expire(10).await.unwrap().is_empty());
    assert_eq!(w.count("SELECT count(*) FROM {s}.waiting").await, 1);
    assert_eq!(w.count("SELECT count(*) FROM {s}.waiting WHERE xmax::text <> '0'").await, 0);
    w.end().await;
}
