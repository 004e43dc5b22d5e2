//! Producers: jobs of all kinds, and enqueues whose outcome is unknown.

use crate::model::agenda::Event;
use crate::model::message::{Trouble, sorted};
use crate::model::sim::Sim;
use crate::model::swarm::Spice;
use std::sync::{Arc, LazyLock};
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::policy::Partial;
use windlass::core::{Delivery, Millis, Policy, Priority, State};
use windlass::low_level::job::{Idempotency, KeyWindow, NewJob, RunAt, Webhook};
use windlass::low_level::stores::JobLife;
use windlass::low_level::stores::Registry;
use windlass::low_level::stores::{Atomicity, DeadRuns, Enqueued, Missed, Overlap, Recurrence, ScheduleSpec};

const TENANTS: [&str; 2] = ["default", "acme"];
const LONG: Millis = Millis::from_secs(86_400);

static POLICIES: LazyLock<Vec<Arc<Policy>>> = LazyLock::new(|| {
    let lines = [
        "fixed:base=5s,jitter=none,retries=2",
        "exponential:base=1s,cap=20s,jitter=full,retries=4",
        "steps:1s/5s/20s,retries=3,cap=20s",
        "exponential:base=2s,cap=8s,jitter=spread(0.5),retries=5",
        "fixed:base=4s,cap=5s,jitter=additive(0.5),retries=3",
        "exponential:base=1s,cap=30s,jitter=decorrelated,retries=3",
        "fibonacci:base=1s,cap=10s,jitter=equal,retries=6,maxCrashes=2",
        "linear:base=3s,cap=30s,jitter=none,retries=10,maxElapsed=90s",
        "once",
    ];
    lines.map(policy).to_vec()
});

fn policy(line: &str) -> Arc<Policy> {
    let own = Partial::parse_line(line).expect("the line is a policy");
    let own = Partial { max_retry_after: Some(Millis::from_secs(20)), ..own };
    Arc::new(Partial::resolve(&[own], &[]).expect("the policy is whole"))
}

/// The request that a job answers.
pub fn tag(payload: &str) -> u64 {
    let digits = payload.chars().filter(char::is_ascii_digit).collect::<String>();
    digits.parse().unwrap_or(0)
}

impl Sim {
    pub async fn produce(&mut self) {
        if self.is_calm {
            return;
        }
        let count = 1 + self.pick(3);
        let jobs: Vec<NewJob> = (0..count).map(|_| self.new_job()).collect();
        self.enqueue(jobs).await;
        let pause = Millis::new(self.pick(2 * self.swarm.enqueue_every));
        self.plan_in(pause, Event::Produce);
    }

    pub async fn enqueue(&mut self, jobs: Vec<NewJob>) {
        for job in &jobs {
            self.tags.entry(tag(&job.payload)).or_default().times += 1;
        }
        let atomicity = if self.pick(3) == 0 { Atomicity::All } else { Atomicity::Each };
        let result = sorted(self.operations.clone().enqueue(jobs.clone(), atomicity).await);
        self.note(|| format!("  → {result:?}"));
        match result {
            Ok(answers) => self.acknowledged(&jobs, &answers),
            // Nothing happened, so the producer asks again. After an unknown outcome only a key makes that safe, but
            // some producers ask anyway.
            Err(Trouble::Unavailable) => {}
            Err(Trouble::Unknown) => {
                let again: Vec<NewJob> = jobs.into_iter().filter(|job| job.idempotency.is_some()).collect();
                if !again.is_empty() && !self.is_calm {
                    let pause = Millis::new(self.pick(10_000));
                    self.plan_in(pause, Event::Repeat(again));
                }
            }
        }
    }

    fn acknowledged(&mut self, jobs: &[NewJob], answers: &[Enqueued]) {
        for (job, answer) in jobs.iter().zip(answers) {
            let sent = self.tags.entry(tag(&job.payload)).or_default();
            match answer {
                Enqueued::Created { .. } => sent.acknowledged += 1,
                // Another request with the same key and payload covers this one.
                Enqueued::Existing(_)
                | Enqueued::KeyConflict(_)
                | Enqueued::Refused(_)
                | Enqueued::OverQuota(_)
                | Enqueued::NotStored => {}
            }
        }
    }

