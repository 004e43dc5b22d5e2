//! `policy preview --error`: what one failure would get, decided by the engine itself.

use super::pretty;
use crate::cli::terminal::screen::{Screen, wrap};
use serde_json::json;
use windlass_core::policy::Pattern;
use windlass_core::{Delivery, Failure, LiveRules, Millis, Next, Outcome, Policy, Roll, Running, Timestamp, decide};

/// `Timeout`, `HttpError:503`, `503`.
pub(super) fn failure(text: &str) -> Result<Failure, String> {
    let form = "write an error class, a status, or both: Timeout, 503, ServerError:503";
    let (class, status) = match text.rsplit_once(':') {
        Some((class, status)) if status.bytes().all(|b| b.is_ascii_digit()) => (class, Some(status)),
        Some(_) | None if text.bytes().all(|b| b.is_ascii_digit()) => (windlass_core::failure::ERROR, Some(text)),
        Some(_) | None => (text, None),
    };
    let status = match status.map(Pattern::parse) {
        None => None,
        Some(Some(Pattern::Status(code))) => Some(code),
        Some(_) => return Err(form.into()),
    };
    match Pattern::parse(class) {
        Some(Pattern::Class(class)) => Ok(Failure { status, ..Failure::new("").class(class) }),
        Some(Pattern::Status(_) | Pattern::Hundred(_)) | None => Err(form.into()),
    }
}

/// What the first attempt's failure gets. The middle of each window stands for the jitter.
pub(super) fn explained(policy: &Policy, failure: &Failure, json: bool, screen: &Screen) -> String {
    let job = Running {
        failures: 0,
        crashes: 0,
        first_attempt_at: Timestamp::EPOCH,
        previous_delay: Millis::ZERO,
        delivery: Delivery::AtLeastOnce,
        cancel_requested: false,
        is_probe: false,
        policy,
        rules: LiveRules::default(),
    };
    let transition = decide(&job, &Outcome::Failed(failure.clone()), Timestamp::EPOCH, Roll(u64::MAX / 2));
    let next = match transition.next {
        Next::Wait { delay, .. } => format!("tries again after about {delay}"),
        Next::Failed(_) => "fails at once, and awaits manual action".to_owned(),
        Next::Succeeded | Next::Cancelled => transition.next.state().to_string(),
    };
    let counted = if transition.failures > 0 { "" } else { "; it counts no failure" };
    let status = failure.status.map_or_else(String::new, |status| format!(" with status {status}"));
    let words = format!("On {}{status}, a job {next}{counted} ({}).", failure.class, transition.why);
    if !json {
        return format!("{}\n", wrap(&words, screen.width));
    }
    pretty(&json!({
        "errorClass": failure.class,
        "status": failure.status,
        "message": failure.message,
        "state": transition.next.state().as_str(),
        "delayMs": transition.next.wait().map(|(_, delay)| delay.get()),
        "failures": transition.failures,
        "effect": match transition.effect {
            windlass_core::Effect::None => "none",
            windlass_core::Effect::HoldKey(_) => "hold",
            windlass_core::Effect::Discard => "discard",
        },
        "why": transition.why.to_string(),
    }))
}
