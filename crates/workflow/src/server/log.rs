//! The log file, in ecFlow's lines: `KIND:[hh:mm:ss d.m.yyyy] text`, written by a thread of its
//! own.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::flush::{LogFlush, Until};
use base::many;

pub(super) use super::flush::Category;

/// The most of the file's end that is read for its last lines.
const MAX_TAIL_BYTES: u64 = 16 << 20;

/// Lines beyond this are written, whatever they wait for.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Lines that the thread has not taken; further ones are counted and lost. A command on a large
/// tree logs tens of megabytes at once; a file system that hangs takes none.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// The most that is waited at the end for lines to be written.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Lines whose group has ended are in the file after this time, together with those that come
/// meanwhile: waking the thread for each costs more than a small request.
const GATHER: Duration = Duration::from_millis(2);

/// Called with the path of the file, and whether it is written.
type Then = Box<dyn FnOnce(&Path, &io::Result<()>) + Send>;

/// What the thread does, in order.
enum Work {
    Lines(String),
    /// Calls back once all before is in the file, or can't be.
    Flush(Then),
    Clear(Then),
    /// Goes on in another file; reports whether it can be written.
    New(PathBuf, Box<dyn FnOnce(io::Result<()>) + Send>),
}

/// The log. Any thread adds lines to it.
pub(super) struct Log {
    shared: Arc<Shared>,
    flush: LogFlush,
    /// The thread, and what is disconnected at its end.
    thread: Mutex<Option<(JoinHandle<()>, Receiver<()>)>>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// What the thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Nothing: it writes.
    No,
    /// Work.
    Idle,
    /// More lines of the group, or work that can't wait.
    Gathering,
}

struct State {
    /// Lines that the thread doesn't write yet.
    lines: String,
    /// The earliest that one of them waits for.
    until: Until,
    work: VecDeque<Work>,
    /// The bytes of lines in it.
    queued: usize,
    /// Lines for which there was no room in it.
    dropped: usize,
    /// Whether the work can't wait for more lines.
    is_urgent: bool,
    is_over: bool,
    waits: Waits,
    /// The second of the stamp, and the stamp.
    stamp: (i64, String),
}

impl State {
    /// Passes the lines to the thread; returns whether it has to be woken.
    fn write(&mut self, is_urgent: bool) -> bool {
        self.until = Until::Error;
        if self.lines.is_empty() {
            return false;
        }
        if self.queued + self.lines.len() > MAX_QUEUED_BYTES {
            self.dropped += self.lines.lines().count();
            self.lines = String::new();
            return false;
        }
        self.queued += self.lines.len();
        if let Some(Work::Lines(lines)) = self.work.back_mut()
            && !is_urgent
            && self.lines.capacity() <= MAX_WAITING_BYTES
        {
            lines.push_str(&self.lines);
            self.lines.clear();
        } else {
            self.work.push_back(Work::Lines(std::mem::take(&mut self.lines)));
        }
        self.is_due(is_urgent)
    }

    fn push(&mut self, work: Work) -> bool {
        let is_due = self.write(true);
        self.work.push_back(work);
        self.is_due(true) | is_due
    }

    fn is_due(&mut self, is_urgent: bool) -> bool {
        let is_more = is_urgent && !self.is_urgent;
        self.is_urgent |= is_urgent;
        let is_due = match self.waits {
            Waits::No => false,
            Waits::Idle => true,
            Waits::Gathering => is_more,
        };
        if is_due {
            self.waits = Waits::No;
        }
        is_due
    }

    fn came(&mut self, until: Until) -> bool {
        if self.until <= until || self.lines.len() > MAX_WAITING_BYTES {
            return self.write(until < Until::Group);
        }
        false
    }
}

impl Log {
    /// Opens the file, to append to it.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) fn open(path: PathBuf, flush: LogFlush) -> io::Result<Self> {
        let file = append(&path)?;
        let state = State {
            lines: String::new(),
            until: Until::Error,
            work: VecDeque::new(),
            queued: 0,
            dropped: 0,
            is_urgent: false,
            is_over: false,
            waits: Waits::No,
            stamp: (i64::MIN, String::new()),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
        let thread = std::thread::Builder::new().name("log".to_owned());
        let own = Arc::clone(&shared);
        let (runs, ended) = channel::<()>();
        let thread = thread.spawn(move || {
            run(file, path, &own);
            drop(runs);
        })?;
        Ok(Self { shared, flush, thread: Mutex::new(Some((thread, ended))) })
    }

