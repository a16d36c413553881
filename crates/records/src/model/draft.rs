//! A new version under way.

use crate::protocol::{Bits, Value};

/// A new version under way.
#[derive(Debug)]
pub struct Draft<'a> {
    nodes: &'a mut [Value],
    changed: &'a mut Bits,
}

impl<'a> Draft<'a> {
    pub(super) fn new(nodes: &'a mut [Value], changed: &'a mut Bits) -> Self {
        Self { nodes, changed }
    }

    /// The values of the fields so far.
    pub fn nodes(&self) -> &[Value] {
        self.nodes
    }

    /// Sets the field with this bit to a value of its type.
    #[inline]
    pub fn set(&mut self, bit: usize, value: Value) {
        self.nodes[bit] = value;
        self.changed.insert(bit);
    }

    /// Whether the field with this bit has a new value.
    pub fn has(&self, bit: usize) -> bool {
        self.changed.contains(bit)
    }
}
