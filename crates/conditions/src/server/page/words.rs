//! Words, numbers and addresses of the pages.

use std::fmt::Write as _;

use base::{grouped, of_many};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::{MAX_TIME, Value};
use crate::protocol::{Params, cell_text, percent_encode};

/// The most characters of a value.
const VALUE_CHARS: usize = 60;

/// The beginning of a text, with a sign where it goes on.
pub(super) fn clipped(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number of things, in one or several.
pub(super) fn many(count: u64, thing: &str) -> String {
    format!("{} {}", grouped(count), of_many(count, thing))
}

/// An end of an interval.
pub(super) fn end(until: u64) -> String {
    if until == MAX_TIME { "open".to_owned() } else { until.to_string() }
}

/// When something was changed, to the second.
pub(super) fn date(time_us: i64) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(time_us).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// The beginning of a value; nothing of one that is null.
pub(super) fn value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(clipped(text, VALUE_CHARS)),
        Value::Bytes(bytes) => {
            let begin = STANDARD.encode(&bytes[..bytes.len().min(12)]);
            let more = if bytes.len() > 12 { "…" } else { "" };
            Some(format!("{}: {begin}{more}", many(bytes.len() as u64, "byte")))
        }
        number => Some(cell_text(number)),
    }
}

/// An address with these parameters, without those that have no value.
pub(super) fn address(path: &str, pairs: &[(&str, Option<&str>)]) -> String {
    let mut address = path.to_owned();
    let mut sign = '?';
    for (name, value) in pairs {
        let Some(value) = value else { continue };
        // Writing to a string can't fail.
        let _ = write!(address, "{sign}{name}={}", percent_encode(value));
        sign = '&';
    }
    address
}

/// The page of a set.
pub(super) fn set(path: &str) -> String {
    if path == "/" { "/".to_owned() } else { address("/page/set", &[("under", Some(path))]) }
}

/// Which version is asked for, as parameters of an address.
pub(super) struct Asking {
    tag: Option<String>,
    revision: Option<String>,
    as_of: Option<String>,
}

impl Asking {
    pub(super) fn of(params: &Params) -> Self {
        let as_of = params.as_of_us.and_then(|time| jiff::Timestamp::from_microsecond(time).ok());
        Self {
            tag: params.tag.clone(),
            revision: params.revision.map(|revision| revision.to_string()),
            as_of: as_of.map(|time| time.to_string()),
        }
    }

    /// An address of this version with more parameters.
    pub(super) fn address(&self, path: &str, pairs: &[(&str, Option<&str>)]) -> String {
        let own = [
            ("tag", self.tag.as_deref()),
            ("revision", self.revision.as_deref()),
            ("as_of", self.as_of.as_deref()),
        ];
        address(path, &[pairs, &own].concat())
    }

    /// The fields of a form that keep the version, but for the tag, which the form asks for.
    pub(super) fn hidden(&self) -> [(&'static str, Option<&str>); 2] {
        [("revision", self.revision.as_deref()), ("as_of", self.as_of.as_deref())]
    }

    /// What is shown, in words.
    pub(super) fn words(&self) -> String {
        let mut words = match &self.tag {
            Some(tag) => format!("tag {}", clipped(tag, 60)),
            None => "the head".to_owned(),
        };
        let at = self.revision.as_ref().map(|revision| format!(" at revision {revision}"));
        let of = self.as_of.as_ref().map(|date| format!(" as of {date}"));
        words.extend(at.into_iter().chain(of));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_texts_and_values_are_short() {
        assert_eq!(
            (many(1, "entry"), many(2_000, "entry")),
            ("1 entry".into(), "2,000 entries".into())
        );
        assert_eq!((clipped("héé", 2), clipped("hé", 2)), ("hé…".to_owned(), "hé".to_owned()));
        assert_eq!(value(&Value::Null), None);
        assert_eq!(
            value(&Value::Bytes(vec![0; 13])).as_deref(),
            Some("13 bytes: AAAAAAAAAAAAAAAA…")
        );
        assert_eq!(end(MAX_TIME), "open");
        assert_eq!(date(0).as_deref(), Some("1970-01-01 00:00:00 UTC"));
    }

    #[test]
    fn an_address_has_the_parameters_that_are_there() {
        let pairs = [("a", Some("x y")), ("b", None), ("c", Some("&"))];
        assert_eq!(address("/p", &pairs), "/p?a=x%20y&c=%26");
        let params = Params { tag: Some("t".into()), as_of_us: Some(0), ..Params::default() };
        let asking = Asking::of(&params);
        assert_eq!(asking.address("/p", &[]), "/p?tag=t&as_of=1970-01-01T00%3A00%3A00Z");
        assert_eq!(asking.words(), "tag t as of 1970-01-01T00:00:00Z");
    }
}
