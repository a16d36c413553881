//! Where in the bytes of a value of some type the parts are that the load looks at: the value
//! itself, and the time at which it was made. Data plane: reading allocates nothing.

use wire::ProtocolError;

use super::elements::Elements;
use crate::protocol::{ArrayLocation, Length, Reader, Scalar, Type, located_scalar};

/// One part of a type that has bytes of its own.
#[derive(Clone, Debug)]
struct Leaf {
    /// Its own bit and those of the structures that it is in: any of them brings it.
    bits: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The value, a 64-bit number.
    Number,
    /// The value, an array of 64-bit numbers.
    Numbers,
    /// The value, such an array or where it lies in shared memory.
    Placed,
    /// Seconds of its time.
    Seconds,
    /// Nanoseconds of its time.
    Nanoseconds,
    /// Anything else of so many bytes.
    Fixed(usize),
    /// A string.
    Text,
    /// What the load can't pass over.
    Other,
}

/// The parts of a type.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    leaves: Vec<Leaf>,
    /// The bit of the value.
    pub(super) value_bit: usize,
    /// Bits that say that the value is meant.
    pub(super) value_bits: u64,
    pub(super) is_array: bool,
}

/// What a value's bytes say.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// The value, or what all elements of the array are.
    pub(super) number: Option<i64>,
    /// How many elements came.
    pub(super) count: u64,
    /// Whether all elements are alike.
    pub(super) alike: bool,
    /// Where the elements are, if they didn't come.
    pub(super) place: Option<ArrayLocation>,
    seconds: Option<i64>,
    nanoseconds: i32,
}

impl Found {
    /// When the value was made, in nanoseconds since the Unix epoch, if it says so.
    pub(super) fn made_unix_ns(&self) -> Option<u64> {
        let seconds = u64::try_from(self.seconds?).ok()?;
        let nanoseconds = u64::try_from(self.nanoseconds).ok()?;
        // Seconds alone would be a time that may be a second off.
        (nanoseconds > 0).then(|| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds))
    }

    /// All elements of an array have come.
    pub(super) fn finish(&mut self, elements: &Elements) {
        self.number = elements.number();
        self.alike = elements.are_alike();
    }
}

/// How far reading a value has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// All is read.
    Whole,
    /// So many elements of the array follow; reading goes on at this leaf.
    Elements(usize, usize),
}

impl Layout {
    /// The layout of `kind`, which a server has described; where the value `may_be_placed`, it can
    /// be a place in shared memory.
    ///
    /// # Errors
    /// When it has no 64-bit number or array of them called `value`, or too many fields.
    pub(super) fn of(kind: &Type, may_be_placed: bool) -> Result<Self, ProtocolError> {
        if kind.width() > 64 {
            return Err(ProtocolError::new(
                "the record has more fields than this load understands",
            ));
        }
        let mut leaves = Vec::new();
        collect(kind, "", 0, 0, &mut leaves);
        let is_placed = may_be_placed && located_scalar(kind) == Some(Scalar::Long);
        let value = leaves.iter().find(|leaf| match leaf.kind {
            Kind::Number | Kind::Numbers => true,
            Kind::Placed => is_placed,
            _ => false,
        });
        let (Some(value), Some((value_bit, _))) = (value, kind.field("value")) else {
            let what = "the record's value is neither a 64-bit number nor an array of them";
            return Err(ProtocolError::new(what));
        };
        let (value_bits, is_array) = (value.bits, value.kind != Kind::Number);
        Ok(Self { leaves, value_bit, value_bits, is_array })
    }

    /// Reads what `changed` says is there, from leaf `from` on.
    #[inline]
    pub(super) fn walk(
        &self,
        reader: &mut Reader<'_>,
        changed: u64,
        from: usize,
        found: &mut Found,
    ) -> Walk {
        for (index, leaf) in self.leaves.iter().enumerate().skip(from) {
            if changed & leaf.bits == 0 {
                continue;
            }
            match leaf.kind {
                Kind::Number => {
                    (found.number, found.count, found.alike) = (Some(reader.i64()), 1, true);
                }
                Kind::Numbers | Kind::Placed => {
                    if leaf.kind == Kind::Placed {
                        found.place = ArrayLocation::read(reader);
                        if found.place.is_some() {
                            continue;
                        }
                    }
                    let count = reader.size();
                    found.count = count as u64;
                    return Walk::Elements(count, index + 1);
                }
                Kind::Seconds => found.seconds = Some(reader.i64()),
                Kind::Nanoseconds => found.nanoseconds = reader.i32(),
                Kind::Fixed(bytes) => drop(reader.take(bytes)),
                Kind::Text => drop(reader.text_bytes()),
                Kind::Other => reader.fail("a part of the value that this load can't pass over"),
            }
        }
        Walk::Whole
    }
}

