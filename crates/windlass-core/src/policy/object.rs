//! The object form: a flat JSON object (or TOML table) with a policy's fields, or a string with its line.

use super::family::{self, FAMILY_FIELDS};
use super::field::Field;
use super::line::Names;
use super::{Bound, Partial, Pattern, Policy, PolicyError, Strategy};
use crate::nearest::hint;
use crate::rules::Rule;
use serde_json::{Map, Value, json};

/// Names the policy an object starts from.
const POLICY: &str = "policy";
/// Names the list of error rules.
pub(super) const RULES: &str = "rules";

impl Partial {
    /// Reads a policy: a string is a name or a line, an object has fields. `names` finds policies defined
    /// in addition to the presets; pass [`super::no_names`] if there are none.
    ///
    /// # Errors
    /// The field as written in the input, what is wrong, and what is accepted.
    pub fn from_json(value: &Value, names: Names<'_>) -> Result<Self, PolicyError> {
        match value {
            Value::String(line) => Self::parse_line_with(line, names),
            Value::Object(object) => from_object(object, names),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(PolicyError::new(
                "",
                "a policy is a name or line such as \"full-jitter\" or \"exponential:base=1s,retries=5\", \
                 or an object such as {\"policy\":\"stepped\",\"maxRetries\":5}",
            )),
        }
    }

    /// The object form of this level, with only the fields it sets. [`Partial::from_json`] reads it back.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |field: Field, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(field.name().into(), value);
            }
        };
        let texts = |steps: &Vec<crate::Millis>| steps.iter().map(ToString::to_string).collect::<Vec<_>>();
        put(Field::Strategy, self.strategy.map(|s| json!(s.as_str())));
        put(Field::Base, self.base.map(|d| json!(d.to_string())));
        put(Field::Factor, self.factor.map(|f| json!(f64::from(f.millionths()) / 1e6)));
        put(Field::Steps, self.steps.as_ref().map(|s| json!(texts(s))));
        put(Field::MaxDelay, self.max_delay.map(limit));
        put(Field::Jitter, self.jitter.map(|j| json!(j.to_string())));
        put(Field::MaxRetries, self.max_retries.map(|n| json!(n)));
        put(Field::MaxElapsed, self.max_elapsed.map(limit));
        put(Field::MaxCrashes, self.max_crashes.map(|n| json!(n)));
        put(Field::GiveUpOn, self.give_up_on.as_deref().map(list));
        put(Field::RetryOn, self.retry_on.as_deref().map(list));
        put(Field::MaxRetryAfter, self.max_retry_after.map(|d| json!(d.to_string())));
        if let Some(rules) = &self.rules {
            object.insert(RULES.into(), Rule::list_to_value(rules));
        }
        Value::Object(object)
    }

    /// The first field that both levels set to different values.
    pub(super) fn contradicts(&self, other: &Self) -> Option<&'static str> {
        fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            matches!((a, b), (Some(a), Some(b)) if a != b)
        }
        let fields = [
            (Field::Strategy, differ(self.strategy.as_ref(), other.strategy.as_ref())),
            (Field::Base, differ(self.base.as_ref(), other.base.as_ref())),
            (Field::MaxDelay, differ(self.max_delay.as_ref(), other.max_delay.as_ref())),
            (Field::Jitter, differ(self.jitter.as_ref(), other.jitter.as_ref())),
            (Field::MaxRetries, differ(self.max_retries.as_ref(), other.max_retries.as_ref())),
        ];
        fields.into_iter().find(|(_, differs)| *differs).map(|(field, _)| field.name())
    }

    /// Drops the numbers that have no effect on a `strategy` set by a nearer level.
    fn for_strategy(mut self, strategy: Strategy) -> Self {
        if !Field::Base.matters_to(strategy) {
            self.base = None;
        }
        if !Field::Factor.matters_to(strategy) {
            self.factor = None;
        }
        if !Field::Steps.matters_to(strategy) {
            self.steps = None;
        }
        self
    }
}

impl Policy {
    /// The object form with every field. [`Partial::from_json`] reads it back.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Partial::from(self).to_json()
    }
}

fn limit(bound: Bound) -> Value {
    bound.get().map_or(Value::Null, |span| json!(span.to_string()))
}

fn list(patterns: &[Pattern]) -> Value {
    patterns.iter().map(ToString::to_string).collect()
}

