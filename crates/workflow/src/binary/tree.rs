//! The server and its nodes as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bytes::{BadBinary, Pack, Reader, Result, Writer};
use crate::model::{Attribute, Displayed, Duration, Flags, Kind, Mark, Marks, Node, NodeId};
use crate::model::{OwnText, Server, Snapshot, State, Tree};

const FORMAT: &[u8; 4] = b"LWT1";

/// The kinds by their numbers.
const KINDS: [Kind; 5] = [Kind::Root, Kind::Suite, Kind::Family, Kind::Task, Kind::Alias];

/// The first byte of a node: its kind, its state, and these.
const STATE_SHIFT: u8 = 3;
const SUSPENDED: u8 = 1 << 6;
const BEGUN: u8 = 1 << 7;

/// The second byte: which fields follow.
const DEFAULT: u8 = 1;
const FLAGS: u8 = 1 << 1;
const SINCE: u8 = 1 << 2;
const RAN: u8 = 1 << 3;
const JOB: u8 = 1 << 4;
const ATTRIBUTES: u8 = 1 << 5;
const CHILDREN: u8 = 1 << 6;
const MARK: u8 = 1 << 7;

/// The fewest bytes of a node: those two, and a name of one byte.
const MIN_NODE_BYTES: usize = 4;

/// A tree, or what of one was written.
#[derive(Debug, Default)]
pub struct Read {
    /// The tree.
    pub tree: Tree,
    /// What of its nodes is not in it.
    pub marks: Marks,
}

/// Writes a tree, of whose nodes some may be marked, and passes on pieces of about 64 KiB; the
/// edit history is written where `has_history`.
pub fn write(tree: &Snapshot, marks: &Marks, has_history: bool, take: &mut dyn FnMut(&[u8])) {
    whole(tree, marks, has_history, Writer::new(take));
}

/// The same of all of a tree, with each text as if no node shared it, which reads the same: a
/// ladder measures what sharing brings.
pub(crate) fn write_apart(tree: &Snapshot, take: &mut dyn FnMut(&[u8])) {
    let mut to = Writer::new(take);
    to.is_apart = true;
    whole(tree, &Marks::new(), true, to);
}

fn whole(tree: &Snapshot, marks: &Marks, has_history: bool, mut to: Writer<'_>) {
    to.bytes(FORMAT);
    to.number(tree.count() as u64);
    server(tree, has_history, &mut to);
    for id in tree.walk(NodeId::ROOT) {
        node(tree, id, marks.get(&id), &mut to);
        to.pass();
    }
    to.end();
}

fn server(tree: &Snapshot, has_history: bool, to: &mut Writer<'_>) {
    let server = tree.server();
    tree.state_change_no().put(to);
    tree.modify_change_no().put(to);
    server.state.put(to);
    server.calendar_count.put(to);
    server.user_variables.put(to);
    server.variables.put(to);
    server.externs.put(to);
    to.number(if has_history { server.history.len() as u64 } else { 0 });
    for (path, lines) in server.history.iter().filter(|_| has_history) {
        path.put(to);
        lines.put(to);
        to.pass();
    }
}

fn node(tree: &Snapshot, id: NodeId, mark: Option<&Mark>, to: &mut Writer<'_>) {
    let node = tree.node(id);
    let bit = |has: bool, bit: u8| if has { bit } else { 0 };
    let kind = KINDS.iter().position(|kind| *kind == node.kind).unwrap_or(0);
    to.byte(
        kind as u8
            | (node.state as u8) << STATE_SHIFT
            | bit(node.is_suspended, SUSPENDED)
            | bit(node.is_begun, BEGUN),
    );
    let has_default = node.default != Displayed::Queued;
    to.byte(
        bit(has_default, DEFAULT)
            | bit(!node.flags.is_empty(), FLAGS)
            | bit(node.since != Duration::ZERO, SINCE)
            | bit(node.ran != Duration::ZERO, RAN)
            | bit(node.job.is_some(), JOB)
            | bit(!node.attributes.is_empty(), ATTRIBUTES)
            | bit(node.first_child.is_some(), CHILDREN)
            | bit(mark.is_some(), MARK),
    );
    node.name.put(to);
    if has_default {
        node.default.put(to);
    }
    if !node.flags.is_empty() {
        node.flags.0.put(to);
    }
    for time in [node.since, node.ran] {
        if time != Duration::ZERO {
            time.put(to);
        }
    }
    if let Some(job) = &node.job {
        job.put(to);
    }
    if !node.attributes.is_empty() {
        to.number(node.attributes.len() as u64);
        node.attributes.iter().for_each(|one| one.put(to));
    }
    if node.first_child.is_some() {
        to.number(tree.children(id).count() as u64);
    }
    if let Some(mark) = mark {
        to.byte(mark.bits());
    }
}

/// Whether these bytes begin as what [`write()`] writes.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(FORMAT)
}

