//! A part of a tree: the server and its nodes down to some level, bodies of nodes on demand, and
//! of either what has changed since a client has asked last. All of one answer is of one moment.
//!
//! What is cut out is a small tree, in which some nodes are marked: there is nothing of theirs, or
//! not all of what is below them. [`Tree::take_cut`] brings a client's tree up to it.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::{Aspect, Changed};
use super::node::{Node, NodeId};
use super::state::Kind;
use super::tree::{AddError, Server, Snapshot, Tree};

/// As many levels as there are.
pub const ALL_LEVELS: u32 = u32::MAX;

/// What of a node isn't in a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// Its own particulars are not: a client has them.
    pub is_bare: bool,
    /// Not all of its children are: a client has the others.
    pub has_others: bool,
    /// It has children, and none is: a client has not asked for them.
    pub is_cut: bool,
}

/// The nodes of which not all is in a tree.
pub type Marks = BTreeMap<NodeId, Mark>;

impl Mark {
    /// A node that a client has, on the way to another.
    const KNOWN: Self = Self { is_bare: true, has_others: true, is_cut: false };
    /// The words of its bits.
    const WORDS: [&'static str; 3] = ["bare", "others", "cut"];

    /// As bits: bare 1, others 2, cut 4.
    #[must_use]
    pub fn bits(self) -> u8 {
        u8::from(self.is_bare) | u8::from(self.has_others) << 1 | u8::from(self.is_cut) << 2
    }

    /// The mark of these bits.
    #[must_use]
    pub fn of_bits(bits: u8) -> Option<Self> {
        let has = |bit: u8| bits & bit != 0;
        (bits < 8).then(|| Self { is_bare: has(1), has_others: has(2), is_cut: has(4) })
    }

    /// As words.
    #[must_use]
    pub fn words(self) -> String {
        let has =
            |(bit, word): (usize, &'static str)| (self.bits() >> bit & 1 == 1).then_some(word);
        let words: Vec<&str> = Self::WORDS.into_iter().enumerate().filter_map(has).collect();
        words.join(",")
    }

    /// The mark of these words.
    #[must_use]
    pub fn of_words(words: &str) -> Option<Self> {
        let bit = |word| Self::WORDS.iter().position(|known| *known == word).map(|bit| 1 << bit);
        let bits = words.split(',').try_fold(0, |bits: u8, word| Some(bits | bit(word)?))?;
        Self::of_bits(bits)
    }

    /// What a client that lacked this of a node lacks, once it has taken what isn't marked so.
    const fn less(self, taken: Self, has_children: bool) -> Self {
        let is_bare = self.is_bare && taken.is_bare;
        if taken.is_cut || !taken.has_others {
            return Self { is_bare, has_others: false, is_cut: taken.is_cut };
        }
        // Some of what was cut may be there now.
        let is_cut = self.is_cut && !has_children;
        Self { is_bare, has_others: self.has_others || self.is_cut && has_children, is_cut }
    }

    /// What a client knows by both.
    const fn and(self, other: Self) -> Self {
        let is_cut = self.is_cut && other.is_cut;
        // What is cut says nothing of the children.
        let has_others = match (self.is_cut, other.is_cut) {
            (true, true) => false,
            (true, false) => other.has_others,
            (false, true) => self.has_others,
            (false, false) => self.has_others && other.has_others,
        };
        Self { is_bare: self.is_bare && other.is_bare, has_others, is_cut }
    }
}

/// What a client asks for: a node and some levels below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Portion {
    /// The node's path; `/` is the server.
    pub path: String,
    /// How many levels below it; 0 is the node alone.
    pub levels: u32,
    /// The numbers of the last changes that the client has of it, of states and of structure; none
    /// where it has nothing of it.
    pub known: Option<(u32, u32)>,
}

/// What of some portions is to be sent: all of one, or what has changed.
#[derive(Debug)]
pub struct Wanted(Vec<One>);

/// A node, the levels below it, and what has changed of them; none where all is to be sent.
type One = (NodeId, u32, Option<Nodes>);

type Nodes = BTreeMap<NodeId, Changed>;

impl Tree {
    /// What of these portions a client lacks; [`Wanted::cut`] makes a tree of it.
    ///
    /// # Errors
    /// The first path of which there is no node.
    pub fn wanted(&self, portions: &[Portion]) -> Result<Wanted, String> {
        let mut all = Vec::with_capacity(portions.len());
        for Portion { path, levels, known } in portions {
            let id = self.find(path).ok_or_else(|| path.clone())?;
            let changed = known.and_then(|known| self.changed_of(id, known));
            all.push((id, *levels, changed));
        }
        Ok(Wanted(all))
    }

