//! The numbers of a tree's nodes beside its snapshot.
//!
//! What is carried out depends on them: the passwords of jobs, and which of several nodes that wait
//! comes first. A tree that is read again numbers its nodes in the order of printing; the one that
//! was written may have deleted nodes, or loaded them in another order. What comes behind the
//! snapshot is right only with the same numbers.

use std::collections::BTreeSet;

use super::node::{Arena, Node, NodeId};
use super::state::Kind;
use super::text::OwnText;
use super::tree::{Snapshot, Tree};

/// The most numbers of a tree, free ones included.
const MOST: usize = 1 << 26;

impl Snapshot {
    /// How many numbers there are, and those of the nodes in the order of printing, from 0; nothing
    /// where they are in this order and none is free.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        let len = self.arena.len();
        let ids = self.walk(NodeId::ROOT).map(|id| id.index() as u32);
        let numbers: Vec<u32> = std::iter::once(len as u32).chain(ids).collect();
        let is_plain = numbers.len() == len + 1 && numbers[1..].is_sorted();
        if is_plain { Vec::new() } else { numbers }
    }
}

impl Tree {
    /// Gives the nodes of a tree that was read, and that nothing waits in, [`Snapshot::numbers`] of
    /// the one that was written.
    ///
    /// # Errors
    /// Where they are not those of as many nodes: why.
    pub fn renumber(&mut self, numbers: &[u32]) -> Result<(), &'static str> {
        let Some((len, numbers)) = numbers.split_first() else { return Ok(()) };
        let len = *len as usize;
        if numbers.len() != self.arena.len() || numbers.first() != Some(&0) || len > MOST {
            return Err("its numbers are not those of its nodes");
        }
        // Which node is to have a number.
        let mut nodes: Vec<Option<NodeId>> = vec![None; len];
        for (place, number) in numbers.iter().enumerate() {
            let to = nodes.get_mut(*number as usize).ok_or("a node's number is beyond the last")?;
            if to.replace(NodeId::of_index(place).ok_or("too many nodes")?).is_some() {
                return Err("two nodes have one number");
            }
        }
        let number = |id: NodeId| NodeId::of_index(*numbers.get(id.index())? as usize);
        let (mut arena, mut free) = (Arena::default(), BTreeSet::new());
        for id in nodes {
            let node = match id {
                Some(id) => {
                    let mut node = self.node(id).clone();
                    node.parent = node.parent.and_then(number);
                    node.suite = node.suite.and_then(number);
                    node.first_child = node.first_child.and_then(number);
                    node.last_child = node.last_child.and_then(number);
                    node.next = node.next.and_then(number);
                    node
                }
                None => Node::new(Kind::Task, OwnText::default()),
            };
            let at = arena.push(node).ok_or("too many numbers")?;
            if id.is_none() {
                free.insert(at);
            }
        }
        self.take_arena(arena, free);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> Tree {
        let mut tree = Tree::default();
        for path in names {
            let (above, name) = path.rsplit_once('/').expect("a path");
            let above = if above.is_empty() { "/" } else { above };
            let parent = tree.find(above).expect("a parent");
            let kind = if above == "/" { Kind::Suite } else { Kind::Family };
            tree.add(parent, kind, OwnText::from(name), None).expect("a node");
        }
        tree
    }

    #[test]
    fn a_tree_that_is_read_has_the_numbers_of_the_one_that_was_written() {
        let plain = tree(&["/a", "/a/b", "/c"]);
        assert!(plain.numbers().is_empty());
        // Nodes of two suites by turns, one deleted among them, and one at the end.
        let mut odd = tree(&["/a", "/c", "/a/b", "/c/d", "/a/e", "/c/f"]);
        for path in ["/a/b", "/c/f"] {
            let id = odd.find(path).expect("a node");
            drop(odd.remove(id));
        }
        let mut again = tree(&["/a", "/a/e", "/c", "/c/d"]);
        let numbers = odd.numbers();
        again.renumber(&numbers).expect("its numbers");
        for path in ["/a", "/a/e", "/c", "/c/d"] {
            assert_eq!(again.find(path), odd.find(path), "{path}");
            assert!(again.find(path).is_some());
        }
        let paths = |tree: &Tree| -> Vec<String> {
            tree.walk(NodeId::ROOT).map(|id| tree.path(id)).collect()
        };
        assert_eq!(paths(&again), paths(&odd));
        assert_eq!((again.free.clone(), again.numbers()), (odd.free.clone(), numbers.clone()));
        // The same numbers are given next.
        for name in ["x", "y", "z"] {
            let of = |tree: &mut Tree| {
                tree.add(NodeId::ROOT, Kind::Suite, OwnText::from(name), None).expect("a node")
            };
            assert_eq!(of(&mut again), of(&mut odd), "{name}");
        }
        for wrong in
            [&[9_u32, 0][..], &[5, 0, 1, 2, 3, 3], &[5, 0, 1, 2, 3, 5], &[5, 1, 0, 2, 3, 4]]
        {
            assert!(tree(&["/a", "/a/e", "/c", "/c/d"]).renumber(wrong).is_err(), "{wrong:?}");
        }
    }
}
