//! A copy of a journal that is open: all that was acknowledged when it began, and checked.

use crate::disk::Disk;
use crate::error::Error;
use crate::names::{Names, PART, log_name, snapshot_name};
use crate::read::copy;
use crate::recover::{Report, check};
use crate::shared::Watch;

impl Watch {
    /// Copies the journal into an empty directory, while it goes on, and checks the copy: it is
    /// good if the report names no damage. It may wait long; until then there is no snapshot. A
    /// copy that did not come to its end is refused when it is opened.
    ///
    /// # Errors
    /// When a snapshot is being made, there is a journal in the directory, or a file can't be read
    /// or written.
    pub fn backup(&self, to: &dyn Disk) -> Result<Report, Error> {
        let _exclusive = self.0.exclude()?;
        let from = &*self.0.disk;
        if !Names::list(to)?.is_empty() {
            return Err(Error::NotEmpty { path: to.path("") });
        }
        // What is written from here on is no part of the copy.
        let end = self.0.lock().written;
        let names = Names::list(from)?;
        let mut files: Vec<(String, u64)> = Vec::new();
        for first in names.logs().iter().filter(|first| **first <= end.first) {
            let bytes = if *first == end.first { end.bytes } else { u64::MAX };
            files.push((log_name(*first), bytes));
        }
        files.extend(names.snapshot().map(|through| (snapshot_name(through), u64::MAX)));
        for (name, bytes) in &files {
            let part = format!("{name}{PART}");
            let file = to.create(&part);
            let mut file = file.map_err(|why| Error::io(to, &part, "create", why))?;
            copy((from, name), 0..*bytes, (to, &part), &mut *file)?;
            file.sync().map_err(|why| Error::io(to, &part, "sync", why))?;
        }
        let sync = || to.sync().map_err(|why| Error::io(to, "", "sync", why));
        sync()?;
        // As long as one of them has its first name, the copy is refused.
        for (name, _) in &files {
            let part = format!("{name}{PART}");
            to.rename(&part, name).map_err(|why| Error::io(to, &part, "rename", why))?;
        }
        sync()?;
        check(to)
    }
}
