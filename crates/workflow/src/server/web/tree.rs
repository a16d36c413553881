//! Nodes in JSON, as `ecflow_http` writes them; from a snapshot, without a copy of the tree.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::attributes::{Made, Of, OfServer, One, Variables, made};
use crate::model::{Attribute, Kind, NodeId, Snapshot};

/// The names below a node, by name.
pub(super) struct Basic<'a> {
    pub(super) tree: &'a Snapshot,
    pub(super) ids: Vec<NodeId>,
}

impl Serialize for Basic<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for id in &self.ids {
            let ids = self.tree.children(*id).collect();
            map.serialize_entry(&*self.tree.node(*id).name, &Self { tree: self.tree, ids })?;
        }
        map.end()
    }
}

/// What a whole tree has of each node beside its state and attributes.
#[derive(Clone, Copy, Default)]
pub(super) struct With {
    pub(super) id: bool,
    pub(super) generated: bool,
}

/// Nodes with their states, attributes and children, by name.
pub(super) struct Full<'a> {
    pub(super) tree: &'a Snapshot,
    pub(super) ids: Vec<NodeId>,
    pub(super) with: With,
}

impl Serialize for Full<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for id in &self.ids {
            let whole = Whole { tree: self.tree, id: *id, with: self.with };
            map.serialize_entry(&*self.tree.node(*id).name, &whole)?;
        }
        map.end()
    }
}

struct Whole<'a> {
    tree: &'a Snapshot,
    id: NodeId,
    with: With,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { tree, id, with } = *self;
        let node = tree.node(id);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", node.kind.word())?;
        if with.id {
            map.serialize_entry("id", &tree.path(id))?;
        }
        let state = serde_json::json!({
            "node": node.state.word(),
            "default": node.displayed().word(),
        });
        map.serialize_entry("state", &state)?;
        map.serialize_entry("attributes", &Attributes { tree, id, with })?;
        let ids = tree.children(id).collect();
        match node.kind {
            Kind::Task => map.serialize_entry("aliases", &Self::below(tree, ids, with))?,
            Kind::Alias => {}
            _ => map.serialize_entry("children", &Self::below(tree, ids, with))?,
        }
        map.end()
    }
}

impl<'a> Whole<'a> {
    const fn below(tree: &'a Snapshot, ids: Vec<NodeId>, with: With) -> Full<'a> {
        Full { tree, ids, with }
    }
}

struct Attributes<'a> {
    tree: &'a Snapshot,
    id: NodeId,
    with: With,
}

/// The place of an attribute among a node's, in `ecflow_http`'s order; others are left out.
const fn place(attribute: &Attribute) -> Option<u8> {
    Some(match attribute {
        Attribute::Label(_) => 0,
        Attribute::Meter(_) => 1,
        Attribute::Event(_) => 2,
        Attribute::Variable(_) => 3,
        Attribute::Limit(_) => 5,
        Attribute::InLimit(_) => 6,
        Attribute::Date(_) => 7,
        Attribute::Day(_) => 8,
        Attribute::Cron(_) => 9,
        Attribute::Time(_) => 10,
        Attribute::Today(_) => 11,
        Attribute::Late(_) => 12,
        Attribute::AutoCancel(_) => 13,
        Attribute::AutoArchive(_) => 14,
        Attribute::AutoRestore(_) => 15,
        Attribute::Repeat(_) => 16,
        Attribute::Complete(_) => 17,
        Attribute::Trigger(_) => 18,
        Attribute::Queue(_) => 19,
        Attribute::Zombie(_) => 20,
        Attribute::Generic(_) => 21,
        Attribute::Aviso(_) => 23,
        Attribute::Mirror(_) => 24,
        _ => return None,
    })
}

/// The place of what a node makes.
const MADE: u8 = 4;
/// The place of flags.
const FLAGS: u8 = 22;

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { tree, id, with } = *self;
        let node = tree.node(id);
        let mut all: Vec<(u8, &Attribute)> =
            node.attributes.iter().filter_map(|one| Some((place(one)?, one))).collect();
        all.sort_by_key(|(place, _)| *place);
        let made = if with.generated { made(tree, id) } else { Vec::new() };
        let mut list = serializer.serialize_seq(None)?;
        let mut rest = all.into_iter().peekable();
        for until in [MADE, FLAGS, u8::MAX] {
            while let Some((_, attribute)) = rest.next_if(|(place, _)| *place < until) {
                list.serialize_element(&One { tree, attribute, is_typed: true })?;
            }
            if until == MADE {
                for variable in &made {
                    list.serialize_element(&Made { variable, is_typed: true })?;
                }
            } else if until == FLAGS && !node.flags.is_empty() {
                let flags = node.flags.to_string();
                let flag = serde_json::json!({ "value": flags, "type": "flag" });
                list.serialize_element(&flag)?;
            }
        }
        list.end()
    }
}

/// All attributes of a node by their kinds, with the variables above it.
pub(super) struct ByKind<'a> {
    pub(super) tree: &'a Snapshot,
    pub(super) id: NodeId,
}

/// The members that are lists, with the word of their attributes.
const LISTS: [(&str, &str); 10] = [
    ("meters", "meter"),
    ("limits", "limit"),
    ("inlimits", "inlimit"),
    ("events", "event"),
    ("labels", "label"),
    ("dates", "date"),
    ("days", "day"),
    ("crons", "cron"),
    ("times", "time"),
    ("todays", "today"),
];

impl Serialize for ByKind<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { tree, id } = *self;
        let of =
            |word: &'static str| Of { tree, id, is_it: move |one: &Attribute| one.word() == word };
        let mut map = serializer.serialize_map(None)?;
        for (name, word) in LISTS {
            map.serialize_entry(name, &of(word))?;
        }
        map.serialize_entry("repeat", &of("repeat").first())?;
        map.serialize_entry("path", &tree.path(id))?;
        map.serialize_entry("trigger", &of("trigger").first())?;
        map.serialize_entry("complete", &of("complete").first())?;
        let flags = tree.node(id).flags.to_string();
        map.serialize_entry("flag", &serde_json::json!({ "value": flags }))?;
        map.serialize_entry("late", &of("late").first())?;
        for (name, word) in [("zombies", "zombie"), ("generics", "generic"), ("queues", "queue")] {
            map.serialize_entry(name, &of(word))?;
        }
        for word in ["autocancel", "autoarchive", "autorestore"] {
            map.serialize_entry(word, &of(word).first())?;
        }
        for (name, word) in [("avisos", "aviso"), ("mirrors", "mirror")] {
            map.serialize_entry(name, &of(word))?;
        }
        map.serialize_entry("variables", &Variables { tree, id })?;
        map.serialize_entry("inherited_variables", &Inherited { tree, id })?;
        map.end()
    }
}

struct Inherited<'a> {
    tree: &'a Snapshot,
    id: NodeId,
}

impl Serialize for Inherited<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Level<'a, V>(&'a str, String, V);
        impl<V: Serialize> Serialize for Level<'_, V> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("name", self.0)?;
                map.serialize_entry("path", &self.1)?;
                map.serialize_entry("variables", &self.2)?;
                map.end()
            }
        }
        let Self { tree, id } = *self;
        let mut list = serializer.serialize_seq(None)?;
        for at in tree.upwards(id).skip(1) {
            let variables = Variables { tree, id: at };
            list.serialize_element(&Level(&tree.node(at).name, tree.path(at), variables))?;
        }
        list.serialize_element(&Level("server", "/".to_owned(), OfServer(tree)))?;
        list.end()
    }
}
