//! What clients and caches have already, and for how long they may keep it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// What never changes may be kept for a year, the longest that caches honour.
pub(crate) const FOREVER: &str = "public, max-age=31536000, immutable";

/// What may be another answer with the next change is asked for again each time.
pub(super) const NOW: &str = "no-cache";

/// The SHA-256 of an answer's bytes, as headers have it.
#[derive(Clone, Debug)]
pub(super) struct Digest {
    /// As an entity tag.
    pub(super) tag: HeaderValue,
    /// As `Content-Digest` and `Repr-Digest` (RFC 9530).
    field: HeaderValue,
}

impl Digest {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::of_hash(Sha256::new_with_prefix(bytes))
    }

    /// That of bytes which were hashed as they came.
    pub(super) fn of_hash(hash: Sha256) -> Self {
        let text = STANDARD.encode(hash.finalize());
        let [tag, field] = [format!("\"{text}\""), format!("sha-256=:{text}:")].map(value);
        Self { tag, field }
    }

    /// The headers with the digest of an answer whose content is the whole of what it represents.
    pub(super) fn fields(&self) -> [(HeaderName, HeaderValue); 2] {
        ["content-digest", "repr-digest"]
            .map(|name| (HeaderName::from_static(name), self.field.clone()))
    }

    /// The last line of an answer that ends in its digest.
    pub(super) fn line(&self) -> Vec<u8> {
        [self.field.as_bytes(), b"\n"].concat()
    }

    /// Whether the client has these bytes already.
    pub(super) fn is_known<'a>(&self, lists: impl Iterator<Item = &'a str>) -> bool {
        self.tag.to_str().is_ok_and(|tag| is_known(lists, tag))
    }
}

/// Text that is ASCII, as a header's value.
pub(crate) fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

/// What `If-None-Match` lists.
pub(crate) fn lists(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lists = headers.get_all(header::IF_NONE_MATCH).iter();
    lists.filter_map(|list| list.to_str().ok())
}

/// Whether the client has the entity with this tag already: one of the lists of `If-None-Match`
/// (RFC 9110, 13.1.2) names it.
pub(crate) fn is_known<'a>(mut lists: impl Iterator<Item = &'a str>, entity: &str) -> bool {
    let is_it = |one: &str| one == "*" || one.strip_prefix("W/").unwrap_or(one) == entity;
    lists.any(|list| list.split(',').any(|one| is_it(one.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_matches_by_any_of_its_tags() {
        let is_known = |values: &[&'static str]| {
            let lines = values.iter().map(|list| (header::IF_NONE_MATCH, list.parse()));
            let lines = lines.map(|(name, list)| (name, list.expect("a value")));
            is_known(lists(&lines.collect()), "\"b\"")
        };
        assert!(is_known(&["\"a\", W/\"b\""]) && is_known(&["*"]));
        assert!(is_known(&["\"a\"", "\"b\""]), "of the second line");
        assert!(!is_known(&["\"a\",\"c\""]) && !is_known(&[""]) && !is_known(&[]));
    }
}
