//! The crawler's settings and state, which its commands, its statistics and its turns share.
//! Control plane.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use wire::Waker;

use super::options::CrawlerOptions;
use crate::protocol::Refusal;
use crate::protocol::text::CrawlerCommand;

/// The settings and the state of the crawler.
#[derive(Debug)]
pub(super) struct CrawlerControl {
    enabled: AtomicBool,
    /// The time between two turns of a walk.
    sleep_us: AtomicU32,
    /// The items that one walk examines at most; 0 is all.
    to_crawl: AtomicU32,
    /// Whether a walk through everything has been requested and has not ended.
    requested: AtomicBool,
    is_running: AtomicBool,
    starts: AtomicU64,
    /// Set once the loop runs.
    waker: OnceLock<Waker>,
}

impl CrawlerControl {
    pub(super) fn new(options: &CrawlerOptions) -> Self {
        let CrawlerOptions { enabled, sleep_us, to_crawl } = *options;
        Self {
            enabled: AtomicBool::new(enabled),
            sleep_us: AtomicU32::new(sleep_us),
            to_crawl: AtomicU32::new(to_crawl),
            requested: AtomicBool::new(false),
            is_running: AtomicBool::new(false),
            starts: AtomicU64::new(0),
            waker: OnceLock::new(),
        }
    }

    /// Returns the settings as they are now.
    pub(super) fn options(&self) -> CrawlerOptions {
        CrawlerOptions {
            enabled: self.enabled.load(Relaxed),
            sleep_us: self.sleep_us.load(Relaxed),
            to_crawl: self.to_crawl.load(Relaxed),
        }
    }

    /// Sets what wakes the crawler; there is one crawler of a service.
    pub(super) fn set_waker(&self, waker: Waker) {
        let _ = self.waker.set(waker);
    }

    /// Whether a walk through everything has been requested and has not ended.
    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Relaxed)
    }

    /// Sets whether a walk is under way, and counts one that begins.
    pub(super) fn set_running(&self, is_running: bool) {
        if !self.is_running.swap(is_running, Relaxed) && is_running {
            self.starts.fetch_add(1, Relaxed);
        }
    }

    /// A walk has ended, and with it a request.
    pub(super) fn end(&self) {
        self.set_running(false);
        self.requested.store(false, Relaxed);
    }

    /// Whether a walk is under way.
    pub(super) fn is_running(&self) -> bool {
        self.is_running.load(Relaxed)
    }

    /// Returns the number of walks that were started.
    pub(super) fn starts(&self) -> u64 {
        self.starts.load(Relaxed)
    }

    /// Starts counting walks again from zero.
    pub(super) fn reset_counts(&self) {
        self.starts.store(0, Relaxed);
    }

    /// Carries out a command.
    pub(super) fn command(&self, command: CrawlerCommand) -> Result<(), Refusal> {
        match command {
            CrawlerCommand::Enable(on) => self.enabled.store(on, Relaxed),
            CrawlerCommand::Sleep(sleep_us) => self.sleep_us.store(sleep_us, Relaxed),
            CrawlerCommand::ToCrawl(items) => self.to_crawl.store(items, Relaxed),
            CrawlerCommand::Crawl if !self.enabled.load(Relaxed) => {
                return Err(Refusal::NoCrawler);
            }
            CrawlerCommand::Crawl => {
                if self.requested.swap(true, Relaxed) {
                    return Err(Refusal::CrawlerBusy);
                }
            }
        }
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
        Ok(())
    }
}
