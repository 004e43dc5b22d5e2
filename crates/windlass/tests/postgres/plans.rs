//! Statements read only the rows they need: commits the jobs they name, even with plans that were made while the tables
//! were empty; pages of failed jobs no jobs that ended well.

use crate::world::{World, claim, job};
use windlass::core::{Failure, Outcome, Roll, State};
use windlass::low_level::job::ClaimedJob;
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{Atomicity, Claim, Commit, JobFilter, JobLife, Order, Page, Reads, Scope, Share};

/// Jobs that are live while a few of them are committed.
const LIVE: usize = 3000;
const FEW: usize = 50;

fn ended(jobs: &[ClaimedJob], outcome: &Outcome) -> Vec<Commit> {
    let commit = |job: &ClaimedJob| {
        let now = job.claimed_at.unwrap();
        let trace = Trace { started_at: now, finished_at: now, worker: "w1".into(), note: None, result: None };
        commit_of(job, outcome, trace, Roll(0))
    };
    jobs.iter().map(commit).collect()
}

fn failed() -> Outcome {
    Outcome::Failed(Failure::new("took too long"))
}

/// Entries read from the keys of the tables that commits look jobs up in.
const READ: &str = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes
    WHERE schemaname = '{s}' AND indexrelname IN ('jobs_pkey', 'attempts_pkey')";
const ENDED: &str = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'attempts'";
const WAITING: &str = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'waiting'";

