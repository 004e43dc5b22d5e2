//! What a handler may return instead of a result.

use std::any::{Any, TypeId};
use std::error::Error;
use std::fmt::{self, Write};
use windlass_core::failure::ERROR;
use windlass_core::{Failure, Millis, Outcome};

/// An error type that handlers may return. A [`Failure`], a [`HandlerError`], any `std::error::Error`, `anyhow::Error`,
/// a boxed error and a text can all become one.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a handler did not succeed: a failure, a request to be attempted later, or the end of the job.
///
/// Any `std::error::Error` becomes one with `?`: a retryable failure whose class is the name of the error's type.
/// It does not implement `Error` itself, because that would conflict with this conversion.
///
/// ```
/// use std::time::Duration;
/// use windlass::{Attempt, Failure, HandlerError, JobKind, cancel, snooze};
///
/// #[derive(serde::Serialize, serde::Deserialize, JobKind)]
/// struct Charge { amount: String }
///
/// async fn charge(job: Charge, attempt: Attempt) -> Result<(), HandlerError> {
///     let amount: u32 = job.amount.parse()?; // retried as `ParseIntError`
///     match amount {
///         0 => Err(cancel()),
///         1 => Err(snooze(Duration::from_secs(60))),
///         2 => Err(Failure::permanent("the card is stolen").class("CardError"))?,
///         _ => Ok(()),
///     }
/// }
/// # let _ = charge;
/// ```
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
    /// The outcome of the attempt.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        self.0
    }
}

impl<E: Error + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        // A `Failure` is an error too, and has more information than its type's name.
        let failure = match (&error as &dyn Any).downcast_ref::<Failure>() {
            Some(failure) => failure.clone(),
            None => Failure::new(message(&error)).class(class::<E>()),
        };
        Self(Outcome::Failed(failure))
    }
}

/// A [`HandlerError`] inside a boxed error.
#[derive(Debug)]
struct Carried(Outcome);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Outcome::Failed(failure) => failure.fmt(f),
            Outcome::Snoozed(span) => write!(f, "snoozed for {span}"),
            Outcome::Cancelled => f.write_str("cancelled by its handler"),
            Outcome::Succeeded | Outcome::Released(_) | Outcome::Lost => write!(f, "{:?}", self.0),
        }
    }
}

impl Error for Carried {}

impl From<HandlerError> for BoxError {
    fn from(error: HandlerError) -> Self {
        Box::new(Carried(error.0))
    }
}

/// With this, `Err(snooze(…))?` works in handlers that return `anyhow::Result`.
#[cfg(feature = "anyhow")]
impl From<HandlerError> for anyhow::Error {
    fn from(error: HandlerError) -> Self {
        Self::new(Carried(error.0))
    }
}

/// The outcome for a handler's error.
pub(crate) fn outcome_of<E: Into<BoxError> + 'static>(error: E) -> Outcome {
    #[cfg(feature = "anyhow")]
    if let Some(error) = (&error as &dyn Any).downcast_ref::<anyhow::Error>() {
        return outcome_of_anyhow(error);
    }
    let error = match error.into().downcast::<Carried>() {
        Ok(carried) => return carried.0,
        Err(error) => error,
    };
    Outcome::Failed(match error.downcast::<Failure>() {
        Ok(failure) => *failure,
        Err(error) => Failure::new(message(&*error)).class(class::<E>()),
    })
}

/// Finds a failure anywhere in the chain and keeps its fields. The outer messages are put before its message.
#[cfg(feature = "anyhow")]
fn outcome_of_anyhow(error: &anyhow::Error) -> Outcome {
    if let Some(carried) = error.downcast_ref::<Carried>() {
        return carried.0.clone();
    }
    let Some(failure) = error.downcast_ref::<Failure>() else {
        let source: &(dyn Error + Send + Sync) = error.as_ref();
        let trace = crate::worker::panic::captured(error.backtrace());
        return Outcome::Failed(Failure { trace, ..Failure::new(message(source)) });
    };
    let context = error.chain().take_while(|cause| !cause.is::<Failure>()).map(ToString::to_string);
    let texts: Vec<String> = context.filter(|text| *text != failure.to_string()).collect();
    let message = texts.iter().chain([&failure.message]).cloned().collect::<Vec<_>>().join(": ");
    let trace = failure.trace.clone().or_else(|| crate::worker::panic::captured(error.backtrace()));
    Outcome::Failed(Failure { message, trace, ..failure.clone() })
}

