//! The statements: one file per step under `sql/`, named statements inside. Placeholders are filled in once, when a
//! store is opened.

pub(super) mod arrays;
pub(super) mod columns;
pub(super) mod row;
pub(super) mod rows;
pub(super) mod texts;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        /// The files by name, with their text.
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../sql/", $name, ".sql")))),+];
    };
}

files!(
    "enqueue",
    "claim",
    "commit",
    "leases",
    "gates",
    "operations",
    "jobs",
    "attempts",
    "queues",
    "schedules",
    "tallies",
    "registry",
    "texts",
    "transfer",
    "upkeep",
    "schema",
);

macro_rules! statements {
    ($(#[$doc:meta])* $set:ident { $($file:literal { $($variant:ident = $name:literal),+ $(,)? })+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $set { $($($variant),+),+ }

        impl $set {
            pub(super) const ALL: &[Self] = &[$($(Self::$variant),+),+];

            /// The file and the name inside it.
            pub(super) const fn place(self) -> (&'static str, &'static str) {
                match self { $($(Self::$variant => ($file, $name)),+),+ }
            }
        }
    };
}

statements! {
    /// Every statement that the store prepares.
    ///
    /// Statements say `id = ANY (ARRAY[i.id])` instead of `id = i.id`. An equality can be evaluated from either side,
    /// and a plan made while the table was empty would scan the whole index for every listed job.
    Sql {
        "enqueue" {
            Enqueue = "enqueue", EnqueueAlike = "enqueue_alike", KeyLock = "key_lock", KeyFind = "key_find", KeyPut = "key_put",
        }
        "claim" {
            ClaimDue = "claim_due", ClaimPick = "claim_pick", ClaimTake = "claim_take",
            ClaimKinds = "claim_kinds", ClaimLooked = "claim_looked", NextDue = "next_due",
            FreezePolicy = "freeze_policy",
        }
        "commit" {
            LeaseLock = "lease_lock", SucceedFirst = "succeed_first", Succeed = "succeed", Finish = "finish",
            Forget = "forget", Wait = "wait", WaitAgain = "wait_again", EndWaiting = "end_waiting",
            RecordedOutcome = "recorded_outcome", EarlierErrors = "earlier_errors", LeasesEnd = "leases_end",
            OneShotsEnd = "one_shots_end",
        }
        "leases" {
            Holders = "holders",
            Renew = "renew", RenewCancels = "renew_cancels", Held = "held",
            ReapExpired = "reap_expired", ReapWorker = "reap_worker",
        }
        "gates" {
            GateQueues = "gate_queues", GateClaimLock = "gate_claim_lock", GatedDue = "gated_due", GatedParked = "gated_parked",
            GatesFind = "gates_find", GatesRead = "gates_read", GatesLock = "gates_lock", GatesAdd = "gates_add", GatesStart = "gates_start",
            GatesEnd = "gates_end", GatesPut = "gates_put",
            GatesNext = "gates_next", GatesReopen = "gates_reopen", GatesListed = "gates_listed", GatesShut = "gates_shut",
            GatesParked = "gates_parked", GatesOld = "gates_old", GatesRemove = "gates_remove", Park = "park", Parked = "parked",
            ParkedBefore = "parked_before",
            ReplayedPut = "replayed_put", ReplayedEnd = "replayed_end", ReplayedNext = "replayed_next",
            PassesPut = "passes_put", Passes = "passes",
            QueuePaused = "queue_paused",
        }
        "operations" {
            WaitingLock = "waiting_lock", RunningLock = "running_lock", ArchivedLock = "archived_lock",
            RequestCancel = "request_cancel", RunNow = "run_now", Replay = "replay", Discard = "discard", Amend = "amend",
            QueuePace = "queue_pace", QueuePaced = "queue_paced",
        }
        "jobs" {
            JobFound = "job_found", JobRunning = "job_running", IsLive = "is_live", Keyed = "keyed",
            JobsNewest = "jobs_newest", JobsOldest = "jobs_oldest", DeadGroups = "dead_groups",
            DeadSeries = "dead_series",
        }
        "attempts" { Attempts = "attempts", ScheduleAttempts = "schedule_attempts" }
        "queues" {
            Queues = "queues", QueueFind = "queue_find", QueueAdd = "queue_add", QueuePause = "queue_pause",
            Depths = "depths", DepthDue = "depth_due", DepthLater = "depth_later",
            Policies = "policies", PolicyFind = "policy_find", PolicyAdd = "policy_add",
            Settings = "settings", SettingPut = "setting_put", SettingRemove = "setting_remove",
            SettingsTouch = "settings_touch", SettingsForget = "settings_forget",
        }
        "schedules" {
            ScheduleAdd = "schedule_add", Schedule = "schedule", ScheduleLock = "schedule_lock",
            SchedulesNewest = "schedules_newest", SchedulesOldest = "schedules_oldest",
            ScheduleChange = "schedule_change", ScheduleRemove = "schedule_remove",
            SchedulesDue = "schedules_due", SchedulesNext = "schedules_next", ScheduleFired = "schedule_fired",
            ScheduleDead = "schedule_dead", ScheduleSupersede = "schedule_supersede",
        }
        "tallies" {
            Tally = "tally", Tallies = "tallies", TallyLock = "tally_lock", TallyTryLock = "tally_try_lock",
            TallyFoldSeconds = "tally_fold_seconds", TallyFoldMinutes = "tally_fold_minutes",
            TallyFoldHours = "tally_fold_hours", BalancesRecount = "balances_recount",
            CountUndead = "count_undead",
        }
        "registry" {
            Installation = "installation",
            Tokens = "tokens", TokenPut = "token_put", TokenRevoke = "token_revoke",
            Sessions = "sessions", SessionPut = "session_put", SessionRemove = "session_remove",
            WorkerLock = "worker_lock", WorkerReport = "worker_report", Workers = "workers",
            Alerts = "alerts", AlertAdd = "alert_add", AlertChange = "alert_change",
            Audit = "audit", Audits = "audits",
        }
        "texts" {
            TextsJobs = "texts_jobs", TextsAttempts = "texts_attempts", TextsSchedules = "texts_schedules",
            PutJobs = "put_jobs", PutAttempts = "put_attempts", PutSchedules = "put_schedules",
            TextsSettings = "texts_settings", PutSettings = "put_settings",
        }
        "transfer" {
            CopyAttempts = "copy_attempts", CopyKeys = "copy_keys", ImportLock = "import_lock", ImportMark = "import_mark",
            InstallationPut = "installation_put", IdsLast = "ids_last", IdsRaise = "ids_raise", ImportSchedules = "import_schedules",
            ImportJobs = "import_jobs", ImportWaiting = "import_waiting", ImportAttempts = "import_attempts",
            ImportOutcomes = "import_outcomes", ImportKeys = "import_keys", ImportBalances = "import_balances",
        }
        "upkeep" {
            Expired = "expired", PruneDone = "prune_done", PruneFailed = "prune_failed", PruneKeys = "prune_keys",
            PruneWorkers = "prune_workers",
        }
        "schema" {
            Now = "now", Notify = "notify", Pulse = "pulse", Server = "server",
            Migrations = "migrations", MigrationAdd = "migration_add",
        }
    }
}

statements! {
    /// Texts that cannot be prepared, because they are more than one statement.
    Script {
        "schema" {
            Begin = "begin", BeginReading = "begin_reading", BeginSnapshot = "begin_snapshot", Session = "session",
            MigrationsTable = "migrations_table",
        }
    }
}

statements! {
    /// Parts that several statements contain, in place of `{name}`.
    Part {
        "claim" { Taken = "taken", Leasing = "leasing", ClaimedRows = "claimed_rows" }
    }
}

/// A text with its parts in place.
fn with_parts(text: &str) -> String {
    Part::ALL.iter().map(|part| part.place()).fold(text.to_owned(), |text, place| {
        text.replace(&format!("{{{}}}", place.1), source(place).unwrap_or_default())
    })
}

/// A statement's text in its file, without its comment.
fn source((file, name): (&str, &str)) -> Option<&'static str> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == file)?;
    named(text).find(|(known, _)| *known == name).map(|(_, text)| text)
}

