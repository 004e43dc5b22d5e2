//! Reads and prints error rules as JSON. An error names the field by JSON pointer and the accepted form.

use super::{ClassGlob, Match, MessagePattern, Rule, Then};
use crate::gate::FlowError;
use crate::gate::read::{duration, field, object_of};
use crate::policy::{Names, Partial, Pattern};
use crate::time::Millis;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The most rules in one list.
pub const MAX_RULES: usize = 32;
/// The longest list of rules as JSON text, in bytes. Policies are stored with their rules, each once, under an index.
pub const MAX_RULES_TEXT: usize = 2000;

const RULES_FORM: &str =
    "a list of at most 32 rules such as {\"match\":{\"class\":\"Stripe*\"},\"then\":\"snooze\",\"for\":\"30s\"}";
const MATCH_FORM: &str = "an object with at least one of class, status, message";
const THEN_FORM: &str = "retry, giveUp, snooze, hold or discard";

impl Rule {
    /// Reads a list of rules. `at` is the JSON pointer of the list; `names` finds policies besides the presets.
    ///
    /// # Errors
    /// The field as a JSON pointer, what is wrong, and what is accepted.
    pub fn list_from_value(at: &str, value: &Value, names: Names<'_>) -> Result<Vec<Self>, FlowError> {
        let items = value.as_array().filter(|items| items.len() <= MAX_RULES);
        let items = items.ok_or_else(|| FlowError::refuse(at, value, RULES_FORM))?;
        let read = items.iter().enumerate().map(|(i, item)| Self::from_value(&format!("{at}/{i}"), item, names));
        let rules = read.collect::<Result<Vec<_>, _>>()?;
        if Self::list_to_value(&rules).to_string().len() > MAX_RULES_TEXT {
            return Err(FlowError::new(at, format!("is too long: at most {MAX_RULES_TEXT} bytes as JSON")));
        }
        Ok(rules)
    }

    fn from_value(at: &str, value: &Value, names: Names<'_>) -> Result<Self, FlowError> {
        let form = "an object with match, then, for, policy";
        let object = object_of(at, value, &["match", "then", "for", "policy"], form)?;
        let then_at = format!("{at}/then");
        let then = match field(object, "then") {
            Some(word) => {
                let known = word.as_str().and_then(Then::parse);
                known.ok_or_else(|| FlowError::refuse(&then_at, word, THEN_FORM))?
            }
            None => return Err(FlowError::new(then_at, format!("is missing; write {THEN_FORM}"))),
        };
        let matching = match field(object, "match") {
            Some(value) => read_match(&format!("{at}/match"), value)?,
            None => return Err(FlowError::new(format!("{at}/match"), format!("is missing; write {MATCH_FORM}"))),
        };
        let span = read_span(at, field(object, "for"), then)?;
        let policy = match field(object, "policy") {
            Some(value) => Some(read_policy(&format!("{at}/policy"), value, then, names)?),
            None => None,
        };
        if span.is_some() && policy.is_some() {
            return Err(FlowError::new(format!("{at}/for"), "contradicts policy: give one of them"));
        }
        Ok(Self { matching, then, span, policy })
    }

    /// The list as JSON. [`Rule::list_from_value`] reads it back.
    #[must_use]
    pub fn list_to_value(rules: &[Self]) -> Value {
        rules.iter().map(Self::to_value).collect()
    }

    fn to_value(&self) -> Value {
        let mut matching = Map::new();
        if let Some(class) = &self.matching.class {
            matching.insert("class".into(), json!(class.to_string()));
        }
        if let Some(status) = &self.matching.status {
            matching.insert("status".into(), json!(status.to_string()));
        }
        if let Some(message) = &self.matching.message {
            matching.insert("message".into(), json!(message.to_string()));
        }
        let mut object = Map::new();
        object.insert("match".into(), Value::Object(matching));
        object.insert("then".into(), json!(self.then.as_str()));
        if let Some(span) = self.span {
            object.insert("for".into(), json!(span.to_string()));
        }
        if let Some(policy) = &self.policy {
            object.insert("policy".into(), json!(policy.to_string()));
        }
        Value::Object(object)
    }
}

fn read_match(at: &str, value: &Value) -> Result<Match, FlowError> {
    let object = object_of(at, value, &["class", "status", "message"], MATCH_FORM)?;
    let mut matching = Match::default();
    if let Some(class) = field(object, "class") {
        let form = "an error class, in which * stands for any text, such as \"Stripe*\"";
        let read = class.as_str().and_then(ClassGlob::parse);
        matching.class = Some(read.ok_or_else(|| FlowError::refuse(&format!("{at}/class"), class, form))?);
    }
    if let Some(status) = field(object, "status") {
        let form = "an HTTP status or a hundred of them, such as \"503\" or \"5xx\"";
        let text = status.as_str().map(ToOwned::to_owned).or_else(|| status.as_u64().map(|n| n.to_string()));
        let read = text.and_then(|text| Pattern::parse(&text)).filter(|p| !matches!(p, Pattern::Class(_)));
        matching.status = Some(read.ok_or_else(|| FlowError::refuse(&format!("{at}/status"), status, form))?);
    }
    if let Some(message) = field(object, "message") {
        let at = format!("{at}/message");
        let form = "a regular expression between slashes, such as \"/deadlock|timeout/i\"";
        let text = message.as_str().ok_or_else(|| FlowError::refuse(&at, message, form))?;
        matching.message = Some(MessagePattern::parse(text).map_err(|error| FlowError::new(at, error))?);
    }
    if matching == Match::default() {
        return Err(FlowError::new(at, format!("is empty; write {MATCH_FORM}")));
    }
    Ok(matching)
}

fn read_span(at: &str, value: Option<&Value>, then: Then) -> Result<Option<Millis>, FlowError> {
    let at = format!("{at}/for");
    let form = "a duration: 500ms, 30s, 1m30s, 2h, or whole milliseconds (at most 30d)";
    let longest = Millis::from_secs(30 * 86_400);
    match (then, value) {
        (Then::Snooze | Then::Hold, None) => Err(FlowError::new(at, format!("is missing for {then}; write {form}"))),
        (Then::GiveUp | Then::Discard, Some(_)) => Err(FlowError::new(at, format!("has no effect on {then}"))),
        (_, None) => Ok(None),
        (Then::Retry | Then::Snooze | Then::Hold, Some(value)) => {
            // A snooze of no length would start the job again at once, for ever.
            let least = if then == Then::Retry { Millis::ZERO } else { Millis::new(1) };
            let read = duration(value).filter(|span| (least..=longest).contains(span));
            read.map(Some).ok_or_else(|| FlowError::refuse(&at, value, form))
        }
    }
}

fn read_policy(at: &str, value: &Value, then: Then, names: Names<'_>) -> Result<Arc<crate::Policy>, FlowError> {
    if then != Then::Retry {
        return Err(FlowError::new(at, format!("has no effect on {then}; only retry has delays")));
    }
    let line = value.as_str().ok_or_else(|| FlowError::refuse(at, value, "a policy's name, or a line"))?;
    let partial = Partial::parse_line_with(line, names);
    let policy = partial.and_then(|partial| {
        // Only the delays count; rules within a rule's policy would mean nothing.
        let delays = Partial { rules: None, give_up_on: None, retry_on: None, ..partial };
        Partial::resolve(&[delays], &[])
    });
    policy.map(Arc::new).map_err(|error| FlowError::new(at, error.to_string()))
}
