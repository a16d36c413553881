//! The text and meta protocols, as a client writes and reads them.

use super::operations::{Answer, Got, Key, Op, Parsed, Verb};

/// Appends a request of the classic text protocol.
pub(super) fn write(op: &Op, out: &mut Vec<u8>) {
    let mut words = |text: String| out.extend_from_slice(text.as_bytes());
    let name = |key: &Key| String::from_utf8(key.bytes()).expect("keys are text");
    match op {
        Op::Get { keys } => {
            let keys: Vec<_> = keys.iter().map(name).collect();
            words(format!("gets {}\r\n", keys.join(" ")));
        }
        Op::QuietGet { key } => words(format!("get {}\r\n", name(key))),
        Op::Store { verb, key, value, flags, exptime, quiet } => {
            let (verb, cas) = match verb {
                Verb::Set => ("set", String::new()),
                Verb::Add => ("add", String::new()),
                Verb::Replace => ("replace", String::new()),
                Verb::Append => ("append", String::new()),
                Verb::Prepend => ("prepend", String::new()),
                Verb::Cas(cas) => ("cas", format!(" {cas}")),
            };
            let (key, bytes, noreply) = (name(key), value.len(), noreply(*quiet));
            words(format!("{verb} {key} {flags} {exptime} {bytes}{cas}{noreply}\r\n"));
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        Op::Delete { key, quiet } => {
            words(format!("delete {}{}\r\n", name(key), noreply(*quiet)));
        }
        Op::Increment { key, by } => words(format!("incr {} {by}\r\n", name(key))),
        Op::Touch { key, exptime } => words(format!("touch {} {exptime}\r\n", name(key))),
        Op::GetTouch { key, exptime } => words(format!("gats {exptime} {}\r\n", name(key))),
        Op::Nonsense => words("nonsense of a client\r\n".to_owned()),
    }
}

fn noreply(quiet: bool) -> &'static str {
    if quiet { " noreply" } else { "" }
}

/// The first line, without its end, and the number of its bytes.
fn line(bytes: &[u8]) -> Option<(&str, usize)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    // What is no text is no answer either.
    Some((std::str::from_utf8(&bytes[..end]).unwrap_or("\u{fffd}"), end + 2))
}

/// Reads the answer to a request of the classic text protocol.
pub(super) fn read(op: &Op, bytes: &[u8]) -> Parsed {
    match op {
        Op::Get { .. } | Op::QuietGet { .. } | Op::GetTouch { .. } => read_values(bytes),
        _ => Ok(match line(bytes) {
            Some((text, used)) => Some((used, simple(text)?)),
            None => None,
        }),
    }
}

fn simple(text: &str) -> Result<Answer, String> {
    Ok(match text {
        "STORED" | "HD" => Answer::Stored,
        "NOT_STORED" | "NS" => Answer::NotStored,
        "EXISTS" | "EX" => Answer::Exists,
        "NOT_FOUND" | "NF" => Answer::NotFound,
        "DELETED" => Answer::Deleted,
        "TOUCHED" => Answer::Touched,
        "ERROR" => Answer::Refused,
        "SERVER_ERROR object too large for cache" | "SERVER_ERROR out of memory storing object" => {
            Answer::NoRoom
        }
        _ => match text.trim_end().parse() {
            Ok(number) => Answer::Number(number),
            Err(_) => return Err(format!("{text:?} is no answer")),
        },
    })
}

fn read_values(bytes: &[u8]) -> Parsed {
    let (mut values, mut used) = (Vec::new(), 0);
    loop {
        let Some((text, length)) = line(&bytes[used..]) else { return Ok(None) };
        used += length;
        let words: Vec<_> = text.split(' ').collect();
        match words[..] {
            ["END"] => return Ok(Some((used, Answer::Values(values)))),
            ["VALUE", key, flags, size, ..] => {
                let number = |text: &str| text.parse::<u64>().map_err(|_| bad(text));
                let size = number(size)? as usize;
                let Some(value) = block(&bytes[used..], size)? else { return Ok(None) };
                let cas = words.get(4).map(|cas| number(cas)).transpose()?;
                let (key, flags) = (key.as_bytes().to_vec(), number(flags)? as u32);
                values.push(Got { key, value: value.to_vec(), flags, cas });
                used += size + 2;
            }
            _ => return Err(format!("{text:?} among values")),
        }
    }
}

fn bad(text: &str) -> String {
    format!("{text:?} is no number")
}

