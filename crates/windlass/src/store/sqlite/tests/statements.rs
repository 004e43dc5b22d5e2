//! Statements: all of them are valid, and return the columns that are read from them.

use super::super::connection::sql::{FILES, NAME, PART, sql};
use super::super::reads::columns::{self, LISTS};
use super::*;
use std::collections::HashSet;

/// Every statement by name, with its placeholders expanded.
fn statements() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (_, text) in FILES {
        let mut parts: Vec<(&str, String)> = LISTS.iter().map(|(name, list)| (*name, (*list).to_owned())).collect();
        let mut named: Vec<(&str, String)> = Vec::new();
        let mut is_part = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix(PART) {
                is_part = true;
                parts.push((name, String::new()));
            } else if let Some(name) = line.strip_prefix(NAME) {
                is_part = false;
                named.push((name, String::new()));
            } else if let Some((_, body)) = if is_part { parts.last_mut() } else { named.last_mut() } {
                *body += line;
                body.push('\n');
            }
        }
        for (name, mut body) in named {
            for (part, list) in &parts {
                body = body.replace(&format!("{{{part}}}"), list);
            }
            all.push((name.to_owned(), body));
        }
    }
    all
}

#[tokio::test]
async fn every_statement_is_valid_and_has_a_unique_name() {
    let home = Home::new();
    let store = home.open().await;
    let conn = home.connect();
    let mut names = HashSet::new();
    for (name, text) in statements() {
        assert!(!text.contains('{'), "{name}: {text}");
        if let Err(error) = conn.prepare(&text) {
            panic!("{name}: {error}\n{text}");
        }
        assert!(names.insert(name.clone()), "two statements are called {name}");
    }
    assert!(names.len() > 80, "{}", names.len());
    drop(store);
}

#[tokio::test]
async fn rows_have_the_columns_that_are_read() {
    let home = Home::new();
    let store = home.open().await;
    let conn = home.connect();
    let check = |text: &str, lists: &[&str]| {
        let found = conn.prepare(text).unwrap().column_names().collect::<Vec<_>>().join(", ");
        assert_eq!(found, lists.join(", "), "{text}");
    };
    let (job, finished) = (columns::job::LIST, columns::finished::LIST);
    check(sql!("leases.sql", "held"), &[job, columns::held::LIST]);
    check(sql!("jobs.sql", "job_live"), &[job]);
    check(sql!("jobs.sql", "live_newest"), &[job]);
    check(sql!("upkeep.sql", "expired"), &[job]);
    check(sql!("jobs.sql", "job_archived"), &[job, finished]);
    check(sql!("jobs.sql", "dead_oldest"), &[job, finished]);
    check(sql!("commit.sql", "finish_held"), &[columns::kept::LIST, columns::ending::LIST]);
    check(sql!("commit.sql", "succeed_held"), &[columns::succeeding::LIST]);
    check(sql!("commit.sql", "wait_held"), &[columns::waiting::LIST]);
    check(sql!("claim.sql", "claim_due_in_time"), &[columns::due::LIST]);
    check(sql!("upkeep.sql", "prune_archive"), &[columns::past::LIST]);
    check(sql!("claim.sql", "claim_lane"), &[columns::front::LIST]);
    check(sql!("enqueue.sql", "key_find"), &[columns::key::LIST]);
    check(sql!("operations.sql", "standing"), &[columns::standing::LIST]);
    check(sql!("attempts.sql", "schedule_attempts"), &[columns::attempt::LIST, columns::job_attempt::LIST]);
    check(sql!("jobs.sql", "dead_groups"), &[columns::dead_group::LIST]);
    check(sql!("jobs.sql", "dead_series"), &[columns::dead_count::LIST]);
    check(sql!("queues.sql", "lanes_waiting"), &[columns::lane_waiting::LIST]);
    check(sql!("queues.sql", "depth_running"), &[columns::queue_count::LIST]);
    check(sql!("queues.sql", "depth_dead"), &[columns::queue_count::LIST]);
    let counted = crate::tally::Tally::COLUMNS.join(", ");
    check(sql!("tallies.sql", "tallies"), &[columns::tally::LIST, &counted]);
    check(sql!("tallies.sql", "series"), &[columns::series::LIST, &counted]);
    let inserted = format!("({}, {}, {}) VALUES", columns::kept::LIST, columns::ending::LIST, columns::ended::LIST);
    let finish = sql!("commit.sql", "finish").replace('\n', " ");
    assert!(finish.contains(&inserted), "{finish}");
    let inserted = format!("(at, queue_id, kind, {counted}) VALUES");
    let tally = sql!("tallies.sql", "tally").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(tally.contains(&inserted), "{tally}");
    drop(store);
}