    /// What has changed at and below a node; `None` where that is not known, or the node may be
    /// another one than it was.
    fn changed_of(&self, id: NodeId, known: (u32, u32)) -> Option<Nodes> {
        let (state, modify) = known;
        if modify != self.modify_change_no() || state > self.state_change_no() {
            return None;
        }
        let mut changed = self.changed_since(state)?;
        let has_moved =
            |id: &NodeId| changed.get(id).is_some_and(|changed| changed.has(Aspect::Children));
        if self.upwards(id).skip(1).any(|above| has_moved(&above)) || has_moved(&NodeId::ROOT) {
            return None;
        }
        for suite in self.calendars_since(state) {
            changed.entry(suite).or_default();
        }
        Some(changed)
    }

    /// A tree of which nothing is known, and its marks.
    #[must_use]
    pub fn unknown() -> (Self, Marks) {
        (Self::default(), Marks::from([(NodeId::ROOT, Mark::KNOWN)]))
    }

    /// Brings this tree, of which `own` are the marks, up to what is cut out of another one.
    ///
    /// # Errors
    /// A node of the part that can't be where it is.
    pub fn take_cut(
        &mut self,
        own: &mut Marks,
        part: &Snapshot,
        marks: &Marks,
    ) -> Result<(), AddError> {
        let server = part.server();
        let is_bare = marks.get(&NodeId::ROOT).is_some_and(|mark| mark.is_bare);
        if !is_bare {
            *self.server_mut() = server.clone();
        }
        let mine = self.server_mut();
        (mine.state, mine.calendar_count) = (server.state, server.calendar_count);
        let mut open = vec![(NodeId::ROOT, NodeId::ROOT)];
        while let Some((from, to)) = open.pop() {
            let mark = marks.get(&from).copied().unwrap_or_default();
            if !mark.is_bare {
                copy(part.node(from), self.node_mut(to));
            }
            open.extend(self.take_children(own, (part, from), (to, mark))?);
            let lacked = own.remove(&to).unwrap_or_default();
            let lacks = lacked.less(mark, part.node(from).first_child.is_some());
            if lacks != Mark::default() {
                own.insert(to, lacks);
            }
        }
        self.set_change_numbers(part.state_change_no(), part.modify_change_no());
        Ok(())
    }

    /// Takes the children of a node; returns those of both trees.
    fn take_children(
        &mut self,
        own: &mut Marks,
        (part, from): (&Snapshot, NodeId),
        (to, mark): (NodeId, Mark),
    ) -> Result<Vec<(NodeId, NodeId)>, AddError> {
        let mut pairs = Vec::new();
        for child in part.children(from) {
            let (kind, name) = (part.node(child).kind, part.node(child).name.clone());
            let known = self.child(to, &name);
            let same = known.filter(|known| self.node(*known).kind == kind);
            if let (Some(other), None) = (known, same) {
                self.drop_below(own, other);
            }
            let id = match same {
                Some(id) => id,
                None => {
                    let id = self.add(to, kind, name, None)?;
                    own.insert(id, Mark::KNOWN);
                    id
                }
            };
            pairs.push((child, id));
        }
        if mark.has_others {
            return Ok(pairs);
        }
        let order: Vec<NodeId> = pairs.iter().map(|(_, id)| *id).collect();
        let there: BTreeSet<NodeId> = order.iter().copied().collect();
        let gone: Vec<NodeId> = self.children(to).filter(|id| !there.contains(id)).collect();
        for id in gone {
            self.drop_below(own, id);
        }
        self.reorder(to, &order);
        Ok(pairs)
    }