/// Reads what [`write()`] has written.
///
/// # Errors
/// Where the bytes are something else: what is allocated is in proportion to them all the same.
pub fn read(bytes: &[u8]) -> std::result::Result<Read, BadBinary> {
    let mut from = Reader::new(bytes);
    if from.take(FORMAT.len())? != FORMAT {
        return Err(BadBinary { at: 0, what: "it doesn't begin with LWT1".to_owned() });
    }
    let count = from.count()?;
    if count > from.left() / MIN_NODE_BYTES {
        return from.bad(format!("{count} nodes in {} bytes", from.left()));
    }
    let mut tree = Tree::with_room(count);
    let state_change_no = Pack::take(&mut from)?;
    let modify_change_no = Pack::take(&mut from)?;
    *tree.server_mut() = read_server(&mut from)?;
    let mut marks = Marks::new();
    // The nodes that are open, and how many of their children are to come.
    let mut open: Vec<(NodeId, u64)> = Vec::new();
    let mut attributes = Vec::new();
    loop {
        let parent = open.last().map(|(id, _)| *id);
        let head = [from.byte()?, from.byte()?];
        let mut node = begin(parent, head, &mut from)?;
        fields(&mut node, head, &mut attributes, &mut from)?;
        let id = match parent {
            Some(parent) => {
                let added = tree.put(parent, node, None);
                added.or_else(|why| from.bad(format!("a node: {why}")))?
            }
            None => {
                *tree.edit(NodeId::ROOT) = node;
                NodeId::ROOT
            }
        };
        let children = if head[1] & CHILDREN != 0 { from.number()? } else { 0 };
        if head[1] & MARK != 0 {
            let bits = from.byte()?;
            let unknown = || from.bad(format!("{bits} is no mark of a node"));
            marks.insert(id, Mark::of_bits(bits).map_or_else(unknown, Ok)?);
        }
        open.push((id, children));
        while let Some((_, 0)) = open.last() {
            open.pop();
        }
        match open.last_mut() {
            Some((_, left)) => *left -= 1,
            None => break,
        }
    }
    match from.left() {
        0 if tree.count() == count => {}
        0 => return from.bad(format!("{} nodes where {count} were to come", tree.count())),
        left => return from.bad(format!("{left} bytes behind the last node")),
    }
    tree.set_change_numbers(state_change_no, modify_change_no);
    Ok(Read { tree, marks })
}

fn read_server(from: &mut Reader<'_>) -> Result<Server> {
    let mut server = Server {
        state: Pack::take(from)?,
        calendar_count: Pack::take(from)?,
        user_variables: Pack::take(from)?,
        variables: Pack::take(from)?,
        externs: Pack::take(from)?,
        history: BTreeMap::new(),
    };
    for _ in 0..from.count()? {
        let path = Pack::take(from)?;
        server.history.insert(path, Pack::take(from)?);
    }
    Ok(server)
}

/// A node by its kind and name; the first is the server itself.
fn begin(parent: Option<NodeId>, head: [u8; 2], from: &mut Reader<'_>) -> Result<Node> {
    let name = OwnText::take(from)?;
    let kind = KINDS.get(usize::from(head[0] & 7)).copied();
    match (parent, kind) {
        (None, Some(Kind::Root)) => Ok(Node::new(Kind::Root, OwnText::from("/"))),
        (Some(_), Some(kind)) => Ok(Node::new(kind, name)),
        _ => from.bad(format!("{} is no kind of node here", head[0] & 7)),
    }
}

fn fields(
    node: &mut Node,
    head: [u8; 2],
    attributes: &mut Vec<Attribute>,
    from: &mut Reader<'_>,
) -> Result<()> {
    let state = head[0] >> STATE_SHIFT & 7;
    let Some(state) = State::ALL.get(usize::from(state)) else {
        return from.bad(format!("{state} is no state"));
    };
    node.state = *state;
    (node.is_suspended, node.is_begun) = (head[0] & SUSPENDED != 0, head[0] & BEGUN != 0);
    let has = |bit: u8| head[1] & bit != 0;
    if has(DEFAULT) {
        node.default = Pack::take(from)?;
    }
    if has(FLAGS) {
        node.flags = Flags(Pack::take(from)?);
    }
    if has(SINCE) {
        node.since = Pack::take(from)?;
    }
    if has(RAN) {
        node.ran = Pack::take(from)?;
    }
    if has(JOB) {
        node.job = Some(Arc::new(Pack::take(from)?));
    }
    if has(ATTRIBUTES) {
        let count = from.count()?;
        for _ in 0..count {
            attributes.push(Pack::take(from)?);
        }
        if !attributes.is_sorted_by_key(Attribute::rank) {
            return from.bad("attributes that are not in their order");
        }
        node.attributes = attributes.drain(..).collect();
    }
    Ok(())
}
