//! The answer of the one request that every job makes, written straight into bytes.

use serde::Serialize;

use super::params::Shape;
use crate::nopayload::model::{Interval, Iov};

/// A row as an object, its columns in the order of those of a list.
#[derive(Serialize)]
struct Named<'a> {
    payload_type_name: &'a str,
    payload_url: &'a str,
    checksum: &'a str,
    /// The reference has these two columns, and no request that fills them.
    size: Option<u64>,
    major_iov: u64,
    minor_iov: u64,
    major_iov_end: u64,
    minor_iov_end: u64,
    revision: Option<u64>,
}

/// Writes rows of payload types and intervals into `out`.
pub fn write_rows<'a>(
    rows: impl Iterator<Item = (&'a str, &'a Iov)>,
    shape: Shape,
    out: &mut Vec<u8>,
) {
    out.push(b'[');
    for (place, (payload_type, iov)) in rows.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let Interval { start, end } = iov.interval;
        let (url, checksum) = (&*iov.url, &*iov.checksum);
        let empty = None::<u64>;
        // Neither the writer nor these types refuse anything.
        let _ = match shape {
            Shape::List => {
                let (from, to) = ((start.major, start.minor), (end.major, end.minor));
                let row = (payload_type, url, checksum, empty, from.0, from.1, to.0, to.1, empty);
                serde_json::to_writer(&mut *out, &row)
            }
            Shape::Dict => {
                let row = Named {
                    payload_type_name: payload_type,
                    payload_url: url,
                    checksum,
                    size: empty,
                    major_iov: start.major,
                    minor_iov: start.minor,
                    major_iov_end: end.major,
                    minor_iov_end: end.minor,
                    revision: empty,
                };
                serde_json::to_writer(&mut *out, &row)
            }
        };
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::nopayload::model::Moment;

    #[test]
    fn both_forms_say_the_same() {
        let (start, end) = (Moment::of(1, 2), Moment::OPEN);
        let interval = Interval { start, end };
        let (url, checksum) = ("a\"é".into(), "md5:0".into());
        let iov = Iov { url, checksum, interval, list: None, made: 1, made_us: 0 };
        let written = |shape, count| {
            let mut out = Vec::new();
            write_rows(std::iter::repeat_n(("T", &iov), count), shape, &mut out);
            serde_json::from_slice::<Value>(&out).expect("JSON")
        };
        assert_eq!(written(Shape::List, 0), json!([]));
        let row = json!(["T", "a\"é", "md5:0", null, 1, 2, i64::MAX, i64::MAX, null]);
        assert_eq!(written(Shape::List, 2), json!([row, row]));
        let named = written(Shape::Dict, 1);
        let values: Vec<_> = named[0].as_object().expect("an object").values().cloned().collect();
        let mut expected = row.as_array().expect("a list").clone();
        let mut values = values;
        // Objects are kept by name here.
        values.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(values, expected);
        assert_eq!(named[0]["payload_type_name"], "T");
    }
}
