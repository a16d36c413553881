//! The messages that are measured and tested, by name.

/// What a message is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Five scalars, one of them a text of 17 bytes.
    Small,
    /// A small message within a message, and one of several.
    Nested,
    /// One of several: a number, a text or a message.
    OneOf,
    /// An enumeration.
    Enum,
    /// Numbers by name.
    Map,
    /// Numbers of 8 bytes.
    Doubles,
    /// Small messages.
    Messages,
    /// Each message within the one before it.
    Chain,
    /// A text.
    Text,
    /// −1 as 64 and as 32 bits.
    MinusOne,
    /// 0 in the same places.
    Zero,
    /// 1 in the same places.
    PlusOne,
}

/// A shape by its name.
#[derive(Debug)]
pub(crate) struct Row {
    /// The shape.
    pub(crate) shape: Shape,
    /// Its name in suites.
    pub(crate) name: &'static str,
    /// The largest size; 0 is of shapes that have one size only.
    pub(crate) most: usize,
    /// What size counts.
    pub(crate) counted: &'static str,
}

const fn row(shape: Shape, name: &'static str, most: usize, counted: &'static str) -> Row {
    Row { shape, name, most, counted }
}

/// Every shape.
pub(crate) static SHAPES: [Row; 12] = [
    row(Shape::Small, "small", 0, ""),
    row(Shape::Nested, "nested", 0, ""),
    row(Shape::OneOf, "oneof", 0, ""),
    row(Shape::Enum, "enum", 0, ""),
    row(Shape::Map, "map", 100_000, "entries"),
    row(Shape::Doubles, "doubles", 1 << 20, "numbers"),
    row(Shape::Messages, "messages", 1 << 16, "messages"),
    row(Shape::Chain, "chain", 101, "messages"),
    row(Shape::Text, "text", 1 << 24, "bytes"),
    row(Shape::MinusOne, "minus-one", 0, ""),
    row(Shape::Zero, "zero", 0, ""),
    row(Shape::PlusOne, "plus-one", 0, ""),
];
