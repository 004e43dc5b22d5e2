//! A store with a fixed history, and the binary to read it.

use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use windlass::Clock;
use windlass::Random;
use windlass::low_level::stores::Options;
use windlass::low_level::stores::sqlite::SqliteStore;
use windlass::testing::{START, TestKit};
use windlass::{Attempt, Delivery, Failure, JobKind};

/// A directory with a store in it.
pub(crate) struct World {
    directory: TempDir,
    environment: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Act {
    fails: u32,
    class: Option<String>,
}

macro_rules! kinds {
    ($($kind:ident = $name:literal),+) => {
        $(
            #[derive(Debug, Serialize, Deserialize)]
            struct $kind(Act);
            impl JobKind for $kind {
                const KIND: &'static str = $name;
            }
        )+
        fn with_handlers(kit: TestKit) -> TestKit {
            kit$(.handle(|job: $kind, attempt: Attempt| act(job.0, attempt)))+
        }
    };
}
kinds!(Email = "email", Charge = "charge", Sync = "sync", Sms = "sms");

async fn act(job: Act, attempt: Attempt) -> Result<(), Failure> {
    if attempt.retry() >= job.fails {
        attempt.note("delivered");
        return Ok(());
    }
    let failure = Failure::new("the other side hung up before it had answered everything it was asked");
    Err(failure.class(job.class.unwrap_or_else(|| "ConnectError".into())))
}

fn fails(times: u32) -> Act {
    Act { fails: times, class: None }
}

impl World {
    /// An empty directory.
    pub(crate) fn empty() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), environment: Vec::new() }
    }

    /// The same, with an environment variable for every command.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Jobs of the first day of 2026, one for each way to end: their times, attempts and ids are the same every time.
    pub(crate) fn of_2026() -> Self {
        let world = Self::empty();
        tokio::runtime::Runtime::new().unwrap().block_on(fill(&world.path("jobs.db")));
        world
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// The names of the files in the directory.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(crate) fn store(&self) -> String {
        format!("sqlite:{}", self.path("jobs.db"))
    }

    /// Runs the binary on the world's store.
    pub(crate) fn run(&self, columns: &str, args: &[&str]) -> Output {
        self.command(columns, args).stdin(Stdio::null()).output().unwrap()
    }

    pub(crate) fn command(&self, columns: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(args).current_dir(self.directory.path()).env_clear().env("COLUMNS", columns);
        command.env("WINDLASS_STORE", self.store());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the binary with this standard input.
    pub(crate) fn feed(&self, input: &str, args: &[&str]) -> Output {
        let mut command = self.command("100", args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Standard output of a run that must succeed without standard error.
    pub(crate) fn out(&self, columns: &str, args: &[&str]) -> String {
        let output = self.run(columns, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let text = self.out("100", &[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }

    /// A job's payload as it is stored.
    pub(crate) fn payload(&self, id: i64) -> String {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let windlass = windlass::Windlass::open(&self.store()).await.unwrap();
            windlass.jobs().get(windlass::JobId(id)).await.unwrap().unwrap().payload.to_string()
        })
    }

    /// Standard error of a run that must end with this code and print nothing else.
    pub(crate) fn refusal(&self, code: i32, args: &[&str]) -> String {
        let output = self.run("100", args);
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {reported}");
        assert!(output.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
        reported.replace(self.directory.path().to_str().unwrap(), "DIR")
    }
}

async fn fill(path: &str) {
    let options = Options { clock: Clock::manual(START), random: Random::seeded(7), ..Options::default() };
    let store = SqliteStore::open(path, options).await.unwrap();
    let kit = with_handlers(TestKit::with_store(store, Random::seeded(7)));
    let windlass = kit.windlass();
    windlass.enqueue(Email(fails(0))).queue("email").await.unwrap();
    windlass.enqueue(Email(fails(2))).queue("email").retry("stepped").await.unwrap();
    windlass.enqueue(Sync(fails(9))).retry("stepped:retries=2").await.unwrap();
    let wrong = Act { fails: 9, class: Some("ValidationError".into()) };
    windlass.enqueue(Charge(wrong)).tenant("acme").queue("payments").await.unwrap();
    windlass.enqueue(Sms(fails(9))).delivery(Delivery::AtMostOnce).await.unwrap();
    windlass.enqueue(Sync(fails(9))).retry("stepped:retries=2").await.unwrap();
    kit.run_until_idle().await;
    let later = windlass.clock().now() + windlass::Millis::from_secs(1_000_000_000);
    windlass.enqueue(Email(fails(0))).queue("email").run_at(later).await.unwrap();
}

/// Hides a column whose distances grow with every day since 2026.
pub(crate) fn without_column(text: &str, title: &str, next: &str) -> String {
    let head = text.lines().next().unwrap();
    let from = head.find(title).unwrap_or_else(|| panic!("no column {title}: {text}"));
    let to = head.find(next).unwrap_or_else(|| panic!("no column {next}: {text}"));
    let cut = |line: &str| {
        let chars: Vec<char> = line.chars().collect();
        let (before, after) = (chars.iter().take(from), chars.iter().skip(to));
        before.chain(after).collect::<String>().trim_end().to_owned()
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n") + "\n"
}
