//! What a tree costs: bytes of nodes, of attributes of each kind, and of what several share.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::attribute::Attribute;
use super::expression::{Expression, Operand, Step};
use super::node::{Node, NodeId};
use super::repeat::Over;
use super::text::{OwnText, Text};
use super::tree::Snapshot;

/// Counts of references before what is counted.
const COUNTS: usize = 2 * size_of::<usize>();

/// How many, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// How many.
    pub count: usize,
    /// The bytes of all.
    pub bytes: usize,
}

impl Used {
    /// The bytes of one, on average.
    #[must_use]
    pub fn each(self) -> f64 {
        if self.count == 0 { 0.0 } else { self.bytes as f64 / self.count as f64 }
    }

    fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// The memory of a tree, as its types lay it out; what the allocator rounds up isn't in it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Nodes, with the heads of their lists of attributes and what is known of their jobs.
    pub nodes: Used,
    /// Attributes by keyword: their place in the list, and what only they refer to.
    pub attributes: Vec<(&'static str, Used)>,
    /// Texts, expressions and lists, each once however many refer to it.
    pub shared: Used,
    /// The index of children by name.
    pub index: usize,
}

/// What has been counted, by its address.
#[derive(Default)]
struct Seen {
    places: HashSet<usize>,
    shared: Used,
}

impl Seen {
    fn text(&mut self, text: &Text) {
        self.heap(text, text.heap_bytes());
    }

    fn own_text(&mut self, text: &OwnText) {
        self.heap(text, text.heap_bytes());
    }

    fn heap(&mut self, text: &str, bytes: usize) {
        if bytes > 0 && self.places.insert(text.as_ptr() as usize) {
            self.shared.add(bytes);
        }
    }

    fn texts<'a>(&mut self, all: impl IntoIterator<Item = &'a Text>) {
        all.into_iter().for_each(|text| self.text(text));
    }

    fn expression(&mut self, expression: &Arc<Expression>) {
        if !self.places.insert(Arc::as_ptr(expression) as usize) {
            return;
        }
        let steps = expression.program.as_ref().map_or(&[][..], |program| &program.steps);
        let bytes = COUNTS
            + size_of::<Expression>()
            + size_of_val(expression.parts.as_slice())
            + size_of_val(steps);
        self.shared.add(bytes);
        self.texts(expression.parts.iter().map(|part| &part.text));
        for step in steps {
            match step {
                Step::Operand(Operand::Variable(path, name)) => self.texts([path, name]),
                Step::Operand(
                    Operand::Node(text) | Operand::Upward(text) | Operand::Flag(text, _),
                ) => self.text(text),
                _ => {}
            }
        }
    }

    /// The bytes of an attribute beside its place in the list, that are its own.
    fn own(&mut self, attribute: &Attribute) -> usize {
        match attribute {
            Attribute::Late(late) => size_of_val(&**late),
            Attribute::Trigger(condition) | Attribute::Complete(condition) => {
                self.expression(&condition.expression);
                0
            }
            Attribute::Repeat(repeat) => {
                self.text(&repeat.name);
                size_of_val(&**repeat)
                    + match &repeat.over {
                        Over::DateList(list) => size_of_val(list.items.as_slice()),
                        Over::DateTimeList(list) => size_of_val(list.items.as_slice()),
                        Over::Enumerated(list) | Over::Text(list) => {
                            self.texts(&list.items);
                            size_of_val(list.items.as_slice())
                        }
                        _ => 0,
                    }
            }
            Attribute::Variable(one) => {
                self.text(&one.name);
                self.own_text(&one.value);
                0
            }
            Attribute::Limit(limit) => {
                self.text(&limit.name);
                let holders = limit.holders.as_deref();
                self.texts(holders.into_iter().flatten());
                holders.map_or(0, |all| COUNTS + size_of_val(all) + all.len() * size_of::<Text>())
            }
            Attribute::InLimit(one) => {
                self.texts([&one.name, &one.path]);
                0
            }
            Attribute::Label(label) => {
                self.texts([&label.name, &label.value, &label.new_value]);
                0
            }
            Attribute::Meter(meter) => {
                self.text(&meter.name);
                0
            }
            Attribute::Event(event) => {
                self.text(&event.name);
                0
            }
            other => self.rare(other),
        }
    }

