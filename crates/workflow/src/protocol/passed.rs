//! The states that nodes have come to since a client's last answer, in front of the tree that
//! brings their last ones: lines of text, each a state and the place of its node in that tree, and
//! an empty line.
//!
//! ```text
//! missed 3
//! submitted 2
//! active 2
//!
//! ```
//!
//! `missed` comes first, where there are changes before these that the server doesn't remember.

use crate::model::{Displayed, Passed};

const MISSED: &str = "missed";

/// Appends the lines of states by the places of their nodes.
pub fn write_passed(passed: &Passed<usize>, out: &mut Vec<u8>) {
    let mut line = |word: &str, number: usize| {
        out.extend_from_slice(format!("{word} {number}\n").as_bytes());
    };
    if passed.missed > 0 {
        line(MISSED, passed.missed as usize);
    }
    passed.states.iter().for_each(|(place, state)| line(state.word(), *place));
    out.push(b'\n');
}

/// Reads these lines, and returns what is behind them; none where they are something else.
#[must_use]
pub fn read_passed(mut bytes: &[u8]) -> Option<(Passed<usize>, &[u8])> {
    let mut passed = Passed::default();
    loop {
        let (line, rest) = bytes.split_at_checked(memchr::memchr(b'\n', bytes)?)?;
        bytes = &rest[1..];
        if line.is_empty() {
            return Some((passed, bytes));
        }
        let (word, number) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        match Displayed::of_word(word) {
            Some(state) => passed.states.push((number.parse().ok()?, state)),
            None if word == MISSED => passed.missed = number.parse().ok()?,
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written_and_other_bytes_are_refused() {
        let states = vec![(2, Displayed::Submitted), (0, Displayed::Suspended)];
        for (missed, text) in [(0, ""), (3, "missed 3\n")] {
            let passed = Passed { states: states.clone(), missed };
            let mut out = Vec::new();
            write_passed(&passed, &mut out);
            assert_eq!(out, format!("{text}submitted 2\nsuspended 0\n\n").as_bytes());
            out.extend_from_slice(b"tree");
            assert_eq!(read_passed(&out), Some((passed, &b"tree"[..])));
        }
        for wrong in ["", "active 1\n", "active\n\n", "active x\n\n", "gone 1\n\n", "active \u{1}"]
        {
            assert_eq!(read_passed(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
