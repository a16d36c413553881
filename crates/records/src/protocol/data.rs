//! Values on the wire: whole ones, and the changed fields of structures.

use std::sync::Arc;

use wire::Bytes;

use super::types::{Length, Scalar, Structure, Type, Union};
use super::value::{Array, Chosen, Item, Value, allows};
use super::{Bits, MAX_VALUE_DEPTH, Order, Reader, Registry, Sink, Writer};

impl<S: Sink> Writer<'_, S> {
    /// Appends a whole value of type `kind`, whose places begin `nodes`.
    #[inline]
    pub fn value(&mut self, kind: &Type, nodes: &[Value]) {
        match kind {
            Type::Structure(structure) => {
                for field in structure.fields() {
                    self.value(&field.kind, &nodes[field.at()..]);
                }
            }
            kind => self.place(kind, &nodes[0]),
        }
    }

    /// Appends what one place holds; nothing for a structure, whose fields have their own.
    #[inline]
    pub fn place(&mut self, kind: &Type, value: &Value) {
        match value {
            Value::Structure => {}
            Value::Boolean(is) => self.u8((*is).into()),
            Value::Byte(number) => self.i8(*number),
            Value::Short(number) => self.i16(*number),
            Value::Int(number) => self.i32(*number),
            Value::Long(number) => self.i64(*number),
            Value::UByte(number) => self.u8(*number),
            Value::UShort(number) => self.u16(*number),
            Value::UInt(number) => self.u32(*number),
            Value::ULong(number) => self.u64(*number),
            Value::Float(number) => self.f32(*number),
            Value::Double(number) => self.f64(*number),
            Value::String(text) => self.text(text),
            value => self.large(kind, value),
        }
    }

    fn large(&mut self, kind: &Type, value: &Value) {
        let is_fixed = matches!(kind, Type::Array(_, Length::Exactly(_)));
        match (value, kind) {
            (Value::Array(array), _) => {
                if !is_fixed {
                    self.size(array.len());
                }
                self.numbers(array);
            }
            (Value::Strings(all), _) => {
                if !is_fixed {
                    self.size(all.len());
                }
                all.iter().for_each(|text| self.text(text));
            }
            (Value::Structures(all), Type::Structures(of)) => {
                self.size(all.len());
                for element in all.iter() {
                    self.u8(element.is_some().into());
                    if let Some(nodes) = element {
                        of.fields().iter().for_each(|field| {
                            self.value(&field.kind, &nodes[field.at()..]);
                        });
                    }
                }
            }
            (Value::Union(chosen), Type::Union(of)) => self.chosen(of, chosen.as_deref()),
            (Value::Unions(all), Type::Unions(of)) => {
                self.size(all.len());
                for element in all.iter() {
                    self.u8(element.is_some().into());
                    if element.is_some() {
                        self.chosen(of, element.as_ref());
                    }
                }
            }
            (Value::Any(item), _) => self.item(item.as_deref()),
            (Value::Anys(all), _) => {
                self.size(all.len());
                for element in all.iter() {
                    self.u8(element.is_some().into());
                    if element.is_some() {
                        self.item(element.as_ref());
                    }
                }
            }
            _ => debug_assert!(false, "a value of another type than its place"),
        }
    }

    fn numbers(&mut self, array: &Array) {
        let each = array.scalar().bytes().unwrap_or(1);
        if self.order() == Order::Little || each == 1 {
            self.share(array.bytes().clone());
        } else {
            self.share(swapped(array.bytes(), each));
        }
    }

    fn chosen(&mut self, of: &Union, chosen: Option<&Chosen>) {
        let Some(chosen) = chosen else { return self.null_size() };
        self.size(chosen.member as usize);
        if let Some(member) = of.members().get(chosen.member as usize) {
            self.value(&member.kind, &chosen.nodes);
        }
    }

    /// Appends a value's type, and then the value.
    pub fn item(&mut self, item: Option<&Item>) {
        self.kind(item.map(Item::kind));
        if let Some(item) = item {
            self.value(item.kind(), item.nodes());
        }
    }

    /// Appends which fields follow, and them.
    pub fn changed(&mut self, kind: &Type, changed: &Bits, nodes: &[Value]) {
        changed.write(self);
        self.changed_values(kind, 0, changed, nodes);
    }

    /// Appends the fields that `changed` has: each once, even where both a structure's bit and its
    /// fields' bits are set.
    fn changed_values(&mut self, kind: &Type, at: usize, changed: &Bits, nodes: &[Value]) {
        if changed.contains(at) {
            return self.value(kind, &nodes[at..]);
        }
        let Type::Structure(structure) = kind else { return };
        let end = at + structure.width();
        if changed.next(at).is_none_or(|bit| bit >= end) {
            return;
        }
        for field in structure.fields() {
            self.changed_values(&field.kind, at + field.at(), changed, nodes);
        }
    }
}

