//! What a client knows of its own items, and which answers that allows.
//!
//! A command is carried out at some time between its sending and its answer: an item whose expiry
//! lies in between may be there or not, and so may any item where others can evict it. The answer
//! then tells which, and the next one has to fit to that.

use std::collections::BTreeMap;

use super::operations::{Answer, Got, Key, Op, Verb};

/// An item.
#[derive(Clone, Debug)]
struct Item {
    value: Vec<u8>,
    flags: u32,
    /// The earliest and the latest second at which it expires.
    expires_s: Option<(u64, u64)>,
    cas: Option<u64>,
    may_be_gone: bool,
}

/// Whether an item is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Yes,
    No,
    Either,
}

/// When a command was carried out: in seconds, at the earliest and at the latest.
pub(super) type When = (u64, u64);

/// One client's items.
#[derive(Debug)]
pub(super) struct Items {
    items: BTreeMap<Key, Item>,
    /// Whether others' items may displace these.
    evicts: bool,
    /// The largest item.
    item_bytes: usize,
}

impl Items {
    pub(super) fn new(evicts: bool, item_bytes: usize) -> Self {
        Self { items: BTreeMap::new(), evicts, item_bytes }
    }

    /// The unique number of an item, if it is known.
    pub(super) fn cas(&self, key: Key) -> Option<u64> {
        self.items.get(&key)?.cas
    }

    fn presence(&self, key: Key, (from_s, to_s): When) -> Presence {
        let Some(item) = self.items.get(&key) else { return Presence::No };
        let (earliest_s, latest_s) = item.expires_s.unwrap_or((u64::MAX, u64::MAX));
        if from_s >= latest_s {
            Presence::No
        } else if self.evicts || item.may_be_gone || to_s >= earliest_s {
            Presence::Either
        } else {
            Presence::Yes
        }
    }

    /// A command that isn't answered has been carried out.
    pub(super) fn apply_quietly(&mut self, op: &Op, when: When) {
        match op {
            Op::Store { key, value, flags, exptime, .. } => {
                self.insert(*key, value.clone(), *flags, *exptime, when);
            }
            Op::Delete { key, .. } => drop(self.items.remove(key)),
            _ => {}
        }
    }

    fn insert(&mut self, key: Key, value: Vec<u8>, flags: u32, exptime: u32, when: When) {
        let item =
            Item { value, flags, expires_s: expiry(exptime, when), cas: None, may_be_gone: false };
        self.items.insert(key, item);
    }

    /// Checks an answer, and takes over what it tells.
    pub(super) fn apply(&mut self, op: &Op, answer: &Answer, when: When) -> Result<(), String> {
        match (op, answer) {
            (Op::Get { keys }, Answer::Values(values)) => {
                let mut rest = values.as_slice();
                for key in keys {
                    let found = rest.split_first().filter(|(got, _)| got.key == key.bytes());
                    rest = found.map_or(rest, |(_, rest)| rest);
                    self.check(*key, found.map(|(got, _)| got), when)?;
                }
                match rest.first() {
                    None => Ok(()),
                    Some(got) => Err(format!("{} was not asked for", text(&got.key))),
                }
            }
            (Op::QuietGet { key }, Answer::Values(values)) => {
                self.check(*key, values.first(), when)
            }
            (Op::GetTouch { key, exptime }, Answer::Values(values)) => {
                self.check(*key, values.first(), when)?;
                self.touch(*key, *exptime, when);
                Ok(())
            }
            (Op::Store { .. }, _) => self.apply_store(op, answer, when),
            (Op::Delete { key, .. }, Answer::Deleted) => {
                self.needs(*key, true, when)?;
                self.items.remove(key);
                Ok(())
            }
            (Op::Increment { key, by }, Answer::Number(number)) => {
                self.needs(*key, true, when)?;
                let item = self.items.get_mut(key).expect("it is there");
                let before: u64 = text(&item.value).parse().map_err(|_| "no number".to_owned())?;
                if before + by != *number {
                    return Err(format!("{before} and {by} make {number}"));
                }
                item.value = number.to_string().into_bytes();
                item.cas = None;
                Ok(())
            }
            (Op::Touch { key, exptime }, Answer::Touched) => {
                self.needs(*key, true, when)?;
                self.touch(*key, *exptime, when);
                Ok(())
            }
            (
                Op::Delete { key, .. } | Op::Increment { key, .. } | Op::Touch { key, .. },
                Answer::NotFound,
            ) => self.needs(*key, false, when),
            (Op::Nonsense, Answer::Refused) => Ok(()),
            _ => Err("no answer to that request".to_owned()),
        }
    }

