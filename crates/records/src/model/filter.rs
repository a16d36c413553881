//! Filters that a client asks for with a field's options, as pvDatabase has them
//! (`pvDatabaseCPP/src/copy`): `value[array=2:-1]`, `value[deadband=abs:0.5]`,
//! `timeStamp[timestamp=current]`.

use std::sync::Arc;

use super::Time;
use super::error::PutError;
use crate::protocol::{Array, Bits, Number, Options, Selection, Type, Value};

/// The filters of one operation. Those of a monitor remember what was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters(Vec<(usize, Filter)>);

#[derive(Clone, Debug, PartialEq)]
enum Filter {
    /// A part of an array.
    Array(Part),
    /// A number is sent when it differs by at least this from the one sent last.
    Deadband { width: f64, is_relative: bool, last: Option<f64> },
    /// The time of the sending, instead of the record's.
    Now,
}

/// Elements from one index to another, both included, by steps; negative indices count from the
/// array's end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    start: i64,
    step: i64,
    end: i64,
}

impl Filters {
    /// The filters that a selection asks for.
    ///
    /// # Errors
    /// When one is unknown, malformed, or not for its field: the text is for the client.
    pub fn of(selection: Option<&Selection>, kind: &Type) -> Result<Self, String> {
        let mut all = Vec::new();
        if let Some(selection) = selection {
            collect(selection, kind, 0, &mut all)?;
        }
        Ok(Self(all))
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is sent instead of `nodes`. Fields that needn't be sent are taken out of `changed`.
    pub fn apply(&mut self, now: Time, nodes: &[Value], changed: &mut Bits) -> Vec<Value> {
        let mut nodes = nodes.to_vec();
        for (bit, filter) in &mut self.0 {
            match filter {
                Filter::Array(part) => {
                    if let Some(array) = nodes[*bit].as_array() {
                        nodes[*bit] = part.of(array);
                    }
                }
                Filter::Deadband { width, is_relative, last } => {
                    let number = nodes[*bit].number().map(Number::real).unwrap_or_default();
                    // Percents are of what was sent last, as in pvDatabase.
                    let least = |last: f64| match is_relative {
                        true => *width / 100.0 * last.abs(),
                        false => *width,
                    };
                    match last {
                        Some(last) if (number - *last).abs() < least(*last) => {
                            changed.remove(*bit);
                        }
                        _ if changed.contains(*bit) => *last = Some(number),
                        _ => {}
                    }
                }
                Filter::Now => {
                    nodes[*bit + 1] = Value::Long(now.seconds);
                    nodes[*bit + 2] = Value::Int(now.nanoseconds);
                }
            }
        }
        nodes
    }

    /// What is put into a record instead of what a client sends: `nodes` become what they are to
    /// be where the record holds `held`, and places that nothing was sent for are left alone.
    ///
    /// # Errors
    /// When fewer elements come than the part has, or the array would have more than `most_bytes`.
    pub(super) fn put(
        &self,
        now: Time,
        record: &Arc<str>,
        most_bytes: usize,
        held: &[Value],
        nodes: &mut [Value],
    ) -> Result<(), PutError> {
        for (bit, filter) in &self.0 {
            match filter {
                Filter::Array(part) => {
                    if let (Some(held), Some(sent)) =
                        (held[*bit].as_array(), nodes[*bit].as_array())
                    {
                        nodes[*bit] = part.put(record, most_bytes, held, sent)?;
                    }
                }
                Filter::Now => {
                    for (at, value) in
                        [(1, Value::Long(now.seconds)), (2, Value::Int(now.nanoseconds))]
                    {
                        if nodes[*bit + at] != Value::Structure {
                            nodes[*bit + at] = value;
                        }
                    }
                }
                // Every put counts, however small its step.
                Filter::Deadband { .. } => {}
            }
        }
        Ok(())
    }
}

fn collect(
    selection: &Selection,
    kind: &Type,
    at: usize,
    into: &mut Vec<(usize, Filter)>,
) -> Result<(), String> {
    if !selection.options.is_empty() {
        read(&selection.options, kind, at, into)?;
    }
    let Type::Structure(structure) = kind else { return Ok(()) };
    for field in structure.fields() {
        if let Some((_, below)) = selection.fields.iter().find(|(name, _)| **name == *field.name) {
            collect(below, &field.kind, at + field.at(), into)?;
        }
    }
    Ok(())
}

fn read(
    options: &Options,
    kind: &Type,
    bit: usize,
    into: &mut Vec<(usize, Filter)>,
) -> Result<(), String> {
    for (name, value) in options {
        let wrong = || format!("the filter {name}={value} makes no sense for this field");
        let filter = match (name.as_str(), kind) {
            ("array", Type::Array(scalar, _)) if scalar.bytes().is_some() => array(value),
            ("deadband", Type::Scalar(_)) => deadband(value),
            ("timestamp", Type::Structure(of)) if of.id() == "time_t" => match value.as_str() {
                "current" => Some(Filter::Now),
                // The time of the record is what is sent anyway.
                "copy" => continue,
                _ => None,
            },
            ("array" | "deadband" | "timestamp", _) => None,
            // Options that others understand are left alone, as peers do.
            _ => continue,
        };
        into.push((bit, filter.ok_or_else(wrong)?));
    }
    Ok(())
}

/// `start`, `start:end` or `start:step:end`.
fn array(text: &str) -> Option<Filter> {
    let numbers = text.split(':').map(|word| word.trim().parse().ok());
    let numbers = numbers.collect::<Option<Vec<i64>>>()?;
    let (start, step, end) = match numbers[..] {
        [start] => (start, 1, -1),
        [start, end] => (start, 1, end),
        [start, step, end] => (start, step, end),
        _ => return None,
    };
    (step > 0).then_some(Filter::Array(Part { start, step, end }))
}

/// `abs:width` or `rel:percent`.
fn deadband(text: &str) -> Option<Filter> {
    let (kind, width) = text.split_once(':')?;
    let is_relative = match kind {
        "abs" => false,
        "rel" => true,
        _ => return None,
    };
    let width = width.parse().ok().filter(|width: &f64| width.is_finite() && *width >= 0.0)?;
    Some(Filter::Deadband { width, is_relative, last: None })
}

impl Part {
    /// The first and the last index, in an array of `len` elements; the last may lie beyond it.
    fn range(&self, len: i64) -> (i64, i64) {
        let index = |at: i64| if at < 0 { len.saturating_add(at).max(0) } else { at };
        (index(self.start), index(self.end))
    }

