//! What a durable append costs, in SQLite, redb and the journal, with 1, 16 and 256 that append and
//! wait; and what each makes of one flipped byte. ARCHITECTURE.md has the table that this prints.
//!
//! `cargo run --release -p loadline-journal --example commit_path`

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use journal::{Directory, Entry, Journal, Options, Progress};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use rustix::fs::{major, minor};
use rustix::time::{ClockId, clock_gettime};

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");
const SLICE: Duration = Duration::from_millis(1000);

/// The appenders' requests: each waits, parked, until its record is durable.
#[derive(Default)]
struct Queue {
    requests: Mutex<Vec<Request>>,
    came: Condvar,
    is_over: AtomicBool,
}

struct Request {
    from: Thread,
    done: Arc<AtomicBool>,
}

impl Request {
    fn finish(self) {
        self.done.store(true, Ordering::Release);
        self.from.unpark();
    }
}

impl Queue {
    fn append(&self, done: &Arc<AtomicBool>) {
        done.store(false, Ordering::Release);
        let request = Request { from: thread::current(), done: done.clone() };
        self.requests.lock().expect("locked").push(request);
        self.came.notify_one();
        while !done.load(Ordering::Acquire) {
            thread::park();
        }
    }

    /// All that has come, once something has; `None` at the end.
    fn take(&self) -> Option<Vec<Request>> {
        let mut requests = self.requests.lock().expect("locked");
        while requests.is_empty() {
            if self.is_over.load(Ordering::Acquire) {
                return None;
            }
            requests = self.came.wait_timeout(requests, SLICE).expect("locked").0;
        }
        Some(std::mem::take(&mut requests))
    }
}

type Store = fn(&Path, &Queue, &[u8]);

fn with_sqlite(folder: &Path, queue: &Queue, record: &[u8]) {
    let connection = sqlite(folder);
    let mut insert = connection.prepare("INSERT INTO records VALUES (NULL, ?)").expect("prepared");
    while let Some(requests) = queue.take() {
        connection.execute_batch("BEGIN").expect("begun");
        for _ in &requests {
            insert.execute([record]).expect("inserted");
        }
        connection.execute_batch("COMMIT").expect("durable");
        requests.into_iter().for_each(Request::finish);
    }
}

fn sqlite(folder: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(folder.join("records.db")).expect("opened");
    let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE IF NOT EXISTS records (seq INTEGER PRIMARY KEY, record BLOB)";
    connection.execute_batch(pragmas).expect("set");
    connection
}

fn with_redb(folder: &Path, queue: &Queue, record: &[u8]) {
    let database = Database::create(folder.join("records.redb")).expect("created");
    let mut next = 0;
    while let Some(requests) = queue.take() {
        redb_commit(&database, next..next + requests.len() as u64, |_| record.to_vec());
        next += requests.len() as u64;
        requests.into_iter().for_each(Request::finish);
    }
}

fn redb_commit(database: &Database, keys: std::ops::Range<u64>, record: impl Fn(u64) -> Vec<u8>) {
    let write = database.begin_write().expect("begun");
    {
        let mut table = write.open_table(TABLE).expect("opened");
        for key in keys {
            table.insert(key, &record(key)[..]).expect("inserted");
        }
    }
    write.commit().expect("durable");
}

fn with_journal(folder: &Path, queue: &Queue, record: &[u8]) {
    let waiting: Arc<Mutex<Vec<(u64, Request)>>> = Arc::default();
    let notify = {
        let waiting = waiting.clone();
        move |progress| {
            let Progress::Acknowledged { through, .. } = progress else { panic!("{progress:?}") };
            let mut waiting = waiting.lock().expect("locked");
            let count = waiting.partition_point(|(seq, _)| *seq <= through);
            waiting.drain(..count).for_each(|(_, request)| request.finish());
        }
    };
    let disk = Arc::new(Directory::new(folder));
    let opened = Journal::open(disk, Options::default(), |_| Ok(()), notify);
    let mut journal = opened.expect("opened").0;
    while let Some(requests) = queue.take() {
        let mut waiting = waiting.lock().expect("locked");
        for request in requests {
            waiting.push((journal.append(record).expect("appended"), request));
        }
        drop(waiting);
        journal.commit();
    }
}

