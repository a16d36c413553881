//! What is in the lists: every row is a function of the seed and its place.

use std::fmt::Write as _;
use std::ops::Range;

use load::{Finding, Kind, Op, Operation, Outcome, Took, scramble};

/// [`load::Op::operation`] is an index into them.
pub(super) static OPERATIONS: [Operation; 1] =
    [Operation::new("query", Kind::Read, "Asks what all lists of the tag show at a moment.")];

/// The tag of all lists.
pub(super) const TAG: &str = "load";

/// An open end.
pub(super) const OPEN: i64 = i64::MAX;

/// About what a row of an answer has.
pub(super) const ROW_BYTES: u64 = 150;

/// The most rows of one part of the preparation.
const ROWS_PER_PART: u32 = 10_000;

/// Payload types of a tag, each with a list of as many payload IOVs: the n-th from (n, 0) on,
/// without an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) types: u32,
    pub(super) iovs: u32,
    pub(super) seed: u64,
}

/// What one part of the preparation writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Whatever comes before lists.
    Begin,
    /// The IOVs of a type, whose list is made with the first of them.
    Iovs { of_type: u32, iovs: Range<u32> },
    /// Whatever makes them ready to be asked.
    End,
}

/// A row of an answer, in the order of its columns.
pub(super) type Row = (String, String, String, Option<i64>, i64, i64, i64, i64, Option<String>);

impl Made {
    fn parts_per_type(&self) -> u64 {
        u64::from(self.iovs.div_ceil(ROWS_PER_PART))
    }

    /// The number of [`Piece`]s.
    pub(super) fn parts(&self) -> u64 {
        2 + u64::from(self.types) * self.parts_per_type()
    }

    /// What a part writes.
    pub(super) fn piece(&self, part: u64) -> Piece {
        let Some(number) = part.checked_sub(1) else { return Piece::Begin };
        let (of_type, piece) = (number / self.parts_per_type(), number % self.parts_per_type());
        if of_type >= u64::from(self.types) {
            return Piece::End;
        }
        let first = piece as u32 * ROWS_PER_PART;
        let iovs = first..self.iovs.min(first + ROWS_PER_PART);
        Piece::Iovs { of_type: of_type as u32, iovs }
    }

    /// The name of a payload type.
    pub(super) fn type_name(of_type: u32) -> String {
        format!("load_type_{of_type:03}")
    }

    /// Where the payload of an IOV is, and its checksum.
    pub(super) fn payload(&self, of_type: u32, iov: u32) -> (String, String) {
        let place = u64::from(of_type) << 32 | u64::from(iov);
        let first = scramble(self.seed ^ scramble(place));
        let name = Self::type_name(of_type);
        let url = format!("{:02x}/{name}/{first:016x}.cdb", first >> 56);
        (url, format!("md5:{first:016x}{:016x}", scramble(!first)))
    }

    /// Whether this is what the lists show at (`major`, 0), as our own server writes it. To write
    /// and compare takes a fraction of what it takes to read the rows, which the load would be
    /// measured by; what is written otherwise is read.
    pub(super) fn is_written(&self, major: u32, mut json: &[u8]) -> bool {
        let mut row = String::with_capacity(256);
        let is_next = |json: &mut &[u8], text: &str| {
            let rest = json.strip_prefix(text.as_bytes());
            rest.map(|rest| *json = rest).is_some()
        };
        for of_type in 0..self.types {
            let (url, checksum) = self.payload(of_type, major);
            let mark = if of_type == 0 { '[' } else { ',' };
            row.clear();
            // Writing to a string can't fail.
            let _ = write!(row, r#"{mark}["load_type_{of_type:03}","{url}","{checksum}","#)
                .and_then(|()| write!(row, "null,{major},0,{OPEN},{OPEN},null]"));
            if !is_next(&mut json, &row) {
                return false;
            }
        }
        json == b"]"
    }

    /// Whether these rows are what the lists show at (`major`, 0), in any order; the first
    /// difference otherwise.
    pub(super) fn wrong(&self, major: u32, mut rows: Vec<Row>) -> Option<String> {
        rows.sort_unstable();
        if rows.len() != self.types as usize {
            return Some(format!("{} rows, not {}", rows.len(), self.types));
        }
        (0..self.types).zip(rows).find_map(|(of_type, row)| {
            let (url, checksum) = self.payload(of_type, major);
            let (name, start) = (Self::type_name(of_type), i64::from(major));
            let right = (name, url, checksum, None, start, 0, OPEN, OPEN, None);
            (row != right).then(|| format!("{row:?}, not {right:?}"))
        })
    }

    /// The outcome of a question that took this long.
    pub(super) fn outcome(&self, op: Op, rows: Result<Vec<Row>, String>, took: Took) -> Outcome {
        let major = op.what as u32;
        let wrong = rows.map_or_else(Some, |rows| self.wrong(major, rows));
        let finding = wrong.map(|why| Finding {
            operation: OPERATIONS[op.operation].name.clone(),
            key: format!("({major}, 0)").into_bytes(),
            expected: b"its rows".to_vec(),
            received: why.into_bytes(),
            note: "not what the seed leads to".to_owned(),
        });
        let outcome = finding.map_or_else(Outcome::right, Outcome::wrong);
        Outcome { took: Some(took), ..outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_to_be_there_with_its_values() {
        let made = Made { types: 3, iovs: 2, seed: 7 };
        let row = |of_type| {
            let (url, checksum) = made.payload(of_type, 1);
            (Made::type_name(of_type), url, checksum, None, 1, 0, OPEN, OPEN, None)
        };
        let rows: Vec<Row> = [2, 0, 1].map(row).to_vec();
        assert_eq!(made.wrong(1, rows.clone()), None);
        assert!(made.wrong(0, rows.clone()).is_some());
        assert_eq!(made.wrong(1, rows[1..].to_vec()), Some("2 rows, not 3".to_owned()));
        let twice = [rows[0].clone(), rows[0].clone(), rows[1].clone()];
        assert!(made.wrong(1, twice.to_vec()).is_some());
        let mut ended = rows;
        ended[0].6 = 2;
        assert!(made.wrong(1, ended).is_some_and(|why| why.contains("load_type_002")));
    }

    #[test]
    fn what_is_written_as_it_has_to_be_is_known_without_being_read() {
        let made = Made { types: 2, iovs: 2, seed: 7 };
        let rows = (0..2).map(|of_type| {
            let (url, checksum) = made.payload(of_type, 1);
            (Made::type_name(of_type), url, checksum, None::<i64>, 1, 0, OPEN, OPEN, None::<i64>)
        });
        let json = serde_json::to_vec(&rows.collect::<Vec<_>>()).expect("JSON");
        assert!(made.is_written(1, &json) && !made.is_written(0, &json));
        for end in 0..json.len() {
            assert!(!made.is_written(1, &json[..end]), "cut at {end}");
        }
        assert!(!made.is_written(1, &[&json[..], b" "].concat()));
    }

    #[test]
    fn the_parts_are_all_iovs_once() {
        let made = Made { types: 2, iovs: 26_000, seed: 1 };
        let pieces: Vec<_> = (0..made.parts()).map(|part| made.piece(part)).collect();
        assert_eq!((&pieces[0], &pieces[7], pieces.len()), (&Piece::Begin, &Piece::End, 8));
        assert_eq!(pieces[3], Piece::Iovs { of_type: 0, iovs: 20_000..26_000 });
        assert_eq!(pieces[4], Piece::Iovs { of_type: 1, iovs: 0..10_000 });
    }
}
