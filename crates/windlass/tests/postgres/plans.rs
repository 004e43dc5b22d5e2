//! Plans are cached, and may have been made while the tables were empty. A commit must still read only the jobs it
//! names.

use crate::world::{World, job};
use windlass::core::{Failure, Outcome, Roll};
use windlass::low_level::job::ClaimedJob;
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::{Atomicity, Commit};

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
