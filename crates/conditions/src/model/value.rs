//! What a cell holds, and the kinds of columns.

use serde::{Deserialize, Serialize};

/// The kind of a column. Journals hold a kind's place in this list: new ones come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// True or false.
    Bool,
    /// An unsigned integer of 8 bits.
    Uint8,
    /// An integer of 16 bits.
    Int16,
    /// An unsigned integer of 16 bits.
    Uint16,
    /// An integer of 32 bits.
    Int32,
    /// An unsigned integer of 32 bits.
    Uint32,
    /// An integer of 64 bits.
    Int64,
    /// An unsigned integer of 64 bits.
    Uint64,
    /// A float of 32 bits.
    Float,
    /// A float of 64 bits.
    Double,
    /// UTF-8 text.
    String,
    /// Bytes.
    Blob,
}

/// Every kind with its name, in the order of their numbers in the binary form of answers.
pub const KINDS: [(Kind, &str); 12] = [
    (Kind::Bool, "bool"),
    (Kind::Uint8, "uint8"),
    (Kind::Int16, "int16"),
    (Kind::Uint16, "uint16"),
    (Kind::Int32, "int32"),
    (Kind::Uint32, "uint32"),
    (Kind::Int64, "int64"),
    (Kind::Uint64, "uint64"),
    (Kind::Float, "float"),
    (Kind::Double, "double"),
    (Kind::String, "string"),
    (Kind::Blob, "blob"),
];

impl Kind {
    /// Bytes of each cell; `None` where cells differ in length.
    pub fn width_bytes(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Uint8 => Some(1),
            Self::Int16 | Self::Uint16 => Some(2),
            Self::Int32 | Self::Uint32 | Self::Float => Some(4),
            Self::Int64 | Self::Uint64 | Self::Double => Some(8),
            Self::String | Self::Blob => None,
        }
    }

    /// Whether its values are numbers.
    pub fn is_number(self) -> bool {
        !matches!(self, Self::Bool | Self::String | Self::Blob)
    }

    /// The name, as JSON and the command have it.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// The kind of this number.
    pub fn numbered(number: u8) -> Option<Self> {
        KINDS.get(usize::from(number)).map(|(kind, _)| *kind)
    }
}

/// One cell. Integers have the range of their column's kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, which any column may hold.
    Null,
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of every kind of integers.
    Integer(i128),
    /// Of [`Kind::Float`].
    Float(f32),
    /// Of [`Kind::Double`].
    Double(f64),
    /// Of [`Kind::String`].
    Text(String),
    /// Of [`Kind::Blob`].
    Bytes(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_the_order_of_the_enum() {
        for (number, (kind, name)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, number);
            assert_eq!((kind.name(), Kind::named(name)), (*name, Some(*kind)));
            assert_eq!(Kind::numbered(number as u8), Some(*kind));
        }
        assert_eq!((Kind::named("float32"), Kind::numbered(12)), (None, None));
    }
}
