//! The parameters of a request, as the question that they mean.

use std::fmt::Write as _;

use crate::model::{MAX_TIME, Numbers, Of, Order, Selection};

/// The form of a slice or an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON: of a slice.
    Json,
    /// Columns, as bytes.
    Binary,
    /// Arrow's streaming format: of a slice.
    Arrow,
    /// An object a line, in JSON: of an export.
    Jsonl,
    /// A record a line: of an export.
    Csv,
}

/// Their names in a query.
const FORMATS: [(Format, &str); 5] = [
    (Format::Json, "json"),
    (Format::Binary, "binary"),
    (Format::Arrow, "arrow"),
    (Format::Jsonl, "jsonl"),
    (Format::Csv, "csv"),
];

impl Format {
    /// Its name in a query.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|(format, _)| *format == self).map_or("", |(_, name)| name)
    }
}

/// The most conditions on the payload of a question: each row is compared with all of them.
const CONDITIONS: usize = 1_000;

/// The most names of channels of a question.
const NAMES: usize = 100_000;

/// The most characters of a value that a refusal repeats: a body may have one of 4 MiB.
const REPEATED: usize = 200;

/// The parameters of a query; each but `where` may be given once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// `folder`: its path.
    pub folder: Option<String>,
    /// `under`: the path of a folder or set.
    pub under: Option<String>,
    /// `t`: a time.
    pub t: Option<u64>,
    /// `since`: the first time of a range.
    pub since: Option<u64>,
    /// `until`: the last time of a range.
    pub until: Option<u64>,
    /// `channels` and `names`; no conditions, which need a folder's columns to be read.
    pub selection: Selection,
    /// `where`: conditions on the payload.
    pub conditions: Vec<String>,
    /// `tag`: its name.
    pub tag: Option<String>,
    /// `revision`.
    pub revision: Option<u64>,
    /// `as_of`: a date, in microseconds since 1970.
    pub as_of_us: Option<i64>,
    /// `to_tag`: that of the version that is compared with the first.
    pub to_tag: Option<String>,
    /// `to_revision`.
    pub to_revision: Option<u64>,
    /// `to_as_of`: a date, in microseconds since 1970.
    pub to_as_of_us: Option<i64>,
    /// `order` of a range.
    pub order: Order,
    /// `format` of a slice or an export.
    pub format: Option<Format>,
    /// `redirect`: whether a time leads to its slice, or is answered with it.
    pub redirect: Option<bool>,
    /// `digest`: whether an export ends in a line with its digest.
    pub digest: bool,
    /// `user` or `global`: the tag that a slice is of, by its number.
    pub of: Of,
}

/// A value as a refusal repeats it.
fn begin(value: &str) -> String {
    match value.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

impl Params {
    /// Reads a query, or a body that is written like one.
    ///
    /// # Errors
    /// As [`Params::read`].
    pub fn of_query(query: &str, allowed: &[&str]) -> Result<Self, String> {
        // Of one more than may be right one is wrong: what follows, millions in a body, is not
        // taken apart.
        let most = CONDITIONS + allowed.len() + 1;
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).take(most).collect();
        Self::read(&pairs, allowed)
    }

    /// Reads the pairs of a query. `allowed` are the parameters that the request takes.
    ///
    /// # Errors
    /// When one is not allowed, comes twice, or can't be read; the error says what can be written.
    pub fn read<T: AsRef<str>>(pairs: &[(T, T)], allowed: &[&str]) -> Result<Self, String> {
        let mut params = Self::default();
        for (place, (name, value)) in pairs.iter().enumerate() {
            let (name, value) = (name.as_ref(), value.as_ref());
            if !allowed.contains(&name) {
                let known = match allowed {
                    [] => "none".to_owned(),
                    some => some.join(", "),
                };
                let name = begin(name);
                return Err(format!("{name:?} is no parameter here; there are {known}"));
            }
            let is_one = name != "where";
            if is_one && pairs[..place].iter().any(|(before, _)| before.as_ref() == name) {
                return Err(format!("{name:?} is given twice"));
            }
            params.set(name, value).map_err(|why| format!("{name}={}: {why}", begin(value)))?;
        }
        Ok(params)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "folder" => self.folder = Some(path(value).to_owned()),
            "under" => self.under = Some(path(value).to_owned()),
            "t" => self.t = Some(time(value)?),
            "since" => self.since = Some(time(value)?),
            "until" => self.until = Some(time(value)?),
            "channels" => self.selection.numbers = Some(numbers(value)?),
            "names" if value.split(',').nth(NAMES).is_some() => {
                return Err(format!("there are more than {NAMES} names"));
            }
            "names" => self.selection.names = value.split(',').map(str::to_owned).collect(),
            "where" if self.conditions.len() == CONDITIONS => {
                return Err(format!("there are more than {CONDITIONS} conditions"));
            }
            "where" => self.conditions.push(value.to_owned()),
            "tag" => self.tag = Some(value.to_owned()),
            "revision" => self.revision = Some(whole(value)?),
            "user" | "global" if self.of != Of::Head => {
                return Err("a slice is of one tag: user and global exclude each other".to_owned());
            }
            "user" => self.of = Of::User(whole(value)?),
            "global" => self.of = Of::Global(whole(value)?),
            "as_of" => self.as_of_us = Some(time_us(value)?),
            "to_tag" => self.to_tag = Some(value.to_owned()),
            "to_revision" => self.to_revision = Some(whole(value)?),
            "to_as_of" => self.to_as_of_us = Some(time_us(value)?),
            "order" => {
                self.order = match value {
                    "channel" => Order::Channel,
                    "time" => Order::Time,
                    _ => return Err("write channel or time".to_owned()),
                }
            }
            "format" => {
                let known = FORMATS.iter().find(|(_, name)| *name == value);
                let known = known.ok_or("write json, binary, arrow, jsonl or csv")?;
                self.format = Some(known.0);
            }
            "redirect" => self.redirect = Some(yes_or_no(value)?),
            "digest" => self.digest = yes_or_no(value)?,
            _ => return Err("it is unknown".to_owned()),
        }
        Ok(())
    }
}

