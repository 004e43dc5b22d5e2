//! Growth: the first jobs of a very long backlog, compared to a short one.

use super::work::{Bed, POLICY, default_queue, drain};
use crate::bench::load::Load;
use crate::bench::report::Figure;
use anyhow::Result;

/// A shorter backlog leaves the database nothing to clean up.
pub(in crate::bench) const SMALL: usize = 100_000;

/// Drains a backlog of half of `load.jobs`, then twice as many of a backlog of `backlog`: half at once, half when the
/// database has cleaned up after the load. Compared to as many jobs, because a worker needs a moment to reach its pace.
pub(in crate::bench) async fn growth(bed: Bed<'_>, backlog: usize) -> Result<Vec<Figure>> {
    let half = (bed.load.jobs / 2).max(1);
    let [_, short] = drain(Bed { load: Load { jobs: half, ..bed.load }, ..bed }).await?;
    let deep = Bed { load: Load { jobs: backlog.max(bed.load.jobs), ..bed.load }, ..bed };
    let loaded = deep.fill(&default_queue(), POLICY).await?;
    let loaded = Figure { what: format!("enqueue a backlog of {}", deep.load.jobs), ..loaded };
    let at_once = bed.run(format!("first {half} of it, at once"), half).await?;
    // The first run may have claimed further ahead than a short backlog reaches.
    if deep.load.jobs < at_once.jobs + half {
        bed.fill(&default_queue(), POLICY).await?;
    }
    if deep.load.jobs >= SMALL {
        bed.gauge.clean_up().await?;
    }
    let later = bed.run(format!("next {half} of it, after cleanup"), half).await?;
    Ok(vec![loaded, at_once.of(&short), later.of(&short)])
}
