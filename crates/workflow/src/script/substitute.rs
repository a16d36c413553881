//! Variables in a line: `%NAME%`, `%NAME:default%`, and `%%` for one mark.

use super::Scope;

/// Values may name variables in their turn; beyond this many the line is taken for endless.
const MAX_VALUES: u32 = 1000;

/// The most bytes of a line once its variables have values.
pub(super) const MAX_LINE_BYTES: usize = 1 << 20;

/// Which generated variables win over a user's.
const GENERATED_FIRST: [&str; 5] = ["ECF_HOST", "ECF_PORT", "ECF_TRYNO", "ECF_NAME", "ECF_PASS"];

/// Returns the line with values in place of variables; `None` when one has no value, or when there
/// is no end of them. `edited` are values that a user gives for this job, before all others.
pub fn substitute(
    line: &[u8],
    scope: &Scope,
    edited: &[(String, String)],
    micro: &[u8],
) -> Option<Vec<u8>> {
    let mut line = line.to_vec();
    let (mut at, mut values, mut has_double) = (0, 0, false);
    while let Some(first) = find(&line, micro, at) {
        let inside = first + micro.len();
        let Some(second) = find(&line, micro, inside) else { break };
        let behind = second + micro.len();
        if second == inside {
            (at, has_double) = (behind, true);
            continue;
        }
        let name = std::str::from_utf8(&line[inside..second]).ok()?;
        let value = value(name, scope, edited)?.as_bytes().to_vec();
        line.splice(first..behind, value);
        // What is before it has no mark but in pairs.
        at = first;
        values += 1;
        if values > MAX_VALUES || line.len() > MAX_LINE_BYTES {
            return None;
        }
    }
    Some(if has_double { undoubled(&line, micro) } else { line })
}

/// The line with one mark in place of each pair.
fn undoubled(line: &[u8], micro: &[u8]) -> Vec<u8> {
    let (mut out, mut from) = (Vec::with_capacity(line.len()), 0);
    for place in memchr::memmem::find_iter(line, &[micro, micro].concat()) {
        out.extend_from_slice(&line[from..place + micro.len()]);
        from = place + 2 * micro.len();
    }
    out.extend_from_slice(&line[from..]);
    out
}

pub(super) fn find(line: &[u8], what: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find(line.get(from..)?, what).map(|place| place + from)
}

/// The value of what is between two marks.
fn value<'a>(inside: &'a str, scope: &'a Scope, edited: &'a [(String, String)]) -> Option<&'a str> {
    // As in ecFlow an empty one is none.
    let by_user = |name: &str| {
        let found = edited.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    };
    let is_generated =
        inside.starts_with("ECF_") && GENERATED_FIRST.iter().any(|one| inside.contains(one));
    let generated = |name: &str| scope.generated(name).filter(|_| is_generated);
    if let Some(value) = by_user(inside) {
        return Some(value);
    }
    match inside.split_once(':') {
        None => generated(inside).or_else(|| scope.any(inside)),
        Some((name, default)) => {
            // Only aliases have variables with a colon in their names.
            let value = scope.any(inside).or_else(|| by_user(name));
            let value = value.or_else(|| generated(name)).or_else(|| scope.any(name));
            Some(value.unwrap_or(default))
        }
    }
}
