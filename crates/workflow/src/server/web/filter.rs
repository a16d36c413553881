//! `filter=a.b[0].c`: one part of an answer.

use serde_json::Value;

use super::fault::Fault;
use super::json::rendered;

/// The largest answer of which a part is taken: its parts are copied.
const MOST: usize = 64 << 20;

/// The part of an answer that a path names; `null` where there is none.
///
/// # Errors
/// When the answer is too large or too deep, or the path can't be read.
pub(super) fn filtered(bytes: &[u8], path: &str) -> Result<Vec<u8>, Fault> {
    if bytes.len() > MOST {
        let message = format!("an answer of more than {} MiB is not filtered", MOST >> 20);
        return Err(Fault::bad(message, "ask for a smaller part of the tree"));
    }
    let fix = "leave the filter out";
    let whole: Value = serde_json::from_slice(bytes)
        .map_err(|why| Fault::bad(format!("the answer can't be filtered: {why}"), fix))?;
    let mut at = Some(&whole);
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let (name, place) = step(name)?;
        at = at.and_then(|value| if name.is_empty() { Some(value) } else { value.get(name) });
        if let Some(place) = place {
            at = at.and_then(|value| value.get(place));
        }
    }
    rendered(at.unwrap_or(&Value::Null))
}

/// A name, and a place in the list that it names.
fn step(step: &str) -> Result<(&str, Option<usize>), Fault> {
    let Some((name, place)) = step.split_once('[') else { return Ok((step, None)) };
    let number = place.strip_suffix(']').and_then(|place| place.parse().ok());
    match number {
        Some(number) => Ok((name, Some(number))),
        None => {
            let fix = "write a filter as a.b[0].c";
            Err(Fault::bad(format!("filter: {step:?} names no place in a list"), fix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::filtered;

    #[test]
    fn a_filter_names_a_member_or_a_place_and_else_nothing() {
        let part = |path: &str| {
            let bytes = filtered(br#"{"a":{"b":[{"c":1},2]}}"#, path).expect("a part");
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!(part("a.b[0].c"), "1");
        assert_eq!(part("a.b[1]"), "2");
        assert_eq!((part("x.y"), part("a.b[7]"), part("a.c")).0, "null");
        assert_eq!(part("a.b[7]"), "null");
        filtered(b"{}", "a[x]").expect_err("no place");
        filtered(b"{}", "a[1").expect_err("no place");
    }
}
