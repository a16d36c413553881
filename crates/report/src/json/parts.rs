//! The parts of which objects are made.

use judge::Interval;
use serde_json::{Value, json};

/// A ratio with its interval. One round has none: its ends are 0 and infinity, which carry no
/// information.
pub(super) fn interval(found: Option<Interval>) -> Value {
    let ends = found.filter(|found| found.high.is_finite());
    json!({
        "ratio": found.map(|found| found.ratio),
        "low": ends.map(|found| found.low),
        "high": ends.map(|found| found.high),
        "rounds": found.map_or(0, |found| found.rounds),
    })
}

pub(super) fn list<T>(all: impl IntoIterator<Item = T>, one: impl FnMut(T) -> Value) -> Vec<Value> {
    all.into_iter().map(one).collect()
}

/// Both objects as one.
pub(super) fn joined(mut first: Value, second: Value) -> Value {
    if let (Value::Object(first), Value::Object(second)) = (&mut first, second) {
        first.extend(second);
    }
    first
}
