//! Schedules on several processes: one job per firing; a one-shot schedule ends after its run.

use super::client::Receiver;
use super::node::{Node, Place, eventually};
use serde_json::json;
use std::collections::BTreeSet;

crate::on_both_stores!(a_firing_makes_one_job_however_many_nodes, a_one_shot_is_retried_and_then_removed);

fn a_firing_makes_one_job_however_many_nodes(place: &Place) {
    let nodes: Vec<Node> =
        (0..if place.is_postgres() { 3 } else { 2 }).map(|_| place.serve(&["--allow-private-targets"])).collect();
    let target = Receiver::new(|_| 200);
    let body = json!({"schedule": "* * * * * *", "api": target.url, "isRecurring": true, "overlap": "allow"});
    let schedule = nodes[0].client.post("/api/v1/jobs", &body.to_string()).is(201)["id"].as_i64().unwrap();
    eventually("five firings", || target.count() >= 5);
    nodes[0].client.post(&format!("/api/v1/schedules/{schedule}/pause"), "").is(200);
    let runs = nodes[0].client.get(&format!("/api/v1/jobs?schedule={schedule}&limit=1000")).is(200);
    let times: Vec<_> = runs["items"].as_array().unwrap().iter().map(|run| run["runAt"].as_str().unwrap()).collect();
    assert_eq!(times.iter().collect::<BTreeSet<_>>().len(), times.len(), "two runs of one firing: {times:?}");
}

fn a_one_shot_is_retried_and_then_removed(place: &Place) {
    let node = place.serve(&["--allow-private-targets"]);
    let target = Receiver::new(|_| 500);
    let body = json!({"schedule": "* * * * * *", "api": target.url, "type": "AT_LEAST_ONCE", "isRecurring": false, "maxRetryCount": 1});
    let schedule = node.client.post("/api/v1/jobs", &body.to_string()).is(201)["id"].as_i64().unwrap();
    eventually("the schedule is removed", || node.client.get(&format!("/api/v1/schedules/{schedule}")).status == 404);
    let history = node.client.get(&format!("/api/v1/jobs/{schedule}/history")).is(200);
    let reported: Vec<_> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["label"].as_str().unwrap(), a["status"].as_str().unwrap()))
        .collect();
    assert_eq!(reported, [("Initial", "FAILED"), ("Retry #1", "FAILED")]);
    assert_eq!(target.count(), 2);
}
