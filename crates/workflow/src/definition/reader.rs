//! What has been read of a definition so far, and the attributes of the node that is being read.

use std::collections::HashMap;

use super::check::Place;
use super::error::{DefinitionError, Fault, Read, fault};
use super::line::Lines;
use super::recent::{Expressions, RECENT};
use crate::model::{Attribute, Flags, Kind, Marks, NodeId, Part, State, Text, Tree};

/// The most attributes of one node.
pub const ATTRIBUTES_LIMIT: usize = 100_000;

/// How a text was printed, and so what it states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// The definition alone, as people write it.
    #[default]
    Defs,
    /// With the state, for people: indented, with generated variables and evaluated triggers.
    State,
    /// With the state, for a client.
    Net,
    /// With the state and the edit history: a checkpoint.
    Migrate,
}

impl Style {
    /// Its word behind `defs_state`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Defs => "DEFS",
            Self::State => "STATE",
            Self::Net => "NET",
            Self::Migrate => "MIGRATE",
        }
    }

    /// Whether a server wrote it for programs: it is taken as it is.
    #[must_use]
    pub const fn is_persistent(self) -> bool {
        matches!(self, Self::Net | Self::Migrate)
    }

    /// Whether it states states.
    #[must_use]
    pub const fn has_state(self) -> bool {
        !matches!(self, Self::Defs)
    }
}

/// The attributes of the node that is being read.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) attributes: Vec<Attribute>,
    /// The places of those that have a key, where they are many.
    places: HashMap<Key, usize>,
    /// The ranks that are among them, as bits.
    ranks: u32,
    pub(super) text: String,
    pub(super) has_default: bool,
    /// The node has attributes already, which are not in the list yet.
    pub(super) has_before: bool,
    /// They are in it again.
    pub(super) is_resumed: bool,
    /// The parts of its complete and trigger expressions.
    pub(super) conditions: [Option<Pending>; 2],
}

/// An expression whose parts are being read.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) parts: Vec<Part>,
    pub(super) free: bool,
    pub(super) line: usize,
}

/// From how many attributes on they are found by their keys.
const FEW: usize = 32;

/// A rank, and a text that is an attribute's own among those of its rank.
type Key = (u8, Text);

/// The rank of events by their numbers.
const NUMBERED: u8 = u8::MAX;

/// The keys of an attribute: another one that has one of them is a second one.
fn keys(attribute: &Attribute) -> impl Iterator<Item = Key> {
    let rank = attribute.rank();
    let (mut number, mut own) = (None, attribute.name().cloned());
    match attribute {
        Attribute::Event(event) => {
            own = Some(event.name.clone()).filter(|name| !name.is_empty());
            number = event.number.map(|number| (NUMBERED, Text::from(number.to_string())));
        }
        Attribute::InLimit(one) => own = Some(Text::from(format!("{}:{}", one.path, one.name))),
        Attribute::Verify(one) => {
            own = Some(Text::from(format!("{}:{}", one.state.word(), one.expected)));
        }
        _ => {}
    }
    own.map(|own| (rank, own)).into_iter().chain(number)
}

impl Scratch {
    /// The place of an attribute of this kind and name.
    pub(super) fn find(&self, rank: u8, name: &Text) -> Option<usize> {
        if self.attributes.len() > FEW {
            return self.places.get(&(rank, name.clone())).copied();
        }
        let is_it =
            |attribute: &Attribute| attribute.rank() == rank && attribute.name() == Some(name);
        self.attributes.iter().position(is_it)
    }

    /// Whether there is an attribute of this rank.
    pub(super) const fn has(&self, rank: u8) -> bool {
        self.ranks >> rank & 1 == 1
    }

    /// Whether there is one for which `is_it` holds: one that has a key of this one's.
    pub(super) fn has_same(&self, new: &Attribute, is_it: impl Fn(&Attribute) -> bool) -> bool {
        if self.attributes.len() > FEW {
            return keys(new).any(|key| self.places.contains_key(&key));
        }
        self.attributes.iter().any(is_it)
    }

