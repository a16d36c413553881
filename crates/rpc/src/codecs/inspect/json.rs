//! JSON: brackets, commas, colons and quotes say where something ends, as lengths do elsewhere.

use super::cursor::{Cursor, shown};
use super::piece::{Cause, Fault};

/// Reads a value to the end, with what may lie around it.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    value(cursor, "")?;
    spaces(cursor);
    match cursor.is_at_end() {
        true => Ok(()),
        false => cursor.fault(cursor.at, "something follows the value"),
    }
}

fn spaces(cursor: &mut Cursor<'_>) {
    while matches!(cursor.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        cursor.at += 1;
    }
    cursor.note(Cause::Padding, "", "space", "");
}

/// Takes this character, with the space before it.
fn expect(cursor: &mut Cursor<'_>, character: u8, field: &str) -> Result<(), Fault> {
    spaces(cursor);
    let at = cursor.at;
    let name = char::from(character);
    match cursor.peek() {
        Some(found) if found == character => {
            cursor.byte("a character")?;
            cursor.note(Cause::Lengths, field, "delimiter", name);
            Ok(())
        }
        Some(found) => {
            cursor.fault(at, format!("{:?} where {name:?} should be", char::from(found)))
        }
        None => cursor.fault(at, format!("it ends where {name:?} should be")),
    }
}

fn value(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    spaces(cursor);
    match cursor.peek() {
        Some(b'{') => list(cursor, field, b'{', b'}', &mut |cursor, _| {
            spaces(cursor);
            let name = text(cursor, field, Cause::Keys)?;
            expect(cursor, b':', field)?;
            value(cursor, &name)
        }),
        Some(b'[') => list(cursor, field, b'[', b']', &mut |cursor, index| {
            value(cursor, &format!("{field}[{index}]"))
        }),
        Some(b'"') => text(cursor, field, Cause::Payload).map(drop),
        _ => word(cursor, field),
    }
}

type ReadEach<'r> = &'r mut dyn FnMut(&mut Cursor<'_>, usize) -> Result<(), Fault>;

fn list(
    cursor: &mut Cursor<'_>,
    field: &str,
    begin: u8,
    end: u8,
    read: ReadEach<'_>,
) -> Result<(), Fault> {
    expect(cursor, begin, field)?;
    cursor.within(|cursor| {
        spaces(cursor);
        if cursor.peek() == Some(end) {
            return Ok(());
        }
        let mut index = 0;
        loop {
            read(cursor, index)?;
            index += 1;
            spaces(cursor);
            if cursor.peek() != Some(b',') {
                return Ok(());
            }
            expect(cursor, b',', field)?;
        }
    })?;
    expect(cursor, end, field)
}

/// Takes a text with its quotes, and returns it.
fn text(cursor: &mut Cursor<'_>, field: &str, cause: Cause) -> Result<String, Fault> {
    expect(cursor, b'"', field)?;
    let begun = cursor.at;
    while cursor.peek() != Some(b'"') {
        let at = cursor.at;
        match cursor.byte("a text")? {
            b'\\' => _ = cursor.byte("what follows a backslash")?,
            control if control < b' ' => {
                return cursor.fault(at, format!("{control:02x} within a text"));
            }
            _ => {}
        }
    }
    let bytes = &cursor.all()[begun..cursor.at];
    if std::str::from_utf8(bytes).is_err() {
        return cursor.fault(begun, "a text that is no UTF-8");
    }
    let value = shown(bytes);
    cursor.note(cause, field, "string", &value[..]);
    expect(cursor, b'"', field)?;
    Ok(value.trim_matches('"').to_owned())
}

/// A number, `true`, `false` or `null`.
fn word(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    let begun = cursor.at;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    while cursor.peek().is_some_and(is_part) {
        cursor.byte("a value")?;
    }
    let written = &cursor.all()[begun..cursor.at];
    let kind = match written {
        b"" => return cursor.fault(begun, "a value is missing"),
        b"true" | b"false" => "bool",
        b"null" => "null",
        written if serde_json::from_slice::<serde_json::Number>(written).is_ok() => "number",
        written => {
            let shown = shown(written);
            return cursor.fault(begun, format!("{shown} is no value"));
        }
    };
    let value = String::from_utf8_lossy(written).into_owned();
    cursor.note(Cause::Payload, field, kind, value);
    Ok(())
}