    fn rare(&mut self, attribute: &Attribute) -> usize {
        match attribute {
            Attribute::Time(series) | Attribute::Today(series) => size_of_val(&**series),
            Attribute::Cron(cron) => size_of_val(&**cron),
            Attribute::Aviso(text) | Attribute::Mirror(text) => {
                self.text(text);
                0
            }
            Attribute::AutoRestore(paths) => {
                self.texts(paths.iter());
                COUNTS + size_of_val(&**paths) + size_of_val(paths.as_slice())
            }
            Attribute::Zombie(rule) => size_of_val(&**rule) + size_of_val(rule.children.as_slice()),
            Attribute::Queue(queue) => {
                self.text(&queue.name);
                self.texts(&queue.steps);
                size_of_val(&**queue)
                    + size_of_val(queue.steps.as_slice())
                    + size_of_val(queue.states.as_slice())
            }
            Attribute::Generic(generic) => {
                self.text(&generic.name);
                self.texts(&generic.values);
                size_of_val(&**generic) + size_of_val(generic.values.as_slice())
            }
            Attribute::Clock(clock) | Attribute::EndClock(clock) => size_of_val(&**clock),
            Attribute::Calendar(calendar) => size_of_val(&**calendar),
            _ => 0,
        }
    }
}

impl Memory {
    /// That of a tree.
    #[must_use]
    pub fn of(tree: &Snapshot) -> Self {
        let mut memory = Self { index: tree.index_bytes(), ..Self::default() };
        let mut seen = Seen::default();
        let mut attributes: BTreeMap<u8, (&'static str, Used)> = BTreeMap::new();
        for id in tree.walk(NodeId::ROOT) {
            let node = tree.node(id);
            let job = node.job.as_deref().map_or(0, |job| COUNTS + size_of_val(job));
            let head = if node.attributes.is_empty() { 0 } else { COUNTS };
            memory.nodes.add(size_of::<Node>() + job + head);
            seen.own_text(&node.name);
            if let Some(job) = node.job.as_deref() {
                seen.texts([&job.password, &job.rid, &job.abort_reason]);
            }
            for attribute in node.attributes.iter() {
                let bytes = size_of::<Attribute>() + seen.own(attribute);
                let row = attributes.entry(attribute.rank());
                row.or_insert((attribute.word(), Used::default())).1.add(bytes);
            }
        }
        memory.attributes = attributes.into_values().collect();
        memory.shared = seen.shared;
        memory
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        let attributes: usize = self.attributes.iter().map(|(_, used)| used.bytes).sum();
        self.nodes.bytes + attributes + self.shared.bytes + self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    fn of(text: &str) -> Memory {
        Memory::of(&parse(text, "x.def").expect("a definition").tree)
    }

    fn used(memory: &Memory, word: &str) -> Used {
        let found = memory.attributes.iter().find(|(known, _)| *known == word);
        found.map_or_else(Used::default, |(_, used)| *used)
    }

    #[test]
    fn a_node_pays_only_for_what_it_has_and_equal_texts_once() {
        let bare = of("suite s\n task a\n task b\nendsuite\n");
        assert_eq!(bare.nodes.bytes, 4 * size_of::<Node>());
        assert!(bare.attributes.is_empty());
        let value = "edit V 'a value of more than 23 bytes'";
        let some = of(&format!("suite s\n task a\n {value}\n task b\n {value}\nendsuite\n"));
        assert_eq!(used(&some, "edit"), Used { count: 2, bytes: 2 * size_of::<Attribute>() });
        assert_eq!(some.shared.count, bare.shared.count + 2);
        let late = of("suite s\n task a\n late -s +00:10\n task b\nendsuite\n");
        assert!(used(&late, "late").bytes > size_of::<Attribute>());
        assert_eq!(late.nodes.bytes, bare.nodes.bytes + COUNTS);
    }
}
