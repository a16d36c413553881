//! `--news` and `--sync`: what a client that is behind has to change in its definition.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::parts::{Parts, Told};
use super::text::{self, TreeText};
use crate::model::{Aspect, Attribute, Changed, Kind, NodeId, Snapshot, Tree, Verify};
use crate::protocol::{Changes, Children, Compound, Memento, News, Reply, SyncKind};

type Nodes = BTreeMap<NodeId, Changed>;

/// The most nodes that are sent with parents whose children were added or deleted: they take
/// several times the bytes of their text.
const MAX_CHILDREN: usize = 10_000;

/// Answers a client that knows the changes up to these numbers, of states and of structure.
pub(super) fn sync(
    parts: &mut Parts<'_>,
    tree: &Tree,
    kind: SyncKind,
    handle: i64,
    (state, modify): (i64, i64),
) -> Told {
    let suites = match (handle, parts.handles.suites(handle)) {
        (0, _) => None,
        (_, Some(suites)) => Some(Arc::clone(suites)),
        (_, None) if kind == SyncKind::News => return Told::Reply(Reply::News(News::Full)),
        (_, None) => {
            return Told::Reply(Reply::error(format!(
                "ClientSuiteMgr::max_change_no: handle({handle}) does not exist in server. Handle \
                 dropped or Server may have died? Please refresh GUI/re-register suites"
            )));
        }
    };
    let own = (i64::from(tree.state_change_no()), i64::from(tree.modify_change_no()));
    let is_changed = handle != 0 && parts.handles.is_changed(handle);
    // A client from the future was another server's.
    let is_ahead = state > own.0 || modify > own.1;
    let of = suites.as_ref().map(|names| found(tree, names));
    let nodes = match u32::try_from(state) {
        Ok(no) if !is_ahead && !is_changed && modify == own.1 => since(tree, no, of.as_ref()),
        _ => None,
    };
    if kind == SyncKind::News {
        return Told::Reply(Reply::News(match nodes {
            Some(nodes) if nodes.is_empty() => News::None,
            None if is_ahead => News::Full,
            _ => News::Some,
        }));
    }
    let snapshot = tree.snapshot();
    let with_clocks = kind == SyncKind::Clock;
    let known = u32::try_from(state).unwrap_or(0);
    // A client that asks for clocks may have passed over a calendar whose suite had not changed.
    let mut moved: BTreeSet<NodeId> =
        if with_clocks { tree.suites().collect() } else { tree.calendars_since(known).collect() };
    moved.retain(|id| is_of(tree, *id, of.as_ref()));
    match nodes {
        Some(nodes) if kind != SyncKind::Full => Told::Later(Box::new(move || {
            let nodes = compounds(&snapshot, &nodes, &moved, with_clocks);
            let (state_change_no, modify_change_no) = own;
            Reply::Changes(Changes::Since { state_change_no, modify_change_no, nodes })
        })),
        _ => {
            parts.handles.taken(handle);
            let Some(suites) = suites else {
                let reply = |text| Reply::Changes(Changes::Full(text));
                return Told::Text(TreeText::new(tree, NodeId::ROOT, text::NET, reply));
            };
            let changes = Changes::Some(text::of_suites(snapshot, &suites));
            Told::Later(Box::new(|| Reply::Changes(changes)))
        }
    }
}

/// What has changed since a number in some suites, or in all; `None` when the whole is to be sent:
/// that is not remembered, suites were added or deleted, or so much that a text is shorter.
fn since(tree: &Tree, no: u32, suites: Option<&HashSet<NodeId>>) -> Option<Nodes> {
    let mut nodes = tree.changed_since(no)?;
    nodes.retain(|id, _| is_of(tree, *id, suites));
    let mut sent = 0;
    for (id, _) in nodes.iter().filter(|(_, one)| one.has(Aspect::Children)) {
        if *id == NodeId::ROOT {
            return None;
        }
        sent += tree.walk(*id).take(MAX_CHILDREN).count();
        if sent >= MAX_CHILDREN {
            return None;
        }
    }
    Some(nodes)
}

/// The suites of these names, each looked for once: changed nodes are as many as names.
fn found(tree: &Snapshot, names: &[String]) -> HashSet<NodeId> {
    names.iter().filter_map(|name| tree.child(NodeId::ROOT, name)).collect()
}

/// Whether a node is in one of the suites; the server is in each.
fn is_of(tree: &Snapshot, id: NodeId, suites: Option<&HashSet<NodeId>>) -> bool {
    let Some(suites) = suites else { return true };
    tree.suite(id).is_none_or(|suite| suites.contains(&suite))
}

