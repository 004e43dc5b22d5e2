//! Texts as they are stored are replaced only if they still are as they were read, and in no other row.

use super::world;
use crate::world::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::core::{Failure, Millis, Outcome, State};
use windlass::low_level::job::{HttpCall, NewJob, Webhook};
use windlass::low_level::stores::{
    Commit, DeadRuns, Missed, NodeSetting, Overlap, Recurrence, ScheduleSpec, SettingKey, StoredText, TextChange,
};

/// Two of everything, alike in all but their keys.
async fn fill(w: &World) {
    let call = HttpCall {
        method: "POST".into(),
        url: "https://example.org/".into(),
        headers: vec![],
        secret: None,
        webhook_id: None,
    };
    let webhook =
        Webhook { url: "https://example.org/h".into(), events: vec![State::Failed], secret: None, policy: policy() };
    let one = NewJob { http: Some(Arc::new(call)), webhook: Some(Arc::new(webhook)), ..job() };
    w.put_all(vec![one; 8]).await;
    let noted = |commit: Commit| Commit { note: Some("a note".into()), ..commit };
    let traced = |failure: Failure| Outcome::Failed(failure.trace("at one.rs:1"));
    for last in [false, true] {
        let jobs = w.claim(&["default"], 8).await.jobs;
        let commit = |(n, job): (usize, _)| match (n / 2, last) {
            (0, _) => {
                let done = w.commit_of(job, &Outcome::Succeeded);
                noted(Commit { result: Some(r#"{"sent":1}"#.into()), ..done })
            }
            (1, true) => noted(w.commit_of(job, &traced(Failure::permanent("never").class("Broken")))),
            _ => noted(w.commit_of(job, &traced(Failure::new("busy").class("Broken")))),
        };
        let commits = jobs.iter().enumerate().map(commit).collect();
        w.store.commit(commits, vec![]).await.unwrap().iter().for_each(assert_applied);
        w.advance(Millis::from_secs(10));
    }
    let spec = ScheduleSpec {
        tenant: Default::default(),
        cadence: "* * * * *".into(),
        zone: "UTC".into(),
        recurrence: Recurrence::Recurring,
        overlap: Overlap::Skip,
        missed: Missed::One,
        dead_letters: DeadRuns::Latest,
        template: job(),
    };
    for _ in 0..2 {
        w.store.add_schedule(spec.clone(), None).await.unwrap();
    }
    let of = |tenant, name: &str| SettingKey::Queue { tenant, name: name.into() };
    let kind = SettingKey::Kind { name: "email".into() };
    let keys = [of(None, "email"), of(None, "sms"), of(Some(tenant("acme")), "email"), kind];
    for key in &keys {
        w.store.put_setting(key, Some("{}")).await.unwrap();
    }
    let named = NodeSetting { key: keys[0].clone(), value: "{}".into(), origin: "here".into() };
    w.store.put_node_settings("a", &[named]).await.unwrap();
}

async fn read(w: &World) -> Vec<StoredText> {
    let mut rows: Vec<StoredText> = Vec::new();
    loop {
        let more = w.store.texts(rows.last().map(|row| &row.place), 3).await.unwrap();
        if more.is_empty() {
            return rows;
        }
        rows.extend(more);
    }
}

/// The same texts otherwise written: what is JSON stays JSON.
fn changed(columns: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    columns.iter().map(|(name, text)| (name.clone(), format!("{text} "))).collect()
}

#[tokio::test]
async fn texts_are_replaced_only_as_they_were_read_and_only_in_their_row() {
    let w = world().await;
    fill(&w).await;
    let mut rows = read(&w).await;
    // What is in memory is gone with its process: there is nothing to seal again.
    assert_eq!(rows.is_empty(), module_path!().contains("::memory::"));
    for row in &rows {
        for column in row.columns.keys() {
            let mut before = row.clone();
            before.columns.insert(column.clone(), "as it was before".into());
            let stale = TextChange { before, after: changed(&row.columns) };
            let replaced = w.store.replace_texts(vec![stale]).await.unwrap();
            assert_eq!(replaced, 0, "{} of {}", column, row.table);
        }
    }
    assert_eq!(read(&w).await, rows);
    for n in 0..rows.len() {
        let change = TextChange { before: rows[n].clone(), after: changed(&rows[n].columns) };
        assert_eq!(w.store.replace_texts(vec![change.clone()]).await.unwrap(), 1, "{:?}", rows[n]);
        assert_eq!(w.store.replace_texts(vec![change]).await.unwrap(), 0, "it is no longer as it was read");
        rows[n].columns = changed(&rows[n].columns);
        assert_eq!(read(&w).await, rows);
    }
}
