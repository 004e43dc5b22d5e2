//! Checks that the database itself is intact, and that `windlass doctor` finds no problems.

use crate::checks::stored::query;
use crate::setup::place::Place;
use serde_json::Value;

/// Everything that is wrong with the database.
pub fn faults(place: &Place) -> Vec<String> {
    let mut faults = if place.is_postgres() { indexes(place) } else { file(place) };
    faults.extend(doctor(place));
    faults
}

fn file(place: &Place) -> Vec<String> {
    let file = rusqlite::Connection::open(place.file()).unwrap();
    let ask = |pragma: &str| -> Vec<String> {
        let mut asked = file.prepare(&format!("PRAGMA {pragma}")).unwrap();
        let lines = asked.query_map([], |row| row.get::<_, String>(0)).unwrap();
        lines.map(|line| line.unwrap_or_else(|error| error.to_string())).collect()
    };
    let mut faults = ask("foreign_key_check");
    faults.extend(ask("integrity_check").into_iter().filter(|line| line != "ok"));
    faults
}

/// Every index has an entry for every row. Needs the extension amcheck, which comes with the server.
fn indexes(place: &Place) -> Vec<String> {
    let schema = &place.schema;
    query(place, "CREATE EXTENSION IF NOT EXISTS amcheck");
    let check = format!(
        "SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = '{schema}' AND a.amname = 'btree' AND c.relkind = 'i'"
    );
    assert!(!query(place, &check).is_empty(), "there are indexes to check");
    Vec::new()
}

/// The number of leases left. A lease whose end could not be stored stays, without jobs, until it is reaped.
pub fn leases(place: &Place) -> u64 {
    let count: i64 = if place.is_postgres() {
        query(place, &format!("SELECT count(*) FROM {}.leases", place.schema))[0].get(0)
    } else {
        let file = rusqlite::Connection::open(place.file()).unwrap();
        file.query_row("SELECT count(*) FROM windlass_leases", [], |row| row.get(0)).unwrap()
    };
    count as u64
}

/// The problems that the doctor finds. Alerts do not count: these tests fail jobs on purpose.
fn doctor(place: &Place) -> Vec<String> {
    let output = place.command(&["doctor", "--json"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let Ok(report) = serde_json::from_str::<Value>(&text) else {
        return vec![format!("the doctor says {text}{}", String::from_utf8_lossy(&output.stderr))];
    };
    let checks = report["checks"].as_array().cloned().unwrap_or_default();
    let is_wrong = |check: &&Value| check["verdict"] == "wrong" && check["check"] != "alert";
    checks.iter().filter(is_wrong).map(|check| format!("the doctor finds {check}")).collect()
}
