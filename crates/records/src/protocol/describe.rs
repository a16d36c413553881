//! Descriptions of types on the wire, and the registry that lets one be named by a number
//! (`Protocol-Encoding.md`, "Introspection Data").

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::{Field, Length, Scalar, Structure, Type, Union};
use super::{MAX_DEPTH, MAX_FIELDS, MAX_REGISTERED_FIELDS, Reader, Sink, Writer};

const NULL: u8 = 0xFF;
const ONLY_ID: u8 = 0xFE;
const FULL_WITH_ID: u8 = 0xFD;
const FULL_WITH_TAG: u8 = 0xFC;
const STRUCTURE: u8 = 0x80;
const UNION: u8 = 0x81;
const ANY: u8 = 0x82;
const BOUNDED_STRING: u8 = 0x83;
/// The code of a bounded string in the specification's other table.
const BOUNDED_STRING_TOO: u8 = 0x86;
const VARIABLE: u8 = 0x08;
const BOUNDED: u8 = 0x10;
const FIXED: u8 = 0x18;
const LENGTH: u8 = 0x18;

/// The types that one side of a connection has given numbers to.
#[derive(Debug, Default)]
pub struct Registry {
    types: BTreeMap<u16, Type>,
    fields: usize,
}

impl Registry {
    /// How many types it knows.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    fn put(&mut self, id: u16, kind: Type) -> bool {
        let size = kind.size();
        let replaced = self.types.insert(id, kind).map_or(0, |old| old.size());
        self.fields = self.fields + size - replaced;
        self.fields <= MAX_REGISTERED_FIELDS
    }
}

impl Reader<'_> {
    /// A description; none is null, and after a fault.
    pub fn kind(&mut self, registry: &mut Registry) -> Option<Type> {
        let mut fields_left = MAX_FIELDS;
        let kind = self.nested(registry, 0, &mut fields_left);
        kind.filter(|_| self.is_good())
    }

    fn nested(&mut self, known: &mut Registry, depth: usize, left: &mut usize) -> Option<Type> {
        if depth > MAX_DEPTH {
            self.fail("a type is nested too deep");
            return None;
        }
        let code = self.u8();
        let registered = |kind: &Type, reader: &mut Self, left: &mut usize| {
            // A number may stand for many fields, so that few bytes could describe a lot of them.
            if kind.size() > *left || depth + kind.depth() > MAX_DEPTH + 1 {
                reader.fail("a type has too many fields");
                return false;
            }
            *left -= kind.size();
            true
        };
        match code {
            NULL => None,
            ONLY_ID => {
                let id = self.u16();
                match known.types.get(&id) {
                    Some(kind) if registered(kind, self, left) => Some(kind.clone()),
                    Some(_) => None,
                    None => {
                        self.fail("a type is named that was never described");
                        None
                    }
                }
            }
            FULL_WITH_ID | FULL_WITH_TAG => {
                let id = self.u16();
                if code == FULL_WITH_TAG {
                    self.u32();
                }
                let kind = self.nested(known, depth + 1, left)?;
                if self.is_good() && !known.put(id, kind.clone()) {
                    self.fail("too many types are described on one connection");
                }
                Some(kind)
            }
            code => self.plain(code, known, depth, left),
        }
    }

    /// The type whose code is none of those that deal with numbers.
    fn plain(
        &mut self,
        code: u8,
        known: &mut Registry,
        depth: usize,
        left: &mut usize,
    ) -> Option<Type> {
        if *left == 0 {
            self.fail("a type has too many fields");
            return None;
        }
        *left -= 1;
        match code {
            STRUCTURE => {
                let (id, fields) = self.fields(known, depth, left);
                return Some(Type::Structure(Arc::new(Structure::of(id, fields))));
            }
            UNION => {
                let (id, members) = self.fields(known, depth, left);
                return Some(Type::Union(Arc::new(Union::of(id, members))));
            }
            ANY => return Some(Type::Any),
            BOUNDED_STRING | BOUNDED_STRING_TOO => return Some(Type::BoundedString(self.bound())),
            _ => {}
        }
        let scalar = Scalar::of_code(code & !LENGTH);
        match (code & LENGTH, code & !LENGTH, scalar) {
            (0, _, Some(scalar)) => Some(Type::Scalar(scalar)),
            (VARIABLE, _, Some(scalar)) => Some(Type::array(scalar)),
            (BOUNDED, _, Some(scalar)) => Some(Type::Array(scalar, Length::AtMost(self.bound()))),
            (FIXED, _, Some(scalar)) => {
                let count = self.bound();
                let Some(rest) = left.checked_sub(count as usize) else {
                    self.fail("an array of a fixed length is too long");
                    return None;
                };
                *left = rest;
                Some(Type::Array(scalar, Length::Exactly(count)))
            }
            (VARIABLE, ANY, _) => Some(Type::Anys),
            (VARIABLE, STRUCTURE | UNION, _) => {
                self.element_type(code & !LENGTH, known, depth, left)
            }
            _ => {
                self.fail("there is no type with this code");
                None
            }
        }
    }

    /// An array of structures or unions: the description of an element follows.
    fn element_type(
        &mut self,
        code: u8,
        known: &mut Registry,
        depth: usize,
        left: &mut usize,
    ) -> Option<Type> {
        match (code, self.nested(known, depth + 1, left)) {
            (STRUCTURE, Some(Type::Structure(element))) => Some(Type::Structures(element)),
            (UNION, Some(Type::Union(element))) => Some(Type::Unions(element)),
            _ => {
                self.fail("an array's element is of another type than the array says");
                None
            }
        }
    }

    fn bound(&mut self) -> u32 {
        u32::try_from(self.size()).unwrap_or(u32::MAX)
    }

    fn fields(
        &mut self,
        known: &mut Registry,
        depth: usize,
        left: &mut usize,
    ) -> (Arc<str>, Box<[Field]>) {
        let id = self.text();
        // The shortest field is an empty name and one code.
        let count = self.count(2);
        let mut fields = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            let name = self.text();
            let Some(kind) = self.nested(known, depth + 1, left) else {
                self.fail("a field has no type");
                break;
            };
            let mut field = Field::new("", kind);
            field.name = name;
            fields.push(field);
        }
        (id, fields.into())
    }
}

