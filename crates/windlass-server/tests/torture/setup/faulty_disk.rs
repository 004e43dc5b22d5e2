//! A disk that becomes read-only or slow: a library in C that is preloaded into the processes that use it.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("faulty_disk.c");

#[derive(Debug, Clone, Copy)]
pub enum DiskFault {
    /// Every write fails with EROFS, as after the kernel has remounted a failing disk.
    ReadOnly,
    /// Every sync takes two seconds.
    SlowSync,
}

impl DiskFault {
    const fn file(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::SlowSync => "slow",
        }
    }
}

#[derive(Debug)]
pub struct FaultyDisk {
    home: tempfile::TempDir,
}

impl FaultyDisk {
    pub fn new() -> Self {
        // Servers of databases run as other users, which have access to /tmp.
        let home = tempfile::Builder::new().prefix("windlass-disk.").tempdir_in("/tmp").unwrap();
        let disk = Self { home };
        std::fs::create_dir(disk.path()).unwrap();
        let source = disk.home.path().join("faulty_disk.c");
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(disk.library()).arg(&source).arg("-ldl");
        assert!(compiled.status().expect("a C compiler, which SQLite needs too").success());
        disk
    }

    /// The directory that has the faults.
    pub fn path(&self) -> PathBuf {
        self.home.path().join("disk")
    }

    /// All of it, for another user's process.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    fn library(&self) -> PathBuf {
        self.home.path().join("faulty_disk.so")
    }

    /// What a process that uses this disk needs in its environment.
    pub fn variables(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        vec![
            ("LD_PRELOAD".into(), text(&self.library())),
            ("WINDLASS_TEST_DISK_FAULT".into(), text(self.home.path())),
            ("WINDLASS_TEST_DISK_DIR".into(), text(&self.path())),
        ]
    }

    pub fn set(&self, fault: DiskFault) {
        std::fs::write(self.home.path().join(fault.file()), "").unwrap();
    }

    pub fn repair(&self, fault: DiskFault) {
        std::fs::remove_file(self.home.path().join(fault.file())).unwrap();
    }
}
