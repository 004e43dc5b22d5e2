//! `windlass bench`: every scenario runs, every figure has its ratio, and the statements of the ceilings can be read.

use crate::world::World;
use serde_json::Value;

#[test]
fn every_short_scenario_is_measured_against_its_own_ceiling() {
    let world = World::empty();
    let scenarios = ["enqueue", "drain", "retries", "pickup", "queues", "fairness", "payload", "growth", "sustained"];
    let mut args = vec!["bench", "--jobs", "400", "--growth", "1000", "--label", "this", "--json"];
    args.extend(scenarios.iter().flat_map(|scenario| ["--scenario", scenario]));
    let report: Value = serde_json::from_str(&world.out("100", &args)).unwrap();
    assert_eq!(report["label"], "this");
    let figures = report["figures"].as_array().unwrap();
    let ratio_of = |what: &str| {
        let figure = figures.iter().find(|figure| figure["what"].as_str().unwrap().starts_with(what));
        let figure = figure.unwrap_or_else(|| panic!("{what} is missing: {report:#}"));
        assert!(figure["ratio"].as_f64().is_none_or(|ratio| ratio > 0.0), "{figure}");
        figure["ratioOf"].as_str().unwrap_or("nothing").to_owned()
    };
    for (what, of) in [
        ("raw insert, 1 connection", "nothing"),
        ("raw claim + delete", "nothing"),
        ("enqueue one by one, callers: 1", "raw insert, 1 connection"),
        ("enqueue in bulk", "raw bulk insert, 1000 a call"),
        ("drain, 400 jobs", "raw claim + delete, 1000 a call"),
        ("retries", "drain, 400 jobs"),
        ("pickup", "one raw insert's commit"),
        ("drain, queues: 100", "drain, queues: 1"),
        ("drain, 4096 bytes", "drain, 100 bytes"),
        ("next 200 of it", "drain, 200 jobs"),
        ("fairness: ", "raw claim + delete, 1000 a call"),
        ("sustained", "raw claim + delete, 1000 a call"),
    ] {
        assert_eq!(ratio_of(what), of, "{what}");
    }
}

#[test]
fn the_http_scenario_compares_to_the_library_with_as_many_callers() {
    let world = World::empty();
    let table = world.out("100", &["bench", "--jobs", "200", "--scenario", "http"]);
    for line in
        ["HTTP enqueue, connections: 64, return=minimal", "HTTP enqueue at half the load", "HTTP lease + complete"]
    {
        assert!(table.contains(line), "{line}: {table}");
    }
    assert!(table.contains("of enqueue one by one, callers: 16"), "{table}");
}

#[test]
fn the_statements_of_the_ceilings_can_be_read_and_runs_can_be_summed_up() {
    let world = World::empty();
    let sqlite = world.out("100", &["bench", "--show-sql"]);
    assert!(sqlite.contains("-- raw claim + delete") && sqlite.contains("PRAGMA synchronous = FULL"), "{sqlite}");
    let postgres = world.out("100", &["bench", "--show-sql", "--store", "postgres://localhost/none"]);
    assert!(postgres.contains("FOR UPDATE SKIP LOCKED") && postgres.contains("unnest($1::text[])"), "{postgres}");
    let run = world.out("100", &["bench", "--jobs", "100", "--scenario", "raw", "--json"]);
    std::fs::write(world.path("one.json"), &run).unwrap();
    std::fs::write(world.path("two.json"), &run).unwrap();
    let summary = world.out("100", &["bench", "--summary", "one.json", "two.json"]);
    assert!(
        summary.contains("Medians of 2 runs") && summary.contains("| raw bulk insert, 1000 a call | "),
        "{summary}"
    );
}