    /// Adds a text, each of its lines with the stamp of a time in microseconds since 1970; written
    /// when what they wait for has come.
    pub(super) fn add(&self, category: Category, at_us: i64, text: &str) {
        let second = at_us.div_euclid(1_000_000);
        self.change(|state| {
            if state.stamp.0 != second {
                state.stamp = (second, stamp(second));
            }
            for line in text.split('\n').filter(|line| !line.is_empty() || text.is_empty()) {
                let State { lines, stamp, .. } = state;
                for part in [category.word(), ":", &stamp.1, " ", line, "\n"] {
                    lines.push_str(part);
                }
                state.until = state.until.min(self.flush.of(category));
            }
            state.came(Until::Write)
        });
    }

    /// Writes the lines that wait for this, or for something earlier.
    pub(super) fn came(&self, until: Until) {
        self.change(|state| state.came(until));
    }

    /// Passes what was added to the thread.
    pub(super) fn write(&self) {
        self.change(|state| state.write(true));
    }

    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let is_due = change(&mut self.shared.lock());
        if is_due {
            self.shared.wake.notify_one();
        }
    }

    /// Calls `then` with the file's path once all that was added is in it, or can't be.
    pub(super) fn flushed(&self, then: impl FnOnce(&Path, &io::Result<()>) + Send + 'static) {
        self.change(|state| state.push(Work::Flush(Box::new(then))));
    }

    /// Empties the file, and calls `then` with its path once it is, or can't be.
    pub(super) fn clear(&self, then: impl FnOnce(&Path, &io::Result<()>) + Send + 'static) {
        self.change(|state| state.push(Work::Clear(Box::new(then))));
    }

    /// Goes on in another file, and calls `then` with what came of it.
    pub(super) fn go_on_in(
        &self,
        path: PathBuf,
        then: impl FnOnce(io::Result<()>) + Send + 'static,
    ) {
        self.change(|state| state.push(Work::New(path, Box::new(then))));
    }
}

impl Log {
    /// Writes what there is, and ends. A file system that hangs is left to itself after a while.
    pub(super) fn close(&self) {
        self.change(|state| {
            let is_due = state.write(true);
            state.is_over = true;
            state.is_due(true) | is_due
        });
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((thread, ended)) = thread else { return };
        if ended.recv_timeout(LAST_WAIT) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("the log can't be written: its file has not answered for 5 s");
        } else {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two calls.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work; none comes after the end.
    fn work(&self) -> Option<VecDeque<Work>> {
        let mut state = self.lock();
        let mut gathered = false;
        loop {
            if state.is_urgent || gathered && !state.work.is_empty() {
                state.is_urgent = false;
                state.queued = 0;
                if state.dropped > 0 {
                    let lost = lost(std::mem::take(&mut state.dropped), "its file took none");
                    state.work.push_back(Work::Lines(lost));
                }
                return Some(std::mem::take(&mut state.work)).filter(|work| !work.is_empty());
            }
            if state.is_over {
                return None;
            }
            if state.work.is_empty() {
                state.waits = Waits::Idle;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                state.waits = Waits::Gathering;
                let waited = self.wake.wait_timeout(state, GATHER);
                let timed;
                (state, timed) = waited.unwrap_or_else(PoisonError::into_inner);
                gathered = timed.timed_out();
            }
            state.waits = Waits::No;
        }
    }
}

/// Opens a file or a device: opening a pipe, or writing to one, waits for who reads it.
fn append(path: &Path) -> io::Result<File> {
    let flags = base::no_wait();
    let file = OpenOptions::new().append(true).create(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    match kind.is_file() || kind.is_char_device() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("it is {}, and a regular file is wanted", base::kind_name(kind)),
        )),
    }
}

fn lost(lines: usize, why: &str) -> String {
    let at = stamp(unix_us() / 1_000_000);
    let are = if lines == 1 { "is" } else { "are" };
    format!("WAR:{at} {} {are} lost: {why}\n", many(lines, "line"))
}

/// What a full disk has not taken: it is written first once there is room.
#[derive(Default)]
struct Backlog {
    bytes: Vec<u8>,
    /// Lines for which there was no room here, either.
    dropped: usize,
}

impl Backlog {
    /// Writes what is kept and then these lines, as far as the file takes them; keeps the rest, or
    /// counts it. Lines that are written at once are not copied.
    fn write(&mut self, lines: &str, file: &mut File) -> io::Result<()> {
        let (count, failed) = match self.write_kept(file) {
            Ok(()) => write_part(file, lines.as_bytes()),
            Err(why) => (0, Some(why)),
        };
        let rest = &lines.as_bytes()[count..];
        if self.bytes.is_empty() || self.bytes.len() + rest.len() <= MAX_WAITING_BYTES {
            self.bytes.extend_from_slice(rest);
        } else {
            self.dropped += lines.lines().count();
        }
        failed.map_or(Ok(()), Err)
    }

