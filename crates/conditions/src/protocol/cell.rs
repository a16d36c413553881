//! One cell as JSON and as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::model::{Kind, Value};

/// A cell that is not of its column's kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} is no {}: write {advice}", kind.name())]
pub struct Rejected {
    /// The column's kind.
    pub kind: Kind,
    /// What was found, cut to 40 characters.
    pub found: String,
    /// What can be written.
    pub advice: &'static str,
}

/// What can be written for a kind.
fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "true or false",
        Kind::Uint8 => "an integer of 0 to 255",
        Kind::Int16 => "an integer of -32768 to 32767",
        Kind::Uint16 => "an integer of 0 to 65535",
        Kind::Int32 => "an integer of 32 bits",
        Kind::Uint32 => "an integer of 32 bits, 0 or more",
        Kind::Int64 => "an integer of 64 bits",
        Kind::Uint64 => "an integer of 64 bits, 0 or more",
        Kind::Float => "a number of 32 bits, or \"NaN\", \"inf\", \"-inf\"",
        Kind::Double => "a number, or \"NaN\", \"inf\", \"-inf\"",
        Kind::String => "text",
        Kind::Blob => "text in base64 (RFC 4648, with padding)",
    }
}

fn rejected(kind: Kind, found: &str) -> Rejected {
    let found = found.chars().take(40).collect();
    Rejected { kind, found, advice: advice(kind) }
}

fn is_in_range(kind: Kind, value: i128) -> bool {
    let bits = 8 * kind.width_bytes().unwrap_or_default() as u32;
    match kind {
        Kind::Int16 | Kind::Int32 | Kind::Int64 => {
            (-(1 << (bits - 1))..1 << (bits - 1)).contains(&value)
        }
        Kind::Uint8 | Kind::Uint16 | Kind::Uint32 | Kind::Uint64 => (0..1 << bits).contains(&value),
        _ => false,
    }
}

fn float(kind: Kind, value: f64) -> Option<Value> {
    let narrow = value as f32;
    match kind {
        Kind::Float if narrow.is_infinite() && value.is_finite() => None,
        Kind::Float => Some(Value::Float(narrow)),
        Kind::Double => Some(Value::Double(value)),
        _ => None,
    }
}

/// The value of a cell that is written in JSON.
///
/// # Errors
/// When it is of another kind.
pub fn cell_from_json(kind: Kind, json: &Json) -> Result<Value, Rejected> {
    let read = match (json, kind) {
        (Json::Null, _) => Some(Value::Null),
        (Json::Bool(value), Kind::Bool) => Some(Value::Bool(*value)),
        (Json::Number(number), Kind::Float | Kind::Double) => {
            number.as_f64().and_then(|value| float(kind, value))
        }
        (Json::Number(number), _) => {
            let value = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            // `-0` is read as a double.
            let is_minus_zero = number.as_f64().map(f64::to_bits) == Some((-0.0_f64).to_bits());
            let value = value.or(is_minus_zero.then_some(0));
            value.filter(|value| is_in_range(kind, *value)).map(Value::Integer)
        }
        (Json::String(text), Kind::String) => Some(Value::Text(text.clone())),
        (Json::String(text), Kind::Blob) => STANDARD.decode(text).ok().map(Value::Bytes),
        (Json::String(text), Kind::Float | Kind::Double) => match text.as_str() {
            "NaN" | "inf" | "-inf" => text.parse().ok().and_then(|value| float(kind, value)),
            _ => None,
        },
        _ => None,
    };
    read.ok_or_else(|| rejected(kind, &json.to_string()))
}

/// The value of a cell that is written as text, as in CSV; nothing is no value.
///
/// # Errors
/// When it is of another kind.
pub fn cell_from_text(kind: Kind, text: &str) -> Result<Value, Rejected> {
    let read = match kind {
        _ if text.is_empty() => Some(Value::Null),
        Kind::Bool => match text {
            "true" | "1" => Some(Value::Bool(true)),
            "false" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        Kind::Float | Kind::Double => {
            // A number beyond all doubles is read as infinite, too.
            let is_meant = |value: &f64| value.is_finite() || !text.contains(char::is_numeric);
            text.parse().ok().filter(is_meant).and_then(|value| float(kind, value))
        }
        Kind::String => Some(Value::Text(text.to_owned())),
        Kind::Blob => STANDARD.decode(text).ok().map(Value::Bytes),
        _ => {
            let value = text.parse().ok().filter(|value| is_in_range(kind, *value));
            value.map(Value::Integer)
        }
    };
    read.ok_or_else(|| rejected(kind, &format!("{text:?}")))
}

/// A cell in JSON: [`cell_from_json`] reads the same value of it.
pub fn cell_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::from(*value),
        Value::Integer(value) => match i64::try_from(*value) {
            Ok(value) => Json::from(value),
            Err(_) => Json::from(*value as u64),
        },
        // The shortest digits that mean this float, not those of the double that it is.
        Value::Float(value) if value.is_finite() => {
            Json::from(value.to_string().parse::<f64>().unwrap_or_default())
        }
        Value::Double(value) if value.is_finite() => Json::from(*value),
        Value::Float(value) => Json::from(value.to_string()),
        Value::Double(value) => Json::from(value.to_string()),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => Json::from(STANDARD.encode(bytes)),
    }
}

