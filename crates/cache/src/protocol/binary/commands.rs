//! The requests of the binary protocol: one row each.

use crate::protocol::text::StoreVerb;

/// A request that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Whether the key gets another expiry.
    pub touches: bool,
    /// Whether the key comes back.
    pub gives_key: bool,
    /// Whether the value comes back.
    pub gives_value: bool,
}

impl Read {
    const GET: Self = Self { touches: false, gives_key: false, gives_value: true };
    const GETK: Self = Self { gives_key: true, ..Self::GET };
    const GAT: Self = Self { touches: true, ..Self::GET };
    const GATK: Self = Self { touches: true, ..Self::GETK };
    const TOUCH: Self = Self { gives_value: false, ..Self::GAT };
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An item is read, and perhaps given another expiry.
    Read(Read),
    /// A value is stored.
    Store(StoreVerb),
    /// A key is removed.
    Delete,
    /// A number is incremented (`true`) or decremented.
    Sum(bool),
    /// All items are removed.
    Flush,
    /// Nothing.
    Noop,
    /// The version is returned.
    Version,
    /// Statistics are returned.
    Stat,
    /// The connection is closed.
    Quit,
    /// SASL, which is refused.
    Sasl,
}

/// Whether a request has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRule {
    /// It has none.
    Forbidden,
    /// It has one.
    Required,
    /// It may have one.
    Optional,
}

/// One request.
#[derive(Debug)]
pub struct Row {
    /// Its number.
    pub opcode: u8,
    /// What it is called.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Whether what nearly always comes is not answered.
    pub quiet: bool,
    /// How long its extras may be.
    pub extras: &'static [usize],
    /// Whether it has a key.
    pub key: KeyRule,
    /// Whether it has a value.
    pub value: bool,
    /// What a request does.
    pub act: Action,
}

