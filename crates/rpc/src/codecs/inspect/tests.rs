//! Pieces lie side by side, their values are right, and no bytes panic.

use proptest::prelude::*;

use super::super::{any, by_name};
use super::*;

fn sample_type() -> MessageDescriptor {
    crate::protocol::proto::pool()
        .get_message_by_name("loadline.rpc.v1.Sample")
        .expect("it is there")
}

/// Each piece as `field type value cause`.
fn seen(encoding: Encoding, bytes: &[u8], message: Option<&MessageDescriptor>) -> Vec<String> {
    let inspection = encoding.inspect(bytes, message);
    assert_eq!(inspection.fault, None);
    check_pieces(&inspection, bytes);
    let words = |piece: &Piece| {
        let Piece { field, kind, value, cause, .. } = piece;
        let all = [&field[..], kind, value, cause.name()];
        all.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    inspection.pieces.iter().map(words).collect()
}

fn check_pieces(inspection: &Inspection, bytes: &[u8]) {
    let mut at = 0;
    for piece in &inspection.pieces {
        assert_eq!(piece.offset, at);
        assert!(piece.length > 0);
        at += piece.length;
    }
    match &inspection.fault {
        None => assert_eq!(at, bytes.len()),
        Some(fault) => assert!(fault.offset <= bytes.len(), "{fault}"),
    }
    assert_eq!(inspection.causes().iter().sum::<usize>(), at);
}

#[test]
fn julias_values_are_those_of_its_own_documentation() {
    let julia = |bytes: &[u8]| seen(Encoding::Julia, bytes, None);
    let header = [0x37, 0x4a, 0x4c, 0x0f, 0x04, 0, 0, 0, 0xe0];
    assert_eq!(
        julia(&header),
        [
            "header Julia header",
            "version 15 header",
            "machine little-endian, 64 bits header",
            "reserved padding",
            "Int64 1 payload",
        ]
    );
    assert_eq!(
        julia(&[0x21, 5, b'a', b'b', b'c', b'd', b'e']),
        ["tag String keys", "length 5 lengths", "String \"abcde\" payload"]
    );
    assert_eq!(
        julia(&[0x31, 0xff, 0xff, 0xff, 0xff]),
        ["tag Int64 of 32 bits keys", "Int64 -1 payload"]
    );
    assert_eq!(
        julia(&[0xbe, 0xbf, 0xc0]),
        ["Int32 0 payload", "Int32 1 payload", "Int32 2 payload"]
    );
    assert_eq!(julia(&[0x06, 0xfe, 0xff, 0xff, 0xff]), ["tag Int32 keys", "Int32 -2 payload"]);
    let doubles = [&[21, 0, 14, 0xe1][..], &[0; 16]].concat();
    assert_eq!(
        julia(&doubles),
        [
            "tag Array keys",
            "type of elements tag itself Float64 payload",
            "size Int64 2 lengths",
            "Float64 2 of them payload",
        ]
    );
    assert_eq!(julia(&[20, 2, 0x4d, 0x4e])[3..], ["[1] value nothing payload"]);
}

#[test]
fn a_protobuf_is_shown_with_its_type_and_without() {
    let bytes = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x32, 2, 0x68, 1, 0xa0, 6, 1];
    assert_eq!(
        seen(Encoding::Protobuf, &bytes, Some(&sample_type())),
        [
            "1 number key field 1, varint keys",
            "1 number int64 150 payload",
            "2 text key field 2, length keys",
            "2 text length 2 lengths",
            "2 text string \"hi\" payload",
            "6 inner key field 6, length keys",
            "6 inner length 2 lengths",
            "13 signed key field 13, varint keys",
            "13 signed sint64 -1 payload",
            "100 key field 100, varint, not known keys",
            "100 varint 1, or -1 as zigzag payload",
        ]
    );
    let other_way = [0x0a, 1, b'a'];
    let shown = seen(Encoding::Protobuf, &other_way, Some(&sample_type()));
    assert_eq!(shown[0], "1 number key field 1, length, and its type is sent as varint keys");
    let bare = seen(Encoding::Protobuf, &bytes, None);
    assert_eq!(bare[4], "2 string or bytes \"hi\" payload");
    assert_eq!(bare[8], "13 varint 1, or -1 as zigzag payload");
}

#[test]
fn every_encoding_of_a_message_is_covered() {
    for (name, encoding) in Encoding::ALL {
        let Some(row) = by_name(name) else { continue };
        for seed in 0..200 {
            let bytes = (row.encode)(&any(seed, 3)).expect("it can be encoded");
            for message in [None, Some(&sample_type())] {
                let inspection = encoding.inspect(&bytes, message);
                assert_eq!(inspection.fault, None, "{name} {bytes:02x?}");
                check_pieces(&inspection, &bytes);
            }
        }
    }
}

#[test]
fn a_fault_says_where_it_is() {
    let fault = |encoding: Encoding, bytes: &[u8]| {
        encoding.inspect(bytes, None).fault.expect("it is wrong").to_string()
    };
    assert_eq!(
        fault(Encoding::Protobuf, &[0x08, 1, 0x12, 9, b'a']),
        "at byte 3: field 2 is 9 bytes long; bytes left: 1"
    );
    assert_eq!(fault(Encoding::Protobuf, &[0, 1]), "at byte 0: 0 is no number of a field");
    assert_eq!(fault(Encoding::Protobuf, &[0x0b, 8, 1]), "at byte 1: group 1 has no end");
    assert_eq!(
        fault(Encoding::MessagePack, &[0xdd, 0xff, 0xff, 0xff, 0xff]),
        "at byte 0: 4294967295 values, and 0 bytes are left"
    );
    assert_eq!(
        fault(Encoding::Cbor, &[0x81; 300]),
        "at byte 201: more than 200 values lie within each other"
    );
    assert_eq!(
        fault(Encoding::Julia, &[0x21, 5, b'a']),
        "at byte 2: String needs 5 bytes, and 1 byte is left"
    );
    assert_eq!(fault(Encoding::Json, b"[1,"), "at byte 3: a value is missing");
}

proptest! {
    #[test]
    fn no_bytes_panic(
        seed: u64,
        which in 0usize..7,
        places in proptest::collection::vec((any_byte(), any_byte()), 0..4),
        noise in proptest::collection::vec(any_byte(), 0..100),
    ) {
        let (name, encoding) = Encoding::ALL[which];
        let message = sample_type();
        let mut bytes = match by_name(name) {
            Some(row) => (row.encode)(&super::super::any(seed, 2)).expect("it can be encoded"),
            None => vec![0x37, 0x4a, 0x4c, 0x0f, 4, 0, 0, 0, 20, 3, 0xe0, 0x21, 1, b'a', 21, 0xe1],
        };
        let length = bytes.len().max(1);
        for (place, byte) in places {
            let place = place as usize * 7 % length;
            if let Some(one) = bytes.get_mut(place) {
                *one = byte;
            }
        }
        for bytes in [&bytes, &noise] {
            check_pieces(&encoding.inspect(bytes, None), bytes);
            check_pieces(&encoding.inspect(bytes, Some(&message)), bytes);
        }
    }
}

fn any_byte() -> proptest::num::u8::Any {
    proptest::num::u8::ANY
}
