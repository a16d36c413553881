//! Changes of the tree itself: load, delete, order, attributes.

use super::super::attribute::{Attribute, Variable};
use super::super::calendar::Clock;
use super::super::changes::Aspect;
use super::super::node::NodeId;
use super::super::state::{Flag, Kind, ServerState, State};
use super::super::text::{OwnText, Text};
use super::super::tree::{AddError, DEPTH_LIMIT, Snapshot, Tree};
use super::change::{Effect, Requeue, RuleError, Rules};
use super::resolve::{STOPS, TRIES};

/// Why a definition is not loaded, in ecFlow's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// A suite of this name is there, and `force` was not given.
    #[error("Add Suite failed: A Suite of name '{0}' already exist")]
    Exists(String),
    /// A node could not be added.
    #[error(transparent)]
    Add(#[from] AddError),
}

/// Another order of a node among its siblings, or of the siblings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// It becomes the first.
    Top,
    /// It becomes the last.
    Bottom,
    /// All by name, capitals as small letters, numbers as such.
    Alphabetic,
    /// All by name, from the last to the first.
    Reverse,
    /// It goes one place up.
    Up,
    /// It goes one place down.
    Down,
    /// All by their run time, the longest first.
    Runtime,
}

impl Rules<'_> {
    /// Loads the suites of a definition. With `force`, suites that are there are replaced.
    ///
    /// # Errors
    /// A suite is there already; then nothing is loaded.
    pub fn load(&mut self, from: &Snapshot, force: bool) -> Result<(), LoadError> {
        if !force {
            for suite in from.suites() {
                let name = &from.node(suite).name;
                if self.tree.child(NodeId::ROOT, name).is_some() {
                    return Err(LoadError::Exists(name.to_string()));
                }
            }
        }
        for suite in from.suites() {
            let name = &from.node(suite).name;
            let known = self.tree.child(NodeId::ROOT, name);
            let place = known.and_then(|id| self.place(id));
            if let Some(known) = known {
                self.delete(known);
            }
            self.graft(from, suite, NodeId::ROOT, place)?;
        }
        self.load_variables(from);
        self.tree.next_modify_no();
        self.update_root();
        Ok(())
    }

    /// Loads a definition as [`Rules::load`] does, whose tree is indexed and needed no more: where
    /// there are no suites yet, its nodes are taken over as they are.
    ///
    /// # Errors
    /// A suite is there already; then nothing is loaded.
    pub fn take(&mut self, from: Tree, force: bool) -> Result<(), LoadError> {
        if self.tree.count() > 0 {
            return self.load(&from, force);
        }
        self.load_variables(&from);
        self.tree.take_nodes(from);
        self.wake_suites();
        self.tree.next_modify_no();
        self.update_root();
        Ok(())
    }

    fn load_variables(&mut self, from: &Snapshot) {
        for variable in &from.server().user_variables {
            let server = self.tree.server_mut();
            match server.user_variables.iter_mut().find(|known| known.name == variable.name) {
                Some(known) => known.value.clone_from(&variable.value),
                None => server.user_variables.push(variable.clone()),
            }
        }
    }

    fn place(&self, id: NodeId) -> Option<usize> {
        let parent = self.tree.node(id).parent?;
        self.tree.children(parent).position(|child| child == id)
    }

    /// Puts a node of another tree, with all below it, under a node of this one.
    ///
    /// # Errors
    /// A child of its name is there, or it can't be there.
    pub fn plug(
        &mut self,
        from: &Snapshot,
        node: NodeId,
        parent: NodeId,
        place: Option<usize>,
    ) -> Result<NodeId, LoadError> {
        let id = self.put(from, node, parent, place)?;
        self.go_up(id);
        Ok(id)
    }

    /// The same, with the states of the nodes above as they are: ecFlow's `plug`.
    ///
    /// # Errors
    /// A child of its name is there, or it can't be there.
    pub fn put(
        &mut self,
        from: &Snapshot,
        node: NodeId,
        parent: NodeId,
        place: Option<usize>,
    ) -> Result<NodeId, LoadError> {
        let id = self.graft(from, node, parent, place)?;
        self.tree.children_changed(parent);
        if parent == NodeId::ROOT {
            self.tree.next_modify_no();
        }
        self.update_root();
        Ok(id)
    }

    /// Copies a node of another tree, with all below it, under a node of this one: it is looked at,
    /// and so is whoever named what wasn't there.
    pub(super) fn graft(
        &mut self,
        from: &Snapshot,
        node: NodeId,
        parent: NodeId,
        place: Option<usize>,
    ) -> Result<NodeId, AddError> {
        self.check_levels(from, node, parent)?;
        let missing = self.tree.waiting.missing.clone();
        let id = self.tree.graft(from, node, parent, place)?;
        missing.into_iter().for_each(|id| self.wake(id));
        self.wake(id);
        Ok(id)
    }

    /// Moves a node, with all below it, under another one. A job that was asked for at or below it
    /// just before is made where its task is then, and has its tokens there.
    ///
    /// # Errors
    /// It can't be there; nothing is changed then.
    pub fn move_below(&mut self, id: NodeId, parent: NodeId) -> Result<NodeId, LoadError> {
        let node = self.tree.node(id);
        self.tree.check_child(parent, node.kind, &node.name)?;
        self.check_levels(&self.tree.snapshot(), id, parent)?;
        let holding = self.leave_to_move(id);
        let before = self.tree.snapshot();
        self.delete(id);
        let moved = self.put(&before, id, parent, None)?;
        self.take_again(moved, &holding);
        let (old, new) = (before.path(id), self.tree.path(moved));
        for effect in &mut self.effects {
            if let Effect::Submit(job) = effect
                && let Some(path) = at_or_below(&job.path, &old)
            {
                job.path = format!("{new}{path}");
                job.node = self.tree.find(&job.path).unwrap_or(job.node);
            }
        }
        Ok(moved)
    }

    /// Whether there are levels enough for a node of another tree, with all below it, under a node
    /// of this one.
    ///
    /// # Errors
    /// There are not.
    pub fn check_levels(
        &self,
        from: &Snapshot,
        node: NodeId,
        parent: NodeId,
    ) -> Result<(), AddError> {
        let level = |id: NodeId| from.upwards(id).count();
        let (old, new) = (level(node), self.tree.upwards(parent).count() + 1);
        // No deeper than it was it has room.
        if new <= old {
            return Ok(());
        }
        let deepest = from.walk(node).map(level).max().unwrap_or(old);
        if deepest + new - old > DEPTH_LIMIT { Err(AddError::Depth) } else { Ok(()) }
    }

    /// Adds an alias to a task, with its meters, events and labels as they are at the start, and
    /// these variables, whose names may be any.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn add_alias(
        &mut self,
        task: NodeId,
        variables: &[(String, String)],
    ) -> Result<NodeId, AddError> {
        let number = self.tree.node(task).job.as_ref().map_or(0, |job| job.alias_no);
        let name = OwnText::from(format!("alias{number}"));
        let alias = self.tree.add(task, Kind::Alias, name, None)?;
        let mut all: Vec<Attribute> = Vec::new();
        for (name, value) in variables {
            let (name, value) = (self.tree.share(name), OwnText::from(value.as_str()));
            all.push(Attribute::Variable(Variable { name, value }));
        }
        for attribute in self.tree.node(task).attributes.iter() {
            let mut own = attribute.clone();
            match &mut own {
                Attribute::Meter(meter) => meter.value = meter.min,
                Attribute::Event(event) => event.value = event.initial,
                Attribute::Label(label) => label.new_value = Text::default(),
                _ => continue,
            }
            all.push(own);
        }
        all.sort_by_key(Attribute::rank);
        self.tree.node_mut(alias).attributes = all.into();
        self.tree.index_inherited(alias);
        self.tree.node_mut(task).job_mut().alias_no = number.saturating_add(1);
        self.tree.changed_in(task, Aspect::AliasNumber);
        self.tree.children_changed(task);
        self.wake_waiters(task);
        Ok(alias)
    }

    /// Deletes a node and all below it: its jobs' tokens are given back.
    pub fn delete(&mut self, id: NodeId) {
        let Some(parent) = self.tree.node(id).parent else { return };
        self.drop_archives(id);
        let all: Vec<NodeId> = self.tree.walk(id).collect();
        self.leave_all_limits(&all);
        let mut waiters: Vec<NodeId> = Vec::new();
        for id in &all {
            waiters.extend(self.tree.waiting.of(*id));
            waiters.extend(self.tree.waiting.of_limit(*id));
        }
        self.tree.forget(&all);
        let gone = self.tree.remove(id);
        self.discard(gone);
        waiters.into_iter().for_each(|id| self.wake(id));
        if parent == NodeId::ROOT {
            self.tree.next_modify_no();
            self.update_root();
        } else {
            self.leave_limits_upwards(parent);
            self.tree.children_changed(parent);
            self.go_up(parent);
        }
    }

    /// The archives of a node that is about to be deleted, and of those below it, go.
    fn drop_archives(&mut self, id: NodeId) {
        if self.has_archive(id) {
            let home = self.tree.user_variable(id, "ECF_HOME").unwrap_or_default().to_owned();
            self.effects.push(Effect::DropArchives { path: self.tree.path(id), home });
        }
    }

    /// Deletes all suites. No one is left who would take tokens or wait, so that it takes one look
    /// at each node.
    pub fn delete_all(&mut self) {
        let suites: Vec<NodeId> = self.tree.suites().collect();
        for suite in suites {
            self.drop_archives(suite);
            self.tree.next_modify_no();
        }
        let gone = self.tree.remove_all();
        self.discard(gone);
        self.update_root();
        self.tree.server_mut().history.clear();
    }

    /// Puts a node, or its siblings, into another order.
    ///
    /// # Errors
    /// By how long they have run nodes are ordered that are complete.
    pub fn order(&mut self, id: NodeId, order: Order) -> Result<(), RuleError> {
        let Some(parent) = self.tree.node(id).parent else { return Ok(()) };
        let mut all: Vec<NodeId> = self.tree.children(parent).collect();
        let Some(place) = all.iter().position(|child| *child == id) else { return Ok(()) };
        let last = all.len() - 1;
        // Numbers come before other names: where they are compared as texts with some names and as
        // numbers with others, there may be no order.
        let name = |id: &NodeId| {
            let name = self.tree.node(*id).name.to_ascii_uppercase();
            let number = name.parse::<i32>().ok();
            (number.is_none(), number, name)
        };
        match order {
            Order::Top => all[..=place].rotate_right(1),
            Order::Bottom => all[place..].rotate_left(1),
            Order::Up if place > 0 => all.swap(place, place - 1),
            Order::Down if place < last => all.swap(place, place + 1),
            Order::Up | Order::Down => {}
            Order::Alphabetic => all.sort_by_cached_key(name),
            Order::Reverse => all.sort_by_cached_key(|id| std::cmp::Reverse(name(id).2)),
            Order::Runtime => {
                if all.iter().any(|id| self.tree.node(*id).state != State::Complete) {
                    let is_root = parent == NodeId::ROOT;
                    let (who, what) =
                        if is_root { ("Defs", "suites") } else { ("NodeContainer", "nodes") };
                    return Err(RuleError::Refused(format!(
                        "{who}::order: To order by RUNTIME All {what} must be complete"
                    )));
                }
                let ran = |id: &NodeId| {
                    let tasks = self.tree.walk(*id).filter(|id| self.tree.node(*id).kind.is_job());
                    tasks.map(|id| self.tree.node(id).ran.us).sum::<i64>()
                };
                all.sort_by_key(|id| std::cmp::Reverse(ran(id)));
            }
        }
        self.tree.reorder(parent, &all);
        self.tree.changed_in(parent, Aspect::Order);
        Ok(())
    }

    /// Moves a child to the place of another one, as `plug` does among siblings.
    pub fn move_child(&mut self, parent: NodeId, id: NodeId, place: usize) {
        let mut all: Vec<NodeId> =
            self.tree.children(parent).filter(|child| *child != id).collect();
        all.insert(place.min(all.len()), id);
        self.tree.reorder(parent, &all);
        self.tree.changed_in(parent, Aspect::Order);
    }

    /// Halts, shuts down or restarts the server.
    pub fn set_server_state(&mut self, state: ServerState) {
        self.tree.server_mut().state = state;
        self.tree.changed_in(NodeId::ROOT, Aspect::Server);
        if state == ServerState::Running {
            self.wake_suites();
        }
    }

    /// Sets a user's variable of the server, or deletes it; whether it was there.
    pub fn set_server_variable(&mut self, name: &str, value: Option<&str>) -> bool {
        let known = &mut self.tree.server_mut().user_variables;
        let place = known.iter().position(|one| one.name == *name);
        match (place, value) {
            (Some(place), Some(value)) => known[place].value = value.into(),
            (Some(place), None) => drop(known.remove(place)),
            (None, Some(value)) => known.push(Variable { name: name.into(), value: value.into() }),
            (None, None) => return false,
        }
        self.changed_in(NodeId::ROOT, Aspect::Variables);
        if name == TRIES {
            self.wake_suites();
        }
        place.is_some()
    }

    /// Adds an attribute to a node.
    pub fn add_attribute(&mut self, id: NodeId, attribute: Attribute) {
        // Clients keep a clock when they drop attributes, so that it is sent by itself.
        let is_clock = matches!(attribute, Attribute::Clock(_));
        let is_limit = matches!(attribute, Attribute::Limit(_));
        self.tree.add_attribute(id, attribute);
        self.tree.changed_in(id, if is_clock { Aspect::Any } else { Aspect::Attributes });
        self.tree.index(id);
        if is_limit {
            self.tree.index_limits(id);
        }
        self.wake(id);
        self.wake_waiters(id);
    }

    /// Deletes the attributes of a node for which `is_it` holds; whether there was one.
    pub fn delete_attributes(
        &mut self,
        id: NodeId,
        mut is_it: impl FnMut(&Attribute) -> bool,
    ) -> bool {
        let mut is_limit = false;
        let is_there = self.tree.remove_attributes(id, |one| {
            let is_it = is_it(one);
            is_limit |= is_it && matches!(one, Attribute::Limit(_));
            is_it
        });
        if is_there {
            if is_limit {
                self.wake_limited(id);
                self.tree.index_limits(id);
            }
            self.wake(id);
            self.wake_waiters(id);
        }
        is_there
    }

    /// Changes the attributes of a node in place: values, not names. Whether one was changed.
    pub fn change_attributes(
        &mut self,
        id: NodeId,
        mut change: impl FnMut(&mut Attribute) -> bool,
    ) -> bool {
        let mut places = Vec::new();
        for (place, attribute) in self.tree.node_mut(id).attributes_mut().iter_mut().enumerate() {
            if change(attribute) {
                places.push(place);
            }
        }
        if places.is_empty() {
            return false;
        }
        for place in places {
            self.tree.attribute_changed(id, place);
        }
        self.tree.index(id);
        self.wake_waiters(id);
        self.wake(id);
        self.wake_limited(id);
        true
    }

    /// Sorts the attributes with these keywords by their names: letters before capitals.
    pub fn sort_attributes(&mut self, id: NodeId, words: &[&str]) {
        if !self.tree.node(id).attributes.iter().any(|one| words.contains(&one.word())) {
            return;
        }
        let key = |one: &Attribute| {
            let name = match one {
                _ if !words.contains(&one.word()) => String::new(),
                Attribute::Event(event) if event.name.is_empty() => {
                    event.number.map_or_else(String::new, |number| number.to_string())
                }
                Attribute::Event(event) => event.name.to_string(),
                one => one.name().map_or_else(String::new, ToString::to_string),
            };
            let letters = name.chars().map(|c| (c.to_ascii_uppercase(), c.is_ascii_uppercase()));
            (one.rank(), letters.collect::<Vec<_>>())
        };
        self.tree.node_mut(id).attributes_mut().sort_by_cached_key(key);
        self.tree.attributes_changed(id);
    }

    /// Takes a path from those that hold tokens of a limit.
    pub fn delete_holder(&mut self, id: NodeId, limit: &str, path: &str) {
        self.change_attributes(id, |one| match one {
            Attribute::Limit(known) if known.name == *limit => known.delete_holder(path),
            _ => false,
        });
    }

    /// Gives a suite another clock: its calendar begins anew, and so do the times below.
    pub fn set_clock(&mut self, suite: NodeId, clock: Clock) {
        self.tree.remove_attributes(suite, |one| matches!(one, Attribute::Clock(_)));
        self.add_attribute(suite, Attribute::Clock(Box::new(clock)));
        self.begin_calendar(suite);
        let calendar = self.calendar(suite);
        let all: Vec<NodeId> = self.tree.walk(suite).filter(|id| self.has_times(*id)).collect();
        for id in all {
            self.requeue_times(id, &calendar, Requeue::FULL, true);
            self.changed(id);
        }
    }

    /// Sets the state that begin and requeue give a node.
    pub fn set_default(&mut self, id: NodeId, state: super::super::state::Displayed) {
        self.tree.node_mut(id).default = state;
        self.tree.changed_in(id, Aspect::Default);
    }

    /// Sets or clears a flag of a node, as an operator asks.
    pub fn alter_flag(&mut self, id: NodeId, flag: Flag, is_set: bool) {
        self.set_flag(id, flag, is_set);
        if !is_set && STOPS.contains(&flag) {
            self.wake(id);
        }
    }
}

