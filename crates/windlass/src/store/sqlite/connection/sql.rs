//! Statements: each in its own file under `sql/`, joined here where a select and its condition are two files.

macro_rules! sql {
    ($($name:literal),+) => {
        concat!($(include_str!(concat!("../sql/", $name, ".sql")), "\n"),+)
    };
}
pub(in crate::store::sqlite) use sql;
