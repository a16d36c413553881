//! Counters as Prometheus text over HTTP/1.1: what most web services publish about themselves.
//!
//! The format is Prometheus' "text-based format", version 0.0.4: a line for each sample, with
//! `# TYPE` before those of one name. Control plane.

use std::collections::HashMap;

use crate::protocol::{Ending, Part, RequestHead, Responses};
use wire::ProtocolError;

use ::load::{Counter, CounterKind, Counters, MAX_COUNTERS};

/// A page of Prometheus text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    host: String,
    path: String,
}

impl Metrics {
    /// The page at `path` of the host that is called `host` in requests.
    ///
    /// # Errors
    /// When these can't stand in a request.
    pub fn new(host: impl Into<String>, path: impl Into<String>) -> Result<Self, ProtocolError> {
        let page = Self { host: host.into(), path: path.into() };
        page.request(|request| request.check())?;
        Ok(page)
    }

    fn request<T>(&self, then: impl FnOnce(&RequestHead<'_>) -> T) -> T {
        let headers = [("host", &self.host[..]), ("accept", "text/plain;version=0.0.4")];
        let target = &self.path[..];
        then(&RequestHead { method: "GET", target, headers: &headers, body_bytes: None })
    }
}

impl Counters for Metrics {
    fn ask(&self, into: &mut Vec<u8>) {
        self.request(|request| request.put(into));
    }

    fn read(&self, bytes: &[u8], ended: bool) -> Result<Option<Vec<Counter>>, ProtocolError> {
        let (mut responses, mut used, mut body) = (Responses::new(), 0, Vec::new());
        loop {
            let (length, part) = responses.read(&bytes[used..], false)?;
            used += length;
            match part {
                Part::Head(head) if head.status != 200 => {
                    return Err(ProtocolError::new(format!(
                        "status {} for {}",
                        head.status, self.path
                    )));
                }
                Part::Head(_) => {}
                Part::Body(piece) => body.extend_from_slice(piece),
                Part::End { .. } => break,
                Part::More if !ended => return Ok(None),
                Part::More => match responses.closed() {
                    Ending::Whole => break,
                    Ending::Between | Ending::Cut => {
                        return Err(ProtocolError::new("a page cut off"));
                    }
                },
            }
        }
        Ok(Some(read_page(&String::from_utf8_lossy(&body))))
    }
}

/// Every sample of a page that is a number. A name with labels keeps them: `a{b="c"}`.
fn read_page(text: &str) -> Vec<Counter> {
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut counters = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            types.extend(rest.split_once(' ').map(|(name, kind)| (name, kind.trim())));
        } else if !line.starts_with('#')
            && let Some((name, value)) = read_sample(line)
            && counters.len() < MAX_COUNTERS
        {
            let plain = name.split('{').next().unwrap_or_default();
            let kind =
                if is_total(plain, &types) { CounterKind::Total } else { CounterKind::Level };
            counters.push(Counter { name: name.to_owned(), kind, value });
        }
    }
    counters
}

/// `name{labels} value [timestamp]`; a label's value may hold anything but a bare quote.
fn read_sample(line: &str) -> Option<(&str, f64)> {
    let end = match line.find('{') {
        Some(open) => open + closing_brace(&line[open..])? + 1,
        None => line.find([' ', '\t'])?,
    };
    let value = line[end..].split_whitespace().next()?;
    // Rust reads NaN and infinities too, which are no counts.
    let value = value.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some((&line[..end], value))
}

fn closing_brace(labels: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in labels.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether samples of this name only grow: of a counter, or the sums of a histogram or summary.
fn is_total(name: &str, types: &HashMap<&str, &str>) -> bool {
    if let Some(kind) = types.get(name) {
        return *kind == "counter";
    }
    let part = |suffix: &str| {
        let kind = name.strip_suffix(suffix).and_then(|base| types.get(base));
        kind.is_some_and(|kind| ["counter", "histogram", "summary"].contains(kind))
    };
    let untyped = !types.contains_key(name) && name.ends_with("_total");
    untyped || ["_total", "_bucket", "_sum", "_count"].into_iter().any(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: &str = "# HELP http_requests_total Requests.\n\
        # TYPE http_requests_total counter\n\
        http_requests_total{method=\"post\",path=\"/a}b \\\"c\"} 1027 1395066363000\n\
        http_requests_total{method=\"get\"} 3\n\
        # TYPE queue gauge\nqueue 4.5\n\
        # TYPE took_seconds histogram\ntook_seconds_bucket{le=\"+Inf\"} 7\ntook_seconds_sum 0.5\n\
        untyped_total 9\nnan NaN\n";

    fn page() -> Metrics {
        Metrics::new("127.0.0.1:80", "/metrics").unwrap()
    }

    #[test]
    fn totals_and_levels_are_told_apart_by_type() {
        let read = read_page(PAGE);
        let post = "http_requests_total{method=\"post\",path=\"/a}b \\\"c\"}";
        let expected = vec![
            Counter::total(post, 1027.0),
            Counter::total("http_requests_total{method=\"get\"}", 3.0),
            Counter::level("queue", 4.5),
            Counter::total("took_seconds_bucket{le=\"+Inf\"}", 7.0),
            Counter::total("took_seconds_sum", 0.5),
            Counter::total("untyped_total", 9.0),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn an_answer_is_read_once_it_is_whole_however_it_ends() {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na 1\n";
        assert_eq!(page().read(&whole.as_bytes()[..20], false), Ok(None));
        let counters = Some(vec![Counter::level("a", 1.0)]);
        assert_eq!(page().read(whole.as_bytes(), false), Ok(counters.clone()));
        let closing = b"HTTP/1.0 200 OK\r\n\r\na 1\n";
        assert_eq!(page().read(closing, false), Ok(None));
        assert_eq!(page().read(closing, true), Ok(counters));
        assert!(page().read(b"HTTP/1.1 404 Not Found\r\n\r\n", false).is_err());
        assert!(page().read(&whole.as_bytes()[..40], true).is_err(), "cut off");
        let mut asked = Vec::new();
        page().ask(&mut asked);
        assert!(asked.starts_with(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1:80\r\n"));
        assert!(Metrics::new("h", "no path").is_err());
    }

    proptest! {
        #[test]
        fn no_page_breaks_the_reader(text in "[ -~\n]{0,200}", labels in "[{}\"\\\\a ]{0,40}") {
            let _ = read_page(&text);
            let _ = read_page(&format!("a{labels} 1"));
        }
    }
}
