//! The log of puts: a JSON object a line. The threads that serve only hand lines over; a thread of
//! its own writes them. Control plane.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;

use crate::server::{PutEntry, PutLog};

/// Lines that may wait for a slow disk: with [`MAX_VALUE_BYTES`] a field, some megabytes.
const MAX_WAITING: usize = 4096;

/// A field's value is cut off after this, and a line has at most this many of them.
const MAX_VALUE_BYTES: usize = 512;
const MAX_FIELDS: usize = 64;

/// A loss is reported at most this often.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// What the writing thread receives.
enum Entry {
    Line(String),
    End,
}

/// The file, open and not yet written.
#[derive(Debug)]
pub(super) struct OpenPutLog {
    sender: SyncSender<Entry>,
    receiver: Receiver<Entry>,
    writer: Writer,
}

/// The file, with the thread that writes it.
#[derive(Debug)]
pub(super) struct PutLogFile {
    sender: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
    writer: JoinHandle<()>,
}

impl OpenPutLog {
    /// Appends to `file`.
    pub(super) fn new(file: File) -> Self {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let writer = Writer { file, lost: Arc::default(), said: 0, warned: None };
        Self { sender, receiver, writer }
    }

    /// What the server calls for each put: it never waits. A line for which there is no room is
    /// counted as lost.
    pub(super) fn log(&self) -> PutLog {
        let (sender, lost) = (self.sender.clone(), Arc::clone(&self.writer.lost));
        PutLog::new(move |entry| match sender.try_send(Entry::Line(format!("{}\n", line(entry)))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                lost.fetch_add(1, Relaxed);
            }
        })
    }

    /// Starts the thread that writes: as the user that the service has become.
    pub(super) fn start(self) -> anyhow::Result<PutLogFile> {
        let Self { sender, receiver, writer } = self;
        let lost = Arc::clone(&writer.lost);
        let thread = std::thread::Builder::new().name("put-log".to_owned());
        let writer = thread.spawn(move || writer.run(&receiver)).context("--put-log")?;
        Ok(PutLogFile { sender, lost, writer })
    }
}

impl PutLogFile {
    /// A reader of how many puts were lost.
    pub(super) fn lost(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let lost = Arc::clone(&self.lost);
        move || lost.load(Relaxed)
    }

    /// Writes what still waits, and ends.
    pub(super) fn finish(self) {
        // It can only have ended already.
        let _ = self.sender.send(Entry::End);
        let _ = self.writer.join();
    }
}

/// The thread's part.
#[derive(Debug)]
struct Writer {
    file: File,
    lost: Arc<AtomicU64>,
    /// How many of those that were lost the file says.
    said: u64,
    warned: Option<Instant>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Entry>) {
        while let Ok(Entry::Line(line)) = receiver.recv() {
            self.write(&line);
            self.say_lost();
        }
        self.say_lost();
    }

    fn write(&mut self, line: &str) {
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.lost.fetch_add(1, Relaxed);
            self.warn(&format!("a put was not logged: {error}"));
        }
    }

    /// Notes in the file, where lines are missing, how many they are.
    fn say_lost(&mut self) {
        let lost = self.lost.load(Relaxed);
        if lost == self.said {
            return;
        }
        let line = format!("{}\n", json!({ "lost": lost - self.said }));
        if self.file.write_all(line.as_bytes()).is_ok() {
            let count = lost - std::mem::replace(&mut self.said, lost);
            self.warn(&format!(
                "{count} puts were not logged: the disk is slower than the clients"
            ));
        }
    }

    fn warn(&mut self, message: &str) {
        if self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            tracing::warn!("{message}");
        }
    }
}

/// Text that is cut off after [`MAX_VALUE_BYTES`].
#[derive(Default)]
struct Clipped(String);

impl fmt::Write for Clipped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_VALUE_BYTES.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

fn clipped(value: &impl fmt::Display) -> String {
    let mut text = Clipped::default();
    // It fails where it is cut off, and what it has by then is what is wanted.
    let _ = write!(text, "{value}");
    text.0
}

fn line(entry: &PutEntry<'_>) -> serde_json::Value {
    let kind = entry.record.kind();
    let fields: serde_json::Map<_, _> = entry.record.read(|nodes| {
        let bits = entry.fields.iter().take(MAX_FIELDS);
        bits.filter_map(|bit| Some((kind.path(bit)?.0, json!(clipped(&nodes[bit]))))).collect()
    });
    json!({
        "seconds": entry.time.seconds,
        "nanoseconds": entry.time.nanoseconds,
        "record": &**entry.record.name(),
        "user": clipped(&entry.identity.user),
        "host": clipped(&entry.identity.host),
        "address": &*entry.identity.address,
        // What the record holds after it: a put that was refused has changed nothing.
        "now": fields,
        "refused": entry.refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_disk_is_too_slow_for_is_lost_and_counted_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("puts");
        let (sender, receiver) = sync_channel(2);
        let lost = Arc::new(AtomicU64::new(0));
        for text in ["one\n", "two\n"] {
            sender.try_send(Entry::Line(text.to_owned())).expect("room");
        }
        assert!(sender.try_send(Entry::Line("three\n".to_owned())).is_err(), "no room is left");
        lost.fetch_add(1, Relaxed);
        drop(sender);
        let file = File::create(&path).expect("made");
        Writer { file, lost, said: 0, warned: None }.run(&receiver);
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text, "one\n{\"lost\":1}\ntwo\n");
    }

    #[test]
    fn long_values_are_cut_off_between_characters() {
        let text = clipped(&"ü".repeat(MAX_VALUE_BYTES));
        assert_eq!(text.chars().count(), MAX_VALUE_BYTES / 2 + 1);
        assert!(text.ends_with('…'));
        assert_eq!(clipped(&7), "7");
    }
}
