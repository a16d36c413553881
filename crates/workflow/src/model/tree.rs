//! The tree of a server: suites, families and tasks under `/`, found by path; changed by the owner,
//! read by anybody who took a [`Snapshot`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

pub use super::adding::{AddError, DEPTH_LIMIT};
use super::attribute::{Attribute, Variable};
use super::changes::Changes;
use super::node::{Arena, Node, NodeId};
use super::state::{Flags, Kind, ServerState, State};
use super::text::{OwnText, Text, Texts};
use super::waiting::Waiting;

/// The longest name of a node or attribute, in bytes.
pub const NAME_LIMIT: usize = 1024;
/// How many lines of a node's edit history are kept.
const HISTORY_LIMIT: usize = 10;

/// What a server has beside its nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Server {
    /// Whether jobs are submitted.
    pub state: ServerState,
    /// Variables of the users.
    pub user_variables: Vec<Variable>,
    /// Variables of the server itself: ECF_HOME, ECF_JOB_CMD …
    pub variables: Vec<Variable>,
    /// Paths that expressions may name though no such node is loaded: `extern`.
    pub externs: BTreeSet<Text>,
    /// The last lines of each path's edit history.
    pub history: BTreeMap<Text, VecDeque<Text>>,
    /// How often calendars have been updated.
    pub calendar_count: i32,
}

/// One state of the whole tree, cheap to take and to copy.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) arena: Arena,
    pub(super) server: Arc<Server>,
    index: Arc<Index>,
    pub(super) state_change_no: u32,
    pub(super) modify_change_no: u32,
}

/// Children by parent and name.
#[derive(Clone, Debug, Default)]
struct Index {
    /// Hashes and numbers: a search reads nodes of an equal hash only, and a wider table none.
    table: HashTable<(u32, NodeId)>,
    hasher: DefaultHashBuilder,
}

/// What the table wants of a hash: its first bits and its last ones.
const fn wide(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

impl Index {
    fn hash(&self, parent: NodeId, name: &str) -> u32 {
        self.hasher.hash_one((parent, name)) as u32
    }

    fn hash_of(&self, arena: &Arena, id: NodeId) -> u32 {
        let node = arena.get(id);
        node.and_then(|node| Some(self.hash(node.parent?, &node.name))).unwrap_or(0)
    }

    fn insert(&mut self, hash: u32, id: NodeId) {
        self.table.insert_unique(wide(hash), (hash, id), |(hash, _)| wide(*hash));
    }

    fn find(&self, hash: u32, arena: &Arena, (parent, name): (NodeId, &str)) -> Option<NodeId> {
        let is_it = |(known, id): &(u32, NodeId)| {
            let is_node = |node: &Node| node.parent == Some(parent) && node.name == *name;
            *known == hash && arena.get(*id).is_some_and(is_node)
        };
        self.table.find(wide(hash), is_it).map(|(_, id)| *id)
    }

    fn remove(&mut self, arena: &Arena, id: NodeId) {
        let hash = self.hash_of(arena, id);
        if let Ok(entry) = self.table.find_entry(wide(hash), |(_, known)| *known == id) {
            entry.remove();
        }
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        let mut arena = Arena::default();
        arena.push(Node::new(Kind::Root, OwnText::from("/")));
        Self {
            arena,
            server: Arc::default(),
            index: Arc::default(),
            state_change_no: 0,
            modify_change_no: 0,
        }
    }
}

/// The children of a node, in order.
#[derive(Clone, Debug)]
pub struct Children<'a> {
    of: &'a Snapshot,
    next: Option<NodeId>,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let id = self.next?;
        self.next = self.of.node(id).next;
        Some(id)
    }
}

