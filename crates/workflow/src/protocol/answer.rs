//! Reading answers, as far as their kind and the one thing that they bring.

use std::borrow::Cow;

use super::json::{BadJson, Reader};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Without contents, by its number: 0 is done.
    Standard(i64),
    /// A failure, in the words that the client shows; of a group its first.
    Error(Cow<'a, str>),
    /// A text, or that of one node.
    Text(Cow<'a, str>),
    /// A whole definition, or all that a client that follows has to take.
    Definition(Cow<'a, str>),
    /// Another one, by the name of its type.
    Other(Cow<'a, str>),
}

/// Reads an answer's document. Nothing is allocated where nothing in its text is escaped.
///
/// # Errors
/// When it is none; the error says where.
pub fn read_answer(document: &[u8]) -> Result<Answer<'_>, BadJson> {
    let mut reader = Reader::new(document)?;
    let mut found = None;
    reader.object(|reader, _| {
        reader.object(|reader, name| match name {
            "stc_cmd_" => {
                found = Some(pointer(reader)?);
                Ok(())
            }
            _ => reader.skip(),
        })
    })?;
    match found {
        Some(answer) => Ok(answer),
        None => reader.bad("there is no \"stc_cmd_\""),
    }
}

fn pointer<'a>(reader: &mut Reader<'a>) -> Result<Answer<'a>, BadJson> {
    let (mut kind, mut number, mut text) = (Cow::Borrowed(""), None, None);
    let mut failed = None;
    reader.object(|reader, name| match name {
        "polymorphic_name" => {
            kind = reader.string()?;
            Ok(())
        }
        "ptr_wrapper" => reader.object(|reader, name| match name {
            "data" => reader.object(|reader, name| {
                match name {
                    "api_" => number = Some(reader.integer()?),
                    "str_" | "error_msg_" | "value1" | "the_node_str_" => {
                        text = Some(reader.string()?);
                    }
                    "cmdVec_" => reader.list(|reader| {
                        if let Answer::Error(why) = pointer(reader)? {
                            failed.get_or_insert(why);
                        }
                        Ok(())
                    })?,
                    _ => reader.skip()?,
                }
                Ok(())
            }),
            _ => reader.skip(),
        }),
        _ => reader.skip(),
    })?;
    Ok(match (kind.as_ref(), number, text) {
        ("StcCmd", Some(number), _) => Answer::Standard(number),
        ("ErrorCmd", _, Some(why)) => Answer::Error(why),
        ("GroupSTCCmd", ..) if failed.is_some() => Answer::Error(failed.unwrap_or_default()),
        ("SStringCmd" | "SNodeCmd", _, Some(text)) => Answer::Text(text),
        ("DefsCmd" | "SSyncCmd", _, Some(text)) => Answer::Definition(text),
        _ => Answer::Other(kind),
    })
}