/// What a path has behind that of a node, where it is that node's or of one below it.
#[must_use]
pub fn at_or_below<'a>(path: &'a str, node: &str) -> Option<&'a str> {
    path.strip_prefix(node).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Tree {
    /// Adds an attribute behind those of its kind, without telling anybody.
    pub(in super::super) fn add_attribute(&mut self, id: NodeId, attribute: Attribute) {
        let mut all = self.node(id).attributes.to_vec();
        let place = all.partition_point(|known| known.rank() <= attribute.rank());
        all.insert(place, attribute);
        self.node_mut(id).attributes = all.into();
    }

    /// Removes attributes; whether there was one.
    pub(in super::super) fn remove_attributes(
        &mut self,
        id: NodeId,
        mut is_it: impl FnMut(&Attribute) -> bool,
    ) -> bool {
        let all = &self.node(id).attributes;
        let kept: Vec<Attribute> =
            all.iter().filter(|attribute| !is_it(attribute)).cloned().collect();
        if kept.len() == all.len() {
            return false;
        }
        self.node_mut(id).attributes = kept.into();
        self.attributes_changed(id);
        true
    }

    /// Copies a node of another tree, with all below it, under a node of this one, and notes for
    /// whom it waits.
    pub(super) fn graft(
        &mut self,
        from: &Snapshot,
        node: NodeId,
        parent: NodeId,
        place: Option<usize>,
    ) -> Result<NodeId, AddError> {
        let source = from.node(node);
        let top = self.add(parent, source.kind, source.name.clone(), place)?;
        self.copy_into(top, from, node);
        // Pairs of a node and its copy whose children are to be copied.
        let mut open = vec![(node, top)];
        while let Some((source, copy)) = open.pop() {
            for child in from.children(source) {
                let node = from.node(child);
                let id = self.add(copy, node.kind, node.name.clone(), None)?;
                self.copy_into(id, from, child);
                if node.first_child.is_some() {
                    open.push((child, id));
                }
            }
        }
        let all: Vec<NodeId> = self.walk(top).collect();
        for id in all {
            self.index(id);
        }
        self.index_inherited(top);
        self.index_missing();
        Ok(top)
    }

    fn copy_into(&mut self, id: NodeId, from: &Snapshot, source: NodeId) {
        let source = from.node(source).clone();
        let node = self.node_mut(id);
        let (parent, first, last) = (node.parent, node.first_child, node.last_child);
        let (next, suite) = (node.next, node.suite);
        *node = source;
        (node.parent, node.first_child, node.last_child, node.next) = (parent, first, last, next);
        node.suite = suite;
    }
}
