//! Panics: converts panics of handlers into failures that say what happened and where.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Once;
use windlass_core::Failure;
use windlass_core::failure::PANIC;

thread_local! {
    /// Where the last panic of this thread happened, and its backtrace. The caught payload does not say.
    static PLACE: RefCell<Option<(String, Option<String>)>> = const { RefCell::new(None) };
}

/// Records where panics happen, then calls the panic hook that was installed before, so that crash reporters keep
/// working.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // Captured only if RUST_BACKTRACE or RUST_LIB_BACKTRACE asks for it, because it is slow.
            let trace = captured(&Backtrace::capture());
            let at = info.location().map(ToString::to_string).unwrap_or_default();
            PLACE.with(|place| *place.borrow_mut() = Some((at, trace)));
            before(info);
        }));
    });
}

/// Runs `work`; a panic in it becomes a failure.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| failure(&*payload))
}

/// Polls `future` to its end; a panic in it becomes a failure.
pub(crate) async fn catching<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Result<F::Output, Failure> {
    // The future is dropped after a panic and never polled again, so its broken state is not seen.
    poll_fn(|context| match catch(|| future.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(failure) => std::task::Poll::Ready(Err(failure)),
    })
    .await
}

fn failure(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().copied();
    let text =
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message");
    let place = PLACE.with(|place| place.borrow_mut().take());
    let (at, trace) = place.unwrap_or_default();
    let message = if at.is_empty() { text.to_owned() } else { format!("{text} (at {at})") };
    Failure { trace, ..Failure::new(message).class(PANIC) }
}

/// The text of a backtrace, if it was captured.
pub(crate) fn captured(backtrace: &Backtrace) -> Option<String> {
    (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string())
}
