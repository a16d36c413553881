//! The journal of a server, and the snapshots that replace it.
//!
//! A snapshot is a head of lines `name value`, an empty line, and the tree in this program's binary
//! form, which is read several times faster than text; both in pieces of 256 KiB. One of an earlier
//! version, with the tree in ecFlow's MIGRATE text, is read, too.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use journal::{Directory, Entry, Journal, Options, Progress, SyncPolicy};

use super::record::{Joiner, Record, decode};
use crate::binary;
use crate::definition::parse_kept;
use crate::model::{Marks, Snapshot, Tree};

/// The size of a snapshot's pieces.
const PIECE_BYTES: usize = 256 << 10;

/// Records of fewer bytes are not replaced by a snapshot.
const SNAPSHOT_AFTER_BYTES: u64 = 64 << 20;

/// After this much time without changes fewer bytes are replaced, too, so that the next start reads
/// a snapshot and carries out nothing again.
const QUIET: Duration = Duration::from_secs(10);

/// Records of fewer bytes are read in hundredths of a second.
const QUIET_AFTER_BYTES: u64 = 1 << 20;

/// Records of the journal.
#[derive(Clone, Copy, Debug, Default)]
struct Records {
    bytes: u64,
    /// Bytes of the largest.
    largest: u64,
}

/// How much is in the journal behind the snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    /// Since a snapshot was tried last.
    new: Records,
    /// What a snapshot was tried of, which is not written or has failed.
    tried: Records,
    /// Bytes of the snapshot.
    snapshot: u64,
    /// When the last one was added that changes more than the time.
    last: Instant,
}

impl Logged {
    /// Nothing.
    pub(super) const fn none(now: Instant) -> Self {
        let none = Records { bytes: 0, largest: 0 };
        Self { new: none, tried: none, snapshot: 0, last: now }
    }

    /// Adds a record of this many bytes; `is_change` unless it only tells the time.
    pub(super) fn add(&mut self, bytes: u64, is_change: Option<Instant>) {
        self.new.bytes += bytes;
        self.new.largest = self.new.largest.max(bytes);
        self.last = is_change.unwrap_or(self.last);
    }

    /// Bytes of the snapshot, or of the largest record since: a definition is as long there.
    fn large(&self) -> u64 {
        self.snapshot.max(self.new.largest).max(self.tried.largest)
    }

    /// Whether the records are to be replaced: when they are twice as large as what replaces them.
    /// A recorded byte is thus written and read less than twice more, however large the tree. Where
    /// a snapshot has failed, the next is due after as many records again.
    pub(super) fn is_due(&self) -> bool {
        self.new.bytes >= SNAPSHOT_AFTER_BYTES.max(2 * self.large())
    }

    /// When they are to be replaced if nothing changes until then: where they are an eighth as
    /// large. A byte is written at most eight times more, each ten seconds.
    pub(super) fn is_due_at(&self) -> Option<Instant> {
        self.is_worth(self.new.bytes).then(|| self.last + QUIET)
    }

    /// Whether a start from a snapshot takes less time than one from the records.
    pub(super) fn is_worth_it(&self) -> bool {
        self.is_worth(self.new.bytes + self.tried.bytes)
    }

    fn is_worth(&self, bytes: u64) -> bool {
        bytes >= QUIET_AFTER_BYTES.max(self.large() / 8)
    }

    /// A snapshot of all so far is tried.
    pub(super) fn begin(&mut self) {
        self.tried.bytes += self.new.bytes;
        self.tried.largest = self.tried.largest.max(self.new.largest);
        self.new = Records::default();
    }

    /// The snapshot is written.
    pub(super) fn replaced(&mut self, bytes: u64) {
        self.tried = Records::default();
        self.snapshot = bytes;
    }
}

/// The most bytes that wait for the disk: the largest request, and others beside it.
const WAITING_BYTES: usize = 3 << 30;

/// The first line of a snapshot, whose tree is binary.
const FIRST_LINE: &str = "loadline workflow 2";

/// The first line of one whose tree is MIGRATE text.
const TEXT_LINE: &str = "loadline workflow 1";

/// What is read of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The head's values by name.
    pub(super) head: BTreeMap<String, String>,
    /// The tree.
    pub(super) tree: Tree,
}

/// What takes what is read, in order.
pub(super) trait Restore {
    /// Takes a snapshot, before all records.
    fn snapshot(&mut self, stored: Stored) -> anyhow::Result<()>;

    /// Takes a record.
    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()>;
}

/// A journal whose contents have been taken.
pub(super) struct Opened {
    pub(super) journal: Journal,
    /// What is behind the snapshot.
    pub(super) logged: Logged,
    /// It has neither a snapshot nor a record.
    pub(super) is_empty: bool,
}

