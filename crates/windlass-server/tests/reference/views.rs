//! The columns of the read-only views.

use rusqlite::{Connection, OpenFlags};
use std::fmt::Write as _;
use std::path::Path;

/// The views that users may rely on; the others serve Windlass itself.
const PUBLIC: [&str; 6] = ["all_jobs", "all_attempts", "dead_letters", "job_schedules", "job_executions", "messages"];
const INTRO: &str = "\
The read-only views and their columns, which are the same on both databases: `windlass.NAME` on Postgres, `windlass_NAME` on SQLite.
[SQL views and functions](../guides/sql.md) shows how to use them.
";

pub(crate) fn page(store: &Path) -> String {
    let connection = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut page = INTRO.to_owned();
    for name in PUBLIC {
        let statement = connection.prepare(&format!("SELECT * FROM windlass_{name} LIMIT 0")).unwrap();
        let names = (0..statement.column_count()).map(|place| statement.column_name(place).unwrap());
        let columns: Vec<String> = names.map(|column| format!("`{column}`")).collect();
        assert!(!columns.is_empty());
        let _ = write!(page, "\n## {name}\n\n{}\n", columns.join(", "));
    }
    page
}
