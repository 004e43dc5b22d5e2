//! The machine's clocks, and a machine whose clocks a test sets while time goes on.
#![allow(clippy::disallowed_methods)] // The lint points to `clock.rs`, which this file is a part of.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;
use windlass_core::{Millis, Timestamp};

/// The clocks of a machine.
pub trait Machine: Send + Sync + std::fmt::Debug {
    /// The time of day. Somebody may set it.
    fn wall(&self) -> Timestamp;

    /// The time since the machine started, sleep included. The same in every process.
    fn boot(&self) -> Millis;

    /// The time that the machine was awake since it started. Timers run on it.
    fn awake(&self) -> Millis;

    /// A name of this start of the machine. [`Machine::boot`] can be compared only under the same name.
    fn boot_id(&self) -> String;
}

/// The machine that this process runs on.
#[derive(Debug)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn wall(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn boot(&self) -> Millis {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return read(rustix::time::ClockId::Boottime);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        self.awake()
    }

    #[cfg(unix)]
    fn awake(&self) -> Millis {
        read(rustix::time::ClockId::Monotonic)
    }

    #[cfg(not(unix))]
    fn awake(&self) -> Millis {
        static STARTED: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        STARTED.get_or_init(std::time::Instant::now).elapsed().into()
    }

    fn boot_id(&self) -> String {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }
}

#[cfg(unix)]
fn read(clock: rustix::time::ClockId) -> Millis {
    let time = rustix::time::clock_gettime(clock);
    let part = |part: i64| u64::try_from(part).unwrap_or_default();
    Millis::new(part(time.tv_sec).saturating_mul(1000).saturating_add(part(time.tv_nsec) / 1_000_000))
}

/// This machine with clocks that a test has set: time goes on by itself, from wherever the test put it.
#[derive(Debug, Clone, Default)]
pub struct SetMachine(Arc<Offsets>);

#[derive(Debug, Default)]
struct Offsets {
    wall: AtomicI64,
    boot: AtomicI64,
}

impl SetMachine {
    /// Sets the time of day forward (or back) by this many milliseconds.
    pub fn set_wall(&self, by: i64) {
        self.0.wall.fetch_add(by, Ordering::SeqCst);
    }

    /// The machine sleeps this long, and wakes up.
    pub fn sleep(&self, span: Millis) {
        let span = i64::try_from(span.get()).unwrap_or(i64::MAX);
        self.0.wall.fetch_add(span, Ordering::SeqCst);
        self.0.boot.fetch_add(span, Ordering::SeqCst);
    }
}

impl Machine for SetMachine {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(ThisMachine.wall().as_millis() + self.0.wall.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Millis {
        ThisMachine.boot() + Millis::new(self.0.boot.load(Ordering::SeqCst).unsigned_abs())
    }

    fn awake(&self) -> Millis {
        ThisMachine.awake()
    }

    fn boot_id(&self) -> String {
        ThisMachine.boot_id()
    }
}
