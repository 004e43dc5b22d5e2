//! What a run cost: processor time of this process, and bytes it or its database wrote.

use windlass::clock::Stopwatch;

/// A reading of the meters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    watch: Stopwatch,
    cpu_ticks: u64,
    written: u64,
}

/// What passed between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Processor time of this process (a Postgres server's is not in it).
    pub(crate) cpu_seconds: f64,
    /// Bytes this process sent to the disk (a Postgres server's are not in it).
    pub(crate) written: u64,
}

/// Linux counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

impl Meter {
    pub(crate) fn start() -> Self {
        Self { watch: Stopwatch::start(), cpu_ticks: cpu_ticks(), written: written() }
    }

    pub(crate) fn read(&self) -> Cost {
        Cost {
            seconds: self.watch.elapsed().as_secs_f64(),
            cpu_seconds: cpu_ticks().saturating_sub(self.cpu_ticks) as f64 / TICKS_PER_SECOND,
            written: written().saturating_sub(self.written),
        }
    }
}

/// User and system time; zero where the system does not tell.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in brackets and may hold blanks.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum()
}

fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
}
