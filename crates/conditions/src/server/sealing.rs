//! Sealing, on a thread of its own: what is in memory is put into segments and a snapshot of the
//! journal, while the service goes on. Control plane.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use super::log::{BaseError, NewBase};
use super::map::read_ahead;
use super::segments::{Pins, SegmentError, Segments};
use super::shared::Shared;
use crate::model::{Damage, Refusal, Seal};

/// Why nothing was sealed. All is as it was before.
#[derive(Debug, thiserror::Error)]
pub(super) enum SealError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Damaged(#[from] Damage),
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error(transparent)]
    Base(#[from] BaseError),
    #[error("the service ends")]
    Ends,
    #[error("the thread that seals has panicked")]
    Panicked,
}

/// What came of a seal.
pub(super) struct Sealed {
    pub(super) seal: Seal,
    pub(super) result: Result<(), SealError>,
    /// Whether the snapshot may count, though it isn't sure: then no file may be removed.
    pub(super) is_unsure: bool,
}

/// A seal under way.
pub(super) struct Sealing {
    results: Receiver<Sealed>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sealing {
    /// Begins, in the state as well; `done` is called once there is a result. `keeps_files` is
    /// for when it isn't known which snapshot counts.
    ///
    /// # Errors
    /// When there is no thread for it. Nothing has begun then.
    pub(super) fn begin(
        (seal, base): (Seal, Box<dyn NewBase>),
        shared: Shared,
        segments: Segments,
        keeps_files: bool,
        done: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let seal = seal.reading_ahead(read_ahead);
        let (sender, results) = mpsc::sync_channel(1);
        let ends = Arc::new(AtomicBool::new(false));
        let (is_ending, state) = (ends.clone(), shared.clone());
        let (begin, begun) = mpsc::sync_channel::<(Seal, Box<dyn NewBase>)>(1);
        let work = move || {
            let Ok((mut seal, mut base)) = begun.recv() else { return };
            let mut is_unsure = false;
            // Whatever was made of it, it is still known which folders it is of.
            let sealed = catch_unwind(AssertUnwindSafe(|| {
                store(&mut seal, &mut *base, (&shared, &segments), &is_ending)?;
                let used = &seal.segments() | shared.read().segments();
                finish(&seal, (base, &used), &mut is_unsure)
            }));
            let result = sealed.unwrap_or(Err(SealError::Panicked));
            // What is in the way now is removed by the next seal, or start.
            if result.is_ok() {
                let _ = segments.sweep(&seal.segments());
            } else if !is_unsure && !keeps_files {
                let named = shared.read().segments().clone();
                let _ = segments.sweep(&named);
            }
            let _ = sender.send(Sealed { seal, result, is_unsure });
            done();
        };
        let thread = std::thread::Builder::new().name("seal".to_owned()).spawn(work)?;
        state.write().begin_seal(&seal);
        // It waits for nothing else.
        let _ = begin.send((seal, base));
        Ok(Self { results, ends, thread: Some(thread) })
    }

    /// What came of it, once it is done.
    pub(super) fn result(&self) -> Option<Sealed> {
        self.results.try_recv().ok()
    }
}

impl Drop for Sealing {
    /// Gives it up between two segments.
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        // A panic has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Frees what was sealed, and has the system get its memory back, beside all else.
pub(super) fn free(sealed: impl Send + 'static) {
    let free = move || {
        drop(sealed);
        base::memory::give_back();
    };
    // Where there is no thread for it, it is dropped here.
    let _ = std::thread::Builder::new().name("free".to_owned()).spawn(free);
}

/// Stores all segments. The state is read for one of them at a time.
fn store(
    seal: &mut Seal,
    base: &mut dyn NewBase,
    (shared, segments): (&Shared, &Segments),
    ends: &AtomicBool,
) -> Result<(), SealError> {
    seal.number_from(base.begin()?);
    let mut pins = Pins::new();
    loop {
        if ends.load(Relaxed) {
            return Err(SealError::Ends);
        }
        let made = seal.next(&shared.read());
        if let Err(Refusal::Damaged(Damage { elsewhere: Some(id), .. })) = made {
            pins.extend(segments.fetch(id)?);
            base.goes_on()?;
            continue;
        }
        let Some(made) = made? else { break };
        pins.clear();
        let bytes = segments.store(made.id, &made.bytes)?;
        seal.stored(made.id, bytes)?;
        base.goes_on()?;
    }
    // A snapshot that this server could not start from must not count.
    segments.check_room()?;
    Ok(segments.sync()?)
}

/// Makes the snapshot that names them.
fn finish(
    seal: &Seal,
    (mut base, used): (Box<dyn NewBase>, &BTreeSet<u64>),
    is_unsure: &mut bool,
) -> Result<(), SealError> {
    for record in seal.records() {
        base.append(&record)?;
    }
    // On a full disk it fails here, where the segments may still be removed.
    base.prepare()?;
    *is_unsure = true;
    base.finish(used)?;
    *is_unsure = false;
    Ok(())
}