    fn write_kept(&mut self, file: &mut File) -> io::Result<()> {
        while !self.bytes.is_empty() {
            let (count, failed) = write_part(file, &self.bytes);
            self.bytes.drain(..count);
            if let Some(why) = failed {
                return Err(why);
            }
            self.bytes = match std::mem::take(&mut self.dropped) {
                0 => Vec::new(),
                dropped => lost(dropped, "the disk was full").into(),
            };
        }
        Ok(())
    }
}

/// Writes bytes as far as the file takes them: how many those are, and why it takes no more.
fn write_part(file: &mut File, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut count = 0;
    while count < bytes.len() {
        match file.write(&bytes[count..]) {
            Ok(0) => return (count, Some(io::ErrorKind::WriteZero.into())),
            Ok(more) => count += more,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return (count, Some(why)),
        }
    }
    (count, None)
}

fn run(mut file: File, mut path: PathBuf, shared: &Shared) {
    let mut has_failed = false;
    let mut backlog = Backlog::default();
    for work in std::iter::from_fn(|| shared.work()).flatten() {
        let done = match work {
            Work::Lines(lines) => backlog.write(&lines, &mut file),
            Work::Flush(then) => {
                let done = backlog.write("", &mut file);
                then(&path, &done);
                done
            }
            Work::Clear(then) => {
                backlog = Backlog::default();
                let done = file.set_len(0);
                then(&path, &done);
                done
            }
            Work::New(other, then) => {
                let opened = append(&other);
                let whole = |why: &io::Error| io::Error::new(why.kind(), why.to_string());
                then(opened.as_ref().map(|_| ()).map_err(whole));
                if let Ok(opened) = opened {
                    (file, path) = (opened, other);
                }
                Ok(())
            }
        };
        match done {
            // Once, and again after it has worked in between.
            Err(error) if !has_failed => {
                tracing::error!("{}: the log can't be written: {error}", path.display());
                has_failed = true;
            }
            Err(_) => {}
            Ok(()) => has_failed = false,
        }
    }
}

/// The last lines of a file; of a large one at most those of its last 16 MiB.
///
/// # Errors
/// When it can't be read.
pub(super) fn last_lines(path: &Path, most: usize) -> io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let from = size.saturating_sub(MAX_TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let mut last = String::new();
    for line in &lines[lines.len().saturating_sub(most)..] {
        last.push_str(line);
        last.push('\n');
    }
    Ok(last)
}

/// Microseconds since 1970.
pub(super) fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A time in seconds since 1970 as the log stamps it, by the machine's time zone.
pub(super) fn stamp(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    let time = time.to_zoned(jiff::tz::TimeZone::system());
    format!(
        "[{:02}:{:02}:{:02} {}.{}.{}]",
        time.hour(),
        time.minute(),
        time.second(),
        time.day(),
        time.month(),
        time.year()
    )
}

#[cfg(test)]
mod tests {
    use super::{Category, LAST_WAIT, Log, LogFlush, Until, last_lines, stamp};
    use std::sync::mpsc::channel;
    use std::time::Instant;

