//! Somebody else at work: a thread of this process, which the measured run knows nothing of, that
//! burns a tenth of the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time that it burns …
const BURST: Duration = Duration::from_millis(50);

/// … of every period.
const PERIOD: Duration = Duration::from_millis(500);

/// A thread that burns until it is dropped.
pub(crate) struct Burner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Burner {
    /// It may run on any core, wherever the kernel finds it a place.
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                while began.elapsed() < BURST {
                    std::hint::spin_loop();
                }
                std::thread::sleep(PERIOD - BURST);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