/// Appends the leaves of `kind`, which is called `path` and whose bit is `bit`.
fn collect(kind: &Type, path: &str, bit: usize, around: u64, leaves: &mut Vec<Leaf>) {
    let bits = around | 1 << bit;
    let fixed = |scalar: &Scalar| scalar.bytes().map_or(Kind::Text, Kind::Fixed);
    let kind = match (kind, path) {
        (Type::Structure(structure), _) => {
            for field in structure.fields() {
                let dot = if path.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{}", field.name);
                collect(&field.kind, &path, bit + field.at(), bits, leaves);
            }
            return;
        }
        (Type::Scalar(Scalar::Long), "value") => Kind::Number,
        (Type::Array(Scalar::Long, Length::Any), "value") => Kind::Numbers,
        (Type::Union(_), "value") => Kind::Placed,
        (Type::Scalar(Scalar::Long), "timeStamp.secondsPastEpoch") => Kind::Seconds,
        (Type::Scalar(Scalar::Int), "timeStamp.nanoseconds") => Kind::Nanoseconds,
        (Type::Scalar(scalar), _) => fixed(scalar),
        (Type::BoundedString(_), _) => Kind::Text,
        _ => Kind::Other,
    };
    leaves.push(Leaf { bits, kind });
}

/// Reads a set of at most 64 bits.
#[inline]
pub(super) fn bits(reader: &mut Reader<'_>) -> u64 {
    match reader.size() {
        0 => 0,
        8 => reader.u64(),
        size if size < 8 => {
            let mut word = [0; 8];
            let bytes = reader.take(size);
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }
        _ => {
            reader.fail("more bits than the record has fields");
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{
        Bits, Field, Order, Structure, Value, Writer, located_type, unlocated, zeros,
    };

    fn record(value: Type) -> Type {
        let time = [
            Field::new("secondsPastEpoch", Scalar::Long),
            Field::new("nanoseconds", Scalar::Int),
            Field::new("userTag", Scalar::Int),
        ];
        let alarm = [Field::new("severity", Scalar::Int), Field::new("message", Scalar::String)];
        Type::Structure(Structure::new(
            "epics:nt/NTScalar:1.0",
            [
                Field::new("value", value),
                Field::new("alarm", Type::Structure(Structure::new("alarm_t", alarm))),
                Field::new("timeStamp", Type::Structure(Structure::new("time_t", time))),
            ],
        ))
    }

    #[test]
    fn a_changed_value_is_read_with_its_time_however_the_bits_say_it() {
        let layout = Layout::of(&record(Scalar::Long.into()), false).unwrap();
        assert_eq!((layout.value_bit, layout.value_bits, layout.is_array), (1, 0b11, false));
        let mut bytes = 7_i64.to_le_bytes().to_vec();
        bytes.extend(1_000_i64.to_le_bytes());
        bytes.extend(5_i32.to_le_bytes());
        let read = |changed: u64, bytes: &[u8]| {
            let (mut reader, mut found) = (Reader::new(bytes, Order::Little), Found::default());
            assert_eq!(layout.walk(&mut reader, changed, 0, &mut found), Walk::Whole);
            assert_eq!((reader.left(), reader.is_good()), (0, true));
            found
        };
        // Value, seconds and nanoseconds.
        let found = read(0b1100_0010, &bytes);
        assert_eq!((found.number, found.count), (Some(7), 1));
        assert_eq!(found.made_unix_ns(), Some(1_000_000_000_005));
        // The whole of everything: strings and tags are passed over.
        let mut whole = 9_i64.to_le_bytes().to_vec();
        whole.extend([1, 0, 0, 0, 2, b'o', b'k']);
        whole.extend(1_000_i64.to_le_bytes());
        whole.extend([0; 8]);
        let found = read(1, &whole);
        assert_eq!((found.number, found.made_unix_ns()), (Some(9), None));
    }

    #[test]
    fn an_array_stops_at_its_elements_and_other_values_are_refused() {
        let layout = Layout::of(&record(Type::array(Scalar::Long)), false).unwrap();
        let bytes = [3, 0, 0];
        let (mut reader, mut found) = (Reader::new(&bytes, Order::Little), Found::default());
        assert_eq!(layout.walk(&mut reader, 2, 0, &mut found), Walk::Elements(3, 1));
        assert_eq!((reader.left(), found.count), (2, 3));
        Layout::of(&record(Scalar::Double.into()), true).unwrap_err();
        Layout::of(&Type::Scalar(Scalar::Long), true).unwrap_err();
    }

    #[test]
    fn an_array_may_be_a_place_or_elements_where_that_was_asked_for() {
        let plain = record(Type::array(Scalar::Long));
        let (kind, bit) = located_type(&plain).unwrap();
        Layout::of(&kind, false).unwrap_err();
        let layout = Layout::of(&kind, true).unwrap();
        assert_eq!((layout.value_bit, layout.is_array), (bit, true));
        let place = ArrayLocation { process: 1, descriptor: 2, segment: 3, sequence: 4, bytes: 80 };
        for (value, told, walk) in [
            (place.value(), Some(place), Walk::Whole),
            (unlocated(&Value::array(Scalar::Long, vec![1; 16])), None, Walk::Elements(2, 1)),
        ] {
            let mut nodes = zeros(&kind);
            nodes[bit] = value;
            let mut bytes = Vec::new();
            let changed: Bits = [bit].into_iter().collect();
            Writer::new(&mut bytes, Order::Little).changed(&kind, &changed, &nodes);
            let (mut reader, mut found) = (Reader::new(&bytes, Order::Little), Found::default());
            let changed = bits(&mut reader);
            assert_eq!(layout.walk(&mut reader, changed, 0, &mut found), walk);
            assert_eq!((found.place, reader.is_good()), (told, true));
        }
    }
}
