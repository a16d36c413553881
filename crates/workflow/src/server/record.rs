//! What the journal keeps: everything that the tree was told, in order. What follows from it is
//! computed again.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 1 | kind: 1 request, 2 tick, 3 outcome, 4 start, 5 and 6 parts of a longer record |
//! | 1 | 8 | microseconds since 1970 (kinds 1 to 4), little-endian |
//! | 9 | 8 | a random number (kinds 1 to 4) |
//! | 17 | | of 1 the document |
//! | 17 | 1 | of 2 whether a minute has passed, whatever the clock says |
//! | 17 | | of 3 code (1 byte), try (4 bytes), path, a zero, password, a zero, text |
//! | 17 | | of 4 host:port |
//!
//! A record of more than 16 MiB comes in parts, the first of kind 6, the others of kind 5: how many
//! follow (4 bytes), and the bytes.
//!
//! Only [`Core`](super::core::Core) applies records, first and again: what that reads is in the
//! record, or in the tree, the handles, zombies and submissions that a snapshot keeps. Of what the
//! process was started with it reads ECF_HOME and the server's variables, which are the next one's.

use journal::MAX_RECORD_BYTES;

/// What the tree was told, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// Microseconds since 1970.
    pub(super) at_us: i64,
    /// From which passwords of jobs are made.
    pub(super) random: u64,
    /// What.
    pub(super) what: What<'a>,
}

/// What the tree was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// A request's document.
    Request(&'a [u8]),
    /// The calendars are to go on: by the clock, or by a minute (`--ecfinterval` below 60).
    Tick { is_minute: bool },
    /// What came of a command that the server had started for a job of this password.
    Outcome { code: u8, try_no: i32, path: &'a str, password: &'a str, text: &'a str },
    /// The server has started, and is reached at this host:port.
    Started(&'a str),
}

/// A random number of the system.
pub(super) fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard library's hash maps begin with random numbers of the system.
    std::hash::RandomState::new().build_hasher().finish()
}

const HEAD_BYTES: usize = 17;
const PART: u8 = 5;

/// The first part, which differs from the rest of another record by this.
const FIRST_PART: u8 = 6;
const PART_BYTES: usize = MAX_RECORD_BYTES - 5;

/// A record that is none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of the journal that this version doesn't know")]
pub(super) struct Unknown;

impl Record<'_> {
    /// Passes the bytes of the record to `append`: one piece, unless they are too many; returns how
    /// many they are.
    pub(super) fn append<E>(
        &self,
        mut append: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let What::Request(document) = self.what else {
            return pieces([&self.encode(), &[]], append);
        };
        if HEAD_BYTES + document.len() > MAX_RECORD_BYTES {
            // What is long is not copied once more.
            let head = Self { what: What::Request(&[]), ..self.clone() }.encode();
            return pieces([&head, document], append);
        }
        let bytes = self.encode();
        append(&bytes)?;
        Ok(bytes.len() as u64)
    }

    /// The bytes of the record.
    fn encode(&self) -> Vec<u8> {
        let kind = match self.what {
            What::Request(_) => 1,
            What::Tick { .. } => 2,
            What::Outcome { .. } => 3,
            What::Started(_) => 4,
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&self.at_us.to_le_bytes());
        bytes.extend_from_slice(&self.random.to_le_bytes());
        match &self.what {
            What::Request(document) => bytes.extend_from_slice(document),
            What::Tick { is_minute } => bytes.push((*is_minute).into()),
            What::Outcome { code, try_no, path, password, text } => {
                bytes.push(*code);
                bytes.extend_from_slice(&try_no.to_le_bytes());
                for word in [path, password] {
                    bytes.extend_from_slice(word.as_bytes());
                    bytes.push(0);
                }
                bytes.extend_from_slice(text.as_bytes());
            }
            What::Started(address) => bytes.extend_from_slice(address.as_bytes()),
        }
        bytes
    }
}

/// Reads a record.
pub(super) fn decode(bytes: &[u8]) -> Result<Record<'_>, Unknown> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(Unknown)?;
    let number = |from: usize| {
        head[from..from + 8].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Unknown);
    let what = match head[0] {
        1 => What::Request(rest),
        2 => What::Tick { is_minute: *rest.first().ok_or(Unknown)? != 0 },
        3 => {
            let (head, rest) = rest.split_first_chunk::<5>().ok_or(Unknown)?;
            let [code, try_no @ ..] = *head;
            let mut words = text(rest)?.splitn(3, '\0');
            let mut word = || words.next().ok_or(Unknown);
            let (path, password, text) = (word()?, word()?, word()?);
            What::Outcome { code, try_no: i32::from_le_bytes(try_no), path, password, text }
        }
        4 => What::Started(text(rest)?),
        _ => return Err(Unknown),
    };
    Ok(Record { at_us: number(1).cast_signed(), random: number(9), what })
}

/// Passes bytes that lie in two places to `append`: in one piece, unless they are too many; returns
/// how many bytes the pieces have.
fn pieces<E>(
    [head, rest]: [&[u8]; 2],
    mut append: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let whole = head.len() + rest.len();
    if whole <= MAX_RECORD_BYTES {
        append(&[head, rest].concat())?;
        return Ok(whole as u64);
    }
    let count = whole.div_ceil(PART_BYTES) as u32;
    let (mut piece, mut bytes) = (Vec::with_capacity(MAX_RECORD_BYTES), 0);
    for place in 0..count {
        let from = place as usize * PART_BYTES;
        let to = whole.min(from + PART_BYTES);
        piece.clear();
        piece.push(if place == 0 { FIRST_PART } else { PART });
        piece.extend_from_slice(&(count - 1 - place).to_le_bytes());
        piece.extend_from_slice(&head[from.min(head.len())..to.min(head.len())]);
        let of_rest = [from, to].map(|at| at.saturating_sub(head.len()));
        piece.extend_from_slice(&rest[of_rest[0]..of_rest[1]]);
        append(&piece)?;
        bytes += piece.len() as u64;
    }
    Ok(bytes)
}

