//! A line of a point.

/// One line, without its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    /// Whether the report prints it once where several points have the same.
    pub(super) is_common: bool,
}

impl Line {
    /// A line that belongs to its point alone.
    pub(super) fn own(text: String) -> Line {
        Line { text, is_common: false }
    }

    /// A note or a limit, of which several points may have the same.
    pub(super) fn note(text: String) -> Line {
        Line { text, is_common: true }
    }

    /// Those of them that are said once, without those that the same point has twice.
    pub(super) fn common(lines: &[Line]) -> impl Iterator<Item = &str> {
        let is_first = move |place: usize, line: &Line| {
            line.is_common && lines[..place].iter().all(|before| before != line)
        };
        let lines = lines.iter().enumerate();
        lines.filter(move |(place, line)| is_first(*place, line)).map(|(_, line)| &*line.text)
    }

    /// The text of these, each with its end.
    pub(super) fn text_of(lines: &[Line]) -> String {
        lines.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
    }
}
