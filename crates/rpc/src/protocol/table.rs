//! The messages of `proto/loadline/rpc/v1/table.proto`, as that file has them: by hand, so that own
//! frames need nothing that reads .proto files. A test holds them against the descriptors.

// Some are codecs' and tests' alone.
#![cfg_attr(not(feature = "grpc"), allow(dead_code))]

use std::collections::HashMap;

use bytes::Bytes;

/// A number.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Number {
    #[prost(int64, tag = "1")]
    pub(crate) value: i64,
}

/// How long a call sleeps.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Pause {
    #[prost(uint64, tag = "1")]
    pub(crate) ns: u64,
}

/// Where a function runs, and what its process has done.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Place {
    #[prost(uint32, tag = "1")]
    pub(crate) pid: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) core: u32,
    #[prost(string, tag = "3")]
    pub(crate) carrier: String,
    #[prost(uint64, tag = "4")]
    pub(crate) reads: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) writes: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) system_calls: u64,
    #[prost(uint64, tag = "7")]
    pub(crate) calls: u64,
}

/// The message that codecs are compared with, and that is echoed.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Sample {
    #[prost(int64, tag = "1")]
    pub(crate) number: i64,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
    #[prost(double, tag = "3")]
    pub(crate) real: f64,
    #[prost(bool, tag = "4")]
    pub(crate) flag: bool,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) blob: Bytes,
    #[prost(message, optional, boxed, tag = "6")]
    pub(crate) inner: Option<Box<Sample>>,
    #[prost(oneof = "sample::One", tags = "7, 8, 9")]
    pub(crate) one: Option<sample::One>,
    #[prost(double, repeated, tag = "10")]
    pub(crate) reals: Vec<f64>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) samples: Vec<Sample>,
    #[prost(map = "string, int64", tag = "12")]
    pub(crate) counts: HashMap<String, i64>,
    #[prost(sint64, tag = "13")]
    pub(crate) signed: i64,
    #[prost(int32, tag = "14")]
    pub(crate) small: i32,
    #[prost(fixed64, tag = "15")]
    pub(crate) wide: u64,
    #[prost(enumeration = "Kind", tag = "16")]
    pub(crate) kind: i32,
}

/// What a sample has one of.
pub(crate) mod sample {
    /// One of several.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum One {
        #[prost(int64, tag = "7")]
        Integer(i64),
        #[prost(string, tag = "8")]
        Word(String),
        #[prost(message, tag = "9")]
        Boxed(super::Number),
    }
}

/// What kind a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Kind {
    None = 0,
    Plain = 1,
    Special = 2,
}

/// A sample as an older program knows it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Earlier {
    #[prost(int64, tag = "1")]
    pub(crate) number: i64,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
}

#[cfg(all(test, feature = "grpc"))]
mod tests {
    use prost::Message;
    use prost_reflect::{DynamicMessage, Value};

    use super::*;
    use crate::protocol::proto::pool;

    /// The fields of an encoding by their names in the .proto file; none is left over.
    fn named(name: &str, message: &impl Message) -> Vec<(String, Value)> {
        let kind = pool().get_message_by_name(&format!("loadline.rpc.v1.{name}")).expect(name);
        let read = DynamicMessage::decode(kind.clone(), &message.encode_to_vec()[..]);
        let read = read.expect("it decodes");
        assert_eq!(read.unknown_fields().count(), 0, "{name}");
        let fields = read.fields().map(|(field, value)| (field.name().to_owned(), value.clone()));
        let all: Vec<_> = fields.collect();
        // Each field has a value that isn't its default, but those of a oneof that has another.
        let lacking = kind.oneofs().map(|one| one.fields().count() - 1).sum::<usize>();
        assert_eq!(all.len() + lacking, kind.fields().count(), "{name}");
        all
    }

    fn value<'a>(fields: &'a [(String, Value)], name: &str) -> &'a Value {
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value).expect(name)
    }

    #[test]
    fn small_messages_are_what_the_proto_file_says() {
        assert_eq!(value(&named("Number", &Number { value: -7 }), "value"), &Value::I64(-7));
        assert_eq!(value(&named("Pause", &Pause { ns: 7 }), "ns"), &Value::U64(7));
        let carrier = "tcp".to_owned();
        let place =
            Place { pid: 1, core: 2, carrier, reads: 4, writes: 5, system_calls: 6, calls: 7 };
        let place = named("Place", &place);
        assert_eq!(value(&place, "core"), &Value::U32(2));
        assert_eq!(value(&place, "carrier"), &Value::String("tcp".into()));
        assert_eq!(value(&place, "system_calls"), &Value::U64(6));
        assert_eq!(value(&place, "calls"), &Value::U64(7));
        let earlier = named("Earlier", &Earlier { number: 1, text: "two".into() });
        assert_eq!(value(&earlier, "text"), &Value::String("two".into()));
    }

    #[test]
    fn a_sample_is_what_the_proto_file_says() {
        let sample = Sample {
            number: 1,
            text: "two".into(),
            real: 3.5,
            flag: true,
            blob: Bytes::from_static(b"five"),
            inner: Some(Box::default()),
            one: Some(sample::One::Boxed(Number { value: 9 })),
            reals: vec![10.0],
            samples: vec![Sample::default()],
            counts: HashMap::from([("twelve".to_owned(), 12)]),
            signed: -13,
            small: -14,
            wide: 15,
            kind: Kind::Special.into(),
        };
        let fields = named("Sample", &sample);
        assert_eq!(value(&fields, "blob"), &Value::Bytes(Bytes::from_static(b"five")));
        assert_eq!(value(&fields, "signed"), &Value::I64(-13));
        assert_eq!(value(&fields, "small"), &Value::I32(-14));
        assert_eq!(value(&fields, "wide"), &Value::U64(15));
        assert_eq!(value(&fields, "kind"), &Value::EnumNumber(2));
        assert_eq!(value(&fields, "reals"), &Value::List(vec![Value::F64(10.0)]));
        for (one, name) in
            [(sample::One::Integer(7), "integer"), (sample::One::Word("eight".into()), "word")]
        {
            let fields = named("Sample", &Sample { one: Some(one), ..sample.clone() });
            value(&fields, name);
        }
    }
}
