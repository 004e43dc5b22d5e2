//! Disks that a power cut could leave. What was synced is there. Of everything later, each sector of a write is there
//! or not, in any order. A new file may be missing until it or its directory was synced; a removed one may be back
//! until the directory was.

use super::recorder::{Change, Event};
use crate::tools::{below, chance};
use std::collections::BTreeMap;
use std::path::Path;
use windlass::Random;

const SECTOR: usize = 512;
/// The name of the directory in the record.
const DIRECTORY: &str = ".";

/// Whether the disk keeps what was synced. A disk that does not must be found out by the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncs {
    Count,
    Ignored,
}

#[derive(Debug, Default)]
struct Kept<'e> {
    /// What is surely there; `None` for a file that may be missing.
    synced: Option<Vec<u8>>,
    later: Vec<&'e Change>,
}

/// How much of the changes that were not synced a disk has.
#[derive(Debug, Clone, Copy)]
enum Rest {
    Nothing,
    Everything,
    Sectors(u64),
    /// The first changes, and some sectors of the next.
    Torn(usize),
}

/// Writes the files of one possible disk into `dir`.
pub fn write(events: &[Event], syncs: Syncs, random: &Random, dir: &Path) {
    let mut files: BTreeMap<&str, Kept<'_>> = BTreeMap::new();
    for event in events {
        if event.name == DIRECTORY {
            if syncs == Syncs::Count {
                files.values_mut().for_each(sync_name);
            }
            continue;
        }
        let file = files.entry(&event.name).or_default();
        match event.change {
            Change::Sync if syncs == Syncs::Ignored => {}
            Change::Sync => {
                let later = std::mem::take(&mut file.later);
                let all = later.into_iter().fold(file.synced.take(), |image, change| apply(image, change, |_| true));
                file.synced = all;
            }
            Change::Create | Change::Write(..) | Change::Truncate(_) | Change::Unlink => file.later.push(&event.change),
        }
    }
    for (name, file) in files {
        if let Some(image) = image(file, random) {
            std::fs::write(dir.join(name), image).unwrap();
        }
    }
}

/// The directory was synced: new files are there, and removed ones are gone.
fn sync_name(file: &mut Kept<'_>) {
    if let Some(last) = file.later.iter().rposition(|change| matches!(change, Change::Unlink)) {
        file.later.drain(..=last);
        file.synced = None;
    }
    if let Some(at) = file.later.iter().position(|change| matches!(change, Change::Create)) {
        file.later.remove(at);
        file.synced.get_or_insert_default();
    }
}

fn image(file: Kept<'_>, random: &Random) -> Option<Vec<u8>> {
    let rest = match below(random, 4) {
        0 => Rest::Nothing,
        1 => Rest::Everything,
        2 => Rest::Sectors(10 + below(random, 81)),
        _ => Rest::Torn(below(random, file.later.len() as u64 + 1) as usize),
    };
    let mut image = file.synced;
    for (at, change) in file.later.into_iter().enumerate() {
        let share = match rest {
            Rest::Nothing => 0,
            Rest::Everything => 100,
            Rest::Sectors(share) => share,
            Rest::Torn(first) => [100, 50, 0][(at + 1).saturating_sub(first).min(2)],
        };
        image = match change {
            Change::Write(..) => apply(image, change, |_| chance(random, share)),
            // The name and the length of a file change as a whole.
            Change::Create | Change::Truncate(_) | Change::Unlink | Change::Sync if chance(random, share) => {
                apply(image, change, |_| true)
            }
            Change::Create | Change::Truncate(_) | Change::Unlink | Change::Sync => image,
        };
    }
    image
}

fn apply(image: Option<Vec<u8>>, change: &Change, keeps: impl Fn(usize) -> bool) -> Option<Vec<u8>> {
    match change {
        Change::Create => Some(image.unwrap_or_default()),
        Change::Unlink => None,
        Change::Sync => image,
        Change::Truncate(length) => {
            let mut bytes = image.unwrap_or_default();
            bytes.resize(*length as usize, 0);
            Some(bytes)
        }
        Change::Write(offset, data) => {
            let (mut bytes, start) = (image, *offset as usize);
            let mut from = 0;
            while from < data.len() {
                let to = data.len().min(((start + from) / SECTOR + 1) * SECTOR - start);
                if keeps(from) {
                    let bytes = bytes.get_or_insert_default();
                    if bytes.len() < start + to {
                        bytes.resize(start + to, 0);
                    }
                    bytes[start + from..start + to].copy_from_slice(&data[from..to]);
                }
                from = to;
            }
            bytes
        }
    }
}
