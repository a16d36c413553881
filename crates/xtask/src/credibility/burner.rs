//! Another program at work: a thread of this process, which the measured run knows nothing of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What runs beside a check's suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nothing that is known of.
    Nothing,
    /// A program that takes a tenth of a core, in bursts of 50 ms.
    TenthOfACore,
    /// A program that takes half of a core, in bursts of 10 ms.
    HalfOfACore,
}

impl Beside {
    /// The time that it burns, of every period.
    fn burst_and_period(self) -> Option<(Duration, Duration)> {
        let ms = Duration::from_millis;
        match self {
            Beside::Nothing => None,
            Beside::TenthOfACore => Some((ms(50), ms(500))),
            Beside::HalfOfACore => Some((ms(10), ms(20))),
        }
    }

    /// Begins to burn, on whichever core the kernel chooses.
    pub(crate) fn start(self) -> Option<Burner> {
        let (burst, period) = self.burst_and_period()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                while began.elapsed() < burst {
                    std::hint::spin_loop();
                }
                std::thread::sleep(period - burst);
            }
        });
        Some(Burner { stop, thread: Some(thread) })
    }
}

/// A thread that burns until it is dropped.
pub(crate) struct Burner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