    #[test]
    fn lines_are_stamped_appended_cleared_and_go_on_in_another_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = ["a.log", "b.log"].map(|name| folder.path().join(name));
        let log = Log::open(first.clone(), LogFlush::default()).expect("open");
        log.add(Category::Message, 1_000_000, "--ping :me@here");
        log.add(Category::Change, 1_000_000, " aborted: /t\n   why\n");
        let (sender, receiver) = channel();
        log.flushed(move |path, done| {
            assert!(done.is_ok(), "{done:?}");
            sender.send(path.to_owned()).expect("the test waits");
        });
        assert_eq!(receiver.recv().as_ref(), Ok(&first));
        let text = std::fs::read_to_string(&first).expect("read");
        let [one, two, three] = [1, 2, 3].map(stamp);
        let lines = [
            format!("MSG:{one} --ping :me@here\n"),
            format!("LOG:{one}  aborted: /t\n"),
            format!("LOG:{one}    why\n"),
        ];
        assert_eq!(text, lines.concat());
        assert_eq!(last_lines(&first, 1).expect("read"), lines[2]);
        log.clear(|_, done| assert!(done.is_ok(), "{done:?}"));
        log.add(Category::Error, 2_000_000, "");
        log.go_on_in(second.clone(), |opened| opened.expect("open"));
        log.add(Category::Warning, 3_000_000, "new");
        drop(log);
        assert_eq!(std::fs::read_to_string(&first).expect("read"), format!("ERR:{two} \n"));
        assert_eq!(std::fs::read_to_string(&second).expect("read"), format!("WAR:{three} new\n"));
    }

    #[test]
    fn lines_are_written_with_the_first_that_does_not_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        let flush = "message=command,change=checkpoint".parse().expect("a policy");
        let log = Log::open(path.clone(), flush).expect("open");
        // What comes, and the lines that are in the file after it.
        type Step = fn(&Log);
        let steps: [(Step, usize); 6] = [
            (|log| log.add(Category::Change, 1_000_000, "submitted"), 0),
            (|log| log.came(Until::Group), 0),
            (|log| log.add(Category::Message, 1_000_000, "--ping"), 0),
            (|log| log.came(Until::Command), 2),
            (|log| log.add(Category::Change, 1_000_000, "active"), 2),
            (|log| log.add(Category::Error, 1_000_000, "aborted"), 4),
        ];
        for (step, expected) in steps {
            step(&log);
            let (sender, receiver) = channel();
            // Unlike `flushed`, this waits only for what the thread has been passed.
            log.change(|state| {
                state.work.push_back(super::Work::Flush(Box::new(move |path, _| {
                    sender.send(std::fs::read_to_string(path)).expect("the test waits");
                })));
                state.is_due(true)
            });
            let text = receiver.recv().expect("an answer").expect("read");
            assert_eq!(text.lines().count(), expected, "{text}");
        }
    }

    #[test]
    fn the_end_does_not_wait_where_there_is_nothing_to_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Log::open(folder.path().join("a.log"), LogFlush::default()).expect("open");
        let begun = Instant::now();
        log.close();
        assert!(begun.elapsed() < LAST_WAIT, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        // First without a reader, then with one.
        Log::open(pipe.clone(), LogFlush::default()).err().expect("no reader");
        let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe);
        let why = Log::open(pipe, LogFlush::default()).err().expect("no file").to_string();
        assert!(why.contains("a pipe (FIFO)"), "{why}");
    }

    #[test]
    fn a_command_that_logs_megabytes_leaves_none_of_them_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Log::open(folder.path().join("a.log"), LogFlush::default()).expect("open");
        let long = "x".repeat(8 * super::MAX_WAITING_BYTES);
        for _ in 0..2 {
            log.add(Category::Message, 1_000_000, &long);
            log.came(Until::Group);
        }
        assert!(log.shared.lock().lines.capacity() <= super::MAX_WAITING_BYTES);
        let mut backlog = super::Backlog::default();
        let mut file = super::append(&folder.path().join("b.log")).expect("open");
        backlog.write(&long, &mut file).expect("written");
        assert_eq!(backlog.bytes.capacity(), 0, "what is written at once is not copied");
        let mut full = super::append("/dev/full".as_ref()).expect("open");
        backlog.write(&long, &mut full).expect_err("there is no room");
        assert_eq!(backlog.bytes, long.as_bytes());
        backlog.write("more\n", &mut file).expect("written");
        assert_eq!(backlog.bytes.capacity(), 0, "nor is what was written late");
    }

    #[test]
    fn what_a_full_disk_refuses_is_written_once_there_is_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        let flush = "write".parse().expect("a policy");
        // It takes nothing, for want of room.
        let log = Log::open("/dev/full".into(), flush).expect("open");
        log.add(Category::Message, 1_000_000, "first");
        let (sender, receiver) = channel();
        log.flushed(move |_, done| sender.send(done.is_err()).expect("the test waits"));
        assert_eq!(receiver.recv(), Ok(true), "there is no room");
        let large = "x".repeat(super::MAX_WAITING_BYTES);
        log.add(Category::Message, 1_000_000, &large);
        log.go_on_in(path.clone(), |opened| opened.expect("open"));
        log.add(Category::Error, 2_000_000, "second");
        drop(log);
        let text = std::fs::read_to_string(&path).expect("read");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            [lines[0], lines[2]],
            [format!("MSG:{} first", stamp(1)), format!("ERR:{} second", stamp(2))]
        );
        // They came between the two.
        assert!(lines[1].starts_with("WAR:") && lines[1].contains(" 1 line is lost"), "{text}");
    }
}
