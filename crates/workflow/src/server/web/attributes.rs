//! Attributes in JSON, as `ecflow_http` writes them.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::definition::print_attribute;
use crate::model::{
    After, Attribute, Condition, Joint, Late, NodeId, Over, Range, Repeat, Slot, Snapshot,
    Variable, instant_text,
};

/// One attribute; in a tree it says its type.
pub(super) struct One<'a> {
    pub(super) tree: &'a Snapshot,
    pub(super) attribute: &'a Attribute,
    pub(super) is_typed: bool,
}

impl One<'_> {
    /// The definition's words behind the keyword.
    fn words(&self) -> String {
        let line = print_attribute(self.tree, self.attribute);
        line.split_once(' ').map_or(String::new(), |(_, words)| words.to_owned())
    }
}

/// The word by which an attribute is known here.
pub(super) const fn word(attribute: &Attribute) -> &'static str {
    match attribute {
        Attribute::Variable(_) => "variable",
        other => other.word(),
    }
}

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.attribute {
            Attribute::Meter(meter) => {
                map.serialize_entry("name", &*meter.name)?;
                map.serialize_entry("min", &meter.min)?;
                map.serialize_entry("max", &meter.max)?;
                map.serialize_entry("value", &meter.value)?;
            }
            Attribute::Limit(limit) => {
                map.serialize_entry("name", &*limit.name)?;
                map.serialize_entry("value", &limit.value)?;
                map.serialize_entry("limit", &limit.max)?;
            }
            Attribute::InLimit(_) => {
                map.serialize_entry("value", &print_attribute(self.tree, self.attribute))?;
            }
            Attribute::Event(event) => {
                let number = event.number.map(|number| number.to_string()).unwrap_or_default();
                let name = if event.name.is_empty() { &number } else { event.name.as_str() };
                map.serialize_entry("name", name)?;
                map.serialize_entry("value", &event.value)?;
                map.serialize_entry("initial_value", &event.initial)?;
            }
            Attribute::Label(label) => {
                let new = if label.new_value.is_empty() { &label.value } else { &label.new_value };
                map.serialize_entry("name", &*label.name)?;
                map.serialize_entry("value", &**new)?;
            }
            Attribute::Variable(variable) => variable_members(&mut map, variable, false)?,
            Attribute::Repeat(repeat) => repeat_members(&mut map, repeat)?,
            Attribute::Trigger(condition) | Attribute::Complete(condition) if self.is_typed => {
                map.serialize_entry("expression", &condition.expression.text())?;
            }
            Attribute::Trigger(condition) | Attribute::Complete(condition) => {
                condition_members(&mut map, condition)?;
            }
            _ => self.of_time(&mut map)?,
        }
        if self.is_typed {
            map.serialize_entry("type", word(self.attribute))?;
        }
        map.end()
    }
}

impl One<'_> {
    fn of_time<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self.attribute {
            Attribute::Date(date) => {
                map.serialize_entry("value", &self.words())?;
                map.serialize_entry("free", &date.free)?;
            }
            Attribute::Day(day) => {
                map.serialize_entry("value", &self.words())?;
                map.serialize_entry("free", &day.free)?;
                map.serialize_entry("expired", &day.expired)?;
            }
            Attribute::Today(series) => {
                map.serialize_entry("value", &self.words())?;
                map.serialize_entry("free", &series.free)?;
                map.serialize_entry("expired", &!series.is_valid)?;
            }
            Attribute::Late(late) => late_members(map, late, &self.words())?,
            Attribute::AutoCancel(after) | Attribute::AutoArchive(after) => {
                after_members(map, *after, &self.words())?;
            }
            Attribute::Zombie(rule) => {
                let children: Vec<&str> = rule.children.iter().map(|child| child.word()).collect();
                map.serialize_entry("type", rule.kind.word())?;
                map.serialize_entry("action", rule.action.word())?;
                map.serialize_entry("child_commands", &children.join(","))?;
                map.serialize_entry("lifetime", &rule.lifetime_s)?;
            }
            Attribute::Generic(generic) => {
                map.serialize_entry("name", &*generic.name)?;
                map.serialize_entry("values", &Texts(&generic.values))?;
            }
            Attribute::Queue(queue) => {
                let step = usize::try_from(queue.index).ok().and_then(|at| queue.steps.get(at));
                map.serialize_entry("name", &*queue.name)?;
                map.serialize_entry("index", &queue.index)?;
                map.serialize_entry("value", step.map_or("", |step| step.as_str()))?;
                map.serialize_entry("queue", &Texts(&queue.steps))?;
            }
            // Of others, such as `time`, `cron` and `autorestore`, the words of the definition.
            _ => map.serialize_entry("value", &self.words())?,
        }
        Ok(())
    }
}

struct Texts<'a>(&'a [crate::model::Text]);

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|text| text.as_str()))
    }
}

fn slot_value(slot: Option<Slot>) -> serde_json::Value {
    serde_json::json!({ "value": slot.unwrap_or(Slot::new(0, 0)).to_string() })
}

fn late_members<M: SerializeMap>(map: &mut M, late: &Late, words: &str) -> Result<(), M::Error> {
    map.serialize_entry("submitted", &slot_value(late.submitted))?;
    map.serialize_entry("active", &slot_value(late.active))?;
    map.serialize_entry("complete", &slot_value(late.complete))?;
    map.serialize_entry("complete_is_relative", &late.complete_relative)?;
    map.serialize_entry("is_late", &late.is_late)?;
    map.serialize_entry("value", words)
}

