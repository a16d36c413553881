//! Values: what a type describes.
//!
//! A value of any type is a list with one [`Value`] for each bit of the type, depth first. A
//! structure's own place holds [`Value::Structure`]; its fields follow. So a set of bits says
//! directly which places are meant, and copying a value onto an older one of its type needs no
//! memory.

use std::fmt;
use std::sync::Arc;

use wire::Bytes;

use super::types::{Length, Scalar, Type, Union};

/// One place of a value.
///
/// What can be large is shared: a copy of a value copies no array.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A structure, whose fields follow.
    Structure,
    /// True or false.
    Boolean(bool),
    /// 8 bits with a sign.
    Byte(i8),
    /// 16 bits with a sign.
    Short(i16),
    /// 32 bits with a sign.
    Int(i32),
    /// 64 bits with a sign.
    Long(i64),
    /// 8 bits.
    UByte(u8),
    /// 16 bits.
    UShort(u16),
    /// 32 bits.
    UInt(u32),
    /// 64 bits.
    ULong(u64),
    /// A real number of 32 bits.
    Float(f32),
    /// A real number of 64 bits.
    Double(f64),
    /// Characters, in UTF-8.
    String(Arc<str>),
    /// An array of anything without parts but strings.
    Array(Arc<Array>),
    /// An array of strings.
    Strings(Arc<[Arc<str>]>),
    /// An array of structures, each perhaps missing.
    Structures(Arc<[Option<Box<[Value]>>]>),
    /// What a union holds, if anything.
    Union(Option<Arc<Chosen>>),
    /// An array of these.
    Unions(Arc<[Option<Chosen>]>),
    /// A value with its type, or nothing.
    Any(Option<Arc<Item>>),
    /// An array of these.
    Anys(Arc<[Option<Item>]>),
}

/// What a union holds: the number of a member, and a value of that member's type.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Which member, counted from 0.
    pub member: u32,
    /// Its value.
    pub nodes: Box<[Value]>,
}

/// Numbers of one type, one after another, the least significant byte of each first.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    scalar: Scalar,
    bytes: Bytes,
}

impl Array {
    /// An array of the numbers in `bytes`; a rest that makes no whole number is cut off.
    ///
    /// # Panics
    /// When `scalar` is a string, which is no number.
    pub fn new(scalar: Scalar, bytes: Bytes) -> Self {
        let each = scalar.bytes().expect("an array of numbers");
        let whole = bytes.len() / each * each;
        Self { scalar, bytes: if whole == bytes.len() { bytes } else { bytes.slice(..whole) } }
    }

    /// What its elements are.
    #[inline]
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// All elements' bytes.
    #[inline]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How many elements it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.scalar.bytes().unwrap_or(1)
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The element at `index`.
    pub fn get(&self, index: usize) -> Option<Value> {
        let each = self.scalar.bytes()?;
        let start = index.checked_mul(each)?;
        let bytes = self.bytes.get(start..start.checked_add(each)?)?;
        Some(match (self.scalar, bytes) {
            (Scalar::Boolean, [byte]) => Value::Boolean(*byte != 0),
            (Scalar::Byte, [byte]) => Value::Byte(*byte as i8),
            (Scalar::UByte, [byte]) => Value::UByte(*byte),
            (Scalar::Short, _) => Value::Short(i16::from_le_bytes(bytes.try_into().ok()?)),
            (Scalar::UShort, _) => Value::UShort(u16::from_le_bytes(bytes.try_into().ok()?)),
            (Scalar::Int, _) => Value::Int(i32::from_le_bytes(bytes.try_into().ok()?)),
            (Scalar::UInt, _) => Value::UInt(u32::from_le_bytes(bytes.try_into().ok()?)),
            (Scalar::Float, _) => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
            (Scalar::Long, _) => Value::Long(i64::from_le_bytes(bytes.try_into().ok()?)),
            (Scalar::ULong, _) => Value::ULong(u64::from_le_bytes(bytes.try_into().ok()?)),
            (Scalar::Double, _) => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => return None,
        })
    }

    /// The elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// A number of any type, as wide as it needs to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole one. 128 bits hold both kinds of 64.
    Whole(i128),
    /// Any other.
    Real(f64),
}

impl Number {
    /// As a real number, rounded where it must be.
    pub fn real(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }

    /// As a whole number, if it is one in the range of `i128`.
    pub fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(whole) => Some(whole),
            Self::Real(real) if real.fract() == 0.0 && real.abs() < 1e30 => Some(real as i128),
            Self::Real(_) => None,
        }
    }
}

