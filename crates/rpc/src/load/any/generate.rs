//! Messages made of a schema and a seed: the same seed gives the same message.

use load::scramble;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use super::memory::{NODE_BYTES, VALUE_BYTES};

/// Messages within messages have fields down to this depth.
const MOST_DEPTH: usize = 3;

/// Elements of a list, at most.
const MOST_ELEMENTS: u64 = 3;

/// The longest text, unless the length is stated.
const MOST_TEXT: u64 = 16;

/// Random numbers in order.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        scramble(self.0)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    /// Small numbers as often as large ones, since they take fewer bytes.
    fn number(&mut self) -> u64 {
        let bits = self.below(65) as u32;
        self.next().checked_shr(64 - bits).unwrap_or(0)
    }
}

/// A message with a value in each field: one member of each oneof, elements in
/// lists, an entry in maps.
/// Texts and bytes have `length`, where one is stated. `None` where it takes about `most` bytes of
/// memory or more: a schema with many fields on each level has more values than there is memory.
pub(super) fn generate(
    message: &MessageDescriptor,
    seed: u64,
    length: Option<usize>,
    most: usize,
) -> Option<DynamicMessage> {
    let mut maker = Maker { random: Random(scramble(seed)), length, left: most };
    let message = maker.message(message, 0);
    (maker.left > 0).then_some(message)
}

struct Maker {
    random: Random,
    length: Option<usize>,
    /// The memory that the message may still take; where nothing is left, it is of no use.
    left: usize,
}

impl Maker {
    fn message(&mut self, descriptor: &MessageDescriptor, depth: usize) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        if depth >= MOST_DEPTH || descriptor.full_name() == "google.protobuf.Any" {
            return message;
        }
        self.left = self.left.saturating_sub(NODE_BYTES);
        let alone = descriptor.fields().filter(|field| field.containing_oneof().is_none());
        let mut fields: Vec<_> = alone.collect();
        for oneof in descriptor.oneofs() {
            let at = self.random.below(oneof.fields().len() as u64) as usize;
            fields.extend(oneof.fields().nth(at));
        }
        for field in fields {
            // A message that holds itself would be a tree of all its fields.
            let is_deep = depth + 1 >= MOST_DEPTH && is_message(&field.kind());
            if !is_deep && self.left > 0 {
                let value = self.field(&field, depth);
                message.set_field(&field, value);
            }
        }
        if let Some(nanos) = nanos_of(descriptor) {
            message.set_field(&nanos, Value::I32(0));
        }
        message
    }

    fn field(&mut self, field: &FieldDescriptor, depth: usize) -> Value {
        let kind = field.kind();
        if field.is_map()
            && let Kind::Message(entry) = &kind
        {
            // One entry: several have no order, and the same seed gives the same bytes.
            let key = map_key(self.value(&entry.map_entry_key_field().kind(), depth));
            let value = self.value(&entry.map_entry_value_field().kind(), depth);
            return Value::Map(key.map(|key| (key, value)).into_iter().collect());
        }
        if field.is_list() {
            let count = 1 + self.random.below(MOST_ELEMENTS);
            return Value::List((0..count).map(|_| self.value(&kind, depth)).collect());
        }
        self.value(&kind, depth)
    }

    fn value(&mut self, kind: &Kind, depth: usize) -> Value {
        self.left = self.left.saturating_sub(VALUE_BYTES);
        let random = &mut self.random;
        match kind {
            // Eighths are exact in both.
            Kind::Double => Value::F64(f64::from(random.next() as i32) / 8.0),
            Kind::Float => Value::F32((random.next() as i16).into()),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(random.number() as i32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(random.number() as i64),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(random.number() as u32),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(random.number()),
            Kind::Bool => Value::Bool(random.below(2) == 1),
            Kind::String => Value::String(self.letters()),
            Kind::Bytes => Value::Bytes(self.letters().into_bytes().into()),
            Kind::Message(descriptor) => Value::Message(self.message(descriptor, depth + 1)),
            Kind::Enum(descriptor) => {
                let at = random.below(descriptor.values().len() as u64) as usize;
                let value = descriptor.values().nth(at);
                Value::EnumNumber(value.map_or(0, |value| value.number()))
            }
        }
    }

    fn letters(&mut self) -> String {
        let length = match self.length {
            Some(length) => length as u64,
            None => 1 + self.random.below(MOST_TEXT),
        };
        let length = (length as usize).min(self.left);
        self.left -= length;
        (0..length).map(|_| char::from(b'a' + self.random.below(26) as u8)).collect()
    }
}

fn is_message(kind: &Kind) -> bool {
    matches!(kind, Kind::Message(message) if !message.is_map_entry())
}

/// The nanoseconds of a time, which not every number can be.
fn nanos_of(message: &MessageDescriptor) -> Option<FieldDescriptor> {
    let is_time =
        ["google.protobuf.Timestamp", "google.protobuf.Duration"].contains(&message.full_name());
    message.get_field_by_name("nanos").filter(|_| is_time)
}

fn map_key(value: Value) -> Option<MapKey> {
    Some(match value {
        Value::Bool(key) => MapKey::Bool(key),
        Value::I32(key) => MapKey::I32(key),
        Value::I64(key) => MapKey::I64(key),
        Value::U32(key) => MapKey::U32(key),
        Value::U64(key) => MapKey::U64(key),
        Value::String(key) => MapKey::String(key),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_seed_gives_one_message_and_another_seed_another_one() {
        let sample = sample();
        let bytes = |seed| generate(&sample, seed, None, 1 << 20).expect("small").encode_to_vec();
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
        for seed in 0..50 {
            let message = generate(&sample, seed, Some(5), 1 << 20).expect("small");
            let text = message.get_field_by_name("text").expect("a field").into_owned();
            assert_eq!(text.as_str().map(str::len), Some(5));
            let members = ["integer", "word", "boxed"];
            let there = members.iter().filter(|name| message.has_field_by_name(name)).count();
            assert!(there <= 1, "a member of the oneof, which may have its default");
            assert!(message.encoded_len() < 4_000, "{}", message.encoded_len());
        }
    }

    #[test]
    fn a_message_that_would_take_too_much_is_none() {
        let sample = sample();
        assert!(generate(&sample, 7, None, 100).is_none(), "it has more values");
        assert!(generate(&sample, 7, Some(64 << 20), 1 << 20).is_none(), "it has longer texts");
    }
}
