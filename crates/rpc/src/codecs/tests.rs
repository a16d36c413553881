//! Every codec gives back what it was given, refuses what is none, and holds the limit of depth on
//! both sides.

use proptest::prelude::*;

use super::shape::SHAPES;
use super::{ROWS, Row, Sample, Shape, any, by_name};

fn there_and_back(row: &Row, sample: &Sample) -> Result<Sample, String> {
    let bytes = (row.encode)(sample).map_err(|why| why.to_string())?;
    (row.decode)(&bytes).map_err(|why| why.to_string())
}

#[test]
fn every_shape_comes_back_from_every_codec() {
    for shape in &SHAPES {
        for (size, seed) in [(0, 1), (1, 2), (2, 3), (shape.most.min(101), 4)] {
            let sample = shape.shape.make(size, seed);
            for row in &ROWS {
                let back = there_and_back(row, &sample);
                assert_eq!(back.as_ref(), Ok(&sample), "{} {} {size}", row.name, shape.name);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_message_comes_back_and_no_bytes_panic(
        seed: u64,
        at in 0usize..1 << 16,
        other: u8,
        noise in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
    ) {
        let sample = super::any(seed, 3);
        for row in &ROWS {
            prop_assert_eq!(there_and_back(row, &sample), Ok(sample.clone()), "{}", row.name);
            let mut bytes = (row.encode)(&sample).expect("it was encoded before");
            let (length, place) = (bytes.len(), at % bytes.len().max(1));
            let _ = (row.decode)(&bytes[..place]);
            if let Some(byte) = bytes.get_mut(place) {
                *byte = other;
            }
            // It may be another message now.
            let _ = (row.decode)(&bytes);
            let _ = (row.decode)(&noise);
            prop_assert_eq!(bytes.len(), length);
        }
    }
}

/// Messages within each other, directly or in lists.
fn deep(levels: usize, in_lists: bool) -> Sample {
    (0..levels).fold(Sample { number: 1, ..Sample::default() }, |inner, _| match in_lists {
        true => Sample { samples: vec![inner], ..Sample::default() },
        false => Sample { inner: Some(Box::new(inner)), ..Sample::default() },
    })
}

#[test]
fn what_is_encoded_can_be_decoded_however_deep_it_is() {
    for row in ROWS.iter().filter(|row| row.name != "prost") {
        for in_lists in [false, true] {
            let mut most = 0;
            for levels in 0..130 {
                let sample = deep(levels, in_lists);
                if (row.encode)(&sample).is_ok() {
                    assert_eq!(there_and_back(row, &sample), Ok(sample), "{} {levels}", row.name);
                    most = levels;
                }
            }
            let expected = if row.name == "json" && in_lists { 62 } else { 100 };
            assert_eq!(most, expected, "{} {in_lists}", row.name);
        }
    }
}

#[test]
fn bytes_of_deeper_messages_are_refused() {
    let nested = |levels: usize| {
        (0..levels).fold(vec![0x08, 1], |inner, _| {
            let mut outer = vec![0x32];
            prost::encode_length_delimiter(inner.len(), &mut outer).expect("a vector has room");
            outer.extend(inner);
            outer
        })
    };
    let protobuf = by_name("protobuf").expect("it is there");
    assert_eq!((protobuf.decode)(&nested(100)), Ok(deep(100, false)));
    for levels in [101, 3_000] {
        let why = (protobuf.decode)(&nested(levels)).unwrap_err();
        assert_eq!(why.to_string(), super::depth::TOO_DEEP);
    }
    // Nothing but beginnings of messages: fields 0 to 4 have their defaults.
    let postcard = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].repeat(100_000);
    assert!((by_name("postcard").expect("it is there").decode)(&postcard).is_err());
    let json = r#"{"inner":"#.repeat(100_000);
    assert!((by_name("json").expect("it is there").decode)(json.as_bytes()).is_err());
    let cbor = [&[0xa1, 0x65][..], b"inner"].concat().repeat(100_000);
    assert!((by_name("cbor").expect("it is there").decode)(&cbor).is_err());
    let pack = [0x96, 0, 0xa0, 0, 0xc2, 0xc4, 0].repeat(100_000);
    assert!((by_name("msgpack").expect("it is there").decode)(&pack).is_err());
}

/// Bytes that upb refuses, and what is accepted.
#[test]
fn protobuf_takes_what_protoc_programs_take() {
    let row = by_name("protobuf").expect("it is there");
    let refused: [&[u8]; 6] = [
        &[0x0a],
        &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x00, 0x01],
        &[0x12, 0x02, 0xff, 0xfe],
        &[0x8b, 0x01],
        &[0x12, 0x05, b'a'],
    ];
    for bytes in refused {
        assert!((row.decode)(bytes).is_err(), "{bytes:02x?}");
    }
    let read = |bytes: &[u8]| (row.decode)(bytes).expect("it is a message");
    // A group that isn't known; packed and not packed; the last one counts.
    let grouped = read(&[0xb3, 0x02, 0x08, 0x01, 0xb4, 0x02, 0x08, 0x07]);
    assert_eq!(grouped, Sample { number: 7, ..Sample::default() });
    let one = 1f64.to_le_bytes();
    let packed = [&[0x52, 8][..], &one, &[0x51], &one].concat();
    assert_eq!(read(&packed).reals, [1.0, 1.0]);
    assert_eq!(read(&[0x08, 1, 0x08, 2]).number, 2);
    // Messages of the same field become one, and so do those of one of several.
    let merged = read(&[0x32, 2, 0x08, 5, 0x32, 4, 0x12, 2, b'h', b'i']);
    let inner = merged.inner.expect("it has one");
    assert_eq!((inner.number, &inner.text[..]), (5, "hi"));
    // −1 takes ten bytes as int64 and as int32, one as sint64.
    let minus = Sample { number: -1, signed: -1, small: -1, ..Sample::default() };
    let bytes = (row.encode)(&minus).expect("it can be encoded");
    let ten = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(bytes, [&[0x08][..], &ten, &[0x68, 0x01, 0x70], &ten].concat());
    assert_eq!((row.encode)(&Shape::Zero.make(0, 0)), Ok(Vec::new()));
}

#[test]
fn fields_that_an_older_program_does_not_know_survive_it_in_protobuf() {
    let sample = any(7, 2);
    let row = by_name("protobuf").expect("it is there");
    let bytes = (row.encode)(&sample).expect("it can be encoded");
    let again = (row.through_earlier)(&bytes).expect("it can be read");
    assert_eq!((row.decode)(&again.bytes), Ok(sample));
}

#[test]
fn bytes_behind_the_message_are_refused() {
    let sample = Shape::Small.make(0, 1);
    for row in ROWS.iter().filter(|row| !["protobuf", "prost", "rkyv"].contains(&row.name)) {
        let mut bytes = (row.encode)(&sample).expect("it can be encoded");
        bytes.push(b'0');
        assert!((row.decode)(&bytes).is_err(), "{}", row.name);
    }
}