impl Value {
    /// What a place of this type holds at first: zeros and nothing.
    pub fn zero(kind: &Type) -> Self {
        match kind {
            Type::Structure(_) => Self::Structure,
            Type::Scalar(scalar) => Self::zero_scalar(*scalar),
            Type::BoundedString(_) => Self::zero_scalar(Scalar::String),
            Type::Array(Scalar::String, length) => {
                Self::Strings(vec![Arc::from(""); least(*length)].into())
            }
            Type::Array(scalar, length) => {
                let bytes = least(*length) * scalar.bytes().unwrap_or(1);
                Self::Array(Arc::new(Array::new(*scalar, vec![0; bytes].into())))
            }
            Type::Structures(_) => Self::Structures(Arc::new([])),
            Type::Union(_) => Self::Union(None),
            Type::Unions(_) => Self::Unions(Arc::new([])),
            Type::Any => Self::Any(None),
            Type::Anys => Self::Anys(Arc::new([])),
        }
    }

    fn zero_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Boolean => Self::Boolean(false),
            Scalar::Byte => Self::Byte(0),
            Scalar::Short => Self::Short(0),
            Scalar::Int => Self::Int(0),
            Scalar::Long => Self::Long(0),
            Scalar::UByte => Self::UByte(0),
            Scalar::UShort => Self::UShort(0),
            Scalar::UInt => Self::UInt(0),
            Scalar::ULong => Self::ULong(0),
            Scalar::Float => Self::Float(0.0),
            Scalar::Double => Self::Double(0.0),
            Scalar::String => Self::String(Arc::from("")),
        }
    }

    /// A string.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::String(Arc::from(text.as_ref()))
    }

    /// Strings.
    pub fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::Strings(texts.into_iter().map(|text| Arc::from(text.as_ref())).collect())
    }

    /// An array of numbers; its `bytes` have the least significant one of each first.
    pub fn array(scalar: Scalar, bytes: impl Into<Bytes>) -> Self {
        Self::Array(Arc::new(Array::new(scalar, bytes.into())))
    }

    /// The string that it is.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The array that it is.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The number that it is; oracle counts as 0 or 1.
    pub fn number(&self) -> Option<Number> {
        Some(match *self {
            Self::Boolean(is) => Number::Whole(is.into()),
            Self::Byte(number) => Number::Whole(number.into()),
            Self::Short(number) => Number::Whole(number.into()),
            Self::Int(number) => Number::Whole(number.into()),
            Self::Long(number) => Number::Whole(number.into()),
            Self::UByte(number) => Number::Whole(number.into()),
            Self::UShort(number) => Number::Whole(number.into()),
            Self::UInt(number) => Number::Whole(number.into()),
            Self::ULong(number) => Number::Whole(number.into()),
            Self::Float(number) => Number::Real(number.into()),
            Self::Double(number) => Number::Real(number),
            _ => return None,
        })
    }

    /// A number as a value of `scalar`; none when it is out of that type's range, or not whole
    /// where it has to be.
    pub fn of_number(scalar: Scalar, number: Number) -> Option<Self> {
        Some(match scalar {
            Scalar::Boolean => Self::Boolean(number.real() != 0.0),
            Scalar::Byte => Self::Byte(number.whole()?.try_into().ok()?),
            Scalar::Short => Self::Short(number.whole()?.try_into().ok()?),
            Scalar::Int => Self::Int(number.whole()?.try_into().ok()?),
            Scalar::Long => Self::Long(number.whole()?.try_into().ok()?),
            Scalar::UByte => Self::UByte(number.whole()?.try_into().ok()?),
            Scalar::UShort => Self::UShort(number.whole()?.try_into().ok()?),
            Scalar::UInt => Self::UInt(number.whole()?.try_into().ok()?),
            Scalar::ULong => Self::ULong(number.whole()?.try_into().ok()?),
            Scalar::Float => Self::Float(number.real() as f32),
            Scalar::Double => Self::Double(number.real()),
            Scalar::String => return None,
        })
    }

    /// Appends a number's bytes, the least significant first.
    pub fn put_le(&self, into: &mut Vec<u8>) {
        match *self {
            Self::Boolean(is) => into.push(is.into()),
            Self::Byte(number) => into.push(number as u8),
            Self::UByte(number) => into.push(number),
            Self::Short(number) => into.extend(number.to_le_bytes()),
            Self::UShort(number) => into.extend(number.to_le_bytes()),
            Self::Int(number) => into.extend(number.to_le_bytes()),
            Self::UInt(number) => into.extend(number.to_le_bytes()),
            Self::Long(number) => into.extend(number.to_le_bytes()),
            Self::ULong(number) => into.extend(number.to_le_bytes()),
            Self::Float(number) => into.extend(number.to_le_bytes()),
            Self::Double(number) => into.extend(number.to_le_bytes()),
            _ => {}
        }
    }

    /// Whether it may stand in a place of this type.
    pub fn fits(&self, kind: &Type) -> bool {
        match (self, kind) {
            (Self::Structure, Type::Structure(_))
            | (Self::Any(_), Type::Any)
            | (Self::Anys(_), Type::Anys) => true,
            (Self::String(text), Type::BoundedString(most)) => text.len() <= *most as usize,
            (value, Type::Scalar(scalar)) => value.scalar() == Some(*scalar),
            (Self::Array(array), Type::Array(scalar, length)) => {
                array.scalar == *scalar && allows(*length, array.len())
            }
            (Self::Strings(all), Type::Array(Scalar::String, length)) => allows(*length, all.len()),
            (Self::Structures(all), Type::Structures(of)) => {
                let kind = Type::Structure(Arc::clone(of));
                all.iter().flatten().all(|nodes| fit(nodes, &kind))
            }
            (Self::Union(chosen), Type::Union(of)) => {
                chosen.as_deref().is_none_or(|chosen| chosen.fits(of))
            }
            (Self::Unions(all), Type::Unions(of)) => {
                all.iter().flatten().all(|chosen| chosen.fits(of))
            }
            _ => false,
        }
    }

    /// The type of a value without parts.
    pub fn scalar(&self) -> Option<Scalar> {
        Some(match self {
            Self::Boolean(_) => Scalar::Boolean,
            Self::Byte(_) => Scalar::Byte,
            Self::Short(_) => Scalar::Short,
            Self::Int(_) => Scalar::Int,
            Self::Long(_) => Scalar::Long,
            Self::UByte(_) => Scalar::UByte,
            Self::UShort(_) => Scalar::UShort,
            Self::UInt(_) => Scalar::UInt,
            Self::ULong(_) => Scalar::ULong,
            Self::Float(_) => Scalar::Float,
            Self::Double(_) => Scalar::Double,
            Self::String(_) => Scalar::String,
            _ => return None,
        })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident,)*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

