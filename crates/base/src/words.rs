//! Numbers and counts as people read them.

use std::fmt::Display;

/// A number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 task`, `5 tasks`.
pub fn many<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    format!("{count} {}", of_many(count, noun))
}

/// The same with its verb: `1 task is`, `5 tasks are`.
pub fn many_are<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let verb = if count == N::from(1) { "is" } else { "are" };
    format!("{} {verb}", many(count, noun))
}

/// The noun alone: `task` of one, else `tasks`.
pub fn of_many<N: PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return noun.to_owned();
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_else_plural() {
        let all = [(1, "task", "1 task"), (0, "task", "0 tasks"), (2, "family", "2 families")];
        for (count, noun, text) in all.into_iter().chain([(3, "day", "3 days")]) {
            assert_eq!(many(count, noun), text);
        }
        assert_eq!(
            [0_u64, 1, 2].map(|count| many_are(count, "call")),
            ["0 calls are", "1 call is", "2 calls are"]
        );
    }

    #[test]
    fn thousands_have_commas_between_them() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