    fn new_job(&mut self) -> NewJob {
        let has_key = self.swarm.has(Spice::Keys) && self.pick(2) == 0;
        let is_poison = self.swarm.has(Spice::Poison) && self.pick(30) == 0;
        // Keyed requests share few tags and keys, so that they collide.
        let tag = if has_key { self.pick(6) } else { 100 + self.tags.len() as u64 };
        let word = if is_poison && !has_key { "poison" } else { "work" };
        let delay = if self.pick(4) == 0 { RunAt::After(Millis::new(self.pick(60_000))) } else { RunAt::Now };
        let start_by = (self.swarm.has(Spice::StartBy) && self.pick(4) == 0)
            .then(|| self.clock.now() + Millis::new(self.pick(60_000)));
        let is_once = self.swarm.has(Spice::AtMostOnce) && self.pick(3) == 0;
        NewJob {
            tenant: self.some_tenant(),
            queue: QueueName::new(["a", "b"][self.pick(2) as usize]).expect("a name"),
            priority: Priority::HIGHEST_FIRST[self.pick(5) as usize],
            run_at: delay,
            start_by,
            delivery: if is_once { Delivery::AtMostOnce } else { Delivery::AtLeastOnce },
            timeout: (self.pick(4) == 0).then(|| Millis::new(500 + self.pick(5000))),
            idempotency: has_key.then(|| self.some_key()),
            webhook: (self.swarm.has(Spice::Webhooks) && self.pick(3) == 0).then(|| self.some_webhook()),
            limit_key: (self.swarm.has(Spice::Limits) && self.pick(3) > 0)
                .then(|| ["k", "l"][self.pick(2) as usize].into()),
            ..NewJob::new(Kind::new("do").expect("a name"), format!(r#"{{"{word}":{tag}}}"#), self.some_policy())
        }
    }

    fn some_key(&self) -> Idempotency {
        let window = match self.pick(3) {
            0 => KeyWindow::For(Millis::from_secs(20)),
            1 => KeyWindow::For(LONG),
            _ => KeyWindow::Live,
        };
        Idempotency { key: format!("key-{}", self.pick(6)).into(), window }
    }

    fn some_webhook(&self) -> Arc<Webhook> {
        let all = [State::Succeeded, State::Failed, State::Cancelled];
        let events = all.into_iter().filter(|_| self.pick(3) > 0).collect();
        let url = "https://example.org/hook".into();
        Arc::new(Webhook { url, events, secret: None, policy: self.some_policy() })
    }

    pub fn some_tenant(&self) -> Tenant {
        Tenant::new(TENANTS[self.pick(2) as usize]).expect("a name")
    }

    fn some_policy(&self) -> Arc<Policy> {
        POLICIES[self.pick(POLICIES.len() as u64) as usize].clone()
    }

    pub async fn add_schedules(&mut self) {
        for _ in 0..1 + self.pick(2) {
            let (cadence, every) = [("every 7s", 7), ("every 20s", 20), ("*/10 * * * * *", 10)][self.pick(3) as usize];
            let one_shot = self.pick(4) == 0;
            let spec = ScheduleSpec {
                tenant: self.some_tenant(),
                cadence: cadence.into(),
                zone: "UTC".into(),
                recurrence: if one_shot { Recurrence::OneShot } else { Recurrence::Recurring },
                overlap: if self.pick(2) == 0 { Overlap::Skip } else { Overlap::Allow },
                missed: if self.pick(2) == 0 { Missed::One } else { Missed::Skip },
                // The record only knows what operators discard; conformance tests the runs that take others' places.
                dead_letters: DeadRuns::All,
                template: NewJob { queue: QueueName::new("a").expect("a name"), ..self.new_job() },
            };
            let spec = ScheduleSpec {
                template: NewJob { tenant: spec.tenant.clone(), idempotency: None, start_by: None, ..spec.template },
                ..spec
            };
            let next_at = Some(self.clock.now() + Millis::from_secs(every));
            let schedule = self.store.add_schedule(spec, next_at).await.expect("the store answers");
            self.schedules.push(schedule.id);
        }
    }
}
