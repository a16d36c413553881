//! Limits planted on purpose, so that it can be seen whether the lab names them.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use wire::ListenOptions;

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Plant {
    /// Every request holds one lock for at least 200 µs
    Lock,
    /// Every request is written and synced to disk eight times
    Disk,
    /// Every request keeps 4 KiB, and every hundredth an open file
    Leak,
    /// An answer is two small writes under Nagle's rule
    Nagle,
    /// Connections are accepted one every 5 ms, and hardly any may wait
    Backlog,
    /// Another program burns one of the same cores
    Neighbour,
    /// Be that program, until standard input ends
    #[value(hide = true)]
    Burner,
}

/// What is done with every request.
pub(super) type Work = Arc<dyn Fn() + Send + Sync>;

const PAGE_BYTES: usize = 4096;

impl Plant {
    /// How connections are accepted.
    pub(super) fn listen_options(plant: Option<Self>) -> ListenOptions {
        let usual = ListenOptions::default();
        let accept_interval = Duration::from_millis(5);
        match plant {
            Some(Self::Nagle) => ListenOptions { no_delay: false, ..usual },
            Some(Self::Backlog) => ListenOptions { backlog: 1, accept_interval, ..usual },
            _ => usual,
        }
    }

    /// The work of plants that are work; the file for the disk is made in `folder`.
    pub(super) fn work(self, folder: &Path) -> anyhow::Result<Option<Work>> {
        Ok(match self {
            Self::Lock => {
                let lock = Mutex::new(());
                Some(Arc::new(move || {
                    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                    std::thread::sleep(Duration::from_micros(200));
                }))
            }
            Self::Disk => {
                let path = folder.join("planted");
                let file = File::create(&path).with_context(|| path.display().to_string())?;
                Some(Arc::new(move || {
                    for page in 0..8 {
                        // A full disk is a limit as well, and the figures show it.
                        let _ = file.write_all_at(&[7; PAGE_BYTES], page * PAGE_BYTES as u64);
                        let _ = file.sync_data();
                    }
                }))
            }
            Self::Leak => {
                let requests = AtomicU64::new(0);
                Some(Arc::new(move || {
                    std::mem::forget(std::hint::black_box(vec![7_u8; PAGE_BYTES]));
                    if requests.fetch_add(1, Relaxed).is_multiple_of(100) {
                        std::mem::forget(File::open("/dev/null"));
                    }
                }))
            }
            Self::Nagle | Self::Backlog | Self::Neighbour | Self::Burner => None,
        })
    }
}

/// Starts a program that burns one of this one's cores until the result is dropped or this one
/// ends. It is in a process group of its own, so that it belongs to no target.
pub(super) fn start_neighbour() -> anyhow::Result<Child> {
    let exe = std::env::current_exe().context("this program can't find itself")?;
    let mut command = Command::new(exe);
    command.args(["serve", "null", "--plant", "burner"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    command.spawn().context("starting the burner")
}

/// Burns until standard input ends, so that it doesn't outlive its parent however that ends.
pub(super) fn burn() {
    std::thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    while matches!(std::io::stdin().read(&mut [0]), Ok(1)) {}
}
