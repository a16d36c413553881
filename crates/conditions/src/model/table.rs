//! Payload by columns: what is inserted, kept, journalled and returned.
//!
//! A column of a fixed width is its cells' bytes, little-endian, one after another, so that rows
//! are moved and sent without being looked at.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::value::{Kind, Value};

/// The cells of one column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cells {
    kind: Kind,
    /// The bytes of all cells; those of an empty cell are zero, or none.
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    /// Where each cell ends in `bytes`, where cells differ in length.
    ends: Vec<u64>,
    /// The rows without a value, in order.
    nulls: Vec<u32>,
}

/// A value that is not of the column's kind, or out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongKind;

impl Cells {
    /// A column without rows.
    pub fn new(kind: Kind) -> Self {
        Self { kind, bytes: Vec::new(), ends: Vec::new(), nulls: Vec::new() }
    }

    /// The column of these parts, as they were read; `None` where they make no sense.
    pub fn of_parts(
        kind: Kind,
        rows: u32,
        bytes: Vec<u8>,
        ends: Vec<u64>,
        nulls: Vec<u32>,
    ) -> Option<Self> {
        let cells = Self { kind, bytes, ends, nulls };
        cells.is_sound(rows).then_some(cells)
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The bytes of all cells.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each cell ends, where cells differ in length.
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// The rows without a value.
    pub fn nulls(&self) -> &[u32] {
        &self.nulls
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.kind.width_bytes().map_or(self.ends.len(), |width| self.bytes.len() / width)
    }

    /// Whether the parts are those of a column with `rows` rows.
    pub fn is_sound(&self, rows: u32) -> bool {
        let count = rows as usize;
        let fits = match self.kind.width_bytes() {
            Some(width) => {
                self.ends.is_empty() && Some(self.bytes.len()) == count.checked_mul(width)
            }
            None => {
                self.ends.len() == count
                    && self.ends.is_sorted()
                    && self.ends.last().copied().unwrap_or(0) == self.bytes.len() as u64
            }
        };
        let strictly = self.nulls.is_sorted_by(|one, other| one < other);
        fits && strictly && self.nulls.last().is_none_or(|last| *last < rows) && self.is_of_kind()
    }

    fn is_of_kind(&self) -> bool {
        match self.kind {
            Kind::Bool => self.bytes.iter().all(|byte| *byte < 2),
            Kind::String => std::str::from_utf8(&self.bytes)
                .is_ok_and(|text| self.ends.iter().all(|end| text.is_char_boundary(*end as usize))),
            _ => true,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When the value is of another kind; the column stays as it was.
    pub fn push(&mut self, value: &Value) -> Result<(), WrongKind> {
        match (self.kind, value) {
            (_, Value::Null) => {
                self.push_null();
                return Ok(());
            }
            (Kind::Bool, Value::Bool(value)) => self.bytes.push(u8::from(*value)),
            (Kind::Float, Value::Float(value)) => self.bytes.extend(value.to_le_bytes()),
            (Kind::Double, Value::Double(value)) => self.bytes.extend(value.to_le_bytes()),
            (Kind::String, Value::Text(text)) => self.push_bytes(text.as_bytes()),
            (Kind::Blob, Value::Bytes(bytes)) => self.push_bytes(bytes),
            (kind, Value::Integer(value)) => self.push_integer(kind, *value)?,
            _ => return Err(WrongKind),
        }
        Ok(())
    }

    /// Adds a row without a value.
    pub fn push_null(&mut self) {
        self.nulls.push(self.rows() as u32);
        match self.kind.width_bytes() {
            Some(width) => self.bytes.resize(self.bytes.len() + width, 0),
            None => self.ends.push(self.bytes.len() as u64),
        }
    }

    fn push_bytes(&mut self, cell: &[u8]) {
        self.bytes.extend_from_slice(cell);
        self.ends.push(self.bytes.len() as u64);
    }

    fn push_integer(&mut self, kind: Kind, value: i128) -> Result<(), WrongKind> {
        let range: Range<i128> = match kind {
            Kind::Uint8 => 0..1 << 8,
            Kind::Int16 => -(1 << 15)..1 << 15,
            Kind::Uint16 => 0..1 << 16,
            Kind::Int32 => -(1 << 31)..1 << 31,
            Kind::Uint32 => 0..1 << 32,
            Kind::Int64 => -(1 << 63)..1 << 63,
            Kind::Uint64 => 0..1 << 64,
            _ => return Err(WrongKind),
        };
        let width = kind.width_bytes().unwrap_or_default();
        if !range.contains(&value) {
            return Err(WrongKind);
        }
        self.bytes.extend_from_slice(&value.to_le_bytes()[..width]);
        Ok(())
    }

    /// The value of a row; nothing beyond the last one.
    pub fn value(&self, row: usize) -> Value {
        let cell = &self.bytes[self.extent(row..row + 1)];
        if row >= self.rows() || self.nulls.binary_search(&(row as u32)).is_ok() {
            return Value::Null;
        }
        let number = |signed: bool| {
            let mut wide = [0; 16];
            wide[..cell.len()].copy_from_slice(cell);
            if signed && cell.last().is_some_and(|last| *last >= 0x80) {
                wide[cell.len()..].fill(0xff);
            }
            Value::Integer(i128::from_le_bytes(wide))
        };
        match self.kind {
            Kind::Bool => Value::Bool(cell[0] != 0),
            Kind::Int16 | Kind::Int32 | Kind::Int64 => number(true),
            Kind::Uint8 | Kind::Uint16 | Kind::Uint32 | Kind::Uint64 => number(false),
            Kind::Float => Value::Float(f32::from_le_bytes(cell.try_into().unwrap_or_default())),
            Kind::Double => Value::Double(f64::from_le_bytes(cell.try_into().unwrap_or_default())),
            Kind::String => Value::Text(String::from_utf8_lossy(cell).into_owned()),
            Kind::Blob => Value::Bytes(cell.to_vec()),
        }
    }

    /// Appends these rows of another column of the same kind.
    pub fn append(&mut self, from: &Self, rows: Range<usize>) {
        let (first, extent) = (self.rows(), from.extent(rows.clone()));
        if self.kind.width_bytes().is_none() {
            let (own, other) = (self.bytes.len() as u64, extent.start as u64);
            self.ends.extend(from.ends[rows.clone()].iter().map(|end| own + end - other));
        }
        self.bytes.extend_from_slice(&from.bytes[extent]);
        if !from.nulls.is_empty() {
            let start = from.nulls.partition_point(|null| (*null as usize) < rows.start);
            let inside = from.nulls[start..].iter().take_while(|null| (**null as usize) < rows.end);
            self.nulls.extend(inside.map(|null| (first + *null as usize - rows.start) as u32));
        }
    }

    /// Appends cells of a fixed width.
    pub(super) fn append_fixed(&mut self, cells: &[u8]) {
        self.bytes.extend_from_slice(cells);
    }

    /// Appends cells that differ in length, whose ends count from `start` on; `false` where they
    /// don't follow each other.
    pub(super) fn append_varying(
        &mut self,
        cells: &[u8],
        start: u64,
        ends: impl Iterator<Item = u64>,
    ) -> bool {
        let (own, mut last) = (self.bytes.len() as u64, start);
        self.bytes.extend_from_slice(cells);
        for end in ends {
            if end < last || end - start > cells.len() as u64 {
                return false;
            }
            last = end;
            self.ends.push(own + end - start);
        }
        true
    }

    /// Says that a row, which lies behind all others of which that was said, has no value.
    pub(super) fn set_null(&mut self, row: u32) {
        self.nulls.push(row);
    }

    /// The bytes of these rows.
    pub(super) fn size_bytes(&self, rows: Range<usize>) -> usize {
        self.extent(rows).len()
    }

    /// The bytes of memory that these rows take, but for those without a value.
    pub(super) fn bytes_of(&self, rows: Range<usize>) -> usize {
        let ends =
            if self.kind.width_bytes().is_none() { rows.len() * size_of::<u64>() } else { 0 };
        self.extent(rows).len() + ends
    }

    /// The bytes of memory that all rows take, but for those without a value.
    pub fn all_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.ends.as_slice())
    }

    /// Begins anew, as a column without rows of this kind, in the same memory.
    pub fn restart(&mut self, kind: Kind) {
        self.kind = kind;
        self.bytes.clear();
        self.ends.clear();
        self.nulls.clear();
    }

    /// The bytes of a range of rows, cut to those that are there.
    fn extent(&self, rows: Range<usize>) -> Range<usize> {
        let last = rows.end.min(self.rows());
        let first = rows.start.min(last);
        match self.kind.width_bytes() {
            Some(width) => first * width..last * width,
            None => {
                let end = |row: usize| row.checked_sub(1).map_or(0, |row| self.ends[row] as usize);
                end(first)..end(last)
            }
        }
    }
}

/// Rows by columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// How many rows there are, which a table without columns has, too.
    pub rows: u32,
    /// The columns, each with as many rows.
    pub columns: Vec<Cells>,
}

