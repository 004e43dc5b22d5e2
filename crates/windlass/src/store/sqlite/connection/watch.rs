//! Watching for other processes: while a worker waits for work, the writer checks twenty times a second whether another
//! process has committed to the file. The check reads shared memory only.

use crate::store::sqlite::connection::writer::Message;
use crate::wake::Wake;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use tokio::sync::mpsc::WeakSender;

const EVERY: Duration = Duration::from_millis(50);
/// The writer also checks whether the clock was set: every half second, even if nobody waits.
const CLOCK_ROUNDS: u32 = 10;

pub(in crate::store::sqlite) struct Watch {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(in crate::store::sqlite) fn start(writer: WeakSender<Message>, wake: Wake) -> std::io::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let is_stopped = stopped.clone();
        let thread = std::thread::Builder::new().name("windlass-watch".into()).spawn(move || {
            let mut round = 0u32;
            while !is_stopped.load(Ordering::Acquire) {
                std::thread::park_timeout(EVERY);
                let Some(writer) = writer.upgrade() else { return };
                round = round.wrapping_add(1);
                if wake.is_watched() || round.is_multiple_of(CLOCK_ROUNDS) {
                    // If the queue is full, the writer is busy and checks by itself.
                    let _ = writer.try_send(Message::Look);
                }
            }
        })?;
        Ok(Self { stopped, thread: Some(thread) })
    }

    pub(in crate::store::sqlite) fn stop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.thread.as_ref().map(JoinHandle::thread).into_iter().for_each(Thread::unpark);
        if let Some(thread) = self.thread.take() {
            // The thread only sleeps and sends, so it cannot have panicked.
            let _ = thread.join();
        }
    }
}
