//! What the processes of one test share: a store, and a file of marks that each started attempt adds to.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use windlass::Windlass;
use windlass::low_level::stores::Options;

const URL: &str = "WINDLASS_TEST_STORE";
const SCHEMA: &str = "WINDLASS_TEST_SCHEMA";
const MARKS: &str = "WINDLASS_TEST_MARKS";
/// Real time after which a wait has failed.
pub(crate) const HANG: Duration = Duration::from_secs(180);

pub(crate) struct Home {
    url: String,
    schema: String,
    marks: PathBuf,
    _directory: Option<TempDir>,
}

/// Where attempts leave their marks, and the file that releases held ones.
pub(crate) struct Marks(File, PathBuf);

impl Marks {
    pub(crate) fn add(&self, n: u32) {
        // One write per mark, to the end of the file: marks of several processes do not mix.
        (&self.0).write_all(format!("{n}\n").as_bytes()).unwrap();
    }

    pub(crate) fn is_released(&self) -> bool {
        self.1.exists()
    }
}

impl Home {
    #[cfg(feature = "sqlite")]
    pub(crate) fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("jobs.db").display());
        Self::new(url, "windlass".into(), directory)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn postgres() -> Self {
        let url = std::env::var("WINDLASS_TEST_POSTGRES").expect(
            "these tests need a Postgres server: run them with scripts/test or `scripts/with-postgres cargo test …`, \
             or set WINDLASS_TEST_POSTGRES to the URL of a database they may create schemas in",
        );
        let schema = format!("processes_{:016x}", windlass::Random::system().number());
        Self::new(url, schema, tempfile::tempdir().unwrap())
    }

    fn new(url: String, schema: String, directory: TempDir) -> Self {
        let marks = directory.path().join("marks");
        Self { url, schema, marks, _directory: Some(directory) }
    }

    /// The home that the parent process named.
    pub(crate) fn reported() -> Self {
        let read = |name| std::env::var(name).unwrap();
        Self { url: read(URL), schema: read(SCHEMA), marks: read(MARKS).into(), _directory: None }
    }

    pub(crate) fn pass_to(&self, command: &mut Command) {
        command.env(URL, &self.url).env(SCHEMA, &self.schema).env(MARKS, &self.marks);
    }

    pub(crate) async fn open(&self) -> Windlass {
        let options = Options { schema: self.schema.clone(), connections: 4, ..Options::default() };
        Windlass::open_with(&self.url, options).await.unwrap()
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn marks(&self) -> Marks {
        let file = OpenOptions::new().create(true).append(true).open(&self.marks).unwrap();
        Marks(file, self.release_file())
    }

    /// Lets held attempts end.
    pub(crate) fn release_held(&self) {
        File::create(self.release_file()).unwrap();
    }

    fn release_file(&self) -> PathBuf {
        self.marks.with_extension("go")
    }

    pub(crate) fn read_marks(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(&self.marks).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Waits until at least `count` attempts have started.
    pub(crate) async fn wait_for_marks(&self, count: usize) {
        let waiting = async {
            let mut look = tokio::time::interval(Duration::from_millis(5));
            while self.read_marks().len() < count {
                look.tick().await;
            }
        };
        tokio::time::timeout(HANG, waiting).await.expect("attempts start");
    }
}
