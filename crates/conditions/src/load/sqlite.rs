//! SQLite as a peer: the same objects in a table, read by the client's own process. The target
//! only says which folder the database is in (`peers/sqlite/lend.py`), so that its data are kept as
//! those of any other target.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use load::{Advisor, Caller, Conclusion, Op, Operation, Outcome, Stopwatch, Took};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, Params, Row, TransactionBehavior, params, params_from_iter};
use wire::ProtocolError;

use super::browse::{self, Shown};
use super::check::Check;
use super::made::{Made, Piece};
use super::operations::{Do, OPERATIONS, OVER_HTTP};
use super::options::SqliteOptions;
use super::written::{Written, loaded, not_done, read, with_connecting, wrong_answer};

/// How long the target may take to say its folder, and a statement to get a lock.
const WAIT: Duration = Duration::from_secs(10);

/// The longest path of a folder.
const MAX_PATH_BYTES: u64 = 4096;

/// Every commit is on the disk, readers wait for no writer, and pages are read where they are
/// mapped.
const SETTINGS: &str = "
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 4294967296;";

/// Rows lie in the order of the key; `written` is what slots insert into.
const TABLES: &str = "
    CREATE TABLE channels (folder INTEGER, channel INTEGER, PRIMARY KEY (folder, channel))
        WITHOUT ROWID;
    CREATE TABLE conditions (folder INTEGER, channel INTEGER, since INTEGER, until INTEGER NOT NULL,
        {columns}, PRIMARY KEY (folder, channel, since)) WITHOUT ROWID;
    CREATE TABLE written (channel INTEGER, since INTEGER, until INTEGER NOT NULL,
        value REAL NOT NULL, PRIMARY KEY (channel, since)) WITHOUT ROWID;";

/// The latest row of each channel before the time ?1, in all folders.
const SLICE: &str = "
    SELECT o.* FROM channels c JOIN conditions o
        ON o.folder = c.folder AND o.channel = c.channel AND o.since = (
            SELECT max(since) FROM conditions
            WHERE folder = c.folder AND channel = c.channel AND since <= ?1)
    WHERE o.until > ?1";

/// The same in the folder ?2.
const FOLDER: &str = "
    SELECT o.* FROM channels c JOIN conditions o
        ON o.folder = c.folder AND o.channel = c.channel AND o.since = (
            SELECT max(since) FROM conditions
            WHERE folder = c.folder AND channel = c.channel AND since <= ?1)
    WHERE o.until > ?1 AND c.folder = ?2";

/// What the folder ?1 shows in [?2, ?3).
const BROWSE: &str = "
    SELECT o.* FROM channels c JOIN conditions o
        ON o.folder = c.folder AND o.channel = c.channel AND o.since < ?3 AND o.since >= coalesce((
            SELECT max(since) FROM conditions
            WHERE folder = c.folder AND channel = c.channel AND since <= ?2), ?2)
    WHERE c.folder = ?1 AND o.until > ?2";

const FIND: &str = "
    SELECT since, value FROM written WHERE channel = ?1 AND since <= ?2 AND until > ?2
    ORDER BY since DESC LIMIT 1";

/// One slot, with a channel of its own.
pub(super) struct Slot {
    database: Connection,
    options: SqliteOptions,
    made: Arc<Made>,
    written: Written,
    folder: PathBuf,
}

/// What SQLite says of itself: which version it is.
pub(super) struct Itself;

impl Advisor for Itself {
    fn sample(&mut self) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn conclude(&mut self) -> Result<Conclusion, ProtocolError> {
        let version = Some(format!("SQLite {}", rusqlite::version()));
        Ok(Conclusion { version, ..Conclusion::default() })
    }
}

/// One object as it was read: folder, channel, since, until, values.
type Object = (u32, u32, i64, i64, Vec<f32>);

impl Slot {
    pub(super) fn open(
        options: SqliteOptions,
        address: SocketAddr,
        made: Arc<Made>,
        channel: u32,
    ) -> Result<Self, ProtocolError> {
        let folder = folder(address).map_err(|error| ProtocolError::new(error.to_string()))?;
        let folder = PathBuf::from(folder);
        let database = connect(&folder).map_err(fault)?;
        Ok(Self { database, options, made, written: Written::new(channel), folder })
    }

    /// Leaves the connection of the job before, and reads by a new one.
    fn job(&mut self, op: Op) -> rusqlite::Result<Outcome> {
        let watch = Stopwatch::start();
        self.database = connect(&self.folder)?;
        let connecting = watch.stop();
        Ok(with_connecting(self.read(op, true)?, connecting))
    }

