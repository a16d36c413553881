//! Paths: the node of one, and that of a node.

use super::node::NodeId;
use super::tree::Snapshot;

impl Snapshot {
    /// The node of an absolute path: `/suite/family/task`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<NodeId> {
        let names = path.strip_prefix('/')?.split('/').filter(|name| !name.is_empty());
        names.into_iter().try_fold(NodeId::ROOT, |id, name| self.child(id, name))
    }

    /// The node of an absolute path, looked for first beside another one, as of paths that come in
    /// the order of the tree.
    #[must_use]
    pub fn find_beside(&self, path: &str, before: NodeId) -> Option<NodeId> {
        let (above, name) = path.rsplit_once('/')?;
        let before = self.node(before);
        let is_around = |parent: &NodeId| !name.is_empty() && self.is_at(*parent, above);
        let Some(parent) = before.parent.filter(is_around) else {
            return self.find(path);
        };
        let is_next = |id: &NodeId| self.node(*id).name == *name;
        before.next.filter(is_next).or_else(|| self.child(parent, name))
    }

    /// Whether a node, not `/`, has this path.
    fn is_at(&self, id: NodeId, mut path: &str) -> bool {
        for id in self.upwards(id) {
            match path.rsplit_once('/') {
                Some((above, name)) if self.node(id).name == *name => path = above,
                _ => return false,
            }
        }
        path.is_empty() && id != NodeId::ROOT
    }

    /// The node that a path names from another, as expressions and limits have it: absolute; `x`
    /// and `./x/y` from the node around it, else from the node itself; `../x` one level above.
    #[must_use]
    pub fn find_from(&self, from: NodeId, path: &str) -> Option<NodeId> {
        if path.starts_with('/') {
            return self.find(path);
        }
        let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
        let parent = self.node(from).parent.filter(|parent| *parent != NodeId::ROOT);
        if names.peek() == Some(&"..") {
            let mut at = parent.unwrap_or(NodeId::ROOT);
            while names.next_if_eq(&"..").is_some() {
                at = self.node(at).parent.unwrap_or(NodeId::ROOT);
            }
            let found = names.try_fold(at, |at, name| self.child(at, name));
            return found.filter(|id| *id != NodeId::ROOT);
        }
        names.next_if_eq(&".");
        let first = *names.peek()?;
        let is_one = names.clone().nth(1).is_none();
        if is_one && self.node(from).name == *first {
            return Some(from);
        }
        // As in ecFlow a suite finds none but itself.
        let parent = parent?;
        if is_one {
            return self.child(parent, first);
        }
        let below = |at| names.clone().try_fold(at, |at, name| self.child(at, name));
        below(parent).or_else(|| below(from))
    }

    /// The absolute path of a node.
    #[must_use]
    pub fn path(&self, id: NodeId) -> String {
        let bytes = self.upwards(id).map(|id| self.node(id).name.len() + 1).sum();
        let mut path = String::with_capacity(bytes);
        self.push_path(id, &mut path);
        path
    }

    /// Adds the absolute path of a node to a text.
    pub(super) fn push_path(&self, id: NodeId, text: &mut String) {
        let node = self.node(id);
        match node.parent {
            None => text.push_str(if id == NodeId::ROOT { "/" } else { "" }),
            Some(parent) => {
                if parent != NodeId::ROOT {
                    // No deeper than the tree's levels.
                    self.push_path(parent, text);
                }
                text.push('/');
                text.push_str(&node.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::parse;
    use crate::model::NodeId;

    #[test]
    fn a_path_is_found_beside_any_node() {
        let text = "suite s\n family f\n  task a\n  task b\n  task c\n endfamily\n task a\n\
                    endsuite\nsuite t\n family f\n  task a\n endfamily\nendsuite\n";
        let tree = parse(text, "t.def").expect("a definition").tree;
        let all: Vec<NodeId> = tree.walk(NodeId::ROOT).collect();
        let mut paths: Vec<String> = all.iter().map(|id| tree.path(*id)).collect();
        paths.extend(
            ["", "s", "/", "/s/f/x", "/s/f/", "//s/f/a", "/x/f/a", "f/a", "a"].map(Into::into),
        );
        for path in &paths {
            for before in &all {
                assert_eq!(tree.find_beside(path, *before), tree.find(path), "{path} {before:?}");
            }
        }
    }
}
