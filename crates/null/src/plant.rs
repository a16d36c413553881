//! Limits planted on purpose, so that it can be seen whether the lab names them.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use load::null::MESSAGE_BYTES;

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Plant {
    /// Every request holds one lock for 200 µs
    Lock,
    /// Every request is written and synced to disk eight times
    Disk,
    /// Every request keeps 4 KiB, and every hundredth an open file
    Leak,
    /// An answer is two small writes under Nagle's rule
    Nagle,
    /// Connections are accepted one every 5 ms, and hardly any may wait
    Backlog,
    /// Another program burns the same cores
    Neighbour,
    /// Be that program, until standard input ends
    #[value(hide = true)]
    Burner,
}

/// How long the lock is held.
const HELD: Duration = Duration::from_micros(200);

/// How long a connection waits to be accepted.
const ACCEPT_EVERY: Duration = Duration::from_millis(5);

const SYNCS: usize = 8;
const PAGE_BYTES: usize = 4096;
const OPEN_FILE_EVERY: u64 = 100;

/// What is done with every request of the plants that are work.
pub(super) struct InjectedWork {
    plant: Plant,
    lock: Mutex<()>,
    file: Option<File>,
    requests: AtomicU64,
}

impl InjectedWork {
    /// `folder` is where the file for the disk is made.
    pub(super) fn new(plant: Plant, folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("planted");
        let file = || File::create(&path).with_context(|| path.display().to_string());
        let file = if plant == Plant::Disk { Some(file()?) } else { None };
        Ok(Self { plant, lock: Mutex::new(()), file, requests: AtomicU64::new(0) })
    }

    pub(super) fn perform(&self) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        match self.plant {
            Plant::Lock => {
                let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
                std::thread::sleep(HELD);
            }
            Plant::Disk => {
                let Some(file) = &self.file else { return };
                for page in 0..SYNCS {
                    // A full disk is a limit as well, and the figures show it.
                    let _ = file.write_all_at(&[7; PAGE_BYTES], (page * PAGE_BYTES) as u64);
                    let _ = file.sync_data();
                }
            }
            Plant::Leak => {
                std::mem::forget(std::hint::black_box(vec![7_u8; PAGE_BYTES]));
                if number.is_multiple_of(OPEN_FILE_EVERY) {
                    std::mem::forget(File::open("/dev/null"));
                }
            }
            Plant::Nagle | Plant::Backlog | Plant::Neighbour | Plant::Burner => {}
        }
    }
}

/// Serves with a thread for each connection, because these plants are in how a socket is used.
pub(super) fn serve_plainly(plant: Plant, listener: TcpListener) -> anyhow::Result<()> {
    if plant == Plant::Backlog {
        // Listening again changes how many may wait.
        rustix::net::listen(&listener, 1)?;
    }
    std::thread::Builder::new().name("accept".into()).spawn(move || {
        for stream in listener.incoming() {
            if plant == Plant::Backlog {
                std::thread::sleep(ACCEPT_EVERY);
            }
            let Ok(stream) = stream else { continue };
            // Without a thread for it the connection is closed, which its client will say.
            let _ = std::thread::Builder::new().spawn(move || converse(plant, stream));
        }
    })?;
    Ok(())
}

fn converse(plant: Plant, mut stream: TcpStream) {
    let mut message = [0; MESSAGE_BYTES];
    while stream.read_exact(&mut message).is_ok() {
        let (first, second) = message.split_at(MESSAGE_BYTES / 2);
        let sent = match plant {
            Plant::Nagle => stream.write_all(first).and_then(|()| stream.write_all(second)),
            _ => stream.write_all(&message),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A program that burns this one's cores until this one ends, in a process group of its own, so
/// that it belongs to no target.
pub(super) struct Neighbour(Child);

impl Neighbour {
    pub(super) fn start() -> anyhow::Result<Self> {
        let exe = std::env::current_exe().context("this program can't find itself")?;
        let mut command = Command::new(exe);
        command.args(["serve", "null", "--plant", "burner"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        Ok(Self(command.spawn().context("starting the burner")?))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Burns until standard input ends, so that it doesn't outlive its parent however that ends.
pub(super) fn burn() {
    let burning = Arc::new(());
    let until = Arc::downgrade(&burning);
    std::thread::spawn(move || {
        while until.strong_count() > 0 {
            std::hint::spin_loop();
        }
    });
    let mut byte = [0];
    while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
}
