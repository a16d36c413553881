//! The variables that a task sees: its own, and those of the nodes above it and of the server.

use std::sync::Arc;

use crate::model::{Attribute, NodeId, Snapshot, Variable};

/// The variables of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Those that users set.
    pub user: Vec<(String, String)>,
    /// Those that the server generates; of a repeat, too.
    pub generated: Vec<(String, String)>,
}

/// The variables that a task sees, from the task up to the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(Vec<Arc<Level>>);

/// The scopes of nodes of one tree, one after another: what is above several of them is made once.
#[derive(Debug)]
pub struct Scopes<'a> {
    tree: &'a Snapshot,
    /// The levels above the last node, up to its suite.
    above: Vec<(NodeId, Arc<Level>)>,
    server: Option<[Arc<Level>; 2]>,
}

fn value<'a>(variables: &'a [(String, String)], name: &str) -> Option<&'a str> {
    variables.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
}

fn pair(variable: &Variable) -> (String, String) {
    (variable.name.to_string(), variable.value.to_string())
}

impl Level {
    fn of(tree: &Snapshot, id: NodeId) -> Self {
        let mut level = Self::default();
        if let Some(repeat) = tree.repeat(id) {
            level.generated.push((repeat.name.to_string(), repeat.over.text()));
            level.generated.extend(repeat.date_parts());
        }
        for attribute in tree.node(id).attributes.iter() {
            if let Attribute::Variable(variable) = attribute {
                level.user.push(pair(variable));
            }
        }
        let made = tree.generated(id).into_iter().map(|(name, value)| (name.to_owned(), value));
        level.generated.extend(made);
        level
    }

    /// The variables of the server: all, and behind them those that win over a user's, too.
    fn of_server(tree: &Snapshot) -> [Self; 2] {
        let server = tree.server();
        let user = server.user_variables.iter().chain(&server.variables).map(pair).collect();
        let own =
            server.variables.iter().filter(|one| one.name == "ECF_HOST" || one.name == "ECF_PORT");
        [
            Self { user, generated: Vec::new() },
            Self { user: Vec::new(), generated: own.map(pair).collect() },
        ]
    }
}

impl<'a> Scopes<'a> {
    /// Scopes of nodes of this tree.
    #[must_use]
    pub const fn new(tree: &'a Snapshot) -> Self {
        Self { tree, above: Vec::new(), server: None }
    }

    /// The tree.
    #[must_use]
    pub const fn tree(&self) -> &'a Snapshot {
        self.tree
    }

    /// The variables that a node sees.
    pub fn of(&mut self, id: NodeId) -> Scope {
        let tree = self.tree;
        let server = self.server.get_or_insert_with(|| Level::of_server(tree).map(Arc::new));
        let before = std::mem::take(&mut self.above);
        let known = |at| before.iter().find(|(known, _)| *known == at).map(|(_, level)| level);
        let level = |at| known(at).map_or_else(|| Arc::new(Level::of(tree, at)), Arc::clone);
        self.above = tree.upwards(id).skip(1).map(|at| (at, level(at))).collect();
        let own = Arc::new(Level::of(tree, id));
        let shared = self.above.iter().map(|(_, level)| level).chain(&*server).map(Arc::clone);
        Scope(std::iter::once(own).chain(shared).collect())
    }
}

impl Scope {
    /// The variables of these levels, the nearest first.
    #[must_use]
    pub fn new(levels: Vec<Level>) -> Self {
        Self(levels.into_iter().map(Arc::new).collect())
    }

    /// The variables that a node of a tree sees.
    #[must_use]
    pub fn of(tree: &Snapshot, id: NodeId) -> Self {
        Scopes::new(tree).of(id)
    }

    /// Gives a variable another value, which is nearer than any.
    pub fn set(&mut self, name: &str, value: &str) {
        let user = vec![(name.to_owned(), value.to_owned())];
        self.0.insert(0, Arc::new(Level { user, generated: Vec::new() }));
    }

    /// The nearest variable with this name; at one node, a user's before a generated one.
    pub fn any(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|one| value(&one.user, name).or_else(|| value(&one.generated, name)))
    }

    /// The nearest one that a user set.
    pub fn user(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|one| value(&one.user, name))
    }

    /// The nearest one that is generated.
    pub fn generated(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|one| value(&one.generated, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    #[test]
    fn what_nodes_see_is_the_same_one_after_another_and_each_by_itself() {
        let text = "edit A top\nsuite s\n edit A s\n repeat integer N 1 3\n family f\n  edit A f\n\
                    task a\n   edit B 1\n  task b\n endfamily\n family g\n  task a\nendsuite\n\
                    suite t\n task a\n";
        let tree = parse(text, "t").expect("a definition").tree;
        let mut scopes = Scopes::new(&tree);
        let all: Vec<NodeId> = tree.walk(NodeId::ROOT).skip(1).collect();
        let twice = all.iter().chain(all.iter().rev());
        for id in twice {
            assert_eq!(scopes.of(*id), Scope::of(&tree, *id), "{}", tree.path(*id));
        }
        let seen = |path| Scope::of(&tree, tree.find(path).expect("a node"));
        let of = |path, name| seen(path).any(name).map(str::to_owned);
        assert_eq!(of("/s/f/a", "A").as_deref(), Some("f"));
        assert_eq!([of("/s/g/a", "A"), of("/t/a", "A")], ["s", "top"].map(|one| Some(one.into())));
        assert_eq!((of("/s/f/b", "B"), of("/s/f/b", "N").as_deref()), (None, Some("1")));
    }
}