/// The numbers with their bytes in the other order.
fn swapped(bytes: &[u8], each: usize) -> Bytes {
    let mut all = bytes.to_vec();
    all.chunks_exact_mut(each).for_each(<[u8]>::reverse);
    all.into()
}

impl Reader<'_> {
    /// A value of type `kind`, appended place by place to `into`.
    pub fn value(&mut self, kind: &Type, known: &mut Registry, into: &mut Vec<Value>) {
        self.nested_value(kind, known, 0, into);
    }

    fn nested_value(
        &mut self,
        kind: &Type,
        known: &mut Registry,
        depth: usize,
        into: &mut Vec<Value>,
    ) {
        if depth > MAX_VALUE_DEPTH {
            self.fail("a value is nested too deep");
        }
        if !self.is_good() || !self.spend(1) {
            into.extend(super::value::zeros(kind));
            return;
        }
        let value = self.place(kind, known, depth);
        into.push(value);
        if let Type::Structure(structure) = kind {
            for field in structure.fields() {
                self.nested_value(&field.kind, known, depth + 1, into);
            }
        }
    }

    fn place(&mut self, kind: &Type, known: &mut Registry, depth: usize) -> Value {
        match kind {
            Type::Structure(_) => Value::Structure,
            Type::Scalar(scalar) => self.scalar(*scalar),
            Type::BoundedString(most) => Value::String(self.short_text(*most as usize)),
            Type::Array(scalar, length) => self.array_value(*scalar, *length),
            Type::Structures(of) => self.structures(of, known, depth),
            Type::Union(of) => Value::Union(self.chosen(of, known, depth).map(Arc::new)),
            Type::Unions(of) => {
                let count = self.elements(1);
                let one = |reader: &mut Self| reader.present(|it| it.chosen(of, known, depth));
                Value::Unions(self.many(count, one))
            }
            Type::Any => Value::Any(self.nested_item(known, depth).map(Arc::new)),
            Type::Anys => {
                let count = self.elements(1);
                let one = |reader: &mut Self| reader.present(|it| it.nested_item(known, depth));
                Value::Anys(self.many(count, one))
            }
        }
    }

    #[inline]
    fn scalar(&mut self, scalar: Scalar) -> Value {
        match scalar {
            Scalar::Boolean => Value::Boolean(self.u8() != 0),
            Scalar::Byte => Value::Byte(self.i8()),
            Scalar::Short => Value::Short(self.i16()),
            Scalar::Int => Value::Int(self.i32()),
            Scalar::Long => Value::Long(self.i64()),
            Scalar::UByte => Value::UByte(self.u8()),
            Scalar::UShort => Value::UShort(self.u16()),
            Scalar::UInt => Value::UInt(self.u32()),
            Scalar::ULong => Value::ULong(self.u64()),
            Scalar::Float => Value::Float(self.f32()),
            Scalar::Double => Value::Double(self.f64()),
            Scalar::String => Value::String(self.text()),
        }
    }

    fn array_value(&mut self, scalar: Scalar, length: Length) -> Value {
        let least = scalar.bytes().unwrap_or(1);
        let count = match length {
            Length::Exactly(count) if (count as usize).saturating_mul(least) <= self.left() => {
                count as usize
            }
            Length::Exactly(_) => {
                self.fail("an array is longer than its message");
                0
            }
            _ => self.count(least),
        };
        if !allows(length, count) && self.is_good() {
            self.fail("an array is longer than its type allows");
        }
        if !self.is_good() {
            return Value::zero(&Type::array(scalar));
        }
        let Some(each) = scalar.bytes() else {
            let count = if self.spend(count) { count } else { 0 };
            return Value::Strings(self.many(count, Self::text));
        };
        let mut bytes = self.take_shared(count * each);
        if self.order() == Order::Big && each > 1 {
            bytes = swapped(&bytes, each);
        }
        Value::Array(Arc::new(Array::new(scalar, bytes)))
    }

    /// How many elements with parts follow, each of them a value.
    fn elements(&mut self, least_bytes: usize) -> usize {
        let count = self.count(least_bytes);
        if self.spend(count) { count } else { 0 }
    }

    fn many<T>(&mut self, count: usize, mut one: impl FnMut(&mut Self) -> T) -> Arc<[T]> {
        let mut all = Vec::with_capacity(count);
        while all.len() < count && self.is_good() {
            all.push(one(self));
        }
        all.into()
    }

    fn present<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.u8() == 0 { None } else { read(self) }
    }

    fn structures(&mut self, of: &Arc<Structure>, known: &mut Registry, depth: usize) -> Value {
        let count = self.elements(1);
        let kind = Type::Structure(Arc::clone(of));
        let one = |reader: &mut Self| {
            reader.present(|it| {
                let mut nodes = Vec::with_capacity(kind.width());
                it.nested_value(&kind, known, depth + 1, &mut nodes);
                Some(nodes.into_boxed_slice())
            })
        };
        Value::Structures(self.many(count, one))
    }

    fn chosen(&mut self, of: &Union, known: &mut Registry, depth: usize) -> Option<Chosen> {
        let member = self.nullable_size()?;
        let Some(field) = of.members().get(member) else {
            self.fail("a union holds a member that it doesn't have");
            return None;
        };
        let mut nodes = Vec::with_capacity(field.kind.width());
        self.nested_value(&field.kind, known, depth + 1, &mut nodes);
        let member = u32::try_from(member).unwrap_or(u32::MAX);
        Some(Chosen { member, nodes: nodes.into() })
    }

    /// A type and a value of it; nothing is null, and after a fault.
    pub fn item(&mut self, known: &mut Registry) -> Option<Item> {
        self.nested_item(known, 0)
    }

    fn nested_item(&mut self, known: &mut Registry, depth: usize) -> Option<Item> {
        let kind = self.kind(known)?;
        let mut nodes = Vec::with_capacity(kind.width());
        self.nested_value(&kind, known, depth + 1, &mut nodes);
        self.is_good().then(|| Item::made(kind, nodes))
    }

    /// Which fields follow, and them: each is put into its place of `nodes`, which is a value of
    /// type `kind`. Says which they are; a structure's bit stands for all its fields.
    pub fn changed(&mut self, kind: &Type, known: &mut Registry, nodes: &mut [Value]) -> Bits {
        let changed = Bits::read(self, kind.width());
        self.changed_values(kind, 0, known, &changed, nodes);
        changed
    }

    fn changed_values(
        &mut self,
        kind: &Type,
        at: usize,
        known: &mut Registry,
        changed: &Bits,
        nodes: &mut [Value],
    ) {
        if changed.contains(at) {
            return self.value_in_place(kind, at, known, nodes);
        }
        let Type::Structure(structure) = kind else { return };
        let end = at + structure.width();
        if changed.next(at).is_none_or(|bit| bit >= end) {
            return;
        }
        for field in structure.fields() {
            self.changed_values(&field.kind, at + field.at(), known, changed, nodes);
        }
    }

    fn value_in_place(
        &mut self,
        kind: &Type,
        at: usize,
        known: &mut Registry,
        nodes: &mut [Value],
    ) {
        if !self.is_good() || !self.spend(1) {
            return;
        }
        if let Type::Structure(structure) = kind {
            for field in structure.fields() {
                self.value_in_place(&field.kind, at + field.at(), known, nodes);
            }
        } else {
            let value = self.place(kind, known, 0);
            if self.is_good() {
                nodes[at] = value;
            }
        }
    }
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "oracle_tests.rs"]
mod oracle;
