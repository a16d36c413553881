//! MessagePack.

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

/// What a marker begins.
enum Begun {
    /// A value, whose bytes follow; none of a whole value.
    Number(&'static str, u64),
    Whole(&'static str, String),
    Text(u64),
    Bytes(&'static str, u64),
    List(u64),
    Map(u64),
}

fn begun(cursor: &mut Cursor<'_>) -> Result<Begun, Fault> {
    let at = cursor.at;
    let marker = cursor.byte("a marker")?;
    let of = |cursor: &mut Cursor<'_>, bytes: u64| -> Result<u64, Fault> {
        let taken = cursor.take(bytes, "a length")?;
        Ok(taken.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    Ok(match marker {
        0x00..=0x7f => Begun::Whole("positive fixint", marker.to_string()),
        0x80..=0x8f => Begun::Map(u64::from(marker & 0x0f)),
        0x90..=0x9f => Begun::List(u64::from(marker & 0x0f)),
        0xa0..=0xbf => Begun::Text(u64::from(marker & 0x1f)),
        0xc0 => Begun::Whole("nil", "nil".to_owned()),
        0xc1 => return cursor.fault(at, "c1 is no marker"),
        0xc2 | 0xc3 => Begun::Whole("bool", (marker == 0xc3).to_string()),
        0xc4..=0xc6 => Begun::Bytes("bin", of(cursor, 1 << (marker - 0xc4))?),
        // The type of an extension is a byte of it.
        0xc7..=0xc9 => Begun::Bytes("ext", of(cursor, 1 << (marker - 0xc7))? + 1),
        0xca => Begun::Number("float 32", 4),
        0xcb => Begun::Number("float 64", 8),
        0xcc => Begun::Number("uint 8", 1),
        0xcd => Begun::Number("uint 16", 2),
        0xce => Begun::Number("uint 32", 4),
        0xcf => Begun::Number("uint 64", 8),
        0xd0 => Begun::Number("int 8", 1),
        0xd1 => Begun::Number("int 16", 2),
        0xd2 => Begun::Number("int 32", 4),
        0xd3 => Begun::Number("int 64", 8),
        0xd4..=0xd8 => Begun::Bytes("fixext", (1 << (marker - 0xd4)) + 1),
        0xd9..=0xdb => Begun::Text(of(cursor, 1 << (marker - 0xd9))?),
        0xdc | 0xdd => Begun::List(of(cursor, 2 << (marker - 0xdc))?),
        0xde | 0xdf => Begun::Map(of(cursor, 2 << (marker - 0xde))?),
        0xe0..=0xff => Begun::Whole("negative fixint", (marker as i8).to_string()),
    })
}

fn value(cursor: &mut Cursor<'_>, field: &str, cause: Cause) -> Result<(), Fault> {
    let at = cursor.at;
    match begun(cursor)? {
        Begun::Whole(kind, value) => cursor.note(cause, field, kind, value),
        Begun::Number(kind, bytes) => {
            cursor.note(Cause::Keys, field, "marker", kind);
            let taken = cursor.take(bytes, kind)?;
            cursor.note(cause, field, kind, number(kind, taken));
        }
        Begun::Text(length) => {
            cursor.note(Cause::Lengths, field, "str", length.to_string());
            let bytes = cursor.take(length, "a text")?;
            if std::str::from_utf8(bytes).is_err() {
                return cursor.fault(cursor.at - bytes.len(), "a text that is no UTF-8");
            }
            cursor.note(cause, field, "str", shown(bytes));
        }
        Begun::Bytes(kind, length) => {
            cursor.note(Cause::Lengths, field, kind, length.to_string());
            let bytes = cursor.take(length, kind)?;
            cursor.note(cause, field, kind, many(bytes.len(), "byte"));
        }
        Begun::List(count) => {
            cursor.note(Cause::Lengths, field, "array", format!("of {count}"));
            check(cursor, at, count)?;
            cursor.within(|cursor| {
                (0..count).try_for_each(|at| value(cursor, &format!("{field}[{at}]"), cause))
            })?;
        }
        Begun::Map(count) => {
            cursor.note(Cause::Lengths, field, "map", format!("of {count}"));
            check(cursor, at, count.saturating_mul(2))?;
            cursor.within(|cursor| {
                (0..count).try_for_each(|_| {
                    let key = cursor.at;
                    value(cursor, field, Cause::Keys)?;
                    let name = shown(&cursor.all()[key..cursor.at]);
                    value(cursor, &name_of(cursor, &name), cause)
                })
            })?;
        }
    }
    Ok(())
}

/// The name that the last piece is, if it is a text.
fn name_of(cursor: &Cursor<'_>, otherwise: &str) -> String {
    match cursor.pieces.last() {
        Some(piece) if piece.cause == Cause::Keys => piece.value.trim_matches('"').to_owned(),
        _ => otherwise.to_owned(),
    }
}

/// Each value takes a byte at least.
fn check(cursor: &Cursor<'_>, at: usize, count: u64) -> Result<(), Fault> {
    match count > cursor.left() as u64 {
        true => cursor.too_short(at, count),
        false => Ok(()),
    }
}

fn number(kind: &str, bytes: &[u8]) -> String {
    let bits = bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let unused = 64 - 8 * bytes.len() as u32;
    match kind {
        "float 32" => format!("{:?}", f32::from_bits(bits as u32)),
        "float 64" => format!("{:?}", f64::from_bits(bits)),
        kind if kind.starts_with("int") => (((bits << unused) as i64) >> unused).to_string(),
        _ => bits.to_string(),
    }
}
