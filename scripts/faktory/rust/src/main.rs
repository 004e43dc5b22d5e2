//! The crate `faktory` from the registry, unchanged: produce QUEUE MARK, or work QUEUE OUT WID.

use faktory::{Client, Error, Job, Worker, WorkerId};
use std::fs::{OpenOptions, read_to_string};
use std::io::{self, Write};
use std::time::SystemTime;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["produce", queue, mark] => produce(queue, mark).await,
        ["work", queue, out, wid] => work(queue, out.to_owned(), wid).await,
        _ => panic!("produce QUEUE MARK, or work QUEUE OUT WID"),
    }
}

async fn produce(queue: &str, mark: &str) -> Result<(), Error> {
    let mut client = Client::connect().await?;
    let later = SystemTime::now() + std::time::Duration::from_secs(2);
    client.enqueue(Job::new("write", vec![format!("plain {mark}")]).on_queue(queue)).await?;
    let mut job = Job::new("write", vec![format!("later {mark}")]).on_queue(queue);
    job.at = Some(later.into());
    client.enqueue(job).await?;
    let mut job = Job::new("flaky", vec![format!("flaky {mark}")]).on_queue(queue);
    job.backtrace = Some(10);
    job.custom.insert("policy".into(), "fixed:base=1s".into());
    client.enqueue(job).await?;
    let bulk = Job::new("write", vec![format!("bulk {mark}")]).on_queue(queue);
    let (stored, refused) = client.enqueue_many([bulk]).await?;
    assert_eq!((stored, refused), (1, None));
    // The crate reads the whole answer of INFO.
    let info = client.current_info().await?;
    assert!(info.data.queues[queue] >= 2, "{info:?}");
    Ok(())
}

async fn work(queue: &str, out: String, wid: &str) -> Result<(), Error> {
    let flaky_out = out.clone();
    let mut worker = Worker::builder()
        .wid(WorkerId::new(wid))
        .workers(2)
        .register_blocking_fn("write", move |job| write(&out, text(&job)))
        .register_blocking_fn("flaky", move |job| flaky(&flaky_out, &job))
        .connect()
        .await?;
    // Returns when the server says `terminate`.
    worker.run(&[queue]).await.map(drop)
}

fn flaky(out: &str, job: &Job) -> io::Result<()> {
    if !read_to_string(out)?.contains("flaky failed") {
        write(out, "flaky failed")?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not yet"));
    }
    // The job comes back with what was reported.
    let failure = job.failure().expect("a job that failed says so");
    assert_eq!(failure.message.as_deref(), Some("not yet"));
    write(out, text(job))
}

fn text(job: &Job) -> &str {
    job.args()[0].as_str().expect("the argument is a text")
}

fn write(out: &str, text: &str) -> io::Result<()> {
    writeln!(OpenOptions::new().append(true).open(out)?, "{text}")
}
