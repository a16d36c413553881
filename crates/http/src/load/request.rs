//! A request of a suite as it is sent, and what answers it rightly. Data plane.

use wire::{Bytes, Output};

use ::load::kv::Keys;

use crate::protocol::RequestHead;

/// A request and its right answer, as a suite describes them.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Its name in the suite.
    pub(super) name: String,
    /// Whether its answer has no body, because it is a `HEAD`.
    pub(super) is_head: bool,
    /// Whether carrying it out twice is the same as once (RFC 9110, section 9.2.2).
    pub(super) is_idempotent: bool,
    /// Whether it holds a key.
    pub(super) has_key: bool,
    /// Head and body, as they are sent in HTTP/1.1.
    pub(super) bytes: Template,
    pub(super) parts: Parts,
    pub(super) expected: Expected,
}

/// The parts of a request.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) method: String,
    /// Path and query, with `{key}` where a key goes, as in the headers' values.
    pub(super) path: String,
    /// Headers in order, with `host` and without `content-length`.
    pub(super) headers: Vec<(String, String)>,
    /// Whether the suite states this request's `host`; else it is the first of the headers.
    pub(super) has_own_host: bool,
    pub(super) body: Option<Template>,
    /// The value of `content-length`, where it is sent.
    pub(super) body_bytes: Option<u64>,
}

impl Parts {
    /// Whom it is asked of, by its header.
    pub(super) fn host(&self) -> &str {
        let host = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        host.map_or("localhost", |(_, host)| host)
    }

    /// Head and body as HTTP/1.1 sends them, with `{key}` where keys go.
    pub(super) fn template(&self) -> Template {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let (method, target, body_bytes) = (&self.method[..], &self.path[..], self.body_bytes);
        let mut head = Vec::new();
        RequestHead { method, target, headers: &headers, body_bytes }.put(&mut head);
        let head = Template::text(&String::from_utf8_lossy(&head));
        match &self.body {
            Some(body) => head.followed_by(body.clone()),
            None => head,
        }
    }
}

impl Request {
    /// The same asked of this host, unless the suite states another one.
    pub(super) fn asked_of(&self, host: &str) -> Self {
        let mut request = self.clone();
        if !self.parts.has_own_host
            && let Some((_, value)) = request.parts.headers.first_mut()
        {
            host.clone_into(value);
            request.bytes = request.parts.template();
        }
        request
    }
}

/// What a right answer is.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) status: u16,
    /// Headers that have to be there, each with exactly this value.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: ExpectedBody,
}

/// What a right body is.
#[derive(Clone, Debug)]
pub(super) enum ExpectedBody {
    /// Any.
    Any,
    /// Any of this length.
    Long(u64),
    /// These bytes.
    Exactly(Template),
    /// Bytes with this SHA-256 and, where it is given, this length.
    Digest([u8; 32], Option<u64>),
}

/// What the key of an operation is put into.
pub(super) const KEY: &str = "{key}";

/// From this length on a piece is sent from where it lies instead of being copied.
const SHARED_AT_LEAST_BYTES: usize = 1024;

/// Bytes with places for a key, all of them the same key's.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// The key stands between each two of them; there is at least one.
    pieces: Vec<Bytes>,
}

impl Template {
    /// Bytes without a place for a key, whatever they hold.
    pub(super) fn plain(bytes: Vec<u8>) -> Self {
        Self { pieces: vec![Bytes::from(bytes)] }
    }

    /// A text in which `{key}` is such a place.
    pub(super) fn text(text: &str) -> Self {
        let pieces = text.split(KEY).map(|piece| Bytes::from(piece.to_owned()));
        Self { pieces: pieces.collect() }
    }

    /// This with `other` right behind it.
    pub(super) fn followed_by(mut self, other: Self) -> Self {
        let mut others = other.pieces.into_iter();
        if let (Some(last), Some(first)) = (self.pieces.last_mut(), others.next()) {
            *last = Bytes::from([&last[..], &first[..]].concat());
        }
        self.pieces.extend(others);
        self
    }

    /// Whether it holds a key.
    pub(super) fn has_key(&self) -> bool {
        self.pieces.len() > 1
    }

    /// How long it is with keys of this length in it.
    pub(super) fn len(&self, key_bytes: usize) -> u64 {
        let pieces: usize = self.pieces.iter().map(Bytes::len).sum();
        (pieces + (self.pieces.len() - 1) * key_bytes) as u64
    }

    /// The bytes, where they are the same for every key.
    pub(super) fn same(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Appends it with `key` in its places.
    pub(super) fn put(&self, keys: &Keys, key: u64, into: &mut Vec<u8>) {
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                keys.put(key, into);
            }
            into.extend_from_slice(piece);
        }
    }

    /// The bytes with `key` in its places; nothing is copied where it has none.
    pub(super) fn bytes(&self, keys: &Keys, key: u64) -> Bytes {
        if let [only] = &self.pieces[..] {
            return only.clone();
        }
        let mut bytes = Vec::new();
        self.put(keys, key, &mut bytes);
        bytes.into()
    }

    /// Sends it with `key` in its places.
    #[inline]
    pub(super) fn send(&self, keys: &Keys, key: u64, out: &mut Output) {
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                keys.put(key, out.tail());
            }
            if piece.len() < SHARED_AT_LEAST_BYTES {
                out.put(piece);
            } else {
                out.share(piece.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_gets_the_key_and_bytes_from_a_file_have_none() {
        let keys = Keys::new(100, 4).expect("keys");
        let long = "x".repeat(2000);
        let template = Template::text("/{key}/{key}?").followed_by(Template::text(&long));
        let template = template.followed_by(Template::plain(b"{key}".to_vec()));
        let (mut rendered, mut out) = (Vec::new(), Output::new(1));
        template.put(&keys, 7, &mut rendered);
        template.send(&keys, 7, &mut out);
        assert_eq!(template.bytes(&keys, 7), rendered);
        assert_eq!(rendered, format!("/k007/k007?{long}{{key}}").into_bytes());
        assert_eq!(out.take(), rendered);
        assert_eq!(template.len(4), rendered.len() as u64);
        assert!(template.has_key() && template.same().is_none());
    }
}
