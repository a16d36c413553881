//! The types of pvData: what a value can be made of.

use std::fmt;
use std::sync::Arc;

/// The types that have no parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// True or false.
    Boolean,
    /// 8 bits with a sign.
    Byte,
    /// 16 bits with a sign.
    Short,
    /// 32 bits with a sign.
    Int,
    /// 64 bits with a sign.
    Long,
    /// 8 bits.
    UByte,
    /// 16 bits.
    UShort,
    /// 32 bits.
    UInt,
    /// 64 bits.
    ULong,
    /// A real number of 32 bits.
    Float,
    /// A real number of 64 bits.
    Double,
    /// Characters, in UTF-8.
    String,
}

impl Scalar {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Boolean,
        Self::Byte,
        Self::Short,
        Self::Int,
        Self::Long,
        Self::UByte,
        Self::UShort,
        Self::UInt,
        Self::ULong,
        Self::Float,
        Self::Double,
        Self::String,
    ];

    /// Its code in a description. The specification's table of types has misprints; these are the
    /// bytes that peers send.
    pub fn code(self) -> u8 {
        match self {
            Self::Boolean => 0x00,
            Self::Byte => 0x20,
            Self::Short => 0x21,
            Self::Int => 0x22,
            Self::Long => 0x23,
            Self::UByte => 0x24,
            Self::UShort => 0x25,
            Self::UInt => 0x26,
            Self::ULong => 0x27,
            Self::Float => 0x42,
            Self::Double => 0x43,
            Self::String => 0x60,
        }
    }

    /// The type with this code.
    pub fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.code() == code)
    }

    /// The bytes of one value; none for strings, which have a size of their own.
    pub fn bytes(self) -> Option<usize> {
        match self {
            Self::Boolean | Self::Byte | Self::UByte => Some(1),
            Self::Short | Self::UShort => Some(2),
            Self::Int | Self::UInt | Self::Float => Some(4),
            Self::Long | Self::ULong | Self::Double => Some(8),
            Self::String => None,
        }
    }

    /// What pvData calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Int => "int",
            Self::Long => "long",
            Self::UByte => "ubyte",
            Self::UShort => "ushort",
            Self::UInt => "uint",
            Self::ULong => "ulong",
            Self::Float => "float",
            Self::Double => "double",
            Self::String => "string",
        }
    }

    /// The type with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }
}

/// How long an array may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// As long as it likes.
    Any,
    /// At most this many elements.
    AtMost(u32),
    /// Exactly this many elements, which are sent without their number.
    Exactly(u32),
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// One value without parts.
    Scalar(Scalar),
    /// A string of at most this many bytes.
    BoundedString(u32),
    /// Many values without parts.
    Array(Scalar, Length),
    /// Named fields.
    Structure(Arc<Structure>),
    /// Many structures of one type; each may be missing.
    Structures(Arc<Structure>),
    /// One of several named fields, or none.
    Union(Arc<Union>),
    /// Many of these.
    Unions(Arc<Union>),
    /// Any value, which brings its type along.
    Any,
    /// Many of these.
    Anys,
}

impl Type {
    /// An array without a bound.
    pub const fn array(of: Scalar) -> Self {
        Self::Array(of, Length::Any)
    }

    /// How many bits stand for a value of this type: one, and one for each field of a structure.
    #[inline]
    pub fn width(&self) -> usize {
        match self {
            Self::Structure(structure) => structure.width(),
            _ => 1,
        }
    }

    /// How deep it is nested; a type without parts is 1 deep.
    pub fn depth(&self) -> usize {
        match self {
            Self::Structure(all) | Self::Structures(all) => 1 + all.depth,
            Self::Union(all) | Self::Unions(all) => 1 + all.depth,
            _ => 1,
        }
    }

    /// How many fields it has in all, those of unions and of arrays' elements too, and the elements
    /// of arrays of a fixed length.
    pub fn size(&self) -> usize {
        match self {
            Self::Structure(all) | Self::Structures(all) => 1 + all.size,
            Self::Union(all) | Self::Unions(all) => 1 + all.size,
            // An array of a fixed length takes its memory even before it is sent.
            Self::Array(_, Length::Exactly(count)) => 1 + *count as usize,
            _ => 1,
        }
    }

    /// The structure that it is.
    pub fn structure(&self) -> Option<&Arc<Structure>> {
        match self {
            Self::Structure(structure) => Some(structure),
            _ => None,
        }
    }

    /// The bit and type of the field at `path`, such as `alarm.severity`; the empty path is the
    /// value itself.
    pub fn field(&self, path: &str) -> Option<(usize, &Type)> {
        let mut at = (0, self);
        for name in path.split('.').filter(|_| !path.is_empty()) {
            let Type::Structure(structure) = at.1 else { return None };
            let field = structure.fields.iter().find(|field| *field.name == *name)?;
            at = (at.0 + field.at(), &field.kind);
        }
        Some(at)
    }

    /// The name of the field that `bit` stands for, and its type.
    pub fn path(&self, bit: usize) -> Option<(String, &Type)> {
        let (mut kind, mut left, mut path) = (self, bit, String::new());
        while left > 0 {
            let Type::Structure(structure) = kind else { return None };
            let field = structure.fields.iter().rev().find(|field| field.at() <= left)?;
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&field.name);
            left -= field.at();
            kind = &field.kind;
        }
        Some((path, kind))
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

/// A field of a structure or a member of a union.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// What it is called.
    pub name: Arc<str>,
    /// What it is.
    pub kind: Type,
    at: u32,
}

impl Field {
    /// A field.
    pub fn new(name: &str, kind: impl Into<Type>) -> Self {
        Self { name: Arc::from(name), kind: kind.into(), at: 0 }
    }

