//! Migrations on a list of their own: what an upgrade does, and what is refused.

use super::{Applied, MIGRATIONS, Migration, check, checksum, pending};
use crate::store::StoreError;
use crate::store::{Missed, Overlap};
use windlass_core::attempt::Status;
use windlass_core::{Executor, Reason, State};

const LIST: &[Migration] = &[
    Migration { number: 1, name: "initial", text: "CREATE TABLE a ()", min_reader: 1 },
    Migration { number: 2, name: "second", text: "CREATE TABLE b ()", min_reader: 1 },
    Migration { number: 3, name: "third", text: "CREATE TABLE c ()", min_reader: 2 },
];

fn row(migration: &Migration) -> Applied {
    Applied {
        number: migration.number,
        name: migration.name.into(),
        checksum: checksum(migration.text),
        min_reader: migration.min_reader,
    }
}

fn refused(applied: &[Applied], migrations: &[Migration]) -> String {
    match check(applied, "s", migrations) {
        Err(StoreError::Schema(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_older_schema_gets_what_it_lacks_in_order() {
    let applied = [row(&LIST[0])];
    check(&applied, "s", LIST).unwrap();
    assert_eq!(pending(&applied, LIST).map(|migration| migration.number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(pending(&[], LIST).count(), 3);
    let all: Vec<_> = LIST.iter().map(row).collect();
    assert_eq!(pending(&all, LIST).count(), 0);
}

#[test]
fn a_newer_schema_is_used_as_long_as_it_lets_older_programs_work() {
    let applied: Vec<_> = LIST.iter().map(row).collect();
    check(&applied, "s", &LIST[..2]).unwrap();
    assert!(refused(&applied, &LIST[..1]).contains("upgrade it"));
}

#[test]
fn a_changed_migration_is_refused() {
    let mut applied: Vec<_> = LIST.iter().map(row).collect();
    applied[1].checksum = "other".into();
    assert!(refused(&applied, LIST).contains("migration 2 `second`"));
}

#[test]
fn a_schema_of_an_unreleased_build_is_refused_with_what_to_do() {
    let old = |number, name: &str| Applied { number, name: name.into(), checksum: "x".into(), min_reader: 4 };
    let applied = [old(1, "tables"), old(2, "views"), old(6, "balances")];
    let why = refused(&applied, MIGRATIONS);
    assert!(why.contains("unreleased") && why.contains("drop the schema"), "{why}");
}

#[test]
fn checks_know_the_words_of_the_types() {
    let text = MIGRATIONS[0].text;
    let words = |words: Vec<&str>| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        assert!(text.contains(&format!(" IN ({})", quoted.join(", "))), "{quoted:?}");
    };
    // The state of a live job is not stored: it follows from the table that its row is in.
    words(State::ALL.iter().filter(|state| !state.is_live()).map(|state| state.as_str()).collect());
    words(Reason::ALL.iter().map(|reason| reason.as_str()).collect());
    words(Status::ALL.iter().map(|status| status.as_str()).collect());
    words(Executor::ALL.iter().map(|executor| executor.as_str()).collect());
    words(vec![Overlap::Skip.as_str(), Overlap::Allow.as_str()]);
    words(vec![Missed::One.as_str(), Missed::Skip.as_str()]);
}