/// A path without slashes at its end.
pub(crate) fn path(written: &str) -> &str {
    match written.trim_end_matches('/') {
        "" => written,
        path => path,
    }
}

fn yes_or_no(written: &str) -> Result<bool, String> {
    written.parse().map_err(|_| "write true or false".to_owned())
}

fn whole(written: &str) -> Result<u64, String> {
    written.parse().map_err(|_| "write a whole number".to_owned())
}

/// A time of validity: a whole number, or `max`.
///
/// # Errors
/// When it is none.
pub fn time(written: &str) -> Result<u64, String> {
    let read = if written == "max" { Some(MAX_TIME) } else { written.parse().ok() };
    let read = read.filter(|time| *time <= MAX_TIME);
    read.ok_or_else(|| format!("write a time of 0 to {MAX_TIME}, or max"))
}

/// A date, such as `2026-11-23T07:00:00Z` (RFC 3339), in microseconds since 1970.
///
/// # Errors
/// When it is none.
pub fn time_us(written: &str) -> Result<i64, String> {
    let read: Result<jiff::Timestamp, _> = written.parse();
    let read = read.map(jiff::Timestamp::as_microsecond);
    read.map_err(|_| {
        let written = begin(written);
        format!(
            "{written:?} is no date: write one as YYYY-MM-DDTHH:MM:SS with Z or a difference from \
             UTC (RFC 3339), such as 2026-11-23T07:00:00Z or 2026-11-23T08:00:00+01:00"
        )
    })
}

/// Channels, as `1-5,7,100-`: any number of ranges, which may overlap.
///
/// # Errors
/// When one is no range.
pub fn numbers(written: &str) -> Result<Numbers, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.parse().ok()?;
        let last = if last.is_empty() { u32::MAX } else { last.parse().ok()? };
        (first <= last).then_some((first, last))
    };
    let ranges = written.split(',').map(|part| {
        range(part).ok_or_else(|| {
            let part = begin(part);
            format!("{part:?} is no range of channels: write 7, 1-5 or 100-, with commas between")
        })
    });
    Ok(Numbers::of_ranges(ranges.collect::<Result<_, _>>()?))
}

/// Text as a value of a URL's query (RFC 3986, 2.3); slashes and commas stay, which mean nothing
/// else there.
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b',' => {
                encoded.push(char::from(byte));
            }
            // Writing to a string can't fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_limited_and_a_refusal_repeats_the_begin_of_a_value() {
        let many = vec![("where", "a>0"); CONDITIONS + 1];
        assert!(Params::read(&many[1..], &["where"]).is_ok());
        let why = Params::read(&many, &["where"]).expect_err("one too many");
        assert!(why.contains("more than 1000 conditions"), "{why}");
        let long = "é".repeat(1_000_000);
        for name in ["t", "channels", "as_of", "order", &long] {
            let why = Params::read(&[(name, &long)], &["t", "channels", "as_of", "order"]);
            let why = why.expect_err("none of them");
            assert!(why.len() < 1_500, "{} bytes", why.len());
        }
        let names = vec!["a"; NAMES + 1].join(",");
        assert!(Params::read(&[("names", &names[2..])], &["names"]).is_ok());
        assert!(Params::read(&[("names", &names[..])], &["names"]).is_err());
    }

    #[test]
    fn a_query_is_read_or_says_what_can_be_written() {
        let read =
            |pairs: &[(&str, &str)]| Params::read(pairs, &["t", "channels", "as_of", "order"]);
        let params =
            read(&[("t", "max"), ("channels", "7,1-5,6"), ("as_of", "1970-01-01T00:00:01Z")]);
        let params = params.expect("a question");
        assert_eq!((params.t, params.as_of_us), (Some(MAX_TIME), Some(1_000_000)));
        assert_eq!(params.selection.numbers, Some(Numbers::In(vec![(1, 7)])));
        for (pairs, said) in [
            (&[("t", "-1")][..], "t=-1: write a time of 0 to 9223372036854775807, or max"),
            (&[("t", "1"), ("t", "1")], "\"t\" is given twice"),
            (&[("tag", "x")], "\"tag\" is no parameter here; there are t,"),
            (&[("channels", "5-1")], "\"5-1\" is no range of channels"),
            (&[("channels", "")], "\"\" is no range"),
            (&[("as_of", "9999")], "as_of=9999: \"9999\" is no date: write one as YYYY-MM-DDTHH:"),
            (&[("as_of", "yesterday")], "such as 2026-11-23T07:00:00Z or"),
            (&[("order", "up")], "write channel or time"),
        ] {
            let why = read(pairs).expect_err("refused");
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn what_has_a_meaning_in_urls_is_encoded() {
        assert_eq!(percent_encode("/a b/é&#?%+"), "/a%20b/%C3%A9%26%23%3F%25%2B");
        assert_eq!(percent_encode("1-5,7"), "1-5,7");
    }
}