from! {
    bool => Boolean, i8 => Byte, i16 => Short, i32 => Int, i64 => Long, u8 => UByte,
    u16 => UShort, u32 => UInt, u64 => ULong, f32 => Float, f64 => Double,
}

impl Chosen {
    fn fits(&self, of: &Union) -> bool {
        let member = of.members().get(self.member as usize);
        member.is_some_and(|member| fit(&self.nodes, &member.kind))
    }
}

fn least(length: Length) -> usize {
    if let Length::Exactly(count) = length { count as usize } else { 0 }
}

pub(super) fn allows(length: Length, count: usize) -> bool {
    match length {
        Length::Any => true,
        Length::AtMost(most) => count <= most as usize,
        Length::Exactly(exactly) => count == exactly as usize,
    }
}

/// Whether these places, together, are a value of this type.
fn fit(nodes: &[Value], kind: &Type) -> bool {
    nodes.len() == kind.width()
        && nodes[0].fits(kind)
        && kind.structure().is_none_or(|structure| {
            structure.fields().iter().all(|field| {
                let at = field.at();
                fit(&nodes[at..at + field.kind.width()], &field.kind)
            })
        })
}

/// The places of a value of this type, as they are at first.
pub fn zeros(kind: &Type) -> Vec<Value> {
    let mut nodes = Vec::with_capacity(kind.width());
    put_zeros(kind, &mut nodes);
    nodes
}

fn put_zeros(kind: &Type, into: &mut Vec<Value>) {
    into.push(Value::zero(kind));
    if let Type::Structure(structure) = kind {
        structure.fields().iter().for_each(|field| put_zeros(&field.kind, into));
    }
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    kind: Type,
    nodes: Vec<Value>,
}

impl Item {
    /// Zeros and nothing.
    pub fn new(kind: Type) -> Self {
        Self { nodes: zeros(&kind), kind }
    }

    /// A value of these places; none if they don't make one.
    pub fn of(kind: Type, nodes: Vec<Value>) -> Option<Self> {
        fit(&nodes, &kind).then_some(Self { kind, nodes })
    }

    /// As [`Item::of`], where they do by how they were made.
    pub(super) fn made(kind: Type, nodes: Vec<Value>) -> Self {
        debug_assert_eq!(nodes.len(), kind.width());
        Self { kind, nodes }
    }

    /// Its type.
    pub fn kind(&self) -> &Type {
        &self.kind
    }

    /// Its places, one for each bit.
    pub fn nodes(&self) -> &[Value] {
        &self.nodes
    }

    /// Its places, without their type.
    pub fn into_nodes(self) -> Vec<Value> {
        self.nodes
    }

