//! Counts as people read them.

use std::fmt::Display;

/// A count with what is counted, whose plural has an s: `1 call`, `2 calls`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The same with its verb: `1 call is`, `2 calls are`.
pub(crate) fn counted_are<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let verb = if count == N::from(1) { "is" } else { "are" };
    format!("{} {verb}", counted(count, noun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_has_no_plural_and_none_has() {
        let right = ["0 calls", "1 call", "2 calls", "18446744073709551615 calls"];
        assert_eq!([0, 1, 2, u64::MAX].map(|count| counted(count, "call")), right);
        let right = ["0 calls are", "1 call is", "2 calls are"];
        assert_eq!([0_usize, 1, 2].map(|count| counted_are(count, "call")), right);
    }
}
