//! Kinds: what a job's type says about its jobs.

use serde::{Deserialize, Serialize};
use windlass::{Attempt, Failure, JobKind, State, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
struct SendEmail {
    to: String,
}

#[derive(Serialize, Deserialize, JobKind)]
#[job(kind = "invoice:send", queue = "billing", retry = "steps:1s/2s")]
enum Invoice {
    Draft(u32),
}

mod elsewhere {
    pub use windlass;
}

#[derive(Serialize, Deserialize, JobKind)]
#[job(crate = "elsewhere::windlass")]
struct Renamed;

#[tokio::test]
async fn a_kind_without_a_name_is_its_types_in_kebab_case() {
    assert_eq!((SendEmail::KIND, SendEmail::QUEUE, SendEmail::RETRY), ("send-email", None, None));
    assert_eq!(Renamed::KIND, "renamed");
    let windlass = Windlass::open("memory:").await.unwrap();
    let id = windlass.enqueue(SendEmail { to: "ann".into() }).await.unwrap();
    let job = windlass.jobs().get(id).await.unwrap().unwrap();
    assert_eq!((job.kind.as_str(), job.queue.as_str()), ("send-email", "default"));
    assert_eq!(&*job.payload, r#"{"to":"ann"}"#);
}

#[tokio::test]
async fn a_kinds_queue_and_policy_are_used_unless_the_builder_says_otherwise() {
    let windlass = Windlass::open("memory:").await.unwrap();
    let usual = windlass.enqueue(Invoice::Draft(1)).await.unwrap();
    let other = windlass.enqueue(Invoice::Draft(2)).queue("slow").retry("once").await.unwrap();
    let usual = windlass.jobs().get(usual).await.unwrap().unwrap();
    let other = windlass.jobs().get(other).await.unwrap().unwrap();
    assert_eq!((usual.queue.as_str(), usual.policy.max_retries), ("billing", 2));
    assert_eq!((other.queue.as_str(), other.policy.max_retries), ("slow", 0));
}

#[tokio::test]
async fn a_worker_that_is_given_no_queue_serves_those_of_its_kinds() {
    async fn bill(_: Invoice, _: Attempt) -> Result<(), Failure> {
        Ok(())
    }
    let windlass = Windlass::open("memory:").await.unwrap();
    let id = windlass.enqueue(Invoice::Draft(1)).await.unwrap();
    let done = async { assert_eq!(windlass.wait(id).await.unwrap().unwrap().state, State::Succeeded) };
    Worker::new(&windlass).handle(bill).run(done).await.unwrap();
}