/// A data block with its end.
fn block(bytes: &[u8], size: usize) -> Result<Option<&[u8]>, String> {
    match bytes.get(size..size + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some(&bytes[..size])),
        Some(_) => Err(format!("a value of {size} bytes does not end there")),
    }
}

/// Appends a request of the meta commands; what they don't have is a classic one.
pub(super) fn write_meta(op: &Op, out: &mut Vec<u8>) {
    let mut words = |text: String| out.extend_from_slice(text.as_bytes());
    let name = |key: &Key| String::from_utf8(key.bytes()).expect("keys are text");
    match op {
        Op::Get { keys } if keys.len() == 1 => {
            words(format!("mg {} k f c v\r\n", name(&keys[0])));
        }
        Op::QuietGet { key } => words(format!("mg {} k f c v q\r\nmn\r\n", name(key))),
        Op::Store { verb, key, value, flags, exptime, quiet: false } => {
            let mode = match verb {
                Verb::Set => "MS".to_owned(),
                Verb::Add => "ME".to_owned(),
                Verb::Replace => "MR".to_owned(),
                Verb::Append => "MA".to_owned(),
                Verb::Prepend => "MP".to_owned(),
                Verb::Cas(cas) => format!("C{cas}"),
            };
            let (key, bytes) = (name(key), value.len());
            words(format!("ms {key} {bytes} F{flags} T{exptime} {mode}\r\n"));
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        Op::Delete { key, quiet: false } => words(format!("md {}\r\n", name(key))),
        Op::Increment { key, by } => words(format!("ma {} D{by} v\r\n", name(key))),
        Op::GetTouch { key, exptime } => {
            words(format!("mg {} k f c v T{exptime}\r\n", name(key)));
        }
        _ => write(op, out),
    }
}

/// Reads the answer to what [`write_meta`] has written.
pub(super) fn read_meta(op: &Op, bytes: &[u8]) -> Parsed {
    match op {
        Op::Get { keys } if keys.len() == 1 => read_meta_value(bytes),
        Op::GetTouch { .. } => read_meta_value(bytes),
        Op::QuietGet { .. } => read_quiet(bytes),
        Op::Delete { quiet: false, .. } => Ok(read(op, bytes)?.map(|(used, answer)| {
            (used, if answer == Answer::Stored { Answer::Deleted } else { answer })
        })),
        Op::Increment { .. } => Ok(read_meta_value(bytes)?.map(|(used, answer)| match answer {
            Answer::Values(values) => (used, as_number(&values)),
            other => (used, other),
        })),
        _ => read(op, bytes),
    }
}

fn as_number(values: &[Got]) -> Answer {
    let number = values.first().and_then(|got| std::str::from_utf8(&got.value).ok()?.parse().ok());
    number.map_or(Answer::NotFound, Answer::Number)
}

fn read_meta_value(bytes: &[u8]) -> Parsed {
    let Some((text, mut used)) = line(bytes) else { return Ok(None) };
    let mut words = text.split(' ');
    // A miss repeats the flag of the key.
    if text == "EN" || text.starts_with("EN ") {
        return Ok(Some((used, Answer::Values(Vec::new()))));
    }
    let (Some("VA"), Some(size)) = (words.next(), words.next()) else {
        return Ok(Some((used, simple(text)?)));
    };
    let size = size.parse().map_err(|_| bad(size))?;
    let Some(value) = block(&bytes[used..], size)? else { return Ok(None) };
    used += size + 2;
    let mut got = Got { key: Vec::new(), value: value.to_vec(), flags: 0, cas: None };
    for word in words {
        let (flag, token) = word.split_at(1);
        match flag {
            "k" => got.key = token.as_bytes().to_vec(),
            "f" => got.flags = token.parse().map_err(|_| bad(token))?,
            "c" => got.cas = Some(token.parse().map_err(|_| bad(token))?),
            _ => {}
        }
    }
    Ok(Some((used, Answer::Values(vec![got]))))
}

fn read_quiet(bytes: &[u8]) -> Parsed {
    let (answer, used) = match line(bytes) {
        None => return Ok(None),
        Some(("MN", used)) => return Ok(Some((used, Answer::Values(Vec::new())))),
        Some(_) => match read_meta_value(bytes)? {
            Some((used, answer)) => (answer, used),
            None => return Ok(None),
        },
    };
    match line(&bytes[used..]) {
        None => Ok(None),
        Some(("MN", end)) => Ok(Some((used + end, answer))),
        Some((text, _)) => Err(format!("{text:?} behind a quiet get")),
    }
}
