//! CBOR (RFC 8949).

use super::cursor::{Cursor, shown};
use super::piece::{Cause, Fault};
use base::many;

/// Reads values to the end.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    while !cursor.is_at_end() {
        value(cursor, "", Cause::Payload)?;
    }
    Ok(())
}

/// What a value begins with: its major type, and its number, or none where it goes on to a break.
struct Head {
    major: u8,
    minor: u8,
    number: Option<u64>,
}

const BREAK: u8 = 0xff;

fn head(cursor: &mut Cursor<'_>) -> Result<Head, Fault> {
    let at = cursor.at;
    let byte = cursor.byte("a value")?;
    let (major, minor) = (byte >> 5, byte & 0x1f);
    let number = match minor {
        0..24 => Some(u64::from(minor)),
        24..28 => {
            let taken = cursor.take(1 << (minor - 24), "a value's number")?;
            Some(taken.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
        }
        31 if matches!(major, 2..=5) => None,
        _ => return cursor.fault(at, format!("{byte:02x} begins no value")),
    };
    Ok(Head { major, minor, number })
}

fn value(cursor: &mut Cursor<'_>, field: &str, cause: Cause) -> Result<(), Fault> {
    let at = cursor.at;
    let Head { major, minor, number } = head(cursor)?;
    match (major, number) {
        (0, Some(number)) => cursor.note(cause, field, "unsigned", number.to_string()),
        (1, Some(number)) => {
            cursor.note(cause, field, "negative", (-1 - i128::from(number)).to_string());
        }
        (2 | 3, Some(length)) => chunk(cursor, field, major, length, cause)?,
        (2 | 3, None) => {
            cursor.note(Cause::Lengths, field, word(major), "in chunks");
            cursor.within(|cursor| {
                to_break(cursor, |cursor| {
                    let at = cursor.at;
                    match head(cursor)? {
                        Head { major: inner, number: Some(length), .. } if inner == major => {
                            chunk(cursor, field, major, length, cause)
                        }
                        _ => cursor.fault(at, "a chunk of another type"),
                    }
                })
            })?;
        }
        (4, count) => {
            cursor.note(Cause::Lengths, field, "array", of(count));
            check(cursor, at, count)?;
            let mut index = 0;
            several(cursor, count, |cursor| {
                let name = format!("{field}[{index}]");
                index += 1;
                value(cursor, &name, cause)
            })?;
        }
        (5, count) => {
            cursor.note(Cause::Lengths, field, "map", of(count));
            check(cursor, at, count.map(|count| count.saturating_mul(2)))?;
            several(cursor, count, |cursor| {
                value(cursor, field, Cause::Keys)?;
                let name = cursor.pieces.last().map_or("", |piece| piece.value.trim_matches('"'));
                let name = name.to_owned();
                value(cursor, &name, cause)
            })?;
        }
        (6, Some(tag)) => {
            cursor.note(Cause::Keys, field, "tag", tag.to_string());
            cursor.within(|cursor| value(cursor, field, cause))?;
        }
        (_, number) => simple(cursor, field, minor, number.unwrap_or(0), cause),
    }
    Ok(())
}

fn word(major: u8) -> &'static str {
    if major == 2 { "bytes" } else { "text" }
}

fn of(count: Option<u64>) -> String {
    count.map_or("to its break".to_owned(), |count| format!("of {count}"))
}

fn simple(cursor: &mut Cursor<'_>, field: &str, minor: u8, number: u64, cause: Cause) {
    let (kind, value) = match minor {
        20 => ("bool", "false".to_owned()),
        21 => ("bool", "true".to_owned()),
        22 => ("null", "null".to_owned()),
        23 => ("undefined", "undefined".to_owned()),
        25 => ("float 16", half(number as u16).to_string()),
        26 => ("float 32", format!("{:?}", f32::from_bits(number as u32))),
        27 => ("float 64", format!("{:?}", f64::from_bits(number))),
        _ => ("simple", number.to_string()),
    };
    cursor.note(cause, field, kind, value);
}

/// A number of 16 bits with a fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, f64::from(bits & 0x3ff));
    let value = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 { -value } else { value }
}

fn chunk(
    cursor: &mut Cursor<'_>,
    field: &str,
    major: u8,
    length: u64,
    cause: Cause,
) -> Result<(), Fault> {
    cursor.note(Cause::Lengths, field, word(major), length.to_string());
    let bytes = cursor.take(length, word(major))?;
    if major == 3 && std::str::from_utf8(bytes).is_err() {
        return cursor.fault(cursor.at - bytes.len(), "a text that is no UTF-8");
    }
    let value = if major == 3 { shown(bytes) } else { many(length, "byte") };
    cursor.note(cause, field, word(major), value);
    Ok(())
}

/// Each value takes a byte at least.
fn check(cursor: &Cursor<'_>, at: usize, count: Option<u64>) -> Result<(), Fault> {
    match count {
        Some(count) if count > cursor.left() as u64 => cursor.too_short(at, count),
        _ => Ok(()),
    }
}

fn several(
    cursor: &mut Cursor<'_>,
    count: Option<u64>,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    cursor.within(|cursor| match count {
        Some(count) => (0..count).try_for_each(|_| read(cursor)),
        None => to_break(cursor, read),
    })
}

fn to_break(
    cursor: &mut Cursor<'_>,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    while cursor.peek() != Some(BREAK) {
        read(cursor)?;
    }
    cursor.byte("a break")?;
    cursor.note(Cause::Lengths, "", "break", "");
    Ok(())
}
