//! The header block of a request, as gRPC's own clients write it: in full the first time on a
//! connection, and as indices of the server's table from then on. Data plane.

use std::borrow::Cow;

use super::hpack::{put_integer, put_text};

/// The table that every server has unless it says otherwise. One that has less gets every block in
/// full.
const TABLE_BYTES: u32 = 4096;

/// What an entry of the table takes beside its name and value.
const ENTRY_BYTES: usize = 32;

/// The first index behind the static table.
const FIRST_INDEX: usize = 62;

/// Indices of the static table.
const PATH: usize = 4;
const AUTHORITY: usize = 1;
const CONTENT_TYPE: usize = 31;
const USER_AGENT: usize = 58;

const POST: u8 = 0x83;
const HTTP: u8 = 0x86;
const HTTPS: u8 = 0x87;

/// What all requests of a connection say beside their paths.
#[derive(Clone, Debug)]
pub struct Asks {
    /// Which server is asked for, where several share an address.
    pub authority: String,
    /// Whether TLS is below.
    pub is_encrypted: bool,
    /// Metadata, as it is sent.
    pub fields: Vec<(String, String)>,
}

/// A path that requests ask for.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// `/package.Service/Method`.
    pub name: &'a str,
    /// How long the server may take for each request, as `grpc-timeout` says it.
    pub timeout: Option<&'a str>,
}

/// A field that is the same in all requests, and how it begins: an index of the static table, or 0
/// and a name.
#[derive(Debug)]
struct Field {
    index: usize,
    name: Cow<'static, str>,
    value: Vec<u8>,
    /// The table has room for it beside the others, which stay there: indices count on that.
    has_room: bool,
    /// Its number among those that were put into the server's table.
    entry: Option<usize>,
}

impl Field {
    fn new(index: usize, name: impl Into<Cow<'static, str>>, value: &[u8]) -> Self {
        Self { index, name: name.into(), value: value.to_vec(), has_room: true, entry: None }
    }

    /// At most what its entry takes: no name of the static table that is used is longer than 32.
    fn most_bytes(&self) -> usize {
        let name = if self.index == 0 { self.name.len() } else { ENTRY_BYTES };
        name + self.value.len() + ENTRY_BYTES
    }

