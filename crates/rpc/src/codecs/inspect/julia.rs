//! Julia's standard library Serialization, version 15 and its neighbours: header, tags, numbers,
//! texts, tuples and arrays. A value of another kind is noted as a whole with all that follows it.

use super::cursor::{Cursor, shown};
use super::piece::{Cause, Fault};

/// Tags of what is read. Tags from [`tag::EMPTY_TUPLE`] on are whole values.
mod tag {
    pub(super) const ITSELF: u8 = 0;
    pub(super) const SYMBOL: u8 = 1;
    pub(super) const TUPLE: u8 = 20;
    pub(super) const ARRAY: u8 = 21;
    pub(super) const EXPR: u8 = 22;
    pub(super) const STRING: u8 = 33;
    pub(super) const SIMPLE_VECTOR: u8 = 34;
    pub(super) const UNDEFINED: u8 = 41;
    pub(super) const REFERENCE: u8 = 42;
    pub(super) const LONG_REFERENCE: u8 = 43;
    pub(super) const SHORT_REFERENCE: u8 = 44;
    pub(super) const LONG_TUPLE: u8 = 45;
    pub(super) const LONG_SYMBOL: u8 = 46;
    pub(super) const LONG_EXPR: u8 = 47;
    pub(super) const LONG_STRING: u8 = 48;
    pub(super) const SHORT_INT64: u8 = 49;
    pub(super) const HEADER: u8 = 55;
    pub(super) const SHARED: u8 = 57;
    pub(super) const EMPTY_TUPLE: u8 = 68;
    pub(super) const BOOL: u8 = 69;
    pub(super) const ANY: u8 = 70;
    pub(super) const ZERO32: u8 = 0xbe;
    pub(super) const ZERO64: u8 = 0xdf;
}

/// Types with a tag of their own, from tag 1 on; of numbers with how many bytes they have.
const TYPES: [(&str, u64); 33] = [
    ("Symbol", 0),
    ("Int8", 1),
    ("UInt8", 1),
    ("Int16", 2),
    ("UInt16", 2),
    ("Int32", 4),
    ("UInt32", 4),
    ("Int64", 8),
    ("UInt64", 8),
    ("Int128", 16),
    ("UInt128", 16),
    ("Float16", 2),
    ("Float32", 4),
    ("Float64", 8),
    ("Char", 4),
    ("DataType", 0),
    ("Union", 0),
    ("UnionAll", 0),
    ("TypeName", 0),
    ("Tuple", 0),
    ("Array", 0),
    ("Expr", 0),
    ("LineNumberNode", 0),
    ("LabelNode", 0),
    ("GotoNode", 0),
    ("QuoteNode", 0),
    ("CodeInfo", 0),
    ("TypeVar", 0),
    ("Box", 0),
    ("MethodInstance", 0),
    ("Module", 0),
    ("Task", 0),
    ("String", 0),
];

/// Values with a tag of their own, from [`tag::EMPTY_TUPLE`] on.
const VALUES: [&str; 11] = [
    "()",
    "Bool",
    "Any",
    "Union{}",
    "TypeofBottom",
    "Type",
    "svec()",
    "Tuple{}",
    "false",
    "true",
    "nothing",
];

fn type_of(tag: u8) -> Option<(&'static str, u64)> {
    TYPES.get(usize::from(tag).checked_sub(1)?).copied()
}

/// Reads values to the end.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    if cursor.peek() == Some(tag::HEADER) {
        header(cursor)?;
    }
    while !cursor.is_at_end() {
        value(cursor, "")?;
    }
    Ok(())
}

fn header(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    let begun = cursor.at;
    let [_, j, l] = cursor.array("the header")?;
    if [j, l] != *b"JL" {
        return cursor.fault(begun, "a header begins with 37 4a 4c");
    }
    cursor.note(Cause::Header, "", "header", "Julia");
    let version = cursor.byte("the version")?;
    cursor.note(Cause::Header, "", "version", version.to_string());
    let flags = cursor.byte("the flags")?;
    let order = if flags & 3 == 0 { "little-endian" } else { "big-endian" };
    let width = match flags >> 2 & 3 {
        0 => "32 bits",
        1 => "64 bits",
        _ => return cursor.fault(begun + 4, "no such machine"),
    };
    cursor.note(Cause::Header, "", "machine", format!("{order}, {width}"));
    if order == "big-endian" {
        return cursor.fault(begun + 4, "numbers of another order of bytes aren't read");
    }
    cursor.take(3, "the header")?;
    cursor.note(Cause::Padding, "", "reserved", "");
    Ok(())
}

