//! What a handler may answer instead of a result.

use std::any::Any;
use std::error::Error;
use std::fmt::Write;
use windlass_core::{Failure, Millis, Outcome};

/// Why a handler did not succeed: a failure, a wish to be attempted later, or the end of the job.
///
/// Any `std::error::Error` becomes one with `?`: a retryable failure whose class is the name of the error's type.
/// It is no `Error` itself, so that this can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerError(Outcome);

/// Attempt the job again after `span`; raises no failure count.
pub fn snooze(span: impl Into<Millis>) -> HandlerError {
    HandlerError(Outcome::Snoozed(span.into()))
}

/// End the job as cancelled.
#[must_use]
pub const fn cancel() -> HandlerError {
    HandlerError(Outcome::Cancelled)
}

impl HandlerError {
    pub(crate) fn into_outcome(self) -> Outcome {
        self.0
    }
}

impl<E: Error + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        // A `Failure` is an error too, and says more than its type's name.
        let failure = match (&error as &dyn Any).downcast_ref::<Failure>() {
            Some(failure) => failure.clone(),
            None => Failure::new(message(&error)).class(class::<E>()),
        };
        Self(Outcome::Failed(failure))
    }
}

/// The last segment of the type's path, without its parameters.
fn class<E>() -> &'static str {
    let name = std::any::type_name::<E>();
    let path = name.split('<').next().unwrap_or(name);
    path.rsplit("::").next().unwrap_or(path)
}

/// The error and what caused it, in one line; causes that the error already quotes are not repeated.
fn message(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let reported = source.to_string();
        if !text.contains(&reported) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {reported}");
        }
        cause = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no answer")]
    struct PaymentError<T: std::fmt::Debug>(#[source] std::io::Error, T);

    #[test]
    fn an_errors_class_is_its_types_name_and_its_message_names_the_causes() {
        let error = PaymentError(std::io::Error::other("connection reset"), 1_u8);
        let Outcome::Failed(failure) = HandlerError::from(error).into_outcome() else { panic!("not a failure") };
        assert_eq!((failure.class.as_str(), failure.message.as_str()), ("PaymentError", "no answer: connection reset"));
    }

    #[test]
    fn a_failure_keeps_all_it_says() {
        let failure = Failure::permanent("bad card").class("CardError");
        assert_eq!(HandlerError::from(failure.clone()).into_outcome(), Outcome::Failed(failure));
    }
}
