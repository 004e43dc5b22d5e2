//! PUSH and PUSHB: stores jobs. They are durable when they are answered.

use super::reply::Reply;
use super::session::Session;
use super::wire::{self, WireJob};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windlass::client::{Atomicity, Enqueued, MAX_BATCH};
use windlass::protocol::{Catalogue, NewJob};

impl Session {
    pub(super) async fn push(&self, raw: &RawValue) -> Result<Reply, Reply> {
        let catalogue = self.windlass().catalogue().await?;
        let (_, job) = read(raw, &catalogue);
        let stored = self.windlass().enqueue_jobs(vec![job.map_err(Reply::Error)?], Atomicity::Each).await?;
        Ok(stored.first().and_then(refusal).map_or(Reply::Ok, Reply::Error))
    }

    /// Stores what can be stored, and answers the others by jid.
    pub(super) async fn push_many(&self, raws: Vec<&RawValue>) -> Result<Reply, Reply> {
        if raws.len() > MAX_BATCH {
            return Err(Reply::Error(format!("PUSHB takes at most {MAX_BATCH} jobs")));
        }
        let catalogue = self.windlass().catalogue().await?;
        let (mut refused, mut jids, mut jobs) = (Map::new(), Vec::new(), Vec::new());
        for (index, raw) in raws.into_iter().enumerate() {
            let (jid, job) = read(raw, &catalogue);
            let jid = jid.unwrap_or_else(|| format!("job {index}"));
            match job {
                Ok(job) => {
                    jids.push(jid);
                    jobs.push(job);
                }
                Err(why) => drop(refused.insert(jid, Value::String(why))),
            }
        }
        if !jobs.is_empty() {
            let stored = self.windlass().enqueue_jobs(jobs, Atomicity::Each).await?;
            for (jid, stored) in jids.into_iter().zip(&stored) {
                if let Some(why) = refusal(stored) {
                    refused.insert(jid, Value::String(why));
                }
            }
        }
        Ok(Reply::Text(Value::Object(refused).to_string()))
    }
}

fn read(raw: &RawValue, catalogue: &Catalogue) -> (Option<String>, Result<NewJob, String>) {
    let wire = match WireJob::read(raw.get()) {
        Ok(wire) => wire,
        Err(error) => return (None, Err(error)),
    };
    let draft = wire::draft(&wire, catalogue);
    let job = draft.and_then(|draft| catalogue.complete(draft).map_err(|error| error.to_string()));
    (wire.jid(), job)
}

fn refusal(stored: &Enqueued) -> Option<String> {
    match stored {
        Enqueued::Created { .. } | Enqueued::Existing(_) => None,
        Enqueued::KeyConflict(id) => Some(format!("NOTUNIQUE job {id} has this jid, or is the same by unique_for")),
        Enqueued::Refused(why) => Some(why.clone()),
        Enqueued::OverQuota(refusal) => {
            Some(format!("{refusal}; try again in {} seconds", refusal.retry_after.get().div_ceil(1000)))
        }
        Enqueued::NotStored => Some("the job was not stored".into()),
    }
}
