//! Makes the authority of calls over a Unix socket one that h2 takes. C-core's clients have the
//! socket's path there, with `%2F` for `/` (RFC 3986, 3.2.2), and h2 resets a stream whose
//! authority has a `%`. No function reads it, so each becomes a `-` of the same length, in place:
//! all other bytes, and the sizes in the compression's tables, stay as they are.

/// The field's name, where it isn't the first row of the static table (RFC 7541).
const NAME: &[u8] = b":authority";

/// The row of the static table.
const ROW: u8 = 1;

/// A text of a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    /// A field's name, and how much of [`NAME`] it has been; nothing once it is another one.
    Name(Option<usize>),
    /// A value.
    Value,
    /// The value of the authority.
    Authority,
}

/// What the next byte of a header block is (RFC 7541, 5 and 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The first of a field.
    Field,
    /// One more of an index, or of a table's size; whether a value follows.
    Index(bool),
    /// The first of a text's length.
    Length(Text),
    /// One more of a length, how much it is until now, and by how many bits this one is shifted.
    MoreLength(Text, usize, u32),
    /// One of a text, of which this number of bytes is left.
    Text(Text, usize),
}

/// The header blocks of one connection, as they pass.
#[derive(Debug)]
pub(super) struct Authority(Next);

impl Authority {
    pub(super) fn new() -> Self {
        Self(Next::Field)
    }

    /// The next bytes are those of another block.
    pub(super) fn begin(&mut self) {
        self.0 = Next::Field;
    }

    /// Changes the next bytes of the block.
    pub(super) fn pass(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = match self.0 {
                Next::Field => field(*byte),
                Next::Index(has_value) => match (*byte, has_value) {
                    (0x80.., _) => Next::Index(has_value),
                    (_, true) => Next::Length(Text::Value),
                    (_, false) => Next::Field,
                },
                // Huffman's code of it has no percent sign that could be changed by itself.
                Next::Length(Text::Authority) if *byte >= 0x80 => length(Text::Value, *byte),
                Next::Length(Text::Name(_)) if *byte >= 0x80 => length(Text::Name(None), *byte),
                Next::Length(text) => length(text, *byte),
                Next::MoreLength(text, before, shift) => {
                    let more = usize::from(*byte & 0x7f).checked_shl(shift).unwrap_or(usize::MAX);
                    let length = before.saturating_add(more);
                    match *byte {
                        0x80.. => Next::MoreLength(text, length, shift.saturating_add(7)),
                        _ => of_length(text, length),
                    }
                }
                Next::Text(text, left) => of_length(change(text, byte), left - 1),
            };
        }
    }
}

/// What follows the first byte of a field.
fn field(byte: u8) -> Next {
    let (most, has_value) = match byte {
        0x80.. => (0x7f, false),
        0x40.. => (0x3f, true),
        0x20.. => (0x1f, false),
        _ => (0x0f, true),
    };
    match byte & most {
        index if index == most => Next::Index(has_value),
        _ if !has_value => Next::Field,
        0 => Next::Length(Text::Name(Some(0))),
        ROW => Next::Length(Text::Authority),
        _ => Next::Length(Text::Value),
    }
}

/// What follows the first byte of a length.
fn length(text: Text, byte: u8) -> Next {
    match usize::from(byte & 0x7f) {
        0x7f => Next::MoreLength(text, 0x7f, 0),
        length => of_length(text, length),
    }
}

/// What follows where this number of bytes of a text is left.
fn of_length(text: Text, left: usize) -> Next {
    match (left, text) {
        (1.., _) => Next::Text(text, left),
        (0, Text::Name(Some(matched))) if matched == NAME.len() => Next::Length(Text::Authority),
        (0, Text::Name(_)) => Next::Length(Text::Value),
        (0, Text::Value | Text::Authority) => Next::Field,
    }
}

/// Passes one byte of a text, or changes it.
fn change(text: Text, byte: &mut u8) -> Text {
    match text {
        Text::Name(Some(matched)) if NAME.get(matched) == Some(&*byte) => {
            Text::Name(Some(matched + 1))
        }
        Text::Name(_) => Text::Name(None),
        Text::Authority if *byte == b'%' => {
            *byte = b'-';
            text
        }
        Text::Value | Text::Authority => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Header block of a call, and how it leaves.
    fn blocks() -> [Vec<u8>; 2] {
        ["%2Ftmp%2Fu.sock", "-2Ftmp-2Fu.sock"].map(|authority| {
            let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
            let long = "%".repeat(300);
            [
                // An indexed field, one of a long index, and a new size of the table.
                &[0x83, 0xff, 0x80, 0x01, 0x3f, 0xe1, 0x1f][..],
                // As C-core writes it, by its row, and by its row for no table.
                &[0x40][..],
                &text(":authority"),
                &text(authority),
                &[0x41],
                &text(authority),
                &[0x11],
                &text(authority),
                // Other fields keep what they have: one of a name that begins alike, one of a long
                // index, and one that is long.
                &[0x40],
                &text(":authorit"),
                &text("%2F"),
                &[0x00],
                &text(":authorityx"),
                &text("%2F"),
                &[0x7f, 0x05],
                &text("%2F"),
                &[0x44, 0x7f, 0xad, 0x01],
                long.as_bytes(),
                &[0x40],
                &text(""),
                &text(""),
                &[0x41],
                &text(authority),
            ]
            .concat()
        })
    }

    #[test]
    fn percent_signs_of_the_authority_are_replaced_in_any_division_of_the_bytes() {
        let [came, leaves] = blocks();
        for size in 1..came.len() {
            let mut bytes = came.clone();
            let mut authority = Authority::new();
            bytes.chunks_mut(size).for_each(|piece| authority.pass(piece));
            assert_eq!(bytes, leaves, "{size}");
        }
        // A block that was cut short is no part of the next one.
        let mut authority = Authority::new();
        authority.pass(&mut came[..12].to_vec());
        authority.begin();
        let mut bytes = came;
        authority.pass(&mut bytes);
        assert_eq!(bytes, leaves);
    }

    #[test]
    fn what_is_in_huffmans_code_stays() {
        let mut bytes = [0x41, 0x82, b'%', b'%', 0x40, 0x81, b'%', 0x01, b'%'];
        Authority::new().pass(&mut bytes);
        assert_eq!(bytes, [0x41, 0x82, b'%', b'%', 0x40, 0x81, b'%', 0x01, b'%']);
    }

    proptest! {
        #[test]
        fn any_bytes_pass_and_keep_their_number(mut bytes: Vec<u8>) {
            let before = bytes.clone();
            Authority::new().pass(&mut bytes);
            let changed = bytes.iter().zip(&before).filter(|(one, other)| one != other);
            prop_assert!(changed.clone().all(|pair| pair == (&b'-', &b'%')));
        }
    }
}