    /// How many elements there are from one index to another.
    fn count(&self, (start, end): (i64, i64)) -> usize {
        if start > end { 0 } else { ((end - start) / self.step) as usize + 1 }
    }

    /// The part of an array.
    fn of(&self, array: &Array) -> Value {
        let len = i64::try_from(array.len()).unwrap_or(i64::MAX);
        let (start, end) = self.range(len);
        let count = self.count((start, end.min(len - 1)));
        let each = array.scalar().bytes().unwrap_or(1);
        let (start, step) = (start as usize, self.step as usize);
        let bytes = match (step, count) {
            (_, 0) => wire::Bytes::new(),
            // A part in one piece is sent from where it lies.
            (1, _) => array.bytes().slice(start * each..(start + count) * each),
            _ => {
                let mut bytes = Vec::with_capacity(count * each);
                for at in (0..count).map(|number| (start + number * step) * each) {
                    bytes.extend_from_slice(&array.bytes()[at..at + each]);
                }
                bytes.into()
            }
        };
        Value::Array(Arc::new(Array::new(array.scalar(), bytes)))
    }

    /// `held` with the first elements of `sent` in the places of the part. As with pvDatabase, it
    /// grows by zeros as far as the part goes, and more elements than the part has are left out.
    fn put(
        &self,
        record: &Arc<str>,
        most_bytes: usize,
        held: &Array,
        sent: &Array,
    ) -> Result<Value, PutError> {
        let len = i64::try_from(held.len()).unwrap_or(i64::MAX);
        let (start, end) = self.range(len);
        let count = self.count((start, end));
        if count == 0 {
            return Ok(Value::Array(Arc::new(held.clone())));
        }
        if count > sent.len() {
            let (record, sent) = (Arc::clone(record), sent.len());
            return Err(PutError::TooFew { record, count, sent });
        }
        let each = held.scalar().bytes().unwrap_or(1);
        let bytes = held.len().max(end as usize + 1).saturating_mul(each);
        if bytes > most_bytes {
            return Err(PutError::TooLong { record: Arc::clone(record), bytes, most: most_bytes });
        }
        let mut all = Vec::with_capacity(bytes);
        all.extend_from_slice(held.bytes());
        all.resize(bytes, 0);
        let (start, step) = (start as usize * each, self.step as usize);
        if step == 1 {
            all[start..start + count * each].copy_from_slice(&sent.bytes()[..count * each]);
        } else {
            for (number, element) in sent.bytes().chunks_exact(each).take(count).enumerate() {
                let at = start + number * step * each;
                all[at..at + each].copy_from_slice(element);
            }
        }
        Ok(Value::Array(Arc::new(Array::new(held.scalar(), all.into()))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::normative::{Parts, scalar, scalar_array};
    use super::*;
    use crate::protocol::{Request, Scalar, zeros};

    fn filters(request: &str, kind: &Type) -> Result<Filters, String> {
        Filters::of(Request::parse(request).unwrap().field.as_ref(), kind)
    }

    #[test]
    fn a_part_of_an_array_is_taken() {
        let kind = scalar_array(Scalar::UByte, Parts::default());
        let mut nodes = zeros(&kind);
        nodes[1] = Value::array(Scalar::UByte, (0..10).collect::<Vec<u8>>());
        for (text, part) in [
            ("7", "[7, 8, 9]"),
            ("-2", "[8, 9]"),
            ("2:4", "[2, 3, 4]"),
            ("1:3:-1", "[1, 4, 7]"),
            ("0:100", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"),
            ("5:2", "[]"),
            ("20", "[]"),
            // An end before the beginning is the beginning, as it is with pvDatabase.
            ("0:-20", "[0]"),
        ] {
            let mut filters = filters(&format!("field(value[array={text}])"), &kind).unwrap();
            let sent = filters.apply(Time::default(), &nodes, &mut Bits::new());
            assert_eq!(sent[1].to_string(), part, "{text}");
        }
    }

    #[test]
    fn a_part_is_put_into_the_array_that_is_there() {
        let kind = scalar_array(Scalar::Short, Parts::default());
        let numbers = |all: &[i16]| {
            Value::array(
                Scalar::Short,
                all.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>(),
            )
        };
        let mut held = zeros(&kind);
        held[1] = numbers(&[0, 1, 2, 3, 4]);
        let put = |text: &str, sent: &[i16]| {
            let filters = filters(&format!("field(value[array={text}])"), &kind).unwrap();
            let mut nodes = zeros(&kind);
            nodes[1] = numbers(sent);
            let result = filters.put(Time::default(), &"wave".into(), 1000, &held, &mut nodes);
            result.map(|()| nodes[1].to_string()).map_err(|error| error.to_string())
        };
        for (text, sent, whole) in [
            ("1:2", &[7, 8][..], "[0, 7, 8, 3, 4]"),
            ("1:2", &[7, 8, 9], "[0, 7, 8, 3, 4]"),
            ("-2", &[7, 8], "[0, 1, 2, 7, 8]"),
            ("0:2:-1", &[7, 8, 9], "[7, 1, 8, 3, 9]"),
            ("4:6", &[7, 8, 9], "[0, 1, 2, 3, 7, 8, 9]"),
            ("7:7", &[9], "[0, 1, 2, 3, 4, 0, 0, 9]"),
            ("5:4", &[], "[0, 1, 2, 3, 4]"),
        ] {
            assert_eq!(put(text, sent).as_deref(), Ok(whole), "{text}");
        }
        assert_eq!(put("1:2", &[7]).unwrap_err(), "the part of wave has 2 elements, and 1 came");
        assert!(put("500:500", &[7]).unwrap_err().contains("1002 bytes are more than the 1000"));
        assert!(put("0:9223372036854775807", &[7]).is_err());
        assert!(put("9223372036854775807:9223372036854775807", &[7]).is_err());
    }

    /// Those of `values` that are sent through this deadband.
    fn sent(deadband: &str, values: &[f64]) -> Vec<f64> {
        let kind = scalar(Scalar::Double, Parts::default());
        let request = format!("field(value[deadband={deadband}],timeStamp)");
        let mut filters = filters(&request, &kind).unwrap();
        let mut sent = Vec::new();
        for value in values {
            let mut nodes = zeros(&kind);
            nodes[1] = Value::Double(*value);
            let mut changed: Bits = [1, 7].into_iter().collect();
            filters.apply(Time::default(), &nodes, &mut changed);
            assert!(changed.contains(7));
            if changed.contains(1) {
                sent.push(*value);
            }
        }
        sent
    }

    #[test]
    fn a_number_that_hardly_differs_is_not_sent() {
        let steps: Vec<f64> = (0..10).map(|step| f64::from(step) * 0.5).collect();
        assert_eq!(sent("abs:1.2", &steps), [0.0, 1.5, 3.0, 4.5]);
    }

    #[test]
    fn percents_of_a_deadband_are_of_what_was_sent_last() {
        let values = [12.5, 18.0, 20.0, 11.0, 10.0, 0.0, 0.001];
        assert_eq!(sent("rel:50", &values), [12.5, 20.0, 10.0, 0.0, 0.001]);
        assert_eq!(sent("rel:50", &[-10.0, -14.0, -15.0]), [-10.0, -15.0]);
    }

    #[test]
    fn the_time_of_sending_takes_the_place_of_the_records() {
        let kind = scalar(Scalar::Double, Parts::default());
        let mut filters = filters("field(timeStamp[timestamp=current])", &kind).unwrap();
        let now = Time { seconds: 77, nanoseconds: 5 };
        let sent = filters.apply(now, &zeros(&kind), &mut Bits::new());
        let (bit, _) = kind.field("timeStamp").unwrap();
        assert_eq!(sent[bit + 1..bit + 3], [Value::Long(77), Value::Int(5)]);
    }

    #[test]
    fn filters_that_make_no_sense_are_refused() {
        let kind = scalar(Scalar::Double, Parts::default());
        for text in ["value[array=1]", "value[deadband=1]", "alarm[timestamp=current]"] {
            let error = filters(&format!("field({text})"), &kind).unwrap_err();
            assert!(error.contains("makes no sense for this field"), "{error}");
        }
        assert!(filters("field(value[distributor=x])", &kind).unwrap().is_empty());
    }
}
