//! The end of what a program printed, as a part of a sentence: reports show it on one line.

/// Lines that an error shows.
const LAST_LINES: usize = 8;

/// The last lines of a text, one behind the other, or that there are none. What a terminal would
/// obey is escaped.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let mut shown = String::new();
    for character in last.join(" | ").chars() {
        match character {
            '\t' => shown.push(' '),
            other if other.is_control() => shown.extend(other.escape_default()),
            other => shown.push(other),
        }
    }
    match last {
        [] => "it printed nothing".to_owned(),
        [_] => format!("its last line: {shown}"),
        _ => format!("its last lines: {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_behind_each_other_without_what_a_terminal_obeys() {
        assert_eq!(last_lines("\n"), "it printed nothing");
        assert_eq!(last_lines(" a\u{1b}[1m\n"), "its last line: a\\u{1b}[1m");
        let many = (0..10).map(|number| format!("{number}\n")).collect::<String>();
        assert_eq!(last_lines(&many), "its last lines: 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9");
    }
}
