//! Arrays that a server leaves in memory which it shares with clients of its host, and the update
//! that says where. A monitor with `record[shared=true]` gets a type in which the array `value` is
//! a union: its elements or, where they lie in shared memory, their place. So each update may go
//! either way, and both ends see by the type whether the other knows of this.

use super::reader::Reader;
use super::types::{Field, Length, Scalar, Structure, Type, Union};
use super::value::{Array, Chosen, Value};
use std::sync::Arc;

/// The option of a request that asks for places.
pub const SHARED_OPTION: &str = "shared";

/// What the type of a place is called.
const PLACE_ID: &str = "loadline:place:1.0";

/// The members of the union, by their numbers.
const ELEMENTS: u32 = 0;
const PLACED: u32 = 1;

/// Where an array lies: in a segment of memory that a process has open as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLocation {
    /// The number of the process.
    pub process: u32,
    /// The number of the file in that process: it is `/proc/PROCESS/fd/DESCRIPTOR`.
    pub descriptor: u32,
    /// The segment's own number. Files' numbers are used again, these are not.
    pub segment: u64,
    /// What the segment's count of writings was, and is for as long as the array is there.
    pub sequence: u64,
    /// How long the array is.
    pub bytes: u64,
}

impl ArrayLocation {
    fn kind() -> Arc<Structure> {
        let fields = [
            Field::new("process", Scalar::UInt),
            Field::new("descriptor", Scalar::UInt),
            Field::new("segment", Scalar::ULong),
            Field::new("sequence", Scalar::ULong),
            Field::new("bytes", Scalar::ULong),
        ];
        Structure::new(PLACE_ID, fields)
    }

    /// What is sent of it.
    pub fn value(&self) -> Value {
        let nodes = Box::new([
            Value::Structure,
            Value::UInt(self.process),
            Value::UInt(self.descriptor),
            Value::ULong(self.segment),
            Value::ULong(self.sequence),
            Value::ULong(self.bytes),
        ]);
        Value::Union(Some(Arc::new(Chosen { member: PLACED, nodes })))
    }

    /// Reads the value of a union that may be one; nothing, where elements follow.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match u32::try_from(reader.size()) {
            Ok(ELEMENTS) => None,
            Ok(PLACED) => Some(Self {
                process: reader.u32(),
                descriptor: reader.u32(),
                segment: reader.u64(),
                sequence: reader.u64(),
                bytes: reader.u64(),
            }),
            _ => {
                reader.fail("a union with another member than it has");
                None
            }
        }
    }

    /// The place that was sent.
    pub fn of(value: &Value) -> Option<Self> {
        let Value::Union(Some(chosen)) = value else { return None };
        match (chosen.member, &*chosen.nodes) {
            (
                PLACED,
                &[
                    Value::Structure,
                    Value::UInt(process),
                    Value::UInt(descriptor),
                    Value::ULong(segment),
                    Value::ULong(sequence),
                    Value::ULong(bytes),
                ],
            ) => Some(Self { process, descriptor, segment, sequence, bytes }),
            _ => None,
        }
    }
}

/// An array that is sent with its elements, though a place might be.
pub fn unlocated(array: &Value) -> Value {
    let nodes = Box::new([array.clone()]);
    Value::Union(Some(Arc::new(Chosen { member: ELEMENTS, nodes })))
}

/// The array that was sent with its elements.
pub fn elements(value: &Value) -> Option<&Array> {
    let Value::Union(Some(chosen)) = value else { return None };
    chosen.nodes.first().filter(|_| chosen.member == ELEMENTS)?.as_array()
}

/// The type of a record as it is sent to who asks for places, and the bit of the field that may be
/// one: its array of numbers called `value`. Nothing, where the record has none.
pub fn located_type(kind: &Type) -> Option<(Type, usize)> {
    let Type::Structure(structure) = kind else { return None };
    let is_value = |field: &Field| {
        let is_array = matches!(field.kind, Type::Array(of, Length::Any) if of.bytes().is_some());
        &*field.name == "value" && is_array
    };
    let (bit, array) = structure
        .fields()
        .iter()
        .find(|it| is_value(it))
        .map(|field| (field.at(), field.kind.clone()))?;
    let union = Union::new(
        "",
        [
            Field::new("elements", array),
            Field::new("place", Type::Structure(ArrayLocation::kind())),
        ],
    );
    let fields = structure.fields().iter().map(|field| match is_value(field) {
        true => Field::new(&field.name, Type::Union(Arc::clone(&union))),
        false => Field::new(&field.name, field.kind.clone()),
    });
    Some((Type::Structure(Structure::new(structure.id(), fields)), bit))
}

/// What the elements of a `value` that may be a place are; nothing, for any other type.
pub fn located_scalar(kind: &Type) -> Option<Scalar> {
    let (_, Type::Union(union)) = kind.field("value")? else { return None };
    match union.members() {
        [elements, place] if place.kind == Type::Structure(ArrayLocation::kind()) => {
            match elements.kind {
                Type::Array(scalar, _) => Some(scalar),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Item, Order, Reader, Registry, Writer};
    use super::*;

    #[test]
    fn a_place_and_elements_are_sent_in_the_same_field_of_a_type_of_the_same_width() {
        let fields =
            [Field::new("value", Type::array(Scalar::Long)), Field::new("stamp", Scalar::Int)];
        let kind = Type::Structure(Structure::new("some", fields));
        let (placed, bit) = located_type(&kind).expect("it has an array");
        assert_eq!((placed.width(), bit, located_scalar(&placed)), (3, 1, Some(Scalar::Long)));
        assert_eq!((located_type(&placed), located_scalar(&kind)), (None, None));
        let place = ArrayLocation { process: 7, descriptor: 9, segment: 1, sequence: 4, bytes: 80 };
        let array = Value::array(Scalar::Long, vec![1; 16]);
        for value in [place.value(), unlocated(&array)] {
            let nodes = vec![Value::Structure, value.clone(), Value::Int(3)];
            let item = Item::of(placed.clone(), nodes).expect("a value of that type");
            let mut bytes = Vec::new();
            Writer::new(&mut bytes, Order::Little).item(Some(&item));
            let read = Reader::new(&bytes, Order::Little).item(&mut Registry::default());
            assert_eq!(read.as_ref(), Some(&item));
            let read = read.expect("an item").get("value").cloned().expect("a value");
            assert_eq!(ArrayLocation::of(&read), (value == place.value()).then_some(place));
            assert_eq!(elements(&read), array.as_array().filter(|_| value != place.value()));
        }
    }
}
