//! The owner's side of a journal: it appends, and never waits unless it wants to.

use std::any::Any;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::disk::Disk;
use crate::error::Error;
use crate::frame::{Group, MAX_RECORD_BYTES};
use crate::recover::{ApplyError, Entry, Report, recover};
use crate::shared::{Progress, Shared, Task, Watch};
use crate::snapshot::Snapshot;
use crate::writer::{self, Options, Writer};

/// A journal that is open. Dropping it commits what was appended, makes all durable, and waits for
/// that, but says nothing when it fails: [`Journal::close`] does.
pub struct Journal {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Writer>>,
    waiting_bytes: usize,
    refuses: bool,
    /// What was appended and isn't committed.
    group: Group,
    next: u64,
    thread: Option<JoinHandle<Result<(), Error>>>,
    lock: Arc<dyn Any + Send + Sync>,
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
    /// When the directory is in use, a file can't be read or written, is damaged, or a record is
    /// refused. What `apply` has taken is then not the whole, and must not be served.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        mut apply: impl FnMut(Entry<'_>) -> Result<(), ApplyError>,
        notify: impl FnMut(Progress) + Send + 'static,
    ) -> Result<(Self, Report), Error> {
        let lock = disk.lock().map_err(|why| Error::io(&*disk, "", "lock", why))?.into();
        let (log, report) = recover(&disk, &mut apply)?;
        let shared = Arc::new(Shared::new(disk.clone(), log.written()));
        let writer = Writer::new(log, shared.clone(), options, Box::new(notify));
        let writer = Arc::new(Mutex::new(writer));
        let (its, own) = (writer.clone(), shared.clone());
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread.spawn(move || writer::run(&its, &own));
        let thread = thread.map_err(|why| Error::io(&*disk, "", "start a thread for", why))?;
        let (group, next, thread) = (Group::default(), report.last + 1, Some(thread));
        let (waiting_bytes, refuses) = (options.waiting_bytes, options.refuses_when_full);
        let journal = Self { shared, writer, waiting_bytes, refuses, group, next, thread, lock };
        Ok((journal, report))
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
        if self.shared.is_unavailable.load(Ordering::Acquire)
            && let Some(why) = &self.shared.lock().unavailable
        {
            return Err(why.clone());
        }
        let bytes = self.shared.waiting_bytes.load(Ordering::Relaxed);
        let growth = self.group.growth(record.len());
        if bytes > 0 && bytes.saturating_add(growth) > self.waiting_bytes {
            return Err(Error::Busy { bytes, most_bytes: self.waiting_bytes });
        }
        self.group.push(record);
        self.shared.waiting_bytes.fetch_add(growth, Ordering::Relaxed);
        if self.group.is_full() {
            self.commit();
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Passes what was appended to the journal's thread, to be written and made durable.
    pub fn commit(&mut self) {
        if !self.group.is_empty() {
            let group = std::mem::take(&mut self.group);
            self.group = self.shared.submit(Task::Write(group), true);
        }
    }

    /// Commits, and does the thread's work here unless it is at work: for callers that wait for
    /// their records anyway, which takes two changes of threads less then.
    pub fn commit_here(&mut self) {
        self.commit_here_where(|_, _| true);
    }

    /// The same where no fsync is waited for ([`SyncPolicy::Never`](crate::SyncPolicy::Never)), and
    /// a short write is all that is to be done: for callers that must not wait for the disk.
    pub fn commit_here_if_short(&mut self) {
        self.commit_here_where(Writer::is_short);
    }

    fn commit_here_where(&mut self, is_fit: impl FnOnce(&Writer, usize) -> bool) {
        let bytes = self.group.size();
        let free = || self.writer.try_lock().ok().filter(|writer| is_fit(writer, bytes));
        let Some(mut writer) = free() else { return self.commit() };
        if !self.group.is_empty() {
            let group = std::mem::take(&mut self.group);
            self.group = self.shared.submit(Task::Write(group), false);
            // What comes of it is what whoever waits for the records is answered.
            let _ = writer.step();
            let pause = writer.pause();
            drop(writer);
            self.shared.look_anew(pause);
        }
    }

    /// After [`Progress::Refused`]: drops what was appended since, and takes records again, which
    /// are numbered from the one after the last that was written. They are refused, too, if the
    /// disk is still full.
    pub fn accept(&mut self) {
        let state = self.shared.lock();
        let last = (state.unavailable.is_some() && !state.has_ended).then_some(state.written.last);
        drop(state);
        if let Some(last) = last {
            let dropped = if self.group.is_empty() { 0 } else { self.group.size() };
            self.shared.waiting_bytes.fetch_sub(dropped, Ordering::Relaxed);
            self.next = last + 1;
            self.group = self.shared.submit(Task::Accept, true);
        }
    }

    /// The last record that was appended.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// How many bytes wait to be written; none when the journal has failed.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.waiting_bytes.load(Ordering::Relaxed)
    }

    /// What tells any thread how far the journal is.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// Commits, and begins a snapshot that replaces all records so far. The owner has to pass the
    /// state as it is now to the thread that writes it; nothing is written by this call.
    ///
    /// # Errors
    /// When one is being made, or when a record that it would replace can still be refused.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        if self.refuses && self.shared.lock().acknowledged < self.last() {
            return Err(Error::Exclusive);
        }
        let exclusive = self.shared.exclude()?;
        self.commit();
        self.group = self.shared.submit(Task::Rotate, true);
        Ok(Snapshot::new(self.shared.clone(), self.lock.clone(), exclusive, self.last()))
    }

    /// Writes what was appended, makes all durable whatever the policy, and ends the thread.
    ///
    /// # Errors
    /// When that fails, or the journal had failed before.
    pub fn close(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.commit();
        self.shared.close();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            // A panic has been printed.
            Some(Err(_)) => Err(Error::Closed),
            None => Ok(()),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Whoever wants to know closes it.
        let _ = self.end();
    }
}
