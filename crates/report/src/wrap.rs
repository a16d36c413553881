//! Text for a terminal, no line of which is wider than 100 columns: a longer one goes on under its
//! start, and a wider table in a second line of each row.

use textwrap::core::{Word, display_width};

/// The most columns of a line.
const WIDTH: usize = 100;

/// A label behind which a line goes on is no wider than this.
const MAX_LABEL: usize = 20;

/// The separator of the parts of a line that stay together.
const BETWEEN: &str = " · ";

/// A number stays with one of these.
const UNITS: &[&str] = &[
    "%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "B/s", "kB/s", "MB/s", "GB/s",
    "M", "G",
];

/// The text with every line that is too wide on several.
pub fn wrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        match display_width(bare) > WIDTH {
            true => wrap(bare, &mut out),
            false => out.push_str(bare),
        }
        out.push_str(&line[bare.len()..]);
    }
    out
}

fn wrap(line: &str, out: &mut String) {
    let hang = hang(line);
    let mut column = 0;
    for (gap, word) in pieces(line, WIDTH - hang) {
        if column + gap.len() + display_width(word) <= WIDTH {
            out.push_str(gap);
            out.push_str(word);
            column += gap.len() + display_width(word);
            continue;
        }
        for piece in Word::from(word).break_apart(WIDTH - hang) {
            if column > 0 {
                out.push('\n');
            }
            out.push_str(&" ".repeat(hang));
            out.push_str(&piece);
            column = hang + display_width(&piece);
        }
    }
}

/// The column at which a line goes on: that of the text behind its label, which ends with a colon
/// or several spaces; without one, four columns further in than the line begins.
fn hang(line: &str) -> usize {
    let bare = line.trim_start_matches(' ');
    let indent = line.len() - bare.len();
    let colon = bare.find(": ").map(|at| at + 2);
    let gap = bare.find("  ").map(|at| bare.len() - bare[at..].trim_start_matches(' ').len());
    let label = colon.into_iter().chain(gap).min().map(|end| display_width(&bare[..end]));
    indent.min(WIDTH / 2) + label.filter(|label| indent > 0 && *label <= MAX_LABEL).unwrap_or(4)
}

/// The parts of a line that are not divided, each with the spaces before it: the text
/// between dots, and words where that is wider than `room`.
fn pieces(line: &str, room: usize) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let end = line[at..].find(BETWEEN).map_or(line.len(), |dot| at + dot + BETWEEN.len() - 1);
        let part = &line[at..end];
        let bare = part.trim_start_matches(' ');
        match display_width(bare) > room || (at == 0 && end == line.len()) {
            true => pieces.extend(words(part)),
            false => pieces.push((&part[..part.len() - bare.len()], bare)),
        }
        at = end;
    }
    pieces
}

/// The words of a part, each with the spaces before it. A number keeps its unit.
fn words(part: &str) -> Vec<(&str, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    while at < part.len() {
        let start = part.len() - part[at..].trim_start_matches(' ').len();
        let word_end = |start: usize| part[start..].find(' ').map_or(part.len(), |end| start + end);
        let mut end = word_end(start);
        while end + 1 < part.len() {
            let next = word_end(end + 1);
            let unit = part[end + 1..next].trim_end_matches([',', ';', ':', '.', ')', ']']);
            if !(UNITS.contains(&unit) && part[..end].ends_with(|c: char| c.is_ascii_digit())) {
                break;
            }
            end = next;
        }
        words.push((&part[at..start], &part[start..end]));
        at = end;
    }
    words
}

/// Rows as lines behind `indent`, every column as wide as its widest cell. The columns that a line
/// has no room for stand in a further line of each row, under its second column. Colours in a cell
/// take no columns; a further line without a word is left out.
pub(crate) fn table(rows: &[Vec<String>], indent: usize) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    // A title alone in its row may be wider than the column.
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| row.len() > 1).filter_map(|row| row.get(column));
        cells.map(|cell| display_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let further = indent + widths.first().map_or(0, |first| first + 2).min(WIDTH / 2);
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    let mut end = 0;
    for (column, width) in widths.iter().enumerate() {
        let is_room = end + 2 + width <= WIDTH || column == 1;
        match groups.last_mut().filter(|_| is_room) {
            Some(group) => (group.end, end) = (column + 1, end + 2 + width),
            None => {
                end = width + if groups.is_empty() { indent } else { further };
                groups.push(column..column + 1);
            }
        }
    }
    let mut lines = Vec::new();
    for row in rows {
        for group in groups.iter().filter(|group| group.start < row.len()) {
            let mut line = " ".repeat(if group.start == 0 { indent } else { further });
            for column in group.start..group.end.min(row.len()) {
                let cell = &row[column];
                let fill = " ".repeat(widths[column].saturating_sub(display_width(cell)));
                line += &format!("{cell}{fill}  ");
            }
            let line = line.trim_end();
            if group.start == 0 || !line.is_empty() {
                lines.push(line.to_owned());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_behind_its_label_and_a_number_keeps_its_unit() {
        let words = "word ".repeat(18);
        let text = format!("  limit: {words}100 % and more\n  short\n");
        let expected = format!("  limit: {}\n         100 % and more\n  short\n", words.trim_end());
        assert_eq!(wrapped(&text), expected);
        let sentence = format!("{words}takes 12 to 90 %, which is more than that");
        let lines: Vec<String> = wrapped(&sentence).lines().map(str::to_owned).collect();
        assert_eq!(lines[1], "    to 90 %, which is more than that");
    }

    #[test]
    fn a_line_is_divided_between_its_parts_first() {
        let part = "latency.p50 0.103× [0.103, 0.103] better";
        let line = format!("  beside: {}", [part; 3].join(" · "));
        let expected = format!("  beside: {part} · {part} ·\n          {part}");
        assert_eq!(wrapped(&line), expected);
        assert_eq!(wrapped(&expected), expected, "what was wrapped stays");
    }

    #[test]
    fn what_has_no_spaces_is_divided_by_columns() {
        let wide = format!("  {}", "ä".repeat(250));
        let lines: Vec<usize> = wrapped(&wide).lines().map(display_width).collect();
        assert!(lines.len() == 3 && lines.iter().all(|width| *width <= WIDTH), "{lines:?}");
        let coloured = format!("\u{1b}[2m{}\u{1b}[0m", "a ".repeat(49) + "b");
        assert_eq!(wrapped(&coloured), coloured, "colours take no columns");
    }

    #[test]
    fn the_columns_of_a_wide_table_go_on_in_a_second_line_of_each_row() {
        let row =
            |name: &str| vec![name.to_owned(), "x".repeat(50), "y".repeat(60), "z".to_owned()];
        let lines = table(&[row("a"), row("long")], 2);
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("  a     xx") && lines[2].starts_with("  long  xx"));
        assert!(lines[1].starts_with("        yy") && lines[1].ends_with("y  z"), "{lines:?}");
        let short = ["none", "", "", ""].map(str::to_owned).to_vec();
        let lines = table(&[row("a"), short], 2);
        assert_eq!(lines[2..], ["  none"], "nothing of it stands in a second line");
    }
}