/// A cell as text: [`cell_from_text`] reads the same value of it, but for empty text.
pub fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        // As in JSON: `1e+300`, and not 301 digits.
        Value::Float(_) | Value::Double(_) => match cell_json(value) {
            Json::String(text) => text,
            number => number.to_string(),
        },
        Value::Text(text) => text.clone(),
        Value::Bytes(bytes) => STANDARD.encode(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cells, KINDS};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn cells_of_every_kind_are_read_or_rejected_with_what_can_be_written() {
        for (kind, json, text, value) in [
            (Kind::Bool, json!(true), "1", Value::Bool(true)),
            (Kind::Uint8, json!(255), "255", Value::Integer(255)),
            (Kind::Int16, json!(-32_768), "-32768", Value::Integer(-32_768)),
            (
                Kind::Uint64,
                json!(u64::MAX),
                "18446744073709551615",
                Value::Integer(u64::MAX.into()),
            ),
            (Kind::Float, json!(0.1), "0.1", Value::Float(0.1)),
            (Kind::Float, json!("-inf"), "-inf", Value::Float(f32::NEG_INFINITY)),
            (Kind::Double, json!(3), "3", Value::Double(3.0)),
            (Kind::Double, json!("inf"), "infinity", Value::Double(f64::INFINITY)),
            (Kind::Int32, json!(-0.0), "-0", Value::Integer(0)),
            (Kind::String, json!("é"), "é", Value::Text("é".to_owned())),
            (Kind::Blob, json!("AAE="), "AAE=", Value::Bytes(vec![0, 1])),
            (Kind::Blob, json!(null), "", Value::Null),
        ] {
            assert_eq!(cell_from_json(kind, &json), Ok(value.clone()), "{json}");
            assert_eq!(cell_from_text(kind, text), Ok(value), "{text}");
        }
        for (kind, json, text) in [
            (Kind::Bool, json!(1), "yes"),
            (Kind::Uint8, json!(256), "256"),
            (Kind::Int32, json!(1.5), "1.5"),
            (Kind::Int64, json!(9_223_372_036_854_775_808_u64), "9223372036854775808"),
            (Kind::Float, json!(1e39), "1e39"),
            (Kind::Float, json!("1e400"), "1e400"),
            (Kind::Double, json!("-1e400"), "-1e400"),
            (Kind::Double, json!("x"), "x"),
            (Kind::Blob, json!("A"), "A"),
        ] {
            let said = cell_from_json(kind, &json).expect_err("rejected").to_string();
            assert!(said.contains(&format!("is no {}: write ", kind.name())), "{said}");
            assert!(cell_from_text(kind, text).is_err(), "{text}");
        }
        for (value, text) in [
            (Value::Float(0.1), "0.1"),
            (Value::Float(3.4e38), "3.4e+38"),
            (Value::Float(f32::from_bits(1)), "1e-45"),
            (Value::Float(-0.0), "-0.0"),
            (Value::Double(1.0), "1.0"),
            (Value::Double(1e300), "1e+300"),
            (Value::Double(5e-324), "5e-324"),
        ] {
            assert_eq!(cell_text(&value), text);
            assert_eq!(cell_json(&value).to_string(), text);
        }
        assert_eq!(cell_text(&Value::Double(f64::NEG_INFINITY)), "-inf");
    }

    proptest! {
        #[test]
        fn whatever_a_column_holds_is_read_again(bytes in prop::collection::vec(any::<u8>(), 8)) {
            for (kind, _) in KINDS {
                let width = kind.width_bytes().unwrap_or(8);
                let ends = if kind.width_bytes().is_none() { vec![8] } else { Vec::new() };
                let bytes = bytes[..width].to_vec();
                let cells = Cells::of_parts(kind, 1, bytes, ends, Vec::new());
                let Some(cells) = cells else { continue };
                let value = cells.value(0);
                let mut again = Cells::new(kind);
                let read = cell_from_json(kind, &cell_json(&value)).expect("read");
                again.push(&read).expect("of its kind");
                if !matches!(value, Value::Float(f) if f.is_nan())
                    && !matches!(value, Value::Double(f) if f.is_nan()) {
                    prop_assert_eq!(again.bytes(), cells.bytes());
                    prop_assert_eq!(cell_from_text(kind, &cell_text(&value)), Ok(value));
                }
            }
        }
    }
}
