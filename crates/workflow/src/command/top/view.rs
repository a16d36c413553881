//! What `top` shows of a tree: which nodes are open, which one is chosen, what is filtered. No I/O.

use std::collections::HashSet;

use crate::model::{Attribute, Displayed, Kind, NodeId, Snapshot};

/// The most nodes that a filter shows.
const FILTERED: usize = 2_000;

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The node's path.
    pub(super) path: String,
    /// How deep it is indented.
    pub(super) depth: usize,
    /// Its name.
    pub(super) name: String,
    /// What it shows.
    pub(super) state: Displayed,
    /// Whether nodes below it are shown; `None` where there are none.
    pub(super) is_open: Option<bool>,
    /// Its flags, and the values that jobs have set.
    pub(super) says: String,
}

/// What is looked at.
#[derive(Debug)]
pub(super) struct View {
    tree: Snapshot,
    open: HashSet<String>,
    /// The path of the chosen node.
    chosen: String,
    /// What names contain.
    pub(super) filter: String,
    /// The state that nodes have.
    pub(super) only: Option<Displayed>,
    /// The list as it is shown.
    rows: Vec<Row>,
    /// The first row on the screen.
    first: usize,
    /// Whether there is more than the filter shows.
    pub(super) is_cut: bool,
}

/// A step of the choice.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// So many rows down, or up.
    By(isize),
    /// The first row.
    Home,
    /// The last row.
    End,
}

impl View {
    /// A tree with its suites open.
    pub(super) fn new(tree: Snapshot) -> Self {
        let open = tree.suites().map(|id| tree.path(id)).collect();
        let (chosen, filter, rows) = Default::default();
        let mut view =
            Self { tree, open, chosen, filter, only: None, rows, first: 0, is_cut: false };
        view.list();
        view
    }

    /// Shows another state of the tree.
    pub(super) fn take(&mut self, tree: Snapshot) {
        self.tree = tree;
        self.list();
    }

    /// The tree.
    pub(super) const fn tree(&self) -> &Snapshot {
        &self.tree
    }

    /// The path of the chosen node; none where nothing is shown.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.rows.get(self.place()).map(|row| row.path.as_str())
    }

    fn place(&self) -> usize {
        self.rows.iter().position(|row| row.path == self.chosen).unwrap_or(0)
    }

    /// The rows of a screen of this height, and which of them is chosen.
    pub(super) fn screen(&mut self, height: usize) -> (&[Row], usize) {
        let place = self.place();
        let least = (place + 1).saturating_sub(height.max(1));
        self.first = self.first.min(self.rows.len().saturating_sub(height)).clamp(least, place);
        let end = (self.first + height).min(self.rows.len());
        (&self.rows[self.first..end], place - self.first)
    }

    /// All rows.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Chooses another node.
    pub(super) fn step(&mut self, step: Step) {
        let last = self.rows.len().saturating_sub(1);
        let place = match step {
            Step::By(rows) => self.place().saturating_add_signed(rows).min(last),
            Step::Home => 0,
            Step::End => last,
        };
        self.chosen = self.rows.get(place).map(|row| row.path.clone()).unwrap_or_default();
    }

    /// Shows what is below the chosen node, or the first of that.
    pub(super) fn open(&mut self) {
        let place = self.place();
        match self.rows.get(place) {
            Some(Row { is_open: Some(false), path, .. }) => {
                let path = path.clone();
                self.open.insert(path);
                self.list();
            }
            Some(Row { is_open: Some(true), .. }) => self.step(Step::By(1)),
            _ => {}
        }
    }

    /// Hides what is below the chosen node, or else chooses the node above it.
    pub(super) fn close(&mut self) {
        let place = self.place();
        let Some(row) = self.rows.get(place) else { return };
        if row.is_open == Some(true) && self.open.remove(&row.path) {
            return self.list();
        }
        let above = row.path.rsplit_once('/').map_or("", |(above, _)| above);
        if !above.is_empty() {
            self.chosen = above.to_owned();
        }
    }

    /// Opens or closes the chosen node.
    pub(super) fn toggle(&mut self) {
        match self.rows.get(self.place()).and_then(|row| row.is_open) {
            Some(true) => self.close(),
            Some(false) => self.open(),
            None => {}
        }
    }

    /// Lists nodes anew, of another tree, filter or choice of what is open.
    pub(super) fn list(&mut self) {
        // Where a node was chosen that isn't shown any more, what is in its place is.
        let place = self.place();
        self.is_cut = false;
        let mut rows = Vec::new();
        let is_filtered = !self.filter.is_empty() || self.only.is_some();
        if is_filtered {
            self.filtered(&mut rows);
        } else {
            for suite in self.tree.suites() {
                self.below(suite, 0, &mut rows);
            }
        }
        self.rows = rows;
        if self.rows.iter().all(|row| row.path != self.chosen) {
            let place = place.min(self.rows.len().saturating_sub(1));
            self.chosen = self.rows.get(place).map(|row| row.path.clone()).unwrap_or_default();
        }
    }

    fn below(&self, id: NodeId, depth: usize, rows: &mut Vec<Row>) {
        let path = self.tree.path(id);
        let has_more = self.tree.node(id).first_child.is_some();
        let is_open = has_more.then(|| self.open.contains(&path));
        rows.push(self.row(id, path, depth, is_open));
        if is_open == Some(true) {
            for child in self.tree.children(id) {
                self.below(child, depth + 1, rows);
            }
        }
    }

    /// Nodes that the filter takes, with those above them.
    fn filtered(&mut self, rows: &mut Vec<Row>) {
        let filter = self.filter.to_lowercase();
        let mut above: Vec<NodeId> = Vec::new();
        let mut taken = 0;
        for id in self.tree.walk(NodeId::ROOT).filter(|id| *id != NodeId::ROOT) {
            let node = self.tree.node(id);
            while above.last().is_some_and(|last| node.parent != Some(*last)) {
                above.pop();
            }
            above.push(id);
            // A state is looked for in tasks: families have that of their tasks.
            let has_state = self.only.is_none_or(|state| {
                let is_held = state == Displayed::Suspended || node.kind.is_job();
                node.displayed() == state && is_held
            });
            if !has_state || !(filter.is_empty() || node.name.to_lowercase().contains(&filter)) {
                continue;
            }
            taken += 1;
            if taken > FILTERED {
                self.is_cut = true;
                break;
            }
            for (depth, id) in above.iter().enumerate() {
                let path = self.tree.path(*id);
                let is_known = rows.iter().rev().find(|row: &&Row| row.depth <= depth);
                if is_known.is_none_or(|row| row.path != path && !is_within(&row.path, &path)) {
                    let has_more = self.tree.node(*id).first_child.is_some();
                    rows.push(self.row(*id, path, depth, has_more.then_some(true)));
                }
            }
        }
    }

    fn row(&self, id: NodeId, path: String, depth: usize, is_open: Option<bool>) -> Row {
        let node = self.tree.node(id);
        let mut says: Vec<String> = Vec::new();
        if !node.flags.is_empty() {
            says.push(format!("[{}]", node.flags));
        }
        if node.kind == Kind::Task && node.try_no() > 1 {
            says.push(format!("try {}", node.try_no()));
        }
        says.extend(node.attributes.iter().filter_map(Attribute::says));
        let (name, state, says) = (node.name.to_string(), node.displayed(), says.join("  "));
        Row { path, depth, name, state, is_open, says: says.replace('\n', " ") }
    }

    /// How many tasks show each state.
    pub(super) fn counts(&self) -> [usize; 7] {
        let mut counts = [0; 7];
        for id in self.tree.walk(NodeId::ROOT) {
            let node = self.tree.node(id);
            if node.kind == Kind::Task {
                counts[node.displayed() as usize] += 1;
            }
        }
        counts
    }
}