impl Snapshot {
    /// The node of this number.
    ///
    /// # Panics
    /// When there never was one: numbers come from this tree.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        self.arena.get(id).expect("a number of this tree")
    }

    /// Whether the node of this number is there: numbers of deleted nodes are given again.
    #[must_use]
    pub fn has(&self, id: NodeId) -> bool {
        id == NodeId::ROOT || self.arena.get(id).is_some_and(|node| node.parent.is_some())
    }

    /// The server's own particulars.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The number of the last change of a state or value.
    #[must_use]
    pub const fn state_change_no(&self) -> u32 {
        self.state_change_no
    }

    /// The number of the last load, delete or other change after which all is sent again.
    #[must_use]
    pub const fn modify_change_no(&self) -> u32 {
        self.modify_change_no
    }

    /// The children of a node: of `/` the suites, of a task its aliases.
    #[must_use]
    pub fn children(&self, id: NodeId) -> Children<'_> {
        Children { of: self, next: self.node(id).first_child }
    }

    /// The suites.
    #[must_use]
    pub fn suites(&self) -> Children<'_> {
        self.children(NodeId::ROOT)
    }

    /// The child of this name.
    #[must_use]
    pub fn child(&self, parent: NodeId, name: &str) -> Option<NodeId> {
        self.index.find(self.index.hash(parent, name), &self.arena, (parent, name))
    }

    /// A node and all above it, up to its suite.
    pub fn upwards(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let above = move |id: &NodeId| self.node(*id).parent;
        std::iter::successors(Some(id), above).filter(|id| *id != NodeId::ROOT)
    }

    /// All nodes below one, it first, in the order of printing.
    #[must_use]
    pub fn walk(&self, from: NodeId) -> Walk<'_> {
        Walk { of: self, from, next: Some(from) }
    }

    /// The suite that a node is in.
    #[must_use]
    pub fn suite(&self, id: NodeId) -> Option<NodeId> {
        self.node(id).suite
    }

    /// How many nodes there are, `/` not counted.
    #[must_use]
    pub fn count(&self) -> usize {
        self.index.table.len()
    }

    /// The bytes of the index of children by name.
    pub(super) fn index_bytes(&self) -> usize {
        self.index.table.allocation_size()
    }

    /// A variable of the user at this node, not above.
    #[must_use]
    pub fn own_variable(&self, id: NodeId, name: &str) -> Option<&OwnText> {
        self.node(id).attributes.iter().find_map(|attribute| match attribute {
            Attribute::Variable(variable) if variable.name == *name => Some(&variable.value),
            _ => None,
        })
    }

    /// A variable of the server: the users' first.
    #[must_use]
    pub fn server_variable(&self, name: &str) -> Option<&OwnText> {
        let all = self.server.user_variables.iter().chain(&self.server.variables);
        all.into_iter().find(|variable| variable.name == *name).map(|variable| &variable.value)
    }

    /// The edit history of a path, oldest first.
    pub fn history(&self, path: &str) -> impl Iterator<Item = &Text> {
        self.server.history.get(path).into_iter().flatten()
    }
}

/// See [`Snapshot::walk`].
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    of: &'a Snapshot,
    from: NodeId,
    next: Option<NodeId>,
}

impl Walk<'_> {
    /// Goes past all that is below the node returned last.
    pub fn skip_below(&mut self, id: NodeId) {
        self.next = self.behind(id);
    }

    fn behind(&self, id: NodeId) -> Option<NodeId> {
        let mut at = id;
        while at != self.from {
            let node = self.of.node(at);
            if node.next.is_some() {
                return node.next;
            }
            at = node.parent?;
        }
        None
    }
}

impl Iterator for Walk<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let id = self.next?;
        self.next = self.of.node(id).first_child.or_else(|| self.behind(id));
        Some(id)
    }
}

/// The owner's tree: a [`Snapshot`] that can be changed, with what finds out who waits for what.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub(super) now: Snapshot,
    pub(super) texts: Texts,
    own_texts: Texts<OwnText>,
    pub(super) waiting: Waiting,
    /// Numbers of deleted nodes: the smallest is given first, so that it follows from the nodes.
    pub(super) free: BTreeSet<NodeId>,
    pub(super) changes: Changes,
}

impl Deref for Tree {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.now
    }
}

/// What is left of deleted nodes: dropping it takes as long as there are nodes.
#[derive(Clone, Debug, Default)]
pub struct Discarded {
    nodes: Vec<Node>,
    arena: Arena,
    _index: Arc<Index>,
    _waiting: Waiting,
}

impl Discarded {
    /// About how many nodes they were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len() + self.arena.len()
    }
}

// An effect is one, whatever its nodes were.
impl PartialEq for Discarded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Discarded {}

impl Tree {
    /// An empty tree with room for this many nodes.
    pub(crate) fn with_room(count: usize) -> Self {
        let mut tree = Self::default();
        let index = Arc::make_mut(&mut tree.now.index);
        // It is empty: nothing is to be hashed again.
        index.table.reserve(count, |(hash, _)| wide(*hash));
        tree
    }