    fn apply_store(&mut self, op: &Op, answer: &Answer, when: When) -> Result<(), String> {
        let Op::Store { verb, key, value, flags, exptime, .. } = op else { return Ok(()) };
        let known = self.cas(*key);
        match (verb, answer) {
            (_, Answer::NoRoom) => {
                // memcached drops the old item then.
                self.items.entry(*key).and_modify(|item| item.may_be_gone = true);
                return Ok(());
            }
            (Verb::Set, Answer::Stored) => {}
            (Verb::Add, Answer::Stored) => self.needs(*key, false, when)?,
            (Verb::Add, Answer::NotStored) => return self.needs(*key, true, when),
            (Verb::Replace | Verb::Append | Verb::Prepend, Answer::NotStored) => {
                // memcached refuses to make an item too large with the same word.
                let is_large = |item: &Item| item.value.len() + value.len() + 200 > self.item_bytes;
                if *verb != Verb::Replace && self.items.get(key).is_some_and(is_large) {
                    return Ok(());
                }
                return self.needs(*key, false, when);
            }
            (Verb::Replace, Answer::Stored) => self.needs(*key, true, when)?,
            (Verb::Append | Verb::Prepend, Answer::Stored) => {
                self.needs(*key, true, when)?;
                let item = self.items.get_mut(key).expect("it is there");
                let at = if *verb == Verb::Append { item.value.len() } else { 0 };
                item.value.splice(at..at, value.iter().copied());
                item.cas = None;
                return Ok(());
            }
            (Verb::Cas(cas), Answer::Stored) if known == Some(*cas) => {
                self.needs(*key, true, when)?;
            }
            (Verb::Cas(cas), Answer::Exists) if known != Some(*cas) => {
                return self.needs(*key, true, when);
            }
            (Verb::Cas(_), Answer::NotFound) => return self.needs(*key, false, when),
            _ => return Err("no answer to a store in this state".to_owned()),
        }
        self.insert(*key, value.clone(), *flags, *exptime, when);
        Ok(())
    }

    /// The answer says whether the item is there: checks that it may be.
    fn needs(&mut self, key: Key, is_there: bool, when: When) -> Result<(), String> {
        match (self.presence(key, when), is_there) {
            (Presence::Yes, false) => Err(format!("{key:?} is lost")),
            (Presence::No, true) => Err(format!("{key:?} is there, and should not be")),
            (_, true) => {
                self.items.entry(key).and_modify(|item| item.may_be_gone = false);
                Ok(())
            }
            (_, false) => {
                self.items.remove(&key);
                Ok(())
            }
        }
    }

    fn check(&mut self, key: Key, got: Option<&Got>, when: When) -> Result<(), String> {
        self.needs(key, got.is_some(), when)?;
        let (Some(item), Some(got)) = (self.items.get_mut(&key), got) else { return Ok(()) };
        if item.value != got.value || item.flags != got.flags || key.bytes() != got.key {
            let (right, wrong) = (shown(&item.value, item.flags), shown(&got.value, got.flags));
            return Err(format!("{key:?} is {right}, and the answer {} {wrong}", text(&got.key)));
        }
        if item.cas.is_some() && got.cas.is_some() && item.cas != got.cas {
            return Err(format!("{key:?} has the number {:?}, not {:?}", item.cas, got.cas));
        }
        item.cas = got.cas.or(item.cas);
        Ok(())
    }

    fn touch(&mut self, key: Key, exptime: u32, when: When) {
        if let Some(item) = self.items.get_mut(&key) {
            item.expires_s = expiry(exptime, when);
        }
    }
}

fn expiry(exptime: u32, (from_s, to_s): When) -> Option<When> {
    (exptime > 0).then(|| (from_s + u64::from(exptime), to_s + u64::from(exptime)))
}

fn shown(value: &[u8], flags: u32) -> String {
    let start = text(&value[..value.len().min(20)]).into_owned();
    format!("{} bytes ({start}…, flags {flags})", value.len())
}

pub(super) fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