    #[inline]
    fn put(&mut self, entries: &mut usize, has_table: bool, into: &mut Vec<u8>) {
        if let Some(entry) = self.entry {
            // The newest entry has the first index.
            return put_integer(0x80, 7, FIRST_INDEX + *entries - 1 - entry, into);
        }
        if has_table && self.has_room {
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
    /// As an index of the static table.
    scheme: u8,
    /// Each with the number of its time among `timeouts`.
    paths: Vec<(Field, Option<usize>)>,
    timeouts: Vec<Field>,
    same: [Field; 4],
    more: Vec<Field>,
    /// How many fields the server's table has.
    entries: usize,
    has_table: bool,
    /// A smaller table has to be acknowledged by the next block.
    says_size: bool,
}

impl RequestHeads {
    /// Of requests to these paths.
    pub(super) fn new(asks: &Asks, paths: &[Path<'_>]) -> Self {
        let agent = concat!("loadline/", env!("CARGO_PKG_VERSION"));
        let more = |(name, value): &(String, String)| Field::new(0, name.clone(), value.as_bytes());
        let mut times: Vec<&str> = paths.iter().filter_map(|path| path.timeout).collect();
        times.dedup();
        let time = |path: &Path<'_>| times.iter().position(|time| Some(*time) == path.timeout);
        let path = |path: &Path<'_>| (Field::new(PATH, "", path.name.as_bytes()), time(path));
        let timeout = |time: &&str| Field::new(0, "grpc-timeout", time.as_bytes());
        let mut heads = Self {
            scheme: if asks.is_encrypted { HTTPS } else { HTTP },
            paths: paths.iter().map(path).collect(),
            timeouts: times.iter().map(timeout).collect(),
            same: [
                Field::new(AUTHORITY, "", asks.authority.as_bytes()),
                Field::new(0, "te", b"trailers"),
                Field::new(CONTENT_TYPE, "", b"application/grpc"),
                Field::new(USER_AGENT, "", agent.as_bytes()),
            ],
            more: asks.fields.iter().map(more).collect(),
            entries: 0,
            has_table: true,
            says_size: false,
        };
        let mut room = TABLE_BYTES as usize;
        heads.all().for_each(|field| {
            let left = room.checked_sub(field.most_bytes());
            field.has_room = left.is_some();
            room = left.unwrap_or(room);
        });
        heads
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Field> {
        let paths = self.paths.iter_mut().map(|(path, _)| path);
        self.same.iter_mut().chain(paths).chain(&mut self.timeouts).chain(&mut self.more)
    }

    /// The server has said how large its table is.
    pub(super) fn set_table(&mut self, bytes: u32) {
        if bytes < TABLE_BYTES && self.has_table {
            (self.has_table, self.says_size, self.entries) = (false, true, 0);
            self.all().for_each(|field| field.entry = None);
        }
    }

    /// Appends the block of a request to path number `path`.
    #[inline]
    pub(super) fn put(&mut self, path: usize, into: &mut Vec<u8>) {
        if std::mem::take(&mut self.says_size) {
            into.push(0x20);
        }
        into.extend_from_slice(&[POST, self.scheme]);
        let Self { paths, timeouts, same, more, entries, has_table, .. } = self;
        let path = paths.get_mut(path);
        debug_assert!(path.is_some(), "every operation has a path");
        let mut timeout = None;
        if let Some((field, number)) = path {
            field.put(entries, *has_table, into);
            timeout = number.and_then(|number| timeouts.get_mut(number));
        }
        let fields = same.iter_mut().chain(timeout).chain(more);
        fields.for_each(|field| field.put(entries, *has_table, into));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Asks {
        pub(in crate::protocol::http2) fn of(authority: &str) -> Self {
            Self { authority: authority.to_owned(), is_encrypted: false, fields: Vec::new() }
        }
    }

    impl<'a> Path<'a> {
        pub(in crate::protocol::http2) fn of(name: &'a str) -> Self {
            Self { name, timeout: None }
        }
    }

    #[test]
    fn the_second_request_is_seven_bytes_and_a_small_table_has_none() {
        let mut heads =
            RequestHeads::new(&Asks::of("localhost"), &["/a.B/C", "/a.B/D"].map(Path::of));
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

    #[test]
    fn fields_of_each_request_are_indices_from_the_second_one_on_as_far_as_the_table_has_room() {
        let large = "y".repeat(3_900);
        let fields = [("x-a", "1"), ("x-large", &large[..]), ("x-b", "2")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let asks = Asks { is_encrypted: true, fields, ..Asks::of("localhost") };
        let mut heads = RequestHeads::new(&asks, &[Path::of("/a.B/C")]);
        let mut put = || {
            let mut block = Vec::new();
            heads.put(0, &mut block);
            block
        };
        let first = put();
        let large = [&b"\x00\x07x-large\x7f"[..], b"\xbd\x1d", large.as_bytes()].concat();
        let right = [&b"\x40\x03x-a\x011"[..], &large, b"\x40\x03x-b\x012"].concat();
        assert!(first.ends_with(&right), "{first:?}");
        let second = [&[0x83, 0x87, 0xc4, 0xc3, 0xc2, 0xc1, 0xc0, 0xbf][..], &large, &[0xbe]];
        assert_eq!(put(), second.concat());
    }

    #[test]
    fn each_path_has_its_own_time() {
        let paths = [("/a.B/C", Some("5m")), ("/a.B/D", Some("10S")), ("/a.B/E", None)];
        let paths = paths.map(|(name, timeout)| Path { name, timeout });
        let mut heads = RequestHeads::new(&Asks::of("localhost"), &paths);
        let mut put = |path| {
            let mut block = Vec::new();
            heads.put(path, &mut block);
            block
        };
        assert!(put(0).ends_with(b"\x40\x0cgrpc-timeout\x025m"));
        assert!(put(1).ends_with(b"\x40\x0cgrpc-timeout\x0310S"));
        // The table has eight fields, the newest first: 10S, /a.B/D, 5m, user-agent and so on.
        assert_eq!(put(0), [0x83, 0x86, 0xc5, 0xc4, 0xc3, 0xc2, 0xc1, 0xc0]);
        assert_eq!(put(1), [0x83, 0x86, 0xbf, 0xc4, 0xc3, 0xc2, 0xc1, 0xbe]);
        assert!(put(2).ends_with(&[0xc5, 0xc4, 0xc3, 0xc2]), "the other path moves them on");
    }
}
