//! The digest by which a tree's nodes are compared with those that were loaded.

use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Add;

use crate::model::{NodeId, Snapshot};

/// How many nodes there are, and a digest of their kinds and names in their order. Those of several
/// suites add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) nodes: u64,
    digest: u64,
}

impl Names {
    /// Those of a definition's text, in any of its styles.
    pub(super) fn of(text: &str) -> Self {
        Self::of_nodes(text.lines().filter_map(node))
    }

    /// Those of a tree.
    pub(super) fn of_tree(tree: &Snapshot) -> Self {
        let all = tree.walk(NodeId::ROOT).skip(1).map(|id| tree.node(id));
        Self::of_nodes(all.map(|node| (node.kind.word(), &*node.name)))
    }

    /// Those of nodes, by kind and name, in the order of printing.
    pub(super) fn of_nodes<'a>(nodes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut names = Self::default();
        let mut suite = DefaultHasher::new();
        for (kind, name) in nodes {
            if kind == "suite" {
                names.digest = names.digest.wrapping_add(suite.finish());
                suite = DefaultHasher::new();
            }
            names.nodes += 1;
            suite.write(kind.as_bytes());
            suite.write(name.as_bytes());
            suite.write_u8(0);
        }
        // Nothing before the first suite.
        let none = DefaultHasher::new().finish();
        let last = if names.nodes == 0 { 0 } else { suite.finish().wrapping_sub(none) };
        Self { digest: names.digest.wrapping_add(last), ..names }
    }
}

/// A line's kind of node and name, where it begins one.
pub(super) fn node(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.trim_start().split_once(' ')?;
    let name = rest.split(' ').next()?;
    matches!(kind, "suite" | "family" | "task").then_some((kind, name))
}

impl Add for Names {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let digest = self.digest.wrapping_add(other.digest);
        Self { nodes: self.nodes + other.nodes, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_missing_renamed_or_elsewhere_is_another_digest() {
        let two = "suite a\n  family f\n    task t\n  endfamily\nendsuite\n";
        let one = "suite b\n task u # state:queued\nendsuite\n";
        let both = Names::of(&format!("#5.9.2\ndefs_state NET\n{two}{one}# enddef\n"));
        assert_eq!(both.nodes, 5);
        assert_eq!(both, Names::of(two) + Names::of(one));
        assert_eq!(Names::of("# enddef"), Names::default());
        let other = |from: &str, to: &str| Names::of(&two.replace(from, to)) != Names::of(two);
        assert!(other("task t", "task s") && other("family f", "task f"));
        assert!(other("    task t\n", "") && other("family f", "family ft"));
        let late = "suite a\n  task t\n  family f\n  endfamily\nendsuite\n";
        assert_ne!(Names::of(late), Names::of(two));
    }
}