    fn objects(&self, statement: &str, parameters: impl Params) -> rusqlite::Result<Vec<Object>> {
        let fields = self.made.spec.fields as usize;
        let object = |row: &Row<'_>| {
            let values = (4..4 + fields).map(|column| row.get(column)).collect::<Result<_, _>>()?;
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, values))
        };
        self.database.prepare_cached(statement)?.query_map(parameters, object)?.collect()
    }

    /// Reads an interval: all folders at once, or by a statement each.
    fn read(&self, op: Op, at_once: bool) -> rusqlite::Result<Outcome> {
        let interval = self.made.interval(op.what);
        let time = self.made.time(interval).cast_signed();
        let watch = Stopwatch::start();
        let mut answers = Vec::new();
        if at_once {
            answers.push(self.objects(SLICE, params![time])?);
        } else {
            for folder in 0..self.made.spec.folders {
                answers.push(self.objects(FOLDER, params![time, folder])?);
            }
        }
        // Whether it is right is looked at when it is here.
        let took = Took { by_target: true, ..watch.stop() };
        let mut check = Check::new(&self.made, interval);
        for (folder, channel, since, until, values) in answers.into_iter().flatten() {
            let times = (since.cast_unsigned(), until.cast_unsigned());
            check.objects(folder, channel..channel.saturating_add(1), times, values);
        }
        Ok(self::read(op, interval, check.wrong(), took))
    }

    fn browse(&self, op: Op) -> rusqlite::Result<Outcome> {
        let (folder, intervals) = self.made.browsed(op.what);
        let (since, until) = self.made.range(&intervals);
        let parameters = params![folder, since.cast_signed(), until.cast_signed()];
        let watch = Stopwatch::start();
        let found = self.objects(BROWSE, parameters)?;
        let took = Took { by_target: true, ..watch.stop() };
        let shown = |(_, channel, since, until, values): Object| {
            let (since, until) = (since.cast_unsigned(), until.cast_unsigned());
            Shown { channel, since, until, values }
        };
        let found = found.into_iter().map(shown).collect();
        Ok(browse::outcome(op, &self.made, folder, intervals, found, took))
    }

    fn insert(&mut self, count: u32) -> rusqlite::Result<Outcome> {
        let transaction =
            self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (channel, numbers) = (self.written.channel, self.written.next(count));
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO written VALUES (?1, ?2, ?3, ?4)")?;
            for number in numbers.clone() {
                let (value, since) = (self.written.value(number), number.cast_signed());
                insert.execute(params![channel, since, since + 1, value])?;
            }
        }
        transaction.commit()?;
        Ok(self.written.acknowledged(&numbers))
    }

    fn find(&self, op: Op) -> rusqlite::Result<Outcome> {
        let Some(last) = self.written.last() else { return Ok(Outcome::miss()) };
        let channel = self.written.channel;
        let mut find = self.database.prepare_cached(FIND)?;
        let found = find.query_map(params![channel, last.cast_signed()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, f32>(1)?))
        });
        let found = found?.collect::<rusqlite::Result<Vec<_>>>()?;
        let expected = vec![(last.cast_signed(), self.written.value(last))];
        if found != expected {
            let key = format!("object {last} of channel {channel}");
            return Ok(wrong_answer(op, &key, &format!("{expected:?}"), &format!("{found:?}")));
        }
        Ok(Outcome::right())
    }

    /// Inserts these objects of a folder, each by its interval and channel.
    fn add(&self, folder: u32, objects: &[(u32, u32)]) -> rusqlite::Result<()> {
        let marks = vec!["?"; 4 + self.made.spec.fields as usize].join(", ");
        let insert = format!("INSERT INTO conditions VALUES ({marks})");
        let mut insert = self.database.prepare_cached(&insert)?;
        for &(interval, channel) in objects {
            let (since, until) = self.made.times(folder, channel, interval);
            let head = [folder.into(), channel.into()];
            let times = [since.cast_signed().into(), until.cast_signed().into()];
            let values = self.made.floats(folder, channel, interval);
            let values = values.map(|value| Value::Real(value.into()));
            insert.execute(params_from_iter(head.into_iter().chain(times).chain(values)))?;
        }
        Ok(())
    }

    /// Appends an interval in one transaction.
    fn append(&self) -> rusqlite::Result<Outcome> {
        let interval = self.made.append();
        self.database.execute_batch("BEGIN IMMEDIATE")?;
        for folder in 0..self.made.spec.folders {
            let objects: Vec<_> = self.made.objects(folder, interval..interval + 1).collect();
            self.add(folder, &objects)?;
        }
        self.database.execute_batch("COMMIT")?;
        Ok(Outcome::right())
    }

    /// Everything is loaded in one transaction.
    fn fill(&self, piece: Piece) -> rusqlite::Result<()> {
        let spec = &self.made.spec;
        match piece {
            Piece::Begin => {
                let columns = (0..spec.fields).map(|n| format!("v{n} REAL NOT NULL"));
                let columns = columns.collect::<Vec<_>>().join(", ");
                self.database.execute_batch("BEGIN IMMEDIATE")?;
                self.database.execute_batch(&TABLES.replace("{columns}", &columns))?;
                let mut channel = self.database.prepare("INSERT INTO channels VALUES (?1, ?2)")?;
                for (folder, number) in
                    (0..spec.folders).flat_map(|f| (0..spec.channels).map(move |c| (f, c)))
                {
                    channel.execute(params![folder, number])?;
                }
                Ok(())
            }
            Piece::Objects { folder, intervals } => {
                // In the order of the table, as far as a part goes.
                let mut objects: Vec<_> = self.made.objects(folder, intervals).collect();
                objects.sort_unstable_by_key(|(interval, channel)| (*channel, *interval));
                self.add(folder, &objects)
            }
            Piece::End => self.database.execute_batch("COMMIT"),
        }
    }

    /// What is done once all is filled.
    fn settle(&self) -> rusqlite::Result<()> {
        if self.options.analyze {
            self.database.execute_batch("ANALYZE")?;
        }
        // What is kept of it begins with nothing left in the log.
        self.database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// Loads everything into tables that are made anew, and reads an interval of it.
    fn load(&self, op: Op) -> rusqlite::Result<Outcome> {
        for table in ["conditions", "written", "channels"] {
            self.database.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        let watch = Stopwatch::start();
        for part in 0..self.made.parts() {
            self.fill(self.made.piece(part))?;
        }
        let loading = Took { by_target: true, ..watch.stop() };
        self.settle()?;
        let read = self.read(op, true)?;
        let number = |pragma| self.database.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let pages = number("PRAGMA page_count")? - number("PRAGMA freelist_count")?;
        Ok(loaded(read, loading, (pages * number("PRAGMA page_size")?) as f64))
    }
}

fn connect(folder: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(folder.join("conditions.sqlite"))?;
    database.busy_timeout(WAIT)?;
    database.execute_batch(SETTINGS)?;
    Ok(database)
}

/// The folder that the target lends.
fn folder(address: SocketAddr) -> std::io::Result<String> {
    let target = TcpStream::connect_timeout(&address, WAIT)?;
    target.set_read_timeout(Some(WAIT))?;
    let mut line = String::new();
    BufReader::new(target.take(MAX_PATH_BYTES)).read_line(&mut line)?;
    let folder = line.strip_suffix('\n').filter(|folder| !folder.is_empty());
    folder.map(str::to_owned).ok_or_else(|| std::io::Error::other("the target names no folder"))
}

fn fault(error: rusqlite::Error) -> ProtocolError {
    ProtocolError::new(error.to_string())
}

/// A row that meets another is wrong; with any other error the slot ends.
fn outcome(
    operation: &Operation,
    operations: u32,
    asked: rusqlite::Result<Outcome>,
) -> Result<Outcome, ProtocolError> {
    match asked {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Ok(not_done(operation, operations, false, error.to_string()))
        }
        asked => asked.map_err(fault),
    }
}

impl Caller for Slot {
    fn prepare(&mut self, part: u64) -> Result<Outcome, ProtocolError> {
        let piece = self.made.piece(part);
        let is_last = piece == Piece::End;
        self.fill(piece).map_err(fault)?;
        if is_last {
            self.settle().map_err(fault)?;
        }
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        let does = Do::of(op.operation);
        let asked = match does {
            Do::Slice => self.read(op, true),
            Do::ReadFolders => self.read(op, false),
            Do::Insert => self.insert(1),
            Do::InsertBulk => self.insert(self.made.spec.bulk),
            Do::Find => self.find(op),
            Do::Job => self.job(op),
            Do::Append => self.append(),
            Do::Browse => self.browse(op),
            Do::Load => self.load(op),
            Do::LookUp => return Err(ProtocolError::new(OVER_HTTP)),
        };
        outcome(&OPERATIONS[op.operation], self.made.operations(does), asked)
    }
}
