//! Beside the codec of spvirit, which others wrote: values that this one writes are read by that
//! one, and the other way round. Where they differ, what pvxs says is right.

use proptest::prelude::*;
use spvirit_codec::spvd_decode::{
    DecodedValue, FieldDesc, FieldType, PvdDecoder, StructureDesc, TypeCode,
};
use spvirit_codec::spvd_encode::{encode_decoded_value, encode_structure_desc};

use super::super::types::{Field, Length, Scalar, Structure, Type, Union};
use super::super::value::{Item, Value};
use super::super::{Order, Reader, Registry, Writer};
use super::tests::{Maker, any_type, order};

/// What comes next in a stream: spvirit's reader leaves fields out that the bytes end before, even
/// where they have no bytes.
const MORE: [u8; 4] = [0xAA; 4];

fn fields(all: &[Field], map: fn(&Type) -> Type) -> Vec<Field> {
    all.iter().map(|field| Field::new(&field.name, map(&field.kind))).collect()
}

/// The type without what spvirit reads otherwise: `differences` below names it all.
fn shared(kind: &Type) -> Type {
    match kind {
        Type::Array(scalar, Length::Exactly(_)) => Type::array(*scalar),
        Type::Anys => Type::Any,
        Type::Structure(of) => {
            Type::Structure(Structure::new(of.id(), fields(of.fields(), shared)))
        }
        Type::Structures(of) => {
            Type::Structures(Structure::new(of.id(), fields(of.fields(), shared)))
        }
        Type::Union(of) | Type::Unions(of) if !of.members().is_empty() => {
            Type::Union(Union::new(of.id(), fields(of.members(), shared)))
        }
        Type::Union(_) | Type::Unions(_) => Type::Any,
        other => other.clone(),
    }
}

/// The type without what spvirit writes otherwise: it has no selectors, and no types in values.
fn plain(kind: &Type) -> Type {
    match kind {
        Type::Array(scalar, _) => Type::array(*scalar),
        Type::Structure(of) => Type::Structure(Structure::new(of.id(), fields(of.fields(), plain))),
        Type::Scalar(_) | Type::BoundedString(_) => kind.clone(),
        _ => Type::Scalar(Scalar::String),
    }
}

/// What spvirit should make of a value.
fn decoded(kind: &Type, nodes: &[Value]) -> DecodedValue {
    let structure = |of: &Structure, nodes: &[Value]| {
        let field =
            |field: &Field| (field.name.to_string(), decoded(&field.kind, &nodes[field.at()..]));
        DecodedValue::Structure(of.fields().iter().map(field).collect())
    };
    match (kind, &nodes[0]) {
        (Type::Structure(of), _) => structure(of, nodes),
        (Type::Structures(of), Value::Structures(all)) => {
            let nothing = || DecodedValue::Structure(Vec::new());
            let one = |nodes: &Option<Box<[Value]>>| {
                nodes.as_ref().map_or_else(nothing, |nodes| structure(of, nodes))
            };
            DecodedValue::Array(all.iter().map(one).collect())
        }
        (Type::Union(of), Value::Union(Some(chosen))) => {
            let member = &of.members()[chosen.member as usize];
            let value = decoded(&member.kind, &chosen.nodes);
            DecodedValue::Structure(vec![(member.name.to_string(), value)])
        }
        (_, Value::Any(None)) => DecodedValue::Null,
        (_, Value::Any(Some(item))) => decoded(item.kind(), item.nodes()),
        (_, Value::Array(array)) => DecodedValue::Array(array.iter().map(scalar).collect()),
        (_, Value::Strings(all)) => DecodedValue::Array(
            all.iter().map(|text| DecodedValue::String(text.to_string())).collect(),
        ),
        (_, value) => scalar(value.clone()),
    }
}

fn scalar(value: Value) -> DecodedValue {
    match value {
        Value::Boolean(is) => DecodedValue::Boolean(is),
        Value::Byte(number) => DecodedValue::Int8(number),
        Value::Short(number) => DecodedValue::Int16(number),
        Value::Int(number) => DecodedValue::Int32(number),
        Value::Long(number) => DecodedValue::Int64(number),
        Value::UByte(number) => DecodedValue::UInt8(number),
        Value::UShort(number) => DecodedValue::UInt16(number),
        Value::UInt(number) => DecodedValue::UInt32(number),
        Value::ULong(number) => DecodedValue::UInt64(number),
        Value::Float(number) => DecodedValue::Float32(number),
        Value::Double(number) => DecodedValue::Float64(number),
        Value::String(text) => DecodedValue::String(text.to_string()),
        other => panic!("{other:?} has parts"),
    }
}

