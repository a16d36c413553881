//! Files of segments that another hand writes over or cuts while they are served. Control plane.
//!
//! They are mapped, and their indexes aren't checked again: where the end of one is cut, the rest
//! of its last page would be read as zeros, which may mean that nothing is shown. So the system
//! says when a file in their directory is written to; one that is open by then is read, and refused
//! from then on where it isn't what was opened.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::shared::Shared;
use crate::model::{Damage, index_id, index_name, segment_id, segment_name};

/// What looks after a directory of segments until it is dropped.
pub(super) struct Watch {
    events: Arc<OwnedFd>,
    watch: i32,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins; `None` where the system has no more of these.
    pub(super) fn of(folder: &Path, state: Shared) -> Option<Self> {
        let begun = Self::begin(folder, state);
        let what = "what others write to its files isn't noticed";
        begun.inspect_err(|why| tracing::warn!("{}: {what}: {why}", folder.display())).ok()
    }

    fn begin(folder: &Path, state: Shared) -> io::Result<Self> {
        let events = Arc::new(inotify::init(CreateFlags::CLOEXEC)?);
        let watch = inotify::add_watch(&*events, folder, WatchFlags::MODIFY)?;
        let (own, folder) = (Arc::clone(&events), folder.to_owned());
        let has_ended = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&has_ended);
        let thread = std::thread::Builder::new().name("segments".to_owned());
        let thread = thread.spawn(move || follow(&own, &folder, &state, &ended))?;
        Ok(Self { events, watch, has_ended, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.has_ended.store(true, Relaxed);
        // Removing the watch wakes the thread. Where the directory is gone, that did before.
        let _ = inotify::remove_watch(&*self.events, self.watch);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(events: &OwnedFd, folder: &Path, state: &Shared, has_ended: &AtomicBool) {
    let mut buffer = [MaybeUninit::uninit(); 4_096];
    let mut events = inotify::Reader::new(events, &mut buffer);
    loop {
        let event = match events.next() {
            Ok(event) => event,
            Err(Errno::INTR) => continue,
            Err(why) => return tracing::warn!("{}: {why}", folder.display()),
        };
        if event.events().contains(ReadFlags::IGNORED) || has_ended.load(Relaxed) {
            return;
        }
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            // Any of them may have been written to.
            let all = state.little().segments().clone();
            for id in all {
                look(folder, (id, &segment_name(id)), state);
                look(folder, (id, &index_name(id)), state);
            }
        }
        let name = event.file_name().and_then(|name| name.to_str().ok()).unwrap_or_default();
        if let Some(id) = segment_id(name).or_else(|| index_id(name)) {
            look(folder, (id, name), state);
        }
    }
}

/// Looks at a file that was written to. What is sealed now is written before it is open.
fn look(folder: &Path, (id, name): (u64, &str), state: &Shared) {
    let Some(segment) = state.little().opened(id).pop() else { return };
    let damage = match std::fs::read(folder.join(name)) {
        Ok(bytes) if index_id(name).is_some() => segment.compare_index(bytes.into()),
        Ok(bytes) => segment.compare(bytes.into()),
        // What was mapped stays.
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => Some(Damage::unopened(id, format!("it can't be read any more: {why}"))),
    };
    if let Some(damage) = damage {
        tracing::error!("{damage}");
        state.little().spoil(id, &damage);
    }
}