    /// The value at `path`, such as `alarm.severity`.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let (bit, _) = self.kind.field(path)?;
        self.nodes.get(bit)
    }

    /// The number at `path`.
    pub fn number(&self, path: &str) -> Option<Number> {
        self.get(path)?.number()
    }

    /// The string at `path`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_text()
    }

    /// Sets the value at `path`. Returns whether there is such a field of that type.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) -> bool {
        let value = value.into();
        match self.kind.field(path) {
            Some((bit, kind)) if value.fits(kind) => {
                self.nodes[bit] = value;
                true
            }
            _ => false,
        }
    }

    /// As [`Item::set`], for building.
    ///
    /// # Panics
    /// When there is no such field of that type.
    #[must_use]
    pub fn with(mut self, path: &str, value: impl Into<Value>) -> Self {
        assert!(self.set(path, value), "{path} is no field of that type");
        self
    }

    /// Sets a place that is known to be of the value's type.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn put(&mut self, bit: usize, value: Value) {
        debug_assert!(self.kind.path(bit).is_some_and(|(_, kind)| value.fits(kind)));
        self.nodes[bit] = value;
    }
}

impl fmt::Display for Value {
    /// Short and readable; of arrays the first elements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        match self {
            Self::Boolean(is) => is.fmt(f),
            Self::String(text) => text.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Double(number) => number.fmt(f),
            Self::Array(array) => {
                let shown = array.iter().take(SHOWN).map(|value| value.to_string());
                write_list(f, shown, array.len())
            }
            Self::Strings(all) => {
                write_list(f, all.iter().take(SHOWN).map(|text| format!("{text:?}")), all.len())
            }
            Self::Structures(all) => write!(f, "{} structures", all.len()),
            Self::Unions(all) => write!(f, "{} unions", all.len()),
            Self::Anys(all) => write!(f, "{} of any type", all.len()),
            Self::Structure => f.write_str("structure"),
            Self::Union(None) | Self::Any(None) => f.write_str("(nothing)"),
            Self::Union(Some(chosen)) => chosen.nodes[0].fmt(f),
            Self::Any(Some(item)) => item.nodes[0].fmt(f),
            number => match number.number() {
                Some(Number::Whole(whole)) => whole.fmt(f),
                _ => Ok(()),
            },
        }
    }
}

fn write_list(
    f: &mut fmt::Formatter<'_>,
    shown: impl Iterator<Item = String>,
    count: usize,
) -> fmt::Result {
    let shown: Vec<_> = shown.collect();
    let more = if shown.len() < count { format!(", … {count} in all") } else { String::new() };
    write!(f, "[{}{more}]", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::types::{Field, Scalar, Structure, Type};
    use super::{Item, Number, Value};

    #[test]
    fn a_value_is_small_and_its_copy_shares_what_is_large() {
        assert_eq!(size_of::<Value>(), 24);
        let array = Value::array(Scalar::Long, vec![1; 800]);
        let copy = array.clone();
        let bytes = |value: &Value| value.as_array().unwrap().bytes().as_ptr();
        assert_eq!(bytes(&array), bytes(&copy));
        assert!(array.to_string().ends_with("72340172838076673, … 100 in all]"));
    }

    #[test]
    fn only_values_of_its_type_are_put_into_a_field() {
        let alarm = Structure::new("alarm_t", [Field::new("severity", Scalar::Int)]);
        let fields = [
            Field::new("value", Type::array(Scalar::Short)),
            Field::new("alarm", Type::Structure(alarm)),
        ];
        let mut item = Item::new(Type::Structure(Structure::new("", fields)));
        assert!(item.set("alarm.severity", 3) && !item.set("alarm.severity", 3.0));
        assert!(!item.set("alarm", 3) && !item.set("nothing", 3));
        assert!(item.set("value", Value::array(Scalar::Short, vec![1, 0, 2, 0, 9])));
        assert_eq!(item.get("value").unwrap().to_string(), "[1, 2]");
        assert_eq!(item.number("alarm.severity"), Some(Number::Whole(3)));
        assert_eq!(Item::of(item.kind().clone(), item.nodes().to_vec()), Some(item.clone()));
        assert_eq!(Item::of(item.kind().clone(), item.nodes()[1..].to_vec()), None);
    }

    #[test]
    fn numbers_change_their_type_only_where_nothing_is_lost() {
        let of = Value::of_number;
        assert_eq!(of(Scalar::UByte, Number::Whole(256)), None);
        assert_eq!(of(Scalar::Int, Number::Real(2.5)), None);
        assert_eq!(of(Scalar::Int, Number::Real(-2.0)), Some(Value::Int(-2)));
        assert_eq!(of(Scalar::ULong, Number::Whole(u64::MAX.into())), Some(Value::ULong(u64::MAX)));
        assert_eq!(of(Scalar::Double, Number::Whole(7)), Some(Value::Double(7.0)));
    }
}