fn after_members<M: SerializeMap>(map: &mut M, after: After, words: &str) -> Result<(), M::Error> {
    map.serialize_entry("relative", &after.relative)?;
    map.serialize_entry("days", &after.days)?;
    map.serialize_entry("time", &slot_value(Some(after.time)))?;
    map.serialize_entry("value", words)
}

fn variable_members<M: SerializeMap>(
    map: &mut M,
    variable: &Variable,
    is_const: bool,
) -> Result<(), M::Error> {
    map.serialize_entry("name", &*variable.name)?;
    map.serialize_entry("value", &*variable.value)?;
    map.serialize_entry("const", &is_const)
}

fn condition_members<M: SerializeMap>(map: &mut M, condition: &Condition) -> Result<(), M::Error> {
    let part = |part: &crate::model::Part| {
        let kind = match part.joint {
            Joint::First => "FIRST",
            Joint::And => "AND",
            Joint::Or => "OR",
        };
        serde_json::json!({ "expression": part.text.as_str(), "type": kind })
    };
    let parts: Vec<_> = condition.expression.parts.iter().map(part).collect();
    map.serialize_entry("free", &condition.free)?;
    map.serialize_entry("expressions", &parts)?;
    map.serialize_entry("value", &condition.expression.text())
}

fn range_members<M: SerializeMap>(map: &mut M, range: Range) -> Result<(), M::Error> {
    map.serialize_entry("start", &range.start)?;
    map.serialize_entry("end", &range.end)?;
    map.serialize_entry("step", &range.delta)?;
    map.serialize_entry("value", &range.value)
}

fn repeat_members<M: SerializeMap>(map: &mut M, repeat: &Repeat) -> Result<(), M::Error> {
    map.serialize_entry("name", &*repeat.name)?;
    let values: Vec<String> = match &repeat.over {
        Over::Date(range) | Over::Integer(range) => return range_members(map, *range),
        Over::DateTime(range) => {
            map.serialize_entry("start", &instant_text(range.start))?;
            map.serialize_entry("end", &instant_text(range.end))?;
            let step = crate::model::Duration::seconds(range.delta);
            map.serialize_entry("step", &step.to_string())?;
            return map.serialize_entry("value", &instant_text(range.value));
        }
        Over::Day { step, ended } => {
            map.serialize_entry("value", step)?;
            return map.serialize_entry("valid", &!ended);
        }
        Over::DateList(list) => list.items.iter().map(ToString::to_string).collect(),
        Over::DateTimeList(list) => list.items.iter().map(|at| instant_text(*at)).collect(),
        Over::Enumerated(list) | Over::Text(list) => {
            list.items.iter().map(ToString::to_string).collect()
        }
    };
    map.serialize_entry("index", &repeat.over.place())?;
    map.serialize_entry("value", &repeat.over.text())?;
    map.serialize_entry("values", &values)
}

/// All attributes of some kinds.
pub(super) struct Of<'a, F> {
    pub(super) tree: &'a Snapshot,
    pub(super) id: NodeId,
    pub(super) is_it: F,
}

impl<F: Fn(&Attribute) -> bool> Of<'_, F> {
    fn all(&self) -> impl Iterator<Item = One<'_>> {
        let all = self.tree.node(self.id).attributes.iter().filter(|one| (self.is_it)(one));
        all.map(|attribute| One { tree: self.tree, attribute, is_typed: false })
    }

    /// The first, or `null`.
    pub(super) fn first(&self) -> Option<One<'_>> {
        self.all().next()
    }
}

impl<F: Fn(&Attribute) -> bool> Serialize for Of<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all())
    }
}

/// The variables of a node: those of users and those that it makes.
pub(super) struct Variables<'a> {
    pub(super) tree: &'a Snapshot,
    pub(super) id: NodeId,
}

impl Serialize for Variables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for attribute in self.tree.node(self.id).attributes.iter() {
            if matches!(attribute, Attribute::Variable(_)) {
                let one = One { tree: self.tree, attribute, is_typed: false };
                list.serialize_element(&one)?;
            }
        }
        for variable in made(self.tree, self.id) {
            list.serialize_element(&Made { variable: &variable, is_typed: false })?;
        }
        list.end()
    }
}

/// The variables that a node makes.
pub(super) fn made(tree: &Snapshot, id: NodeId) -> Vec<(String, String)> {
    let of_repeat = tree.repeat(id).map_or_else(Vec::new, |repeat| {
        let mut all = repeat.date_parts();
        all.push((repeat.name.to_string(), repeat.over.text()));
        all
    });
    let own = tree.generated(id).into_iter().map(|(name, value)| (name.to_owned(), value));
    own.chain(of_repeat).collect()
}

/// A variable that a node makes.
pub(super) struct Made<'a> {
    pub(super) variable: &'a (String, String),
    pub(super) is_typed: bool,
}

impl Serialize for Made<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.variable.0)?;
        map.serialize_entry("value", &self.variable.1)?;
        map.serialize_entry("const", &false)?;
        if self.is_typed {
            map.serialize_entry("type", "variable")?;
        }
        map.serialize_entry("generated", &true)?;
        map.end()
    }
}

/// The variables of the server: the users' and its own.
pub(super) struct OfServer<'a>(pub(super) &'a Snapshot);

impl Serialize for OfServer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Own<'a>(&'a Variable, bool);
        impl Serialize for Own<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                variable_members(&mut map, self.0, self.1)?;
                map.end()
            }
        }
        let server = self.0.server();
        let users = server.user_variables.iter().map(|one| Own(one, false));
        serializer.collect_seq(users.chain(server.variables.iter().map(|one| Own(one, true))))
    }
}
