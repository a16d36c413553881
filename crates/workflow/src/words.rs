//! Lists in texts for users.

use base::many;

/// How many of a list are named.
const NAMED: usize = 3;

/// The first few: `/s/a, /s/b, /s/c and 1397 more`.
pub(crate) fn first_of(all: &[String]) -> String {
    let first = all[..all.len().min(NAMED)].join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Up to how many have a line each.
const LINES: usize = 10;

/// A line for each of a few, and one for all of many: `line` gets `/s/a`, or `1400 tasks (/s/a,
/// /s/b, /s/c and 1397 more)`.
pub(crate) fn each_or_count(
    all: &[String],
    noun: &str,
    line: impl Fn(&str) -> String,
) -> Vec<String> {
    match all.len() {
        ..=LINES => all.iter().map(|one| line(one)).collect(),
        count => vec![line(&format!("{} ({})", many(count, noun), first_of(all)))],
    }
}

#[cfg(test)]
mod tests {
    use super::{each_or_count, first_of};

    #[test]
    fn of_many_the_first_are_named() {
        let all: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(first_of(&all[..2]), "a, b");
        assert_eq!(first_of(&all[..3]), "a, b, c");
        assert_eq!(first_of(&all), "a, b, c and 2 more");
        let lines = |count: usize| {
            let all: Vec<String> = (1..=count).map(|at| at.to_string()).collect();
            each_or_count(&all, "task", |of| format!("{of} waits"))
        };
        assert_eq!(lines(2), ["1 waits", "2 waits"]);
        assert_eq!(lines(11), ["11 tasks (1, 2, 3 and 8 more) waits"]);
    }
}
