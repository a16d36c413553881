//! The names of a journal's files. Any other file in the directory is left alone.

/// A snapshot that is being written.
pub(crate) const NEW_SNAPSHOT: &str = "snapshot.new";

/// The file of the log that begins with this record.
pub(crate) fn log_name(first: u64) -> String {
    format!("{first:020}.log")
}

/// The snapshot that stands for all records up to this one.
pub(crate) fn snapshot_name(through: u64) -> String {
    format!("{through:020}.snapshot")
}

/// The files of a journal, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Ascending.
    pub(crate) logs: Vec<u64>,
    /// Ascending; the last one counts.
    pub(crate) snapshots: Vec<u64>,
}

impl Names {
    pub(crate) fn of(names: &[String]) -> Self {
        let numbers = |name: fn(u64) -> String, suffix| {
            let number = |given: &String| {
                let number = given.strip_suffix(suffix)?.parse().ok()?;
                (name(number) == *given).then_some(number)
            };
            let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
            numbers.sort_unstable();
            numbers
        };
        Self { logs: numbers(log_name, ".log"), snapshots: numbers(snapshot_name, ".snapshot") }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.snapshots.is_empty()
    }

    /// The snapshot that counts.
    pub(crate) fn snapshot(&self) -> Option<u64> {
        self.snapshots.last().copied()
    }

    /// How many of the first logs the snapshot stands for whole.
    pub(crate) fn covered(&self) -> usize {
        let through = self.snapshot().unwrap_or(0);
        let begins = self.logs.iter().filter(|first| **first <= through.saturating_add(1)).count();
        begins.saturating_sub(1)
    }

    /// The files that nothing needs any more.
    pub(crate) fn obsolete(&self) -> Vec<String> {
        let logs = self.logs[..self.covered()].iter().map(|first| log_name(*first));
        let older = self.snapshots.len().saturating_sub(1);
        logs.chain(self.snapshots[..older].iter().map(|one| snapshot_name(*one))).collect()
    }
}