/// The statements of a file: each starts with a line `-- name: …`, perhaps a comment, then its text.
fn named(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("-- name: ").skip(1).map(|block| {
        let (name, mut text) = block.split_once('\n').unwrap_or((block, ""));
        while text.starts_with("--") {
            text = text.split_once('\n').map_or("", |(_, rest)| rest);
        }
        (name.trim(), text.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_statement_is_in_its_file_and_every_name_is_used() {
        let written = FILES.iter().flat_map(|(file, text)| named(text).map(|(name, _)| (*file, name)));
        let written: Vec<_> = written.collect();
        let used = Sql::ALL.iter().map(|sql| sql.place()).chain(Script::ALL.iter().map(|script| script.place()));
        let used = used.chain(Part::ALL.iter().map(|part| part.place()));
        let used: BTreeSet<_> = used.collect();
        assert_eq!(written.iter().copied().collect::<BTreeSet<_>>(), used);
        assert_eq!(written.len(), used.len(), "a name stands twice in a file");
        assert_eq!(Sql::ALL.len() + Script::ALL.len() + Part::ALL.len(), used.len(), "a statement is listed twice");
    }

    #[test]
    fn a_statement_ends_where_the_next_begins() {
        let file = "-- name: one\n-- What it does.\nSELECT 1\n\n-- name: two\nSELECT 2 -- not a comment of its own\n";
        let all: Vec<_> = named(file).collect();
        assert_eq!(all, [("one", "SELECT 1"), ("two", "SELECT 2 -- not a comment of its own")]);
    }

    #[test]
    fn no_statement_is_empty() {
        for (file, text) in FILES {
            for (name, text) in named(text) {
                assert!(!text.is_empty(), "{name} in {file}.sql");
            }
        }
    }
}
