//! The text of a gate, as stores keep it: a small JSON object with only the fields that are set. A field that a later
//! version adds is absent in older texts, which means its default. How many attempts are in use is not in it: stores
//! keep that as a number, which they can change without reading the rest.

use super::breaker::{Breaker, Open};
use super::buckets::{Buckets, SLICES};
use super::budget::Budget;
use super::ramp::Ramp;
use super::rate::Bucket;
use super::{Gate, Hold, HoldOrigin, WaitingFor};
use crate::time::{Millis, Timestamp};
use serde_json::{Map, Value, json};

/// Not the text of a gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the state of a gate")]
pub struct GateTextError(String);

impl Gate {
    /// The text of a gate that [`Gate::is_plain`].
    pub const PLAIN: &'static str = "{}";

    /// The text of this state, without how many attempts are in use. [`Gate::from_text`] reads it back.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.is_plain() {
            return Self::PLAIN.into();
        }
        let mut object = Map::new();
        if self.bucket.ahead > 0 {
            object.insert("rate".into(), json!([self.bucket.ahead, self.bucket.at.as_millis()]));
        }
        if let Some(hold) = &self.hold {
            object.insert("hold".into(), hold_value(hold));
        }
        if let Some(Ramp { since, after, second, started }) = &self.ramp {
            object.insert("ramp".into(), json!([since.as_millis(), after.as_str(), second, started]));
        }
        if let Some(open) = self.breaker.open {
            let value = json!([open.since.as_millis(), open.span.get(), open.is_probing]);
            object.insert("open".into(), value);
        }
        if self.breaker.in_a_row > 0 {
            object.insert("failedInARow".into(), json!(self.breaker.in_a_row));
        }
        put_buckets(&mut object, "ended", &self.breaker.ended);
        put_buckets(&mut object, "started", &self.budget.started);
        Value::Object(object).to_string()
    }

    /// Reads a state back, with so many attempts in use.
    ///
    /// # Errors
    /// The text is not the text of a gate.
    pub fn from_text(text: &str, in_use: u32) -> Result<Self, GateTextError> {
        if text == Self::PLAIN {
            return Ok(Self::counting(in_use));
        }
        let read = serde_json::from_str(text).ok().and_then(|value: Value| read_gate(&value));
        let gate = read.ok_or_else(|| GateTextError(text.chars().take(80).collect()))?;
        Ok(Self { in_use, ..gate })
    }
}

fn hold_value(hold: &Hold) -> Value {
    let by = match &hold.origin {
        HoldOrigin::Operator(by) => Some(by.as_str()),
        HoldOrigin::RetryAfter | HoldOrigin::Rule => None,
    };
    json!({
        "since": hold.since.as_millis(), "until": hold.until.as_millis(), "origin": hold.origin.as_str(), "by": by,
        "reason": hold.reason,
    })
}

/// `[slice, newest, [a, b], [a, b], …]` without the empty slices at the end.
fn put_buckets(object: &mut Map<String, Value>, name: &str, buckets: &Buckets) {
    if buckets.slice.is_zero() {
        return;
    }
    let used = buckets.counts.iter().rposition(|count| *count != (0, 0)).map_or(0, |i| i + 1);
    let mut list = vec![json!(buckets.slice.get()), json!(buckets.newest)];
    list.extend(buckets.counts[..used].iter().map(|(a, b)| json!([a, b])));
    object.insert(name.into(), Value::Array(list));
}

fn read_gate(value: &Value) -> Option<Gate> {
    value.as_object()?;
    let mut gate = Gate::default();
    if let Some(rate) = value.get("rate") {
        gate.bucket = Bucket { ahead: rate.get(0)?.as_u64()?, at: moment(rate.get(1)?)? };
    }
    if let Some(hold) = value.get("hold") {
        gate.hold = Some(read_hold(hold)?);
    }
    if let Some(ramp) = value.get("ramp") {
        let after = WaitingFor::parse(ramp.get(1)?.as_str()?)?;
        let (second, started) = (number(ramp.get(2))?, number(ramp.get(3))?);
        gate.ramp = Some(Ramp { since: moment(ramp.get(0)?)?, after, second, started });
    }
    let open = match value.get("open") {
        Some(open) => Some(Open {
            since: moment(open.get(0)?)?,
            span: Millis::new(open.get(1)?.as_u64()?),
            is_probing: open.get(2)?.as_bool()?,
        }),
        None => None,
    };
    let ended = read_buckets(value.get("ended"))?;
    gate.breaker = Breaker { ended, in_a_row: number(value.get("failedInARow"))?, open };
    gate.budget = Budget { started: read_buckets(value.get("started"))? };
    Some(gate)
}

fn read_hold(hold: &Value) -> Option<Hold> {
    let origin = match hold.get("origin")?.as_str()? {
        "operator" => HoldOrigin::Operator(hold.get("by")?.as_str()?.into()),
        "retryAfter" => HoldOrigin::RetryAfter,
        "rule" => HoldOrigin::Rule,
        _ => return None,
    };
    let (since, until) = (moment(hold.get("since")?)?, moment(hold.get("until")?)?);
    Some(Hold { since, until, origin, reason: hold.get("reason")?.as_str()?.into() })
}

fn read_buckets(value: Option<&Value>) -> Option<Buckets> {
    let Some(value) = value else { return Some(Buckets::default()) };
    let list = value.as_array()?;
    let slice = list.first()?.as_u64().filter(|ms| *ms > 0)?;
    let mut counts = [(0, 0); SLICES];
    for (count, read) in counts.iter_mut().zip(&list[2.min(list.len())..]) {
        *count = (number(read.get(0))?, number(read.get(1))?);
    }
    // A number of a slice that no time has would overflow where it is added to.
    let newest = list.get(1)?.as_u64().filter(|n| *n <= Timestamp::MAX.as_millis().unsigned_abs())?;
    Some(Buckets { slice: Millis::new(slice), newest, counts })
}

/// An absent number is zero.
fn number(value: Option<&Value>) -> Option<u32> {
    value.map_or(Some(0), |n| u32::try_from(n.as_u64()?).ok())
}

fn moment(value: &Value) -> Option<Timestamp> {
    value.as_i64().map(Timestamp::from_millis)
}
