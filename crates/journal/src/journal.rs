//! The owner's side of a journal: it appends, and never waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::disk::Disk;
use crate::error::Error;
use crate::frame::{Group, MAX_RECORD_BYTES};
use crate::recover::{Entry, Refusal, Report, recover};
use crate::shared::{Progress, Shared, Task, Watch};
use crate::snapshot::Snapshot;
use crate::writer::{SyncPolicy, Writer};

/// How a journal is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When records are made durable.
    pub sync: SyncPolicy,
    /// A file of the log ends before it becomes larger, unless one group is.
    pub segment_bytes: u64,
    /// The most that waits to be written; more is refused as [`Error::Busy`].
    pub waiting_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        let (segment_bytes, waiting_bytes) = (64 << 20, 64 << 20);
        Self { sync: SyncPolicy::Always, segment_bytes, waiting_bytes }
    }
}

/// A journal that is open. Dropping it writes what was committed, and waits for that.
pub struct Journal {
    shared: Arc<Shared>,
    waiting_bytes: usize,
    /// What was appended and isn't committed.
    group: Group,
    next: u64,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens a journal, or makes one in an empty directory. `apply` takes what is read, from the
    /// first record of the snapshot to the last of the log; `notify` is called on the journal's
    /// thread and must not wait.
    ///
    /// # Errors
    /// When a file can't be read or written, is damaged, or a record is refused. What `apply` has
    /// taken is then not the whole, and must not be served.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        mut apply: impl FnMut(Entry<'_>) -> Result<(), Refusal>,
        notify: impl FnMut(Progress) + Send + 'static,
    ) -> Result<(Self, Report), Error> {
        let (log, report) = recover(&disk, &mut apply)?;
        let shared = Arc::new(Shared::new(disk.clone()));
        shared.publish(|state| {
            state.acknowledged = report.last;
            state.last_file = (log.first(), log.size());
        });
        let Options { sync, segment_bytes, waiting_bytes } = options;
        let writer = Writer::new(log, shared.clone(), sync, segment_bytes, Box::new(notify));
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread.spawn(move || writer.run());
        let thread = thread.map_err(|why| Error::io(&*disk, "", "its thread is begun", why))?;
        let (group, next, thread) = (Group::default(), report.last + 1, Some(thread));
        Ok((Self { shared, waiting_bytes, group, next, thread }, report))
    }

    /// Appends a record and returns its number: they are numbered from 1, without a gap. It is
    /// written after the next [`Journal::commit`].
    ///
    /// # Errors
    /// When it is too large, too much waits already, the disk is full, or the journal has failed.
    /// The record is then not appended.
    pub fn append(&mut self, record: &[u8]) -> Result<u64, Error> {
        if record.len() > MAX_RECORD_BYTES {
            return Err(Error::TooLarge { bytes: record.len(), most_bytes: MAX_RECORD_BYTES });
        }
        if self.shared.is_refusing.load(Ordering::Acquire)
            && let Some(refusal) = &self.shared.lock().refusal
        {
            return Err(refusal.clone());
        }
        let bytes = self.shared.waiting_bytes.load(Ordering::Relaxed);
        if bytes > 0 && bytes + record.len() > self.waiting_bytes {
            return Err(Error::Busy { bytes, most_bytes: self.waiting_bytes });
        }
        let before = if self.group.is_empty() { 0 } else { self.group.size() };
        self.group.push(record);
        self.shared.waiting_bytes.fetch_add(self.group.size() - before, Ordering::Relaxed);
        if self.group.is_full() {
            self.commit();
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Hands over what was appended, to be written and made durable.
    pub fn commit(&mut self) {
        if !self.group.is_empty() {
            let group = std::mem::take(&mut self.group);
            self.group = self.shared.submit([Task::Write(group)]);
        }
    }

    /// The last record that was appended.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// What waits to be written.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.waiting_bytes.load(Ordering::Relaxed)
    }

    /// What tells any thread how far the journal is.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// Commits, and begins a snapshot that stands for all records so far. The owner has to hand
    /// the state as it is now to the thread that writes it; nothing is written by this call.
    ///
    /// # Errors
    /// When one is being made, or a backup.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let occupied = self.shared.occupy()?;
        self.commit();
        self.group = self.shared.submit([Task::Rotate]);
        Ok(Snapshot::new(self.shared.clone(), occupied, self.last()))
    }

    /// Writes what was appended, makes it durable whatever the policy, and ends the thread.
    ///
    /// # Errors
    /// When that fails, or the journal had failed before.
    pub fn close(mut self) -> Result<(), Error> {
        let last = self.last();
        self.end();
        self.watch().wait(last)
    }

    fn end(&mut self) {
        self.commit();
        self.shared.publish(|state| state.is_closing = true);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed, and shows as a journal that has failed.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.end();
    }
}
