//! What the reader of TOML says, in words of suites, and what would be right.

use super::near::nearest;

/// A mistake in words.
#[derive(Debug, PartialEq)]
pub(super) struct Worded {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// What is wrong with the value at `path`, such as `target[0].cpus`.
pub(super) fn worded(path: &str, said: &str) -> Worded {
    let key = path.rsplit('.').next().unwrap_or(path);
    let key = key.split('[').next().unwrap_or(key);
    if let Some(rest) = said.strip_prefix("invalid type: ")
        && let Some((given, wanted)) = rest.rsplit_once(", expected ")
    {
        return wrong_type(path, key, &Given::read(given), wanted);
    }
    if let Some(rest) = said.strip_prefix("invalid value: ")
        && let Some((given, wanted)) = rest.rsplit_once(", expected ")
        && let Some(range) = whole_numbers(wanted)
    {
        let message = format!("{} is no whole number {range}", Given::read(given).shown());
        return Worded { message, help: None };
    }
    if let Some(field) = said.strip_prefix("missing field ") {
        let field = field.trim_matches('`');
        return missing(path, field);
    }
    let message = said.replacen("unknown field", "unknown key", 1);
    Worded {
        message: message.replacen("unknown variant", "unknown word", 1),
        help: suggestion(said),
    }
}

/// Reads "unknown field `x`, expected one of `a`, `b`" and suggests the nearest.
fn suggestion(message: &str) -> Option<String> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown"))?;
    if unknown == "rate" && quoted.clone().any(|name| name == "arrivals") {
        return Some("a rate is one of arrivals: write arrivals = { rate = \"50/s\" }".to_owned());
    }
    nearest(unknown, quoted).map(|name| format!("did you mean `{name}`?"))
}

/// What was written in place of something else.
enum Given {
    Text(String),
    Plain(String),
    Table,
    List,
}

impl Given {
    /// Reads `string "abc"`, ``integer `5` ``, `map`, `sequence`.
    fn read(said: &str) -> Self {
        let within = |mark: char| {
            let (from, to) = (said.find(mark)?, said.rfind(mark)?);
            said.get(from + 1..to).map(str::to_owned)
        };
        match said {
            "map" => Self::Table,
            "sequence" => Self::List,
            _ if said.starts_with("string ") => {
                let quoted = said.trim_start_matches("string ");
                let text = serde_json::from_str(quoted).ok().or_else(|| within('"'));
                Self::Text(text.unwrap_or_default())
            }
            _ => Self::Plain(within('`').unwrap_or_else(|| said.to_owned())),
        }
    }

    /// As it was written, cut where it is long.
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{}\"", cut(text)),
            Self::Plain(value) => cut(value),
            Self::Table => "a table".to_owned(),
            Self::List => "a list".to_owned(),
        }
    }
}

/// The most characters of a value that a message repeats.
const SHOWN_CHARS: usize = 50;

