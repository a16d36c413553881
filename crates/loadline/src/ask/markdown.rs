//! Markdown for a terminal of some width: paragraphs and lists are wrapped, the rows of tables
//! become items, links keep their text. Code stays as it is.

use std::io::IsTerminal as _;

use textwrap::Options;

/// The widest text that reads well.
const WIDEST: usize = 100;
/// The width where standard output is no terminal.
const USUAL: usize = 80;
const NARROWEST: usize = 20;

/// The columns of text on standard output.
pub(super) fn width() -> usize {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return USUAL;
    }
    let columns = rustix::termios::tcgetwinsize(&out).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { USUAL } else { columns.clamp(NARROWEST, WIDEST) }
}

/// The text with no line wider than `width`, but for code and words that are.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut page = Page { width, out: String::new(), paragraph: String::new(), heads: Vec::new() };
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            page.end_paragraph();
            is_code = !is_code;
        } else if is_code {
            page.line("    ", line);
        } else {
            page.take(line);
        }
    }
    page.end_paragraph();
    page.out
}

struct Page {
    width: usize,
    out: String,
    /// Lines of the current paragraph or list item, joined.
    paragraph: String,
    /// The heads of the current table.
    heads: Vec<String>,
}

impl Page {
    fn line(&mut self, indent: &str, line: &str) {
        if !line.is_empty() {
            self.out.push_str(indent);
            self.out.push_str(line);
        }
        self.out.push('\n');
    }

    fn take(&mut self, line: &str) {
        let bare = line.trim_start();
        if !bare.starts_with('|') {
            self.heads.clear();
        }
        if bare.is_empty() {
            self.end_paragraph();
            if !self.out.is_empty() && !self.out.ends_with("\n\n") {
                self.out.push('\n');
            }
        } else if bare.starts_with('|') {
            self.end_paragraph();
            self.row(bare);
        } else if bare.starts_with('#') {
            self.end_paragraph();
            self.line("", bare);
        } else if bare.starts_with("<!--") || bare.starts_with("![") {
            self.end_paragraph();
        } else if bare.starts_with("- ") || starts_with_number(bare) {
            self.end_paragraph();
            self.paragraph = line.trim_end().to_owned();
        } else {
            if !self.paragraph.is_empty() {
                self.paragraph.push(' ');
            }
            self.paragraph.push_str(if self.paragraph.is_empty() { line } else { bare });
        }
    }

    /// Wraps the paragraph; the lines of an item stand behind its sign.
    fn end_paragraph(&mut self) {
        if self.paragraph.is_empty() {
            return;
        }
        let text = without_links(&std::mem::take(&mut self.paragraph));
        let bare = text.trim_start();
        let first = &text[..text.len() - bare.len()];
        let sign = match bare.split_once(' ') {
            Some((sign, _)) if sign == "-" || starts_with_number(bare) => sign.len() + 1,
            _ => 0,
        };
        let rest = " ".repeat(first.len() + sign);
        let options = Options::new(self.width).initial_indent(first).subsequent_indent(&rest);
        let filled = textwrap::fill(bare, options.break_words(false));
        self.line("", &filled);
    }

    /// A row of a table: the head's cells are kept, and those of the others are named by them where
    /// there are more than two.
    fn row(&mut self, line: &str) {
        let cells = cells(line);
        if cells.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c))) {
            return;
        }
        if self.heads.is_empty() {
            self.heads = cells;
            return;
        }
        let Some((first, others)) = cells.split_first() else { return };
        self.line("- ", &without_links(first));
        for (place, cell) in others.iter().enumerate() {
            let head = self.heads.get(place + 1).map_or("", String::as_str);
            let text = match others.len() > 1 && !head.is_empty() && !cell.is_empty() {
                true => format!("{head}: {cell}"),
                false => cell.clone(),
            };
            let options = Options::new(self.width).initial_indent("    ").subsequent_indent("    ");
            let filled = textwrap::fill(&without_links(&text), options.break_words(false));
            if !filled.trim().is_empty() {
                self.line("", &filled);
            }
        }
    }
}

fn starts_with_number(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(". ")
}

/// The cells of a table's row: a `|` in code or behind a backslash is no border.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let mut cells = vec![String::new()];
    let (mut is_code, mut is_escaped) = (false, false);
    for c in inner.chars() {
        is_code ^= c == '`';
        match c {
            '|' if !is_code && !is_escaped => cells.push(String::new()),
            _ => cells.last_mut().into_iter().for_each(|cell| cell.push(c)),
        }
        is_escaped = c == '\\';
    }
    cells.into_iter().map(|cell| cell.trim().replace("\\|", "|")).collect()
}

/// `[text](target)` as its text; a page of this program is named as `help` has it.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let link = rest[open..].find("](").and_then(|middle| {
            let end = rest[open + middle..].find(')')?;
            Some((open + middle, open + middle + end))
        });
        let Some((middle, end)) = link.filter(|(middle, _)| !rest[open..*middle].contains('\n'))
        else {
            break;
        };
        out.push_str(&rest[..open]);
        out.push_str(&rest[open + 1..middle]);
        rest = &rest[end + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_items_and_tables_are_wrapped_and_code_is_not() {
        let page = "# Head\n\nA paragraph of [some words](x.md) that\ngoes on.\n\n\
                    - an item that is long\n  and goes on\n\n\
                    | word | meaning |\n|---|---|\n| `a` | what it says here, at length |\n\n\
                    ```toml\nkey = \"a line of code that is wider\"\n```\n";
        let expected = "# Head\n\nA paragraph of some\nwords that goes on.\n\n\
                        - an item that is\n  long and goes on\n\n\
                        - `a`\n    what it says\n    here, at length\n\n    \
                        key = \"a line of code that is wider\"\n";
        assert_eq!(wrapped(page, 20), expected);
    }

    #[test]
    fn cells_of_wide_tables_are_named_and_borders_in_code_are_none() {
        let page = "| a | b | c |\n|---|---|---|\n| 1 | `x \\| y` | 3 |\n";
        assert_eq!(wrapped(page, 40), "- 1\n    b: `x | y`\n    c: 3\n");
    }
}