/// The changes of nodes in the order of the tree, and behind those of a suite its calendar where
/// that has moved; with clocks also where nothing else has changed.
fn compounds(
    tree: &Snapshot,
    nodes: &Nodes,
    moved: &BTreeSet<NodeId>,
    with_clocks: bool,
) -> Vec<Compound> {
    // Only what is changed is visited: each node's children that are, or have, changed nodes.
    let mut below: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
    for id in nodes.keys() {
        let mut at = *id;
        while let Some(parent) = tree.node(at).parent {
            if !below.entry(parent).or_default().insert(at) {
                break;
            }
            at = parent;
        }
    }
    let mut all = Vec::new();
    if let Some(changed) = nodes.get(&NodeId::ROOT) {
        all.extend(root(tree, changed));
    }
    if with_clocks {
        below.entry(NodeId::ROOT).or_default().extend(moved);
    }
    for suite in ordered(tree, NodeId::ROOT, &mut below) {
        let before = all.len();
        let mut open = vec![suite];
        while let Some(id) = open.pop() {
            let changed = nodes.get(&id);
            if let Some(changed) = changed {
                all.extend(compound(tree, id, changed));
            }
            if changed.is_some_and(|changed| changed.has(Aspect::Children)) {
                // All that is below is in it.
                continue;
            }
            let children = ordered(tree, id, &mut below);
            open.extend(children.into_iter().rev());
        }
        if let Some(calendar) = tree.calendar(suite)
            && moved.contains(&suite)
            && (with_clocks || all.len() > before)
        {
            let calendar = Attribute::Calendar(Box::new(*calendar));
            let mementos = vec![Memento::Attribute(calendar)];
            all.push(Compound { path: tree.path(suite), clears: false, mementos });
        }
    }
    all
}

/// Takes a node's changed children, in their order.
fn ordered(
    tree: &Snapshot,
    id: NodeId,
    below: &mut BTreeMap<NodeId, BTreeSet<NodeId>>,
) -> Vec<NodeId> {
    let changed = below.remove(&id).unwrap_or_default();
    if changed.len() > 1 {
        return tree.children(id).filter(|child| changed.contains(child)).collect();
    }
    changed.into_iter().collect()
}

fn names(tree: &Snapshot, id: NodeId) -> Memento {
    Memento::Order(tree.children(id).map(|child| tree.node(child).name.clone()).collect())
}

fn root(tree: &Snapshot, changed: &Changed) -> Option<Compound> {
    let (node, server) = (tree.node(NodeId::ROOT), tree.server());
    let mut mementos = Vec::new();
    if changed.has(Aspect::State) {
        mementos.push(Memento::RootState(node.state));
    }
    if changed.has(Aspect::Order) {
        mementos.push(names(tree, NodeId::ROOT));
    }
    if changed.has(Aspect::Flags) {
        mementos.push(Memento::Flags(node.flags));
    }
    if changed.has(Aspect::Server) {
        mementos.push(Memento::Server(server.state));
    }
    if changed.has(Aspect::Variables) {
        mementos.push(Memento::Variables(server.user_variables.clone()));
    }
    let compound = Compound { path: "/".to_owned(), clears: false, mementos };
    (!compound.mementos.is_empty()).then_some(compound)
}

/// The changes of a node, in ecFlow's order. What a client drops with the attributes, and what
/// follows a state on its own side, stands behind them.
fn compound(tree: &Snapshot, id: NodeId, changed: &Changed) -> Option<Compound> {
    let node = tree.node(id);
    let clears = changed.has(Aspect::Attributes);
    let mut mementos = Vec::new();
    let is_new_clock = |place: usize, one: &Attribute| {
        let is_changed = u16::try_from(place).is_ok_and(|place| changed.places.contains(&place));
        matches!(one, Attribute::Clock(_)) && (is_changed || changed.has(Aspect::Any))
    };
    let clocks =
        node.attributes.iter().enumerate().filter(|(place, one)| is_new_clock(*place, one));
    mementos.extend(clocks.map(|(_, one)| Memento::Attribute(one.clone())));
    if changed.has(Aspect::Children) {
        mementos.push(Memento::Children(Children { tree: tree.clone(), of: id }));
    } else if changed.has(Aspect::Order) {
        mementos.push(names(tree, id));
    }
    if node.kind == Kind::Task && changed.has(Aspect::AliasNumber) {
        mementos.push(Memento::AliasNumber(node.job().alias_no));
    }
    if node.kind.is_job() && changed.has(Aspect::Job) {
        mementos.push(Memento::Job(node.job()));
    }
    if changed.has(Aspect::State) {
        mementos.push(Memento::State(node.state, node.since));
    }
    if changed.has(Aspect::Default) {
        mementos.push(Memento::Default(node.default));
    }
    if changed.has(Aspect::Suspended) {
        mementos.push(Memento::Suspended(node.is_suspended));
    }
    if clears {
        mementos.extend(whole_attributes(&node.attributes));
    } else {
        mementos.extend(values(&node.attributes, changed));
    }
    if changed.has(Aspect::Flags) {
        mementos.push(Memento::Flags(node.flags));
    }
    let compound = Compound { path: tree.path(id), clears, mementos };
    (clears || !compound.mementos.is_empty()).then_some(compound)
}

