//! A node of the tree, and the arena in which nodes lie.
//!
//! The arena is a vector of pages of chunks of nodes, each behind a counted pointer. A snapshot
//! copies the vector of pages, one pointer for 4,096 nodes; the first change of a node after it
//! copies that node's page (64 pointers) and chunk (64 nodes), so that the owner never waits and a
//! reader sees one state. A persistent map would copy a path of its own tree for each change; here
//! the numbers of nodes are the keys, reading is three steps, and memory is that of the nodes.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::attribute::Attribute;
use super::state::{Displayed, Flags, Kind, State};
use super::text::{OwnText, Text};
use super::time::Duration;

/// The number of a node in its arena. Numbers of deleted nodes are given again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(NonZeroU32);

impl NodeId {
    /// The server, path `/`.
    pub const ROOT: Self = Self(NonZeroU32::MIN);

    /// Its place in the arena.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    pub(super) fn of_index(index: usize) -> Option<Self> {
        u32::try_from(index + 1).ok().and_then(NonZeroU32::new).map(Self)
    }
}

/// What a task or alias has once it has been submitted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Job {
    /// The password that its job was given.
    pub password: Text,
    /// The process or queue identifier that its job has reported.
    pub rid: Text,
    /// Why it was aborted.
    pub abort_reason: Text,
    /// How often it has been tried.
    pub try_no: i32,
    /// The number of the last alias.
    pub alias_no: i32,
}

/// A node: a suite, family, task or alias, or the server.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name; of the server `/`.
    pub name: OwnText,
    /// The node that it is in.
    pub parent: Option<NodeId>,
    /// The suite that it is in, or is.
    pub suite: Option<NodeId>,
    /// The first of its children.
    pub first_child: Option<NodeId>,
    /// The last of its children.
    pub last_child: Option<NodeId>,
    /// The sibling behind it.
    pub next: Option<NodeId>,
    /// What it is.
    pub kind: Kind,
    /// Its state.
    pub state: State,
    /// The state that begin and requeue give it.
    pub default: Displayed,
    /// Whether an operator has suspended it.
    pub is_suspended: bool,
    /// Of a suite: whether it has begun.
    pub is_begun: bool,
    /// Its flags.
    pub flags: Flags,
    /// When its state last changed: how long its suite had run.
    pub since: Duration,
    /// How long the state before had lasted.
    pub ran: Duration,
    /// Its attributes, by [`Attribute::rank`].
    pub attributes: Arc<[Attribute]>,
    /// Of a task or alias that was submitted.
    pub job: Option<Arc<Job>>,
}

impl Node {
    /// A node without parent, children or attributes.
    #[must_use]
    pub fn new(kind: Kind, name: OwnText) -> Self {
        Self {
            name,
            parent: None,
            suite: None,
            first_child: None,
            last_child: None,
            next: None,
            kind,
            state: State::Unknown,
            default: Displayed::Queued,
            is_suspended: false,
            is_begun: false,
            flags: Flags::default(),
            since: Duration::ZERO,
            ran: Duration::ZERO,
            attributes: none(),
            job: None,
        }
    }

    /// What it shows: its state, or suspended.
    #[must_use]
    pub fn displayed(&self) -> Displayed {
        if self.is_suspended { Displayed::Suspended } else { self.state.into() }
    }

    /// Its job's particulars; of a node without any, the defaults.
    #[must_use]
    pub fn job(&self) -> Job {
        self.job.as_deref().cloned().unwrap_or_default()
    }

    /// How often it has been tried.
    #[must_use]
    pub fn try_no(&self) -> i32 {
        self.job.as_ref().map_or(0, |job| job.try_no)
    }

    /// Its job's particulars, to be changed.
    pub(super) fn job_mut(&mut self) -> &mut Job {
        Arc::make_mut(self.job.get_or_insert_default())
    }

    /// Its attributes, to be changed in place.
    pub(super) fn attributes_mut(&mut self) -> &mut [Attribute] {
        if self.attributes.is_empty() {
            // It is shared by all that have none.
            return &mut [];
        }
        Arc::make_mut(&mut self.attributes)
    }
}

