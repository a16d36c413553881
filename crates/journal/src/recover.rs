//! Reading a journal's files in order: to open it, or to check it. What a crash can have left is
//! cut off; anything else that is wrong is damage, and nothing behind it is served.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::{Damage, Error, place};
use crate::frame::{Cursor, HEAD_BYTES, Invalid, Kind};
use crate::log::Log;
use crate::names::{Names, log_name, snapshot_name};
use crate::read::{Reader, Rest, Step, copy};

/// What is read back when a journal is opened, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A record of the snapshot, in place of all records up to the snapshot's number.
    Snapshot(&'a [u8]),
    /// A record of the log, with its number.
    Record(u64, &'a [u8]),
}

/// Why whoever reads the records doesn't take one that is undamaged.
pub type ApplyError = Box<dyn std::error::Error + Send + Sync>;

/// What takes the records that are read.
pub(crate) type Apply<'a> = &'a mut dyn FnMut(Entry<'_>) -> Result<(), ApplyError>;

/// Bytes that were written last, and that a crash may have left half written: they are left out,
/// and cut off when the journal is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Where they begin, and what is wrong with them.
    pub at: Damage,
    /// How many they are.
    pub bytes: u64,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Damage { path, offset, why }, bytes) = (&self.at, self.bytes);
        let (path, place) = (path.display(), place(*offset));
        write!(f, "{path}{place}: the last {bytes} bytes are left out: {why}")
    }
}

/// What a journal's files hold.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The last record that the snapshot replaces; `None` without one.
    pub snapshot: Option<u64>,
    /// The last record.
    pub last: u64,
    /// How many records were read: those of the snapshot, and those after it.
    pub records: u64,
    /// How many files were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is at the end and is no part of the journal.
    pub dropped: Option<Dropped>,
    /// What is damaged. A journal opens only when nothing is.
    pub damaged: Vec<Damage>,
}

/// Reads all files of a journal and reports on them. It changes nothing, and may read beside a
/// journal that is open: the last group may then be seen half written, and is reported as dropped.
///
/// # Errors
/// When a file can't be read. Damage is no error; the report names it.
pub fn check(disk: &dyn Disk) -> Result<Report, Error> {
    loop {
        let names = Names::list(disk)?;
        let snapshot = names.snapshot();
        let found = scan(disk, names, &mut |_| Ok(()), false).map(|scan| scan.report);
        let is_whole = match &found {
            Ok(report) => report.damaged.is_empty(),
            Err(error) => !error.is_missing(),
        };
        // Files may be missing because a snapshot has replaced them in the meantime.
        if is_whole || Names::list(disk)?.snapshot() <= snapshot {
            return found;
        }
    }
}

