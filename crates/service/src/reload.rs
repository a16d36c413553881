//! What SIGHUP reads again, on a thread of its own: a file system that doesn't answer delays
//! neither the end of the service nor anything that is served.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::Context as _;

use crate::notify::notify;

/// Reads something again; an error leaves what was there before.
pub(crate) type Reload = Box<dyn FnMut() -> anyhow::Result<()> + Send>;

/// Reads files again when asked to.
#[derive(Debug)]
pub(crate) struct Reloader(Option<SyncSender<()>>);

impl Reloader {
    /// Has nothing to read.
    pub(crate) fn idle() -> Self {
        Self(None)
    }

    /// Starts the thread, where there is something to read. The names are for the log.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub(crate) fn start(reloads: Vec<(&'static str, Reload)>) -> anyhow::Result<Self> {
        if reloads.is_empty() {
            return Ok(Self::idle());
        }
        // While one request is carried out, one waits; a further one would do the same as that.
        let (requests, due) = sync_channel(1);
        let thread = std::thread::Builder::new().name("reload".to_owned());
        thread
            .spawn(move || read_again(&due, reloads))
            .context("cannot start the thread for SIGHUP")?;
        Ok(Self(Some(requests)))
    }

    /// Has everything read again, soon.
    pub(crate) fn request(&self) {
        notify(&reloading());
        let Some(requests) = &self.0 else {
            tracing::info!("SIGHUP: there are no files to read again");
            return notify("READY=1");
        };
        let _ = requests.try_send(());
    }
}

fn read_again(due: &Receiver<()>, mut reloads: Vec<(&'static str, Reload)>) {
    while due.recv().is_ok() {
        for (what, reload) in &mut reloads {
            match reload() {
                Ok(()) => tracing::info!("{what} were read again"),
                Err(error) => tracing::warn!("{what} stay as they were: {error:#}"),
            }
        }
        notify("READY=1");
    }
}

/// The state while files are read again, with the time by which a service manager orders it.
fn reloading() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
}
