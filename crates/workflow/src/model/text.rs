//! Texts that many attributes share, such as names: each is allocated once, and a pointer wide
//! where it is used. Texts that few share, such as values: short ones are allocated nowhere.
//!
//! A text is counted by reference, not a number in a growing table: labels take ever new values,
//! and memory is given back with the last use. [`Texts`] finds an equal text among recent ones.

use std::borrow::Borrow;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Deref;

use arcstr::ArcStr;
use hashbrown::DefaultHashBuilder;
use smol_str::SmolStr;

/// An immutable string, shared by its copies: a pointer wide where it is used. The empty one costs
/// nothing.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(ArcStr);

/// An immutable string that few others equal: up to 23 bytes lie where it is used, longer ones are
/// shared by its copies. Values of variables and names of nodes are such: of 320,830 nodes most lie
/// so beside their nodes, and nothing is allocated, looked for or followed for them.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnText(SmolStr);

impl Text {
    /// Bytes on the heap, with the count of references; of a copy the same bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.len() + 2 * size_of::<usize>() }
    }
}

impl OwnText {
    /// The longest that lies where it is used, in bytes.
    pub(super) const SHORT: usize = 23;

    /// Bytes on the heap, with the count of references; of a copy the same bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        if self.0.is_heap_allocated() { self.len() + 2 * size_of::<usize>() } else { 0 }
    }
}

/// What both are as strings.
macro_rules! as_string {
    ($text:ident, $inner:ident) => {
        impl $text {
            /// The string itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl Deref for $text {
            type Target = str;

            fn deref(&self) -> &str {
                self.0.as_str()
            }
        }

        impl Borrow<str> for $text {
            fn borrow(&self) -> &str {
                self.0.as_str()
            }
        }

        impl AsRef<str> for $text {
            fn as_ref(&self) -> &str {
                self.0.as_str()
            }
        }

        impl From<&str> for $text {
            fn from(text: &str) -> Self {
                Self($inner::from(text))
            }
        }

        impl From<String> for $text {
            fn from(text: String) -> Self {
                Self($inner::from(text))
            }
        }

        impl PartialEq<str> for $text {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $text {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl fmt::Display for $text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self)
            }
        }

        impl fmt::Debug for $text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    };
}

as_string!(Text, ArcStr);
as_string!(OwnText, SmolStr);

/// The most texts that are remembered, and the longest of them, in bytes.
const RECENT: usize = 1 << 14;
const LONGEST: usize = 256;

/// How many places there are at first.
const FIRST_PLACES: usize = 64;

/// Texts met lately, so that an equal one is shared.
///
/// Each has one place by its hash, and the next text there takes it over: what is often used is
/// found again, and values that come once cost neither memory nor a search through all others.
/// Of 320,830 nodes with 885,533 different values the whole table took 37 MB and a quarter
/// of a load's time.
#[derive(Clone, Default, Debug)]
pub struct Texts<T = Text> {
    /// Hashes and texts; as many as a power of two.
    places: Vec<(u32, T)>,
    /// How many texts have come since there are this many places.
    new: usize,
    hasher: DefaultHashBuilder,
}

impl<T: Clone + Default + for<'a> From<&'a str> + PartialEq<str>> Texts<T> {
    /// The text that equals this string; allocated when it is not among the recent ones.
    pub fn share(&mut self, text: &str) -> T {
        if text.is_empty() {
            return T::default();
        }
        if text.len() > LONGEST {
            return T::from(text);
        }
        let hash = self.hasher.hash_one(text) as u32;
        self.make_room();
        let place = hash as usize & (self.places.len() - 1);
        let (known, recent) = &mut self.places[place];
        if *known == hash && *recent == *text {
            return recent.clone();
        }
        (*known, *recent) = (hash, T::from(text));
        self.new += 1;
        recent.clone()
    }

    /// Whether none is remembered.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn make_room(&mut self) {
        let count = self.places.len();
        if count == RECENT || self.new < count / 2 && count > 0 {
            return;
        }
        let count = (count * 4).clamp(FIRST_PLACES, RECENT);
        let mut wider = vec![(0, T::default()); count];
        for (hash, text) in self.places.drain(..) {
            wider[hash as usize & (count - 1)] = (hash, text);
        }
        (self.places, self.new) = (wider, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_only_recent_ones_are_remembered() {
        let mut texts: Texts = Texts::default();
        let (a, b) = (texts.share("value"), texts.share("value"));
        assert!(ArcStr::ptr_eq(&a.0, &b.0));
        for number in 0..10 * RECENT {
            texts.share(&number.to_string());
        }
        assert_eq!(texts.places.len(), RECENT);
        drop(b);
        assert_eq!(ArcStr::strong_count(&a.0), Some(1), "it has been forgotten");
        let long = "x".repeat(LONGEST + 1);
        assert!(!ArcStr::ptr_eq(&texts.share(&long).0, &texts.share(&long).0));
        assert_eq!(size_of::<Text>(), size_of::<usize>());
    }

    #[test]
    fn short_texts_lie_where_they_are_used() {
        let [short, long] = [OwnText::SHORT, OwnText::SHORT + 1].map(|len| "x".repeat(len));
        assert_eq!(OwnText::from(&*short).heap_bytes(), 0);
        assert!(OwnText::from(&*long).heap_bytes() > long.len());
        assert_eq!(size_of::<OwnText>(), OwnText::SHORT + 1);
    }
}
