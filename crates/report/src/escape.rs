//! Text of unknown origin, such as titles and a service's answers, made safe for a terminal.

/// Returns the text on one line with control characters escaped, so that a service can't write
/// escape sequences to the reader's terminal, nor turn the order of what is read there.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_layout(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Returns the text with its lines, and each of them as [`one_line`] makes it.
pub fn lines(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// Whether a character that is no control character ends a line or changes the direction of
/// writing (UAX #9).
fn is_layout(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_in_a_text() {
        let text = "a\x1b[31m\u{9b}m\u{202e}b\u{2066}\u{200f}\u{2028}\nü €\u{200d}";
        let line = r"a\u{1b}[31m\u{9b}m\u{202e}b\u{2066}\u{200f}\u{2028}";
        assert_eq!(one_line(text), format!("{line}\\nü €\u{200d}"));
        assert_eq!(lines(text), format!("{line}\nü €\u{200d}"));
    }
}
