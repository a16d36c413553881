//! What a message takes in memory: some ten times its bytes where its fields are small.

use std::mem::size_of;

use prost_reflect::{DynamicMessage, MapKey, Value};

/// Fields of a message lie in nodes of a B-tree, which have room for as many.
const FIELDS_OF_A_NODE: usize = 11;

/// Where a message has several nodes, each has this many fields at the least.
const LEAST_OF_A_NODE: usize = 5;

/// A node: numbers of fields, values, and where its neighbours are.
pub(super) const NODE_BYTES: usize = FIELDS_OF_A_NODE * (4 + VALUE_BYTES) + 112;

/// The place of a value.
pub(super) const VALUE_BYTES: usize = size_of::<Value>();

/// At most what a message takes that was read, in bytes, without what its allocator adds.
pub(super) fn memory_bytes(message: &DynamicMessage) -> usize {
    let (mut fields, mut within) = (0, 0);
    for (_, value) in message.fields() {
        fields += 1;
        within += beyond_its_place(value);
    }
    let nodes = match fields {
        0 => 0,
        1..=FIELDS_OF_A_NODE => 1,
        _ => fields.div_ceil(LEAST_OF_A_NODE),
    };
    size_of::<DynamicMessage>() + nodes * NODE_BYTES + within
}

/// What a value takes beside its place.
fn beyond_its_place(value: &Value) -> usize {
    match value {
        Value::String(text) => text.capacity(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Message(message) => memory_bytes(message) - size_of::<DynamicMessage>(),
        Value::List(values) => {
            let within = values.iter().map(beyond_its_place).sum::<usize>();
            values.capacity() * VALUE_BYTES + within
        }
        Value::Map(entries) => {
            // A hash table has a power of two of places, of which at most 7 of 8 are used.
            let places = (entries.capacity() * 8 / 7).next_power_of_two();
            let text = |key: &MapKey| key.as_str().map_or(0, str::len);
            let within = entries.iter().map(|(key, value)| text(key) + beyond_its_place(value));
            places * (size_of::<(MapKey, Value)>() + 1) + 16 + within.sum::<usize>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::generate::generate;
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_message_takes_no_more_than_is_counted_and_no_less_than_a_third_of_it() {
        let sample = sample();
        for seed in 0..50 {
            let length = [None, Some(300)][seed as usize % 2];
            let bytes = generate(&sample, seed, length, 1 << 20).expect("small").encode_to_vec();
            let mut message = None;
            let taken = base::allocations::measure(|| {
                message = DynamicMessage::decode(sample.clone(), &bytes[..]).ok();
            });
            let counted = memory_bytes(&message.expect("a Sample")) as i64;
            let taken = taken.left_bytes;
            assert!((taken..3 * taken).contains(&counted), "{seed}: {counted} of {taken}");
        }
        assert_eq!(memory_bytes(&DynamicMessage::new(sample)), size_of::<DynamicMessage>());
    }
}
