//! Dead letters: grouped, replayed and discarded, by id and by filter.

use super::world;
use crate::client;
use crate::world::{World, all, job, tenant};
use std::num::NonZeroU32;
use windlass::core::Millis;
use windlass::client::{Discarded, JobFilter, Replayed, Scope, Spacing};
use windlass::{JobId, State};

async fn dead(w: &World, messages: &[&str]) -> Vec<JobId> {
    let mut ids = Vec::new();
    for message in messages {
        w.put(job()).await;
        ids.push(w.fail_for_good(message).await);
    }
    ids
}

#[tokio::test]
async fn dead_letters_are_discarded_by_filter_and_stay_in_the_archive() {
    let w = world().await;
    let windlass = client(&w);
    let ids = dead(&w, &["card 1 expired", "card 2 expired", "no such user"]).await;
    let letters = windlass.dead_letters().by("ann");
    let groups = letters.groups(&JobFilter::default(), 10).await.unwrap();
    assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [2, 1]);
    let alike = JobFilter { fingerprint: Some(groups[0].fingerprint.clone()), ..JobFilter::default() };
    let page = letters.discard(alike.clone(), "cards are gone").await.unwrap();
    assert_eq!((page.done, page.more), (2, false));
    assert_eq!(letters.discard(alike, "again").await.unwrap().done, 0);
    let left = letters.list(&JobFilter::default(), all()).await.unwrap();
    assert_eq!(left.iter().map(|job| job.id).collect::<Vec<_>>(), [ids[2]]);
    let kept = letters.get(ids[0]).await.unwrap().unwrap();
    assert_eq!((kept.state, kept.discard_reason.as_deref()), (State::Failed, Some("cards are gone")));
    let live = w.put(job()).await;
    let results = letters.discard_ids(vec![ids[2], live, JobId(999)], "").await.unwrap();
    assert_eq!(results, [Discarded::Done, Discarded::NotDead, Discarded::NotFound]);
    assert!(letters.get(live).await.unwrap().is_none());
}

#[tokio::test]
async fn dead_letters_are_replayed_by_filter_and_by_id_with_spacing() {
    let w = world().await;
    let windlass = client(&w);
    let ids = dead(&w, &["a", "b", "c"]).await;
    let spacing = Spacing::per_second(NonZeroU32::new(10).unwrap());
    let page = windlass.dead_letters().replay(JobFilter::default(), spacing).await.unwrap();
    assert_eq!((page.done, page.more, page.last_due), (3, false, Some(w.now() + Millis::new(200))));
    assert_eq!(windlass.dead_letters().replay(JobFilter::default(), spacing).await.unwrap().done, 0);
    let again = windlass.dead_letters().replay_ids(vec![ids[0], JobId(999)], Spacing::NONE).await.unwrap();
    assert_eq!((again.results, again.last_due), (vec![Replayed::AlreadyLive, Replayed::NotFound], None));
    let others = windlass.dead_letters().within(&Scope::Tenant(tenant("other")));
    assert!(others.list(&JobFilter::default(), all()).await.unwrap().is_empty());
}
