//! What a right answer is: the request, a message, or fields that follow from the request.

use std::sync::OnceLock;

use bytes::Bytes;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use super::expression::{Expression, Result1, field};
use super::{Check, Checked};
use crate::load::made::PREFIX_BYTES;

/// The most bytes of an answer that are shown where it is wrong.
const SHOWN_BYTES: usize = 400;

/// What is right.
pub(super) enum Right {
    Unchecked,
    Echo,
    Message(DynamicMessage),
    Fields(Vec<(Vec<String>, Expression)>),
}

/// The messages of a request.
#[derive(Default)]
pub(super) struct Asked {
    /// Where they are all alike, one of them.
    pub(super) messages: Vec<DynamicMessage>,
    /// How many there are.
    pub(super) count: usize,
}

impl Asked {
    /// The message at a place; `None` behind the last.
    fn get(&self, place: usize) -> Option<&DynamicMessage> {
        let place = (place < self.count).then(|| place.min(self.messages.len().saturating_sub(1)));
        self.messages.get(place?)
    }
}

/// The answers of a method, and what is right of them.
pub(super) struct Expect {
    pub(super) right: Right,
    /// What the method returns.
    pub(super) output: MessageDescriptor,
    /// Each answer is one message.
    pub(super) is_unary: bool,
    /// The messages of each request, where answers are compared with them.
    pub(super) asked: Vec<Asked>,
    /// Their bytes, as they are sent.
    pub(super) sent: Vec<Bytes>,
    /// The bytes of the first right answer, where all right ones are alike.
    pub(super) seen: OnceLock<Vec<u8>>,
}

/// The messages of an answer, to the first that is none.
fn messages(mut answer: &[u8]) -> impl Iterator<Item = Result<&[u8], &'static str>> {
    std::iter::from_fn(move || {
        let rest = std::mem::take(&mut answer);
        if rest.is_empty() {
            return None;
        }
        let message = first(rest);
        if let Ok((_, after)) = message {
            answer = after;
        }
        Some(message.map(|(message, _)| message))
    })
}

/// The first message, and what is behind it.
fn first(answer: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let cut = "the answer ends within a message";
    let ([flag, length @ ..], rest) = answer.split_first_chunk::<PREFIX_BYTES>().ok_or(cut)?;
    if *flag != 0 {
        return Err("a message is compressed, and that was not offered");
    }
    rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or(cut)
}

fn shown(message: &DynamicMessage) -> Vec<u8> {
    let text = serde_json::to_string(message).unwrap_or_default();
    text.as_bytes()[..text.floor_char_boundary(SHOWN_BYTES)].to_vec()
}

fn wrong(expected: Vec<u8>, note: impl Into<String>) -> Checked {
    Checked::Wrong(expected, note.into())
}

impl Expect {
    /// Counts the messages of an answer, which are whole.
    fn count(&self, answer: &[u8]) -> Result<usize, Checked> {
        let mut count = 0;
        for message in messages(answer) {
            message.map_err(|why| wrong(Vec::new(), why))?;
            count += 1;
        }
        if self.is_unary && count != 1 {
            let note = format!("{count} messages, and one is due");
            return Err(wrong(Vec::new(), note));
        }
        Ok(count)
    }

    fn compare(&self, request: usize, answer: &[u8]) -> Result<(), Checked> {
        let none = Asked::default();
        let asked = self.asked.get(request).unwrap_or(&none);
        let count = self.count(answer)?;
        for (number, part) in messages(answer).flatten().enumerate() {
            let message = DynamicMessage::decode(self.output.clone(), part).map_err(|why| {
                wrong(Vec::new(), format!("it can't be read as {}: {why}", self.output.full_name()))
            })?;
            match &self.right {
                Right::Unchecked => {}
                Right::Message(right) if message == *right => {}
                Right::Message(right) => return Err(wrong(shown(right), "another message")),
                Right::Echo => match asked.get(number) {
                    Some(right) if message == *right => {}
                    Some(right) => return Err(wrong(shown(right), "not what was asked")),
                    None => return Err(wrong(Vec::new(), "more messages than were asked")),
                },
                Right::Fields(fields) => {
                    let of = asked.get(number).or(asked.messages.last());
                    of.map_or(Ok(()), |request| check_fields(fields, request, &message))?;
                }
            }
        }
        match self.right {
            Right::Echo if count < asked.count => {
                Err(wrong(Vec::new(), "fewer messages than were asked"))
            }
            // An end with nothing before it would be right for any of them.
            Right::Message(_) | Right::Fields(_) if count == 0 => {
                Err(wrong(Vec::new(), "no message, and one is due at least"))
            }
            _ => Ok(()),
        }
    }
}

fn check_fields(
    fields: &[(Vec<String>, Expression)],
    request: &DynamicMessage,
    answer: &DynamicMessage,
) -> Result<(), Checked> {
    for (path, expression) in fields {
        let (right, answered) = (expression.value(request), field(answer, path));
        if !right.is(&answered) {
            let expected = match right {
                Result1::Whole(number) => number.to_string(),
                Result1::Number(number) => number.to_string(),
                Result1::Other(value) => value.to_string(),
            };
            let name = path.join(".");
            let note = format!("{name} is {answered}, not {expected}");
            return Err(wrong(format!("{name} = {expected}").into_bytes(), note));
        }
    }
    Ok(())
}

impl Check for Expect {
    fn check(&self, request: usize, answer: &[u8]) -> Checked {
        match &self.right {
            Right::Unchecked => return self.count(answer).err().unwrap_or(Checked::Unchecked),
            Right::Echo if self.sent.get(request).is_some_and(|sent| **sent == *answer) => {
                return Checked::Right;
            }
            Right::Message(_) if self.seen.get().is_some_and(|seen| seen == answer) => {
                return Checked::Right;
            }
            _ => {}
        }
        match self.compare(request, answer) {
            Err(checked) => checked,
            Ok(()) => {
                if matches!(self.right, Right::Message(_)) {
                    // Another right answer may have been seen meanwhile.
                    let _ = self.seen.set(answer.to_vec());
                }
                Checked::Right
            }
        }
    }
}
