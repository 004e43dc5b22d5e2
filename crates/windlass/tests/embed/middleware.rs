//! Middleware: around every handler, in order, and what it sees.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use windlass::testing::TestKit;
use windlass::{Attempt, CancellationToken, Executed, Failure, JobKind, Outcome, State, Windlass, Worker};

#[derive(Serialize, Deserialize, JobKind)]
struct Do(String);

async fn act(Do(what): Do, attempt: Attempt) -> Result<String, Failure> {
    match what.as_str() {
        "panic" => panic!("on purpose"),
        "fail" => Err(Failure::new("no").class("Refused")),
        _ => Ok(format!("by {}", attempt.state::<String>())),
    }
}

type Lines = Arc<Mutex<Vec<String>>>;

fn kit(lines: &Lines) -> TestKit {
    let mut kit = TestKit::new().handle(act).state("ann".to_owned());
    for name in ["outer", "inner"] {
        let lines = lines.clone();
        kit = kit.wrap(move |attempt, next| {
            let lines = lines.clone();
            async move {
                lines.lock().unwrap().push(format!("{name} before {}", attempt.id()));
                let executed = next.run(attempt).await;
                let what = if let Outcome::Failed(failure) = &executed.outcome {
                    failure.class.clone()
                } else {
                    format!("{:?} {:?}", executed.outcome, executed.result)
                };
                lines.lock().unwrap().push(format!("{name} after: {what}"));
                executed
            }
        });
    }
    kit
}

async fn lines_of(what: &str) -> Vec<String> {
    let lines = Lines::default();
    let kit = kit(&lines);
    kit.windlass().enqueue(Do(what.into())).retry("once").await.unwrap();
    kit.run_until_idle().await;
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[tokio::test]
async fn the_first_middleware_is_the_outermost_and_sees_the_result() {
    let (inner, outer) =
        ("inner after: Succeeded Some(\"\\\"by ann\\\"\")", "outer after: Succeeded Some(\"\\\"by ann\\\"\")");
    assert_eq!(lines_of("succeed").await, ["outer before 1", "inner before 1", inner, outer]);
}

#[tokio::test]
async fn middleware_sees_failures_and_panics_alike() {
    let lines = lines_of("fail").await;
    assert_eq!(lines[2..], ["inner after: Refused", "outer after: Refused"]);
    let lines = lines_of("panic").await;
    assert_eq!(lines[2..], ["inner after: Panic", "outer after: Panic"]);
}

#[tokio::test]
async fn a_middleware_may_answer_for_the_handler_and_its_panic_is_a_failure() {
    let kit = TestKit::new().handle(act).wrap(|attempt, next| async move {
        match &*attempt.job().payload {
            r#""skip""# => Executed::new(Outcome::Succeeded),
            r#""break""# => panic!("in the middleware"),
            _ => next.run(attempt).await,
        }
    });
    let skipped = kit.windlass().enqueue(Do("skip".into())).await.unwrap();
    let broken = kit.windlass().enqueue(Do("break".into())).retry("once").await.unwrap();
    kit.run_until_idle().await;
    assert_eq!(kit.job(skipped).await.state, State::Succeeded);
    assert_eq!(kit.history(broken).await[0].error_class.as_deref(), Some("Panic"));
}

#[tokio::test]
async fn a_worker_stops_for_a_token_or_any_future() {
    let windlass = Windlass::open("memory:").await.unwrap();
    let token = CancellationToken::new();
    let count = Arc::new(Mutex::new(0));
    let (stop, counted) = (token.clone(), count.clone());
    let worker = Worker::new(&windlass).handle(act).state("bob".to_owned()).wrap(move |attempt, next| {
        let (stop, counted) = (stop.clone(), counted.clone());
        async move {
            *counted.lock().unwrap() += 1;
            stop.cancel();
            next.run(attempt).await
        }
    });
    let id = windlass.enqueue(Do("succeed".into())).await.unwrap();
    worker.run(&token).await.unwrap();
    assert_eq!((windlass.jobs().get(id).await.unwrap().unwrap().state, *count.lock().unwrap()), (State::Succeeded, 1));
    tokio::spawn(Worker::new(&windlass).run(token)).await.unwrap().unwrap();
    Worker::new(&windlass).run(std::future::ready(Ok::<u32, String>(7))).await.unwrap();
}