/// As [`check`], once, and passes on what is undamaged. Beside a journal that is open a file may
/// be missing, or look damaged, because a snapshot has replaced it in the meantime.
///
/// # Errors
/// As [`check`], and when a record is refused.
pub fn read(
    disk: &dyn Disk,
    mut apply: impl FnMut(Entry<'_>) -> Result<(), ApplyError>,
) -> Result<Report, Error> {
    Ok(scan(disk, Names::list(disk)?, &mut apply, false)?.report)
}

/// The last log, and where its last whole group ends, or its head; `None` where there is none.
///
/// # Errors
/// When a file can't be read, or is damaged.
pub(crate) fn end(disk: &dyn Disk) -> Result<Option<(u64, u64)>, Error> {
    let Scan { read, tail, .. } = scan(disk, Names::list(disk)?, &mut |_| Ok(()), true)?;
    Ok(read.zip(tail.map(|tail| tail.at.offset)))
}

/// Opens a journal's files, makes a first one where there is none, and returns the log.
pub(crate) fn recover(disk: &Arc<dyn Disk>, apply: Apply<'_>) -> Result<(Log, Report), Error> {
    let Scan { names, report, tail, .. } = scan(&**disk, Names::list(&**disk)?, apply, true)?;
    // Before what a snapshot replaces is removed, its own name has to be durable; and before
    // anything is written there has to be room.
    disk.sync().map_err(|why| Error::sync(&**disk, "", why))?;
    names.remove_obsolete(&**disk)?;
    let log = match tail {
        Some(tail @ Tail { file: Some(first), .. }) => resume(disk, first, &tail)?,
        tail => {
            let chain = tail.map_or(0, |tail| tail.at.chain);
            Log::create(disk.clone(), report.last + 1, chain)?
        }
    };
    Ok((log, report))
}

/// Cuts the last file off behind its last group, and makes durable what is before.
fn resume(disk: &Arc<dyn Disk>, first: u64, tail: &Tail) -> Result<Log, Error> {
    let (name, end) = (log_name(first), tail.at.offset);
    let mut file = disk.edit(&name).map_err(|why| Error::io(&**disk, &name, "open", why))?;
    file.set_size(end).map_err(|why| Error::io(&**disk, &name, "cut", why))?;
    // Where fsync failed before, the system may show bytes that are not on the disk, and not write
    // them again by itself.
    copy((&**disk, &name), tail.sync_from..end, (&**disk, &name), &mut *file)?;
    file.sync().map_err(|why| Error::sync(&**disk, &name, why))?;
    Ok(Log::at(disk.clone(), file, first, tail.at, tail.marked))
}

/// Where the logs end that were read.
struct Tail {
    /// The last file; `None` where there is none, or it is half created.
    file: Option<u64>,
    at: Cursor,
    /// Bytes from here on are written again, because no later group says they were durable.
    sync_from: u64,
    /// The last record of which a group says that it is durable.
    marked: u64,
    /// What is wrong behind its end, unless the next file shows that it is the end.
    bad: Option<Damage>,
}

/// A pass over all files, and what it has found.
struct Scan<'a> {
    disk: &'a dyn Disk,
    apply: Apply<'a>,
    is_strict: bool,
    names: Names,
    report: Report,
    /// The last log whose head could be read.
    read: Option<u64>,
    /// `None` behind damage, and so where the next file has to begin isn't known.
    tail: Option<Tail>,
}

fn scan<'a>(
    disk: &'a dyn Disk,
    names: Names,
    apply: Apply<'a>,
    is_strict: bool,
) -> Result<Scan<'a>, Error> {
    let report = Report::default();
    let mut scan = Scan { disk, apply, is_strict, names, report, read: None, tail: None };
    if let Some(part) = &scan.names.part {
        let why = "a backup that did not come to its end has left it".to_owned();
        scan.damaged(Damage { path: disk.path(part), offset: 0, why })?;
    }
    if let Some(through) = scan.names.snapshot() {
        scan.snapshot(through)?;
    }
    scan.logs()?;
    Ok(scan)
}