    /// Notes by what the attribute of a place is found.
    fn note(&mut self, place: usize) {
        for key in keys(&self.attributes[place]) {
            self.places.entry(key).or_insert(place);
        }
    }

    /// Takes the attribute of a place out.
    pub(super) fn remove(&mut self, at: usize) -> Attribute {
        let gone = self.attributes.remove(at);
        self.ranks = self.attributes.iter().fold(0, |ranks, one| ranks | 1 << one.rank());
        self.places.clear();
        if self.attributes.len() > FEW {
            (0..self.attributes.len()).for_each(|place| self.note(place));
        }
        gone
    }

    /// The attributes have been taken.
    pub(super) fn clear(&mut self) {
        self.attributes.clear();
        self.places.clear();
        self.ranks = 0;
        (self.has_default, self.has_before, self.is_resumed) = (false, false, false);
    }

    pub(super) fn push(&mut self, attribute: Attribute) -> Read<()> {
        if self.attributes.len() == ATTRIBUTES_LIMIT {
            return Err(fault("more than 100000 attributes of one node", "divide the node"));
        }
        self.ranks |= 1 << attribute.rank();
        self.attributes.push(attribute);
        let count = self.attributes.len();
        match count {
            ..=FEW => {}
            // They are many from here on.
            _ if count == FEW + 1 => (0..count).for_each(|place| self.note(place)),
            _ => self.note(count - 1),
        }
        Ok(())
    }

    /// Adds an attribute whose name may be there once.
    pub(super) fn push_named(&mut self, attribute: Attribute, is_checked: bool) -> Read<()> {
        let (rank, word) = (attribute.rank(), attribute.word());
        let name = attribute.name().cloned().unwrap_or_default();
        if is_checked && self.find(rank, &name).is_some() {
            return Err(fault(
                format!("a second {word} of the name '{name}'"),
                "give it another name, or drop one",
            ));
        }
        self.push(attribute)
    }

    /// Adds an attribute that a node has once.
    pub(super) fn push_only(&mut self, attribute: Attribute) -> Read<()> {
        if self.has(attribute.rank()) {
            return Err(fault(format!("a second {}", attribute.word()), "a node has one at most"));
        }
        self.push(attribute)
    }
}

/// A text that is being read, and the tree that comes of it.
pub(super) struct Reader<'a> {
    pub(super) tree: Tree,
    pub(super) lines: Lines<'a>,
    pub(super) file: &'a str,
    pub(super) style: Style,
    pub(super) expressions: Expressions,
    pub(super) node: Option<NodeId>,
    pub(super) kind: Kind,
    pub(super) scratch: Scratch,
    pub(super) warnings: Vec<DefinitionError>,
    /// The nodes around this one that have had attributes behind children, and what they have.
    pub(super) resumed: Vec<(NodeId, Scratch)>,
    /// Where attributes with references stand.
    pub(super) places: Vec<Place>,
    /// Text of one node, of a server: no suite need be around it.
    pub(super) is_node: bool,
    /// The text is one that this program has kept.
    pub(super) is_kept: bool,
    /// What of nodes isn't in the text.
    pub(super) marks: Marks,
    /// What is wrong with the first expression of a server's text that has too many terms.
    pub(super) too_long: Option<DefinitionError>,
}

