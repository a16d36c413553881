//! A part of a tree: the server and its nodes down to some level, bodies of nodes on demand, and
//! of either what has changed since a client has asked last. All of one answer is of one moment.
//!
//! What is cut out is a small tree, in which some nodes are marked: there is nothing of theirs, or
//! not all of what is below them. [`Tree::take_cut`] brings a client's tree up to it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

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
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Portion {
    /// The node's path; `/` is the server.
    pub path: String,
    /// How many levels below it; 0 is the node alone.
    pub levels: u32,
    /// The numbers of the last changes that the client has of it, of states and of structure; none
    /// where it has nothing of it.
    pub known: Option<(u32, u32)>,
}

/// What of some portions is to be sent.
#[derive(Debug)]
pub struct Wanted {
    /// Of which a client has nothing.
    whole: Vec<Below>,
    /// Of which it lacks what has changed.
    known: Vec<Below>,
    /// What has changed since the oldest number of those.
    changed: Nodes,
}

/// A node and the levels below it.
type Below = (NodeId, u32);

type Nodes = BTreeMap<NodeId, Changed>;

impl Tree {
    /// What of these portions a client lacks; [`Wanted::cut`] makes a tree of it.
    ///
    /// # Errors
    /// The first path of which there is no node.
    pub fn wanted(&self, portions: &[Portion]) -> Result<Wanted, String> {
        let mut numbers: Vec<u32> = portions.iter().filter_map(|one| self.followed(one)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // What has changed is worked out once, since the oldest number that is remembered: a
        // client that knows more of some nodes takes those again.
        let since = |no: u32| Some((no, self.changed_since(no)?));
        let (oldest, mut changed) = numbers.into_iter().find_map(since).unzip();
        let (mut whole, mut known) = (Vec::new(), Vec::new());
        for portion in portions {
            let id = self.find(&portion.path).ok_or_else(|| portion.path.clone())?;
            let is_known = match (&changed, self.followed(portion)) {
                (Some(changed), Some(no)) => oldest <= Some(no) && self.is_same(id, changed),
                _ => false,
            };
            if is_known { &mut known } else { &mut whole }.push((id, portion.levels));
        }
        if let (Some(changed), Some(no)) = (&mut changed, oldest) {
            for suite in self.calendars_since(no) {
                changed.entry(suite).or_default();
            }
        }
        Ok(Wanted { whole, known, changed: changed.unwrap_or_default() })
    }

    /// The number of states since which a client has followed a portion of this tree.
    fn followed(&self, portion: &Portion) -> Option<u32> {
        let (state, modify) = portion.known?;
        let is_of_this = modify == self.modify_change_no() && state <= self.state_change_no();
        is_of_this.then_some(state)
    }

    /// Whether a node is surely the one that it was before these changes.
    fn is_same(&self, id: NodeId, changed: &Nodes) -> bool {
        let has_moved =
            |id: &NodeId| changed.get(id).is_some_and(|changed| changed.has(Aspect::Children));
        !self.upwards(id).skip(1).any(|above| has_moved(&above)) && !has_moved(&NodeId::ROOT)
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
    /// Whether the server's own state has changed, which comes with all that is cut.
    #[must_use]
    pub fn has_server_state(&self) -> bool {
        self.changed.get(&NodeId::ROOT).is_some_and(|changed| changed.has(Aspect::Server))
    }

    /// Cuts what is wanted out of the tree of which it is. However many portions there are, each
    /// node is visited once for all of them.
    #[must_use]
    pub fn cut(&self, tree: &Snapshot) -> (Snapshot, Marks) {
        if self.whole.contains(&(NodeId::ROOT, ALL_LEVELS)) {
            return (tree.clone(), Marks::new());
        }
        let mut marked = Marks::new();
        let mut all: Vec<(NodeId, u64)> = Vec::new();
        for (id, levels) in &self.whole {
            above(tree, *id, &mut marked);
            all.push((*id, reach(tree, (*id, *levels))));
        }
        let mut known: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (id, levels) in &self.known {
            above(tree, *id, &mut marked);
            if *levels > 0 {
                // Its children may be cut in another portion, and are known by this one.
                note(&mut marked, *id, Mark::KNOWN);
            }
            let reach = reach(tree, (*id, *levels));
            known.entry(*id).and_modify(|most| *most = reach.max(*most)).or_insert(reach);
        }
        if !known.is_empty() {
            for (id, changed) in &self.changed {
                all.extend(since(tree, *id, changed, &known, &mut marked));
            }
        }
        whole(tree, all, &mut marked);
        marked.entry(NodeId::ROOT).or_insert(Mark::KNOWN);
        let (cut, marks) = made(tree, &marked);
        (cut.snapshot(), marks)
    }
}

fn note(marked: &mut Marks, id: NodeId, mark: Mark) {
    marked.entry(id).and_modify(|known| *known = known.and(mark)).or_insert(mark);
}

/// Notes the nodes above one as known.
fn above(tree: &Snapshot, id: NodeId, marked: &mut Marks) {
    let parent = |id: &NodeId| tree.node(*id).parent;
    for at in std::iter::successors(parent(&id), parent) {
        note(marked, at, Mark::KNOWN);
    }
}

/// How many levels a node lies below the server.
fn depth(tree: &Snapshot, id: NodeId) -> u64 {
    tree.upwards(id).map(|_| 1).sum()
}

/// How many levels below the server the last ones of a node lie.
fn reach(tree: &Snapshot, (id, levels): Below) -> u64 {
    if levels == ALL_LEVELS { u64::MAX } else { depth(tree, id) + u64::from(levels) }
}

/// Notes nodes with all below them, each as far as it reaches. Those that reach furthest are first:
/// what has been visited was so at least as far down.
fn whole(tree: &Snapshot, mut all: Vec<(NodeId, u64)>, marked: &mut Marks) {
    all.sort_by_key(|(_, reach)| std::cmp::Reverse(*reach));
    let mut visited = HashSet::new();
    for (from, reach) in all {
        let mut open = vec![(from, depth(tree, from))];
        while let Some((id, depth)) = open.pop() {
            if !visited.insert(id) {
                continue;
            }
            let is_last = depth >= reach;
            let is_cut = is_last && tree.node(id).first_child.is_some();
            note(marked, id, Mark { is_cut, ..Mark::default() });
            if !is_last {
                open.extend(tree.children(id).map(|child| (child, depth + 1)));
            }
        }
    }
}

/// Notes what has changed of a node that lies in known portions; returns it, and how far it
/// reaches, where all below it is to be noted.
fn since(
    tree: &Snapshot,
    id: NodeId,
    changed: &Changed,
    known: &BTreeMap<NodeId, u64>,
    marked: &mut Marks,
) -> Option<(NodeId, u64)> {
    let upwards = std::iter::successors(Some(id), |id| tree.node(*id).parent);
    let reach = upwards.filter_map(|at| known.get(&at)).max()?;
    let depth = depth(tree, id);
    if depth > *reach {
        return None;
    }
    above(tree, id, marked);
    if changed.has(Aspect::Children) {
        return Some((id, *reach));
    }
    if depth == *reach {
        let is_cut = tree.node(id).first_child.is_some();
        // Its children are no part of this one: another one may have them.
        note(marked, id, Mark { is_cut, has_others: !is_cut, is_bare: false });
    } else {
        let has_others = !changed.has(Aspect::Order);
        note(marked, id, Mark { has_others, ..Mark::default() });
        for child in tree.children(id).filter(|_| !has_others) {
            note(marked, child, Mark::KNOWN);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    const TEXT: &str = "suite s\n label l 'x'\n family f\n  family g\n   task a\n  endfamily\n  \
                        task b\n endfamily\nendsuite\nsuite t\n task c\nendsuite\n";

    fn portion(path: &str, levels: u32, known: Option<(u32, u32)>) -> Portion {
        Portion { path: path.to_owned(), levels, known }
    }

    /// The nodes of an answer, with what isn't there of them.
    fn cut(tree: &Tree, portions: &[Portion]) -> Vec<String> {
        let (cut, marks) = tree.wanted(portions).expect("nodes").cut(tree);
        let words = |id| marks.get(&id).map_or_else(String::new, |mark| mark.words());
        cut.walk(NodeId::ROOT).map(|id| format!("{} {}", cut.path(id), words(id))).collect()
    }

    #[test]
    fn a_node_without_levels_below_it_is_cut_unless_another_part_has_its_children() {
        let tree = parse(TEXT, "x.def").expect("a definition").tree;
        assert_eq!(cut(&tree, &[portion("/", 0, None)]), ["/ cut"]);
        let suite = portion("/s", 0, None);
        assert_eq!(cut(&tree, std::slice::from_ref(&suite)), ["/ bare,others", "/s cut"]);
        let known = (tree.state_change_no(), tree.modify_change_no());
        let followed = portion("/s/f", ALL_LEVELS, Some(known));
        let both = ["/ bare,others", "/s others", "/s/f bare,others"];
        assert_eq!(cut(&tree, &[suite, followed]), both);
        // The children of a suite that a client has stay.
        let followed = portion("/s", ALL_LEVELS, Some(known));
        assert_eq!(cut(&tree, &[portion("/", 1, None), followed]), ["/ ", "/s others", "/t cut"]);
    }

    #[test]
    fn many_parts_are_as_those_that_reach_furthest_and_their_changes_as_since_the_oldest_number() {
        let mut tree = parse(TEXT, "x.def").expect("a definition").tree;
        let all: Vec<Portion> = (0..3).map(|levels| portion("/s", levels, None)).collect();
        assert_eq!(cut(&tree, &all), cut(&tree, &all[2..]));
        let furthest = [portion("/s/f", 1, None), portion("/", 1, None), portion("/s", 3, None)];
        let whole = ["/ ", "/s ", "/s/f ", "/s/f/g ", "/s/f/g/a ", "/s/f/b ", "/t cut"];
        assert_eq!(cut(&tree, &furthest), whole);

        let before = tree.find("/t/c").expect("a task");
        tree.changed_in(before, Aspect::Suspended);
        tree.forget_changes();
        let modify = tree.modify_change_no();
        let mut numbers = vec![tree.state_change_no()];
        for path in ["/s/f/g/a", "/s/f/b", "/t/c"] {
            let id = tree.find(path).expect("a task");
            tree.changed_in(id, Aspect::Suspended);
            numbers.push(tree.state_change_no());
        }
        let of = |path, no: u32| portion(path, ALL_LEVELS, Some((no, modify)));
        let nodes = |parts: &[Portion]| {
            let mut nodes = cut(&tree, parts);
            nodes.retain(|line| !line.contains("bare"));
            nodes
        };
        assert_eq!(
            nodes(&[of("/s", numbers[1]), of("/t", numbers[1])]),
            ["/s/f/b others", "/t/c others"]
        );
        let parts = [of("/t", numbers[3]), of("/s", numbers[0]), of("/s", numbers[1])];
        assert_eq!(nodes(&parts), ["/s/f/g/a others", "/s/f/b others", "/t/c others"]);
        // A number that is not remembered is the matter of its own part.
        let parts = [of("/t", numbers[0] - 1), of("/s", numbers[2])];
        assert_eq!(nodes(&parts), ["/t ", "/t/c "]);
    }
}