impl Scan<'_> {
    fn damaged(&mut self, damage: Damage) -> Result<(), Error> {
        if self.is_strict {
            return Err(damage.into());
        }
        self.report.damaged.push(damage);
        Ok(())
    }

    /// Reads the next group of a file, and passes its records on.
    fn step(
        &mut self,
        reader: &mut Reader<'_>,
        name: &str,
        entry: for<'r> fn(u64, &'r [u8]) -> Entry<'r>,
    ) -> Result<Step, Error> {
        let Self { disk, apply, report, .. } = self;
        reader.next(|seq, record| {
            report.records += 1;
            apply(entry(seq, record)).map_err(|why| Error::Refused {
                path: disk.path(name),
                seq,
                why: why.to_string(),
            })
        })
    }

    fn snapshot(&mut self, through: u64) -> Result<(), Error> {
        let name = snapshot_name(through);
        self.report.snapshot = Some(through);
        self.report.last = through;
        let (mut reader, head) = Reader::open(self.disk, name.clone(), Kind::Snapshot, through)?;
        if let Err(why) = head {
            return self.damaged(reader.damage(why));
        }
        self.report.files += 1;
        self.report.bytes += reader.size;
        let mut is_whole = false;
        let why = loop {
            match self.step(&mut reader, &name, |_, record| Entry::Snapshot(record))? {
                Step::Group(head) if !is_whole => is_whole = head.is_last,
                Step::Group(_) => break Invalid::OutOfSequence,
                Step::End if is_whole => return Ok(()),
                Step::End => break Invalid::Cut,
                Step::Bad(why) => break why,
            }
        };
        self.damaged(reader.damage(why))
    }

    /// Reads the logs behind the snapshot.
    fn logs(&mut self) -> Result<(), Error> {
        let logs = self.names.logs().to_vec();
        let next = self.report.last.saturating_add(1);
        if logs.is_empty() && !self.names.is_empty() {
            let (path, why) = (self.disk.path(&log_name(next)), "the file is missing".to_owned());
            return self.damaged(Damage { path, offset: 0, why });
        }
        let at = Cursor { salt: 0, offset: 0, next, chain: 0 };
        self.tail = Some(Tail { file: None, at, sync_from: 0, marked: 0, bad: None });
        for (index, &first) in logs.iter().enumerate() {
            let is_last = index + 1 == logs.len();
            let (mut reader, head) = Reader::open(self.disk, log_name(first), Kind::Log, first)?;
            let mut tail = self.tail.take();
            let chain = head.as_ref().ok().map(|head| head.chain);
            if let Some(damage) = tail.as_mut().and_then(|tail| self.gap(tail, first, chain)) {
                self.damaged(damage)?;
                tail = None;
            }
            if let Err(why) = head {
                // A file of more than its head was durable with its head.
                let is_torn =
                    matches!(why, Invalid::Cut | Invalid::Head) && reader.size <= HEAD_BYTES as u64;
                match tail {
                    Some(tail) if is_last && is_torn => {
                        let (at, bytes) = (reader.damage(why), reader.size);
                        self.report.dropped = Some(Dropped { at, bytes });
                        self.tail = Some(Tail { file: None, ..tail });
                    }
                    _ => self.damaged(reader.damage(why))?,
                }
                continue;
            }
            self.report.files += 1;
            self.report.bytes += reader.size;
            self.read = Some(first);
            self.tail = self.log(&mut reader, first, is_last)?;
        }
        Ok(())
    }

    /// What is wrong between the files before and the one that begins with this record; without
    /// `chain` its head can't be read.
    fn gap(&self, before: &mut Tail, first: u64, chain: Option<u32>) -> Option<Damage> {
        let (next, bad) = (before.at.next, before.bad.take());
        let is_chained =
            chain.map(|chain| first == next && (before.file.is_none() || chain == before.at.chain));
        match (bad, is_chained) {
            (_, Some(true)) => None,
            (None, None) if first == next => None,
            (Some(bad), _) => Some(bad),
            (None, _) if first > next => {
                let why = format!("records {next} to {} are missing", first - 1);
                Some(Damage { path: self.disk.path(""), offset: 0, why })
            }
            (None, _) => {
                let (path, why) = (self.disk.path(&log_name(first)), Invalid::OutOfSequence);
                Some(Damage { path, offset: 0, why: why.to_string() })
            }
        }
    }

    /// Reads a log; returns where it ends, unless that is damaged.
    fn log(
        &mut self,
        reader: &mut Reader<'_>,
        first: u64,
        is_last: bool,
    ) -> Result<Option<Tail>, Error> {
        let (name, mut reread_at) = (log_name(first), 0);
        // The groups that no later one says are durable: each one's end, and what it has to say.
        let mut waiting: VecDeque<(u64, u64)> = VecDeque::new();
        let (mut sync_from, mut marked, mut bad) = (0, first - 1, None);
        loop {
            match self.step(reader, &name, |seq, record| Entry::Record(seq, record))? {
                Step::Group(head) => {
                    while let Some((end, _)) = waiting.pop_front_if(|(_, seq)| *seq <= head.synced)
                    {
                        sync_from = end;
                    }
                    let last = reader.at.next - 1;
                    // An empty group becomes durable with the next record.
                    waiting.push_back((reader.at.offset, last + u64::from(head.is_empty())));
                    (self.report.last, marked) = (last, head.synced);
                }
                Step::End => break,
                Step::Bad(why) if !is_last => {
                    bad = Some(reader.damage(why));
                    break;
                }
                Step::Bad(why) => match reader.rest()? {
                    Rest::Zeros => break,
                    Rest::Torn => {
                        let at = reader.damage(why);
                        let bytes = reader.size - at.offset;
                        self.report.dropped = Some(Dropped { at, bytes });
                        break;
                    }
                    Rest::Later if reread_at < reader.at.offset => reread_at = reader.at.offset,
                    Rest::Later => {
                        self.damaged(reader.damage(why))?;
                        return Ok(None);
                    }
                },
            }
        }
        Ok(Some(Tail { file: Some(first), at: reader.at, sync_from, marked, bad }))
    }
}
