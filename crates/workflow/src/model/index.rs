//! Keeping the index of who waits for what: from the attributes of nodes.

use super::attribute::Attribute;
use super::evaluate::From;
use super::expression::Operand;
use super::node::NodeId;
use super::tree::{Snapshot, Tree};
use super::waiting::{Waiting, add};

impl Tree {
    /// Notes for whom a node waits.
    pub(super) fn index(&mut self, id: NodeId) {
        let Self { now, waiting, .. } = self;
        let (mut is_timed, mut is_missing) = (false, false);
        for attribute in now.node(id).attributes.iter() {
            match attribute {
                Attribute::Trigger(condition) | Attribute::Complete(condition) => {
                    let Some(program) = &condition.expression.program else { continue };
                    for operand in program.operands() {
                        is_missing |= !index_operand(now, waiting, id, operand);
                    }
                }
                Attribute::InLimit(inlimit) => match now.limit_node(id, inlimit) {
                    Some(holder) => add(&mut waiting.by_limit, holder, id),
                    None => is_missing = true,
                },
                Attribute::Time(_)
                | Attribute::Today(_)
                | Attribute::Cron(_)
                | Attribute::Date(_)
                | Attribute::Day(_)
                | Attribute::AutoCancel(_)
                | Attribute::AutoArchive(_) => is_timed = true,
                Attribute::Late(_) => index_late(now, waiting, id),
                _ => {}
            }
        }
        if is_missing {
            waiting.missing.insert(id);
        }
        if let Some(suite) = now.suite(id).filter(|_| is_timed) {
            waiting.timed.entry(suite).or_default().insert(id);
        }
    }

    /// Notes what a node and those below it have from those above it, which it was put below.
    pub(super) fn index_inherited(&mut self, id: NodeId) {
        let is_late = |attribute: &Attribute| matches!(attribute, Attribute::Late(_));
        if self.upwards(id).skip(1).any(|above| self.node(above).attributes.iter().any(is_late)) {
            index_late(&self.now, &mut self.waiting, id);
        }
    }

    /// A limit of a node was added or deleted: whoever may mean it, or has meant it, looks for
    /// another.
    pub(super) fn index_limits(&mut self, id: NodeId) {
        let is_inlimit = |attribute: &Attribute| matches!(attribute, Attribute::InLimit(_));
        let below = self.walk(id).filter(|id| self.node(*id).attributes.iter().any(is_inlimit));
        let below: Vec<NodeId> = below.collect();
        self.waiting.missing.extend(below);
        self.waiting.missing.extend(self.waiting.by_limit.remove(&id).unwrap_or_default());
        self.index_missing();
    }

    /// Notes for whom each node waits, of a tree that was read.
    pub fn index_all(&mut self) {
        let all: Vec<NodeId> = self.walk(NodeId::ROOT).filter(|id| *id != NodeId::ROOT).collect();
        for id in all {
            self.index(id);
        }
    }

    /// The nodes that a change has woken, and that are looked at with the next minute.
    #[must_use]
    pub fn left_awake(&self) -> &[NodeId] {
        &self.waiting.left
    }

    /// Adds to those nodes one of a tree that was read.
    pub fn leave_awake(&mut self, id: NodeId) {
        self.waiting.left.push(id);
    }

    /// Looks again for what was missing, after nodes were added.
    pub(super) fn index_missing(&mut self) {
        for id in std::mem::take(&mut self.waiting.missing) {
            if self.has(id) {
                self.index(id);
            }
        }
    }

    /// Nodes are about to be removed: whoever names them looks for others from now on.
    pub(super) fn forget(&mut self, gone: &[NodeId]) {
        let waiting = &mut self.waiting;
        for id in gone {
            waiting.missing.remove(id);
            for map in [&mut waiting.by_node, &mut waiting.by_limit] {
                let waiters = map.remove(id).unwrap_or_default();
                waiting.missing.extend(waiters);
            }
        }
        for id in gone {
            waiting.missing.remove(id);
        }
        if let Some(suite) = gone.first().and_then(|id| self.suite(*id)) {
            if let Some(timed) = self.waiting.timed.get_mut(&suite) {
                for id in gone {
                    timed.remove(id);
                }
            }
            if gone.contains(&suite) {
                self.waiting.timed.remove(&suite);
            }
        }
    }
}

/// Lateness is inherited: each task below a node that has it is looked at.
fn index_late(now: &Snapshot, waiting: &mut Waiting, id: NodeId) {
    let jobs = now.walk(id).filter(|id| now.node(*id).kind.is_job());
    if let Some(suite) = now.suite(id) {
        waiting.timed.entry(suite).or_default().extend(jobs);
    }
}

/// Notes that a node waits for what an operand names; false where that isn't there.
fn index_operand(tree: &Snapshot, waiting: &mut Waiting, id: NodeId, operand: &Operand) -> bool {
    let from = From { tree, node: id };
    match operand {
        Operand::Flag(path, _) if *path == "/" => {
            add(&mut waiting.by_node, NodeId::ROOT, id);
            true
        }
        Operand::Upward(_) => {
            // A nearer node may get the name later: all above are waited for.
            for above in tree.upwards(id) {
                add(&mut waiting.by_node, above, id);
            }
            from.find(operand).is_some()
        }
        _ => match from.find(operand) {
            Some(found) => {
                add(&mut waiting.by_node, found, id);
                true
            }
            None => false,
        },
    }
}