fn from_object(object: &Map<String, Value>, names: Names<'_>) -> Result<Partial, PolicyError> {
    let mut own = read_native(object)?;
    if let Some(rules) = object.get(RULES).filter(|v| !v.is_null()) {
        own.rules = Some(read_rules(rules, names)?);
    }
    let base = match object.get(POLICY) {
        None => None,
        Some(Value::String(line)) => Some(Partial::parse_line_with(line, names).map_err(|e| under(POLICY, &e))?),
        Some(_) => return Err(PolicyError::new(POLICY, "must be a string: a policy's name, or a line")),
    };
    // A list of delays without a strategy can only mean the strategy `steps`.
    if base.is_none() && own.steps.is_some() && own.base.is_none() && own.factor.is_none() {
        own.strategy = own.strategy.or(Some(Strategy::Steps));
    }
    let mut below = base.unwrap_or_default();
    if let Some((family, foreign)) = family::read(object)? {
        if let Some(field) = own.contradicts(&foreign) {
            return Err(PolicyError::new(field, "contradicts another system's name for it in the same policy"));
        }
        let alone = object.get(POLICY).is_none() && own.strategy.is_none();
        own = own.over(&foreign);
        if alone {
            below = family.preset();
        }
    }
    if let Some(strategy) = own.strategy {
        below = below.for_strategy(strategy);
    }
    Ok(own.over(&below))
}

fn read_native(object: &Map<String, Value>) -> Result<Partial, PolicyError> {
    let mut own = Partial::default();
    for (name, value) in object {
        if name == POLICY || name == RULES || family::Family::of(name).is_some() {
            continue;
        }
        let Some(field) = Field::ALL.into_iter().find(|f| f.name() == name) else {
            return Err(unknown(name));
        };
        let before = own.max_retries;
        set(&mut own, field, name, value)?;
        let given_twice = field.twin().is_some_and(|t| object.contains_key(t.name()));
        if given_twice && before.is_some_and(|n| own.max_retries != Some(n)) {
            return Err(PolicyError::new(name, "maxRetries and maxAttempts disagree: attempts are retries + 1"));
        }
    }
    Ok(own)
}

/// Reads error rules; the field of an error is its path within the policy, such as `rules/0/then`.
pub(super) fn read_rules(value: &Value, names: Names<'_>) -> Result<Vec<Rule>, PolicyError> {
    let read = Rule::list_from_value("/rules", value, names);
    read.map_err(|error| PolicyError::new(error.pointer.trim_start_matches('/'), error.message))
}

fn unknown(name: &str) -> PolicyError {
    let mut known: Vec<&str> = Field::ALL.map(Field::name).to_vec();
    known.extend([POLICY, RULES]);
    let listed = known.join(", ");
    known.extend(FAMILY_FIELDS);
    PolicyError::new(name, format!("is not a field of a policy{}; fields are {listed}", hint(name, &known)))
}

/// Reads one JSON value into a field; `name` is the field as written in the input.
pub(super) fn set(partial: &mut Partial, field: Field, name: &str, value: &Value) -> Result<(), PolicyError> {
    let refuse = || {
        let shown: String = value.to_string().chars().take(60).collect();
        PolicyError::new(name, format!("{shown} is not accepted; write {}", field.form()))
    };
    let is_bound = matches!(field, Field::MaxDelay | Field::MaxElapsed);
    let texts: Vec<String> = match value {
        Value::Null if is_bound => vec![super::field::NONE.into()],
        Value::Array(items) if field.separator().is_some() => {
            items.iter().map(scalar).collect::<Option<_>>().ok_or_else(refuse)?
        }
        Value::String(text) => match field.separator() {
            Some(separator) => text.split(separator).map(|t| t.trim().to_owned()).collect(),
            None => vec![text.clone()],
        },
        Value::Number(number) => vec![number.to_string()],
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(refuse()),
    };
    // A count in quotes is probably a mistake, and would confuse the next reader of the settings.
    let is_count = matches!(field, Field::MaxRetries | Field::MaxAttempts | Field::MaxCrashes);
    if is_count && value.is_string() {
        return Err(refuse());
    }
    let items: Vec<&str> = texts.iter().map(String::as_str).collect();
    field.set(partial, &items).map_err(|message| PolicyError::new(name, message))
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// An error in the line of `field`, reported for that field.
fn under(field: &str, error: &PolicyError) -> PolicyError {
    let what = if error.field.is_empty() { String::new() } else { format!("`{}` ", error.field) };
    PolicyError { field: field.into(), message: format!("{what}{}", error.message), position: error.position }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