    fn drop_below(&mut self, own: &mut Marks, id: NodeId) {
        let gone: Vec<NodeId> = self.walk(id).collect();
        gone.iter().for_each(|id| {
            own.remove(id);
        });
        self.remove(id);
    }
}

/// Copies what is a node's own.
fn copy(from: &Node, to: &mut Node) {
    let Node { state, default, is_suspended, is_begun, flags, since, ran, .. } = *from;
    (to.state, to.default, to.is_suspended, to.is_begun) = (state, default, is_suspended, is_begun);
    (to.flags, to.since, to.ran) = (flags, since, ran);
    to.attributes.clone_from(&from.attributes);
    to.job.clone_from(&from.job);
}

impl Wanted {
    /// Cuts what is wanted out of the tree of which it is.
    #[must_use]
    pub fn cut(&self, tree: &Snapshot) -> (Snapshot, Marks) {
        if matches!(self.0[..], [(NodeId::ROOT, ALL_LEVELS, None)]) {
            return (tree.clone(), Marks::new());
        }
        let mut marked = Marks::new();
        note(&mut marked, NodeId::ROOT, Mark::KNOWN);
        for (id, levels, changed) in &self.0 {
            way_to(tree, *id, &mut marked);
            match changed {
                None => whole(tree, *id, *levels, &mut marked),
                Some(changed) => since(tree, (*id, *levels), changed, &mut marked),
            }
        }
        let (cut, marks) = made(tree, &marked);
        (cut.snapshot(), marks)
    }
}

fn note(marked: &mut Marks, id: NodeId, mark: Mark) {
    marked.entry(id).and_modify(|known| *known = known.and(mark)).or_insert(mark);
}

/// Notes a node and those above it as known.
fn way_to(tree: &Snapshot, id: NodeId, marked: &mut Marks) {
    for at in tree.upwards(id) {
        note(marked, at, Mark::KNOWN);
    }
}

/// Notes a node with some levels below it.
fn whole(tree: &Snapshot, from: NodeId, levels: u32, marked: &mut Marks) {
    let mut open = vec![(from, levels)];
    while let Some((id, levels)) = open.pop() {
        let is_cut = levels == 0 && tree.node(id).first_child.is_some();
        note(marked, id, Mark { is_cut, ..Mark::default() });
        if levels > 0 {
            let below = if levels == ALL_LEVELS { ALL_LEVELS } else { levels - 1 };
            open.extend(tree.children(id).map(|child| (child, below)));
        }
    }
}

/// Notes what has changed of a node and some levels below it.
fn since(tree: &Snapshot, (from, levels): (NodeId, u32), changed: &Nodes, marked: &mut Marks) {
    for (id, changed) in changed {
        let Some(depth) = depth_below(tree, from, *id).filter(|depth| *depth <= levels) else {
            continue;
        };
        way_to(tree, *id, marked);
        let left = if levels == ALL_LEVELS { ALL_LEVELS } else { levels - depth };
        if changed.has(Aspect::Children) {
            whole(tree, *id, left, marked);
        } else if left == 0 {
            let is_cut = tree.node(*id).first_child.is_some();
            // Its children are no part of this one: another one may have them.
            note(marked, *id, Mark { is_cut, has_others: !is_cut, is_bare: false });
        } else {
            let has_others = !changed.has(Aspect::Order);
            note(marked, *id, Mark { has_others, ..Mark::default() });
            for child in tree.children(*id).filter(|_| !has_others) {
                note(marked, child, Mark::KNOWN);
            }
        }
    }
}

/// How many levels a node lies below another; `None` where it lies elsewhere.
fn depth_below(tree: &Snapshot, from: NodeId, id: NodeId) -> Option<u32> {
    let mut at = Some(id);
    let mut depth = 0;
    while let Some(id) = at {
        if id == from {
            return Some(depth);
        }
        depth += 1;
        at = tree.node(id).parent;
    }
    None
}

/// The tree of the nodes that are marked, and its own marks: of nodes of which all is there none.
fn made(tree: &Snapshot, marked: &Marks) -> (Tree, Marks) {
    let (mut out, mut marks) = (Tree::with_room(marked.len()), Marks::new());
    let root = marked.get(&NodeId::ROOT).copied().unwrap_or_default();
    if root.is_bare {
        let (state, calendar_count) = (tree.server().state, tree.server().calendar_count);
        let server = out.server_mut();
        (server.state, server.calendar_count) = (state, calendar_count);
    } else {
        let history = BTreeMap::new();
        *out.server_mut() = Server { history, ..tree.server().clone() };
    }
    let mut open = vec![(NodeId::ROOT, NodeId::ROOT)];
    while let Some((from, to)) = open.pop() {
        let mark = marked.get(&from).copied().unwrap_or_default();
        if !mark.is_bare {
            copy(tree.node(from), out.node_mut(to));
        }
        if mark != Mark::default() {
            marks.insert(to, mark);
        }
        for child in tree.children(from).filter(|child| marked.contains_key(child)) {
            let Node { kind, ref name, .. } = *tree.node(child);
            debug_assert!(kind != Kind::Root);
            // It is there once in the tree that this one is cut out of.
            let Ok(added) = out.add(to, kind, name.clone(), None) else { continue };
            open.push((child, added));
        }
    }
    out.set_change_numbers(tree.state_change_no(), tree.modify_change_no());
    (out, marks)
}