fn described(of: &Structure) -> StructureDesc {
    let code = |scalar: Scalar| match scalar {
        Scalar::Boolean => TypeCode::Boolean,
        Scalar::Byte => TypeCode::Int8,
        Scalar::Short => TypeCode::Int16,
        Scalar::Int => TypeCode::Int32,
        Scalar::Long => TypeCode::Int64,
        Scalar::UByte => TypeCode::UInt8,
        Scalar::UShort => TypeCode::UInt16,
        Scalar::UInt => TypeCode::UInt32,
        Scalar::ULong => TypeCode::UInt64,
        Scalar::Float => TypeCode::Float32,
        Scalar::Double => TypeCode::Float64,
        Scalar::String => TypeCode::String,
    };
    let kind = |kind: &Type| match kind {
        Type::Scalar(Scalar::String) => FieldType::String,
        Type::Scalar(scalar) => FieldType::Scalar(code(*scalar)),
        Type::BoundedString(most) => FieldType::BoundedString(*most),
        Type::Array(Scalar::String, _) => FieldType::StringArray,
        Type::Array(scalar, _) => FieldType::ScalarArray(code(*scalar)),
        Type::Structure(of) => FieldType::Structure(described(of)),
        other => panic!("{other} is not plain"),
    };
    let fields = of.fields().iter();
    let fields = fields
        .map(|field| FieldDesc { name: field.name.to_string(), field_type: kind(&field.kind) });
    StructureDesc { struct_id: Some(of.id().to_owned()), fields: fields.collect() }
}

/// What spvirit makes of a description and a value after it, and how many bytes they have.
fn read_by_spvirit(bytes: &[u8], big: bool) -> Option<(DecodedValue, usize)> {
    let bytes = [bytes, &MORE].concat();
    PvdDecoder::new(big).decode_value(&bytes, &FieldType::Variant).ok()
}

proptest! {
    #[test]
    fn what_is_written_is_read_by_spvirit(kind in any_type(), seed: u64, big: bool) {
        let kind = shared(&kind);
        let nodes = Maker(seed).nodes(&kind);
        let expected = decoded(&kind, &nodes);
        let item = Item::of(kind, nodes).expect("a value of its type");
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, order(big)).item(Some(&item));
        let (read, used) = read_by_spvirit(&bytes, big).expect("a value");
        prop_assert_eq!(format!("{read:?}"), format!("{expected:?}"));
        prop_assert_eq!(used, bytes.len());
    }

    #[test]
    fn what_spvirit_writes_is_read(
        kinds in prop::collection::vec(any_type(), 0..6), seed: u64, big: bool,
    ) {
        let field = |(at, kind): (usize, &Type)| Field::new(&format!("f{at}"), plain(kind));
        let of = Structure::new("an:id", kinds.iter().enumerate().map(field));
        let kind = Type::Structure(of.clone());
        let nodes = Maker(seed).nodes(&kind);
        let value = encode_decoded_value(&decoded(&kind, &nodes), big);
        let bytes = [&[0x80][..], &encode_structure_desc(&described(&of), big), &value].concat();
        let mut reader = Reader::new(&bytes, order(big));
        let read = reader.item(&mut Registry::default());
        prop_assert!(reader.end().is_ok() && reader.left() == 0, "{:?}", reader.end());
        prop_assert_eq!(read, Item::of(kind, nodes));
    }
}

/// What spvirit-codec 0.4.2 reads otherwise. pvxs sends the first two in
/// `tests/records/golden/pvxs.txt`;
/// the third are pvData's bytes for a union that holds nothing, and the last is the example of the
/// specification, `Protocol-Encoding.md`: pvxs has no arrays of fixed length.
#[test]
fn differences() {
    let any = b"\x8a\x02\x01\x23\x01\0\0\0\0\0\0\0\x01\x60\x03two";
    let unions = b"\x89\x81\0\x01\x01t\x22\x02\x01\0\x07\0\0\0\0";
    let nothing = b"\x81\0\x01\x01t\x22\xff";
    let fixed = b"\x3c\x04\x09\x0a\x0b\x0c";
    for (bytes, shown) in [
        (&any[..], "2 of any type"),
        (unions, "2 unions"),
        (nothing, "(nothing)"),
        (fixed, "[9, 10, 11, 12]"),
    ] {
        let mut reader = Reader::new(bytes, Order::Little);
        let item = reader.item(&mut Registry::default()).expect("a value");
        assert!(reader.end().is_ok() && reader.left() == 0, "{shown}");
        assert_eq!(item.nodes()[0].to_string(), shown);
        let is_alike = read_by_spvirit(bytes, false).is_some_and(|(_, used)| used == bytes.len());
        assert!(!is_alike, "{shown}: it is read now, so `shared` can let it through");
    }
}