/// A node of a large definition has about this much text with its attributes. The index has room
/// for as many nodes at once: it is a twentieth of the text, and to let it grow takes longer.
const BYTES_OF_NODE: usize = 256;

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, file: &'a str) -> Self {
        Self {
            tree: Tree::with_room(text.len() / BYTES_OF_NODE),
            lines: Lines::new(text),
            file,
            style: Style::Defs,
            expressions: Expressions::remembering(RECENT),
            node: None,
            kind: Kind::Root,
            scratch: Scratch::default(),
            warnings: Vec::new(),
            resumed: Vec::new(),
            places: Vec::new(),
            is_node: false,
            is_kept: false,
            marks: Marks::new(),
            too_long: None,
        }
    }

    /// Notes what is wrong with a line that is passed over; of many the first hundred.
    pub(super) fn warn(&mut self, fault: Fault) {
        if self.warnings.len() < 100 {
            let warning = self.error(fault);
            self.warnings.push(warning);
        }
    }

    pub(super) fn error(&self, fault: Fault) -> DefinitionError {
        let Fault { message, fix } = fault;
        DefinitionError { file: self.file.to_owned(), line: self.lines.number, message, fix }
    }

    /// Sets the state of the server itself.
    pub(super) fn root(&mut self, state: State, flags: Flags) {
        self.tree.set_root(state, flags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    #[test]
    fn of_many_attributes_each_is_found_by_its_key() {
        let lines = |n: usize| format!("edit V{n} {n}\nevent {n} e{n}\ninlimit /t:l{n}\n");
        let verify = |n: usize| format!("verify complete:{n}\n");
        let all: String = (0..2 * FEW).flat_map(|n| [lines(n), verify(n)]).collect();
        let with = |line: &str| {
            format!("suite t\nendsuite\nsuite s\ntask a\ntrigger 1 == 1\n{all}{line}\n")
        };
        for double in ["event 7 other", "event 700 e7", "inlimit /t:l7", "verify complete:7"] {
            let refused = parse(&with(double), "t").map(|_| ()).map_err(|why| why.message);
            assert!(refused.is_err_and(|why| why.contains("a second")), "{double}");
        }
        // Behind a child, with places that have changed.
        let more = "alias x\nendalias\ntrigger -a 2 == 2\nedit V7 new\nedit V700 more\ninlimit l7";
        let text = with(more).replace("suite t\n", "#5.9.2\ndefs_state NET\nsuite t\n");
        let tree = parse(&text, "t").expect("a definition").tree;
        let task = tree.find("/s/a").expect("a task");
        let value = |name| tree.own_variable(task, name).map(ToString::to_string);
        let known = [value("V6"), value("V7"), value("V8"), value("V700")];
        assert_eq!(known, ["6", "new", "8", "more"].map(|value| Some(value.to_owned())));
        assert_eq!(tree.node(task).attributes.len(), 8 * FEW + 3);
    }

    #[test]
    fn attributes_between_children_are_all_on_their_node_however_often_they_are() {
        let turn = |n| {
            let more = format!("trigger -a {n} == {n}\nlimit l{n} 1\n");
            format!("task t{n}\nendtask\nedit V{n} {n}\n{more}edit V 'n{n}'\n")
        };
        let turns = 2_000;
        let all: String = (0..turns).map(turn).collect();
        // The families end with their suite.
        let text = format!("suite s\nfamily f\nlimit own 1\ntrigger 1 == 1\n{all}endsuite\n");
        let tree = parse(&text, "t").expect("a definition").tree;
        let family = tree.find("/s/f").expect("a family");
        let value = |name: &str| tree.own_variable(family, name).map(ToString::to_string);
        for n in [0, 1, turns - 1] {
            assert_eq!(value(&format!("V{n}")), Some(n.to_string()));
        }
        assert_eq!(value("V"), Some(format!("n{}", turns - 1)));
        let all = &tree.node(family).attributes;
        let Attribute::Trigger(condition) = &all[0] else { panic!("{:?}", all[0]) };
        assert_eq!(condition.expression.parts.len(), turns + 1);
        assert_eq!((all.len(), tree.children(family).count()), (2 * turns + 3, turns));
    }

    #[test]
    fn a_fault_of_what_stands_behind_children_has_its_line() {
        let with = |line: &str| {
            format!("suite s\nevent a\ntask t\nendtask\nmeter m 0 9\ntask u\n{line}\nendsuite\n")
        };
        for (line, number) in
            [("endtask\nevent a", 8), ("endtask\nmeter m 0 9", 8), ("trigger x ==", 7)]
        {
            let refused = parse(&with(line), "t").map(|_| ()).expect_err(line);
            assert_eq!(refused.line, number, "{refused}");
        }
        // What may be said anew behind a child was taken before, too.
        assert!(parse(&with("endtask\ndefstatus complete\ntask v\ndefstatus queued"), "t").is_ok());
    }
}