/// Whether errors of this type hide a [`Failure`] inside them, because a feature is off.
pub(crate) fn needs_feature<E>() -> bool {
    !cfg!(feature = "anyhow") && std::any::type_name::<E>() == "anyhow::Error"
}

/// The last segment of the type's path, without its parameters. Types that say nothing about the error become `Error`.
fn class<E: 'static>() -> &'static str {
    let vague = [TypeId::of::<BoxError>(), TypeId::of::<String>(), TypeId::of::<&'static str>()];
    if vague.contains(&TypeId::of::<E>()) {
        return ERROR;
    }
    let name = std::any::type_name::<E>();
    let path = name.split('<').next().unwrap_or(name);
    path.rsplit("::").next().unwrap_or(path)
}

/// The error and its causes, in one line. Causes that the error already quotes are not repeated.
fn message(error: &(dyn Error + 'static)) -> String {
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

    fn failure(outcome: Outcome) -> (String, String) {
        let Outcome::Failed(failure) = outcome else { panic!("not a failure: {outcome:?}") };
        (failure.class, failure.message)
    }

    fn payment_error() -> PaymentError<u8> {
        PaymentError(std::io::Error::other("connection reset"), 1)
    }

    #[test]
    fn an_errors_class_is_its_types_name_and_its_message_names_the_causes() {
        let expected = ("PaymentError".to_owned(), "no answer: connection reset".to_owned());
        assert_eq!(failure(HandlerError::from(payment_error()).into_outcome()), expected);
        assert_eq!(failure(outcome_of(payment_error())), expected);
    }

    #[test]
    fn a_failure_keeps_all_it_says() {
        let failure = Failure::permanent("bad card").class("CardError");
        let expected = Outcome::Failed(failure.clone());
        assert_eq!(HandlerError::from(failure.clone()).into_outcome(), expected);
        assert_eq!(outcome_of(HandlerError::from(failure.clone())), expected);
        assert_eq!(outcome_of(failure.clone()), expected);
        assert_eq!(outcome_of(BoxError::from(failure)), expected);
    }

    #[test]
    fn snooze_and_cancel_come_through_boxed_errors() {
        assert_eq!(outcome_of(snooze(Millis::new(5))), Outcome::Snoozed(Millis::new(5)));
        assert_eq!(outcome_of(BoxError::from(cancel())), Outcome::Cancelled);
    }

    #[test]
    fn errors_without_a_type_of_their_own_have_the_class_error() {
        let boxed: BoxError = payment_error().into();
        assert_eq!(failure(outcome_of(boxed)), ("Error".to_owned(), "no answer: connection reset".to_owned()));
        assert_eq!(failure(outcome_of("no luck")), ("Error".to_owned(), "no luck".to_owned()));
        assert_eq!(failure(outcome_of("no luck".to_owned())), ("Error".to_owned(), "no luck".to_owned()));
    }

    #[cfg(feature = "anyhow")]
    #[test]
    fn an_anyhow_error_names_its_causes_and_keeps_a_failure_and_a_snooze() {
        use anyhow::Context;

        let plain = Err::<(), _>(payment_error()).context("charging").unwrap_err();
        assert_eq!(
            failure(outcome_of(plain)),
            ("Error".to_owned(), "charging: no answer: connection reset".to_owned())
        );
        let card = Failure::permanent("bad card").class("CardError");
        // With RUST_BACKTRACE the trace is that of this test.
        let untraced = |outcome: Outcome| match outcome {
            Outcome::Failed(failure) => Outcome::Failed(Failure { trace: None, ..failure }),
            Outcome::Succeeded | Outcome::Snoozed(_) | Outcome::Released(_) | Outcome::Cancelled | Outcome::Lost => {
                outcome
            }
        };
        assert_eq!(untraced(outcome_of(anyhow::Error::from(card.clone()))), Outcome::Failed(card.clone()));
        let with_context = Err::<(), _>(card.clone()).context("charging").context("order 7").unwrap_err();
        let expected = Failure { message: "order 7: charging: bad card".into(), ..card };
        assert_eq!(untraced(outcome_of(with_context)), Outcome::Failed(expected));
        let later = anyhow::Error::from(snooze(Millis::new(5))).context("not yet");
        assert_eq!(outcome_of(later), Outcome::Snoozed(Millis::new(5)));
    }
}
