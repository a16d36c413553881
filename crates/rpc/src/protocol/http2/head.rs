//! The header block of a request, as gRPC's own clients write it: in full the first time on a
//! connection, and as indices of the server's table from then on. Data plane.

use super::hpack::{put_integer, put_text};

/// The table that every server has unless it says otherwise. One that has less gets every block in
/// full.
const TABLE_BYTES: u32 = 4096;

/// The first index behind the static table.
const FIRST_INDEX: usize = 62;

/// Indices of the static table.
const PATH: usize = 4;
const AUTHORITY: usize = 1;
const CONTENT_TYPE: usize = 31;
const USER_AGENT: usize = 58;

const POST: u8 = 0x83;
const HTTP: u8 = 0x86;

/// A field that is the same in all requests, and how it begins: an index of the static table, or 0
/// and a name.
#[derive(Debug)]
struct Field {
    index: usize,
    name: &'static str,
    value: Vec<u8>,
    /// Its number among those that were put into the server's table.
    entry: Option<usize>,
}

impl Field {
    fn new(index: usize, name: &'static str, value: &[u8]) -> Self {
        Self { index, name, value: value.to_vec(), entry: None }
    }

    #[inline]
    fn put(&mut self, entries: &mut usize, has_table: bool, into: &mut Vec<u8>) {
        if let Some(entry) = self.entry {
            // The newest entry has the first index.
            return put_integer(0x80, 7, FIRST_INDEX + *entries - 1 - entry, into);
        }
        if has_table {
            put_integer(0x40, 6, self.index, into);
            self.entry = Some(*entries);
            *entries += 1;
        } else {
            put_integer(0, 4, self.index, into);
        }
        if self.index == 0 {
            put_text(self.name.as_bytes(), into);
        }
        put_text(&self.value, into);
    }
}

/// The header blocks of one connection's requests.
#[derive(Debug)]
pub(super) struct RequestHeads {
    paths: Vec<Field>,
    same: [Field; 4],
    /// How many fields the server's table has.
    entries: usize,
    has_table: bool,
    /// A smaller table has to be acknowledged by the next block.
    says_size: bool,
}

impl RequestHeads {
    pub(super) fn new(authority: &str, paths: &[&str]) -> Self {
        let agent = concat!("loadline/", env!("CARGO_PKG_VERSION"));
        Self {
            paths: paths.iter().map(|path| Field::new(PATH, "", path.as_bytes())).collect(),
            same: [
                Field::new(AUTHORITY, "", authority.as_bytes()),
                Field::new(0, "te", b"trailers"),
                Field::new(CONTENT_TYPE, "", b"application/grpc"),
                Field::new(USER_AGENT, "", agent.as_bytes()),
            ],
            entries: 0,
            has_table: true,
            says_size: false,
        }
    }

    /// The server has said how large its table is.
    pub(super) fn set_table(&mut self, bytes: u32) {
        if bytes < TABLE_BYTES && self.has_table {
            (self.has_table, self.says_size, self.entries) = (false, true, 0);
            let all = self.paths.iter_mut().chain(&mut self.same);
            all.for_each(|field| field.entry = None);
        }
    }

    /// Appends the block of a request to path number `path`.
    #[inline]
    pub(super) fn put(&mut self, path: usize, into: &mut Vec<u8>) {
        if std::mem::take(&mut self.says_size) {
            into.push(0x20);
        }
        into.extend_from_slice(&[POST, HTTP]);
        let Self { paths, same, entries, has_table, .. } = self;
        let path = paths.get_mut(path);
        debug_assert!(path.is_some(), "every operation has a path");
        if let Some(field) = path {
            field.put(entries, *has_table, into);
        }
        same.iter_mut().for_each(|field| field.put(entries, *has_table, into));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_is_seven_bytes_and_a_small_table_has_none() {
        let mut heads = RequestHeads::new("localhost", &["/a.B/C", "/a.B/D"]);
        let mut put = |path| {
            let mut block = Vec::new();
            heads.put(path, &mut block);
            block
        };
        let first = put(0);
        assert!(
            first.starts_with(b"\x83\x86\x44\x06/a.B/C\x41\x09localhost\x40\x02te\x08trailers")
        );
        // Newest first: user-agent 62, content-type 63, te 64, authority 65, path 66.
        assert_eq!(put(0), [0x83, 0x86, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
        assert!(put(1).ends_with(&[0xc2, 0xc1, 0xc0, 0xbf]), "the other path moves them on");
        assert_eq!(put(1), [0x83, 0x86, 0xbe, 0xc2, 0xc1, 0xc0, 0xbf]);
        assert_eq!(put(0), [0x83, 0x86, 0xc3, 0xc2, 0xc1, 0xc0, 0xbf]);
        heads.set_table(4096);
        heads.set_table(100);
        let mut block = Vec::new();
        heads.put(0, &mut block);
        assert!(block.starts_with(b"\x20\x83\x86\x04\x06/a.B/C\x01\x09localhost\x00\x02te"));
        block.clear();
        heads.put(0, &mut block);
        assert!(block.starts_with(b"\x83\x86\x04"), "it is sent once");
    }
}
