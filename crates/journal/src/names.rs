//! The names of a journal's files. Any other file in the directory is left alone.

use crate::disk::Disk;
use crate::error::Error;

/// A snapshot that is being written.
pub(crate) const NEW_SNAPSHOT: &str = "snapshot.new";
/// Follows the name of a file that a backup has not copied yet, or not all others.
pub(crate) const PART: &str = ".part";

/// The file of the log that begins with this record.
pub(crate) fn log_name(first: u64) -> String {
    format!("{first:020}.log")
}

/// The snapshot that replaces all records up to this one.
pub(crate) fn snapshot_name(through: u64) -> String {
    format!("{through:020}.snapshot")
}

/// The files of a journal, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Ascending.
    logs: Vec<u64>,
    /// Ascending; the last one counts.
    snapshots: Vec<u64>,
    has_new_snapshot: bool,
    /// What a backup has left that didn't come to its end.
    pub(crate) part: Option<String>,
}

impl Names {
    pub(crate) fn list(disk: &dyn Disk) -> Result<Self, Error> {
        let mut all = Self::default();
        for name in disk.list().map_err(|why| Error::io(disk, "", "list", why))? {
            let number = |format: fn(u64) -> String, name: &str| {
                let number = name.split('.').next()?.parse().ok()?;
                (format(number) == *name).then_some(number)
            };
            let whole = name.strip_suffix(PART).unwrap_or(&name);
            let (log, snapshot) = (number(log_name, whole), number(snapshot_name, whole));
            match whole == name {
                true => {
                    all.logs.extend(log);
                    all.snapshots.extend(snapshot);
                    all.has_new_snapshot |= name == NEW_SNAPSHOT;
                }
                false if log.or(snapshot).is_some() => all.part = Some(name),
                false => {}
            }
        }
        all.logs.sort_unstable();
        all.snapshots.sort_unstable();
        Ok(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.snapshots.is_empty() && self.part.is_none()
    }

    /// The snapshot that counts.
    pub(crate) fn snapshot(&self) -> Option<u64> {
        self.snapshots.last().copied()
    }

    /// The logs behind the snapshot. Before it got its name, one was made that begins right there.
    pub(crate) fn logs(&self) -> &[u64] {
        &self.logs[self.logs.partition_point(|first| Some(*first) <= self.snapshot())..]
    }

    /// Removes what the snapshot replaces, whose name has to be durable, and one that was never
    /// finished.
    pub(crate) fn remove_obsolete(&self, disk: &dyn Disk) -> Result<(), Error> {
        let logs = &self.logs[..self.logs.len() - self.logs().len()];
        let older = &self.snapshots[..self.snapshots.len().saturating_sub(1)];
        let new = self.has_new_snapshot.then(|| NEW_SNAPSHOT.to_owned());
        let logs = logs.iter().map(|first| log_name(*first));
        for name in logs.chain(older.iter().map(|one| snapshot_name(*one))).chain(new) {
            disk.remove(&name).map_err(|why| Error::io(disk, &name, "remove", why))?;
        }
        Ok(())
    }
}