impl<S: Sink> Writer<'_, S> {
    /// Appends a description in full; null, where there is no type.
    pub fn kind(&mut self, kind: Option<&Type>) {
        let Some(kind) = kind else { return self.u8(NULL) };
        match kind {
            Type::Scalar(scalar) => self.u8(scalar.code()),
            Type::BoundedString(most) => {
                self.u8(BOUNDED_STRING);
                self.size(*most as usize);
            }
            Type::Array(scalar, Length::Any) => self.u8(scalar.code() | VARIABLE),
            Type::Array(scalar, Length::AtMost(most)) => {
                self.u8(scalar.code() | BOUNDED);
                self.size(*most as usize);
            }
            Type::Array(scalar, Length::Exactly(count)) => {
                self.u8(scalar.code() | FIXED);
                self.size(*count as usize);
            }
            Type::Structure(all) => self.parts(STRUCTURE, all.id(), all.fields()),
            Type::Structures(all) => {
                self.u8(STRUCTURE | VARIABLE);
                self.parts(STRUCTURE, all.id(), all.fields());
            }
            Type::Union(all) => self.parts(UNION, all.id(), all.members()),
            Type::Unions(all) => {
                self.u8(UNION | VARIABLE);
                self.parts(UNION, all.id(), all.members());
            }
            Type::Any => self.u8(ANY),
            Type::Anys => self.u8(ANY | VARIABLE),
        }
    }

    fn parts(&mut self, code: u8, id: &str, fields: &[Field]) {
        self.u8(code);
        self.text(id);
        self.size(fields.len());
        for field in fields {
            self.text(&field.name);
            self.kind(Some(&field.kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Order, Reader, Type, Writer};
    use super::Registry;

    fn written(kind: &Type) -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, Order::Big).kind(Some(kind));
        bytes
    }

    fn fault(bytes: &[u8]) -> String {
        let mut reader = Reader::new(bytes, Order::Big);
        assert_eq!(reader.kind(&mut Registry::default()), None);
        reader.end().unwrap_err().to_string()
    }

    #[test]
    fn the_second_example_of_the_specification() {
        let bytes = b"\xFD\x00\x01\x80\x10exampleStructure\x07\x05value\x28\x10boundedSizeArray\
            \x30\x10\x0efixedSizeArray\x38\x04\x09timeStamp\xFD\x00\x02\x80\x06time_t\x03\
            \x10secondsPastEpoch\x23\x0bnanoseconds\x22\x07userTag\x22\x05alarm\xFD\x00\x03\x80\
            \x07alarm_t\x03\x08severity\x22\x06status\x22\x07message\x60\x0avalueUnion\
            \xFD\x00\x04\x81\x00\x03\x0bstringValue\x60\x08intValue\x22\x0bdoubleValue\x43\
            \x0cvariantUnion\xFD\x00\x05\x82";
        let mut registry = Registry::default();
        let mut reader = Reader::new(bytes, Order::Big);
        let kind = reader.kind(&mut registry).unwrap();
        assert_eq!((reader.left(), registry.len(), kind.width()), (0, 5, 14));
        let again = Reader::new(&[0xFE, 0, 1], Order::Big).kind(&mut registry).unwrap();
        assert_eq!(again, kind);
        let alarm = Reader::new(&[0xFE, 0, 3], Order::Big).kind(&mut registry).unwrap();
        assert_eq!(kind.field("alarm"), Some((8, &alarm)));
        let full = written(&kind);
        let mut reader = Reader::new(&full, Order::Big);
        assert_eq!(reader.kind(&mut Registry::default()).unwrap(), kind);
    }

    #[test]
    fn descriptions_that_make_no_sense_are_refused() {
        assert_eq!(fault(&[0xFE, 0, 1]), "a type is named that was never described");
        assert_eq!(fault(&[0xE0]), "there is no type with this code");
        assert_eq!(fault(&[0x44]), "there is no type with this code");
        assert_eq!(
            fault(&[0x88, 0x81, 0, 0]),
            "an array's element is of another type than the array says"
        );
        assert_eq!(fault(&[0x80, 0, 1, 1, b'a', 0xFF]), "a field has no type");
        assert_eq!(
            fault(&[0x80, 0, 254, 255, 255, 255, 255]),
            "an array is longer than its message"
        );
        assert_eq!(fault(&[0x88; 100]), "a type is nested too deep");
    }

    #[test]
    fn a_few_bytes_cannot_stand_for_a_huge_type() {
        // Each number stands for a structure of two that the number before stands for.
        let mut registry = Registry::default();
        let mut bytes = vec![0xFD, 0, 0, 0x80, 0, 2, 0, 0x22, 0, 0x22];
        for id in 1..19 {
            bytes.extend([0xFD, 0, id, 0x80, 0, 2, 0, 0xFE, 0, id - 1, 0, 0xFE, 0, id - 1]);
        }
        let mut reader = Reader::new(&bytes, Order::Big);
        while reader.left() > 0 {
            reader.kind(&mut registry);
        }
        assert_eq!(reader.end().unwrap_err().to_string(), "a type has too many fields");
    }
}