thread_local! {
    static NONE: Arc<[Attribute]> = Arc::new([]);
}

/// The one empty list of attributes of this thread.
fn none() -> Arc<[Attribute]> {
    NONE.with(Arc::clone)
}

const CHUNK: usize = 64;
const PAGE: usize = CHUNK * CHUNK;

type Chunk = Vec<Node>;
type Page = Vec<Arc<Chunk>>;

/// Nodes by number; cloned in one step per 4,096 of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    pages: Vec<Arc<Page>>,
    len: usize,
}

impl Arena {
    /// The same nodes, none of which, nor any list of attributes, is shared.
    pub(super) fn copied(&self) -> Self {
        let node = |node: &Node| Node {
            attributes: match node.attributes.is_empty() {
                true => Arc::clone(&node.attributes),
                false => node.attributes.iter().cloned().collect(),
            },
            ..node.clone()
        };
        let chunk = |chunk: &Arc<Chunk>| Arc::new(chunk.iter().map(node).collect::<Chunk>());
        let page = |page: &Arc<Page>| Arc::new(page.iter().map(chunk).collect::<Page>());
        Self { pages: self.pages.iter().map(page).collect(), len: self.len }
    }

    /// How many numbers are in use, free ones included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether another one has some of its nodes.
    #[cfg(test)]
    pub(super) fn is_shared(&self) -> bool {
        self.pages.iter().any(|page| {
            Arc::strong_count(page) > 1 || page.iter().any(|chunk| Arc::strong_count(chunk) > 1)
        })
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Node> {
        let index = id.index();
        self.pages.get(index / PAGE)?.get(index / CHUNK % CHUNK)?.get(index % CHUNK)
    }

    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        let index = id.index();
        let page = Arc::make_mut(self.pages.get_mut(index / PAGE)?);
        Arc::make_mut(page.get_mut(index / CHUNK % CHUNK)?).get_mut(index % CHUNK)
    }

    /// Adds a node at the end; `None` when all numbers are used.
    pub(super) fn push(&mut self, node: Node) -> Option<NodeId> {
        let id = NodeId::of_index(self.len)?;
        if self.len.is_multiple_of(PAGE) {
            self.pages.push(Arc::new(Vec::with_capacity(1)));
        }
        let page = Arc::make_mut(self.pages.last_mut()?);
        if self.len.is_multiple_of(CHUNK) {
            page.push(Arc::new(Vec::with_capacity(CHUNK)));
        }
        Arc::make_mut(page.last_mut()?).push(node);
        self.len += 1;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_keeps_its_state_and_a_node_is_small() {
        let mut arena = Arena::default();
        let nodes = PAGE + 70;
        for number in 0..nodes {
            let name = OwnText::from(number.to_string());
            assert!(arena.push(Node::new(Kind::Task, name)).is_some());
        }
        let before = arena.clone();
        let id = NodeId::of_index(PAGE + 3).expect("a number");
        arena.get_mut(id).expect("a node").state = State::Active;
        assert_eq!(before.get(id).map(|node| node.state), Some(State::Unknown));
        assert_eq!(arena.get(id).map(|node| node.state), Some(State::Active));
        assert_eq!((arena.len(), before.len()), (nodes, nodes));
        assert!(size_of::<Node>() <= 112, "{}", size_of::<Node>());
    }

    #[test]
    fn a_copy_has_the_same_nodes_and_shares_none() {
        let mut arena = Arena::default();
        for number in 0..CHUNK + 6 {
            let name = OwnText::from(number.to_string());
            assert!(arena.push(Node::new(Kind::Task, name)).is_some());
        }
        let copy = arena.copied();
        assert!(!arena.is_shared() && !copy.is_shared());
        let name = |arena: &Arena, index| {
            NodeId::of_index(index).and_then(|id| Some(arena.get(id)?.name.clone()))
        };
        assert!((0..CHUNK + 7).all(|index| name(&arena, index) == name(&copy, index)));
        assert_eq!((copy.len(), arena.len()), (CHUNK + 6, CHUNK + 6));
    }
}
