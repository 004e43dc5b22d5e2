//! The texts of one schema's statements, and the types of their parameters.

use crate::store::postgres::connection::pool::Params;
use crate::store::postgres::statements::{Script, Sql, columns, source, with_parts};
use crate::tally::Tally;
use tokio_postgres::types::{ToSql, Type};
use windlass_core::policy::PRESETS;

/// The store's time: a test's time if there is one, else the server's clock, rounded down so that nothing runs early.
const NOW: &str = "coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/// The statements of one schema.
#[derive(Debug)]
pub(in crate::store::postgres) struct Texts {
    schema: String,
    texts: Vec<String>,
    scripts: Vec<String>,
    types: Vec<Vec<Type>>,
}

impl Texts {
    pub(in crate::store::postgres) fn new(schema: &str) -> Self {
        let found = "a unit test finds every statement in its file";
        let named = |sql: &Sql| {
            let place = sql.place();
            // The name shows in the server's logs and statistics.
            fill(&format!("-- {}\n{}", place.1, with_parts(source(place).expect(found))), schema)
        };
        let texts: Vec<String> = Sql::ALL.iter().map(named).collect();
        let script = |script: &Script| fill(source(script.place()).expect(found), schema);
        let scripts = Script::ALL.iter().map(script).collect();
        let types = texts.iter().map(|text| types(text)).collect();
        Self { schema: schema.into(), texts, scripts, types }
    }

    pub(in crate::store::postgres) fn get(&self, sql: Sql) -> &str {
        &self.texts[sql as usize]
    }

    pub(in crate::store::postgres) fn script(&self, script: Script) -> &str {
        &self.scripts[script as usize]
    }

    /// Parameters with their types, for a statement that is sent without being prepared.
    pub(in crate::store::postgres) fn typed<'a>(
        &self,
        sql: Sql,
        params: Params<'a>,
    ) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
        params.iter().copied().zip(self.types[sql as usize].iter().cloned()).collect()
    }

    pub(in crate::store::postgres) fn schema(&self) -> &str {
        &self.schema
    }
}

/// The types of a statement's parameters, read from their casts: every parameter of ours has one, `$1::bigint`.
pub(in crate::store::postgres) fn types(text: &str) -> Vec<Type> {
    let cast = |number: usize| {
        let (_, after) = text.split_once(&format!("${number}::"))?;
        let end = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
        let is_array = after[end..].starts_with("[]");
        Some(match (&after[..end], is_array) {
            ("bigint", false) => Type::INT8,
            ("bigint", true) => Type::INT8_ARRAY,
            ("integer", false) => Type::INT4,
            ("integer", true) => Type::INT4_ARRAY,
            ("smallint", false) => Type::INT2,
            ("smallint", true) => Type::INT2_ARRAY,
            ("text", false) => Type::TEXT,
            ("text", true) => Type::TEXT_ARRAY,
            ("boolean", false) => Type::BOOL,
            ("boolean", true) => Type::BOOL_ARRAY,
            ("bytea", false) => Type::BYTEA,
            ("bytea", true) => Type::BYTEA_ARRAY,
            _ => return None,
        })
    };
    (1..).map_while(cast).collect()
}

fn quoted(schema: &str) -> String {
    format!("\"{schema}\"")
}

/// Fills in the placeholders of a statement or migration.
pub(in crate::store::postgres) fn fill(text: &str, schema: &str) -> String {
    let tally = |each: &dyn Fn(usize, &str) -> String| {
        let items: Vec<String> = Tally::COLUMNS.iter().enumerate().map(|(place, name)| each(place, name)).collect();
        items.join(", ")
    };
    let count = Tally::COLUMNS.len();
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let listed = columns::placeholders().iter().fold(text.to_owned(), |text, (name, list)| text.replace(name, list));
    listed
        .replace("{schema}", &quoted(schema))
        .replace("{channel}", &channel(schema))
        .replace("{now}", NOW)
        .replace("{presets}", &format!("{{{}}}", presets.join(",")))
        .replace("{tally_columns}", &tally(&|_, name| name.into()))
        .replace("{tally_definitions}", &tally(&|_, name| format!("{name} bigint NOT NULL DEFAULT 0")))
        .replace(
            "{tally_values}",
            &tally(&|place, _| format!("($4::bigint[])[(i.place - 1) * {count} + {}]", place + 1)),
        )
        .replace("{tally_sums}", &tally(&|_, name| format!("sum(t.{name})::bigint AS {name}")))
        .replace("{tally_adds}", &tally(&|_, name| format!("{name} = t.{name} + excluded.{name}")))
}

/// What listeners listen to. Longer names would be cut by the server.
pub(in crate::store::postgres) fn channel(schema: &str) -> String {
    let mut name = format!("windlass_{schema}");
    name.truncate(63);
    name
}

/// Whether a text can name a schema: it is pasted into statements.
pub(in crate::store::postgres) fn is_schema_name(text: &str) -> bool {
    let first = |b: u8| b.is_ascii_lowercase() || b == b'_';
    let rest = |b: u8| first(b) || b.is_ascii_digit();
    text.len() <= 63 && text.bytes().next().is_some_and(first) && text.bytes().all(rest)
}
