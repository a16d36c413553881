//! What has been read of a definition so far, and the attributes of the node that is being read.

use std::collections::HashSet;

use super::check::Place;
use super::error::{DefinitionError, Fault, Read, fault};
use super::line::Lines;
use super::recent::Expressions;
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
    pub(super) names: HashSet<(u8, Text)>,
    pub(super) text: String,
    pub(super) has_default: bool,
    /// The node has attributes already, which are not in the list yet.
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

/// From how many attributes on names are found by a set.
const FEW: usize = 32;

impl Scratch {
    /// The place of an attribute of this kind and name.
    pub(super) fn find(&self, rank: u8, name: &Text) -> Option<usize> {
        if self.attributes.len() > FEW && !self.names.contains(&(rank, name.clone())) {
            return None;
        }
        let is_it =
            |attribute: &Attribute| attribute.rank() == rank && attribute.name() == Some(name);
        self.attributes.iter().position(is_it)
    }

    pub(super) fn has(&self, rank: u8) -> bool {
        self.attributes.iter().any(|attribute| attribute.rank() == rank)
    }

    pub(super) fn push(&mut self, attribute: Attribute) -> Read<()> {
        if self.attributes.len() == ATTRIBUTES_LIMIT {
            return Err(fault("more than 100000 attributes of one node", "divide the node"));
        }
        if self.attributes.len() == FEW {
            let named = self.attributes.iter();
            let named = named.filter_map(|item| Some((item.rank(), item.name()?.clone())));
            self.names = named.collect();
        }
        if self.attributes.len() >= FEW {
            let name = attribute.name().cloned();
            self.names.extend(name.map(|name| (attribute.rank(), name)));
        }
        self.attributes.push(attribute);
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
    /// Where attributes with references stand.
    pub(super) places: Vec<Place>,
    /// Text of one node, of a server: no suite need be around it.
    pub(super) is_node: bool,
    /// The text is one that this program has kept.
    pub(super) is_kept: bool,
    /// What of nodes isn't in the text.
    pub(super) marks: Marks,
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
            expressions: Expressions::default(),
            node: None,
            kind: Kind::Root,
            scratch: Scratch::default(),
            warnings: Vec::new(),
            places: Vec::new(),
            is_node: false,
            is_kept: false,
            marks: Marks::new(),
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
