//! Following a server: its tree as a client has it, and what has changed in it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::levels::{Brought, Levels, Touched};
use super::{Client, ClientError, Result};
use crate::definition::print_attribute;
use crate::model::{
    Attribute, Displayed, Flags, NodeId, Passed, ServerState, Snapshot, State, Tree,
};
use crate::protocol::{
    Command, Encoding, SyncAnswer, SyncKind, SyncedChange, SyncedNode, read_sync_answer,
};

/// What of a server is [`Seen`] where changes came of which it remembers nothing: their number is
/// the value.
pub const MISSED: &str = "missed";

/// One thing that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The node's path; of the server `/`.
    pub path: String,
    /// What: `state`, `event`, `meter`, …; `added` and `deleted` of a node; or [`MISSED`].
    pub what: &'static str,
    /// The attribute's name; empty where it has none.
    pub name: String,
    /// What it is now.
    pub value: String,
}

/// A tree that follows a server's.
#[derive(Debug)]
pub struct Follower {
    client: Client,
    tree: Tree,
    /// What it is instead, where only some levels are followed.
    levels: Option<Levels>,
}

impl Follower {
    /// Follows a server from now on.
    ///
    /// # Errors
    /// When its tree can't be had.
    pub fn new(client: Client) -> Result<Self> {
        let tree = client.tree()?;
        Ok(Self { client, tree, levels: None })
    }

    /// Follows a node and some levels below it from now on; at a server that doesn't send levels
    /// all, of which each time only the changes come. A server of this program sends all states
    /// that nodes come to, too.
    ///
    /// # Errors
    /// When there is no such node, or as of [`new`](Self::new).
    pub fn of_levels(client: Client, path: &str, levels: u32) -> Result<Self> {
        if !client.is_own()? {
            return Self::new(client);
        }
        let levels = Levels::new(client.clone(), Encoding::Binary, path, levels)?;
        Ok(Self { client, tree: Tree::default(), levels: Some(levels.with_states()) })
    }

    /// The tree as it was when it was asked for last. What isn't shown as a [`Seen`] may be older.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        self.levels.as_ref().map_or(&self.tree, Levels::tree)
    }

    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// What has changed since the last time, by node.
    ///
    /// # Errors
    /// When the server can't be reached, or has refused.
    pub fn changes(&mut self) -> Result<Vec<Seen>> {
        if let Some(levels) = &mut self.levels {
            let before = levels.tree().snapshot();
            let brought = levels.sync()?;
            return Ok(seen(&before, levels.tree(), &brought));
        }
        let command = Command::Sync {
            kind: SyncKind::Changes,
            handle: 0,
            state_change_no: self.tree.state_change_no().into(),
            modify_change_no: self.tree.modify_change_no().into(),
        };
        let document = self.client.ask(command)?;
        match read_sync_answer(&document) {
            Ok(SyncAnswer::Whole(text)) => {
                let tree = self.client.parse(&text)?;
                Ok(self.replaced(tree))
            }
            Ok(SyncAnswer::Refused(why)) => Err(ClientError::Refused(why.into_owned())),
            Ok(SyncAnswer::Since { nodes, .. }) if nodes.is_empty() => Ok(Vec::new()),
            Ok(SyncAnswer::Since { nodes, .. }) if nodes.iter().any(|one| self.is_beyond(one)) => {
                self.reload()
            }
            Ok(SyncAnswer::Since { state_change_no, modify_change_no, nodes }) => {
                let seen = self.apply(&nodes);
                self.tree.set_change_numbers(state_change_no, modify_change_no);
                Ok(seen)
            }
            // Objects that lie too deep within each other: new nodes.
            Err(_) => self.reload(),
        }
    }

    /// What changes within this time, by node, as soon as something has, where a server of this
    /// program sends what it is asked to follow ([`of_levels`](Self::of_levels)), and at most once
    /// each `every`; else what has changed by then.
    ///
    /// # Errors
    /// As of [`changes`](Self::changes), once the time is over.
    pub fn wait(&mut self, within: Duration, every: Duration) -> Result<Vec<Seen>> {
        let Some(levels) = &mut self.levels else {
            std::thread::sleep(within);
            return self.changes();
        };
        let before = levels.tree().snapshot();
        match levels.wait(within, every) {
            Ok(Some(brought)) => Ok(seen(&before, levels.tree(), &brought)),
            Ok(None) => Ok(Vec::new()),
            Err(why) => {
                std::thread::sleep(within);
                Err(why)
            }
        }
    }

    /// Takes the whole tree, and says what is different.
    ///
    /// # Errors
    /// As of [`changes`](Self::changes).
    pub fn reload(&mut self) -> Result<Vec<Seen>> {
        if self.levels.is_some() {
            return self.changes();
        }
        let tree = self.client.tree()?;
        Ok(self.replaced(tree))
    }

    /// Whether a change is one of structure, for which the whole is taken.
    fn is_beyond(&self, node: &SyncedNode) -> bool {
        let is_structure = |change: &SyncedChange| {
            matches!(
                change.kind.as_str(),
                "ChildrenMemento" | "AliasChildrenMemento" | "OrderMemento" | "NodeRepeatMemento"
            )
        };
        node.clears || self.tree.find(&node.path).is_none() || node.changes.iter().any(is_structure)
    }

    fn replaced(&mut self, tree: Tree) -> Vec<Seen> {
        let before = std::mem::replace(&mut self.tree, tree);
        let mut looks = Looks::new(&before, &self.tree);
        looks.different();
        looks.seen
    }

    fn apply(&mut self, nodes: &[SyncedNode]) -> Vec<Seen> {
        let before = self.tree.snapshot();
        let mut changed: Vec<(NodeId, &str)> = Vec::new();
        for node in nodes {
            let Some(id) = self.tree.find(&node.path) else { continue };
            node.changes.iter().for_each(|change| self.change(id, change));
            changed.push((id, &node.path));
        }
        let mut looks = Looks::new(&before, &self.tree);
        looks.server();
        // A suite comes once more for its calendar.
        let mut known = HashSet::new();
        for (id, path) in changed.into_iter().filter(|(id, _)| known.insert(*id)) {
            looks.node((id, id), path);
        }
        looks.seen
    }

    fn change(&mut self, id: NodeId, change: &SyncedChange) {
        let state = |name| {
            let at = usize::try_from(change.number(name)).unwrap_or(0);
            State::ALL.get(at).copied().unwrap_or_default()
        };
        let node = self.tree.edit(id);
        match change.kind.as_str() {
            "StateMemento" => node.state = state("state_"),
            "NodeStateMemento" => {
                node.state = state("first");
                if let Some(since) = crate::model::Duration::of_text(change.text("duration")) {
                    node.since = since;
                }
            }
            "SuspendedMemento" => node.is_suspended = change.number("suspended_") == 1,
            "FlagMemento" => {
                node.flags = Flags(u32::try_from(change.number("flag_")).unwrap_or(0));
            }
            "SubmittableMemento" => {
                let mut job = node.job();
                job.rid = change.text("rid_").into();
                job.abort_reason = change.text("abr_").into();
                job.try_no = change.number("tryNo_");
                node.job = Some(job.into());
            }
            "ServerStateMemento" => {
                self.tree.server_mut().state = match change.number("state_") {
                    0 => ServerState::Halted,
                    1 => ServerState::Shutdown,
                    _ => ServerState::Running,
                };
            }
            kind => {
                let mut attributes = node.attributes.to_vec();
                attributes.iter_mut().for_each(|one| attribute(one, kind, change));
                node.attributes = attributes.into();
            }
        }
    }
}

