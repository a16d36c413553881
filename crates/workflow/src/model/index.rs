//! Keeping the index of who waits for what: from the attributes of nodes.

use super::attribute::Attribute;
use super::evaluate::From;
use super::expression::Operand;
use super::node::NodeId;
use super::tree::Tree;
use super::waiting::add;

impl Tree {
    /// Notes for whom a node waits.
    pub(super) fn index(&mut self, id: NodeId) {
        let attributes = std::sync::Arc::clone(&self.node(id).attributes);
        let (mut is_timed, mut is_missing) = (false, false);
        for attribute in attributes.iter() {
            match attribute {
                Attribute::Trigger(condition) | Attribute::Complete(condition) => {
                    let Some(program) = &condition.expression.program else { continue };
                    for operand in program.operands() {
                        is_missing |= !self.index_operand(id, operand);
                    }
                }
                Attribute::InLimit(inlimit) => match self.limit_node(id, inlimit) {
                    Some(holder) => add(&mut self.waiting.by_limit, holder, id),
                    None => is_missing = true,
                },
                Attribute::Time(_)
                | Attribute::Today(_)
                | Attribute::Cron(_)
                | Attribute::Date(_)
                | Attribute::Day(_)
                | Attribute::AutoCancel(_)
                | Attribute::AutoArchive(_) => is_timed = true,
                Attribute::Late(_) => {
                    // Lateness is inherited: each task below is looked at.
                    let jobs: Vec<NodeId> =
                        self.walk(id).filter(|id| self.node(*id).kind.is_job()).collect();
                    if let Some(suite) = self.suite(id) {
                        self.waiting.timed.entry(suite).or_default().extend(jobs);
                    }
                }
                _ => {}
            }
        }
        if is_missing {
            self.waiting.missing.insert(id);
        }
        if let Some(suite) = self.suite(id).filter(|_| is_timed) {
            self.waiting.timed.entry(suite).or_default().insert(id);
        }
    }

    /// Notes that a node waits for what an operand names; false where that isn't there.
    fn index_operand(&mut self, id: NodeId, operand: &Operand) -> bool {
        let from = From { tree: self, node: id };
        match operand {
            Operand::Flag(path, _) if *path == "/" => {
                add(&mut self.waiting.by_node, NodeId::ROOT, id);
                true
            }
            Operand::Upward(_) => {
                // A nearer node may get the name later: all above are waited for.
                let found = from.find(operand).is_some();
                let above: Vec<NodeId> = self.upwards(id).collect();
                for above in above {
                    add(&mut self.waiting.by_node, above, id);
                }
                found
            }
            _ => match from.find(operand) {
                Some(found) => {
                    add(&mut self.waiting.by_node, found, id);
                    true
                }
                None => false,
            },
        }
    }

    /// Notes for whom each node waits, of a tree that was read.
    pub fn index_all(&mut self) {
        let all: Vec<NodeId> = self.walk(NodeId::ROOT).filter(|id| *id != NodeId::ROOT).collect();
        for id in all {
            self.index(id);
        }
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
