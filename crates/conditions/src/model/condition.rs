//! Conditions on the payload: which records are asked for.

use std::cmp::Ordering;

use super::table::Table;
use super::value::{Kind, Value};

/// How a cell is compared. A cell without a value is none of these but [`Test::IsNull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// It is the value.
    Equal,
    /// It is another value.
    NotEqual,
    /// It is less.
    Less,
    /// It is the value, or less.
    AtMost,
    /// It is more.
    More,
    /// It is the value, or more.
    AtLeast,
    /// It has no value.
    IsNull,
    /// It has a value.
    IsNotNull,
}

impl Test {
    /// Whether it needs an order, which strings, blobs and truth values don't have here.
    pub fn needs_order(self) -> bool {
        matches!(self, Self::Less | Self::AtMost | Self::More | Self::AtLeast)
    }
}

/// What a record has to meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The column, by its place in the folder's.
    pub column: usize,
    /// How its cell is compared.
    pub test: Test,
    /// With what: of the column's kind.
    pub value: Value,
}

impl Condition {
    fn holds(&self, found: &Value) -> bool {
        match self.test {
            Test::IsNull => return *found == Value::Null,
            Test::IsNotNull => return *found != Value::Null,
            _ if *found == Value::Null => return false,
            _ => {}
        }
        let order = match (found, &self.value) {
            (Value::Integer(one), Value::Integer(other)) => Some(one.cmp(other)),
            (Value::Float(one), Value::Float(other)) => one.partial_cmp(other),
            (Value::Double(one), Value::Double(other)) => one.partial_cmp(other),
            (one, other) => (one == other).then_some(Ordering::Equal),
        };
        match self.test {
            Test::Equal => order == Some(Ordering::Equal),
            // What is no number differs from every value.
            Test::NotEqual => order != Some(Ordering::Equal),
            Test::Less => order == Some(Ordering::Less),
            Test::More => order == Some(Ordering::Greater),
            Test::AtMost => order.is_some_and(Ordering::is_le),
            Test::AtLeast => order.is_some_and(Ordering::is_ge),
            Test::IsNull | Test::IsNotNull => false,
        }
    }
}

/// Whether a column of this kind can be tested so.
pub fn has_order(kind: Kind) -> bool {
    !matches!(kind, Kind::Bool | Kind::String | Kind::Blob)
}

/// Whether a record meets all conditions.
pub(super) fn meets(payload: &Table, row: usize, conditions: &[Condition]) -> bool {
    conditions.iter().all(|condition| {
        let cells = payload.columns.get(condition.column);
        cells.is_some_and(|cells| condition.holds(&cells.value(row)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_compared_as_numbers_and_what_has_no_value_is_none() {
        let holds =
            |test, value: Value, found: &Value| Condition { column: 0, test, value }.holds(found);
        let one = || Value::Integer(1);
        assert!(holds(Test::AtLeast, one(), &Value::Integer(1)));
        assert!(holds(Test::More, one(), &Value::Integer(1 << 63)));
        assert!(!holds(Test::Less, one(), &one()) && holds(Test::Less, one(), &Value::Integer(-1)));
        for test in [Test::Equal, Test::NotEqual, Test::AtMost, Test::More] {
            assert!(!holds(test, one(), &Value::Null), "{test:?}");
        }
        assert!(holds(Test::IsNull, Value::Null, &Value::Null));
        assert!(holds(Test::IsNotNull, Value::Null, &one()));
        let nan = Value::Double(f64::NAN);
        assert!(holds(Test::NotEqual, Value::Double(0.0), &nan));
        assert!(!holds(Test::AtMost, Value::Double(0.0), &nan));
        assert!(!holds(Test::Equal, nan.clone(), &nan));
        let text = |text: &str| Value::Text(text.to_owned());
        assert!(holds(Test::Equal, text("a"), &text("a")));
        assert!(holds(Test::NotEqual, text("a"), &text("b")));
    }
}
