//! What is written is read again, whatever it is; and no bytes make reading panic.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::types::{Field, Length, Scalar, Structure, Type, Union};
use super::super::value::{Chosen, Item, Value, zeros};
use super::super::{Bits, Order, Reader, Registry, Writer};

pub(super) fn any_type() -> impl Strategy<Value = Type> {
    let scalar = prop::sample::select(&Scalar::ALL[..]);
    let leaf = prop_oneof![
        4 => scalar.clone().prop_map(Type::Scalar),
        2 => scalar.clone().prop_map(Type::array),
        1 => (scalar, 0_u32..5, any::<bool>()).prop_map(|(scalar, count, exact)| {
            let length = if exact { Length::Exactly(count) } else { Length::AtMost(count) };
            Type::Array(scalar, length)
        }),
        1 => (1_u32..20).prop_map(Type::BoundedString),
        1 => prop_oneof![Just(Type::Any), Just(Type::Anys)],
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let fields = prop::collection::vec(inner, 0..5).prop_map(|kinds| {
            let name = |at: usize| format!("f{at}");
            kinds.into_iter().enumerate().map(|(at, kind)| Field::new(&name(at), kind)).collect()
        });
        (fields, 0..4, "[a-z:]{0,6}").prop_map(|(fields, which, id): (Vec<_>, _, _)| match which {
            0 => Type::Structure(Structure::new(&id, fields)),
            1 => Type::Structures(Structure::new(&id, fields)),
            2 => Type::Union(Union::new(&id, fields)),
            _ => Type::Unions(Union::new(&id, fields)),
        })
    })
}

/// A value of a type, made of pseudo-random bytes.
pub(super) struct Maker(pub(super) u64);

impl Maker {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 11
    }

    fn count(&mut self) -> usize {
        (self.next() % 4) as usize
    }

    fn text(&mut self, most: usize) -> Arc<str> {
        let texts = ["", "x", "hé", "a longer text of more than one word"];
        let text = texts[self.count()];
        Arc::from(if text.len() > most { "" } else { text })
    }

    fn value(&mut self, kind: &Type, into: &mut Vec<Value>) {
        let value = match kind {
            Type::Scalar(Scalar::String) => Value::String(self.text(99)),
            Type::BoundedString(most) => Value::String(self.text(*most as usize)),
            Type::Scalar(scalar) => self.array(*scalar, 1).as_array().unwrap().get(0).unwrap(),
            Type::Array(scalar, length) => {
                let count = match length {
                    Length::Exactly(count) => *count as usize,
                    Length::AtMost(most) => self.count().min(*most as usize),
                    Length::Any => self.count() * 100,
                };
                self.array(*scalar, count)
            }
            Type::Structure(_) => Value::Structure,
            Type::Structures(of) => {
                let kind = Type::Structure(Arc::clone(of));
                let one = |maker: &mut Self| maker.nodes(&kind).into_boxed_slice();
                Value::Structures(
                    (0..self.count()).map(|at| (at != 1).then(|| one(self))).collect(),
                )
            }
            Type::Union(of) => Value::Union(self.chosen(of).map(Arc::new)),
            Type::Unions(of) => Value::Unions((0..self.count()).map(|_| self.chosen(of)).collect()),
            Type::Any => Value::Any(self.item().map(Arc::new)),
            Type::Anys => Value::Anys((0..self.count()).map(|_| self.item()).collect()),
        };
        into.push(value);
        if let Type::Structure(structure) = kind {
            structure.fields().iter().for_each(|field| self.value(&field.kind, into));
        }
    }

    pub(super) fn nodes(&mut self, kind: &Type) -> Vec<Value> {
        let mut nodes = Vec::new();
        self.value(kind, &mut nodes);
        nodes
    }

    fn array(&mut self, scalar: Scalar, count: usize) -> Value {
        let Some(each) = scalar.bytes() else {
            return Value::Strings((0..count).map(|_| self.text(99)).collect());
        };
        // No NaN, which equals nothing, and oracle as 0 and 1.
        let byte = |maker: &mut Self| (maker.next() % if each == 1 { 2 } else { 64 }) as u8;
        Value::array(scalar, (0..count * each).map(|_| byte(self)).collect::<Vec<_>>())
    }

    fn chosen(&mut self, of: &Union) -> Option<Chosen> {
        let member = self.next() as usize % of.members().len().max(1);
        let kind = &of.members().get(member)?.kind;
        Some(Chosen { member: member as u32, nodes: self.nodes(kind).into() })
    }

    fn item(&mut self) -> Option<Item> {
        let kinds = [Type::Scalar(Scalar::Double), Type::array(Scalar::UShort), Type::Any];
        let kind = kinds.get(self.count())?.clone();
        let nodes = self.nodes(&kind);
        Item::of(kind, nodes)
    }
}