fn cut(text: &str) -> String {
    match text.chars().count() > SHOWN_CHARS {
        true => text.chars().take(SHOWN_CHARS).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Keys whose value is a program with its arguments.
const COMMANDS: [&str; 6] = ["command", "batch", "client", "build", "setup", "wrap"];

/// Sections whose values are conditions on a figure.
const CONDITIONS: [&str; 4] = ["require", "carry", "expect", "abort_on"];

fn wrong_type(path: &str, key: &str, given: &Given, wanted: &str) -> Worded {
    let is_condition = CONDITIONS.iter().any(|name| path.starts_with(&format!("{name}.")));
    let wanted = if is_condition && wanted == "a string" {
        "a comparison in quotes".to_owned()
    } else {
        in_words(wanted)
    };
    let help = match given {
        Given::Text(text) if COMMANDS.contains(&key) => {
            Some(format!("write a list: {key} = {}", as_command(text)))
        }
        Given::Text(text) if key == "cpus" => {
            cpus_of(text).map(|cpus| format!("write a list: cpus = {cpus:?}"))
        }
        Given::Plain(number) if key == "cpus" => Some(format!("write a list: cpus = [{number}]")),
        Given::Text(text) if wanted == "a list" => Some(format!("write {key} = [{text:?}]")),
        Given::Text(text) if text.parse::<f64>().is_ok() && wanted.contains("number") => {
            Some(format!("write it without quotes: {key} = {text}"))
        }
        Given::Text(text) if wanted == "true or false" && text.parse::<bool>().is_ok() => {
            Some(format!("write it without quotes: {key} = {text}"))
        }
        Given::Plain(value) if is_condition => {
            let whole = path.split_once('.').map_or(key, |(_, name)| name);
            let (name, is_time) = match whole.contains('.') {
                true => (format!("\"{whole}\""), whole.contains("latency")),
                false => (whole.to_owned(), false),
            };
            Some(match is_time {
                true => format!("say how it is compared, and the unit: {name} = \"< {value}ms\""),
                false => format!("say how it is compared: {name} = \"= {value}\""),
            })
        }
        Given::Plain(value) if wanted.starts_with("a text") => {
            Some(format!("write it in quotes: {key} = \"{value}\""))
        }
        Given::Table if is_condition => {
            let name = path.split_once('.').map_or(key, |(_, name)| name);
            Some(format!("a name with a dot stands in quotes: \"{name}.…\" = \"< …\""))
        }
        Given::Table if wanted == "a list" && !path.contains('.') => {
            Some(format!("write [[{key}]] in place of [{key}]: there may be several"))
        }
        Given::List if path.starts_with("clients[") || path.starts_with("workload.") => {
            let swept = without_indices(path).replace("[]", "");
            Some(format!("several values are tried by [sweep]: \"{swept}\" = […]"))
        }
        _ => None,
    };
    Worded { message: format!("{wanted} is wanted, not {}", given.shown()), help }
}

/// What Rust's name of a type stands for.
fn in_words(wanted: &str) -> String {
    if let Some(range) = whole_numbers(wanted) {
        return match range.is_empty() {
            true => "a whole number".to_owned(),
            false => format!("a whole number {range}"),
        }
        .replace(" from 0 on", "");
    }
    match wanted {
        "f64" | "f32" => "a number".to_owned(),
        "a string" | "string" | "a borrowed string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("a tuple") => "a list".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("a table") => {
            "a table".to_owned()
        }
        other if other.starts_with("enum ") => "a text in quotes".to_owned(),
        other => other.to_owned(),
    }
}

/// Which whole numbers a type of Rust's holds.
fn whole_numbers(name: &str) -> Option<String> {
    Some(match name {
        "u64" | "usize" => "from 0 on".to_owned(),
        "u32" => format!("from 0 to {}", u32::MAX),
        "u16" => format!("from 0 to {}", u16::MAX),
        "u8" => format!("from 0 to {}", u8::MAX),
        "i64" | "i32" | "isize" => String::new(),
        _ => return None,
    })
}

/// A command line as a list; one that needs a shell is handed to a shell.
fn as_command(text: &str) -> String {
    if text.contains(['\'', '"', '|', '&', ';', '<', '>', '$', '*', '`', '\\', '\n']) {
        return "[\"sh\", \"-c\", \"…\"]".to_owned();
    }
    format!("{:?}", text.split_whitespace().collect::<Vec<_>>())
}

/// The CPUs of a text such as `0-3,8`.
fn cpus_of(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > 1024 {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// The parts that a suite can't be without, with the least that they say.
const PARTS: [(&str, &str, &str); 4] = [
    ("title", "the suite has no title", "title = \"What my server carries\""),
    (
        "target",
        "the suite has no [[target]]: nothing to measure",
        "[[target]]\nname = \"mine\"\naddress = \"127.0.0.1:8080\"\nspeaks = \"http\"",
    ),
    (
        "workload",
        "the suite has no [workload]: no operations",
        "[workload]\nservice = \"http\"\noperation = \"page\"\n\
         request = [{ name = \"page\", path = \"/\" }]",
    ),
    ("clients", "the suite has no [[clients]]: no load", "[[clients]]\nconnections = 4"),
];

fn missing(path: &str, field: &str) -> Worded {
    let part = PARTS.iter().find(|(name, ..)| *name == field);
    if let Some((_, message, help)) = part.filter(|_| matches!(path, "" | ".")) {
        return Worded { message: (*message).to_owned(), help: Some((*help).to_owned()) };
    }
    let message = match path {
        "" | "." => format!("`{field}` is missing"),
        path => format!("`{field}` is missing in `{}`", without_indices(path)),
    };
    Worded { message, help: None }
}

/// A whole suite, as short as one can be.
pub(super) fn smallest_suite() -> String {
    let parts: Vec<&str> = PARTS.iter().map(|(.., help)| *help).collect();
    parts.join("\n")
}

/// A path as it is written: `target.cpus` for `target[0].cpus`.
pub(super) fn without_indices(path: &str) -> String {
    let mut written = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        let inner = after.split_once(']');
        let Some((number, behind)) = inner.filter(|(number, _)| number.parse::<usize>().is_ok())
        else {
            break;
        };
        debug_assert!(!number.is_empty());
        written.push_str(before);
        rest = behind;
    }
    written + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_in_words_with_what_would_be_right() {
        for (path, said, message, help) in [
            (
                "target[1].command",
                "invalid type: string \"memcached -p {port}\", expected a sequence",
                "a list is wanted, not \"memcached -p {port}\"",
                "write a list: command = [\"memcached\", \"-p\", \"{port}\"]",
            ),
            (
                "target[0].setup",
                "invalid type: string \"cd x && make\", expected a sequence",
                "a list is wanted, not \"cd x && make\"",
                "write a list: setup = [\"sh\", \"-c\", \"…\"]",
            ),
            (
                "target[0].cpus",
                "invalid type: string \"0-2,5\", expected a sequence",
                "a list is wanted, not \"0-2,5\"",
                "write a list: cpus = [0, 1, 2, 5]",
            ),
            (
                "require.wrong",
                "invalid type: integer `0`, expected a string",
                "a comparison in quotes is wanted, not 0",
                "say how it is compared: wrong = \"= 0\"",
            ),
            (
                "workload.request[0].expect.status",
                "invalid type: string \"200\", expected u16",
                "a whole number from 0 to 65535 is wanted, not \"200\"",
                "write it without quotes: status = 200",
            ),
            (
                "clients[0].connections",
                "invalid type: sequence, expected u32",
                "a whole number from 0 to 4294967295 is wanted, not a list",
                "several values are tried by [sweep]: \"clients.connections\" = […]",
            ),
            (
                "target",
                "invalid type: map, expected a sequence",
                "a list is wanted, not a table",
                "write [[target]] in place of [target]: there may be several",
            ),
            (
                ".",
                "unknown field `conections`, expected one of `name`, `connections`",
                "unknown key `conections`, expected one of `name`, `connections`",
                "did you mean `connections`?",
            ),
        ] {
            let expected = Worded { message: message.to_owned(), help: Some(help.to_owned()) };
            assert_eq!(worded(path, said), expected);
        }
        let number =
            worded("clients[0].connections", "invalid value: integer `-1`, expected usize");
        assert_eq!(number.message, "-1 is no whole number from 0 on");
        let number = worded("clients[0].threads", "invalid type: string \"abc\", expected usize");
        assert_eq!(number.message, "a whole number is wanted, not \"abc\"");
    }

    #[test]
    fn what_is_missing_is_named_where_it_belongs() {
        let clients = worded(".", "missing field `clients`");
        assert_eq!(clients.help.as_deref(), Some("[[clients]]\nconnections = 4"));
        let name = worded("target[1]", "missing field `name`");
        assert_eq!(name.message, "`name` is missing in `target`");
        assert_eq!(without_indices("workload.request[0].a[b]"), "workload.request.a[b]");
    }
}