    /// The bit that stands for it, counted from its structure's.
    #[inline]
    pub fn at(&self) -> usize {
        self.at as usize
    }
}

/// Named fields, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Structure {
    id: Arc<str>,
    fields: Box<[Field]>,
    width: usize,
    depth: usize,
    size: usize,
}

impl Structure {
    /// A structure; the `id` names its meaning and may be empty.
    pub fn new(id: &str, fields: impl IntoIterator<Item = Field>) -> Arc<Self> {
        Arc::new(Self::of(Arc::from(id), fields.into_iter().collect()))
    }

    pub(super) fn of(id: Arc<str>, mut fields: Box<[Field]>) -> Self {
        let mut width = 1;
        for field in &mut fields {
            field.at = u32::try_from(width).unwrap_or(u32::MAX);
            width += field.kind.width();
        }
        let depth = fields.iter().map(|field| field.kind.depth()).max().unwrap_or_default();
        let size = fields.iter().map(|field| field.kind.size()).sum();
        Self { id, fields, width, depth, size }
    }

    /// What it is meant for, such as `epics:nt/NTScalar:1.0`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its fields.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// How many bits stand for it and its fields.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }
}

/// Named types of which a value has one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Union {
    id: Arc<str>,
    members: Box<[Field]>,
    depth: usize,
    size: usize,
}

impl Union {
    /// A union; the `id` may be empty.
    pub fn new(id: &str, members: impl IntoIterator<Item = Field>) -> Arc<Self> {
        Arc::new(Self::of(Arc::from(id), members.into_iter().collect()))
    }

    pub(super) fn of(id: Arc<str>, members: Box<[Field]>) -> Self {
        let depth = members.iter().map(|field| field.kind.depth()).max().unwrap_or_default();
        let size = members.iter().map(|field| field.kind.size()).sum();
        Self { id, members, depth, size }
    }

    /// What it is meant for.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What a value may be.
    pub fn members(&self) -> &[Field] {
        &self.members
    }
}

impl fmt::Display for Type {
    /// As pvData writes it, a field a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_type(self, "", 0, f)
    }
}

fn write_type(kind: &Type, name: &str, indent: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let gap = if name.is_empty() { "" } else { " " };
    let head = |word: &str, id: &str, many: &str| match (id, word) {
        ("" | "structure", "structure") => format!("structure{many}"),
        ("" | "union", "union") => format!("union{many}"),
        (id, _) => format!("{id}{many}"),
    };
    write!(f, "{:indent$}", "")?;
    let (line, fields): (String, &[Field]) = match kind {
        Type::Scalar(scalar) => (scalar.name().to_owned(), &[]),
        Type::BoundedString(most) => (format!("string({most})"), &[]),
        Type::Array(scalar, Length::Any) => (format!("{}[]", scalar.name()), &[]),
        Type::Array(scalar, Length::AtMost(most)) => (format!("{}<{most}>", scalar.name()), &[]),
        Type::Array(scalar, Length::Exactly(count)) => (format!("{}[{count}]", scalar.name()), &[]),
        Type::Structure(all) => (head("structure", &all.id, ""), &all.fields),
        Type::Structures(all) => (head("structure", &all.id, "[]"), &all.fields),
        Type::Union(all) => (head("union", &all.id, ""), &all.members),
        Type::Unions(all) => (head("union", &all.id, "[]"), &all.members),
        Type::Any => ("any".to_owned(), &[]),
        Type::Anys => ("any[]".to_owned(), &[]),
    };
    write!(f, "{line}{gap}{name}")?;
    for field in fields {
        writeln!(f)?;
        write_type(&field.kind, &field.name, indent + 4, f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Field, Scalar, Structure, Type};

    /// The structure of `Protocol-Encoding.md`, "Partial Structure Serialization".
    fn example() -> Type {
        let time = Structure::new(
            "time_t",
            [
                Field::new("secondsPastEpoch", Scalar::Long),
                Field::new("nanoSeconds", Scalar::Int),
                Field::new("userTag", Scalar::Int),
            ],
        );
        let value = Structure::new("", [Field::new("x", Scalar::Double)]);
        let arguments = Structure::new("", [Field::new("size", Scalar::Int)]);
        Type::Structure(Structure::new(
            "",
            [
                Field::new("timeStamp", Type::Structure(time)),
                Field::new("value", Type::Structures(value)),
                Field::new("factoryRPC", Scalar::String),
                Field::new("arguments", Type::Structure(arguments)),
            ],
        ))
    }

    #[test]
    fn every_field_has_its_bit_depth_first() {
        let kind = example();
        assert_eq!(kind.width(), 9);
        let paths: Vec<_> = (0..9).map(|bit| kind.path(bit).unwrap().0).collect();
        assert_eq!(paths[..3], ["", "timeStamp", "timeStamp.secondsPastEpoch"]);
        assert_eq!(paths[5..], ["value", "factoryRPC", "arguments", "arguments.size"]);
        for (bit, path) in paths.iter().enumerate() {
            assert_eq!(kind.field(path).unwrap().0, bit);
        }
        assert!(kind.path(9).is_none() && kind.field("value.x").is_none());
        assert!(kind.field("timeStamp.x").is_none() && kind.field("arguments.size.x").is_none());
    }

    #[test]
    fn a_type_is_printed_a_field_a_line() {
        let text = example().to_string();
        assert!(
            text.starts_with("structure\n    time_t timeStamp\n        long secondsPastEpoch\n")
        );
        assert!(text.ends_with("    structure arguments\n        int size"), "{text}");
    }
}
