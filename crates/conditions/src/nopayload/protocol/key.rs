//! The keys of files.

use crate::nopayload::model::KEY_BYTES;

/// Refuses what is no key: a relative path of names, such as `beam/v1.json`.
///
/// # Errors
/// When it is none; the error says why.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    let is_no_name = |part: &str| part.is_empty() || part == "." || part == "..";
    match key {
        _ if key.len() > KEY_BYTES => Err("a key has 1,024 bytes at most"),
        _ if key.contains('\\') => Err("a key has no backslash"),
        _ if key.chars().any(char::is_control) => Err("a key has no control character"),
        _ if key.split('/').any(is_no_name) => {
            Err("a key is a relative path without empty names, `.` and `..`")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_key;

    #[test]
    fn only_relative_paths_of_names_are_keys() {
        for key in ["a", "a/b.json", "é/…", "..a/b..", "a b"] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        let long = "a".repeat(1_025);
        for key in ["", "/a", "a/", "a//b", ".", "a/../b", "..", "a\\b", "a\0", "a\nb", &long] {
            assert!(check_key(key).is_err(), "{key:?}");
        }
    }
}