fn verifies(attributes: &[Attribute]) -> Option<Memento> {
    let all: Vec<Verify> = attributes
        .iter()
        .filter_map(|one| match one {
            Attribute::Verify(verify) => Some(*verify),
            _ => None,
        })
        .collect();
    (!all.is_empty()).then_some(Memento::Verifies(all))
}

/// The place of an attribute among all of a node, and among those that have changed: ecFlow's.
const fn places(attribute: &Attribute) -> (u8, u8) {
    match attribute {
        Attribute::Event(_) => (1, 0),
        Attribute::Meter(_) => (0, 1),
        Attribute::Label(_) => (2, 2),
        Attribute::Today(_) => (3, 3),
        Attribute::Time(_) => (4, 4),
        Attribute::Day(_) => (5, 5),
        Attribute::Date(_) => (6, 6),
        Attribute::Cron(_) => (7, 7),
        Attribute::Verify(_) => (8, 9),
        Attribute::Zombie(_) => (9, 20),
        Attribute::Queue(_) => (10, 8),
        Attribute::Generic(_) => (11, 20),
        Attribute::Limit(_) => (12, 13),
        Attribute::Variable(_) => (13, 14),
        Attribute::InLimit(_) => (14, 20),
        Attribute::Trigger(_) => (15, 10),
        Attribute::Complete(_) => (16, 11),
        Attribute::Repeat(_) => (17, 12),
        Attribute::Late(_) => (18, 15),
        _ => (19, 20),
    }
}

/// All attributes that clients have dropped.
fn whole_attributes(attributes: &[Attribute]) -> Vec<Memento> {
    let mut all: Vec<&Attribute> = attributes.iter().collect();
    all.sort_by_key(|one| places(one).0);
    let mut mementos = Vec::new();
    for one in all {
        match one {
            Attribute::Verify(_) if !matches!(mementos.last(), Some(Memento::Verifies(_))) => {
                mementos.extend(verifies(attributes));
            }
            Attribute::Clock(_) | Attribute::Calendar(_) => {}
            one if Memento::is_of(one) => mementos.push(Memento::Attribute(one.clone())),
            _ => {}
        }
    }
    mementos
}

/// The attributes whose values have changed.
fn values(attributes: &[Attribute], changed: &Changed) -> Vec<Memento> {
    let changed = changed.places.iter().filter_map(|place| attributes.get(usize::from(*place)));
    let mut all: Vec<&Attribute> = changed.collect();
    all.sort_by_key(|one| places(one).1);
    let mut mementos: Vec<Memento> = Vec::new();
    for one in all {
        match one {
            Attribute::Queue(queue) => mementos.push(Memento::QueuePlace((**queue).clone())),
            Attribute::Repeat(repeat) => {
                mementos.push(Memento::RepeatPlace(repeat.over.place()));
            }
            Attribute::Verify(_) if !matches!(mementos.last(), Some(Memento::Verifies(_))) => {
                mementos.extend(verifies(attributes));
            }
            Attribute::Variable(_) => {
                // ecFlow has one number for all of them.
                let is_variable = |one: &&Attribute| matches!(one, Attribute::Variable(_));
                if !matches!(mementos.last(), Some(Memento::Attribute(Attribute::Variable(_)))) {
                    let all = attributes.iter().filter(is_variable).cloned();
                    mementos.extend(all.map(Memento::Attribute));
                }
            }
            Attribute::Zombie(_)
            | Attribute::Generic(_)
            | Attribute::InLimit(_)
            | Attribute::Clock(_)
            | Attribute::Calendar(_) => {}
            one if Memento::is_of(one) => mementos.push(Memento::Attribute(one.clone())),
            _ => {}
        }
    }
    mementos
}
