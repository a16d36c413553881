//! Counts in texts for users.

/// `1 task`, `5 tasks`.
pub(crate) fn many(count: usize, noun: &str) -> String {
    format!("{count} {}", of_many(count, noun))
}

/// The noun alone: `task` of one, else `tasks`.
pub(crate) fn of_many(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => noun.to_owned(),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::many;

    #[test]
    fn one_is_singular_and_all_else_plural() {
        let all = [(1, "task", "1 task"), (0, "task", "0 tasks"), (2, "family", "2 families")];
        for (count, noun, text) in all.into_iter().chain([(3, "day", "3 days")]) {
            assert_eq!(many(count, noun), text);
        }
    }
}
