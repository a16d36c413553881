//! Reading a journal's files in order: to open it, or to check it. What a crash can have left is
//! cut off; anything else that is wrong is damage, and nothing behind it is handed on.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::{Disk, read_full, write_all};
use crate::error::{Damage, Error};
use crate::frame::{Cursor, HEAD_BYTES, Invalid, Kind};
use crate::log::Log;
use crate::names::{NEW_SNAPSHOT, Names, log_name, snapshot_name};
use crate::read::{Reader, Step};

/// What is read back when a journal is opened, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A record of the snapshot, in place of all records up to the snapshot's number.
    Snapshot(&'a [u8]),
    /// A record of the log, with its number.
    Record(u64, &'a [u8]),
}

/// Why an undamaged record is refused.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// What takes the records that are read.
pub(crate) type Apply<'a> = &'a mut dyn FnMut(Entry<'_>) -> Result<(), Refusal>;

/// What was cut off: bytes that were written last, and that a crash may have left half written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Of which file.
    pub path: PathBuf,
    /// From where on.
    pub offset: u64,
    /// How much.
    pub bytes: u64,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, bytes, why } = self;
        write!(f, "{}, byte {offset}: the last {bytes} bytes are dropped: {why}", path.display())
    }
}

/// What a journal's files hold.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The last record that the snapshot stands for; `None` without one.
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

/// Reads all files of a journal and reports on them. It changes nothing; of one that is being
/// written, the last group may be seen half written, and is then reported as dropped.
///
/// # Errors
/// When a file can't be read. Damage is no error; the report names it.
pub fn check(disk: &dyn Disk) -> Result<Report, Error> {
    Ok(scan(disk, &mut |_| Ok(()), false)?.report)
}

/// Where the log goes on.
struct Tail {
    first: u64,
    at: Cursor,
    /// The place from which on no later group shows that it was made durable.
    unproven: u64,
}

/// What was found.
struct Found {
    report: Report,
    names: Names,
    tail: Option<Tail>,
    /// The last file, when it is one that a crash left half made.
    unmade: Option<u64>,
}

/// Opens a journal's files, makes a first one where there is none, and returns the log.
pub(crate) fn recover(disk: &Arc<dyn Disk>, apply: Apply<'_>) -> Result<(Log, Report), Error> {
    let found = scan(&**disk, apply, true)?;
    let remove = |name: &str| {
        disk.remove(name).map_err(|why| Error::io(&**disk, name, "it is removed", why))
    };
    if let Some(first) = found.unmade {
        remove(&log_name(first))?;
    }
    let log = match &found.tail {
        // A file is closed by the one after it, whether that was made or not.
        Some(tail) if found.unmade.is_none() => resume(disk, tail)?,
        tail => {
            let chain = tail.as_ref().map_or(0, |tail| tail.at.chain);
            Log::create(disk.clone(), found.report.last + 1, chain)?
        }
    };
    // Before what a snapshot stands for is removed, its own name has to be durable.
    disk.sync().map_err(|why| Error::sync(&**disk, "", why))?;
    for name in found.names.obsolete() {
        remove(&name)?;
    }
    let all = disk.list().map_err(|why| Error::io(&**disk, "", "it is listed", why))?;
    if all.iter().any(|name| name == NEW_SNAPSHOT) {
        remove(NEW_SNAPSHOT)?;
    }
    Ok((log, found.report))
}

/// Cuts the last file off behind its last group, and makes durable what is before.
fn resume(disk: &Arc<dyn Disk>, tail: &Tail) -> Result<Log, Error> {
    let name = log_name(tail.first);
    let failed = |why| Error::io(&**disk, &name, "its end is mended", why);
    let mut file = disk.edit(&name).map_err(failed)?;
    if file.size().map_err(failed)? != tail.at.offset {
        file.set_size(tail.at.offset).map_err(failed)?;
    }
    // Where fsync failed before, the system may show bytes that are not on the disk, and not write
    // them again by itself.
    let mut offset = tail.unproven;
    let mut bytes = vec![0; (tail.at.offset - offset).min(1 << 20) as usize];
    while offset < tail.at.offset {
        let want = bytes.len().min((tail.at.offset - offset) as usize);
        let read = read_full(&*file, &mut bytes[..want], offset).map_err(failed)?;
        if read == 0 {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        write_all(&mut *file, &bytes[..read], offset).map_err(failed)?;
        offset += read as u64;
    }
    file.sync().map_err(|why| Error::sync(&**disk, &name, why))?;
    Ok(Log::resume(disk.clone(), file, tail.first, tail.at))
}

/// A pass over all files.
struct Scan<'a> {
    disk: &'a dyn Disk,
    apply: Apply<'a>,
    is_strict: bool,
    report: Report,
}

fn scan(disk: &dyn Disk, apply: Apply<'_>, is_strict: bool) -> Result<Found, Error> {
    let names = disk.list().map_err(|why| Error::io(disk, "", "it is listed", why))?;
    let names = Names::of(&names);
    let mut scan = Scan { disk, apply, is_strict, report: Report::default() };
    if let Some(through) = names.snapshot() {
        scan.snapshot(through)?;
    }
    let (tail, unmade) = scan.logs(&names)?;
    Ok(Found { report: scan.report, names, tail, unmade })
}

