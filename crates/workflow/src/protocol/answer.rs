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

/// What a client that follows is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced<'a> {
    /// The whole definition.
    Whole(Cow<'a, str>),
    /// What has changed.
    Changes {
        /// The number of the last change of state.
        state_change_no: i64,
        /// The number of the last change of structure.
        modify_change_no: i64,
        /// The nodes that have changed.
        nodes: Vec<ChangedNode<'a>>,
    },
}

/// A node that has changed, as far as its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedNode<'a> {
    /// Its path; of the server `/`.
    pub path: Cow<'a, str>,
    /// The labels that are sent, with their values.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Reads the document of an answer to a sync.
///
/// # Errors
/// When it is none; the error says where, or what it is instead.
pub fn read_sync(document: &[u8]) -> Result<Synced<'_>, BadJson> {
    let mut reader = Reader::new(document)?;
    let (mut kind, mut why) = (Cow::Borrowed(""), Cow::Borrowed(""));
    let (mut is_whole, mut text) = (false, None);
    let (mut numbers, mut nodes) = ((0, 0), Vec::new());
    reader.object(|reader, _| {
        reader.object(|reader, _| {
            of_pointer(reader, &mut kind, |reader, name| match name {
                "full_defs_" => {
                    is_whole = reader.boolean()?;
                    Ok(())
                }
                "value1" => {
                    text = Some(reader.string()?);
                    Ok(())
                }
                "error_msg_" => {
                    why = reader.string()?;
                    Ok(())
                }
                "incremental_changes_" => changes(reader, &mut numbers, &mut nodes),
                _ => reader.skip(),
            })
        })
    })?;
    match (kind.as_ref(), is_whole, text) {
        ("SSyncCmd", true, Some(text)) => Ok(Synced::Whole(text)),
        ("SSyncCmd", false, _) => {
            let (state_change_no, modify_change_no) = numbers;
            Ok(Synced::Changes { state_change_no, modify_change_no, nodes })
        }
        (kind, ..) => reader.bad(format!("not an answer to a sync: {kind} {why}")),
    }
}

/// Takes the members of what a pointer points to; `kind` is its type, where that is given.
fn of_pointer<'a>(
    reader: &mut Reader<'a>,
    kind: &mut Cow<'a, str>,
    mut take: impl FnMut(&mut Reader<'a>, &str) -> Result<(), BadJson>,
) -> Result<(), BadJson> {
    reader.object(|reader, name| match name {
        "polymorphic_name" => {
            *kind = reader.string()?;
            Ok(())
        }
        "ptr_wrapper" => reader.object(|reader, name| match name {
            "data" => reader.object(&mut take),
            _ => reader.skip(),
        }),
        _ => reader.skip(),
    })
}

fn changes<'a>(
    reader: &mut Reader<'a>,
    numbers: &mut (i64, i64),
    nodes: &mut Vec<ChangedNode<'a>>,
) -> Result<(), BadJson> {
    reader.object(|reader, name| match name {
        "server_state_change_no_" => {
            numbers.0 = reader.integer()?;
            Ok(())
        }
        "server_modify_change_no_" => {
            numbers.1 = reader.integer()?;
            Ok(())
        }
        "compound_mementos_" => reader.list(|reader| {
            let mut node = ChangedNode::default();
            of_pointer(reader, &mut Cow::Borrowed(""), |reader, name| match name {
                "absNodePath_" => {
                    node.path = reader.string()?;
                    Ok(())
                }
                "vec_" => reader.list(|reader| {
                    of_pointer(reader, &mut Cow::Borrowed(""), |reader, name| match name {
                        "label_" => {
                            node.labels.push(label(reader)?);
                            Ok(())
                        }
                        _ => reader.skip(),
                    })
                }),
                _ => reader.skip(),
            })?;
            nodes.push(node);
            Ok(())
        }),
        _ => reader.skip(),
    })
}

/// A label's name, and its value: the new one where it was changed.
fn label<'a>(reader: &mut Reader<'a>) -> Result<(Cow<'a, str>, Cow<'a, str>), BadJson> {
    let (mut name, mut value, mut changed) = (Cow::Borrowed(""), Cow::Borrowed(""), None);
    reader.object(|reader, member| {
        match member {
            "n_" => name = reader.string()?,
            "v_" => value = reader.string()?,
            "new_v_" => changed = Some(reader.string()?).filter(|text| !text.is_empty()),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok((name, changed.unwrap_or(value)))
}