#[tokio::test]
async fn a_commit_reads_only_its_jobs_even_with_a_plan_made_on_an_empty_table() {
    let w = World::new().await;
    let run = async |sql: &str| w.client.batch_execute(&sql.replace("{s}", &w.schema)).await.unwrap();
    for table in ["jobs", "waiting", "attempts"] {
        run(&format!("ALTER TABLE {{s}}.{table} SET (autovacuum_enabled = off)")).await;
    }
    // A table that has been large and is empty now: the planner takes it for a single row.
    w.store.enqueue(vec![job(); LIVE], Atomicity::Each).await.unwrap();
    run("DELETE FROM {s}.jobs; DELETE FROM {s}.waiting; ANALYZE {s}.jobs; ANALYZE {s}.waiting; ANALYZE {s}.attempts")
        .await;

    w.store.enqueue(vec![job(); LIVE], Atomicity::Each).await.unwrap();
    let claimed = w.claim(LIVE as u32).await;
    assert_eq!(claimed.len(), LIVE);
    let read_before = async {
        // A claim reads each of its jobs once.
        while w.count(READ).await < LIVE as i64 {
            w.claim(1).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        w.count(READ).await
    };
    let read_before =
        tokio::time::timeout(std::time::Duration::from_secs(60), read_before).await.expect("statistics arrive");
    assert!(read_before < 2 * LIVE as i64, "a claim of {LIVE} jobs read {read_before} entries");
    let mut few = claimed.chunks(FEW);
    for outcome in [failed(), Outcome::Succeeded, Outcome::Cancelled] {
        w.store.commit(ended(few.next().unwrap(), &outcome), vec![]).await.unwrap();
    }
    let reported = async {
        let (attempts, waiting) = ((3 * FEW) as i64, (2 * LIVE + FEW) as i64);
        while w.count(ENDED).await < attempts || w.count(WAITING).await < waiting {
            // Statistics arrive late: any statement of the same connections makes them report.
            w.claim(1).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), reported).await.expect("statistics arrive");
    let read = w.count(READ).await - read_before;
    assert!(read < LIVE as i64 / 2, "three commits of {FEW} jobs read {read} entries");
    w.end().await;
}

/// Entries read from the indexes of waiting jobs, and jobs that no longer wait.
const LOOKED_AT: &str =
    "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE schemaname = '{s}' AND relname = 'waiting'";
const TAKEN: &str = "SELECT n_tup_del FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'waiting'";

#[tokio::test]
async fn a_claim_of_some_kinds_reads_each_job_once_even_with_a_plan_made_on_an_empty_table() {
    let w = World::new().await;
    let run = async |sql: &str| w.client.batch_execute(&sql.replace("{s}", &w.schema)).await.unwrap();
    for table in ["jobs", "waiting"] {
        run(&format!("ALTER TABLE {{s}}.{table} SET (autovacuum_enabled = off)")).await;
    }
    run("ANALYZE {s}.jobs; ANALYZE {s}.waiting").await;
    w.store.enqueue(vec![job(); LIVE], Atomicity::Each).await.unwrap();
    let share = Share { queue: w.queue().await, slots: FEW as u32, ahead: 0 };
    let asked = Claim { kinds: Some([job().kind].into_iter().collect()), ..claim(share) };
    assert_eq!(w.store.claim(asked).await.unwrap().jobs.len(), FEW);
    let reported = async {
        while w.count(TAKEN).await < FEW as i64 {
            w.claim(1).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), reported).await.expect("statistics arrive");
    let read = w.count(LOOKED_AT).await;
    assert!(read < 5 * LIVE as i64, "a claim of {FEW} jobs among {LIVE} read {read} entries");
    w.end().await;
}

/// Entries read from the indexes of the tables that pages are read from, and scans of the index of failed jobs.
const PAGED: &str = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes
    WHERE schemaname = '{s}' AND relname IN ('jobs', 'attempts', 'waiting')";
const SCANS: &str = "SELECT idx_scan FROM pg_stat_user_indexes
    WHERE schemaname = '{s}' AND indexrelname = 'attempts_failed_jobs'";

#[tokio::test]
async fn a_page_of_failed_jobs_does_not_read_the_jobs_that_succeeded() {
    let w = World::new().await;
    // The failed ones are the oldest, so that a walk by id meets all others first.
    w.store.enqueue(vec![job(); LIVE], Atomicity::Each).await.unwrap();
    let claimed = w.claim(LIVE as u32).await;
    let (few, most) = claimed.split_at(FEW);
    let permanent = Outcome::Failed(Failure::permanent("no such customer"));
    w.store.commit(ended(few, &permanent), vec![]).await.unwrap();
    w.store.commit(ended(most, &Outcome::Succeeded), vec![]).await.unwrap();
    w.client.batch_execute(&format!("ANALYZE {0}.jobs; ANALYZE {0}.attempts", w.schema)).await.unwrap();

    let w = w.reopened().await;
    let (before, scans) = (w.count(PAGED).await, w.count(SCANS).await);
    let filters = [
        JobFilter { states: vec![State::Failed], ..JobFilter::default() },
        JobFilter { dead_letters: true, ..JobFilter::default() },
    ];
    for filter in &filters {
        for order in [Order::NewestFirst, Order::OldestFirst] {
            let page = Page { after: None, limit: 2 * FEW as u32, order };
            assert_eq!(w.store.jobs(&Scope::All, filter, page).await.unwrap().len(), FEW);
        }
    }
    let w = w.reopened().await;
    assert!(w.count(SCANS).await >= scans + 4, "the index is used");
    let read = w.count(PAGED).await - before;
    assert!(read < LIVE as i64 / 2, "four pages of {FEW} failed jobs read {read} entries");
    w.end().await;
}

/// Jobs looked up by id, and jobs read by going through the whole table, each of which is compared with all that wait.
const LOOKED_UP: &str = "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'jobs'";
const WENT_THROUGH: &str = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'jobs'";

#[tokio::test]
async fn a_page_of_waiting_jobs_looks_them_up_by_id_even_with_a_plan_made_on_an_empty_table() {
    let w = World::new().await;
    let run = async |sql: &str| w.client.batch_execute(&sql.replace("{s}", &w.schema)).await.unwrap();
    for table in ["jobs", "waiting"] {
        run(&format!("ALTER TABLE {{s}}.{table} SET (autovacuum_enabled = off)")).await;
    }
    run("ANALYZE {s}.jobs; ANALYZE {s}.waiting").await;
    w.store.enqueue(vec![job(); LIVE], Atomicity::Each).await.unwrap();
    let filters = [
        JobFilter { queue: Some(job().queue), ..JobFilter::default() },
        JobFilter { queue: Some(job().queue), states: vec![State::Queued], ..JobFilter::default() },
        JobFilter { kind: Some(job().kind), ..JobFilter::default() },
    ];
    let mut pages = 0;
    for filter in &filters {
        for order in [Order::NewestFirst, Order::OldestFirst] {
            let page = Page { after: None, limit: FEW as u32, order };
            assert_eq!(w.store.jobs(&Scope::All, filter, page).await.unwrap().len(), FEW);
            pages += 1;
        }
    }
    let reported = async {
        while w.count(LOOKED_UP).await + w.count(WENT_THROUGH).await < (pages * FEW) as i64 {
            w.store
                .jobs(&Scope::All, &filters[0], Page { after: None, limit: 1, order: Order::NewestFirst })
                .await
                .unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), reported).await.expect("statistics arrive");
    assert_eq!(w.count(WENT_THROUGH).await, 0, "a page of {FEW} jobs among {LIVE} compares each with all others");
    w.end().await;
}
