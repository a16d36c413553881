//! Reading the answer to a sync, as far as commands and the load need it: the whole text, or the
//! nodes that have changed with the plain values of each change.

use std::borrow::Cow;

use super::json::{BadJson, Reader};

/// The answer to a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncAnswer<'a> {
    /// All of it, as text.
    Whole(Cow<'a, str>),
    /// What has changed, up to these numbers.
    Since {
        /// The number of the last change of state.
        state_change_no: u32,
        /// The number of the last change of structure.
        modify_change_no: u32,
        /// The nodes that have changed.
        nodes: Vec<SyncedNode>,
    },
    /// A failure, in the server's words.
    Refused(Cow<'a, str>),
}

/// A node that has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncedNode {
    /// Its path; of the server `/`.
    pub path: String,
    /// Whether attributes were added or deleted: those that are not named are gone.
    pub clears: bool,
    /// What has changed.
    pub changes: Vec<SyncedChange>,
}

/// One change of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncedChange {
    /// The name of its type: `NodeStateMemento`.
    pub kind: String,
    /// Its members that are no lists, also those of objects in it.
    pub members: Vec<(String, String)>,
}

impl SyncedChange {
    /// The value of a member; empty where it is left out, as defaults are.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let found = self.members.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The name of a label that this is of, and its text: the new one where there is one.
    #[must_use]
    pub fn label(&self) -> Option<(&str, &str)> {
        let text = ["new_v_", "v_"].map(|name| self.text(name)).into_iter();
        let text = text.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        (self.kind == "NodeLabelMemento").then(|| (self.text("n_"), text))
    }

    /// The value of a member that is a number; 0 where it is left out.
    #[must_use]
    pub fn number(&self, name: &str) -> i32 {
        self.text(name).parse().unwrap_or(0)
    }
}

type Result<T> = std::result::Result<T, BadJson>;

/// Reads the answer to a sync.
///
/// # Errors
/// When it is none, or its objects lie deeper within each other than is read.
pub fn read_sync_answer(document: &[u8]) -> Result<SyncAnswer<'_>> {
    let mut reader = Reader::new(document)?;
    let mut found = Found::default();
    reader.object(|reader, _| found.object(reader))?;
    let Found { kinds, whole, refused, state_change_no, modify_change_no, nodes } = found;
    match (kinds.first().map_or("", String::as_str), refused) {
        ("ErrorCmd", Some(why)) => Ok(SyncAnswer::Refused(why)),
        ("SSyncCmd", _) => Ok(match whole {
            Some(text) => SyncAnswer::Whole(text),
            None => SyncAnswer::Since { state_change_no, modify_change_no, nodes },
        }),
        (kind, _) => reader.bad(format!("an answer {kind:?}, which is none to a sync")),
    }
}

/// What is found on the way.
#[derive(Default)]
struct Found<'a> {
    /// The names of types in the order of their numbers; each comes once, and then its number only.
    kinds: Vec<String>,
    whole: Option<Cow<'a, str>>,
    refused: Option<Cow<'a, str>>,
    state_change_no: u32,
    modify_change_no: u32,
    nodes: Vec<SyncedNode>,
}

impl<'a> Found<'a> {
    fn object(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        reader.object(|reader, name| self.member(reader, name))
    }

    fn member(&mut self, reader: &mut Reader<'a>, name: &str) -> Result<()> {
        match name {
            "stc_cmd_" | "ptr_wrapper" | "data" | "incremental_changes_" => {
                return self.object(reader);
            }
            "compound_mementos_" => {
                return reader.list(|reader| {
                    let mut node = SyncedNode::default();
                    compound(reader, &mut self.kinds, &mut node)?;
                    self.nodes.push(node);
                    Ok(())
                });
            }
            "polymorphic_name" => self.kinds.push(reader.string()?.into_owned()),
            "server_state_change_no_" => self.state_change_no = unsigned(reader)?,
            "server_modify_change_no_" => self.modify_change_no = unsigned(reader)?,
            "value1" => self.whole = Some(reader.string()?).filter(|text| !text.is_empty()),
            "error_msg_" => self.refused = Some(reader.string()?),
            _ => return reader.skip(),
        }
        Ok(())
    }
}

fn unsigned(reader: &mut Reader<'_>) -> Result<u32> {
    let number = reader.integer()?;
    u32::try_from(number).or_else(|_| reader.bad("a number of a change, which is not negative"))
}

/// Reads the changes of one node, behind a pointer.
fn compound(reader: &mut Reader<'_>, kinds: &mut Vec<String>, node: &mut SyncedNode) -> Result<()> {
    reader.object(|reader, name| {
        match name {
            "ptr_wrapper" | "data" => return compound(reader, kinds, node),
            "clear_attributes_" => node.clears = reader.boolean()?,
            "absNodePath_" => node.path = reader.string()?.into_owned(),
            "vec_" => {
                return reader.list(|reader| {
                    let mut change = SyncedChange::default();
                    members(reader, kinds, &mut change)?;
                    node.changes.push(change);
                    Ok(())
                });
            }
            _ => return reader.skip(),
        }
        Ok(())
    })
}