/// Puts pieces together again.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    bytes: Vec<u8>,
    following: Option<u32>,
}

impl Joiner {
    /// Takes the next record of the journal and passes on what is whole. Parts whose end never
    /// came are dropped: what they are of was refused.
    pub(super) fn join<R>(&mut self, record: &[u8], whole: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let Some((is_first, following, part)) = part(record) else {
            *self = Self::default();
            return Some(whole(record));
        };
        if is_first {
            self.bytes.clear();
        } else if self.following.is_none_or(|due| due != following.saturating_add(1)) {
            *self = Self::default();
            return None;
        }
        self.bytes.extend_from_slice(part);
        self.following = Some(following);
        if following > 0 {
            return None;
        }
        Some(whole(&std::mem::take(self).bytes))
    }
}

/// Whether it is the first part, how many follow it, and the part.
fn part(record: &[u8]) -> Option<(bool, u32, &[u8])> {
    let (head, part) = record.split_first_chunk::<5>()?;
    let [kind, following @ ..] = *head;
    let is_first = kind == FIRST_PART;
    (is_first || kind == PART).then(|| (is_first, u32::from_le_bytes(following), part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(record: &Record<'_>) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let append = |piece: &[u8]| {
            all.push(piece.to_vec());
            Ok::<(), Unknown>(())
        };
        let bytes = record.append(append).expect("no error");
        assert_eq!(bytes, all.iter().map(|piece| piece.len() as u64).sum::<u64>());
        all
    }

    #[test]
    fn records_are_read_as_they_were_written_whole_or_in_parts() {
        let (path, password, text) = ("/t/a", "x", "why\nnot");
        let outcome = What::Outcome { code: 7, try_no: 2, path, password, text };
        let long = vec![b'x'; MAX_RECORD_BYTES * 2 + 9];
        let tick = What::Tick { is_minute: true };
        for what in
            [What::Request(b"{}"), tick, outcome, What::Started("h:1"), What::Request(&long)]
        {
            let record = Record { at_us: -5, random: u64::MAX, what };
            let mut joiner = Joiner::default();
            let mut seen = 0;
            for piece in pieces(&record) {
                assert!(piece.len() <= MAX_RECORD_BYTES);
                if joiner.join(&piece, |bytes| decode(bytes) == Ok(record.clone())) == Some(true) {
                    seen += 1;
                }
            }
            assert_eq!(seen, 1);
        }
    }

    #[test]
    fn a_request_of_any_length_about_that_of_a_record_is_kept() {
        for bytes in MAX_RECORD_BYTES - 20..=MAX_RECORD_BYTES + 1 {
            let long = vec![b'x'; bytes];
            let record = Record { at_us: 0, random: 0, what: What::Request(&long) };
            let pieces = pieces(&record);
            assert!(pieces.iter().all(|piece| piece.len() <= MAX_RECORD_BYTES), "{bytes}");
            assert_eq!(pieces.len(), if bytes + HEAD_BYTES <= MAX_RECORD_BYTES { 1 } else { 2 });
        }
    }

    #[test]
    fn a_record_that_was_cut_is_never_a_part_of_the_next_one() {
        let pieces_of = |parts: usize| {
            let long = vec![b'x'; PART_BYTES * parts - 100];
            pieces(&Record { at_us: 0, random: 0, what: What::Request(&long) })
        };
        // Only the first of three has been written; the next record has two.
        let (cut, whole) = (pieces_of(3), pieces_of(2));
        assert_eq!((cut.len(), whole.len()), (3, 2));
        let mut joiner = Joiner::default();
        assert_eq!(joiner.join(&cut[0], <[u8]>::len), None);
        assert_eq!(joiner.join(&whole[0], <[u8]>::len), None);
        let bytes = whole.iter().map(|part| part.len() - 5).sum::<usize>();
        assert_eq!(joiner.join(&whole[1], <[u8]>::len), Some(bytes));
        // An end without its begin is no record.
        assert_eq!(joiner.join(&whole[1], <[u8]>::len), None);
    }

    #[test]
    fn parts_without_their_end_are_dropped() {
        let record = |letter| pieces(&Record { at_us: 1, random: 2, what: What::Request(letter) });
        let long = vec![b'x'; MAX_RECORD_BYTES + 1];
        let mut joiner = Joiner::default();
        let begun = record(&long);
        assert_eq!(joiner.join(&begun[0], <[u8]>::len), None);
        assert_eq!(joiner.join(&record(b"y")[0], <[u8]>::len), Some(HEAD_BYTES + 1));
        let all: Vec<_> = begun[..1].iter().chain(&record(&long)).cloned().collect();
        let sizes: Vec<_> = all.iter().filter_map(|one| joiner.join(one, <[u8]>::len)).collect();
        assert_eq!(sizes, [HEAD_BYTES + MAX_RECORD_BYTES + 1]);
        for wrong in [&b""[..], &[9; 30], &[3; 20]] {
            assert_eq!(decode(wrong), Err(Unknown));
        }
    }
}
