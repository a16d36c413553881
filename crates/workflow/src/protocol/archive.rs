//! Writing JSON as cereal's archives have it: each member on a line, a type's version where the
//! type comes first in the document, and numbers for pointers and for the types behind them.

use super::escape::escape;
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
    /// Whether long texts are left out, which are sent from elsewhere.
    pub(super) leaves_out: bool,
    /// Where the last one belongs that was left out.
    pub(super) left_out_at: Option<usize>,
}

impl<'a> Archive<'a> {
    /// A document at the end of `out`.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let (versions, kinds) = (Vec::new(), Vec::new());
        let (leaves_out, left_out_at) = (false, None);
        Self { out, is_first: true, versions, kinds, pointers: 0, leaves_out, left_out_at }
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
        match source {
            Some(_) if self.leaves_out => self.left_out_at = Some(self.out.len()),
            Some(source) => source.write(self.out),
            None => {}
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