/// Reads the plain members of an object and of those in it; the first type's name is the change's.
fn members(
    reader: &mut Reader<'_>,
    kinds: &mut Vec<String>,
    change: &mut SyncedChange,
) -> Result<()> {
    /// Set in the number of a type that comes for the first time, with its name.
    const FIRST: i64 = 0x8000_0000;
    reader.object(|reader, name| {
        let value = match (name, reader.peek()?) {
            ("polymorphic_id", _) => {
                let place = usize::try_from(reader.integer()? & !FIRST).unwrap_or(0);
                let known = place.checked_sub(1).and_then(|place| kinds.get(place));
                if let Some(kind) = known.filter(|_| change.kind.is_empty()) {
                    change.kind.clone_from(kind);
                }
                return Ok(());
            }
            ("polymorphic_name", _) => {
                kinds.push(reader.string()?.into_owned());
                if let Some(kind) = kinds.last().filter(|_| change.kind.is_empty()) {
                    change.kind.clone_from(kind);
                }
                return Ok(());
            }
            ("id" | "cereal_class_version", b'0'..=b'9') => return reader.skip(),
            (_, b'{') => return members(reader, kinds, change),
            // Types are numbered in lists, too: children are nodes of some type.
            (_, b'[') => return reader.list(|reader| element(reader, kinds)),
            (_, b'"') => reader.string()?.into_owned(),
            (_, b't' | b'f') => i32::from(reader.boolean()?).to_string(),
            _ => reader.integer()?.to_string(),
        };
        change.members.push((name.to_owned(), value));
        Ok(())
    })
}

/// Passes over an element of a list, but for the names of types.
fn element(reader: &mut Reader<'_>, kinds: &mut Vec<String>) -> Result<()> {
    match reader.peek()? {
        b'{' => members(reader, kinds, &mut SyncedChange::default()),
        _ => reader.skip(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Attribute, Duration, Event, Meter, State};
    use crate::protocol::{Changes, Compound, Memento, Reply, Source};

    fn document(reply: &Reply) -> Vec<u8> {
        let mut out = Vec::new();
        reply.write(&mut out);
        out.split_off(super::super::frame::HEAD_BYTES)
    }

    #[test]
    fn changes_are_read_as_they_are_written() {
        let meter = |value| {
            let name = "progress".into();
            Memento::Attribute(Attribute::Meter(Meter {
                name,
                min: 0,
                max: 9,
                threshold: 9,
                value,
            }))
        };
        let event = Event { name: "done".into(), number: None, initial: false, value: true };
        let one = Compound {
            path: "/s/a".to_owned(),
            clears: false,
            mementos: vec![
                Memento::State(State::Active, Duration::seconds(7)),
                meter(3),
                Memento::Attribute(Attribute::Event(event)),
            ],
        };
        let two = Compound {
            path: "/s/b".to_owned(),
            clears: true,
            mementos: vec![meter(4), Memento::Suspended(true)],
        };
        let changes =
            Changes::Since { state_change_no: 12, modify_change_no: 3, nodes: vec![one, two] };
        let document = document(&Reply::Changes(changes));
        let Ok(SyncAnswer::Since { state_change_no: 12, modify_change_no: 3, nodes }) =
            read_sync_answer(&document)
        else {
            panic!("{:?}", read_sync_answer(&document));
        };
        assert_eq!((nodes[0].path.as_str(), nodes[0].clears), ("/s/a", false));
        assert_eq!((nodes[1].path.as_str(), nodes[1].clears), ("/s/b", true));
        let kinds = |node: &SyncedNode| {
            node.changes.iter().map(|change| change.kind.clone()).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&nodes[0]), ["NodeStateMemento", "NodeMeterMemento", "NodeEventMemento"]);
        assert_eq!(kinds(&nodes[1]), ["NodeMeterMemento", "SuspendedMemento"]);
        assert_eq!(nodes[0].changes[0].number("first"), State::Active as i32);
        assert_eq!(nodes[0].changes[1].text("n_"), "progress");
        assert_eq!((nodes[0].changes[1].number("v_"), nodes[1].changes[0].number("v_")), (3, 4));
        assert_eq!(nodes[0].changes[2].number("v_"), 1);
        assert_eq!(nodes[1].changes[1].number("suspended_"), 1);
        for at in 0..document.len() {
            for byte in *b"{}[]\",:0x\\\xff" {
                let mut spoilt = document.clone();
                spoilt[at] = byte;
                // Whatever it is read as: it is read, or refused.
                drop(read_sync_answer(&spoilt));
            }
        }
    }

    #[test]
    fn whole_texts_refusals_and_other_answers_are_told_apart() {
        let whole = document(&Reply::Changes(Changes::Full(Source::new(|take| take("x\n")))));
        assert_eq!(read_sync_answer(&whole), Ok(SyncAnswer::Whole("x\n".into())));
        let refused = document(&Reply::error("no"));
        assert_eq!(read_sync_answer(&refused), Ok(SyncAnswer::Refused("no".into())));
        assert!(read_sync_answer(&document(&Reply::OK)).is_err());
        for end in 0..whole.len() {
            assert!(read_sync_answer(&whole[..end]).is_err(), "{end}");
        }
    }
}
