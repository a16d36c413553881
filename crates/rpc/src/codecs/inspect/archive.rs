//! rkyv, of which only the type says what lies where: `loadline.rpc.v1.Sample`. The archive is
//! checked first; then each value says where it lies, and what lies between is padding.

use rkyv::string::ArchivedString;

use super::super::archive::{aligned, check};
use super::super::codec::CodecError;
use super::super::sample::{ArchivedNumber, ArchivedOne, ArchivedSample};
use super::cursor::{Cursor, shown};
use super::piece::{Cause, Fault, MOST_PIECES};
use base::many;

/// Bytes that were found to belong together.
struct Found {
    offset: usize,
    length: usize,
    field: String,
    kind: &'static str,
    value: String,
    cause: Cause,
}

/// Where values lie in an archive.
struct Places {
    base: usize,
    found: Vec<Found>,
}

impl Places {
    /// Notes where a value lies.
    fn add<T: ?Sized>(
        &mut self,
        at: &T,
        field: String,
        kind: &'static str,
        value: String,
        cause: Cause,
    ) {
        // More than can be shown isn't kept.
        if self.found.len() < MOST_PIECES {
            let offset = std::ptr::from_ref(at).addr() - self.base;
            let length = size_of_val(at);
            self.found.push(Found { offset, length, field, kind, value, cause });
        }
    }

    fn text(&mut self, text: &ArchivedString, field: &str) {
        let bytes = text.as_str().as_bytes();
        let own = std::ptr::from_ref(text).addr();
        let is_within = (own..own + size_of_val(text)).contains(&bytes.as_ptr().addr());
        if is_within || bytes.is_empty() {
            self.add(text, field.to_owned(), "string, in place", shown(bytes), Cause::Payload);
            return;
        }
        let length = format!("{} elsewhere", many(bytes.len(), "byte"));
        self.add(text, field.to_owned(), "string", length, Cause::Lengths);
        self.add(bytes, field.to_owned(), "string", shown(bytes), Cause::Payload);
    }

    fn sample(&mut self, sample: &ArchivedSample, within: &str) {
        use Cause::{Keys, Lengths, Payload};

        let name = |field: &str| match within {
            "" => field.to_owned(),
            within => format!("{within}.{field}"),
        };
        self.add(&sample.number, name("number"), "i64", sample.number.to_string(), Payload);
        self.text(&sample.text, &name("text"));
        self.add(&sample.real, name("real"), "f64", sample.real.to_string(), Payload);
        self.add(&sample.flag, name("flag"), "bool", sample.flag.to_string(), Payload);
        let blob = many(sample.blob.len(), "byte");
        self.add(&sample.blob, name("blob"), "vec", format!("{blob} elsewhere"), Lengths);
        self.add(&sample.blob[..], name("blob"), "bytes", blob, Payload);
        let there = if sample.inner.is_some() { "elsewhere" } else { "none" };
        self.add(&sample.inner, name("inner"), "option of box", there.to_owned(), Lengths);
        self.one(sample, &name("one"));
        let reals = format!("{} elsewhere", many(sample.reals.len(), "number"));
        self.add(&sample.reals, name("reals"), "vec", reals, Lengths);
        for (index, real) in sample.reals.iter().enumerate() {
            let field = format!("{}[{index}]", name("reals"));
            self.add(real, field, "f64", real.to_string(), Payload);
        }
        let samples = format!("{} elsewhere", many(sample.samples.len(), "message"));
        self.add(&sample.samples, name("samples"), "vec", samples, Lengths);
        let counts = format!("{} elsewhere", many(sample.counts.len(), "key"));
        self.add(&sample.counts, name("counts"), "tree", counts, Lengths);
        for (key, count) in sample.counts.iter() {
            self.text(key, &format!("{} key", name("counts")));
            let field = format!("{}[{:?}]", name("counts"), key.as_str());
            self.add(count, field, "i64", count.to_string(), Payload);
        }
        self.add(&sample.signed, name("signed"), "i64", sample.signed.to_string(), Payload);
        self.add(&sample.small, name("small"), "i32", sample.small.to_string(), Payload);
        self.add(&sample.wide, name("wide"), "u64", sample.wide.to_string(), Payload);
        self.add(&sample.kind, name("kind"), "enum", String::new(), Keys);
        if let Some(inner) = sample.inner.as_ref() {
            self.sample(inner, &name("inner"));
        }
        for (index, one) in sample.samples.iter().enumerate() {
            self.sample(one, &format!("{}[{index}]", name("samples")));
        }
    }

    fn one(&mut self, sample: &ArchivedSample, field: &str) {
        let Some(one) = sample.one.as_ref() else {
            self.add(&sample.one, field.to_owned(), "option", "none".to_owned(), Cause::Keys);
            return;
        };
        match one {
            ArchivedOne::Integer(value) | ArchivedOne::Boxed(ArchivedNumber { value }) => {
                self.add(value, field.to_owned(), "i64", value.to_string(), Cause::Payload);
            }
            ArchivedOne::Word(word) => self.text(word, field),
        }
    }
}

/// Reads the message, which lies at the end of its archive.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    let found = aligned(cursor.all(), |bytes| -> Result<_, CodecError> {
        let sample = check::<ArchivedSample>(bytes)?;
        let mut places = Places { base: bytes.as_ptr().addr(), found: Vec::new() };
        places.sample(sample, "");
        Ok(places.found)
    });
    let mut found = match found {
        Ok(found) => found,
        Err(why) => return cursor.fault(0, why.to_string()),
    };
    found.sort_by_key(|one| one.offset);
    for one in found {
        // Of values that share their bytes the first is shown.
        if one.offset < cursor.at || one.length == 0 {
            continue;
        }
        cursor.take((one.offset - cursor.at) as u64, "padding")?;
        cursor.note(Cause::Padding, "", "padding", "");
        cursor.take(one.length as u64, &one.field)?;
        cursor.note(one.cause, one.field, one.kind, one.value);
    }
    cursor.take(cursor.left() as u64, "padding")?;
    cursor.note(Cause::Padding, "", "padding", "");
    Ok(())
}
