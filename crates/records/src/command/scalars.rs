//! Scalars as they are typed.

use crate::protocol::{Number, Scalar, Value};
use anyhow::Context as _;

pub(super) fn scalar_value(scalar: Scalar, word: &str) -> anyhow::Result<Value> {
    let wrong = || format!("{word:?} is no {}", scalar.name());
    let value = match (scalar, word.parse::<i128>(), word.parse::<f64>()) {
        (Scalar::String, ..) => Some(Value::text(word)),
        (Scalar::Boolean, ..) => match word {
            "true" | "1" => Some(Value::Boolean(true)),
            "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        (_, Ok(whole), _) => Value::of_number(scalar, Number::Whole(whole)),
        (_, _, Ok(real)) => Value::of_number(scalar, Number::Real(real)),
        _ => None,
    };
    // What is too large for the type is no infinity, unless it was written so.
    let is_infinite =
        value.as_ref().and_then(Value::number).is_some_and(|it| it.real().is_infinite());
    let is_said = word.to_ascii_lowercase().contains("inf");
    value.filter(|_| is_said || !is_infinite).with_context(wrong)
}
