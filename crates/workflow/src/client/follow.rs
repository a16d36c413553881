//! Following a server: its tree as a client has it, and what has changed in it.

use std::collections::HashSet;
use std::time::Duration;

use super::levels::{Levels, Touched};
use super::{Client, ClientError, Result};
use crate::definition::print_attribute;
use crate::model::{Attribute, Flags, NodeId, ServerState, Snapshot, State, Tree};
use crate::protocol::{
    Command, Encoding, SyncAnswer, SyncKind, SyncedChange, SyncedNode, read_sync_answer,
};

/// One thing that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The node's path; of the server `/`.
    pub path: String,
    /// What: `state`, `event`, `meter`, …; `added` and `deleted` of a node.
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
    /// all, of which each time only the changes come.
    ///
    /// # Errors
    /// When there is no such node, or as of [`new`](Self::new).
    pub fn of_levels(client: Client, path: &str, levels: u32) -> Result<Self> {
        if !client.is_own()? {
            return Self::new(client);
        }
        let levels = Some(Levels::new(client.clone(), Encoding::Binary, path, levels)?);
        Ok(Self { client, tree: Tree::default(), levels })
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
            let touched = levels.sync()?;
            return Ok(seen(&before, levels.tree(), &touched));
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
            Ok(Some(touched)) => Ok(seen(&before, levels.tree(), &touched)),
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
        different(&before, &self.tree)
    }

    fn apply(&mut self, nodes: &[SyncedNode]) -> Vec<Seen> {
        let before = self.tree.snapshot();
        let mut changed: Vec<(NodeId, &str)> = Vec::new();
        for node in nodes {
            let Some(id) = self.tree.find(&node.path) else { continue };
            node.changes.iter().for_each(|change| self.change(id, change));
            changed.push((id, &node.path));
        }
        let mut seen = Vec::new();
        server(&before, &self.tree, &mut seen);
        // A suite comes once more for its calendar.
        let mut known = HashSet::new();
        for (id, path) in changed.into_iter().filter(|(id, _)| known.insert(*id)) {
            node((&before, id), (&self.tree, id), path, &mut seen);
        }
        seen
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

/// What is different of two states of a tree, of which no more than this may be.
fn seen(before: &Snapshot, after: &Snapshot, touched: &Touched) -> Vec<Seen> {
    let Touched::Nodes(paths) = touched else { return different(before, after) };
    let mut seen = Vec::new();
    server(before, after, &mut seen);
    for path in paths {
        if let (Some(old), Some(new)) = (before.find(path), after.find(path)) {
            node((before, old), (after, new), path, &mut seen);
        }
    }
    seen
}

/// What is different of two states of a tree.
fn different(before: &Snapshot, after: &Snapshot) -> Vec<Seen> {
    let mut seen = Vec::new();
    server(before, after, &mut seen);
    let mut known = HashSet::new();
    let mut walk = after.walk(NodeId::ROOT);
    while let Some(id) = walk.next() {
        let path = after.path(id);
        if let Some(old) = before.find(&path) {
            known.insert(old);
            node((before, old), (after, id), &path, &mut seen);
        } else {
            walk.skip_below(id);
            let value = after.node(id).displayed().word().to_owned();
            seen.push(Seen { path, what: "added", name: String::new(), value });
        }
    }
    let mut walk = before.walk(NodeId::ROOT);
    while let Some(id) = walk.next() {
        if !known.contains(&id) {
            walk.skip_below(id);
            let (name, value) = Default::default();
            seen.push(Seen { path: before.path(id), what: "deleted", name, value });
        }
    }
    seen
}

fn server(before: &Snapshot, after: &Snapshot, seen: &mut Vec<Seen>) {
    let state = after.server().state;
    if before.server().state != state {
        let (path, name, value) = ("/".to_owned(), String::new(), state.word().to_owned());
        seen.push(Seen { path, what: "server", name, value });
    }
}

/// What is different of a node.
fn node(
    (before, old): (&Snapshot, NodeId),
    (after, new): (&Snapshot, NodeId),
    path: &str,
    seen: &mut Vec<Seen>,
) {
    let (was, is) = (before.node(old), after.node(new));
    let mut see = |what, name: String, value: String| {
        seen.push(Seen { path: path.to_owned(), what, name, value });
    };
    // A state that it has left and come back to has changed.
    if was.displayed() != is.displayed() || was.since != is.since {
        see("state", String::new(), is.displayed().word().to_owned());
    }
    if was.try_no() != is.try_no() && is.try_no() != 0 {
        see("try", String::new(), is.try_no().to_string());
    }
    if was.flags != is.flags {
        see("flags", String::new(), is.flags.to_string());
    }
    for attribute in is.attributes.iter().filter(|one| !was.attributes.contains(one)) {
        let Some((name, value)) = value(after, attribute) else { continue };
        let known = was.attributes.iter().filter_map(|one| {
            (one.word() == attribute.word()).then(|| self::value(before, one)).flatten()
        });
        if !known.into_iter().any(|known| known == (name.clone(), value.clone())) {
            see(attribute.word(), name, value);
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
