//! The log file, in ecFlow's lines: `KIND:[hh:mm:ss d.m.yyyy] text`, written by a thread of its
//! own.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use super::flush::{LogFlush, Until};

pub(super) use super::flush::Category;

/// The most of the file's end that is read for its last lines.
const MAX_TAIL_BYTES: u64 = 16 << 20;

/// Lines beyond this are written, whatever they wait for.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// What the thread does, in order.
enum Work {
    Lines(String),
    /// Calls back once all before is in the file.
    Flush(Box<dyn FnOnce(&Path) + Send>),
    Clear,
    /// Goes on in another file; reports whether it can be written.
    New(PathBuf, Box<dyn FnOnce(io::Result<()>) + Send>),
}

/// The log.
pub(super) struct Log {
    work: Sender<Work>,
    flush: LogFlush,
    /// Lines that are not with the thread yet.
    lines: String,
    /// The earliest that one of them waits for.
    until: Until,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Opens the file, to append to it.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) fn open(path: PathBuf, flush: LogFlush) -> io::Result<Self> {
        let file = append(&path)?;
        let (work, works) = channel();
        let thread = std::thread::Builder::new().name("log".to_owned());
        let thread = thread.spawn(move || run(file, path, &works))?;
        let (lines, until) = (String::new(), Until::Error);
        Ok(Self { work, flush, lines, until, thread: Some(thread) })
    }

    /// Adds a text, each of its lines with the stamp; written when what they wait for has come.
    pub(super) fn add(&mut self, category: Category, stamp: &str, text: &str) {
        for line in text.split('\n').filter(|line| !line.is_empty() || text.is_empty()) {
            // Writing to a string can't fail.
            let _ = writeln!(self.lines, "{}:{stamp} {line}", category.word());
            self.until = self.until.min(self.flush.of(category));
            self.came(Until::Write);
        }
    }

    /// Writes the lines that wait for this, or for something earlier.
    pub(super) fn came(&mut self, until: Until) {
        if self.until <= until || self.lines.len() > MAX_WAITING_BYTES {
            self.write();
        }
    }

    /// Passes what was added to the thread.
    pub(super) fn write(&mut self) {
        self.until = Until::Error;
        if !self.lines.is_empty() {
            let lines = std::mem::take(&mut self.lines);
            self.send(Work::Lines(lines));
        }
    }

    fn send(&self, work: Work) {
        // The thread ends only with this.
        let _ = self.work.send(work);
    }

    /// Calls `then` with the file's path once all that was added is in it.
    pub(super) fn flushed(&mut self, then: impl FnOnce(&Path) + Send + 'static) {
        self.write();
        self.send(Work::Flush(Box::new(then)));
    }

    /// Empties the file.
    pub(super) fn clear(&mut self) {
        self.write();
        self.send(Work::Clear);
    }

    /// Goes on in another file, and calls `then` with what came of it.
    pub(super) fn go_on_in(
        &mut self,
        path: PathBuf,
        then: impl FnOnce(io::Result<()>) + Send + 'static,
    ) {
        self.write();
        self.send(Work::New(path, Box::new(then)));
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.write();
        let (closed, _) = channel();
        drop(std::mem::replace(&mut self.work, closed));
        if let Some(thread) = self.thread.take() {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// What a full disk has not taken: it is written first once there is room.
#[derive(Default)]
struct Backlog {
    bytes: Vec<u8>,
    /// Lines for which there was no room here, either.
    dropped: usize,
}

impl Backlog {
    /// Adds lines, or counts them, and writes as much as the file takes.
    fn write(&mut self, lines: &str, file: &mut File) -> io::Result<()> {
        if self.bytes.len() + lines.len() <= MAX_WAITING_BYTES || self.bytes.is_empty() {
            self.bytes.extend_from_slice(lines.as_bytes());
        } else {
            self.dropped += lines.lines().count();
        }
        while !self.bytes.is_empty() {
            match file.write(&self.bytes) {
                Ok(count) => drop(self.bytes.drain(..count)),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
            if self.bytes.is_empty() && self.dropped > 0 {
                let dropped = std::mem::take(&mut self.dropped);
                let at = stamp(unix_us() / 1_000_000);
                self.bytes =
                    format!("WAR:{at} {dropped} lines are lost: the disk was full\n").into();
            }
        }
        Ok(())
    }
}

fn run(mut file: File, mut path: PathBuf, works: &Receiver<Work>) {
    let mut has_failed = false;
    let mut backlog = Backlog::default();
    for work in works {
        let done = match work {
            Work::Lines(lines) => backlog.write(&lines, &mut file),
            Work::Flush(then) => {
                let done = backlog.write("", &mut file);
                then(&path);
                done
            }
            Work::Clear => {
                backlog = Backlog::default();
                file.set_len(0)
            }
            Work::New(other, then) => {
                let opened = append(&other);
                then(opened.as_ref().map(|_| ()).map_err(|why| why.kind().into()));
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
    use super::{Category, Log, LogFlush, Until, last_lines};
    use std::sync::mpsc::channel;

    #[test]
    fn lines_are_stamped_appended_cleared_and_go_on_in_another_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = ["a.log", "b.log"].map(|name| folder.path().join(name));
        let mut log = Log::open(first.clone(), LogFlush::default()).expect("open");
        log.add(Category::Message, "[1]", "--ping :me@here");
        log.add(Category::Change, "[1]", " aborted: /t\n   why\n");
        let (sender, receiver) = channel();
        log.flushed(move |path| sender.send(path.to_owned()).expect("the test waits"));
        assert_eq!(receiver.recv().as_ref(), Ok(&first));
        let text = std::fs::read_to_string(&first).expect("read");
        assert_eq!(text, "MSG:[1] --ping :me@here\nLOG:[1]  aborted: /t\nLOG:[1]    why\n");
        assert_eq!(last_lines(&first, 1).expect("read"), "LOG:[1]    why\n");
        log.clear();
        log.add(Category::Error, "[2]", "");
        log.go_on_in(second.clone(), |opened| opened.expect("open"));
        log.add(Category::Warning, "[3]", "new");
        drop(log);
        assert_eq!(std::fs::read_to_string(&first).expect("read"), "ERR:[2] \n");
        assert_eq!(std::fs::read_to_string(&second).expect("read"), "WAR:[3] new\n");
    }

    #[test]
    fn lines_are_written_with_the_first_that_does_not_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        let flush = "message=command,change=checkpoint".parse().expect("a policy");
        let mut log = Log::open(path.clone(), flush).expect("open");
        // What comes, and the lines that are in the file after it.
        type Step = fn(&mut Log);
        let steps: [(Step, usize); 6] = [
            (|log| log.add(Category::Change, "[1]", "submitted"), 0),
            (|log| log.came(Until::Group), 0),
            (|log| log.add(Category::Message, "[1]", "--ping"), 0),
            (|log| log.came(Until::Command), 2),
            (|log| log.add(Category::Change, "[1]", "active"), 2),
            (|log| log.add(Category::Error, "[1]", "aborted"), 4),
        ];
        for (step, expected) in steps {
            step(&mut log);
            let (sender, receiver) = channel();
            // Unlike `flushed`, this waits only for what the thread has been passed.
            log.send(super::Work::Flush(Box::new(move |path| {
                sender.send(std::fs::read_to_string(path)).expect("the test waits");
            })));
            let text = receiver.recv().expect("an answer").expect("read");
            assert_eq!(text.lines().count(), expected, "{text}");
        }
    }

    #[test]
    fn what_a_full_disk_refuses_is_written_once_there_is_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        let flush = "write".parse().expect("a policy");
        // It takes nothing, for want of room.
        let mut log = Log::open("/dev/full".into(), flush).expect("open");
        log.add(Category::Message, "[1]", "first");
        let large = "x".repeat(super::MAX_WAITING_BYTES);
        log.add(Category::Message, "[1]", &large);
        log.go_on_in(path.clone(), |opened| opened.expect("open"));
        log.add(Category::Error, "[2]", "second");
        drop(log);
        let text = std::fs::read_to_string(&path).expect("read");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["MSG:[1] first", "ERR:[2] second"]);
        assert!(lines[2].starts_with("WAR:") && lines[2].contains(" 1 lines are lost"), "{text}");
    }
}
