//! The variables that a task sees: its own, and those of the nodes above it and of the server.

use crate::model::{Attribute, NodeId, Snapshot};

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
pub struct Scope(pub Vec<Level>);

fn value<'a>(variables: &'a [(String, String)], name: &str) -> Option<&'a str> {
    variables.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
}

impl Scope {
    /// The variables that a node of a tree sees.
    #[must_use]
    pub fn of(tree: &Snapshot, id: NodeId) -> Self {
        let mut levels = Vec::new();
        for at in tree.upwards(id) {
            let mut level = Level::default();
            if let Some(repeat) = tree.repeat(at) {
                level.generated.push((repeat.name.to_string(), repeat.over.text()));
                level.generated.extend(repeat.date_parts());
            }
            for attribute in tree.node(at).attributes.iter() {
                if let Attribute::Variable(variable) = attribute {
                    level.user.push((variable.name.to_string(), variable.value.to_string()));
                }
            }
            let made = tree.generated(at).into_iter().map(|(name, value)| (name.to_owned(), value));
            level.generated.extend(made);
            levels.push(level);
        }
        let server = tree.server();
        let all = server.user_variables.iter().chain(&server.variables);
        let user = all.map(|one| (one.name.to_string(), one.value.to_string())).collect();
        levels.push(Level { user, generated: Vec::new() });
        // ECF_HOST and ECF_PORT win over a user's, too.
        let own =
            server.variables.iter().filter(|one| one.name == "ECF_HOST" || one.name == "ECF_PORT");
        let own = own.map(|one| (one.name.to_string(), one.value.to_string())).collect();
        levels.push(Level { user: Vec::new(), generated: own });
        Self(levels)
    }

    /// Gives a variable another value, which is nearer than any.
    pub fn set(&mut self, name: &str, value: &str) {
        let user = vec![(name.to_owned(), value.to_owned())];
        self.0.insert(0, Level { user, generated: Vec::new() });
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
