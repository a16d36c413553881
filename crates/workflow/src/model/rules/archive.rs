//! Archives: what is below a suite or family is in a file, and not in the tree.

use super::super::changes::Aspect;
use super::super::node::NodeId;
use super::super::state::{Flag, Kind};
use super::super::tree::{AddError, Snapshot};
use super::change::{Archived, Effect, Requeue, Restoring, Rules};

impl Rules<'_> {
    /// Takes what is below a suite or family out of the tree, to be written to a file. Of a node
    /// without children nothing is.
    pub fn archive(&mut self, id: NodeId) {
        let node = self.tree.node(id);
        if node.first_child.is_none() || node.kind.is_job() || id == NodeId::ROOT {
            return;
        }
        let (path, before) = (self.tree.path(id), self.tree.snapshot());
        let all: Vec<NodeId> = self.tree.walk(id).skip(1).collect();
        self.leave_all_limits(&all);
        for id in &all {
            self.wake_waiters(*id);
            self.wake_limited(*id);
        }
        self.tree.forget(&all);
        let children: Vec<NodeId> = self.tree.children(id).collect();
        for child in children {
            // The archive has them.
            drop(self.tree.remove(child));
        }
        self.leave_limits_upwards(id);
        self.set_flag(id, Flag::Archived, true);
        self.set_flag(id, Flag::Restored, false);
        self.tree.children_changed(id);
        let kind = self.tree.node(id).kind.shout();
        self.log_of([" autoarchive ", kind, ":"], id, "");
        self.effects.push(Effect::Archive(Archived { path, before }));
    }

    /// Puts the children of a node of another tree below an archived one, whose archive that is.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn restore(
        &mut self,
        id: NodeId,
        (from, archived): (&Snapshot, NodeId),
        how: Restoring,
    ) -> Result<(), AddError> {
        for child in from.children(archived) {
            self.graft(from, child, id, None)?;
        }
        self.set_flag(id, Flag::Archived, false);
        self.set_flag(id, Flag::Restored, how == Restoring::Same);
        self.tree.children_changed(id);
        let kind = self.tree.node(id).kind.shout();
        self.log_of([" autorestore ", kind, ":"], id, "");
        let children: Vec<NodeId> = self.tree.children(id).collect();
        for child in children {
            match how {
                Restoring::Same => {}
                Restoring::Begun => self.begin_node(child),
                Restoring::Queued => self.requeue_node(child, Requeue::FULL),
            }
        }
        if how != Restoring::Same {
            self.spread_default(id);
            self.go_up(id);
        }
        self.wake(id);
        self.wake_waiters(id);
        Ok(())
    }

    /// Asks for the archive of a node, where it has one.
    pub fn ask_restore(&mut self, id: NodeId, how: Restoring) {
        let node = self.tree.node(id);
        if node.flags.has(Flag::Archived) && node.first_child.is_none() && node.kind != Kind::Root {
            self.effects.push(Effect::Restore(self.tree.path(id), how));
        }
    }

    /// Whether a node or one below it is archived.
    #[must_use]
    pub fn has_archive(&self, id: NodeId) -> bool {
        self.tree.walk(id).any(|id| self.tree.node(id).flags.has(Flag::Archived))
    }

    /// An archive could not be written: what was below its node is there again.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn unarchive(
        &mut self,
        id: NodeId,
        archived: &Archived,
        how: Restoring,
    ) -> Result<(), AddError> {
        let Some(before) = archived.before.find(&archived.path) else { return Ok(()) };
        self.restore(id, (&archived.before, before), how)?;
        self.set_flag(id, Flag::Restored, false);
        self.tree.changed_in(id, Aspect::Flags);
        Ok(())
    }
}