fn value(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    let begun = cursor.at;
    let tag = cursor.byte("a tag")?;
    let key = |cursor: &mut Cursor<'_>, word: &str| {
        cursor.note(Cause::Keys, field, "tag", word);
    };
    match tag {
        tag::ITSELF => {
            let of = cursor.byte("a tag")?;
            let name = type_of(of).map_or("of a symbol", |(name, _)| name);
            cursor.note(Cause::Payload, field, "tag itself", name);
            Ok(())
        }
        tag::STRING | tag::SYMBOL | tag::LONG_STRING | tag::LONG_SYMBOL => text(cursor, field, tag),
        tag::SHORT_INT64 => {
            key(cursor, "Int64 of 32 bits");
            let number = i32::from_le_bytes(cursor.array("a number")?);
            cursor.note(Cause::Payload, field, "Int64", number.to_string());
            Ok(())
        }
        tag::TUPLE | tag::LONG_TUPLE | tag::SIMPLE_VECTOR => {
            key(cursor, "tuple");
            let count = count(cursor, field, tag == tag::TUPLE)?;
            several(cursor, field, count)
        }
        tag::EXPR | tag::LONG_EXPR => {
            key(cursor, "Expr");
            let count = count(cursor, field, tag == tag::EXPR)?;
            several(cursor, field, count + 1)
        }
        tag::ARRAY => {
            key(cursor, "Array");
            cursor.within(|cursor| array(cursor, field))
        }
        tag::SHARED => {
            key(cursor, "may be referred to");
            cursor.within(|cursor| value(cursor, field))
        }
        tag::UNDEFINED => {
            key(cursor, "undefined");
            Ok(())
        }
        tag::SHORT_REFERENCE => reference(cursor, field, 2),
        tag::REFERENCE => reference(cursor, field, 4),
        tag::LONG_REFERENCE => reference(cursor, field, 8),
        tag::HEADER => {
            // A stream may begin anew.
            cursor.at = begun;
            header(cursor)
        }
        tag::ZERO64.. => whole(cursor, field, "Int64", (tag - tag::ZERO64).to_string()),
        tag::ZERO32.. => whole(cursor, field, "Int32", (tag - tag::ZERO32).to_string()),
        tag::EMPTY_TUPLE.. => match VALUES.get(usize::from(tag - tag::EMPTY_TUPLE)) {
            Some(name) => whole(cursor, field, "value", (*name).to_owned()),
            None => whole(cursor, field, "value", format!("of tag {tag}, such as a symbol")),
        },
        _ => match type_of(tag) {
            Some((name, bytes @ 1..)) => {
                key(cursor, name);
                number(cursor, field, name, bytes)
            }
            named => {
                let name = named.map_or_else(|| format!("tag {tag}"), |(name, _)| name.to_owned());
                key(cursor, &name);
                cursor.rest(&name, "not read further");
                Ok(())
            }
        },
    }
}

/// A value that is one byte.
fn whole(cursor: &mut Cursor<'_>, field: &str, kind: &str, value: String) -> Result<(), Fault> {
    cursor.note(Cause::Payload, field, kind, value);
    Ok(())
}

fn text(cursor: &mut Cursor<'_>, field: &str, tag: u8) -> Result<(), Fault> {
    let is_symbol = matches!(tag, tag::SYMBOL | tag::LONG_SYMBOL);
    let kind = if is_symbol { "Symbol" } else { "String" };
    cursor.note(Cause::Keys, field, "tag", kind);
    let length = match tag {
        tag::STRING | tag::SYMBOL => u64::from(cursor.byte("a length")?),
        tag::LONG_SYMBOL => u64::from(u32::from_le_bytes(cursor.array("a length")?)),
        _ => u64::from_le_bytes(cursor.array("a length")?),
    };
    cursor.note(Cause::Lengths, field, "length", length.to_string());
    let bytes = cursor.take(length, kind)?;
    cursor.note(Cause::Payload, field, kind, shown(bytes));
    Ok(())
}

fn count(cursor: &mut Cursor<'_>, field: &str, is_byte: bool) -> Result<usize, Fault> {
    let count = match is_byte {
        true => u32::from(cursor.byte("a count")?),
        false => u32::from_le_bytes(cursor.array("a count")?),
    };
    cursor.note(Cause::Lengths, field, "count", count.to_string());
    Ok(count as usize)
}