/// Changes an attribute if it is the one that is meant.
fn attribute(one: &mut Attribute, kind: &str, change: &SyncedChange) {
    let is_named = |name: &str| name == change.text("n_");
    match (kind, one) {
        ("NodeEventMemento", Attribute::Event(event)) => {
            let number = change.text("number_").parse().ok();
            if is_named(&event.name) && event.number == number {
                event.value = change.number("v_") == 1;
            }
        }
        ("NodeMeterMemento", Attribute::Meter(meter)) if is_named(&meter.name) => {
            meter.value = change.number("v_");
        }
        ("NodeLabelMemento", Attribute::Label(label)) if is_named(&label.name) => {
            label.new_value = change.text("new_v_").into();
        }
        ("NodeVariableMemento", Attribute::Variable(variable)) if is_named(&variable.name) => {
            variable.value = change.text("v_").into();
        }
        ("NodeLimitMemento", Attribute::Limit(limit)) if is_named(&limit.name) => {
            (limit.value, limit.max) = (change.number("value_"), change.number("lim_"));
        }
        ("NodeRepeatIndexMemento", Attribute::Repeat(repeat)) => {
            repeat.over.set(change.text("index_or_value_").parse().unwrap_or(0));
        }
        ("NodeQueueIndexMemento", Attribute::Queue(queue))
            if queue.name == *change.text("name_") =>
        {
            queue.index = change.number("index_");
        }
        _ => {}
    }
}

/// What an answer of a server of this program has brought.
fn seen(before: &Snapshot, after: &Snapshot, brought: &Brought) -> Vec<Seen> {
    let mut looks = Looks::new(before, after);
    looks.pass(&brought.passed);
    match &brought.touched {
        Touched::Any => looks.different(),
        Touched::Nodes(paths) => {
            looks.server();
            for path in paths {
                if let (Some(old), Some(new)) = (before.find(path), after.find(path)) {
                    looks.node((old, new), path);
                }
            }
        }
    }
    // A node is there before it comes to states.
    looks.seen.sort_by_key(|one| (one.what != MISSED, one.what != "added"));
    looks.seen
}

