//! Jobs that are not started yet, and scripts of aliases that are not written yet: after a crash
//! they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::escape::{escaped, plain};
use crate::model::{NodeId, State, Tree, at_or_below};

/// What the tree has others do for a node, and the variable that has the command for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::server) enum CommandKind {
    /// ECF_JOB_CMD.
    Job,
    /// ECF_KILL_CMD.
    Kill,
    /// ECF_STATUS_CMD.
    Status,
    /// None: an alias's script is written.
    Script,
    /// None: an archive is written.
    Archive,
    /// None: an archive is read.
    Restore,
    /// None: a node is sent to another server.
    Move,
}

impl CommandKind {
    /// The variable that has the command.
    pub(in crate::server) const fn variable(self) -> &'static str {
        match self {
            Self::Job => "ECF_JOB_CMD",
            Self::Kill => "ECF_KILL_CMD",
            Self::Status => "ECF_STATUS_CMD",
            Self::Script | Self::Archive | Self::Restore | Self::Move => "",
        }
    }
}

/// The most bytes that users have edited and that wait, together.
pub(super) const MAX_EDITED_BYTES: usize = 256 << 20;

/// What a user gives for a job or alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum Edited {
    /// A job is made of these lines, or else of its script, with these variables.
    Run {
        /// In place of the script, where there are any.
        lines: Vec<String>,
        /// With their values.
        variables: Vec<(String, String)>,
    },
    /// The lines are an alias's script.
    Create(Vec<String>),
}

impl Edited {
    /// The bytes of its lines and variables.
    pub(super) fn bytes(&self) -> usize {
        let of = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
        match self {
            Self::Create(lines) => of(lines),
            Self::Run { lines, variables } => {
                let pairs = variables.iter().map(|(name, value)| name.len() + value.len() + 2);
                of(lines) + pairs.sum::<usize>()
            }
        }
    }
}

/// A job that is not started yet, or a script that is not written yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) kind: CommandKind,
    pub(super) try_no: i32,
    /// The password of the job: after a requeue the tries begin anew.
    pub(super) password: String,
    /// Whether it was killed since: then it is not started any more. A flag of the task would not
    /// do, as the kill of a zombie sets it, too.
    pub(super) is_killed: bool,
    pub(super) edited: Option<Arc<Edited>>,
}

/// All of them, by the path of their node.
#[derive(Debug, Default)]
pub(super) struct Unstarted(BTreeMap<String, Waiting>);

/// The prefix of their names in a snapshot's head.
const HEAD: &str = "submitted:";

/// The prefix of the try of one that was killed, there.
const KILLED: &str = "k";

impl Unstarted {
    pub(super) fn add(&mut self, path: String, waiting: Waiting) {
        self.0.insert(path, waiting);
    }

    /// Whether this try is not started yet.
    pub(super) fn has(&self, path: &str, job: (i32, &str)) -> bool {
        self.of(path, job).is_some()
    }

    fn of(&self, path: &str, (try_no, password): (i32, &str)) -> Option<&Waiting> {
        self.0.get(path).filter(|one| one.is(try_no, password))
    }

    /// The first task at or below a node whose job is still to be started.
    pub(super) fn job_below(&self, tree: &Tree, node: &str) -> Option<&str> {
        let is_due = |(path, one): &(&String, &Waiting)| {
            let is_below = at_or_below(path, node).is_some();
            is_below && one.kind == CommandKind::Job && one.due_for(tree, path).is_some()
        };
        self.0.iter().find(is_due).map(|(path, _)| &**path)
    }

    /// Whether a user has edited what this try is made of.
    pub(super) fn is_edited(&self, path: &str, job: (i32, &str)) -> bool {
        self.of(path, job).is_some_and(|one| one.edited.is_some())
    }

    /// Whether this try waits, and was killed since.
    pub(super) fn is_killed(&self, path: &str, job: (i32, &str)) -> bool {
        self.of(path, job).is_some_and(|one| one.is_killed)
    }

    /// This try is killed, where it waits.
    pub(super) fn kill(&mut self, path: &str, (try_no, password): (i32, &str)) {
        if let Some(one) = self.0.get_mut(path).filter(|one| one.is(try_no, password)) {
            one.is_killed = true;
        }
    }

    /// This try is started, or never will be.
    pub(super) fn over(&mut self, path: &str, job: (i32, &str)) {
        if self.has(path, job) {
            self.0.remove(path);
        }
    }