/// Opens the journal in `folder`, and has `restore` take what is in it.
///
/// # Errors
/// When it is in use, can't be read, or is damaged.
pub(super) fn open(
    folder: &Path,
    sync: SyncPolicy,
    restore: &mut impl Restore,
    notify: impl FnMut(Progress) + Send + 'static,
) -> anyhow::Result<Opened> {
    let disk = Directory::new(folder);
    let (mut snapshot, mut joiner) = (Some(Vec::new()), Joiner::default());
    let mut logged = Logged::none(Instant::now());
    let options = Options {
        sync,
        waiting_bytes: WAITING_BYTES,
        refuses_when_full: true,
        ..Options::default()
    };
    let begin = |snapshot: &mut Option<Vec<u8>>, restore: &mut _| -> anyhow::Result<()> {
        match snapshot.take() {
            Some(bytes) if !bytes.is_empty() => take(&bytes, restore),
            _ => Ok(()),
        }
    };
    let opened = Journal::open(
        Arc::new(disk),
        options,
        |entry| {
            match entry {
                Entry::Snapshot(piece) => {
                    logged.snapshot += piece.len() as u64;
                    snapshot.get_or_insert_default().extend_from_slice(piece);
                }
                Entry::Record(_, bytes) => {
                    begin(&mut snapshot, restore)?;
                    let whole = joiner.join(bytes, |bytes| {
                        logged.add(bytes.len() as u64, None);
                        restore.record(&decode(bytes)?)
                    });
                    whole.transpose()?;
                }
            }
            Ok(())
        },
        notify,
    );
    let (journal, report) = opened?;
    if let Some(dropped) = &report.dropped {
        tracing::warn!("{dropped}");
    }
    begin(&mut snapshot, restore)?;
    let is_empty = report.snapshot.is_none() && report.records == 0;
    Ok(Opened { journal, logged, is_empty })
}

/// The tree as a snapshot has it.
pub(super) fn kept(tree: &Snapshot) -> Vec<u8> {
    let numbers = tree.numbers();
    let words = std::iter::once(numbers.len() as u32).chain(numbers);
    let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    binary::write(tree, &Marks::new(), true, &mut |piece| bytes.extend_from_slice(piece));
    bytes
}

/// Reads what [`kept`] returned.
pub(super) fn read_kept(bytes: &[u8]) -> anyhow::Result<Tree> {
    let short = || anyhow::anyhow!("the numbers of its nodes are cut short");
    let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let bytes_of_numbers = u32::from_le_bytes(*count) as usize * 4;
    let (numbers, tree) = rest.split_at_checked(bytes_of_numbers).ok_or_else(short)?;
    let (numbers, _) = numbers.as_chunks::<4>();
    let numbers: Vec<u32> = numbers.iter().map(|number| u32::from_le_bytes(*number)).collect();
    let mut tree = binary::read(tree)?.tree;
    tree.renumber(&numbers).map_err(anyhow::Error::msg)?;
    Ok(tree)
}

/// Whether the tree of a snapshot is read again: one that isn't must not replace the records, which
/// are. The error says why not.
pub(super) fn check_kept(tree: &[u8]) -> Result<(), String> {
    read_kept(tree).map(drop).map_err(|why| format!("it could not be read again: {why}"))
}

fn take(bytes: &[u8], restore: &mut impl Restore) -> anyhow::Result<()> {
    let head = memchr::memmem::find(bytes, b"\n\n").context("the snapshot has no head")?;
    let (head, tree) = (&bytes[..head], &bytes[head + 2..]);
    let mut lines = std::str::from_utf8(head).context("the snapshot's head")?.lines();
    let tree = match lines.next().unwrap_or_default() {
        FIRST_LINE => read_kept(tree).context("the snapshot's tree")?,
        TEXT_LINE => {
            let text = std::str::from_utf8(tree).context("the snapshot is not text")?;
            parse_kept(text, "the snapshot").map_err(anyhow::Error::new)?.tree
        }
        first => bail!("{first:?} is no snapshot of this version"),
    };
    let pairs = lines.filter_map(|line| line.split_once(' '));
    let head = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    restore.snapshot(Stored { head, tree })
}