pub(super) fn order(big: bool) -> Order {
    if big { Order::Big } else { Order::Little }
}

proptest! {
    #[test]
    fn a_whole_value_is_read_as_it_was_written(kind in any_type(), seed: u64, big: bool) {
        let nodes = Maker(seed).nodes(&kind);
        let item = Item::of(kind, nodes).expect("a value of its type");
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, order(big)).item(Some(&item));
        let mut reader = Reader::new(&bytes, order(big));
        let read = reader.item(&mut Registry::default());
        prop_assert!(reader.end().is_ok(), "{:?}", reader.end());
        prop_assert_eq!(reader.left(), 0);
        prop_assert_eq!(read.as_ref(), Some(&item));
        // Every part of it is a fault, or a part without its end.
        for end in 0..bytes.len().min(200) {
            let mut reader = Reader::new(&bytes[..end], order(big));
            prop_assert_eq!(reader.item(&mut Registry::default()), None);
            prop_assert!(reader.end().is_err());
        }
    }

    #[test]
    fn changed_fields_are_put_into_their_places(
        fields in prop::collection::vec(any_type(), 0..5), seed: u64, big: bool,
        bits in prop::collection::vec(0_usize..12, 0..6),
    ) {
        let fields = fields.into_iter().map(|kind| Field::new("f", kind));
        let kind = Type::Structure(Structure::new("", fields));
        let nodes = Maker(seed).nodes(&kind);
        let changed: Bits = bits.into_iter().filter(|bit| *bit < kind.width()).collect();
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, order(big)).changed(&kind, &changed, &nodes);
        let mut reader = Reader::new(&bytes, order(big));
        let mut read = zeros(&kind);
        let told = reader.changed(&kind, &mut Registry::default(), &mut read);
        prop_assert!(reader.end().is_ok() && reader.left() == 0);
        prop_assert_eq!(&told, &changed);
        let zero = zeros(&kind);
        for bit in 0..kind.width() {
            // A structure's bit stands for all its fields.
            let is_sent = (0..=bit).any(|above| {
                changed.contains(above) && bit < above + kind.path(above).unwrap().1.width()
            });
            prop_assert_eq!(&read[bit], if is_sent { &nodes[bit] } else { &zero[bit] });
        }
    }

    #[test]
    fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), big: bool) {
        let mut known = Registry::default();
        let mut reader = Reader::new(&bytes, order(big));
        while reader.left() > 0 {
            reader.item(&mut known);
        }
    }
}