impl Scan<'_> {
    fn damaged(&mut self, damage: Damage) -> Result<(), Error> {
        if self.is_strict {
            return Err(damage.into());
        }
        self.report.damaged.push(damage);
        Ok(())
    }

    fn snapshot(&mut self, through: u64) -> Result<(), Error> {
        let (disk, name) = (self.disk, snapshot_name(through));
        self.report.snapshot = Some(through);
        self.report.last = through;
        let mut reader = match Reader::open(disk, name.clone(), Kind::Snapshot, through)? {
            Ok(reader) => reader,
            Err((why, _)) => return self.damaged(head_damage(disk, &name, why)),
        };
        self.report.files += 1;
        self.report.bytes += reader.size();
        let mut is_whole = false;
        loop {
            let (apply, report) = (&mut self.apply, &mut self.report);
            let step = reader.next(|seq, record| {
                report.records += 1;
                apply(Entry::Snapshot(record)).map_err(|why| refused(disk, &name, seq, &why))
            })?;
            match step {
                Step::Group(head) if !is_whole => is_whole = head.is_last,
                Step::Group(_) => return self.damaged(reader.damage(Invalid::Place)),
                Step::End if is_whole => return Ok(()),
                Step::End => return self.damaged(reader.damage(Invalid::Cut)),
                Step::Bad(why) => return self.damaged(reader.damage(why)),
            }
        }
    }

    /// Reads the logs that the snapshot doesn't stand for; returns where they end, and the last
    /// one when it is only half made.
    fn logs(&mut self, names: &Names) -> Result<(Option<Tail>, Option<u64>), Error> {
        let logs = &names.logs[names.covered()..];
        let through = self.report.last;
        let mut tail: Option<Tail> = None;
        for (index, &first) in logs.iter().enumerate() {
            let is_last = index + 1 == logs.len();
            let next = tail.as_ref().map_or(through + 1, |tail| tail.at.next);
            if first > next && self.report.damaged.is_empty() {
                self.missing(next, first - 1)?;
                tail = None;
            }
            let (disk, name) = (self.disk, log_name(first));
            let mut reader = match Reader::open(disk, name.clone(), Kind::Log, first)? {
                Ok(reader) => reader,
                Err((why, size)) => {
                    // A file of more than its head had been made whole.
                    let may_be_torn = matches!(why, Invalid::Cut | Invalid::Head);
                    if is_last && may_be_torn && size <= HEAD_BYTES as u64 {
                        let (path, why) = (disk.path(&name), why.to_string());
                        self.report.dropped = Some(Dropped { path, offset: 0, bytes: size, why });
                        self.report.last = next - 1;
                        return Ok((tail, Some(first)));
                    }
                    self.damaged(head_damage(disk, &name, why))?;
                    tail = None;
                    continue;
                }
            };
            let follows = tail
                .as_ref()
                .is_none_or(|tail| (tail.at.next, tail.at.chain) == (first, reader.head().chain));
            if !follows {
                self.damaged(head_damage(disk, &name, Invalid::Place))?;
            }
            self.report.files += 1;
            self.report.bytes += reader.size();
            tail = Some(self.log(&mut reader, first, is_last, through)?);
        }
        let last = tail.as_ref().map_or(through, |tail| tail.at.next - 1);
        if last < through || (logs.is_empty() && !names.is_empty()) {
            self.missing(last + 1, through)?;
        }
        self.report.last = last.max(through);
        Ok((tail, None))
    }

    fn log(
        &mut self,
        reader: &mut Reader<'_>,
        first: u64,
        is_last: bool,
        through: u64,
    ) -> Result<Tail, Error> {
        let (disk, name) = (self.disk, log_name(first));
        // The groups that no later one shows to be durable: each one's end and last record.
        let mut unproven: VecDeque<(u64, u64)> = VecDeque::new();
        let mut proven = HEAD_BYTES as u64;
        loop {
            let (apply, report) = (&mut self.apply, &mut self.report);
            let step = reader.next(|seq, record| {
                if seq <= through {
                    return Ok(());
                }
                report.records += 1;
                apply(Entry::Record(seq, record)).map_err(|why| refused(disk, &name, seq, &why))
            })?;
            match step {
                Step::Group(head) => {
                    while let Some((end, _)) = unproven.pop_front_if(|(_, seq)| *seq <= head.synced)
                    {
                        proven = end;
                    }
                    unproven.push_back((reader.at().offset, reader.at().next - 1));
                }
                Step::End => break,
                Step::Bad(_) if reader.is_zero()? => break,
                Step::Bad(why) if is_last && reader.is_torn()? => {
                    let Damage { path, offset, why } = reader.damage(why);
                    let bytes = reader.size() - offset;
                    self.report.dropped = Some(Dropped { path, offset, bytes, why });
                    break;
                }
                Step::Bad(why) => {
                    self.damaged(reader.damage(why))?;
                    break;
                }
            }
        }
        Ok(Tail { first, at: *reader.at(), unproven: proven })
    }

    fn missing(&mut self, first: u64, last: u64) -> Result<(), Error> {
        let path = self.disk.path(&log_name(first));
        let why = match first <= last {
            true => format!("records {first} to {last} are missing"),
            false => "the file is missing".to_owned(),
        };
        self.damaged(Damage { path, offset: 0, why })
    }
}

fn refused(disk: &dyn Disk, name: &str, seq: u64, why: &Refusal) -> Error {
    Error::Refused { path: disk.path(name), seq, why: why.to_string() }
}

fn head_damage(disk: &dyn Disk, name: &str, why: Invalid) -> Damage {
    Damage { path: disk.path(name), offset: 0, why: why.to_string() }
}