    /// Keeps those for which `is_due` holds.
    pub(super) fn retain(&mut self, mut is_due: impl FnMut(&str, &Waiting) -> bool) {
        self.0.retain(|path, one| is_due(path, one));
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The bytes that may be added.
    pub(super) fn edit_room(&self) -> usize {
        let edited = self.0.values().filter_map(|one| one.edited.as_ref());
        MAX_EDITED_BYTES.saturating_sub(edited.map(|one| one.bytes()).sum())
    }

    /// What a snapshot keeps of them.
    pub(super) fn stored(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(path, one)| (format!("{HEAD}{path}"), one.encode()))
    }

    /// Takes a line of a snapshot's head, where it is one of these.
    pub(super) fn restore(&mut self, name: &str, value: &str) {
        if let Some(path) = name.strip_prefix(HEAD) {
            self.add(path.to_owned(), Waiting::decode(value));
        }
    }
}

impl Waiting {
    fn is(&self, try_no: i32, password: &str) -> bool {
        self.try_no == try_no && self.password == password
    }

    /// The task that it is still to be made for, at this path.
    pub(super) fn due_for(&self, tree: &Tree, path: &str) -> Option<NodeId> {
        let id = tree.find(path)?;
        let node = tree.node(id);
        let is_script = self.kind == CommandKind::Script;
        let is_dummy = tree.user_variable(id, "ECF_DUMMY_TASK").is_some();
        let is_own = node.try_no() == self.try_no && *node.job().password == *self.password;
        let is_due = is_own && (is_script || node.state == State::Submitted && !is_dummy);
        is_due.then_some(id)
    }

    /// Texts with tabs between them: the try, behind a `k` where it was killed; the password; where
    /// users have edited it `job` or `script`; the number of variables and these, or `create`; the
    /// lines.
    fn encode(&self) -> String {
        let killed = if self.is_killed { KILLED } else { "" };
        let mut texts = vec![format!("{killed}{}", self.try_no), escaped(&self.password)];
        if let Some(edited) = &self.edited {
            texts.push(if self.kind == CommandKind::Script { "script" } else { "job" }.to_owned());
            let lines = match &**edited {
                Edited::Create(lines) => lines,
                Edited::Run { lines, variables } => {
                    texts.push(variables.len().to_string());
                    let pairs = variables.iter().flat_map(|(name, value)| [name, value]);
                    texts.extend(pairs.map(|text| escaped(text)));
                    lines
                }
            };
            if matches!(**edited, Edited::Create(_)) {
                texts.push("create".to_owned());
            }
            texts.extend(lines.iter().map(|line| escaped(line)));
        }
        texts.join("\t")
    }

    fn decode(text: &str) -> Self {
        let mut texts = text.split('\t');
        let number = texts.next().unwrap_or_default();
        let is_killed = number.starts_with(KILLED);
        let try_no = number.trim_start_matches(KILLED).parse().unwrap_or(0);
        let password = texts.next().map(plain).unwrap_or_default();
        let Some(word) = texts.next() else {
            return Self { kind: CommandKind::Job, try_no, password, is_killed, edited: None };
        };
        let kind = if word == "script" { CommandKind::Script } else { CommandKind::Job };
        let count: Option<usize> = texts.next().and_then(|number| number.parse().ok());
        let edited = match count {
            None => Edited::Create(texts.map(plain).collect()),
            Some(count) => {
                let mut variables = Vec::new();
                for _ in 0..count {
                    let (Some(name), Some(value)) = (texts.next(), texts.next()) else { break };
                    variables.push((plain(name), plain(value)));
                }
                Edited::Run { lines: texts.map(plain).collect(), variables }
            }
        };
        Self { kind, try_no, password, is_killed, edited: Some(Arc::new(edited)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_has_edited_is_read_as_it_was_stored() {
        let texts = || ["", "a b", "\t\\n\n\r", "\\", "ünï"].map(str::to_owned).to_vec();
        let pairs = vec![("A:1".to_owned(), "\t".to_owned()), ("B".to_owned(), String::new())];
        let run = Edited::Run { lines: texts(), variables: pairs };
        for (kind, edited) in [
            (CommandKind::Job, None),
            (CommandKind::Job, Some(run)),
            (CommandKind::Job, Some(Edited::Run { lines: Vec::new(), variables: Vec::new() })),
            (CommandKind::Job, Some(Edited::Create(texts()))),
            (CommandKind::Script, Some(Edited::Create(texts()))),
        ] {
            let password = "a b".to_owned();
            let edited = edited.map(Arc::new);
            let mut one = Waiting { kind, try_no: 7, password, is_killed: false, edited };
            for is_killed in [false, true] {
                one.is_killed = is_killed;
                let text = one.encode();
                assert!(!text.contains(['\n', '\r']), "{text}");
                assert_eq!(Waiting::decode(&text), one);
            }
        }
    }
}
