//! The promises to operators: cancelled jobs stay cancelled, and replayed jobs run again.

use crate::checks::history::{Cancel, Record};
use crate::checks::stored::Stored;

pub fn violations(record: &Record, stored: &Stored, found: &mut Vec<String>) {
    for (id, (moment, cancel)) in &record.cancels {
        let Some(row) = stored.jobs.get(id) else { continue };
        let later = record.starts.get(id).into_iter().flatten().filter(|start| start.moment > *moment).count();
        let holds = match cancel {
            Cancel::Ended => row.state == "cancelled" && later == 0,
            // The running attempt may still succeed, and its start may be seen late; no other attempt follows.
            Cancel::Asked => ["cancelled", "succeeded"].contains(&row.state.as_str()) && later <= 1,
        };
        if !holds {
            found.push(format!("a cancel was answered {cancel:?}, then {later} attempts started: {row:?}"));
        }
    }
    for (id, replays) in &record.replays {
        let Some(row) = stored.jobs.get(id) else { continue };
        if !(replays.reported..=replays.asked).contains(&row.replays) {
            found.push(format!("{replays:?} were answered: {row:?}"));
        }
    }
}
