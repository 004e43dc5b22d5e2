//! The deliveries of a job, or the job of a delivery, shown below the job.

use crate::cli::terminal::grid::{Grid, cut, number, text};
use crate::cli::terminal::screen::Screen;
use crate::cli::terminal::words::{Now, plain, state};
use serde_json::Value;

/// A table of a job's deliveries; for a delivery, the job it reports on; else nothing.
pub(crate) fn of(job: &Value, screen: &Screen) -> String {
    if let Some(parent) = job["parentId"].as_u64() {
        return format!("\nreports on job {parent}: windlass jobs show {parent}\n");
    }
    let deliveries = job["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
    if deliveries.is_empty() {
        return String::new();
    }
    let now = Now::read();
    let mut grid =
        Grid::new([number("delivery"), text("state"), text("attempts"), text("when"), text("to"), cut("why")]);
    for delivery in deliveries {
        let moments = [&delivery["nextRunAt"], &delivery["finishedAt"]];
        let when = moments.into_iter().find(|moment| moment.is_string());
        grid.row([
            plain(&delivery["id"]).into(),
            state(&delivery["state"]),
            format!("{}/{}", delivery["attempt"], delivery["maxAttempts"]).into(),
            when.map_or_else(String::new, |moment| now.distance(moment)).into(),
            plain(&delivery["url"]).into(),
            why(delivery).into(),
        ]);
    }
    format!("\n{}", grid.or("", screen))
}

/// Why it failed or is retried.
fn why(delivery: &Value) -> String {
    if delivery["state"] == "succeeded" {
        return String::new();
    }
    let error = plain(&delivery["error"]);
    let words = [plain(&delivery["reason"]), plain(&delivery["errorClass"]), error.lines().next().unwrap_or("").into()];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ")
}
