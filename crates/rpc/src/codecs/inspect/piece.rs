//! What is seen of an encoding: its pieces, and why there may be no more of them; the limits.

/// The most bytes that are looked at.
pub const MOST_BYTES: usize = 16 << 20;

/// The most pieces that are kept, which take more memory than their bytes.
pub(super) const MOST_PIECES: usize = 200_000;

/// How deep values may lie within each other.
pub(super) const MOST_DEPTH: usize = 2 * super::super::depth::MOST;

/// What bytes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// What the whole begins with.
    Header,
    /// Which field or what type follows.
    Keys,
    /// How long something is, or where it ends or lies.
    Lengths,
    /// Nothing.
    Padding,
    /// The values themselves.
    Payload,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Header, Self::Keys, Self::Lengths, Self::Padding, Self::Payload];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Keys => "keys",
            Self::Lengths => "lengths",
            Self::Padding => "padding",
            Self::Payload => "payload",
        }
    }
}

/// Some bytes that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where they begin.
    pub offset: usize,
    /// How many they are.
    pub length: usize,
    /// Within how many values they lie.
    pub depth: usize,
    /// The field or place that they belong to; empty where there is none.
    pub field: String,
    /// Their type.
    pub kind: String,
    /// Their value, in words.
    pub value: String,
    /// What they are for.
    pub cause: Cause,
}

/// Why bytes can't be read further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub offset: usize,
    /// Why.
    pub why: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.why)
    }
}

impl std::error::Error for Fault {}