    /// One state of the tree, for whoever reads it beside further changes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.now.clone()
    }

    /// The text that equals this one, shared with others.
    pub fn share(&mut self, text: &str) -> Text {
        self.texts.share(text)
    }

    /// The text that equals this one, shared with others where it is long.
    pub(crate) fn own_text(&mut self, text: &str) -> OwnText {
        if text.len() <= OwnText::SHORT { text.into() } else { self.own_texts.share(text) }
    }

    /// The texts that are shared.
    pub(crate) fn texts_mut(&mut self) -> &mut Texts {
        &mut self.texts
    }

    /// The server's particulars, to be changed.
    pub fn server_mut(&mut self) -> &mut Server {
        Arc::make_mut(&mut self.now.server)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.now.arena.get_mut(id).expect("a number of this tree")
    }

    /// Changes a node while a definition is read, without a change number.
    pub(crate) fn edit(&mut self, id: NodeId) -> &mut Node {
        self.node_mut(id)
    }

    /// Adds a node as the last child; `at` places it before the child of that place.
    ///
    /// # Errors
    /// A child of this name is there, or the node may not be there.
    pub fn add(
        &mut self,
        parent: NodeId,
        kind: Kind,
        name: OwnText,
        at: Option<usize>,
    ) -> Result<NodeId, AddError> {
        let mut node = Node::new(kind, name);
        if kind == Kind::Alias {
            // It never begins with its suite.
            node.state = State::Queued;
        }
        self.put(parent, node, at)
    }

    /// The same of a node with all that is its own.
    pub(crate) fn put(
        &mut self,
        parent: NodeId,
        mut node: Node,
        at: Option<usize>,
    ) -> Result<NodeId, AddError> {
        let kind = node.kind;
        let hash = self.check_child(parent, kind, &node.name)?;
        (node.parent, node.suite) = (Some(parent), self.node(parent).suite);
        let id = match self.free.pop_first() {
            Some(id) => {
                *self.node_mut(id) = node;
                self.changes.given_again(self.now.state_change_no, id);
                id
            }
            None => self.now.arena.push(node).ok_or(AddError::Full)?,
        };
        if kind == Kind::Suite {
            self.node_mut(id).suite = Some(id);
        }
        self.link(parent, id, at);
        Arc::make_mut(&mut self.now.index).insert(hash, id);
        Ok(id)
    }

    /// Whether there may be a node of this kind and name below another one; returns the hash of
    /// its place.
    ///
    /// # Errors
    /// There may not.
    pub(crate) fn check_child(
        &self,
        parent: NodeId,
        kind: Kind,
        name: &str,
    ) -> Result<u32, AddError> {
        let above = self.node(parent);
        let fits = match kind {
            Kind::Root => false,
            Kind::Suite => above.kind == Kind::Root,
            Kind::Family | Kind::Task => matches!(above.kind, Kind::Suite | Kind::Family),
            Kind::Alias => above.kind == Kind::Task,
        };
        if !fits {
            return Err(AddError::Kind { parent: above.kind.word(), child: kind.word() });
        }
        let hash = self.index.hash(parent, name);
        if self.index.find(hash, &self.arena, (parent, name)).is_some() {
            return Err(AddError::Duplicate(self.path(parent)));
        }
        if self.upwards(parent).count() >= DEPTH_LIMIT {
            return Err(AddError::Depth);
        }
        Ok(hash)
    }

    fn link(&mut self, parent: NodeId, id: NodeId, at: Option<usize>) {
        let before = match at {
            None => self.node(parent).last_child,
            Some(0) => None,
            Some(place) => self.children(parent).take(place).last(),
        };
        let next = match before {
            None => self.node_mut(parent).first_child.replace(id),
            Some(before) => self.node_mut(before).next.replace(id),
        };
        // The node itself is next to none before.
        match next {
            Some(_) => self.node_mut(id).next = next,
            None => self.node_mut(parent).last_child = Some(id),
        }
    }

    fn unlink(&mut self, parent: NodeId, id: NodeId) {
        let before = self.children(parent).take_while(|child| *child != id).last();
        let next = self.node_mut(id).next.take();
        match before {
            None => self.node_mut(parent).first_child = next,
            Some(before) => self.node_mut(before).next = next,
        }
        if next.is_none() {
            self.node_mut(parent).last_child = before;
        }
    }

    /// Puts the children of a node into another order: each once.
    pub(super) fn reorder(&mut self, parent: NodeId, order: &[NodeId]) {
        self.node_mut(parent).first_child = order.first().copied();
        self.node_mut(parent).last_child = order.last().copied();
        for (place, id) in order.iter().enumerate() {
            self.node_mut(*id).next = order.get(place + 1).copied();
        }
    }

    /// Removes a node and all below it, without telling anybody; returns what is left of them.
    pub(super) fn remove(&mut self, id: NodeId) -> Discarded {
        let Some(parent) = self.node(id).parent else { return Discarded::default() };
        self.unlink(parent, id);
        let gone: Vec<NodeId> = self.walk(id).collect();
        let index = Arc::make_mut(&mut self.now.index);
        for id in &gone {
            index.remove(&self.now.arena, *id);
        }
        if self.now.index.table.is_empty() {
            return self.remove_all();
        }
        let mut nodes = Vec::with_capacity(gone.len());
        for id in &gone {
            let none = Node::new(Kind::Task, OwnText::default());
            nodes.push(std::mem::replace(self.node_mut(*id), none));
        }
        self.free.extend(gone);
        Discarded { nodes, ..Discarded::default() }
    }

    /// Removes all nodes but the root, without looking at them, and returns what is left of them.
    pub(super) fn remove_all(&mut self) -> Discarded {
        let mut root = self.node(NodeId::ROOT).clone();
        (root.first_child, root.last_child) = (None, None);
        let arena = std::mem::take(&mut self.now.arena);
        self.now.arena.push(root);
        self.free = BTreeSet::new();
        self.changes.calendars.clear();
        self.changes.given_again(self.now.state_change_no, NodeId::ROOT);
        let index = std::mem::take(&mut self.now.index);
        let waiting = std::mem::take(&mut self.waiting);
        (self.texts, self.own_texts) = Default::default();
        Discarded { nodes: Vec::new(), arena, _index: index, _waiting: waiting }
    }

    /// Takes an arena in place of its own, whose nodes are the same under other numbers.
    pub(super) fn take_arena(&mut self, arena: Arena, free: BTreeSet<NodeId>) {
        self.now.arena = arena;
        let ids: Vec<NodeId> = self.walk(NodeId::ROOT).collect();
        let mut index = Index::default();
        index.table.reserve(ids.len(), |(hash, _)| wide(*hash));
        ids.iter().skip(1).for_each(|id| {
            let hash = index.hash_of(&self.now.arena, *id);
            index.insert(hash, *id);
        });
        self.now.index = Arc::new(index);
        self.free = free;
    }

    /// Takes the nodes of another tree, which is indexed, in place of its own: there are none.
    pub(super) fn take_nodes(&mut self, from: Self) {
        let mut root = self.node(NodeId::ROOT).clone();
        self.now.arena = from.now.arena;
        self.now.index = from.now.index;
        (self.texts, self.own_texts) = (from.texts, from.own_texts);
        (self.waiting, self.free) = (from.waiting, from.free);
        let read = self.node(NodeId::ROOT);
        (root.first_child, root.last_child) = (read.first_child, read.last_child);
        *self.node_mut(NodeId::ROOT) = root;
    }

    /// The next state change number, which nothing has had before.
    pub(super) fn next_state_no(&mut self) -> u32 {
        self.now.state_change_no = self.now.state_change_no.saturating_add(1);
        self.now.state_change_no
    }

    /// The next modify change number: clients get all again.
    pub(super) fn next_modify_no(&mut self) -> u32 {
        self.now.modify_change_no = self.now.modify_change_no.saturating_add(1);
        self.now.modify_change_no
    }

    /// Sets both numbers, of a checkpoint or journal: they go on above them.
    pub fn set_change_numbers(&mut self, state: u32, modify: u32) {
        self.now.state_change_no = state;
        self.now.modify_change_no = modify;
        self.changes.forget(state);
    }

    /// Adds a line to a path's edit history; the oldest of more than ten goes.
    pub fn add_history(&mut self, path: &str, line: &str) {
        let history = &mut self.server_mut().history;
        let lines = match history.get_mut(path) {
            Some(lines) => lines,
            None => history.entry(Text::from(path)).or_default(),
        };
        if lines.len() == HISTORY_LIMIT {
            lines.pop_front();
        }
        lines.push_back(Text::from(line));
    }

    /// Sets the state and flags of the server itself, as a definition states them.
    pub(crate) fn set_root(&mut self, state: State, flags: Flags) {
        let root = self.node_mut(NodeId::ROOT);
        root.state = state;
        root.flags = flags;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_tree_without_nodes_nothing_is_kept() {
        let text = "suite s\n  limit l 3\n  task a\n    edit V 'a value of more than 23 bytes'\n  \
                    task b\n    trigger a == complete\n    inlimit l\n    time 10:00\nendsuite\n";
        let mut tree = crate::definition::parse(text, "t").expect("a definition").tree;
        tree.index_all();
        let snapshot = tree.snapshot();
        assert!(!tree.texts.is_empty() && !tree.own_texts.is_empty());
        let gone = tree.remove_all();
        assert_eq!((gone.count(), tree.now.arena.len(), tree.count()), (4, 1, 0));
        assert!(tree.texts.is_empty() && tree.own_texts.is_empty() && tree.free.is_empty());
        let Waiting { by_node, by_limit, missing, timed, left } = &tree.waiting;
        assert!(by_node.is_empty() && by_limit.is_empty());
        assert!(missing.is_empty() && timed.is_empty() && left.is_empty());
        drop(gone);
        assert!(!snapshot.arena.is_shared(), "only the snapshot has the nodes");
    }
}
