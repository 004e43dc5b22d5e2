//! The jobs of a benchmark: how many, how large, and how they are stored through the library.

use super::pace::Pace;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use windlass::{JobKind, Windlass};

/// Jobs per call where many are stored at once.
pub(super) const BATCH: usize = 1000;

/// How many jobs, and how large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) jobs: usize,
    /// Bytes of payload per job.
    pub(crate) payload: usize,
}

/// The payload of a benchmark's job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bench {
    p: String,
}

impl JobKind for Bench {
    const KIND: &'static str = "bench";
}

impl Load {
    pub(super) fn job(self) -> Bench {
        Bench { p: filling(self.payload.saturating_sub(r#"{"p":""}"#.len())) }
    }

    /// The same as JSON text.
    pub(crate) fn text(self) -> String {
        format!(r#"{{"p":"{}"}}"#, self.job().p)
    }
}

/// Text that compresses about as well as real payloads, not to nothing as one repeated letter would.
fn filling(length: usize) -> String {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    };
    (0..length).map(|_| next()).collect()
}

/// Stores jobs in these queues in turn, 1000 a call.
pub(super) async fn fill(windlass: &Windlass, load: Load, queues: &[String], retry: &str, pace: &Pace) -> Result<()> {
    let job = load.job();
    for start in (0..load.jobs).step_by(BATCH) {
        let numbers = start..load.jobs.min(start + BATCH);
        let count = numbers.len();
        match queues {
            [queue] => windlass.enqueue_many(numbers.map(|_| job.clone())).queue(queue).retry(retry).await?,
            queues => {
                let enqueue = |n: usize| windlass.enqueue(job.clone()).queue(&queues[n % queues.len()]);
                windlass.enqueue_all(numbers.map(enqueue)).retry(retry).await?
            }
        };
        pace.moved(count);
    }
    Ok(())
}