impl Table {
    /// A table without rows.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self { rows: 0, columns: kinds.into_iter().map(Cells::new).collect() }
    }

    /// Whether every column has as many rows as the table, of its kind.
    pub fn is_sound(&self) -> bool {
        self.columns.iter().all(|cells| cells.is_sound(self.rows))
    }

    /// The bytes of memory that all rows take.
    pub fn bytes(&self) -> usize {
        let nulls = |cells: &Cells| size_of_val(cells.nulls.as_slice());
        let column = |cells: &Cells| cells.bytes_of(0..self.rows as usize) + nulls(cells);
        self.columns.iter().map(column).sum()
    }

    /// Takes rows off its end, all but the first `rows`.
    pub fn split_off(&mut self, rows: u32) -> Self {
        let (kept, all) = (rows.min(self.rows) as usize, self.rows as usize);
        let mut rest = Self::new(self.columns.iter().map(Cells::kind));
        for (cells, rest) in self.columns.iter_mut().zip(&mut rest.columns) {
            let mut first = Cells::new(cells.kind);
            first.append(cells, 0..kept);
            rest.append(cells, kept..all);
            *cells = first;
        }
        rest.rows = (all - kept) as u32;
        self.rows = kept as u32;
        rest
    }

    /// The values of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Value> {
        self.columns.iter().map(move |cells| cells.value(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: Kind, values: &[Value]) -> Cells {
        let mut cells = Cells::new(kind);
        values.iter().for_each(|value| cells.push(value).expect("of its kind"));
        assert!(cells.is_sound(values.len() as u32));
        cells
    }

    #[test]
    fn values_come_back_as_they_were_pushed() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (kind, values) in [
            (Kind::Bool, vec![Value::Bool(true), Value::Null, Value::Bool(false)]),
            (Kind::Int16, [-32_768, -1, 0, 32_767].map(Value::Integer).to_vec()),
            (Kind::Uint64, [0, u64::MAX.into()].map(Value::Integer).to_vec()),
            (Kind::Int64, [i64::MIN.into(), i64::MAX.into()].map(Value::Integer).to_vec()),
            (Kind::Float, vec![Value::Float(0.1), Value::Null]),
            (Kind::Double, vec![Value::Double(f64::INFINITY)]),
            (Kind::String, vec![text(""), Value::Null, text("é"), text("abc")]),
            (Kind::Blob, vec![Value::Bytes(vec![0, 255]), Value::Bytes(vec![])]),
        ] {
            let cells = column(kind, &values);
            let read: Vec<_> = (0..values.len()).map(|row| cells.value(row)).collect();
            assert_eq!(read, values, "{kind:?}");
            assert_eq!(cells.value(values.len()), Value::Null);
            let mut copy = column(kind, &[Value::Null]);
            copy.append(&cells, 1..values.len());
            let read: Vec<_> = (1..values.len()).map(|row| copy.value(row)).collect();
            assert_eq!(read, values[1..], "{kind:?}");
            assert!(copy.is_sound(values.len() as u32), "{kind:?}");
        }
    }

    #[test]
    fn what_is_of_another_kind_or_out_of_range_is_refused() {
        for (kind, value) in [
            (Kind::Uint8, Value::Integer(256)),
            (Kind::Uint8, Value::Integer(-1)),
            (Kind::Int32, Value::Integer(1 << 31)),
            (Kind::Bool, Value::Integer(1)),
            (Kind::Float, Value::Double(1.0)),
            (Kind::String, Value::Bytes(vec![])),
        ] {
            let mut cells = Cells::new(kind);
            assert_eq!(cells.push(&value), Err(WrongKind), "{kind:?} {value:?}");
            assert_eq!(cells.rows(), 0);
        }
    }

    #[test]
    fn parts_that_contradict_each_other_are_no_column() {
        let is_sound = |kind, rows, bytes: &[u8], ends: &[u64], nulls: &[u32]| {
            Cells::of_parts(kind, rows, bytes.to_vec(), ends.to_vec(), nulls.to_vec()).is_some()
        };
        assert!(is_sound(Kind::Bool, 2, &[0, 1], &[], &[1]));
        assert!(!is_sound(Kind::Bool, 1, &[2], &[], &[]), "neither true nor false");
        assert!(!is_sound(Kind::Int32, 2, &[0; 7], &[], &[]), "a part of a cell");
        assert!(!is_sound(Kind::Int32, 1, &[0; 4], &[4], &[]), "ends of cells of one width");
        assert!(!is_sound(Kind::Blob, 2, &[0; 3], &[2, 1], &[]), "ends out of order");
        assert!(!is_sound(Kind::Blob, 1, &[0; 3], &[2], &[]), "bytes of no cell");
        assert!(!is_sound(Kind::Uint8, 2, &[0; 2], &[], &[1, 1]), "a row twice");
        assert!(!is_sound(Kind::Uint8, 2, &[0; 2], &[], &[2]), "a row that isn't there");
        assert!(!is_sound(Kind::String, 2, "é".as_bytes(), &[1, 2], &[]), "half a character");
    }
}
