//! Placeholders in the texts of a suite: `{port}`, `{workload.size}`. `{{port}}` stands for the
//! text `{port}`; `${port}` is left to the shell.

/// The placeholders of a text, each once or as often as it stands there.
pub fn names(text: &str) -> Vec<&str> {
    let name = |piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Text(_) | Piece::Escaped { .. } => None,
    };
    pieces(text).into_iter().filter_map(name).collect()
}

/// The text with the placeholders filled in that have a value; others, and doubled braces, stay.
/// What [`complete`] will make of a value is the value: braces in it are doubled where they would
/// be a placeholder.
pub fn fill(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let piece = |piece| match piece {
        Piece::Text(text) | Piece::Escaped { written: text, .. } => text.to_owned(),
        Piece::Name(name) => match value(name) {
            Some(value) => escape(&value),
            None => format!("{{{name}}}"),
        },
    };
    pieces(text).into_iter().map(piece).collect()
}

/// As [`fill`], for the last time: values stand as they are, and doubled braces become single ones.
pub fn complete(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let piece = |piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Name(name) => value(name).unwrap_or_else(|| format!("{{{name}}}")),
        Piece::Escaped { name, .. } => format!("{{{name}}}"),
    };
    pieces(text).into_iter().map(piece).collect()
}

/// The text with its braces doubled where they would be a placeholder: of a command that is taken
/// as it was typed.
pub fn escape(text: &str) -> String {
    let piece = |piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Name(name) => format!("{{{{{name}}}}}"),
        Piece::Escaped { written, .. } if written.ends_with("}}") => format!("{{{written}}}"),
        Piece::Escaped { written, .. } => format!("{{{written}"),
    };
    pieces(text).into_iter().map(piece).collect()
}

/// A part of a text.
enum Piece<'t> {
    Text(&'t str),
    Name(&'t str),
    Escaped { name: &'t str, written: &'t str },
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut plain, mut at) = (0, 0);
    while let Some(found) = text[at..].find('{') {
        let open = at + found;
        at = open + 1;
        let is_doubled = text[at..].starts_with('{');
        let start = at + usize::from(is_doubled);
        let Some(name) = name_at_start(&text[start..]) else { continue };
        if !is_doubled && text[..open].ends_with('$') {
            continue;
        }
        let mut end = start + name.len() + 1;
        if is_doubled && text[end..].starts_with('}') {
            end += 1;
        }
        pieces.push(Piece::Text(&text[plain..open]));
        pieces.push(match is_doubled {
            true => Piece::Escaped { name, written: &text[open..end] },
            false => Piece::Name(name),
        });
        (plain, at) = (end, end);
    }
    pieces.push(Piece::Text(&text[plain..]));
    pieces
}

/// The name before the closing brace, where a text begins with one.
fn name_at_start(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let end = text.find(|c| !is_part(c))?;
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && text[end..].starts_with('}')).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_and_doubled_braces_stand_for_single_ones() {
        let value = |name: &str| (name == "port").then(|| "80".to_owned());
        for (text, filled, completed) in [
            ("-p {port}", "-p 80", "-p 80"),
            ("{port}{dir}", "80{dir}", "80{dir}"),
            ("{{port}} {{port}", "{{port}} {{port}", "{port} {port}"),
            ("${port} {1..3} {a,b} { print }", "${port} {1..3} {a,b} { print }", ""),
            ("{\"a\":{\"b\":1}} {{ x }} {", "{\"a\":{\"b\":1}} {{ x }} {", ""),
            ("{{{port}", "{{{port}", "{{port}"),
        ] {
            assert_eq!(fill(text, &value), filled, "{text}");
            let completed = if completed.is_empty() { filled } else { completed };
            assert_eq!(complete(text, &value), completed, "{text}");
        }
        // A value that looks like a placeholder is none, however often the rest is filled in.
        let odd = |name: &str| (name == "dir").then(|| "/tmp/{port}".to_owned());
        assert_eq!(complete("{dir} {port}", &odd), "/tmp/{port} {port}");
        assert_eq!(complete(&fill("{dir} {port}", &odd), &value), "/tmp/{port} 80");
        let typed = "awk '{print}' ${x} {{b} {{c}}";
        assert_eq!(complete(&escape(typed), &value), typed);
        assert_eq!(names("{a.b-c} {{d}} {_e} ${f} é{"), ["a.b-c", "_e"]);
    }
}
