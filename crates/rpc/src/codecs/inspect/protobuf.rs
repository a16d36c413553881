//! Protocol Buffers: with a type what it says, without one what the bytes can be.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::cursor::{Cursor, shown, zigzag};
use super::piece::{Cause, Fault};
use base::many;

/// How deep messages are guessed.
const GUESSED_DEPTH: usize = 8;

/// Reads a message to its end.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    message: Option<&MessageDescriptor>,
) -> Result<(), Fault> {
    read_as(cursor, message, 0)
}

fn read_as(
    cursor: &mut Cursor<'_>,
    message: Option<&MessageDescriptor>,
    guessed: usize,
) -> Result<(), Fault> {
    while !cursor.is_at_end() {
        if let Some(ended) = field(cursor, message, guessed)? {
            return cursor.fault(ended, "a group ends that hasn't begun");
        }
    }
    Ok(())
}

/// Reads a field; the end of a group returns where it lies.
fn field(
    cursor: &mut Cursor<'_>,
    message: Option<&MessageDescriptor>,
    guessed: usize,
) -> Result<Option<usize>, Fault> {
    let begun = cursor.at;
    let key = cursor.varint("a key")?;
    let (number, wire) = (key >> 3, key & 7);
    if number == 0 || number > (1 << 29) - 1 {
        return cursor.fault(begun, format!("{number} is no number of a field"));
    }
    let known = message.and_then(|message| message.get_field(number as u32));
    let name = match &known {
        Some(field) => format!("{number} {}", field.name()),
        None => number.to_string(),
    };
    let words = ["varint", "64 bits", "length", "group", "group's end", "32 bits"];
    let Some(word) = words.get(wire as usize) else {
        return cursor.fault(begun, format!("{wire} is no wire type"));
    };
    let own = known.as_ref().map(|field| wire_of(&field.kind()));
    let but = match (own.and_then(|own| words.get(own as usize)), &known) {
        (Some(own), Some(field)) if !fits(field, wire) => {
            format!(", and its type is sent as {own}")
        }
        (None, _) if message.is_some() => ", not known".to_owned(),
        _ => String::new(),
    };
    cursor.note(Cause::Keys, &name[..], "key", format!("field {number}, {word}{but}"));
    // What comes in another way than its type says is kept as it is.
    let typed = known.filter(|field| fits(field, wire));
    match wire {
        0 => {
            let value = cursor.varint("a number")?;
            let (kind, value) = varint(typed.as_ref(), value);
            cursor.note(Cause::Payload, name, kind, value);
        }
        1 => {
            let bits = cursor.array::<8>("a number of 64 bits")?;
            let (kind, value) = fixed64(typed.as_ref().map(FieldDescriptor::kind), bits);
            cursor.note(Cause::Payload, name, kind, value);
        }
        2 => delimited(cursor, &name, typed.as_ref(), guessed)?,
        3 => group(cursor, number, guessed)?,
        4 => return Ok(Some(begun)),
        _ => {
            let bits = cursor.array::<4>("a number of 32 bits")?;
            let (kind, value) = fixed32(typed.as_ref().map(FieldDescriptor::kind), bits);
            cursor.note(Cause::Payload, name, kind, value);
        }
    }
    Ok(None)
}

/// The wire type of a kind that isn't packed.
fn wire_of(kind: &Kind) -> u64 {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => 1,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => 5,
        Kind::String | Kind::Bytes | Kind::Message(_) => 2,
        _ => 0,
    }
}

fn fits(field: &FieldDescriptor, wire: u64) -> bool {
    let own = wire_of(&field.kind());
    wire == own || (wire == 2 && field.is_list()) || (wire == 3 && field.is_group())
}

fn group(cursor: &mut Cursor<'_>, number: u64, guessed: usize) -> Result<(), Fault> {
    let begun = cursor.at;
    cursor.within(|cursor| {
        while !cursor.is_at_end() {
            let Some(at) = field(cursor, None, guessed)? else { continue };
            // The key was read a moment ago.
            let ended = cursor.pieces.last().map_or("", |piece| &piece.field[..]);
            return match ended == number.to_string() {
                true => Ok(()),
                false => cursor.fault(at, format!("group {ended} ends within group {number}")),
            };
        }
        cursor.fault(begun, format!("group {number} has no end"))
    })
}