/// Writes a snapshot, and returns how many bytes it has. Values have no line ends.
///
/// # Errors
/// What of it can't be written, and why; the journal is as it was then.
pub(super) fn write(
    mut snapshot: journal::Snapshot,
    head: &[(String, String)],
    tree: &[u8],
) -> Result<u64, String> {
    let mut first = format!("{FIRST_LINE}\n");
    for (name, value) in head {
        first.push_str(name);
        first.push(' ');
        first.push_str(value);
        first.push('\n');
    }
    first.push('\n');
    let parts = [
        ("handles, zombies and jobs that wait to be started", first.as_bytes()),
        ("the tree", tree),
    ];
    for (what, part) in parts {
        for piece in part.chunks(PIECE_BYTES) {
            let done = snapshot.append(piece);
            done.map_err(|error| format!("{what}, {} bytes: {error}", part.len()))?;
        }
    }
    snapshot.finish().map_err(|error| error.to_string())?;
    Ok((first.len() + tree.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Style, print};

    struct Kept(Vec<Stored>);

    impl Restore for Kept {
        fn snapshot(&mut self, stored: Stored) -> anyhow::Result<()> {
            self.0.push(stored);
            Ok(())
        }

        fn record(&mut self, _: &Record<'_>) -> anyhow::Result<()> {
            bail!("there is none")
        }
    }

    #[test]
    fn a_head_longer_than_a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept_ones = Kept(Vec::new());
        let mut open = || open(folder.path(), SyncPolicy::Always, &mut kept_ones, |_| {});
        let mut journal = open().expect("a journal").journal;
        let long = "é".repeat(journal::MAX_RECORD_BYTES);
        let head = ["a", "b"].map(|name| (name.to_owned(), long.clone()));
        let text = "#5.9.2\ndefs_state MIGRATE cal_count:3\nsuite s #\n  label l \"\" # \"x\"\n  \
                    edit V 'a  b'\nendsuite\n# enddef\n";
        let tree = parse_kept(text, "text").expect("a definition").tree;
        let snapshot = journal.snapshot().expect("a snapshot");
        write(snapshot, &head, &kept(&tree)).expect("written");
        journal.close().expect("closed");
        assert!(!open().expect("a journal").is_empty);
        let [stored] = &kept_ones.0[..] else { panic!("{} snapshots", kept_ones.0.len()) };
        assert!(stored.head.iter().all(|(_, value)| *value == long) && stored.head.len() == 2);
        assert_eq!(print(&stored.tree, Style::Migrate, false), print(&tree, Style::Migrate, false));
    }

    #[test]
    fn a_snapshot_of_an_earlier_version_is_read_and_another_one_refused() {
        let text = "loadline workflow 1\naddress h:1\n\n#5.9.2\ndefs_state MIGRATE cal_count:3\n\
                    suite s\nendsuite\n# enddef\n";
        let mut ones = Kept(Vec::new());
        take(text.as_bytes(), &mut ones).expect("a snapshot");
        assert!(ones.0[0].tree.find("/s").is_some() && ones.0[0].head["address"] == "h:1");
        let later = text.replace("workflow 1", "workflow 3");
        let cut = text.replace("workflow 1", "workflow 2");
        for (wrong, why) in [(&*later, "no snapshot"), (&*cut, "tree"), ("x", "no head")] {
            let refused = take(wrong.as_bytes(), &mut ones).expect_err(wrong);
            assert!(format!("{refused:#}").contains(why), "{refused:#}");
        }
    }

    #[test]
    fn records_are_replaced_once_they_are_twice_as_large_as_what_replaces_them() {
        let now = Instant::now();
        let mut logged = Logged::none(now);
        logged.add(SNAPSHOT_AFTER_BYTES, Some(now));
        assert!(!logged.is_due(), "a snapshot is as large as the one definition");
        logged.add(SNAPSHOT_AFTER_BYTES, Some(now));
        assert!(logged.is_due());
        logged.begin();
        assert!(!logged.is_due(), "one that can't be made isn't tried at each change");
        logged.replaced(10);
        for _ in 0..SNAPSHOT_AFTER_BYTES / 1024 - 1 {
            logged.add(1024, Some(now));
            assert!(!logged.is_due());
        }
        logged.add(1024, Some(now));
        assert!(logged.is_due());
    }

    #[test]
    fn a_snapshot_that_fails_is_tried_later_and_at_the_end_and_what_it_was_of_is_not_forgotten() {
        let now = Instant::now();
        let mut logged = Logged::none(now);
        logged.replaced(SNAPSHOT_AFTER_BYTES);
        for _ in 0..128 {
            logged.add(SNAPSHOT_AFTER_BYTES / 64, Some(now));
        }
        assert!(logged.is_due());
        logged.begin();
        assert!(!logged.is_due() && logged.is_due_at().is_none(), "not at once");
        assert!(logged.is_worth_it(), "a start carries out all of them");
        logged.add(SNAPSHOT_AFTER_BYTES, Some(now));
        assert!(!logged.is_due(), "the snapshot is as large as before");
        logged.begin();
        logged.add(QUIET_AFTER_BYTES, Some(now));
        logged.replaced(QUIET_AFTER_BYTES);
        assert!(logged.is_due_at().is_some(), "what came since is behind it");
        logged.begin();
        logged.replaced(QUIET_AFTER_BYTES);
        assert!(!logged.is_worth_it());
    }

    #[test]
    fn fewer_records_are_replaced_after_a_while_without_changes() {
        let now = Instant::now();
        let mut logged = Logged::none(now);
        logged.add(QUIET_AFTER_BYTES - 1, Some(now));
        assert_eq!(logged.is_due_at(), None, "they are read in no time");
        let later = now + Duration::from_secs(5);
        logged.add(1, Some(later));
        assert_eq!(logged.is_due_at(), Some(later + QUIET));
        logged.add(1, None);
        assert_eq!(logged.is_due_at(), Some(later + QUIET), "the time passes without changes");
        logged.begin();
        logged.replaced(16 * QUIET_AFTER_BYTES);
        logged.add(2 * QUIET_AFTER_BYTES - 1, Some(later));
        assert_eq!(logged.is_due_at(), None, "a snapshot is much longer");
        logged.add(1, Some(later));
        assert!(logged.is_due_at().is_some());
    }
}
