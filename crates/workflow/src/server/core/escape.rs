//! Texts in the lines of a snapshot's head.

/// The replacement for what a line may not hold.
const ESCAPES: [(char, char); 5] =
    [('\\', '\\'), ('\n', 'n'), ('\r', 'r'), ('\t', 't'), (' ', 's')];

/// A text without line ends, tabs and blanks.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match ESCAPES.iter().find(|(plain, _)| *plain == letter) {
            Some((_, stands)) => escaped.extend(['\\', *stands]),
            None => escaped.push(letter),
        }
    }
    escaped
}

/// The text that this stands for.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let stands = if letter == '\\' { letters.next() } else { None };
        let known = ESCAPES.iter().find(|(_, one)| Some(*one) == stands);
        plain.push(known.map_or(letter, |(meant, _)| *meant));
    }
    plain
}