/// Whether a path is that of a node or of what is around it.
fn is_within(path: &str, around: &str) -> bool {
    path.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    const TEXT: &str = "suite s\n family f\n task a\n task b\n endfamily\n family g\n task a2\n \
                        endfamily\nendsuite\nsuite t\n task c\nendsuite\n";

    fn view() -> View {
        View::new(parse(TEXT, "x.def").expect("a definition").tree.snapshot())
    }

    fn paths(view: &View) -> Vec<&str> {
        view.rows().iter().map(|row| row.path.as_str()).collect()
    }

    #[test]
    fn nodes_are_opened_closed_and_chosen() {
        let mut view = view();
        assert_eq!(paths(&view), ["/s", "/s/f", "/s/g", "/t", "/t/c"]);
        view.step(Step::By(1));
        view.open();
        assert_eq!(paths(&view), ["/s", "/s/f", "/s/f/a", "/s/f/b", "/s/g", "/t", "/t/c"]);
        view.open();
        assert_eq!(view.chosen(), Some("/s/f/a"));
        view.close();
        assert_eq!(view.chosen(), Some("/s/f"));
        view.close();
        assert_eq!(paths(&view).len(), 5);
        view.step(Step::End);
        view.step(Step::By(9));
        assert_eq!(view.chosen(), Some("/t/c"));
        let (rows, chosen) = view.screen(2);
        assert_eq!((rows.len(), chosen, rows[1].path.as_str()), (2, 1, "/t/c"));
        view.step(Step::Home);
        assert_eq!(view.screen(2).1, 0);
    }

    #[test]
    fn a_filter_shows_what_it_takes_with_what_is_around_it() {
        let mut view = view();
        view.filter = "A".to_owned();
        view.list();
        assert_eq!(paths(&view), ["/s", "/s/f", "/s/f/a", "/s/g", "/s/g/a2"]);
        view.filter = "nowhere".to_owned();
        view.list();
        assert_eq!((paths(&view).len(), view.chosen()), (0, None));
        view.step(Step::By(1));
        view.toggle();
        assert_eq!(view.screen(3), (&[][..], 0));
        (view.filter, view.only) = (String::new(), Some(Displayed::Unknown));
        view.list();
        assert_eq!(paths(&view).len(), 8);
        view.only = Some(Displayed::Suspended);
        view.list();
        assert!(paths(&view).is_empty());
    }

    #[test]
    fn a_tree_that_has_lost_the_chosen_node_shows_another() {
        let mut view = view();
        view.step(Step::End);
        let less = parse("suite s\n task a\nendsuite\n", "x.def").expect("a definition").tree;
        view.take(less.snapshot());
        assert_eq!(paths(&view), ["/s", "/s/a"]);
        assert!(view.chosen().is_some());
        assert_eq!(view.counts()[Displayed::Unknown as usize], 1);
    }
}
