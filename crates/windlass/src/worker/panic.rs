//! Panics: converts panics of handlers into failures that say what happened and where.

use std::any::Any;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Once;
use windlass_core::Failure;
use windlass_core::failure::PANIC;

thread_local! {
    /// Where the last panic of this thread happened. The caught payload does not say.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records where panics happen, then calls the panic hook that was installed before, so that crash reporters keep
/// working.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PLACE.with(|place| *place.borrow_mut() = info.location().map(ToString::to_string));
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
    let message = place.map_or_else(|| text.to_owned(), |place| format!("{text} (at {place})"));
    Failure::new(message).class(PANIC)
}