fn several(cursor: &mut Cursor<'_>, field: &str, count: usize) -> Result<(), Fault> {
    cursor.within(|cursor| (0..count).try_for_each(|at| value(cursor, &format!("{field}[{at}]"))))
}

fn reference(cursor: &mut Cursor<'_>, field: &str, bytes: u64) -> Result<(), Fault> {
    cursor.note(Cause::Keys, field, "tag", "reference");
    number(cursor, field, "to value", bytes)
}

fn number(cursor: &mut Cursor<'_>, field: &str, kind: &str, bytes: u64) -> Result<(), Fault> {
    let mut wide = [0; 16];
    let taken = cursor.take(bytes, kind)?;
    wide[..taken.len()].copy_from_slice(taken);
    let bits = u128::from_le_bytes(wide);
    let value = match kind {
        "Int8" => (bits as i8).to_string(),
        "Int16" => (bits as i16).to_string(),
        "Int32" => (bits as i32).to_string(),
        "Int64" => (bits as i64).to_string(),
        "Int128" => (bits as i128).to_string(),
        "Float32" => format!("{:?}", f32::from_bits(bits as u32)),
        "Float64" => format!("{:?}", f64::from_bits(bits as u64)),
        "Float16" => format!("bits {bits:#06x}"),
        "Char" => {
            // Its UTF-8 lies in the highest bytes.
            let utf8 = (bits as u32).to_be_bytes();
            let length = utf8.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
            shown(&utf8[..length])
        }
        _ => bits.to_string(),
    };
    cursor.note(Cause::Payload, field, kind, value);
    Ok(())
}

/// The type of the elements, unless they are bytes; the sizes; the elements.
fn array(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    let of = match cursor.peek() {
        Some(tag::ITSELF) => {
            value(cursor, "type of elements")?;
            let tag = cursor.all()[cursor.at - 1];
            type_of(tag).filter(|(_, bytes)| *bytes > 0)
        }
        Some(tag::BOOL | tag::ANY) => {
            let tag = cursor.peek();
            value(cursor, "type of elements")?;
            Some(if tag == Some(tag::BOOL) { ("Bool", 0) } else { ("Any", 0) })
        }
        Some(tag::ZERO64.. | tag::SHORT_INT64 | tag::TUPLE) => Some(("UInt8", 1)),
        _ => None,
    };
    let Some((name, bytes)) = of else {
        cursor.rest("Array", "of elements that aren't read further");
        return Ok(());
    };
    let begun = cursor.at;
    let Some(count) = sizes(cursor)? else {
        return cursor.fault(begun, "an array's size is a number, or a tuple of them");
    };
    match (name, bytes) {
        ("Any", _) => {
            // An element has a byte at least.
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            several(cursor, field, count)
        }
        ("Bool", _) => {
            let mut left = count;
            while left > 0 {
                let begun = cursor.at;
                let run = u64::from(cursor.byte("a run of Bool")? & 0x7f);
                if run == 0 || run > left {
                    return cursor.fault(begun, "a run of Bool that is none");
                }
                left -= run;
            }
            cursor.note(Cause::Payload, field, "Bool", format!("{count} of them, in runs"));
            Ok(())
        }
        (name, bytes) => {
            let length = count.saturating_mul(bytes);
            cursor.take(length, "an array")?;
            cursor.note(Cause::Payload, field, name, format!("{count} of them"));
            Ok(())
        }
    }
}

/// How many elements there are in all.
fn sizes(cursor: &mut Cursor<'_>) -> Result<Option<u64>, Fault> {
    match cursor.byte("a size")? {
        tag @ tag::ZERO64.. => {
            let size = u64::from(tag - tag::ZERO64);
            cursor.note(Cause::Lengths, "size", "Int64", size.to_string());
            Ok(Some(size))
        }
        tag @ (tag::SHORT_INT64 | 8) => {
            let size = match tag {
                tag::SHORT_INT64 => i64::from(i32::from_le_bytes(cursor.array("a size")?)),
                _ => i64::from_le_bytes(cursor.array("a size")?),
            };
            cursor.note(Cause::Lengths, "size", "Int64", size.to_string());
            Ok(u64::try_from(size).ok())
        }
        tag::TUPLE => {
            let dimensions = cursor.byte("a number of sizes")?;
            cursor.note(Cause::Lengths, "size", "tuple", format!("of {dimensions}"));
            let mut all = Some(1u64);
            for _ in 0..dimensions {
                let size = cursor.within(sizes)?;
                all = all.zip(size).and_then(|(all, size)| all.checked_mul(size));
            }
            Ok(all)
        }
        _ => Ok(None),
    }
}
