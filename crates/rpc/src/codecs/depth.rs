//! How deep messages may lie within each other, on both sides: what can be encoded can be decoded.
//!
//! For codecs over serde, whose own limits differ or are missing: a field that holds messages
//! counts, on this thread, how many of its kind are under way.

use std::cell::Cell;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// The most messages within a message, one within the other.
pub const MOST: usize = 100;

/// Why more are refused.
pub(super) const TOO_DEEP: &str = "more than 100 messages lie within each other";

thread_local! {
    static UNDER_WAY: Cell<usize> = const { Cell::new(0) };
}

/// One more level, until it is dropped.
struct Level;

impl Level {
    fn enter() -> Option<Self> {
        let depth = UNDER_WAY.get();
        (depth < MOST).then(|| {
            UNDER_WAY.set(depth + 1);
            Self
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        UNDER_WAY.set(UNDER_WAY.get() - 1);
    }
}

/// What may hold messages, or not.
pub(super) trait Holds {
    /// Whether it holds any.
    fn holds(&self) -> bool;
}

impl<T> Holds for Option<T> {
    fn holds(&self) -> bool {
        self.is_some()
    }
}

impl<T> Holds for Vec<T> {
    fn holds(&self) -> bool {
        !self.is_empty()
    }
}

/// Encodes what holds messages.
pub(super) fn serialize<T: Holds + Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if !value.holds() {
        return value.serialize(serializer);
    }
    let _level = Level::enter().ok_or_else(|| ser::Error::custom(TOO_DEEP))?;
    value.serialize(serializer)
}

/// Decodes what holds messages.
pub(super) fn deserialize<'de, T: Holds + Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    // One level more may be looked at than messages may lie on, as long as nothing lies there.
    let depth = UNDER_WAY.get();
    if depth > MOST {
        return Err(de::Error::custom(TOO_DEEP));
    }
    UNDER_WAY.set(depth + 1);
    let level = Level;
    let value = T::deserialize(deserializer)?;
    drop(level);
    match value.holds() && depth >= MOST {
        true => Err(de::Error::custom(TOO_DEEP)),
        false => Ok(value),
    }
}

/// A message that may hold others of its kind.
pub(super) trait Nested: Sized {
    /// The one, and the several that it holds.
    fn within(&self) -> (Option<&Self>, &[Self]);
}

/// Whether no more messages than [`MOST`] lie within a message, one within the other.
#[inline]
pub(super) fn is_within_most<M: Nested>(message: &M) -> bool {
    is_within(message, MOST, 1)
}

/// Whether a message is so deep at most, where each of several lies `several_count` deeper.
pub(super) fn is_within<M: Nested>(message: &M, most: usize, several_count: usize) -> bool {
    let (inner, several) = message.within();
    let deeper = |by: usize| most.checked_sub(by);
    let is_fine = |one: &M, by| deeper(by).is_some_and(|most| is_within(one, most, several_count));
    inner.is_none_or(|inner| is_fine(inner, 1))
        && several.iter().all(|one| is_fine(one, several_count))
}