fn delimited(
    cursor: &mut Cursor<'_>,
    name: &str,
    field: Option<&FieldDescriptor>,
    guessed: usize,
) -> Result<(), Fault> {
    let begun = cursor.at;
    let length = cursor.varint("a length")?;
    if length > cursor.left() as u64 {
        let length = many(length, "byte");
        let why = format!("field {name} is {length} long; bytes left: {}", cursor.left());
        return cursor.fault(begun, why);
    }
    cursor.note(Cause::Lengths, name, "length", length.to_string());
    let length = length as usize;
    match field.map(FieldDescriptor::kind) {
        Some(Kind::Message(message)) => {
            cursor.bounded(length, |cursor| read_as(cursor, Some(&message), 0))
        }
        Some(kind @ (Kind::String | Kind::Bytes)) => {
            let bytes = cursor.take(length as u64, name)?;
            if kind == Kind::String && std::str::from_utf8(bytes).is_err() {
                return cursor.fault(cursor.at - length, format!("{name} is text, but no UTF-8"));
            }
            let kind = if kind == Kind::String { "string" } else { "bytes" };
            cursor.note(Cause::Payload, name, kind, shown(bytes));
            Ok(())
        }
        Some(kind) => cursor.bounded(length, |cursor| packed(cursor, name, &kind)),
        None => {
            guess(cursor, name, length, guessed);
            Ok(())
        }
    }
}

/// Text where the bytes are printable, else a message where they are one, else bytes.
fn guess(cursor: &mut Cursor<'_>, name: &str, length: usize, guessed: usize) {
    let bytes = &cursor.all()[cursor.at..cursor.at + length];
    let is_printable = |text: &str| !text.chars().any(char::is_control);
    let is_message = !std::str::from_utf8(bytes).is_ok_and(is_printable)
        && guessed < GUESSED_DEPTH
        && cursor
            .attempt(|cursor| {
                cursor.bounded(length, |cursor| read_as(cursor, None, guessed + 1)).ok()
            })
            .is_some();
    if is_message {
        return;
    }
    // The length was compared with what is left.
    if let Ok(bytes) = cursor.take(length as u64, name) {
        let is_text = std::str::from_utf8(bytes).is_ok();
        let kind = if is_text { "string or bytes" } else { "bytes" };
        cursor.note(Cause::Payload, name, kind, shown(bytes));
    }
}

fn packed(cursor: &mut Cursor<'_>, name: &str, kind: &Kind) -> Result<(), Fault> {
    let mut index = 0;
    while !cursor.is_at_end() {
        let (word, value) = match wire_of(kind) {
            1 => fixed64(Some(kind.clone()), cursor.array("a packed number of 64 bits")?),
            5 => fixed32(Some(kind.clone()), cursor.array("a packed number of 32 bits")?),
            _ => scalar(Some(kind), cursor.varint("a packed number")?),
        };
        cursor.note(Cause::Payload, format!("{name}[{index}]"), word, value);
        index += 1;
    }
    Ok(())
}

fn varint(field: Option<&FieldDescriptor>, value: u64) -> (String, String) {
    scalar(field.map(FieldDescriptor::kind).as_ref(), value)
}

fn scalar(kind: Option<&Kind>, value: u64) -> (String, String) {
    let (word, value) = match kind {
        Some(Kind::Int32) => ("int32", (value as i32).to_string()),
        Some(Kind::Int64) => ("int64", (value as i64).to_string()),
        Some(Kind::Uint32) => ("uint32", (value as u32).to_string()),
        Some(Kind::Sint32) => ("sint32", zigzag(value).to_string()),
        Some(Kind::Sint64) => ("sint64", zigzag(value).to_string()),
        Some(Kind::Bool) => ("bool", (value != 0).to_string()),
        Some(Kind::Enum(one)) => {
            let name = one.get_value(value as i32).map(|value| value.name().to_owned());
            ("enum", name.unwrap_or_else(|| (value as i32).to_string()))
        }
        Some(_) => ("uint64", value.to_string()),
        None if (value as i64) < 0 => ("varint", format!("{value}, or {}", value as i64)),
        None => ("varint", format!("{value}, or {} as zigzag", zigzag(value))),
    };
    (word.to_owned(), value)
}

fn fixed64(kind: Option<Kind>, bits: [u8; 8]) -> (String, String) {
    let whole = u64::from_le_bytes(bits);
    let (word, value) = match kind {
        Some(Kind::Double) => ("double", format!("{:?}", f64::from_bits(whole))),
        Some(Kind::Sfixed64) => ("sfixed64", (whole as i64).to_string()),
        Some(_) => ("fixed64", whole.to_string()),
        None => ("64 bits", format!("{whole}, or {:?}", f64::from_bits(whole))),
    };
    (word.to_owned(), value)
}

fn fixed32(kind: Option<Kind>, bits: [u8; 4]) -> (String, String) {
    let whole = u32::from_le_bytes(bits);
    let (word, value) = match kind {
        Some(Kind::Float) => ("float", format!("{:?}", f32::from_bits(whole))),
        Some(Kind::Sfixed32) => ("sfixed32", (whole as i32).to_string()),
        Some(_) => ("fixed32", whole.to_string()),
        None => ("32 bits", format!("{whole}, or {:?}", f32::from_bits(whole))),
    };
    (word.to_owned(), value)
}
