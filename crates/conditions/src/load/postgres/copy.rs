//! Rows as `COPY … FROM STDIN (FORMAT binary)` takes them: a count of fields, and each field with
//! its length, big-endian (PostgreSQL's documentation of COPY, "Binary Format").

/// Rows for one COPY.
pub(super) struct Rows(Vec<u8>);

/// The signature, no flags, no extension of the header.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The lower bound of a range is part of it, and both bounds are there (`RANGE_LB_INC`).
const RANGE_FLAGS: u8 = 2;

impl Rows {
    pub(super) fn begin() -> Self {
        Self(HEAD.to_vec())
    }

    /// Begins a row of this many fields.
    pub(super) fn row(&mut self, fields: u32) {
        self.0.extend((fields as i16).to_be_bytes());
    }

    fn field(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as i32).to_be_bytes());
        self.0.extend(bytes);
    }

    pub(super) fn int4(&mut self, value: u32) {
        self.field(&value.to_be_bytes());
    }

    pub(super) fn int8(&mut self, value: u64) {
        self.field(&value.to_be_bytes());
    }

    pub(super) fn float4(&mut self, value: f32) {
        self.field(&value.to_be_bytes());
    }

    pub(super) fn bytea(&mut self, bytes: &[u8]) {
        self.field(bytes);
    }

    /// An int8range of `[since, until)`.
    pub(super) fn int8range(&mut self, (since, until): (u64, u64)) {
        self.0.extend(25_i32.to_be_bytes());
        self.0.push(RANGE_FLAGS);
        self.int8(since);
        self.int8(until);
    }

    /// All of them, ended.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.extend((-1_i16).to_be_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_the_documentation_has_it() {
        let mut rows = Rows::begin();
        rows.row(2);
        rows.int4(7);
        rows.int8range((1, 258));
        let bytes = rows.end();
        let (head, rest) = bytes.split_at(19);
        assert_eq!(head, HEAD);
        let expected: &[&[u8]] = &[
            &[0, 2],
            &[0, 0, 0, 4, 0, 0, 0, 7],
            &[0, 0, 0, 25, 2],
            &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2],
            &[255, 255],
        ];
        assert_eq!(rest, expected.concat());
    }
}
