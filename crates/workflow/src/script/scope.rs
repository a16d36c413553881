//! The variables that a task sees: its own, and those of the nodes above it and of the server.

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
