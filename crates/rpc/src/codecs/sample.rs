//! The message that codecs are compared with, as Rust writes it: `loadline.rpc.v1.Sample` of
//! `proto/loadline/rpc/v1/table.proto`.

use std::collections::BTreeMap;

use rkyv::rancor;
use serde::{Deserialize, Serialize};

use super::depth::{self, Nested};

/// A number in a message of its own.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Number {
    /// The number.
    pub value: i64,
}

/// One of several.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub enum One {
    /// A number.
    Integer(i64),
    /// A text.
    Word(String),
    /// A number in a message of its own.
    Boxed(Number),
}

/// An enumeration.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub enum Kind {
    /// The default.
    #[default]
    None,
    /// Another.
    Plain,
    /// A third.
    Special,
}

/// [`Sample`] as an older program knows it.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Earlier {
    /// As in [`Sample`].
    pub number: i64,
    /// As in [`Sample`].
    pub text: String,
}

/// The message, for codecs that write every field in turn, and for those that write fields by name,
/// which leave out what has its default.
macro_rules! samples {
    ($doc:literal, $name:ident $(, $derive:path)* ; $(#[$each:meta])* ; $(#[$recursive:meta])* ;
     $(#[$whole:meta])*) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        $(#[derive($derive)])*
        $(#[$whole])*
        pub struct $name {
            /// A signed number, of 7 bits a byte in protobuf.
            $(#[$each])*
            pub number: i64,
            /// Text.
            $(#[$each])*
            pub text: String,
            /// A number of 64 bits with a fraction.
            $(#[$each])*
            pub real: f64,
            /// Yes or no.
            $(#[$each])*
            pub flag: bool,
            /// Any bytes.
            #[serde(with = "serde_bytes")]
            $(#[$each])*
            pub blob: Vec<u8>,
            /// A message within the message.
            #[serde(with = "depth")]
            $(#[$each])*
            $(#[$recursive])*
            pub inner: Option<Box<$name>>,
            /// One of several.
            $(#[$each])*
            pub one: Option<One>,
            /// Numbers of a fixed width.
            $(#[$each])*
            pub reals: Vec<f64>,
            /// Messages within the message.
            #[serde(with = "depth")]
            $(#[$each])*
            $(#[$recursive])*
            pub samples: Vec<$name>,
            /// Numbers by name.
            $(#[$each])*
            pub counts: BTreeMap<String, i64>,
            /// A number whose sign is its lowest bit in protobuf.
            $(#[$each])*
            pub signed: i64,
            /// A number of 32 bits.
            $(#[$each])*
            pub small: i32,
            /// A number of 8 bytes in protobuf.
            $(#[$each])*
            pub wide: u64,
            /// An enumeration.
            $(#[$each])*
            pub kind: Kind,
        }

        impl Nested for $name {
            #[inline]
            fn within(&self) -> (Option<&Self>, &[Self]) {
                (self.inner.as_deref(), &self.samples)
            }
        }
    };
}

samples!(
    "The message, with every field written in turn.

A message owns those that lie within it, so that it can't lie within itself:

```compile_fail
let mut sample = rpc::codecs::Sample::default();
sample.inner = Some(Box::new(sample));
sample.number = 1;
```",
    Sample, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize;
    ;
    #[rkyv(omit_bounds)] ;
    #[rkyv(serialize_bounds(
        __S: rkyv::ser::Writer + rkyv::ser::Allocator,
        __S::Error: rancor::Source,
    ))]
    #[rkyv(deserialize_bounds(__D::Error: rancor::Source))]
    #[rkyv(bytecheck(bounds(
        __C: rkyv::validation::ArchiveContext,
        __C::Error: rancor::Source,
    )))]
);

samples!(
    "The message, with fields by name, which leave out what has its default.",
    Named;
    #[serde(default, skip_serializing_if = "is_default")] ;
    ;
);

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Turns one form of the message into another, field by field; what differs is given.
macro_rules! convert {
    ($from:ident => $($to:ident)::+ {
        $($same:ident)*; $($field:ident: $value:expr),* $(,)?
    } $(..$rest:expr)?) => {
        $($to)::+ { $($same: $from.$same,)* $($field: $value,)* $(..$rest)? }
    };
}
pub(super) use convert;

impl From<Sample> for Named {
    fn from(from: Sample) -> Self {
        convert!(from => Self {
            number text real flag blob one reals counts signed small wide kind;
            inner: from.inner.map(|inner| Box::new((*inner).into())),
            samples: from.samples.into_iter().map(Self::from).collect(),
        })
    }
}

impl From<Named> for Sample {
    fn from(from: Named) -> Self {
        convert!(from => Self {
            number text real flag blob one reals counts signed small wide kind;
            inner: from.inner.map(|inner| Box::new((*inner).into())),
            samples: from.samples.into_iter().map(Self::from).collect(),
        })
    }
}

impl Sample {
    /// How it differs from what was expected, in words; `None` where it is equal.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        if self == expected {
            return None;
        }
        let is_empty = *self == Self::default();
        let lists: [(&str, usize, usize); 3] = [
            ("elements", self.samples.len(), expected.samples.len()),
            ("numbers", self.reals.len(), expected.reals.len()),
            ("entries", self.counts.len(), expected.counts.len()),
        ];
        let short = lists.into_iter().find(|(_, got, expected)| got != expected);
        Some(match (is_empty, short) {
            (true, Some((what, _, expected))) => {
                format!("decode returned an empty message: 0 of {} {what}", thousands(expected))
            }
            (true, None) => "decode returned an empty message".to_owned(),
            (false, Some((what, got, expected))) => {
                let [got, expected] = [got, expected].map(thousands);
                format!("decode returned another message: {got} of {expected} {what}")
            }
            (false, None) => {
                let field = self.differing_field(expected);
                format!("decode returned another message: {field} differs")
            }
        })
    }

    fn differing_field(&self, other: &Self) -> &'static str {
        let fields = [
            ("number", self.number == other.number),
            ("text", self.text == other.text),
            ("real", self.real == other.real),
            ("flag", self.flag == other.flag),
            ("blob", self.blob == other.blob),
            ("inner", self.inner == other.inner),
            ("one", self.one == other.one),
            ("reals", self.reals == other.reals),
            ("samples", self.samples == other.samples),
            ("counts", self.counts == other.counts),
            ("signed", self.signed == other.signed),
            ("small", self.small == other.small),
            ("wide", self.wide == other.wide),
        ];
        fields.into_iter().find(|(_, same)| !same).map_or("kind", |(name, _)| name)
    }
}

/// A number with its thousands apart.
fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_named() {
        let many = Sample { samples: vec![Sample::default(); 1024], ..Sample::default() };
        let difference = |got: &Sample| got.difference(&many);
        assert_eq!(difference(&many), None);
        assert_eq!(
            difference(&Sample::default()).unwrap(),
            "decode returned an empty message: 0 of 1,024 elements"
        );
        let less = Sample { samples: vec![Sample::default(); 3], ..Sample::default() };
        assert_eq!(
            difference(&less).unwrap(),
            "decode returned another message: 3 of 1,024 elements"
        );
        let other = Sample { kind: Kind::Plain, ..many.clone() };
        assert_eq!(difference(&other).unwrap(), "decode returned another message: kind differs");
    }
}
