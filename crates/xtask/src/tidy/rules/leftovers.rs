//! What one writes on the way and does not mean to keep. A thing that is really to be done
//! later is a test that fails, or nothing.

use super::Rule;
use crate::tidy::tree::{Finding, Tree};

/// Built in halves, so that this file does not find itself.
const WORDS: &[&str] = &[
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

pub(super) const RULE: Rule = Rule {
    name: "leftovers",
    doc: "Nothing half done is kept: no placeholders, no debug prints, no notes to oneself.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| is_code(&file.path)) {
        for (number, line) in file.lines() {
            for word in WORDS.iter().filter(|word| holds(line, word)) {
                found.push(file.finding(number, format!("finish or remove what `{word}` marks")));
            }
        }
    }
    found
}

fn is_code(path: &str) -> bool {
    let endings = [".rs", ".toml", ".sh", ".py", "Makefile"];
    endings.iter().any(|ending| path.ends_with(ending)) || path.starts_with(".ci/")
}

/// Whether the word stands alone: a template such as `mktemp`'s row of capitals is not one.
fn holds(line: &str, word: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    line.match_indices(word).any(|(start, _)| {
        let bytes = line.as_bytes();
        let before = start.checked_sub(1).and_then(|index| bytes.get(index));
        let after = bytes.get(start + word.len()).filter(|_| !word.ends_with('!'));
        !is_part(before) && !is_part(after)
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn each_word_is_found_in_code() {
        for word in WORDS {
            let text = format!("fine\n    {word}(now)\n");
            assert_eq!(lines(&RULE, &[("a.rs", &text)]), [2], "{word}");
            assert_eq!(lines(&RULE, &[("Makefile", &text)]), [2], "{word}");
            assert!(lines(&RULE, &[("docs/page.md", &text)]).is_empty());
        }
    }

    #[test]
    fn a_word_inside_another_passes() {
        let capitals = "X".repeat(6);
        let text = format!("mktemp /tmp/{capitals}\nHACKNEY\nmy_{}x\n", WORDS[2]);
        assert!(lines(&RULE, &[("a.sh", &text)]).is_empty());
    }
}
