//! Per-queue limits from the environment: `MAX_EMAIL_RETRY_ATTEMPTS=5` gives jobs of the queue `email`
//! five attempts. The environment itself is passed in.

use super::{MAX_RETRIES, Partial, PolicyError};
use crate::job::QueueName;

/// Attempts of common queues under the `queue-worker` policy.
const USUAL: [(&str, u32); 3] = [("email", 5), ("payments", 5), ("reports", 3)];

/// How many attempts jobs of this queue have by default under the `queue-worker` policy.
#[must_use]
pub fn usual_attempts(queue: &QueueName) -> Option<u32> {
    USUAL.iter().find(|(name, _)| *name == queue.as_str()).map(|(_, attempts)| *attempts)
}

/// The settings of a queue in the environment: a level with `maxRetries`, if `MAX_<QUEUE>_RETRY_ATTEMPTS` is set.
/// The name may be singular or plural, and the ending `_queue` may be left out; characters other than letters and
/// digits are written `_`.
///
/// # Errors
/// The variable whose value is not a number of attempts, or that contradicts its other form.
pub fn attempts_from_environment(
    queue: &QueueName,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Partial>, PolicyError> {
    let mut found: Option<(String, u32)> = None;
    for name in attempt_variables(queue) {
        let Some(text) = variable(&name) else { continue };
        let attempts = text.trim().parse().ok().filter(|n| (1..=MAX_RETRIES + 1).contains(n)).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            PolicyError::new(&name, format!("`{shown}` is not a number of attempts; write 1 to 1001"))
        })?;
        if let Some((other, _)) = found.as_ref().filter(|(_, n)| *n != attempts) {
            return Err(PolicyError::new(&name, format!("contradicts {other}; set one of them")));
        }
        found = Some((name, attempts));
    }
    Ok(found.map(|(_, attempts)| Partial { max_retries: Some(attempts - 1), ..Partial::default() }))
}

/// The variables of a queue: its own name, its plural or singular, and the same without the ending `_queue`.
#[must_use]
pub fn attempt_variables(queue: &QueueName) -> Vec<String> {
    let own: String =
        queue.as_str().chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let stem = own.strip_suffix("_QUEUE").or_else(|| own.strip_suffix("_QUEUES")).filter(|stem| !stem.is_empty());
    let both = |name: &str| {
        let other = name.strip_suffix('S').map_or_else(|| format!("{name}S"), str::to_owned);
        [name.to_owned(), other]
    };
    let names = both(&own).into_iter().chain(stem.map(both).into_iter().flatten());
    names.map(|name| format!("MAX_{name}_RETRY_ATTEMPTS")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retries(queue: &str, set: &[(&str, &str)]) -> Result<Option<u32>, PolicyError> {
        let lookup = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        let level = attempts_from_environment(&QueueName::new(queue).unwrap(), &lookup)?;
        Ok(level.and_then(|l| l.max_retries))
    }

    #[test]
    fn a_queues_limit_is_found_under_its_name_in_singular_or_plural() {
        for (queue, variable) in [
            ("email", "MAX_EMAIL_RETRY_ATTEMPTS"),
            ("email", "MAX_EMAILS_RETRY_ATTEMPTS"),
            ("payments", "MAX_PAYMENT_RETRY_ATTEMPTS"),
            ("payments", "MAX_PAYMENTS_RETRY_ATTEMPTS"),
            ("big-data.eu", "MAX_BIG_DATA_EU_RETRY_ATTEMPTS"),
            ("email_queue", "MAX_EMAIL_RETRY_ATTEMPTS"),
            ("email_queue", "MAX_EMAIL_QUEUE_RETRY_ATTEMPTS"),
            ("payment-queue", "MAX_PAYMENTS_RETRY_ATTEMPTS"),
        ] {
            assert_eq!(retries(queue, &[(variable, "5")]), Ok(Some(4)), "{queue} {variable}");
        }
        assert_eq!(retries("email", &[("MAX_REPORT_RETRY_ATTEMPTS", "3")]), Ok(None));
    }

    #[test]
    fn an_error_names_the_wrong_or_contradicting_variable() {
        for value in ["", "0", "-1", "five", "1002", "1.5"] {
            let error = retries("email", &[("MAX_EMAIL_RETRY_ATTEMPTS", value)]).unwrap_err();
            assert_eq!(error.field, "MAX_EMAIL_RETRY_ATTEMPTS", "{value}");
        }
        let both = |a, b| retries("email", &[("MAX_EMAIL_RETRY_ATTEMPTS", a), ("MAX_EMAILS_RETRY_ATTEMPTS", b)]);
        assert_eq!(both("5", "5"), Ok(Some(4)));
        assert!(both("5", "6").is_err());
    }

    #[test]
    fn the_usual_queues_have_their_usual_attempts() {
        let usual = |name| usual_attempts(&QueueName::new(name).unwrap());
        assert_eq!(["email", "payments", "reports", "other"].map(usual), [Some(5), Some(5), Some(3), None]);
    }
}
