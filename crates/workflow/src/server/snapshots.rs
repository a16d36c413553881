//! When the owner has the journal's records replaced by a snapshot.

use std::time::Instant;

use wire::Waker;

use super::message::Message;
use super::owner::Owner;
use super::shared::in_background;
use super::store::{self, check_kept};

impl Owner {
    /// Replaces the journal's records by a snapshot, once there are enough, and then has those
    /// requests recorded that waited for it to begin.
    pub(super) fn snapshot(&mut self) {
        if !self.pending.is_empty() {
            return;
        }
        let is_quiet = || self.snapshot_at().is_some_and(|at| at <= Instant::now());
        if self.is_kept() && self.is_snapshot_due() || is_quiet() {
            self.begin_snapshot();
        }
        for (request, asked) in std::mem::take(&mut self.pending.held) {
            self.record_request(request, asked);
        }
    }

    /// Whether there are enough records for requests to wait until a snapshot has begun.
    pub(super) fn is_snapshot_due(&self) -> bool {
        self.logged.is_due() && self.is_free()
    }

    /// When one begins if nothing changes until then. Never while none can begin: what it waits for
    /// has the owner look again.
    pub(super) fn snapshot_at(&self) -> Option<Instant> {
        let at = self.logged.is_due_at()?;
        (self.is_free() && self.pending.is_empty() && self.is_kept()).then_some(at)
    }

    fn is_free(&self) -> bool {
        !self.is_snapshotting && !self.core.is_filing()
    }

    /// Whether the journal has all on the disk. No one waits for the note that the server has
    /// started, which may still be refused.
    fn is_kept(&self) -> bool {
        self.journal.watch().acknowledged() >= self.journal.last()
    }

    fn begin_snapshot(&mut self) {
        self.logged.begin();
        let snapshot = match self.journal.snapshot() {
            Ok(snapshot) => snapshot,
            // The next one is due after as many records again: each try has made a file of the
            // journal.
            Err(why) => return tracing::error!("the journal goes on without its snapshot: {why}"),
        };
        self.is_snapshotting = true;
        let (head, tree) = self.core.stored();
        let own = self.shared.owner.clone();
        let work = move || {
            in_background();
            let kept = store::kept(&tree);
            drop(tree);
            let done = check_kept(&kept).and_then(|()| store::write(snapshot, &head, &kept));
            drop(kept);
            // The tree that was read again was as large as the server's own.
            base::memory::give_back();
            let _ = own.send(Message::SnapshotDone(done));
        };
        // The queue has no limit.
        let _ = self.writers.submit(Waker::new(|| {}), work);
    }

    /// Takes what came of one.
    pub(super) fn snapshot_done(&mut self, done: Result<u64, String>) {
        self.is_snapshotting = false;
        match done {
            Ok(bytes) => self.logged.replaced(bytes),
            Err(why) => tracing::error!("the journal goes on without its snapshot: {why}"),
        }
    }

    /// Writes one at the server's end, so that the next start doesn't carry out the records again.
    pub(super) fn last_snapshot(&mut self) {
        if !self.logged.is_worth_it() || !self.is_free() {
            return;
        }
        // The note that the server has started may still be on its way to the disk.
        self.journal.commit();
        let kept = self.journal.watch().wait(self.journal.last());
        let done = match kept.and_then(|()| self.journal.snapshot()) {
            Ok(snapshot) => {
                let (head, tree) = self.core.stored();
                let kept = store::kept(&tree);
                check_kept(&kept).and_then(|()| store::write(snapshot, &head, &kept))
            }
            Err(why) => Err(why.to_string()),
        };
        if let Err(why) = done {
            tracing::error!("the journal ends without its snapshot: {why}");
        }
    }
}