/// Two looks at a tree, and what has been seen to be different.
struct Looks<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    /// The states of nodes that were seen last; none where those between both looks aren't known.
    states: Option<HashMap<&'a str, Displayed>>,
    seen: Vec<Seen>,
}

impl<'a> Looks<'a> {
    const fn new(before: &'a Snapshot, after: &'a Snapshot) -> Self {
        Self { before, after, states: None, seen: Vec::new() }
    }

    fn see(&mut self, path: &str, what: &'static str, name: String, value: String) {
        self.seen.push(Seen { path: path.to_owned(), what, name, value });
    }

    fn see_state(&mut self, path: &str, state: Displayed) {
        self.see(path, "state", String::new(), state.word().to_owned());
    }

    /// The states that nodes have come to between both looks, which are all.
    fn pass(&mut self, passed: &'a Passed<String>) {
        if passed.missed > 0 {
            self.see("/", MISSED, String::new(), passed.missed.to_string());
        }
        let mut states = HashMap::new();
        for (path, state) in &passed.states {
            let was = || self.before.find(path).map(|id| self.before.node(id).displayed());
            if states.insert(path.as_str(), *state).or_else(was) != Some(*state) {
                self.see_state(path, *state);
            }
        }
        self.states = Some(states);
    }

    /// All that is different.
    fn different(&mut self) {
        self.server();
        let (before, after) = (self.before, self.after);
        let mut known = HashSet::new();
        let mut walk = after.walk(NodeId::ROOT);
        while let Some(id) = walk.next() {
            let path = after.path(id);
            if let Some(old) = before.find(&path) {
                known.insert(old);
                self.node((old, id), &path);
            } else {
                walk.skip_below(id);
                let state = after.node(id).displayed().word().to_owned();
                self.see(&path, "added", String::new(), state);
            }
        }
        let mut walk = before.walk(NodeId::ROOT);
        while let Some(id) = walk.next() {
            if !known.contains(&id) {
                walk.skip_below(id);
                self.see(&before.path(id), "deleted", String::new(), String::new());
            }
        }
    }

    /// What is different of the server itself.
    fn server(&mut self) {
        let state = self.after.server().state;
        if self.before.server().state != state {
            self.see("/", "server", String::new(), state.word().to_owned());
        }
    }

    /// What is different of a node.
    fn node(&mut self, (old, new): (NodeId, NodeId), path: &str) {
        let (was, is) = (self.before.node(old), self.after.node(new));
        let state = is.displayed();
        let is_other = match &self.states {
            Some(states) => *states.get(path).unwrap_or(&was.displayed()) != state,
            // A state that it has left and come back to has changed.
            None => was.displayed() != state || was.since != is.since,
        };
        if is_other {
            self.see_state(path, state);
        }
        if was.try_no() != is.try_no() && is.try_no() != 0 {
            self.see(path, "try", String::new(), is.try_no().to_string());
        }
        if was.flags != is.flags {
            self.see(path, "flags", String::new(), is.flags.to_string());
        }
        for attribute in is.attributes.iter().filter(|one| !was.attributes.contains(one)) {
            let Some((name, value)) = value(self.after, attribute) else { continue };
            let known = was.attributes.iter().filter_map(|one| {
                (one.word() == attribute.word()).then(|| self::value(self.before, one)).flatten()
            });
            if !known.into_iter().any(|known| known == (name.clone(), value.clone())) {
                self.see(path, attribute.word(), name, value);
            }
        }
    }
}

/// What of an attribute is followed: its name, and what it is.
fn value(tree: &Snapshot, attribute: &Attribute) -> Option<(String, String)> {
    let (name, value) = match attribute {
        Attribute::Event(event) => {
            let number = event.number.map(|number| number.to_string()).unwrap_or_default();
            let name = if event.name.is_empty() { number } else { event.name.to_string() };
            (name, if event.value { "set" } else { "clear" }.to_owned())
        }
        Attribute::Meter(meter) => (meter.name.to_string(), meter.value.to_string()),
        Attribute::Label(label) => {
            let has_new = !label.new_value.is_empty();
            let text = if has_new { &label.new_value } else { &label.value };
            (label.name.to_string(), text.to_string())
        }
        Attribute::Variable(variable) => (variable.name.to_string(), variable.value.to_string()),
        Attribute::Limit(limit) => {
            (limit.name.to_string(), format!("{} of {}", limit.value, limit.max))
        }
        Attribute::Repeat(repeat) => (repeat.name.to_string(), repeat.over.text()),
        Attribute::Queue(queue) => (queue.name.to_string(), queue.index.to_string()),
        Attribute::Calendar(_) => return None,
        _ => (String::new(), print_attribute(tree, attribute).trim().to_owned()),
    };
    Some((name, value))
}
