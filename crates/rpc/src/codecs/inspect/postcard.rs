//! postcard, of which only the type says what lies where: `loadline.rpc.v1.Sample`.

use super::cursor::{Cursor, shown, zigzag};
use super::piece::{Cause, Fault};
use base::many;

/// Reads the message to the end.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    sample(cursor, "")?;
    match cursor.is_at_end() {
        true => Ok(()),
        false => cursor.fault(cursor.at, "bytes are left over"),
    }
}

fn sample(cursor: &mut Cursor<'_>, within: &str) -> Result<(), Fault> {
    let name = |field: &str| match within {
        "" => field.to_owned(),
        within => format!("{within}.{field}"),
    };
    signed(cursor, &name("number"))?;
    text(cursor, &name("text"))?;
    real(cursor, &name("real"))?;
    let flag = cursor.byte("flag")?;
    if flag > 1 {
        return cursor.fault(cursor.at - 1, format!("{flag} is neither 0 nor 1"));
    }
    cursor.note(Cause::Payload, name("flag"), "bool", (flag == 1).to_string());
    let blob = length(cursor, &name("blob"))?;
    cursor.take(blob, "blob")?;
    cursor.note(Cause::Payload, name("blob"), "bytes", many(blob, "byte"));
    let inner = name("inner");
    if option(cursor, &inner)? {
        cursor.within(|cursor| sample(cursor, &inner))?;
    }
    one(cursor, &name("one"))?;
    let reals = name("reals");
    several(cursor, &reals, |cursor, index| real(cursor, &format!("{reals}[{index}]")))?;
    let samples = name("samples");
    several(cursor, &samples, |cursor, index| sample(cursor, &format!("{samples}[{index}]")))?;
    let counts = name("counts");
    several(cursor, &counts, |cursor, index| {
        text(cursor, &format!("{counts}[{index}] key"))?;
        signed(cursor, &format!("{counts}[{index}]"))
    })?;
    signed(cursor, &name("signed"))?;
    signed(cursor, &name("small"))?;
    let wide = cursor.varint("wide")?;
    cursor.note(Cause::Payload, name("wide"), "varint", wide.to_string());
    let kind = cursor.varint("kind")?;
    let Some(word) = ["None", "Plain", "Special"].get(kind as usize).filter(|_| kind < 3) else {
        return cursor.fault(cursor.at - 1, format!("there is no kind {kind}"));
    };
    cursor.note(Cause::Payload, name("kind"), "enum", *word);
    Ok(())
}

fn signed(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    let value = cursor.varint("a number")?;
    cursor.note(Cause::Payload, field, "zigzag varint", zigzag(value).to_string());
    Ok(())
}

fn real(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    let value = f64::from_le_bytes(cursor.array("a number of 64 bits")?);
    cursor.note(Cause::Payload, field, "f64", format!("{value:?}"));
    Ok(())
}

fn length(cursor: &mut Cursor<'_>, field: &str) -> Result<u64, Fault> {
    let length = cursor.varint("a length")?;
    cursor.note(Cause::Lengths, field, "length", length.to_string());
    Ok(length)
}

fn text(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    let length = length(cursor, field)?;
    let bytes = cursor.take(length, "a text")?;
    if std::str::from_utf8(bytes).is_err() {
        return cursor.fault(cursor.at - bytes.len(), "a text that is no UTF-8");
    }
    cursor.note(Cause::Payload, field, "string", shown(bytes));
    Ok(())
}

fn option(cursor: &mut Cursor<'_>, field: &str) -> Result<bool, Fault> {
    let tag = cursor.byte("whether there is one")?;
    if tag > 1 {
        return cursor.fault(cursor.at - 1, format!("{tag} is neither 0 nor 1"));
    }
    cursor.note(Cause::Keys, field, "option", if tag == 1 { "there" } else { "none" });
    Ok(tag == 1)
}

fn one(cursor: &mut Cursor<'_>, field: &str) -> Result<(), Fault> {
    if !option(cursor, field)? {
        return Ok(());
    }
    let begun = cursor.at;
    let variant = cursor.varint("which of several")?;
    cursor.note(Cause::Keys, field, "variant", variant.to_string());
    match variant {
        0 => signed(cursor, &format!("{field}.integer")),
        1 => text(cursor, &format!("{field}.word")),
        2 => signed(cursor, &format!("{field}.boxed.value")),
        _ => cursor.fault(begun, format!("there is no variant {variant}")),
    }
}

fn several(
    cursor: &mut Cursor<'_>,
    field: &str,
    mut read: impl FnMut(&mut Cursor<'_>, u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let begun = cursor.at;
    let count = length(cursor, field)?;
    if count > cursor.left() as u64 {
        return cursor.too_short(begun, count);
    }
    cursor.within(|cursor| (0..count).try_for_each(|index| read(cursor, index)))
}