/// Measures one store, and prints a line of the table.
fn measure(root: &Path, name: &str, store: Store, record_bytes: usize, appenders: usize) {
    let folder = root.join(format!("{name}-{record_bytes}-{appenders}"));
    std::fs::create_dir(&folder).expect("made");
    let record: Vec<u8> = (0..record_bytes).map(|at| (at * 31 % 251) as u8).collect();
    let queue = Queue::default();
    let latency = Mutex::new(Histogram::<u64>::new(3).expect("bounds"));
    let (cpu_start, bytes_start, start) = (cpu(), written_bytes(root), Instant::now());
    thread::scope(|scope| {
        scope.spawn(|| store(&folder, &queue, &record));
        let append = || {
            let done = Arc::default();
            let mut own = Histogram::<u64>::new(3).expect("bounds");
            while start.elapsed() < SLICE {
                let sent = Instant::now();
                queue.append(&done);
                own.record(sent.elapsed().as_nanos() as u64).expect("recorded");
            }
            latency.lock().expect("locked").add(own).expect("added");
        };
        let all: Vec<_> = (0..appenders).map(|_| scope.spawn(append)).collect();
        all.into_iter().for_each(|one| one.join().expect("appended"));
        queue.is_over.store(true, Ordering::Release);
        queue.came.notify_one();
    });
    let seconds = start.elapsed().as_secs_f64();
    let latency = latency.into_inner().expect("unlocked");
    let count = latency.len() as f64;
    println!(
        "{name:>8} {record_bytes:>6} B {appenders:>4}: {:>8.0} records/s, p50 {:>7.0} us, \
         p99 {:>7.0} us, CPU {:>6.1} us/record, written {:>5.2} x",
        count / seconds,
        latency.value_at_quantile(0.5) as f64 / 1e3,
        latency.value_at_quantile(0.99) as f64 / 1e3,
        (cpu() - cpu_start).as_secs_f64() * 1e6 / count,
        (written_bytes(root) - bytes_start) as f64 / count / record_bytes as f64,
    );
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// The CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What was written to the disk on which this lies, by whomever. What the system counts for this
/// process has whole folios where a few of their bytes changed.
fn written_bytes(folder: &Path) -> u64 {
    let device = std::fs::metadata(folder).expect("there").dev();
    let path = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    let text = std::fs::read_to_string(path).expect("a disk");
    let sectors: u64 = text.split_whitespace().nth(6).expect("a field").parse().expect("a number");
    sectors * 512
}

/// The record of this number, in groups of ten.
fn numbered(seq: u64) -> Vec<u8> {
    format!("record {seq:>6} ").repeat(20).into_bytes()
}

const RECORDS: u64 = 200;

fn write_sqlite(folder: &Path) {
    let connection = sqlite(folder);
    for group in 0..RECORDS / 10 {
        connection.execute_batch("BEGIN").expect("begun");
        for seq in group * 10..group * 10 + 10 {
            let row = (seq as i64, numbered(seq));
            connection.execute("INSERT INTO records VALUES (?, ?)", row).expect("inserted");
        }
        connection.execute_batch("COMMIT").expect("durable");
        if group == RECORDS / 20 {
            connection.pragma_update(None, "wal_checkpoint", "TRUNCATE").expect("checkpoint");
        }
    }
    // As a killed process leaves it.
    std::mem::forget(connection);
}

fn read_sqlite(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let read = || -> Result<Vec<Vec<u8>>, rusqlite::Error> {
        let connection = rusqlite::Connection::open(folder.join("records.db"))?;
        let mut select = connection.prepare("SELECT record FROM records ORDER BY seq")?;
        select.query_map([], |row| row.get(0))?.collect()
    };
    read().map_err(|error| error.to_string())
}

fn write_redb(folder: &Path) {
    let database = Database::create(folder.join("records.redb")).expect("created");
    for group in 0..RECORDS / 10 {
        redb_commit(&database, group * 10..group * 10 + 10, numbered);
    }
    std::mem::forget(database);
}

fn read_redb(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let read = || -> Result<Vec<Vec<u8>>, redb::Error> {
        let database = Database::open(folder.join("records.redb"))?;
        let table = database.begin_read()?.open_table(TABLE)?;
        table.iter()?.map(|row| Ok(row?.1.value().to_vec())).collect()
    };
    read().map_err(|error| error.to_string())
}

fn write_journal(folder: &Path) {
    let disk = Arc::new(Directory::new(folder));
    let opened = Journal::open(disk, Options::default(), |_| Ok(()), |_| {});
    let mut journal = opened.expect("opened").0;
    for seq in 0..RECORDS {
        journal.append(&numbered(seq)).expect("appended");
        if seq % 10 == 9 {
            journal.commit();
            journal.watch().wait(seq + 1).expect("durable");
        }
    }
    std::mem::forget(journal);
}

fn read_journal(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let mut records = Vec::new();
    let apply = |entry: Entry<'_>| {
        let (Entry::Record(_, bytes) | Entry::Snapshot(bytes)) = entry;
        records.push(bytes.to_vec());
        Ok(())
    };
    let disk = Arc::new(Directory::new(folder));
    Journal::open(disk, Options::default(), apply, |_| {}).map_err(|error| error.to_string())?;
    Ok(records)
}