/// All requests.
pub static COMMANDS: &[Row] = &[
    Row {
        opcode: 0x00,
        name: "get",
        doc: "The value of a key, with its flags.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GET),
    },
    Row {
        opcode: 0x09,
        name: "getq",
        doc: "Like `get`; a miss is not answered.",
        quiet: true,
        extras: &[0],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GET),
    },
    Row {
        opcode: 0x0c,
        name: "getk",
        doc: "Like `get`, and the key comes back.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GETK),
    },
    Row {
        opcode: 0x0d,
        name: "getkq",
        doc: "Like `getk`; a miss is not answered.",
        quiet: true,
        extras: &[0],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GETK),
    },
    Row {
        opcode: 0x01,
        name: "set",
        doc: "Stores a value.",
        quiet: false,
        extras: &[8],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Set),
    },
    Row {
        opcode: 0x11,
        name: "setq",
        doc: "Like `set`; success is not answered.",
        quiet: true,
        extras: &[8],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Set),
    },
    Row {
        opcode: 0x02,
        name: "add",
        doc: "Stores a value, unless the key is there.",
        quiet: false,
        extras: &[8],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Add),
    },
    Row {
        opcode: 0x12,
        name: "addq",
        doc: "Like `add`; success is not answered.",
        quiet: true,
        extras: &[8],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Add),
    },
    Row {
        opcode: 0x03,
        name: "replace",
        doc: "Stores a value, if the key is there.",
        quiet: false,
        extras: &[8],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Replace),
    },
    Row {
        opcode: 0x13,
        name: "replaceq",
        doc: "Like `replace`; success is not answered.",
        quiet: true,
        extras: &[8],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Replace),
    },
    Row {
        opcode: 0x0e,
        name: "append",
        doc: "Puts a value behind the one that is there.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Append),
    },
    Row {
        opcode: 0x19,
        name: "appendq",
        doc: "Like `append`; success is not answered.",
        quiet: true,
        extras: &[0],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Append),
    },
    Row {
        opcode: 0x0f,
        name: "prepend",
        doc: "Puts a value before the one that is there.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Prepend),
    },
    Row {
        opcode: 0x1a,
        name: "prependq",
        doc: "Like `prepend`; success is not answered.",
        quiet: true,
        extras: &[0],
        key: KeyRule::Required,
        value: true,
        act: Action::Store(StoreVerb::Prepend),
    },
    Row {
        opcode: 0x04,
        name: "delete",
        doc: "Removes a key.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Required,
        value: false,
        act: Action::Delete,
    },
    Row {
        opcode: 0x14,
        name: "deleteq",
        doc: "Like `delete`; success is not answered.",
        quiet: true,
        extras: &[0],
        key: KeyRule::Required,
        value: false,
        act: Action::Delete,
    },
    Row {
        opcode: 0x05,
        name: "increment",
        doc: "Adds to a number, or makes it.",
        quiet: false,
        extras: &[20],
        key: KeyRule::Required,
        value: false,
        act: Action::Sum(true),
    },
    Row {
        opcode: 0x15,
        name: "incrementq",
        doc: "Like `increment`; success is not answered.",
        quiet: true,
        extras: &[20],
        key: KeyRule::Required,
        value: false,
        act: Action::Sum(true),
    },
    Row {
        opcode: 0x06,
        name: "decrement",
        doc: "Subtracts from a number, or makes it.",
        quiet: false,
        extras: &[20],
        key: KeyRule::Required,
        value: false,
        act: Action::Sum(false),
    },
    Row {
        opcode: 0x16,
        name: "decrementq",
        doc: "Like `decrement`; success is not answered.",
        quiet: true,
        extras: &[20],
        key: KeyRule::Required,
        value: false,
        act: Action::Sum(false),
    },
    Row {
        opcode: 0x1c,
        name: "touch",
        doc: "Gives a key another expiry.",
        quiet: false,
        extras: &[4],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::TOUCH),
    },
    Row {
        opcode: 0x1d,
        name: "gat",
        doc: "Gives a key another expiry and its value back.",
        quiet: false,
        extras: &[4],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GAT),
    },
    Row {
        opcode: 0x1e,
        name: "gatq",
        doc: "Like `gat`; a miss is not answered.",
        quiet: true,
        extras: &[4],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GAT),
    },
    Row {
        opcode: 0x23,
        name: "gatk",
        doc: "Like `gat`, and the key comes back.",
        quiet: false,
        extras: &[4],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GATK),
    },
    Row {
        opcode: 0x24,
        name: "gatkq",
        doc: "Like `gatk`; a miss is not answered.",
        quiet: true,
        extras: &[4],
        key: KeyRule::Required,
        value: false,
        act: Action::Read(Read::GATK),
    },
    Row {
        opcode: 0x08,
        name: "flush",
        doc: "Forgets everything, now or later.",
        quiet: false,
        extras: &[0, 4],
        key: KeyRule::Forbidden,
        value: false,
        act: Action::Flush,
    },
    Row {
        opcode: 0x18,
        name: "flushq",
        doc: "Like `flush`; success is not answered.",
        quiet: true,
        extras: &[0, 4],
        key: KeyRule::Forbidden,
        value: false,
        act: Action::Flush,
    },
    Row {
        opcode: 0x0a,
        name: "noop",
        doc: "Is answered in its turn.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Forbidden,
        value: false,
        act: Action::Noop,
    },
    Row {
        opcode: 0x0b,
        name: "version",
        doc: "The service's version.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Forbidden,
        value: false,
        act: Action::Version,
    },
    Row {
        opcode: 0x10,
        name: "stat",
        doc: "Statistics, one answer each, and an empty one at the end.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Optional,
        value: false,
        act: Action::Stat,
    },
    Row {
        opcode: 0x07,
        name: "quit",
        doc: "Closes the connection.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Forbidden,
        value: false,
        act: Action::Quit,
    },
    Row {
        opcode: 0x17,
        name: "quitq",
        doc: "Like `quit`; not answered.",
        quiet: true,
        extras: &[0],
        key: KeyRule::Forbidden,
        value: false,
        act: Action::Quit,
    },
    Row {
        opcode: 0x20,
        name: "sasl-list",
        doc: "Is not offered.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Forbidden,
        value: false,
        act: Action::Sasl,
    },
    Row {
        opcode: 0x21,
        name: "sasl-auth",
        doc: "Is not offered.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Required,
        value: true,
        act: Action::Sasl,
    },
    Row {
        opcode: 0x22,
        name: "sasl-step",
        doc: "Is not offered.",
        quiet: false,
        extras: &[0],
        key: KeyRule::Required,
        value: true,
        act: Action::Sasl,
    },
];

/// For each opcode, where its row is; [`NONE`] where there is none.
static PLACES: [u8; 256] = {
    let mut places = [NONE; 256];
    let mut at = 0;
    while at < COMMANDS.len() {
        places[COMMANDS[at].opcode as usize] = at as u8;
        at += 1;
    }
    places
};

const NONE: u8 = u8::MAX;

/// The row of `opcode`, if there is one.
#[inline]
pub fn row(opcode: u8) -> Option<&'static Row> {
    COMMANDS.get(usize::from(PLACES[usize::from(opcode)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_number() {
        for row in COMMANDS {
            assert_eq!(super::row(row.opcode).map(|found| found.name), Some(row.name));
            assert!(!row.doc.is_empty(), "{}", row.name);
            assert_eq!(row.quiet, row.name.ends_with('q'), "{}", row.name);
        }
        assert!(super::row(0x7f).is_none());
    }
}
