//! Text of unknown origin, such as titles and a service's answers, made safe for a terminal.

/// Returns the text on one line with control characters escaped, so that a service can't write
/// escape sequences to the reader's terminal.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}
