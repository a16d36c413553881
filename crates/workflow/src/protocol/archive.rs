//! Writing JSON as cereal's archives have it: each member on a line, a type's version where the
//! type comes first in the document, and numbers for pointers and for the types behind them.

use memchr::memchr2;

use super::source::Source;

/// Set in the number of a pointer or type that comes for the first time.
const FIRST: u32 = 0x8000_0000;

/// In the place of a type's number: it is the pointer's own.
const OWN_TYPE: i64 = 0x4000_0000;

/// A document that is being written.
pub(super) struct Archive<'a> {
    out: &'a mut Vec<u8>,
    /// Whether nothing stands yet in the object or list that was begun last.
    is_first: bool,
    /// Types whose version is written.
    versions: Vec<&'static str>,
    /// Types behind pointers, in the order of their numbers.
    kinds: Vec<&'static str>,
    pointers: u32,
}

impl<'a> Archive<'a> {
    /// A document at the end of `out`.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let (versions, kinds) = (Vec::new(), Vec::new());
        Self { out, is_first: true, versions, kinds, pointers: 0 }
    }

    /// The bytes of the document so far, and of what lies before it.
    pub(super) fn bytes(&self) -> usize {
        self.out.len()
    }

    fn next(&mut self) {
        self.out.extend_from_slice(if self.is_first { b"\n" } else { b",\n" });
        self.is_first = false;
    }

    fn name(&mut self, name: &str) {
        self.next();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\": ");
    }

    /// An object, or a list, without a name.
    pub(super) fn group(&mut self, ends: [u8; 2], write: impl FnOnce(&mut Self)) {
        self.out.push(ends[0]);
        self.is_first = true;
        write(self);
        if !self.is_first {
            self.out.push(b'\n');
        }
        self.out.push(ends[1]);
        self.is_first = false;
    }

    /// A member that is an object.
    pub(super) fn object(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.name(name);
        self.group(*b"{}", write);
    }

    /// A member that is an object of a type with a version.
    pub(super) fn class(&mut self, name: &str, kind: &'static str, write: impl FnOnce(&mut Self)) {
        self.object(name, |archive| {
            archive.version(kind);
            write(archive);
        });
    }

    /// A member that is a list, each element an object.
    pub(super) fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.name(name);
        self.group(*b"[]", |archive| {
            for item in items {
                archive.next();
                archive.group(*b"{}", |archive| write(archive, item));
            }
        });
    }

    /// The version of a type, unless it stands already.
    pub(super) fn version(&mut self, kind: &'static str) {
        if !self.versions.contains(&kind) {
            self.versions.push(kind);
            self.integer("cereal_class_version", 0);
        }
    }

    /// The members of a pointer to an object of a type that is known by its name only.
    pub(super) fn polymorphic(&mut self, kind: &'static str, write: impl FnOnce(&mut Self)) {
        self.kind(kind);
        self.pointer(kind, write);
    }

    fn kind(&mut self, kind: &'static str) {
        match self.kinds.iter().position(|one| *one == kind) {
            Some(place) => self.integer("polymorphic_id", place as i64 + 1),
            None => {
                self.kinds.push(kind);
                let id = FIRST | self.kinds.len() as u32;
                self.integer("polymorphic_id", id.into());
                self.text("polymorphic_name", kind);
            }
        }
    }

    /// The members of a pointer to an object.
    pub(super) fn pointer(&mut self, kind: &'static str, write: impl FnOnce(&mut Self)) {
        self.pointers += 1;
        let id = FIRST | self.pointers;
        self.object("ptr_wrapper", |archive| {
            archive.integer("id", id.into());
            archive.class("data", kind, write);
        });
    }

    /// A member that is the only pointer to an object of a type that is known by its name only.
    pub(super) fn unique(&mut self, name: &str, kind: &'static str, write: impl FnOnce(&mut Self)) {
        self.object(name, |archive| {
            archive.kind(kind);
            archive.object("ptr_wrapper", |archive| {
                archive.integer("valid", 1);
                archive.class("data", kind, write);
            });
        });
    }

    /// A member that is the only pointer to an object, which states its own version.
    pub(super) fn owned(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.object(name, |archive| {
            archive.object("ptr_wrapper", |archive| {
                archive.integer("valid", 1);
                archive.object("data", write);
            });
        });
    }

    /// The members of a pointer, one of several, to an object of a type without a version.
    pub(super) fn shared(&mut self, write: impl FnOnce(&mut Self)) {
        self.pointers += 1;
        let id = FIRST | self.pointers;
        self.object("ptr_wrapper", |archive| {
            archive.integer("id", id.into());
            archive.object("data", write);
        });
    }

    /// The members of a pointer to an object whose type, one of several, is the pointer's own.
    pub(super) fn known(&mut self, kind: &'static str, write: impl FnOnce(&mut Self)) {
        self.integer("polymorphic_id", OWN_TYPE);
        self.pointer(kind, write);
    }

    /// A number.
    pub(super) fn integer(&mut self, name: &str, value: i64) {
        self.name(name);
        self.number(value);
    }

    fn number(&mut self, value: i64) {
        use std::io::Write as _;
        // Writing to a vector can't fail.
        let _ = write!(self.out, "{value}");
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.name(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// A text.
    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        escape(self.out, value);
    }

    /// A long text, or an empty one.
    pub(super) fn source(&mut self, name: &str, source: Option<&Source>) {
        self.name(name);
        self.out.push(b'"');
        if let Some(source) = source {
            source.each(&mut |piece| escape_piece(self.out, piece));
        }
        self.out.push(b'"');
    }

    /// Texts in a list.
    pub(super) fn texts<T: AsRef<str>>(&mut self, name: &str, values: &[T]) {
        self.name(name);
        self.group(*b"[]", |archive| {
            for value in values {
                archive.next();
                escape(archive.out, value.as_ref());
            }
        });
    }

    /// Numbers in a list.
    pub(super) fn integers(&mut self, name: &str, values: &[i64]) {
        self.name(name);
        self.group(*b"[]", |archive| {
            for value in values {
                archive.next();
                archive.number(*value);
            }
        });
    }
}

/// Appends a text in quotation marks, escaped as rapidjson does.
fn escape(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape_piece(out, text);
    out.push(b'"');
}

/// The same without quotation marks.
fn escape_piece(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + text.len() / 16 + 2);
    let mut rest = text.as_bytes();
    loop {
        // Lines are the most frequent; what is between two of them is looked through once more.
        let end = memchr2(b'\n', b'"', rest).unwrap_or(rest.len());
        piece(out, &rest[..end]);
        match rest.get(end) {
            None => break,
            Some(b'\n') => out.extend_from_slice(b"\\n"),
            Some(_) => out.extend_from_slice(b"\\\""),
        }
        rest = &rest[end + 1..];
    }
}

/// Appends bytes without line ends and quotation marks.
fn piece(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.iter().all(|byte| *byte >= b' ' && *byte != b'\\') {
        return out.extend_from_slice(bytes);
    }
    for byte in bytes {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            8 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            12 => out.extend_from_slice(b"\\f"),
            0..b' ' => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn texts_are_escaped_so_that_any_reader_of_json_reads_them() {
        for text in ["", "plain", "a\nb\"c\\d\u{8}\t\u{1}é😀", "\n\n", "\"\"", "end\\"] {
            let mut out = Vec::new();
            escape(&mut out, text);
            let read = super::super::json::Reader::new(&out)
                .and_then(|mut one| one.string().map(std::borrow::Cow::into_owned));
            assert_eq!(read.as_deref(), Ok(text), "{}", String::from_utf8_lossy(&out));
        }
    }
}