#[test]
fn the_example_of_the_specification() {
    let description = b"\x80\x10exampleStructure\x07\x05value\x28\x10boundedSizeArray\x30\x10\
        \x0efixedSizeArray\x38\x04\x09timeStamp\x80\x06time_t\x03\x10secondsPastEpoch\x23\
        \x0bnanoseconds\x22\x07userTag\x22\x05alarm\x80\x07alarm_t\x03\x08severity\x22\
        \x06status\x22\x07message\x60\x0avalueUnion\x81\x00\x03\x0bstringValue\x60\x08intValue\x22\
        \x0bdoubleValue\x43\x0cvariantUnion\x82";
    let data = b"\x03\x01\x02\x03\x05\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C\x11\x22\x33\x44\x55\x66\
        \x77\x88\xAA\xBB\xCC\xDD\xEE\xEE\xEE\xEE\x11\x11\x11\x11\x22\x22\x22\x22\x0BAllo, Allo!\
        \x01\x33\x33\x33\x33\x60\x1cString inside variant union.";
    let bytes = [&description[..], data].concat();
    let item = Reader::new(&bytes, Order::Big).item(&mut Registry::default()).unwrap();
    assert_eq!(item.get("value").unwrap().to_string(), "[1, 2, 3]");
    assert_eq!(item.get("fixedSizeArray").unwrap().to_string(), "[9, 10, 11, 12]");
    assert_eq!(item.get("timeStamp.secondsPastEpoch"), Some(&Value::Long(0x1122_3344_5566_7788)));
    assert_eq!(item.text("alarm.message"), Some("Allo, Allo!"));
    assert_eq!(item.get("valueUnion").unwrap().to_string(), (0x3333_3333).to_string());
    assert_eq!(item.get("variantUnion").unwrap().to_string(), "String inside variant union.");
    let mut written = Vec::new();
    Writer::new(&mut written, Order::Big).item(Some(&item));
    assert_eq!(written, bytes);
}

#[test]
fn a_missing_element_of_an_array_takes_one_byte() {
    let bytes =
        b"\x88\x80\x00\x02\x01a\x21\x01b\x21\x03\x01\x11\x11\x22\x22\x00\x01\x33\x33\x44\x44";
    let item = Reader::new(bytes, Order::Big).item(&mut Registry::default()).unwrap();
    let Value::Structures(all) = &item.nodes()[0] else { panic!("structures") };
    assert_eq!(all.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn a_short_message_cannot_claim_a_huge_array() {
    for bytes in [
        &b"\x2b\xfe\xff\xff\xff\x7f\x00"[..],
        b"\x68\xfe\xff\xff\xff\x7f\x00",
        b"\x88\x80\x00\x00\xfe\xff\xff\xff\x7f",
        b"\x8a\xfe\xff\xff\xff\x7f",
        b"\x3b\xfe\xff\xff\xff\x7f",
    ] {
        let mut reader = Reader::new(bytes, Order::Little);
        assert_eq!(reader.item(&mut Registry::default()), None);
        reader.end().unwrap_err();
    }
}

#[test]
fn a_large_message_cannot_make_more_values_than_are_allowed() {
    // Structures without fields take a byte each, and much more as values.
    let count = super::super::MAX_VALUES as u32;
    let mut bytes = [&b"\x88\x80\x00\x00\xfe"[..], &count.to_le_bytes()].concat();
    bytes.resize(bytes.len() + count as usize, 1);
    let mut reader = Reader::new(&bytes, Order::Little);
    assert_eq!(reader.item(&mut Registry::default()), None);
    let fault = reader.end().unwrap_err().to_string();
    assert_eq!(fault, "a message holds more values than are allowed");
}

#[test]
fn large_arrays_are_slices_of_their_message() {
    let mut bytes = vec![0x2B, 254];
    bytes.extend(1000_u32.to_le_bytes());
    bytes.extend((0..1000_i64).flat_map(i64::to_le_bytes));
    let bytes = wire::Bytes::from(bytes);
    let mut reader = Reader::shared(&bytes, Order::Little);
    let item = reader.item(&mut Registry::default()).unwrap();
    let array = item.nodes()[0].as_array().unwrap();
    assert_eq!(array.bytes().as_ptr(), bytes[6..].as_ptr());
    assert_eq!((array.len(), array.get(999)), (1000, Some(Value::Long(999))));
}