type Read = fn(&Path) -> Result<Vec<Vec<u8>>, String>;

/// Flips one byte of each file in 400 places, and counts what is read then.
fn flip(root: &Path, name: &str, write: fn(&Path), read: Read) {
    let folder = root.join(format!("{name}-flips"));
    std::fs::create_dir(&folder).expect("made");
    write(&folder);
    let files: Vec<_> = std::fs::read_dir(&folder).expect("listed").flatten().collect();
    let files = files.iter().map(std::fs::DirEntry::path);
    let files: Vec<_> = files.map(|path| (std::fs::read(&path).expect("read"), path)).collect();
    for (bytes, path) in files.iter().filter(|(bytes, _)| !bytes.is_empty()) {
        let (mut all, mut refused, mut prefix, mut panics, mut wrong) = (0, 0, 0, 0, 0);
        for place in 0..400 {
            // As the writer left it, but for one byte.
            std::fs::remove_dir_all(&folder).expect("removed");
            std::fs::create_dir(&folder).expect("made");
            for (bytes, path) in &files {
                std::fs::write(path, bytes).expect("written");
            }
            let mut damaged = bytes.clone();
            damaged[bytes.len() * place / 400] ^= 0x20;
            std::fs::write(path, damaged).expect("written");
            let right = |(seq, record): (usize, &Vec<u8>)| *record == numbered(seq as u64);
            match std::panic::catch_unwind(|| read(&folder)) {
                Err(_) => panics += 1,
                Ok(Err(_)) => refused += 1,
                Ok(Ok(records)) if !records.iter().enumerate().all(right) => wrong += 1,
                Ok(Ok(records)) if records.len() == RECORDS as usize => all += 1,
                Ok(Ok(_)) => prefix += 1,
            }
        }
        let file = path.file_name().unwrap_or_default().display();
        println!(
            "{name:>8}, {file}: {wrong} of 400 flips served as records, {prefix} opened with \
             fewer, {all} with all, {refused} refused, {panics} panicked"
        );
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

fn main() {
    let folder = tempfile::tempdir_in("target").expect("a folder");
    let root = folder.path();
    let stores: [(&str, Store); 3] =
        [("SQLite", with_sqlite), ("redb", with_redb), ("journal", with_journal)];
    for record_bytes in [100, 1000, 8000] {
        for appenders in [1, 16, 256] {
            for (name, store) in stores {
                measure(root, name, store, record_bytes, appenders);
            }
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    flip(root, "SQLite", write_sqlite, read_sqlite);
    flip(root, "redb", write_redb, read_redb);
    flip(root, "journal", write_journal, read_journal);
}
