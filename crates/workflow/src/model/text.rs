//! Texts that many attributes share: a name or a value is allocated once, and a pointer wide where
//! it is used.
//!
//! A text is counted by reference, not a number in a growing table: labels take ever new values,
//! and memory is given back with the last use. [`Texts`] finds the equal text of those before.

use std::borrow::Borrow;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Deref;

use arcstr::ArcStr;
use hashbrown::{DefaultHashBuilder, HashTable};

/// An immutable string, shared by its copies. The empty one costs nothing.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(ArcStr);

impl Text {
    /// The string itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Bytes on the heap, with the count of references; of a copy the same bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.len() + 2 * size_of::<usize>() }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.0.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.0.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(ArcStr::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(ArcStr::from(text))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The texts met so far, so that an equal one is shared.
#[derive(Clone, Default, Debug)]
pub struct Texts {
    table: HashTable<Text>,
    hasher: DefaultHashBuilder,
}

impl Texts {
    /// The text that equals this string; allocated when it is new.
    pub fn share(&mut self, text: &str) -> Text {
        if text.is_empty() {
            return Text::default();
        }
        let hash = self.hasher.hash_one(text);
        if let Some(found) = self.table.find(hash, |known| known == text) {
            return found.clone();
        }
        let new = Text::from(text);
        let hasher = &self.hasher;
        self.table.insert_unique(hash, new.clone(), |text| hasher.hash_one(text.as_str()));
        new
    }

    /// Forgets the texts that are used nowhere else.
    pub fn purge(&mut self) {
        self.table.retain(|text| ArcStr::strong_count(&text.0).is_none_or(|count| count > 1));
        let hasher = &self.hasher;
        self.table.shrink_to_fit(|text| hasher.hash_one(text.as_str()));
    }

    /// How many texts are shared.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_unused_ones_are_forgotten() {
        let mut texts = Texts::default();
        let (a, b) = (texts.share("value"), texts.share("value"));
        assert!(ArcStr::ptr_eq(&a.0, &b.0));
        drop(texts.share("other"));
        assert_eq!(texts.len(), 2);
        texts.purge();
        assert_eq!(texts.len(), 1);
        assert_eq!(size_of::<Text>(), size_of::<usize>());
    }
}
