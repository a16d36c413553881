//! A condition on the payload, as `where=` has it: `value>=20.5`, `note is null`.

use super::cell::cell_from_text;
use crate::model::{ColumnSpec, Condition, Kind, Test, Value, has_order};

/// The signs of tests; of two that begin alike the longer is first.
const SIGNS: [(&str, Test); 8] = [
    (">=", Test::AtLeast),
    ("<=", Test::AtMost),
    ("!=", Test::NotEqual),
    ("<>", Test::NotEqual),
    ("==", Test::Equal),
    ("=", Test::Equal),
    ("<", Test::Less),
    (">", Test::More),
];

/// The condition that is written, on a folder with these columns.
///
/// # Errors
/// When it is none; the error says what can be written.
pub fn condition(written: &str, columns: &[ColumnSpec]) -> Result<Condition, String> {
    // No name begins or ends with a space.
    let written = written.trim_start();
    // The longest name that it begins with: names may have signs in them.
    let named = columns.iter().enumerate().filter_map(|(place, column)| {
        let rest = written.strip_prefix(column.name.as_str())?.trim();
        let test = test(rest)?;
        Some((column.name.len(), place, column.kind, test))
    });
    let Some((_, column, kind, (test, text))) = named.max_by_key(|(length, ..)| *length) else {
        let known: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        return Err(format!(
            "write COLUMN, then =, !=, <, <=, > or >= and a value, or \"is null\" or \"is not \
             null\"; the columns are {}",
            known.join(", ")
        ));
    };
    if test.needs_order() && !has_order(kind) {
        return Err(format!("a {} is compared with = and != only", kind.name()));
    }
    let value = match (test, kind) {
        (Test::IsNull | Test::IsNotNull, _) => Value::Null,
        // No text is a string, too.
        (_, Kind::String) => Value::Text(unquoted(text)?.to_owned()),
        (_, _) if text.is_empty() => {
            return Err("a value is missing; or write \"is null\"".to_owned());
        }
        _ => cell_from_text(kind, text).map_err(|why| why.to_string())?,
    };
    Ok(Condition { column, test, value })
}

/// Text as it is, or what quotes around it hold.
fn unquoted(text: &str) -> Result<&str, String> {
    let Some(quote) = text.chars().next().filter(|sign| ['"', '\''].contains(sign)) else {
        return Ok(text);
    };
    let held = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    held.ok_or_else(|| format!("the quote {quote} isn't closed: a value in quotes ends with it"))
}

/// The test that text begins with, and what follows it.
fn test(text: &str) -> Option<(Test, &str)> {
    let words: Vec<_> = text.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["is", "null"] => return Some((Test::IsNull, "")),
        ["is", "not", "null"] => return Some((Test::IsNotNull, "")),
        _ => {}
    }
    let sign = SIGNS.iter().find_map(|(sign, test)| Some((*test, text.strip_prefix(sign)?)));
    sign.map(|(test, value)| (test, value.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_by_its_columns_or_says_what_can_be_written() {
        let columns =
            [("v", Kind::Float), ("v>x", Kind::Int16), ("note", Kind::String), ("ok", Kind::Bool)];
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        let columns = columns.map(column);
        let is = |column, test, value| Ok(Condition { column, test, value });
        for (written, expected) in [
            ("v>=20.5", is(0, Test::AtLeast, Value::Float(20.5))),
            ("v < -1", is(0, Test::Less, Value::Float(-1.0))),
            ("v>x>3", is(1, Test::More, Value::Integer(3))),
            ("note=a b", is(2, Test::Equal, Value::Text("a b".to_owned()))),
            ("note=\" a \"", is(2, Test::Equal, Value::Text(" a ".to_owned()))),
            ("note<>'it''", is(2, Test::NotEqual, Value::Text("it'".to_owned()))),
            ("note!=", is(2, Test::NotEqual, Value::Text(String::new()))),
            ("note Is NULL", is(2, Test::IsNull, Value::Null)),
            ("ok is not null", is(3, Test::IsNotNull, Value::Null)),
            ("ok==true", is(3, Test::Equal, Value::Bool(true))),
        ] {
            assert_eq!(condition(written, &columns), expected, "{written}");
        }
        for (written, said) in [
            ("x=1", "the columns are v, v>x, note, ok"),
            ("v", "write COLUMN, then ="),
            ("v=high", "\"high\" is no float"),
            ("v=", "a value is missing"),
            ("note=\"a", "isn't closed"),
            ("note<a", "a string is compared with = and != only"),
            ("ok>=true", "a bool is compared"),
        ] {
            let why = condition(written, &columns).expect_err("refused");
            assert!(why.contains(said), "{written}: {why}");
        }
    }
}
