//! What clients and caches have already, and for how long they may keep it.

use axum::http::{HeaderMap, header};

/// What never changes may be kept for a year, the longest that caches honour.
pub(crate) const FOREVER: &str = "public, max-age=31536000, immutable";

/// Whether the client has the entity with this tag already: If-None-Match names it (RFC 9110,
/// 13.1.2), in one of its lists.
pub(crate) fn is_known(headers: &HeaderMap, entity: &str) -> bool {
    let is_it = |one: &str| one == "*" || one.strip_prefix("W/").unwrap_or(one) == entity;
    let lists = headers.get_all(header::IF_NONE_MATCH).iter();
    lists
        .filter_map(|list| list.to_str().ok())
        .any(|list| list.split(',').any(|one| is_it(one.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_matches_by_any_of_its_tags() {
        let is_known = |lists: &[&'static str]| {
            let lines = lists.iter().map(|list| (header::IF_NONE_MATCH, list.parse()));
            let lines = lines.map(|(name, list)| (name, list.expect("a value")));
            is_known(&lines.collect(), "\"b\"")
        };
        assert!(is_known(&["\"a\", W/\"b\""]) && is_known(&["*"]));
        assert!(is_known(&["\"a\"", "\"b\""]), "of the second line");
        assert!(!is_known(&["\"a\",\"c\""]) && !is_known(&[""]) && !is_known(&[]));
    }
}
